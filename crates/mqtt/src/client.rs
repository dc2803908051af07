//! The client's side: packets of a broker or server come out, packets of a client go in.

use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{PacketBuildResult, PacketBuilder, PacketData, RawPacket};
use mqtt_protocol_core::mqtt::packet::{
    MaximumPacketSize, Property, Qos, RetainHandling, SubEntry, SubOpts, UserProperty, v3_1_1, v5_0,
};
use mqtt_protocol_core::mqtt::result_code::{DisconnectReasonCode, MqttError};

use crate::{Version, clamp, put};

/// What a broker sends.
#[derive(Debug, PartialEq, Eq)]
pub enum BrokerPacket {
    Connack(Box<Welcome>),
    Publish(MqttMessage),
    /// The result of a message of ours; codes of 0x80 and more are failures.
    Puback {
        id: u16,
        code: u8,
    },
    /// The result of each part of a subscription.
    Suback {
        id: u16,
        codes: Vec<u8>,
    },
    /// Anything that only shows that the broker is there.
    KeepAlive,
    Disconnect {
        code: u8,
    },
}

/// The answer to CONNECT.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Welcome {
    /// 0 if the client is accepted.
    pub code: u8,
    /// Seconds, if the broker wants another time than we proposed.
    pub keep_alive: Option<u16>,
    /// The largest packet the broker accepts, if it says so.
    pub packet_bytes: Option<u32>,
    pub properties: Vec<(String, String)>,
}

/// A message under a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MqttMessage {
    pub topic: String,
    pub payload: Vec<u8>,
    /// From a broker: it was kept since before we subscribed. To a broker: keep it.
    pub retain: bool,
    /// Version 5 only.
    pub properties: Vec<(String, String)>,
}

/// One filter of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    pub filter: String,
    /// Not our own messages. Version 5 only.
    pub no_local: bool,
    /// Deliver at least once, instead of at most once. Mosquitto sends any number of retained messages at most once, but
    /// only as many as its queue holds at least once: 1,000 by default.
    pub at_least_once: bool,
}

/// The content of CONNECT.
pub struct Introduction<'a> {
    pub client_id: &'a str,
    /// User name and password.
    pub login: Option<(&'a str, Option<&'a str>)>,
    /// Seconds.
    pub keep_alive: u16,
    /// The largest packet that is read.
    pub packet_bytes: usize,
    /// What the broker publishes if we disappear.
    pub will: Option<&'a MqttMessage>,
    /// Version 5 only.
    pub properties: &'a [(String, String)],
}

/// Finds packets in a stream of bytes.
pub struct BrokerReader {
    builder: PacketBuilder,
    version: Version,
}

impl BrokerReader {
    /// A packet larger than `limit` is refused before memory is reserved for it.
    pub fn new(version: Version, limit: usize) -> BrokerReader {
        BrokerReader { builder: PacketBuilder::with_maximum_packet_size(clamp(limit)), version }
    }

    /// Takes bytes from the front until a packet is complete, and returns it with the id to acknowledge it with; `None` if
    /// more bytes are needed. An error says what is wrong with what the broker sent.
    pub fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<(BrokerPacket, Option<u16>)>, String> {
        let wrong = |error: MqttError| format!("the broker broke the MQTT protocol: {error:?}");
        let mut cursor = Cursor::new(*bytes);
        while cursor.position() < bytes.len() as u64 {
            match self.builder.feed(&mut cursor) {
                PacketBuildResult::Complete(raw) => {
                    *bytes = bytes.get(cursor.position() as usize..).unwrap_or_default();
                    let packet = match self.version {
                        Version::V3 => parse_v3(&raw),
                        Version::V5 => parse_v5(&raw),
                    };
                    return packet.map(Some).map_err(wrong);
                }
                PacketBuildResult::Incomplete => {}
                PacketBuildResult::Error(error) => return Err(wrong(error)),
            }
        }
        *bytes = &[];
        Ok(None)
    }
}

/// MQTT 5's code for a version that the broker does not speak.
const UNSUPPORTED: u8 = 0x84;

type ParsedPacket = Result<(BrokerPacket, Option<u16>), MqttError>;

fn parse_v3(raw: &RawPacket) -> ParsedPacket {
    let packet = match (raw.packet_type(), &raw.data) {
        (2, _) => {
            let code = raw.parse_exact(v3_1_1::Connack::parse)?.return_code() as u8;
            BrokerPacket::Connack(Box::new(Welcome { code, ..Welcome::default() }))
        }
        (3, PacketData::Publish(data)) => {
            let (packet, _) = v3_1_1::Publish::parse(raw.flags(), data.clone())?;
            let payload = packet.payload().as_slice().to_vec();
            return published(packet.topic_name(), payload, packet.retain(), packet.qos(), packet.packet_id(), &[]);
        }
        (4, _) => BrokerPacket::Puback { id: raw.parse_exact(v3_1_1::Puback::parse)?.packet_id(), code: 0 },
        (9, _) => {
            let packet = raw.parse_exact(v3_1_1::Suback::parse)?;
            let codes = packet.return_codes().into_iter().map(|code| code as u8).collect();
            BrokerPacket::Suback { id: packet.packet_id(), codes }
        }
        (11 | 13, _) => BrokerPacket::KeepAlive,
        _ => return Err(MqttError::ProtocolError),
    };
    Ok((packet, None))
}

fn parse_v5(raw: &RawPacket) -> ParsedPacket {
    let packet = match (raw.packet_type(), &raw.data) {
        (2, _) => match (raw.parse_exact(v5_0::Connack::parse), raw.parse_exact(v3_1_1::Connack::parse)) {
            (Ok(packet), _) => BrokerPacket::Connack(Box::new(welcome(packet))),
            // A broker of before MQTT 5 answers in its own form.
            (Err(_), Ok(_)) => BrokerPacket::Connack(Box::new(Welcome { code: UNSUPPORTED, ..Welcome::default() })),
            (Err(error), Err(_)) => return Err(error),
        },
        (3, PacketData::Publish(data)) => {
            let (packet, _) = v5_0::Publish::parse(raw.flags(), data.clone())?;
            let payload = packet.payload().as_slice().to_vec();
            let (qos, id) = (packet.qos(), packet.packet_id());
            return published(packet.topic_name(), payload, packet.retain(), qos, id, packet.props());
        }
        (4, _) => {
            let packet = raw.parse_exact(v5_0::Puback::parse)?;
            BrokerPacket::Puback { id: packet.packet_id(), code: packet.reason_code().map_or(0, |code| code as u8) }
        }
        (9, _) => {
            let packet = raw.parse_exact(v5_0::Suback::parse)?;
            let codes = packet.reason_codes().into_iter().map(|code| code as u8).collect();
            BrokerPacket::Suback { id: packet.packet_id(), codes }
        }
        (11 | 13, _) => BrokerPacket::KeepAlive,
        (14, _) => {
            let code = raw.parse_exact(v5_0::Disconnect::parse)?.reason_code();
            BrokerPacket::Disconnect { code: code.map_or(0, |code| code as u8) }
        }
        _ => return Err(MqttError::ProtocolError),
    };
    Ok((packet, None))
}

fn published(
    topic: &str,
    payload: Vec<u8>,
    retain: bool,
    qos: Qos,
    id: Option<u16>,
    properties: &[Property],
) -> ParsedPacket {
    // Topic aliases and exactly-once delivery are never requested; the first would need memory for the whole connection.
    if topic.is_empty() || qos == Qos::ExactlyOnce {
        return Err(MqttError::ProtocolError);
    }
    let properties = user_properties(properties);
    Ok((BrokerPacket::Publish(MqttMessage { topic: topic.to_owned(), payload, retain, properties }), id))
}

fn welcome(packet: v5_0::Connack) -> Welcome {
    let (mut keep_alive, mut packet_bytes) = (None, None);
    for property in packet.props() {
        match property {
            Property::ServerKeepAlive(seconds) => keep_alive = Some(seconds.val()),
            Property::MaximumPacketSize(size) => packet_bytes = Some(size.val()),
            _ => {}
        }
    }
    let properties = user_properties(packet.props());
    Welcome { code: packet.reason_code() as u8, keep_alive, packet_bytes, properties }
}

fn user_properties(properties: &[Property]) -> Vec<(String, String)> {
    let pairs = properties.iter().filter_map(|property| match property {
        Property::UserProperty(pair) => Some((pair.key().to_owned(), pair.val().to_owned())),
        _ => None,
    });
    pairs.collect()
}

fn to_properties(pairs: &[(String, String)]) -> Result<Vec<Property>, MqttError> {
    pairs.iter().map(|(key, value)| Ok(UserProperty::new(key.as_str(), value.as_str())?.into())).collect()
}

/// What a client sends, appended to `out`.
#[derive(Clone, Copy)]
pub struct ClientWriter {
    pub version: Version,
}

impl ClientWriter {
    pub fn connect(self, introduction: &Introduction<'_>, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => put(connect_v3(introduction), out),
            Version::V5 => put(connect_v5(introduction), out),
        }
    }

    /// With an id, the broker acknowledges the message.
    pub fn publish(self, message: &MqttMessage, id: Option<u16>, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => put(publish_v3(message, id), out),
            Version::V5 => put(publish_v5(message, id), out),
        }
    }

    pub fn subscribe(self, id: u16, subscriptions: &[Subscription], out: &mut Vec<u8>) {
        let entries = subscriptions.iter().map(|subscription| {
            let qos = if subscription.at_least_once { Qos::AtLeastOnce } else { Qos::AtMostOnce };
            let mut options = SubOpts::new().set_qos(qos);
            if self.version == Version::V5 {
                options = options.set_nl(subscription.no_local).set_rh(RetainHandling::SendRetained);
            }
            SubEntry::new(subscription.filter.as_str(), options)
        });
        let entries = entries.collect::<Result<Vec<_>, _>>();
        match self.version {
            Version::V3 => {
                put(
                    entries.and_then(|entries| v3_1_1::Subscribe::builder().packet_id(id).entries(entries).build()),
                    out,
                );
            }
            Version::V5 => {
                put(entries.and_then(|entries| v5_0::Subscribe::builder().packet_id(id).entries(entries).build()), out);
            }
        }
    }

    pub fn unsubscribe(self, id: u16, filters: &[&str], out: &mut Vec<u8>) {
        let filters = filters.iter().copied();
        match self.version {
            Version::V3 => {
                let packet = v3_1_1::Unsubscribe::builder().packet_id(id).entries(filters);
                put(packet.and_then(|packet| packet.build()), out);
            }
            Version::V5 => {
                let packet = v5_0::Unsubscribe::builder().packet_id(id).entries(filters);
                put(packet.and_then(|packet| packet.build()), out);
            }
        }
    }

    pub fn acknowledge(self, id: u16, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => put(v3_1_1::Puback::builder().packet_id(id).build(), out),
            Version::V5 => put(v5_0::Puback::builder().packet_id(id).build(), out),
        }
    }

    pub fn ping(self, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => put(v3_1_1::Pingreq::builder().build(), out),
            Version::V5 => put(v5_0::Pingreq::builder().build(), out),
        }
    }

    pub fn disconnect(self, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => put(v3_1_1::Disconnect::builder().build(), out),
            Version::V5 => {
                put(v5_0::Disconnect::builder().reason_code(DisconnectReasonCode::NormalDisconnection).build(), out);
            }
        }
    }
}

fn connect_v3(introduction: &Introduction<'_>) -> Result<v3_1_1::Connect, MqttError> {
    let mut packet = v3_1_1::Connect::builder().client_id(introduction.client_id)?.clean_session(true);
    if let Some((username, password)) = introduction.login {
        packet = packet.user_name(username)?;
        if let Some(password) = password {
            packet = packet.password(password.as_bytes().to_vec())?;
        }
    }
    if let Some(will) = introduction.will {
        packet = packet.will_message(will.topic.as_str(), will.payload.clone(), Qos::AtLeastOnce, will.retain)?;
    }
    packet.keep_alive(introduction.keep_alive).build()
}

fn connect_v5(introduction: &Introduction<'_>) -> Result<v5_0::Connect, MqttError> {
    let mut packet = v5_0::Connect::builder().client_id(introduction.client_id)?.clean_start(true);
    if let Some((username, password)) = introduction.login {
        packet = packet.user_name(username)?;
        if let Some(password) = password {
            packet = packet.password(password.as_bytes().to_vec())?;
        }
    }
    if let Some(will) = introduction.will {
        packet = packet.will_message(will.topic.as_str(), will.payload.clone(), Qos::AtLeastOnce, will.retain)?;
        packet = packet.will_props(to_properties(&will.properties)?);
    }
    let mut properties = to_properties(introduction.properties)?;
    properties.push(MaximumPacketSize::new(clamp(introduction.packet_bytes))?.into());
    packet.keep_alive(introduction.keep_alive).props(properties).build()
}

fn publish_v3(message: &MqttMessage, id: Option<u16>) -> Result<v3_1_1::Publish, MqttError> {
    let mut packet = v3_1_1::Publish::builder().topic_name(message.topic.as_str())?.retain(message.retain);
    if let Some(id) = id {
        packet = packet.qos(Qos::AtLeastOnce).packet_id(id);
    }
    packet.payload(&message.payload[..]).build()
}

fn publish_v5(message: &MqttMessage, id: Option<u16>) -> Result<v5_0::Publish, MqttError> {
    let mut packet = v5_0::Publish::builder().topic_name(message.topic.as_str())?.retain(message.retain);
    if let Some(id) = id {
        packet = packet.qos(Qos::AtLeastOnce).packet_id(id);
    }
    packet.payload(&message.payload[..]).props(to_properties(&message.properties)?).build()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VERSIONS: [Version; 2] = [Version::V3, Version::V5];

    fn read_all(version: Version, bytes: &[u8], limit: usize) -> Result<Vec<BrokerPacket>, String> {
        let (mut reader, mut rest, mut packets) = (BrokerReader::new(version, limit), bytes, Vec::new());
        while let Some((packet, _)) = reader.read(&mut rest)? {
            packets.push(packet);
        }
        Ok(packets)
    }

    fn message(version: Version, topic: &str, payload: &[u8]) -> MqttMessage {
        let properties = match version {
            Version::V3 => Vec::new(),
            Version::V5 => vec![("MCP-MQTT-CLIENT-ID".to_owned(), "c".to_owned())],
        };
        MqttMessage { topic: topic.to_owned(), payload: payload.to_vec(), retain: true, properties }
    }

    #[test]
    fn a_message_is_read_as_it_was_written_and_too_large_a_one_is_refused() {
        for version in VERSIONS {
            let (first, second) = (message(version, "$mcp-rpc/a/b", b"{}"), message(version, "t", &[b'x'; 5000]));
            let mut bytes = Vec::new();
            ClientWriter { version }.publish(&first, None, &mut bytes);
            ClientWriter { version }.publish(&second, Some(7), &mut bytes);
            let expected = vec![BrokerPacket::Publish(first), BrokerPacket::Publish(second)];
            assert_eq!(read_all(version, &bytes, 1 << 20), Ok(expected));
            assert!(read_all(version, &bytes, 1024).is_err());
        }
    }

    proptest! {
        #[test]
        fn whatever_a_broker_sends_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for version in VERSIONS {
                let _ = read_all(version, &bytes, 100);
            }
        }

        #[test]
        fn a_broken_message_is_read_or_refused(at in 0usize..60, byte in any::<u8>()) {
            for version in VERSIONS {
                let mut bytes = Vec::new();
                let message = message(version, "sinew/boards/aa/up", br#"{"type":"hello"}"#);
                ClientWriter { version }.publish(&message, Some(1), &mut bytes);
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
                let _ = read_all(version, &bytes, 1 << 16);
            }
        }
    }
}
