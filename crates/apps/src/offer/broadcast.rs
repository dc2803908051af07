//! Ordered broadcasts: the receiver answers the discovery broadcast with its tools in the result's extras.

use serde_json::Value;
use sinew_tool::Tool;
use sinew_tool::lenient;
use sinew_tool::text::clip;

use super::MAX_TOOLS;
use super::bundle::{bundle_text, texts};
use super::finding::{error, warning};
use super::provider::parameters;
use crate::rules;
use sinew_tool::finding::Finding;

/// What a receiver answered.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverTools {
    pub instructions: Option<String>,
    pub tools: Vec<Tool>,
    /// Tools that could not be read, and why.
    pub findings: Vec<Finding>,
}

/// The tools in the answer to the discovery broadcast, as `am broadcast` prints it.
pub fn broadcast_tools(text: &str) -> Result<ReceiverTools, Finding> {
    let refused = |message: String| error(&rules::BROADCAST_ANSWER, message);
    let extras = text.find("extras: ").map(|at| &text[at..]);
    let extras =
        extras.ok_or_else(|| refused("the receiver answered the discovery without result extras".to_owned()))?;
    // Which keys there are depends on the tools, so the list of tools is read first.
    let ends = |key: &str| key.ends_with(".description") || key.ends_with(".parameters");
    let rough = bundle_text(extras, &|key| matches!(key, "tools" | "instructions") || ends(key)).map_err(refused)?;
    let Some(names) = rough.get("tools").and_then(texts) else {
        return tools(&rough, names_by_keys(&rough));
    };
    let is_key = |key: &str| {
        let of_tool = || key.strip_suffix(".description").or_else(|| key.strip_suffix(".parameters"));
        matches!(key, "tools" | "instructions") || of_tool().is_some_and(|name| names.iter().any(|one| one == name))
    };
    let bundle = bundle_text(extras, &is_key).map_err(refused)?;
    tools(&bundle, names)
}

/// The names of the tools that have a description, for Android versions that do not print the list itself.
fn names_by_keys(bundle: &Value) -> Vec<String> {
    let keys = bundle.as_object().into_iter().flat_map(|bundle| bundle.keys());
    keys.filter_map(|key| key.strip_suffix(".description")).map(str::to_owned).collect()
}

fn tools(bundle: &Value, names: Vec<String>) -> Result<ReceiverTools, Finding> {
    if names.is_empty() {
        return Err(error(&rules::BROADCAST_ANSWER, "the receiver's answer to the discovery has no `tools`"));
    }
    let text = |key: &str| bundle.get(key).and_then(Value::as_str);
    let instructions = text("instructions").map(str::to_owned);
    let mut answer = ReceiverTools { instructions, tools: Vec::new(), findings: Vec::new() };
    if names.len() > MAX_TOOLS {
        let message = format!("the receiver has {} tools; only the first {MAX_TOOLS} are offered", names.len());
        answer.findings.push(warning(&rules::TOO_MANY, message));
    }
    for name in names.iter().take(MAX_TOOLS).filter(|name| !name.trim().is_empty()) {
        let described = text(&format!("{name}.parameters"));
        let schema = described.and_then(|text| lenient::read(text.as_bytes()).ok()).as_ref().and_then(parameters);
        let Some(schema) = schema else {
            let message =
                format!("`{0}.parameters` is not a JSON object of names and types; `{0}` is not offered", clip(name));
            answer.findings.push(error(&rules::SCHEMA_NOT_OBJECT, message).of_tool(name));
            continue;
        };
        let description = text(&format!("{name}.description")).unwrap_or_default();
        answer.tools.push(Tool::new(name.as_str(), description, schema));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tools_are_read_from_the_printed_extras() {
        let text = "Broadcasting: Intent { act=com.example.ACTION_MMCP_DISCOVERY flg=0x400000 }\n\
            ReceiverTools completed: result=-1, data=\"x\", extras: Bundle[{weather.parameters={\"location\":\"string\", \"days\":\"int\"}, \
            tools=[weather, hello], hello.parameters={}, weather.description=Gives weather, location=here is no key, \
            instructions=Weather and greetings, hello.description=Says hello}]\n";
        let answer = broadcast_tools(text).unwrap();
        assert_eq!(answer.instructions.as_deref(), Some("Weather and greetings"));
        let [weather, hello] = answer.tools.as_slice() else { panic!("{answer:?}") };
        assert_eq!(weather.description, "Gives weather, location=here is no key");
        assert_eq!(
            weather.input_schema["properties"],
            json!({"location": {"type": "string"}, "days": {"type": "integer"}})
        );
        assert_eq!(weather.required(), ["location", "days"]);
        assert_eq!((hello.name.as_str(), hello.required().len()), ("hello", 0));
    }

    #[test]
    fn a_list_that_was_not_printed_is_found_by_its_descriptions() {
        let text = "ReceiverTools completed: result=0, extras: Bundle[{tools=[Ljava.lang.String;@1f2e, a.description=A, a.parameters={}}]";
        assert_eq!(broadcast_tools(text).unwrap().tools[0].name, "a");
    }

    #[test]
    fn an_answer_without_tools_says_why() {
        let reason = |text: &str| broadcast_tools(text).unwrap_err().message;
        assert!(reason("ReceiverTools completed: result=0").contains("without result extras"));
        assert!(reason("result=0, extras: Bundle[mParcelledData.dataSize=300]").contains("agent"));
        assert!(reason("result=0, extras: Bundle[{}]").contains("has no `tools`"));
        let odd = broadcast_tools("extras: Bundle[{tools=[a], a.description=A, a.parameters=text}]").unwrap();
        assert_eq!((odd.tools.len(), odd.findings[0].rule.id), (0, "schema-not-object"));
    }
}
