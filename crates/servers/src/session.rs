//! MCP with one server: the handshake of each revision, the tool list, and calls with what happens meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::value::RawValue;
use sinew_fetch::{HeaderMap, HeaderName};
use sinew_tool::text::{clean_line, clip};
use sinew_tool::{Args, Caller, ErrorKind, Outcome, Tool, ToolError, Toolset, TraceParent, Value, json};
use sinew_wire::host::{Fault, Limits, ToolListing, read_outcome};

use crate::link::{Exchange, Link, LinkError, LinkErrorKind, Outgoing};
use crate::message::{ServerMessage, answer, notification, request};
use crate::{headers, questions};

/// The newest revision with `initialize`; servers choose an older one themselves.
const LEGACY_REVISION: &str = "2025-11-25";
/// The revision without `initialize`.
const MODERN_REVISION: &str = "2026-07-28";
/// How long a server may take for each request that is no call.
const SETUP_TIME: Duration = Duration::from_secs(30);
/// How long the notice that a call is cancelled may take: nobody waits for it.
const CANCEL_TIME: Duration = Duration::from_secs(5);
/// Questions, or rounds of questions, in one call.
const MAX_QUESTIONS: usize = 16;
/// Notifications and questions that a server may send before it answers `initialize` or a page of its list.
const MAX_INTERRUPTIONS: usize = 1000;
/// The largest tool list, all pages together: some kilobytes for each tool.
const MAX_LIST_BYTES: usize = 4 << 20;
const NOUN: &str = "the server";
/// How another gateway names itself.
const GATEWAY_NAME: &str = "sinew";

/// What a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) instructions: Option<String>,
    pub(crate) revision: String,
    /// The server reports changes of its tool list.
    pub(crate) reports_changes: bool,
}

pub(crate) struct Session {
    pub(crate) link: Link,
    next_id: AtomicI64,
    is_modern: AtomicBool,
    round: tokio::sync::Mutex<Round>,
}

/// The handshakes with a server.
struct Round {
    /// Counted, so that of several calls that find the session lost only one makes a new one.
    number: u64,
    /// What the server called itself: another one at the same address gets no call that was meant for this one.
    name: String,
}

/// The answer to a request: its result, or the error that the server reports.
type Answered = Result<Box<RawValue>, Fault>;

impl Session {
    pub(crate) async fn open(link: Link) -> Result<(Session, Greeting), LinkError> {
        let session = Session {
            link,
            next_id: AtomicI64::new(first_id()),
            is_modern: AtomicBool::new(false),
            round: tokio::sync::Mutex::new(Round { number: 0, name: String::new() }),
        };
        let greeting = session.greet().await?;
        session.round.lock().await.name = greeting.name.clone();
        Ok((session, greeting))
    }

    /// Greets the server, which may be another one than before.
    async fn greet(&self) -> Result<Greeting, LinkError> {
        let greeting = self.shake_hands().await?;
        if greeting.name == GATEWAY_NAME {
            let message = "it is another Sinew gateway, whose devices would be offered in circles; connect your client to it directly";
            self.link.close().await;
            return Err(LinkError::new(LinkErrorKind::Denied, message));
        }
        Ok(greeting)
    }

    /// Begins with `initialize`, which all servers know but those of the newest revision alone.
    async fn shake_hands(&self) -> Result<Greeting, LinkError> {
        self.is_modern.store(false, Ordering::Relaxed);
        let refusal = match self.initialize().await {
            Ok(greeting) => return Ok(greeting),
            Err(refusal) if matches!(refusal.kind, LinkErrorKind::Denied | LinkErrorKind::Bad) => refusal,
            Err(failure) => return Err(failure),
        };
        self.link.reset();
        self.is_modern.store(true, Ordering::Relaxed);
        self.discover().await.map_err(|_| refusal)
    }

    async fn initialize(&self) -> Result<Greeting, LinkError> {
        let params = json!({
            "protocolVersion": LEGACY_REVISION,
            "capabilities": capabilities(),
            "clientInfo": client_info(),
        });
        let result = self.ask("initialize", params).await?.map_err(|fault| refused("initialize", &fault))?;
        let result = tree(&result);
        let greeting = read_greeting(&result, &result["serverInfo"], result["protocolVersion"].as_str());
        self.link.set_revision(&greeting.revision);
        // Servers answer this in many ways, or not at all; those that mind report it with the next request.
        let notified = self.link.send(outgoing(notification("notifications/initialized", None)));
        let _ = tokio::time::timeout(SETUP_TIME, notified).await;
        Ok(greeting)
    }

    async fn discover(&self) -> Result<Greeting, LinkError> {
        self.link.set_revision(MODERN_REVISION);
        let result =
            self.ask("server/discover", json!({})).await?.map_err(|fault| refused("server/discover", &fault))?;
        let result = tree(&result);
        let about = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        Ok(read_greeting(&result, about, Some(MODERN_REVISION)))
    }

    /// Reads the tool list, page by page.
    pub(crate) async fn list(&self) -> Result<(Toolset, Vec<String>), LinkError> {
        let limits = Limits { list_bytes: MAX_LIST_BYTES, ..Limits::default() };
        let mut listing = ToolListing::new();
        loop {
            let params = serde_json::from_str(&listing.params(false, true)).unwrap_or_default();
            let page = self.ask_again("tools/list", params).await?.map_err(|fault| refused("tools/list", &fault))?;
            if !listing.read(&page, &limits) {
                return Ok(listing.finish());
            }
        }
    }

    /// A stream of what the server reports unasked; `None` where there is none.
    pub(crate) async fn listen(&self) -> Result<Option<Exchange>, LinkError> {
        if !self.is_modern.load(Ordering::Relaxed) || !self.link.is_http() {
            return self.link.listen().await;
        }
        let params = json!({"notifications": {"toolsListChanged": true}});
        let stream = self.launch(self.new_id(), "subscriptions/listen", params, HeaderMap::new()).await?;
        Ok(Some(stream))
    }

    /// A request that changes nothing, so that it may be repeated in a new session for any reason.
    async fn ask_again(&self, method: &str, params: Value) -> Result<Answered, LinkError> {
        let round = self.round.lock().await.number;
        let answered = self.ask(method, params.clone()).await;
        let is_lost = match &answered {
            Err(error) => error.kind == LinkErrorKind::NewSession || is_about_session(&error.message),
            Ok(Err(fault)) => is_about_session(&fault.message) || fault.is_seen_id(),
            Ok(Ok(_)) => false,
        };
        if !is_lost {
            return answered;
        }
        self.renew(round).await?;
        self.ask(method, params).await
    }

    /// One request and its answer; what else the server says meanwhile is not for anybody.
    async fn ask(&self, method: &str, params: Value) -> Result<Answered, LinkError> {
        let asking = async {
            let id = self.new_id();
            let mut exchange = self.launch(id, method, params, HeaderMap::new()).await?;
            for _ in 0..MAX_INTERRUPTIONS {
                match exchange.next().await? {
                    Some(ServerMessage::Answer { id: answered, result }) if answered == id => {
                        return Ok(result.map_err(|error| Fault::read(&error)));
                    }
                    Some(ServerMessage::Request { id, method, .. }) => self.reply_alone(&id, &method).await?,
                    Some(_) => {}
                    None => break,
                }
            }
            Err(LinkError::new(LinkErrorKind::Bad, format!("`{method}` got no answer")))
        };
        let late = || {
            LinkError::new(LinkErrorKind::Lost, format!("no answer to `{method}` within {} s", SETUP_TIME.as_secs()))
        };
        tokio::time::timeout(SETUP_TIME, asking).await.unwrap_or_else(|_| Err(late()))
    }

    /// Begins a new session, unless somebody else did since `round`.
    async fn renew(&self, round: u64) -> Result<(), LinkError> {
        let mut current = self.round.lock().await;
        if current.number != round {
            return Ok(());
        }
        self.link.reset();
        let greeting = self.greet().await?;
        if greeting.name != current.name {
            let message = format!("`{}` answers at this address now, not `{}`", greeting.name, current.name);
            return Err(LinkError::new(LinkErrorKind::Denied, message));
        }
        current.number += 1;
        Ok(())
    }

    fn new_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    async fn launch(
        &self,
        id: i64,
        method: &str,
        mut params: Value,
        mut extra: HeaderMap,
    ) -> Result<Exchange, LinkError> {
        let is_call = method == "tools/call";
        if is_call {
            params["_meta"]["progressToken"] = json!(id);
        }
        if self.is_modern.load(Ordering::Relaxed) {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN_REVISION);
            meta["io.modelcontextprotocol/clientCapabilities"] = capabilities();
            meta["io.modelcontextprotocol/clientInfo"] = client_info();
            extra.insert(HeaderName::from_static("mcp-method"), headers::value(method));
            if let Some(name) = params["name"].as_str().filter(|_| is_call) {
                extra.insert(HeaderName::from_static("mcp-name"), headers::value(name));
            }
        }
        let outgoing =
            Outgoing { text: request(id, method, params), id: Some(id), headers: extra, repeatable: !is_call };
        self.link.send(outgoing).await
    }

    /// Calls a tool, and sends the call again only where the server proved that it did not handle it. Dropping the future cancels the call, also at the server.
    pub(crate) async fn call(
        self: &Arc<Session>,
        tool: &Tool,
        args: Args,
        caller: &dyn Caller,
        trace: Option<&TraceParent>,
    ) -> Result<Outcome, ToolError> {
        let failed = |error: LinkError| error.into_tool_error(&tool.name);
        let mut params = json!({"name": tool.name, "arguments": args});
        if let Some(trace) = trace {
            params["_meta"][TraceParent::KEY] = json!(trace.as_str());
        }
        let mut has_renewed = false;
        let mut rounds = 0;
        loop {
            let round = self.round.lock().await.number;
            let answered = match self.call_once(tool, &params, caller).await {
                Err(CallFailure::Link(error)) if error.kind == LinkErrorKind::NewSession && !has_renewed => {
                    has_renewed = true;
                    let renewed = self.renew(round).await;
                    renewed.map_err(|why| LinkError { message: why.message, ..error }).map_err(failed)?;
                    continue;
                }
                Err(CallFailure::Link(error)) => return Err(failed(error)),
                Err(CallFailure::Tool(error)) => return Err(error),
                Ok(answered) => answered,
            };
            let result = match answered {
                Ok(result) => result,
                Err(fault) => return Err(fault.into_error(&tool.name, NOUN)),
            };
            let unfinished = self.is_modern.load(Ordering::Relaxed).then(|| Unfinished::read(&result)).flatten();
            let Some(unfinished) = unfinished else { return read_outcome(&result, &tool.name, NOUN) };
            rounds += 1;
            if rounds > MAX_QUESTIONS {
                let message =
                    format!("{NOUN} asked more than {MAX_QUESTIONS} rounds of questions about `{}`", tool.name);
                return Err(ToolError::new(ErrorKind::BadAnswer, message));
            }
            unfinished.answer(&mut params, caller).await?;
        }
    }

    async fn call_once(
        self: &Arc<Session>,
        tool: &Tool,
        params: &Value,
        caller: &dyn Caller,
    ) -> Result<Answered, CallFailure> {
        let extra = match self.is_modern.load(Ordering::Relaxed) {
            true => headers::of_arguments(&tool.input_schema, &params["arguments"]),
            false => HeaderMap::new(),
        };
        let id = self.new_id();
        let mut open = OpenCall { session: self, id, is_over: false };
        let mut exchange = match self.launch(id, "tools/call", params.clone(), extra).await {
            Ok(exchange) => exchange,
            Err(error) => {
                open.is_over = true;
                return Err(error.into());
            }
        };
        let mut questions = 0;
        loop {
            match exchange.next().await {
                Ok(Some(ServerMessage::Answer { id: answered, result })) if answered == id => {
                    open.is_over = true;
                    return Ok(result.map_err(|error| Fault::read(&error)));
                }
                Ok(Some(ServerMessage::Notification { method, params })) => report(id, &method, params, caller),
                Ok(Some(ServerMessage::Request { id, method, params })) => {
                    questions += 1;
                    if questions > MAX_QUESTIONS {
                        let message = format!("{NOUN} asked more than {MAX_QUESTIONS} questions about `{}`", tool.name);
                        return Err(CallFailure::Tool(ToolError::new(ErrorKind::BadAnswer, message)));
                    }
                    self.reply(&id, &method, params, caller).await?;
                }
                Ok(Some(ServerMessage::Answer { .. })) => {}
                Ok(None) => {
                    open.is_over = true;
                    return Err(LinkError::new(LinkErrorKind::Bad, "the server ended without an answer").into());
                }
                Err(error) => {
                    open.is_over = true;
                    return Err(error.into());
                }
            }
        }
    }

    /// Answers a question of the server with what the caller says.
    async fn reply(&self, id: &Value, method: &str, params: Value, caller: &dyn Caller) -> Result<(), CallFailure> {
        if method == "ping" {
            return Ok(self.reply_alone(id, method).await?);
        }
        let Some(question) = questions::read(method, params) else {
            return Ok(self.reply_alone(id, method).await?);
        };
        const KEY: &str = "question";
        let asked = caller.ask(BTreeMap::from([(KEY.to_owned(), question)])).await;
        let (text, failure) = match asked {
            Ok(mut answers) => (answer(id, Ok(answers.remove(KEY).unwrap_or_default())), None),
            Err(error) => (answer(id, Err((-32601, clean_line(&error.message, 500)))), Some(error)),
        };
        self.link.send(outgoing(text)).await?;
        // A caller that repeats the call with its answers gets nothing from this one.
        match failure {
            Some(error) if error.kind == ErrorKind::InputRequired => Err(CallFailure::Tool(error)),
            _ => Ok(()),
        }
    }

    /// Answers what nobody needs to be asked about.
    pub(crate) async fn reply_alone(&self, id: &Value, method: &str) -> Result<(), LinkError> {
        let result = match method {
            "ping" => Ok(json!({})),
            other => Err((-32601, format!("Method not found: {}", clip(other)))),
        };
        self.link.send(outgoing(answer(id, result))).await.map(drop)
    }
}

enum CallFailure {
    Link(LinkError),
    Tool(ToolError),
}

impl From<LinkError> for CallFailure {
    fn from(error: LinkError) -> CallFailure {
        CallFailure::Link(error)
    }
}

/// A call that is not answered. Dropping it cancels it at the server.
struct OpenCall<'a> {
    session: &'a Arc<Session>,
    id: i64,
    is_over: bool,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        // Over HTTP, the newest revision knows a cancelled call by its closed stream.
        let is_told = self.session.is_modern.load(Ordering::Relaxed) && self.session.link.is_http();
        if self.is_over || is_told {
            return;
        }
        let (session, id) = (self.session.clone(), self.id);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let params = json!({"requestId": id, "reason": "the caller gave up"});
                let telling = session.link.send(outgoing(notification("notifications/cancelled", Some(params))));
                let _ = tokio::time::timeout(CANCEL_TIME, telling).await;
            });
        }
    }
}

/// A result that asks before it can be one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Unfinished {
    result_type: String,
    #[serde(default)]
    input_requests: BTreeMap<String, UnfinishedQuestion>,
    #[serde(default)]
    request_state: Option<Value>,
}

#[derive(Deserialize)]
struct UnfinishedQuestion {
    method: String,
    #[serde(default)]
    params: Value,
}

impl Unfinished {
    fn read(result: &RawValue) -> Option<Unfinished> {
        serde_json::from_str(result.get()).ok().filter(|read: &Unfinished| read.result_type != "complete")
    }

    /// Asks the caller, and puts the answers into the parameters of the next try.
    async fn answer(self, params: &mut Value, caller: &dyn Caller) -> Result<(), ToolError> {
        if self.result_type != "input_required" {
            let message = format!("{NOUN} answered with a `{}`, which Sinew does not know", clip(&self.result_type));
            return Err(ToolError::new(ErrorKind::Unsupported, message));
        }
        if self.input_requests.len() > MAX_QUESTIONS {
            let message = format!("{NOUN} asked more than {MAX_QUESTIONS} questions at once");
            return Err(ToolError::new(ErrorKind::BadAnswer, message));
        }
        let mut asked = BTreeMap::new();
        for (key, question) in self.input_requests {
            let read = questions::read(&question.method, question.params).ok_or_else(|| {
                let message = format!("{NOUN} asked `{}`, which nobody can answer", clip(&question.method));
                ToolError::new(ErrorKind::Unsupported, message)
            })?;
            asked.insert(key, read);
        }
        let answers = if asked.is_empty() { BTreeMap::new() } else { caller.ask(asked).await? };
        params["inputResponses"] = json!(answers);
        if let Some(state) = self.request_state {
            params["requestState"] = state;
        }
        Ok(())
    }
}

/// Passes on what a server reports during a call.
fn report(id: i64, method: &str, params: Value, caller: &dyn Caller) {
    match method {
        "notifications/progress" if params["progressToken"].as_i64() == Some(id) => {
            if let Some(progress) = params["progress"].as_f64() {
                let message = params["message"].as_str().map(|text| clean_line(text, 500));
                caller.progress(progress, params["total"].as_f64(), message.as_deref());
            }
        }
        "notifications/message" => {
            if let Ok(level) = serde_json::from_value(params["level"].clone()) {
                caller.log(level, params["data"].clone());
            }
        }
        _ => {}
    }
}

/// Whether a refusal says that there is no session, or that the server was not initialized: boards forget both when
/// they restart, and report it in many forms. Words prove nothing about a call, which may have acted before it failed.
fn is_about_session(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let is_gone = ["not found", "invalid", "expired", "unknown", "missing", "no valid", "required", "terminated"];
    text.contains("not initialized")
        || text.contains("uninitialized")
        || (text.contains("session") && is_gone.iter().any(|word| text.contains(word)))
}

fn refused(method: &str, fault: &Fault) -> LinkError {
    LinkError::new(LinkErrorKind::Denied, format!("{NOUN} refuses `{method}`: {}", clip(&fault.message)))
}

fn read_greeting(result: &Value, about: &Value, revision: Option<&str>) -> Greeting {
    let text = |key: &str| about[key].as_str().map(clip).unwrap_or_default();
    Greeting {
        name: text("name"),
        version: text("version"),
        instructions: result["instructions"].as_str().map(|text| clean_line(text, 4000)),
        // A server that names none speaks the first.
        revision: revision.map_or_else(|| "2024-11-05".to_owned(), clip),
        reports_changes: result["capabilities"]["tools"]["listChanged"] == true,
    }
}

fn outgoing(text: String) -> Outgoing {
    Outgoing { text, id: None, headers: HeaderMap::new(), repeatable: true }
}

fn capabilities() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

fn client_info() -> Value {
    json!({"name": "sinew", "version": env!("CARGO_PKG_VERSION")})
}

/// A raw value as a tree; null where it nests too deeply.
fn tree(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// Milliseconds of Unix time: Espressif's engine refuses ids that it saw lately, also on an earlier connection.
fn first_id() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Small engines keep ids in 32 bits; half of them is left to count.
    i64::try_from(now.as_millis() % (1 << 30)).unwrap_or(1)
}
