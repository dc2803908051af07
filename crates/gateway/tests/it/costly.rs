//! Devices whose schemas are built to stop the gateway.

use sinew_gateway::{Follow, Shape};
use sinew_tool::portable;
use sinew_tool::{DeviceEvent, ErrorKind, Outcome, Tool, Value, json};

use crate::fake::*;

/// Doubles the work with each level of the value.
fn doubling() -> Value {
    json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/s"}},
        "$defs": {"s": {"type": "array", "anyOf": [{"items": {"$ref": "#/$defs/s"}}, {"items": {"$ref": "#/$defs/s"}}]}},
    })
}

/// Fits none of the branches, which is only found at the bottom.
fn deep() -> Value {
    let value = (0..40).fold(json!(1), |inner, _| json!([inner]));
    json!({ "a": value })
}

fn tool(name: &str) -> Tool {
    Tool::new(name, "", json!({"type": "object"}))
}

#[tokio::test]
async fn a_tool_whose_answer_takes_too_much_work_is_withdrawn_and_nobody_else_notices() {
    let gateway = gateway();
    let costly = || Fake::new(1, [tool("costly").with_output_schema(doubling()), tool("fine")]);
    let hostile = join(&gateway, costly().with_manner(Manner::Answer(Ok(Outcome::json(deep())))));
    join(&gateway, Fake::new(2, [tool("other").with_output_schema(json!({"type": "object"}))]));
    assert_eq!(device_tools(&gateway), ["costly", "fine", "other"]);

    let error = call(&gateway, "costly", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::BadAnswer);
    assert!(error.message.contains("takes more work than allowed"), "{}", error.message);

    assert_eq!(device_tools(&gateway), ["fine", "other"]);
    let view = gateway.find_device("board-0001").unwrap();
    assert!(view.is_ready() && view.withdrawn["costly"].contains("takes more work"));
    assert!(view.remedy.unwrap().contains("`costly` is not offered"));
    assert!(gateway.find_device("board-0002").unwrap().withdrawn.is_empty());
    call(&gateway, "other", json!({})).await.unwrap();
    assert_eq!(call_kind(&gateway, "costly", json!({})).await, ErrorKind::UnknownTool);
    assert_eq!(hostile.count(), 1, "a withdrawn tool is not called");

    // The same tools again are not a new chance; a new stay is.
    gateway.apply(DeviceEvent::Changed(stay(&hostile)));
    assert_eq!(device_tools(&gateway), ["fine", "other"]);
    leave(&gateway, &hostile);
    join(&gateway, costly());
    assert_eq!(device_tools(&gateway), ["costly", "fine", "other"]);
}

#[tokio::test]
async fn arguments_that_take_too_much_work_are_refused_and_the_tool_stays() {
    let gateway = gateway();
    let board = join(&gateway, Fake::new(1, [Tool::new("costly", "", doubling())]));
    let error = call(&gateway, "costly", deep()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
    assert!(error.message.contains("more work to check"), "{}", error.message);
    assert_eq!(board.count(), 0);
    call(&gateway, "costly", json!({"a": [[]]})).await.unwrap();
}

#[tokio::test]
async fn patterns_against_a_large_answer_take_bounded_work() {
    let gateway = gateway();
    let properties: serde_json::Map<String, Value> =
        (0..200).map(|n| (format!("p{n}"), json!({"pattern": format!("^(a+)+(?=b{n})$")}))).collect();
    let tool = tool("costly").with_output_schema(json!({"type": "object", "properties": properties}));
    let answer: serde_json::Map<String, Value> = (0..200).map(|n| (format!("p{n}"), json!("a".repeat(800)))).collect();
    join(&gateway, Fake::new(1, [tool]).with_manner(Manner::Answer(Ok(Outcome::json(Value::Object(answer))))));
    assert_eq!(call_kind(&gateway, "costly", json!({})).await, ErrorKind::BadAnswer);
}

#[tokio::test]
async fn a_flood_of_patterns_costs_the_device_its_tools_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let flood = (0..500).map(|n| {
        let properties: serde_json::Map<String, Value> =
            (0..12).map(|p| (format!("p{p}"), json!({"pattern": format!(r"\p{{L}}{{20}}{}", n * 12 + p)}))).collect();
        Tool::new(format!("t{n}"), "", json!({"type": "object", "properties": properties}))
    });
    let expected = {
        let gateway = gateway_in(dir.path());
        join(&gateway, Fake::new(1, flood.chain([tool("last")])));
        let view = gateway.find_device("board-0001").unwrap();
        assert!(view.tools < 20 && view.withdrawn.len() > 480, "{} offered", view.tools);
        assert!(device_tools(&gateway).contains(&"last".to_owned()));
        assert!(view.remedy.unwrap().contains("more tools"));
        gateway.close().await;
        view.withdrawn
    };
    let gateway = gateway_in(dir.path());
    assert_eq!(gateway.find_device("board-0001").unwrap().withdrawn, expected);
}

#[tokio::test]
async fn an_answer_of_many_parts_in_a_text_is_not_read() {
    let gateway = gateway();
    let text = format!("{{\"a\":[0{}]}}", ",0".repeat(600_000));
    let tool = tool("long").with_output_schema(json!({"type": "object"}));
    join(&gateway, Fake::new(1, [tool]).with_manner(Manner::Answer(Ok(Outcome::text(text)))));
    assert_eq!(call_kind(&gateway, "long", json!({})).await, ErrorKind::BadAnswer);
}

#[tokio::test]
async fn a_large_honest_answer_is_checked_aside_and_passed_on() {
    let gateway = gateway();
    let item = json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    let schema = json!({"type": "object", "properties": {"items": {"type": "array", "items": item}}});
    let answer = json!({"items": (0..20_000).map(|id| json!({"id": id, "name": "kitchen"})).collect::<Vec<_>>()});
    let tool = tool("list").with_output_schema(schema);
    join(&gateway, Fake::new(1, [tool]).with_manner(Manner::Answer(Ok(Outcome::text(answer.to_string())))));
    assert_eq!(call(&gateway, "list", json!({})).await.unwrap(), answer);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let gateway = gateway.clone();
        calls.spawn(async move { call(&gateway, "list", json!({})).await });
    }
    for answered in calls.join_all().await {
        assert_eq!(answered.unwrap(), answer);
    }
}

/// Takes long to compare with another version of itself: each alternative is tried with each, at every level.
fn nested(version: usize) -> Value {
    (0..3).fold(json!({"minimum": version}), |inner, depth| {
        let branch = |index: usize| json!({"items": inner, "maxItems": index + depth});
        json!({"anyOf": [branch(0), branch(1), branch(2), branch(3)]})
    })
}

/// Tools of which only the first can be compared for what one device may cost.
fn costly_tools(version: usize) -> impl Iterator<Item = Tool> {
    let schema = std::sync::Arc::new(json!({"type": "object", "properties": {"a": nested(version)}}));
    (0..200).map(move |index| {
        let mut tool = tool(&format!("t{index}"));
        tool.input_schema = schema.clone();
        tool
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_changes_all_its_tools_takes_bounded_work_and_what_was_not_compared_is_held_back() {
    let gateway = gateway();
    let board = |version: usize, firmware: &str| {
        Fake::new(1, costly_tools(version)).with_info(|info| info.version = firmware.to_owned())
    };
    join(&gateway, board(2, "1.0.0"));
    gateway.pin("board-0001", Follow::Minor).unwrap();
    // Wider arguments are a minor change, and the version announces one.
    join(&gateway, board(1, "1.1.0"));
    let changes = gateway.changes("board-0001").unwrap();
    assert!(changes.held.len() > 100, "{} held", changes.held.len());
    for held in &changes.held {
        assert!(held.why.contains("needs a new major version"), "{}", held.why);
    }
    let last = &changes.held.last().unwrap().changes[0];
    assert_eq!(last.impact, "undecided");
    assert!(last.message.contains("not compared"), "{}", last.message);
    // A person decides about what was not compared.
    gateway.accept("board-0001", &changes.digest.unwrap(), None).unwrap();
    assert!(gateway.changes("board-0001").unwrap().held.is_empty());
    let page = gateway.events(None, None, 100).await.unwrap();
    let told = page.events.iter().find(|event| event.topic == "sinew/tools_changed").unwrap();
    assert_eq!(told.body["bump"], "major");
}

#[tokio::test]
async fn an_honest_device_may_change_a_hundred_tools_at_once() {
    let gateway = gateway();
    let board = |count: usize, firmware: &str| {
        let schema = |index: usize| -> Value {
            let properties: serde_json::Map<String, Value> = (0..8 + count)
                .map(|name| {
                    (
                        format!("p{name}"),
                        json!({"type": "string", "description": format!("No. {index}"), "enum": ["a", "b"]}),
                    )
                })
                .collect();
            json!({"type": "object", "properties": properties})
        };
        let tools = (0..100).map(|index| Tool::new(format!("t{index}"), "", schema(index)));
        Fake::new(1, tools).with_info(|info| info.version = firmware.to_owned())
    };
    join(&gateway, board(0, "1.0.0"));
    gateway.pin("board-0001", Follow::Minor).unwrap();
    join(&gateway, board(2, "1.1.0"));
    assert!(gateway.changes("board-0001").unwrap().held.is_empty());
}

#[tokio::test]
async fn a_device_whose_schemas_grow_when_they_are_listed_loses_the_tools_that_do_not_fit() {
    let gateway = gateway();
    let growing = |index: usize| {
        let part: serde_json::Map<String, Value> =
            (0..12).map(|n| (format!("p{index}_{n}"), json!({"type": "string"}))).collect();
        let uses: serde_json::Map<String, Value> =
            (0..20).map(|n| (format!("a{n}"), json!({"$ref": "#/$defs/part"}))).collect();
        let part = json!({"type": "object", "properties": part});
        Tool::new(format!("t{index}"), "", json!({"type": "object", "properties": uses, "$defs": {"part": part}}))
    };
    let plain = (0..100).map(|index| tool(&format!("plain{index}")));
    join(&gateway, Fake::new(1, (0..200).map(growing).chain(plain)));
    let view = gateway.find_device("board-0001").unwrap();
    assert!(view.withdrawn.values().all(|why| why.contains("when they are listed")), "{:?}", view.withdrawn);
    let offered = device_tools(&gateway);
    assert_eq!(offered.len() + view.withdrawn.len(), 300);
    assert!(offered.contains(&"t0".to_owned()) && offered.contains(&"plain99".to_owned()));
    let list = gateway.list(&admin(), Shape::Folded);
    let listed: usize =
        list.tools.iter().map(|tool| portable::input(&tool.tool.input_schema).schema.to_string().len()).sum();
    let written: usize = list.tools.iter().map(|tool| tool.tool.input_schema.to_string().len()).sum();
    assert!(!view.withdrawn.is_empty() && listed - written <= 1 << 20, "{listed} of {written}");
    // Twenty of them are no device with too much.
    join(&gateway, Fake::new(2, (300..320).map(growing)));
    assert!(gateway.find_device("board-0002").unwrap().withdrawn.is_empty());
}
