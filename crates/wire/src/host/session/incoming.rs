//! Messages from the board.

use serde_json::Value;
use serde_json::value::RawValue;
use sinew_tool::text::clip;
use sinew_tool::{ErrorKind, Notice, ToolError};

use super::{Session, SessionPhase, UNPOLLED};
use crate::host::requests::{AnswerOwner, RequestKind};
use crate::host::{Event, Hello, Output, Transport};
use crate::raw::{is_word, pick_all, present, read, string};
use crate::workarounds::{self, Fault, tree};

/// The members that matter; `null` counts as absent, except for a result. An envelope and a bare JSON-RPC
/// message have none in common, so one reader serves both.
struct Frame<'a> {
    kind: Option<&'a RawValue>,
    payload: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'a> Frame<'a> {
    fn parse(text: &'a str) -> Result<Frame<'a>, serde_json::Error> {
        let names = ["type", "payload", "id", "method", "params", "result", "error"];
        let [kind, payload, id, method, params, result, error] = pick_all(text, names)?;
        let [kind, payload, id, method, params, error] = [kind, payload, id, method, params, error].map(present);
        Ok(Frame { kind, payload, id, method, params, result, error })
    }

    fn is_rpc(&self) -> bool {
        self.method.is_some() || self.result.is_some() || self.error.is_some()
    }
}

impl Session {
    pub(super) fn hear(&mut self, text: &str) {
        let text = text.trim_matches(['\0', '\u{feff}']).trim();
        let limit = self.config.limits.frame_bytes;
        if text.len() > limit {
            self.stats.oversized_frames += 1;
            self.warn(format!("a message of {} bytes is left out: the limit is {limit}", text.len()));
            let problem = format!("the answer has {} bytes and the limit is {limit}; ask for less", text.len());
            return self.spoil(workarounds::find_id(text), ErrorKind::TooLarge, &problem);
        }
        match Frame::parse(text) {
            Ok(frame) => self.hear_frame(text, &frame),
            Err(problem) => self.hear_broken(text, &problem.to_string()),
        }
    }

    fn hear_frame(&mut self, text: &str, frame: &Frame<'_>) {
        match (frame.kind, frame.payload) {
            _ if self.config.bare && frame.is_rpc() => self.hear_rpc(frame),
            _ if self.config.bare => {
                let problem = format!("a message is not JSON-RPC: {}", self.quote(text));
                self.hear_empty(frame, &problem);
            }
            (Some(kind), Some(payload)) if is_word(kind, "mcp") => self.hear_payload(payload),
            (Some(kind), None) if is_word(kind, "mcp") && !frame.is_rpc() => {
                self.hear_empty(frame, "an `mcp` message has no payload");
            }
            (Some(kind), _) if !is_word(kind, "mcp") => match string(kind) {
                Some(kind) if kind == "hello" => self.hear_hello(text),
                Some(kind) => self.hear_other(kind, text),
                None => self.garbled("the `type` of a message is not a string"),
            },
            _ if frame.is_rpc() => self.hear_rpc(frame),
            _ => {
                let problem = format!("a message has neither a `type` nor a JSON-RPC member: {}", self.quote(text));
                self.hear_empty(frame, &problem);
            }
        }
    }

    fn hear_payload(&mut self, payload: &RawValue) {
        // Some stacks send the payload as a text that holds JSON.
        let unwrapped = payload.get().starts_with('"').then(|| string(payload)).flatten();
        let text = unwrapped.as_deref().unwrap_or(payload.get());
        match Frame::parse(text) {
            Ok(frame) if frame.is_rpc() => self.hear_rpc(&frame),
            Ok(frame) => self.hear_empty(&frame, &format!("a payload is not a JSON-RPC message: {}", self.quote(text))),
            Err(problem) => self.hear_broken(text, &problem.to_string()),
        }
    }

    /// A message without method, result and error: noise, or an empty answer if it has the id of the request in flight.
    fn hear_empty(&mut self, frame: &Frame<'_>, problem: &str) {
        self.garbled(problem);
        let id = frame.id.and_then(|id| workarounds::read_id(id.get()));
        let problem = "the answer has neither `result` nor `error`; look at its state before trying again";
        self.spoil(id, ErrorKind::BadAnswer, problem);
    }

    /// Text that is not JSON: an error that can be repaired, or noise that may still name the request in flight.
    fn hear_broken(&mut self, text: &str, problem: &str) {
        if let Some((id, fault)) = workarounds::repair(text) {
            self.stats.repaired_frames += 1;
            self.become_capable();
            return self.hear_answer(id, Err(fault));
        }
        self.garbled(&format!("a message is not one JSON object ({problem}): {}", self.quote(text)));
        self.spoil(
            workarounds::find_id(text),
            ErrorKind::BadAnswer,
            "the answer arrived broken; look at its state before trying again",
        );
    }

    /// Ends the request that an unusable answer names, so that its caller need not wait.
    fn spoil(&mut self, id: Option<i64>, kind: ErrorKind, problem: &str) {
        if self.requests.current.as_ref().is_none_or(|flight| Some(i64::from(flight.id)) != id) {
            return;
        }
        match self.requests.current.take().map(|flight| flight.what) {
            Some(RequestKind::Call { ticket, tool, .. }) => {
                let message = format!("{} answered `{tool}`, but {problem}", self.noun());
                self.answer(ticket, Err(ToolError::new(kind, message)));
            }
            Some(setup) => self.setup_unanswered(setup, problem),
            None => {}
        }
    }

    fn hear_rpc(&mut self, frame: &Frame<'_>) {
        self.become_capable();
        match (frame.method.map(string), frame.id) {
            (Some(None), _) => self.garbled("the `method` of a message is not a string"),
            (Some(Some(method)), None) => self.hear_notification(method, frame.params),
            (Some(Some(method)), Some(id)) => self.hear_request(&method, id),
            (None, id) => match (id.and_then(|id| workarounds::read_id(id.get())), frame.error) {
                (Some(id), Some(error)) => self.hear_answer(id, Err(Fault::read(error))),
                (Some(id), None) => self.hear_answer(id, Ok(frame.result.unwrap_or(RawValue::NULL))),
                (None, error) => {
                    self.stats.stray_answers += 1;
                    let said = error.map(|error| Fault::read(error).message).unwrap_or_default();
                    self.warn(format!("an answer without a usable id is left out: {}", clip(&said)));
                }
            },
        }
    }

    fn hear_hello(&mut self, text: &str) {
        if text.len() > self.config.limits.notice_bytes {
            return self.too_large("hello", text.len());
        }
        let body: Value = match read(text) {
            Ok(body) => body,
            Err(problem) => return self.garbled(&format!("a hello cannot be read: {problem}")),
        };
        if self.out.len() >= UNPOLLED {
            self.stats.dropped += 1;
            return;
        }
        let mcp = body.get("features").and_then(|features| features.get("mcp")).is_some_and(workarounds::is_true);
        self.out.push_back(Output::Event(Event::Hello(Hello {
            version: body.get("version").and_then(Value::as_i64),
            transport: body.get("transport").and_then(Value::as_str).map(str::to_owned),
            mcp,
            body,
        })));
        if !self.config.owner_greets {
            self.greet_as_host();
        }
        match self.phase {
            SessionPhase::Silent | SessionPhase::Plain if mcp => self.become_capable(),
            SessionPhase::Silent => self.become_plain(),
            // A board that says hello again may have restarted, with other tools.
            SessionPhase::Open => self.relist = true,
            SessionPhase::Plain | SessionPhase::Opening | SessionPhase::Closed => {}
        }
    }

    fn hear_notification(&mut self, method: String, params: Option<&RawValue>) {
        if method == "notifications/progress" && self.config.bare {
            return self.hear_progress(params);
        }
        if method == "notifications/tools/list_changed" {
            self.relist = true;
        }
        self.notice(method, params.unwrap_or(RawValue::NULL).get(), |body| body);
    }

    /// Reports on other calls than the current one are late, and are ignored.
    fn hear_progress(&mut self, params: Option<&RawValue>) {
        let params: Value = params.and_then(|params| read(params.get()).ok()).unwrap_or_default();
        let Some(flight) = &mut self.requests.current else { return };
        let RequestKind::Call { ticket, .. } = flight.what else { return };
        let token = params["progressToken"].as_u64();
        if let (true, Some(progress)) = (token == Some(ticket.0), params["progress"].as_f64()) {
            flight.deadline = self.now + flight.time;
            let message = params["message"].as_str().map(clip);
            let total = params["total"].as_f64();
            self.say(Output::Event(Event::Progress { ticket, progress, total, message }));
        }
    }

    /// Any other message: its type is the topic, the rest of it the body.
    fn hear_other(&mut self, kind: String, text: &str) {
        if self.relayed {
            return self.hear_spoken(&kind, text);
        }
        // Over MQTT a goodbye ends the conversation only; the tools stay within reach.
        let is_goodbye = kind == "goodbye";
        let ends = is_goodbye && self.config.transport == Transport::WebSocket;
        self.greeted &= !is_goodbye;
        match kind.as_str() {
            "goodbye" => self.talk_ends = None,
            "listen" => self.talk(),
            _ => {}
        }
        if self.is_private && matches!(kind.as_str(), "listen" | "abort") {
            return;
        }
        self.notice(kind, text, |mut body| {
            if let Some(members) = body.as_object_mut() {
                members.shift_remove("type");
                members.shift_remove("session_id");
            }
            body
        });
        if ends {
            self.end("the board said goodbye".to_owned());
        }
    }

    /// What a board sent, for a warning.
    fn quote(&self, text: &str) -> String {
        if self.is_private { format!("{} bytes", text.len()) } else { clip(text) }
    }

    fn notice(&mut self, topic: String, body: &str, shape: impl FnOnce(Value) -> Value) {
        let size = topic.len() + body.len();
        if size > self.config.limits.notice_bytes {
            return self.too_large(&topic, size);
        }
        match read(body) {
            Ok(body) => {
                self.stats.notices += 1;
                self.say(Output::Event(Event::Notified(Notice { topic, body: shape(body) })));
            }
            Err(problem) => self.garbled(&format!("a notice `{}` cannot be read: {problem}", clip(&topic))),
        }
    }

    fn hear_request(&mut self, method: &str, id: &RawValue) {
        let is_plain = id.get().starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit());
        if !is_plain || id.get().len() > 256 {
            return self.garbled("a request has an id that is neither a short string nor a number");
        }
        let text = self.reply_text(method, id.get());
        self.say(Output::Reply(text));
    }

    fn hear_answer(&mut self, id: i64, answer: Result<&RawValue, Fault>) {
        let flight = match self.requests.claim(id) {
            AnswerOwner::InFlight(flight) => flight,
            AnswerOwner::Late => return self.stats.late_answers += 1,
            AnswerOwner::Duplicate => return self.stats.duplicate_answers += 1,
            AnswerOwner::Stray => return self.stats.stray_answers += 1,
        };
        self.stats.answers += 1;
        if let Err(fault) = &answer
            && fault.is_seen_id()
        {
            if flight.what.is_repeatable() {
                return self.ask_under_another_id(flight);
            }
            self.requests.jump();
        }
        match (flight.what, answer) {
            (RequestKind::Call { ticket, tool, .. }, Ok(result)) => {
                let outcome = workarounds::read_outcome(result, &tool, self.noun());
                self.answer(ticket, outcome);
            }
            // The board may have seen another copy of this call, which a broker or a bridge delivered, and act on that one.
            (RequestKind::Call { ticket, tool }, Err(fault)) if fault.is_seen_id() => {
                let message = format!(
                    "{} refuses `{tool}` as a request that it got before; it may have acted, look at its state before trying again",
                    self.noun()
                );
                self.answer(ticket, Err(ToolError::new(ErrorKind::BadAnswer, message)));
            }
            (RequestKind::Call { ticket, tool, .. }, Err(fault)) => {
                self.relist |= fault.is_unknown_tool();
                self.answer(ticket, Err(fault.into_error(&tool, self.noun())));
            }
            (RequestKind::Initialize { .. }, Ok(result)) => self.initialized(tree(result), None),
            (RequestKind::Initialize { .. }, Err(fault)) => self.initialized(Value::Null, Some(fault)),
            (RequestKind::Page { .. }, Ok(page)) => self.listed(page),
            (RequestKind::Page { .. }, Err(fault)) => {
                self.break_listing(&format!("{} says `{}`", self.noun(), clip(&fault.message)))
            }
        }
    }

    pub(super) fn too_large(&mut self, topic: &str, size: usize) {
        self.stats.oversized_frames += 1;
        let limit = self.config.limits.notice_bytes;
        self.warn(format!("a message `{}` of {size} bytes is left out: the limit is {limit}", clip(topic)));
    }
}
