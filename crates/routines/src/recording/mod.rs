//! A routine made of calls that happened.
//!
//! [`record`] decides which calls become steps, [`inputs`] what becomes a parameter, and [`file`] writes it all down.
//! What came back from an earlier call is referred to; what was typed is a parameter, and so is the device; where the
//! screen changed, the step after it waits for the new screen.

mod file;
mod inputs;

use serde_json::{Map, Value};
use sinew_tool::{Args, REDACTED};

use inputs::{Inputs, Parameter};

/// As many as one file may have, with an expectation after each.
const MAX_CALLS: usize = 100;

/// A call that happened, and went well.
#[derive(Clone, Debug, Default)]
pub struct RecordedCall {
    pub device: String,
    pub tool: String,
    /// In a form that holds on another day too.
    pub args: Args,
    /// Of the tool, where it is known.
    pub input_schema: Value,
    /// The structured answer, or `{"text": …}`.
    pub answer: Value,
    /// Whether it acted on a screen, and a selector for what was new there afterwards.
    pub acted: Option<Option<Value>>,
}

/// A step as it is written.
#[derive(Debug)]
struct RecordedStep {
    /// Where it happened.
    device: String,
    /// The reference to the parameter with the device.
    on: Value,
    tool: String,
    args: Args,
    /// The name under which a later step needs its answer.
    save: Option<String>,
    /// What the screen shows afterwards.
    landmark: Option<Value>,
}

/// The text of a file that does the same again. The error says why there is none.
pub fn record(name: &str, calls: &[RecordedCall]) -> Result<String, String> {
    let kept: Vec<&RecordedCall> = kept(calls);
    match kept.len() {
        0 => return Err("no call was recorded that did something; make the calls while it records".to_owned()),
        count if count > MAX_CALLS => {
            return Err(format!("{count} calls were recorded; a routine can be made of {MAX_CALLS}"));
        }
        _ => {}
    }
    let mut inputs = Inputs::of_devices(&devices(&kept));
    let mut steps: Vec<RecordedStep> = Vec::new();
    for (place, call) in kept.iter().enumerate() {
        let mut args = Args::new();
        for (argument, value) in &call.args {
            let schema = &call.input_schema["properties"][argument];
            let written = match inputs.parameter_for(name_of(argument, &call.args), value, schema) {
                Some(reference) => reference,
                None => refer(value, &inputs, &kept[..place], &mut steps),
            };
            args.insert(argument.clone(), written);
        }
        let landmark = call.acted.clone().flatten();
        let landmark = landmark.map(|selector| refer(&selector, &inputs, &[], &mut []));
        let (device, tool) = (call.device.clone(), call.tool.clone());
        let on = inputs.find_device(&device);
        steps.push(RecordedStep { device, on, tool, args, save: None, landmark });
    }
    let parameters = inputs.into_parameters();
    let returned = kept.last().filter(|call| call.acted.is_none()).map(|last| {
        let path = if last.answer.get("text").is_some() && last.answer.as_object().map_or(0, Map::len) == 1 {
            ".text"
        } else {
            ""
        };
        let name = save_as(&mut steps, kept.len() - 1, &parameters);
        (format!("${{{name}{path}}}"), &last.answer)
    });
    Ok(file::write(name, &parameters, &steps, returned))
}

/// The devices of the calls, that with the most first: it becomes the parameter by which a suite says where it runs.
fn devices(calls: &[&RecordedCall]) -> Vec<String> {
    let mut devices: Vec<(usize, &str)> = Vec::new();
    for call in calls {
        match devices.iter_mut().find(|(_, device)| *device == call.device) {
            Some((count, _)) => *count += 1,
            None => devices.push((1, &call.device)),
        }
    }
    // Stable: of equals the first that was used.
    devices.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    devices.into_iter().map(|(_, device)| device.to_owned()).collect()
}

/// What an argument is called as a parameter: `text` that goes into a field has the field's name.
fn name_of<'a>(argument: &'a str, args: &'a Args) -> (&'a str, &'a str) {
    let field = args.get("selector").and_then(|selector| selector["id"].as_str());
    (argument, field.filter(|_| argument == "text").unwrap_or(argument))
}

/// The calls that become steps. Whoever uses a screen looks at it again and again; these looks are not kept, but for
/// one at the end, whose answer was wanted.
fn kept(calls: &[RecordedCall]) -> Vec<&RecordedCall> {
    let has_screen = |device: &str| calls.iter().any(|call| call.device == device && call.acted.is_some());
    let is_look = |call: &RecordedCall| call.acted.is_none() && has_screen(&call.device);
    let last = calls.len().saturating_sub(1);
    let kept = calls.iter().enumerate().filter(|(place, call)| *place == last || !is_look(call));
    kept.map(|(_, call)| call).collect()
}

/// A value as it is written in a step: with references to parameters and earlier answers.
fn refer(value: &Value, inputs: &Inputs, earlier: &[&RecordedCall], steps: &mut [RecordedStep]) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), refer(value, inputs, earlier, steps)));
            Value::Object(members.collect())
        }
        Value::Array(items) => items.iter().map(|item| refer(item, inputs, earlier, steps)).collect(),
        leaf => {
            if let Some(reference) = inputs.find_text(leaf) {
                return reference;
            }
            let found = is_telling(leaf).then(|| {
                let places = earlier.iter().enumerate().rev();
                places.filter_map(|(place, call)| Some((place, path_to(&call.answer, leaf)?))).next()
            });
            match found.flatten() {
                Some((place, path)) => {
                    let name = save_as(steps, place, &[]);
                    Value::String(format!("${{{name}{path}}}"))
                }
                None => escape(leaf),
            }
        }
    }
}

/// What stands in a step as it is must not be taken for a reference.
fn escape(leaf: &Value) -> Value {
    match leaf {
        Value::String(text) => Value::String(text.replace("${", "$${")),
        other => other.clone(),
    }
}

/// Whether a value is so special that it came from the answer where it also stands.
fn is_telling(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() >= 4 && !text.contains(['.', '$']) && text != REDACTED,
        Value::Number(number) => number.as_f64().is_some_and(|number| number.abs() >= 100.0 || number.fract() != 0.0),
        _ => false,
    }
}

/// Where a value stands within an answer, as references write it: `.notes.0.id`.
fn path_to(answer: &Value, wanted: &Value) -> Option<String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    match answer {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| is_name(name))
            .find_map(|(name, value)| Some(format!(".{name}{}", path_to(value, wanted)?))),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(place, item)| Some(format!(".{place}{}", path_to(item, wanted)?)))
        }
        leaf => (leaf == wanted).then(String::new),
    }
}

/// The name under which a step's answer is kept.
fn save_as(steps: &mut [RecordedStep], place: usize, parameters: &[Parameter]) -> String {
    if let Some(name) = &steps[place].save {
        return name.clone();
    }
    let tool = &steps[place].tool;
    let word = tool.rsplit('.').next().unwrap_or(tool);
    let word = word.strip_prefix("get_").unwrap_or(word);
    let word: String = word.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let is_free = |name: &str| {
        steps.iter().all(|step| step.save.as_deref() != Some(name)) && parameters.iter().all(|own| own.name != name)
    };
    let base = format!("{}_answer", word.trim_matches('_').to_lowercase());
    let name = inputs::first_free(&base, is_free);
    steps[place].save = Some(name.clone());
    name
}
