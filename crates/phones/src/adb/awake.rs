//! Whether a phone's display is on. Input to one that is off vanishes without a word, so it is asked first.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::command::Command;
use super::server::Transport;
use super::shell::Limits;
use crate::phone::PhoneError;

/// What was seen within this time is believed, so that a row of taps costs one question.
const BELIEVED: Duration = Duration::from_secs(5);

/// What is known of a display. Shared by all that send input to one phone.
pub struct Awake {
    transport: Transport,
    /// When it was last seen to be on.
    seen: Mutex<Option<Instant>>,
}

impl Awake {
    pub fn new(transport: Transport) -> Awake {
        Awake { transport, seen: Mutex::default() }
    }

    pub fn saw(&self) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub fn forget(&self) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Refuses where the display is off.
    pub async fn require(&self) -> Result<(), PhoneError> {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_some_and(|seen| seen.elapsed() < BELIEVED) {
            return Ok(());
        }
        let question = Command::new("dumpsys power | grep mWakefulness=");
        let text = self.transport.run(&question, Limits::seconds(15)).await?.text();
        if text.contains("=Asleep") || text.contains("=Dozing") {
            return Err(self.asleep());
        }
        self.saw();
        Ok(())
    }

    pub fn asleep(&self) -> PhoneError {
        PhoneError::Denied(format!(
            "the display of phone {} is off, so it shows and takes nothing; wake it with press_key WAKEUP",
            self.transport.serial
        ))
    }
}
