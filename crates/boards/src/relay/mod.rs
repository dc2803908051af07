//! The relay: boards keep their voice assistant.
//!
//! A board is connected to Sinew alone. When it says hello, Sinew dials the voice server for it and passes sound and text on in
//! both directions; MCP ends here. The voice server's requests for tools are answered through [`AssistantAccess`], so the
//! board's tools stay reachable for everybody else, and the assistant can use other devices too.
//!
//! - `server`: where the voice server is, and how it is dialled
//! - `ota`: the settings and the activation that the voice server has for a board
//! - `conversation`: one conversation, from the board's hello to its end
//! - `assistant`: what the voice server asks over MCP
//! - `voice_caller`: the voice server as the caller of a tool
//! - `sound`: the sound of boards on MQTT
//! - `board`: the board's side of a conversation, in its task
//!
//! What is heard is neither stored nor logged.

mod assistant;
mod board;
mod conversation;
mod ota;
mod server;
mod server_text;
pub(crate) mod sound;
mod voice_caller;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sinew_tool::{Args, BoxFuture, Caller, DeviceKey, Outcome, Tool, ToolError};
use tokio::time::Instant;

#[doc(hidden)]
pub use self::assistant::read_foreign_message;
pub(crate) use self::conversation::{Conversation, ConversationTask, FromServer, ToServer};
pub(crate) use self::ota::OtaRequest;
pub use self::server::{OtaAddress, VoiceAddress, VoiceServer};
#[doc(hidden)]
pub use self::sound::read_foreign_sound;

/// After a failed dial the next one waits at least this long, and twice as long after each further failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause: somebody who speaks to a board tries again soon.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// How boards are relayed.
#[derive(Clone)]
pub struct VoiceRelay {
    pub server: VoiceServer,
    pub access: Arc<dyn AssistantAccess>,
    /// Whether new firmware that the voice server announces is passed on to boards.
    pub passes_firmware: bool,
}

/// What the assistant of a board may do. The gateway decides and records.
pub trait AssistantAccess: Send + Sync {
    /// Whether conversations of this board are relayed.
    fn is_relayed(&self, board: &DeviceKey) -> bool;

    /// The tools that the assistant of this board may use, under the names that [`AssistantAccess::call`] takes. Waits a
    /// moment for a board that is about to join.
    fn tools(&self, board: &DeviceKey) -> BoxFuture<'static, Vec<Tool>>;

    /// Calls one of them for the assistant.
    fn call(
        &self,
        board: &DeviceKey,
        tool: String,
        args: Args,
        caller: Arc<dyn Caller>,
    ) -> BoxFuture<'static, Result<Outcome, ToolError>>;

    /// Records a command of the voice server to the board, such as `reboot`. It is passed on once it is recorded.
    fn record(&self, board: &DeviceKey, command: String) -> BoxFuture<'static, Result<(), ToolError>>;
}

/// The relay of one gateway, and what it knows of each board's voice server.
pub(crate) struct RelayHub {
    pub(crate) config: VoiceRelay,
    boards: Mutex<HashMap<DeviceKey, BoardRelay>>,
}

/// What is remembered of a board between conversations.
#[derive(Default)]
struct BoardRelay {
    /// Where its voice server is, as that server's OTA address said.
    server: Option<VoiceAddress>,
    /// Its voice server wants it to be activated.
    awaits_activation: bool,
    failures: u32,
    /// The voice server is not dialled before this, and why.
    paused: Option<(Instant, String)>,
}

impl RelayHub {
    pub(crate) fn new(config: VoiceRelay) -> RelayHub {
        RelayHub { config, boards: Mutex::default() }
    }

    pub(crate) fn is_relayed(&self, board: &DeviceKey) -> bool {
        self.config.access.is_relayed(board)
    }

    fn boards(&self) -> MutexGuard<'_, HashMap<DeviceKey, BoardRelay>> {
        self.boards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the voice server of a board may be dialled now; the error says why not.
    fn check_pause(&self, board: &DeviceKey) -> Result<(), String> {
        let boards = self.boards();
        let Some((until, why)) = boards.get(board).and_then(|known| known.paused.as_ref()) else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        Err(format!("{why}; the next try is in {} s", left.as_secs() + 1))
    }

    fn note_success(&self, board: &DeviceKey) {
        if let Some(known) = self.boards().get_mut(board) {
            (known.failures, known.paused) = (0, None);
        }
    }

    fn note_failure(&self, board: &DeviceKey, why: &str) {
        let mut boards = self.boards();
        let known = boards.entry(board.clone()).or_default();
        let pause = pause(known.failures, random_part());
        known.failures = known.failures.saturating_add(1);
        known.paused = Some((Instant::now() + pause, why.to_owned()));
    }
}

/// `part` of 256 spreads boards that failed together.
fn pause(failures: u32, part: u8) -> Duration {
    let longest = (FIRST_PAUSE * 2_u32.saturating_pow(failures.min(10))).min(MAX_PAUSE);
    longest / 2 + longest / 2 * u32::from(part) / 255
}

fn random_part() -> u8 {
    let mut part = [0];
    // Without random numbers boards are not spread, which costs nothing but a burst.
    let _ = getrandom::fill(&mut part);
    part[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_from_one_second_to_thirty_and_are_spread() {
        assert_eq!((pause(0, 255), pause(0, 0)), (FIRST_PAUSE, FIRST_PAUSE / 2));
        assert_eq!(pause(3, 255), Duration::from_secs(8));
        for failures in [5, 6, 100, u32::MAX] {
            assert_eq!((pause(failures, 255), pause(failures, 0)), (MAX_PAUSE, MAX_PAUSE / 2));
        }
    }
}
