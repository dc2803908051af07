//! What a runner runs: text in, texts out, with neither socket nor clock.

use std::time::Duration;

use sinew_wire::device::Board;

/// A board as its socket sees it. A [`Board`] is one that speaks only when asked; a type of your own,
/// with a [`Board`] inside, may also have something to tell.
///
/// Times count from the start of the run.
pub trait Firmware: Send {
    /// The name of the board, shown with its presence at a broker.
    fn name(&self) -> Option<&str> {
        None
    }

    /// The first text on every new connection; over MQTT it is not said.
    fn hello(&mut self) -> String;

    /// Text from the gateway, and what the board says to it.
    fn handle_text(&mut self, now: Duration, text: &str) -> Vec<String>;

    /// What the board says by itself. Asked at [`Firmware::next_due`], and after every text.
    fn handle_time(&mut self, _now: Duration) -> Vec<String> {
        Vec::new()
    }

    /// When the board may next have something to say.
    fn next_due(&self) -> Option<Duration> {
        None
    }

    /// A text as it is sent. Real firmware passes some names on in whatever encoding they have.
    fn encode(&mut self, text: String) -> Vec<u8> {
        text.into_bytes()
    }

    /// Sound from a voice server, one frame; over a WebSocket only.
    fn handle_sound(&mut self, _now: Duration, _frame: &[u8]) {}

    /// Frames of sound that the board sends; over a WebSocket only. Asked after every text.
    fn take_sound(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Whether the board wants to end the connection. Asked after everything else, and answered once.
    fn hang_up(&mut self) -> Option<HangUp> {
        None
    }
}

/// The wish to end a connection. It is dropped without a word, as a board that restarts drops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HangUp {
    pub why: &'static str,
    /// How long to stay away; without it, as long as after any other end.
    pub pause: Option<Duration>,
}

impl Firmware for Board {
    fn name(&self) -> Option<&str> {
        Some(Board::name(self))
    }

    fn hello(&mut self) -> String {
        Board::hello(self)
    }

    fn handle_text(&mut self, _now: Duration, text: &str) -> Vec<String> {
        Board::handle_text(self, text).into_iter().collect()
    }
}
