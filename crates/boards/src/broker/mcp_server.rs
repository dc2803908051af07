//! The gateway as an MCP server on a broker ("MCP over MQTT"): whoever may reach its control topic there gets a
//! session, over a pipe of lines to whatever speaks MCP at its other end.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use sinew_mqtt::client::{BrokerPacket, MqttMessage};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::client::{Connection, Disconnected, ReconnectDelay};
use super::mcp_client::open;
use super::mcp_topics::{self, McpRole, McpServer, subscription};
use super::{Address, BACKLOG};

/// Clients that are served at once. Where one more comes, the one that was silent longest is let go: not all of them tell
/// when they leave.
const SESSIONS: usize = 64;
/// Messages of one client that may wait; one that sends more meanwhile is let go.
const WAITING: usize = 64;
/// Answers that may wait for the network.
const ANSWERS: usize = 256;
/// The longest message read from a client.
const MESSAGE_BYTES: usize = 1 << 20;
/// News of changed tools come once from each session and concern everybody; within this time they are one.
const BROADCAST_WINDOW: Duration = Duration::from_secs(1);

/// How the gateway calls itself on a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedServer {
    /// The MQTT client id, the same each time.
    pub server_id: String,
    /// For example `sinew/home`.
    pub server_name: String,
    pub description: String,
}

impl OfferedServer {
    pub fn new(server_id: String, server_name: &str, description: &str) -> Result<OfferedServer, String> {
        if !mcp_topics::is_name(server_name) {
            return Err(format!(
                "the server name `{server_name}` must have 1 to 96 characters in levels parted by `/`, without `+` and `#`; for example `sinew/home`"
            ));
        }
        let (server_name, description) = (server_name.to_owned(), description.to_owned());
        Ok(OfferedServer { server_id, server_name, description })
    }
}

/// Serves at the broker until `shutdown`. `open_pipe` gives for the id of a client a pipe to what speaks MCP, one message
/// a line.
pub async fn offer<P>(
    address: Address,
    offering: OfferedServer,
    open_pipe: impl Fn(&str) -> P + Send,
    shutdown: CancellationToken,
) -> io::Result<()>
where
    P: AsyncRead + AsyncWrite + Send + 'static,
{
    let mut pause = ReconnectDelay::new();
    while !shutdown.is_cancelled() {
        let serving = Box::pin(serve(&address, &offering, &open_pipe, &mut pause, &shutdown));
        // Not cut off by the shutdown: it says farewell.
        let Err(Disconnected(why)) = serving.await else { break };
        let rest = pause.take();
        tracing::warn!(broker = %address, "the tools are not offered: {why}; trying again in {rest:.1?}");
        shutdown.run_until_cancelled(sleep(rest)).await;
    }
    Ok(())
}

async fn serve<P>(
    address: &Address,
    offering: &OfferedServer,
    open_pipe: &(impl Fn(&str) -> P + Send),
    pause: &mut ReconnectDelay,
    shutdown: &CancellationToken,
) -> Result<(), Disconnected>
where
    P: AsyncRead + AsyncWrite + Send + 'static,
{
    let mut server = McpServer { id: offering.server_id.clone(), name: offering.server_name.clone() };
    let gone =
        |server: &McpServer| MqttMessage { retain: true, ..McpRole::Server.message(&server.id, server.presence(), "") };
    let properties = McpRole::Server.introduction();
    let opening = open(address, &server.id, MESSAGE_BYTES, Some(&gone(&server)), &properties).await;
    let mut connection = opening?;
    let given =
        connection.properties.iter().find(|(key, _)| key == mcp_topics::GIVEN_NAME).map(|(_, name)| name.clone());
    if let Some(name) = given.filter(|name| mcp_topics::is_name(name)) {
        server.name = name;
    }
    connection.subscribed(&[subscription(server.control(), false)], drop).await?;
    let online = mcp_topics::online(&server.name, &offering.description);
    let here = MqttMessage { retain: true, ..McpRole::Server.message(&server.id, server.presence(), online) };
    connection.publish(&here);
    pause.note_connected();
    tracing::info!(broker = %address, server = %server.name, "the tools are offered as an MCP server over MQTT");

    let (answers, mut answered) = mpsc::channel(ANSWERS);
    let mut offered = OfferedSessions { server, sessions: HashMap::new(), answers, last: 0, last_broadcast: None };
    let ended = loop {
        tokio::select! {
            packet = connection.next() => match packet {
                Ok(BrokerPacket::Publish(message)) => offered.handle_message(message, &mut connection, open_pipe),
                Ok(BrokerPacket::Suback { id, .. }) => offered.granted(id),
                Ok(_) => {}
                Err(over) => break Err(over),
            },
            Some(answer) = answered.recv(), if connection.backlog() < BACKLOG => offered.answer(answer, &mut connection),
            () = shutdown.cancelled() => break Ok(()),
        }
    };
    if ended.is_ok() {
        for client in offered.sessions.keys() {
            connection.publish(&McpRole::Server.message(
                &offered.server.id,
                offered.server.rpc(client),
                mcp_topics::DISCONNECTED,
            ));
        }
        connection.publish(&gone(&offered.server));
        connection.close().await;
    }
    ended
}

struct OfferedSessions {
    server: McpServer,
    /// By the id of the client.
    sessions: HashMap<String, BrokerClientSession>,
    answers: mpsc::Sender<SessionOutput>,
    /// Counts the sessions.
    last: u64,
    last_broadcast: Option<(String, Instant)>,
}

/// A line of a session; `None` is its end.
struct SessionOutput {
    client: String,
    number: u64,
    line: Option<String>,
}

struct BrokerClientSession {
    number: u64,
    /// When the client last said something.
    heard: Instant,
    /// What the client says.
    lines: mpsc::Sender<String>,
    pumping: JoinHandle<()>,
    /// The subscription that must be granted before the first message is passed on, and that message.
    waiting: Option<(u16, String)>,
}

impl Drop for BrokerClientSession {
    fn drop(&mut self) {
        self.pumping.abort();
    }
}

impl OfferedSessions {
    fn handle_message<P>(&mut self, message: MqttMessage, connection: &mut Connection, open_pipe: &impl Fn(&str) -> P)
    where
        P: AsyncRead + AsyncWrite + Send + 'static,
    {
        let Ok(text) = String::from_utf8(message.payload) else { return };
        // In JSON a line break is never more than white space.
        let line = text.replace(['\n', '\r'], " ");
        if message.topic == self.server.control() {
            let sender = message.properties.into_iter().find(|(key, _)| key == mcp_topics::SENDER).map(|(_, id)| id);
            match sender.filter(|id| mcp_topics::is_id(id)) {
                Some(client) if mcp_topics::method(&line).as_deref() == Some("initialize") => {
                    self.begin(client, line, connection, open_pipe);
                }
                _ => tracing::debug!("a message at the control topic is no initialize, or does not say whose it is"),
            }
            return;
        }
        if let Some(client) = self.server.rpc_client(&message.topic) {
            let client = client.to_owned();
            if mcp_topics::method(&line).as_deref() == Some("notifications/disconnected") {
                return self.end(&client, connection);
            }
            let Some(session) = self.sessions.get_mut(&client) else { return };
            session.heard = Instant::now();
            if session.lines.try_send(line).is_err() {
                tracing::warn!(?client, "an MCP client over MQTT says more than can be listened to, and is let go");
                self.end(&client, connection);
            }
        } else if let Some(client) = message.topic.strip_prefix("$mcp-client/presence/") {
            let client = client.to_owned();
            if mcp_topics::method(&line).as_deref() == Some("notifications/disconnected") {
                self.end(&client, connection);
            }
        } else if let Some(client) = message.topic.strip_prefix("$mcp-client/capability/")
            && let Some(session) = self.sessions.get(client)
        {
            let _ = session.lines.try_send(line);
        }
    }

    /// A client wants a session; one that has one gets another.
    fn begin<P>(&mut self, client: String, line: String, connection: &mut Connection, open_pipe: &impl Fn(&str) -> P)
    where
        P: AsyncRead + AsyncWrite + Send + 'static,
    {
        if self.sessions.len() >= SESSIONS
            && !self.sessions.contains_key(&client)
            && let Some(silent) = self.sessions.iter().min_by_key(|(_, session)| session.heard)
        {
            let silent = silent.0.clone();
            let topic = self.server.rpc(&silent);
            connection.publish(&McpRole::Server.message(&self.server.id, topic, mcp_topics::DISCONNECTED));
            self.end(&silent, connection);
        }
        let subscriptions = [
            subscription(mcp_topics::client_presence(&client), false),
            subscription(mcp_topics::client_capability(&client), false),
            subscription(self.server.rpc(&client), true),
        ];
        let granted = connection.subscribe(&subscriptions);
        let (lines, said) = mpsc::channel(WAITING);
        self.last += 1;
        let number = self.last;
        let pumping = tokio::spawn(pump(open_pipe(&client), said, client.clone(), number, self.answers.clone()));
        self.sessions.insert(
            client,
            BrokerClientSession { number, heard: Instant::now(), lines, pumping, waiting: Some((granted, line)) },
        );
    }

    /// What a client said first is passed on once its answers can be heard.
    fn granted(&mut self, id: u16) {
        for session in self.sessions.values_mut() {
            if let Some((_, line)) = session.waiting.take_if(|(waiting, _)| *waiting == id) {
                let _ = session.lines.try_send(line);
            }
        }
    }

    fn answer(&mut self, answer: SessionOutput, connection: &mut Connection) {
        let SessionOutput { client, number, line } = answer;
        if self.sessions.get(&client).is_none_or(|session| session.number != number) {
            return;
        }
        let Some(line) = line else { return self.end(&client, connection) };
        let topic = match mcp_topics::method(&line) {
            Some(method) if is_for_all(&method) => {
                let is_told = self
                    .last_broadcast
                    .as_ref()
                    .is_some_and(|(last_broadcast, at)| *last_broadcast == line && at.elapsed() < BROADCAST_WINDOW);
                if is_told {
                    return;
                }
                self.last_broadcast = Some((line.clone(), Instant::now()));
                self.server.capability()
            }
            _ => self.server.rpc(&client),
        };
        connection.publish(&McpRole::Server.message(&self.server.id, topic, line));
    }

    fn end(&mut self, client: &str, connection: &mut Connection) {
        if self.sessions.remove(client).is_some() {
            let topics =
                [mcp_topics::client_presence(client), mcp_topics::client_capability(client), self.server.rpc(client)];
            connection.unsubscribe(&topics.each_ref().map(String::as_str));
        }
    }
}

/// News that every client of a server hears.
fn is_for_all(method: &str) -> bool {
    method == "notifications/resources/updated"
        || (method.starts_with("notifications/") && method.ends_with("/list_changed"))
}

/// Lines of a client into the pipe, and lines of the pipe to whoever sends them.
async fn pump<P: AsyncRead + AsyncWrite>(
    pipe: P,
    mut said: mpsc::Receiver<String>,
    client: String,
    number: u64,
    answers: mpsc::Sender<SessionOutput>,
) {
    let (reader, mut writer) = tokio::io::split(pipe);
    let inward = async {
        while let Some(mut line) = said.recv().await {
            line.push('\n');
            if writer.write_all(line.as_bytes()).await.is_err() || writer.flush().await.is_err() {
                return;
            }
        }
    };
    let outward = async {
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let answer = SessionOutput { client: client.clone(), number, line: Some(line) };
            if answers.send(answer).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = inward => {}
        () = outward => {}
    }
    let _ = answers.send(SessionOutput { client, number, line: None }).await;
}
