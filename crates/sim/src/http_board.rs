//! A virtual board that is an MCP server over HTTP: a kiln, with the manners of four real stacks.
//!
//! The bytes are written by hand, because the manners are in the bytes: reason phrases, chunks, closed connections.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sinew_tool::{Value, json};
use sinew_wire::device::{Board, Property, Reply, ToolSpec};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Whose manners a board has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpBoardStyle {
    /// Espressif's SDK: sessions, nothing before `initialized`, no request id twice, calls answered as a stream.
    Espressif,
    /// Zephyr's subsystem: no reason phrase, always chunked, a slow tool is to be polled.
    Zephyr,
    /// Libraries for Arduino: wants the revision as a header, no GET, closes the connection after each answer.
    Arduino,
    /// Libraries for MicroPython: HTTP/1.0, an answer ends with its connection.
    MicroPython,
}

impl FromStr for HttpBoardStyle {
    type Err = String;

    fn from_str(text: &str) -> Result<HttpBoardStyle, String> {
        match text {
            "espressif" => Ok(HttpBoardStyle::Espressif),
            "zephyr" => Ok(HttpBoardStyle::Zephyr),
            "arduino" => Ok(HttpBoardStyle::Arduino),
            "micropython" => Ok(HttpBoardStyle::MicroPython),
            _ => Err(format!("`{text}` is not one of espressif, zephyr, arduino, micropython")),
        }
    }
}

/// The ids that Espressif's engine remembers.
const REMEMBERED_IDS: usize = 64;
/// Requests of a gateway are a few hundred bytes.
const MAX_REQUEST_BYTES: usize = 64 << 10;
/// How often Zephyr's slow tool is asked before it has its answer.
const POLLS: u32 = 2;

/// A board that listens.
#[derive(Clone)]
pub struct HttpBoard {
    style: HttpBoardStyle,
    address: SocketAddr,
    state: Arc<Mutex<KilnState>>,
}

struct KilnState {
    board: Board,
    /// The current session; a restart forgets it.
    session: Option<String>,
    sessions: u64,
    is_initialized: bool,
    seen_ids: VecDeque<String>,
    /// The answer of a slow tool, and how often it was asked for.
    slow: Option<(String, u32)>,
    requests: u64,
}

struct HttpRequest {
    method: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

/// An answer before it is written.
struct HttpReply {
    status: u16,
    kind: &'static str,
    session: Option<String>,
    body: String,
}

impl HttpReply {
    fn new(status: u16, kind: &'static str, body: impl Into<String>) -> HttpReply {
        HttpReply { status, kind, session: None, body: body.into() }
    }

    fn json(body: impl Into<String>) -> HttpReply {
        HttpReply::new(200, "application/json", body)
    }
}

impl HttpBoard {
    /// Listens and serves in tasks of its own until `shutdown`.
    pub async fn open(style: HttpBoardStyle, listen: SocketAddr, shutdown: CancellationToken) -> io::Result<HttpBoard> {
        let listener = TcpListener::bind(listen).await?;
        let state = KilnState {
            board: kiln(),
            session: None,
            sessions: 0,
            is_initialized: false,
            seen_ids: VecDeque::new(),
            slow: None,
            requests: 0,
        };
        let board = HttpBoard { style, address: listener.local_addr()?, state: Arc::new(Mutex::new(state)) };
        tokio::spawn(board.clone().serve(listener, shutdown));
        Ok(board)
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Forgets everything, as after a power cut.
    pub fn restart(&self) {
        let mut state = self.state();
        (state.session, state.is_initialized) = (None, false);
        state.seen_ids.clear();
    }

    /// Learns another tool.
    pub fn grow(&self) {
        self.state().board.add(ToolSpec::new("cool_down", "Cool down slowly"), |_| Ok(Reply::from(true)));
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.state().requests
    }

    fn state(&self) -> MutexGuard<'_, KilnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self, listener: TcpListener, shutdown: CancellationToken) {
        let connections = TaskTracker::new();
        while let Some(Ok((stream, _))) = shutdown.run_until_cancelled(listener.accept()).await {
            let (board, end) = (self.clone(), shutdown.clone());
            connections.spawn(async move {
                // A client that goes away in the middle is no matter.
                let _ = end.run_until_cancelled(board.talk(stream)).await;
            });
        }
    }

    async fn talk(&self, stream: TcpStream) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        while let Some(request) = read_request(&mut stream).await? {
            let reply = self.answer(&request);
            let bytes = self.write(&reply);
            stream.write_all(&bytes).await?;
            if matches!(self.style, HttpBoardStyle::Arduino | HttpBoardStyle::MicroPython) {
                return stream.shutdown().await;
            }
        }
        Ok(())
    }

    fn write(&self, reply: &HttpReply) -> Vec<u8> {
        let HttpReply { status, kind, session, body } = reply;
        let session = session.as_ref().map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        let text = match self.style {
            HttpBoardStyle::Zephyr => {
                let chunk = if body.is_empty() { String::new() } else { format!("{:x}\r\n{body}\r\n", body.len()) };
                format!(
                    "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n{session}\r\n{chunk}0\r\n\r\n"
                )
            }
            HttpBoardStyle::MicroPython => {
                format!("HTTP/1.0 {status} OK\r\nContent-Type: {kind}\r\n{session}\r\n{body}")
            }
            HttpBoardStyle::Espressif | HttpBoardStyle::Arduino => {
                let length = body.len();
                format!(
                    "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{session}\r\n{body}"
                )
            }
        };
        text.into_bytes()
    }

    fn answer(&self, request: &HttpRequest) -> HttpReply {
        let mut state = self.state();
        state.requests += 1;
        let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
            return match (self.style, request.method.as_str()) {
                (HttpBoardStyle::Zephyr, "GET") => state.poll_slow(request),
                (HttpBoardStyle::Espressif, "DELETE") => HttpReply::new(200, "text/plain", ""),
                _ => HttpReply::new(405, "text/plain", ""),
            };
        };
        if message["method"].as_str().is_none_or(|method| method.starts_with("notifications/")) {
            state.is_initialized |= message["method"] == "notifications/initialized";
            return HttpReply::new(202, "text/plain", "");
        }
        match self.style {
            HttpBoardStyle::Espressif => state.as_espressif(request, message),
            HttpBoardStyle::Zephyr => state.as_zephyr(message),
            HttpBoardStyle::Arduino => state.as_arduino(request, message),
            HttpBoardStyle::MicroPython => HttpReply::json(state.respond(message, "2025-03-26")),
        }
    }
}

impl KilnState {
    /// The answer of the board itself, as a revision of MCP has it.
    fn respond(&mut self, message: Value, revision: &str) -> String {
        let is_greeting = message["method"] == "initialize";
        let answer = self.board.handle_rpc(message).unwrap_or_default();
        if is_greeting { answer.replace("2024-11-05", revision) } else { answer }
    }

    fn as_espressif(&mut self, request: &HttpRequest, message: Value) -> HttpReply {
        let id = message["id"].to_string();
        let refuse = |code: i64, why: &str| {
            let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": why}});
            HttpReply::json(error.to_string())
        };
        if message["method"] == "initialize" {
            self.sessions += 1;
            self.session = Some(format!("kiln-{}", self.sessions));
            (self.is_initialized, self.seen_ids) = (false, VecDeque::from([id]));
            return HttpReply { session: self.session.clone(), ..HttpReply::json(self.respond(message, "2025-06-18")) };
        }
        if self.session.is_none() || request.headers.get("mcp-session-id") != self.session.as_ref() {
            return HttpReply::new(404, "text/plain", "no such session");
        }
        if !self.is_initialized {
            return refuse(-32600, "server not initialized");
        }
        if self.seen_ids.contains(&id) {
            return refuse(-32600, "duplicate request id in session");
        }
        self.seen_ids.push_back(id);
        self.seen_ids.truncate(REMEMBERED_IDS);
        if message["method"] != "tools/call" {
            return HttpReply::json(self.respond(message, ""));
        }
        let token = &message["params"]["_meta"]["progressToken"];
        let mut events = String::new();
        if message["params"]["name"] == "warm_up" && !token.is_null() {
            for step in [1, 2] {
                let params = json!({"progressToken": token, "progress": step, "total": 2, "message": "heating"});
                let note = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
                events.push_str(&format!("event: message\r\ndata: {note}\r\n\r\n"));
            }
        }
        let answer = self.respond(message, "");
        HttpReply::new(200, "text/event-stream", format!("{events}event: message\r\ndata: {answer}\r\n\r\n"))
    }

    fn as_zephyr(&mut self, message: Value) -> HttpReply {
        let is_slow = message["method"] == "tools/call" && message["params"]["name"] == "warm_up";
        let answer = self.respond(message, "2025-11-25");
        // It has neither a sentence of its own for a missing tool nor errors for arguments.
        let mut value: Value = serde_json::from_str(&answer).unwrap_or_default();
        if value["error"]["code"] == -32601 {
            value["error"]["message"] = json!("Resource not found");
        } else if value["error"]["code"] == -32602 {
            let text = value["error"]["message"].take();
            let content = json!([{"type": "text", "text": text}]);
            value = json!({"jsonrpc": "2.0", "id": value["id"], "result": {"content": content, "isError": false}});
        }
        if is_slow {
            self.slow = Some((value.to_string(), 0));
            return HttpReply::new(200, "text/event-stream", "id: 1\ndata: \n\n");
        }
        HttpReply::json(value.to_string())
    }

    fn poll_slow(&mut self, request: &HttpRequest) -> HttpReply {
        match (&mut self.slow, request.headers.get("last-event-id").map(String::as_str)) {
            (Some((answer, asked)), Some("1")) => {
                *asked += 1;
                if *asked <= POLLS {
                    return HttpReply::new(200, "text/event-stream", "id: 1\nretry: 20\ndata: \n\n");
                }
                let reply = HttpReply::new(200, "text/event-stream", format!("id: 2\ndata: {answer}\n\n"));
                self.slow = None;
                reply
            }
            _ => HttpReply::new(405, "text/plain", ""),
        }
    }

    fn as_arduino(&mut self, request: &HttpRequest, message: Value) -> HttpReply {
        let is_greeting = message["method"] == "initialize";
        if !is_greeting && !request.headers.contains_key("mcp-protocol-version") {
            return HttpReply::new(400, "text/plain", "MCP-Protocol-Version header is missing");
        }
        let wished = message["params"]["protocolVersion"].as_str().unwrap_or("2025-06-18").to_owned();
        HttpReply::json(self.respond(message, &wished))
    }
}

fn kiln() -> Board {
    let set = ToolSpec::new("set_target", "Set the temperature that the kiln heats to, in degrees Celsius")
        .with(Property::integer("celsius", 0..=1300));
    Board::new("kiln", "1.2.0")
        .tool(ToolSpec::new("temperature", "Read the temperature in degrees Celsius"), |_| Ok(Reply::from(21)))
        .tool(set, |arguments| Ok(Reply::from(arguments.integer("celsius")?)))
        .tool(ToolSpec::new("warm_up", "Heat up and report when it is done; takes a while"), |_| Ok(Reply::from(true)))
}

/// The next request on a connection; `None` at its end.
async fn read_request(stream: &mut BufReader<TcpStream>) -> io::Result<Option<HttpRequest>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if (&mut *stream).take(MAX_REQUEST_BYTES as u64).read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
        if lines.len() > 100 {
            return Ok(None);
        }
    }
    let mut lines = lines.into_iter();
    let method = lines.next().unwrap_or_default().split(' ').next().unwrap_or_default().to_owned();
    let header = |line: String| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: HashMap<String, String> = lines.filter_map(header).collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; usize::min(length, MAX_REQUEST_BYTES)];
    stream.read_exact(&mut body).await?;
    Ok(Some(HttpRequest { method, headers, body }))
}
