//! The content of a tool specification, independent of its format.
//!
//! A [`ToolSpecification`] is the content of one tool's eight sections. Input and output are one JSON Schema
//! each: a table is another form of it, so both are printed from it and read into it. Where
//! everything is in the text is in [`Places`], which equality ignores.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sinew_tool::{Audience, Hints, Schema, Tool, Version};

use crate::read::places::Places;
use crate::read::prose;

/// The eight sections of a tool specification, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    Purpose,
    Name,
    Input,
    Output,
    Errors,
    Idempotency,
    Examples,
    Security,
}

impl Section {
    pub const ALL: [Section; 8] = [
        Section::Purpose,
        Section::Name,
        Section::Input,
        Section::Output,
        Section::Errors,
        Section::Idempotency,
        Section::Examples,
        Section::Security,
    ];

    /// 1 to 8.
    pub fn number(self) -> usize {
        self as usize + 1
    }

    /// The text of its heading: `3. Input Schema (Parameters)`.
    pub fn heading(self) -> String {
        format!("{}. {}", self.number(), self.title())
    }

    pub fn title(self) -> &'static str {
        match self {
            Section::Purpose => "Tool Purpose and Description",
            Section::Name => "Invocation Name",
            Section::Input => "Input Schema (Parameters)",
            Section::Output => "Output Schema (Return Value)",
            Section::Errors => "Error Handling",
            Section::Idempotency => "Idempotency",
            Section::Examples => "Usage Examples (for MCP context)",
            Section::Security => "Security Considerations",
        }
    }
}

/// What a schema of a tool describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaRole {
    /// Arguments, which callers write: the schema may widen.
    Input,
    /// Results, which callers read: the schema may narrow.
    Output,
}

/// One tool as its specification describes it. Texts are Markdown; empty if nothing is stated.
#[derive(Clone, Debug, Default)]
pub struct ToolSpecification {
    /// The invocation name.
    pub name: String,
    pub title: Option<String>,
    /// As written; `None` if neither the tool nor the document states one.
    pub version: Option<String>,
    pub hints: Hints,
    pub audience: Audience,
    pub purpose: String,
    /// JSON Schema of the arguments.
    pub input: Schema,
    /// Whether the parameters could be read, or the tool states that it takes none.
    pub input_known: bool,
    pub input_notes: String,
    /// JSON Schema of the result; `None` if nothing readable describes it.
    pub output: Option<Schema>,
    pub output_notes: String,
    pub errors: String,
    pub idempotency: String,
    pub examples: Vec<Example>,
    pub examples_notes: String,
    pub security: String,
    /// Further sections the author added: heading and text.
    pub extra: Vec<(String, String)>,
    /// Members of a `tools/list` entry that have no section, such as `execution`.
    pub unknown: Map<String, Value>,
    pub places: Places,
}

/// A fenced block of the usage examples, with the prose before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Example {
    pub intro: String,
    /// The word after the fence, usually `json`.
    pub language: String,
    pub body: String,
}

/// The answer of the idempotency section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idempotent {
    Yes,
    No,
    /// Partially, conditionally, or depending on the arguments.
    Sometimes,
}

impl PartialEq for ToolSpecification {
    fn eq(&self, other: &ToolSpecification) -> bool {
        let texts = |spec: &ToolSpecification| {
            [
                spec.name.clone(),
                spec.purpose.clone(),
                spec.input_notes.clone(),
                spec.output_notes.clone(),
                spec.errors.clone(),
                spec.idempotency.clone(),
                spec.examples_notes.clone(),
                spec.security.clone(),
            ]
        };
        texts(self) == texts(other)
            && (&self.title, &self.version, self.hints, self.audience)
                == (&other.title, &other.version, other.hints, other.audience)
            && (&self.input, &self.output, self.input_known) == (&other.input, &other.output, other.input_known)
            && (&self.examples, &self.extra) == (&other.examples, &other.extra)
            && self.unknown == other.unknown
    }
}

impl ToolSpecification {
    /// The specification of a live tool. Sections that a `tools/list` entry cannot fill stay empty,
    /// except for one example made from the schema.
    pub fn from_tool(tool: &Tool) -> ToolSpecification {
        ToolSpecification::from_tool_alone(tool).with_sample()
    }

    /// Adds an example made from the schema.
    pub(crate) fn with_sample(mut self) -> ToolSpecification {
        let call = json!({"tool_name": self.name, "arguments": crate::print::sample(&self.input)});
        self.examples.push(Example {
            intro: String::new(),
            language: "json".to_owned(),
            body: serde_json::to_string_pretty(&call).unwrap_or_default(),
        });
        self
    }

    /// What a `tools/list` entry itself says.
    pub(crate) fn from_tool_alone(tool: &Tool) -> ToolSpecification {
        let idempotency = match (tool.hints.read_only, tool.hints.idempotent) {
            (_, Some(true)) => "- **Idempotent**: Yes\n- **Explanation**: the tool declares `idempotentHint`.",
            (Some(true), _) => "- **Idempotent**: Yes\n- **Explanation**: the tool only reads (`readOnlyHint`).",
            (_, Some(false)) => "- **Idempotent**: No\n- **Explanation**: the tool declares `idempotentHint: false`.",
            _ => "",
        };
        ToolSpecification {
            name: tool.name.clone(),
            title: tool.title.as_deref().map(prose::one_line).filter(|title| !title.is_empty()),
            version: Some(tool.version.to_string()),
            hints: tool.hints,
            audience: tool.audience,
            purpose: prose::from_text(&tool.description),
            input: Arc::clone(&tool.input_schema),
            input_known: true,
            output: tool.output_schema.clone(),
            idempotency: idempotency.to_owned(),
            ..ToolSpecification::default()
        }
    }

    /// The tool a client would see. A version that is missing or not semver becomes 1.0.0, which is
    /// the usual assumption.
    pub fn to_tool(&self) -> Tool {
        let mut tool = Tool::new(&self.name, prose::to_text(&self.purpose), Value::Null);
        if self.input.is_object() {
            tool.input_schema = Arc::clone(&self.input);
        }
        tool.title.clone_from(&self.title);
        tool.output_schema.clone_from(&self.output);
        tool.version = self.version_for_callers();
        tool.hints = self.hints;
        tool.audience = self.audience;
        if tool.hints.idempotent.is_none() && tool.hints.read_only != Some(true) {
            tool.hints.idempotent = match self.idempotent() {
                Some(Idempotent::Yes) => Some(true),
                Some(Idempotent::No) => Some(false),
                Some(Idempotent::Sometimes) | None => None,
            };
        }
        tool
    }

    /// The version that callers see.
    pub(crate) fn version_for_callers(&self) -> Version {
        self.semver().unwrap_or(Version::new(1, 0, 0))
    }

    pub fn semver(&self) -> Option<Version> {
        self.version.as_deref().and_then(read_version)
    }

    /// The answer of the idempotency section, if it has one.
    pub fn idempotent(&self) -> Option<Idempotent> {
        read_idempotency(&self.idempotency)
    }

    /// The described arguments.
    pub fn parameters(&self) -> impl Iterator<Item = (&String, &Value)> {
        properties(&self.input).into_iter().flatten()
    }

    /// The described fields of the result.
    pub fn fields(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.output.as_deref().and_then(properties).into_iter().flatten()
    }
}

/// The `properties` of a schema.
pub(crate) fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// The `required` names of a schema.
pub(crate) fn required(schema: &Value) -> Vec<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The schema of a tool without arguments.
pub(crate) fn no_arguments() -> Value {
    json!({"type": "object", "properties": {}})
}

/// The error codes that a text lists: at the start of an item, a table row or a line, in code or bold type, or by
/// themselves before a colon or a dash if they are written as codes are.
pub(crate) fn error_codes(text: &str) -> Vec<String> {
    const FIELDS: &[&str] = &[
        "error",
        "error_type",
        "error_message",
        "error_details",
        "status",
        "error_code",
        "message",
        "code",
        "note",
        "todo",
        "tbd",
        "fixme",
        "warning",
        "json",
        "http",
        "api",
    ];
    let code = |line: &str| {
        let line = line.trim_start();
        let body = line.trim_start_matches(|c: char| c.is_whitespace() || "-*+|>".contains(c));
        let body = ["<li>", "<td>", "<dt>"].iter().find_map(|tag| body.strip_prefix(tag)).unwrap_or(body);
        let body = unnumbered(body.strip_prefix("<code>").map_or(body, |_| &body[5..])).trim_start();
        let is_item = body.len() < line.len();
        let word = body.trim_start_matches(['`', '*', '"', '>', '[']);
        let is_marked = word.len() < body.len();
        let name_end =
            word.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))).unwrap_or(word.len());
        let name = word[..name_end].trim_end_matches(['.', '-']);
        let after = &word[name.len()..];
        let closed = after.trim_start_matches(['`', '*', '"', ']', '<', '/']);
        let is_closed = closed.len() < after.len() || after.starts_with(':');
        let is_followed = [":", " -", " –", " —", " |", "|", " =>", " →"].iter().any(|mark| closed.starts_with(mark));
        let is_number = is_digits(name.trim_start_matches('-')) && name.len() >= 3;
        // `E1`
        let is_numbered = name.starts_with(|c: char| c.is_ascii_uppercase()) && is_digits(&name[1..]);
        let is_shaped =
            name.contains('_') || is_number || is_numbered || name.chars().skip(1).any(|c| c.is_ascii_uppercase());
        let is_code = match (is_marked && is_closed, is_item) {
            // A word in code is a code where something explains it.
            (true, true) => {
                is_shaped
                    || body.starts_with('`')
                        && (name.contains('-') || is_followed && (name.len() > 2 || is_digits(name)))
            }
            (true, false) => is_shaped && body.starts_with('`'),
            (false, _) => is_shaped && is_followed && !is_marked,
        };
        (is_code && !FIELDS.contains(&name.to_lowercase().as_str())).then(|| name.to_owned())
    };
    // So that the asterisks of bold type are not taken for bullets.
    text.replace("**", "`").lines().filter_map(code).collect()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// An item without its number: `1. x`, `2) x`. `404: x` begins with a code.
fn unnumbered(item: &str) -> &str {
    let rest = item.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix(['.', ')']) {
        Some(rest) if rest.starts_with(' ') => rest,
        _ => item,
    }
}

/// A semantic version as people write it: `1.2.3`, `v1.2.3`, `1.2`, `1`.
pub(crate) fn read_version(text: &str) -> Option<Version> {
    let text = text.trim().trim_start_matches(['v', 'V']);
    if let Ok(version) = Version::parse(text) {
        return Some(version);
    }
    let mut parts = text.splitn(3, '.').map(|part| part.parse::<u64>());
    let major = parts.next()?.ok()?;
    let minor = parts.next().unwrap_or(Ok(0)).ok()?;
    let patch = parts.next().unwrap_or(Ok(0)).ok()?;
    Some(Version::new(major, minor, patch))
}

fn read_idempotency(text: &str) -> Option<Idempotent> {
    let plain = text.replace(['*', '`', '_'], "").to_lowercase();
    let stated = plain.lines().find_map(|line| {
        let line = line.trim_start_matches(['-', ' ', '+', '>']);
        let line = line.strip_prefix("is ").unwrap_or(line);
        line.strip_prefix("idempotent?")
            .or_else(|| line.strip_prefix("idempotent"))
            .map(|rest| rest.trim_start_matches([':', ' ', '-', '–', '—']).to_owned())
    });
    let answer = stated.unwrap_or_else(|| plain.trim().to_owned());
    let word = answer.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let is_unsure = ["probably", "presumably", "maybe", "perhaps", "hopefully", "should be", "i think", "not sure"]
        .iter()
        .any(|doubt| answer.contains(doubt));
    match word {
        _ if is_unsure => Some(Idempotent::Sometimes),
        _ if answer.starts_with(['✓', '✔', '✅']) => Some(Idempotent::Yes),
        _ if answer.starts_with(['✗', '✘', '❌']) => Some(Idempotent::No),
        "yes" | "no" if answer.starts_with("yes and no") || answer.starts_with("no and yes") => {
            Some(Idempotent::Sometimes)
        }
        // The blank form offers its choices: `Yes/No/Partially`.
        "yes" if answer.starts_with("yes/no") => None,
        "yes" | "true" if answer.contains(" if ") && answer.contains(" no") => Some(Idempotent::Sometimes),
        "yes" | "true" | "y" | "always" | "fully" => Some(Idempotent::Yes),
        "no" | "not" | "false" | "never" | "n" | "non" | "nonidempotent" => Some(Idempotent::No),
        "partially" | "partly" | "conditional" | "conditionally" | "depends" | "sometimes" | "mostly" | "usually"
        | "varies" => Some(Idempotent::Sometimes),
        "generally" | "typically" if answer.contains(" no") => Some(Idempotent::No),
        "generally" | "typically" => Some(Idempotent::Sometimes),
        _ if [
            "not idempotent",
            "isn't idempotent",
            "non-idempotent",
            "nonidempotent",
            "not be retried",
            "unsafe to retry",
        ]
        .iter()
        .any(|says| plain.contains(says)) =>
        {
            Some(Idempotent::No)
        }
        _ if [
            "safe to retry",
            "safely retried",
            "safe to repeat",
            "safe to call again",
            "safely be retried",
            "safely be repeated",
        ]
        .iter()
        .any(|says| plain.contains(says)) =>
        {
            Some(Idempotent::Yes)
        }
        _ if plain.contains("is idempotent") || plain.contains("are idempotent") => Some(Idempotent::Yes),
        _ => effect_of_repeating(&plain),
    }
}

/// The answer that a description of a second call gives without the word: "Calling it twice has the same effect."
fn effect_of_repeating(plain: &str) -> Option<Idempotent> {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| plain.contains(phrase));
    let repeats = says(&[
        "twice",
        "again",
        "repeat",
        "second call",
        "multiple",
        "several times",
        "more than once",
        "each call",
        "every call",
    ]);
    let differs = says(&[
        "not the same effect",
        "different effect",
        "another",
        "a new ",
        "appends",
        "adds",
        "once more",
        "duplicate",
        "additional",
    ]);
    let same = says(&[
        "same effect",
        "same result",
        "same outcome",
        "same state",
        "no further effect",
        "no effect",
        "changes nothing",
        "nothing changes",
        "no side effect",
    ]);
    match (repeats, same, differs) {
        (true, true, false) => Some(Idempotent::Yes),
        (true, false, true) => Some(Idempotent::No),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idempotency_is_read_as_people_write_it() {
        use Idempotent::*;
        for (text, expected) in [
            ("- **Idempotent**: Yes", Some(Yes)),
            ("- Idempotent: Yes.", Some(Yes)),
            ("- **Idempotent**: Yes — pure computation", Some(Yes)),
            ("- **Idempotent**: No. Rebuilds the image each time.", Some(No)),
            ("- **Idempotent**: Generally No.", Some(No)),
            ("- **Idempotent**: Depends on operation", Some(Sometimes)),
            ("- **Idempotent**: Partially", Some(Sometimes)),
            ("- **Idempotent**: Yes/No/Partially", None),
            ("Yes and no.", Some(Sometimes)),
            ("Depends, see the code.", Some(Sometimes)),
            ("This tool is not idempotent.", Some(No)),
            ("The tool is idempotent.", Some(Yes)),
            ("Yes.", Some(Yes)),
            ("- **Idempotent**: ✅", Some(Yes)),
            ("- **Idempotent?** No, it sends again.", Some(No)),
            ("- **Idempotent**: Non-idempotent", Some(No)),
            ("- **Idempotent**: Y", Some(Yes)),
            ("- **Idempotent**: Yes, probably", Some(Sometimes)),
            ("It should be idempotent.", Some(Sometimes)),
            ("It is safe to retry.", Some(Yes)),
            ("Calls must not be retried.", Some(No)),
            ("See the general notes.", None),
            ("Calling it twice has the same effect as calling it once.", Some(Yes)),
            ("A repeated call changes nothing.", Some(Yes)),
            ("Each call appends a line to the log.", Some(No)),
            ("Repeated calls have the same effect, but each adds a log line.", None),
            ("", None),
        ] {
            assert_eq!(read_idempotency(text), expected, "{text:?}");
        }
    }

    #[test]
    fn error_codes_are_found_in_lists_and_tables() {
        for (text, codes) in [
            (
                "- `FileNotFound`: none.\n* **ValidationError** - bad\n| `IO_ERROR` | disk |\n1. `status`: x\nplain `Word`",
                &["FileNotFound", "ValidationError", "IO_ERROR"][..],
            ),
            ("- FileNotFound: none.\n- ENOENT – no such file\n- Note: see the log", &["FileNotFound", "ENOENT"]),
            ("- 404: no such file\n- -32602: wrong arguments\n1. 500 - broken", &["404", "32602", "500"]),
            ("- **FileNotFound:** none\n2) `timeout`: no answer", &["FileNotFound", "timeout"]),
            ("| not-found | gone |\n| `not-found` | gone |", &["not-found"]),
            ("<li><code>DiskFull</code>: no room</li>", &["DiskFull"]),
            ("The OpenAPI server - or another one - fails.", &[]),
            ("A call fails if the file is gone.\n- The file is gone: try another.", &[]),
        ] {
            assert_eq!(error_codes(text), codes, "{text}");
        }
    }

    #[test]
    fn versions_are_read_as_people_write_them() {
        for (text, expected) in [
            ("1.0.2", Some("1.0.2")),
            ("v1.1.9", Some("1.1.9")),
            ("2", Some("2.0.0")),
            ("1.2", Some("1.2.0")),
            ("1.2.3-rc.1", Some("1.2.3-rc.1")),
            ("latest", None),
            ("1.x", None),
        ] {
            assert_eq!(read_version(text).map(|version| version.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_tool_comes_back_from_its_specification() {
        let tool = Tool::new("set_volume", "Set the volume.\n# not a heading\n```\n", json!({"type": "object"}))
            .with_title("Volume")
            .with_output_schema(json!({"type": "object"}))
            .with_version(Version::new(2, 1, 0))
            .with_hints(Hints { idempotent: Some(true), ..Hints::default() })
            .for_users();
        let back = ToolSpecification::from_tool(&tool).to_tool();
        assert_eq!(back.description, "Set the volume.\n# not a heading\n```");
        assert_eq!(Tool { description: String::new(), ..back }, Tool { description: String::new(), ..tool });
    }
}
