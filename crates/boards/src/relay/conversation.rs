//! One conversation between a board and its voice server, in a task of its own.
//!
//! The board's task passes on what the board says, and gets what the server says. Both queues are short: sound that finds no
//! place is dropped, and a server that sends more than the board reads is read from more slowly.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde_json::Map;
use sinew_tool::lenient;
use sinew_tool::text::clip;
use sinew_tool::{BoxFuture, DeviceInfo, DeviceKey, Value, json};
use sinew_wire::host::Transport;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;

use super::RelayHub;
use super::assistant::{Assistant, Reaction};
use super::server::{BoardHeaders, ServerSocket};
use super::server_text::ServerText;
use super::sound::OpenChannel;
use crate::hub::BoardHub;

/// From the board's hello to the server's: firmware gives up after 10 s.
const OPEN_TIME: Duration = Duration::from_secs(8);
/// How long a voice server may be silent. The common one ends a conversation itself after 120 s without speech.
const SILENCE_TIME: Duration = Duration::from_secs(130);
/// How long one message to the server or to the board may take.
const SEND_TIME: Duration = Duration::from_secs(10);
/// How long a connection to the server may take to close.
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// Messages that wait in each direction: some seconds of sound.
const MAX_WAITING: usize = 64;
/// A frame of sound; Opus frames have at most some 1,300 bytes, and framing adds 16.
const MAX_SOUND_BYTES: usize = 16 << 10;
/// Requests of the voice server that are answered at once.
const MAX_REQUESTS: usize = 16;
/// Commands of the voice server to the board in one conversation: a server that sends more would fill the audit.
const MAX_COMMANDS: usize = 8;
/// A name of a conversation; some dozen bytes are usual. A board ignores a goodbye with another one, so it is never cut.
const MAX_SESSION_ID_BYTES: usize = 1 << 10;
/// What the voice server says of its sound; some hundred bytes are usual.
const MAX_AUDIO_BYTES: usize = 4 << 10;

/// What a board says to its voice server.
pub(crate) enum ToServer {
    Text(String),
    /// A text in a binary frame, as framing version 2 has it.
    FramedText(Bytes),
    Sound(Bytes),
}

/// What the board's task learns of a conversation.
pub(crate) enum FromServer {
    /// The server has answered the hello.
    Opened {
        session_id: String,
        members: Map<String, Value>,
    },
    Text(String),
    Sound(Bytes),
    /// The conversation is over, which is known when its task ends; with a reason where something failed.
    Ended(Result<(), String>),
}

/// The board's end of a conversation. Dropping it ends the conversation.
pub(crate) struct Conversation {
    to_server: mpsc::Sender<ToServer>,
    from_server: mpsc::Receiver<FromServer>,
    task: ConversationTask,
    /// How it ended, once its task is done.
    ended: Option<Result<(), String>>,
    /// The server has answered the hello.
    pub(crate) is_open: bool,
}

/// The task of a conversation. It is done when the server is disconnected.
pub(crate) type ConversationTask = JoinHandle<Result<(), String>>;

/// What a conversation is made from.
pub(crate) struct ConversationStart {
    pub(crate) hub: Arc<BoardHub>,
    pub(crate) relay: Arc<RelayHub>,
    pub(crate) board: BoardFacts,
    /// The board's hello.
    pub(crate) hello: Value,
    /// The conversation before this one, which must end first.
    pub(crate) previous: Option<ConversationTask>,
}

/// Who talks.
pub(crate) struct BoardFacts {
    pub(crate) key: DeviceKey,
    pub(crate) hardware_id: String,
    pub(crate) client_id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    protocol_version: u8,
    pub(crate) transport: Transport,
    /// Its address, for sound over UDP.
    address: Option<IpAddr>,
}

impl BoardFacts {
    pub(crate) fn new(info: &DeviceInfo, transport: Transport) -> BoardFacts {
        let text = |name: &str| info.attributes.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let address = text("address").parse::<std::net::SocketAddr>().ok();
        let version = info.attributes.get("protocol_version").and_then(Value::as_u64);
        let hardware_id = text("hardware_id");
        BoardFacts {
            key: info.key.clone(),
            // Voice servers want one; a board that was set up by hand may have none.
            client_id: Some(text("client_id")).filter(|id| !id.is_empty()).unwrap_or_else(|| hardware_id.clone()),
            hardware_id,
            name: info.name.clone(),
            version: info.version.clone(),
            // Over MQTT we frame the sound ourselves, in the plainest way.
            protocol_version: version.and_then(|version| u8::try_from(version).ok()).unwrap_or(1),
            transport,
            address: address.map(|address| address.ip()),
        }
    }
}

impl Conversation {
    pub(crate) fn start(start: ConversationStart) -> Conversation {
        let (to_server, from_board) = mpsc::channel(MAX_WAITING);
        let (to_board, from_server) = mpsc::channel(MAX_WAITING);
        let weak = to_server.downgrade();
        let task = tokio::spawn(async move { converse(start, weak, from_board, &to_board).await });
        Conversation { to_server, from_server, task, ended: None, is_open: false }
    }

    /// What the server says, then how the conversation ended. A board that does not read gets nothing, and learns of a
    /// failure all the same.
    pub(crate) fn poll_news(&mut self, cx: &mut Context<'_>, is_stalled: bool) -> Poll<FromServer> {
        if self.ended.is_none()
            && let Poll::Ready(ended) = Pin::new(&mut self.task).poll(cx)
        {
            let failed = |_| Err("the gateway's task for the conversation failed".to_owned());
            self.ended = Some(ended.unwrap_or_else(failed));
        }
        match &self.ended {
            Some(Err(why)) if is_stalled => return Poll::Ready(FromServer::Ended(Err(why.clone()))),
            _ if is_stalled => return Poll::Pending,
            _ => {}
        }
        match (ready!(self.from_server.poll_recv(cx)), &self.ended) {
            (Some(news), _) => Poll::Ready(news),
            (None, Some(ended)) => Poll::Ready(FromServer::Ended(ended.clone())),
            (None, None) => Poll::Pending,
        }
    }

    /// Passes something on; false where it found no place.
    pub(crate) fn pass(&self, what: ToServer) -> bool {
        if matches!(&what, ToServer::Sound(frame) if frame.len() > MAX_SOUND_BYTES) {
            return false;
        }
        self.to_server.try_send(what).is_ok()
    }

    /// Ends the conversation: its task, unless that is done.
    pub(crate) fn hang_up(self) -> Option<ConversationTask> {
        self.ended.is_none().then_some(self.task)
    }
}

async fn converse(
    start: ConversationStart,
    to_server: mpsc::WeakSender<ToServer>,
    mut from_board: mpsc::Receiver<ToServer>,
    to_board: &mpsc::Sender<FromServer>,
) -> Result<(), String> {
    let ConversationStart { hub, relay, board, hello, previous } = start;
    relay.check_pause(&board.key)?;
    let opening = async {
        if let Some(previous) = previous {
            let _ = previous.await;
        }
        open(&hub, &relay, &board, &hello, to_server).await
    };
    let opened = tokio::select! {
        opened = timeout(OPEN_TIME, opening) => opened
            .unwrap_or_else(|_| Err(format!("the voice server did not answer within {} s", OPEN_TIME.as_secs()))),
        // The board hung up meanwhile.
        () = to_board.closed() => return Ok(()),
    };
    let OpenedServer { socket, session_id, members, channel, assistant } =
        opened.inspect_err(|why| relay.note_failure(&board.key, why))?;
    relay.note_success(&board.key);
    let (sink, stream) = socket.split();
    let mut talk = Talk {
        sink,
        session_id: session_id.clone(),
        channel,
        assistant,
        to_board,
        board: &board,
        relay: &relay,
        requests: FuturesUnordered::new(),
        commands: 0,
        warned: false,
    };
    talk.tell_board(FromServer::Opened { session_id, members }).await?;
    let ended = talk.run(stream, &mut from_board).await;
    let _ = timeout(CLOSE_TIME, talk.sink.close()).await;
    ended
}

/// A voice server that has said hello.
struct OpenedServer {
    socket: ServerSocket,
    session_id: String,
    /// What the board's hello gets from it.
    members: Map<String, Value>,
    /// For boards whose sound comes over UDP.
    channel: Option<OpenChannel>,
    assistant: Assistant,
}

async fn open(
    hub: &Arc<BoardHub>,
    relay: &Arc<RelayHub>,
    board: &BoardFacts,
    hello: &Value,
    to_server: mpsc::WeakSender<ToServer>,
) -> Result<OpenedServer, String> {
    let is_mqtt = board.transport == Transport::Udp;
    let has_timestamps = is_mqtt && hello["features"]["aec"] == true;
    let channel = match (is_mqtt, board.address) {
        (false, _) => None,
        (true, address) => {
            let opened = address.and_then(|address| OpenChannel::open(hub, address, has_timestamps, to_server));
            Some(opened.ok_or("the gateway has no UDP port for sound")?)
        }
    };
    let address = relay.find_server(board).await?;
    let headers = BoardHeaders {
        device_id: &board.hardware_id,
        client_id: &board.client_id,
        protocol_version: board.protocol_version,
    };
    let mut socket = address.dial(&headers, has_timestamps).await?;
    let host = address.host();
    let failed = |why: &str| format!("the voice server {host} did not say hello: {why}");
    let greeting = socket.send(Message::text(hello_for_server(hello, is_mqtt).to_string())).await;
    greeting.map_err(|error| failed(&error.to_string()))?;
    let answer = loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => {
                let message: Value = lenient::read(text.as_bytes()).unwrap_or_default();
                if message["type"] == "hello" {
                    break message;
                }
            }
            Some(Ok(Message::Close(_))) | None => return Err(failed("it closed the connection")),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(failed(&error.to_string())),
        }
    };
    if answer["transport"].as_str().is_some_and(|transport| transport != "websocket") {
        return Err(failed("it speaks another transport than websocket"));
    }
    let session_id = answer["session_id"].as_str().unwrap_or_default().to_owned();
    if session_id.len() > MAX_SESSION_ID_BYTES {
        return Err(failed(&format!(
            "its `session_id` has {} bytes, and at most {MAX_SESSION_ID_BYTES} are read",
            session_id.len()
        )));
    }
    let mut members = Map::new();
    let audio = &answer["audio_params"];
    if audio.is_object() && audio.to_string().len() <= MAX_AUDIO_BYTES {
        members.insert("audio_params".to_owned(), audio.clone());
    }
    if let Some(channel) = &channel {
        let frame_ms = audio["frame_duration"].as_u64().and_then(|ms| u32::try_from(ms).ok()).filter(|ms| *ms > 0);
        let udp = channel.section(frame_ms).ok_or("the gateway has no UDP port for sound")?;
        members.insert("udp".to_owned(), udp);
    }
    let info = (board.name.clone(), board.version.clone());
    let ids = (board.hardware_id.clone(), board.client_id.clone());
    let assistant = Assistant::new(relay, board.key.clone(), info, ids, address);
    Ok(OpenedServer { socket, session_id, members, channel, assistant })
}

/// A board on MQTT is a board on a WebSocket for its voice server.
fn hello_for_server(hello: &Value, is_mqtt: bool) -> Value {
    let mut hello = hello.clone();
    if is_mqtt {
        hello["transport"] = json!("websocket");
        hello["version"] = json!(1);
    }
    hello
}

/// A conversation under way.
struct Talk<'a> {
    sink: SplitSink<ServerSocket, Message>,
    session_id: String,
    channel: Option<OpenChannel>,
    assistant: Assistant,
    to_board: &'a mpsc::Sender<FromServer>,
    board: &'a BoardFacts,
    relay: &'a RelayHub,
    /// Requests of the server that are not answered.
    requests: FuturesUnordered<BoxFuture<'static, Value>>,
    /// Commands of the server to the board so far.
    commands: usize,
    /// Something odd was reported already.
    warned: bool,
}

impl Talk<'_> {
    async fn run(
        &mut self,
        mut stream: SplitStream<ServerSocket>,
        from_board: &mut mpsc::Receiver<ToServer>,
    ) -> Result<(), String> {
        let mut silent_at = Instant::now() + SILENCE_TIME;
        loop {
            tokio::select! {
                heard = stream.next() => match heard {
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                    Some(Ok(Message::Close(_))) | None => return Ok(()),
                    Some(Ok(Message::Text(text))) => {
                        silent_at = Instant::now() + SILENCE_TIME;
                        if !self.handle_text(&text, None).await? {
                            return Ok(());
                        }
                    }
                    Some(Ok(Message::Binary(frame))) => {
                        silent_at = Instant::now() + SILENCE_TIME;
                        if !self.handle_binary(frame).await? {
                            return Ok(());
                        }
                    }
                    Some(Err(error)) => return Err(format!("the connection to the voice server failed: {error}")),
                },
                said = from_board.recv() => match said {
                    Some(ToServer::Text(text)) => self.send(Message::text(text)).await?,
                    Some(ToServer::Sound(frame) | ToServer::FramedText(frame)) => self.send(Message::Binary(frame)).await?,
                    None => return Ok(()),
                },
                Some(payload) = self.requests.next(), if !self.requests.is_empty() => self.answer(payload).await?,
                () = sleep_until(silent_at) => {
                    return Err(format!("the voice server was silent for {} s", SILENCE_TIME.as_secs()));
                }
            }
        }
    }

    /// False where the server ended the conversation. `framed` is the text as it came, where that was a binary frame.
    async fn handle_text(&mut self, text: &str, framed: Option<Bytes>) -> Result<bool, String> {
        let message: Value = lenient::read(text.as_bytes()).unwrap_or_default();
        match message["type"].as_str() {
            Some("mcp") => self.handle_mcp(&message["payload"]).await?,
            Some("goodbye") => return Ok(false),
            Some("hello") => {}
            kind => {
                let is_command = kind == Some("system");
                match ServerText::read(text) {
                    Ok(read) if is_command => self.pass_command(&read, text, framed).await?,
                    Ok(_) => self.pass_down(text, framed).await?,
                    Err(why) => self.warn(&format!("a text is not passed on: {why}")),
                }
            }
        }
        Ok(true)
    }

    /// Passes a command to the board on, once it is recorded.
    async fn pass_command(&mut self, read: &ServerText, text: &str, framed: Option<Bytes>) -> Result<(), String> {
        if self.commands >= MAX_COMMANDS {
            self.warn("more commands than one conversation has are not passed on");
            return Ok(());
        }
        self.commands += 1;
        let command = clip(read.member("command").and_then(Value::as_str).unwrap_or_default());
        match self.relay.config.access.record(&self.board.key, command).await {
            Ok(()) => self.pass_down(text, framed).await,
            Err(error) => {
                self.warn(&format!("a command is not passed on: {}", error.message));
                Ok(())
            }
        }
    }

    async fn pass_down(&mut self, text: &str, framed: Option<Bytes>) -> Result<(), String> {
        self.tell_board(framed.map_or_else(|| FromServer::Text(text.to_owned()), FromServer::Sound)).await
    }

    /// False where the server ended the conversation.
    async fn handle_binary(&mut self, frame: Bytes) -> Result<bool, String> {
        if let Some(json) = sinew_wire::host::binary_json(&frame).filter(|_| self.board.protocol_version == 2) {
            let Ok(text) = std::str::from_utf8(json).map(str::to_owned) else {
                self.warn("a text that is not UTF-8 is not passed on");
                return Ok(true);
            };
            return self.handle_text(&text, Some(frame)).await;
        }
        if frame.len() > MAX_SOUND_BYTES {
            self.warn("a frame of sound is too long and is not passed on");
            return Ok(true);
        }
        match &self.channel {
            // Sound before the board has sent its own is for nobody, and is dropped.
            Some(channel) => drop(channel.send(&frame)),
            None => self.tell_board(FromServer::Sound(frame)).await?,
        }
        Ok(true)
    }

    async fn handle_mcp(&mut self, payload: &Value) -> Result<(), String> {
        if self.requests.len() >= MAX_REQUESTS {
            if let Some(refusal) = Assistant::refuse(payload) {
                self.answer(refusal).await?;
            }
            return Ok(());
        }
        match self.assistant.handle(payload) {
            Reaction::Nothing => Ok(()),
            Reaction::Answer(payload) => self.answer(payload).await,
            Reaction::Later(answer) => {
                self.requests.push(answer);
                Ok(())
            }
        }
    }

    async fn answer(&mut self, payload: Value) -> Result<(), String> {
        let text = json!({"session_id": self.session_id, "type": "mcp", "payload": payload});
        self.send(Message::text(text.to_string())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), String> {
        match timeout(SEND_TIME, self.sink.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("the connection to the voice server failed: {error}")),
            Err(_) => Err(format!("the voice server read nothing for {} s", SEND_TIME.as_secs())),
        }
    }

    async fn tell_board(&mut self, what: FromServer) -> Result<(), String> {
        match timeout(SEND_TIME, self.to_board.send(what)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err("the board hung up".to_owned()),
            Err(_) => Err(format!("the board read nothing for {} s", SEND_TIME.as_secs())),
        }
    }

    /// Reports what is odd about the server, once in a conversation, and without what was said.
    fn warn(&mut self, what: &str) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(board = %self.board.key, "the voice server sends what cannot be used: {what}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// A conversation with one text that the board has not read, whose task ends in this way.
    fn ending(ended: Result<(), String>) -> Conversation {
        let (to_server, _) = mpsc::channel(1);
        let (to_board, from_server) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            let _ = to_board.send(FromServer::Text("last".to_owned())).await;
            ended
        });
        Conversation { to_server, from_server, task, ended: None, is_open: true }
    }

    #[tokio::test]
    async fn a_board_that_does_not_read_learns_of_a_failure_and_no_text_is_lost_at_a_usual_end() {
        let mut failing = ending(Err("the board read nothing".to_owned()));
        let news = poll_fn(|cx| failing.poll_news(cx, true)).await;
        assert!(matches!(news, FromServer::Ended(Err(why)) if why == "the board read nothing"));

        let mut usual = ending(Ok(()));
        while usual.ended.is_none() {
            let is_pending = poll_fn(|cx| Poll::Ready(usual.poll_news(cx, true).is_pending())).await;
            assert!(is_pending, "nothing is for a board that does not read");
            tokio::task::yield_now().await;
        }
        assert!(matches!(poll_fn(|cx| usual.poll_news(cx, false)).await, FromServer::Text(text) if text == "last"));
        assert!(matches!(poll_fn(|cx| usual.poll_news(cx, false)).await, FromServer::Ended(Ok(()))));
        assert!(usual.hang_up().is_none(), "a task that is done is not waited for");
    }
}
