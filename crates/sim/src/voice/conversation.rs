//! One conversation of the voice server.

use futures_util::{SinkExt, StreamExt};
use sinew_tool::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::understand::understand;
use super::{VoiceEvent, VoiceHandle, VoiceOrder, tone};

/// The id of every page of the tool list, as the common server has it.
const LIST_ID: u64 = 2;
const SESSION: &str = "virtual-voice";

struct VoiceConversation<'a> {
    socket: WebSocketStream<TcpStream>,
    hardware_id: &'a str,
    handle: &'a VoiceHandle,
    tools: Vec<Value>,
    is_listed: bool,
    /// Frames of speech that was not answered. Sound and text may take different ways, so it may come first.
    frames: usize,
    /// The board has stopped listening to its microphone.
    has_stopped: bool,
    last_id: u64,
}

pub(super) async fn serve(
    socket: WebSocketStream<TcpStream>,
    hardware_id: &str,
    handle: &VoiceHandle,
    mut orders: mpsc::UnboundedReceiver<VoiceOrder>,
) {
    let mut conversation = VoiceConversation {
        socket,
        hardware_id,
        handle,
        tools: Vec::new(),
        is_listed: false,
        frames: 0,
        has_stopped: false,
        last_id: LIST_ID,
    };
    loop {
        let done = tokio::select! {
            message = conversation.socket.next() => match message {
                Some(Ok(message)) => conversation.handle(message).await,
                Some(Err(_)) | None => return,
            },
            Some(order) = orders.recv() => match order {
                VoiceOrder::Text(text) => conversation.socket.send(Message::text(text)).await,
                VoiceOrder::Sound(frame) => conversation.socket.send(Message::binary(frame)).await,
                VoiceOrder::Close => conversation.socket.close(None).await,
            },
        };
        if done.is_err() {
            return;
        }
    }
}

impl VoiceConversation<'_> {
    async fn handle(&mut self, message: Message) -> Result<(), Error> {
        match message {
            Message::Text(text) => {
                let message: Value = serde_json::from_str(&text).unwrap_or_default();
                self.handle.report(self.hardware_id, VoiceEvent::Text(message.clone()));
                self.handle_text(&message).await?;
            }
            Message::Binary(frame) => {
                self.frames += 1;
                self.handle.report(self.hardware_id, VoiceEvent::Sound(frame.to_vec()));
            }
            _ => {}
        }
        self.answer_speech().await
    }

    async fn handle_text(&mut self, message: &Value) -> Result<(), Error> {
        match (message["type"].as_str(), message["state"].as_str()) {
            (Some("hello"), _) => {
                let audio = json!({"format": "opus", "sample_rate": 24000, "channels": 1, "frame_duration": 60});
                self.say(
                    json!({"type": "hello", "transport": "websocket", "session_id": SESSION, "audio_params": audio}),
                )
                .await?;
                if message["features"]["mcp"] == true {
                    let params = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "virtual-voice", "version": "1"}});
                    self.ask(1, "initialize", params).await?;
                }
            }
            (Some("listen"), Some("start")) => self.has_stopped = false,
            (Some("listen"), Some("stop")) => self.has_stopped = true,
            (Some("mcp"), _) => self.handle_answer(&message["payload"]).await?,
            _ => {}
        }
        Ok(())
    }

    async fn handle_answer(&mut self, payload: &Value) -> Result<(), Error> {
        match payload["id"].as_u64() {
            Some(1) => {
                let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
                self.say(json!({"session_id": SESSION, "type": "mcp", "payload": note})).await?;
                self.ask(LIST_ID, "tools/list", json!({"cursor": ""})).await
            }
            Some(LIST_ID) => {
                self.tools.extend(payload["result"]["tools"].as_array().into_iter().flatten().cloned());
                match payload["result"]["nextCursor"].as_str().filter(|cursor| !cursor.is_empty()) {
                    Some(cursor) => self.ask(LIST_ID, "tools/list", json!({"cursor": cursor})).await,
                    None => {
                        self.is_listed = true;
                        self.handle.report(self.hardware_id, VoiceEvent::Ready(self.tools.clone()));
                        Ok(())
                    }
                }
            }
            Some(id) if id == self.last_id => {
                let result = &payload["result"];
                let spoken = match payload["error"]["message"].as_str().or_else(|| result["error"].as_str()) {
                    Some(error) => error.to_owned(),
                    None => format!("Done: {}", result["content"][0]["text"].as_str().unwrap_or_default()),
                };
                self.speak(&spoken).await
            }
            _ => Ok(()),
        }
    }

    /// Answers what was said, once it was said and the tools are known.
    async fn answer_speech(&mut self) -> Result<(), Error> {
        if !(self.has_stopped && self.frames > 0 && self.is_listed) {
            return Ok(());
        }
        let Some(text) = self.handle.take_text(self.hardware_id) else { return Ok(()) };
        (self.frames, self.has_stopped) = (0, false);
        self.say(json!({"type": "stt", "session_id": SESSION, "text": text})).await?;
        match understand(&text, &self.tools) {
            Some((name, arguments)) => {
                self.last_id += 1;
                self.ask(self.last_id, "tools/call", json!({"name": name, "arguments": arguments})).await
            }
            None => self.speak(&format!("I heard: {text}")).await,
        }
    }

    async fn speak(&mut self, text: &str) -> Result<(), Error> {
        self.say(json!({"type": "llm", "session_id": SESSION, "emotion": "happy", "text": "🙂"})).await?;
        self.say(json!({"type": "tts", "session_id": SESSION, "state": "start"})).await?;
        self.say(json!({"type": "tts", "session_id": SESSION, "state": "sentence_start", "text": text})).await?;
        for frame in tone() {
            self.socket.send(Message::binary(frame)).await?;
        }
        self.say(json!({"type": "tts", "session_id": SESSION, "state": "stop"})).await
    }

    async fn ask(&mut self, id: u64, method: &str, params: Value) -> Result<(), Error> {
        let payload = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(json!({"session_id": SESSION, "type": "mcp", "payload": payload})).await
    }

    async fn say(&mut self, message: Value) -> Result<(), Error> {
        self.socket.send(Message::text(message.to_string())).await?;
        self.handle.report(self.hardware_id, VoiceEvent::Said(message));
        Ok(())
    }
}
