//! Servers that close their connections, and streams that are too much.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_servers::ServerConfig;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::hostile::{events, read_request};
use crate::support::{Family, at, call, soon};

/// How a server shows that its answer is over.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// It says `Connection: close`.
    Announced,
    /// It closes the connection and says nothing, as small servers do.
    Silent,
    /// Its answer has no length: the end of the connection is the end of the answer.
    WithoutLength,
    /// It speaks HTTP/1.0.
    Old,
}

impl Ending {
    fn answer(self, message: &Value) -> Vec<u8> {
        let result = match message["method"].as_str() {
            Some("initialize") => {
                json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "small"}})
            }
            Some("tools/list") => json!({"tools": [{"name": "go", "inputSchema": {"type": "object"}}]}),
            Some("tools/call") => json!({"content": [{"type": "text", "text": "done"}]}),
            _ => return b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_vec(),
        };
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        let (first, last) = match self {
            Ending::Announced => {
                ("HTTP/1.1 200 OK", format!("Connection: close\r\nContent-Length: {}\r\n", body.len()))
            }
            Ending::Silent => ("HTTP/1.1 200 OK", format!("Content-Length: {}\r\n", body.len())),
            Ending::WithoutLength => ("HTTP/1.1 200 OK", String::new()),
            Ending::Old => ("HTTP/1.0 200 OK", format!("Content-Length: {}\r\n", body.len())),
        };
        format!("{first}\r\nContent-Type: application/json\r\n{last}\r\n{body}").into_bytes()
    }
}

async fn serve_one(mut stream: TcpStream, ending: Ending, calls: Arc<AtomicUsize>) {
    let mut input = Vec::new();
    let Some((head, body)) = read_request(&mut stream, &mut input).await else { return };
    if head.starts_with("GET") {
        drop(stream.write_all(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n").await);
        return;
    }
    let message: Value = serde_json::from_str(&body).unwrap_or_default();
    if message["method"] == "tools/call" {
        calls.fetch_add(1, Ordering::Relaxed);
    }
    drop(stream.write_all(&ending.answer(&message)).await);
    drop(stream.shutdown().await);
}

#[tokio::test]
async fn a_server_that_closes_the_connection_after_each_answer_is_called_as_often_as_one_likes() {
    for ending in [Ending::Announced, Ending::Silent, Ending::WithoutLength, Ending::Old] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
        let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_one(stream, ending, counted.clone()));
            }
        });
        let mut family = Family::start(at(&url));
        let device = family.joined().await;
        for number in 0..50 {
            let answer = call(&device, "go", json!({})).await;
            let answer = answer.unwrap_or_else(|error| panic!("{ending:?}, call {number}: {error:?}"));
            assert_eq!(answer.joined_text(), "done");
        }
        assert_eq!(calls.load(Ordering::Relaxed), 50, "{ending:?}: none was sent twice");
        assert_eq!(family.stop().await, "closed");
    }
}

/// Sends without a pause until we close the connection; says how many bytes that were.
async fn flood(mut stream: TcpStream, piece: &'static [u8], closed: mpsc::UnboundedSender<usize>) {
    let piece = piece.repeat(64);
    let mut sent = 0;
    while stream.write_all(&piece).await.is_ok() {
        sent += piece.len();
    }
    let _ = closed.send(sent);
}

#[tokio::test]
async fn a_stream_that_never_rests_is_closed_and_the_server_stays() {
    const COMMENT: &[u8] = b": nothing but a sign of life, again and again\n";
    const EVENT: &[u8] = b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n";
    for piece in [COMMENT, EVENT] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
        let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
        let (sender, mut closed) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let sender = sender.clone();
                tokio::spawn(async move {
                    let mut input = Vec::new();
                    while let Some((head, body)) = read_request(&mut stream, &mut input).await {
                        if head.starts_with("GET") {
                            drop(stream.write_all(&events("")).await);
                            return flood(stream, piece, sender).await;
                        }
                        let message: Value = serde_json::from_str(&body).unwrap_or_default();
                        let answer = String::from_utf8(Ending::Silent.answer(&message)).expect("text");
                        let answer = answer
                            .replace("\"capabilities\":{}", "\"capabilities\":{\"tools\":{\"listChanged\":true}}");
                        let length = answer.split_once("\r\n\r\n").map_or(0, |(_, body)| body.len());
                        let answer = answer.lines().map(|line| match line.starts_with("Content-Length: ") {
                            true => format!("Content-Length: {length}"),
                            false => line.to_owned(),
                        });
                        let answer = answer.collect::<Vec<_>>().join("\r\n");
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        let mut family = Family::start(ServerConfig { poll: Duration::from_secs(3600), ..at(&url) });
        let device = family.joined().await;
        let sent = soon(closed.recv()).await.expect("the stream is closed");
        assert!(sent < 64 << 20, "{sent} bytes");
        assert_eq!(call(&device, "go", json!({})).await.expect("an answer").joined_text(), "done");
        family.shutdown.cancel();
    }
}
