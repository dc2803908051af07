//! The state of one board, and the order of things: hello, initialize, tools/list, then calls.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use sinew_tool::{Args, Digest, ErrorKind, Outcome, ToolError};

use super::flight::{Flight, Flights, Owner, Waiting, What};
use super::frame::{Frame, is_word, string};
use super::listing::Listing;
use super::{Config, Event, Hello, Moment, Notice, Output, Ready, Stats, Ticket};
use crate::quirks::{self, Fault, clip};
use crate::words::PROTOCOL_VERSION;

/// One connected board. See the [module](super) for how to drive it.
///
/// A hello is answered and, where it offers MCP, followed by `initialize` and `tools/list`; MCP that
/// comes without a hello starts the same. Calls made before the board is ready wait for it.
pub struct Session {
    config: Config,
    phase: Phase,
    flights: Flights,
    listing: Option<Box<Listing>>,
    /// What the board said to `initialize`, until it is told with the tools.
    name_and_version: Option<Box<(String, String)>>,
    /// When to read the tool list again.
    relist_at: Option<Moment>,
    /// Not before this, so that a board that cries "changed" cannot keep us listing.
    relist_after: Moment,
    tools: Option<Digest>,
    out: VecDeque<Output>,
    now: Moment,
    warned_since: Moment,
    warned: u32,
    stats: Stats,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was heard yet.
    Silent,
    /// The board said hello without MCP.
    Plain,
    /// `initialize` and the first tool list are under way.
    Opening,
    Open,
    Closed,
}

/// What nobody has to answer for is left out once so much lies unpolled.
const UNPOLLED: usize = 256;
/// Enough to see what is wrong, too few to fill a log. The counters go on.
const WARNINGS_PER_MINUTE: u32 = 30;
/// Between two readings of the tool list.
const RELIST_GAP: Duration = Duration::from_millis(250);

impl Session {
    pub fn new(config: Config, now: Moment) -> Session {
        Session {
            config,
            phase: Phase::Silent,
            flights: Flights::new(),
            listing: None,
            name_and_version: None,
            relist_at: None,
            relist_after: now,
            tools: None,
            out: VecDeque::new(),
            now,
            warned_since: now,
            warned: 0,
            stats: Stats::default(),
        }
    }

    /// The board sent text.
    pub fn handle_text(&mut self, now: Moment, text: &str) {
        self.now = self.now.max(now);
        if self.phase != Phase::Closed {
            self.read(text.trim_matches(['\0', '\u{feff}']).trim());
            self.advance();
        }
    }

    /// The board sent bytes: sound is counted and dropped, JSON in a frame of version 2 is read.
    pub fn handle_binary(&mut self, bytes: &[u8]) {
        match quirks::binary_json(bytes) {
            None => self.stats.audio_frames += 1,
            Some(json) => match std::str::from_utf8(json) {
                Ok(text) => self.handle_text(self.now, text),
                Err(_) => self.garbled("a binary frame is marked as JSON but is not UTF-8"),
            },
        }
    }

    /// Time has passed.
    pub fn handle_time(&mut self, now: Moment) {
        self.now = self.now.max(now);
        while let Some(waiting) = self.flights.expired(self.now) {
            let waited = self.now.since(waiting.asked).as_secs_f32();
            let message = format!(
                "`{}` waited {waited:.1} s behind other calls to this board and was not sent; try again later",
                waiting.tool
            );
            self.answer(waiting.ticket, Err(ToolError::new(ErrorKind::Busy, message)));
        }
        if self.flights.current.as_ref().is_some_and(|flight| flight.deadline <= self.now)
            && let Some(flight) = self.flights.abandon()
        {
            self.stats.timeouts += 1;
            let took = flight.deadline.since(flight.asked).as_secs_f32();
            match flight.what {
                What::Call { ticket, tool } => {
                    let message = format!(
                        "the board gave no answer to `{tool}` within {took:.1} s; it may still be busy with it, look before trying again"
                    );
                    self.answer(ticket, Err(ToolError::new(ErrorKind::Timeout, message)));
                }
                setup => self.setup_unanswered(setup, &format!("no answer within {took:.1} s")),
            }
        }
        self.advance();
    }

    /// Asks the board to keep a promise. The budget runs from now, waiting included.
    pub fn call(&mut self, now: Moment, tool: &str, args: &Args, budget: Duration) -> Ticket {
        self.now = self.now.max(now);
        let ticket = self.flights.ticket();
        let refusal = match self.phase {
            Phase::Closed => Some((ErrorKind::DeviceAway, "the board is not connected; nothing was sent".to_owned())),
            Phase::Plain => Some((
                ErrorKind::Unsupported,
                "the board said hello without MCP, so it has no tools; its firmware must offer `features.mcp`"
                    .to_owned(),
            )),
            _ if self.flights.queued() >= self.config.limits.queue => Some((
                ErrorKind::Busy,
                format!(
                    "{} calls wait for this board already; `{tool}` was not sent, try again later",
                    self.flights.queued()
                ),
            )),
            _ => None,
        };
        if let Some((kind, message)) = refusal {
            self.answer(ticket, Err(ToolError::new(kind, message)));
            return ticket;
        }
        let mut text = self.head("tools/call");
        text.push_str(",\"params\":{\"name\":");
        text.push_str(&to_json(tool));
        text.push_str(",\"arguments\":");
        text.push_str(&to_json(args));
        text.push('}');
        let deadline = self.now + budget;
        self.flights.enqueue(Waiting { ticket, tool: tool.into(), text, asked: self.now, deadline });
        self.advance();
        ticket
    }

    /// The caller gave up: there will be no answer. A queued call is never sent; the answer to one
    /// already sent is counted as late, and the next call goes out.
    pub fn cancel(&mut self, ticket: Ticket) {
        let in_flight = self
            .flights
            .current
            .as_ref()
            .is_some_and(|flight| matches!(&flight.what, What::Call { ticket: current, .. } if *current == ticket));
        if in_flight {
            self.flights.abandon();
            self.advance();
        } else {
            self.flights.remove(ticket);
        }
    }

    /// Reads the tool list again; [`Event::ToolsChanged`] follows if it is another.
    pub fn relist(&mut self, now: Moment) {
        self.now = self.now.max(now);
        self.want_list();
        self.advance();
    }

    /// The connection is gone, or shall be. Every open call is answered with `DeviceLost`.
    pub fn close(&mut self, now: Moment) {
        self.now = self.now.max(now);
        self.end("the connection was closed".to_owned());
    }

    /// The next thing to do. Call until it says [`Output::Wait`].
    pub fn poll(&mut self) -> Output {
        if let Some(output) = self.out.pop_front() {
            return output;
        }
        // An idle board keeps no buffer.
        self.out = VecDeque::new();
        let relist_at = self.relist_at.filter(|_| self.phase == Phase::Open && self.flights.current.is_none());
        Output::Wait(self.flights.deadline().into_iter().chain(relist_at).min())
    }

    pub fn stats(&self) -> Stats {
        self.stats
    }

    // ---- what the board says ----

    fn read(&mut self, text: &str) {
        let limit = self.config.limits.frame_bytes;
        if text.len() > limit {
            self.stats.oversized_frames += 1;
            self.warn(format!("a message of {} bytes is left out: the limit is {limit}", text.len()));
            let problem = format!("the answer has {} bytes and the limit is {limit}; ask for less", text.len());
            return self.spoil(text, ErrorKind::TooLarge, &problem);
        }
        match Frame::parse(text) {
            Ok(frame) => self.read_frame(text, &frame),
            Err(problem) => self.read_broken(text, &problem.to_string()),
        }
    }

    fn read_frame(&mut self, text: &str, frame: &Frame<'_>) {
        match frame.kind {
            Some(kind) if is_word(kind, "mcp") => match frame.payload {
                Some(payload) => self.read_payload(payload),
                None if frame.is_rpc() => self.read_rpc(frame),
                None => self.garbled("an `mcp` message has no payload"),
            },
            Some(kind) => match string(kind) {
                Some(kind) if kind == "hello" => self.read_hello(text),
                Some(kind) => self.read_other(kind, text),
                None => self.garbled("the `type` of a message is not a string"),
            },
            None if frame.is_rpc() => self.read_rpc(frame),
            None => self.garbled(&format!("a message has neither a `type` nor a JSON-RPC member: {}", clip(text))),
        }
    }

    fn read_payload(&mut self, payload: &RawValue) {
        // Some stacks send the payload as a text that holds JSON.
        let unwrapped = payload.get().starts_with('"').then(|| string(payload)).flatten();
        let text = unwrapped.as_deref().unwrap_or(payload.get());
        match Frame::parse(text) {
            Ok(frame) if frame.is_rpc() => self.read_rpc(&frame),
            Ok(_) => self.garbled(&format!("a payload is not a JSON-RPC message: {}", clip(text))),
            Err(problem) => self.read_broken(text, &problem.to_string()),
        }
    }

    /// Text that is not JSON: an error that can be repaired, or else noise, which may still name the
    /// request it spoils.
    fn read_broken(&mut self, text: &str, problem: &str) {
        if let Some((id, fault)) = quirks::repair(text) {
            self.stats.repaired_frames += 1;
            self.become_capable();
            return self.read_answer(id, Err(fault));
        }
        self.garbled(&format!("a message is not one JSON object ({problem}): {}", clip(text)));
        self.spoil(
            text,
            ErrorKind::BadAnswer,
            "the answer arrived broken; look at the board's state before trying again",
        );
    }

    /// Ends the request that an unreadable answer names, rather than let its caller wait.
    fn spoil(&mut self, text: &str, kind: ErrorKind, problem: &str) {
        let Some(id) = quirks::find_id(text) else { return };
        if self.flights.current.as_ref().is_none_or(|flight| i64::from(flight.id) != id) {
            return;
        }
        match self.flights.current.take().map(|flight| flight.what) {
            Some(What::Call { ticket, tool }) => {
                self.answer(ticket, Err(ToolError::new(kind, format!("the board answered `{tool}`, but {problem}"))));
            }
            Some(setup) => self.setup_unanswered(setup, problem),
            None => {}
        }
    }

    fn read_rpc(&mut self, frame: &Frame<'_>) {
        self.become_capable();
        let Some(method) = frame.method else {
            return match (frame.id.and_then(|id| quirks::read_id(id.get())), frame.error, frame.result) {
                (Some(id), Some(error), _) => self.read_answer(id, Err(Fault::read(error))),
                (Some(id), None, Some(result)) => self.read_answer(id, Ok(result)),
                (None, Some(error), _) => {
                    self.stats.stray_answers += 1;
                    self.warn(format!("the board reports an error: {}", clip(&Fault::read(error).message)));
                }
                _ => {
                    self.stats.stray_answers += 1;
                    self.warn("an answer without a usable id is left out".to_owned());
                }
            };
        };
        let Some(method) = string(method) else { return self.garbled("the `method` of a message is not a string") };
        match frame.id {
            None => self.read_notification(method, frame.params),
            Some(id) => self.read_request(&method, id),
        }
    }

    fn read_hello(&mut self, text: &str) {
        let Ok(body) = serde_json::from_str::<Value>(text) else { return self.garbled("a hello nests too deeply") };
        let mcp = body.get("features").and_then(|features| features.get("mcp")).is_some_and(quirks::is_true);
        let hello = Hello {
            version: body.get("version").and_then(Value::as_i64),
            transport: body.get("transport").and_then(Value::as_str).map(str::to_owned),
            mcp,
            body,
        };
        if self.out.len() >= UNPOLLED {
            self.stats.dropped += 1;
            return;
        }
        self.out.push_back(Output::Event(Event::Hello(hello)));
        self.out.push_back(Output::Send(self.our_hello()));
        match self.phase {
            Phase::Silent | Phase::Plain if mcp => self.become_capable(),
            Phase::Silent => {
                self.phase = Phase::Plain;
                self.refuse_queue();
                self.out.push_back(Output::Event(Event::NoMcp));
            }
            // A board that says hello again may have started anew, with other tools.
            Phase::Open => self.want_list(),
            _ => {}
        }
    }

    fn read_notification(&mut self, method: String, params: Option<&RawValue>) {
        if method == "notifications/tools/list_changed" {
            self.want_list();
        }
        let body = params.map_or("null", RawValue::get);
        self.notice(method, body, |body| body);
    }

    /// Any other message: its type is the topic, the rest of it the body.
    fn read_other(&mut self, kind: String, text: &str) {
        // Over MQTT a goodbye ends the conversation only; tools stay within reach.
        let ends = kind == "goodbye" && self.config.transport == super::Transport::WebSocket;
        self.notice(kind, text, |mut body| {
            if let Some(members) = body.as_object_mut() {
                members.remove("type");
                members.remove("session_id");
            }
            body
        });
        if ends {
            self.end("the board said goodbye".to_owned());
        }
    }

    fn notice(&mut self, topic: String, body: &str, shape: impl FnOnce(Value) -> Value) {
        let limit = self.config.limits.notice_bytes;
        if body.len() > limit || topic.len() > limit {
            self.stats.oversized_frames += 1;
            return self.warn(format!(
                "a notice `{}` of {} bytes is left out: the limit is {limit}",
                clip(&topic),
                body.len()
            ));
        }
        match serde_json::from_str(body) {
            Ok(body) => {
                self.stats.notices += 1;
                self.say(Output::Event(Event::Notified(Notice { topic, body: shape(body) })));
            }
            Err(problem) => self.garbled(&format!("a notice `{}` cannot be read: {problem}", clip(&topic))),
        }
    }

    fn read_request(&mut self, method: &str, id: &RawValue) {
        if id.get().len() > 256 || !id.get().starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
            return self.garbled("a request has an id that is neither a short string nor a number");
        }
        let answer = match method {
            "ping" => "\"result\":{}".to_owned(),
            other => {
                let message = to_json(format!("Method not found: {}", clip(other)).as_str());
                format!("\"error\":{{\"code\":-32601,\"message\":{message}}}")
            }
        };
        let text = format!("{}{{\"jsonrpc\":\"2.0\",\"id\":{},{answer}}}}}", self.envelope(), id.get());
        self.say(Output::Send(text));
    }

    fn read_answer(&mut self, id: i64, answer: Result<&RawValue, Fault>) {
        let flight = match self.flights.claim(id) {
            Owner::Flight(flight) => flight,
            Owner::Late => return self.stats.late_answers += 1,
            Owner::Duplicate => return self.stats.duplicate_answers += 1,
            Owner::Stray => return self.stats.stray_answers += 1,
        };
        self.stats.answers += 1;
        match (flight, answer) {
            (Flight { what: What::Call { ticket, tool }, .. }, Ok(result)) => {
                let outcome = quirks::read_outcome(result, &tool);
                self.answer(ticket, outcome);
            }
            (Flight { what: What::Call { ticket, tool }, .. }, Err(fault)) => {
                if fault.is_unknown_tool() {
                    self.want_list();
                }
                self.answer(ticket, Err(fault.into_error(&tool)));
            }
            (Flight { what: What::Initialize { .. }, .. }, answer) => self.initialized(answer),
            (Flight { what: What::Page { .. }, .. }, answer) => self.listed(answer),
        }
    }

    // ---- opening ----

    fn become_capable(&mut self) {
        if matches!(self.phase, Phase::Silent | Phase::Plain) {
            self.phase = Phase::Opening;
        }
    }

    fn initialized(&mut self, answer: Result<&RawValue, Fault>) {
        let mut listing = Listing::new();
        let said = match answer {
            Ok(result) => serde_json::from_str::<Value>(result.get()).unwrap_or_default(),
            Err(fault) => {
                // Firmware keeps no state between requests, so its tools may be listed all the same.
                listing.warn(format!("the board refuses `initialize`: {}", clip(&fault.message)));
                Value::Null
            }
        };
        let info = said.get("serverInfo").unwrap_or(&Value::Null);
        let text = |key: &str| info.get(key).and_then(Value::as_str).map(clip).unwrap_or_default();
        self.name_and_version = Some(Box::new((text("name"), text("version"))));
        self.listing = Some(Box::new(listing));
        let text = format!("{}}}}}", self.head("notifications/initialized"));
        self.out.push_back(Output::Send(text));
    }

    fn listed(&mut self, answer: Result<&RawValue, Fault>) {
        let Some(listing) = &mut self.listing else { return };
        match answer {
            Ok(page) => {
                if !listing.read(page, &self.config.limits) {
                    self.finish_listing();
                }
            }
            Err(fault) => self.break_listing(&format!("the board answers `{}`", clip(&fault.message))),
        }
    }

    /// `initialize` or a page got no usable answer: asked once more, then given up.
    fn setup_unanswered(&mut self, what: What, why: &str) {
        match what {
            What::Initialize { again: false } => self.send_initialize(true),
            What::Initialize { again: true } => self.end(format!("the board does not answer `initialize`: {why}")),
            What::Page { again: false } => self.send_page(true),
            What::Page { again: true } => {
                let nothing = self.listing.as_ref().is_none_or(|listing| listing.is_empty());
                if self.phase == Phase::Opening && nothing {
                    self.end(format!("the board does not answer `tools/list`: {why}"));
                } else {
                    self.break_listing(why);
                }
            }
            What::Call { .. } => {}
        }
    }

    /// A page failed. At first what was read is better than nothing; later the former list is better.
    fn break_listing(&mut self, why: &str) {
        if self.phase == Phase::Open {
            self.listing = None;
            self.relist_after = self.now + RELIST_GAP;
            return self.warn(format!("the tool list could not be read again, the former one stays: {why}"));
        }
        if let Some(listing) = &mut self.listing {
            listing.warn(format!("a page of the tool list is missing, what was read so far is kept: {why}"));
        }
        self.finish_listing();
    }

    fn finish_listing(&mut self) {
        let Some(listing) = self.listing.take() else { return };
        self.relist_after = self.now + RELIST_GAP;
        let (tools, warnings) = listing.finish();
        let former = self.tools.replace(tools.digest());
        if self.phase == Phase::Opening {
            self.phase = Phase::Open;
            let (name, version) = self.name_and_version.take().map(|both| *both).unwrap_or_default();
            self.out.push_back(Output::Event(Event::Ready(Ready { name, version, tools, warnings })));
        } else if former != self.tools {
            self.out.push_back(Output::Event(Event::ToolsChanged { tools, warnings }));
        }
    }

    // ---- what we say ----

    /// Sends the next request if the board is free for one.
    fn advance(&mut self) {
        if self.flights.current.is_some() {
            return;
        }
        match self.phase {
            Phase::Opening if self.listing.is_none() => self.send_initialize(false),
            Phase::Opening => self.send_page(false),
            Phase::Open => {
                if self.listing.is_none() && self.relist_at.is_some_and(|due| due <= self.now) {
                    self.relist_at = None;
                    self.listing = Some(Box::new(Listing::new()));
                }
                if self.listing.is_some() {
                    self.send_page(false);
                } else {
                    self.send_call();
                }
            }
            Phase::Silent | Phase::Plain | Phase::Closed => {}
        }
    }

    fn send_initialize(&mut self, again: bool) {
        let mut capabilities = json!({});
        if let Some(vision) = &self.config.vision {
            capabilities["vision"] = json!({"url": vision.url, "token": vision.token});
        }
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": capabilities,
            "clientInfo": {"name": "sinew", "version": env!("CARGO_PKG_VERSION")},
        });
        self.send_setup("initialize", &params.to_string(), What::Initialize { again });
    }

    fn send_page(&mut self, again: bool) {
        let Some(listing) = &self.listing else { return };
        let params = listing.params(self.config.user_tools);
        self.send_setup("tools/list", &params, What::Page { again });
    }

    fn send_setup(&mut self, method: &str, params: &str, what: What) {
        let deadline = self.now + self.config.limits.setup_time;
        let id = self.flights.launch(what, self.now, deadline);
        let text = format!("{},\"params\":{params},\"id\":{id}}}}}", self.head(method));
        self.out.push_back(Output::Send(text));
    }

    fn send_call(&mut self) {
        let Some(Waiting { ticket, tool, mut text, asked, deadline }) = self.flights.dequeue() else { return };
        let id = self.flights.launch(What::Call { ticket, tool }, asked, deadline);
        text.push_str(",\"id\":");
        text.push_str(&id.to_string());
        text.push_str("}}");
        self.stats.calls += 1;
        self.out.push_back(Output::Send(text));
    }

    fn our_hello(&self) -> String {
        let mut hello = json!({
            "type": "hello",
            "transport": self.config.transport.word(),
            "session_id": self.config.session_id,
            "audio_params": {"format": "opus", "sample_rate": 24000, "channels": 1, "frame_duration": 60},
        });
        if let (Some(Value::Object(extra)), Some(members)) = (&self.config.hello_extra, hello.as_object_mut()) {
            members.extend(extra.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        hello.to_string()
    }

    fn envelope(&self) -> String {
        let mut text = String::with_capacity(192);
        text.push_str("{\"session_id\":");
        text.push_str(&to_json(self.config.session_id.as_str()));
        text.push_str(",\"type\":\"mcp\",\"payload\":");
        text
    }

    fn head(&self, method: &str) -> String {
        let mut text = self.envelope();
        text.push_str("{\"jsonrpc\":\"2.0\",\"method\":\"");
        text.push_str(method);
        text.push('"');
        text
    }

    // ---- bookkeeping ----

    fn want_list(&mut self) {
        if self.phase != Phase::Closed {
            self.relist_at = Some(self.relist_after.max(self.now));
        }
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Outcome, ToolError>) {
        self.out.push_back(Output::Event(Event::Answered(ticket, answer)));
    }

    /// Says what nobody has to answer for.
    fn say(&mut self, output: Output) {
        if self.out.len() < UNPOLLED {
            self.out.push_back(output);
        } else {
            self.stats.dropped += 1;
        }
    }

    fn garbled(&mut self, problem: &str) {
        self.stats.garbled_frames += 1;
        self.warn(problem.to_owned());
    }

    fn warn(&mut self, warning: String) {
        if self.now.since(self.warned_since) >= Duration::from_secs(60) {
            self.warned_since = self.now;
            self.warned = 0;
        }
        self.warned = self.warned.saturating_add(1);
        if self.warned <= WARNINGS_PER_MINUTE {
            self.say(Output::Event(Event::Warned(warning)));
        } else if self.warned == WARNINGS_PER_MINUTE + 1 {
            let more = "this board gives more cause for warnings; for the rest of the minute they are only counted";
            self.say(Output::Event(Event::Warned(more.to_owned())));
        }
    }

    /// Calls that were made before the board turned out to have no MCP.
    fn refuse_queue(&mut self) {
        while let Some(waiting) = self.flights.dequeue() {
            let message = format!("the board said hello without MCP, so `{}` was not sent", waiting.tool);
            self.answer(waiting.ticket, Err(ToolError::new(ErrorKind::Unsupported, message)));
        }
    }

    fn end(&mut self, why: String) {
        if self.phase == Phase::Closed {
            return;
        }
        self.phase = Phase::Closed;
        self.listing = None;
        if let Some(Flight { what: What::Call { ticket, tool }, .. }) = self.flights.abandon() {
            let message =
                format!("the board went away while it was busy with `{tool}` ({why}); look before trying again");
            self.answer(ticket, Err(ToolError::new(ErrorKind::DeviceLost, message)));
        }
        while let Some(waiting) = self.flights.dequeue() {
            let message =
                format!("the board went away before `{}` was sent ({why}); try again once it is back", waiting.tool);
            self.answer(waiting.ticket, Err(ToolError::new(ErrorKind::DeviceLost, message)));
        }
        self.out.push_back(Output::Event(Event::Closed(why)));
    }
}

fn to_json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    // Text, names and JSON values have no way to fail.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}
