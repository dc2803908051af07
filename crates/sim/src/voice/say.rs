//! Speaks to a virtual board that runs in another process, beside its voice server.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use sinew_tool::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, connect_async};

use super::{SAY, VoiceEvent, VoiceHandle, lock, tone};

/// How long a conversation of one sentence may take.
const SAY_TIME: Duration = Duration::from_secs(30);

/// Says a text to a board, and reports each step of the conversation. `voice` is the address of the voice server,
/// `127.0.0.1:7303`.
pub async fn say(voice: &str, board: &str, text: &str, mut report: impl FnMut(&Value)) -> Result<(), String> {
    let url = format!("ws://{voice}{SAY}");
    let no_server = |error: Error| format!("no voice server answers at {voice}: {error}; start one with `sinew demo`");
    let (mut socket, _) = connect_async(url).await.map_err(no_server)?;
    let ended = |error: Error| format!("the voice server at {voice} ended the connection: {error}");
    socket.send(Message::text(json!({"board": board, "text": text}).to_string())).await.map_err(ended)?;
    while let Some(message) = socket.next().await {
        let Message::Text(line) = message.map_err(ended)? else { continue };
        let step: Value = serde_json::from_str(&line).unwrap_or_default();
        if let Some(why) = step["error"].as_str() {
            return Err(why.to_owned());
        }
        report(&step);
        if step["type"] == "tts" && step["state"] == "stop" {
            return Ok(());
        }
    }
    Err(format!("the conversation with {board} ended without an answer"))
}

pub(super) async fn serve(mut socket: WebSocketStream<TcpStream>, handle: &VoiceHandle) {
    let Some(Ok(Message::Text(request))) = socket.next().await else { return };
    let request: Value = serde_json::from_str(&request).unwrap_or_default();
    let (board, text) = (request["board"].as_str().unwrap_or_default(), request["text"].as_str().unwrap_or_default());
    let found = lock(&handle.shared.microphones)
        .iter()
        .find(|(hardware_id, _)| is_named(hardware_id, board))
        .map(|(hardware_id, microphone)| (hardware_id.clone(), Some(microphone.clone())));
    // Somebody else speaks to a board that is named by its hardware address.
    let found = found.or_else(|| board.contains(':').then(|| (board.to_lowercase(), None)));
    let Some((hardware_id, microphone)) = found else {
        let known: Vec<String> = lock(&handle.shared.microphones).keys().map(|id| device_id(id)).collect();
        let error = format!("no virtual board `{board}` listens here; these do: {}", known.join(", "));
        let _ = socket.send(Message::text(json!({ "error": error }).to_string())).await;
        return;
    };
    let mut events = handle.events();
    handle.hear(&hardware_id, text);
    if let Some(microphone) = microphone {
        microphone.speak(tone());
    }
    let by = Instant::now() + SAY_TIME;
    loop {
        let step = match timeout_at(by, events.recv()).await {
            Ok(Ok((of, event))) if of == hardware_id => shown(event),
            Ok(Ok(_)) => None,
            Ok(Err(_)) => return,
            Err(_) => Some(json!({"error": format!("{board} gave no answer within {} s", SAY_TIME.as_secs())})),
        };
        let Some(step) = step else { continue };
        let is_last = step["state"] == "stop" && step["type"] == "tts" || !step["error"].is_null();
        if socket.send(Message::text(step.to_string())).await.is_err() || is_last {
            let _ = socket.close(None).await;
            return;
        }
    }
}

/// What of a conversation is worth showing.
fn shown(event: VoiceEvent) -> Option<Value> {
    match event {
        VoiceEvent::Said(message) | VoiceEvent::Text(message) => Some(message),
        _ => None,
    }
}

/// A board by its hardware id, or by the id that Sinew gives it.
fn is_named(hardware_id: &str, name: &str) -> bool {
    hardware_id == name || device_id(hardware_id) == name
}

fn device_id(hardware_id: &str) -> String {
    let digits: String = hardware_id.chars().filter(char::is_ascii_hexdigit).collect();
    format!("board-{}", &digits[digits.len().saturating_sub(6)..])
}
