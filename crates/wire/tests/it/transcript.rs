//! The message sequence of the board-protocol document as a golden transcript, and real tool lists
//! where they are at hand.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::{ErrorKind, Notice, Outcome};
use sinew_wire::Moment;
use sinew_wire::device::{Board, BoardDialect, Property, Reply, ToolSpec};
use sinew_wire::host::{Config, Event, Output, Session, Vision};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Speaker {
    Device,
    Gateway,
}
use Speaker::{Device, Gateway};

/// The examples of the document in its order. Where it writes `...`, something has been put in; after
/// the list comes its second page, after the successful call the failing one.
fn document() -> Vec<(Speaker, Value)> {
    let schema = json!({"type": "object", "properties": {"volume": {"type": "integer"}}});
    vec![
        (
            Device,
            json!({
                "type": "hello",
                "version": 1,
                "features": {"mcp": true},
                "transport": "websocket",
                "audio_params": {"format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": 60},
                "session_id": "",
            }),
        ),
        (Gateway, json!({"type": "hello", "transport": "websocket", "session_id": "s-1"})),
        (
            Gateway,
            mcp(json!({
                "jsonrpc": "2.0",
                "method": "initialize",
                "params": {"capabilities": {"vision": {"url": "http://127.0.0.1:8003/explain", "token": "t"}}},
                "id": 1,
            })),
        ),
        (
            Device,
            mcp(json!({
                "jsonrpc": "2.0",
                "id": 1,
                "result": {
                    "protocolVersion": "2024-11-05",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "bread-compact-wifi", "version": "1.7.5"},
                },
            })),
        ),
        (Gateway, mcp(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))),
        (Gateway, mcp(json!({"jsonrpc": "2.0", "method": "tools/list", "params": {"cursor": ""}, "id": 2}))),
        (
            Device,
            mcp(json!({
                "jsonrpc": "2.0",
                "id": 2,
                "result": {
                    "tools": [
                        {"name": "self.get_device_status", "description": "...", "inputSchema": {"type": "object"}},
                        {"name": "self.audio_speaker.set_volume", "description": "...", "inputSchema": schema},
                    ],
                    "nextCursor": "self.screen.set_theme",
                },
            })),
        ),
        (
            Gateway,
            mcp(json!({
                "jsonrpc": "2.0",
                "method": "tools/list",
                "params": {"cursor": "self.screen.set_theme"},
                "id": 3,
            })),
        ),
        (
            Device,
            mcp(json!({
                "jsonrpc": "2.0",
                "id": 3,
                "result": {
                    "tools": [{"name": "self.screen.set_theme", "description": "...", "inputSchema": {"type": "object"}}],
                    "nextCursor": "",
                },
            })),
        ),
        (
            Gateway,
            mcp(json!({
                "jsonrpc": "2.0",
                "method": "tools/call",
                "params": {"name": "self.audio_speaker.set_volume", "arguments": {"volume": 50}},
                "id": 4,
            })),
        ),
        (
            Device,
            mcp(json!({
                "jsonrpc": "2.0",
                "id": 4,
                "result": {"content": [{"type": "text", "text": "true"}], "isError": false},
            })),
        ),
        (
            Gateway,
            mcp(json!({
                "jsonrpc": "2.0",
                "method": "tools/call",
                "params": {"name": "self.non_existent_tool", "arguments": {}},
                "id": 5,
            })),
        ),
        (
            Device,
            mcp(json!({
                "jsonrpc": "2.0",
                "id": 5,
                "error": {"code": -32601, "message": "Unknown tool: self.non_existent_tool"},
            })),
        ),
        (
            Device,
            mcp(json!({
                "jsonrpc": "2.0",
                "method": "notifications/state_changed",
                "params": {"newState": "idle", "oldState": "connecting"},
            })),
        ),
    ]
}

fn mcp(payload: Value) -> Value {
    json!({"session_id": "s-1", "type": "mcp", "payload": payload})
}

#[test]
fn the_gateway_says_what_the_document_says() {
    let vision = Vision { url: "http://127.0.0.1:8003/explain".into(), token: "t".into() };
    let config = Config { session_id: "s-1".into(), vision: Some(vision), ..Config::default() };
    let mut session = Session::new(config, Moment(0));
    let (mut sent, mut events) = (Vec::new(), Vec::new());
    let mut tickets = Vec::new();
    for (from, message) in document() {
        match from {
            Device => session.handle_text(Moment(0), &message.to_string()),
            Gateway => {
                if message["payload"]["method"] == "tools/call" {
                    let params = &message["payload"]["params"];
                    let args = params["arguments"].as_object().unwrap();
                    tickets.push(session.call(
                        Moment(0),
                        params["name"].as_str().unwrap(),
                        args,
                        Duration::from_secs(30),
                    ));
                    drain(&mut session, &mut sent, &mut events);
                }
                assert!(!sent.is_empty(), "nothing was sent where the document has {message}");
                covers(&sent.remove(0), &message);
            }
        }
        drain(&mut session, &mut sent, &mut events);
    }
    assert_eq!(sent, Vec::<Value>::new());

    let ready = events.iter().find_map(|event| match event {
        Event::Ready(ready) => Some(ready),
        _ => None,
    });
    let ready = ready.unwrap();
    assert_eq!((ready.name.as_str(), ready.version.as_str()), ("bread-compact-wifi", "1.7.5"));
    let names: Vec<&str> = ready.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["self.get_device_status", "self.audio_speaker.set_volume", "self.screen.set_theme"]);
    assert!(events.contains(&Event::Answered(tickets[0], Ok(Outcome::text("true")))));
    let refused = events.iter().find_map(|event| match event {
        Event::Answered(ticket, Err(error)) if *ticket == tickets[1] => Some(error),
        _ => None,
    });
    let refused = refused.unwrap();
    assert_eq!((refused.kind, &refused.details), (ErrorKind::ActionFailed, &json!({"code": -32601})));
    assert!(refused.message.contains("Unknown tool: self.non_existent_tool"));
    let body = json!({"newState": "idle", "oldState": "connecting"});
    let notice = Notice { topic: "notifications/state_changed".into(), body };
    assert_eq!(events.last(), Some(&Event::Notified(notice)));
}

#[test]
fn the_board_says_what_the_document_says() {
    let status = ToolSpec::new("self.get_device_status", "...");
    let volume = ToolSpec::new("self.audio_speaker.set_volume", "...").with(Property::integer("volume", ..));
    // Long enough to need a page of its own.
    let theme = ToolSpec::new("self.screen.set_theme", "...".repeat(2600));
    let mut board = Board::new("bread-compact-wifi", "1.7.5")
        .tool(status, |_| Ok(Reply::from(json!({}))))
        .tool(volume, |arguments| Ok(Reply::from(arguments.integer("volume")? == 50)))
        .tool(theme, |_| Ok(Reply::from(true)));
    let mut said = vec![board.hello()];
    for (from, message) in document() {
        match from {
            Gateway => said.extend(board.handle_text(&message.to_string())),
            Device if message["payload"]["method"].is_string() => {
                let params = message["payload"]["params"].clone();
                said.push(board.notify("notifications/state_changed", params));
                check(&said.remove(0), message);
            }
            Device => check(&said.remove(0), message),
        }
    }
    assert_eq!(said, Vec::<String>::new());

    fn check(said: &str, mut expected: Value) {
        // The board leaves out an empty cursor and session, and describes its arguments in full.
        if let Some(members) = expected.as_object_mut()
            && members["session_id"] == ""
        {
            members.shift_remove("session_id");
        }
        let tools = expected.pointer_mut("/payload/result/tools").and_then(Value::as_array_mut);
        for tool in tools.into_iter().flatten() {
            *tool = json!({"name": tool["name"], "inputSchema": {"type": "object"}});
        }
        if expected.pointer("/payload/result/nextCursor") == Some(&json!("")) {
            expected["payload"]["result"].as_object_mut().unwrap().shift_remove("nextCursor");
        }
        covers(&serde_json::from_str(said).unwrap(), &expected);
    }
}

// ---- real tool lists, read in place where they are at hand ----

fn fixture(name: &str) -> Option<Value> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    let folder = std::env::var_os("SINEW_FIXTURES").map_or_else(beside, PathBuf::from);
    let text = std::fs::read_to_string(folder.join("xiaozhi").join(name)).ok()?;
    Some(serde_json::from_str(&text).expect("a fixture is JSON"))
}

/// Plays a board that lists these tools on one page; gives the names that were read and the warnings.
fn listed(tools: &[Value]) -> (Vec<String>, Vec<String>) {
    let mut session = Session::new(Config::default(), Moment(0));
    session.handle_text(Moment(0), r#"{"type":"hello","features":{"mcp":true}}"#);
    session.handle_text(Moment(0), &mcp(json!({"id": 1, "result": {}})).to_string());
    session.handle_text(Moment(0), &mcp(json!({"id": 2, "result": {"tools": tools}})).to_string());
    let mut events = Vec::new();
    drain(&mut session, &mut Vec::new(), &mut events);
    match events.pop() {
        Some(Event::Ready(ready)) => (ready.tools.iter().map(|tool| tool.name.clone()).collect(), ready.warnings),
        other => panic!("not ready: {other:?}"),
    }
}

#[test]
fn the_tools_of_every_real_board_are_read() {
    let Some(Value::Object(files)) = fixture("78-device-tools-by-source-file.json") else { return };
    assert!(!files.is_empty());
    for (file, tools) in files {
        let tools = tools.as_array().unwrap();
        let (names, warnings) = listed(tools);
        let mut expected: Vec<&str> = Vec::new();
        for tool in tools {
            let name = tool["name"].as_str().unwrap();
            if !expected.contains(&name) {
                expected.push(name);
            }
        }
        assert_eq!(names, expected, "{file}");
        assert_eq!(warnings.len(), tools.len() - names.len(), "{file}: {warnings:?}");
    }
}

#[test]
fn the_tools_and_answers_of_an_emulated_board_are_read() {
    let Some(Value::Array(tools)) = fixture("digital-human-default-mcp-tools.json") else { return };
    let (names, warnings) = listed(&tools);
    assert_eq!((names.len(), warnings), (tools.len(), vec![]));
    for tool in tools {
        let answer = tool["mockResponse"].clone();
        let reply = answer.clone();
        let mut board = Board::new("x", "1")
            .speaking(BoardDialect::Firmware)
            .tool(ToolSpec::new("t", ""), move |_| Ok(Reply::from(reply.clone())));
        let mut session = Session::new(Config::default(), Moment(0));
        let ticket = session.call(Moment(0), "t", &serde_json::Map::new(), Duration::from_secs(30));
        session.handle_text(Moment(0), &board.hello());
        let mut events = Vec::new();
        loop {
            match session.poll() {
                Output::Send(text) | Output::Reply(text) => {
                    if let Some(answer) = board.handle_text(&text) {
                        session.handle_text(Moment(0), &answer);
                    }
                }
                Output::Event(event) => events.push(event),
                Output::Wait(_) => break,
            }
        }
        assert_eq!(events.last(), Some(&Event::Answered(ticket, Ok(Outcome::json(answer)))));
    }
}

// ---- helpers ----

fn drain(session: &mut Session, sent: &mut Vec<Value>, events: &mut Vec<Event>) {
    loop {
        match session.poll() {
            Output::Send(text) | Output::Reply(text) => sent.push(serde_json::from_str(&text).unwrap()),
            Output::Event(event) => events.push(event),
            Output::Wait(_) => return,
        }
    }
}

/// Every member of the document's message is there; further ones are allowed.
fn covers(said: &Value, document: &Value) {
    match (said, document) {
        (Value::Object(said), Value::Object(document)) => {
            for (key, expected) in document {
                covers(said.get(key).unwrap_or_else(|| panic!("`{key}` is missing in {said:?}")), expected);
            }
        }
        (Value::Array(said), Value::Array(document)) => {
            assert_eq!(said.len(), document.len());
            said.iter().zip(document).for_each(|(said, document)| covers(said, document));
        }
        _ => assert_eq!(said, document),
    }
}
