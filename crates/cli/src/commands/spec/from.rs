//! `sinew spec from`: the specification of the tools that a running MCP server offers.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sinew_spec::{print, read};

use super::args::SpecFromArgs;
use super::put;
use super::render::complete;
use crate::client::GatewayTarget;
use crate::error::{CliError, CliErrorKind};

/// The revision that all current servers support.
const REVISION: &str = "2025-06-18";
/// A server that has not answered by then is considered stuck.
const PATIENCE: Duration = Duration::from_secs(30);
/// Larger than any tool list that a model could read.
const MAX_ANSWER: usize = 16 << 20;
/// More pages mean that the server repeats itself.
const MAX_PAGES: usize = 100;

pub async fn run(args: SpecFromArgs) -> Result<(), CliError> {
    let target = GatewayTarget::of_server(&args.url, args.token.as_deref(), args.fingerprint.as_deref())?;
    let mut server = ServerConnection::connect(target).await?;
    let greeting = server
        .request(
            "initialize",
            json!({
                "protocolVersion": REVISION,
                "capabilities": {},
                "clientInfo": {"name": "sinew", "version": env!("CARGO_PKG_VERSION")},
            }),
        )
        .await?;
    server.revision = greeting["protocolVersion"].as_str().map(str::to_owned);
    server.notify("notifications/initialized").await?;
    let tools = server.tools().await?;
    let text = format!("{:#}\n", json!({ "tools": tools }));
    let mut document = read::tools_list_json(&text);
    if let Some(problem) = document.unreadable() {
        return Err(server.wrong(&problem.message));
    }
    document.tools.iter_mut().for_each(complete);
    document.intro = greeting["instructions"].as_str().map(print::prose).unwrap_or_default();
    let name = greeting["serverInfo"]["name"].as_str().unwrap_or("Tools");
    let title = format!("{name} - MCP Tool Specification");
    put(&print::render_document(&title, &document).text, args.out.as_deref())
}

struct ServerConnection {
    sender: SendRequest<Full<Bytes>>,
    target: GatewayTarget,
    session: Option<String>,
    revision: Option<String>,
    last_id: u64,
}

impl ServerConnection {
    async fn connect(target: GatewayTarget) -> Result<ServerConnection, CliError> {
        let stream = target.stream().await?;
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|error| wrong(&target, &error.to_string()))?;
        tokio::spawn(connection);
        Ok(ServerConnection { sender, target, session: None, revision: None, last_id: 0 })
    }

    fn wrong(&self, what: &str) -> CliError {
        wrong(&self.target, what)
    }

    /// All pages of the list.
    async fn tools(&mut self) -> Result<Vec<Value>, CliError> {
        let mut tools = Vec::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let page = self.request("tools/list", params).await?;
            tools.extend(page["tools"].as_array().into_iter().flatten().cloned());
            match page["nextCursor"].as_str() {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok(tools),
            }
        }
        Err(self.wrong(&format!("its list of tools has more than {MAX_PAGES} pages")))
    }

    async fn notify(&mut self, method: &str) -> Result<(), CliError> {
        self.send(&json!({"jsonrpc": "2.0", "method": method})).await.map(drop)
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<Value, CliError> {
        self.last_id += 1;
        let id = self.last_id;
        let asked = async {
            let answer = self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
            self.answer(answer, id).await
        };
        let answered = tokio::time::timeout(PATIENCE, asked).await;
        let mut message = match answered {
            Ok(message) => message?,
            Err(_) => return Err(self.wrong(&format!("no answer to `{method}` within {} s", PATIENCE.as_secs()))),
        };
        match message.get("error") {
            Some(error) => {
                Err(self.wrong(&format!("`{method}` failed: {}", error["message"].as_str().unwrap_or("no reason"))))
            }
            None => Ok(message["result"].take()),
        }
    }

    async fn send(&mut self, body: &Value) -> Result<http::Response<Incoming>, CliError> {
        let url = &self.target.url;
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, url.authority().map(ToString::to_string).unwrap_or_default())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream");
        let headers = [
            ("mcp-session-id", self.session.clone()),
            ("mcp-protocol-version", self.revision.clone()),
            ("authorization", self.target.token.as_ref().map(|token| format!("Bearer {token}"))),
        ];
        for (name, value) in headers {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let request = request.body(Full::new(Bytes::from(body.to_string())));
        let request = request.map_err(|error| wrong(&self.target, &error.to_string()))?;
        self.sender.ready().await.map_err(|error| wrong(&self.target, &error.to_string()))?;
        let answer =
            self.sender.send_request(request).await.map_err(|error| wrong(&self.target, &error.to_string()))?;
        if !answer.status().is_success() {
            return Err(wrong(&self.target, &format!("it answered {}", answer.status())));
        }
        self.session = text(answer.headers(), "mcp-session-id").or(self.session.take());
        Ok(answer)
    }

    /// The message with this id, from a plain answer or a stream of events.
    async fn answer(&self, answer: http::Response<Incoming>, id: u64) -> Result<Value, CliError> {
        let streams = text(answer.headers(), "content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let mut body = answer.into_body();
        let mut bytes: Vec<u8> = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.wrong(&error.to_string()))?;
            bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
            if bytes.len() > MAX_ANSWER {
                return Err(self.wrong(&format!("its answer is larger than {} MiB", MAX_ANSWER >> 20)));
            }
            if streams && let Some(message) = event(&bytes, id) {
                return Ok(message);
            }
        }
        let message = if streams { event(&bytes, id) } else { serde_json::from_slice(&bytes).ok() };
        message.ok_or_else(|| self.wrong("its answer is not a JSON-RPC message; is this the address of an MCP server?"))
    }
}

fn wrong(target: &GatewayTarget, what: &str) -> CliError {
    CliError::new(CliErrorKind::NoGateway, format!("{}: {what}", target.url))
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// The message with this id among the complete events.
fn event(bytes: &[u8], id: u64) -> Option<Value> {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
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
    }
}
