//! Apps that offer tools through each protocol, and how they answer.
#![allow(dead_code, clippy::panic, clippy::unwrap_used)]

use std::sync::Arc;

use sinew_sim::phone::virtual_app::{
    AppComponent, AppFunctions, IntentReaction, ProviderHandler, ReceivedIntent, VirtualApp, VirtualComponentKind,
};
use sinew_tool::{Value, json};

use super::recipes::Recipe;

pub const CALL: &str = "com.example.mMCP.ACTION_TOOL_CALL";

/// A manifest of an app with these components.
pub fn recipe(package: &str, version: u64, components: &str) -> Recipe {
    Recipe::new(format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<manifest xmlns:android="http://schemas.android.com/apk/res/android" package="{package}"
    android:versionCode="{version}" android:versionName="{version}.0">
    <uses-sdk android:minSdkVersion="24" android:targetSdkVersion="29" />
    <application android:hasCode="false">
{components}
    </application>
</manifest>
"#
    ))
}

pub fn virtual_app(package: &str, version_code: u64, components: &str) -> VirtualApp {
    let apk = recipe(package, version_code, components).build();
    VirtualApp { package: package.to_owned(), version_code, apk, ..VirtualApp::default() }
}

pub fn part(
    kind: VirtualComponentKind,
    class: &str,
    actions: &[&str],
    react: fn(&ReceivedIntent) -> IntentReaction,
) -> AppComponent {
    let actions = actions.iter().map(|action| (*action).to_owned()).collect();
    AppComponent { kind, class: class.to_owned(), actions, react: Arc::new(react) }
}

/// An activity with an mMCP manifest.
pub fn advertiser(manifest: &str) -> String {
    format!(
        r#"<activity android:name=".ToolAdvertiserActivity" android:exported="true">
    <intent-filter>
        <action android:name="com.example.mMCP.ACTION_TOOL_ADVERTISE" />
        <category android:name="android.intent.category.DEFAULT" />
    </intent-filter>
    <meta-data android:name="mMCP_manifest" android:value='{manifest}' />
</activity>"#
    )
}

/// The manifest of the mMCP specification.
pub const PDF: &str = r#"{
  "instructions": "This app provides PDF processing capabilities",
  "tools": [
    {
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
    }
  ]
}"#;

/// The app of the mMCP specification. What it does depends on the path.
pub fn pdf(package: &str, version: u64) -> VirtualApp {
    let react = |request: &ReceivedIntent| {
        let parameters: Value = serde_json::from_str(&request.extras["parameters"]).unwrap();
        assert_eq!(request.action, CALL);
        match (request.extras["tool_name"].as_str(), parameters["path"].as_str().unwrap()) {
            ("pdf_tool", "/missing.pdf") => {
                let text = Some("Error: no such file".to_owned());
                IntentReaction::Answer { code: 0, text, extras: None }
            }
            ("pdf_tool", "/empty.pdf") => IntentReaction::Answer { code: -1, text: None, extras: None },
            ("pdf_tool", "/crash.pdf") => IntentReaction::Crash,
            ("pdf_tool", "/hang.pdf") => IntentReaction::Hang,
            ("pdf_tool", "/secret.pdf") => IntentReaction::Refuse,
            ("pdf_tool", path) => IntentReaction::ok(format!("text of {path}:\n\"it's\" $HOME")),
            (other, _) => panic!("{other}"),
        }
    };
    VirtualApp {
        parts: vec![part(
            VirtualComponentKind::Activity,
            ".ToolAdvertiserActivity",
            &["com.example.mMCP.ACTION_TOOL_ADVERTISE"],
            react,
        )],
        ..virtual_app(package, version, &advertiser(PDF))
    }
}

pub use sinew_sim::phone::virtual_app::companion;

/// A provider of tools, by its MIME type or by the later action.
pub fn provider_component(authority: &str, filter: &str) -> String {
    format!(
        r#"<provider android:name=".McpToolProvider" android:authorities="{authority}" android:exported="true">
    <intent-filter>{filter}</intent-filter>
</provider>"#
    )
}

pub const BY_TYPE: &str =
    r#"<action android:name="android.intent.action.VIEW" /><data android:mimeType="application/vnd.mcp.tool" />"#;
pub const BY_ACTION: &str = r#"<action android:name="se.premex.mcp.MCP_PROVIDER" />"#;

pub fn provider(package: &str, filter: &str, provider: ProviderHandler) -> VirtualApp {
    let authority = format!("{package}.mcptool");
    VirtualApp {
        providers: [(authority.clone(), provider)].into(),
        ..virtual_app(package, 1, &provider_component(&authority, filter))
    }
}

/// What the weather example of the provider document answers to `get_tool_info`.
pub fn weather_info() -> Value {
    json!({
        "success": true,
        "tool_name": "get_weather_forecast",
        "tool_description": "Gets weather forecast for a location",
        "tool_input_schema": r#"{
            "location": {"type": "string", "description": "City name or coordinates"},
            "days": {"type": "number", "description": "Number of days (1-7)"}
        }"#,
        "tool_input_required": {"strings": ["location"]},
    })
}

/// The weather example. What it does depends on the location.
pub fn weather(package: &str) -> VirtualApp {
    let answer = |method: &str, extras: &Value| match method {
        "get_tool_info" => Ok(weather_info()),
        "execute_tool" => {
            let arguments = &extras["tool_arguments"]["map"];
            let fault = |kind: &str| Err((kind.to_owned(), format!("{kind} on purpose")));
            match arguments["location"].as_str().unwrap_or_default() {
                "" => Ok(json!({"success": false, "error_message": "Location required"})),
                "nowhere" => Ok(Value::Null),
                "silent" => Ok(json!({"success": true})),
                "odd" => Ok(json!({"tool_result": "no word of success"})),
                "other" => Ok(json!({"success": true, "tool_name": "set_alarm", "tool_result": "x"})),
                "large" => fault("too_large"),
                "crash" => fault("crashed"),
                "denied" => fault("denied"),
                "slow" => fault("timeout"),
                "hang" => fault("hang"),
                place => {
                    let (tool, days) = (&extras["tool_name"], &arguments["days"]);
                    Ok(json!({"success": true, "tool_result": format!("{tool} {place} {days}")}))
                }
            }
        }
        other => Ok(json!({"success": false, "error_message": format!("Unknown method: {other}")})),
    };
    provider(package, BY_TYPE, Arc::new(answer))
}

/// Many tools in one provider, as the later SDK has them.
pub fn many(package: &str) -> VirtualApp {
    let answer = |method: &str, extras: &Value| match method {
        "get_tool_info" => Ok(json!({"success": true, "tool": json!({"tools": {
            "add_event": {"description": "Adds an event", "inputs": [
                {"type": "se.premex.mcp.provider.ToolInput.StringInput", "name": "title", "description": "Its title", "required": true},
            ]},
            "list_events": {"description": "Lists events", "inputs": []},
        }}).to_string()})),
        _ => Ok(json!({"success": true, "tool_result": format!("done: {}", extras["tool_name"])})),
    };
    provider(package, BY_ACTION, Arc::new(answer))
}

pub const RECEIVER: &str = r#"<receiver android:name=".MMCPReceiver" android:exported="true">
    <intent-filter>
        <action android:name="com.example.ACTION_MMCP_DISCOVERY" />
        <action android:name="com.example.ACTION_MMCP_INVOKE" />
    </intent-filter>
</receiver>"#;

/// A receiver of ordered broadcasts.
pub fn lamp(package: &str) -> VirtualApp {
    let react = |request: &ReceivedIntent| match request.action.as_str() {
        "com.example.ACTION_MMCP_DISCOVERY" => {
            let extras = r#"{tools=[switch_lamp, broken], switch_lamp.description=Switches the lamp, now, switch_lamp.parameters={"state":"string"}, instructions=Lamps of the house, broken.description=Does nothing}"#;
            IntentReaction::Answer { code: -1, text: None, extras: Some(extras.to_owned()) }
        }
        _ => {
            let parameters: Value = serde_json::from_str(&request.extras["params"]).unwrap();
            match parameters["state"].as_str().unwrap() {
                "crash" => IntentReaction::Crash,
                "hidden" => IntentReaction::Refuse,
                "hang" => IntentReaction::Hang,
                "quiet" => IntentReaction::Answer { code: -1, text: None, extras: None },
                state => IntentReaction::ok(format!(
                    "{{\"tool\": \"{}\", \"now\": \"{state}\"}}\n\"",
                    request.extras["tool"]
                )),
            }
        }
    };
    let actions = ["com.example.ACTION_MMCP_DISCOVERY", "com.example.ACTION_MMCP_INVOKE"];
    VirtualApp {
        parts: vec![part(VirtualComponentKind::Receiver, ".MMCPReceiver", &actions, react)],
        ..virtual_app(package, 1, RECEIVER)
    }
}

/// AppFunctions that make notes.
pub fn notes(package: &str) -> VirtualApp {
    let text = |description: &str| json!([{"type": [8], "isNullable": [false], "description": [description]}]);
    let listing = json!([{
        (format!("AppFunctionStaticMetadata-{package}")): {
            "functionId": ["com.example.Notes#createNote"],
            "packageName": [package],
            "description": ["Creates a note"],
            "enabledByDefault": [true],
            "parameters": [
                {"name": ["title"], "isRequired": [true], "dataTypeMetadata": text("The title")},
            ],
            "response": [{"valueType": [{"type": [3], "properties": [
                {"name": ["id"], "dataTypeMetadata": text("")},
                {"name": ["tags"], "dataTypeMetadata": [{"type": [10], "itemType": text("")}]},
            ]}]}],
        },
    }]);
    let execute = |function: &str, parameters: &str| {
        let parameters: Value = serde_json::from_str(parameters).unwrap();
        assert_eq!(function, "com.example.Notes#createNote");
        match parameters["title"].as_str().unwrap() {
            "refused" => ("Error executing app function: android.app.appfunctions.AppFunctionException: AGENT_DISABLED (code 1000). See logcat for more details.".to_owned(), 255),
            title => (json!({"androidAppfunctionsReturnValue": [{"id": [title], "tags": ["one"]}]}).to_string(), 0),
        }
    };
    let service = r#"<service android:name=".Functions" android:exported="true"
    android:permission="android.permission.BIND_APP_FUNCTION_SERVICE">
    <intent-filter><action android:name="android.app.appfunctions.AppFunctionService" /></intent-filter>
</service>"#;
    let functions = Some(AppFunctions { listing, execute: Arc::new(execute) });
    VirtualApp { functions, ..virtual_app(package, 1, service) }
}
