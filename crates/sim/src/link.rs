//! A plain connection to an MQTT broker, version 5, for virtual devices that are not a single board.

use sinew_mqtt::Version;
use sinew_mqtt::client::{BrokerPacket, BrokerReader, ClientWriter, Introduction, MqttMessage, Subscription};
use sinew_runner::RunError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Seconds.
pub(crate) const KEEPALIVE: u16 = 30;
const PACKET_BYTES: usize = 4 << 20;
const WRITER: ClientWriter = ClientWriter { version: Version::V5 };

pub(crate) struct BrokerLink {
    stream: TcpStream,
    reader: BrokerReader,
    /// Bytes that were received and not parsed yet, from `taken` on.
    received: Vec<u8>,
    taken: usize,
}

/// Who connects, and where.
pub(crate) struct LinkConfig<'a> {
    /// `mqtt://HOST:PORT`.
    pub(crate) url: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) login: Option<(&'a str, &'a str)>,
    pub(crate) will: Option<&'a MqttMessage>,
    pub(crate) properties: &'a [(String, String)],
}

impl BrokerLink {
    pub(crate) async fn open(config: LinkConfig<'_>) -> Result<BrokerLink, RunError> {
        let LinkConfig { url, client_id, login, will, properties } = config;
        let wrong = || RunError::Address(url.to_owned(), "it must be mqtt://HOST:PORT".to_owned());
        let address = url.strip_prefix("mqtt://").ok_or_else(wrong)?;
        let stream = TcpStream::connect(address).await.map_err(|error| RunError::Unreachable(url.to_owned(), error))?;
        stream.set_nodelay(true).map_err(|error| RunError::Unreachable(url.to_owned(), error))?;
        let reader = BrokerReader::new(WRITER.version, PACKET_BYTES);
        let mut link = BrokerLink { stream, reader, received: Vec::new(), taken: 0 };
        let login = login.map(|(username, password)| (username, Some(password)));
        let introduction =
            Introduction { client_id, login, keep_alive: KEEPALIVE, packet_bytes: PACKET_BYTES, will, properties };
        link.write(|out| WRITER.connect(&introduction, out)).await?;
        let BrokerPacket::Connack(welcome) = link.packet().await? else {
            return Err(RunError::Ended("the broker's first packet is not CONNACK".to_owned()));
        };
        match welcome.code {
            0 => Ok(link),
            code => Err(RunError::Refused {
                url: url.to_owned(),
                status: Some(401),
                why: format!("MQTT reason code 0x{code:02x}"),
            }),
        }
    }

    pub(crate) async fn subscribe(&mut self, filters: &[&str], no_local: bool) -> Result<(), RunError> {
        let subscription =
            |filter: &&str| Subscription { filter: (*filter).to_owned(), no_local, at_least_once: false };
        let subscriptions: Vec<Subscription> = filters.iter().map(subscription).collect();
        self.write(|out| WRITER.subscribe(1, &subscriptions, out)).await
    }

    pub(crate) async fn publish(&mut self, message: &MqttMessage) -> Result<(), RunError> {
        self.write(|out| WRITER.publish(message, None, out)).await
    }

    pub(crate) async fn ping(&mut self) -> Result<(), RunError> {
        self.write(|out| WRITER.ping(out)).await
    }

    /// Disconnects cleanly, so that the will is not published.
    pub(crate) async fn close(mut self) -> Result<(), RunError> {
        self.write(|out| WRITER.disconnect(out)).await?;
        self.stream.shutdown().await.map_err(|error| RunError::Ended(error.to_string()))
    }

    /// The next message. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<MqttMessage, RunError> {
        loop {
            if let BrokerPacket::Publish(message) = self.packet().await? {
                return Ok(message);
            }
        }
    }

    async fn packet(&mut self) -> Result<BrokerPacket, RunError> {
        loop {
            let mut rest = &self.received[self.taken..];
            let found = self.reader.read(&mut rest);
            self.taken = self.received.len() - rest.len();
            if let Some((packet, _)) = found.map_err(RunError::Ended)? {
                return Ok(packet);
            }
            self.received.clear();
            self.taken = 0;
            let read = self.stream.read_buf(&mut self.received).await;
            if read.map_err(|error| RunError::Ended(error.to_string()))? == 0 {
                return Err(RunError::Ended("the broker closed the connection".to_owned()));
            }
        }
    }

    async fn write(&mut self, put: impl FnOnce(&mut Vec<u8>)) -> Result<(), RunError> {
        let mut out = Vec::new();
        put(&mut out);
        self.stream.write_all(&out).await.map_err(|error| RunError::Ended(error.to_string()))
    }
}
