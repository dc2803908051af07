//! One running agent: a JSON object a line to its input, a JSON object a line from its output.
//!
//! Requests carry ids and are answered in any order. The agent lives as long as this end of its
//! stream: when the last [`Agent`] is dropped the stream closes, and with it the program on the phone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::lenient;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::error::{AgentError, AgentRefusal};
use super::hello::AgentHello;
use crate::adb::program::{ProgramEvent, ProgramInput, ProgramOutput};

/// The agent's own limit for a request.
const MAX_REQUEST: usize = 4 << 20;

/// The longest answer; a line that is longer ends the agent.
pub(super) const MAX_LINE: usize = 16 << 20;

/// Lines that answer nothing before the stream counts as broken.
const MAX_GARBAGE: usize = 16;

/// How long the agent may take over something that needs no time.
const PROMPT: Duration = Duration::from_secs(10);

/// One running agent. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    shared: Arc<AgentInner>,
}

struct AgentInner {
    hello: AgentHello,
    /// Tells this run from all others of this process, so that a node of one is not taken for a node of another.
    run: u64,
    requests: mpsc::Sender<Vec<u8>>,
    pending: Arc<PendingRequests>,
    next: AtomicU64,
    /// Until when gestures keep the screen; what comes after them waits for its turn.
    screen: Mutex<Instant>,
    /// When it was last asked something.
    asked: Mutex<Instant>,
    _stream: DropGuard,
}

/// The requests that wait for an answer, and how the stream ended.
#[derive(Default)]
struct PendingRequests {
    state: Mutex<PendingState>,
    closed: CancellationToken,
}

#[derive(Default)]
struct PendingState {
    answers: HashMap<u64, oneshot::Sender<Result<Value, AgentError>>>,
    ended: Option<String>,
}

impl PendingRequests {
    fn lock(&self) -> MutexGuard<'_, PendingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails every waiting request. The first reason is kept.
    fn end(&self, reason: String) {
        let mut waiting = self.lock();
        let reason = waiting.ended.get_or_insert(reason).clone();
        for (_, answer) in waiting.answers.drain() {
            let _ = answer.send(Err(AgentError::Gone(reason.clone())));
        }
        drop(waiting);
        self.closed.cancel();
    }
}

/// Removes a request that nobody waits for any more.
struct RequestGuard<'a> {
    pending: &'a PendingRequests,
    id: u64,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        self.pending.lock().answers.remove(&self.id);
    }
}

static RUNS: AtomicU64 = AtomicU64::new(1);

impl Agent {
    /// Takes over a stream whose hello was read; `lines` holds what came after it.
    pub(super) fn new(hello: AgentHello, input: ProgramInput, output: ProgramOutput, lines: LineBuffer) -> Agent {
        let pending = Arc::new(PendingRequests::default());
        // 64: the agent itself lets no more wait.
        let (requests, queue) = mpsc::channel(64);
        let stream = CancellationToken::new();
        tokio::spawn(write(input, queue, Arc::clone(&pending), stream.clone()));
        tokio::spawn(read(output, lines, Arc::clone(&pending), stream.clone()));
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let shared = AgentInner {
            hello,
            run,
            requests,
            pending,
            next: AtomicU64::new(1),
            screen: Mutex::new(Instant::now()),
            asked: Mutex::new(Instant::now()),
            _stream: stream.drop_guard(),
        };
        Agent { shared: Arc::new(shared) }
    }

    pub fn hello(&self) -> &AgentHello {
        &self.shared.hello
    }

    pub(super) fn run(&self) -> u64 {
        self.shared.run
    }

    /// Why it ended; `None` while it runs.
    pub fn ended(&self) -> Option<String> {
        self.shared.pending.lock().ended.clone()
    }

    /// How long it has been idle.
    pub fn idle(&self) -> Duration {
        let asked = *self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.elapsed()
    }

    /// Cancelled when the agent ends.
    pub fn closed(&self) -> CancellationToken {
        self.shared.pending.closed.clone()
    }

    /// Ends the agent: every waiting request fails and the stream closes.
    pub fn dismiss(&self, reason: impl Into<String>) {
        self.shared.pending.end(reason.into());
    }

    /// Calls `ContentProvider.call` of an app. `extras` is a bundle as JSON, `Null` for none; so is the answer.
    pub async fn provider_call(
        &self,
        authority: &str,
        method: &str,
        arg: Option<&str>,
        extras: &Value,
        user: Option<u32>,
        limit: Duration,
    ) -> Result<Value, AgentError> {
        // One millisecond to ten minutes, the agent's own bounds.
        let milliseconds = limit.as_millis().clamp(1, 600_000) as u64;
        let mut params = json!({"authority": authority, "method": method, "timeout_ms": milliseconds});
        let optional = [("arg", arg.map(Value::from)), ("user", user.map(Value::from))];
        for (name, value) in optional.into_iter().chain([("extras", Some(extras.clone()))]) {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                params[name] = value;
            }
        }
        let patience = Duration::from_millis(milliseconds) + PROMPT;
        Ok(member(self.ask("provider_call", params, patience).await?, "bundle"))
    }

    /// The components of a package with their meta-data: an array of
    /// `{kind, name, exported, enabled, permission, authority, meta}`.
    pub async fn package_meta(&self, package: &str, user: Option<u32>) -> Result<Value, AgentError> {
        let mut params = json!({"package": package});
        if let Some(user) = user {
            params["user"] = json!(user);
        }
        self.screen_call("package_meta", params, Duration::ZERO).await.map(|answer| member(answer, "components"))
    }

    /// A JPEG file of the screen, as base64. Gestures do not hold it up.
    pub(super) async fn picture(&self, max_side: u32, quality: u8) -> Result<Value, AgentError> {
        let params = json!({"max_side": max_side, "quality": quality});
        self.ask("picture", params, PROMPT).await.map(|answer| member(answer, "jpeg"))
    }

    /// Whether it still answers.
    pub async fn ping(&self) -> Result<(), AgentError> {
        self.ask("ping", json!({}), PROMPT).await.map(drop)
    }

    /// A call that waits for its turn on the screen and then takes `length`.
    pub(super) async fn screen_call(&self, method: &str, params: Value, length: Duration) -> Result<Value, AgentError> {
        let patience = {
            let mut until = self.shared.screen.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            *until = (*until).max(now) + length;
            until.duration_since(now) + PROMPT
        };
        self.ask(method, params, patience).await
    }

    /// One request and its answer. An agent that does not answer in time hangs, so it is ended.
    async fn ask(&self, method: &str, params: Value, patience: Duration) -> Result<Value, AgentError> {
        let shared = &*self.shared;
        *shared.asked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let id = shared.next.fetch_add(1, Ordering::Relaxed);
        let mut line = json!({"id": id, "method": method, "params": params}).to_string().into_bytes();
        if line.len() > MAX_REQUEST {
            return Err(AgentError::TooLong(line.len()));
        }
        line.push(b'\n');
        let (send, answer) = oneshot::channel();
        {
            let mut waiting = shared.pending.lock();
            if let Some(reason) = &waiting.ended {
                return Err(AgentError::Gone(reason.clone()));
            }
            waiting.answers.insert(id, send);
        }
        let _question = RequestGuard { pending: &shared.pending, id };
        let gone = || AgentError::Gone(self.ended().unwrap_or_else(|| "its stream closed".to_owned()));
        let work = async {
            shared.requests.send(line).await.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        };
        match timeout(patience, work).await {
            Ok(answer) => answer,
            Err(_) => {
                let silent = AgentError::Silent { method: method.to_owned(), limit: patience };
                self.dismiss(format!("it did not answer `{method}`"));
                Err(silent)
            }
        }
    }
}

fn member(mut answer: Value, name: &str) -> Value {
    answer.get_mut(name).map(Value::take).unwrap_or_default()
}

/// Writes requests until the agent is dropped or ends.
async fn write(
    mut input: ProgramInput,
    mut queue: mpsc::Receiver<Vec<u8>>,
    pending: Arc<PendingRequests>,
    stream: CancellationToken,
) {
    loop {
        let line = tokio::select! {
            () = stream.cancelled() => return,
            () = pending.closed.cancelled() => return,
            line = queue.recv() => line,
        };
        let Some(line) = line else { return };
        let written = tokio::select! {
            () = stream.cancelled() => return,
            () = pending.closed.cancelled() => return,
            written = input.write(&line) => written,
        };
        if let Err(error) = written {
            return pending.end(format!("it does not accept requests: {error}"));
        }
    }
}

/// Delivers answers until the agent is dropped or ends.
async fn read(
    mut output: ProgramOutput,
    mut lines: LineBuffer,
    pending: Arc<PendingRequests>,
    stream: CancellationToken,
) {
    let mut garbage = 0;
    loop {
        while let Some(line) = lines.next() {
            if !deliver(&pending, &line) {
                garbage += 1;
                tracing::debug!(line = %String::from_utf8_lossy(&line[..line.len().min(200)]), "not an answer");
            }
        }
        if garbage > MAX_GARBAGE {
            return pending.end("it wrote too many lines that are not answers".to_owned());
        }
        let said = tokio::select! {
            () = stream.cancelled() => return pending.end("it was released".to_owned()),
            () = pending.closed.cancelled() => return,
            said = output.read() => said,
        };
        if let Err(reason) = lines.take(said) {
            return pending.end(reason);
        }
    }
}

/// Whether the line was an answer, or at least of the protocol.
fn deliver(pending: &PendingRequests, line: &[u8]) -> bool {
    let Ok(Value::Object(mut answer)) = lenient::read::<Value>(line) else { return false };
    let outcome = match (answer.remove("result"), answer.remove("error")) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => Err(AgentError::Refused {
            kind: AgentRefusal::parse(error["type"].as_str().unwrap_or_default()),
            message: error["message"].as_str().unwrap_or("the agent gave no reason").chars().take(2000).collect(),
        }),
        _ => return false,
    };
    match answer.get("id") {
        // An answer that nobody waits for any more comes too late; null is the agent's for what was no request.
        Some(Value::Null) => true,
        Some(id) => {
            let Some(id) = id.as_u64() else { return false };
            if let Some(waiting) = pending.lock().answers.remove(&id) {
                let _ = waiting.send(outcome);
            }
            true
        }
        None => false,
    }
}

/// Bytes gathered into lines, and the last error output of a program that fails.
#[derive(Default)]
pub(super) struct LineBuffer {
    held: Vec<u8>,
    /// How much of `held` has no line end in it.
    looked: usize,
    errors: Vec<u8>,
}

impl LineBuffer {
    /// Takes what was said; an error where that was the end, or where a line is too long.
    pub(super) fn take(&mut self, said: ProgramEvent) -> Result<(), String> {
        match said {
            ProgramEvent::Stdout(piece) => {
                self.held.extend(piece);
                // All whole lines were taken out before, so this is one.
                if self.held.len() > MAX_LINE {
                    return Err(format!("it wrote a line of more than {MAX_LINE} bytes"));
                }
                Ok(())
            }
            ProgramEvent::Stderr(piece) => {
                self.errors.extend(piece);
                // 4 KB: the end of a stack trace.
                let surplus = self.errors.len().saturating_sub(4096);
                self.errors.drain(..surplus);
                Ok(())
            }
            ProgramEvent::End(code) => {
                let words = String::from_utf8_lossy(&self.errors);
                let words = words.lines().map(str::trim).find(|line| !line.is_empty());
                let words: String = words.unwrap_or("it said nothing").chars().take(300).collect();
                Err(match code {
                    Some(code) => format!("exit code {code}, {words}"),
                    None => format!("its stream closed, {words}"),
                })
            }
        }
    }

    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let end = self.held[self.looked..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end.map(|end| self.looked + end) else {
            self.looked = self.held.len();
            return None;
        };
        let rest = self.held.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.held, rest);
        line.pop();
        self.looked = 0;
        Some(line)
    }
}
