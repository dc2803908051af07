//! Calls of a device's tools, and what they answer.
#![allow(dead_code, clippy::panic, clippy::unwrap_used)]

use std::sync::Arc;

use sinew_sim::StraightCalls;
use sinew_tool::{Args, Call, Device, Outcome, ToolError, Value, json};

pub fn args(value: Value) -> Args {
    value.as_object().cloned().unwrap_or_default()
}

pub async fn call(device: &dyn Device, tool: &str, arguments: Value) -> Result<Outcome, ToolError> {
    device.call(Call::new(tool, args(arguments))).await
}

/// The answer to a call by somebody with a name.
pub async fn text_for(from: &str, device: &dyn Device, tool: &str, arguments: Value) -> String {
    let call = Call { from: from.to_owned(), ..Call::new(tool, args(arguments)) };
    device.call(call).await.unwrap_or_else(|error| panic!("{tool}: {error}")).joined_text()
}

/// The answer's first text.
pub async fn text(device: &dyn Device, tool: &str, arguments: Value) -> String {
    call(device, tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}")).joined_text()
}

/// The answer as JSON, which must be the same in the text.
pub async fn json_of(device: &dyn Device, tool: &str, arguments: Value) -> Value {
    let outcome = call(device, tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
    let structured = outcome.structured.clone().unwrap();
    assert_eq!(outcome.joined_text(), structured.to_string());
    structured
}

/// The code at the REST endpoint and the message.
pub async fn failure(device: &dyn Device, tool: &str, arguments: Value) -> (i32, String) {
    let error = call(device, tool, arguments).await.expect_err("the call should fail");
    (error.kind.row().code, error.message)
}

/// Runs steps. Each is a call, which a gateway would decide about; here it goes straight to the same phone.
pub async fn run_steps(device: Arc<dyn Device>, arguments: Value) -> Result<Outcome, ToolError> {
    StraightCalls::call_device(device, "run_steps", args(arguments)).await
}

/// The id of an element by its text.
pub async fn id_of(phone: &dyn Device, value: &str) -> String {
    let found = json_of(phone, "find_elements", json!({"by": "text", "value": value})).await;
    found["elements"][0]["id"].as_str().expect("an element with that text").to_owned()
}
