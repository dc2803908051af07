//! The conversation in `docs/wire.md`, played between the two ends.

use serde_json::{Value, json};
use sinew_wire::Moment;
use sinew_wire::device::{Board, Property, ToolSpec};
use sinew_wire::host::{Config, Output, Session, Vision};

/// Who speaks, and what; the gateway's own version changes with each release.
fn spoken(who: &str, text: &str) -> (String, Value) {
    let mut message: Value = serde_json::from_str(text).expect("a line is JSON");
    if let Some(version) = message.pointer_mut("/payload/params/clientInfo/version") {
        *version = json!("any");
    }
    (who.to_owned(), message)
}

#[test]
fn the_page_shows_what_really_travels() {
    let page = include_str!("../../../../docs/wire.md");
    let lines = page.lines().filter_map(|line| line.split_once(": ")).map(|(who, text)| (who, text.trim_start()));
    let shown: Vec<_> = lines
        .filter(|(who, text)| ["board", "gateway"].contains(who) && text.starts_with('{'))
        .map(|(who, text)| spoken(who, text))
        .collect();

    let vision = Vision { url: "http://192.168.1.5:7301/vision".to_owned(), token: "t1".to_owned() };
    let config = Config { session_id: "s1".to_owned(), vision: Some(vision), ..Config::default() };
    let mut session = Session::new(config, Moment(0));
    let spec = ToolSpec::new("self.lamp.switch", "Switch the lamp on or off")
        .with(Property::boolean("on").describe("true for light"));
    let mut board = Board::new("garden-lamp", "1.0.0").tool(spec, |arguments| Ok(arguments.boolean("on")?.into()));
    let mut heard = Vec::new();
    let mut said = vec![board.hello()];
    let mut called = false;
    loop {
        for text in said.drain(..) {
            heard.push(spoken("board", &text));
            session.handle_text(Moment(0), &text);
        }
        match session.poll() {
            Output::Send(text) | Output::Reply(text) => {
                heard.push(spoken("gateway", &text));
                said.extend(board.handle_text(&text));
            }
            Output::Event(_) => {}
            Output::Wait(_) if !called => {
                called = true;
                let arguments = json!({"on": true}).as_object().cloned().expect("an object");
                session.call(Moment(0), "self.lamp.switch", &arguments, std::time::Duration::from_secs(30));
            }
            Output::Wait(_) => break,
        }
    }
    heard.push(spoken("board", &board.notify("notifications/state_changed", json!({"lit": true}))));
    for (heard, shown) in heard.iter().zip(&shown) {
        assert_eq!(heard, shown);
    }
    assert_eq!(heard.len(), shown.len());
}
