//! MQTT 5 as a client of a broker speaks it: packets of a broker come out, packets of a client go in.
//!
//! The other direction, where Sinew is the server, is `crate::mqtt::codec`.

use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{PacketBuildResult, PacketBuilder, PacketData, RawPacket};
use mqtt_protocol_core::mqtt::packet::v5_0::{
    Connack, Connect, Disconnect, Pingreq, Puback, Publish, Suback, Subscribe, Unsubscribe,
};
use mqtt_protocol_core::mqtt::packet::{
    MaximumPacketSize, Property, Qos, RetainHandling, SubEntry, SubOpts, UserProperty,
};
use mqtt_protocol_core::mqtt::result_code::{DisconnectReasonCode, MqttError};

use super::Credentials;
use crate::mqtt::codec::{clamp, put};

/// What a broker sends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    Connack(Box<Welcome>),
    Publish(Message),
    /// How a message of ours fared; codes of 0x80 and more are failures.
    Puback {
        id: u16,
        code: u8,
    },
    /// How each wish of a subscription fared.
    Suback {
        id: u16,
        codes: Vec<u8>,
    },
    /// Whatever only shows that the broker is there.
    KeepAlive,
    Disconnect {
        code: u8,
    },
}

/// What a broker says to a newcomer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Welcome {
    /// 0 for a welcome.
    pub(crate) code: u8,
    /// Seconds, where the broker wants others than we proposed.
    pub(crate) keep_alive: Option<u16>,
    /// The largest packet the broker takes, where it says so.
    pub(crate) packet_bytes: Option<u32>,
    pub(crate) properties: Vec<(String, String)>,
}

/// A message under a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) topic: String,
    pub(crate) payload: Vec<u8>,
    /// From a broker: it was kept since before we asked. To a broker: keep it.
    pub(crate) retain: bool,
    pub(crate) properties: Vec<(String, String)>,
}

/// A wish to hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) filter: String,
    /// Not what we said ourselves.
    pub(crate) no_local: bool,
}

/// How a client introduces itself.
pub(crate) struct Introduction<'a> {
    pub(crate) client_id: &'a str,
    pub(crate) credentials: Option<&'a Credentials>,
    /// Seconds.
    pub(crate) keep_alive: u16,
    /// The largest packet that is read.
    pub(crate) packet_bytes: usize,
    /// What the broker says for us when we vanish.
    pub(crate) will: Option<&'a Message>,
    pub(crate) properties: &'a [(String, String)],
}

/// Finds packets in a stream of bytes.
pub(crate) struct Reader {
    builder: PacketBuilder,
}

impl Reader {
    /// A packet larger than `limit` is refused before room is made for it.
    pub(crate) fn new(limit: usize) -> Reader {
        Reader { builder: PacketBuilder::with_maximum_packet_size(clamp(limit)) }
    }

    /// Takes bytes from the front until a packet is whole; `None` when more are needed. An error says what
    /// is wrong with what the broker sent.
    pub(crate) fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<(Packet, Option<u16>)>, String> {
        let wrong = |error: MqttError| format!("the broker broke the MQTT protocol: {error:?}");
        let mut cursor = Cursor::new(*bytes);
        while cursor.position() < bytes.len() as u64 {
            match self.builder.feed(&mut cursor) {
                PacketBuildResult::Complete(raw) => {
                    *bytes = bytes.get(cursor.position() as usize..).unwrap_or_default();
                    return parse(&raw).map(Some).map_err(wrong);
                }
                PacketBuildResult::Incomplete => {}
                PacketBuildResult::Error(error) => return Err(wrong(error)),
            }
        }
        *bytes = &[];
        Ok(None)
    }
}

/// A packet, and the id it is to be acknowledged with.
fn parse(raw: &RawPacket) -> Result<(Packet, Option<u16>), MqttError> {
    let packet = match (raw.packet_type(), &raw.data) {
        (2, _) => Packet::Connack(Box::new(welcome(raw.parse_exact(Connack::parse)?))),
        (3, PacketData::Publish(data)) => {
            let (packet, _) = Publish::parse(raw.flags(), data.clone())?;
            // We ask for neither; the first would need memory for ever, the second comes of no wish of ours.
            if packet.topic_name().is_empty() || packet.qos() == Qos::ExactlyOnce {
                return Err(MqttError::ProtocolError);
            }
            let message = Message {
                topic: packet.topic_name().to_owned(),
                payload: packet.payload().as_slice().to_vec(),
                retain: packet.retain(),
                properties: user_properties(packet.props()),
            };
            return Ok((Packet::Publish(message), packet.packet_id()));
        }
        (4, _) => {
            let packet = raw.parse_exact(Puback::parse)?;
            Packet::Puback { id: packet.packet_id(), code: packet.reason_code().map_or(0, |code| code as u8) }
        }
        (9, _) => {
            let packet = raw.parse_exact(Suback::parse)?;
            let codes = packet.reason_codes().into_iter().map(|code| code as u8).collect();
            Packet::Suback { id: packet.packet_id(), codes }
        }
        (11 | 13, _) => Packet::KeepAlive,
        (14, _) => {
            let code = raw.parse_exact(Disconnect::parse)?.reason_code();
            Packet::Disconnect { code: code.map_or(0, |code| code as u8) }
        }
        _ => return Err(MqttError::ProtocolError),
    };
    Ok((packet, None))
}

fn welcome(packet: Connack) -> Welcome {
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

// What a client sends is appended to `out`. Nothing is appended where the codec finds no words for it, which only a
// text longer than 64 KiB could bring about.

pub(crate) fn connect(introduction: &Introduction<'_>, out: &mut Vec<u8>) {
    let build = || {
        let mut packet = Connect::builder().client_id(introduction.client_id)?.clean_start(true);
        if let Some(Credentials { username, password }) = introduction.credentials {
            packet = packet.user_name(username.as_str())?;
            if let Some(password) = password {
                packet = packet.password(password.clone().into_bytes())?;
            }
        }
        if let Some(will) = introduction.will {
            packet = packet.will_message(will.topic.as_str(), will.payload.clone(), Qos::AtLeastOnce, will.retain)?;
            packet = packet.will_props(to_properties(&will.properties)?);
        }
        let mut properties = to_properties(introduction.properties)?;
        properties.push(MaximumPacketSize::new(clamp(introduction.packet_bytes))?.into());
        packet.keep_alive(introduction.keep_alive).props(properties).build()
    };
    put(build(), out);
}

/// With an id, the broker says how the message fared.
pub(crate) fn publish(message: &Message, id: Option<u16>, out: &mut Vec<u8>) {
    let build = || {
        let mut packet = Publish::builder().topic_name(message.topic.as_str())?.retain(message.retain);
        if let Some(id) = id {
            packet = packet.qos(Qos::AtLeastOnce).packet_id(id);
        }
        packet.payload(&message.payload[..]).props(to_properties(&message.properties)?).build()
    };
    put(build(), out);
}

/// Messages come at most once: Mosquitto passes any number of retained ones on in that way, and with more ado only
/// as many as its queue holds, which are 1,000 unless it is told otherwise.
pub(crate) fn subscribe(id: u16, wishes: &[Wish], out: &mut Vec<u8>) {
    let build = || {
        let entries = wishes.iter().map(|wish| {
            let options =
                SubOpts::new().set_qos(Qos::AtMostOnce).set_nl(wish.no_local).set_rh(RetainHandling::SendRetained);
            SubEntry::new(wish.filter.as_str(), options)
        });
        Subscribe::builder().packet_id(id).entries(entries.collect::<Result<Vec<_>, _>>()?).build()
    };
    put(build(), out);
}

pub(crate) fn unsubscribe(id: u16, filters: &[&str], out: &mut Vec<u8>) {
    put(Unsubscribe::builder().packet_id(id).entries(filters.iter().copied()).and_then(|packet| packet.build()), out);
}

pub(crate) fn acknowledge(id: u16, out: &mut Vec<u8>) {
    put(Puback::builder().packet_id(id).build(), out);
}

pub(crate) fn ping(out: &mut Vec<u8>) {
    put(Pingreq::builder().build(), out);
}

pub(crate) fn disconnect(out: &mut Vec<u8>) {
    put(Disconnect::builder().reason_code(DisconnectReasonCode::NormalDisconnection).build(), out);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_all(bytes: &[u8], limit: usize) -> Result<Vec<Packet>, String> {
        let (mut reader, mut rest, mut packets) = (Reader::new(limit), bytes, Vec::new());
        while let Some((packet, _)) = reader.read(&mut rest)? {
            packets.push(packet);
        }
        Ok(packets)
    }

    fn message(topic: &str, payload: &[u8]) -> Message {
        let properties = vec![("MCP-MQTT-CLIENT-ID".to_owned(), "c".to_owned())];
        Message { topic: topic.to_owned(), payload: payload.to_vec(), retain: true, properties }
    }

    #[test]
    fn a_message_is_read_as_it_was_written_and_too_large_a_one_is_refused() {
        let (first, second) = (message("$mcp-rpc/a/b", b"{}"), message("t", &[b'x'; 5000]));
        let mut bytes = Vec::new();
        publish(&first, None, &mut bytes);
        publish(&second, Some(7), &mut bytes);
        let expected = vec![Packet::Publish(first), Packet::Publish(second)];
        assert_eq!(read_all(&bytes, 1 << 20), Ok(expected));
        assert!(read_all(&bytes, 1024).is_err());
    }

    proptest! {
        #[test]
        fn whatever_a_broker_sends_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_all(&bytes, 100);
        }

        #[test]
        fn a_broken_message_is_read_or_refused(at in 0usize..60, byte in any::<u8>()) {
            let mut bytes = Vec::new();
            publish(&message("sinew/boards/aa/up", br#"{"type":"hello"}"#), Some(1), &mut bytes);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            let _ = read_all(&bytes, 1 << 16);
        }
    }
}
