//! MCP as lines, over a pipe and over an upgraded connection.

use serde_json::{Value, json};
use sinew_front::{Front, FrontSettings, stdio};
use sinew_gateway::{Principal, Role, Shape};
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::server::TestServer;

pub struct Pipe {
    pub reader: BufReader<ReadHalf<DuplexStream>>,
    pub writer: WriteHalf<DuplexStream>,
    pub server: JoinHandle<std::io::Result<()>>,
    shutdown: CancellationToken,
}

pub fn pipe(server: &TestServer) -> Pipe {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    let front = Front::new(server.gateway.clone(), FrontSettings::default());
    let shutdown = CancellationToken::new();
    let who = Principal::new("local", Role::Client);
    let server = tokio::spawn(stdio::run(front, who, Shape::Folded, reader, writer, shutdown.clone()));
    let (reader, writer) = tokio::io::split(ours);
    Pipe { reader: BufReader::new(reader), writer, server, shutdown }
}

pub async fn say<W: AsyncWrite + Unpin>(writer: &mut W, message: &str) {
    writer.write_all(message.as_bytes()).await.unwrap();
    writer.write_all(b"\n").await.unwrap();
}

pub async fn hear<R: AsyncBufReadExt + Unpin>(reader: &mut R) -> Value {
    let mut line = String::new();
    assert_ne!(reader.read_line(&mut line).await.unwrap(), 0, "the pipe ended");
    serde_json::from_str(&line).unwrap()
}

pub fn initialize() -> String {
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()
}

pub fn call(id: i64, tool: &str, arguments: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        .to_string()
}

#[tokio::test]
async fn an_older_client_is_served_over_a_pipe_and_notified_of_changes() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize()).await;
    assert_eq!(hear(&mut pipe.reader).await["result"]["protocolVersion"], "2025-06-18");
    say(&mut pipe.writer, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    say(&mut pipe.writer, &call(1, "echo", json!({"text": "hi"}))).await;
    assert_eq!(hear(&mut pipe.reader).await["result"]["content"][0]["text"], "hi");
    server.join("second", vec![sinew_tool::Tool::new("blink", "Blinks", json!({"type": "object"}))]);
    loop {
        if hear(&mut pipe.reader).await["method"] == "notifications/tools/list_changed" {
            break;
        }
    }
    pipe.writer.shutdown().await.unwrap();
    pipe.server.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_modern_client_is_served_over_a_pipe() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (id, method) in [(1, "server/discover"), (2, "tools/list")] {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"_meta": meta}});
        say(&mut pipe.writer, &request.to_string()).await;
        let answer = hear(&mut pipe.reader).await;
        assert_eq!((&answer["id"], &answer["result"]["resultType"]), (&json!(id), &json!("complete")), "{answer}");
    }
}

#[tokio::test]
async fn bad_lines_are_answered_and_the_connection_continues() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize()).await;
    hear(&mut pipe.reader).await;
    let huge = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(5 << 20));
    let deep = "[".repeat(10_000);
    let nobody = Value::Null;
    for (line, code, id) in [
        ("{", -32700, &nobody),
        ("[]", -32600, &nobody),
        ("5", -32600, &nobody),
        (deep.as_str(), -32700, &nobody),
        (huge.as_str(), -32602, &json!(1)),
    ] {
        say(&mut pipe.writer, line).await;
        let answer = hear(&mut pipe.reader).await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), id), "{answer}");
    }
    pipe.writer.write_all(b"\xff\xfe\n\n  \r\n").await.unwrap();
    assert_eq!(hear(&mut pipe.reader).await["error"]["code"], -32700);
    say(&mut pipe.writer, &call(1, "echo", json!({"text": "still here"}))).await;
    assert_eq!(hear(&mut pipe.reader).await["result"]["content"][0]["text"], "still here");
}

/// A pipe with one open call, of the id 1.
async fn waiting_pipe(server: &TestServer) -> Pipe {
    let mut pipe = pipe(server);
    say(&mut pipe.writer, &initialize()).await;
    hear(&mut pipe.reader).await;
    say(&mut pipe.writer, &call(1, "wait", json!({}))).await;
    assert_eq!(server.signal().await, "started");
    pipe
}

#[tokio::test]
async fn a_request_with_an_id_that_is_still_open_is_refused_and_the_first_is_answered() {
    let server = TestServer::new().await;
    let mut pipe = waiting_pipe(&server).await;
    say(&mut pipe.writer, &call(1, "echo", json!({"text": "again"}))).await;
    let refused = hear(&mut pipe.reader).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32600)), "{refused}");
    server.go_on();
    assert_eq!(hear(&mut pipe.reader).await["result"]["content"][0]["text"], "waited");
    say(&mut pipe.writer, &call(1, "echo", json!({"text": "free again"}))).await;
    assert_eq!(hear(&mut pipe.reader).await["result"]["content"][0]["text"], "free again");
}

#[tokio::test]
async fn an_open_call_ends_before_a_stopped_connection() {
    let server = TestServer::new().await;
    let mut pipe = waiting_pipe(&server).await;
    pipe.shutdown.cancel();
    server.go_on();
    assert_eq!(hear(&mut pipe.reader).await["result"]["content"][0]["text"], "waited");
    pipe.server.await.unwrap().unwrap();
}

/// An upgraded connection.
pub async fn upgraded(server: &TestServer, token: &str) -> BufReader<TcpStream> {
    let address = server.address;
    let mut socket = BufReader::new(TcpStream::connect(address).await.unwrap());
    let request = format!(
        "GET /mcp/stream?tools=unfolded HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Connection: Upgrade\r\nUpgrade: sinew-mcp\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(socket.read_line(&mut head).await.unwrap(), 0, "{head}");
    }
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    say(&mut socket, &initialize()).await;
    assert_eq!(hear(&mut socket).await["result"]["serverInfo"]["name"], "sinew");
    socket
}

#[tokio::test]
async fn an_upgraded_connection_is_served_like_a_pipe() {
    let server = TestServer::new().await;
    let mut socket = upgraded(&server, &server.token).await;
    say(&mut socket, &call(1, "lamp__echo", json!({"text": "over"}))).await;
    assert_eq!(hear(&mut socket).await["result"]["content"][0]["text"], "over");
    server.stop().await;
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest).await;
}

#[tokio::test]
async fn a_client_that_disconnects_does_not_affect_others() {
    let server = TestServer::new().await;
    let (mut first, mut second) = (upgraded(&server, &server.token).await, upgraded(&server, &server.token).await);
    first.shutdown().await.unwrap();
    assert_eq!(first.read_to_end(&mut Vec::new()).await.unwrap(), 0);
    say(&mut second, &call(1, "lamp__echo", json!({"text": "still here"}))).await;
    assert_eq!(hear(&mut second).await["result"]["content"][0]["text"], "still here");
}
