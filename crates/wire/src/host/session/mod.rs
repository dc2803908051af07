//! The state of one board, and the methods of its owner.

mod incoming;
mod outgoing;
mod talking;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use sinew_tool::{Args, Digest, ErrorKind, Outcome, ToolError};

use super::listing::ToolListing;
use super::requests::{InFlight, QueuedCall, RequestKind, Requests};
use super::{Config, Event, Moment, Output, Stats, Ticket, Transport};
use crate::workarounds;

/// One connected board. See the [module](super) for how to drive it.
///
/// A hello is answered and, where it offers MCP, followed by `initialize` and `tools/list`; MCP that
/// comes without a hello starts the same, and so does [`Session::begin`]. Calls made before the board is
/// ready wait for it.
pub struct Session {
    config: Config,
    phase: SessionPhase,
    requests: Requests,
    listing: Option<Box<ToolListing>>,
    /// The answer to `initialize`, until it is reported with the tools.
    name_and_version: Option<Box<(String, String)>>,
    /// A conversation is under way: the board has heard our hello, and over MQTT said no goodbye since.
    greeted: bool,
    /// When the conversation under way ends: over MQTT soon after the hello, over a WebSocket after a time without a call.
    talk_ends: Option<Moment>,
    /// A voice server has the conversation under way.
    relayed: bool,
    /// A voice server is asked to answer the board's hello.
    awaits_server: bool,
    /// The board has a voice server: nobody else learns what is said to it.
    is_private: bool,
    /// The board was told once that there is no voice service.
    alerted: bool,
    /// No call is sent, because earlier texts are not sent yet.
    held: bool,
    /// The tool list is to be read again.
    relist: bool,
    /// But not before this, so that a board that reports changes all the time cannot keep us listing.
    relist_after: Moment,
    tools: Option<Digest>,
    out: VecDeque<Output>,
    now: Moment,
    warned_since: Moment,
    warned: u32,
    stats: Stats,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SessionPhase {
    /// Nothing was received yet.
    Silent,
    /// The board said hello without MCP.
    Plain,
    /// `initialize` and the first tool list are under way.
    Opening,
    Open,
    Closed,
}

/// Notices and replies are left out once so many outputs wait to be polled.
const UNPOLLED: usize = 256;
/// Enough to see what is wrong, too few to fill a log. The counters go on.
const WARNINGS_PER_MINUTE: u32 = 30;

impl Session {
    pub fn new(config: Config, now: Moment) -> Session {
        Session {
            requests: Requests::new(config.first_id),
            config,
            phase: SessionPhase::Silent,
            listing: None,
            name_and_version: None,
            greeted: false,
            talk_ends: None,
            relayed: false,
            awaits_server: false,
            is_private: false,
            alerted: false,
            held: false,
            relist: false,
            relist_after: now,
            tools: None,
            out: VecDeque::new(),
            now,
            warned_since: now,
            warned: 0,
            stats: Stats::default(),
        }
    }

    /// Asks the board without waiting for its hello, as can be done over MQTT at any time.
    pub fn begin(&mut self, now: Moment) {
        self.now = self.now.max(now);
        self.become_capable();
        self.advance();
    }

    /// Gives the board less time for the request in flight, and asks it only once.
    pub fn expect_first_answer(&mut self, now: Moment, time: Duration) {
        self.now = self.now.max(now);
        if let Some(in_flight) = &mut self.requests.current {
            in_flight.deadline = self.now + time;
            if let RequestKind::Initialize { again } = &mut in_flight.what {
                *again = true;
            }
        }
    }

    /// The board sent text.
    pub fn handle_text(&mut self, now: Moment, text: &str) {
        self.now = self.now.max(now);
        if self.phase != SessionPhase::Closed {
            self.hear(text);
            self.advance();
        }
    }

    /// The board sent bytes: sound is counted, JSON in a frame of version 2 is read. True for sound of a conversation that
    /// a voice server has.
    pub fn handle_binary(&mut self, bytes: &[u8]) -> bool {
        if self.phase == SessionPhase::Closed {
            return false;
        }
        match workarounds::binary_json(bytes) {
            None => {
                self.stats.audio_frames += 1;
                self.talk();
                return self.relayed;
            }
            Some(json) => match std::str::from_utf8(json) {
                Ok(text) => self.handle_text(self.now, text),
                Err(_) => self.handle_lossy(self.now, &String::from_utf8_lossy(json)),
            },
        }
        false
    }

    /// The board sent text that is not UTF-8, and what could not be read of it was replaced. Firmware passes names of
    /// networks on as they are.
    pub fn handle_lossy(&mut self, now: Moment, text: &str) {
        self.now = self.now.max(now);
        self.warn("a message was not UTF-8; what could not be read of it was replaced".to_owned());
        self.handle_text(now, text);
    }

    /// Time has passed.
    pub fn handle_time(&mut self, now: Moment) {
        self.now = self.now.max(now);
        self.end_talk();
        while let Some(waiting) = self.requests.expired(self.now) {
            let waited = self.now.since(waiting.asked).as_secs_f32();
            let cause = if self.phase == SessionPhase::Open { "behind other calls to" } else { "for" };
            let (tool, noun) = (&waiting.tool, self.noun());
            let message = format!("`{tool}` waited {waited:.1} s {cause} {noun} and was not sent; try again later");
            self.answer(waiting.ticket, Err(ToolError::new(ErrorKind::Busy, message)));
        }
        if self.requests.current.as_ref().is_some_and(|flight| flight.deadline <= self.now)
            && let Some(flight) = self.requests.abandon()
        {
            self.stats.timeouts += 1;
            let took = flight.time.as_secs_f32();
            match flight.what {
                RequestKind::Call { ticket, tool, .. } => {
                    self.call_off(flight.id, "no answer in time");
                    let noun = self.noun();
                    let hint = match self.config.transport {
                        Transport::WebSocket if !self.config.bare => {
                            " (firmware sends no answer over 65,535 bytes over a WebSocket)"
                        }
                        _ => "",
                    };
                    let message = format!(
                        "{noun} gave no answer to `{tool}` within {took:.1} s; it may still be busy with it{hint}, look before trying again"
                    );
                    self.answer(ticket, Err(ToolError::new(ErrorKind::Timeout, message)));
                }
                setup => self.setup_unanswered(setup, &format!("no answer within {took:.1} s")),
            }
        }
        self.advance();
    }

    /// Calls a tool. The budget is for its work: it starts when the call is sent, and again with each report of progress.
    /// A call that waits longer than that is not sent.
    pub fn call(&mut self, now: Moment, tool: &str, args: &Args, budget: Duration) -> Ticket {
        self.enqueue(now, tool, args, budget, false)
    }

    /// Calls a tool before all calls that wait, except earlier urgent ones: somebody waits for a spoken answer.
    pub fn call_urgently(&mut self, now: Moment, tool: &str, args: &Args, budget: Duration) -> Ticket {
        self.enqueue(now, tool, args, budget, true)
    }

    fn enqueue(&mut self, now: Moment, tool: &str, args: &Args, budget: Duration, is_urgent: bool) -> Ticket {
        self.now = self.now.max(now);
        let ticket = self.requests.ticket();
        match self.call_text(tool, args, ticket) {
            Ok(text) => {
                if self.talk_ends.is_some() && self.config.transport == Transport::WebSocket {
                    self.talk_ends = Some(self.now + self.config.limits.talk_time.max(budget));
                }
                let asked = self.now;
                self.requests.enqueue(QueuedCall { ticket, tool: tool.into(), text, asked, budget, is_urgent });
                self.advance();
            }
            Err(refusal) => self.answer(ticket, Err(refusal)),
        }
        ticket
    }

    /// Cancels a call: there will be no answer. A queued call is never sent; the answer to one already sent is counted as
    /// late, and the next call is sent.
    pub fn cancel(&mut self, ticket: Ticket) {
        let current = self.requests.current.as_ref().map(|flight| &flight.what);
        if matches!(current, Some(RequestKind::Call { ticket: current, .. }) if *current == ticket) {
            if let Some(flight) = self.requests.abandon() {
                self.call_off(flight.id, "the caller gave up");
            }
            self.advance();
        } else {
            self.requests.remove(ticket);
        }
    }

    /// Holds calls back while earlier texts are not sent, or releases them. The error of a call whose time runs out
    /// meanwhile says that it was not sent.
    pub fn hold(&mut self, now: Moment, held: bool) {
        self.now = self.now.max(now);
        self.held = held;
        self.advance();
    }

    /// Reads the tool list again; [`Event::ToolsChanged`] follows if it has changed.
    pub fn relist(&mut self, now: Moment) {
        self.now = self.now.max(now);
        self.relist = true;
        self.advance();
    }

    /// Ends the session. Every open call is answered: the one that was sent with `DeviceLost`, the others with
    /// `DeviceAway`. The owner adds the reason.
    pub fn close(&mut self, now: Moment) {
        self.now = self.now.max(now);
        self.finish("the connection was closed".to_owned(), "");
    }

    /// The next output. Call until it returns [`Output::Wait`].
    pub fn poll(&mut self) -> Output {
        if let Some(output) = self.out.pop_front() {
            return output;
        }
        // An idle board keeps no buffer.
        self.out = VecDeque::new();
        let may_list = self.relist && self.phase == SessionPhase::Open && self.requests.current.is_none();
        let relist_at = may_list.then_some(self.relist_after);
        let talk_ends = self.talk_ends.filter(|_| self.phase != SessionPhase::Closed);
        Output::Wait(self.requests.deadline().into_iter().chain(relist_at).chain(talk_ends).min())
    }

    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Whether the owner waits for an answer of the board, and not only for time to pass.
    pub fn is_asking(&self) -> bool {
        self.requests.current.is_some() || self.requests.queued() > 0 || self.relist
    }

    /// The call that the board is busy with.
    pub fn in_flight(&self) -> Option<Ticket> {
        match &self.requests.current.as_ref()?.what {
            RequestKind::Call { ticket, .. } => Some(*ticket),
            RequestKind::Initialize { .. } | RequestKind::Page { .. } => None,
        }
    }

    /// What the other end is called in errors.
    fn noun(&self) -> &'static str {
        if self.config.bare { "the tool provider" } else { "the board" }
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Outcome, ToolError>) {
        if self.talk_ends.is_some() && self.config.transport == Transport::WebSocket && !self.requests.has_calls() {
            self.talk_ends = Some(self.now + self.config.limits.talk_time);
        }
        self.out.push_back(Output::Event(Event::Answered(ticket, answer)));
    }

    /// Adds an output that may be left out.
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
            let more = "there are more warnings about this device; for the rest of the minute they are only counted";
            self.say(Output::Event(Event::Warned(more.to_owned())));
        }
    }

    fn end(&mut self, why: String) {
        let cause = format!(" ({why})");
        self.finish(why, &cause);
    }

    fn finish(&mut self, why: String, cause: &str) {
        if self.phase == SessionPhase::Closed {
            return;
        }
        self.phase = SessionPhase::Closed;
        self.listing = None;
        let noun = self.noun();
        if let Some(InFlight { what: RequestKind::Call { ticket, tool, .. }, .. }) = self.requests.abandon() {
            let message = format!("{noun} went away while it was busy with `{tool}`{cause}; look before trying again");
            let answer = match &*tool {
                // Firmware restarts without an answer.
                workarounds::REBOOT => Ok(Outcome::text("The board went away to restart.")),
                _ => Err(ToolError::new(ErrorKind::DeviceLost, message)),
            };
            self.answer(ticket, answer);
        }
        while let Some(waiting) = self.requests.dequeue() {
            let message =
                format!("{noun} went away before `{}` was sent{cause}; try again once it is back", waiting.tool);
            self.answer(waiting.ticket, Err(ToolError::new(ErrorKind::DeviceAway, message)));
        }
        self.out.push_back(Output::Event(Event::Closed(why)));
    }
}
