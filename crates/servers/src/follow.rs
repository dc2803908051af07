//! The task of one server: connects, looks at its tools again and again, and reports when it is gone.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use sinew_fetch::HttpClient;
use sinew_tool::text::clean_line;
use sinew_tool::{Admit, Announce, Device, DeviceEvent, LeaveReason, Notice, StandIn};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::device::{self, ServerDevice};
use crate::http_link::HttpLink;
use crate::link::{Exchange, Link, LinkError, LinkErrorKind};
use crate::message::ServerMessage;
use crate::process_link::ProcessLink;
use crate::session::{Greeting, Session};
use crate::settings::{ServerPlace, ServerPlan};

/// A server that is not there is tried again after this, then after twice as long, and so on.
const FIRST_PAUSE_TIME: Duration = Duration::from_secs(1);
/// A board that was switched on is there within this time.
const LAST_PAUSE_TIME: Duration = Duration::from_secs(60);
/// A server that stays connected for so long is well; one that goes earlier is tried again more and more seldom.
const WELL_TIME: Duration = Duration::from_secs(60);
/// After a failed look the next one comes soon: it decides whether the server is gone.
const SECOND_LOOK_TIME: Duration = Duration::from_secs(2);
/// Looks that callers and the server ask for are at least so far apart.
const MIN_LOOK_TIME: Duration = Duration::from_millis(200);
/// How long a server may take to open its stream, and to take the answer to a question of its own: the looks at its tools
/// wait meanwhile.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Events of a server between two looks; the rest is counted and dropped.
const MAX_EVENTS: u64 = 200;
/// The body of an event is kept.
const MAX_EVENT_BYTES: usize = 16 << 10;

pub(crate) struct ServerTask {
    pub(crate) plan: ServerPlan,
    pub(crate) known: Arc<dyn Admit>,
    pub(crate) announce: Announce,
    pub(crate) end: CancellationToken,
}

impl ServerTask {
    pub(crate) async fn run(self) {
        let server = &self.plan.suggested_id;
        let mut pauses = Pauses::default();
        let mut stand_in = StandIn::new(device::info(&self.plan), self.known.clone(), self.announce.clone());
        let mut last_trouble = String::new();
        // What happens seldom is in boxes: a task has space for everything that it may do, and there are thousands.
        while let Some(opened) = self.end.run_until_cancelled(Box::pin(self.open())).await {
            let why = match opened {
                Ok((session, device, greeting)) => {
                    stand_in.end();
                    tracing::info!(%server, tools = device.tools().len(), revision = %greeting.revision, "server connected");
                    last_trouble = String::new();
                    let connected = Instant::now();
                    self.say(DeviceEvent::Joined(device.clone()));
                    let kept = self.end.run_until_cancelled(self.keep(&session, &device, &greeting)).await;
                    let reason = kept.unwrap_or(LeaveReason::Closed);
                    self.say(DeviceEvent::Left(device, reason.clone()));
                    Box::pin(session.link.close()).await;
                    pauses.note_served(connected.elapsed());
                    reason.to_string()
                }
                Err(error) => {
                    let why = clean_line(&error.message, 500);
                    stand_in.show(&why);
                    why
                }
            };
            if self.end.is_cancelled() {
                break;
            }
            if why != last_trouble {
                tracing::warn!(%server, "server not reached: {why}; trying again");
                last_trouble = why;
            }
            self.end.run_until_cancelled(sleep(pauses.take())).await;
        }
    }

    async fn open(&self) -> Result<(Arc<Session>, Arc<ServerDevice>, Greeting), LinkError> {
        let link = match &self.plan.place {
            ServerPlace::Command(command) => Link::Process(ProcessLink::start(command)?),
            ServerPlace::Http { url, headers, allowed } => {
                let client = HttpClient::new(url.clone(), headers.clone(), *allowed);
                Link::Http(Box::new(HttpLink::new(client.map_err(|why| LinkError::new(LinkErrorKind::Denied, why))?)))
            }
        };
        let (session, greeting) = Session::open(link).await?;
        let (tools, warnings) = session.list().await?;
        self.warn(&warnings);
        let session = Arc::new(session);
        let device = ServerDevice::new(&self.plan, session.clone(), &greeting, tools);
        Ok((session, Arc::new(device), greeting))
    }

    /// Looks at the tools until the server is gone.
    async fn keep(&self, session: &Arc<Session>, device: &Arc<ServerDevice>, greeting: &Greeting) -> LeaveReason {
        let mut may_listen = greeting.reports_changes || !session.link.is_http();
        let mut stream = Box::pin(self.listen(session, &mut may_listen)).await;
        let (mut failures, mut events) = (0, 0);
        // Servers that connected together are not looked at together.
        let mut next_look = Instant::now() + self.plan.poll.mul_f64(0.5 + self.share() / 2.0);
        loop {
            tokio::select! {
                () = sleep_until(next_look) => {}
                () = device.look.notified() => {
                    next_look = next_look.min(Instant::now() + MIN_LOOK_TIME);
                    continue;
                }
                heard = next_message(&mut stream) => {
                    match heard {
                        Some(message) => {
                            if Box::pin(self.hear(session, device, message, &mut events)).await {
                                next_look = next_look.min(Instant::now() + MIN_LOOK_TIME);
                            }
                        }
                        None if !session.link.is_http() => {
                            return LeaveReason::Broken("the program of this server has ended".to_owned());
                        }
                        // Opened again after the next look.
                        None => stream = None,
                    }
                    continue;
                }
            }
            match Box::pin(self.look(session, device)).await {
                Ok(()) => {
                    failures = 0;
                    next_look = Instant::now() + self.plan.poll;
                    if stream.is_none() {
                        stream = Box::pin(self.listen(session, &mut may_listen)).await;
                    }
                }
                Err(error) if failures > 0 || !session.link.is_http() => return LeaveReason::Broken(error.message),
                Err(_) => {
                    failures += 1;
                    // A board with one socket cannot be heard and asked at once.
                    (stream, may_listen) = (None, false);
                    next_look = Instant::now() + SECOND_LOOK_TIME;
                }
            }
            if events > MAX_EVENTS {
                self.say(DeviceEvent::Dropped(device.clone(), events - MAX_EVENTS));
            }
            events = 0;
        }
    }

    async fn listen(&self, session: &Arc<Session>, may_listen: &mut bool) -> Option<Exchange> {
        if !*may_listen {
            return None;
        }
        let stream = timeout(ANSWER_TIME, Box::pin(session.listen())).await.ok().and_then(Result::ok).flatten();
        // Refused with 405, as most boards do; or never answered.
        *may_listen = stream.is_some();
        stream
    }

    async fn look(&self, session: &Arc<Session>, device: &Arc<ServerDevice>) -> Result<(), LinkError> {
        let Ok(_turn) = device.turns.acquire().await else { return Ok(()) };
        let (tools, warnings) = session.list().await?;
        if tools.digest() != device.tools().digest() {
            self.warn(&warnings);
            device.set_tools(tools);
            self.say(DeviceEvent::Changed(device.clone()));
        }
        session.link.rest();
        Ok(())
    }

    /// Takes a message that nobody asked for; true if the tools have changed.
    async fn hear(
        &self,
        session: &Session,
        device: &Arc<ServerDevice>,
        message: ServerMessage,
        events: &mut u64,
    ) -> bool {
        match message {
            ServerMessage::Notification { method, .. } if method == "notifications/tools/list_changed" => return true,
            ServerMessage::Notification { method, .. } if method == "notifications/subscriptions/acknowledged" => {}
            ServerMessage::Notification { method, params } => {
                *events += 1;
                if *events <= MAX_EVENTS && method.len() + params.to_string().len() <= MAX_EVENT_BYTES {
                    self.say(DeviceEvent::Said(device.clone(), Notice { topic: method, body: params }));
                }
            }
            ServerMessage::Request { id, method, .. } => {
                // If it cannot be told, the next look finds out.
                let _ = timeout(ANSWER_TIME, session.reply_alone(&id, &method)).await;
            }
            ServerMessage::Answer { .. } => {}
        }
        false
    }

    fn warn(&self, warnings: &[String]) {
        for warning in warnings {
            tracing::warn!(server = %self.plan.suggested_id, "{}", clean_line(warning, 300));
        }
    }

    fn say(&self, event: DeviceEvent) {
        (self.announce)(event);
    }

    /// A number from 0 to 1 that differs from server to server.
    fn share(&self) -> f64 {
        let mut hasher = DefaultHasher::new();
        self.plan.key.hash(&mut hasher);
        (hasher.finish() % 1000) as f64 / 1000.0
    }
}

/// How long to wait before each attempt.
struct Pauses {
    next: Duration,
}

impl Default for Pauses {
    fn default() -> Pauses {
        Pauses { next: FIRST_PAUSE_TIME }
    }
}

impl Pauses {
    /// The server was there for `time`.
    fn note_served(&mut self, time: Duration) {
        if time >= WELL_TIME {
            *self = Pauses::default();
        }
    }

    fn take(&mut self) -> Duration {
        let next = (self.next * 2).min(LAST_PAUSE_TIME);
        std::mem::replace(&mut self.next, next)
    }
}

/// The next message of a stream that may not exist; `None` when it has ended.
async fn next_message(stream: &mut Option<Exchange>) -> Option<ServerMessage> {
    match stream {
        None => std::future::pending().await,
        Some(exchange) => Box::pin(exchange.next()).await.ok().flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_goes_soon_after_it_came_is_tried_again_more_and_more_seldom() {
        let mut pauses = Pauses::default();
        let after = |pauses: &mut Pauses, served: u64| {
            pauses.note_served(Duration::from_secs(served));
            pauses.take().as_secs()
        };
        assert_eq!([0, 1, 0, 59, 0, 0, 0, 0].map(|served| after(&mut pauses, served)), [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!([60, 0].map(|served| after(&mut pauses, served)), [1, 2]);
    }
}
