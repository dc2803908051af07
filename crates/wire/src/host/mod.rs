//! The gateway's end of the board protocol: one [`Session`] for each connected board.
//!
//! After each change call [`Session::poll`] until it returns [`Output::Wait`]; call [`Session::handle_time`] at the
//! moment it names. Messages and time are arguments, so the same input gives the same output.
//!
//! - `session`: the state of one board; `session/incoming` what it says, `session/outgoing` what it is asked,
//!   `session/talking` its conversations
//! - `requests`: what waits to be sent, and what waits for an answer
//! - `listing`: `tools/list`, page by page, inside limits
//! - `crate::workarounds`: everything real firmware does differently

mod listing;
mod requests;
mod session;

use std::time::Duration;

use serde_json::Value;
pub use sinew_tool::Notice;
use sinew_tool::{Outcome, ToolError, Toolset};

pub use crate::common::{Transport, Vision};
pub use crate::moment::Moment;
// For crates that speak MCP with devices over other transports and meet the same mistakes.
pub use crate::workarounds::binary_json;
pub use crate::workarounds::{Fault, read_outcome};
pub use listing::ToolListing;
pub use session::Session;

/// The configuration of a session.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Our name for this session; the board learns it from our hello.
    pub session_id: String,
    /// The id of the first request; 1 where it is not positive. Some engines refuse an id that they saw lately, also on
    /// an earlier connection, so it should be another for each session, for example from the clock.
    pub first_id: i32,
    pub transport: Transport,
    pub vision: Option<Vision>,
    /// Messages have neither envelope nor hello: the other end is a tool provider, an MCP server of any kind, and not a
    /// board. Start with [`Session::begin`].
    pub bare: bool,
    /// Whether to list tools that are meant for people only.
    pub user_tools: bool,
    /// An object whose members are added to our hello, for example the `udp` section.
    pub hello_extra: Option<Value>,
    /// The owner answers hellos, with [`Session::greet`] or [`Session::greet_for`]: a voice server may have to be asked
    /// first.
    pub owner_greets: bool,
    pub limits: Limits,
}

/// Limits on what a board sends. Beyond a limit there is a warning, never a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// One message from the board. A photo is some hundred kilobytes in base64.
    pub frame_bytes: usize,
    /// One call to the board; it would silently drop a longer one.
    pub call_bytes: usize,
    /// A hello, or the body of one notice. Both are kept in memory.
    pub notice_bytes: usize,
    /// Pages of one tool list; a real page holds some ten tools.
    pub pages: usize,
    /// Tools of one board; real ones have some dozens.
    pub tools: usize,
    /// All pages of one tool list together.
    pub list_bytes: usize,
    /// Calls that wait for the one in flight.
    pub queue: usize,
    /// How long the board may take for `initialize` and for each page; each is requested twice.
    pub setup_time: Duration,
    /// How long a conversation over a WebSocket may go on without a call: firmware streams its microphone meanwhile.
    pub talk_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            frame_bytes: 4 << 20,
            call_bytes: 4 << 20,
            notice_bytes: 16 << 10,
            pages: 64,
            tools: 512,
            list_bytes: 256 << 10,
            queue: 64,
            setup_time: Duration::from_secs(10),
            talk_time: Duration::from_secs(60),
        }
    }
}

/// What [`Session::poll`] returns.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send this text to the board.
    Send(String),
    /// Send this text too: it answers what the board asked, so the board decides how many of these there are.
    Reply(String),
    Event(Event),
    /// Nothing more for now. Call [`Session::handle_time`] at the moment named, if one is.
    Wait(Option<Moment>),
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The board said hello. Our answer is among the texts to send, unless the owner answers it.
    Hello(Hello),
    /// The board said something to the voice server that has the conversation, other than MCP.
    Spoken(String),
    /// The board ended its conversation with the voice server.
    HungUp,
    /// The board has reported its name and its tools. Comes once.
    Ready(Ready),
    /// The board's hello does not offer MCP, or over MQTT the board leaves MCP unanswered. If MCP comes
    /// anyway, `Ready` follows.
    NoMcp,
    /// The board's tools have changed.
    ToolsChanged { tools: Toolset, warnings: Vec<String> },
    /// The answer to a call. Every ticket that is not cancelled gets exactly one.
    Answered(Ticket, Result<Outcome, ToolError>),
    /// A call that waited for others is sent only now.
    TurnCame(Ticket),
    /// A tool provider reports how far the call of a ticket is.
    Progress { ticket: Ticket, progress: f64, total: Option<f64>, message: Option<String> },
    /// The board sent an event.
    Notified(Notice),
    /// Something was wrong and was worked around, or left out. For the log.
    Warned(String),
    /// The conversation is over; the connection, which exists only for it, should be closed cleanly.
    TalkEnded,
    /// The session is over, and why. Only answers to new calls follow.
    Closed(String),
}

/// A board's hello.
#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    /// The version of the binary framing.
    pub version: Option<i64>,
    pub transport: Option<String>,
    pub mcp: bool,
    /// The whole message.
    pub body: Value,
}

/// A board's name and tools.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready {
    /// Empty where the board does not say.
    pub name: String,
    /// The firmware version; empty where the board does not say.
    pub version: String,
    pub tools: Toolset,
    /// What was wrong with the list and has been worked around.
    pub warnings: Vec<String>,
}

/// Identifies a call until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub(crate) u64);

/// Counters over the life of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Calls sent to the board.
    pub calls: u64,
    /// Answers that found their call.
    pub answers: u64,
    /// Answers to requests that were cancelled or timed out.
    pub late_answers: u64,
    /// Second answers to one request.
    pub duplicate_answers: u64,
    /// Answers to requests that were never made.
    pub stray_answers: u64,
    /// Requests that got no answer in time.
    pub timeouts: u64,
    /// Frames that could not be understood.
    pub garbled_frames: u64,
    /// Broken error answers that were understood nevertheless.
    pub repaired_frames: u64,
    /// Frames and notices beyond a limit.
    pub oversized_frames: u64,
    pub audio_frames: u64,
    pub notices: u64,
    /// Notices and replies left out because nobody polled.
    pub dropped: u64,
}
