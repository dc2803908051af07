//! The gateway's end of the board protocol: one [`Session`] for each connected board.
//!
//! One mutation, then [`Session::poll`] until it says [`Output::Wait`]; wake it with
//! [`Session::handle_time`] at the moment it names. What is sent, what is heard and what time it is
//! are all arguments, so the same input gives the same output.
//!
//! - `session`: the state of one board; `session/hear` what it says, `session/ask` what it is asked
//! - `flight`: what waits to be sent, and what waits for an answer
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
pub use session::Session;

/// What a session is told before it starts.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Our name for this session; the board learns it from our hello.
    pub session_id: String,
    /// The id of the first request; 1 where it is not positive. Some engines refuse an id that they saw lately, also on
    /// an earlier connection, so it should be another for each session, for example from the clock.
    pub first_id: i32,
    pub transport: Transport,
    pub vision: Option<Vision>,
    /// Messages travel as they are, without the envelope and without a hello: the other end is a tool
    /// provider, an MCP server of any making, and not a board. Start with [`Session::begin`].
    pub bare: bool,
    /// Whether to list tools that are meant for people only.
    pub user_tools: bool,
    /// An object whose members are added to our hello, for example the `udp` section.
    pub hello_extra: Option<Value>,
    pub limits: Limits,
}

/// How much of a board's talk is taken. Beyond a limit there is a warning, never a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// One message from the board. A photo is some hundred kilobytes in base64.
    pub frame_bytes: usize,
    /// One call to the board; what it cannot take whole it would drop without a word.
    pub call_bytes: usize,
    /// A hello, or the body of one notice. Both are kept, so they should be small.
    pub notice_bytes: usize,
    /// Pages of one tool list; a real page holds some ten tools.
    pub pages: usize,
    pub tools: usize,
    /// All pages of one tool list together.
    pub list_bytes: usize,
    /// Calls that wait for the one in flight.
    pub queue: usize,
    /// How long the board may take over `initialize` and over each page; each is asked twice.
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

/// What [`Session::poll`] gives.
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
    /// The board said hello; our answer is among the texts to send.
    Hello(Hello),
    /// The board has told its name and its tools. Comes once.
    Ready(Ready),
    /// The board's hello does not offer MCP, or over MQTT the board leaves MCP unanswered. If MCP comes
    /// anyway, `Ready` follows.
    NoMcp,
    /// The board's tools are others than before.
    ToolsChanged { tools: Toolset, warnings: Vec<String> },
    /// The answer to a call. Every ticket that is not cancelled gets exactly one.
    Answered(Ticket, Result<Outcome, ToolError>),
    /// The board said something without being asked.
    Notified(Notice),
    /// Something was wrong and has been worked around, or left out. For the log.
    Warned(String),
    /// The board talks to nobody; the connection, which exists for the conversation, should be closed in order.
    TalkEnded,
    /// The session is over, and why. Nothing but answers to new calls comes after this.
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

/// One call's claim to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub(crate) u64);

/// Counters over the life of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Calls sent to the board.
    pub calls: u64,
    /// Answers that found their call.
    pub answers: u64,
    /// Answers to requests that were given up.
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
    /// Notices and courtesies left out because nobody polled.
    pub dropped: u64,
}
