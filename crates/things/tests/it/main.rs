//! Gadgets as devices: on a real Mosquitto, and over HTTP. The gadgets are small stand-ins that behave as the originals do.

#![allow(clippy::panic)]

mod examples;
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use sinew_boards::broker::Address;
use sinew_things::ThingConfig;
use sinew_tool::settings::Setting;
use sinew_tool::{DeviceEvent, ErrorKind, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Family, Mosquitto, call, gadget_on, http_gadget, soon};

/// A thing as a file would have it.
fn thing(value: Value) -> ThingConfig {
    let mut thing = ThingConfig::default();
    thing.read(value).expect("valid");
    thing
}

fn refusal(value: Value, brokers: &[Address]) -> String {
    sinew_things::plan(&[thing(value)], brokers).expect_err("wrong").1
}

fn plug() -> ThingConfig {
    thing(json!({
        "name": "plug",
        "instructions": "The plug of the desk lamp.",
        "events": ["tele/plug/#"],
        "tools": [
            {
                "name": "power", "description": "Switch the plug", "effect": "change",
                "input": {"properties": {"state": {"enum": ["ON", "OFF", "TOGGLE"]}}, "required": ["state"]},
                "mqtt": {"topic": "cmnd/plug/POWER", "payload": "${state}", "answer": "stat/plug/RESULT", "pick": "/POWER"},
            },
            {"name": "restart", "mqtt": {"topic": "cmnd/plug/Restart", "payload": "1"}},
            {"name": "silent", "mqtt": {"topic": "cmnd/plug/Nothing", "answer": "stat/plug/NOTHING", "timeout": 1}},
            {"name": "any", "mqtt": {"topic": "cmnd/plug/${what}", "payload": "", "answer": "stat/plug/${what}"}},
        ],
    }))
}

#[tokio::test]
async fn a_plug_on_a_broker_is_switched_and_answers_and_reports() {
    let broker = Mosquitto::open().await;
    let _plug = gadget_on(&broker, "cmnd/plug/#", |topic, payload| match topic {
        // Twice, as a gadget does that reports to a rule as well.
        "cmnd/plug/POWER" => vec![
            ("stat/plug/RESULT".to_owned(), format!(r#"{{"POWER":"{payload}"}}"#)),
            ("stat/plug/RESULT".to_owned(), r#"{"POWER":"AGAIN"}"#.to_owned()),
            ("tele/plug/STATE".to_owned(), r#"{"Wifi":{"RSSI":76}}"#.to_owned()),
        ],
        "cmnd/plug/Status" => vec![("stat/plug/Status".to_owned(), "fine".to_owned())],
        _ => Vec::new(),
    })
    .await;
    let mut family = Family::start(plug(), &[broker.address()]);
    let device = family.joined().await;
    assert_eq!((device.info().key.0.as_str(), device.info().family.name.as_str()), ("thing:plug", "thing"));
    for state in ["ON", "OFF"] {
        assert_eq!(call(&device, "power", json!({"state": state})).await.expect("switched").joined_text(), state);
        // What the gadget says after its two answers: both are through then.
        let Some(DeviceEvent::Said(_, notice)) = soon(family.events.recv()).await else { panic!("no event") };
        let strength = &notice.body["payload"]["Wifi"]["RSSI"];
        assert_eq!((notice.topic.as_str(), strength), ("tele/plug/STATE", &json!(76)));
    }
    assert!(call(&device, "restart", json!({})).await.expect("sent").joined_text().contains("sent"));
    assert_eq!(call(&device, "any", json!({"what": "Status"})).await.expect("answered").joined_text(), "fine");
    let error = call(&device, "any", json!({"what": "a/b"})).await.expect_err("a level");
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
    let error = call(&device, "silent", json!({})).await.expect_err("no answer");
    assert_eq!(error.kind, ErrorKind::Timeout);
}

#[tokio::test]
async fn a_gadget_is_gone_with_its_broker_and_comes_back_with_it() {
    let mut broker = Mosquitto::open().await;
    let mut family = Family::start(plug(), &[broker.address()]);
    let device = family.joined().await;
    broker.stop().await;
    assert!(family.left().await.starts_with("connection broken"));
    assert_eq!(call(&device, "restart", json!({})).await.expect_err("away").kind, ErrorKind::DeviceAway);
    broker.start().await;
    let device = family.joined().await;
    call(&device, "restart", json!({})).await.expect("sent");
    family.shutdown.cancel();
    assert_eq!(family.left().await, "closed");
}

#[tokio::test]
async fn a_relay_over_http_is_asked_and_its_answer_picked() {
    let (url, mut heard) = http_gadget(|request| match request.split(' ').nth(1) {
        Some("/relay/0?turn=on") => (200, r#"{"ison":true,"has_timer":false}"#.to_owned()),
        Some("/rpc/Switch.Set") => (200, r#"{"was_on":false}"#.to_owned()),
        _ => (404, "Not Found".to_owned()),
    })
    .await;
    let relay = thing(json!({
        "name": "relay",
        "tools": [
            {"name": "turn", "input": {"properties": {"to": {"type": "string"}}, "required": ["to"]},
             "http": {"url": format!("{url}/relay/0?turn=${{to}}"), "pick": "/ison"}},
            {"name": "set", "input": {"properties": {"on": {"type": "boolean"}, "after": {"type": "integer"}}},
             "http": {"url": format!("{url}/rpc/Switch.Set"), "body": "{\"id\": 0, \"on\": ${on}, \"toggle_after\": ${after}}", "headers": {"X-Key": "abc"}}},
        ],
    }));
    let mut family = Family::start(relay, &[]);
    let device = family.joined().await;
    assert_eq!(call(&device, "turn", json!({"to": "on"})).await.expect("on").joined_text(), "true");
    // A value stays a value: neither a parameter nor a path can be added.
    let error = call(&device, "turn", json!({"to": "on&timer=1"})).await.expect_err("404");
    assert!(error.kind == ErrorKind::ActionFailed && error.message.contains("404"), "{error}");
    assert_eq!(
        call(&device, "set", json!({"on": true})).await.expect("set").structured,
        Some(json!({"was_on": false}))
    );
    let requests: Vec<String> = std::iter::from_fn(|| heard.try_recv().ok()).collect();
    assert!(requests[1].starts_with("GET /relay/0?turn=on%26timer%3D1 "), "{requests:?}");
    assert!(requests[2].contains("x-key: abc") && requests[2].ends_with(r#"{"id":0,"on":true}"#), "{requests:?}");
}

/// A gadget that answers the first request of a connection, and closes it when it has read the second.
async fn closing_gadget() -> (String, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = requests.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let counted = counted.clone();
            tokio::spawn(async move {
                let mut input = [0; 4096];
                for answer in [&b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\non"[..], b""] {
                    if stream.read(&mut input).await.unwrap_or(0) == 0 {
                        return;
                    }
                    counted.fetch_add(1, Ordering::Relaxed);
                    drop(stream.write_all(answer).await);
                }
            });
        }
    });
    (url, requests)
}

#[tokio::test]
async fn a_gadget_that_acts_on_get_gets_no_request_twice() {
    for (effect, second_call, requests) in [(None, Err(ErrorKind::DeviceLost), 2), (Some("read"), Ok("on"), 3)] {
        let (url, counted) = closing_gadget().await;
        let tool = json!({"name": "toggle", "effect": effect, "http": {"url": format!("{url}/relay/0?turn=toggle")}});
        let tool = tool.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        let tool: Value = tool.map(|(key, value)| (key.clone(), value.clone())).collect();
        let mut family = Family::start(thing(json!({"name": "relay", "tools": [tool]})), &[]);
        let device = family.joined().await;
        assert_eq!(call(&device, "toggle", json!({})).await.expect("an answer").joined_text(), "on");
        let second = call(&device, "toggle", json!({})).await.map(|answer| answer.joined_text());
        assert_eq!(second.as_deref().map_err(|error| error.kind), second_call, "{effect:?}");
        assert_eq!(counted.load(Ordering::Relaxed), requests, "{effect:?}");
    }
}

#[tokio::test]
async fn a_gadget_that_is_off_or_says_nothing_is_an_error_in_time() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let url = format!("http://{}", silent.local_addr().expect("bound"));
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let off = format!("http://{}", gone.local_addr().expect("bound"));
    drop(gone);
    let tools = json!([{"name": "wait", "http": {"url": url, "timeout": 1}}, {"name": "off", "http": {"url": off}}]);
    let mut family = Family::start(thing(json!({"name": "quiet", "tools": tools})), &[]);
    let device = family.joined().await;
    assert_eq!(call(&device, "wait", json!({})).await.expect_err("silent").kind, ErrorKind::Timeout);
    assert_eq!(call(&device, "off", json!({})).await.expect_err("off").kind, ErrorKind::DeviceAway);
    assert!(tokio::time::timeout(Duration::from_millis(1), family.events.recv()).await.is_err());
}

#[tokio::test]
async fn a_second_answer_is_not_taken_for_that_of_the_next_call() {
    let broker = Mosquitto::open().await;
    let (sender, mut commands) = tokio::sync::mpsc::unbounded_channel();
    let _ears = gadget_on(&broker, "cmnd/plug/POWER", move |_, payload| {
        drop(sender.send(payload.to_owned()));
        Vec::new()
    })
    .await;
    let (say, mut said) = tokio::sync::mpsc::unbounded_channel();
    // What the gadget publishes, whenever it wants to.
    let mut mouth = crate::support::client_of(&broker).await;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                text = said.recv() => match text {
                    Some(text) => mouth.publish(&sinew_mqtt::client::MqttMessage {
                        topic: "stat/plug/RESULT".to_owned(),
                        payload: format!(r#"{{"POWER":"{text}"}}"#).into_bytes(),
                        ..Default::default()
                    }),
                    None => return,
                },
                packet = mouth.next() => drop(packet),
            }
        }
    });
    tokio::spawn(async move {
        while let Some(state) = commands.recv().await {
            for _ in 0..2 {
                drop(say.send(state.clone()));
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    });
    let mut family = Family::start(plug(), &[broker.address()]);
    let device = family.joined().await;
    for state in ["ON", "OFF", "TOGGLE", "ON"] {
        assert_eq!(call(&device, "power", json!({"state": state})).await.expect("switched").joined_text(), state);
    }
}

#[tokio::test]
async fn values_that_could_become_structure_never_reach_the_gadget() {
    let broker = Mosquitto::open().await;
    let (url, mut heard) = http_gadget(|_| (200, "{}".to_owned())).await;
    let config = thing(json!({
        "name": "lamp",
        "tools": [
            {"name": "topic", "mqtt": {"topic": "${x}/set", "payload": "1"}},
            {"name": "form", "http": {"url": url, "body": "state=${x}", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}},
            {"name": "cookie", "http": {"url": url, "headers": {"Cookie": "room=${x}; role=guest"}}},
            {"name": "xml", "http": {"url": url, "body": "<v>${x}</v>"}},
        ],
    }));
    let mut family = Family::start(config, &[broker.address()]);
    let device = family.joined().await;
    for value in ["a\u{1}", "a\u{85}", "\u{fffe}", "$SYS", "a\nb"] {
        let error = call(&device, "topic", json!({"x": value})).await.expect_err("refused");
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{error}");
    }
    let error = call(&device, "cookie", json!({"x": "a; role=admin"})).await.expect_err("refused");
    assert!(error.kind == ErrorKind::InvalidArguments && error.message.contains("`;`"), "{error}");
    call(&device, "form", json!({"x": "on&role=admin"})).await.expect("sent");
    call(&device, "xml", json!({"x": "</v><w>"})).await.expect("sent");
    let requests: Vec<String> = std::iter::from_fn(|| heard.try_recv().ok()).collect();
    assert!(requests[0].ends_with("state=on%26role%3Dadmin"), "{requests:?}");
    assert!(requests[1].ends_with("<v>&lt;/v&gt;&lt;w&gt;</v>"), "{requests:?}");
    // The broker still has us.
    call(&device, "topic", json!({"x": "lamp"})).await.expect("sent");
}

#[test]
fn a_corrected_password_of_its_broker_makes_another_plan() {
    let with = |password: &str| {
        let credentials =
            sinew_boards::broker::Credentials { username: "me".to_owned(), password: Some(password.to_owned()) };
        let broker = Address::new("mqtt://b", Some(credentials), None).expect("valid");
        sinew_things::plan(&[plug()], &[broker]).expect("valid")
    };
    assert!(with("right") == with("right") && with("wrong") != with("right"));
}

#[test]
fn a_schema_that_cannot_be_checked_is_refused() {
    let broker = [Address::new("mqtt://b", None, None).expect("valid")];
    let with = |x: Value| {
        let input = json!({"properties": {"x": x}, "required": ["x"]});
        json!({"name": "lamp", "tools": [{"name": "on", "mqtt": {"topic": "a", "payload": "${x}"}, "input": input}]})
    };
    for wrong in [
        json!({"type": "strng"}),
        json!({"type": "string", "pattern": "^[a-z"}),
        json!({"type": "string", "pattern": "^(a+)\\1$"}),
        json!({"enum": "a"}),
        json!({"minimum": "5"}),
        json!({"$ref": "#/missing"}),
        json!(5),
    ] {
        let why = refusal(with(wrong.clone()), &broker);
        assert!(why.contains("`on` of `lamp`: `input` cannot be checked"), "{wrong}: {why}");
    }
    sinew_things::plan(&[thing(with(json!({"type": "string", "pattern": "^[a-z]+$"})))], &broker).expect("valid");
}

#[test]
fn what_is_wrong_with_a_thing_is_said_with_its_tool() {
    let broker = [Address::new("mqtt://b", None, None).expect("valid")];
    let tool = |tool: Value| json!({"name": "lamp", "tools": [tool]});
    for (value, part) in [
        (json!({"tools": [{"name": "a", "http": {"url": "http://a/"}}]}), "needs a `name`"),
        (json!({"name": "lamp"}), "`tools`"),
        (tool(json!({"name": "a b", "http": {"url": "http://a/"}})), "needs a `name` of 1 to 64"),
        (tool(json!({"name": "on"})), "`mqtt` or `http`"),
        (tool(json!({"name": "on", "http": {"url": "http://a/"}, "mqtt": {"topic": "a"}})), "keep one"),
        (tool(json!({"name": "on", "http": {"url": "http://${host}/"}})), "cannot be an argument"),
        (tool(json!({"name": "on", "http": {"url": "http://a${x}/"}})), "cannot be an argument"),
        (tool(json!({"name": "on", "http": {"url": "ftp://a/"}})), "http://HOST"),
        (tool(json!({"name": "on", "http": {"url": "http://a/", "method": "BREW"}})), "BREW"),
        (tool(json!({"name": "on", "http": {"url": "http://a/", "body": "{\"a\": }"}})), "should be JSON"),
        (
            tool(json!({"name": "on", "http": {"url": "http://a/", "body": "a", "headers": {"content-type": "${x}"}}})),
            "cannot have an argument",
        ),
        (tool(json!({"name": "on", "http": {"url": "http://a/", "pick": "a"}})), "begins with a slash"),
        (tool(json!({"name": "on", "mqtt": {"topic": ""}})), "`topic`"),
        (tool(json!({"name": "on", "mqtt": {"topic": "a/#"}})), "`topic`"),
        (tool(json!({"name": "on", "mqtt": {"topic": "a", "payload": "${x}"}, "input": {"properties": {}}})), "`${x}`"),
        (tool(json!({"name": "on", "mqtt": {"topic": "a\u{1}b"}})), "`topic`"),
        (json!({"name": "lamp", "events": ["a#"], "tools": [{"name": "on", "mqtt": {"topic": "a"}}]}), "filter"),
        (
            json!({"name": "lamp", "broker": "mqtt://other", "tools": [{"name": "on", "mqtt": {"topic": "a"}}]}),
            "[[brokers]]",
        ),
    ] {
        let why = refusal(value.clone(), &broker);
        assert!(why.contains(part), "{value}: {why}");
    }
    assert!(refusal(tool(json!({"name": "on", "mqtt": {"topic": "a"}})), &[]).contains("there is no broker"));
}
