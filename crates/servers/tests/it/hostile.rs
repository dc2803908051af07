//! Servers that misbehave: what they do is bounded and reported, and nothing hangs.

use serde_json::json;
use sinew_servers::ServerConfig;
use sinew_tool::{Call, ErrorKind, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::support::{Family, args, at, call, soon, witnessed};

const GREETING: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"go","inputSchema":{"type":"object"}}]}}"#;

/// A server that is polite until a tool is called, and then writes what `answer` says, byte for byte. It reports the
/// messages it gets.
async fn server(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    let (sender, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let answer = std::sync::Arc::new(answer);
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(talk(stream, answer.clone(), sender.clone()));
        }
    });
    (url, heard)
}

async fn talk(
    mut stream: TcpStream,
    answer: std::sync::Arc<impl Fn(&str) -> Vec<u8>>,
    sender: mpsc::UnboundedSender<String>,
) {
    let mut input = Vec::new();
    loop {
        let Some(body) = read_body(&mut stream, &mut input).await else { return };
        drop(sender.send(body.clone()));
        let id = body.split("\"id\":").nth(1).and_then(|rest| rest.split([',', '}']).next()).unwrap_or("0").to_owned();
        let bytes = if body.contains("\"initialize\"") {
            json_answer(&GREETING.replace("ID", &id))
        } else if body.contains("\"tools/list\"") {
            json_answer(&LIST.replace("ID", &id))
        } else if body.contains("\"tools/call\"") {
            answer(&id)
        } else {
            b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_vec()
        };
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn read_body(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<String> {
    Some(read_request(stream, input).await?.1)
}

/// Head and body of the next request; `None` when the connection has ended.
pub async fn read_request(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<(String, String)> {
    loop {
        let text = String::from_utf8_lossy(input).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .to_ascii_lowercase()
                .split("content-length: ")
                .nth(1)
                .map_or(0, |rest| rest.split("\r\n").next().and_then(|length| length.parse().ok()).unwrap_or(0));
            if body.len() >= length {
                input.drain(..head.len() + 4 + length);
                return Some((head.to_owned(), body[..length].to_owned()));
            }
        }
        if stream.read_buf(input).await.ok()? == 0 {
            return None;
        }
    }
}

pub fn json_answer(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

pub fn events(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{body}").into_bytes()
}

async fn answer_to_call(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> sinew_tool::ToolError {
    let (url, _heard) = server(answer).await;
    let mut family = Family::start(at(&url));
    let device = family.joined().await;
    call(&device, "go", json!({})).await.expect_err("it misbehaves")
}

#[tokio::test]
async fn a_compressed_answer_is_refused_unread() {
    let error = answer_to_call(|_| {
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"
            .to_vec()
    });
    let error = error.await;
    assert_eq!(error.kind, ErrorKind::BadAnswer);
    assert!(error.message.contains("gzip"), "{error}");
}

#[tokio::test]
async fn an_endless_stream_ends_with_an_error() {
    let note = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n";
    let error = answer_to_call(move |_| events(&note.repeat(10_100))).await;
    assert_eq!(error.kind, ErrorKind::TooLarge);
    assert!(error.message.contains("10000 events"), "{error}");
}

#[tokio::test]
async fn a_line_without_end_ends_with_an_error() {
    let error = answer_to_call(|_| events(&format!("data: {}", "x".repeat((16 << 20) + 10)))).await;
    assert_eq!(error.kind, ErrorKind::TooLarge);
}

#[tokio::test]
async fn a_redirect_to_another_host_is_refused_and_one_to_the_same_is_followed() {
    let error =
        answer_to_call(|_| b"HTTP/1.1 307 Go\r\nLocation: http://192.0.2.1/mcp\r\nContent-Length: 0\r\n\r\n".to_vec());
    let error = error.await;
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    assert!(error.message.contains("192.0.2.1") && error.message.contains("not followed"), "{error}");
    let error = answer_to_call(|_| b"HTTP/1.1 307 Go\r\nLocation: /mcp/\r\nContent-Length: 0\r\n\r\n".to_vec()).await;
    assert!(error.kind == ErrorKind::DeviceLost && error.message.contains("circle"), "{error}");
}

#[tokio::test]
async fn a_call_that_breaks_off_may_have_had_its_effect_and_says_so() {
    let error = answer_to_call(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{".to_vec());
    // The server keeps the connection open; the caller's patience decides.
    assert!(tokio::time::timeout(std::time::Duration::from_millis(300), error).await.is_err());
    let error = answer_to_call(|_| b"nonsense\r\n\r\n".to_vec()).await;
    assert_eq!(error.kind, ErrorKind::DeviceLost, "{error}");
}

#[tokio::test]
async fn answers_that_are_none_are_named() {
    for (body, part) in
        [("", "cannot be read"), ("[]", "no answer"), ("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}", "no answer")]
    {
        let error = answer_to_call(move |_| json_answer(body)).await;
        assert!(error.kind == ErrorKind::BadAnswer, "{body}: {error}");
        assert!(error.message.contains(part) || error.message.contains("without"), "{body}: {error}");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server() {
    let (url, mut heard) = server(|_| events(": wait\n\n")).await;
    let mut family = Family::start(at(&url));
    let device = family.joined().await;
    let calling = tokio::spawn(async move { device.call(Call::new("go", args(json!({})))).await });
    let id = loop {
        let message = soon(heard.recv()).await.expect("a message");
        if message.contains("tools/call") {
            let message: serde_json::Value = serde_json::from_str(&message).expect("JSON");
            break message["id"].clone();
        }
    };
    calling.abort();
    loop {
        let message = soon(heard.recv()).await.expect("a message");
        if message.contains("notifications/cancelled") {
            let message: serde_json::Value = serde_json::from_str(&message).expect("JSON");
            assert_eq!(message["params"]["requestId"], id);
            return;
        }
    }
}

#[tokio::test]
async fn a_question_of_a_server_reaches_the_caller_and_its_answer_the_server() {
    let (url, mut heard) = server(|id| {
        let question = r#"{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object"}}}"#;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"done"}}]}}}}"#);
        events(&format!("data: {question}\n\ndata: {answer}\n\n"))
    })
    .await;
    let mut family = Family::start(at(&url));
    let device = family.joined().await;
    let (call, witness) = witnessed("go", json!({}));
    assert_eq!(soon(device.call(call)).await.expect("an answer").joined_text(), "done");
    assert!(witness.0.lock().expect("no panic")[0].contains("Sure?"));
    let answered = loop {
        let message = soon(heard.recv()).await.expect("a message");
        if message.contains("\"q1\"") {
            break message;
        }
    };
    assert!(answered.contains("\"accept\""), "{answered}");
}

#[tokio::test]
async fn another_gateway_is_recognised_and_a_wrong_token_named() {
    for (status, body, part) in [
        ("200 OK", GREETING.replace("odd", "sinew"), "another Sinew"),
        ("401 Unauthorized", String::new(), "set `token`"),
        ("405 Nope", String::new(), "check the `url`"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
        let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut input = Vec::new();
                while let Some(asked) = read_body(&mut stream, &mut input).await {
                    let message: serde_json::Value = serde_json::from_str(&asked).unwrap_or_default();
                    let body = body.replace("ID", &message["id"].to_string());
                    let head = format!(
                        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                        body.len()
                    );
                    if stream.write_all(format!("{head}{body}").as_bytes()).await.is_err() {
                        break;
                    }
                }
            }
        });
        let mut family = Family::start(ServerConfig { token: Some("secret".to_owned()), ..at(&url) });
        let shown = family.joined().await.info();
        let Status::Limited { remedy, .. } = &shown.status else { panic!("{:?}", shown.status) };
        assert!(remedy.contains(part) && !remedy.contains("secret"), "{remedy}");
    }
}

/// A server that reports changes of its tools, and leaves every request unanswered that `hangs` picks. Its list has
/// another tool from the second time on.
async fn half_dead(hangs: fn(&str, &str) -> bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    let lists = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let lists = lists.clone();
            tokio::spawn(async move {
                let mut input = Vec::new();
                while let Some((head, body)) = read_request(&mut stream, &mut input).await {
                    if hangs(&head, &body) {
                        return std::future::pending::<()>().await;
                    }
                    let message: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
                    let id = message["id"].to_string();
                    let answer = match message["method"].as_str() {
                        Some("initialize") => json_answer(
                            &GREETING
                                .replace("{\"tools\":{}}", "{\"tools\":{\"listChanged\":true}}")
                                .replace("ID", &id),
                        ),
                        Some("tools/list") => {
                            let is_first = lists.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
                            let list = if is_first { LIST.to_owned() } else { LIST.replace("\"go\"", "\"stop\"") };
                            json_answer(&list.replace("ID", &id))
                        }
                        None if head.starts_with("GET") => {
                            events("data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n")
                        }
                        _ => b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_vec(),
                    };
                    if stream.write_all(&answer).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

#[tokio::test]
async fn a_stream_that_never_opens_and_an_answer_that_is_never_taken_stop_neither_looks_nor_the_end() {
    let hanging: [fn(&str, &str) -> bool; 2] =
        [|head, _| head.starts_with("GET"), |_, body| body.contains("\"result\":{}")];
    for hangs in hanging {
        let url = half_dead(hangs).await;
        let mut family = Family::start(ServerConfig { poll: std::time::Duration::from_secs(1), ..at(&url) });
        family.joined().await;
        assert_eq!(crate::support::tool_names(&family.changed().await), ["stop"]);
        assert_eq!(family.stop().await, "closed");
    }
}
