//! The tools the gateway itself offers. They are terse: every model pays for them in every list.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use sinew_tool::{Args, ErrorKind, Hints, Outcome, Tool, ToolError};

use crate::check::Check;
use crate::gateway::Gateway;
use crate::snapshot::Entry;
use crate::text::clean_line;
use crate::view::PublicTool;

const LIST_DEVICES: &str = "list_devices";
const GET_DEVICE_EVENTS: &str = "get_device_events";

/// Names no device's tool ever gets.
pub(crate) const NAMES: &[&str] = &[LIST_DEVICES, GET_DEVICE_EVENTS];

/// Events of one answer, unless the caller says otherwise.
const USUAL_EVENTS: usize = 50;
const MAX_EVENTS: usize = 200;

pub(crate) struct BuiltIn {
    tool: Tool,
    input: Check,
}

static TOOLS: LazyLock<[BuiltIn; 2]> = LazyLock::new(|| {
    let list_devices = Tool::new(LIST_DEVICES, "Devices, their state and tools.", json!({"type": "object"}))
        .with_output_schema(json!({"type": "object", "properties": {"devices": {"type": "array"}}}));
    let events = json!({
        "type": "object",
        "properties": {
            "device": {"type": "string"},
            "since": {"type": "string", "description": "`next` of the last answer"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_EVENTS},
        },
    });
    let get_device_events = Tool::new(GET_DEVICE_EVENTS, "What devices reported, oldest first.", events)
        .with_output_schema(
            json!({"type": "object", "properties": {"events": {"type": "array"}, "next": {"type": "string"}}}),
        );
    [list_devices, get_device_events].map(|tool| {
        let tool = tool.with_hints(Hints::reading());
        BuiltIn { input: Check::new(tool.input_schema.clone()).0, tool }
    })
});

/// The built-in tools, as lists show them.
pub(crate) fn tools() -> Vec<PublicTool> {
    let public = |built_in: &BuiltIn| PublicTool {
        name: built_in.tool.name.clone(),
        tool: built_in.tool.clone(),
        own_name: built_in.tool.name.clone(),
        device: None,
        selector: None,
    };
    TOOLS.iter().map(public).collect()
}

pub(crate) fn find(name: &str) -> Option<&'static BuiltIn> {
    TOOLS.iter().find(|built_in| built_in.tool.name == name)
}

impl BuiltIn {
    pub(crate) async fn run(&self, gateway: &Gateway, args: Args) -> Result<Outcome, ToolError> {
        let args = Value::Object(args);
        self.input.arguments(&self.tool.name, &args)?;
        match self.tool.name.as_str() {
            LIST_DEVICES => Ok(list_devices(gateway)),
            _ => get_device_events(gateway, &args).await,
        }
    }
}

fn list_devices(gateway: &Gateway) -> Outcome {
    let snapshot = gateway.snapshot();
    let devices: Vec<Value> = snapshot.devices.iter().map(line).collect();
    Outcome::json(json!({ "devices": devices }))
}

fn line(entry: &Arc<Entry>) -> Value {
    let (state, remedy) = entry.state();
    let mut line = json!({"id": entry.id.as_str()});
    if let Some(name) = &entry.name {
        line["name"] = json!(**name);
    }
    line["kind"] = json!(entry.kind());
    line["state"] = json!(state);
    line["tools"] = json!(entry.offer.tools.len());
    if let Some(remedy) = remedy {
        line["remedy"] = json!(remedy);
    }
    if let Some(words) = entry.instructions() {
        line["instructions"] = json!(clean_line(&words, 200));
    }
    line
}

async fn get_device_events(gateway: &Gateway, args: &Value) -> Result<Outcome, ToolError> {
    let text = |key: &str| args.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let limit = args.get("limit").and_then(Value::as_f64).map_or(USUAL_EVENTS, |limit| limit as usize);
    let page = gateway.events(text("device"), text("since"), limit.clamp(1, MAX_EVENTS)).await?;
    let page = serde_json::to_value(&page).map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))?;
    Ok(Outcome::json(page))
}
