//! A small HTTP and MCP client that lets the tests control every byte.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

pub const MODERN: &str = "2026-07-28";
pub const LEGACY: &str = "2025-11-25";

pub struct Client {
    address: SocketAddr,
    token: Option<String>,
    pub session: Option<String>,
    pub path: String,
    /// The capabilities that a client of 2026-07-28 declares.
    pub capabilities: Value,
    next: AtomicI64,
    /// The revision for sessions.
    pub revision: &'static str,
}

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// The last JSON-RPC message of an answer, whether JSON or an event stream.
    pub fn message(&self) -> Value {
        if self.header("content-type").starts_with("text/event-stream") {
            return events(&self.body).pop_back().unwrap();
        }
        self.json()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// An answer that is still being received.
pub struct Stream {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    rest: Vec<u8>,
    ready: VecDeque<Value>,
    /// Whether an event had no message in it.
    pub was_primed: bool,
}

impl Stream {
    /// The next message, or `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let frame = self.body.frame().await?.ok()?;
            self.rest.extend_from_slice(frame.data_ref()?);
            while let Some(end) = self.rest.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.rest.drain(..end + 2).collect();
                let found = events(&event);
                // A comment has no line of data at all.
                self.was_primed |= found.is_empty() && String::from_utf8_lossy(&event).contains("data:");
                self.ready.extend(found);
            }
        }
    }

    pub async fn find(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await.unwrap_or_else(|| panic!("the stream ended before {method}"));
            if message["method"] == method {
                return message;
            }
        }
    }
}

fn events(text: &[u8]) -> VecDeque<Value> {
    let text = String::from_utf8_lossy(text);
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
}

impl Client {
    pub fn new(address: SocketAddr, token: &str) -> Client {
        Client {
            address,
            revision: LEGACY,
            token: Some(token.to_owned()),
            session: None,
            path: "/mcp".to_owned(),
            capabilities: json!({}),
            next: AtomicI64::new(1),
        }
    }

    pub fn with_token(mut self, token: Option<&str>) -> Client {
        self.token = token.map(str::to_owned);
        self
    }

    pub fn with_capabilities(mut self, capabilities: Value) -> Client {
        self.capabilities = capabilities;
        self
    }

    pub async fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Stream {
        let socket = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request = request.header("host", self.address.to_string());
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = sender.send_request(request.body(Full::new(body.into())).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        Stream {
            status: parts.status,
            headers: parts.headers,
            body,
            rest: Vec::new(),
            ready: VecDeque::new(),
            was_primed: false,
        }
    }

    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Reply {
        let Stream { status, headers, body, .. } = self.open(method, path, headers, body).await;
        Reply { status, headers, body: body.collect().await.unwrap().to_bytes() }
    }

    /// Sends the head of a request and a part of its body, waits for something, and closes the connection.
    pub async fn send_part(&self, method: &str, path: &str, length: usize, part: &[u8], until: impl Future) {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let (address, token) = (self.address, self.token.clone().unwrap_or_default());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-length: {length}\r\n\r\n"
        );
        socket.write_all(&[head.as_bytes(), part].concat()).await.unwrap();
        until.await;
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.send("POST", path, &[("content-type", "application/json")], body.to_string()).await
    }

    /// One request of a client of 2026-07-28.
    pub async fn modern(&self, method: &str, params: Value) -> Reply {
        let (headers, body) = self.modern_parts(method, params);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.send("POST", &self.path, &headers, body).await
    }

    pub async fn modern_stream(&self, method: &str, params: Value) -> Stream {
        let (headers, body) = self.modern_parts(method, params);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.open("POST", &self.path, &headers, body).await
    }

    fn modern_parts(&self, method: &str, mut params: Value) -> (Vec<(&'static str, String)>, String) {
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
            ("mcp-protocol-version", MODERN.to_owned()),
            ("mcp-method", method.to_owned()),
        ];
        if let Some(name) = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str) {
            headers.push(("mcp-name", name.to_owned()));
        }
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
        meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        (headers, json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
    }

    /// Starts a session as older clients do.
    pub async fn initialize(&mut self, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": self.revision,
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let reply = self.legacy("initialize", params).await;
        self.session = Some(reply.header("mcp-session-id").to_owned());
        let noted = self.notify("notifications/initialized", json!({})).await;
        assert_eq!(noted.status, 202);
        reply.message()["result"].clone()
    }

    pub async fn legacy(&self, method: &str, params: Value) -> Reply {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.legacy_send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await
    }

    pub async fn notify(&self, method: &str, params: Value) -> Reply {
        self.legacy_send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    pub async fn legacy_send(&self, message: Value) -> Reply {
        let Stream { status, headers, body, .. } = self.legacy_stream(message).await;
        Reply { status, headers, body: body.collect().await.unwrap().to_bytes() }
    }

    pub async fn legacy_stream(&self, message: Value) -> Stream {
        let mut headers = vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        if let Some(session) = &self.session {
            headers.extend([("mcp-session-id", session.as_str()), ("mcp-protocol-version", self.revision)]);
        }
        self.open("POST", &self.path, &headers, message.to_string()).await
    }

    /// The stream for notifications of older revisions.
    pub async fn listen(&self) -> Stream {
        let session = self.session.as_deref().unwrap_or_default();
        let headers =
            [("accept", "text/event-stream"), ("mcp-session-id", session), ("mcp-protocol-version", self.revision)];
        self.open("GET", &self.path, &headers, "").await
    }
}
