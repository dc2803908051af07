//! The server's side: packets of a client come out, packets of a server go in. Which packet may come when is decided by
//! the owner of the connection.

use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{PacketBuildResult, PacketBuilder, PacketData, RawPacket};
use mqtt_protocol_core::mqtt::packet::{
    MaximumPacketSize, MaximumQos, Property, Qos, ReasonString, RetainAvailable, v3_1_1, v5_0,
};
use mqtt_protocol_core::mqtt::result_code::{
    ConnectReasonCode, ConnectReturnCode, DisconnectReasonCode, MqttError, SubackReasonCode, SubackReturnCode,
    UnsubackReasonCode,
};

use crate::{Version, clamp, put};

/// What a client sends.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientPacket {
    Connect(Box<ConnectRequest>),
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
pub struct ConnectRequest {
    pub version: Version,
    pub client_id: String,
    pub password: Option<String>,
    /// Seconds; 0 for none.
    pub keep_alive: u16,
    /// The largest packet the client takes, where it says so.
    pub packet_bytes: Option<u32>,
}

/// Why what a client sent cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadProblem {
    TooLarge,
    /// Exactly-once delivery, which is not supported.
    Qos,
    Version,
    Malformed(String),
}

impl From<MqttError> for ReadProblem {
    fn from(error: MqttError) -> ReadProblem {
        match error {
            MqttError::PacketTooLarge => ReadProblem::TooLarge,
            MqttError::UnsupportedProtocolVersion => ReadProblem::Version,
            error => ReadProblem::Malformed(format!("{error:?}")),
        }
    }
}

/// Why a client is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectRefusal {
    ClientId,
    Credentials,
    Full,
    TooOften,
    Version,
}

/// Why a server disconnects a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectCode {
    Normal,
    ShuttingDown,
    /// The same client connected again.
    TakenOver,
    KeepAliveTimeout,
    Administrative,
    TooLarge,
    /// A payload is not text.
    NotText,
    Malformed,
    Qos,
}

/// Finds packets in a stream of bytes.
pub struct ClientReader {
    builder: PacketBuilder,
    version: Option<Version>,
}

impl ClientReader {
    /// A packet larger than `limit` is refused before memory is reserved for it.
    pub fn new(limit: usize) -> ClientReader {
        ClientReader { builder: PacketBuilder::with_maximum_packet_size(clamp(limit)), version: None }
    }

    pub fn set_limit(&mut self, limit: usize) {
        self.builder.set_maximum_packet_size(clamp(limit));
    }

    /// Takes bytes from the front until a packet is whole; `None` when more are needed.
    pub fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<ClientPacket>, ReadProblem> {
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

    fn parse(&mut self, raw: RawPacket) -> Result<ClientPacket, ReadProblem> {
        let wrong = |what: &str| Err(ReadProblem::Malformed(what.to_owned()));
        let (kind, flags, data) = (raw.packet_type(), raw.flags(), raw.data_as_slice());
        let flags_expected = if matches!(kind, 8 | 10) { 2 } else { 0 };
        if kind != 3 && flags != flags_expected {
            return wrong("reserved bits are set");
        }
        let version = match (kind, self.version) {
            (1, None) => match data.get(6) {
                Some(4) => Version::V3,
                Some(5) => Version::V5,
                Some(_) => return Err(ReadProblem::Version),
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
                Ok(ClientPacket::Connect(Box::new(ConnectRequest {
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
                Ok(ClientPacket::Connect(Box::new(ConnectRequest {
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
                Ok(ClientPacket::Subscribe { id: packet.packet_id(), topics: packet.entries().len() })
            }
            (8, Version::V5) => {
                let packet = raw.parse_exact(v5_0::Subscribe::parse)?;
                Ok(ClientPacket::Subscribe { id: packet.packet_id(), topics: packet.entries().len() })
            }
            (10, Version::V3) => {
                let packet = raw.parse_exact(v3_1_1::Unsubscribe::parse)?;
                Ok(ClientPacket::Unsubscribe { id: packet.packet_id(), topics: packet.entries().len() })
            }
            (10, Version::V5) => {
                let packet = raw.parse_exact(v5_0::Unsubscribe::parse)?;
                Ok(ClientPacket::Unsubscribe { id: packet.packet_id(), topics: packet.entries().len() })
            }
            (12, _) if data.is_empty() => Ok(ClientPacket::Ping),
            (14, _) => Ok(ClientPacket::Disconnect),
            _ => wrong(&format!("a packet of type {kind} does not belong here")),
        }
    }
}

fn publish(raw: RawPacket, version: Version) -> Result<ClientPacket, ReadProblem> {
    let PacketData::Publish(data) = &raw.data else {
        return Err(ReadProblem::Malformed("a PUBLISH is not one".to_owned()));
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
        Qos::AtMostOnce => Ok(ClientPacket::Publish { payload, id: None }),
        Qos::AtLeastOnce => Ok(ClientPacket::Publish { payload, id }),
        Qos::ExactlyOnce => Err(ReadProblem::Qos),
    }
}

fn text(bytes: &[u8]) -> Result<String, ReadProblem> {
    String::from_utf8(bytes.to_vec()).map_err(|_| ReadProblem::Malformed("the password is not UTF-8".to_owned()))
}

/// What a server sends, appended to `out`.
pub struct ServerWriter {
    pub version: Version,
}

impl ServerWriter {
    /// `limit` is the largest packet that will be read.
    pub fn accept(&self, limit: usize, out: &mut Vec<u8>) {
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

    pub fn refuse(&self, refusal: ConnectRefusal, reason: &str, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => {
                let code = match refusal {
                    ConnectRefusal::ClientId => ConnectReturnCode::IdentifierRejected,
                    ConnectRefusal::Credentials => ConnectReturnCode::BadUserNameOrPassword,
                    ConnectRefusal::Full | ConnectRefusal::TooOften => ConnectReturnCode::ServerUnavailable,
                    ConnectRefusal::Version => ConnectReturnCode::UnacceptableProtocolVersion,
                };
                put(v3_1_1::Connack::builder().session_present(false).return_code(code).build(), out);
            }
            Version::V5 => {
                let code = match refusal {
                    ConnectRefusal::ClientId => ConnectReasonCode::ClientIdentifierNotValid,
                    ConnectRefusal::Credentials => ConnectReasonCode::BadUserNameOrPassword,
                    ConnectRefusal::Full => ConnectReasonCode::ServerBusy,
                    ConnectRefusal::TooOften => ConnectReasonCode::ConnectionRateExceeded,
                    ConnectRefusal::Version => ConnectReasonCode::UnsupportedProtocolVersion,
                };
                let packet = v5_0::Connack::builder().session_present(false).reason_code(code);
                put(ReasonString::new(reason).and_then(|reason| packet.props(vec![reason.into()]).build()), out);
            }
        }
    }

    /// Delivers at most once.
    pub fn publish(&self, topic: &str, text: String, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => {
                put(v3_1_1::Publish::builder().topic_name(topic).and_then(|packet| packet.payload(text).build()), out)
            }
            Version::V5 => {
                put(v5_0::Publish::builder().topic_name(topic).and_then(|packet| packet.payload(text).build()), out)
            }
        }
    }

    pub fn acknowledge(&self, id: u16, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => put(v3_1_1::Puback::builder().packet_id(id).build(), out),
            Version::V5 => put(v5_0::Puback::builder().packet_id(id).build(), out),
        }
    }

    /// Grants every topic, which changes nothing: a board gets its messages without a subscription.
    pub fn grant(&self, id: u16, topics: usize, out: &mut Vec<u8>) {
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

    pub fn release(&self, id: u16, topics: usize, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => put(v3_1_1::Unsuback::builder().packet_id(id).build(), out),
            Version::V5 => {
                let codes = vec![UnsubackReasonCode::Success; topics];
                put(v5_0::Unsuback::builder().packet_id(id).reason_codes(codes).build(), out);
            }
        }
    }

    pub fn pong(&self, out: &mut Vec<u8>) {
        match self.version {
            Version::V3 => put(v3_1_1::Pingresp::builder().build(), out),
            Version::V5 => put(v5_0::Pingresp::builder().build(), out),
        }
    }

    /// Only version 5 lets a server say why it disconnects.
    pub fn disconnect(&self, code: DisconnectCode, reason: &str, out: &mut Vec<u8>) {
        if self.version == Version::V3 {
            return;
        }
        let code = match code {
            DisconnectCode::Normal => DisconnectReasonCode::NormalDisconnection,
            DisconnectCode::ShuttingDown => DisconnectReasonCode::ServerShuttingDown,
            DisconnectCode::TakenOver => DisconnectReasonCode::SessionTakenOver,
            DisconnectCode::KeepAliveTimeout => DisconnectReasonCode::KeepAliveTimeout,
            DisconnectCode::Administrative => DisconnectReasonCode::AdministrativeAction,
            DisconnectCode::TooLarge => DisconnectReasonCode::PacketTooLarge,
            DisconnectCode::NotText => DisconnectReasonCode::PayloadFormatInvalid,
            DisconnectCode::Malformed => DisconnectReasonCode::MalformedPacket,
            DisconnectCode::Qos => DisconnectReasonCode::QosNotSupported,
        };
        let packet = v5_0::Disconnect::builder().reason_code(code);
        put(ReasonString::new(reason).and_then(|reason| packet.props(vec![reason.into()]).build()), out);
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

    fn read_all(reader: &mut ClientReader, mut bytes: &[u8]) -> Result<Vec<ClientPacket>, ReadProblem> {
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
            ServerWriter { version }.publish("device-server", "{}".to_owned(), &mut bytes);
            subscribe(version, &mut bytes);
            bytes.extend([0xc0, 0, 0xe0, 0]);
            for size in [1, 2, 3, bytes.len()] {
                let mut reader = ClientReader::new(4096);
                let cut = bytes.chunks(size).map(|piece| read_all(&mut reader, piece).expect("good packets"));
                let packets: Vec<ClientPacket> = cut.flatten().collect();
                let [ClientPacket::Connect(connect), publish, subscribe, ClientPacket::Ping, ClientPacket::Disconnect] =
                    &packets[..]
                else {
                    panic!("{packets:?}")
                };
                assert_eq!((connect.client_id.as_str(), connect.password.as_deref()), ("aa:bb", Some("secret")));
                assert_eq!((connect.version, connect.keep_alive), (version, 240));
                assert_eq!(*publish, ClientPacket::Publish { payload: b"{}".to_vec(), id: None });
                assert_eq!(*subscribe, ClientPacket::Subscribe { id: 7, topics: 1 });
            }
        }
    }

    #[test]
    fn what_is_no_mqtt_is_refused_with_a_reason() {
        let read = |bytes: &[u8]| read_all(&mut ClientReader::new(64), bytes);
        assert!(matches!(read(b"GET / HTTP/1.1\r\n\r\n"), Err(ReadProblem::TooLarge | ReadProblem::Malformed(_))));
        assert!(matches!(read(&[0xc0, 0]), Err(ReadProblem::Malformed(_))), "CONNECT comes first");
        assert_eq!(read(&[0x10, 8, 0, 6, b'M', b'Q', b'I', b's', b'd', b'p']), Err(ReadProblem::Version));
        assert_eq!(read(&[0x10, 0xff, 0xff, 0x7f]), Err(ReadProblem::TooLarge));
        let mut twice = connect(Version::V3);
        twice.extend(connect(Version::V3));
        assert!(matches!(read(&twice), Err(ReadProblem::Malformed(_))));
        let mut qos2 = connect(Version::V3);
        qos2.extend([0x34, 6, 0, 1, b't', 0, 1, b'x']);
        assert_eq!(read(&qos2), Err(ReadProblem::Qos));
        let mut qos1 = connect(Version::V3);
        qos1.extend([0x32, 6, 0, 1, b't', 0, 9, b'x']);
        assert_eq!(read(&qos1).expect("fine")[1], ClientPacket::Publish { payload: b"x".to_vec(), id: Some(9) });
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
            ServerWriter { version }.publish("t", "{\"a\":1}".to_owned(), &mut bytes);
            subscribe(version, &mut bytes);
            // Every other time the first packet stays whole, so that what follows is reached.
            let from = if round % 4 < 2 { 0 } else { whole };
            for _ in 0..=random(4) {
                let at = from + random(bytes.len() - from);
                bytes[at] = random(256) as u8;
            }
            let _ = read_all(&mut ClientReader::new(256), &bytes);
        }
    }
}
