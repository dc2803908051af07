//! A plain connection to an MQTT broker, version 5, for virtual things that are no single board.

use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{PacketBuildResult, PacketBuilder, PacketData};
use mqtt_protocol_core::mqtt::packet::v5_0::{Connack, Connect, Disconnect, Pingreq, Publish, Subscribe};
use mqtt_protocol_core::mqtt::packet::{GenericPacketTrait, Property, Qos, SubEntry, SubOpts, UserProperty};
use mqtt_protocol_core::mqtt::result_code::{DisconnectReasonCode, MqttError};
use sinew_runner::RunError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Seconds.
pub(crate) const KEEPALIVE: u16 = 30;
const PACKET_BYTES: u32 = 4 << 20;

pub(crate) struct Link {
    stream: TcpStream,
    builder: PacketBuilder,
    /// Bytes that came and are not yet looked at.
    waiting: Vec<u8>,
    taken: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub(crate) topic: String,
    pub(crate) text: String,
    pub(crate) retain: bool,
    pub(crate) properties: Vec<(String, String)>,
}

/// How the link introduces itself.
pub(crate) struct Introduction<'a> {
    /// `mqtt://HOST:PORT`.
    pub(crate) url: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) login: Option<(&'a str, &'a str)>,
    pub(crate) will: Option<&'a Message>,
    pub(crate) properties: &'a [(String, String)],
}

impl Link {
    pub(crate) async fn open(introduction: Introduction<'_>) -> Result<Link, RunError> {
        let url = introduction.url;
        let wrong = || RunError::Address(url.to_owned(), "it must be mqtt://HOST:PORT".to_owned());
        let address = url.strip_prefix("mqtt://").ok_or_else(wrong)?;
        let stream = TcpStream::connect(address).await.map_err(|error| RunError::Unreachable(url.to_owned(), error))?;
        stream.set_nodelay(true).map_err(|error| RunError::Unreachable(url.to_owned(), error))?;
        let builder = PacketBuilder::with_maximum_packet_size(PACKET_BYTES);
        let mut link = Link { stream, builder, waiting: Vec::new(), taken: 0 };
        let connect = || {
            let mut packet = Connect::builder().client_id(introduction.client_id)?.clean_start(true);
            if let Some((username, password)) = introduction.login {
                packet = packet.user_name(username)?.password(password.as_bytes().to_vec())?;
            }
            if let Some(will) = introduction.will {
                let payload = will.text.clone().into_bytes();
                packet = packet.will_message(will.topic.as_str(), payload, Qos::AtLeastOnce, will.retain)?;
            }
            packet.keep_alive(KEEPALIVE).props(properties(introduction.properties)?).build()
        };
        link.write(connect()).await?;
        // The first packet of a broker is its welcome, or it is none.
        let Some((2, code)) = link.packet().await?.map(|packet| (packet.kind, packet.code)) else {
            return Err(RunError::Ended("the broker's first packet is no CONNACK".to_owned()));
        };
        match code {
            0 => Ok(link),
            code => Err(RunError::Refused {
                url: url.to_owned(),
                status: Some(401),
                why: format!("MQTT reason code 0x{code:02x}"),
            }),
        }
    }

    pub(crate) async fn subscribe(&mut self, filters: &[&str], no_local: bool) -> Result<(), RunError> {
        let options = SubOpts::new().set_qos(Qos::AtMostOnce).set_nl(no_local);
        let entries = filters.iter().map(|filter| SubEntry::new(*filter, options));
        let entries = entries.collect::<Result<Vec<_>, _>>();
        self.write(entries.and_then(|entries| Subscribe::builder().packet_id(1u16).entries(entries).build())).await
    }

    pub(crate) async fn say(&mut self, message: &Message) -> Result<(), RunError> {
        let publish = || {
            let packet = Publish::builder().topic_name(message.topic.as_str())?.retain(message.retain);
            packet.payload(message.text.as_bytes()).props(properties(&message.properties)?).build()
        };
        self.write(publish()).await
    }

    pub(crate) async fn ping(&mut self) -> Result<(), RunError> {
        self.write(Pingreq::builder().build()).await
    }

    /// Leaves in order, so that nobody speaks our will.
    pub(crate) async fn close(mut self) -> Result<(), RunError> {
        let code = DisconnectReasonCode::NormalDisconnection;
        self.write(Disconnect::builder().reason_code(code).build()).await?;
        self.stream.shutdown().await.map_err(|error| RunError::Ended(error.to_string()))
    }

    /// The next message. Nothing is lost where the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Message, RunError> {
        loop {
            if let Some(message) = self.packet().await?.and_then(|packet| packet.message) {
                return Ok(message);
            }
        }
    }

    async fn packet(&mut self) -> Result<Option<Packet>, RunError> {
        let ended = |why: String| RunError::Ended(why);
        loop {
            if self.taken < self.waiting.len() {
                let mut cursor = Cursor::new(&self.waiting[self.taken..]);
                let fed = self.builder.feed(&mut cursor);
                self.taken += cursor.position() as usize;
                let broken = |error: MqttError| ended(format!("no MQTT: {error:?}"));
                let raw = match fed {
                    PacketBuildResult::Incomplete => continue,
                    PacketBuildResult::Error(error) => return Err(broken(error)),
                    PacketBuildResult::Complete(raw) => raw,
                };
                let kind = raw.packet_type();
                let (mut code, mut message) = (0, None);
                if kind == 2 {
                    code = raw.parse_exact(Connack::parse).map_err(broken)?.reason_code() as u8;
                } else if let PacketData::Publish(data) = &raw.data {
                    let (packet, _) = Publish::parse(raw.flags(), data.clone()).map_err(broken)?;
                    message = Some(Message {
                        topic: packet.topic_name().to_owned(),
                        text: String::from_utf8_lossy(packet.payload().as_slice()).into_owned(),
                        retain: packet.retain(),
                        properties: pairs(packet.props()),
                    });
                }
                return Ok(Some(Packet { kind, code, message }));
            }
            self.waiting.clear();
            self.taken = 0;
            let count = self.stream.read_buf(&mut self.waiting).await.map_err(|error| ended(error.to_string()))?;
            if count == 0 {
                return Err(ended("the broker closed the connection".to_owned()));
            }
        }
    }

    async fn write<P: GenericPacketTrait>(&mut self, packet: Result<P, MqttError>) -> Result<(), RunError> {
        let packet = packet.map_err(|error| RunError::Ended(format!("a packet cannot be written: {error:?}")))?;
        let written = self.stream.write_all(&packet.to_continuous_buffer()).await;
        written.map_err(|error| RunError::Ended(error.to_string()))
    }
}

struct Packet {
    kind: u8,
    code: u8,
    message: Option<Message>,
}

fn properties(pairs: &[(String, String)]) -> Result<Vec<Property>, MqttError> {
    pairs.iter().map(|(key, value)| Ok(UserProperty::new(key.as_str(), value.as_str())?.into())).collect()
}

fn pairs(properties: &[Property]) -> Vec<(String, String)> {
    let pairs = properties.iter().filter_map(|property| match property {
        Property::UserProperty(pair) => Some((pair.key().to_owned(), pair.val().to_owned())),
        _ => None,
    });
    pairs.collect()
}
