//! Servers of the revision 2026-07-28 alone: no `initialize`, no session, questions inside results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::{
    Args, BoxFuture, Call, CallOrigin, Caller, ErrorKind, NestedCalls, Outcome, PlannedCall, ToolAccess, ToolError,
    TraceParent,
};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::hostile::{events, json_answer, read_request};
use crate::support::{Family, args, at, soon, tool_names, witnessed};

/// What the server saw: the head of a request in lower case and its message, or the end of a connection.
enum Seen {
    Request(String, Value),
    Closed,
}

struct Server {
    has_grown: AtomicBool,
    seen: mpsc::UnboundedSender<Seen>,
}

async fn server() -> (String, Arc<Server>, mpsc::UnboundedReceiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    let (seen, requests) = mpsc::unbounded_channel();
    let server = Arc::new(Server { has_grown: AtomicBool::new(false), seen });
    let serving = server.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serving.clone().talk(stream));
        }
    });
    (url, server, requests)
}

impl Server {
    async fn talk(self: Arc<Server>, mut stream: TcpStream) {
        let mut input = Vec::new();
        while let Some((head, body)) = read_request(&mut stream, &mut input).await {
            let message: Value = serde_json::from_str(&body).unwrap_or_default();
            let answer = self.answer(&message);
            drop(self.seen.send(Seen::Request(head.to_ascii_lowercase(), message)));
            if stream.write_all(&answer).await.is_err() {
                break;
            }
        }
        drop(self.seen.send(Seen::Closed));
    }

    fn answer(&self, message: &Value) -> Vec<u8> {
        let id = &message["id"];
        let result = |mut result: Value| {
            result["resultType"] = result.get("resultType").cloned().unwrap_or_else(|| json!("complete"));
            json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
        };
        match message["method"].as_str().unwrap_or_default() {
            "server/discover" => json_answer(&result(json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": true}},
                "instructions": "A lock.",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "lock", "version": "2.0.0"}},
            }))),
            "tools/list" => {
                let open = json!({"name": "open", "inputSchema": {"type": "object", "properties": {
                    "door": {"type": "string", "x-mcp-header": "Door"}}}});
                let mut tools = vec![open];
                if self.has_grown.load(Ordering::Relaxed) {
                    tools.push(json!({"name": "close", "inputSchema": {"type": "object"}}));
                }
                json_answer(&result(json!({"tools": tools, "ttlMs": 0, "cacheScope": "private"})))
            }
            "subscriptions/listen" => {
                self.has_grown.store(true, Ordering::Relaxed);
                let note = |method: &str| format!("data: {}\n\n", json!({"jsonrpc": "2.0", "method": method}));
                events(
                    &[note("notifications/subscriptions/acknowledged"), note("notifications/tools/list_changed")]
                        .concat(),
                )
            }
            "tools/call" if message["params"]["arguments"]["door"] == "slow" => events(": wait\n\n"),
            "tools/call" if message["params"]["inputResponses"].is_null() => json_answer(&result(json!({
                "resultType": "input_required",
                "inputRequests": {"sure": {"method": "elicitation/create",
                    "params": {"message": "Sure?", "requestedSchema": {"type": "object"}}}},
                "requestState": "opaque",
            }))),
            "tools/call" => {
                let token = &message["params"]["_meta"]["progressToken"];
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": 1, "total": 2, "message": "turning"}});
                let done = result(json!({"content": [{"type": "text", "text": "opened"}]}));
                events(&format!("data: {progress}\n\ndata: {done}\n\n"))
            }
            _ => {
                let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32022, "message": "Unsupported protocol version",
                    "data": {"supported": ["2026-07-28"], "requested": "2025-11-25"}}})
                .to_string();
                let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length:";
                format!("{head} {}\r\n\r\n{error}", error.len()).into_bytes()
            }
        }
    }
}

async fn next_call(requests: &mut mpsc::UnboundedReceiver<Seen>) -> (String, Value) {
    loop {
        match soon(requests.recv()).await.expect("a request") {
            Seen::Request(head, message) if message["method"] == "tools/call" => return (head, message),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_server_without_sessions_is_called_and_its_questions_and_progress_reach_the_caller() {
    let (url, _server, mut requests) = server().await;
    let mut family = Family::start(at(&url));
    let lock = family.joined().await;
    let info = lock.info();
    assert_eq!((info.name.as_str(), info.version.as_str()), ("lock", "2.0.0"));
    assert_eq!(info.attributes.get("revision"), Some(&json!("2026-07-28")));
    let (call, witness) = witnessed("open", json!({"door": "zür"}));
    assert_eq!(soon(lock.call(call)).await.expect("opened").joined_text(), "opened");
    let heard = witness.0.lock().expect("no panic").clone();
    assert!(heard[0].contains("Sure?") && heard[1] == "1 of Some(2.0) turning", "{heard:?}");

    let ((head, first), (_, second)) = (next_call(&mut requests).await, next_call(&mut requests).await);
    for part in [
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: tools/call",
        "mcp-name: open",
        "mcp-param-door: =?base64?esO8cg==?=".to_ascii_lowercase().as_str(),
    ] {
        assert!(head.contains(part), "{part} is missing in {head}");
    }
    assert!(!head.contains("mcp-session-id"), "{head}");
    let meta = &first["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert!(meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"].is_object(), "{meta}");
    assert_ne!(first["id"], second["id"]);
    assert_eq!(second["params"]["requestState"], "opaque");
    assert_eq!(second["params"]["inputResponses"]["sure"]["action"], "accept");
    assert_eq!(second["params"]["arguments"], first["params"]["arguments"]);
}

/// What a gateway says of a call that belongs to a trace.
struct Traced(TraceParent);

impl NestedCalls for Traced {
    fn principal(&self) -> &str {
        "tester"
    }

    fn device(&self) -> &str {
        "lock"
    }

    fn is_part(&self) -> bool {
        false
    }

    fn access(&self, _: &str) -> ToolAccess {
        ToolAccess::Unknown
    }

    fn call<'a>(&'a self, _: Option<&'a str>, _: &'a str, _: Args) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        Box::pin(std::future::ready(Err(ToolError::new(ErrorKind::Unsupported, "a server calls nothing"))))
    }

    fn agree<'a>(&'a self, _: &'a [PlannedCall]) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn join_run(&self, id: &str) -> String {
        id.to_owned()
    }

    fn origin(&self) -> Option<CallOrigin> {
        Some(CallOrigin {
            name: "tester".to_owned(),
            id: "tester".to_owned(),
            is_admin: false,
            kind: "token".to_owned(),
            door: "test".to_owned(),
            policy: String::new(),
            is_approved: false,
            run: None,
            lease: None,
            trace: Some(self.0.clone()),
        })
    }

    fn within(&self, _: Duration, _: Arc<dyn Caller>) -> Arc<dyn NestedCalls> {
        Arc::new(Traced(self.0.clone()))
    }
}

#[tokio::test]
async fn a_server_learns_the_trace_of_a_call_in_every_round() {
    let (url, _server, mut requests) = server().await;
    let mut family = Family::start(at(&url));
    let lock = family.joined().await;
    let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let (mut call, _witness) = witnessed("open", json!({"door": "a"}));
    call.nested = Arc::new(Traced(TraceParent::parse(text).expect("a parent")));
    soon(lock.call(call)).await.expect("opened");
    for _ in 0..2 {
        assert_eq!(next_call(&mut requests).await.1["params"]["_meta"]["traceparent"], text);
    }
    let (call, _witness) = witnessed("open", json!({"door": "a"}));
    soon(lock.call(call)).await.expect("opened");
    assert_eq!(next_call(&mut requests).await.1["params"]["_meta"].get("traceparent"), None);
}

#[tokio::test]
async fn a_cancelled_call_ends_its_stream_and_nothing_else_is_said() {
    let (url, _server, mut requests) = server().await;
    let mut family = Family::start(at(&url));
    let lock = family.joined().await;
    let calling = tokio::spawn(async move { lock.call(Call::new("open", args(json!({"door": "slow"})))).await });
    next_call(&mut requests).await;
    calling.abort();
    loop {
        match soon(requests.recv()).await.expect("the end of the call") {
            Seen::Closed => return,
            Seen::Request(_, message) => assert_ne!(message["method"], "notifications/cancelled"),
        }
    }
}

#[tokio::test]
async fn a_change_of_tools_is_reported_by_a_subscription() {
    let (url, _server, _requests) = server().await;
    let mut family = Family::start(at(&url));
    family.joined().await;
    // The next look at the tools would be half a minute away.
    assert_eq!(tool_names(&family.changed().await), ["open", "close"]);
}
