//! The task of one connected board: it alone owns the session and the pipe.
//!
//! Text from the board, commands of callers and the passing of time go into the session; what the
//! session gives back goes to the board, to the callers and to the gateway.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sinew_tool::{
    Content, Device, DeviceEvent, DeviceInfo, ErrorKind, LeaveReason, Notice, Outcome, Picture, Status, ToolError,
    Toolset, Value, json,
};
use sinew_wire::Moment;
use sinew_wire::host::{Config, Event, Output, Session, Ticket, Transport};
use tokio::sync::oneshot;
use tokio::time::Sleep;

use crate::flood::Bucket;
use crate::hall::{Hall, Met};
use crate::handle::{BoardDevice, Command};
use crate::pipe::{Broken, Farewell, Heard, Pipe, Vigil};
use crate::roster::{Lost, Place};
use crate::{Limits, integers, provider};

/// Unanswered pings after which a board counts as gone.
const MISSES: u32 = 2;
/// As long as a provider may take over each question at the start: its process may have to be started first.
const PROVIDER_TIME: Duration = Duration::from_secs(30);
/// What a board may say before it is announced; kept for the gateway, and bounded.
const EARLY_NOTICES: usize = 16;
/// The particular under which people read what is wrong with a board.
const TROUBLE: &str = "trouble";
/// The topic under which the gateway learns what was worked around or left out.
const WARNING: &str = "warning";
/// Characters of a warning in the log.
const SHOWN: usize = 160;
/// And under which it learns of pictures nobody asked for.
const PICTURE: &str = "picture";
/// Pictures that one answer brings along; the oldest are left out.
const PICTURES: usize = 2;
/// A tool of firmware that wants an address to send a copy of the screen to.
const SNAPSHOT: &str = "self.screen.snapshot";

pub(crate) struct Pump {
    hall: Arc<Hall>,
    place: Place,
    pipe: Pipe,
    session: Session,
    device: Arc<BoardDevice>,
    /// Calls the session has and has not answered.
    open: Vec<Open>,
    /// Pictures that came while the call in flight was on its way.
    pictures: Vec<Picture>,
    sleep: Pin<Box<Sleep>>,
    /// When `sleep` ends. It is moved forward only when something is due earlier, so that a call,
    /// whose deadline is far away, does not touch the timer.
    armed: Moment,
    /// When the session wants to be woken.
    session_due: Option<Moment>,
    started: Moment,
    last_heard: Moment,
    pings_unanswered: u32,
    /// What was sent has not left yet: the board does not read.
    stalled: bool,
    /// Since when the board owes so much reading that it is not listened to.
    unread_since: Option<Moment>,
    greeted: bool,
    /// A provider, and no board.
    bare: bool,
    joined: bool,
    early: Vec<Notice>,
    notices: Bucket,
    notices_dropped: u64,
    /// Dropped notices that the gateway has not heard of.
    untold: u64,
    ending: Option<Ending>,
}

struct Open {
    ticket: Ticket,
    number: u64,
    reply: oneshot::Sender<Result<Outcome, ToolError>>,
}

/// One thing that happened.
enum Turn {
    Heard(Heard),
    Asked(Command),
    Flushed,
    TimePassed,
    Ended(Ending),
}

/// How a stay ends: what the gateway hears, and what the board hears if it still listens.
struct Ending {
    reason: LeaveReason,
    farewell: Option<Farewell>,
}

impl Pump {
    /// Boxed, because a future keeps a copy of whatever is moved into it.
    pub(crate) fn new(met: Met, hall: Arc<Hall>) -> Box<Pump> {
        let Met { pipe, info, place } = met;
        let limits = &hall.door.limits;
        let now = hall.now();
        let mut session_limits = limits.session.clone();
        session_limits.frame_bytes = limits.message_bytes;
        session_limits.call_bytes =
            pipe.text_bytes().map_or(limits.message_bytes, |most| most.min(limits.message_bytes));
        let transport = pipe.transport();
        let bare = provider::is_provider(&info);
        if bare {
            session_limits.setup_time = PROVIDER_TIME;
        }
        let config = Config {
            session_id: format!("board-{}", place.number),
            first_id: first_id(),
            transport,
            bare,
            vision: hall.vision(&place).filter(|_| !bare),
            user_tools: hall.door.user_tools && !bare,
            hello_extra: pipe.has_sound().then(|| hall.sound_section()).flatten(),
            limits: session_limits,
        };
        let mut session = Session::new(config, now);
        // Boards on MQTT can be asked at any time, and say hello only when they are talked to; providers never do.
        let greeted = bare || transport == Transport::Udp;
        if greeted {
            session.begin(now);
        }
        let device = Arc::new(BoardDevice::new(info, limits.session.queue, hall.gallery.clone()));
        place.show(&device);
        Box::new(Pump {
            session,
            device,
            open: Vec::new(),
            pictures: Vec::new(),
            sleep: Box::pin(tokio::time::sleep_until(hall.start)),
            armed: now,
            session_due: None,
            started: now,
            last_heard: now,
            pings_unanswered: 0,
            stalled: false,
            unread_since: None,
            greeted,
            bare,
            joined: false,
            early: Vec::new(),
            notices: Bucket::new(limits.notices_per_second, limits.notice_burst, now),
            notices_dropped: 0,
            untold: 0,
            ending: None,
            pipe,
            place,
            hall,
        })
    }

    pub(crate) async fn run(mut self: Box<Pump>) {
        let ending = loop {
            self.settle();
            if let Some(ending) = self.ending.take() {
                break ending;
            }
            let turn = poll_fn(|cx| self.poll_turn(cx)).await;
            let now = self.now();
            match turn {
                Turn::Heard(heard) => self.handle_heard(now, heard),
                Turn::Asked(command) => self.handle_command(now, command),
                Turn::Flushed => self.session.hold(now, self.stalled),
                Turn::TimePassed => self.handle_time(now),
                Turn::Ended(ending) => self.ending = Some(ending),
            }
            if self.pipe.can_shrink() {
                Box::pin(self.pipe.shrink()).await;
            }
        };
        // Boxed: it happens once, and its room would be kept all the time.
        Box::pin(self.leave(ending)).await;
    }

    pub(crate) fn device(&self) -> Arc<BoardDevice> {
        self.device.clone()
    }

    fn now(&self) -> Moment {
        self.hall.now()
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        if let Poll::Ready(end) = Pin::new(&mut self.place.end).poll(cx) {
            let (reason, farewell) = match end {
                Ok(Lost::Replaced) => (LeaveReason::Replaced, Farewell::Replaced),
                Ok(Lost::Revoked) => (LeaveReason::Dismissed("its token was revoked".to_owned()), Farewell::Policy),
                Err(_) => (LeaveReason::Dismissed("the gateway is shutting down".to_owned()), Farewell::Closing),
            };
            return Poll::Ready(Turn::Ended(Ending { reason, farewell: Some(farewell) }));
        }
        let flushed = self.pipe.poll_flush(cx);
        let was_stalled = std::mem::replace(&mut self.stalled, flushed.is_pending());
        match flushed {
            Poll::Ready(Err(broken)) => return Poll::Ready(Turn::Ended(broken.into())),
            Poll::Ready(Ok(())) if self.pipe.can_shrink() || self.unread_since.is_some() => {
                return Poll::Ready(Turn::Flushed);
            }
            _ if self.stalled != was_stalled => return Poll::Ready(Turn::Flushed),
            _ => {}
        }
        if let Poll::Ready(command) = self.device.commands.poll_pop(cx) {
            return Poll::Ready(Turn::Asked(*command));
        }
        if self.unread_since.is_none() {
            match self.pipe.poll_hear(cx) {
                Poll::Ready(Ok(heard)) => return Poll::Ready(Turn::Heard(heard)),
                Poll::Ready(Err(broken)) => return Poll::Ready(Turn::Ended(broken.into())),
                Poll::Pending => {}
            }
        }
        self.sleep.as_mut().poll(cx).map(|()| Turn::TimePassed)
    }

    fn handle_heard(&mut self, now: Moment, heard: Heard) {
        self.last_heard = now;
        self.pings_unanswered = 0;
        match heard {
            Heard::Text(text) => self.session.handle_text(now, text.as_str()),
            Heard::Lossy(text) => self.session.handle_lossy(now, &text),
            Heard::Binary(bytes) => self.session.handle_binary(&bytes),
            Heard::SignOfLife => {}
            Heard::Farewell => {
                self.ending = Some(Ending { reason: LeaveReason::Closed, farewell: Some(Farewell::Normal) })
            }
        }
    }

    fn handle_command(&mut self, now: Moment, command: Command) {
        match command {
            Command::Call { reply, .. } if let Some(why) = self.pipe.obstacle() => {
                let message = format!("{}: {why}; nothing was sent, try again", self.device.info().suggested_id);
                let _ = reply.send(Err(ToolError::new(ErrorKind::DeviceAway, message)));
            }
            Command::Call { number, mut call, reply } => {
                let tools = self.device.tools();
                if self.bare {
                    provider::put_in_order(&mut call.args, tools.find(&call.tool));
                } else if let Some(error) = integers::find_too_wide(&call.args, tools.find(&call.tool)) {
                    let _ = reply.send(Err(error));
                    return;
                }
                let ticket = self.session.call(now, &call.tool, &call.args, call.budget);
                self.open.push(Open { ticket, number, reply });
            }
            Command::Cancel(number) => {
                if let Some(index) = self.open.iter().position(|open| open.number == number) {
                    self.session.cancel(self.open.swap_remove(index).ticket);
                }
            }
            Command::Picture(picture) if self.open.is_empty() => {
                let body = json!({"name": picture.name, "mime_type": picture.mime_type, "bytes": picture.bytes.len()});
                self.say(Notice { topic: PICTURE.to_owned(), body });
            }
            Command::Picture(picture) => {
                if self.pictures.len() == PICTURES {
                    self.pictures.remove(0);
                }
                self.pictures.push(picture);
            }
            Command::Heard(parcel) => self.handle_heard(now, parcel.heard),
            Command::Refresh(turn) => {
                self.pipe.take_turn(turn);
                self.session.relist(now);
            }
            Command::Cut => self.cut(),
            Command::Gone(reason) => self.ending = Some(Ending { reason, farewell: None }),
        }
    }

    /// What was sent may be lost. A board that is not known yet comes again when its pipe is mended.
    fn cut(&mut self) {
        let lost = "the broker cannot be reached any more";
        if !self.joined {
            self.ending = Some(Ending { reason: LeaveReason::Broken(lost.to_owned()), farewell: None });
        }
        // From the last to the first, so that none of those that wait is sent.
        self.open.sort_by_key(|open| open.number);
        while let Some(Open { ticket, reply, .. }) = self.open.pop() {
            self.session.cancel(ticket);
            let (kind, what) = match self.open.is_empty() {
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
            let silence = now.since(self.last_heard).as_secs();
            let reason = match self.pipe.vigil() {
                Vigil::Ping if self.pings_unanswered < MISSES => None,
                Vigil::Ping => Some(format!("nothing was heard for {silence} s, and {MISSES} pings went unanswered")),
                Vigil::Listen(_) => Some(format!(
                    "nothing was heard for {silence} s, half as long again as the keepalive the board chose"
                )),
            };
            match reason {
                Some(reason) => {
                    let reason = LeaveReason::Broken(reason);
                    self.ending = Some(Ending { reason, farewell: Some(Farewell::Silent) });
                }
                None => {
                    self.pings_unanswered += 1;
                    let pinged = self.pipe.ping();
                    self.note(pinged);
                }
            }
        }
        if self.unread_due().is_some_and(|due| now >= due) {
            let Limits { unread_bytes, unread_time, .. } = &self.hall.door.limits;
            let reason = format!(
                "the board left more than {unread_bytes} bytes of answers unread for {} s",
                unread_time.as_secs_f32()
            );
            self.ending = Some(Ending { reason: LeaveReason::Dismissed(reason), farewell: Some(Farewell::Policy) });
        }
        if !self.greeted && now >= self.hello_due() {
            let waited = self.hall.door.limits.hello_time.as_secs();
            let reason = format!("the board said no hello within {waited} s");
            self.ending = Some(Ending { reason: LeaveReason::Dismissed(reason), farewell: Some(Farewell::Policy) });
        }
    }

    /// When the silence has lasted so long that something must be done about it.
    fn silence_due(&self) -> Option<Moment> {
        let silence = match self.pipe.vigil() {
            Vigil::Ping => self.hall.door.limits.ping_after * (self.pings_unanswered + 1),
            Vigil::Listen(patience) => patience?,
        };
        Some(self.last_heard + silence)
    }

    /// When a board that does not read what it asked for is let go.
    fn unread_due(&self) -> Option<Moment> {
        Some(self.unread_since? + self.hall.door.limits.unread_time)
    }

    fn hello_due(&self) -> Moment {
        self.started + self.hall.door.limits.hello_time
    }

    fn note(&mut self, result: Result<(), Broken>) {
        if let Err(broken) = result {
            self.ending.get_or_insert(broken.into());
        }
    }

    /// Takes everything out of the session, and arms the timer for what comes next.
    fn settle(&mut self) {
        self.session_due = loop {
            match self.session.poll() {
                Output::Send(text) => {
                    let sent = self.pipe.send(text);
                    self.note(sent);
                }
                Output::Reply(text) => {
                    let sent = self.pipe.reply(text);
                    self.note(sent);
                }
                Output::Event(event) => self.handle_event(event),
                Output::Wait(due) => break due,
            }
        };
        if !self.session.is_asking() {
            self.pipe.settle();
        }
        self.unread_since = match self.pipe.owed() > self.hall.door.limits.unread_bytes {
            true => self.unread_since.or_else(|| Some(self.now())),
            false => None,
        };
        let hello_due = (!self.greeted).then(|| self.hello_due());
        let due = [self.silence_due(), self.session_due, hello_due, self.unread_due()].into_iter().flatten().min();
        // Nothing to wait for: an MQTT board that chose no keepalive. Looking again after a day costs nothing.
        let due = due.unwrap_or_else(|| self.now() + Duration::from_secs(86_400));
        if self.sleep.is_elapsed() || due < self.armed {
            self.armed = due;
            self.sleep.as_mut().reset(self.hall.start + Duration::from_micros(due.0));
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Hello(_) => self.greeted = true,
            Event::Ready(ready) => {
                let mut info = DeviceInfo::clone(&self.device.info());
                (info.name, info.version, info.status) = (ready.name, ready.version, status(&ready.tools));
                if provider::is_nameless(&info)
                    && let Err(ending) = self.move_in(&mut info)
                {
                    self.ending.get_or_insert(ending);
                    return;
                }
                if ready.tools.find(SNAPSHOT).is_some() {
                    let url = self.hall.upload_url(&self.place);
                    info.attributes.extend(url.map(|url| ("upload_url".to_owned(), json!(url))));
                }
                info.attributes.extend(trouble(&ready.warnings).map(|trouble| (TROUBLE.to_owned(), trouble)));
                self.show(Some(info), Some(ready.tools));
                ready.warnings.into_iter().for_each(|warning| self.warn(warning));
            }
            Event::NoMcp => {
                let mut info = DeviceInfo::clone(&self.device.info());
                info.status = Status::Limited {
                    state: "no MCP".to_owned(),
                    remedy: "the board does not offer MCP, or does not answer it; update its firmware to one whose hello has features.mcp"
                        .to_owned(),
                };
                self.show(Some(info), None);
            }
            Event::ToolsChanged { tools, warnings } => {
                let mut info = DeviceInfo::clone(&self.device.info());
                info.status = status(&tools);
                info.attributes.remove(TROUBLE);
                info.attributes.extend(trouble(&warnings).map(|trouble| (TROUBLE.to_owned(), trouble)));
                self.show(Some(info), Some(tools));
                warnings.into_iter().for_each(|warning| self.warn(warning));
            }
            Event::Answered(ticket, result) => {
                let pictures = std::mem::take(&mut self.pictures).into_iter();
                let result = result.map(|outcome| {
                    pictures.fold(outcome, |outcome, picture| {
                        outcome.with(Content::image(&picture.bytes, picture.mime_type, None))
                    })
                });
                if let Some(index) = self.open.iter().position(|open| open.ticket == ticket) {
                    // An error means that the caller has just given up; its cancellation is on the way.
                    let _ = self.open.swap_remove(index).reply.send(result);
                }
            }
            Event::Notified(notice) => self.say(notice),
            Event::Warned(warning) => self.warn(warning),
            Event::TalkEnded => {
                let reason = LeaveReason::Closed;
                self.ending.get_or_insert(Ending { reason, farewell: Some(Farewell::Normal) });
            }
            Event::Closed(reason) => {
                let reason = LeaveReason::Dismissed(reason);
                self.ending.get_or_insert(Ending { reason, farewell: Some(Farewell::Normal) });
            }
        }
    }

    /// A provider known by its name alone takes the place of that name, from an older one if need be.
    fn move_in(&mut self, info: &mut DeviceInfo) -> Result<(), Ending> {
        let name = info.name.clone();
        let place = self.hall.enter(&provider::christen(info, &name), &info.admission).map_err(|turned| {
            let reason = LeaveReason::Dismissed(turned.reason(&self.hall.door.limits));
            Ending { reason, farewell: Some(Farewell::Policy) }
        })?;
        place.show(&self.device);
        self.place = place;
        Ok(())
    }

    /// The gateway sees the board for the first time, or sees it differently.
    fn show(&mut self, info: Option<DeviceInfo>, tools: Option<Toolset>) {
        if let Some(info) = info {
            self.device.set_info(info);
        }
        if let Some(tools) = tools {
            self.device.set_tools(self.hall.roster.shelve(tools));
        }
        self.greeted = true;
        let device: Arc<dyn Device> = self.device.clone();
        if self.joined {
            return self.announce(DeviceEvent::Changed(device));
        }
        self.joined = true;
        self.announce(DeviceEvent::Joined(device));
        for notice in std::mem::take(&mut self.early) {
            self.announce(DeviceEvent::Said(self.device.clone(), notice));
        }
    }

    fn warn(&mut self, warning: String) {
        // What a board says wrongly may be long; the log of every day keeps to a line.
        let board = self.device.info().key.clone();
        let line: String = warning.chars().take(SHOWN).map(|each| if each.is_control() { ' ' } else { each }).collect();
        if line.len() < warning.len() {
            tracing::warn!(%board, "{line}…");
            tracing::debug!(%board, "in full: {warning}");
        } else {
            tracing::warn!(%board, "{line}");
        }
        self.say(Notice { topic: WARNING.to_owned(), body: json!({"message": warning}) });
    }

    /// Passes a notice on, or counts and drops it where the board says too much; the first one
    /// dropped of a flood is reported.
    fn say(&mut self, notice: Notice) {
        if !self.joined {
            if self.early.len() < EARLY_NOTICES {
                self.early.push(notice);
            } else {
                self.untold += 1;
            }
            return;
        }
        let now = self.now();
        if self.notices.take(now) {
            if self.notices.is_full() {
                self.notices_dropped = 0;
            }
            self.tell_dropped();
            return self.announce(DeviceEvent::Said(self.device.clone(), notice));
        }
        self.notices_dropped += 1;
        self.untold += 1;
        if self.notices_dropped == 1 {
            let limits = &self.hall.door.limits;
            let message = format!(
                "the board floods: more than {} notices at once or {} a second; the rest is dropped",
                limits.notice_burst, limits.notices_per_second
            );
            tracing::warn!(board = %self.device.info().key, "{message}");
            let warning = Notice { topic: WARNING.to_owned(), body: json!({"message": message}) };
            self.announce(DeviceEvent::Said(self.device.clone(), warning));
        }
    }

    /// Told in one go, with the next notice that passes or at the end: a flood is not to be passed on as one
    /// of another kind.
    fn tell_dropped(&mut self) {
        let untold = std::mem::take(&mut self.untold);
        if untold > 0 {
            self.announce(DeviceEvent::Dropped(self.device.clone(), untold));
        }
    }

    fn announce(&self, event: DeviceEvent) {
        (self.hall.door.announce)(event);
    }

    /// Answers every caller, then tells the gateway, then the board.
    async fn leave(&mut self, ending: Ending) {
        // Calls not yet taken are dropped, which tells their callers that nothing was sent.
        self.device.commands.close();
        let reason = ending.reason.to_string();
        let now = self.now();
        self.session.close(now);
        loop {
            match self.session.poll() {
                Output::Event(Event::Answered(ticket, result)) => {
                    if let Some(index) = self.open.iter().position(|open| open.ticket == ticket) {
                        let open = self.open.swap_remove(index);
                        let result = result.map_err(|error| lost(error, &self.device.info(), &reason));
                        let _ = open.reply.send(result);
                    }
                }
                Output::Send(_) | Output::Reply(_) | Output::Event(_) => {}
                Output::Wait(_) => break,
            }
        }
        tracing::debug!(board = %self.device.info().key, %reason, stats = ?self.session.stats(), "a board left");
        let dismissed = match &ending.reason {
            LeaveReason::Dismissed(why) if ending.farewell != Some(Farewell::Closing) => Some(why),
            _ => None,
        };
        if let Some(why) = dismissed {
            tracing::warn!(board = %self.place.key, "a board was dismissed: {why}");
        }
        if std::mem::take(&mut self.joined) {
            self.tell_dropped();
            if let Some(why) = dismissed {
                self.device.note(TROUBLE, json!(why));
                self.announce(DeviceEvent::Changed(self.device.clone()));
            }
            self.announce(DeviceEvent::Left(self.device.clone(), ending.reason));
        }
        self.place.leave(now, &self.hall.door.limits);
        if let Some(farewell) = ending.farewell {
            Box::pin(self.pipe.close(farewell, &reason)).await;
        }
    }
}

impl Drop for Pump {
    /// Only a fault of our own leaves a joined board behind; the gateway must hear of it all the same.
    fn drop(&mut self) {
        self.device.commands.close();
        if self.joined {
            let reason = LeaveReason::Broken("the gateway's own task for this board failed".to_owned());
            self.announce(DeviceEvent::Left(self.device.clone(), reason));
        }
    }
}

/// Milliseconds of Unix time, as far as they fit: no request id comes again soon, also after a restart of the gateway.
fn first_id() -> i32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i32::try_from(now.as_millis() % i32::MAX.unsigned_abs() as u128).unwrap_or(1)
}

/// A device without tools is no use, and most likely something is wrong with it.
fn status(tools: &Toolset) -> Status {
    if !tools.is_empty() {
        return Status::Ready;
    }
    Status::Limited {
        state: "no tools".to_owned(),
        remedy: "the device is connected but lists no tools; restart it, and look at its log".to_owned(),
    }
}

/// What was wrong with a tool list, in short, for whoever looks at the board.
fn trouble(warnings: &[String]) -> Option<Value> {
    let first = warnings.first()?;
    Some(match warnings.len() {
        1 => json!(first),
        count => json!(format!("{first}; and {} more about its tools, see its events", count - 1)),
    })
}

/// The session knows what became of the call; whose it was and why the board went is known here.
fn lost(error: ToolError, info: &DeviceInfo, reason: &str) -> ToolError {
    let message = format!("{} ({reason}): {}", info.suggested_id, error.message);
    ToolError { message, ..error }
}

impl From<Broken> for Ending {
    fn from(broken: Broken) -> Ending {
        match broken {
            Broken::Network(what) => Ending { reason: LeaveReason::Broken(what), farewell: None },
            Broken::Rule(farewell, what) => Ending { reason: LeaveReason::Dismissed(what), farewell: Some(farewell) },
        }
    }
}
