//! A call is sent once: it is sent again only where the server proved that it did not handle it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_servers::ServerConfig;
use sinew_tool::{DeviceEvent, ErrorKind};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::hostile::{events, json_answer, read_request};
use crate::support::{Family, at, call, soon, tool_names};

/// A request as a server sees it.
struct Seen {
    head: String,
    message: Value,
    /// How many requests of this method came before.
    earlier: usize,
}

impl Seen {
    fn is(&self, method: &str) -> bool {
        self.message["method"] == method
    }

    fn result(&self, result: Value) -> Vec<u8> {
        json_answer(&json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result}).to_string())
    }

    fn error(&self, status: &str, id: Value, code: i64, message: &str) -> Vec<u8> {
        let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string();
        with_status(status, &body)
    }

    fn done(&self) -> Vec<u8> {
        self.result(json!({"content": [{"type": "text", "text": "done"}]}))
    }

    fn greeting(&self, name: &str) -> Vec<u8> {
        let about = json!({"name": name, "version": "1"});
        let capabilities = json!({"tools": {"listChanged": true}});
        let result = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": about});
        let answer = String::from_utf8(self.result(result)).expect("text");
        answer.replacen("\r\n", "\r\nMcp-Session-Id: s\r\n", 1).into_bytes()
    }
}

fn with_status(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A server with sessions that answers as `answer` says, and politely where it says nothing. It reports the methods that
/// it is asked for.
async fn server(
    answer: impl Fn(&Seen) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    let (sender, heard) = mpsc::unbounded_channel();
    let (answer, counts) = (Arc::new(answer), Arc::new(Mutex::new(std::collections::HashMap::new())));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (answer, counts, sender) = (answer.clone(), counts.clone(), sender.clone());
            tokio::spawn(async move {
                let mut input = Vec::new();
                while let Some((head, body)) = read_request(&mut stream, &mut input).await {
                    let message: Value = serde_json::from_str(&body).unwrap_or_default();
                    let verb = head.split(' ').next().unwrap_or_default().to_owned();
                    let method = message["method"].as_str().map_or(verb, str::to_owned);
                    let earlier = {
                        let mut counts = counts.lock().expect("no panic");
                        let count: &mut usize = counts.entry(method.clone()).or_default();
                        std::mem::replace(count, *count + 1)
                    };
                    let seen = Seen { head, message, earlier };
                    let bytes = answer(&seen).unwrap_or_else(|| match method.as_str() {
                        "initialize" => seen.greeting("odd"),
                        "tools/list" => {
                            seen.result(json!({"tools": [{"name": "go", "inputSchema": {"type": "object"}}]}))
                        }
                        "tools/call" => seen.done(),
                        "GET" => with_status("405 No", ""),
                        _ => with_status("202 Accepted", ""),
                    });
                    drop(sender.send(method));
                    let text = String::from_utf8_lossy(&bytes);
                    let (drips, is_stream) = (text.contains("X-Drips"), text.contains("text/event-stream"));
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                    while drips && stream.write_all(b" ").await.is_ok() {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    // A stream without a length ends with its connection.
                    if is_stream && seen.is("tools/call") {
                        return;
                    }
                }
            });
        }
    });
    (url, heard)
}

/// What a call ends with, and how often it was sent.
async fn call_of(
    answer: impl Fn(&Seen) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> (Result<String, (ErrorKind, String)>, usize) {
    let (url, mut heard) = server(answer).await;
    let mut family = Family::start(at(&url));
    let device = family.joined().await;
    let result = call(&device, "go", json!({})).await;
    let calls = std::iter::from_fn(|| heard.try_recv().ok()).filter(|method| method == "tools/call").count();
    (result.map(|outcome| outcome.joined_text()).map_err(|error| (error.kind, error.message)), calls)
}

#[tokio::test]
async fn no_words_of_an_error_make_a_call_come_twice() {
    for (status, code, message) in [
        ("200 OK", -32000, "door opened (1); camera login session has expired, invalid"),
        ("200 OK", -32001, "Session not found"),
        ("200 OK", -32600, "server not initialized"),
        ("200 OK", -32600, "duplicate request id in session"),
        ("400 Bad", -32000, "session is required and invalid"),
        ("422 Odd", -32000, "the session is unknown"),
        ("500 Oops", -32000, "no valid session"),
    ] {
        let (result, calls) = call_of(move |seen| {
            seen.is("tools/call").then(|| seen.error(status, seen.message["id"].clone(), code, message))
        })
        .await;
        let (kind, said) = result.expect_err(message);
        assert_eq!(calls, 1, "{status} {message}");
        assert_ne!(kind, ErrorKind::DeviceAway, "{said}");
        assert!(!said.contains("nothing was"), "{said}");
    }
    for status in ["400 Bad", "409 Odd", "410 Gone", "500 Oops", "503 Busy"] {
        let (result, calls) =
            call_of(move |seen| seen.is("tools/call").then(|| with_status(status, "session is invalid, not found")))
                .await;
        result.expect_err(status);
        assert_eq!(calls, 1, "{status}");
    }
}

#[tokio::test]
async fn a_refusal_that_proves_that_the_session_is_gone_begins_a_new_one() {
    for (status, id) in [("404 Gone", json!(null)), ("400 Bad", json!(null)), ("400 Bad", json!("server-error"))] {
        let (result, calls) = call_of({
            let id = id.clone();
            move |seen| {
                let is_first = seen.is("tools/call") && seen.earlier == 0;
                is_first.then(|| seen.error(status, id.clone(), -32000, "Bad Request: Server not initialized"))
            }
        })
        .await;
        assert_eq!((result.as_deref(), calls), (Ok("done"), 2), "{status} {id}");
        // A server that never takes it is asked twice, and no more.
        let (result, calls) =
            call_of(move |seen| seen.is("tools/call").then(|| seen.error(status, id.clone(), -32000, "x"))).await;
        let (kind, said) = result.expect_err(status);
        assert_eq!((kind, calls), (ErrorKind::DeviceAway, 2), "{said}");
        assert!(said.contains("nothing was done"), "{said}");
    }
}

#[tokio::test]
async fn a_redirect_repeats_a_call_only_where_it_was_not_handled_and_once() {
    let to = |status: &str, path: &str| {
        format!("HTTP/1.1 {status} Go\r\nLocation: {path}\r\nContent-Length: 0\r\n\r\n").into_bytes()
    };
    for status in ["301", "302", "303", "304"] {
        for path in ["/mcp", "/other", "http://192.0.2.1/"] {
            let (result, calls) = call_of(move |seen| seen.is("tools/call").then(|| to(status, path))).await;
            let (kind, said) = result.expect_err(status);
            assert_eq!((kind, calls), (ErrorKind::DeviceLost, 1), "{status} {path}: {said}");
        }
    }
    for status in ["307", "308"] {
        let (result, calls) = call_of(move |seen| seen.is("tools/call").then(|| to(status, "/mcp"))).await;
        assert_eq!((result.expect_err("a circle").0, calls), (ErrorKind::DeviceLost, 1));
        let next = move |seen: &Seen| to(status, &format!("/{}", seen.earlier));
        let (result, calls) = call_of(move |seen| seen.is("tools/call").then(|| next(seen))).await;
        assert_eq!((result.expect_err("no end").0, calls), (ErrorKind::DeviceLost, 2));
        let (result, calls) =
            call_of(move |seen| (seen.is("tools/call") && seen.earlier == 0).then(|| to(status, "/mcp/"))).await;
        assert_eq!((result.as_deref(), calls), (Ok("done"), 2));
    }
    // What changes nothing follows any redirect of the same server.
    let (result, calls) =
        call_of(move |seen| (seen.is("initialize") && seen.head.contains("/mcp ")).then(|| to("301", "/mcp/"))).await;
    assert_eq!((result.as_deref(), calls), (Ok("done"), 1));
}

#[tokio::test]
async fn a_call_is_not_sent_again_to_whoever_took_the_place_of_a_server() {
    for (name, part) in [("sinew", "another Sinew"), ("evil", "`evil` answers at this address now")] {
        let (result, calls) = call_of(move |seen| match seen.message["method"].as_str() {
            Some("initialize") if seen.earlier > 0 => Some(seen.greeting(name)),
            Some("tools/call") => Some(with_status("404 Gone", "")),
            _ => None,
        })
        .await;
        let (_, said) = result.expect_err("another server");
        assert!(said.contains(part) && said.contains("nothing was done"), "{said}");
        assert_eq!(calls, 1);
    }
}

#[tokio::test]
async fn events_that_are_no_answer_to_this_call_are_skipped() {
    let (result, _) = call_of(|seen| {
        seen.is("tools/call").then(|| {
            let answer = |id: Value, text: &str| {
                let result = json!({"content": [{"type": "text", "text": text}]});
                format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": id, "result": result}))
            };
            let foreign = "event: ping\ndata: {\"time\":1}\n\ndata: not JSON\n\ndata: 5\n\n";
            let others = answer(json!("uuid-1"), "no") + &answer(json!(5), "no") + &answer(json!(null), "no");
            events(&format!("{foreign}{others}{}", answer(seen.message["id"].clone(), "yes")))
        })
    })
    .await;
    assert_eq!(result.as_deref(), Ok("yes"));
    let (result, _) = call_of(|seen| seen.is("tools/call").then(|| events("data: not JSON\n\n"))).await;
    let (kind, said) = result.expect_err("no answer");
    assert!(kind == ErrorKind::BadAnswer && said.contains("not JSON"), "{said}");
}

#[tokio::test]
async fn an_event_with_nothing_but_an_id_says_where_to_go_on() {
    let id = Arc::new(Mutex::new(Value::Null));
    let (result, calls) = call_of(move |seen| match seen.head.starts_with("GET") {
        true if seen.head.contains("last-event-id: 7") => {
            let result = json!({"content": [{"type": "text", "text": "late"}]});
            let answer = json!({"jsonrpc": "2.0", "id": *id.lock().expect("no panic"), "result": result});
            Some(events(&format!("data: {answer}\n\n")))
        }
        true => None,
        false => seen.is("tools/call").then(|| {
            *id.lock().expect("no panic") = seen.message["id"].clone();
            events("retry: 20\nid: 7\n\n")
        }),
    })
    .await;
    assert_eq!((result.as_deref(), calls), (Ok("late"), 1));
}

#[tokio::test]
async fn a_body_that_drips_costs_its_caller_the_time_it_has_and_nobody_else() {
    let (url, _heard) = server(|seen| {
        let is_first = seen.is("tools/call") && seen.earlier == 0;
        is_first.then(|| {
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Drips: 1\r\nContent-Length: 99999\r\n\r\n".to_vec()
        })
    })
    .await;
    let mut family = Family::start(at(&url));
    let device = family.joined().await;
    assert!(tokio::time::timeout(Duration::from_millis(300), call(&device, "go", json!({}))).await.is_err());
    assert_eq!(call(&device, "go", json!({})).await.expect("an answer").joined_text(), "done");
    assert_eq!(family.stop().await, "closed");
}

#[tokio::test]
async fn looks_at_the_tools_leave_the_stream_of_a_server_open() {
    let (url, mut heard) = server(|seen| seen.head.starts_with("GET").then(|| events(": hi\n\n"))).await;
    let mut family = Family::start(ServerConfig { poll: Duration::from_secs(1), ..at(&url) });
    family.joined().await;
    let mut asked = Vec::new();
    while asked.iter().filter(|method| *method == "tools/list").count() < 4 {
        asked.push(soon(heard.recv()).await.expect("a request"));
    }
    assert_eq!(asked.iter().filter(|method| *method == "GET").count(), 1, "{asked:?}");
    family.stop().await;
}

/// The stream goes on in the middle of a line that came before the look.
#[tokio::test]
async fn what_a_stream_said_before_a_look_is_not_lost() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    let lists = Arc::new(tokio::sync::Notify::new());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let lists = lists.clone();
            tokio::spawn(async move {
                let mut input = Vec::new();
                while let Some((head, body)) = read_request(&mut stream, &mut input).await {
                    let seen = Seen { head, message: serde_json::from_str(&body).unwrap_or_default(), earlier: 0 };
                    let answer = match seen.message["method"].as_str() {
                        Some("initialize") => seen.greeting("odd"),
                        Some("tools/list") => {
                            lists.notify_one();
                            seen.result(json!({"tools": []}))
                        }
                        None if seen.head.starts_with("GET") => {
                            // Those of the handshake, and then the look that comes while half a line is there.
                            lists.notified().await;
                            drop(stream.write_all(&events("data: {\"jsonrpc\":\"2.0\",")).await);
                            lists.notified().await;
                            b"\"method\":\"notifications/whole\"}\n\n".to_vec()
                        }
                        _ => with_status("202 Accepted", ""),
                    };
                    if stream.write_all(&answer).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    let mut family = Family::start(ServerConfig { poll: Duration::from_secs(1), ..at(&url) });
    family.joined().await;
    let Some(DeviceEvent::Said(_, notice)) = soon(family.events.recv()).await else { panic!("nothing was said") };
    assert_eq!(notice.topic, "notifications/whole");
}

#[tokio::test]
async fn of_a_list_that_is_too_long_what_fits_is_kept() {
    for (described, expected) in [(1000, 400), (20_000, 209)] {
        let (url, _heard) = server(move |seen| {
            seen.is("tools/list").then(|| {
                let tool = |number: usize| json!({"name": format!("t{number}"), "description": "d".repeat(described)});
                seen.result(json!({"tools": (0..400).map(tool).collect::<Vec<_>>()}))
            })
        })
        .await;
        let names = tool_names(&Family::start(at(&url)).joined().await);
        assert!(names.len() == expected && names[0] == "t0", "{} tools of {described} bytes", names.len());
    }
}
