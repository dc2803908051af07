//! A board on a WebSocketDialer, dialled with the headers of real firmware.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use http::HeaderValue;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use tokio_util::sync::CancellationToken;

use crate::address::{ByteStream, GatewayAddress};
use crate::backoff::Backoff;
use crate::dial_queue::DialQueue;
use crate::error::RunError;
use crate::firmware::{Firmware, HangUp};
use crate::identity::Identity;
use crate::report::{ConnectionNews, Report};
use crate::trust::Trust;

/// As long as firmware waits for the gateway's hello.
const HELLO_TIME: Duration = Duration::from_secs(10);
/// How long firmware keeps a connection on which nothing arrives.
const SILENCE: Duration = Duration::from_secs(120);
/// For TCP, TLS and upgrade together; enough for a gateway that is busy with a thousand boards.
const DIAL_TIME: Duration = Duration::from_secs(30);
/// A gateway's requests are small; a longer message is an error.
const MAX_TEXT: usize = 1 << 20;

type ClientSocket = WebSocketStream<Box<dyn ByteStream>>;

/// Dials a gateway's WebSocket listener.
#[derive(Clone)]
pub(crate) struct WebSocketDialer {
    pub(crate) address: GatewayAddress,
    dial_queue: Arc<DialQueue>,
}

pub(crate) fn address(url: &str, trust: &Trust) -> Result<GatewayAddress, RunError> {
    GatewayAddress::parse(url, [("ws", 80), ("wss", 443)], trust)
}

impl WebSocketDialer {
    pub(crate) fn new(address: GatewayAddress, dial_queue: Arc<DialQueue>) -> WebSocketDialer {
        WebSocketDialer { address, dial_queue }
    }

    pub(crate) async fn run(
        &self,
        mut firmware: impl Firmware,
        identity: Identity,
        report: Report,
        shutdown: CancellationToken,
    ) -> Result<(), RunError> {
        let power_on = Instant::now();
        let mut pause = Backoff::new();
        while !shutdown.is_cancelled() {
            // Boxed: a board dials for a moment and serves for hours.
            let dialled = shutdown.run_until_cancelled(Box::pin(self.dial(&identity))).await;
            let (why, rest) = match dialled {
                None => break,
                Some(Ok(socket)) => {
                    self.dial_queue.opened();
                    report.send(&ConnectionNews::Connected { url: &self.address.url });
                    let mut connection = BoardConnection { firmware: &mut firmware, socket, power_on, greeted: false };
                    let ended = connection.serve(&shutdown).await;
                    if connection.greeted {
                        pause.reset();
                    }
                    ended
                }
                Some(Err(error)) if error.is_final() => return Err(error),
                Some(Err(error)) => {
                    self.dial_queue.failed(&error);
                    (error, None)
                }
            };
            tracing::debug!(board = %identity.hardware_id, %why, "the board is without its gateway");
            let rest = rest.unwrap_or_else(|| pause.take());
            report.send(&ConnectionNews::Disconnected { why: &why, retry_in: rest });
            shutdown.run_until_cancelled(sleep(rest)).await;
        }
        Ok(())
    }

    async fn dial(&self, identity: &Identity) -> Result<ClientSocket, RunError> {
        let _turn = self.dial_queue.turn().await;
        match timeout(DIAL_TIME, self.open(identity)).await {
            Ok(opened) => opened,
            Err(_) => Err(self.address.timed_out()),
        }
    }

    async fn open(&self, identity: &Identity) -> Result<ClientSocket, RunError> {
        let stream = self.address.connect().await?;
        let url = &self.address.url;
        let refused = |why: String| RunError::Refused { url: url.clone(), status: None, why };
        let mut request = url.as_str().into_client_request().map_err(|error| refused(error.to_string()))?;
        let mut header = |name: &'static str, value: &str| -> Result<(), RunError> {
            let value = HeaderValue::from_str(value).map_err(|_| refused(format!("{name} has a forbidden letter")))?;
            request.headers_mut().insert(name, value);
            Ok(())
        };
        if let Some(token) = &identity.token {
            // As firmware does: a token with a space in it brings its own scheme.
            let scheme = if token.contains(' ') { "" } else { "Bearer " };
            header("authorization", &format!("{scheme}{token}"))?;
        }
        header("protocol-version", "1")?;
        header("device-id", &identity.hardware_id)?;
        header("client-id", &identity.client_id)?;
        // Thousands of boards may share one process, so each gets by with little.
        let config = WebSocketConfig::default()
            .read_buffer_size(1024)
            .write_buffer_size(4096)
            .max_message_size(Some(MAX_TEXT))
            .max_frame_size(Some(MAX_TEXT));
        match client_async_with_config(request, stream, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(answer)) => {
                let body = answer.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                let why = match body.trim() {
                    "" => answer.status().to_string(),
                    reason => format!("{reason} ({})", answer.status()),
                };
                Err(RunError::Refused { url: url.clone(), status: Some(answer.status().as_u16()), why })
            }
            Err(error) => Err(refused(error.to_string())),
        }
    }
}

/// One connection of one board.
struct BoardConnection<'a, F> {
    firmware: &'a mut F,
    socket: ClientSocket,
    power_on: Instant,
    /// Whether the gateway has said hello on this connection.
    greeted: bool,
}

enum ConnectionEnd {
    /// By either side, in order.
    Closed(&'static str),
    HungUp(HangUp),
}

impl<F: Firmware> BoardConnection<'_, F> {
    /// Serves until the connection ends; says why it did, and how long the board wants to connection away.
    async fn serve(&mut self, shutdown: &CancellationToken) -> (RunError, Option<Duration>) {
        match self.talk(shutdown).await {
            Ok(ConnectionEnd::Closed(why)) => {
                let _ = self.socket.close(None).await;
                (RunError::Ended(why.to_owned()), None)
            }
            Ok(ConnectionEnd::HungUp(HangUp { why, pause })) => (RunError::Ended(why.to_owned()), pause),
            Err(error) => (error, None),
        }
    }

    async fn talk(&mut self, shutdown: &CancellationToken) -> Result<ConnectionEnd, RunError> {
        let hello = self.firmware.hello();
        self.send(vec![hello]).await?;
        self.flush().await?;
        let mut last_heard = Instant::now();
        let greet_by = last_heard + HELLO_TIME;
        let mut cancelled = pin!(shutdown.cancelled());
        let mut timer = pin!(sleep_until(greet_by));
        loop {
            tokio::select! {
                biased;
                () = &mut cancelled => return Ok(ConnectionEnd::Closed("the board was switched off")),
                message = self.socket.next() => {
                    last_heard = Instant::now();
                    match message {
                        Some(Ok(Message::Text(text))) => {
                            self.greeted = self.greeted || is_hello(&text);
                            let answers = self.firmware.handle_text(self.power_on.elapsed(), &text);
                            self.send(answers).await?;
                        }
                        Some(Ok(Message::Close(_))) | None => return Ok(ConnectionEnd::Closed("the gateway closed the connection")),
                        Some(Ok(Message::Binary(frame))) => self.firmware.handle_sound(self.power_on.elapsed(), &frame),
                        Some(Ok(_)) => {}
                        Some(Err(error)) => return Err(ended(error)),
                    }
                }
                () = &mut timer => {}
            }
            let now = Instant::now();
            let news = self.firmware.handle_time(now - self.power_on);
            self.send(news).await?;
            for frame in self.firmware.take_sound() {
                self.socket.feed(Message::binary(frame)).await.map_err(ended)?;
            }
            self.flush().await?;
            if let Some(hang_up) = self.firmware.hang_up() {
                return Ok(ConnectionEnd::HungUp(hang_up));
            }
            if !self.greeted && now >= greet_by {
                return Ok(ConnectionEnd::Closed("the gateway said no hello within 10 s"));
            }
            if now >= last_heard + SILENCE {
                return Ok(ConnectionEnd::Closed("nothing was heard of the gateway for 120 s"));
            }
            let by = if self.greeted { last_heard + SILENCE } else { greet_by };
            // A board that is always due still runs at most a thousand times per second.
            let due = self.firmware.next_due().map(|due| (self.power_on + due).max(now + Duration::from_millis(1)));
            let due = due.map_or(by, |due| due.min(by));
            // Moved forward only when something comes earlier: a call need not touch the timer.
            if timer.is_elapsed() || due < timer.deadline() {
                timer.as_mut().reset(due);
            }
        }
    }

    async fn send(&mut self, texts: Vec<String>) -> Result<(), RunError> {
        for text in texts {
            let message = to_message(self.firmware.encode(text));
            self.socket.feed(message).await.map_err(ended)?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), RunError> {
        self.socket.flush().await.map_err(ended)
    }
}

fn ended(error: Error) -> RunError {
    RunError::Ended(error.to_string())
}

/// A text message, also if it is not UTF-8.
fn to_message(bytes: Vec<u8>) -> Message {
    match String::from_utf8(bytes) {
        Ok(text) => Message::text(text),
        Err(error) => Message::Frame(Frame::message(error.into_bytes(), OpCode::Data(Data::Text), true)),
    }
}

fn is_hello(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok_and(|message| message["type"] == "hello")
}
