//! A voice server for tests and demos: it "hears" texts that it is given, calls tools, and answers with a tone.
//!
//! It speaks as the common server of this firmware does: hello, MCP from the server to the board, then `stt`, `llm` and `tts`
//! around frames of Opus.
//!
//! - `conversation`: one conversation with a board
//! - `say`: speaks to a board of this process from another one
//! - `understand`: which tool a sentence means
//! - `tone`: the sound of every answer

mod conversation;
pub mod say;
mod tone;
mod understand;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sinew_tool::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, mpsc};
use tokio_tungstenite::accept_hdr_async_with_config;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::speech::Microphone;
pub use tone::tone;

/// The path of the protocol.
const PATH: &str = "/xiaozhi/v1/";
/// Where another process speaks to boards of this one.
const SAY: &str = "/say";
/// Boards send small messages.
const MAX_BYTES: usize = 1 << 20;
/// Events that wait for a slow reader.
const WAITING_EVENTS: usize = 1024;

/// A voice server that listens.
pub struct VirtualVoiceServer {
    listener: TcpListener,
    handle: VoiceHandle,
}

/// Directs a voice server while it runs.
#[derive(Clone)]
pub struct VoiceHandle {
    shared: Arc<VoiceState>,
}

struct VoiceState {
    address: SocketAddr,
    token: Option<String>,
    /// What the next speech of a board means.
    texts: Mutex<HashMap<String, VecDeque<String>>>,
    microphones: Mutex<HashMap<String, Microphone>>,
    events: broadcast::Sender<(String, VoiceEvent)>,
    /// Conversations that can be told to end or to send something, by board.
    open: Mutex<HashMap<String, mpsc::UnboundedSender<VoiceOrder>>>,
}

/// What happens in the conversations of a voice server.
#[derive(Clone, Debug, PartialEq)]
pub enum VoiceEvent {
    /// A board connected, with these headers and this path.
    Connected {
        path: String,
        headers: Vec<(String, String)>,
    },
    /// A board, or Sinew for it, sent a message.
    Text(Value),
    Sound(Vec<u8>),
    /// The server sent a message.
    Said(Value),
    /// The tools of the board are listed.
    Ready(Vec<Value>),
    Closed,
}

/// What a test makes a voice server do.
pub enum VoiceOrder {
    Text(String),
    Sound(Vec<u8>),
    Close,
}

impl VirtualVoiceServer {
    /// With a token, boards must show it.
    pub async fn open(address: SocketAddr, token: Option<&str>) -> io::Result<VirtualVoiceServer> {
        let listener = TcpListener::bind(address).await?;
        let shared = VoiceState {
            address: listener.local_addr()?,
            token: token.map(str::to_owned),
            texts: Mutex::default(),
            microphones: Mutex::default(),
            events: broadcast::Sender::new(WAITING_EVENTS),
            open: Mutex::default(),
        };
        Ok(VirtualVoiceServer { listener, handle: VoiceHandle { shared: Arc::new(shared) } })
    }

    pub fn handle(&self) -> VoiceHandle {
        self.handle.clone()
    }

    /// Serves until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) -> io::Result<()> {
        let tasks = TaskTracker::new();
        let accepting = async {
            loop {
                let (tcp, _) = self.listener.accept().await?;
                let (handle, shutdown) = (self.handle.clone(), shutdown.clone());
                tasks.spawn(async move { shutdown.run_until_cancelled(serve(tcp, handle)).await });
            }
        };
        let ended = shutdown.run_until_cancelled(accepting).await;
        tasks.close();
        tasks.wait().await;
        ended.unwrap_or(Ok(()))
    }
}

impl VoiceHandle {
    /// The address that boards and relays dial.
    pub fn url(&self) -> String {
        format!("ws://{}{PATH}", self.shared.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// What the next speech of a board means.
    pub fn hear(&self, hardware_id: &str, text: &str) {
        let mut texts = lock(&self.shared.texts);
        texts.entry(hardware_id.to_owned()).or_default().push_back(text.to_owned());
    }

    fn take_text(&self, hardware_id: &str) -> Option<String> {
        lock(&self.shared.texts).get_mut(hardware_id)?.pop_front()
    }

    /// Lets other processes speak to a board of this one.
    pub fn add_microphone(&self, hardware_id: &str, microphone: Microphone) {
        lock(&self.shared.microphones).insert(hardware_id.to_owned(), microphone);
    }

    /// What happens from now on, with the board it happens to.
    pub fn events(&self) -> broadcast::Receiver<(String, VoiceEvent)> {
        self.shared.events.subscribe()
    }

    /// Makes the conversation of a board do something; false where there is none.
    pub fn order(&self, hardware_id: &str, order: VoiceOrder) -> bool {
        lock(&self.shared.open).get(hardware_id).is_some_and(|orders| orders.send(order).is_ok())
    }

    fn report(&self, hardware_id: &str, event: VoiceEvent) {
        // Nobody may be watching.
        let _ = self.shared.events.send((hardware_id.to_owned(), event));
    }
}

async fn serve(tcp: TcpStream, handle: VoiceHandle) {
    let mut asked = None;
    let token = handle.shared.token.clone();
    // The type of a refusal is the library's.
    #[allow(clippy::result_large_err)]
    let check = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let path = request.uri().to_string();
        // A page in a browser names its origin, and has nothing to say to a board.
        let is_allowed = header("origin").is_none()
            && (path == SAY
                || token.as_ref().is_none_or(|token| header("authorization") == Some(format!("Bearer {token}"))));
        if !is_allowed {
            let mut refusal = ErrorResponse::new(Some("wrong token, or a request of a web page".to_owned()));
            *refusal.status_mut() = StatusCode::UNAUTHORIZED;
            return Err(refusal);
        }
        let headers = request.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()));
        asked = Some((path, header("device-id").unwrap_or_default(), headers.collect()));
        Ok(response)
    };
    let config = WebSocketConfig::default().max_message_size(Some(MAX_BYTES)).max_frame_size(Some(MAX_BYTES));
    let _ = tcp.set_nodelay(true);
    let Ok(socket) = accept_hdr_async_with_config(tcp, check, Some(config)).await else { return };
    let Some((path, hardware_id, headers)) = asked else { return };
    if path == SAY {
        return say::serve(socket, &handle).await;
    }
    handle.report(&hardware_id, VoiceEvent::Connected { path, headers });
    let (orders, received) = mpsc::unbounded_channel();
    lock(&handle.shared.open).insert(hardware_id.clone(), orders.clone());
    conversation::serve(socket, &hardware_id, &handle, received).await;
    let mut open = lock(&handle.shared.open);
    if open.get(&hardware_id).is_some_and(|current| current.same_channel(&orders)) {
        open.remove(&hardware_id);
    }
    drop(open);
    handle.report(&hardware_id, VoiceEvent::Closed);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio_tungstenite::connect_async;
    use tokio_tungstenite::tungstenite::Error;
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;
    use tokio_tungstenite::tungstenite::http::HeaderValue;

    use super::*;

    #[tokio::test]
    async fn no_web_page_speaks_to_a_board_or_as_one() {
        let server = VirtualVoiceServer::open(([127, 0, 0, 1], 0).into(), None).await.expect("open");
        let address = server.handle().address();
        let shutdown = CancellationToken::new();
        let _runs = shutdown.clone().drop_guard();
        tokio::spawn(server.run(shutdown));
        let dial = |path: &str, origin: Option<&str>| {
            let mut request = format!("ws://{address}{path}").into_client_request().expect("valid");
            if let Some(origin) = origin {
                request.headers_mut().insert("origin", HeaderValue::from_str(origin).expect("plain"));
            }
            connect_async(request)
        };
        for path in [SAY, PATH] {
            for origin in ["https://evil.example", "null", "", &format!("http://{address}")] {
                let refused = dial(path, Some(origin)).await;
                assert!(
                    matches!(&refused, Err(Error::Http(answer)) if answer.status() == StatusCode::UNAUTHORIZED),
                    "{path} from {origin:?}: {refused:?}"
                );
            }
            assert!(dial(path, None).await.is_ok(), "{path}");
        }
    }
}
