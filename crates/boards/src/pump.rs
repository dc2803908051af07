//! The task of one connected board: it alone owns the session and the pipe.
//!
//! Text from the board, commands of callers and time go into the session; its output goes to the board, to the callers
//! and to the gateway.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use sinew_tool::{
    Caller, Content, Device, DeviceEvent, DeviceInfo, ErrorKind, LeaveReason, Notice, Outcome, Picture, Status,
    ToolError, Toolset, Value, json,
};
use sinew_wire::Moment;
use sinew_wire::host::{Config, Event, Limits as SessionLimits, Output, Session, Ticket, Transport, binary_json};
use tokio::sync::oneshot;
use tokio::time::Sleep;

use crate::device::{BoardCommand, BoardDevice};
use crate::hub::{AdmittedBoard, BoardHub};
use crate::pipe::{CloseReason, Liveness, Pipe, PipeError, Received};
use crate::relay::{Conversation, FromServer, ToServer};
use crate::roster::{Registration, RegistrationEnd};
use crate::token_bucket::TokenBucket;
use crate::wire_log;
use crate::{BoardLimits, integers, provider};

/// Unanswered pings after which a board counts as gone.
const MAX_MISSED_PINGS: u32 = 2;
/// How long a provider may take for each setup request: its process may have to be started first.
const PROVIDER_TIME: Duration = Duration::from_secs(30);
/// Notices of a board that are kept until it is announced.
const EARLY_NOTICES: usize = 16;
/// The attribute that shows what is wrong with a board.
const TROUBLE: &str = "trouble";
/// The event topic for what was worked around or left out.
const WARNING: &str = "warning";
/// Characters of a warning in the log.
const SHOWN: usize = 160;
/// The event topic for pictures nobody asked for.
const PICTURE: &str = "picture";
/// Pictures attached to one answer; the oldest are left out.
const PICTURES: usize = 2;
/// A tool of firmware that sends a copy of the screen to a URL.
const SNAPSHOT: &str = "self.screen.snapshot";

pub(crate) struct Pump {
    pub(crate) hub: Arc<BoardHub>,
    registration: Registration,
    pub(crate) pipe: Pipe,
    pub(crate) session: Session,
    pub(crate) device: Arc<BoardDevice>,
    /// Calls that the session has not answered.
    pub(crate) pending: Vec<PendingCall>,
    /// The conversation with the voice server.
    pub(crate) conversation: Option<Box<Conversation>>,
    /// Hellos are answered here, because a voice server may have to be asked first.
    pub(crate) owner_greets: bool,
    /// The frame of the text that is being read, where it came in one.
    framed_text: Option<Bytes>,
    /// The board is disconnected once it has nothing to do, and then at the latest.
    pub(crate) leaves_by: Option<Moment>,
    /// Pictures that arrived during the call in flight.
    pictures: Vec<Picture>,
    sleep: Pin<Box<Sleep>>,
    /// When `sleep` ends. It changes only if something is due earlier, so that a call, whose deadline is far away, does
    /// not touch the timer.
    armed: Moment,
    /// When the session has something to do.
    session_due: Option<Moment>,
    started: Moment,
    last_received: Moment,
    pings_unanswered: u32,
    /// Not everything was sent yet: the board does not read.
    stalled: bool,
    /// Since when nothing is read from the board, because it leaves too many answers unread.
    unread_since: Option<Moment>,
    greeted: bool,
    /// A tool provider, not a board.
    is_provider: bool,
    pub(crate) joined: bool,
    /// Whether the gateway ever saw it.
    has_joined: bool,
    first_answer: FirstAnswer,
    early_notices: Vec<Notice>,
    notices: TokenBucket,
    notices_dropped: u64,
    /// Dropped notices that were not reported yet.
    unreported: u64,
    pub(crate) ending: Option<Ending>,
}

pub(crate) struct PendingCall {
    pub(crate) ticket: Ticket,
    number: u64,
    pub(crate) caller: Arc<dyn Caller>,
    reply: oneshot::Sender<Result<Outcome, ToolError>>,
}

/// What is expected of a board that may not be there at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstAnswer {
    /// If it does not answer, it is announced as a device without MCP.
    Usual,
    /// If it does not answer, it is not announced.
    Required,
    /// The same, and it is asked only once and has this time.
    Within(Duration),
}

/// What came of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    Joined,
    NeverAnswered,
}

/// What a board's task reacts to.
enum PumpEvent {
    Received(Received),
    Asked(BoardCommand),
    /// The voice server, or what became of it.
    Server(FromServer),
    Flushed,
    TimePassed,
    Ended(Ending),
}

/// How a connection ends: the reason for the gateway, and what the board is told if it still reads.
pub(crate) struct Ending {
    pub(crate) reason: LeaveReason,
    pub(crate) farewell: Option<CloseReason>,
}

impl Pump {
    /// Boxed, because a future keeps a copy of everything moved into it.
    pub(crate) fn new(met: AdmittedBoard, hub: Arc<BoardHub>) -> Box<Pump> {
        let AdmittedBoard { pipe, info, registration } = met;
        let limits = &hub.config.limits;
        let now = hub.now();
        let transport = pipe.transport();
        let is_provider = provider::is_provider(&info);
        let owner_greets = hub.relay.is_some() && !is_provider && pipe.can_relay();
        let session_limits = session_limits(limits, pipe.text_bytes(), is_provider);
        let config = Config {
            session_id: format!("board-{}", registration.number),
            first_id: first_id(),
            transport,
            bare: is_provider,
            vision: hub.vision(&registration).filter(|_| !is_provider),
            user_tools: hub.config.user_tools && !is_provider,
            owner_greets,
            hello_extra: pipe.has_sound().then(|| hub.sound_section()).flatten(),
            limits: session_limits,
        };
        let mut session = Session::new(config, now);
        // Boards on MQTT can be asked at any time, and say hello only when a conversation starts; providers never do.
        let greeted = is_provider || transport == Transport::Udp;
        if greeted {
            session.begin(now);
        }
        let device = Arc::new(BoardDevice::new(info, limits.session.queue, hub.gallery.clone()));
        registration.show(&device);
        let mut pump = Box::new(Pump {
            conversation: None,
            owner_greets,
            framed_text: None,
            leaves_by: None,
            session,
            device,
            pending: Vec::new(),
            pictures: Vec::new(),
            sleep: Box::pin(tokio::time::sleep_until(hub.start)),
            armed: now,
            session_due: None,
            started: now,
            last_received: now,
            pings_unanswered: 0,
            stalled: false,
            unread_since: None,
            greeted,
            is_provider,
            joined: false,
            has_joined: false,
            first_answer: FirstAnswer::Usual,
            early_notices: Vec::new(),
            notices: TokenBucket::new(limits.notices_per_second, limits.notice_burst, now),
            notices_dropped: 0,
            unreported: 0,
            ending: None,
            pipe,
            registration,
            hub,
        });
        pump.show_whether_relayed();
        pump
    }

    pub(crate) fn with_first_answer(mut self: Box<Pump>, first_answer: FirstAnswer) -> Box<Pump> {
        if let FirstAnswer::Within(time) = first_answer {
            let now = self.now();
            self.session.expect_first_answer(now, time);
        }
        self.first_answer = first_answer;
        self
    }

    pub(crate) async fn run(mut self: Box<Pump>) -> Served {
        let ending = loop {
            self.drain_session();
            self.leave_after_talk();
            if let Some(ending) = self.ending.take() {
                break ending;
            }
            let turn = poll_fn(|cx| self.poll_event(cx)).await;
            let now = self.now();
            match turn {
                PumpEvent::Received(received) => {
                    self.handle_received(now, received);
                    // A board that never pauses would keep the timer from being polled.
                    if now >= self.armed {
                        self.handle_time(now);
                    }
                }
                PumpEvent::Asked(command) => self.handle_command(now, command),
                PumpEvent::Server(news) => self.handle_server(news),
                PumpEvent::Flushed => self.session.hold(now, self.stalled),
                PumpEvent::TimePassed => self.handle_time(now),
                PumpEvent::Ended(ending) => self.ending = Some(ending),
            }
            if self.can_shrink() {
                Box::pin(self.pipe.shrink()).await;
            }
        };
        // Boxed: it happens once, and would make the task larger all the time.
        Box::pin(self.disconnect(ending)).await;
        if self.has_joined { Served::Joined } else { Served::NeverAnswered }
    }

    pub(crate) fn device(&self) -> Arc<BoardDevice> {
        self.device.clone()
    }

    pub(crate) fn now(&self) -> Moment {
        self.hub.now()
    }

    /// During a conversation buffers are used again at once.
    fn can_shrink(&self) -> bool {
        self.conversation.is_none() && self.pipe.can_shrink()
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<PumpEvent> {
        if let Poll::Ready(end) = Pin::new(&mut self.registration.end).poll(cx) {
            let (reason, farewell) = match end {
                Ok(RegistrationEnd::Replaced) => (LeaveReason::Replaced, CloseReason::Replaced),
                Ok(RegistrationEnd::Revoked) => {
                    (LeaveReason::Dismissed("its token was revoked".to_owned()), CloseReason::Policy)
                }
                Err(_) => (LeaveReason::Dismissed("the gateway is shutting down".to_owned()), CloseReason::Closing),
            };
            return Poll::Ready(PumpEvent::Ended(Ending { reason, farewell: Some(farewell) }));
        }
        let flushed = self.pipe.poll_flush(cx);
        let was_stalled = std::mem::replace(&mut self.stalled, flushed.is_pending());
        match flushed {
            Poll::Ready(Err(broken)) => return Poll::Ready(PumpEvent::Ended(broken.into())),
            Poll::Ready(Ok(())) if self.can_shrink() || self.unread_since.is_some() => {
                return Poll::Ready(PumpEvent::Flushed);
            }
            _ if self.stalled != was_stalled => return Poll::Ready(PumpEvent::Flushed),
            _ => {}
        }
        if let Poll::Ready(command) = self.device.commands.poll_pop(cx) {
            return Poll::Ready(PumpEvent::Asked(*command));
        }
        if self.unread_since.is_none() {
            match self.pipe.poll_receive(cx) {
                Poll::Ready(Ok(received)) => return Poll::Ready(PumpEvent::Received(received)),
                Poll::Ready(Err(broken)) => return Poll::Ready(PumpEvent::Ended(broken.into())),
                Poll::Pending => {}
            }
        }
        if self.sleep.as_mut().poll(cx).is_ready() {
            return Poll::Ready(PumpEvent::TimePassed);
        }
        // Last, so that a flood of the voice server delays nobody else; and only what the board can take.
        match &mut self.conversation {
            Some(conversation) => conversation.poll_news(cx, self.stalled).map(PumpEvent::Server),
            None => Poll::Pending,
        }
    }

    fn handle_received(&mut self, now: Moment, received: Received) {
        self.last_received = now;
        self.pings_unanswered = 0;
        self.framed_text = None;
        match received {
            Received::Text(text) => {
                self.log_wire("received", text.as_str());
                self.session.handle_text(now, text.as_str());
            }
            Received::Lossy(text) => {
                self.log_wire("received", &text);
                self.session.handle_lossy(now, &text);
            }
            Received::Binary(bytes) => match self.session.handle_binary(&bytes) {
                true => self.pass_to_server(ToServer::Sound(bytes)),
                false => self.framed_text = binary_json(&bytes).is_some().then_some(bytes),
            },
            Received::KeepAlive => {}
            Received::Close => {
                self.ending = Some(Ending { reason: LeaveReason::Closed, farewell: Some(CloseReason::Normal) })
            }
        }
    }

    fn handle_command(&mut self, now: Moment, command: BoardCommand) {
        match command {
            BoardCommand::Call { reply, .. } if let Some(why) = self.pipe.unavailable_reason() => {
                let message = format!("{}: {why}; nothing was sent, try again", self.device.info().suggested_id);
                let _ = reply.send(Err(ToolError::new(ErrorKind::DeviceAway, message)));
            }
            BoardCommand::Call { number, mut call, reply } => {
                let tools = self.device.tools();
                if self.is_provider {
                    provider::put_in_order(&mut call.args, tools.find(&call.tool));
                } else if let Some(error) = integers::find_too_wide(&call.args, tools.find(&call.tool)) {
                    let _ = reply.send(Err(error));
                    return;
                }
                let ticket = match call.caller.is_urgent() {
                    true => self.session.call_urgently(now, &call.tool, &call.args, call.budget),
                    false => self.session.call(now, &call.tool, &call.args, call.budget),
                };
                self.pending.push(PendingCall { ticket, number, caller: call.caller, reply });
            }
            BoardCommand::Cancel(number) => {
                if let Some(index) = self.pending.iter().position(|pending| pending.number == number) {
                    self.session.cancel(self.pending.swap_remove(index).ticket);
                }
            }
            BoardCommand::Picture(picture) if self.pending.is_empty() => {
                let body = json!({"name": picture.name, "mime_type": picture.mime_type, "bytes": picture.bytes.len()});
                self.notify(Notice { topic: PICTURE.to_owned(), body });
            }
            BoardCommand::Picture(picture) => {
                if self.pictures.len() == PICTURES {
                    self.pictures.remove(0);
                }
                self.pictures.push(picture);
            }
            BoardCommand::Received(queued) => self.handle_received(now, queued.received),
            BoardCommand::Refresh(turn) => {
                self.pipe.hold_setup_permit(turn);
                self.session.relist(now);
            }
            BoardCommand::CheckRelayed => self.show_whether_relayed(),
            BoardCommand::ConnectionLost => self.handle_lost_connection(),
            BoardCommand::Gone(reason) => self.ending = Some(Ending { reason, farewell: None }),
        }
    }

    /// What was sent may be lost. A board that has not joined yet starts over when the broker is back.
    fn handle_lost_connection(&mut self) {
        let lost = "the broker cannot be reached any more";
        if !self.joined {
            self.ending = Some(Ending { reason: LeaveReason::Broken(lost.to_owned()), farewell: None });
        }
        // From the last to the first, so that no waiting call is sent.
        self.pending.sort_by_key(|pending| pending.number);
        while let Some(PendingCall { ticket, reply, .. }) = self.pending.pop() {
            self.session.cancel(ticket);
            let (kind, what) = match self.pending.is_empty() {
                true => (ErrorKind::DeviceLost, "the call may have been sent; look before trying again"),
                false => (ErrorKind::DeviceAway, "the call was not sent, try again"),
            };
            let message = format!("{}: {lost}; {what}", self.device.info().suggested_id);
            let _ = reply.send(Err(ToolError::new(kind, message)));
        }
    }

    fn handle_time(&mut self, now: Moment) {
        self.session.handle_time(now);
        if self.silence_due().is_some_and(|due| now >= due) {
            let silence = now.since(self.last_received).as_secs();
            let reason = match self.pipe.liveness() {
                Liveness::Ping if self.pings_unanswered < MAX_MISSED_PINGS => None,
                Liveness::Ping => {
                    Some(format!("nothing was heard for {silence} s, and {MAX_MISSED_PINGS} pings went unanswered"))
                }
                Liveness::MaxSilence(_) => Some(format!(
                    "nothing was heard for {silence} s, half as long again as the keepalive the board chose"
                )),
            };
            match reason {
                Some(reason) => {
                    let reason = LeaveReason::Broken(reason);
                    self.ending = Some(Ending { reason, farewell: Some(CloseReason::Silent) });
                }
                None => {
                    self.pings_unanswered += 1;
                    let pinged = self.pipe.ping();
                    self.check_sent(pinged);
                }
            }
        }
        if self.unread_due().is_some_and(|due| now >= due) {
            let BoardLimits { unread_bytes, unread_time, .. } = &self.hub.config.limits;
            let reason =
                format!("it left more than {unread_bytes} bytes of answers unread for {} s", unread_time.as_secs_f32());
            self.ending = Some(Ending { reason: LeaveReason::Dismissed(reason), farewell: Some(CloseReason::Policy) });
        }
        if !self.greeted && now >= self.hello_due() {
            let waited = self.hub.config.limits.hello_time.as_secs();
            let reason = format!("the board said no hello within {waited} s");
            self.ending = Some(Ending { reason: LeaveReason::Dismissed(reason), farewell: Some(CloseReason::Policy) });
        }
    }

    /// When the board has been silent for too long.
    fn silence_due(&self) -> Option<Moment> {
        let silence = match self.pipe.liveness() {
            Liveness::Ping => self.hub.config.limits.ping_after * (self.pings_unanswered + 1),
            Liveness::MaxSilence(limit) => limit?,
        };
        Some(self.last_received + silence)
    }

    /// When a board that does not read its answers is disconnected.
    fn unread_due(&self) -> Option<Moment> {
        Some(self.unread_since? + self.hub.config.limits.unread_time)
    }

    fn hello_due(&self) -> Moment {
        self.started + self.hub.config.limits.hello_time
    }

    pub(crate) fn check_sent(&mut self, result: Result<(), PipeError>) {
        if let Err(broken) = result {
            self.ending.get_or_insert(broken.into());
        }
    }

    fn log_wire(&self, what: &str, text: &str) {
        if tracing::enabled!(tracing::Level::DEBUG) {
            tracing::debug!(board = %self.registration.key, "{what}: {}", wire_log::line(text));
        }
    }

    /// Handles all output of the session, and sets the timer for what is due next.
    fn drain_session(&mut self) {
        self.session_due = loop {
            match self.session.poll() {
                Output::Send(text) => {
                    self.log_wire("sent", &text);
                    let sent = self.pipe.send(text);
                    self.check_sent(sent);
                }
                Output::Reply(text) => {
                    self.log_wire("sent", &text);
                    let sent = self.pipe.reply(text);
                    self.check_sent(sent);
                }
                Output::Event(event) => self.handle_event(event),
                Output::Wait(due) => break due,
            }
        };
        if !self.session.is_asking() {
            self.pipe.finish_setup();
        }
        self.note_asker();
        self.unread_since = match self.pipe.unread() > self.hub.config.limits.unread_bytes {
            true => self.unread_since.or_else(|| Some(self.now())),
            false => None,
        };
        let hello_due = (!self.greeted).then(|| self.hello_due());
        let dues = [self.silence_due(), self.session_due, hello_due, self.unread_due(), self.leaves_by];
        let due = dues.into_iter().flatten().min();
        // Nothing is due: an MQTT board without a keepalive. Waking once a day costs nothing.
        let due = due.unwrap_or_else(|| self.now() + Duration::from_secs(86_400));
        if self.sleep.is_elapsed() || due < self.armed {
            self.armed = due;
            self.sleep.as_mut().reset(self.hub.start + Duration::from_micros(due.0));
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Hello(hello) => {
                self.greeted = true;
                self.handle_hello(hello);
            }
            Event::Spoken(text) => {
                let framed = self.framed_text.take().filter(|frame| binary_json(frame) == Some(text.as_bytes()));
                self.pass_to_server(framed.map_or_else(|| ToServer::Text(text), ToServer::FramedText));
            }
            Event::HungUp => self.handle_hung_up(),
            Event::Ready(ready) => {
                let mut info = DeviceInfo::clone(&self.device.info());
                (info.name, info.version, info.status) = (ready.name, ready.version, status(&ready.tools));
                if provider::is_nameless(&info)
                    && let Err(ending) = self.register_by_name(&mut info)
                {
                    self.ending.get_or_insert(ending);
                    return;
                }
                if ready.tools.find(SNAPSHOT).is_some() {
                    let url = self.hub.upload_url(&self.registration);
                    info.attributes.extend(url.map(|url| ("upload_url".to_owned(), json!(url))));
                }
                info.attributes.extend(trouble(&ready.warnings).map(|trouble| (TROUBLE.to_owned(), trouble)));
                self.publish(Some(info), Some(ready.tools));
                ready.warnings.into_iter().for_each(|warning| self.warn(warning));
            }
            Event::NoMcp if !self.has_joined && self.first_answer != FirstAnswer::Usual => {
                let reason = LeaveReason::Broken("it did not answer".to_owned());
                self.ending.get_or_insert(Ending { reason, farewell: None });
            }
            Event::NoMcp => {
                let mut info = DeviceInfo::clone(&self.device.info());
                info.status = Status::Limited {
                    state: "no MCP".to_owned(),
                    remedy: "the board does not offer MCP, or does not answer it; update its firmware to one whose hello has features.mcp"
                        .to_owned(),
                };
                self.publish(Some(info), None);
            }
            Event::ToolsChanged { tools, warnings } => {
                let mut info = DeviceInfo::clone(&self.device.info());
                info.status = status(&tools);
                info.attributes.remove(TROUBLE);
                info.attributes.extend(trouble(&warnings).map(|trouble| (TROUBLE.to_owned(), trouble)));
                self.publish(Some(info), Some(tools));
                warnings.into_iter().for_each(|warning| self.warn(warning));
            }
            Event::Answered(ticket, result) => {
                let pictures = std::mem::take(&mut self.pictures).into_iter();
                let result = result.map(|outcome| {
                    pictures.fold(outcome, |outcome, picture| {
                        outcome.with(Content::image(&picture.bytes, picture.mime_type, None))
                    })
                });
                if let Some(index) = self.pending.iter().position(|pending| pending.ticket == ticket) {
                    // An error means that the caller has just given up; its cancellation follows.
                    let _ = self.pending.swap_remove(index).reply.send(result);
                }
            }
            Event::TurnCame(ticket) => {
                if let Some(caller) = self.caller_of(ticket) {
                    caller.turn_came();
                }
            }
            Event::Progress { ticket, progress, total, message } => {
                if let Some(caller) = self.caller_of(ticket) {
                    caller.progress(progress, total, message.as_deref());
                }
            }
            Event::Notified(notice) => self.notify(notice),
            Event::Warned(warning) => self.warn(warning),
            Event::TalkEnded => {
                let reason = LeaveReason::Closed;
                self.ending.get_or_insert(Ending { reason, farewell: Some(CloseReason::Normal) });
            }
            Event::Closed(reason) => {
                let reason = LeaveReason::Dismissed(reason);
                self.ending.get_or_insert(Ending { reason, farewell: Some(CloseReason::Normal) });
            }
        }
    }

    fn caller_of(&self, ticket: Ticket) -> Option<&dyn Caller> {
        self.pending.iter().find(|pending| pending.ticket == ticket).map(|pending| &*pending.caller)
    }

    /// Registers a provider under the name it reported; an older one of that name is replaced.
    fn register_by_name(&mut self, info: &mut DeviceInfo) -> Result<(), Ending> {
        let name = info.name.clone();
        let registration =
            self.hub.register(&provider::set_identity(info, &name), &info.admission).map_err(|refused| {
                let reason = LeaveReason::Dismissed(refused.reason(&self.hub.config.limits));
                Ending { reason, farewell: Some(CloseReason::Policy) }
            })?;
        registration.show(&self.device);
        self.registration = registration;
        Ok(())
    }

    /// Announces the board, or its changes.
    fn publish(&mut self, info: Option<DeviceInfo>, tools: Option<Toolset>) {
        if let Some(info) = info {
            self.device.set_info(info);
        }
        if let Some(tools) = tools {
            self.device.set_tools(self.hub.roster.share_toolset(tools));
        }
        self.greeted = true;
        let device: Arc<dyn Device> = self.device.clone();
        if self.joined {
            return self.announce(DeviceEvent::Changed(device));
        }
        (self.joined, self.has_joined) = (true, true);
        self.announce(DeviceEvent::Joined(device));
        self.show_whether_relayed();
        for notice in std::mem::take(&mut self.early_notices) {
            self.announce(DeviceEvent::Said(self.device.clone(), notice));
        }
    }

    pub(crate) fn warn(&mut self, warning: String) {
        // A warning may quote a long message; the log keeps to one line.
        let board = self.device.info().key.clone();
        let line: String = warning.chars().take(SHOWN).map(|each| if each.is_control() { ' ' } else { each }).collect();
        if line.len() < warning.len() {
            tracing::warn!(%board, "{line}…");
            tracing::debug!(%board, "in full: {warning}");
        } else {
            tracing::warn!(%board, "{line}");
        }
        self.notify(Notice { topic: WARNING.to_owned(), body: json!({"message": warning}) });
    }

    /// Passes a notice on, or counts and drops it if the board sends too many; the first drop is reported.
    fn notify(&mut self, notice: Notice) {
        if !self.joined {
            if self.early_notices.len() < EARLY_NOTICES {
                self.early_notices.push(notice);
            } else {
                self.unreported += 1;
            }
            return;
        }
        let now = self.now();
        if self.notices.take(now) {
            if self.notices.is_full() {
                self.notices_dropped = 0;
            }
            self.report_dropped();
            return self.announce(DeviceEvent::Said(self.device.clone(), notice));
        }
        self.notices_dropped += 1;
        self.unreported += 1;
        if self.notices_dropped == 1 {
            let limits = &self.hub.config.limits;
            let message = format!(
                "it sends more than {} notices at once or {} per second; the rest is dropped",
                limits.notice_burst, limits.notices_per_second
            );
            tracing::warn!(board = %self.device.info().key, "{message}");
            let warning = Notice { topic: WARNING.to_owned(), body: json!({"message": message}) };
            self.announce(DeviceEvent::Said(self.device.clone(), warning));
        }
    }

    /// Reports dropped notices together, with the next notice that passes or at the end: a flood of notices must not
    /// become a flood of reports.
    fn report_dropped(&mut self) {
        let unreported = std::mem::take(&mut self.unreported);
        if unreported > 0 {
            self.announce(DeviceEvent::Dropped(self.device.clone(), unreported));
        }
    }

    pub(crate) fn announce(&self, event: DeviceEvent) {
        (self.hub.config.announce)(event);
    }

    /// Answers every caller, then informs the gateway, then the board.
    async fn disconnect(&mut self, ending: Ending) {
        // Calls not yet taken are dropped; their callers learn that nothing was sent.
        self.device.commands.close();
        let hanging_up = self.hang_up();
        let reason = ending.reason.to_string();
        let now = self.now();
        self.session.close(now);
        loop {
            match self.session.poll() {
                Output::Event(Event::Answered(ticket, result)) => {
                    if let Some(index) = self.pending.iter().position(|pending| pending.ticket == ticket) {
                        let pending = self.pending.swap_remove(index);
                        let result = result.map_err(|error| lost(error, &self.device.info(), &reason));
                        let _ = pending.reply.send(result);
                    }
                }
                Output::Send(_) | Output::Reply(_) | Output::Event(_) => {}
                Output::Wait(_) => break,
            }
        }
        tracing::debug!(board = %self.device.info().key, %reason, stats = ?self.session.stats(), "board disconnected");
        let dismissed = match &ending.reason {
            LeaveReason::Dismissed(why) if ending.farewell != Some(CloseReason::Closing) => Some(why),
            _ => None,
        };
        if let Some(why) = dismissed {
            tracing::warn!(board = %self.registration.key, "board disconnected by the gateway: {why}");
        }
        if std::mem::take(&mut self.joined) {
            self.report_dropped();
            if let Some(why) = dismissed {
                self.device.set_attribute(TROUBLE, json!(why));
                self.announce(DeviceEvent::Changed(self.device.clone()));
            }
            self.announce(DeviceEvent::Left(self.device.clone(), ending.reason));
        }
        // A presence of a board that is not there is not a board that does not stay.
        if self.has_joined || self.first_answer == FirstAnswer::Usual {
            self.registration.release(now, &self.hub.config.limits);
        }
        if let Some(farewell) = ending.farewell {
            Box::pin(self.pipe.close(farewell, &reason)).await;
        }
        if let Some(hanging_up) = hanging_up {
            let _ = hanging_up.await;
        }
    }
}

impl Drop for Pump {
    /// Only a bug of ours leaves a joined board behind; the gateway must learn of it all the same.
    fn drop(&mut self) {
        self.device.commands.close();
        if self.joined {
            let reason = LeaveReason::Broken("the gateway's own task for this board failed".to_owned());
            self.announce(DeviceEvent::Left(self.device.clone(), reason));
        }
    }
}

/// The limits of a session: those of the configuration, and what the connection takes.
fn session_limits(limits: &BoardLimits, text_bytes: Option<usize>, is_provider: bool) -> SessionLimits {
    SessionLimits {
        frame_bytes: limits.message_bytes,
        call_bytes: text_bytes.map_or(limits.message_bytes, |most| most.min(limits.message_bytes)),
        talk_time: limits.talk,
        setup_time: if is_provider { PROVIDER_TIME } else { limits.session.setup_time },
        ..limits.session.clone()
    }
}

/// Milliseconds of Unix time, modulo 2^31: no request id repeats soon, also after a restart of the gateway.
fn first_id() -> i32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i32::try_from(now.as_millis() % i32::MAX.unsigned_abs() as u128).unwrap_or(1)
}

/// A device without tools is useless, and most likely broken.
fn status(tools: &Toolset) -> Status {
    if !tools.is_empty() {
        return Status::Ready;
    }
    Status::Limited {
        state: "no tools".to_owned(),
        remedy: "the device is connected but lists no tools; restart it, and look at its log".to_owned(),
    }
}

/// What was wrong with a tool list, in short.
fn trouble(warnings: &[String]) -> Option<Value> {
    let first = warnings.first()?;
    Some(match warnings.len() {
        1 => json!(first),
        count => json!(format!("{first}; and {} more about its tools, see its events", count - 1)),
    })
}

/// Adds the device and the reason to the error of the session.
fn lost(error: ToolError, info: &DeviceInfo, reason: &str) -> ToolError {
    let message = format!("{} ({reason}): {}", info.suggested_id, error.message);
    ToolError { message, ..error }
}

impl From<PipeError> for Ending {
    fn from(broken: PipeError) -> Ending {
        match broken {
            PipeError::Network(what) => Ending { reason: LeaveReason::Broken(what), farewell: None },
            PipeError::Rule(farewell, what) => {
                Ending { reason: LeaveReason::Dismissed(what), farewell: Some(farewell) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_reach_the_session() {
        let limits = BoardLimits { talk: Duration::from_secs(7), message_bytes: 5000, ..BoardLimits::default() };
        let of_board = session_limits(&limits, Some(9000), false);
        assert_eq!((of_board.talk_time, of_board.frame_bytes, of_board.call_bytes), (limits.talk, 5000, 5000));
        let of_provider = session_limits(&limits, Some(400), true);
        assert_eq!((of_provider.setup_time, of_provider.call_bytes), (PROVIDER_TIME, 400));
    }
}
