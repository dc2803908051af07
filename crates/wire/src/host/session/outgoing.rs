//! Requests to the board: initialize, tools/list, then calls, one at a time.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use sinew_tool::text::clip;
use sinew_tool::{Args, ErrorKind, ToolError};

use super::{Session, SessionPhase};
use crate::common::{PROTOCOL_VERSION, Transport};
use crate::host::listing::ToolListing;
use crate::host::requests::{InFlight, QueuedCall, RequestKind};
use crate::host::{Event, Output, Ready, Ticket};
use crate::workarounds::Fault;

/// Between two readings of the tool list.
const RELIST_GAP: Duration = Duration::from_millis(250);

const NO_MCP: &str =
    "the board does not offer MCP or does not answer it, so it has no tools; its firmware must offer `features.mcp`";

impl Session {
    /// Sends the next request if the board is free for one.
    pub(super) fn advance(&mut self) {
        if self.requests.current.is_some() {
            return;
        }
        match self.phase {
            SessionPhase::Opening if self.listing.is_none() => self.send_initialize(false),
            SessionPhase::Opening => self.send_page(false),
            SessionPhase::Open => {
                if self.listing.is_none() && self.relist && self.relist_after <= self.now {
                    self.relist = false;
                    self.listing = Some(Box::new(ToolListing::new()));
                }
                if self.listing.is_some() {
                    self.send_page(false);
                } else if !self.held {
                    self.send_call();
                }
            }
            SessionPhase::Silent | SessionPhase::Plain | SessionPhase::Closed => {}
        }
    }

    // ---- opening ----

    /// The board speaks MCP, whatever its hello said.
    pub(super) fn become_capable(&mut self) {
        if matches!(self.phase, SessionPhase::Silent | SessionPhase::Plain) {
            self.phase = SessionPhase::Opening;
        }
    }

    /// The board has no MCP, as far as we know.
    pub(super) fn become_plain(&mut self) {
        self.phase = SessionPhase::Plain;
        while let Some(waiting) = self.requests.dequeue() {
            self.answer(waiting.ticket, Err(ToolError::new(ErrorKind::Unsupported, NO_MCP)));
        }
        self.out.push_back(Output::Event(Event::NoMcp));
    }

    pub(super) fn initialized(&mut self, said: Value, fault: Option<Fault>) {
        let mut listing = ToolListing::new();
        if let Some(fault) = fault {
            // Firmware keeps no state between requests, so its tools may be listed all the same.
            listing.warn(format!("{} refuses `initialize`: {}", self.noun(), clip(&fault.message)));
        }
        let info = said.get("serverInfo").unwrap_or(&Value::Null);
        let text = |key: &str| info.get(key).and_then(Value::as_str).map(clip).unwrap_or_default();
        self.name_and_version = Some(Box::new((text("name"), text("version"))));
        self.listing = Some(Box::new(listing));
        // Sent once; an idle board need not keep it.
        self.config.vision = None;
        let text = self.whole(self.head("notifications/initialized"));
        self.out.push_back(Output::Send(text));
    }

    pub(super) fn listed(&mut self, page: &RawValue) {
        if let Some(listing) = &mut self.listing
            && !listing.read(page, &self.config.limits)
        {
            self.finish_listing();
        }
    }

    /// The board refused a request because it saw the id before, so it is asked again under another.
    pub(super) fn ask_under_another_id(&mut self, flight: InFlight) {
        self.requests.jump();
        match flight.what {
            RequestKind::Initialize { .. } => self.send_initialize(true),
            RequestKind::Page { .. } => self.send_page(true),
            RequestKind::Call { .. } => {}
        }
    }

    /// `initialize` or a page got no usable answer: asked once more, then given up.
    pub(super) fn setup_unanswered(&mut self, what: RequestKind, why: &str) {
        let nothing_read = self.listing.as_ref().is_none_or(|listing| listing.is_empty());
        match what {
            RequestKind::Initialize { again: false } => self.send_initialize(true),
            RequestKind::Initialize { again: true } => {
                self.give_up(format!("{} does not answer `initialize`: {why}", self.noun()));
            }
            RequestKind::Page { again: false } => self.send_page(true),
            RequestKind::Page { again: true } if self.phase == SessionPhase::Opening && nothing_read => {
                self.give_up(format!("{} does not answer `tools/list`: {why}", self.noun()));
            }
            RequestKind::Page { again: true } => self.break_listing(why),
            RequestKind::Call { .. } => {}
        }
    }

    /// A WebSocket exists for a conversation, so it is closed if the board does not answer. An MQTT connection stays, and
    /// the board may say hello on it later.
    fn give_up(&mut self, why: String) {
        match self.config.transport {
            Transport::WebSocket => self.end(why),
            Transport::Udp => {
                self.listing = None;
                self.warn(why);
                self.become_plain();
            }
        }
    }

    /// A page failed. While the board joins, a part of the list is better than nothing; later the former list is better.
    pub(super) fn break_listing(&mut self, why: &str) {
        if self.phase == SessionPhase::Open {
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
        let Some(mut listing) = self.listing.take() else { return };
        self.relist_after = self.now + RELIST_GAP;
        if listing.is_empty() {
            listing.warn(format!("{} lists no tools", self.noun()));
        }
        let (tools, warnings) = listing.finish();
        let former = self.tools.replace(tools.digest());
        if self.phase == SessionPhase::Opening {
            self.phase = SessionPhase::Open;
            let (name, version) = self.name_and_version.take().map(|both| *both).unwrap_or_default();
            self.out.push_back(Output::Event(Event::Ready(Ready { name, version, tools, warnings })));
        } else if former != self.tools {
            self.out.push_back(Output::Event(Event::ToolsChanged { tools, warnings }));
        }
    }

    // ---- requests ----

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
        self.send_setup("initialize", &params.to_string(), RequestKind::Initialize { again });
    }

    fn send_page(&mut self, again: bool) {
        let Some(listing) = &self.listing else { return };
        let params = listing.params(self.config.user_tools, self.config.bare);
        self.send_setup("tools/list", &params, RequestKind::Page { again });
    }

    fn send_setup(&mut self, method: &str, params: &str, what: RequestKind) {
        let id = self.requests.launch(what, self.now, self.config.limits.setup_time);
        let text = self.whole(format!("{},\"params\":{params},\"id\":{id}", self.head(method)));
        self.out.push_back(Output::Send(text));
    }

    fn send_call(&mut self) {
        let Some(QueuedCall { ticket, tool, mut text, asked, budget, .. }) = self.requests.dequeue() else { return };
        self.stats.calls += 1;
        if asked < self.now {
            self.out.push_back(Output::Event(Event::TurnCame(ticket)));
        }
        let id = self.requests.launch(RequestKind::Call { ticket, tool }, self.now, budget);
        text.push_str(&id.to_string());
        let text = self.whole(text);
        self.out.push_back(Output::Send(text));
    }

    /// The request up to its id, or why there can be none.
    pub(super) fn call_text(&self, tool: &str, args: &Args, ticket: Ticket) -> Result<String, ToolError> {
        let queued = self.requests.queued();
        let limit = self.config.limits.call_bytes;
        let refuse = |kind, message: String| Err(ToolError::new(kind, message));
        match self.phase {
            SessionPhase::Closed => {
                let message = format!("{} is not connected; `{tool}` was not sent", self.noun());
                return refuse(ErrorKind::DeviceAway, message);
            }
            SessionPhase::Plain => return refuse(ErrorKind::Unsupported, NO_MCP.to_owned()),
            _ if queued >= self.config.limits.queue => {
                let message =
                    format!("{queued} calls wait for {} already; `{tool}` was not sent, try again later", self.noun());
                return refuse(ErrorKind::Busy, message);
            }
            _ => {}
        }
        let mut text = self.head("tools/call");
        text.push_str(",\"params\":{\"name\":");
        text.push_str(&to_json(tool));
        text.push_str(",\"arguments\":");
        text.push_str(&to_json(args));
        // Providers may report progress; firmware never does, and its memory is small.
        if self.config.bare {
            text.push_str(&format!(",\"_meta\":{{\"progressToken\":{}}}", ticket.0));
        }
        text.push_str("},\"id\":");
        if text.len() > limit {
            let message =
                format!("the arguments of `{tool}` make {} bytes and the limit is {limit}; send less", text.len());
            return refuse(ErrorKind::TooLarge, message);
        }
        Ok(text)
    }

    // ---- replies ----

    /// Boards may ping us; other requests are not served.
    pub(super) fn reply_text(&self, method: &str, id: &str) -> String {
        let answer = match method {
            "ping" => "\"result\":{}".to_owned(),
            other => {
                let error = json!({"code": -32601, "message": format!("Method not found: {}", clip(other))});
                format!("\"error\":{error}")
            }
        };
        self.whole(format!("{}{{\"jsonrpc\":\"2.0\",\"id\":{id},{answer}", self.envelope()))
    }

    /// A provider may work on several calls, and should know which are cancelled.
    pub(super) fn call_off(&mut self, id: i32, why: &str) {
        if self.config.bare {
            let params = json!({"requestId": id, "reason": why});
            let text = self.whole(format!("{},\"params\":{params}", self.head("notifications/cancelled")));
            self.out.push_back(Output::Send(text));
        }
    }

    fn head(&self, method: &str) -> String {
        let mut text = self.envelope();
        text.push_str("{\"jsonrpc\":\"2.0\",\"method\":\"");
        text.push_str(method);
        text.push('"');
        text
    }

    /// A message that was begun with `envelope`, with the braces that end it.
    fn whole(&self, mut text: String) -> String {
        text.push_str(if self.config.bare { "}" } else { "}}" });
        text
    }

    fn envelope(&self) -> String {
        let mut text = String::with_capacity(256);
        if self.config.bare {
            return text;
        }
        text.push_str("{\"session_id\":");
        // An MQTT board has a session only between hello and goodbye.
        let named = self.greeted || self.config.transport == Transport::WebSocket;
        text.push_str(&to_json(if named { self.config.session_id.as_str() } else { "" }));
        text.push_str(",\"type\":\"mcp\",\"payload\":");
        text
    }
}

fn to_json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    // Text, names and JSON values have no way to fail.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}
