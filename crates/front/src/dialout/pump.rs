//! Messages from the broker's socket to the gateway's pipe and back: a text frame here, a line there.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::{Instant, interval_at, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::sync::CancellationToken;

/// A ping now and then keeps routers from forgetting the connection, and finds out whether it is dead.
const PING: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(90);
/// Brokers take no word of changed tools; they list them when a provider connects. Changes come in swarms,
/// so the swarm is waited for, and calls under way too, but not for ever.
const SETTLE: Duration = Duration::from_secs(15);
const SETTLE_AT_LAST: Duration = Duration::from_secs(90);
/// What calls under way get when the gateway stops.
const DRAIN: Duration = Duration::from_secs(5);
const FAREWELL: Duration = Duration::from_secs(1);
/// Larger than any answer the gateway gives.
const MAX_LINE: usize = 64 << 20;

/// How a connection ended.
pub(super) struct Ended {
    pub why: Why,
    /// Whether the broker ever sent a message, which it does only to whom it accepts.
    pub heard: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Why {
    Stopped,
    /// The broker should list the tools again.
    NewTools,
    Broken(String),
}

/// What both directions know.
#[derive(Default)]
struct Ledger {
    heard: AtomicBool,
    /// Requests of the broker without an answer yet.
    open: AtomicUsize,
}

pub(super) async fn pump<S, P>(socket: WebSocketStream<S>, pipe: P, shutdown: &CancellationToken) -> Ended
where
    S: AsyncRead + AsyncWrite + Unpin,
    P: AsyncRead + AsyncWrite,
{
    let (mut sink, stream) = socket.split();
    let (reader, mut writer) = tokio::io::split(pipe);
    let ledger = Ledger::default();
    let why = {
        let mut outward = pin!(outward(reader, &mut sink, &ledger));
        tokio::select! {
            why = inward(stream, &mut writer, &ledger) => why,
            why = &mut outward => why,
            () = shutdown.cancelled() => {
                // The gateway ends the session when it has answered what it was asked.
                let _ = writer.shutdown().await;
                let _ = timeout(DRAIN, outward).await;
                Why::Stopped
            }
        }
    };
    let _ = timeout(FAREWELL, sink.close()).await;
    Ended { why, heard: ledger.heard.into_inner() }
}

async fn inward<S, P>(mut stream: SplitStream<WebSocketStream<S>>, writer: &mut WriteHalf<P>, ledger: &Ledger) -> Why
where
    S: AsyncRead + AsyncWrite + Unpin,
    P: AsyncWrite,
{
    loop {
        let Ok(message) = timeout(SILENCE, stream.next()).await else {
            return Why::Broken(format!("nothing was heard of the broker for {} s", SILENCE.as_secs()));
        };
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(frame))) => {
                return Why::Broken(closed(frame.as_ref().map(|it| (it.code.into(), &it.reason))));
            }
            Some(Ok(_)) => continue,
            Some(Err(error)) => return Why::Broken(format!("the connection to the broker broke: {error}")),
            None => return Why::Broken(closed(None)),
        };
        ledger.heard.store(true, Ordering::Relaxed);
        if Glance::at(&text).is_request() {
            ledger.open.fetch_add(1, Ordering::Relaxed);
        }
        // In JSON a line break is never more than white space.
        let mut line = text.replace(['\n', '\r'], " ");
        line.push('\n');
        if let Err(error) = writer.write_all(line.as_bytes()).await {
            return Why::Broken(format!("the gateway went away: {error}"));
        }
        if let Err(error) = writer.flush().await {
            return Why::Broken(format!("the gateway went away: {error}"));
        }
    }
}

async fn outward<S, P>(reader: ReadHalf<P>, sink: &mut SplitSink<WebSocketStream<S>, Message>, ledger: &Ledger) -> Why
where
    S: AsyncRead + AsyncWrite + Unpin,
    P: AsyncRead,
{
    let mut lines = FramedRead::new(reader, LinesCodec::new_with_max_length(MAX_LINE));
    let mut ping = interval_at(Instant::now() + PING, PING);
    let mut changed: Option<Instant> = None;
    let mut look = pin!(sleep_until(Instant::now()));
    loop {
        let message = tokio::select! {
            line = lines.next() => match line {
                Some(Ok(line)) => {
                    let glance = Glance::at(&line);
                    if glance.is_answer() {
                        let _ = ledger.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| open.checked_sub(1));
                    } else if glance.is_news_of_tools() && changed.is_none() {
                        changed = Some(Instant::now());
                        look.as_mut().reset(Instant::now() + SETTLE);
                    }
                    Message::text(line)
                }
                Some(Err(error)) => return Why::Broken(format!("the gateway's answer cannot be passed on: {error}")),
                None => return Why::Broken("the gateway ended the session".to_owned()),
            },
            _ = ping.tick() => Message::Ping(Default::default()),
            () = &mut look, if changed.is_some() => {
                let overdue = changed.is_some_and(|changed| changed.elapsed() >= SETTLE_AT_LAST);
                if overdue || ledger.open.load(Ordering::Relaxed) == 0 {
                    return Why::NewTools;
                }
                look.as_mut().reset(Instant::now() + Duration::from_secs(1));
                continue;
            }
        };
        if let Err(error) = sink.send(message).await {
            return Why::Broken(format!("the connection to the broker broke: {error}"));
        }
    }
}

/// Brokers close with codes of their own, such as 4004 for a fault inside. All of them may pass.
fn closed(frame: Option<(u16, &Utf8Bytes)>) -> String {
    match frame {
        Some((code, reason)) if !reason.is_empty() => {
            format!("the broker closed the connection ({code} {:?})", reason.as_str())
        }
        Some((code, _)) => format!("the broker closed the connection ({code})"),
        None => "the broker closed the connection".to_owned(),
    }
}

/// As much of a message as the pump needs.
#[derive(Default, Deserialize)]
struct Glance<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    id: Option<IgnoredAny>,
}

impl Glance<'_> {
    fn at(text: &str) -> Glance<'_> {
        serde_json::from_str(text).unwrap_or_default()
    }

    fn is_request(&self) -> bool {
        self.method.is_some() && self.id.is_some()
    }

    fn is_answer(&self) -> bool {
        self.method.is_none() && self.id.is_some()
    }

    fn is_news_of_tools(&self) -> bool {
        self.method.as_deref() == Some("notifications/tools/list_changed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, duplex, split};
    use tokio_tungstenite::tungstenite::protocol::Role;

    const CHANGED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n";

    /// The broker's socket, the gateway's end of the pipe, and the pump between them.
    async fn house() -> (WebSocketStream<DuplexStream>, DuplexStream, impl Future<Output = Ended>) {
        let (near, far) = duplex(1 << 16);
        let socket = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        let broker = WebSocketStream::from_raw_socket(far, Role::Server, None).await;
        let (pipe, gateway) = duplex(1 << 16);
        let pumping = async move { pump(socket, pipe, &CancellationToken::new()).await };
        (broker, gateway, pumping)
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_is_a_line_whatever_its_white_space() {
        let (mut broker, gateway, pumping) = house().await;
        let (mut reader, mut writer) = split(gateway);
        let talk = async {
            broker.send(Message::text("{\r\n \"id\": \"a\\nb\",\n \"method\": \"ping\"}")).await.expect("sent");
            let mut line = String::new();
            BufReader::new(&mut reader).read_line(&mut line).await.expect("a line");
            assert_eq!(line, "{   \"id\": \"a\\nb\",  \"method\": \"ping\"}\n");
            writer.write_all(b"{\"id\":\"a\\nb\",\"result\":{}}\n").await.expect("written");
            let answer = broker.next().await.expect("a frame").expect("a frame");
            assert_eq!(answer, Message::text("{\"id\":\"a\\nb\",\"result\":{}}"));
            broker.close(None).await.expect("closed");
        };
        let (ended, ()) = tokio::join!(pumping, talk);
        assert!(ended.heard && matches!(ended.why, Why::Broken(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn changed_tools_are_shown_anew_once_they_settled_and_no_call_runs() {
        let (mut broker, mut gateway, pumping) = house().await;
        let started = Instant::now();
        let talk = async {
            broker.send(Message::text(r#"{"id":1,"method":"tools/call"}"#)).await.expect("sent");
            gateway.write_all(CHANGED).await.expect("written");
            tokio::time::sleep(SETTLE * 2).await;
            gateway.write_all(b"{\"id\":1,\"result\":{}}\n").await.expect("written");
            while let Some(Ok(_)) = broker.next().await {}
        };
        let (ended, ()) = tokio::join!(pumping, talk);
        assert_eq!(ended.why, Why::NewTools);
        assert!(started.elapsed() >= SETTLE * 2 && started.elapsed() < SETTLE_AT_LAST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_broker_that_falls_silent_is_left() {
        let (_broker, _gateway, pumping) = house().await;
        let started = Instant::now();
        let ended = pumping.await;
        assert!(matches!(ended.why, Why::Broken(why) if why.contains("nothing was heard")));
        assert!(!ended.heard && started.elapsed() >= SILENCE);
    }
}
