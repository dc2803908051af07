//! A virtual board: a machine, the firmware around it, and its connection.
//!
//! The machines are next door ([`BoardKind::Talking`] in `companion.rs`, [`BoardKind::Relay`] in `relay.rs`);
//! the protocol is `sinew_wire::device`, and `run.rs` runs it on the network. Here a machine gets its tools.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sinew_runner::Identity;
use sinew_tool::{Value, json};
use sinew_wire::Vision;
use sinew_wire::device::{Board, BoardDialect, Property, Reply, ToolSpec};

use crate::faults::Faults;
use crate::firmware::Blueprint;
use crate::relay::{CHANNELS, Relay};
use crate::speech::Microphone;
use crate::talking_board::TalkingBoard;
use crate::upload::{PictureUpload, UploadPurpose};

pub use crate::news::{BoardNews, BoardReport};
pub use crate::run::{run, run_many};
pub use sinew_runner::{ConnectionNews, RunError, Trust};

/// What a virtual board can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoardKind {
    /// Speaker, screen and camera, with the common tools of real firmware, in its dialect.
    Talking,
    /// Sensors and four relays.
    Relay,
}

/// One virtual board and its gateway.
#[derive(Clone, Debug)]
pub struct BoardConfig {
    /// For example `ws://127.0.0.1:7301/xiaozhi/v1/` or `mqtt://127.0.0.1:7302`; or, for a board that asks
    /// there where it belongs, `http://127.0.0.1:7301/xiaozhi/ota/`.
    pub url: String,
    /// Whether `url` is that of a broker between board and gateway.
    pub behind_broker: bool,
    /// For a broker that wants one.
    pub username: Option<String>,
    /// Behind a broker, the password.
    pub token: Option<String>,
    /// A MAC address in lower case.
    pub hardware_id: String,
    pub client_id: String,
    pub kind: BoardKind,
    /// The tools of some firmware, served instead of those of the kind.
    pub blueprint: Option<Blueprint>,
    /// Whether the board subscribes over MQTT, which firmware never does.
    pub subscribes: bool,
    /// The address of this machine to dial from, where it matters.
    pub source: Option<IpAddr>,
    pub faults: Faults,
    pub trust: Trust,
    /// What is said to the board.
    pub microphone: Option<Microphone>,
    pub report: BoardReport,
}

impl BoardConfig {
    /// A board without token and without faults.
    pub fn new(url: impl Into<String>, hardware_id: impl Into<String>, kind: BoardKind) -> BoardConfig {
        let Identity { hardware_id, client_id, .. } = Identity::new(hardware_id);
        let (faults, trust) = (Faults::default(), Trust::default());
        let (url, token, blueprint, subscribes, source) = (url.into(), None, None, false, None);
        let (behind_broker, username) = (false, None);
        BoardConfig {
            url,
            behind_broker,
            username,
            token,
            hardware_id,
            client_id,
            kind,
            blueprint,
            subscribes,
            source,
            faults,
            trust,
            microphone: None,
            report: BoardReport::default(),
        }
    }
}

/// A MAC address of the locally administered kind, so that it is no real one.
pub fn hardware_id(index: u32) -> String {
    let [a, b, c, d] = index.to_be_bytes();
    format!("02:51:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

impl BoardKind {
    /// What the board calls itself.
    pub(crate) fn board_name(self) -> &'static str {
        match self {
            BoardKind::Talking => "virtual-companion",
            BoardKind::Relay => "virtual-relay",
        }
    }
}

impl FromStr for BoardKind {
    type Err = String;

    fn from_str(text: &str) -> Result<BoardKind, String> {
        match text {
            "companion" => Ok(BoardKind::Talking),
            "relay" => Ok(BoardKind::Relay),
            _ => Err(format!("there is no virtual board of kind {text}; there are companion and relay")),
        }
    }
}

/// An event that a machine sends.
#[derive(Debug)]
pub(crate) struct MachineNotice {
    pub(crate) method: &'static str,
    pub(crate) params: Value,
}

/// The time of a machine, and what it wants to send.
#[derive(Debug, Default)]
pub(crate) struct MachineState {
    /// Since power was switched on.
    pub(crate) now: Duration,
    pub(crate) restart: bool,
    /// Where photos are to be sent, as the gateway said.
    pub(crate) vision: Option<Vision>,
    pub(crate) upload: Option<PictureUpload>,
    news: Vec<MachineNotice>,
}

impl MachineState {
    pub(crate) fn tell(&mut self, method: &'static str, params: Value) {
        self.news.push(MachineNotice { method, params });
    }

    pub(crate) fn take_notices(&mut self) -> Vec<MachineNotice> {
        std::mem::take(&mut self.news)
    }
}

/// What is inside a virtual board.
pub(crate) trait BoardMachine: Send {
    /// Lets the time up to `now` pass, in which things may happen.
    fn handle_time(&mut self, now: Duration);

    /// When something may happen next without anybody asking.
    fn next_due(&self) -> Option<Duration>;

    fn state(&mut self) -> &mut MachineState;
}

/// A machine with its firmware: text in, texts out, no socket and no clock.
pub struct VirtualBoard {
    firmware: Board,
    machine: Arc<Mutex<dyn BoardMachine>>,
}

impl VirtualBoard {
    pub fn new(kind: BoardKind, hardware_id: &str) -> VirtualBoard {
        match kind {
            BoardKind::Talking => companion(hardware_id),
            BoardKind::Relay => relay(hardware_id),
        }
    }

    pub(crate) fn from_parts(firmware: Board, machine: Arc<Mutex<dyn BoardMachine>>) -> VirtualBoard {
        VirtualBoard { firmware, machine }
    }

    pub fn name(&self) -> &str {
        self.firmware.name()
    }

    pub fn hello(&self) -> String {
        self.firmware.hello()
    }

    /// The answer, if any, and whatever the machine says because of it.
    pub fn handle_text(&mut self, now: Duration, text: &str) -> Vec<String> {
        self.pass_time(now);
        let answer = self.firmware.handle_text(text);
        let vision = self.firmware.vision().cloned();
        lock(&self.machine).state().vision = vision;
        answer.into_iter().chain(self.take_notices()).collect()
    }

    /// An upload that the last text brought about; its first answer is to be held back until it is done.
    pub(crate) fn take_upload(&mut self) -> Option<PictureUpload> {
        lock(&self.machine).state().upload.take()
    }

    /// What the machine says by itself up to `now`.
    pub fn handle_time(&mut self, now: Duration) -> Vec<String> {
        self.pass_time(now);
        self.take_notices()
    }

    pub fn next_due(&self) -> Option<Duration> {
        lock(&self.machine).next_due()
    }

    /// True once after the machine was told to restart.
    pub fn take_restart(&mut self) -> bool {
        std::mem::take(&mut lock(&self.machine).state().restart)
    }

    fn pass_time(&mut self, now: Duration) {
        let mut machine = lock(&self.machine);
        machine.handle_time(now);
        let state = machine.state();
        state.now = state.now.max(now);
    }

    fn take_notices(&mut self) -> Vec<String> {
        let news = lock(&self.machine).state().take_notices();
        news.into_iter().map(|news| self.firmware.notify(news.method, news.params)).collect()
    }
}

fn lock<T: ?Sized>(machine: &Mutex<T>) -> MutexGuard<'_, T> {
    machine.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handler that works on the machine.
fn on<M: 'static + Send>(
    machine: &Arc<Mutex<M>>,
    work: impl Fn(&mut M, &sinew_wire::device::Arguments) -> Result<Reply, String> + Send + 'static,
) -> impl FnMut(&sinew_wire::device::Arguments) -> Result<Reply, String> + Send + 'static {
    let machine = machine.clone();
    move |arguments| work(&mut lock(&machine), arguments)
}

fn companion(hardware_id: &str) -> VirtualBoard {
    let name = BoardKind::Talking.board_name();
    let machine = Arc::new(Mutex::new(TalkingBoard::new(name, hardware_id)));
    let firmware = Board::new(name, "2.0.0")
        .speaking(BoardDialect::Firmware)
        .tool(
            ToolSpec::new(
                "self.get_device_status",
                "The present state of the device: speaker volume, screen brightness and theme, battery, network. Read it before changing something relative to what it is.",
            ),
            on(&machine, |machine, _| Ok(machine.status().into())),
        )
        .tool(
            ToolSpec::new("self.audio_speaker.set_volume", "Set the volume of the speaker, in percent.")
                .with(Property::integer("volume", 0..=100).describe("Percent; 0 is silent")),
            on(&machine, |machine, arguments| {
                machine.set_volume(arguments.integer("volume")?);
                Ok(true.into())
            }),
        )
        .tool(
            ToolSpec::new("self.screen.set_brightness", "Set the brightness of the screen, in percent.")
                .with(Property::integer("brightness", 0..=100).describe("Percent; 0 is dark")),
            on(&machine, |machine, arguments| {
                machine.set_brightness(arguments.integer("brightness")?);
                Ok(true.into())
            }),
        )
        .tool(
            ToolSpec::new("self.screen.set_theme", "Set the theme of the screen: `light` or `dark`.")
                .with(Property::text("theme").describe("`light` or `dark`")),
            on(&machine, |machine, arguments| machine.set_theme(arguments.text("theme")?).map(|()| true.into())),
        )
        .tool(
            ToolSpec::new(
                "self.camera.take_photo",
                "Take a photo with the camera of the device, to see what is in front of it. `question` says what you want to know about the photo.",
            )
            .with(Property::text("question").describe("What you want to know about the photo")),
            on(&machine, |machine, arguments| {
                let question = arguments.text("question")?;
                let photo = machine.take_photo(question).to_jpeg();
                let jpeg = photo.map_err(|error| format!("Failed to capture photo: {error}"))?;
                let state = machine.state();
                let Some(Vision { url, token }) = state.vision.clone() else {
                    // Firmware refuses here; a board that shows its photo is more use.
                    return Ok(Reply::jpeg(jpeg));
                };
                let purpose = UploadPurpose::Explain { question: question.to_owned(), token };
                state.upload = Some(PictureUpload { url, purpose, jpeg });
                Ok(true.into())
            }),
        )
        .tool(
            ToolSpec::new("self.get_system_info", "Particulars of the system.").for_users(),
            on(&machine, |machine, _| Ok(machine.system_info().into())),
        )
        .tool(
            ToolSpec::new("self.reboot", "Restart the device; it reconnects by itself.").for_users(),
            on(&machine, |machine, _| {
                machine.reboot();
                Ok(true.into())
            }),
        )
        .tool(
            ToolSpec::new("self.screen.snapshot", "Take a copy of the screen and send it to `url`.")
                .with(Property::text("url").describe("Where the picture is sent"))
                .with(Property::integer_or("quality", 1..=100, 80).describe("JPEG quality"))
                .for_users(),
            on(&machine, |machine, arguments| {
                let url = arguments.text("url")?.to_owned();
                let jpeg = machine.screen().to_jpeg();
                let jpeg = jpeg.map_err(|error| format!("Failed to snapshot screen: {error}"))?;
                machine.state().upload = Some(PictureUpload { url, purpose: UploadPurpose::Snapshot, jpeg });
                Ok(true.into())
            }),
        )
        .tool(
            ToolSpec::new("self.screen.get_info", "Width and height of the screen.").for_users(),
            on(&machine, |machine, _| Ok(machine.screen_info().into())),
        );
    VirtualBoard { firmware, machine }
}

fn relay(hardware_id: &str) -> VirtualBoard {
    let machine = Arc::new(Mutex::new(Relay::new(hardware_id)));
    let channel =
        || Property::integer("channel", 1..=CHANNELS as i64).describe("1 is the heater, 2 the fan, 3 and 4 are lamps");
    let firmware = Board::new(BoardKind::Relay.board_name(), "1.4.0")
        .tool(
            ToolSpec::new("self.read_sensors", "Read temperature (degrees Celsius) and relative humidity (percent)."),
            on(&machine, |machine, _| Ok(machine.read_sensors().into())),
        )
        .tool(
            ToolSpec::new("self.get_relays", "Say which relays are on."),
            on(&machine, |machine, _| Ok(machine.relays().into())),
        )
        .tool(
            ToolSpec::new("self.set_relay", "Switch a relay on or off. Ends a pulse that is under way.")
                .with(channel())
                .with(Property::boolean("on")),
            on(&machine, |machine, arguments| {
                machine.set_relay(arguments.integer("channel")?, arguments.boolean("on")?)?;
                Ok(machine.relays().into())
            }),
        )
        .tool(
            ToolSpec::new("self.pulse_relay", "Switch a relay on, and off again after some milliseconds.")
                .with(channel())
                .with(Property::integer_or("ms", 10..=60_000, 500)),
            on(&machine, |machine, arguments| {
                let duration = Duration::from_millis(arguments.integer("ms")?.unsigned_abs());
                machine.pulse_relay(arguments.integer("channel")?, duration)?;
                Ok(json!({"pulsed": arguments.integer("channel")?, "ms": arguments.integer("ms")?}).into())
            }),
        )
        .tool(
            ToolSpec::new("self.blink_led", "Blink the LED on the board, to find it on the shelf.")
                .with(Property::integer_or("times", 1..=20, 3)),
            on(&machine, |machine, arguments| Ok(machine.blink_led(arguments.integer("times")?).into())),
        );
    VirtualBoard { firmware, machine }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ask(board: &mut VirtualBoard, now: Duration, method: &str, params: Value) -> Vec<Value> {
        let payload = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let text = json!({"type": "mcp", "payload": payload}).to_string();
        let answers = board.handle_text(now, &text).into_iter();
        answers.map(|text| serde_json::from_str::<Value>(&text).expect("JSON")["payload"].clone()).collect()
    }

    fn call(board: &mut VirtualBoard, now: Duration, tool: &str, arguments: Value) -> Vec<Value> {
        ask(board, now, "tools/call", json!({"name": tool, "arguments": arguments}))
    }

    #[test]
    fn setting_the_volume_answers_tells_and_shows_in_the_status() {
        let mut board = VirtualBoard::new(BoardKind::Talking, "aa:bb:cc:dd:ee:01");
        let said = call(&mut board, SECOND, "self.audio_speaker.set_volume", json!({"volume": 11}));
        assert_eq!(said[0]["result"]["content"][0]["text"], "true");
        assert_eq!(said[1]["method"], "notifications/state_changed");
        let status = call(&mut board, SECOND, "self.get_device_status", json!({}));
        let status: Value =
            serde_json::from_str(status[0]["result"]["content"][0]["text"].as_str().expect("text")).expect("JSON");
        assert_eq!(status["audio_speaker"]["volume"], 11);
    }

    #[test]
    fn user_tools_are_listed_only_when_asked_for() {
        let mut board = VirtualBoard::new(BoardKind::Talking, "aa:bb:cc:dd:ee:01");
        let mut count = |params: Value| {
            ask(&mut board, SECOND, "tools/list", params)[0]["result"]["tools"].as_array().map_or(0, Vec::len)
        };
        assert_eq!((count(json!({})), count(json!({"withUserTools": true}))), (5, 9));
    }

    #[test]
    fn a_restart_is_asked_for_once() {
        let mut board = VirtualBoard::new(BoardKind::Talking, "aa:bb:cc:dd:ee:01");
        assert!(!board.take_restart());
        call(&mut board, SECOND, "self.reboot", json!({}));
        assert!(board.take_restart());
        assert!(!board.take_restart());
    }

    #[test]
    fn a_pulse_ends_when_its_time_has_come() {
        let mut board = VirtualBoard::new(BoardKind::Relay, "aa:bb:cc:dd:ee:02");
        call(&mut board, SECOND, "self.pulse_relay", json!({"channel": 3, "ms": 250}));
        let due = board.next_due().expect("a pulse is under way");
        assert_eq!(due, SECOND + Duration::from_millis(250));
        assert!(board.handle_time(due).iter().any(|text| text.contains("relay_changed")));
    }

    #[test]
    fn hardware_ids_are_made_of_the_number() {
        assert_eq!(hardware_id(258), "02:51:00:00:01:02");
    }
}
