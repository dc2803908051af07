//! One MQTT connection of a board, version 3.1.1: the only module that knows the codec crate.

use std::time::Duration;

use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{PacketBuildResult, PacketBuilder, PacketData, RawPacket};
use mqtt_protocol_core::mqtt::packet::v3_1_1::{
    Connack, Connect, Disconnect, Pingreq, Puback, Publish, Suback, Subscribe,
};
use mqtt_protocol_core::mqtt::packet::{GenericPacketTrait, Qos, SubEntry, SubOpts};
use mqtt_protocol_core::mqtt::result_code::MqttError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::account::Account;
use crate::address::ByteStream;
use crate::error::RunError;

/// A gateway's requests are small; more than this is none.
const PACKET_BYTES: u32 = 1 << 20;
/// A farewell to a server that does not listen is no reason to connection.
const FAREWELL_TIME: Duration = Duration::from_secs(1);

pub(super) struct Link {
    stream: Box<dyn ByteStream>,
    builder: PacketBuilder,
    /// ByteStream that came and are not yet looked at.
    waiting: Vec<u8>,
    /// How many of them have been.
    taken: usize,
    out: Vec<u8>,
}

/// What a server sends.
pub(super) enum Packet {
    Connack(u8),
    /// Whether the topic was granted.
    Suback(bool),
    Text(String),
    Other,
}

impl Link {
    pub(super) fn new(stream: Box<dyn ByteStream>) -> Link {
        let builder = PacketBuilder::with_maximum_packet_size(PACKET_BYTES);
        Link { stream, builder, waiting: Vec::new(), taken: 0, out: Vec::new() }
    }

    pub(super) fn connect(&mut self, account: &Account) -> Result<(), RunError> {
        let connect = || {
            let mut packet = Connect::builder().client_id(account.client_id.as_str())?.clean_session(true);
            if !account.username.is_empty() {
                packet = packet.user_name(account.username.as_str())?.password(account.password.as_bytes().to_vec())?;
            }
            if let Some(topic) = &account.presence {
                packet = packet.will_message(topic.as_str(), GONE.to_vec(), Qos::AtLeastOnce, true)?;
            }
            packet.keep_alive(account.keepalive).build()
        };
        self.put(connect())
    }

    pub(super) fn subscribe(&mut self, topic: &str) -> Result<(), RunError> {
        let entry = SubEntry::new(topic, SubOpts::new().set_qos(Qos::AtLeastOnce));
        self.put(entry.and_then(|entry| Subscribe::builder().packet_id(1u16).entries(vec![entry]).build()))
    }

    /// Says something, once at most.
    pub(super) fn publish(&mut self, topic: &str, text: String) -> Result<(), RunError> {
        self.put(Publish::builder().topic_name(topic).and_then(|packet| packet.payload(text).build()))
    }

    /// Says something that stays known until something else is said under the topic.
    pub(super) fn announce(&mut self, topic: &str, text: Vec<u8>) -> Result<(), RunError> {
        let packet = Publish::builder().topic_name(topic);
        self.put(
            packet.and_then(|packet| packet.qos(Qos::AtLeastOnce).packet_id(2u16).retain(true).payload(text).build()),
        )
    }

    pub(super) fn ping(&mut self) -> Result<(), RunError> {
        self.put(Pingreq::builder().build())
    }

    pub(super) async fn flush(&mut self) -> Result<(), RunError> {
        if !self.out.is_empty() {
            let ended = |error: std::io::Error| RunError::Ended(error.to_string());
            self.stream.write_all(&self.out).await.map_err(ended)?;
            self.stream.flush().await.map_err(ended)?;
            self.out.clear();
        }
        Ok(())
    }

    /// Leaves in order. The will is not said then, so its words are.
    pub(super) async fn close(&mut self, presence: Option<&str>) {
        if let Some(topic) = presence {
            let _ = self.announce(topic, GONE.to_vec());
        }
        let _ = self.put(Disconnect::builder().build());
        let _ = timeout(FAREWELL_TIME, async {
            if self.flush().await.is_ok() {
                let _ = self.stream.shutdown().await;
            }
        })
        .await;
    }

    /// The next packet. Nothing is lost where the future is dropped: bytes wait in `waiting`.
    pub(super) async fn read(&mut self) -> Result<Packet, RunError> {
        let ended = |why: String| RunError::Ended(why);
        loop {
            if self.taken < self.waiting.len() {
                let mut cursor = Cursor::new(&self.waiting[self.taken..]);
                let fed = self.builder.feed(&mut cursor);
                self.taken += cursor.position() as usize;
                match fed {
                    PacketBuildResult::Incomplete => {}
                    PacketBuildResult::Error(error) => return Err(ended(format!("no MQTT: {error:?}"))),
                    PacketBuildResult::Complete(raw) => {
                        return self.parse(raw).map_err(|error| ended(format!("no MQTT: {error:?}")));
                    }
                }
            } else {
                (self.waiting, self.taken) = (Vec::new(), 0);
                let mut room = [0; 4096];
                let count = self.stream.read(&mut room).await.map_err(|error| ended(error.to_string()))?;
                if count == 0 {
                    return Err(ended("the connection was closed".to_owned()));
                }
                self.waiting.extend_from_slice(&room[..count]);
            }
        }
    }

    fn parse(&mut self, raw: RawPacket) -> Result<Packet, MqttError> {
        Ok(match (raw.packet_type(), &raw.data) {
            (2, _) => Packet::Connack(raw.parse_exact(Connack::parse)?.return_code() as u8),
            (3, PacketData::Publish(data)) => {
                let (packet, _) = Publish::parse(raw.flags(), data.clone())?;
                if let Some(id) = packet.packet_id() {
                    self.out.extend(Puback::builder().packet_id(id).build()?.to_continuous_buffer());
                }
                Packet::Text(String::from_utf8_lossy(packet.payload().as_slice()).into_owned())
            }
            (9, _) => {
                let codes = raw.parse_exact(Suback::parse)?.return_codes();
                Packet::Suback(codes.iter().all(|code| (*code as u8) < 0x80))
            }
            _ => Packet::Other,
        })
    }

    fn put<P: GenericPacketTrait>(&mut self, packet: Result<P, MqttError>) -> Result<(), RunError> {
        let packet = packet.map_err(|error| RunError::Ended(format!("a packet cannot be written: {error:?}")))?;
        self.out.extend_from_slice(&packet.to_continuous_buffer());
        Ok(())
    }
}

/// What is retained under the presence topic of a board that is gone.
const GONE: &[u8] = b"{\"online\":false}";
