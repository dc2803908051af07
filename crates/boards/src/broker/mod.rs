//! Boards that are reached through a broker of MQTT: boards that subscribe, unlike the firmware of `crate::mqtt`.
//!
//! All of them share one connection ([`run`]). A board tells that it is there with a retained message, and has its
//! broker tell that it is gone with a will; what both say travels under topics of the board's own. Who may speak under
//! which topic is decided by the broker's credentials and access rules, and by nothing here.
//!
//! - `address`, `client`, `codec`: a client of brokers
//! - `topics`: where boards are found
//! - `attendance`: who is there, and whose turn it is
//! - `lane`: a board's share of the connection
//! - `servers`, `offer`, `words`: MCP servers on a broker as devices, and the gateway as one of them

mod address;
mod attendance;
mod client;
mod codec;
mod lane;
mod offer;
mod servers;
mod topics;
mod words;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use sinew_tool::{Admission, Device, DeviceEvent, DeviceInfo, LeaveReason, Reach, Status, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::address::{Address, Credentials};
pub use self::offer::{Offering, offer};
pub use self::servers::{GATEWAY, follow_servers};
pub use self::topics::{Template, Topics};

use self::attendance::{Attendance, Turn};
use self::client::{Connection, Over, Pause};
use self::codec::{Introduction, Message, Packet, Wish};
pub(crate) use self::lane::Lane;
use self::lane::Post;
use crate::flood::Bucket;
use crate::hall::{Boards, Hall, Met};
use crate::handle::{BoardDevice, Command, Parcel};
use crate::pipe::{Pipe, read_text};
use crate::pump::Pump;
use crate::roster::Turned;
use crate::{board_family, greeting};

/// Seconds. After half as long again without a word the broker counts as gone; and so long a board may take to return
/// after the broker did.
const KEEP_ALIVE: u16 = 30;
/// Boards that are asked for their tools at once. Each has a message or two under way then, and brokers queue no more
/// than some hundred for a client.
const WINDOW: usize = 64;
/// Texts of one board that may wait for its task.
const WAITING_TEXTS: usize = 64;
/// Bytes of all boards that may wait for their tasks; beyond it nothing is read.
const WAITING_BYTES: usize = 16 << 20;
/// What is handed to the network before the next is taken from the post.
const BACKLOG: usize = 256 << 10;
/// A board that was turned away is asked again after so long.
const LATER: Duration = Duration::from_secs(5);
/// Complaints about boards that are no boards, per second and at once.
const COMPLAINTS: (u32, u32) = (1, 10);

/// Boards behind a broker.
#[derive(Clone, Debug)]
pub struct Broker {
    pub address: Address,
    pub topics: Topics,
}

/// Serves the boards of a broker until `shutdown`; returns when the last of them has left. A broker that is not there
/// is dialled again and again.
pub async fn run(broker: Broker, boards: Boards, shutdown: CancellationToken) -> io::Result<()> {
    let hall = boards.hall;
    let now = hall.now();
    let mut desk = Desk {
        post: Post::new(),
        attendance: Attendance::default(),
        window: Arc::new(Semaphore::new(WINDOW)),
        room: Arc::new(Semaphore::new(WAITING_BYTES)),
        complaints: Bucket::new(COMPLAINTS.0, COMPLAINTS.1, now),
        later: VecDeque::new(),
        text_bytes: hall.door.limits.message_bytes,
        tracker: TaskTracker::new(),
        hall,
        broker,
    };
    let mut pause = Pause::new();
    while !shutdown.is_cancelled() {
        let stay = Box::pin(desk.stay(&mut pause, &shutdown));
        let Some(Err(Over(why))) = shutdown.run_until_cancelled(stay).await else { break };
        desk.part();
        let rest = pause.take();
        tracing::warn!(broker = %desk.broker.address, "{why}; trying again in {rest:.1?}");
        shutdown.run_until_cancelled(sleep(rest)).await;
    }
    desk.hall.roster.close();
    desk.tracker.close();
    desk.tracker.wait().await;
    Ok(())
}

/// Tries a broker: whether it welcomes us and takes our subscriptions. What its access rules keep back is not seen:
/// brokers may grant a subscription and deliver nothing.
pub async fn check(broker: &Broker) -> Result<(), String> {
    let mut connection = broker.connect(1024).await.map_err(|Over(why)| why)?;
    connection.subscribed(&broker.wishes(), drop).await.map_err(|Over(why)| why)?;
    connection.close().await;
    Ok(())
}

impl Broker {
    async fn connect(&self, packet_bytes: usize) -> Result<Connection, Over> {
        let introduction = Introduction {
            client_id: &client::client_id(),
            credentials: self.address.credentials.as_ref(),
            keep_alive: KEEP_ALIVE,
            packet_bytes,
            will: None,
            properties: &[],
        };
        Connection::open(&self.address, introduction).await
    }

    fn wishes(&self) -> [Wish; 2] {
        [&self.topics.presence, &self.topics.up].map(|topic| Wish { filter: topic.filter(), no_local: false })
    }
}

/// What a board says of itself through a broker, before it has said its name.
fn info(id: &str, broker: &str) -> DeviceInfo {
    let attributes = [("hardware_id", id), ("transport", "broker"), ("broker", broker)];
    DeviceInfo {
        key: greeting::key(id),
        suggested_id: greeting::suggest_id(id),
        family: board_family(Reach::SeveralGateways),
        admission: Admission::Broker(broker.into()),
        name: String::new(),
        version: String::new(),
        status: Status::Ready,
        instructions: None,
        attributes: attributes.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect(),
    }
}

struct Desk {
    hall: Arc<Hall>,
    broker: Broker,
    post: Arc<Post>,
    attendance: Attendance,
    window: Arc<Semaphore>,
    room: Arc<Semaphore>,
    complaints: Bucket,
    /// Boards that were turned away, and when they are asked again.
    later: VecDeque<(Instant, Box<str>)>,
    /// The longest text that the broker takes.
    text_bytes: usize,
    tracker: TaskTracker,
}

impl Desk {
    /// Serves on one connection, until it is over.
    async fn stay(&mut self, pause: &mut Pause, shutdown: &CancellationToken) -> Result<(), Over> {
        let limit = self.hall.door.limits.message_bytes;
        let mut connection = self.broker.connect(limit).await?;
        self.text_bytes = limit.min(connection.packet_bytes.saturating_sub(1024));
        self.attendance.begin_round();
        let mut early = Vec::new();
        connection.subscribed(&self.broker.wishes(), |message| early.push(message)).await?;
        pause.reset();
        tracing::info!(broker = %self.broker.address, "connected to the broker");
        self.post.set_open(true);
        for message in early {
            self.hear(message).await;
        }
        let mut round_ends = Some(Instant::now() + Duration::from_secs(KEEP_ALIVE.into()));
        loop {
            let again = self.later.front().map(|(due, _)| *due);
            tokio::select! {
                packet = connection.next() => {
                    if let Packet::Publish(message) = packet? {
                        self.hear(message).await;
                    }
                }
                message = self.post.next(), if connection.backlog() < BACKLOG => {
                    connection.publish(&message);
                    while connection.backlog() < BACKLOG
                        && let Some(message) = self.post.try_next()
                    {
                        connection.publish(&message);
                    }
                }
                Ok(turn) = self.window.clone().acquire_owned(), if self.attendance.has_waiting() => self.ask(turn),
                () = sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => {
                    if let Some((_, id)) = self.later.pop_front() {
                        self.attendance.wait_again(id);
                    }
                }
                () = sleep_until(round_ends.unwrap_or_else(Instant::now)), if round_ends.is_some() => {
                    round_ends = None;
                    let why = "nothing was heard of it since the broker was reached again";
                    for device in self.attendance.end_round() {
                        device.commands.push(Box::new(Command::Gone(LeaveReason::Broken(why.to_owned()))));
                    }
                }
                () = shutdown.cancelled() => {
                    connection.close().await;
                    return Ok(());
                }
            }
        }
    }

    /// The connection is gone. Boards stay; calls under way are lost, and those who were being asked come again.
    fn part(&mut self) {
        self.post.set_open(false);
        for device in self.attendance.devices() {
            device.commands.push(Box::new(Command::Cut));
        }
    }

    async fn hear(&mut self, message: Message) {
        let Topics { presence, up, .. } = &self.broker.topics;
        if let Some(level) = presence.level(&message.topic) {
            let level = level.to_owned();
            return self.hear_presence(&level, &message.payload, !message.retain);
        }
        // Whoever speaks without being there is not heard: nobody would tell us when it goes.
        let Some(device) = up.level(&message.topic).and_then(|level| self.attendance.find(level)).cloned() else {
            return;
        };
        let size = u32::try_from(message.payload.len()).unwrap_or(u32::MAX);
        let Ok(room) = self.room.clone().acquire_many_owned(size).await else { return };
        let parcel = Parcel { heard: read_text(message.payload), _room: room };
        let is_heard = device.commands.push_within(Box::new(Command::Heard(parcel)), WAITING_TEXTS);
        if !is_heard && !device.commands.is_closed() {
            self.trouble(&device, "it says more than can be listened to; some of it was dropped");
        }
    }

    fn hear_presence(&mut self, level: &str, payload: &[u8], is_news: bool) {
        if !topics::is_id(level) {
            return self.complain("a board's id must be 1 to 64 visible ASCII characters", level);
        }
        match topics::read_presence(payload) {
            Some(true) => self.attendance.come(level, is_news),
            Some(false) => {
                if let Some(device) = self.attendance.go(level) {
                    device.commands.push(Box::new(Command::Gone(LeaveReason::Closed)));
                }
            }
            None => self.complain("a presence message must be {\"online\":true}, {\"online\":false} or empty", level),
        }
    }

    /// The next board gets its place and its task.
    fn ask(&mut self, turn: OwnedSemaphorePermit) {
        let id = match self.attendance.next_waiting() {
            None => return,
            Some(Turn::Join(id)) => id,
            Some(Turn::Refresh(device)) => {
                device.commands.push(Box::new(Command::Refresh(turn)));
                return;
            }
        };
        if let Some((_, device)) = self.hall.roster.find(&greeting::key(&id).0)
            && !matches!(device.info().admission, Admission::Broker(_))
        {
            self.complain("a board with a token of its own is connected under this id and stays", &id);
            return self.put_off(id);
        }
        let info = info(&id, &self.broker.address.to_string());
        let place = match self.hall.enter(&info.key, &info.admission) {
            Ok(place) => place,
            Err(Turned::Closing) => return,
            Err(Turned::TooOften) => return self.put_off(id),
            Err(Turned::Full) => {
                self.complain("as many boards are connected as are admitted", &id);
                return self.put_off(id);
            }
        };
        let lane = Lane::new(self.post.clone(), self.broker.topics.down.of(&id), turn, self.text_bytes);
        let pump = Pump::new(Met { pipe: Pipe::Broker(lane), info, place }, self.hall.clone());
        self.attendance.seat(&id, pump.device());
        self.tracker.spawn(pump.run());
    }

    fn put_off(&mut self, id: Box<str>) {
        self.later.push_back((Instant::now() + LATER, id));
    }

    /// Something is wrong with a board; whoever looks at it learns of it.
    fn trouble(&mut self, device: &Arc<BoardDevice>, what: &str) {
        self.complain(what, &device.key().0);
        if device.note_once("trouble", what) {
            (self.hall.door.announce)(DeviceEvent::Changed(device.clone()));
        }
    }

    fn complain(&mut self, what: &str, whom: &str) {
        if self.complaints.take(self.hall.now()) {
            let whom: String = whom.chars().take(80).collect();
            tracing::warn!(broker = %self.broker.address, board = ?whom, "{what}");
        }
    }
}
