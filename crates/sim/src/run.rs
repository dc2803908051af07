//! Runs a virtual board on the network, with its faults.
//!
//! `sinew_runner` dials and reconnects; here messages get lost, late, garbled or doubled.

use std::collections::VecDeque;
use std::time::Duration;

use sinew_runner::{Account, Dialer, Firmware, HangUp, Identity, RunError};
use sinew_tool::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::board::{BoardConfig, BoardNews, VirtualBoard, hardware_id};
use crate::faults::{FaultDice, Faults, MessageFault};
use crate::ota::{self, OtaAnswer};
use crate::speech::Speech;
use crate::upload::{UploadInProgress, UploadSender};

/// A reboot takes a moment.
const REBOOT_TIME: Duration = Duration::from_millis(300);
/// Ids that a strict board remembers, as Espressif's engine does.
const SEEN_IDS: usize = 64;
/// The name of a network in Latin-1.
const ODD_NAME: &[u8] = b"Caf\xe9";
/// How often a board looks whether somebody speaks, or sound has come.
const SPEECH_POLL: Duration = Duration::from_millis(20);
/// How often a board looks whether its upload is done.
const UPLOAD_POLL: Duration = Duration::from_millis(10);

/// Runs one board until `shutdown`. Returns early only if dialling again cannot help: a wrong address, an untrusted
/// certificate, a refused token.
pub async fn run(config: BoardConfig, shutdown: CancellationToken) -> Result<(), RunError> {
    let way = DialPlan::new(&config)?;
    live(config, way, shutdown).await
}

/// How a board reaches its gateway.
#[derive(Clone)]
enum DialPlan {
    Dial(Dialer),
    /// It must ask first.
    Ask,
}

impl DialPlan {
    fn new(config: &BoardConfig) -> Result<DialPlan, RunError> {
        match config.url.split(':').next() {
            Some("http" | "https") => Ok(DialPlan::Ask),
            _ => {
                let dialer = Dialer::new(&config.url, &config.trust)?;
                Ok(DialPlan::Dial(match config.source {
                    Some(source) => dialer.from_source(source),
                    None => dialer,
                }))
            }
        }
    }
}

/// Runs `count` boards, a small task each, with their own hardware ids. The first one that fails ends them all.
pub async fn run_many(count: u32, config: BoardConfig, shutdown: CancellationToken) -> Result<(), RunError> {
    let way = DialPlan::new(&config)?;
    let shutdown = shutdown.child_token();
    let mut lives = JoinSet::new();
    for index in 1..=count {
        let Identity { hardware_id, client_id, .. } = Identity::new(hardware_id(index));
        let config = BoardConfig { client_id, hardware_id, ..config.clone() };
        lives.spawn(live(config, way.clone(), shutdown.clone()));
    }
    let mut result = Ok(());
    while let Some(ended) = lives.join_next().await {
        let ended = ended.unwrap_or_else(|panic| Err(RunError::Ended(panic.to_string())));
        if ended.is_err() && result.is_ok() {
            shutdown.cancel();
            result = ended;
        }
    }
    result
}

async fn live(config: BoardConfig, way: DialPlan, shutdown: CancellationToken) -> Result<(), RunError> {
    let board = match &config.blueprint {
        Some(blueprint) => blueprint.build(),
        None => VirtualBoard::new(config.kind, &config.hardware_id),
    };
    let lucky = config.faults == Faults { seed: config.faults.seed, ..Faults::default() };
    let dice = (!lucky).then(|| config.faults.dice(&config.hardware_id));
    let sender = UploadSender {
        hardware_id: config.hardware_id.clone(),
        client_id: config.client_id.clone(),
        trust: config.trust.clone(),
    };
    let mut firmware = FaultyFirmware::new(board, dice, sender);
    firmware.seen_ids = config.faults.strict_ids.then(VecDeque::new);
    firmware.has_odd_bytes = config.faults.odd_bytes;
    let identity =
        |token| Identity { hardware_id: config.hardware_id.clone(), client_id: config.client_id.clone(), token };
    let subscribe = config.subscribes.then(|| "devices/p2p/any".to_owned());
    let (dialer, identity) = match way {
        DialPlan::Dial(dialer) if subscribe.is_some() => {
            let identity = identity(config.token.clone());
            (dialer.with_account(Account { subscribe, ..Account::direct(&identity) })?, identity)
        }
        DialPlan::Dial(dialer) if config.behind_broker => {
            let identity = identity(None);
            let mut account = Account::at_broker(&identity);
            if let Some(username) = &config.username {
                account = account.with_login(username, config.token.clone().unwrap_or_default());
            }
            (dialer.with_account(account)?, identity)
        }
        DialPlan::Dial(dialer) => (dialer, identity(config.token.clone())),
        // Boxed: a board asks for a moment, and serves for hours.
        DialPlan::Ask => match shutdown.run_until_cancelled(Box::pin(ota::ask(&config))).await {
            None => return Ok(()),
            Some(told) => match told? {
                OtaAnswer::Mqtt { url, account } => {
                    let account = Account { subscribe, ..account };
                    (Dialer::new(&url, &config.trust)?.with_account(account)?, identity(None))
                }
                OtaAnswer::WebSocket { url, token } => (Dialer::new(&url, &config.trust)?, identity(Some(token))),
            },
        },
    };
    firmware.wakes = config.faults.wake && dialer.is_mqtt();
    firmware.speech = config.microphone.map(|microphone| Box::new(Speech::new(microphone, dialer.is_mqtt())));
    let (report, hardware_id, is_over) = (config.report.clone(), config.hardware_id.clone(), shutdown.clone());
    let dialer = dialer.with_report(move |news| {
        // Whoever switches a board off knows that it is gone.
        if !is_over.is_cancelled() {
            report.send(&hardware_id, &BoardNews::Connection(news));
        }
    });
    dialer.run(firmware, identity, shutdown).await
}

/// A board whose messages may get lost or changed.
struct FaultyFirmware {
    board: VirtualBoard,
    dice: Option<FaultDice>,
    /// Whether the gateway has said hello on this connection.
    greeted: bool,
    /// Messages that are delayed.
    late: Vec<(Duration, DelayedText)>,
    cut: bool,
    sender: UploadSender,
    /// The last ids of requests, where the board refuses to see one twice.
    seen_ids: Option<VecDeque<i64>>,
    /// A wake word is heard as soon as the board is connected.
    wakes: bool,
    /// The name of its network is not UTF-8.
    has_odd_bytes: bool,
    /// The board's side of conversations with a voice server.
    speech: Option<Box<Speech>>,
    /// The name of the conversation under way, as the gateway's hello gave it.
    conversation: Option<String>,
    upload: Option<UploadInProgress>,
    /// When it was last looked whether the upload is done.
    looked: Duration,
}

enum DelayedText {
    FromGateway(String),
    ToGateway(String),
}

impl FaultyFirmware {
    fn new(board: VirtualBoard, dice: Option<FaultDice>, sender: UploadSender) -> FaultyFirmware {
        FaultyFirmware {
            board,
            dice,
            greeted: false,
            late: Vec::new(),
            cut: false,
            sender,
            seen_ids: None,
            wakes: false,
            has_odd_bytes: false,
            speech: None,
            conversation: None,
            upload: None,
            looked: Duration::ZERO,
        }
    }

    /// What the board says to a text that has arrived.
    fn hear(&mut self, now: Duration, text: &str) -> Vec<String> {
        let answers = self.answer(now, text);
        self.speak(now, answers)
    }

    /// The answers of the board itself; one that waits for an upload comes later.
    fn answer(&mut self, now: Duration, text: &str) -> Vec<String> {
        if let Some(refusal) = self.refuse_seen_id(text) {
            return vec![refusal];
        }
        if let Some(said) = self.converse(text) {
            return vec![said];
        }
        if let Some(speech) = &mut self.speech {
            speech.handle_text(text);
        }
        let mut answers = self.board.handle_text(now, text);
        if let Some(upload) = self.board.take_upload()
            && !answers.is_empty()
        {
            let held_back = answers.remove(0);
            self.upload = Some(UploadInProgress::start(upload, self.sender.clone(), held_back));
        }
        answers
    }

    /// What a strict board says to a request whose id it has seen.
    fn refuse_seen_id(&mut self, text: &str) -> Option<String> {
        let seen = self.seen_ids.as_mut()?;
        let message: Value = serde_json::from_str(text).ok()?;
        let id = message["payload"]["id"].as_i64()?;
        if seen.contains(&id) {
            let error = json!({"code": -32600, "message": "duplicate request id in session"});
            let payload = json!({"jsonrpc": "2.0", "id": id, "error": error});
            return Some(json!({"session_id": "", "type": "mcp", "payload": payload}).to_string());
        }
        if seen.len() == SEEN_IDS {
            seen.pop_front();
        }
        seen.push_back(id);
        None
    }

    /// The other half of a conversation: a hello opens it, and a goodbye that names it ends it.
    fn converse(&mut self, text: &str) -> Option<String> {
        if !self.wakes {
            return None;
        }
        let message: Value = serde_json::from_str(text).ok()?;
        let session = message["session_id"].as_str().unwrap_or_default();
        match message["type"].as_str()? {
            "hello" => {
                self.conversation = Some(session.to_owned());
                Some(json!({"session_id": session, "type": "listen", "state": "start", "mode": "auto"}).to_string())
            }
            "goodbye" if self.conversation.as_deref() == Some(session) => {
                self.conversation = None;
                Some(json!({"session_id": session, "type": "goodbye"}).to_string())
            }
            _ => None,
        }
    }

    /// What arrives of the board's messages.
    fn speak(&mut self, now: Duration, texts: Vec<String>) -> Vec<String> {
        let arrived = texts.into_iter().map(|text| match self.draw() {
            MessageFault::Fine => vec![text],
            MessageFault::Lost => Vec::new(),
            MessageFault::Late(delay) => {
                self.late.push((now + delay, DelayedText::ToGateway(text)));
                Vec::new()
            }
            MessageFault::Garbled => vec![self.garble(&text)],
            MessageFault::Doubled => vec![text.clone(), text],
            MessageFault::Disconnect => {
                self.cut = true;
                Vec::new()
            }
        });
        arrived.collect::<Vec<_>>().concat()
    }

    fn draw(&mut self) -> MessageFault {
        self.dice.as_mut().map_or(MessageFault::Fine, FaultDice::draw)
    }

    fn garble(&mut self, text: &str) -> String {
        self.dice.as_mut().map_or_else(String::new, |dice| dice.garble(text))
    }
}

impl Firmware for FaultyFirmware {
    fn name(&self) -> Option<&str> {
        Some(self.board.name())
    }

    fn hello(&mut self) -> String {
        self.greeted = false;
        self.late.clear();
        if let Some(speech) = &mut self.speech {
            speech.reset();
        }
        self.board.hello()
    }

    fn handle_text(&mut self, now: Duration, text: &str) -> Vec<String> {
        if self.dice.is_none() {
            return self.answer(now, text);
        }
        if !self.greeted && !self.wakes {
            self.greeted = is_hello(text);
            return self.hear(now, text);
        }
        match self.draw() {
            MessageFault::Fine => self.hear(now, text),
            MessageFault::Lost => Vec::new(),
            MessageFault::Late(delay) => {
                self.late.push((now + delay, DelayedText::FromGateway(text.to_owned())));
                Vec::new()
            }
            MessageFault::Garbled => {
                let text = self.garble(text);
                self.hear(now, &text)
            }
            MessageFault::Doubled => [self.hear(now, text), self.hear(now, text)].concat(),
            MessageFault::Disconnect => {
                self.cut = true;
                Vec::new()
            }
        }
    }

    fn handle_time(&mut self, now: Duration) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some(index) = self.late.iter().position(|(due, _)| *due <= now) {
            match self.late.swap_remove(index).1 {
                DelayedText::FromGateway(text) => texts.extend(self.hear(now, &text)),
                DelayedText::ToGateway(text) => texts.push(text),
            }
        }
        let mut news = self.board.handle_time(now);
        if self.wakes && !self.greeted {
            self.greeted = true;
            let hello = json!({"type": "hello", "version": 3, "transport": "udp", "features": {"mcp": true}});
            news.push(hello.to_string());
        }
        if let Some(answer) = self.upload.as_mut().and_then(UploadInProgress::finish) {
            self.upload = None;
            news.push(answer);
        }
        texts.extend(self.speak(now, news));
        // Speech has no faults of its own: it is sent as it is.
        texts.extend(self.speech.as_mut().map(|speech| speech.poll()).unwrap_or_default());
        self.looked = now;
        texts
    }

    fn next_due(&self) -> Option<Duration> {
        let upload = self.upload.is_some().then(|| self.looked + UPLOAD_POLL);
        let speech = self.speech.is_some().then(|| self.looked + SPEECH_POLL);
        self.late.iter().map(|(due, _)| *due).chain(self.board.next_due()).chain(upload).chain(speech).min()
    }

    fn encode(&mut self, text: String) -> Vec<u8> {
        match self.has_odd_bytes {
            true => ota::with_odd_bytes(&text, ODD_NAME),
            false => text.into_bytes(),
        }
    }

    fn handle_sound(&mut self, _now: Duration, frame: &[u8]) {
        if let Some(speech) = &mut self.speech {
            speech.handle_sound(frame);
        }
    }

    fn take_sound(&mut self) -> Vec<Vec<u8>> {
        self.speech.as_mut().map(|speech| speech.take_sound()).unwrap_or_default()
    }

    fn hang_up(&mut self) -> Option<HangUp> {
        if self.board.take_restart() {
            return Some(HangUp { why: "the board restarts", pause: Some(REBOOT_TIME) });
        }
        std::mem::take(&mut self.cut).then_some(HangUp { why: "bad faults cut the connection", pause: None })
    }
}

fn is_hello(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|message| message["type"] == "hello")
}
