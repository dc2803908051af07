//! Family 1: boards.
//!
//! A board knocks at [`http`], where it upgrades to a WebSocket, or at [`mqtt`]; is judged by what it says of
//! itself (`greeting`), and gets a task of its own (`pump`) that owns the protocol state
//! (`sinew_wire::host::Session`) and the connection (`pipe`). What the gateway sees of it is a [`BoardDevice`]
//! (`handle`), announced as a `DeviceEvent`. The `roster` knows who is connected, so that a board that
//! returns replaces itself, through whichever door. At [`http`] boards also ask for their settings
//! ([`bootstrap`]) and send pictures ([`vision`]), and tool providers dial in (`provider`), which live as
//! boards do and speak plain MCP. Boards behind a broker of MQTT are found there ([`broker`]).
//!
//! The board dialect is not here (see `sinew_wire`), and neither is any decision about who may call
//! what: admission is asked of whoever opens the [`Door`].

use std::sync::Arc;
use std::time::Duration;

use sinew_tool::{Admit, Announce, Family, FamilyName, WordsTrust};

pub mod bootstrap;
pub mod broker;
mod flood;
mod greeting;
mod hall;
mod handle;
pub mod http;
pub mod mqtt;
mod pipe;
mod provider;
mod pump;
mod queue;
mod roster;
mod socket;
mod stream;
pub mod vision;

pub use bootstrap::{Bootstrap, Offer};
pub use hall::Boards;
pub use handle::BoardDevice;
pub use vision::{Backend, Pictures};

/// Boards that dial in or come through a broker.
pub(crate) fn board_family(reach: sinew_tool::Reach) -> Family {
    Family::new(FamilyName::of("board"), WordsTrust::Attributed, reach)
}

/// What a door for boards needs to know of the house around it.
#[derive(Clone)]
pub struct Door {
    pub admit: Arc<dyn Admit>,
    pub announce: Announce,
    /// What becomes of photos; without it, and without `reach`, boards are told of no place to send them.
    pub pictures: Option<Pictures>,
    /// How boards get their settings, where they may ask for them.
    pub bootstrap: Option<Bootstrap>,
    /// Whether tools that firmware marks as user-only are listed too.
    pub user_tools: bool,
    pub limits: Limits,
    pub tls: Option<Arc<tokio_rustls::rustls::ServerConfig>>,
    /// Where boards reach this gateway, for what they are told to come back to.
    pub reach: Option<Reach>,
}

impl Door {
    /// A door for boards that were set up by hand: no bootstrap, no pictures, no TLS.
    pub fn new(admit: Arc<dyn Admit>, announce: Announce) -> Door {
        let limits = Limits::default();
        Door { admit, announce, pictures: None, bootstrap: None, user_tools: false, limits, tls: None, reach: None }
    }
}

/// Name or address of this machine as boards know it, and the ports behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    pub host: String,
    pub http: u16,
    pub mqtt: Option<u16>,
    /// Where the sound of MQTT boards goes.
    pub sound: Option<u16>,
}

/// What a door bears before it says no.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Boards connected at once.
    pub boards: usize,
    /// Connections that have not yet said who they are. The rest wait in the kernel's backlog.
    pub handshakes: usize,
    /// How long such a connection may take: as long as the board itself waits for our hello.
    pub handshake_time: Duration,
    /// How long a connected board may take to say its first word.
    pub hello_time: Duration,
    /// The longest message in either direction: what is read from a board, and what a call may make. A photo of
    /// 640 x 480 in base64 needs some 100 KB.
    pub message_bytes: usize,
    /// Bytes of answers to a board's own questions and pings that may wait for the board to read them. Beyond it nothing
    /// more is read from the board.
    pub unread_bytes: usize,
    /// How long that may last before the connection ends.
    pub unread_time: Duration,
    /// Connections of one board per second, and how many more in a burst; counted for boards that do not
    /// stay. The rest is turned away.
    pub connects_per_second: u32,
    pub connect_burst: u32,
    /// Calls one board may have open, waiting ones included.
    pub open_calls: usize,
    /// Silence after which a board is pinged; firmware never pings by itself. Two unanswered pings
    /// end the connection.
    pub ping_after: Duration,
    /// Notices passed on per second, and how many more in a burst. The rest is counted and dropped.
    pub notices_per_second: u32,
    pub notice_burst: u32,
    /// What the protocol state bears: tools, pages, answers.
    pub session: sinew_wire::host::Limits,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            boards: 20_000,
            handshakes: 256,
            handshake_time: Duration::from_secs(10),
            hello_time: Duration::from_secs(30),
            message_bytes: 1 << 20,
            unread_bytes: 64 << 10,
            unread_time: Duration::from_secs(10),
            connects_per_second: 2,
            connect_burst: 20,
            open_calls: 64,
            ping_after: Duration::from_secs(30),
            notices_per_second: 200,
            notice_burst: 400,
            session: sinew_wire::host::Limits::default(),
        }
    }
}
