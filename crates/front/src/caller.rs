//! Progress, log messages and questions from a device to the MCP client that called it.
//!
//! Messages are queued here and sent by the task that serves the request, because only that task can write to the
//! stream of the request. There are two ways to ask: a client of an older revision is asked over its connection while
//! the call waits. A client of 2026-07-28 has no such connection, so the call ends with the questions, and the client
//! repeats it with the answers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, ElicitationCapability, InputRequests, RequestMetaObject};
use rmcp::service::Peer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sinew_tool::{
    Answer, BoxFuture, Caller, Consent, ConsentRequest, ConsentWay, ErrorKind, LogLevel, Question, ToolError,
};
use tokio::sync::{Notify, oneshot};

/// Messages of a device beyond this many are dropped until the client has read some.
const QUEUE: usize = 256;

/// In front of the keys of the gateway's own questions. No device asks under such a key, and nothing that a client sends
/// under one is an answer to a device.
const OWN_KEYS: &str = "sinew/";
/// The key of the question about a call that waits for approval.
const APPROVAL_KEY: &str = "sinew/approval";

type Questions = BTreeMap<String, Question>;
pub(crate) type Answers = BTreeMap<String, Answer>;

/// A message of a device to its caller while a call runs.
pub(crate) enum CallerMessage {
    Progress {
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    Log {
        level: LogLevel,
        data: Value,
    },
    Ask {
        questions: Questions,
        reply: oneshot::Sender<Result<Answers, ToolError>>,
    },
    /// What the client opened an address for is done.
    PageDone {
        key: String,
    },
}

/// Where a client declares its capabilities.
pub(crate) enum CapabilitySource {
    /// In the handshake of its connection.
    Handshake(Peer<RoleServer>),
    /// In every request.
    Request(RequestMetaObject),
}

impl CapabilitySource {
    fn capabilities(&self) -> ClientCapabilities {
        match self {
            CapabilitySource::Handshake(peer) => {
                peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default()
            }
            CapabilitySource::Request(meta) => meta.client_capabilities().unwrap_or_default(),
        }
    }
}

/// The MCP client that made one call.
pub(crate) struct ClientCaller {
    client: CapabilitySource,
    /// Whether the caller wants progress, and from which level on it wants the log.
    progress: bool,
    level: Option<LogLevel>,
    state: Mutex<CallerState>,
    queued: Notify,
}

#[derive(Default)]
struct CallerState {
    queue: VecDeque<CallerMessage>,
    progress: ProgressReports,
    /// Only for callers without a connection.
    rounds: Rounds,
    missing: Option<ClientCapabilities>,
    /// The approvals whose page the client was asked over its connection to open.
    pages: Vec<String>,
}

/// The numbers of the reports of one call. MCP requires each to be larger than the one before.
#[derive(Default)]
struct ProgressReports {
    sent: Option<f64>,
    by_device: Option<f64>,
    total: Option<f64>,
}

impl ProgressReports {
    /// So small that the reports of the gateway hardly change what a device reports.
    const STEP: f64 = 0.001;

    /// The number for a report of the device; `None` if it does not exceed the device's last one.
    fn of_device(&mut self, progress: f64, total: Option<f64>) -> Option<f64> {
        if self.by_device.is_some_and(|last| progress <= last) {
            return None;
        }
        (self.by_device, self.total) = (Some(progress), total);
        // Reports of the gateway may have come first.
        let sent = self.sent.map_or(progress, |sent| progress.max(above(sent)));
        self.sent = Some(sent);
        Some(sent)
    }

    /// The number for a report of the gateway.
    fn of_gateway(&mut self) -> f64 {
        let sent = self.sent.map_or(Self::STEP, above);
        self.sent = Some(sent);
        sent
    }

    /// The total of the device, unless the reports have passed it.
    fn total(&self) -> Option<f64> {
        self.total.filter(|total| self.sent.is_none_or(|sent| sent <= *total))
    }
}

fn above(number: f64) -> f64 {
    (number + ProgressReports::STEP).max(number.next_up())
}

/// What a client without a connection carries from one round of a call to the next.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CarriedRounds {
    /// The answers that were used so far. A run that waits has taken its own already.
    pub(crate) answers: Answers,
    /// The run that waits.
    pub(crate) run: Option<String>,
    /// The approval that the client asks its user about.
    pub(crate) approval: Option<String>,
}

/// Questions and answers over several rounds of one call.
#[derive(Default)]
struct Rounds {
    /// All answers that the client sent.
    given: Answers,
    /// Those that the device asked for, in this round or before.
    used: Answers,
    open: Questions,
    /// The run that an earlier round left waiting, and that which this one leaves so.
    continued: Option<String>,
    parked: Option<String>,
    /// The approval that this client was asked about in an earlier round: only the gateway seals its id.
    resumed: Option<String>,
    /// What the client says about it.
    consent: Option<Answer>,
    /// The approval that it is asked about now.
    asked: Option<String>,
}

impl Rounds {
    /// `sent` is what the client sends with this round, asked or not.
    fn new(carried: CarriedRounds, mut sent: Answers) -> Rounds {
        let CarriedRounds { answers: mut given, run: continued, approval: resumed } = carried;
        let consent = sent.remove(APPROVAL_KEY).filter(|_| resumed.is_some());
        given.extend(sent);
        given.retain(|key, _| !key.starts_with(OWN_KEYS));
        Rounds { given, continued, resumed, consent, ..Rounds::default() }
    }
}

impl ClientCaller {
    /// `carried` is what a client without a connection sent from earlier rounds.
    pub(crate) fn new(
        client: CapabilitySource,
        progress: bool,
        level: Option<LogLevel>,
        carried: CarriedRounds,
        sent: Answers,
    ) -> ClientCaller {
        let rounds = Rounds::new(carried, sent);
        let state = Mutex::new(CallerState { rounds, ..CallerState::default() });
        ClientCaller { client, progress, level, state, queued: Notify::new() }
    }

    pub(crate) fn is_modern(&self) -> bool {
        matches!(self.client, CapabilitySource::Request(_))
    }

    /// Waits for the next message. Dropping the future loses nothing.
    pub(crate) async fn next(&self) -> CallerMessage {
        loop {
            if let Some(message) = self.try_next() {
                return message;
            }
            self.queued.notified().await;
        }
    }

    /// The next message, if one is queued.
    pub(crate) fn try_next(&self) -> Option<CallerMessage> {
        self.state().queue.pop_front()
    }

    /// A report that the call still runs, for clients that give up on silent calls.
    pub(crate) fn still_running(&self, time: Duration) -> CallerMessage {
        let mut state = self.state();
        let (progress, total) = (state.progress.of_gateway(), state.progress.total());
        CallerMessage::Progress { progress, total, message: Some(format!("still running after {} s", time.as_secs())) }
    }

    /// After the call: the open questions and what the next round needs, if the client may repeat the call.
    pub(crate) fn open_rounds(&self) -> Option<(Questions, CarriedRounds)> {
        let rounds = std::mem::take(&mut self.state().rounds);
        let answers = if rounds.parked.is_some() { Answers::new() } else { rounds.used };
        (!rounds.open.is_empty())
            .then(|| (rounds.open, CarriedRounds { answers, run: rounds.parked, approval: rounds.asked }))
    }

    /// Asks about an approval over the connection, or with the answer to a call that is then repeated.
    async fn ask_consent(&self, request: &ConsentRequest) -> Consent {
        let message = request.message.clone();
        let question = match &request.way {
            ConsentWay::Form => Question::Form { message, schema: json!({"type": "object", "properties": {}}) },
            ConsentWay::Page(url) => Question::Page { message, url: url.clone() },
        };
        if missing_capability(&question, &self.client.capabilities()).is_some() {
            return Consent::Waits;
        }
        let answer = if self.is_modern() {
            let mut state = self.state();
            let rounds = &mut state.rounds;
            if rounds.resumed.as_deref() != Some(&request.approval) {
                rounds.asked = Some(request.approval.clone());
                rounds.open.insert(APPROVAL_KEY.to_owned(), question);
                return Consent::Repeats;
            }
            rounds.consent.take()
        } else {
            let (reply, answers) = oneshot::channel();
            if matches!(request.way, ConsentWay::Page(_)) {
                self.state().pages.push(request.approval.clone());
            }
            let questions = Questions::from([(own_key(&request.approval), question)]);
            self.push(CallerMessage::Ask { questions, reply });
            answers.await.ok().and_then(Result::ok).and_then(|answers| answers.into_values().next())
        };
        let action = answer.as_ref().and_then(|answer| answer.get("action")).and_then(Value::as_str);
        match (&request.way, action) {
            (ConsentWay::Form, Some("accept")) => Consent::Accepted,
            (ConsentWay::Form, Some("decline")) => Consent::Declined,
            // Who opened the page or not, the decision is made there.
            _ => Consent::Waits,
        }
    }

    /// After the call: the capability that the client should have declared.
    pub(crate) fn missing_capability(&self) -> Option<ClientCapabilities> {
        self.state().missing.take()
    }

    fn state(&self) -> MutexGuard<'_, CallerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, message: CallerMessage) {
        self.state().queue.push_back(message);
        self.queued.notify_one();
    }

    /// Refuses questions for which the client has not declared a capability.
    fn check_capabilities(&self, questions: &Questions) -> Result<(), ToolError> {
        let declared = self.client.capabilities();
        for question in questions.values() {
            let Some((name, needed)) = missing_capability(question, &declared) else { continue };
            self.state().missing = Some(needed);
            return Err(ToolError::new(
                ErrorKind::Unsupported,
                format!(
                    "the device needs to ask a question with `{name}`, which this client does not support; use a client that declares it"
                ),
            ));
        }
        Ok(())
    }
}

impl Caller for ClientCaller {
    fn consent<'a>(&'a self, request: &'a ConsentRequest) -> BoxFuture<'a, Consent> {
        Box::pin(self.ask_consent(request))
    }

    fn consent_ended(&self, approval: &str) {
        let was_asked = {
            let pages = &mut self.state().pages;
            let place = pages.iter().position(|asked| asked == approval);
            place.map(|place| pages.swap_remove(place)).is_some()
        };
        if was_asked {
            self.push(CallerMessage::PageDone { key: own_key(approval) });
        }
    }

    fn resumed_approval(&self) -> Option<String> {
        self.state().rounds.resumed.clone()
    }

    fn repeats_calls(&self) -> bool {
        self.is_modern()
    }

    fn parked(&self, run: &str) {
        self.state().rounds.parked = Some(run.to_owned());
    }

    fn continues(&self) -> Option<String> {
        self.state().rounds.continued.clone()
    }

    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if !self.progress || !progress.is_finite() {
            return;
        }
        let mut state = self.state();
        if state.queue.len() >= QUEUE {
            return;
        }
        let Some(progress) = state.progress.of_device(progress, total) else { return };
        let total = state.progress.total();
        drop(state);
        self.push(CallerMessage::Progress { progress, total, message: message.map(str::to_owned) });
    }

    fn is_patient(&self) -> bool {
        self.progress
    }

    fn log(&self, level: LogLevel, data: Value) {
        if self.level.is_some_and(|least| level >= least) && self.state().queue.len() < QUEUE {
            self.push(CallerMessage::Log { level, data });
        }
    }

    fn ask(&self, questions: Questions) -> BoxFuture<'_, Result<Answers, ToolError>> {
        Box::pin(async move {
            if let Some(key) = questions.keys().find(|key| key.starts_with(OWN_KEYS)) {
                let message = format!(
                    "the device asks under the key `{key}`; keys that begin with `{OWN_KEYS}` are the gateway's"
                );
                return Err(ToolError::new(ErrorKind::BadAnswer, message));
            }
            self.check_capabilities(&questions)?;
            if !self.is_modern() {
                let (reply, answers) = oneshot::channel();
                self.push(CallerMessage::Ask { questions, reply });
                let closed = |_| ToolError::new(ErrorKind::Cancelled, "the client disconnected before it answered");
                return answers.await.map_err(closed)?;
            }
            let mut state = self.state();
            let rounds = &mut state.rounds;
            let mut answers = Answers::new();
            for (key, question) in questions {
                match rounds.given.get(&key).filter(|answer| fits(&question, answer)) {
                    Some(answer) => {
                        rounds.used.insert(key.clone(), answer.clone());
                        answers.insert(key, answer.clone());
                    }
                    None => {
                        rounds.open.insert(key, question);
                    }
                }
            }
            if rounds.open.is_empty() {
                return Ok(answers);
            }
            Err(ToolError::new(ErrorKind::InputRequired, "a question must be answered first"))
        })
    }
}

/// The key of the question about an approval, over a connection.
fn own_key(approval: &str) -> String {
    format!("{OWN_KEYS}{approval}")
}

/// Whether an answer has the form that its question needs; otherwise the question stays open.
pub(crate) fn fits(question: &Question, answer: &Answer) -> bool {
    let action = answer.get("action").and_then(Value::as_str);
    match question {
        Question::Form { schema, .. } => match action {
            // Of a form without fields some clients send no content.
            Some("accept") => match answer.get("content") {
                None => schema["properties"].as_object().is_some_and(serde_json::Map::is_empty),
                Some(content) => content.is_object(),
            },
            other => matches!(other, Some("decline" | "cancel")),
        },
        Question::Page { .. } => matches!(action, Some("accept" | "decline" | "cancel")),
        Question::Completion { .. } => answer.get("role").is_some() && answer.get("content").is_some(),
        Question::Roots => answer.get("roots").is_some_and(Value::is_array),
    }
}

/// The MCP request for a question: method and parameters.
pub(crate) fn request(key: &str, question: &Question) -> (&'static str, Value) {
    match question {
        Question::Form { message, schema } => {
            ("elicitation/create", json!({"message": message, "requestedSchema": schema}))
        }
        Question::Page { message, url } => {
            ("elicitation/create", json!({"mode": "url", "message": message, "url": url, "elicitationId": key}))
        }
        Question::Completion { params } => ("sampling/createMessage", params.clone()),
        Question::Roots => ("roots/list", json!({})),
    }
}

/// The questions in the form of 2026-07-28.
pub(crate) fn input_requests(questions: &Questions) -> Result<InputRequests, ToolError> {
    let convert = |(key, question): (&String, &Question)| {
        let (method, params) = request(key, question);
        let request = serde_json::from_value(json!({"method": method, "params": params})).map_err(|error| {
            let message = format!("the device's question `{key}` is not a valid `{method}` request: {error}");
            ToolError::new(ErrorKind::BadAnswer, message)
        })?;
        Ok((key.clone(), request))
    };
    questions.iter().map(convert).collect()
}

/// The capability that a question needs and the client has not declared.
fn missing_capability(
    question: &Question,
    declared: &ClientCapabilities,
) -> Option<(&'static str, ClientCapabilities)> {
    let mut needed = ClientCapabilities::default();
    let elicitation = declared.elicitation.as_ref();
    let (name, is_declared) = match question {
        Question::Form { .. } => {
            needed.elicitation = Some(ElicitationCapability::default());
            // An empty `elicitation` means forms, as in revisions without URLs.
            ("elicitation", elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none()))
        }
        Question::Page { .. } => {
            needed.elicitation = Some(ElicitationCapability::default().with_url(Default::default()));
            ("elicitation.url", elicitation.is_some_and(|modes| modes.url.is_some()))
        }
        Question::Completion { .. } => {
            needed.sampling = Some(Default::default());
            ("sampling", declared.sampling.is_some())
        }
        Question::Roots => {
            needed.roots = Some(Default::default());
            ("roots", declared.roots.is_some())
        }
    };
    (!is_declared).then_some((name, needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_grow_whoever_they_are_from() {
        let mut reports = ProgressReports::default();
        let first = reports.of_gateway();
        let second = reports.of_gateway();
        assert!(0.0 < first && first < second);
        let zero = reports.of_device(0.0, Some(2.0)).expect("the first report of the device");
        assert!(second < zero && zero < 0.1 && reports.total() == Some(2.0));
        assert_eq!(reports.of_device(1.0, Some(2.0)), Some(1.0));
        assert_eq!(reports.of_device(1.0, Some(2.0)), None, "a device repeats itself");
        assert!(reports.of_gateway() > 1.0);
        assert_eq!(reports.of_device(2.0, Some(2.0)), Some(2.0));
        assert!(reports.of_gateway() > 2.0 && reports.total().is_none(), "beyond its total");
        let huge = reports.of_device(1e300, None).expect("a number");
        assert!(reports.of_gateway() > huge);
    }
}
