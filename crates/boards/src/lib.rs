//! Family 1: boards.
//!
//! A board connects to [`http`], where it upgrades to a WebSocket, or to [`mqtt`]. It is identified and admitted
//! (`identity`), and gets its own task (`pump`) that owns the protocol state
//! (`sinew_wire::host::Session`) and the connection (`pipe`). What the gateway sees of it is a [`BoardDevice`]
//! (`device`), announced as a `DeviceEvent`. The `roster` knows who is connected, so that a board that
//! reconnects replaces its older connection, on any listener. At [`http`] boards also ask for their settings
//! ([`bootstrap`]) and send pictures ([`vision`]), and tool providers dial in (`provider`): they are served like
//! boards, but speak plain MCP. Boards behind an MQTT broker are found there ([`broker`]). Conversations of boards are passed
//! on to their voice server ([`relay`]).
//!
//! The board dialect is in `sinew_wire`. Who is admitted is decided by [`HubConfig::admit`].

#![warn(unreachable_pub)]

use std::sync::Arc;
use std::time::Duration;

use sinew_tool::{Admit, Announce, Family, FamilyName, TextTrust};

pub mod bootstrap;
pub mod broker;
mod device;
mod dial;
mod frames;
pub mod http;
mod hub;
mod identity;
mod integers;
mod line;
pub mod mqtt;
mod pipe;
mod provider;
mod pump;
mod queue;
pub mod relay;
mod roster;
mod slots;
mod socket;
mod stream;
mod token_bucket;
pub mod vision;
mod wire_log;

pub use bootstrap::{Bootstrap, OfferedTransport};
pub use device::BoardDevice;
pub use hub::Boards;
pub use line::Line;
pub use relay::VoiceRelay;
pub use vision::{Backend, Pictures};

/// The family of boards that dial in or are behind a broker.
pub(crate) fn board_family(reach: sinew_tool::Reach) -> Family {
    Family::new(FamilyName::of("board"), TextTrust::Attributed, reach)
}

/// What the board listeners need from the gateway around them.
#[derive(Clone)]
pub struct HubConfig {
    pub admit: Arc<dyn Admit>,
    pub announce: Announce,
    /// What is done with photos; without it, or without `reach`, boards get no URL to send them to.
    pub pictures: Option<Pictures>,
    /// How boards get their settings, if they may ask for them.
    pub bootstrap: Option<Bootstrap>,
    /// How boards keep their voice assistant, if they do.
    pub relay: Option<VoiceRelay>,
    /// Whether tools that firmware marks as user-only are listed too.
    pub user_tools: bool,
    pub limits: BoardLimits,
    pub tls: Option<Arc<tokio_rustls::rustls::ServerConfig>>,
    /// Where boards reach this gateway.
    pub reach: Option<AdvertisedAddress>,
}

impl HubConfig {
    /// For boards that were set up by hand: no bootstrap, no pictures, no TLS.
    pub fn new(admit: Arc<dyn Admit>, announce: Announce) -> HubConfig {
        let limits = BoardLimits::default();
        HubConfig {
            admit,
            announce,
            pictures: None,
            bootstrap: None,
            relay: None,
            user_tools: false,
            limits,
            tls: None,
            reach: None,
        }
    }
}

/// Name or address of this machine as boards know it, and the ports behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvertisedAddress {
    pub host: String,
    pub http: u16,
    pub mqtt: Option<u16>,
    /// Where the sound of MQTT boards goes.
    pub sound: Option<u16>,
}

sinew_tool::settings! {
    /// Limits of the board listeners.
    pub struct BoardLimits {
        /// Connections that have not yet said who they are. Beyond it, the one that has waited longest makes room.
        pub handshakes: usize = 1024, within 1..=100_000;
        /// Such connections from one address, or from one /64 of IPv6.
        pub handshakes_of_one: usize = 128, within 1..=100_000;
        /// Seconds that such a connection may take: as long as a board itself waits for our hello.
        pub handshake_time: Duration = Duration::from_secs(10), within 1..=600;
        /// Seconds a connected board may take to send its first message.
        pub hello_time: Duration = Duration::from_secs(30), within 1..=3_600;
        /// The longest message in either direction, in bytes: what is read from a board, and what a call may make. A
        /// photo of 640 x 480 in base64 needs some 100 KB.
        pub message_bytes: usize = 1 << 20, within 1024..=67_108_864;
        /// Bytes of answers to a board's own questions and pings that may wait for the board to read them. Beyond it
        /// nothing more is read from the board.
        pub unread_bytes: usize = 64 << 10, within 1024..=67_108_864;
        /// Seconds that this may last before the connection ends.
        pub unread_time: Duration = Duration::from_secs(10), within 1..=600;
        /// Seconds that a conversation over a WebSocket may go on without a call. Firmware streams its microphone meanwhile,
        /// and its connection ends with the conversation.
        pub talk: Duration = Duration::from_secs(60), within 5..=86_400;
        /// Pictures that are received at once. Beyond it, the board that sends the most loses its oldest one.
        pub uploads: usize = 16, within 1..=1024;
        /// Pictures of one board that are received at once.
        pub uploads_per_board: usize = 2, within 1..=1024;
        /// Boards behind a broker that are asked for their tools at once. Brokers queue no more than some hundred messages.
        pub broker_setups: usize = 64, within 1..=10_000;
        /// Seconds in which a board behind a broker must answer its first question. One that does not is asked again
        /// later, apart from the others: its presence may be left over from a board that is gone.
        pub broker_first_answer: Duration = Duration::from_secs(2), within 1..=600;
        /// Connections of one board per second; counted for boards that do not stay. The rest is refused.
        pub connects_per_second: u32 = 2, within 1..=10_000;
        /// How many more connections in a burst.
        pub connect_burst: u32 = 20, within 1..=100_000;
        /// Seconds of silence after which a board is pinged; firmware never pings by itself. Two unanswered pings end
        /// the connection.
        pub ping_after: Duration = Duration::from_secs(30), within 1..=3_600;
        /// Events of one board passed on per second. The rest is counted and dropped.
        pub notices_per_second: u32 = 200, within 1..=100_000;
        /// How many more events in a burst.
        pub notice_burst: u32 = 400, within 1..=1_000_000;
    }
    internal {
        /// Boards connected at once.
        pub boards: usize = 20_000;
        /// Limits of the protocol state: tools, pages, answers, and the calls that wait for a board.
        pub session: sinew_wire::host::Limits = sinew_wire::host::Limits::default();
    }
}
