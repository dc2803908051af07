//! A virtual device with the tools that the official MCP conformance suite calls by name.
//!
//! Here are the device, its tool list and the tools that answer alone. The tools that ask their
//! caller something first live in `conformance_ask`. What no device has (prompts, templates,
//! completion) is not here: the front brings that itself.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::outcome::ResourceBody;
use sinew_tool::{
    Admission, Attributes, BoxFuture, Call, Content, Device, DeviceInfo, DeviceKey, ErrorKind, Family, FamilyName,
    LogLevel, Outcome, Reach, Status, TextTrust, Tool, ToolError, Toolset,
};

use crate::conformance_ask;

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
/// A millisecond of silence.
const WAV: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

/// The suite asks for pauses of about this length between messages.
const PAUSE: Duration = Duration::from_millis(50);

/// The conformance device, ready to be announced.
pub fn device() -> Arc<dyn Device> {
    Arc::new(Conformance { info: Arc::new(info()), tools: Arc::new(Toolset::new(tools())) })
}

struct Conformance {
    info: Arc<DeviceInfo>,
    tools: Arc<Toolset>,
}

impl Device for Conformance {
    fn info(&self) -> Arc<DeviceInfo> {
        self.info.clone()
    }

    fn tools(&self) -> Arc<Toolset> {
        self.tools.clone()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            match conformance_ask::answer(&call).await {
                Some(answer) => answer,
                None => answer(&call).await,
            }
        })
    }
}

fn info() -> DeviceInfo {
    DeviceInfo {
        key: DeviceKey("sim:conformance".to_owned()),
        suggested_id: "conformance".to_owned(),
        family: Family::new(FamilyName::of("board"), TextTrust::Attributed, Reach::OneLink),
        admission: Admission::Local,
        name: "conformance fixture".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        status: Status::Ready,
        instructions: None,
        labels: Vec::new(),
        attributes: Attributes::new(),
    }
}

fn tools() -> Vec<Tool> {
    let plain =
        |name: &str, description: &str| Tool::new(name, description, json!({"type": "object", "properties": {}}));
    let mut tools = vec![
        plain("test_simple_text", "Returns one text"),
        plain("test_image_content", "Returns one image"),
        plain("test_audio_content", "Returns one sound"),
        plain("test_embedded_resource", "Returns one embedded resource"),
        plain("test_multiple_content_types", "Returns a text, an image and a resource"),
        plain("test_tool_with_logging", "Logs three messages while it runs"),
        plain("test_logging_tool", "Logs one message"),
        plain("test_tool_with_progress", "Reports its progress three times"),
        plain("test_error_handling", "Always fails"),
        plain("test_reconnection", "Takes a little while"),
        Tool::new(
            "test_header_parameter",
            "Echoes a parameter that also travels as a header",
            json!({
                "type": "object",
                "properties": {"region": {"type": "string", "description": "Any text", "x-mcp-header": "Region"}},
            }),
        ),
        Tool::new("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", modern_schema()),
    ];
    tools.extend(conformance_ask::tools());
    tools
}

/// Every keyword here is one that the suite wants to find again in the list.
fn modern_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

async fn answer(call: &Call) -> Result<Outcome, ToolError> {
    let caller = &call.caller;
    match call.tool.as_str() {
        "test_simple_text" => Ok(Outcome::text("This is a simple text response for testing.")),
        "test_image_content" => Ok(Outcome::default().with(image())),
        "test_audio_content" => {
            Ok(Outcome::default().with(Content::Audio { data: WAV.to_owned(), mime_type: "audio/wav".to_owned() }))
        }
        "test_embedded_resource" => {
            let text = "This is an embedded resource content.";
            Ok(Outcome::default().with(resource("test://embedded-resource", "text/plain", text)))
        }
        "test_multiple_content_types" => Ok(Outcome::text("Multiple content types test:")
            .with(image())
            .with(resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#))),
        "test_tool_with_logging" => {
            for (index, step) in ["started", "processing", "completed"].into_iter().enumerate() {
                if index > 0 {
                    tokio::time::sleep(PAUSE).await;
                }
                caller.log(LogLevel::Info, json!(format!("Tool execution {step}")));
            }
            Ok(Outcome::text("Three messages were logged."))
        }
        "test_logging_tool" => {
            caller.log(LogLevel::Info, json!("The logging tool was called"));
            Ok(Outcome::text("One message was logged."))
        }
        "test_tool_with_progress" => {
            for (index, done) in [0.0, 50.0, 100.0].into_iter().enumerate() {
                if index > 0 {
                    tokio::time::sleep(PAUSE).await;
                }
                caller.progress(done, Some(100.0), None);
            }
            Ok(Outcome::text("Progress was reported three times."))
        }
        "test_error_handling" => {
            Err(ToolError::new(ErrorKind::ActionFailed, "This tool intentionally returns an error for testing"))
        }
        "test_reconnection" => {
            tokio::time::sleep(PAUSE).await;
            Ok(Outcome::text("The answer arrived."))
        }
        "test_header_parameter" => {
            Ok(Outcome::text(format!("region: {}", call.args.get("region").unwrap_or(&Value::Null))))
        }
        "json_schema_2020_12_tool" => Ok(Outcome::text(Value::Object(call.args.clone()).to_string())),
        unknown => {
            Err(ToolError::new(ErrorKind::UnknownTool, format!("the conformance device has no tool `{unknown}`")))
        }
    }
}

fn image() -> Content {
    Content::Image { data: PNG.to_owned(), mime_type: "image/png".to_owned(), size: Some((1, 1)) }
}

fn resource(uri: &str, mime_type: &str, text: &str) -> Content {
    Content::Resource {
        uri: uri.to_owned(),
        mime_type: Some(mime_type.to_owned()),
        body: ResourceBody::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_listed_tool_has_an_answer_of_its_own() {
        let device = device();
        for tool in device.tools().iter() {
            let args = json!({"prompt": "p", "message": "m"}).as_object().cloned().unwrap_or_default();
            let answer = device.call(Call::new(tool.name.clone(), args)).await;
            assert_ne!(answer.map_err(|error| error.kind).err(), Some(ErrorKind::UnknownTool), "{}", tool.name);
        }
    }
}
