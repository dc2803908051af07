//! The arguments of a call, from the words of the command line and the schema of the tool.

use serde_json::{Map, Value, json};
use sinew_api as api;
use sinew_tool::spelling::nearest;
use sinew_tool::{ErrorKind, ToolError};

use super::content::plain;
use crate::args::CallArgs;
use crate::client::{GatewayClient, encode};
use crate::commands::tools;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::say;

pub async fn of(args: &CallArgs, client: &mut GatewayClient) -> Result<Map<String, Value>, CliError> {
    if let Some(text) = &args.args {
        let arguments = whole(text)?;
        if let Some(schema) = find_schema(args, client).await.unwrap_or_default() {
            check_names(&arguments, &schema)?;
        }
        return Ok(arguments);
    }
    if args.arguments.is_empty() {
        return Ok(Map::new());
    }
    match find_schema(args, client).await? {
        Some(schema) => typed(&args.arguments, &schema),
        // The gateway says what is wrong with the label.
        None => Ok(Map::new()),
    }
}

/// The schema of the tool that is called; none for a label that no device with the tool has.
async fn find_schema(args: &CallArgs, client: &mut GatewayClient) -> Result<Option<Value>, CliError> {
    match args.device.trim().strip_prefix("label:") {
        Some(label) => schema_of_label(client, label, &args.tool).await,
        None => schema(client, &args.device, &args.tool).await.map(Some),
    }
}

/// Refuses a name that is probably misspelt. Any other is sent, because a device may take more than it describes.
fn check_names(arguments: &Map<String, Value>, schema: &Value) -> Result<(), CliError> {
    for name in arguments.keys() {
        match unknown(name, schema) {
            Some(message) if message.contains(MEANT) => return Err(usage(message)),
            Some(message) => say(&format!("sinew: {message}; it is sent all the same")),
            None => {}
        }
    }
    Ok(())
}

fn whole(text: &str) -> Result<Map<String, Value>, CliError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(usage("--args must be one JSON object, for example --args '{\"volume\": 40}'".to_owned())),
        Err(error) => Err(usage(format!("--args is not JSON: {error}"))),
    }
}

/// The schema of a tool that any device with the label has.
async fn schema_of_label(client: &mut GatewayClient, label: &str, tool: &str) -> Result<Option<Value>, CliError> {
    let label = label.to_ascii_lowercase();
    let answer: api::Devices = client.get_all(&format!("/api/v1/devices?label={}", encode(&label))).await?;
    for device in &answer.devices {
        if let Ok(schema) = schema(client, &device.id, tool).await {
            return Ok(Some(schema));
        }
    }
    Ok(None)
}

/// The schema of a tool of a device; if it has none of the name, the error says what it has instead.
pub async fn schema(client: &mut GatewayClient, device: &str, tool: &str) -> Result<Value, CliError> {
    let tools = tools::of_device(client, device).await?;
    // The device's own name and the public one differ in characters that the public one cannot have.
    if let Some(entry) = tools.iter().find(|entry| plain(&entry.name) == plain(tool)) {
        return Ok(entry.input_schema.clone());
    }
    // A public name may also carry a suffix.
    let public: api::Tools = client.get("/api/v1/tools?shape=folded").await?;
    if let Some(entry) = public.tools.into_iter().find(|entry| entry.name == tool) {
        return Ok(entry.input_schema);
    }
    // Only administrators may see what is held back.
    let changes = client.get::<api::Changes>(&format!("/api/v1/devices/{}/changes", encode(device))).await;
    let is_held = changes.is_ok_and(|changes| changes.quarantined.iter().any(|held| held.tool == tool));
    let names: Vec<_> = tools.iter().map(|entry| entry.name.as_str()).collect();
    let message = match is_held {
        true => format!(
            "`{tool}` of {device} is held back, because it changed against what was agreed; `sinew devices changes \
             {device}` shows how, `sinew devices accept {device} DIGEST` accepts it"
        ),
        false if names.is_empty() => {
            format!("{device} offers no tools now; `sinew devices show {device}` says why, and what to do")
        }
        false => {
            let hint = match nearest(tool, names.iter().copied()) {
                Some(name) => format!("; did you mean `{name}`?"),
                None if FOR_PEOPLE.contains(&tool) => {
                    "; firmware has it for people only: set `user-tools = true` under [gateway] to use it".to_owned()
                }
                None => String::new(),
            };
            format!("{device} has no tool `{tool}`{hint} (it has {})", names.join(", "))
        }
    };
    Err(ToolError::new(ErrorKind::UnknownTool, message).into())
}

/// What the firmware of boards lists only where tools for people are wanted.
const FOR_PEOPLE: [&str; 7] = [
    "self.get_system_info",
    "self.reboot",
    "self.upgrade_firmware",
    "self.screen.get_info",
    "self.screen.snapshot",
    "self.screen.preview_image",
    "self.assets.set_download_url",
];

/// `key=value` pairs, each value read as the schema types it.
pub fn typed(pairs: &[String], schema: &Value) -> Result<Map<String, Value>, CliError> {
    let mut arguments = Map::new();
    for pair in pairs {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| usage(format!("`{pair}` is not key=value; the tool takes {}", takes(schema))))?;
        if let Some(message) = unknown(key, schema) {
            return Err(usage(message));
        }
        let value = read(value, &schema["properties"][key]).ok_or_else(|| {
            let expected =
                tools::arguments(&json!({"required": [key], "properties": {key: schema["properties"][key]}}));
            usage(format!("`{value}` does not fit the argument {expected}"))
        })?;
        if arguments.insert(key.to_owned(), value).is_some() {
            return Err(usage(format!("the argument `{key}` is given twice")));
        }
    }
    Ok(arguments)
}

/// Comes before the name that was probably meant.
const MEANT: &str = "; did you mean `";

/// What is wrong with an argument that the tool does not describe. A tool that takes anything says so, or
/// says nothing at all.
fn unknown(key: &str, schema: &Value) -> Option<String> {
    let known = schema.get("properties")?.as_object()?;
    let is_open = schema.get("additionalProperties").is_some_and(|rest| *rest != json!(false))
        || ["patternProperties", "$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"]
            .iter()
            .any(|word| schema.get(*word).is_some());
    if known.contains_key(key) || is_open {
        return None;
    }
    let meant = nearest(key, known.keys().map(String::as_str));
    let meant = meant.map_or(String::new(), |name| format!("{MEANT}{name}`?"));
    Some(format!("the tool has no argument `{key}`{meant} (it takes {})", takes(schema)))
}

fn takes(schema: &Value) -> String {
    let arguments = tools::arguments(schema);
    if arguments.is_empty() { "no arguments".to_owned() } else { arguments }
}

/// A value as its property's type reads it; where no type is said, JSON if it is JSON, else text.
fn read(value: &str, property: &Value) -> Option<Value> {
    let json = || serde_json::from_str::<Value>(value).ok();
    let as_type = |word: &str| match word {
        "string" => Some(json!(value)),
        "integer" => json().filter(|value| value.is_i64() || value.is_u64()),
        "number" => json().filter(Value::is_number),
        "boolean" => match value {
            "true" | "yes" | "on" => Some(json!(true)),
            "false" | "no" | "off" => Some(json!(false)),
            _ => None,
        },
        "array" => json().filter(Value::is_array),
        "object" => json().filter(Value::is_object),
        "null" => (value == "null").then_some(Value::Null),
        _ => None,
    };
    // Other words, such as `int`, say nothing: the gateway does not check them either.
    let untyped = || Some(json().unwrap_or_else(|| json!(value)));
    let is_type = |word: &str| TYPES.contains(&word);
    match property.get("type") {
        Some(Value::String(word)) if is_type(word) => as_type(word),
        Some(Value::String(word)) if ["str", "text"].contains(&word.as_str()) => as_type("string"),
        Some(Value::Array(words)) => TYPES
            .into_iter()
            .filter(|word| words.iter().any(|wanted| wanted == word))
            .find_map(as_type)
            .or_else(|| if words.iter().all(|word| word.as_str().is_some_and(is_type)) { None } else { untyped() }),
        _ => untyped(),
    }
}

/// The types of JSON Schema; the narrower first, as everything is text.
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "array", "object", "string"];

fn usage(message: String) -> CliError {
    CliError::new(CliErrorKind::Usage, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[&str]) -> Result<Value, String> {
        let schema = json!({"properties": {
            "volume": {"type": "integer", "minimum": 0, "maximum": 100},
            "on": {"type": "boolean"},
            "text": {"type": "string"},
            "either": {"type": ["string", "integer"]},
            "list": {"type": "array"},
            "count": {"type": "int"},
            "name": {"type": "str"},
            "several": {"type": ["int", "null"]},
        }});
        let pairs: Vec<_> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        typed(&pairs, &schema).map(Value::Object).map_err(|failure| failure.message)
    }

    #[test]
    fn values_are_typed_by_the_schema() {
        assert_eq!(
            pairs(&["volume=40", "on=off", "text=4=0", "either=40", "list=[1,2]"]),
            Ok(json!({"volume": 40, "on": false, "text": "4=0", "either": 40, "list": [1, 2]}))
        );
        assert_eq!(pairs(&["either=forty", "text="]), Ok(json!({"either": "forty", "text": ""})));
    }

    #[test]
    fn a_type_that_json_schema_does_not_have_refuses_nothing() {
        assert_eq!(
            pairs(&["count=3", "name=3", "several=null"]),
            Ok(json!({"count": 3, "name": "3", "several": null}))
        );
        assert_eq!(pairs(&["count=three", "several=7"]), Ok(json!({"count": "three", "several": 7})));
    }

    #[test]
    fn an_argument_that_the_tool_does_not_know_is_named_with_the_one_that_was_meant() {
        let message = pairs(&["volum=40"]).unwrap_err();
        assert!(message.contains("no argument `volum`; did you mean `volume`?"), "{message}");
        let message = pairs(&["brightness=40"]).unwrap_err();
        assert!(message.contains("it takes volume?: integer 0–100"), "{message}");
        let given = ["other=x=y".to_owned()];
        for open in [json!({"type": "object"}), json!({"properties": {}, "additionalProperties": {"type": "string"}})] {
            assert_eq!(typed(&given, &open).map(Value::Object), Ok(json!({"other": "x=y"})), "{open}");
        }
        assert!(typed(&given, &json!({"properties": {}})).unwrap_err().message.contains("no arguments"));
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_with_the_expectation() {
        assert_eq!(pairs(&["volume=loud"]), Err("`loud` does not fit the argument volume: integer 0–100".to_owned()));
        assert!(pairs(&["volume=1.5"]).is_err());
        assert!(pairs(&["volume"]).is_err());
        assert_eq!(pairs(&["on=on", "on=on"]), Err("the argument `on` is given twice".to_owned()));
    }
}
