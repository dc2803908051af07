//! What a client's session needs when its gateway is replaced. No IO: lines in, lines out.
//!
//! A `tools/call` is never sent twice. Other requests only read, so they are kept and sent to the next gateway.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sinew_tool::{ErrorKind, ToolError};

/// Ids of the requests that repeat a session at another gateway; their answers are not for the client.
const REPLAY: &str = "sinew-replay-";

/// How many requests may wait for the next gateway.
const MAX_HELD: usize = 256;

/// How many resources a client may follow; the gateway allows fewer.
const MAX_FOLLOWED: usize = 1024;

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// What to do with a line of the client.
#[derive(Debug, PartialEq)]
pub enum FromClient {
    /// Send it to the gateway.
    Forward,
    /// Send this to the client instead.
    Answer(String),
    /// Nothing to do.
    Done,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JsonRpcLine {
    id: Option<Value>,
    method: Option<String>,
    params: Value,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

impl JsonRpcLine {
    /// The message; `None` if it is not one. A list is not: serde would take its items for the members of an object.
    fn parse(line: &str) -> Option<JsonRpcLine> {
        line.trim_start().starts_with('{').then(|| serde_json::from_str(line).ok())?
    }
}

/// A request of the client that is not answered yet.
struct ForwardedRequest {
    line: String,
    kind: OpenKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenKind {
    /// It may change something, so it is sent once.
    Call,
    /// It reads something and may be sent again.
    Read,
    /// A subscription that lasts until the client cancels it. The flag says that the client has its confirmation.
    Listen { is_confirmed: bool },
}

/// The session of one client across gateways.
#[derive(Default)]
pub struct RelaySession {
    /// The `initialize` request; clients of the newest revision send none.
    initialize: Option<Value>,
    /// The gateway's answer to it.
    agreed: Option<Value>,
    is_initialized: bool,
    log_level: Option<Value>,
    followed: BTreeMap<String, Value>,
    open: BTreeMap<String, ForwardedRequest>,
    /// Ids of questions that the gateway asked the client and that are not answered yet.
    questions: BTreeSet<String>,
    /// Why no gateway will serve this client any more.
    refused: Option<ToolError>,
}

impl RelaySession {
    /// Takes a line of the client.
    pub fn client_line(&mut self, line: impl AsRef<[u8]>, is_connected: bool) -> FromClient {
        // What is not JSON-RPC is answered by the gateway.
        let unreadable = if is_connected { FromClient::Forward } else { FromClient::Done };
        let Ok(line) = std::str::from_utf8(line.as_ref()) else { return unreadable };
        if let Some(messages) = batch(line) {
            return if self.has_batches() { self.client_batch(&messages, is_connected) } else { unreadable };
        }
        let Some(message) = JsonRpcLine::parse(line) else { return unreadable };
        let is_answer = message.result.is_some() || message.error.is_some();
        match (&message.method, &message.id) {
            (Some(method), Some(id)) => self.client_request(method, id, &message.params, line, is_connected),
            (Some(method), None) => self.client_notification(method, &message.params, is_connected),
            (None, Some(id)) if is_answer => match self.questions.remove(&id.to_string()) && is_connected {
                true => FromClient::Forward,
                // The gateway that asked is gone; another one must not take it for an answer to its own question.
                false => FromClient::Done,
            },
            (None, _) => unreadable,
        }
    }

    /// Whether the gateway takes several messages at once; otherwise it refuses them together, and none stays open.
    fn has_batches(&self) -> bool {
        self.agreed.as_ref().is_some_and(|agreed| agreed["protocolVersion"] == "2025-03-26")
    }

    /// Takes the messages of a batch. Where a gateway is missing, each is handled by itself.
    fn client_batch(&mut self, messages: &[&RawValue], is_connected: bool) -> FromClient {
        let mut answers = Vec::new();
        for message in messages {
            if let FromClient::Answer(answer) = self.client_line(message.get(), is_connected) {
                answers.push(answer);
            }
        }
        match (is_connected, answers.is_empty()) {
            (true, _) => FromClient::Forward,
            (false, true) => FromClient::Done,
            (false, false) => FromClient::Answer(format!("[{}]", answers.join(","))),
        }
    }

    fn client_request(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
        line: &str,
        is_connected: bool,
    ) -> FromClient {
        let request = || json!({"jsonrpc": "2.0", "method": method, "params": params});
        match method {
            "initialize" => self.initialize = Some(request()),
            "logging/setLevel" => self.log_level = Some(request()),
            "resources/subscribe" if self.followed.len() < MAX_FOLLOWED => {
                self.followed.insert(params["uri"].to_string(), request());
            }
            "resources/unsubscribe" => {
                self.followed.remove(&params["uri"].to_string());
            }
            _ => {}
        }
        let kind = match method {
            "tools/call" => OpenKind::Call,
            "subscriptions/listen" => OpenKind::Listen { is_confirmed: false },
            _ => OpenKind::Read,
        };
        if let Some(why) = &self.refused {
            return FromClient::Answer(if kind == OpenKind::Call {
                failed_call(id, why)
            } else {
                failed_request(id, why)
            });
        }
        if !is_connected && kind == OpenKind::Call {
            return FromClient::Answer(failed_call(id, &not_sent()));
        }
        if !is_connected && self.open.len() >= MAX_HELD {
            return FromClient::Answer(failed_request(id, &not_sent()));
        }
        self.open.insert(id.to_string(), ForwardedRequest { line: line.to_owned(), kind });
        if is_connected { FromClient::Forward } else { FromClient::Done }
    }

    fn client_notification(&mut self, method: &str, params: &Value, is_connected: bool) -> FromClient {
        match method {
            "notifications/initialized" => self.is_initialized = true,
            "notifications/cancelled" => {
                self.open.remove(&params["requestId"].to_string());
            }
            _ => {}
        }
        if is_connected { FromClient::Forward } else { FromClient::Done }
    }

    /// Takes a line of the gateway; false means that it is not for the client.
    pub fn gateway_line(&mut self, line: impl AsRef<[u8]>) -> bool {
        let Ok(line) = std::str::from_utf8(line.as_ref()) else { return true };
        if let Some(answers) = batch(line) {
            answers.iter().for_each(|answer| _ = self.gateway_line(answer.get()));
            return true;
        }
        let Some(message) = JsonRpcLine::parse(line) else { return true };
        match (&message.method, &message.id) {
            (None, Some(id)) => self.gateway_answer(id, line),
            (Some(_), Some(id)) => {
                self.questions.insert(id.to_string());
                true
            }
            (Some(method), None) if method == "notifications/subscriptions/acknowledged" => {
                self.confirm(&message.params["_meta"][SUBSCRIPTION_ID])
            }
            _ => true,
        }
    }

    fn gateway_answer(&mut self, id: &Value, line: &str) -> bool {
        if id.as_str().is_some_and(|id| id.starts_with(REPLAY)) {
            return false;
        }
        let key = id.to_string();
        let Some(open) = self.open.get(&key) else { return true };
        let has_failed = || serde_json::from_str::<Value>(line).is_ok_and(|answer| answer.get("error").is_some());
        // A gateway that stops ends its subscriptions; the next one goes on with them.
        if matches!(open.kind, OpenKind::Listen { .. }) && !has_failed() {
            return false;
        }
        let is_initialize =
            JsonRpcLine::parse(&open.line).is_some_and(|request| request.method.as_deref() == Some("initialize"));
        if is_initialize {
            self.agreed = serde_json::from_str::<Value>(line).ok().map(|answer| answer["result"].clone());
        }
        self.open.remove(&key);
        true
    }

    /// Whether the client has not seen this confirmation of a subscription yet.
    fn confirm(&mut self, id: &Value) -> bool {
        match self.open.get_mut(&id.to_string()).map(|open| &mut open.kind) {
            Some(OpenKind::Listen { is_confirmed }) => !std::mem::replace(is_confirmed, true),
            _ => true,
        }
    }

    /// The gateway is gone: what to tell the client.
    pub fn lost(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        self.open.retain(|_, request| {
            if request.kind != OpenKind::Call {
                return true;
            }
            let id = JsonRpcLine::parse(&request.line).and_then(|message| message.id);
            lines.extend(id.map(|id| failed_call(&id, &maybe_done())));
            false
        });
        for question in std::mem::take(&mut self.questions) {
            let id: Value = serde_json::from_str(&question).unwrap_or_default();
            let params = json!({"requestId": id, "reason": "the gateway was stopped"});
            lines.push(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string());
        }
        lines
    }

    /// No gateway comes: answers for the requests that wait for one. Subscriptions go on waiting.
    pub fn give_up(&mut self) -> Vec<String> {
        let (refused, mut lines) = (self.refused.clone(), Vec::new());
        self.open.retain(|_, request| {
            let is_kept = refused.is_none() && matches!(request.kind, OpenKind::Listen { .. });
            if !is_kept {
                let id = JsonRpcLine::parse(&request.line).and_then(|message| message.id);
                lines.extend(id.map(|id| failed_request(&id, &refused.clone().unwrap_or_else(not_sent))));
            }
            is_kept
        });
        lines
    }

    /// No gateway will serve this client again: answers for the requests that wait. Later ones get the same answer.
    pub fn refuse(&mut self, why: String) -> Vec<String> {
        self.refused = Some(ToolError::new(ErrorKind::PermissionDenied, why));
        self.give_up()
    }

    /// The `initialize` request for another gateway, with its id. None where the client has no session yet.
    pub fn replay_initialize(&self) -> Option<(String, String)> {
        self.agreed.as_ref()?;
        let mut request = self.initialize.clone()?;
        let id = format!("{REPLAY}0");
        request["id"] = json!(id);
        Some((id, request.to_string()))
    }

    /// Whether another gateway agreed to the same revision of MCP as the first one.
    pub fn agrees(&self, answer: &Value) -> bool {
        let revision = |result: &Value| result["protocolVersion"].clone();
        self.agreed.as_ref().is_none_or(|agreed| revision(agreed) == revision(&answer["result"]))
    }

    /// The lines that bring another gateway up to date, after `initialize`.
    pub fn replay(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.agreed.is_some() && self.is_initialized {
            lines.push(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        }
        for (number, request) in self.log_level.iter().chain(self.followed.values()).enumerate() {
            let mut request = request.clone();
            request["id"] = json!(format!("{REPLAY}{}", number + 1));
            lines.push(request.to_string());
        }
        lines.extend(self.open.values().map(|request| request.line.clone()));
        lines
    }

    /// Notifications for a client whose session goes on at another gateway: lists may have changed.
    pub fn resumed(&self) -> Vec<String> {
        let changed = |list: &str, params: Value| {
            json!({"jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed"), "params": params})
                .to_string()
        };
        let mut lines = Vec::new();
        if let Some(agreed) = self.agreed.as_ref().filter(|_| self.is_initialized) {
            for list in ["tools", "resources", "prompts"] {
                if agreed["capabilities"][list]["listChanged"] == true {
                    lines.push(changed(list, json!({})));
                }
            }
        }
        for request in self.open.values().filter(|request| matches!(request.kind, OpenKind::Listen { .. })) {
            let Some(message) = JsonRpcLine::parse(&request.line) else { continue };
            let meta = json!({"_meta": {SUBSCRIPTION_ID: message.id}});
            for list in ["tools", "resources", "prompts"] {
                if message.params["notifications"][format!("{list}ListChanged")] == true {
                    lines.push(changed(list, meta.clone()));
                }
            }
        }
        lines
    }
}

/// The messages of a batch with at least one; `None` for anything else, as for a batch inside a batch.
fn batch(line: &str) -> Option<Vec<&RawValue>> {
    let messages: Vec<&RawValue> = serde_json::from_str(line.trim_start().starts_with('[').then_some(line)?).ok()?;
    let is_flat = messages.iter().all(|message| !message.get().starts_with('['));
    (is_flat && !messages.is_empty()).then_some(messages)
}

fn not_sent() -> ToolError {
    let message = "the gateway is being restarted and nothing was sent; try again in a few seconds";
    ToolError::new(ErrorKind::DeviceAway, message)
}

fn maybe_done() -> ToolError {
    let message = "the gateway was stopped before it answered, so the call may or may not have had its effect; look at \
                   the device before you call again";
    ToolError::new(ErrorKind::DeviceLost, message)
}

/// A failed call as the gateway itself reports one.
fn failed_call(id: &Value, error: &ToolError) -> String {
    let object = error.to_object();
    let result = json!({
        "content": [{"type": "text", "text": error.message}], "isError": true, "_meta": {"sinew/error": object},
    });
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

fn failed_request(id: &Value, error: &ToolError) -> String {
    let body = json!({"code": -32603, "message": error.message, "data": error.to_object()});
    json!({"jsonrpc": "2.0", "id": id, "error": body}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INITIALIZE: &str =
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    const AGREED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}}}}"#;
    const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

    fn request(id: u32, method: &str) -> String {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}).to_string()
    }

    fn session() -> RelaySession {
        session_of("2025-11-25")
    }

    fn session_of(revision: &str) -> RelaySession {
        let mut session = RelaySession::default();
        assert_eq!(session.client_line(INITIALIZE.replace("2025-11-25", revision), true), FromClient::Forward);
        assert!(session.gateway_line(AGREED.replace("2025-11-25", revision)));
        assert_eq!(session.client_line(INITIALIZED, true), FromClient::Forward);
        session
    }

    #[test]
    fn a_call_is_never_sent_to_a_second_gateway() {
        let mut session = session();
        assert_eq!(session.client_line(request(1, "tools/call"), true), FromClient::Forward);
        let lines = session.lost();
        assert!(lines.len() == 1 && lines[0].contains("DeviceLost"), "{lines:?}");
        assert!(!session.replay().iter().any(|line| line.contains("tools/call")));
        assert!(session.lost().is_empty(), "it is answered once");
    }

    #[test]
    fn a_call_without_a_gateway_is_answered_with_a_retryable_error() {
        let mut session = session();
        let FromClient::Answer(line) = session.client_line(request(1, "tools/call"), false) else {
            panic!("no answer")
        };
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        let error = ToolError::from_object(&answer["result"]["_meta"]["sinew/error"]).expect("an error");
        assert_eq!(error.kind.row().retry, sinew_tool::error::Retry::Later);
        assert!(!session.replay().iter().any(|line| line.contains("tools/call")));
    }

    #[test]
    fn what_only_reads_is_sent_to_the_next_gateway() {
        let mut session = session();
        assert_eq!(session.client_line(request(1, "tools/list"), true), FromClient::Forward);
        assert_eq!(session.client_line(request(2, "ping"), false), FromClient::Done);
        assert!(session.lost().is_empty());
        assert_eq!(session.replay(), [INITIALIZED.to_owned(), request(1, "tools/list"), request(2, "ping")]);
        assert!(session.gateway_line(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        assert_eq!(session.give_up().len(), 1, "only the ping still waits");
    }

    #[test]
    fn a_session_is_repeated_without_the_client_noticing_and_its_lists_are_read_again() {
        let mut session = session();
        session
            .client_line(json!({"id": 5, "method": "logging/setLevel", "params": {"level": "info"}}).to_string(), true);
        session.gateway_line(r#"{"id":5,"result":{}}"#);
        let uri = json!({"id": 6, "method": "resources/subscribe", "params": {"uri": "sinew://a"}}).to_string();
        session.client_line(&uri, true);
        session.gateway_line(r#"{"id":6,"result":{}}"#);
        let (id, line) = session.replay_initialize().expect("a session");
        assert!(line.contains("2025-11-25") && line.contains(&id));
        assert!(!session.gateway_line(json!({"id": id, "result": {}}).to_string()), "not for the client");
        let lines = session.replay();
        assert!(lines[1].contains("setLevel") && lines[2].contains("sinew://a"), "{lines:?}");
        assert_eq!(session.resumed().len(), 1);
        assert!(session.resumed()[0].contains("notifications/tools/list_changed"));
        assert!(session.agrees(&json!({"result": {"protocolVersion": "2025-11-25"}})));
        assert!(!session.agrees(&json!({"result": {"protocolVersion": "2024-11-05"}})));
    }

    #[test]
    fn a_question_of_a_lost_gateway_is_cancelled_and_its_late_answer_reaches_nobody() {
        let mut session = session();
        assert!(session.gateway_line(r#"{"id":0,"method":"elicitation/create","params":{}}"#));
        let lines = session.lost();
        assert!(lines[0].contains("notifications/cancelled"), "{lines:?}");
        assert_eq!(session.client_line(r#"{"id":0,"result":{}}"#, true), FromClient::Done);
    }

    #[test]
    fn a_subscription_lasts_until_its_client_cancels_it() {
        let mut session = RelaySession::default();
        let listen = json!({
            "id": 3, "method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": true}},
        });
        session.client_line(listen.to_string(), true);
        let ack = json!({
            "method": "notifications/subscriptions/acknowledged", "params": {"_meta": {SUBSCRIPTION_ID: 3}},
        });
        assert!(session.gateway_line(ack.to_string()));
        assert!(!session.gateway_line(r#"{"id":3,"result":{}}"#), "the gateway stops");
        assert!(session.lost().is_empty());
        assert_eq!(session.replay(), [listen.to_string()]);
        assert!(!session.gateway_line(ack.to_string()), "the client knows it");
        assert!(session.resumed()[0].contains("tools/list_changed"), "{:?}", session.resumed());
        session.client_line(r#"{"method":"notifications/cancelled","params":{"requestId":3}}"#, true);
        assert!(session.replay().is_empty());
    }

    #[test]
    fn a_batch_is_passed_on_and_each_of_its_requests_is_remembered() {
        let mut session = session_of("2025-03-26");
        let batch = format!("[{},{}]", request(1, "tools/call"), request(2, "tools/list"));
        assert_eq!(session.client_line(&batch, true), FromClient::Forward);
        assert_eq!(session.client_line(format!("[{}]", request(3, "ping")), true), FromClient::Forward);
        assert!(session.gateway_line(r#"[{"jsonrpc":"2.0","id":3,"result":{}}]"#));
        let lines = session.lost();
        assert!(lines.len() == 1 && lines[0].contains("DeviceLost"), "{lines:?}");
        assert_eq!(session.replay(), [INITIALIZED.to_owned(), request(2, "tools/list")]);
        let FromClient::Answer(answer) = session.client_line(&batch, false) else { panic!("no answer") };
        assert!(answer.starts_with("[{") && answer.contains("DeviceAway"), "{answer}");
    }

    #[test]
    fn a_batch_that_the_gateway_refuses_is_not_remembered() {
        let mut session = session();
        let batch = format!("[{},{}]", request(1, "tools/call"), request(2, "tools/list"));
        assert_eq!(session.client_line(&batch, true), FromClient::Forward);
        assert!(session.lost().is_empty());
        assert_eq!(session.replay(), [INITIALIZED.to_owned()]);
    }

    #[test]
    fn text_that_is_not_utf_8_is_left_to_the_gateway() {
        let mut session = session();
        assert_eq!(session.client_line(b"{\"id\":1,\"method\":\"\xff\"}", true), FromClient::Forward);
        assert!(session.lost().is_empty());
    }

    #[test]
    fn what_is_not_a_message_reaches_the_gateway_which_says_so() {
        let mut session = session();
        for odd in
            ["[]", "[1]", "[[]]", "{}", "5", "{", r#"{"id":5}"#, r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#]
        {
            assert_eq!(session.client_line(odd, true), FromClient::Forward, "{odd}");
        }
        assert_eq!(session.client_line(r#"{"id":5,"result":{}}"#, true), FromClient::Done, "nobody asked");
    }

    #[test]
    fn odd_lines_pass_and_never_panic() {
        let mut session = RelaySession::default();
        for odd in ["", "[]", "null", "{", "5", r#"{"id":{}}"#, r#"{"method":5,"id":1}"#, r#"{"id":null,"method":"x"}"#]
        {
            session.client_line(odd, true);
            session.client_line(odd, false);
            assert!(session.gateway_line(odd) || odd.contains("id"));
        }
        assert!(session.lost().is_empty());
    }
}
