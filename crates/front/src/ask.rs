//! The way back to an MCP client: progress, log messages and questions.
//!
//! What a device says is queued here and sent by the task that serves the request, because only
//! there does it reach the stream of that request. A question takes one of two roads: a client of an
//! older revision is asked over its connection while the call waits; a client of 2026-07-28 has no
//! such connection, so the call ends, its answer holds the questions, and the client repeats the call
//! with what it was told.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, ElicitationCapability, InputRequests, RequestMetaObject};
use rmcp::service::Peer;
use serde_json::{Value, json};
use sinew_tool::{Answer, BoxFuture, Caller, ErrorKind, LogLevel, Question, ToolError};
use tokio::sync::{Notify, oneshot};

/// A device that talks faster than its caller reads loses messages beyond this many.
const QUEUE: usize = 256;

type Questions = BTreeMap<String, Question>;
pub(crate) type Answers = BTreeMap<String, Answer>;

/// Something to be passed on while a call runs.
pub(crate) enum Said {
    Progress { progress: f64, total: Option<f64>, message: Option<String> },
    Log { level: LogLevel, data: Value },
    Ask { questions: Questions, reply: oneshot::Sender<Result<Answers, ToolError>> },
}

/// Where a client says what it can be asked.
pub(crate) enum Client {
    /// Once for its connection, in the handshake.
    Connected(Peer<RoleServer>),
    /// In every request anew.
    Modern(RequestMetaObject),
}

impl Client {
    fn capabilities(&self) -> ClientCapabilities {
        match self {
            Client::Connected(peer) => peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default(),
            Client::Modern(meta) => meta.client_capabilities().unwrap_or_default(),
        }
    }
}

/// The caller of one request.
pub(crate) struct Way {
    client: Client,
    /// Whether the caller wants progress, and from which level on it wants the log.
    progress: bool,
    level: Option<LogLevel>,
    state: Mutex<State>,
    bell: Notify,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Said>,
    last_progress: Option<f64>,
    /// Only for callers without a lasting connection.
    rounds: Rounds,
    missing: Option<ClientCapabilities>,
}

/// What was asked and answered over several rounds of one call.
#[derive(Default)]
struct Rounds {
    /// All that the client sent along.
    given: Answers,
    /// Those the device asked for, this time or before.
    used: Answers,
    open: Questions,
}

impl Way {
    /// `given` is what a client without a lasting connection sent along from earlier rounds.
    pub(crate) fn new(client: Client, progress: bool, level: Option<LogLevel>, given: Answers) -> Way {
        let rounds = Rounds { given, ..Rounds::default() };
        let state = Mutex::new(State { rounds, ..State::default() });
        Way { client, progress, level, state, bell: Notify::new() }
    }

    pub(crate) fn is_modern(&self) -> bool {
        matches!(self.client, Client::Modern(_))
    }

    /// The next thing said. Giving up waiting loses nothing.
    pub(crate) async fn heard(&self) -> Said {
        loop {
            if let Some(said) = self.overhear() {
                return said;
            }
            self.bell.notified().await;
        }
    }

    /// The next thing said, where something was said already.
    pub(crate) fn overhear(&self) -> Option<Said> {
        self.state().queue.pop_front()
    }

    /// After the call: the questions still open and the answers that were used, where the client may
    /// be asked to come again.
    pub(crate) fn open_rounds(&self) -> Option<(Questions, Answers)> {
        let mut state = self.state();
        let rounds = &mut state.rounds;
        (!rounds.open.is_empty()).then(|| (std::mem::take(&mut rounds.open), std::mem::take(&mut rounds.used)))
    }

    /// After the call: what the client would have had to declare.
    pub(crate) fn missing_capability(&self) -> Option<ClientCapabilities> {
        self.state().missing.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, said: Said) {
        self.state().queue.push_back(said);
        self.bell.notify_one();
    }

    /// Refuses questions that the client never said it can answer.
    fn check_capabilities(&self, questions: &Questions) -> Result<(), ToolError> {
        let declared = self.client.capabilities();
        for question in questions.values() {
            let Some((word, needed)) = lacking(question, &declared) else { continue };
            self.state().missing = Some(needed);
            return Err(ToolError::new(
                ErrorKind::Unsupported,
                format!(
                    "the device needs to ask through `{word}`, which this client did not declare; use a client that supports it"
                ),
            ));
        }
        Ok(())
    }
}

impl Caller for Way {
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if !self.progress || !progress.is_finite() {
            return;
        }
        let mut state = self.state();
        // MCP wants every report to exceed the one before.
        if state.last_progress.is_some_and(|last| progress <= last) || state.queue.len() >= QUEUE {
            return;
        }
        state.last_progress = Some(progress);
        drop(state);
        self.say(Said::Progress { progress, total, message: message.map(str::to_owned) });
    }

    fn log(&self, level: LogLevel, data: Value) {
        if self.level.is_some_and(|least| level >= least) && self.state().queue.len() < QUEUE {
            self.say(Said::Log { level, data });
        }
    }

    fn ask(&self, questions: Questions) -> BoxFuture<'_, Result<Answers, ToolError>> {
        Box::pin(async move {
            self.check_capabilities(&questions)?;
            if !self.is_modern() {
                let (reply, answers) = oneshot::channel();
                self.say(Said::Ask { questions, reply });
                let gone = |_| ToolError::new(ErrorKind::Cancelled, "the caller went away before it answered");
                return answers.await.map_err(gone)?;
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

/// Whether an answer has the form its question asks for; otherwise the question stays open.
pub(crate) fn fits(question: &Question, answer: &Answer) -> bool {
    let action = answer.get("action").and_then(Value::as_str);
    match question {
        Question::Form { .. } => match action {
            Some("accept") => answer.get("content").is_some_and(Value::is_object),
            other => matches!(other, Some("decline" | "cancel")),
        },
        Question::Page { .. } => matches!(action, Some("accept" | "decline" | "cancel")),
        Question::Completion { .. } => answer.get("role").is_some() && answer.get("content").is_some(),
        Question::Roots => answer.get("roots").is_some_and(Value::is_array),
    }
}

/// The MCP request that puts a question: method and parameters.
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

/// The questions as a client of 2026-07-28 gets them.
pub(crate) fn input_requests(questions: &Questions) -> Result<InputRequests, ToolError> {
    let one = |(key, question): (&String, &Question)| {
        let (method, params) = request(key, question);
        let request = serde_json::from_value(json!({"method": method, "params": params})).map_err(|error| {
            let message = format!("the device's question `{key}` is not a valid `{method}` request: {error}");
            ToolError::new(ErrorKind::BadAnswer, message)
        })?;
        Ok((key.clone(), request))
    };
    questions.iter().map(one).collect()
}

/// What a question needs that was not declared.
fn lacking(question: &Question, declared: &ClientCapabilities) -> Option<(&'static str, ClientCapabilities)> {
    let mut needed = ClientCapabilities::default();
    let elicitation = declared.elicitation.as_ref();
    let (word, there) = match question {
        Question::Form { .. } => {
            needed.elicitation = Some(ElicitationCapability::default());
            // An empty `elicitation` means forms, as it did before there were pages.
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
    (!there).then_some((word, needed))
}
