//! MCP servers on a broker ("MCP over MQTT") as devices: this side is their client.
//!
//! One connection watches who is there. Each server gets a task ([`ServerTask`]) with a connection of its own, because the
//! client's id is that of its connection and must be new for each `initialize`; otherwise servers live as boards do.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use sinew_mqtt::client::{BrokerPacket, Introduction, MqttMessage};
use sinew_tool::{Admission, DeviceId, DeviceInfo, DeviceKey, LeaveReason, Status, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client::{self, Connection, Disconnected, ReconnectDelay};
use super::mcp_topics::{self, McpRole, McpServer, subscription};
use super::outbox::{BrokerOutbox, BrokerPipe};
use super::{Address, KEEP_ALIVE};
use crate::device::{BoardCommand, BoardDevice, QueuedMessage};
use crate::hub::{AdmittedBoard, BoardHub, Boards};
use crate::pipe::{Pipe, read_text};
use crate::provider;
use crate::pump::Pump;

/// Servers of one broker; each costs a connection.
const SERVERS: usize = 256;
/// A server whose name another one holds waits so long for that one's presence to end: half as long again as the usual
/// keepalive, after which a broker knows that a server is gone.
const TAKEOVER_TIME: Duration = Duration::from_secs(KEEP_ALIVE as u64 * 3 / 2);
/// Texts of one server that may wait for its task.
const WAITING_TEXTS: usize = 64;
/// So begin the ids of gateways among the servers of a broker.
pub const GATEWAY: &str = "sinew-";
/// What a broker says of a message that nobody wants to hear.
const NO_SUBSCRIBERS: u8 = 0x10;

/// Follows the servers whose name fits `filter` until `shutdown`; returns when the last of them has left.
/// `gateways`: whether other gateways are followed too. One that offers its own tools on the same broker must not:
/// each would offer the other's tools again, and its own among them.
pub async fn follow_servers(
    address: Address,
    filter: String,
    gateways: bool,
    boards: Boards,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let hub = boards.hub;
    let tracker = TaskTracker::new();
    let mut follower = ServerFollower {
        address,
        filter,
        gateways,
        hub,
        tracker,
        servers: HashMap::new(),
        holders: HashMap::new(),
        waiting: VecDeque::new(),
        round: 0,
    };
    let mut pause = ReconnectDelay::new();
    while !shutdown.is_cancelled() {
        let following = Box::pin(follower.follow_once(&mut pause, &shutdown));
        let Some(Err(Disconnected(why))) = shutdown.run_until_cancelled(following).await else { break };
        let rest = pause.take();
        tracing::warn!(broker = %follower.address, "MCP servers are not followed: {why}; trying again in {rest:.1?}");
        shutdown.run_until_cancelled(sleep(rest)).await;
    }
    follower.servers.values().for_each(|task| task.end.cancel());
    follower.tracker.close();
    follower.tracker.wait().await;
    Ok(())
}

struct ServerFollower {
    address: Address,
    filter: String,
    gateways: bool,
    hub: Arc<BoardHub>,
    tracker: TaskTracker,
    servers: HashMap<McpServer, FollowedServer>,
    /// Which server has the device of its name.
    holders: HashMap<String, McpServer>,
    /// Servers whose name another one holds, and until when they wait for it.
    waiting: VecDeque<(Instant, McpServer)>,
    /// Counts the connections of this follower.
    round: u32,
}

/// A server that is there.
struct FollowedServer {
    end: CancellationToken,
    description: Option<String>,
    /// The device that it is; `None` while it waits for its name.
    key: Option<DeviceKey>,
    round: u32,
}

impl ServerFollower {
    async fn follow_once(
        &mut self,
        pause: &mut ReconnectDelay,
        shutdown: &CancellationToken,
    ) -> Result<(), Disconnected> {
        let client_id = client::client_id();
        let properties = McpRole::Client.introduction();
        let limit = self.hub.config.limits.message_bytes;
        let mut connection = open(&self.address, &client_id, limit, None, &properties).await?;
        self.round = self.round.wrapping_add(1);
        let subscriptions = [subscription(format!("$mcp-server/presence/+/{}", self.filter), false)];
        let mut early = Vec::new();
        connection.subscribed(&subscriptions, |message| early.push(message)).await?;
        pause.note_connected();
        early.iter().for_each(|message| self.handle_message(message));
        let mut round_ends = Some(Instant::now() + Duration::from_secs(KEEP_ALIVE.into()));
        loop {
            let waited = self.waiting.front().map(|(until, _)| *until);
            tokio::select! {
                packet = connection.next() => {
                    if let BrokerPacket::Publish(message) = packet? {
                        self.handle_message(&message);
                    }
                }
                () = sleep_until(waited.unwrap_or_else(Instant::now)), if waited.is_some() => {
                    if let Some((_, server)) = self.waiting.pop_front() {
                        let key = server.key();
                        self.start(&server, key);
                    }
                }
                () = sleep_until(round_ends.unwrap_or_else(Instant::now)), if round_ends.is_some() => {
                    round_ends = None;
                    let round = self.round;
                    let gone = self.servers.iter().filter(|(_, followed)| followed.round != round);
                    let gone: Vec<McpServer> = gone.map(|(server, _)| server.clone()).collect();
                    gone.iter().for_each(|server| self.remove(server));
                }
                () = shutdown.cancelled() => {
                    connection.close().await;
                    return Ok(());
                }
            }
        }
    }

    fn handle_message(&mut self, message: &MqttMessage) {
        let Some(server) = McpServer::of_presence(&message.topic) else {
            tracing::debug!(topic = ?message.topic, "no presence of an MCP server");
            return;
        };
        if !self.gateways && server.id.starts_with(GATEWAY) {
            tracing::debug!(server = %server.id, "a gateway is not followed where tools are offered");
            return;
        }
        if message.payload.is_empty() {
            return self.remove(&server);
        }
        let Some(description) = mcp_topics::read_online(&message.payload) else {
            tracing::warn!(server = ?server.id, "the presence of an MCP server is not notifications/server/online");
            return;
        };
        let round = self.round;
        if let Some(followed) = self.servers.get_mut(&server) {
            followed.round = round;
            // Retained from before: the same session. Live: the server restarted.
            if message.retain && !followed.end.is_cancelled() {
                return;
            }
            followed.description = description;
            if let Some(key) = followed.key.clone() {
                self.start(&server, key);
            }
            return;
        }
        if self.servers.len() >= SERVERS {
            tracing::warn!(server = ?server.id, "an MCP server is left out: {SERVERS} are followed already");
            return;
        }
        let followed = FollowedServer { end: CancellationToken::new(), description, key: None, round };
        self.servers.insert(server.clone(), followed);
        self.identify(server);
    }

    /// Decides which device a new server is. A server that was known by its own id stays so. Any other is the device of
    /// its name, because many servers have another id at each start; while another server has that name, it waits until
    /// that one's presence ends, or for so long that both must be running.
    fn identify(&mut self, server: McpServer) {
        let key = server.key();
        if self.hub.config.admit.is_known(&key) {
            self.start(&server, key);
        } else if !self.holders.contains_key(&server.name) {
            self.take_name(server);
        } else {
            self.waiting.push_back((Instant::now() + TAKEOVER_TIME, server));
        }
    }

    fn take_name(&mut self, server: McpServer) {
        let key = server.name_key();
        self.holders.insert(server.name.clone(), server.clone());
        self.start(&server, key);
    }

    /// The presence of a server ended: a server that waits for its name takes over its device.
    fn remove(&mut self, server: &McpServer) {
        if let Some(followed) = self.servers.remove(server) {
            followed.end.cancel();
        }
        self.waiting.retain(|(_, waiting)| waiting != server);
        if self.holders.get(&server.name) == Some(server) {
            self.holders.remove(&server.name);
            if let Some(index) = self.waiting.iter().position(|(_, waiting)| waiting.name == server.name)
                && let Some((_, heir)) = self.waiting.remove(index)
            {
                self.take_name(heir);
            }
        }
    }

    /// Starts the task of a server; an earlier one ends.
    fn start(&mut self, server: &McpServer, key: DeviceKey) {
        let Some(followed) = self.servers.get_mut(server) else { return };
        followed.end.cancel();
        (followed.end, followed.key) = (CancellationToken::new(), Some(key.clone()));
        let task = ServerTask {
            server: server.clone(),
            key,
            description: followed.description.clone(),
            address: self.address.clone(),
            hub: self.hub.clone(),
            end: followed.end.clone(),
        };
        self.tracker.spawn(task.run());
    }
}

/// One server, from its presence to its absence.
struct ServerTask {
    server: McpServer,
    key: DeviceKey,
    description: Option<String>,
    address: Address,
    hub: Arc<BoardHub>,
    end: CancellationToken,
}

/// Why a session with a server is over.
enum SessionEnd {
    /// Trying again may help.
    Retry(String),
    /// Until the server is heard of again, nothing will.
    Final,
}

impl ServerTask {
    async fn run(self) {
        let mut pause = ReconnectDelay::new();
        while !self.end.is_cancelled() {
            let why = match self.session(&mut pause).await {
                Ok(SessionEnd::Final) => break,
                Ok(SessionEnd::Retry(why)) | Err(Disconnected(why)) => why,
            };
            let rest = pause.take();
            tracing::debug!(server = %self.server.id, "{why}; trying again in {rest:.1?}");
            self.end.run_until_cancelled(sleep(rest)).await;
        }
        self.end.cancel();
    }

    async fn session(&self, pause: &mut ReconnectDelay) -> Result<SessionEnd, Disconnected> {
        let server = &self.server;
        let client_id = client::client_id();
        let properties = McpRole::Client.introduction();
        let will =
            McpRole::Client.message(&client_id, mcp_topics::client_presence(&client_id), mcp_topics::DISCONNECTED);
        let limit = self.hub.config.limits.message_bytes;
        let mut connection = open(&self.address, &client_id, limit, Some(&will), &properties).await?;
        let rpc = server.rpc(&client_id);
        connection
            .subscribed(&[subscription(server.capability(), false), subscription(rpc.clone(), true)], drop)
            .await?;

        pause.note_connected();
        let info = self.info();
        let registration = match self.hub.register(&info.key, &info.admission) {
            Ok(registration) => registration,
            Err(refused) => return Ok(SessionEnd::Retry(refused.reason(&self.hub.config.limits))),
        };
        let outbox = BrokerOutbox::new();
        outbox.set_open(true);
        let text_bytes = limit.min(connection.packet_bytes.saturating_sub(1024));
        let lane = BrokerPipe::to_mcp_server(outbox.clone(), server.control(), rpc.clone(), text_bytes);
        let pump = Pump::new(AdmittedBoard { pipe: Pipe::Broker(lane), info, registration }, self.hub.clone());
        let device = pump.device();
        let mut living = tokio::spawn(pump.run());
        let talk =
            ServerConversation { task: self, client_id: &client_id, rpc: &rpc, device: &device, outbox: &outbox };
        let end = tokio::select! {
            end = talk.run(&mut connection) => end,
            _ = &mut living => Ok(SessionEnd::Retry("the session is over".to_owned())),
            () = self.end.cancelled() => Ok(SessionEnd::Final),
        };
        let reason = match &end {
            Ok(SessionEnd::Final) => LeaveReason::Closed,
            Ok(SessionEnd::Retry(why)) | Err(Disconnected(why)) => LeaveReason::Broken(why.clone()),
        };
        outbox.set_open(false);
        device.commands.push(Box::new(BoardCommand::Gone(reason)));
        if !living.is_finished() {
            let _ = living.await;
        }
        if end.is_ok() {
            connection.publish(&will);
            connection.close().await;
        }
        end
    }

    fn info(&self) -> DeviceInfo {
        let McpServer { id, name } = &self.server;
        let attributes = [
            ("hardware_id", id.as_str()),
            ("server_name", name),
            ("transport", "MCP over MQTT"),
            ("broker", &self.address.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), json!(value)));
        let slug = DeviceId::slug(name.rsplit('/').next().unwrap_or_default());
        DeviceInfo {
            key: self.key.clone(),
            suggested_id: if slug.is_empty() { provider::FAMILY.to_owned() } else { slug },
            family: provider::family(),
            admission: Admission::Broker(self.address.to_string().into()),
            name: name.clone(),
            version: String::new(),
            status: Status::Ready,
            instructions: self.description.clone(),
            labels: Vec::new(),
            attributes: attributes.into_iter().collect(),
        }
    }
}

/// The conversation with a server on one connection.
struct ServerConversation<'a> {
    task: &'a ServerTask,
    client_id: &'a str,
    rpc: &'a str,
    device: &'a Arc<BoardDevice>,
    outbox: &'a Arc<BrokerOutbox>,
}

impl ServerConversation<'_> {
    async fn run(&self, connection: &mut Connection) -> Result<SessionEnd, Disconnected> {
        let control = self.task.server.control();
        let mut introduction = None;
        let memory = Arc::new(Semaphore::new(super::WAITING_BYTES));
        loop {
            tokio::select! {
                packet = connection.next() => match packet? {
                    BrokerPacket::Puback { id, code } if Some(id) == introduction && (code == NO_SUBSCRIBERS || code >= 0x80) => {
                        tracing::info!(server = %self.task.server.id, "an MCP server is not there any more, though its presence is");
                        return Ok(SessionEnd::Final);
                    }
                    BrokerPacket::Publish(message) => {
                        let size = u32::try_from(message.payload.len()).unwrap_or(u32::MAX);
                        if message.topic == self.rpc && is_farewell(&message.payload) {
                            return Ok(SessionEnd::Final);
                        }
                        let Ok(memory) = memory.clone().acquire_many_owned(size).await else { continue };
                        let parcel = Box::new(BoardCommand::Received(QueuedMessage { received: read_text(message.payload), _memory: memory }));
                        self.device.commands.push_within(parcel, WAITING_TEXTS);
                    }
                    _ => {}
                },
                message = self.outbox.next() => {
                    let MqttMessage { topic, payload, .. } = message;
                    let is_first = topic == control;
                    let text = String::from_utf8_lossy(&payload).into_owned();
                    let message = McpRole::Client.message(self.client_id, topic, text);
                    if is_first {
                        introduction = Some(connection.publish_confirmed(&message));
                    } else {
                        connection.publish(&message);
                    }
                }
            }
        }
    }
}

fn is_farewell(text: &[u8]) -> bool {
    let is_said = |text: &str| mcp_topics::method(text).as_deref() == Some("notifications/disconnected");
    text.len() < 256 && std::str::from_utf8(text).is_ok_and(is_said)
}

pub(super) async fn open(
    address: &Address,
    client_id: &str,
    packet_bytes: usize,
    will: Option<&MqttMessage>,
    properties: &[(String, String)],
) -> Result<Connection, Disconnected> {
    let login = address.login();
    let introduction = Introduction { client_id, login, keep_alive: KEEP_ALIVE, packet_bytes, will, properties };
    Connection::open(address, introduction).await
}
