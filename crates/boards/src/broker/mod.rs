//! Boards behind an MQTT broker: boards that subscribe, unlike the firmware of `crate::mqtt`.
//!
//! All of them share one connection ([`run`]). A board announces its presence with a retained message, and its will
//! tells when it is gone; messages of both sides have topics of the board's own. Who may publish under which topic is
//! decided by the broker's credentials and access rules, and by nothing here.
//!
//! - `address`, `client`: a client of brokers
//! - `topics`: where boards are found
//! - `presence`: which boards are present, and which is asked next
//! - `outbox`: a board's share of the connection
//! - `mcp_client`, `mcp_server`, `mcp_topics`: MCP servers on a broker as devices, and the gateway as one of them

mod address;
mod client;
mod mcp_client;
mod mcp_server;
mod mcp_topics;
mod outbox;
mod presence;
mod topics;

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use sinew_mqtt::client::{BrokerPacket, Introduction, MqttMessage, Subscription};
use sinew_tool::{Admission, Device, DeviceEvent, DeviceInfo, LeaveReason, Presences, Reach, Status, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, interval_at, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::address::{Address, Credentials};
pub use self::client::{Connection, Disconnected, ReconnectDelay, client_id};
pub use self::mcp_client::{GATEWAY, follow_servers};
pub use self::mcp_server::{OfferedServer, offer};
pub use self::topics::{Template, Topics};

use self::outbox::BrokerOutbox;
pub(crate) use self::outbox::BrokerPipe;
use self::presence::{NextBoard, PresenceList};
use crate::device::{BoardCommand, BoardDevice, QueuedMessage};
use crate::hub::{AdmittedBoard, BoardHub, Boards};
use crate::pipe::{Pipe, read_text};
use crate::pump::{FirstAnswer, Pump, Served};
use crate::roster::RegistrationError;
use crate::token_bucket::TokenBucket;
use crate::{board_family, identity};

/// Seconds. After half as long again without a word the broker counts as gone; and so long a board may take to return
/// after the broker did.
const KEEP_ALIVE: u16 = 30;
/// Of the slots for setups, one in so many is added for boards that did not answer before.
const SILENT_SHARE: usize = 8;
/// Silent boards that are announced as devices without MCP.
const SHOWN_SILENT: usize = 64;
/// A board that was silent twice is asked again after so long.
const SILENT_RETRY: Duration = Duration::from_secs(60);
/// How often the number of waiting boards is logged, if it changes.
const REPORT_AFTER: Duration = Duration::from_secs(10);
/// Texts of one board that may wait for its task.
const WAITING_TEXTS: usize = 64;
/// Bytes of all boards that may wait for their tasks; beyond it nothing is read.
const WAITING_BYTES: usize = 16 << 20;
/// What is handed to the network before the next is taken from the outbox.
const BACKLOG: usize = 256 << 10;
/// A board that was refused is asked again after so long.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Warnings about unusable messages, per second and at once.
const WARNINGS: (u32, u32) = (1, 10);

/// Boards behind a broker.
#[derive(Clone, Debug)]
pub struct Broker {
    pub address: Address,
    pub topics: Topics,
}

/// Serves the boards of a broker until `shutdown`; returns when the last of them has left. A broker that is not there
/// is dialled again and again.
pub async fn run(broker: Broker, boards: Boards, shutdown: CancellationToken) -> io::Result<()> {
    let hub = boards.hub;
    let now = hub.now();
    let (unanswered, unanswered_ids) = mpsc::unbounded_channel();
    let mut served = BrokerBoards {
        outbox: BrokerOutbox::new(),
        presence: PresenceList::default(),
        setup_slots: Arc::new(Semaphore::new(hub.config.limits.broker_setups)),
        silent_slots: Arc::new(Semaphore::new(hub.config.limits.broker_setups.div_ceil(SILENT_SHARE))),
        shown_silent: HashSet::new(),
        unanswered: (unanswered, unanswered_ids),
        reported: Presences::default(),
        memory: Arc::new(Semaphore::new(WAITING_BYTES)),
        warnings: TokenBucket::new(WARNINGS.0, WARNINGS.1, now),
        retries: VecDeque::new(),
        text_bytes: hub.config.limits.message_bytes,
        tracker: TaskTracker::new(),
        hub,
        broker,
    };
    let mut pause = ReconnectDelay::new();
    while !shutdown.is_cancelled() {
        let serve_connection = Box::pin(served.serve_connection(&mut pause, &shutdown));
        let Some(Err(Disconnected(why))) = shutdown.run_until_cancelled(serve_connection).await else { break };
        served.handle_disconnect();
        let rest = pause.take();
        tracing::warn!(broker = %served.broker.address, "{why}; trying again in {rest:.1?}");
        shutdown.run_until_cancelled(sleep(rest)).await;
    }
    served.hub.roster.close();
    served.tracker.close();
    served.tracker.wait().await;
    Ok(())
}

/// Tries a broker: whether it accepts our connection and subscriptions. Its access rules may still withhold messages:
/// brokers may accept a subscription and deliver nothing.
pub async fn check(broker: &Broker) -> Result<(), String> {
    let mut connection = broker.connect(1024).await.map_err(|Disconnected(why)| why)?;
    connection.subscribed(&broker.subscriptions(), drop).await.map_err(|Disconnected(why)| why)?;
    connection.close().await;
    Ok(())
}

impl Broker {
    async fn connect(&self, packet_bytes: usize) -> Result<Connection, Disconnected> {
        let introduction = Introduction {
            client_id: &client::client_id(),
            login: self.address.login(),
            keep_alive: KEEP_ALIVE,
            packet_bytes,
            will: None,
            properties: &[],
        };
        Connection::open(&self.address, introduction).await
    }

    fn subscriptions(&self) -> [Subscription; 2] {
        [&self.topics.presence, &self.topics.up]
            .map(|topic| Subscription { filter: topic.filter(), ..Subscription::default() })
    }
}

/// The info of a board behind a broker, before it has reported its name.
fn info(id: &str, broker: &str) -> DeviceInfo {
    let attributes = [("hardware_id", id), ("transport", "broker"), ("broker", broker)];
    DeviceInfo {
        key: identity::key(id),
        suggested_id: identity::suggest_id(id),
        family: board_family(Reach::SeveralGateways),
        admission: Admission::Broker(broker.into()),
        name: String::new(),
        version: String::new(),
        status: Status::Ready,
        instructions: None,
        labels: Vec::new(),
        attributes: attributes.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect(),
    }
}

struct BrokerBoards {
    hub: Arc<BoardHub>,
    broker: Broker,
    outbox: Arc<BrokerOutbox>,
    presence: PresenceList,
    setup_slots: Arc<Semaphore>,
    silent_slots: Arc<Semaphore>,
    /// Silent boards that are announced all the same.
    shown_silent: HashSet<Box<str>>,
    /// Boards that did not answer, from their tasks.
    unanswered: (mpsc::UnboundedSender<Box<str>>, mpsc::UnboundedReceiver<Box<str>>),
    /// How many boards waited when that was last logged.
    reported: Presences,
    memory: Arc<Semaphore>,
    warnings: TokenBucket,
    /// Boards that were refused, and when they are asked again.
    retries: VecDeque<(Instant, Box<str>)>,
    /// The longest text that the broker takes.
    text_bytes: usize,
    tracker: TaskTracker,
}

impl BrokerBoards {
    /// Serves on one connection, until it is over.
    async fn serve_connection(
        &mut self,
        pause: &mut ReconnectDelay,
        shutdown: &CancellationToken,
    ) -> Result<(), Disconnected> {
        let limit = self.hub.config.limits.message_bytes;
        let mut connection = self.broker.connect(limit).await?;
        self.text_bytes = limit.min(connection.packet_bytes.saturating_sub(1024));
        self.presence.begin_round();
        let mut early = Vec::new();
        connection.subscribed(&self.broker.subscriptions(), |message| early.push(message)).await?;
        pause.note_connected();
        tracing::info!(broker = %self.broker.address, "connected to the broker");
        self.outbox.set_open(true);
        for message in early {
            self.handle_message(message).await;
        }
        let mut report = interval_at(Instant::now() + REPORT_AFTER, REPORT_AFTER);
        let mut round_ends = Some(Instant::now() + Duration::from_secs(KEEP_ALIVE.into()));
        loop {
            let again = self.retries.front().map(|(due, _)| *due);
            tokio::select! {
                packet = connection.next() => {
                    if let BrokerPacket::Publish(message) = packet? {
                        self.handle_message(message).await;
                    }
                }
                message = self.outbox.next(), if connection.backlog() < BACKLOG => {
                    connection.publish(&message);
                    while connection.backlog() < BACKLOG
                        && let Some(message) = self.outbox.try_next()
                    {
                        connection.publish(&message);
                    }
                }
                Ok(permit) = self.setup_slots.clone().acquire_owned(), if self.presence.has_waiting() => {
                    self.admit_next(permit);
                }
                Ok(permit) = self.silent_slots.clone().acquire_owned(), if self.presence.has_silent() => {
                    self.admit_silent(permit);
                }
                Some(id) = self.unanswered.1.recv() => self.handle_unanswered(id),
                _ = report.tick() => self.report_waiting(),
                () = sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => {
                    if let Some((_, id)) = self.retries.pop_front() {
                        self.presence.wait_again(id);
                    }
                }
                () = sleep_until(round_ends.unwrap_or_else(Instant::now)), if round_ends.is_some() => {
                    round_ends = None;
                    let why = "its presence was not received since the broker is back";
                    for device in self.presence.end_round() {
                        device.commands.push(Box::new(BoardCommand::Gone(LeaveReason::Broken(why.to_owned()))));
                    }
                }
                () = shutdown.cancelled() => {
                    connection.close().await;
                    return Ok(());
                }
            }
        }
    }

    /// The connection is gone. Boards stay; calls under way are lost, and boards that were being asked start over.
    fn handle_disconnect(&mut self) {
        self.outbox.set_open(false);
        for device in self.presence.devices() {
            device.commands.push(Box::new(BoardCommand::ConnectionLost));
        }
    }

    async fn handle_message(&mut self, message: MqttMessage) {
        let Topics { presence, up, .. } = &self.broker.topics;
        if let Some(level) = presence.level(&message.topic) {
            let level = level.to_owned();
            return self.handle_presence(&level, &message.payload, !message.retain);
        }
        // Messages from a board that has not announced its presence are ignored: nobody would report that it is gone.
        let Some(device) = up.level(&message.topic).and_then(|level| self.presence.find(level)).cloned() else {
            return;
        };
        let size = u32::try_from(message.payload.len()).unwrap_or(u32::MAX);
        let Ok(memory) = self.memory.clone().acquire_many_owned(size).await else { return };
        let queued = QueuedMessage { received: read_text(message.payload), _memory: memory };
        let is_queued = device.commands.push_within(Box::new(BoardCommand::Received(queued)), WAITING_TEXTS);
        if !is_queued && !device.commands.is_closed() {
            self.report_trouble(&device, "it sends more than can be read; some messages were dropped");
        }
    }

    fn handle_presence(&mut self, level: &str, payload: &[u8], is_new: bool) {
        if !topics::is_id(level) {
            return self.warn("a board's id must be 1 to 64 visible ASCII characters", level);
        }
        match topics::read_presence(payload) {
            Some(true) => {
                let is_known = self.hub.config.admit.is_known(&identity::key(level));
                self.presence.mark_present(level, is_new, is_known);
            }
            Some(false) => {
                self.shown_silent.remove(level);
                if let Some(device) = self.presence.mark_absent(level) {
                    device.commands.push(Box::new(BoardCommand::Gone(LeaveReason::Closed)));
                }
            }
            None => self.warn("a presence message must be {\"online\":true}, {\"online\":false} or empty", level),
        }
    }

    /// The next board is asked.
    fn admit_next(&mut self, permit: OwnedSemaphorePermit) {
        match self.presence.next_waiting() {
            None => {}
            Some(NextBoard::Join(id)) => {
                self.admit(id, permit, FirstAnswer::Within(self.hub.config.limits.broker_first_answer));
            }
            Some(NextBoard::Refresh(device)) => {
                device.commands.push(Box::new(BoardCommand::Refresh(permit)));
            }
        }
    }

    /// The next silent board is asked, with more time. A few that stay silent are announced, for whoever sets up a
    /// board; the others are only counted.
    fn admit_silent(&mut self, permit: OwnedSemaphorePermit) {
        let Some(id) = self.presence.next_silent() else { return };
        let is_shown = self.shown_silent.len() < SHOWN_SILENT;
        if is_shown {
            self.shown_silent.insert(id.clone());
        }
        self.admit(id, permit, if is_shown { FirstAnswer::Usual } else { FirstAnswer::Required });
    }

    fn handle_unanswered(&mut self, id: Box<str>) {
        let was_asked_before = self.presence.is_silent(&id);
        self.presence.mark_silent(&id);
        if was_asked_before && self.presence.postpone_silent(&id) {
            self.retries.push_back((Instant::now() + SILENT_RETRY, id));
        }
    }

    /// Reports how many boards wait, if that has changed.
    fn report_waiting(&mut self) {
        let presences = self.presence.count_waiting();
        if presences != self.reported {
            self.reported = presences;
            let Presences { waiting, silent } = presences;
            tracing::info!(broker = %self.broker.address, waiting, silent, "boards that are not asked yet, and boards that do not answer");
            self.hub.config.admit.report_presences(&self.broker.address.to_string(), presences);
        }
    }

    /// Registers a board and starts its task.
    fn admit(&mut self, id: Box<str>, permit: OwnedSemaphorePermit, first_answer: FirstAnswer) {
        if let Some((_, device)) = self.hub.roster.find(&identity::key(&id).0)
            && !matches!(device.info().admission, Admission::Broker(_))
        {
            self.warn("a board with its own token is connected under this id and stays", &id);
            return self.retry_later(id);
        }
        let info = info(&id, &self.broker.address.to_string());
        let registration = match self.hub.register(&info.key, &info.admission) {
            Ok(registration) => registration,
            Err(RegistrationError::Closing | RegistrationError::Revoked) => return,
            Err(RegistrationError::TooOften) => return self.retry_later(id),
            Err(RegistrationError::Full) => {
                self.warn("the limit of connected boards is reached", &id);
                return self.retry_later(id);
            }
        };
        let lane = BrokerPipe::new(self.outbox.clone(), self.broker.topics.down.of(&id), permit, self.text_bytes);
        let admitted = AdmittedBoard { pipe: Pipe::Broker(lane), info, registration };
        let pump = Pump::new(admitted, self.hub.clone()).with_first_answer(first_answer);
        self.presence.set_device(&id, pump.device());
        let unanswered = self.unanswered.0.clone();
        self.tracker.spawn(async move {
            if pump.run().await == Served::NeverAnswered {
                let _ = unanswered.send(id);
            }
        });
    }

    fn retry_later(&mut self, id: Box<str>) {
        self.retries.push_back((Instant::now() + RETRY_AFTER, id));
    }

    /// Shows at a device what is wrong with it.
    fn report_trouble(&mut self, device: &Arc<BoardDevice>, what: &str) {
        self.warn(what, &device.key().0);
        if device.set_attribute_if_new("trouble", what) {
            (self.hub.config.announce)(DeviceEvent::Changed(device.clone()));
        }
    }

    fn warn(&mut self, what: &str, whom: &str) {
        if self.warnings.take(self.hub.now()) {
            let whom: String = whom.chars().take(80).collect();
            tracing::warn!(broker = %self.broker.address, board = ?whom, "{what}");
        }
    }
}
