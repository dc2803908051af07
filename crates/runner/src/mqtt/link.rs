//! One MQTT connection of a board, version 3.1.1.

use std::time::Duration;

use sinew_mqtt::Version;
use sinew_mqtt::client::{BrokerPacket, BrokerReader, ClientWriter, Introduction, MqttMessage, Subscription};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::account::Account;
use crate::address::ByteStream;
use crate::error::RunError;

const WRITER: ClientWriter = ClientWriter { version: Version::V3 };
/// A gateway's requests are small; a larger packet is an error.
const PACKET_BYTES: usize = 1 << 20;
/// How long closing may take if the server does not read.
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// What is retained under the presence topic of a board that is gone.
const GONE: &[u8] = b"{\"online\":false}";
/// The one subscription, and the one message that is confirmed.
const SUBSCRIPTION_ID: u16 = 1;
const PRESENCE_ID: u16 = 2;

pub(super) struct MqttLink {
    stream: Box<dyn ByteStream>,
    reader: BrokerReader,
    /// Bytes that were received and not parsed yet, from `taken` on.
    received: Vec<u8>,
    taken: usize,
    out: Vec<u8>,
}

impl MqttLink {
    pub(super) fn new(stream: Box<dyn ByteStream>) -> MqttLink {
        let reader = BrokerReader::new(WRITER.version, PACKET_BYTES);
        MqttLink { stream, reader, received: Vec::new(), taken: 0, out: Vec::new() }
    }

    pub(super) fn connect(&mut self, account: &Account) {
        let will = account.presence.as_deref().map(gone);
        let login =
            (!account.username.is_empty()).then_some((account.username.as_str(), Some(account.password.as_str())));
        let introduction = Introduction {
            client_id: &account.client_id,
            login,
            keep_alive: account.keepalive,
            packet_bytes: PACKET_BYTES,
            will: will.as_ref(),
            properties: &[],
        };
        WRITER.connect(&introduction, &mut self.out);
    }

    pub(super) fn subscribe(&mut self, topic: &str) {
        let subscription = Subscription { filter: topic.to_owned(), no_local: false, at_least_once: true };
        WRITER.subscribe(SUBSCRIPTION_ID, &[subscription], &mut self.out);
    }

    /// Publishes a message at most once.
    pub(super) fn publish(&mut self, topic: &str, payload: Vec<u8>) {
        let message = MqttMessage { topic: topic.to_owned(), payload, ..MqttMessage::default() };
        WRITER.publish(&message, None, &mut self.out);
    }

    /// Publishes a message that the broker keeps until the next one under the topic.
    pub(super) fn announce(&mut self, topic: &str, payload: Vec<u8>) {
        let message = MqttMessage { topic: topic.to_owned(), payload, retain: true, ..MqttMessage::default() };
        WRITER.publish(&message, Some(PRESENCE_ID), &mut self.out);
    }

    pub(super) fn ping(&mut self) {
        WRITER.ping(&mut self.out);
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

    /// Disconnects cleanly. The will is not published then, so the board says itself that it is gone.
    pub(super) async fn close(&mut self, presence: Option<&str>) {
        if let Some(topic) = presence {
            self.announce(topic, GONE.to_vec());
        }
        WRITER.disconnect(&mut self.out);
        let _ = timeout(CLOSE_TIME, async {
            if self.flush().await.is_ok() {
                let _ = self.stream.shutdown().await;
            }
        })
        .await;
    }

    /// The next packet. Dropping the future loses nothing: bytes wait in `received`.
    pub(super) async fn read(&mut self) -> Result<BrokerPacket, RunError> {
        loop {
            let mut rest = &self.received[self.taken..];
            let found = self.reader.read(&mut rest);
            self.taken = self.received.len() - rest.len();
            if let Some((packet, id)) = found.map_err(RunError::Ended)? {
                if let Some(id) = id {
                    WRITER.acknowledge(id, &mut self.out);
                }
                return Ok(packet);
            }
            (self.received, self.taken) = (Vec::new(), 0);
            let mut buffer = [0; 4096];
            let count = self.stream.read(&mut buffer).await.map_err(|error| RunError::Ended(error.to_string()))?;
            if count == 0 {
                return Err(RunError::Ended("the connection was closed".to_owned()));
            }
            self.received.extend_from_slice(&buffer[..count]);
        }
    }
}

fn gone(topic: &str) -> MqttMessage {
    MqttMessage { topic: topic.to_owned(), payload: GONE.to_vec(), retain: true, ..MqttMessage::default() }
}
