//! What a tool is, and a device's set of them.

use std::sync::Arc;

use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::digest::Digest;

/// A JSON Schema; shared, because fifty equal boards have one.
pub type Schema = Arc<Value>;

/// A named function of a device, with a schema.
///
/// ```
/// use indoc::indoc;
/// use sinew_tool::{Tool, json};
///
/// let pdf_tool = Tool::new(
///     "pdf_tool",
///     indoc! {r#"
///         Process PDF files to extract text and images.
///         Supports operations:
///         - extract_text: Extract all text content from the PDF
///         - extract_images: Extract and save embedded images to PNG files
///     "#},
///     json!({
///         "type": "object",
///         "required": ["path", "operation"],
///         "properties": {
///             "path": {
///                 "type": "string",
///                 "description": "Path to the PDF file"
///             },
///             "operation": {
///                 "type": "string",
///                 "enum": ["extract_text", "extract_images"],
///                 "description": "Operation to perform on the PDF"
///             }
///         }
///     }),
/// );
/// assert_eq!(pdf_tool.name, "pdf_tool");
/// assert_eq!(pdf_tool.required(), ["path", "operation"]);
/// assert_eq!(pdf_tool.version.to_string(), "1.0.0");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name the device knows it by.
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    pub input_schema: Schema,
    pub output_schema: Option<Schema>,
    pub version: Version,
    pub hints: Hints,
    /// What calling it can do, where the device's family defines the tool itself; `None` where the device does.
    pub effect: Option<Effect>,
    pub audience: Audience,
    /// The tool as a standard of its own describes it, where the device accepts more than that. An
    /// endpoint for that standard lists this one; calls are checked against the tool itself.
    pub plain: Option<Arc<Tool>>,
    /// The tools that it calls as its caller. Whoever may not see one of them does not see this tool either.
    pub uses: Vec<ToolUse>,
    /// The steps that it runs as calls of its caller; what is secret in them is secret in its own arguments.
    pub steps: StepSource,
}

/// The tool that a step's condition on a screen is checked with, by an ordinary call.
pub const LOOK: &str = "find_elements";

/// Where the steps of a tool come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepSource {
    /// It runs none.
    #[default]
    Nowhere,
    /// They are part of the tool. Its arguments are the names that they may refer to.
    Tool(Arc<Value>),
    /// They are this argument, and call tools of the same device.
    Argument(String),
}

/// A tool that another tool calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ToolUse {
    /// The id, the given name or `label:NAME`; `None` where the tool is meant by its folded public name, or the device is
    /// an argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    pub tool: String,
}

/// What the tool says of its own effects; `None` where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

/// What calling a tool can do. Only a family says this, of tools it defines itself: what a device says of its own
/// tools is in [`Hints`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It only looks.
    Read,
    /// It changes something that can be changed back.
    Change,
    /// It can do harm that cannot be undone: spend money, delete, unlock.
    Danger,
}

/// Whom a tool is meant for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Audience {
    #[default]
    Everyone,
    /// For people only: a model neither sees nor calls it unless the configuration says so.
    User,
}

impl Tool {
    /// A tool of version 1.0.0 for everyone. A schema that is not a JSON object becomes the schema
    /// of "no arguments are described".
    pub fn new(name: impl Into<String>, description: impl Into<String>, input_schema: Value) -> Tool {
        let input_schema = if input_schema.is_object() { input_schema } else { json!({"type": "object"}) };
        Tool {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema: Arc::new(input_schema),
            output_schema: None,
            version: Version::new(1, 0, 0),
            hints: Hints::default(),
            effect: None,
            audience: Audience::Everyone,
            plain: None,
            uses: Vec::new(),
            steps: StepSource::Nowhere,
        }
    }

    pub fn with_title(mut self, title: impl Into<String>) -> Tool {
        self.title = Some(title.into());
        self
    }

    pub fn with_output_schema(mut self, schema: Value) -> Tool {
        self.output_schema = Some(Arc::new(schema));
        self
    }

    pub fn with_version(mut self, version: Version) -> Tool {
        self.version = version;
        self
    }

    pub fn with_hints(mut self, hints: Hints) -> Tool {
        self.hints = hints;
        self
    }

    pub fn with_effect(mut self, effect: Effect) -> Tool {
        self.effect = Some(effect);
        self
    }

    pub fn for_users(mut self) -> Tool {
        self.audience = Audience::User;
        self
    }

    pub fn with_plain(mut self, plain: Tool) -> Tool {
        self.plain = Some(Arc::new(plain));
        self
    }

    /// The version, unless it is 1.0.0, which is the default.
    pub fn explicit_version(&self) -> Option<&Version> {
        (self.version != Version::new(1, 0, 0)).then_some(&self.version)
    }

    /// The names of the required arguments.
    pub fn required(&self) -> Vec<&str> {
        let required = self.input_schema.get("required").and_then(Value::as_array);
        required.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The described arguments.
    pub fn properties(&self) -> Option<&Map<String, Value>> {
        self.input_schema.get("properties").and_then(Value::as_object)
    }

    /// What makes two tools of one name interchangeable for a caller: the input schema.
    pub fn input_digest(&self) -> Digest {
        Digest::of(&self.input_schema)
    }

    /// The tool as an MCP `tools/list` entry. The version is in `_meta` unless it is the default.
    pub fn to_json(&self) -> Value {
        let mut entry = json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": *self.input_schema,
        });
        if let Some(title) = &self.title {
            entry["title"] = json!(title);
        }
        if let Some(schema) = &self.output_schema {
            entry["outputSchema"] = (**schema).clone();
        }
        let annotations = self.hints.to_json(self.audience);
        if !annotations.is_empty() {
            entry["annotations"] = Value::Object(annotations);
        }
        if let Some(version) = self.explicit_version() {
            entry["_meta"] = json!({ VERSION_KEY: version.to_string() });
        }
        entry
    }

    /// The tool as gateways keep it and send it to each other: also what no device may say of itself.
    pub fn to_record(&self) -> Value {
        let mut record = self.to_json();
        if let Some(effect) = self.effect {
            record["effect"] = json!(effect);
        }
        if let Some(plain) = &self.plain {
            record["plain"] = plain.to_json();
        }
        if !self.uses.is_empty() {
            record["uses"] = json!(self.uses);
        }
        if self.steps != StepSource::Nowhere {
            record["steps"] = json!(self.steps);
        }
        record
    }

    /// Reads what [`Tool::to_record`] wrote. Never for what a device sent.
    pub fn from_record(record: &Value) -> Result<Tool, String> {
        let mut tool = Tool::from_json(record)?;
        tool.effect = record.get("effect").and_then(|effect| Effect::deserialize(effect).ok());
        tool.plain = record.get("plain").and_then(|plain| Tool::from_json(plain).ok()).map(Arc::new);
        tool.uses = record.get("uses").and_then(|uses| Vec::deserialize(uses).ok()).unwrap_or_default();
        tool.steps = record.get("steps").and_then(|steps| StepSource::deserialize(steps).ok()).unwrap_or_default();
        Ok(tool)
    }

    /// Reads a `tools/list` entry or a manifest's tool (`parameters` instead of `inputSchema`).
    /// Only the name is indispensable; everything else has a sensible absence.
    pub fn from_json(entry: &Value) -> Result<Tool, String> {
        let mut tool = Tool::without_schemas(entry)?;
        let input = INPUT_KEYS.iter().find_map(|key| entry.get(key));
        tool.set_schemas(input.cloned(), entry.get("outputSchema").cloned());
        Ok(tool)
    }

    /// Like [`Tool::from_json`]; takes the schemas out of the entry, so that large ones are not copied.
    pub fn take_json(entry: &mut Value) -> Result<Tool, String> {
        let mut tool = Tool::without_schemas(entry)?;
        let mut take = |key: &str| entry.get_mut(key).map(Value::take);
        let input = INPUT_KEYS.iter().find_map(|key| take(key));
        tool.set_schemas(input, take("outputSchema"));
        Ok(tool)
    }

    fn set_schemas(&mut self, input: Option<Value>, output: Option<Value>) {
        if let Some(input) = input.filter(Value::is_object) {
            self.input_schema = Arc::new(input);
        }
        self.output_schema = output.filter(Value::is_object).map(Arc::new);
    }

    fn without_schemas(entry: &Value) -> Result<Tool, String> {
        let name = entry.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = name.ok_or("a tool needs a non-empty string `name`")?;
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let mut tool = Tool::new(name, text("description").unwrap_or_default(), Value::Null);
        tool.title = text("title").map(str::to_owned);
        if let Some(annotations) = entry.get("annotations") {
            tool.hints = Hints::from_json(annotations);
            let audience = annotations.get("audience").and_then(Value::as_array);
            if audience.is_some_and(|who| !who.is_empty() && who.iter().all(|one| one == "user")) {
                tool.audience = Audience::User;
            }
        }
        let version = entry.get("_meta").and_then(|meta| meta.get(VERSION_KEY)).and_then(Value::as_str);
        if let Some(version) = version.or_else(|| text("version")).and_then(|text| Version::parse(text).ok()) {
            tool.version = version;
        }
        Ok(tool)
    }
}

/// A `tools/list` entry's key for the schema of the arguments, and a manifest's.
const INPUT_KEYS: [&str; 2] = ["inputSchema", "parameters"];

/// Where a tool's version travels in `_meta`.
pub const VERSION_KEY: &str = "sinew/version";

impl Hints {
    pub fn reading() -> Hints {
        Hints { read_only: Some(true), ..Hints::default() }
    }

    fn to_json(self, audience: Audience) -> Map<String, Value> {
        let hints = [
            ("readOnlyHint", self.read_only),
            ("destructiveHint", self.destructive),
            ("idempotentHint", self.idempotent),
            ("openWorldHint", self.open_world),
        ];
        let mut annotations: Map<String, Value> =
            hints.into_iter().filter_map(|(key, hint)| Some((key.to_owned(), json!(hint?)))).collect();
        if audience == Audience::User {
            annotations.insert("audience".to_owned(), json!(["user"]));
        }
        annotations
    }

    fn from_json(annotations: &Value) -> Hints {
        let hint = |key: &str| annotations.get(key).and_then(Value::as_bool);
        Hints {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        }
    }
}

/// The tools of one device, in the device's own order, names unique.
#[derive(Clone, Debug, PartialEq)]
pub struct Toolset {
    tools: Vec<Tool>,
    digest: Digest,
}

impl Toolset {
    /// Where a name comes twice the first one wins, as on the firmware.
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Toolset {
        let mut kept: Vec<Tool> = Vec::new();
        let mut names = std::collections::HashSet::new();
        for tool in tools {
            if names.insert(tool.name.clone()) {
                kept.push(tool);
            }
        }
        let digest = Digest::of(&kept.iter().map(Tool::to_record).collect());
        Toolset { tools: kept, digest }
    }

    pub fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Tool> {
        self.tools.iter()
    }

    pub fn len(&self) -> usize {
        self.tools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Equal digests, equal sets.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl Default for Toolset {
    fn default() -> Toolset {
        Toolset::new([])
    }
}

impl<'a> IntoIterator for &'a Toolset {
    type Item = &'a Tool;
    type IntoIter = std::slice::Iter<'a, Tool>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume() -> Tool {
        Tool::new(
            "set_volume",
            "Set the volume",
            json!({"type": "object", "properties": {"volume": {"type": "integer"}}, "required": ["volume"]}),
        )
    }

    #[test]
    fn a_tool_survives_the_trip_through_json() {
        let tool = volume()
            .with_title("Volume")
            .with_output_schema(json!({"type": "object"}))
            .with_version(Version::new(2, 1, 0))
            .with_hints(Hints { idempotent: Some(true), ..Hints::default() })
            .for_users();
        assert_eq!(Tool::from_json(&tool.to_json()), Ok(tool));
    }

    #[test]
    fn effect_and_plain_form_are_kept_in_records_and_never_read_from_a_device() {
        let plain =
            Tool::new("volume", "Sets the volume.", json!({"type": "object", "properties": {}, "required": []}));
        let tool = volume().with_effect(Effect::Danger).with_plain(plain);
        let record = tool.to_record();
        assert_eq!(Tool::from_record(&record), Ok(tool.clone()));
        assert_eq!(Tool::from_json(&record).map(|tool| (tool.effect, tool.plain)), Ok((None, None)));
        assert_eq!(tool.to_json().get("effect"), None);
        assert_ne!(Toolset::new([tool]).digest(), Toolset::new([volume()]).digest());
    }

    #[test]
    fn version_one_is_not_told() {
        assert_eq!(volume().to_json().get("_meta"), None);
        let told = volume().with_version(Version::new(1, 2, 0)).to_json();
        assert_eq!(told["_meta"]["sinew/version"], "1.2.0");
    }

    #[test]
    fn a_nameless_entry_is_refused_and_a_bare_one_is_not() {
        assert!(Tool::from_json(&json!({"description": "x"})).is_err());
        assert!(Tool::from_json(&json!({"name": ""})).is_err());
        let bare = Tool::from_json(&json!({"name": "x"})).expect("a name is enough");
        assert_eq!(*bare.input_schema, json!({"type": "object"}));
    }

    #[test]
    fn an_audience_that_includes_the_model_is_everyone() {
        let audience = |who: Value| {
            Tool::from_json(&json!({"name": "x", "annotations": {"audience": who}})).map(|tool| tool.audience)
        };
        assert_eq!(audience(json!(["user"])), Ok(Audience::User));
        assert_eq!(audience(json!(["user", "assistant"])), Ok(Audience::Everyone));
        assert_eq!(audience(json!([])), Ok(Audience::Everyone));
    }

    #[test]
    fn the_first_of_two_equal_names_wins() {
        let set = Toolset::new([volume(), Tool::new("set_volume", "another", json!({}))]);
        assert_eq!(set.len(), 1);
        assert_eq!(set.find("set_volume").map(|tool| tool.description.as_str()), Some("Set the volume"));
    }

    #[test]
    fn equal_sets_have_equal_digests() {
        let reordered = Tool::new(
            "set_volume",
            "Set the volume",
            json!({"required": ["volume"], "type": "object", "properties": {"volume": {"type": "integer"}}}),
        );
        assert_eq!(Toolset::new([volume()]).digest(), Toolset::new([reordered]).digest());
        assert_ne!(Toolset::new([volume()]).digest(), Toolset::default().digest());
    }
}
