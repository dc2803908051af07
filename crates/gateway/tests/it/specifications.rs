//! The built-in tools for models that write tools.

use sinew_gateway::{Gateway, Settings, Shape};
use sinew_tool::{ErrorKind, Value, json};

use crate::fake::*;

fn with_spec_tools() -> Gateway {
    Gateway::open(Settings { spec_tools: true, ..Settings::default() }).unwrap()
}

fn list(required: &[&str]) -> String {
    let schema = json!({"type": "object", "properties": {"on": {"type": "boolean"}}, "required": required});
    json!({"tools": [{"name": "relay", "description": "Switches the relay of the board.", "inputSchema": schema}]})
        .to_string()
}

#[tokio::test]
async fn they_cost_nothing_unless_they_are_wanted() {
    let gateway = gateway();
    for shape in [Shape::Folded, Shape::Unfolded] {
        let always = ["get_device_events", "list_devices", "release_device", "reserve_device"];
        assert_eq!(names(&gateway, &client(), shape), always);
    }
    let kind = call_kind(&gateway, "validate_tool_specification", json!({"text": ""})).await;
    assert_eq!(kind, ErrorKind::UnknownTool);
    let gateway = with_spec_tools();
    for shape in [Shape::Folded, Shape::Unfolded] {
        let names = names(&gateway, &client(), shape);
        assert!(names.contains(&"compare_tool_specifications".to_owned()) && names.len() == 6, "{names:?}");
        let list = gateway.list(&client(), shape);
        let text = Value::from_iter(list.tools.iter().map(|tool| tool.tool.to_json())).to_string();
        assert!(text.len() <= 4_096, "{} bytes of built-in tools", text.len());
    }
}

#[tokio::test]
async fn every_built_in_tool_lists_an_object_with_properties() {
    let gateway = with_spec_tools();
    for shape in [Shape::Folded, Shape::Unfolded] {
        for tool in &gateway.list(&client(), shape).tools {
            let schema = &tool.tool.input_schema;
            assert!(schema["type"] == "object" && schema["properties"].is_object(), "{}: {schema}", tool.name);
        }
    }
}

#[tokio::test]
async fn a_specification_is_judged_with_places() {
    let gateway = with_spec_tools();
    let answer = call(&gateway, "validate_tool_specification", json!({"text": list(&["on"])})).await.unwrap();
    assert_eq!((&answer["ok"], &answer["tools"]), (&json!(false), &json!(["relay"])));
    let rules: Vec<&Value> = answer["findings"].as_array().unwrap().iter().map(|finding| &finding["rule"]).collect();
    assert!(rules.contains(&&json!("parameter-description")), "{answer}");
    assert!(answer["findings"][0]["line"].is_u64());
    let large = call(&gateway, "validate_tool_specification", json!({"text": "x".repeat(600 << 10)})).await;
    assert_eq!(large.unwrap_err().kind, ErrorKind::InvalidArguments);
}

#[tokio::test]
async fn two_specifications_are_compared() {
    let gateway = with_spec_tools();
    let both = json!({"old": list(&[]), "new": list(&["on"])});
    let answer = call(&gateway, "compare_tool_specifications", both).await.unwrap();
    assert_eq!((&answer["bump"], &answer["ok"]), (&json!("major"), &json!(false)));
    assert_eq!(answer["changes"][0]["impact"], "breaking");
    let broken = call(&gateway, "compare_tool_specifications", json!({"old": "{", "new": "{}"})).await;
    assert!(broken.unwrap_err().message.contains("`old`"));
}
