//! Types that both ends use.

use alloc::string::String;

/// The transport of the text. A board requires that our hello names its own transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    #[default]
    WebSocket,
    /// MQTT for text, with UDP for sound: the hello says `udp`.
    Udp,
}

impl Transport {
    /// The transport as the hello names it.
    pub fn word(self) -> &'static str {
        match self {
            Transport::WebSocket => "websocket",
            Transport::Udp => "udp",
        }
    }
}

/// Where a board may send a picture to have it explained, given to it at `initialize`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vision {
    /// An `http` or `https` address.
    pub url: String,
    pub token: String,
}

/// The MCP revision that boards speak.
pub const PROTOCOL_VERSION: &str = "2024-11-05";
