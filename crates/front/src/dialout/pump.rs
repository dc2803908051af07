//! Copies messages between the broker's socket and the gateway's pipe: text frames to lines and back.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::{Instant, interval_at, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::sync::CancellationToken;

use crate::inspect::MessageHead;

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// Regular pings keep routers from dropping the connection and show whether it is dead.
const PING: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(90);
/// Brokers ignore the notification of changed tools and list them only when a provider connects, so the gateway
/// reconnects. Changes come in bursts, so it waits for the end of the burst and for open calls, up to a limit.
const SETTLE: Duration = Duration::from_secs(15);
const SETTLE_LIMIT: Duration = Duration::from_secs(90);
/// How long open calls may take when the gateway stops.
const DRAIN: Duration = Duration::from_secs(5);
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// Larger than any answer the gateway gives.
const MAX_LINE: usize = 64 << 20;

/// How a connection ended.
pub(super) struct PumpEnd {
    pub reason: EndReason,
    /// Whether the broker sent a message, which it does only after it has accepted the token.
    pub had_message: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum EndReason {
    Stopped,
    /// The broker should list the tools again.
    NewTools,
    Broken(String),
}

/// What both directions share.
#[derive(Default)]
struct PumpState {
    had_message: AtomicBool,
    /// Requests of the broker that are not answered yet.
    open: AtomicUsize,
}

pub(super) async fn pump<S, P>(socket: WebSocketStream<S>, pipe: P, shutdown: &CancellationToken) -> PumpEnd
where
    S: AsyncRead + AsyncWrite + Unpin,
    P: AsyncRead + AsyncWrite,
{
    let (mut sink, stream) = socket.split();
    let (reader, mut writer) = tokio::io::split(pipe);
    let state = PumpState::default();
    let reason = {
        let mut outward = pin!(outward(reader, &mut sink, &state));
        tokio::select! {
            reason = inward(stream, &mut writer, &state) => reason,
            reason = &mut outward => reason,
            () = shutdown.cancelled() => {
                // The gateway ends the session when it has answered what it was asked.
                let _ = writer.shutdown().await;
                let _ = timeout(DRAIN, outward).await;
                EndReason::Stopped
            }
        }
    };
    let _ = timeout(CLOSE_TIME, sink.close()).await;
    PumpEnd { reason, had_message: state.had_message.into_inner() }
}

async fn inward<S, P>(
    mut stream: SplitStream<WebSocketStream<S>>,
    writer: &mut WriteHalf<P>,
    state: &PumpState,
) -> EndReason
where
    S: AsyncRead + AsyncWrite + Unpin,
    P: AsyncWrite,
{
    loop {
        let Ok(message) = timeout(SILENCE, stream.next()).await else {
            return EndReason::Broken(format!("the broker sent nothing for {} s", SILENCE.as_secs()));
        };
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(frame))) => {
                return EndReason::Broken(closed(frame.as_ref().map(|it| (it.code.into(), &it.reason))));
            }
            Some(Ok(_)) => continue,
            Some(Err(error)) => return EndReason::Broken(format!("the connection to the broker failed: {error}")),
            None => return EndReason::Broken(closed(None)),
        };
        state.had_message.store(true, Ordering::Relaxed);
        if MessageHead::of(text.as_bytes()).is_request() {
            state.open.fetch_add(1, Ordering::Relaxed);
        }
        // In JSON a line break outside strings is only white space, and strings cannot have one.
        let mut line = text.replace(['\n', '\r'], " ");
        line.push('\n');
        if let Err(error) = writer.write_all(line.as_bytes()).await {
            return EndReason::Broken(format!("the connection to the gateway failed: {error}"));
        }
        if let Err(error) = writer.flush().await {
            return EndReason::Broken(format!("the connection to the gateway failed: {error}"));
        }
    }
}

async fn outward<S, P>(
    reader: ReadHalf<P>,
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    state: &PumpState,
) -> EndReason
where
    S: AsyncRead + AsyncWrite + Unpin,
    P: AsyncRead,
{
    let mut lines = FramedRead::new(reader, LinesCodec::new_with_max_length(MAX_LINE));
    let mut ping = interval_at(Instant::now() + PING, PING);
    let mut changed: Option<Instant> = None;
    let mut settled = pin!(sleep_until(Instant::now()));
    loop {
        let message = tokio::select! {
            line = lines.next() => match line {
                Some(Ok(line)) => {
                    let head = MessageHead::of(line.as_bytes());
                    if head.is_answer() {
                        let _ = state.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| open.checked_sub(1));
                    } else if head.method.as_deref() == Some(TOOLS_CHANGED) && changed.is_none() {
                        changed = Some(Instant::now());
                        settled.as_mut().reset(Instant::now() + SETTLE);
                    }
                    Message::text(with_error_text(line))
                }
                Some(Err(error)) => return EndReason::Broken(format!("the gateway's answer cannot be passed on: {error}")),
                None => return EndReason::Broken("the gateway ended the session".to_owned()),
            },
            _ = ping.tick() => Message::Ping(Default::default()),
            () = &mut settled, if changed.is_some() => {
                let overdue = changed.is_some_and(|changed| changed.elapsed() >= SETTLE_LIMIT);
                if overdue || state.open.load(Ordering::Relaxed) == 0 {
                    return EndReason::NewTools;
                }
                settled.as_mut().reset(Instant::now() + Duration::from_secs(1));
                continue;
            }
        };
        if let Err(error) = sink.send(message).await {
            return EndReason::Broken(format!("the connection to the broker failed: {error}"));
        }
    }
}

/// xiaozhi-server shows the text in `error` of a failed result, and nothing else of it.
fn with_error_text(line: String) -> String {
    if !line.contains("\"isError\":true") {
        return line;
    }
    let Ok(mut answer) = serde_json::from_str::<Value>(&line) else { return line };
    let result = &mut answer["result"];
    if result["isError"] != true || !result["error"].is_null() {
        return line;
    }
    let texts = result["content"].as_array().into_iter().flatten().filter_map(|item| item["text"].as_str());
    let text = texts.collect::<Vec<_>>().join("\n");
    result["error"] = text.into();
    answer.to_string()
}

/// Brokers close with codes of their own, such as 4004 for an internal error. All of them may be temporary.
fn closed(frame: Option<(u16, &Utf8Bytes)>) -> String {
    match frame {
        Some((code, reason)) if !reason.is_empty() => {
            format!("the broker closed the connection ({code} {:?})", reason.as_str())
        }
        Some((code, _)) => format!("the broker closed the connection ({code})"),
        None => "the broker closed the connection".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, duplex, split};
    use tokio_tungstenite::tungstenite::protocol::Role;

    #[test]
    fn a_failed_result_says_why_in_error_too_and_nothing_else_changes() {
        let failed = r#"{"id":"a","result":{"content":[{"type":"text","text":"no \"paper\""}],"isError":true}}"#;
        let answer: Value = serde_json::from_str(&with_error_text(failed.to_owned())).expect("JSON");
        assert_eq!((&answer["result"]["error"], &answer["id"]), (&Value::from("no \"paper\""), &Value::from("a")));
        for fine in [
            r#"{"id":1,"result":{"content":[],"isError":false}}"#,
            r#"{"id":1,"error":{"code":1}}"#,
            "\"isError\":true",
        ] {
            assert_eq!(with_error_text(fine.to_owned()), fine);
        }
    }

    const CHANGED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n";

    /// The broker's socket, the gateway's end of the pipe, and the pump between them.
    async fn connected() -> (WebSocketStream<DuplexStream>, DuplexStream, impl Future<Output = PumpEnd>) {
        let (near, far) = duplex(1 << 16);
        let socket = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        let broker = WebSocketStream::from_raw_socket(far, Role::Server, None).await;
        let (pipe, gateway) = duplex(1 << 16);
        let pumping = async move { pump(socket, pipe, &CancellationToken::new()).await };
        (broker, gateway, pumping)
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_becomes_one_line() {
        let (mut broker, gateway, pumping) = connected().await;
        let (mut reader, mut writer) = split(gateway);
        let exchange = async {
            broker.send(Message::text("{\r\n \"id\": \"a\\nb\",\n \"method\": \"ping\"}")).await.expect("sent");
            let mut line = String::new();
            BufReader::new(&mut reader).read_line(&mut line).await.expect("a line");
            assert_eq!(line, "{   \"id\": \"a\\nb\",  \"method\": \"ping\"}\n");
            writer.write_all(b"{\"id\":\"a\\nb\",\"result\":{}}\n").await.expect("written");
            let answer = broker.next().await.expect("a frame").expect("a frame");
            assert_eq!(answer, Message::text("{\"id\":\"a\\nb\",\"result\":{}}"));
            broker.close(None).await.expect("closed");
        };
        let (ended, ()) = tokio::join!(pumping, exchange);
        assert!(ended.had_message && matches!(ended.reason, EndReason::Broken(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_pump_ends_after_tools_have_changed_and_no_call_runs() {
        let (mut broker, mut gateway, pumping) = connected().await;
        let started = Instant::now();
        let exchange = async {
            broker.send(Message::text(r#"{"id":1,"method":"tools/call"}"#)).await.expect("sent");
            gateway.write_all(CHANGED).await.expect("written");
            tokio::time::sleep(SETTLE * 2).await;
            gateway.write_all(b"{\"id\":1,\"result\":{}}\n").await.expect("written");
            while let Some(Ok(_)) = broker.next().await {}
        };
        let (ended, ()) = tokio::join!(pumping, exchange);
        assert_eq!(ended.reason, EndReason::NewTools);
        assert!(started.elapsed() >= SETTLE * 2 && started.elapsed() < SETTLE_LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_broker_is_disconnected() {
        let (_broker, _gateway, pumping) = connected().await;
        let started = Instant::now();
        let ended = pumping.await;
        assert!(matches!(ended.reason, EndReason::Broken(message) if message.contains("sent nothing")));
        assert!(!ended.had_message && started.elapsed() >= SILENCE);
    }
}
