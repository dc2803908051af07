//! A board's share of the one connection to its broker.
//!
//! What a board is told goes into the outbox, which the owner of the connection empties. What it says comes as a
//! command to its task, like calls do, so an idle board costs no buffer here.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use sinew_mqtt::client::MqttMessage;
use tokio::sync::OwnedSemaphorePermit;

use crate::queue::Queue;

/// Bytes that may wait for the network. Beyond it texts are dropped, as MQTT does with messages it delivers once at
/// most, and whoever waits for an answer hears of it when the time is up.
const WAITING_BYTES: usize = 16 << 20;

/// The part of it that answers to questions of boards may take.
const REPLY_BYTES: usize = WAITING_BYTES / 16;

/// Messages on their way to the broker.
pub(crate) struct BrokerOutbox {
    queue: Queue<MqttMessage>,
    bytes: AtomicUsize,
    is_open: AtomicBool,
}

impl BrokerOutbox {
    pub(crate) fn new() -> Arc<BrokerOutbox> {
        Arc::new(BrokerOutbox { queue: Queue::new(), bytes: AtomicUsize::new(0), is_open: AtomicBool::new(false) })
    }

    /// Whether there is a connection at the moment.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// What was posted for a connection that is gone does not go out on the next one.
    pub(crate) fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Release);
        for message in self.queue.drain() {
            self.bytes.fetch_sub(size(&message), Ordering::Relaxed);
        }
    }

    /// Says nothing where it is dropped.
    pub(crate) fn send(&self, message: MqttMessage) {
        self.send_within(message, WAITING_BYTES);
    }

    /// Answers to what boards ask are dropped first, so that one board that asks without end costs others no call.
    pub(crate) fn reply(&self, message: MqttMessage) {
        self.send_within(message, REPLY_BYTES);
    }

    fn send_within(&self, message: MqttMessage, most: usize) {
        let size = size(&message);
        if !self.is_open() || self.bytes.fetch_add(size, Ordering::Relaxed) > most {
            if self.is_open() {
                self.bytes.fetch_sub(size, Ordering::Relaxed);
                tracing::warn!(topic = %message.topic, "the broker is too slow; a message was dropped");
            }
            return;
        }
        self.queue.push(message);
    }

    pub(crate) async fn next(&self) -> MqttMessage {
        let message = poll_fn(|cx| self.queue.poll_pop(cx)).await;
        self.bytes.fetch_sub(size(&message), Ordering::Relaxed);
        message
    }

    /// The next one, if it is there already.
    pub(crate) fn try_next(&self) -> Option<MqttMessage> {
        let message = self.queue.pop()?;
        self.bytes.fetch_sub(size(&message), Ordering::Relaxed);
        Some(message)
    }
}

fn size(message: &MqttMessage) -> usize {
    message.topic.len() + message.payload.len()
}

/// One board's way into the outbox.
pub(crate) struct BrokerPipe {
    outbox: Arc<BrokerOutbox>,
    /// Where the board hears.
    topic: Box<str>,
    /// Where the other end hears the first text, where that is another place: then it is an MCP server.
    first: Option<Box<str>>,
    is_mcp_server: bool,
    /// Held while the board is asked for its tools, so that not all of them are asked at once.
    setup_permit: Option<OwnedSemaphorePermit>,
    /// The longest text that the way takes.
    pub(crate) text_bytes: usize,
}

impl BrokerPipe {
    pub(crate) fn new(
        outbox: Arc<BrokerOutbox>,
        topic: String,
        setup_permit: OwnedSemaphorePermit,
        text_bytes: usize,
    ) -> BrokerPipe {
        BrokerPipe {
            outbox,
            topic: topic.into(),
            first: None,
            is_mcp_server: false,
            setup_permit: Some(setup_permit),
            text_bytes,
        }
    }

    /// The way to an MCP server, which hears the first text elsewhere.
    pub(crate) fn to_mcp_server(
        outbox: Arc<BrokerOutbox>,
        first: String,
        topic: String,
        text_bytes: usize,
    ) -> BrokerPipe {
        BrokerPipe {
            outbox,
            topic: topic.into(),
            first: Some(first.into()),
            is_mcp_server: true,
            setup_permit: None,
            text_bytes,
        }
    }

    pub(crate) fn is_mcp_server(&self) -> bool {
        self.is_mcp_server
    }

    pub(crate) fn send(&mut self, text: String) {
        let topic = self.first.take().unwrap_or_else(|| self.topic.clone()).into_string();
        self.outbox.send(MqttMessage { topic, payload: text.into_bytes(), ..MqttMessage::default() });
    }

    /// Answers what the board asked.
    pub(crate) fn reply(&mut self, text: String) {
        let topic = self.topic.to_string();
        self.outbox.reply(MqttMessage { topic, payload: text.into_bytes(), ..MqttMessage::default() });
    }

    /// Why nothing can be sent at the moment.
    pub(crate) fn unavailable_reason(&self) -> Option<&'static str> {
        (!self.outbox.is_open()).then_some("its broker cannot be reached at the moment")
    }

    /// It is this board's setup_permit to be asked.
    pub(crate) fn hold_setup_permit(&mut self, setup_permit: OwnedSemaphorePermit) {
        self.setup_permit = Some(setup_permit);
    }

    /// The board has answered; the next one may be asked.
    pub(crate) fn finish_setup(&mut self) {
        self.setup_permit = None;
    }
}
