//! A conversation with an MCP server over Streamable HTTP, as short as a list of tools needs it: both eras of the
//! protocol, servers that close every connection, and those that redirect `/mcp` to `/mcp/`.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use crate::client::GatewayTarget;
use crate::error::{CliError, CliErrorKind};

/// The revision that all servers with `initialize` support.
const LEGACY_REVISION: &str = "2025-06-18";
/// The revision without `initialize`.
const MODERN_REVISION: &str = "2026-07-28";
/// A server that has not answered by then is considered stuck.
const PATIENCE: Duration = Duration::from_secs(30);
/// Larger than any tool list that a model could read, all pages together.
const MAX_ANSWER: usize = 16 << 20;
/// More pages mean that the server repeats itself.
const MAX_PAGES: usize = 100;
/// `/mcp` to `/mcp/`, and perhaps one more.
const MAX_REDIRECTS: usize = 3;

pub struct ServerConnection {
    target: GatewayTarget,
    /// Open until the server closes it.
    sender: Option<SendRequest<Full<Bytes>>>,
    /// Where a redirect led.
    path: String,
    session: Option<String>,
    revision: Option<String>,
    is_modern: bool,
    last_id: u64,
}

impl ServerConnection {
    /// Begins with `initialize`, which all servers know but those of the newest revision alone.
    pub async fn greet(target: GatewayTarget) -> Result<(ServerConnection, Value), CliError> {
        let path = target.url.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let mut server = ServerConnection {
            target,
            sender: None,
            path,
            session: None,
            revision: None,
            is_modern: false,
            last_id: 0,
        };
        let params = json!({"protocolVersion": LEGACY_REVISION, "capabilities": {}, "clientInfo": client_info()});
        let refusal = match server.request("initialize", params).await {
            Ok(greeting) => {
                server.revision = greeting["protocolVersion"].as_str().map(str::to_owned);
                // Servers answer this in many ways; those that mind say so at the next request.
                let _ = server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
                return Ok((server, greeting));
            }
            Err(refusal) => refusal,
        };
        (server.session, server.revision, server.is_modern) = (None, Some(MODERN_REVISION.to_owned()), true);
        match server.request("server/discover", json!({})).await {
            Ok(greeting) => Ok((server, greeting)),
            Err(_) => Err(refusal),
        }
    }

    pub fn wrong(&self, what: &str) -> CliError {
        CliError::new(CliErrorKind::NoGateway, format!("{}: {what}", self.target.url))
    }

    /// All pages of the list.
    pub async fn tools(&mut self) -> Result<Vec<Value>, CliError> {
        let mut tools = Vec::new();
        let mut bytes = 0;
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let page = self.request("tools/list", params).await?;
            let Some(listed) = page["tools"].as_array() else {
                return Err(self.wrong("its answer to `tools/list` has no array `tools`"));
            };
            bytes += listed.iter().map(|tool| tool.to_string().len()).sum::<usize>();
            if bytes > MAX_ANSWER {
                return Err(self.wrong(&format!("its list of tools is larger than {} MiB", MAX_ANSWER >> 20)));
            }
            tools.extend(listed.iter().cloned());
            match page["nextCursor"].as_str() {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok(tools),
            }
        }
        Err(self.wrong(&format!("its list of tools has more than {MAX_PAGES} pages")))
    }

    async fn request(&mut self, method: &str, mut params: Value) -> Result<Value, CliError> {
        self.last_id += 1;
        let id = self.last_id;
        if self.is_modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": client_info(),
            });
        }
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let asked = async {
            let answer = self.send(&body).await?;
            self.answer(answer, id).await
        };
        let Ok(answered) = tokio::time::timeout(PATIENCE, asked).await else {
            self.sender = None;
            return Err(self.wrong(&format!("no answer to `{method}` within {} s", PATIENCE.as_secs())));
        };
        let mut message = answered?;
        match message.get("error") {
            Some(error) => {
                Err(self.wrong(&format!("`{method}` failed: {}", error["message"].as_str().unwrap_or("no reason"))))
            }
            None => Ok(message["result"].take()),
        }
    }

    /// Sends a message and follows redirects on the same server.
    async fn send(&mut self, body: &Value) -> Result<http::Response<Incoming>, CliError> {
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.send_once(body).await?;
            if !matches!(answer.status().as_u16(), 307 | 308) {
                self.session = text(answer.headers(), "mcp-session-id").or(self.session.take());
                return self.accepted(answer).await;
            }
            self.path = self.redirected(&answer)?;
            self.sender = None;
        }
        Err(self.wrong("it redirects without end"))
    }

    async fn send_once(&mut self, body: &Value) -> Result<http::Response<Incoming>, CliError> {
        let request = self.post(body)?;
        if let Some(sender) = &mut self.sender
            && sender.ready().await.is_ok()
        {
            // A list may be asked for again: the server may have closed the connection just now.
            if let Ok(answer) = sender.send_request(request.clone()).await {
                return Ok(answer);
            }
        }
        let stream = self.target.stream().await?;
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|error| self.wrong(&error.to_string()))?;
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(|error| self.wrong(&error.to_string()))?;
        self.sender = Some(sender);
        Ok(answer)
    }

    fn post(&self, body: &Value) -> Result<Request<Full<Bytes>>, CliError> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&self.path)
            .header(header::HOST, self.target.url.authority().map(ToString::to_string).unwrap_or_default())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream");
        let method = body["method"].as_str().filter(|_| self.is_modern).map(str::to_owned);
        let headers = [
            ("mcp-session-id", self.session.clone()),
            ("mcp-protocol-version", self.revision.clone()),
            ("mcp-method", method),
            ("authorization", self.target.token.as_ref().map(|token| format!("Bearer {token}"))),
        ];
        for (name, value) in headers {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        request.body(Full::new(Bytes::from(body.to_string()))).map_err(|error| self.wrong(&error.to_string()))
    }

    /// The path of a redirect; the token is for this server alone.
    fn redirected(&self, answer: &http::Response<Incoming>) -> Result<String, CliError> {
        let location = text(answer.headers(), "location").unwrap_or_default();
        let uri: http::Uri = location.parse().map_err(|_| self.wrong("it redirects to no valid address"))?;
        let is_elsewhere = uri.authority().is_some_and(|authority| Some(authority) != self.target.url.authority());
        if is_elsewhere || uri.scheme().is_some_and(|scheme| Some(scheme) != self.target.url.scheme()) {
            return Err(self.wrong(&format!("it redirects to {location}; use that address if you trust it")));
        }
        Ok(uri.path_and_query().map_or("/", |path| path.as_str()).to_owned())
    }

    /// A refusal as an error, with the reason that servers of MCP give in its body.
    async fn accepted(&self, answer: http::Response<Incoming>) -> Result<http::Response<Incoming>, CliError> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = http_body_util::Limited::new(answer.into_body(), 64 << 10).collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let reason = serde_json::from_slice::<Value>(&body).ok();
        let reason = reason.as_ref().and_then(|reason| reason["error"]["message"].as_str());
        let remedy = if status.as_u16() == 401 { "; pass a token with --token" } else { "" };
        let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        Err(self.wrong(&format!("it answered {status}{because}{remedy}")))
    }

    /// The message with this id, from a plain answer or a stream of events.
    async fn answer(&self, answer: http::Response<Incoming>, id: u64) -> Result<Value, CliError> {
        let streams = text(answer.headers(), "content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let mut body = answer.into_body();
        let mut bytes: Vec<u8> = Vec::new();
        let mut searched = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.wrong(&error.to_string()))?;
            bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
            if bytes.len() > MAX_ANSWER {
                return Err(self.wrong(&format!("its answer is larger than {} MiB", MAX_ANSWER >> 20)));
            }
            // A stream may stay open after the answer; it is searched where an event may have ended.
            let fresh = &bytes[searched..];
            if streams && fresh.windows(2).any(|pair| matches!(pair, b"\n\n" | b"\n\r" | b"\r\r")) {
                if let Some(message) = event(&bytes, id) {
                    return Ok(message);
                }
                searched = bytes.len() - 1;
            }
        }
        let message = if streams { event(&bytes, id) } else { serde_json::from_slice(&bytes).ok() };
        message.ok_or_else(|| self.wrong("its answer is not a JSON-RPC message; is this the address of an MCP server?"))
    }
}

fn client_info() -> Value {
    json!({"name": "sinew", "version": env!("CARGO_PKG_VERSION")})
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// The message with this id among the complete events.
fn event(bytes: &[u8], id: u64) -> Option<Value> {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    let events = text.split_inclusive("\n\n").filter(|event| event.ends_with("\n\n"));
    events
        .filter_map(|event| {
            let data: Vec<&str> =
                event.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim_start).collect();
            serde_json::from_str::<Value>(&data.join("\n")).ok()
        })
        .find(|message| message["id"] == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_is_found_among_events() {
        let stream = b"event: message\ndata: {\"method\": \"x\"}\n\nid: 7\ndata: {\"id\": 2,\ndata:  \"result\": {}}\n\ndata: {\"id\": 3";
        assert_eq!(event(stream, 2), Some(json!({"id": 2, "result": {}})));
        assert_eq!(event(stream, 3), None);
        assert_eq!(event(b"data: {\"id\": 2}\r\rdata", 2), Some(json!({"id": 2})));
    }
}
