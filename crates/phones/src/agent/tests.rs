//! The agent and its standby, against an agent of paper.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::hello::AgentHello;
use super::link::{Agent, LineBuffer};
use super::{AgentError, AgentRefusal, AgentSource, Standby};
use crate::adb::AdbServer;
use crate::adb::program::halves;
use crate::phone::{Phone, PhoneError};
use crate::touch::Stroke;
use crate::tree::{Rect, UiNode};

/// The phone's end of the stream, played by the test.
struct FakeAgent(BufReader<DuplexStream>);

impl FakeAgent {
    async fn request(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap_or_default();
        serde_json::from_str(&line).unwrap_or_default()
    }

    async fn say(&mut self, line: &str) {
        let _ = self.0.write_all(line.as_bytes()).await;
        let _ = self.0.write_all(b"\n").await;
    }

    async fn answer(&mut self, result: Value) -> Value {
        let request = self.request().await;
        self.say(&json!({"id": request["id"], "result": result}).to_string()).await;
        request
    }
}

fn pair() -> (Agent, FakeAgent) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = halves(Box::new(ours), false);
    let all = ["ping", "tree", "touch", "key", "set_text", "clipboard_get", "provider_call"];
    let hello = AgentHello { version: "9".to_owned(), api: 34, capabilities: all.map(str::to_owned).to_vec() };
    (Agent::new(hello, input, output, LineBuffer::default()), FakeAgent(BufReader::new(theirs)))
}

#[tokio::test]
async fn answers_find_their_questions_in_any_order() {
    let (agent, mut other) = pair();
    let play = async {
        let (first, second) = (other.request().await, other.request().await);
        other.say(&json!({"id": second["id"], "result": {"bundle": second["params"]["extras"]}}).to_string()).await;
        other.say(&json!({"id": first["id"], "result": {"text": "copied"}}).to_string()).await;
        (first, second)
    };
    let extras = json!({"tool_name": "t"});
    let call = agent.provider_call("a.b", "m", None, &extras, Some(10), Duration::from_secs(3));
    let (clip, bundle, (first, second)) = tokio::join!(agent.clipboard(), call, play);
    assert_eq!((clip, bundle), (Ok(Some("copied".to_owned())), Ok(extras)));
    assert_eq!((first["method"].clone(), first["params"].clone()), (json!("clipboard_get"), json!({})));
    let params =
        json!({"authority": "a.b", "method": "m", "timeout_ms": 3000, "user": 10, "extras": {"tool_name": "t"}});
    assert_eq!(second["params"], params);
}

#[tokio::test]
async fn refusals_keep_their_meaning_for_the_caller() {
    let cases = [
        ("denied", "Denied"),
        ("no_element", "NoElement"),
        ("invalid", "Invalid"),
        ("unsupported", "Unsupported"),
        ("unknown_method", "Unsupported"),
        ("busy", "Failed"),
        ("timeout", "Timeout"),
        ("from_the_future", "Failed"),
    ];
    for (word, kind) in cases {
        let (agent, mut other) = pair();
        let play = async {
            let request = other.request().await;
            let error = json!({"type": word, "message": "its own words"});
            other.say(&json!({"id": request["id"], "error": error}).to_string()).await;
        };
        let stroke = [Stroke::hold(1.0, 2.0, Duration::ZERO, Duration::from_millis(5))];
        let (touched, ()) = tokio::join!(agent.touch(&stroke), play);
        let error = touched.unwrap_err();
        assert!(format!("{error:?}").starts_with(kind), "{word}: {error:?}");
        assert!(error.to_string().contains("its own words"), "{word}: {error}");
    }
    assert_eq!(AgentRefusal::parse("crashed"), AgentRefusal::Crashed);
}

#[tokio::test]
async fn an_agent_that_ends_answers_everyone_and_says_why() {
    let (agent, mut other) = pair();
    let closed = agent.closed();
    let end = async {
        other.request().await;
        other.request().await;
        drop(other);
    };
    let stroke = [Stroke::hold(1.0, 2.0, Duration::ZERO, Duration::from_millis(5))];
    let (tree, touched, ()) = tokio::join!(agent.tree(), agent.touch(&stroke), end);
    // Reading goes on below; a touch must not be repeated.
    assert!(matches!(tree, Err(PhoneError::Unsupported { .. })), "{tree:?}");
    assert!(matches!(&touched, Err(PhoneError::Failed(text)) if text.contains("look at the screen")), "{touched:?}");
    closed.cancelled().await;
    assert!(agent.ended().is_some());
    assert!(matches!(agent.ping().await, Err(AgentError::Gone(_))));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_says_nothing_is_given_up() {
    let (agent, _other) = pair();
    assert!(matches!(agent.ping().await, Err(AgentError::Silent { .. })));
    assert!(agent.ended().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_question_behind_a_long_gesture_waits_its_turn() {
    let (agent, mut other) = pair();
    let play = async {
        let (first, second) = (other.request().await, other.request().await);
        tokio::time::sleep(Duration::from_secs(55)).await;
        other.say(&json!({"id": first["id"], "result": {}}).to_string()).await;
        other.say(&json!({"id": second["id"], "result": {"text": null}}).to_string()).await;
    };
    let stroke = [Stroke::hold(1.0, 2.0, Duration::ZERO, Duration::from_secs(55))];
    let (touched, clip, ()) = tokio::join!(agent.touch(&stroke), agent.clipboard(), play);
    assert_eq!((touched, clip), (Ok(()), Ok(None)));
}

#[tokio::test]
async fn a_little_garbage_is_passed_over_and_much_ends_the_agent() {
    let (agent, mut other) = pair();
    let play = async {
        let request = other.request().await;
        for line in ["WARNING: linker", "{\"id\":99,\"result\":{}}", "{\"id\":null,\"error\":{}}", "[]", "\u{0}"] {
            other.say(line).await;
        }
        other.say(&json!({"id": request["id"], "result": {}}).to_string()).await;
        other
    };
    let (answer, mut other) = tokio::join!(agent.ping(), play);
    assert_eq!(answer, Ok(()));
    for _ in 0..20 {
        other.say("noise").await;
    }
    agent.closed().cancelled().await;
    assert!(agent.ended().unwrap_or_default().contains("not answers"));
}

#[tokio::test]
async fn a_line_without_end_ends_the_agent() {
    let (agent, mut other) = pair();
    let flood = async {
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..18 {
            if other.0.write_all(&chunk).await.is_err() {
                break;
            }
        }
        other
    };
    let (answer, _other) = tokio::join!(agent.ping(), flood);
    assert!(matches!(answer, Err(AgentError::Gone(why)) if why.contains("more than")));
}

#[tokio::test]
async fn letting_go_of_it_closes_the_stream() {
    let (agent, mut other) = pair();
    drop(agent);
    assert_eq!(other.request().await, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_nobody_needs_is_let_go() {
    let (agent, mut other) = pair();
    let transport = AdbServer::tcp("127.0.0.1", 1).transport("x", true);
    let standby = Standby::new(transport, AgentSource::Off);
    let (send, mut told) = tokio::sync::mpsc::unbounded_channel();
    standby.on_change(move || {
        let _ = send.send(());
    });
    standby.welcome(&agent);
    told.recv().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let (pinged, _) = tokio::join!(agent.ping(), other.answer(json!({})));
    assert_eq!(pinged, Ok(()));
    drop(agent);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(standby.running().is_some(), "it was asked ten minutes ago");
    told.recv().await;
    assert!(standby.running().is_none());
    assert_eq!(other.request().await, Value::Null, "its stream is closed");
}

#[tokio::test]
async fn a_field_is_filled_by_the_handle_it_was_read_with() {
    let (agent, mut other) = pair();
    let nodes = json!({"nodes": [{"depth": 0, "class": "E", "flags": 256 | 64, "handle": 65537, "text": "à"}]});
    let (tree, _) = tokio::join!(agent.tree(), other.answer(nodes.clone()));
    let field = tree.map(|tree| tree.node(0).clone()).unwrap_or_default();
    let (set, request) = tokio::join!(agent.set_text(&field, "日本\n🎉"), other.answer(json!({})));
    assert_eq!(set, Ok(()));
    assert_eq!(request["params"], json!({"handle": 65537, "text": "日本\n🎉"}));
    // A node that another backend read is left to that backend; one of an earlier run is gone.
    let foreign = UiNode::new("E", Rect::default());
    assert!(matches!(agent.set_text(&foreign, "x").await, Err(PhoneError::Unsupported { .. })));
    let old = UiNode { handle: field.handle.map(|handle| handle ^ 1 << 48), ..field };
    assert!(matches!(agent.set_text(&old, "x").await, Err(PhoneError::NoElement(_))));
    // Typing adds to what is there; what a keyboard has is the shell's.
    let play = async {
        other.answer(nodes).await;
        other.answer(json!({})).await
    };
    let (typed, request) = tokio::join!(agent.type_text("ß"), play);
    assert_eq!((typed, request["params"]["text"].clone()), (Ok(()), json!("àß")));
    assert!(matches!(agent.type_text("plain").await, Err(PhoneError::Unsupported { .. })));
}

#[tokio::test]
async fn what_the_agent_does_not_have_is_not_asked_of_it() {
    let (agent, _other) = pair();
    assert!(matches!(agent.set_clipboard("x").await, Err(PhoneError::Unsupported { .. })));
}

#[test]
fn a_hello_is_checked() {
    let good = br#"{"hello":"sinew-agent","version":"0.1.0","protocol":1,"api":34,"capabilities":["tree",5,"ping"]}"#;
    let hello = AgentHello::parse(good).and_then(Result::ok).unwrap_or_default();
    assert!(hello.version == "0.1.0" && hello.can("tree") && !hello.can("touch"));
    let other = br#"{"hello":"sinew-agent","version":"7","protocol":2}"#;
    let refused = AgentHello::parse(other).and_then(Result::err).unwrap_or_default();
    assert!(refused.contains("protocol 2") && refused.contains("android/build"), "{refused}");
    assert!(AgentHello::parse(b"WARNING: linker").is_none() && AgentHello::parse(b"{}").is_none());
}
