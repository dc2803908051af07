//! The mMCP manifest: what an app says of itself and its tools.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use crate::tool::Tool;

/// `instructions`, `tools`, and the protocol version they are written for.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    pub instructions: String,
    pub tools: Vec<Tool>,
    /// Absent means 1.0.
    pub protocol_version: ProtocolVersion,
}

/// The version of the protocol, `major.minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProtocolVersion {
    pub major: u16,
    pub minor: u16,
}

impl ProtocolVersion {
    pub const CURRENT: ProtocolVersion = ProtocolVersion { major: 1, minor: 0 };

    /// The version that a manifest states. Apps use several keys for it; `version` may also be the app's own and
    /// counts only where it has the form of a protocol version.
    fn stated(manifest: &Value) -> Result<ProtocolVersion, String> {
        let keys = ["protocolVersion", "protocol_version", "mMCP_version", "version"];
        let stated = |key: &&str| manifest.get(*key).is_some_and(|value| !value.is_null());
        let Some(key) = keys.into_iter().find(|key| stated(key)) else { return Ok(ProtocolVersion::CURRENT) };
        let version = match &manifest[key] {
            Value::String(text) => text.parse(),
            Value::Number(number) => number.to_string().parse(),
            other => Err(format!("`{key}` must be a string such as \"1.0\", not {}", kind_of(other))),
        };
        if key == "version" { Ok(version.unwrap_or(ProtocolVersion::CURRENT)) } else { version }
    }

    /// Every 1.x can be read; another major cannot.
    pub fn is_compatible(self) -> bool {
        self.major == ProtocolVersion::CURRENT.major
    }
}

impl FromStr for ProtocolVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<ProtocolVersion, String> {
        let wrong = || format!("protocol version `{text}` is not of the form MAJOR.MINOR, for example 1.0");
        let mut parts = text.trim().splitn(3, '.').map(str::parse::<u16>);
        let major = parts.next().ok_or_else(wrong)?.map_err(|_| wrong())?;
        let minor = parts.next().unwrap_or(Ok(0)).map_err(|_| wrong())?;
        // A third part (1.0.0) is read and ignored: it cannot change what is compatible.
        parts.next().transpose().map_err(|_| wrong())?;
        Ok(ProtocolVersion { major, minor })
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Manifest {
    pub fn parse(text: &str) -> Result<Manifest, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("the manifest is not JSON: {error}"))?;
        Manifest::from_json(&value)
    }

    pub fn from_json(value: &Value) -> Result<Manifest, String> {
        if !value.is_object() {
            return Err("the manifest must be a JSON object with `instructions` and `tools`".to_owned());
        }
        let protocol_version = ProtocolVersion::stated(value)?;
        let tools = match value.get("tools") {
            Some(Value::Array(entries)) => entries,
            Some(other) => return Err(format!("`tools` must be an array of tools, not {}", kind_of(other))),
            None => return Err("the manifest has no `tools`".to_owned()),
        };
        let tools = tools
            .iter()
            .enumerate()
            .map(|(index, entry)| Tool::from_json(entry).map_err(|problem| format!("tools[{index}]: {problem}")))
            .collect::<Result<_, _>>()?;
        let instructions = value.get("instructions").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Manifest { instructions, tools, protocol_version })
    }

    pub fn to_json(&self) -> Value {
        let tools: Vec<Value> = self.tools.iter().map(manifest_tool).collect();
        let mut manifest = json!({"instructions": self.instructions, "tools": tools});
        if self.protocol_version != ProtocolVersion::CURRENT {
            manifest["protocolVersion"] = json!(self.protocol_version.to_string());
        }
        manifest
    }
}

/// A manifest calls the input schema `parameters`.
fn manifest_tool(tool: &Tool) -> Value {
    let mut entry = tool.to_json();
    if let Some(members) = entry.as_object_mut()
        && let Some(schema) = members.remove("inputSchema")
    {
        members.insert("parameters".to_owned(), schema);
    }
    entry
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Value {
        json!({
            "instructions": "This app provides PDF processing capabilities",
            "tools": [{
                "name": "pdf_tool",
                "description": "Process PDF files to extract text and images...",
                "parameters": {
                    "type": "object",
                    "required": ["path", "operation"],
                    "properties": {
                        "path": {"type": "string", "description": "Path to the PDF file"},
                        "operation": {
                            "type": "string",
                            "enum": ["extract_text", "extract_images"],
                            "description": "Operation to perform on the PDF"
                        }
                    }
                }
            }]
        })
    }

    #[test]
    fn the_manifest_of_mmcp_is_read_and_written_back() {
        let manifest = Manifest::from_json(&example()).expect("the example of the mMCP specification");
        assert_eq!(manifest.instructions, "This app provides PDF processing capabilities");
        assert_eq!(manifest.protocol_version, ProtocolVersion::CURRENT);
        assert_eq!(manifest.tools[0].name, "pdf_tool");
        assert_eq!(manifest.tools[0].required(), ["path", "operation"]);
        assert_eq!(manifest.to_json(), example());
    }

    #[test]
    fn versions_one_are_compatible_and_others_are_not() {
        let compatible = |text: &str| text.parse::<ProtocolVersion>().map(ProtocolVersion::is_compatible);
        assert_eq!(compatible("1.0"), Ok(true));
        assert_eq!(compatible("1"), Ok(true));
        assert_eq!(compatible("1.7.3"), Ok(true));
        assert_eq!(compatible("2.0"), Ok(false));
        assert_eq!(compatible("0.9"), Ok(false));
        assert!(compatible("one").is_err());
        assert!(compatible("1.x").is_err());
        assert!(compatible("").is_err());
    }

    #[test]
    fn a_broken_manifest_says_what_is_wrong_and_where() {
        let problem = |value: Value| Manifest::from_json(&value).expect_err("broken");
        assert!(problem(json!([])).contains("JSON object"));
        assert!(problem(json!({})).contains("no `tools`"));
        assert!(problem(json!({"tools": {}})).contains("not an object"));
        assert!(problem(json!({"tools": [{"name": "a"}, {}]})).contains("tools[1]"));
        assert!(problem(json!({"tools": [], "protocolVersion": []})).contains("protocolVersion"));
        assert!(Manifest::parse("{").expect_err("cut").contains("not JSON"));
    }

    #[test]
    fn the_protocol_version_is_read_under_every_key_that_apps_use() {
        let version = |manifest: Value| Manifest::from_json(&manifest).map(|manifest| manifest.protocol_version.major);
        for key in ["protocolVersion", "protocol_version", "mMCP_version", "version"] {
            assert_eq!(version(json!({"tools": [], key: "2.0"})), Ok(2), "{key}");
            assert_eq!(version(json!({"tools": [], key: 2})), Ok(2), "{key}");
            assert_eq!(version(json!({"tools": [], key: null})), Ok(1), "{key}");
        }
        assert!(version(json!({"tools": [], "mMCP_version": "soon"})).is_err());
        assert_eq!(version(json!({"tools": [], "version": "2024-beta"})), Ok(1), "an app's own version");
        assert_eq!(version(json!({"tools": [], "version": "9.1", "protocolVersion": "1.2"})), Ok(1));
    }
}
