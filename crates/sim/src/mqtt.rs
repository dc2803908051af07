//! A virtual board on MQTT, as firmware does it: version 3.1.1, quality of service 0, one topic to publish
//! to, and never a subscription.

use std::time::Duration;

use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{PacketBuildResult, PacketBuilder, PacketData};
use mqtt_protocol_core::mqtt::packet::GenericPacketTrait;
use mqtt_protocol_core::mqtt::packet::v3_1_1::{Connack, Connect, Pingreq, Publish};
use mqtt_protocol_core::mqtt::result_code::MqttError;
use sinew_runner::{Firmware, RunError, Trust};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::web::{Address, Bytes};

/// As long as firmware waits for the gateway to admit it.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Pauses between attempts to dial double from the first to the last. Firmware waits a minute; nobody
/// wants to watch that.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(15);
/// A gateway's requests are small; more than this is none.
const PACKET_BYTES: u32 = 1 << 20;

/// What a board needs to know to connect; firmware has it from the bootstrap.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) address: Address,
    pub(crate) client_id: String,
    pub(crate) username: String,
    pub(crate) password: String,
    pub(crate) topic: String,
    /// Seconds.
    pub(crate) keepalive: u16,
}

impl Endpoint {
    /// A board set up by hand: it calls itself by its hardware id.
    pub(crate) fn by_hand(
        url: &str,
        hardware_id: &str,
        token: Option<&str>,
        trust: &Trust,
    ) -> Result<Endpoint, RunError> {
        Ok(Endpoint {
            address: Address::parse(url, ("mqtt", 1883), ("mqtts", 8883), trust)?,
            client_id: hardware_id.to_owned(),
            username: "board".to_owned(),
            password: token.unwrap_or_default().to_owned(),
            topic: "device-server".to_owned(),
            keepalive: 240,
        })
    }
}

/// Lives as one board until `shutdown`. Returns early only where dialling again cannot help.
pub(crate) async fn run(
    endpoint: Endpoint,
    mut firmware: impl Firmware,
    shutdown: CancellationToken,
) -> Result<(), RunError> {
    let power_on = Instant::now();
    let mut pause = FIRST_PAUSE;
    while !shutdown.is_cancelled() {
        // What a hello resets is reset; it is said only when somebody talks to the board.
        let _ = firmware.hello();
        let dialling = timeout(CONNECT_TIME, dial(&endpoint));
        let Some(dialled) = shutdown.run_until_cancelled(Box::pin(dialling)).await else { break };
        let late = || RunError::Unreachable(endpoint.address.url.clone(), std::io::ErrorKind::TimedOut.into());
        let (why, rest) = match dialled.unwrap_or_else(|_| Err(late())) {
            Ok(mut link) => {
                pause = FIRST_PAUSE;
                link.serve(&endpoint, &mut firmware, power_on, &shutdown).await
            }
            Err(error) if error.is_final() => return Err(error),
            Err(error) => (error, None),
        };
        tracing::debug!(board = %endpoint.client_id, %why, "the board is without its gateway");
        let rest = rest.unwrap_or_else(|| {
            let longer = (pause * 2).min(LAST_PAUSE);
            std::mem::replace(&mut pause, longer)
        });
        shutdown.run_until_cancelled(sleep(rest)).await;
    }
    Ok(())
}

struct Link {
    stream: Box<dyn Bytes>,
    builder: PacketBuilder,
    /// Packets that came together and are not yet looked at.
    waiting: Vec<u8>,
}

/// What a gateway sends.
enum Packet {
    Connack(u8),
    Text(String),
    Other,
}

async fn dial(endpoint: &Endpoint) -> Result<Link, RunError> {
    let stream = endpoint.address.connect().await?;
    let builder = PacketBuilder::with_maximum_packet_size(PACKET_BYTES);
    let mut link = Link { stream, builder, waiting: Vec::new() };
    let connect = Connect::builder()
        .client_id(endpoint.client_id.as_str())
        .and_then(|packet| packet.user_name(endpoint.username.as_str()))
        .and_then(|packet| packet.password(endpoint.password.clone().into_bytes()))
        .and_then(|packet| packet.clean_session(true).keep_alive(endpoint.keepalive).build());
    link.write(connect).await?;
    let refused =
        |status: Option<u16>, why: String| Err(RunError::Refused { url: endpoint.address.url.clone(), status, why });
    match link.read().await? {
        Packet::Connack(0) => Ok(link),
        // Said again tomorrow, these would be as true.
        Packet::Connack(code @ (1 | 2 | 4 | 5)) => refused(Some(401), format!("MQTT return code {code}")),
        Packet::Connack(code) => refused(None, format!("MQTT return code {code}")),
        _ => refused(None, "its first packet is not CONNACK".to_owned()),
    }
}

impl Link {
    /// Serves until the connection ends; why it did, and how long to stay away.
    async fn serve(
        &mut self,
        endpoint: &Endpoint,
        firmware: &mut impl Firmware,
        power_on: Instant,
        shutdown: &CancellationToken,
    ) -> (RunError, Option<Duration>) {
        let keepalive = Duration::from_secs(endpoint.keepalive.into());
        let mut ping_at = Instant::now() + keepalive / 2;
        loop {
            let due = firmware.next_due().map_or(ping_at, |due| ping_at.min(power_on + due));
            let said = tokio::select! {
                () = shutdown.cancelled() => {
                    let _ = self.stream.write_all(&[0xe0, 0]).await;
                    let _ = self.stream.shutdown().await;
                    return (RunError::Ended("the board was switched off".to_owned()), None);
                }
                packet = self.read() => match packet {
                    Ok(Packet::Text(text)) => firmware.handle_text(power_on.elapsed(), &text),
                    Ok(_) => Vec::new(),
                    Err(error) => return (error, None),
                },
                () = sleep_until(due) => Vec::new(),
            };
            let news = firmware.handle_time(power_on.elapsed());
            for text in said.into_iter().chain(news) {
                if let Err(error) = self.publish(&endpoint.topic, text).await {
                    return (error, None);
                }
            }
            if Instant::now() >= ping_at {
                ping_at = Instant::now() + keepalive / 2;
                if let Err(error) = self.write(Pingreq::builder().build()).await {
                    return (error, None);
                }
            }
            if let Some(wish) = firmware.hang_up() {
                return (RunError::Ended(wish.why.to_owned()), wish.pause);
            }
        }
    }

    async fn publish(&mut self, topic: &str, text: String) -> Result<(), RunError> {
        self.write(Publish::builder().topic_name(topic).and_then(|packet| packet.payload(text).build())).await
    }

    async fn write<P: GenericPacketTrait>(&mut self, packet: Result<P, MqttError>) -> Result<(), RunError> {
        let packet = packet.map_err(|error| RunError::Ended(format!("a packet cannot be written: {error:?}")))?;
        let written = self.stream.write_all(&packet.to_continuous_buffer()).await;
        written.map_err(|error| RunError::Ended(error.to_string()))?;
        self.stream.flush().await.map_err(|error| RunError::Ended(error.to_string()))
    }

    /// The next packet. Nothing is lost where the future is dropped: bytes wait in `waiting`.
    async fn read(&mut self) -> Result<Packet, RunError> {
        let ended = |why: &str| RunError::Ended(why.to_owned());
        loop {
            if !self.waiting.is_empty() {
                let mut cursor = Cursor::new(&self.waiting[..]);
                let fed = self.builder.feed(&mut cursor);
                let read = cursor.position() as usize;
                self.waiting.drain(..read);
                match fed {
                    PacketBuildResult::Incomplete => {}
                    PacketBuildResult::Error(error) => return Err(ended(&format!("no MQTT: {error:?}"))),
                    PacketBuildResult::Complete(raw) => {
                        return match (raw.packet_type(), &raw.data) {
                            (2, _) => match raw.parse_exact(Connack::parse) {
                                Ok(packet) => Ok(Packet::Connack(packet.return_code() as u8)),
                                Err(error) => Err(ended(&format!("no CONNACK: {error:?}"))),
                            },
                            (3, PacketData::Publish(data)) => match Publish::parse(raw.flags(), data.clone()) {
                                Ok((packet, _)) => {
                                    let text = String::from_utf8_lossy(packet.payload().as_slice());
                                    Ok(Packet::Text(text.into_owned()))
                                }
                                Err(error) => Err(ended(&format!("no PUBLISH: {error:?}"))),
                            },
                            _ => Ok(Packet::Other),
                        };
                    }
                }
            } else {
                let mut room = [0; 4096];
                let count = self.stream.read(&mut room).await.map_err(|error| ended(&error.to_string()))?;
                if count == 0 {
                    return Err(ended("the gateway closed the connection"));
                }
                self.waiting.extend_from_slice(&room[..count]);
            }
        }
    }
}
