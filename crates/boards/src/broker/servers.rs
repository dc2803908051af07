//! MCP servers on a broker ("MCP over MQTT") as devices: this side is their client.
//!
//! One connection watches who is there. Each server gets a task ([`Visit`]) with a connection of its own, because the
//! client's id is that of its connection and must be new for each `initialize`; otherwise servers live as boards do.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use sinew_tool::{Admission, DeviceId, DeviceInfo, DeviceKey, LeaveReason, Status, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client::{self, Connection, Over, Pause};
use super::codec::{Introduction, Message, Packet};
use super::lane::{Lane, Post};
use super::words::{self, Server, Side, wish};
use super::{Address, KEEP_ALIVE};
use crate::hall::{Boards, Hall, Met};
use crate::handle::{BoardDevice, Command, Parcel};
use crate::pipe::{Pipe, read_text};
use crate::provider;
use crate::pump::Pump;

/// Servers of one broker; each costs a connection.
const SERVERS: usize = 256;
/// Texts of one server that may wait for its task.
const WAITING_TEXTS: usize = 64;
/// So begin the ids of gateways among the servers of a broker.
pub const GATEWAY: &str = "sinew-";
/// What a broker says of a message that nobody wants to hear.
const NOBODY: u8 = 0x10;

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
    let hall = boards.hall;
    let tracker = TaskTracker::new();
    let mut watch = Watch { address, filter, gateways, hall, tracker, visits: HashMap::new(), round: 0 };
    let mut pause = Pause::new();
    while !shutdown.is_cancelled() {
        let watching = Box::pin(watch.stay(&mut pause, &shutdown));
        let Some(Err(Over(why))) = shutdown.run_until_cancelled(watching).await else { break };
        let rest = pause.take();
        tracing::warn!(broker = %watch.address, "MCP servers are not followed: {why}; trying again in {rest:.1?}");
        shutdown.run_until_cancelled(sleep(rest)).await;
    }
    watch.visits.values().for_each(|visit| visit.end.cancel());
    watch.tracker.close();
    watch.tracker.wait().await;
    Ok(())
}

struct Watch {
    address: Address,
    filter: String,
    gateways: bool,
    hall: Arc<Hall>,
    tracker: TaskTracker,
    visits: HashMap<Server, Known>,
    /// Counts the connections of this watch.
    round: u32,
}

/// A server that is there.
struct Known {
    end: CancellationToken,
    round: u32,
}

impl Watch {
    async fn stay(&mut self, pause: &mut Pause, shutdown: &CancellationToken) -> Result<(), Over> {
        let client_id = client::client_id();
        let properties = Side::Client.introduction();
        let limit = self.hall.door.limits.message_bytes;
        let mut connection = open(&self.address, &client_id, limit, None, &properties).await?;
        self.round = self.round.wrapping_add(1);
        let wishes = [wish(format!("$mcp-server/presence/+/{}", self.filter), false)];
        let mut early = Vec::new();
        connection.subscribed(&wishes, |message| early.push(message)).await?;
        pause.reset();
        early.iter().for_each(|message| self.hear(message));
        let mut round_ends = Some(Instant::now() + Duration::from_secs(KEEP_ALIVE.into()));
        loop {
            tokio::select! {
                packet = connection.next() => {
                    if let Packet::Publish(message) = packet? {
                        self.hear(&message);
                    }
                }
                () = sleep_until(round_ends.unwrap_or_else(Instant::now)), if round_ends.is_some() => {
                    round_ends = None;
                    let round = self.round;
                    self.visits.retain(|_, known| {
                        let stays = known.round == round;
                        if !stays {
                            known.end.cancel();
                        }
                        stays
                    });
                }
                () = shutdown.cancelled() => {
                    connection.close().await;
                    return Ok(());
                }
            }
        }
    }

    fn hear(&mut self, message: &Message) {
        let Some(server) = Server::of_presence(&message.topic) else {
            tracing::debug!(topic = ?message.topic, "no presence of an MCP server");
            return;
        };
        if !self.gateways && server.id.starts_with(GATEWAY) {
            tracing::debug!(server = %server.id, "a gateway is not followed where tools are offered");
            return;
        }
        if message.payload.is_empty() {
            if let Some(known) = self.visits.remove(&server) {
                known.end.cancel();
            }
            return;
        }
        let Some(description) = words::read_online(&message.payload) else {
            tracing::warn!(server = ?server.id, "an MCP server's presence is not notifications/server/online");
            return;
        };
        let round = self.round;
        if let Some(known) = self.visits.get_mut(&server) {
            known.round = round;
            // Kept from before: the same stay. News: it started anew.
            if message.retain && !known.end.is_cancelled() {
                return;
            }
            known.end.cancel();
        } else if self.visits.len() >= SERVERS {
            tracing::warn!(server = ?server.id, "an MCP server is left out: {SERVERS} are followed already");
            return;
        }
        let end = CancellationToken::new();
        let visit = Visit {
            server: server.clone(),
            description,
            address: self.address.clone(),
            hall: self.hall.clone(),
            end: end.clone(),
        };
        self.visits.insert(server, Known { end, round });
        self.tracker.spawn(visit.run());
    }
}

/// One server, from its presence to its absence.
struct Visit {
    server: Server,
    description: Option<String>,
    address: Address,
    hall: Arc<Hall>,
    end: CancellationToken,
}

/// Why a session with a server is over.
enum Ended {
    /// Trying again may help.
    Broken(String),
    /// Until the server is heard of again, nothing will.
    Final,
}

impl Visit {
    async fn run(self) {
        let mut pause = Pause::new();
        while !self.end.is_cancelled() {
            let why = match self.session(&mut pause).await {
                Ok(Ended::Final) => break,
                Ok(Ended::Broken(why)) | Err(Over(why)) => why,
            };
            let rest = pause.take();
            tracing::debug!(server = %self.server.id, "{why}; trying again in {rest:.1?}");
            self.end.run_until_cancelled(sleep(rest)).await;
        }
        self.end.cancel();
    }

    async fn session(&self, pause: &mut Pause) -> Result<Ended, Over> {
        let server = &self.server;
        let client_id = client::client_id();
        let properties = Side::Client.introduction();
        let will = Side::Client.message(&client_id, words::client_presence(&client_id), words::DISCONNECTED);
        let limit = self.hall.door.limits.message_bytes;
        let mut connection = open(&self.address, &client_id, limit, Some(&will), &properties).await?;
        let rpc = server.rpc(&client_id);
        connection.subscribed(&[wish(server.capability(), false), wish(rpc.clone(), true)], drop).await?;

        let info = self.info();
        let place = match self.hall.enter(&info.key, &info.admission) {
            Ok(place) => place,
            Err(turned) => return Ok(Ended::Broken(turned.reason(&self.hall.door.limits))),
        };
        let post = Post::new();
        post.set_open(true);
        let text_bytes = limit.min(connection.packet_bytes.saturating_sub(1024));
        let lane = Lane::to_server(post.clone(), server.control(), rpc.clone(), text_bytes);
        let pump = Pump::new(Met { pipe: Pipe::Broker(lane), info, place }, self.hall.clone());
        let device = pump.device();
        let mut living = tokio::spawn(pump.run());
        let talk = Talk { visit: self, client_id: &client_id, rpc: &rpc, device: &device, post: &post };
        let ended = tokio::select! {
            ended = talk.run(&mut connection, pause) => ended,
            _ = &mut living => Ok(Ended::Broken("the session is over".to_owned())),
            () = self.end.cancelled() => Ok(Ended::Final),
        };
        let reason = match &ended {
            Ok(Ended::Final) => LeaveReason::Closed,
            Ok(Ended::Broken(why)) | Err(Over(why)) => LeaveReason::Broken(why.clone()),
        };
        post.set_open(false);
        device.commands.push(Box::new(Command::Gone(reason)));
        if !living.is_finished() {
            let _ = living.await;
        }
        if ended.is_ok() {
            connection.publish(&will);
            connection.close().await;
        }
        ended
    }

    fn info(&self) -> DeviceInfo {
        let Server { id, name } = &self.server;
        let attributes = [
            ("hardware_id", id.as_str()),
            ("server_name", name),
            ("transport", "MCP over MQTT"),
            ("broker", &self.address.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), json!(value)));
        let slug = DeviceId::slug(name.rsplit('/').next().unwrap_or_default());
        DeviceInfo {
            key: DeviceKey(format!("provider:mqtt:{id}/{name}")),
            suggested_id: if slug.is_empty() { provider::FAMILY.to_owned() } else { slug },
            family: provider::family(),
            admission: Admission::Broker(self.address.to_string().into()),
            name: name.clone(),
            version: String::new(),
            status: Status::Ready,
            instructions: self.description.clone(),
            attributes: attributes.into_iter().collect(),
        }
    }
}

/// The conversation with a server on one connection.
struct Talk<'a> {
    visit: &'a Visit,
    client_id: &'a str,
    rpc: &'a str,
    device: &'a Arc<BoardDevice>,
    post: &'a Arc<Post>,
}

impl Talk<'_> {
    async fn run(&self, connection: &mut Connection, pause: &mut Pause) -> Result<Ended, Over> {
        let control = self.visit.server.control();
        let mut introduction = None;
        let room = Arc::new(Semaphore::new(super::WAITING_BYTES));
        loop {
            tokio::select! {
                packet = connection.next() => match packet? {
                    Packet::Puback { id, code } if Some(id) == introduction && (code == NOBODY || code >= 0x80) => {
                        tracing::info!(server = %self.visit.server.id, "an MCP server is not there any more, though its presence is");
                        return Ok(Ended::Final);
                    }
                    Packet::Publish(message) => {
                        pause.reset();
                        let size = u32::try_from(message.payload.len()).unwrap_or(u32::MAX);
                        if message.topic == self.rpc && is_farewell(&message.payload) {
                            return Ok(Ended::Final);
                        }
                        let Ok(room) = room.clone().acquire_many_owned(size).await else { continue };
                        let parcel = Box::new(Command::Heard(Parcel { heard: read_text(message.payload), _room: room }));
                        self.device.commands.push_within(parcel, WAITING_TEXTS);
                    }
                    _ => {}
                },
                message = self.post.next() => {
                    let Message { topic, payload, .. } = message;
                    let is_first = topic == control;
                    let text = String::from_utf8_lossy(&payload).into_owned();
                    let message = Side::Client.message(self.client_id, topic, text);
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
    let is_said = |text: &str| words::method(text).as_deref() == Some("notifications/disconnected");
    text.len() < 256 && std::str::from_utf8(text).is_ok_and(is_said)
}

pub(super) async fn open(
    address: &Address,
    client_id: &str,
    packet_bytes: usize,
    will: Option<&Message>,
    properties: &[(String, String)],
) -> Result<Connection, Over> {
    let credentials = address.credentials.as_ref();
    let introduction = Introduction { client_id, credentials, keep_alive: KEEP_ALIVE, packet_bytes, will, properties };
    Connection::open(address, introduction).await
}
