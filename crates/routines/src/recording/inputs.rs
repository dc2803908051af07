//! Which values of recorded calls become parameters.

use serde_json::{Value, json};
use sinew_tool::REDACTED;

use crate::routine::DEVICE_PARAMETER;

/// Arguments that hold what somebody wrote.
const WRITTEN: [&str; 15] = [
    "text",
    "title",
    "message",
    "body",
    "content",
    "query",
    "subject",
    "caption",
    "comment",
    "note",
    "search",
    "recipient",
    "to",
    "url",
    "question",
];
/// Arguments that say where something is done, whatever they look like.
const IDENTIFYING: [&str; 12] = [
    "app",
    "package",
    "package_name",
    "by",
    "value",
    "id",
    "device",
    "path",
    "element_id",
    "key",
    "permission",
    "action",
];

#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) schema: Value,
    /// Without one, the caller must give it.
    pub(super) default: Option<Value>,
    /// What was used in the recording; nothing of a secret.
    pub(super) example: Value,
}

#[derive(Debug, Default)]
pub(super) struct Inputs(Vec<Parameter>);

impl Inputs {
    /// A parameter for each device, with the recorded one as its default.
    pub(super) fn of_devices(devices: &[String]) -> Inputs {
        let mut inputs = Inputs::default();
        for device in devices {
            let name = first_free(DEVICE_PARAMETER, |name| inputs.0.iter().all(|own| own.name != name));
            let (schema, example) = (json!({"type": "string"}), json!(device));
            inputs.0.push(Parameter { name, schema, default: Some(example.clone()), example });
        }
        inputs
    }

    pub(super) fn into_parameters(self) -> Vec<Parameter> {
        self.0
    }

    /// A reference to the parameter that an argument became, if it looks like input. The parameter has a name of its own.
    pub(super) fn parameter_for(
        &mut self,
        (argument, name): (&str, &str),
        value: &Value,
        schema: &Value,
    ) -> Option<Value> {
        let (schema, is_optional) = guess(argument, value, schema)?;
        let is_secret = value == REDACTED;
        let known =
            self.0.iter().find(|own| own.example == *value && own.default.is_some() == is_optional && !is_secret);
        if let Some(known) = known {
            return Some(reference(&known.name));
        }
        let base: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let name = first_free(&base, |name| self.0.iter().all(|own| own.name != name));
        let written = reference(&name);
        let example = if is_secret { json!("secret") } else { value.clone() };
        self.0.push(Parameter { name, schema, default: is_optional.then(|| value.clone()), example });
        Some(written)
    }

    /// A reference to the parameter of a device.
    pub(super) fn find_device(&self, device: &str) -> Value {
        let own = self.0.iter().find(|own| own.example == device);
        own.map_or_else(|| json!(device), |own| reference(&own.name))
    }

    /// A reference to the parameter that has this text.
    pub(super) fn find_text(&self, value: &Value) -> Option<Value> {
        let text = value.as_str().filter(|text| text.len() > 1)?;
        self.0.iter().find(|own| own.example == text).map(|own| reference(&own.name))
    }
}

fn reference(name: &str) -> Value {
    Value::String(format!("${{{name}}}"))
}

/// The schema of the parameter for an argument, and whether it may be left out. `None` where it is no input.
fn guess(argument: &str, value: &Value, schema: &Value) -> Option<(Value, bool)> {
    let is_choice = schema.get("enum").is_some() || schema.get("const").is_some();
    match value {
        Value::String(text) if text == REDACTED => Some((json!({"type": "string", "writeOnly": true}), false)),
        Value::String(text) => {
            let is_written = WRITTEN.contains(&argument) || text.contains(' ');
            (is_written && !is_choice && !IDENTIFYING.contains(&argument)).then(|| (json!({"type": "string"}), false))
        }
        Value::Number(_) => {
            let kind = schema["type"].as_str().filter(|kind| ["integer", "number"].contains(kind))?;
            let (least, most) = (schema.get("minimum")?, schema.get("maximum")?);
            (!is_choice).then(|| (json!({"type": kind, "minimum": least, "maximum": most}), true))
        }
        _ => None,
    }
}

/// `name`, or `name_2`, and so on.
pub(super) fn first_free(name: &str, is_free: impl Fn(&str) -> bool) -> String {
    let mut candidates = std::iter::once(name.to_owned()).chain((2_u32..).map(|number| format!("{name}_{number}")));
    candidates.find(|name| is_free(name)).unwrap_or_default()
}
