//! One connection to a broker: introduction, subscriptions, messages both ways, and pings.
//!
//! Whoever owns it dials again when it ends; what is waited for in between is told by [`ReconnectDelay`].

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::Duration;

use sinew_mqtt::Version;
use sinew_mqtt::client::{BrokerPacket, BrokerReader, ClientWriter, Introduction, MqttMessage, Subscription, Welcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::{Instant, sleep_until, timeout};

use super::address::Address;
use crate::dial::DialledStream;

const WRITER: ClientWriter = ClientWriter { version: Version::V5 };
/// How long a broker may take to accept us, and to grant a subscription.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// What is read at once.
const READ_BYTES: usize = 64 << 10;
/// Pauses between attempts double from the first to the last, and begin anew once the broker has served.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(15);
/// How long a farewell may take.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// Why a connection is over, or never was.
#[derive(Debug)]
pub struct Disconnected(pub String);

impl From<io::Error> for Disconnected {
    fn from(error: io::Error) -> Disconnected {
        Disconnected(error.to_string())
    }
}

pub struct Connection {
    read: ReadHalf<Box<dyn DialledStream>>,
    write: WriteHalf<Box<dyn DialledStream>>,
    reader: BrokerReader,
    input: Vec<u8>,
    /// How much of the input has been looked at.
    taken: usize,
    output: Output,
    keep_alive: Duration,
    ping_due: Instant,
    heard: Instant,
    last_id: u16,
    /// The largest packet the broker takes.
    pub(crate) packet_bytes: usize,
    /// What the broker told us beside its welcome.
    pub(crate) properties: Vec<(String, String)>,
}

impl Connection {
    /// Dials, and is welcomed.
    pub async fn open(address: &Address, introduction: Introduction<'_>) -> Result<Connection, Disconnected> {
        let stream =
            address.dial().await.map_err(|error| Disconnected(format!("the broker cannot be reached: {error}")))?;
        let (read, write) = tokio::io::split(stream);
        let keep_alive = Duration::from_secs(introduction.keep_alive.into());
        let now = Instant::now();
        let mut connection = Connection {
            read,
            write,
            reader: BrokerReader::new(WRITER.version, introduction.packet_bytes),
            input: Vec::new(),
            taken: 0,
            output: Output::default(),
            keep_alive,
            ping_due: now + keep_alive / 2,
            heard: now,
            last_id: 0,
            packet_bytes: usize::MAX,
            properties: Vec::new(),
        };
        WRITER.connect(&introduction, &mut connection.output.bytes);
        let answer = timeout(ANSWER_TIME, connection.next()).await;
        match answer.map_err(|_| Disconnected("the broker does not answer".to_owned()))?? {
            BrokerPacket::Connack(welcome) => connection.take_terms(*welcome)?,
            _ => return Err(Disconnected("the broker's first packet is not CONNACK".to_owned())),
        }
        Ok(connection)
    }

    fn take_terms(&mut self, welcome: Welcome) -> Result<(), Disconnected> {
        if welcome.code != 0 {
            return Err(Disconnected(format!("the broker refuses us: {}", refusal(welcome.code))));
        }
        if let Some(seconds) = welcome.keep_alive.filter(|seconds| *seconds > 0) {
            self.keep_alive = Duration::from_secs(seconds.into());
            self.ping_due = Instant::now() + self.keep_alive / 2;
        }
        self.packet_bytes = welcome.packet_bytes.map_or(usize::MAX, |bytes| bytes as usize);
        self.properties = welcome.properties;
        Ok(())
    }

    /// Asks to hear what fits these subscriptions. Which id is granted comes as [`BrokerPacket::Suback`].
    pub(crate) fn subscribe(&mut self, subscriptions: &[Subscription]) -> u16 {
        let id = self.id();
        WRITER.subscribe(id, subscriptions, &mut self.output.bytes);
        id
    }

    /// Asks, and waits until all of it is granted. What is heard meanwhile is given to `hear`.
    pub async fn subscribed(
        &mut self,
        subscriptions: &[Subscription],
        mut hear: impl FnMut(MqttMessage),
    ) -> Result<(), Disconnected> {
        let id = self.subscribe(subscriptions);
        let granted = async {
            loop {
                match self.next().await? {
                    BrokerPacket::Publish(message) => hear(message),
                    BrokerPacket::Suback { id: answered, codes } if answered == id => return Ok(codes),
                    _ => {}
                }
            }
        };
        let codes = timeout(ANSWER_TIME, granted).await;
        let codes =
            codes.unwrap_or_else(|_| Err(Disconnected("the broker does not answer our subscription".to_owned())))?;
        match subscriptions.iter().zip(codes).find(|(_, code)| *code >= 0x80) {
            None => Ok(()),
            Some((subscription, code)) => {
                let filter = &subscription.filter;
                Err(Disconnected(format!(
                    "the broker does not let us subscribe to `{filter}`: {}; see its access rules",
                    refusal(code)
                )))
            }
        }
    }

    pub(crate) fn unsubscribe(&mut self, filters: &[&str]) {
        let id = self.id();
        WRITER.unsubscribe(id, filters, &mut self.output.bytes);
    }

    /// Says something, and is told by [`BrokerPacket::Puback`] how it fared.
    pub fn publish_confirmed(&mut self, message: &MqttMessage) -> u16 {
        let id = self.id();
        WRITER.publish(message, Some(id), &mut self.output.bytes);
        id
    }

    /// Says something, once at most.
    pub fn publish(&mut self, message: &MqttMessage) {
        WRITER.publish(message, None, &mut self.output.bytes);
    }

    /// Bytes that the network has not taken yet.
    pub(crate) fn backlog(&self) -> usize {
        self.output.bytes.len() - self.output.written
    }

    /// The next packet. Sends what is to be sent meanwhile, pings, and acknowledges. Nothing is lost where the future
    /// is dropped.
    pub async fn next(&mut self) -> Result<BrokerPacket, Disconnected> {
        loop {
            if let Some(packet) = self.take()? {
                return Ok(packet);
            }
            let patience = self.heard + self.keep_alive * 3 / 2;
            let due = self.ping_due.min(patience);
            tokio::select! {
                sent = self.output.send(&mut self.write), if !self.output.is_sent() => sent?,
                read = self.read.read_buf(&mut self.input) => {
                    if read? == 0 {
                        return Err(Disconnected("the broker closed the connection".to_owned()));
                    }
                    self.heard = Instant::now();
                }
                () = sleep_until(due) => {
                    if Instant::now() >= patience {
                        let silence = self.heard.elapsed().as_secs();
                        return Err(Disconnected(format!("the broker was silent for {silence} s")));
                    }
                    self.ping_due = Instant::now() + self.keep_alive / 2;
                    WRITER.ping(&mut self.output.bytes);
                }
            }
        }
    }

    /// A packet that is whole already.
    fn take(&mut self) -> Result<Option<BrokerPacket>, Disconnected> {
        if self.taken < self.input.len() {
            let mut rest = &self.input[self.taken..];
            let found = self.reader.read(&mut rest);
            self.taken = self.input.len() - rest.len();
            match found.map_err(Disconnected)? {
                Some((BrokerPacket::Disconnect { code }, _)) => {
                    return Err(Disconnected(format!("the broker ended the connection: {}", refusal(code))));
                }
                Some((packet, id)) => {
                    if let Some(id) = id {
                        WRITER.acknowledge(id, &mut self.output.bytes);
                    }
                    return Ok(Some(packet));
                }
                None => {}
            }
        }
        self.input.clear();
        self.input.shrink_to(READ_BYTES);
        self.taken = 0;
        Ok(None)
    }

    /// Sends what is left, says farewell, and closes; the broker does not speak our will then.
    pub async fn close(mut self) {
        WRITER.disconnect(&mut self.output.bytes);
        let _ = timeout(CLOSE_TIME, async {
            self.output.send(&mut self.write).await?;
            self.write.shutdown().await
        })
        .await;
    }

    fn id(&mut self) -> u16 {
        self.last_id = self.last_id.checked_add(1).unwrap_or(1);
        self.last_id
    }
}

/// Bytes on their way to the network.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    written: usize,
    is_unflushed: bool,
}

impl Output {
    fn is_sent(&self) -> bool {
        self.bytes.is_empty() && !self.is_unflushed
    }

    /// Goes on where it stopped when it is dropped.
    async fn send(&mut self, write: &mut WriteHalf<Box<dyn DialledStream>>) -> io::Result<()> {
        while self.written < self.bytes.len() {
            let count = write.write(&self.bytes[self.written..]).await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.written += count;
            self.is_unflushed = true;
        }
        (self.bytes, self.written) = (Vec::new(), 0);
        write.flush().await?;
        self.is_unflushed = false;
        Ok(())
    }
}

/// What a code of MQTT means, for people.
fn refusal(code: u8) -> String {
    let meaning = match code {
        0x00 => "it said goodbye",
        0x84 => "it does not speak MQTT 5; use a broker that does",
        0x85 => "the client id is not allowed",
        0x86 => "user name or password is wrong",
        0x87 => "we are not authorized",
        0x88 | 0x89 => "it is busy",
        0x8a => "we are banned",
        0x8b => "it is shutting down",
        0x8d => "it heard nothing of us",
        0x8e => "another client uses our client id",
        0x8f | 0x90 => "a topic is not allowed",
        0x93 | 0x96 | 0x97 => "we say too much",
        0x95 => "a message is too large",
        0x9a => "it keeps no retained messages",
        _ => "it gives no reason that we know",
    };
    format!("{meaning} (0x{code:02x})")
}

/// A broker that keeps a connection for so long is well. One that ends it earlier is tried again more and more seldom: it
/// may accept everybody and serve nobody.
const WELL_TIME: Duration = Duration::from_secs(60);

/// How long to stay away from a broker that is not there.
pub struct ReconnectDelay {
    next: Duration,
    /// When the broker accepted us, while it has not ended that connection.
    connected: Option<Instant>,
    random: RandomState,
    count: u64,
}

impl Default for ReconnectDelay {
    fn default() -> ReconnectDelay {
        ReconnectDelay::new()
    }
}

impl ReconnectDelay {
    pub fn new() -> ReconnectDelay {
        ReconnectDelay { next: FIRST_PAUSE, connected: None, random: RandomState::new(), count: 0 }
    }

    /// The broker has accepted us.
    pub fn note_connected(&mut self) {
        self.connected = Some(Instant::now());
    }

    /// Between half of the pause and all of it, so that clients which lost their broker together do not return together.
    pub fn take(&mut self) -> Duration {
        if self.connected.take().is_some_and(|since| since.elapsed() >= WELL_TIME) {
            self.next = FIRST_PAUSE;
        }
        self.count += 1;
        let share = 0.5 + (self.random.hash_one(self.count) % 1000) as f64 / 2000.0;
        let pause = self.next.mul_f64(share);
        self.next = (self.next * 2).min(LAST_PAUSE);
        pause
    }
}

/// An id for one connection, short enough for small brokers, and for no two connections the same.
pub fn client_id() -> String {
    let mut random = [0; 6];
    if getrandom::fill(&mut random).is_err() {
        random.copy_from_slice(&RandomState::new().hash_one(0).to_be_bytes()[..6]);
    }
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sinew-{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_a_limit_vary_and_begin_anew_after_a_connection_that_held() {
        let mut pause = ReconnectDelay::new();
        let pauses: Vec<Duration> = (0..12).map(|_| pause.take()).collect();
        assert!(pauses[0] <= FIRST_PAUSE && pauses[0] >= FIRST_PAUSE / 2);
        assert!(pauses[11] <= LAST_PAUSE && pauses[11] >= LAST_PAUSE / 2);
        pause.note_connected();
        tokio::time::advance(WELL_TIME - Duration::from_secs(1)).await;
        assert!(pause.take() >= LAST_PAUSE / 2, "a broker that accepts and ends connections is not well");
        pause.note_connected();
        tokio::time::advance(WELL_TIME).await;
        assert!(pause.take() <= FIRST_PAUSE);
        assert!(pause.take() > FIRST_PAUSE / 2, "once");
    }

    #[test]
    fn no_two_connections_have_one_id() {
        let (one, two) = (client_id(), client_id());
        assert_ne!(one, two);
        assert!(one.len() <= 20, "{one}");
    }
}
