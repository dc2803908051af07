//! The tools of all virtual devices are listed with schemas that every client accepts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sinew_phones::{PhoneDevice, Profile};
use sinew_sim::board::{BoardKind, VirtualBoard};
use sinew_sim::phone::{PhoneClock, PhoneSetup, VirtualPhone};
use sinew_tool::portable::violations;
use sinew_tool::{DeviceEvent, Tool};

use crate::server::TestServer;

/// The tools of a virtual board, as its firmware lists them.
fn board_tools(kind: BoardKind) -> Vec<Tool> {
    let mut board = VirtualBoard::new(kind, "aa:bb:cc:dd:ee:01");
    let mut tools = Vec::new();
    let mut cursor = json!("");
    loop {
        let params = json!({"cursor": cursor, "withUserTools": true});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params});
        let answers = board.handle_text(Duration::ZERO, &json!({"type": "mcp", "payload": request}).to_string());
        let answer: Value = serde_json::from_str(&answers[0]).unwrap();
        let result = &answer["payload"]["result"];
        for tool in result["tools"].as_array().unwrap() {
            let text = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
            tools.push(Tool::new(text("name"), text("description"), tool["inputSchema"].clone()));
        }
        cursor = match result["nextCursor"].as_str() {
            Some(next) if !next.is_empty() => json!(next),
            _ => return tools,
        };
    }
}

#[tokio::test]
async fn every_tool_of_the_virtual_devices_is_portable() {
    let server = TestServer::new().await;
    for (id, kind) in [("talking", BoardKind::Talking), ("relay", BoardKind::Relay)] {
        let tools = board_tools(kind);
        assert!(tools.len() >= 4, "{kind:?} has {} tools", tools.len());
        server.join(id, tools);
    }
    let phone = VirtualPhone::new(PhoneSetup::default(), PhoneClock::Real);
    server.gateway.apply(DeviceEvent::Joined(Arc::new(PhoneDevice::new(phone, Profile::Full))));
    for path in ["/mcp", "/mcp?tools=unfolded"] {
        let mut client = server.client();
        client.path = path.to_owned();
        let list = client.modern("tools/list", json!({})).await.json();
        let tools = list["result"]["tools"].as_array().unwrap();
        assert!(tools.len() >= 40, "{path}: {}", tools.len());
        for tool in tools {
            let name = tool["name"].as_str().unwrap();
            assert!(name.len() <= 48, "{name}");
            assert!(!tool["description"].as_str().unwrap().contains("[shortened]"), "{path}: {name}");
            assert_eq!(violations(&tool["inputSchema"]), Vec::<String>::new(), "{path}: {name}");
            if let Some(schema) = tool.get("outputSchema") {
                assert_eq!(violations(schema), Vec::<String>::new(), "{path}: {name}");
            }
        }
    }
}

#[tokio::test]
async fn a_schema_that_others_would_replace_is_given_as_the_device_wrote_it() {
    let server = TestServer::new().await;
    let items = (0..40).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    let deep = json!({"type": "object", "properties": {"a": items, "b": {"type": "integer"}}, "required": ["b"]});
    let with_null = json!({"type": ["object", "null"], "properties": {"a": {"type": "string"}}, "required": ["a"]});
    server.join("odd", vec![Tool::new("deep", "Deep", deep.clone()), Tool::new("null", "Null", with_null.clone())]);
    for (path, is_exact) in [("/mcp?tools=unfolded&schemas=exact", true), ("/mcp?tools=unfolded", false)] {
        let mut client = server.client();
        client.path = path.to_owned();
        let list = client.modern("tools/list", json!({})).await.json();
        for (name, schema) in [("odd__deep", &deep), ("odd__null", &with_null)] {
            let tools = list["result"]["tools"].as_array().unwrap();
            let listed = &tools.iter().find(|tool| tool["name"] == name).unwrap()["inputSchema"];
            assert_eq!(listed == schema, is_exact, "{path}: {listed}");
            assert_eq!(listed["required"], schema["required"], "{path}");
            assert!(is_exact || violations(listed).is_empty(), "{path}: {listed}");
        }
    }
    let shown = server.client().get("/api/v1/tools?device=odd").await.json()["tools"].clone();
    assert_eq!((&shown[0]["inputSchema"], &shown[1]["inputSchema"]), (&deep, &with_null));
}

#[tokio::test]
async fn exact_schemas_keep_references_and_names_as_the_device_wrote_them() {
    let server = TestServer::new().await;
    let schema = json!({
        "$id": "https://example.org/tree", "type": "object",
        "properties": {"child": {"$ref": "#"}, "leaf": {"$dynamicRef": "#leaf"}, "far": {"$ref": "https://example.org/b"}},
        "$defs": {"leaf": {"$dynamicAnchor": "leaf", "type": "integer"}},
    });
    let endless = json!({"type": "object", "allOf": [{"$ref": "#"}]});
    let result = json!({"$id": "https://example.org/r", "type": "object", "properties": {"a": {"$ref": "#b"}},
        "$defs": {"b": {"$anchor": "b", "type": "string"}}});
    let tree = Tool::new("tree", "A tree", schema.clone()).with_output_schema(result.clone());
    server.join("odd", vec![tree, Tool::new("endless", "Endless", endless.clone())]);
    let listed = async |path: &str, name: &str| {
        let mut client = server.client();
        client.path = path.to_owned();
        let list = client.modern("tools/list", json!({})).await.json();
        list["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap().clone()
    };
    let unfolded = listed("/mcp?tools=unfolded&schemas=exact", "odd__tree").await;
    assert_eq!((&unfolded["inputSchema"], &unfolded["outputSchema"]), (&schema, &result));
    assert_eq!(listed("/mcp?tools=unfolded&schemas=exact", "odd__endless").await["inputSchema"], endless);
    let mut folded = schema.clone();
    folded["properties"]["device"] = json!({"type": "string"});
    assert_eq!(listed("/mcp?schemas=exact", "tree").await["inputSchema"], folded);
    let portable = listed("/mcp", "tree").await["inputSchema"].clone();
    assert_eq!(violations(&portable), Vec::<String>::new());
    assert!(
        portable["properties"]["far"]["description"].as_str().unwrap().contains("a schema elsewhere"),
        "{portable}"
    );
}

#[tokio::test]
async fn an_argument_that_is_also_a_header_is_marked_only_for_clients_that_know_it() {
    let server = TestServer::new().await;
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    server
        .join("second", vec![Tool::new("scan", "Scans", json!({"type": "object", "properties": {"region": region}}))]);
    let marks = |list: Value| list["result"]["tools"].to_string().matches("x-mcp-header").count();
    let mut client = server.client();
    assert_eq!(marks(client.modern("tools/list", json!({})).await.json()), 1);
    client.initialize(json!({})).await;
    assert_eq!(marks(client.legacy("tools/list", json!({})).await.message()), 0);
}

#[tokio::test]
async fn what_was_simplified_is_shown_to_people_and_exact_schemas_to_clients_that_ask() {
    let server = TestServer::new().await;
    let schema = json!({"type": "object", "properties": {"mail": {"type": "string", "format": "email"}}});
    server.join("second", vec![Tool::new("write", "Writes", schema.clone())]);
    let tools = server.client().get("/api/v1/tools?device=second").await.json()["tools"].clone();
    let simplified = json!(["/properties/mail: format, for Gemini"]);
    assert_eq!((&tools[0]["simplified"], &tools[0]["inputSchema"]), (&simplified, &schema));
    for (path, is_exact) in [("/mcp?tools=unfolded&schemas=exact", true), ("/mcp?tools=unfolded", false)] {
        let mut client = server.client();
        client.path = path.to_owned();
        let list = client.modern("tools/list", json!({})).await.json();
        let tools = list["result"]["tools"].as_array().unwrap().clone();
        let listed = tools.iter().find(|tool| tool["name"] == "second__write").unwrap();
        assert_eq!(listed["inputSchema"] == schema, is_exact, "{path}");
    }
}
