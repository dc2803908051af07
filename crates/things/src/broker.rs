//! The connection of a gadget to its broker: messages out, answers and events in.

use std::sync::Arc;
use std::time::Duration;

use sinew_boards::broker::{Address, Connection, Disconnected, client_id};
use sinew_mqtt::client::{BrokerPacket, Introduction, MqttMessage, Subscription};
use sinew_tool::lenient::repair_text;
use sinew_tool::text::log_line;
use sinew_tool::{Announce, Device, DeviceEvent, Notice, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::device::ThingDevice;
use crate::settings::ThingPlan;

/// Seconds. After half as long again without a word the broker counts as gone.
const KEEP_ALIVE: u16 = 30;
/// The longest packet of a broker: states of gadgets have some hundred bytes.
const MAX_PACKET_BYTES: usize = 256 << 10;
/// Events are kept.
const MAX_EVENT_BYTES: usize = 16 << 10;
/// Events of a gadget in [`EVENT_TIME`]; the rest is counted and dropped.
const MAX_EVENTS: u64 = 200;
/// Gadgets report every few seconds.
const EVENT_TIME: Duration = Duration::from_secs(10);

/// A message to a gadget.
pub(crate) struct Publication {
    pub(crate) topic: String,
    pub(crate) payload: Vec<u8>,
    /// The topic of its answer, if it gives one.
    pub(crate) answer: Option<String>,
    /// The answer; `None` once the broker has the message and there will be no answer.
    pub(crate) reply: oneshot::Sender<Result<Option<Vec<u8>>, String>>,
}

/// A publication that waits.
enum Waiting {
    ForAnswer(String, oneshot::Sender<Result<Option<Vec<u8>>, String>>),
    ForBroker(u16, oneshot::Sender<Result<Option<Vec<u8>>, String>>),
}

impl Waiting {
    fn is_given_up(&self) -> bool {
        match self {
            Waiting::ForAnswer(_, reply) | Waiting::ForBroker(_, reply) => reply.is_closed(),
        }
    }
}

pub(crate) struct ThingConnection {
    connection: Connection,
    waiting: Vec<Waiting>,
    events: u64,
    events_since: Instant,
}

impl ThingConnection {
    pub(crate) async fn open(plan: &ThingPlan, address: &Address) -> Result<ThingConnection, Disconnected> {
        let client_id = client_id();
        let introduction = Introduction {
            client_id: &client_id,
            login: address.login(),
            keep_alive: KEEP_ALIVE,
            packet_bytes: MAX_PACKET_BYTES,
            will: None,
            properties: &[],
        };
        let mut connection = Connection::open(address, introduction).await?;
        let filters = filters(plan);
        if !filters.is_empty() {
            let subscription = |filter| Subscription { filter, no_local: true, at_least_once: false };
            let subscriptions: Vec<Subscription> = filters.into_iter().map(subscription).collect();
            connection.subscribed(&subscriptions, drop).await?;
        }
        Ok(ThingConnection { connection, waiting: Vec::new(), events: 0, events_since: Instant::now() })
    }

    /// Carries messages until the connection ends or `shutdown`.
    pub(crate) async fn run(
        mut self,
        plan: &ThingPlan,
        device: &Arc<ThingDevice>,
        announce: &Announce,
        publications: &mut mpsc::Receiver<Publication>,
        shutdown: &CancellationToken,
    ) -> Result<(), Disconnected> {
        loop {
            tokio::select! {
                packet = self.connection.next() => match packet? {
                    BrokerPacket::Publish(message) => self.hear(plan, device, announce, message),
                    BrokerPacket::Puback { id, code } => self.confirmed(id, code),
                    _ => {}
                },
                publication = publications.recv() => match publication {
                    Some(publication) => self.publish(publication),
                    None => return Ok(()),
                },
                () = sleep_until(self.events_since + EVENT_TIME), if self.events > 0 => self.count_events(device, announce),
                () = shutdown.cancelled() => {
                    self.connection.close().await;
                    return Ok(());
                }
            }
        }
    }

    fn publish(&mut self, publication: Publication) {
        let Publication { topic, payload, answer, reply } = publication;
        self.waiting.retain(|waiting| !waiting.is_given_up());
        log_message("sent", &topic, &payload);
        let message = MqttMessage { topic, payload, retain: false, properties: Vec::new() };
        self.waiting.push(match answer {
            Some(topic) => {
                self.connection.publish(&message);
                Waiting::ForAnswer(topic, reply)
            }
            None => Waiting::ForBroker(self.connection.publish_confirmed(&message), reply),
        });
    }

    fn confirmed(&mut self, id: u16, code: u8) {
        let is_it = |waiting: &Waiting| matches!(waiting, Waiting::ForBroker(known, _) if *known == id);
        if let Some(index) = self.waiting.iter().position(is_it)
            && let Waiting::ForBroker(_, reply) = self.waiting.remove(index)
        {
            let confirmed = match code {
                0x80.. => Err(format!("the broker refuses the message (0x{code:02x}); see its access rules")),
                _ => Ok(None),
            };
            // The caller may have given up.
            let _ = reply.send(confirmed);
        }
    }

    /// A message is the answer to the first call that waits for its topic, and an event where the configuration says so.
    /// One that is retained was sent before the call.
    fn hear(&mut self, plan: &ThingPlan, device: &Arc<ThingDevice>, announce: &Announce, message: MqttMessage) {
        let MqttMessage { topic, payload, retain, .. } = message;
        log_message("received", &topic, &payload);
        self.waiting.retain(|waiting| !waiting.is_given_up());
        let is_it = |waiting: &Waiting| matches!(waiting, Waiting::ForAnswer(wanted, _) if *wanted == topic);
        let is_event = plan.config.events.iter().any(|filter| matches(filter, &topic));
        if is_event && payload.len() <= MAX_EVENT_BYTES {
            self.events += 1;
            if self.events <= MAX_EVENTS {
                let text = String::from_utf8_lossy(&payload);
                let body =
                    serde_json::from_str(&repair_text(&text)).unwrap_or_else(|_| Value::String(text.into_owned()));
                let notice = Notice { topic: topic.clone(), body: json!({"retained": retain, "payload": body}) };
                announce(DeviceEvent::Said(device.clone() as Arc<dyn Device>, notice));
            }
        }
        if let Some(index) = self.waiting.iter().position(is_it).filter(|_| !retain)
            && let Waiting::ForAnswer(_, reply) = self.waiting.remove(index)
        {
            device.answer_topics.note_answer(&topic);
            let _ = reply.send(Ok(Some(payload)));
        } else if !retain {
            device.answer_topics.note_other(&topic);
        }
    }

    fn count_events(&mut self, device: &Arc<ThingDevice>, announce: &Announce) {
        if self.events > MAX_EVENTS {
            announce(DeviceEvent::Dropped(device.clone(), self.events - MAX_EVENTS));
        }
        (self.events, self.events_since) = (0, Instant::now());
    }
}

/// What to subscribe to: events, and the answers of the tools with any value in place of an argument.
fn filters(plan: &ThingPlan) -> Vec<String> {
    let mut filters = plan.config.events.clone();
    for tool in &plan.config.tools {
        let Some(answer) = tool.mqtt.as_ref().and_then(|mqtt| mqtt.answer.as_ref()) else { continue };
        let any = |level: &str| if level.contains("${") { "+".to_owned() } else { level.to_owned() };
        filters.push(answer.split('/').map(any).collect::<Vec<_>>().join("/"));
    }
    filters.sort();
    filters.dedup();
    // Brokers deliver a message once for each subscription that it fits, and a copy would answer the next call.
    let all = filters.clone();
    filters.retain(|filter| !all.iter().any(|other| other != filter && matches(other, filter)));
    filters
}

/// Whether a topic fits a filter, or every topic of another filter does.
fn matches(filter: &str, topic: &str) -> bool {
    let (mut filter, mut topic) = (filter.split('/'), topic.split('/'));
    loop {
        match (filter.next(), topic.next()) {
            (Some("#"), _) => return true,
            (Some("+"), Some(level)) if level != "#" => {}
            (Some(wanted), Some(level)) if wanted == level => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

fn log_message(what: &str, topic: &str, payload: &[u8]) {
    tracing::debug!(topic = log_line(topic), "{what}: {}", log_line(&String::from_utf8_lossy(payload)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_as_brokers_do() {
        for (filter, topic, fits) in [
            ("a/b", "a/b", true),
            ("a/+", "a/b", true),
            ("a/#", "a/b/c", true),
            ("a/#", "a", true),
            ("+/b", "a/b", true),
            ("a/+", "a/b/c", false),
            ("a/+", "a/#", false),
            ("a/#", "a/+", true),
            ("a", "b", false),
            ("a/b", "a", false),
        ] {
            assert_eq!(matches(filter, topic), fits, "{filter} {topic}");
        }
    }
}
