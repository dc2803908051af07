//! MQTT as bytes, where Sinew is the server; as a client of brokers it speaks with `crate::broker::codec`. No other module
//! knows the codec crate.
//!
//! Packets of a client come out, packets of a server go in, in both versions that are in use (3.1.1 and
//! 5). Which packet may come when is decided by the neighbours.

use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{PacketBuildResult, PacketBuilder, PacketData, RawPacket};
use mqtt_protocol_core::mqtt::packet::{
    GenericPacketTrait, MaximumPacketSize, MaximumQos, Property, Qos, ReasonString, RetainAvailable, v3_1_1, v5_0,
};
use mqtt_protocol_core::mqtt::result_code::{
    ConnectReasonCode, ConnectReturnCode, DisconnectReasonCode, MqttError, SubackReasonCode, SubackReturnCode,
    UnsubackReasonCode,
};

use crate::pipe::CloseReason;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V3,
    V5,
}

/// What a client sends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    Connect(Box<Connect>),
    Publish {
        payload: Vec<u8>,
        /// To be acknowledged with, where the quality of service asks for it.
        id: Option<u16>,
    },
    /// How many topics are wanted.
    Subscribe {
        id: u16,
        topics: usize,
    },
    Unsubscribe {
        id: u16,
        topics: usize,
    },
    Ping,
    Disconnect,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Connect {
    pub(crate) version: Version,
    pub(crate) client_id: String,
    pub(crate) password: Option<String>,
    /// Seconds; 0 for none.
    pub(crate) keep_alive: u16,
    /// The largest packet the client takes, where it says so.
    pub(crate) packet_bytes: Option<u32>,
}

/// Why what a client sent cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    TooLarge,
    /// Exactly-once delivery, which nothing here needs.
    Qos,
    Version,
    Malformed(String),
}

impl From<MqttError> for Problem {
    fn from(error: MqttError) -> Problem {
        match error {
            MqttError::PacketTooLarge => Problem::TooLarge,
            MqttError::UnsupportedProtocolVersion => Problem::Version,
            error => Problem::Malformed(format!("{error:?}")),
        }
    }
}

/// Why a client is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    ClientId,
    Credentials,
    Full,
    TooOften,
    Version,
}

/// Finds packets in a stream of bytes.
pub(crate) struct Reader {
    builder: PacketBuilder,
    version: Option<Version>,
}

impl Reader {
    /// A packet larger than `limit` is refused before room is made for it.
    pub(crate) fn new(limit: usize) -> Reader {
        Reader { builder: PacketBuilder::with_maximum_packet_size(clamp(limit)), version: None }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.builder.set_maximum_packet_size(clamp(limit));
    }

    /// Takes bytes from the front until a packet is whole; `None` when more are needed.
    pub(crate) fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<Packet>, Problem> {
        let mut cursor = Cursor::new(*bytes);
        while cursor.position() < bytes.len() as u64 {
            match self.builder.feed(&mut cursor) {
                PacketBuildResult::Complete(raw) => {
                    *bytes = bytes.get(cursor.position() as usize..).unwrap_or_default();
                    return self.parse(raw).map(Some);
                }
                PacketBuildResult::Incomplete => {}
                PacketBuildResult::Error(error) => return Err(error.into()),
            }
        }
        *bytes = &[];
        Ok(None)
    }

    fn parse(&mut self, raw: RawPacket) -> Result<Packet, Problem> {
        let wrong = |what: &str| Err(Problem::Malformed(what.to_owned()));
        let (kind, flags, data) = (raw.packet_type(), raw.flags(), raw.data_as_slice());
        let flags_expected = if matches!(kind, 8 | 10) { 2 } else { 0 };
        if kind != 3 && flags != flags_expected {
            return wrong("reserved bits are set");
        }
        let version = match (kind, self.version) {
            (1, None) => match data.get(6) {
                Some(4) => Version::V3,
                Some(5) => Version::V5,
                Some(_) => return Err(Problem::Version),
                None => return wrong("the first packet is cut short"),
            },
            (1, Some(_)) => return wrong("a second CONNECT"),
            (_, Some(version)) => version,
            (_, None) => return wrong("the first packet must be CONNECT"),
        };
        self.version = Some(version);
        match (kind, version) {
            (1, Version::V3) => {
                let packet = raw.parse_exact(v3_1_1::Connect::parse)?;
                Ok(Packet::Connect(Box::new(Connect {
                    version,
                    client_id: packet.client_id().to_owned(),
                    password: packet.password().map(text).transpose()?,
                    keep_alive: packet.keep_alive(),
                    packet_bytes: None,
                })))
            }
            (1, Version::V5) => {
                let packet = raw.parse_exact(v5_0::Connect::parse)?;
                let packet_bytes = packet.props().iter().find_map(|property| match property {
                    Property::MaximumPacketSize(size) => Some(size.val()),
                    _ => None,
                });
                Ok(Packet::Connect(Box::new(Connect {
                    version,
                    client_id: packet.client_id().to_owned(),
                    password: packet.password().map(text).transpose()?,
                    keep_alive: packet.keep_alive(),
                    packet_bytes,
                })))
            }
            (3, _) => publish(raw, version),
            (8, Version::V3) => {
                let packet = raw.parse_exact(v3_1_1::Subscribe::parse)?;
                Ok(Packet::Subscribe { id: packet.packet_id(), topics: packet.entries().len() })
            }
            (8, Version::V5) => {
                let packet = raw.parse_exact(v5_0::Subscribe::parse)?;
                Ok(Packet::Subscribe { id: packet.packet_id(), topics: packet.entries().len() })
            }
            (10, Version::V3) => {
                let packet = raw.parse_exact(v3_1_1::Unsubscribe::parse)?;
                Ok(Packet::Unsubscribe { id: packet.packet_id(), topics: packet.entries().len() })
            }
            (10, Version::V5) => {
                let packet = raw.parse_exact(v5_0::Unsubscribe::parse)?;
                Ok(Packet::Unsubscribe { id: packet.packet_id(), topics: packet.entries().len() })
            }
            (12, _) if data.is_empty() => Ok(Packet::Ping),
            // Why a client goes is its own affair.
            (14, _) => Ok(Packet::Disconnect),
            _ => wrong(&format!("a packet of type {kind} does not belong here")),
        }
    }
}

fn publish(raw: RawPacket, version: Version) -> Result<Packet, Problem> {
    let PacketData::Publish(data) = &raw.data else {
        return Err(Problem::Malformed("a PUBLISH is not one".to_owned()));
    };
    let (qos, id, payload) = match version {
        Version::V3 => {
            let (packet, _) = v3_1_1::Publish::parse(raw.flags(), data.clone())?;
            (packet.qos(), packet.packet_id(), packet.payload().as_slice().to_vec())
        }
        Version::V5 => {
            let (packet, _) = v5_0::Publish::parse(raw.flags(), data.clone())?;
            (packet.qos(), packet.packet_id(), packet.payload().as_slice().to_vec())
        }
    };
    match qos {
        Qos::AtMostOnce => Ok(Packet::Publish { payload, id: None }),
        Qos::AtLeastOnce => Ok(Packet::Publish { payload, id }),
        Qos::ExactlyOnce => Err(Problem::Qos),
    }
}

fn text(bytes: &[u8]) -> Result<String, Problem> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Problem::Malformed("the password is not UTF-8".to_owned()))
}

pub(crate) fn clamp(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

/// What a server sends, appended to `out`. Nothing is appended where the codec finds no words for it,
/// which only a topic or a reason longer than 64 KiB could bring about.
pub(crate) struct Writer {
    pub(crate) version: Version,
}

impl Writer {
    /// `limit` is the largest packet that will be read.
    pub(crate) fn accept(&self, limit: usize, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => {
                let packet = v3_1_1::Connack::builder().session_present(false).return_code(ConnectReturnCode::Accepted);
                put(packet.build(), out);
            }
            Version::V5 => {
                let properties = || {
                    Ok::<_, MqttError>(vec![
                        MaximumQos::new(1)?.into(),
                        RetainAvailable::new(0)?.into(),
                        MaximumPacketSize::new(clamp(limit))?.into(),
                    ])
                };
                let packet = v5_0::Connack::builder().session_present(false).reason_code(ConnectReasonCode::Success);
                put(properties().and_then(|properties| packet.props(properties).build()), out);
            }
        }
    }

    pub(crate) fn refuse(&self, refusal: Refusal, reason: &str, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => {
                let code = match refusal {
                    Refusal::ClientId => ConnectReturnCode::IdentifierRejected,
                    Refusal::Credentials => ConnectReturnCode::BadUserNameOrPassword,
                    Refusal::Full | Refusal::TooOften => ConnectReturnCode::ServerUnavailable,
                    Refusal::Version => ConnectReturnCode::UnacceptableProtocolVersion,
                };
                put(v3_1_1::Connack::builder().session_present(false).return_code(code).build(), out);
            }
            Version::V5 => {
                let code = match refusal {
                    Refusal::ClientId => ConnectReasonCode::ClientIdentifierNotValid,
                    Refusal::Credentials => ConnectReasonCode::BadUserNameOrPassword,
                    Refusal::Full => ConnectReasonCode::ServerBusy,
                    Refusal::TooOften => ConnectReasonCode::ConnectionRateExceeded,
                    Refusal::Version => ConnectReasonCode::UnsupportedProtocolVersion,
                };
                let packet = v5_0::Connack::builder().session_present(false).reason_code(code);
                put(ReasonString::new(reason).and_then(|reason| packet.props(vec![reason.into()]).build()), out);
            }
        }
    }

    /// Delivers once at most, as everything here does.
    pub(crate) fn publish(&self, topic: &str, text: String, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => {
                put(v3_1_1::Publish::builder().topic_name(topic).and_then(|packet| packet.payload(text).build()), out)
            }
            Version::V5 => {
                put(v5_0::Publish::builder().topic_name(topic).and_then(|packet| packet.payload(text).build()), out)
            }
        }
    }

    pub(crate) fn acknowledge(&self, id: u16, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => put(v3_1_1::Puback::builder().packet_id(id).build(), out),
            Version::V5 => put(v5_0::Puback::builder().packet_id(id).build(), out),
        }
    }

    /// Every topic is granted, and changes nothing: a board hears what is meant for it in any case.
    pub(crate) fn grant(&self, id: u16, topics: usize, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => {
                let codes = vec![SubackReturnCode::SuccessMaximumQos0; topics];
                put(v3_1_1::Suback::builder().packet_id(id).return_codes(codes).build(), out);
            }
            Version::V5 => {
                let codes = vec![SubackReasonCode::GrantedQos0; topics];
                put(v5_0::Suback::builder().packet_id(id).reason_codes(codes).build(), out);
            }
        }
    }

    pub(crate) fn release(&self, id: u16, topics: usize, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => put(v3_1_1::Unsuback::builder().packet_id(id).build(), out),
            Version::V5 => {
                let codes = vec![UnsubackReasonCode::Success; topics];
                put(v5_0::Unsuback::builder().packet_id(id).reason_codes(codes).build(), out);
            }
        }
    }

    pub(crate) fn pong(&self, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => put(v3_1_1::Pingresp::builder().build(), out),
            Version::V5 => put(v5_0::Pingresp::builder().build(), out),
        }
    }

    /// Only version 5 lets a server say why it goes.
    pub(crate) fn disconnect(&self, farewell: CloseReason, reason: &str, out: &mut Vec<u8>) {
        if self.version == Version::V3 {
            return;
        }
        let code = match farewell {
            CloseReason::Normal => DisconnectReasonCode::NormalDisconnection,
            CloseReason::Closing => DisconnectReasonCode::ServerShuttingDown,
            CloseReason::Replaced => DisconnectReasonCode::SessionTakenOver,
            CloseReason::Silent => DisconnectReasonCode::KeepAliveTimeout,
            CloseReason::Policy => DisconnectReasonCode::AdministrativeAction,
            CloseReason::TooLarge => DisconnectReasonCode::PacketTooLarge,
            CloseReason::NotText => DisconnectReasonCode::PayloadFormatInvalid,
            CloseReason::Protocol => DisconnectReasonCode::MalformedPacket,
            CloseReason::Qos => DisconnectReasonCode::QosNotSupported,
        };
        let packet = v5_0::Disconnect::builder().reason_code(code);
        put(ReasonString::new(reason).and_then(|reason| packet.props(vec![reason.into()]).build()), out);
    }
}

pub(crate) fn put<P: GenericPacketTrait>(packet: Result<P, MqttError>, out: &mut Vec<u8>) {
    match packet {
        Ok(packet) => out.extend_from_slice(&packet.to_continuous_buffer()),
        Err(error) => tracing::warn!(?error, "an MQTT packet could not be written"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(version: Version) -> Vec<u8> {
        let mut out = Vec::new();
        match version {
            Version::V3 => put(
                v3_1_1::Connect::builder()
                    .client_id("aa:bb")
                    .and_then(|packet| packet.user_name("u"))
                    .and_then(|packet| packet.password(b"secret".to_vec()))
                    .and_then(|packet| packet.clean_session(true).keep_alive(240).build()),
                &mut out,
            ),
            Version::V5 => put(
                v5_0::Connect::builder()
                    .client_id("aa:bb")
                    .and_then(|packet| packet.user_name("u"))
                    .and_then(|packet| packet.password(b"secret".to_vec()))
                    .and_then(|packet| packet.clean_start(true).keep_alive(240).build()),
                &mut out,
            ),
        }
        out
    }

    fn subscribe(version: Version, out: &mut Vec<u8>) {
        use mqtt_protocol_core::mqtt::packet::{SubEntry, SubOpts};
        let entry = || vec![SubEntry::new("devices/#", SubOpts::new()).expect("a topic")];
        match version {
            Version::V3 => put(v3_1_1::Subscribe::builder().packet_id(7u16).entries(entry()).build(), out),
            Version::V5 => put(v5_0::Subscribe::builder().packet_id(7u16).entries(entry()).build(), out),
        }
    }

    fn read_all(reader: &mut Reader, mut bytes: &[u8]) -> Result<Vec<Packet>, Problem> {
        let mut packets = Vec::new();
        while let Some(packet) = reader.read(&mut bytes)? {
            packets.push(packet);
        }
        Ok(packets)
    }

    #[test]
    fn packets_come_out_however_the_bytes_are_cut() {
        for version in [Version::V3, Version::V5] {
            let mut bytes = connect(version);
            Writer { version }.publish("device-server", "{}".to_owned(), &mut bytes);
            subscribe(version, &mut bytes);
            bytes.extend([0xc0, 0, 0xe0, 0]);
            for size in [1, 2, 3, bytes.len()] {
                let mut reader = Reader::new(4096);
                let cut = bytes.chunks(size).map(|piece| read_all(&mut reader, piece).expect("good packets"));
                let packets: Vec<Packet> = cut.flatten().collect();
                let [Packet::Connect(connect), publish, subscribe, Packet::Ping, Packet::Disconnect] = &packets[..]
                else {
                    panic!("{packets:?}")
                };
                assert_eq!((connect.client_id.as_str(), connect.password.as_deref()), ("aa:bb", Some("secret")));
                assert_eq!((connect.version, connect.keep_alive), (version, 240));
                assert_eq!(*publish, Packet::Publish { payload: b"{}".to_vec(), id: None });
                assert_eq!(*subscribe, Packet::Subscribe { id: 7, topics: 1 });
            }
        }
    }

    #[test]
    fn what_is_no_mqtt_is_refused_with_a_reason() {
        let read = |bytes: &[u8]| read_all(&mut Reader::new(64), bytes);
        assert!(matches!(read(b"GET / HTTP/1.1\r\n\r\n"), Err(Problem::TooLarge | Problem::Malformed(_))));
        assert!(matches!(read(&[0xc0, 0]), Err(Problem::Malformed(_))), "CONNECT comes first");
        assert_eq!(read(&[0x10, 8, 0, 6, b'M', b'Q', b'I', b's', b'd', b'p']), Err(Problem::Version));
        assert_eq!(read(&[0x10, 0xff, 0xff, 0x7f]), Err(Problem::TooLarge));
        let mut twice = connect(Version::V3);
        twice.extend(connect(Version::V3));
        assert!(matches!(read(&twice), Err(Problem::Malformed(_))));
        let mut qos2 = connect(Version::V3);
        qos2.extend([0x34, 6, 0, 1, b't', 0, 1, b'x']);
        assert_eq!(read(&qos2), Err(Problem::Qos));
        let mut qos1 = connect(Version::V3);
        qos1.extend([0x32, 6, 0, 1, b't', 0, 9, b'x']);
        assert_eq!(read(&qos1).expect("fine")[1], Packet::Publish { payload: b"x".to_vec(), id: Some(9) });
    }

    /// The codec is not ours, but a panic in it would be.
    #[test]
    fn damaged_packets_never_panic() {
        let mut state = 1u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for round in 0..40_000 {
            let version = if round % 2 == 0 { Version::V3 } else { Version::V5 };
            let mut bytes = connect(version);
            let whole = bytes.len();
            Writer { version }.publish("t", "{\"a\":1}".to_owned(), &mut bytes);
            subscribe(version, &mut bytes);
            // Every other time the first packet stays whole, so that what follows is reached.
            let from = if round % 4 < 2 { 0 } else { whole };
            for _ in 0..=random(4) {
                let at = from + random(bytes.len() - from);
                bytes[at] = random(256) as u8;
            }
            let _ = read_all(&mut Reader::new(256), &bytes);
        }
    }
}
