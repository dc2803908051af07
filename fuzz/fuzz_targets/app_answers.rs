//! Arbitrary text as what apps and Android answer: a printed bundle, a bundle of the agent, the extras of a broadcast,
//! the list of app functions. Every tool has a name and a schema of an object.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_apps::offer::{app_functions, broadcast_tools, bundle_text, provider_tools};
use sinew_tool::{Tool, Value, json};

const KEYS: &[&str] = &["tool", "tool_name", "tool_description", "tool_input_schema", "tool_input_required", "success"];

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for printed in [text.to_owned(), format!("Bundle[{{success=true, tool_name={text}}}]")] {
        if let Ok(bundle) = bundle_text(&printed, &|key| KEYS.contains(&key)) {
            provided(&bundle);
        }
    }
    if let Ok(bundle) = serde_json::from_str::<Value>(text) {
        provided(&bundle);
    }
    provided(&json!({"success": true, "tool": text}));
    provided(&json!({
        "success": true, "tool_name": "a", "tool_description": "b", "tool_input_schema": text,
        "tool_input_required": {"strings": [text]},
    }));
    if let Ok(answer) = broadcast_tools(&format!("extras: Bundle[{{tools=[a], {text}}}]")) {
        answer.tools.iter().for_each(sound);
    }
    for package in app_functions(text).into_iter().flatten() {
        package.tools.iter().for_each(|tool| sound(&tool.tool));
    }
});

fn provided(bundle: &Value) {
    if let Ok(answer) = provider_tools(bundle) {
        answer.tools.iter().for_each(sound);
    }
}

fn sound(tool: &Tool) {
    assert!(!tool.name.is_empty());
    assert!(tool.input_schema.is_object());
}
