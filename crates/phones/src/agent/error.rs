//! Why the agent did not do what it was asked.

use std::time::Duration;

use crate::adb::AdbError;
use crate::phone::PhoneError;

/// Why the agent did not do what it was asked. Messages name the thing, the expectation and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// There is no agent to ask, and what to do about it.
    #[error("{0}")]
    Absent(String),
    /// The agent's own message.
    #[error("{message}")]
    Refused { kind: AgentRefusal, message: String },
    /// It ended, or broke the protocol, before it answered. What was asked may have been done.
    #[error("the agent on the phone ended: {0}")]
    Gone(String),
    /// It did not answer in time. What was asked may have been done.
    #[error("the agent on the phone did not answer `{method}` within {} s", limit.as_secs_f32())]
    Silent { method: String, limit: Duration },
    /// What was asked is longer than a line may be.
    #[error("the request of {0} bytes is longer than the agent reads (4 MiB)")]
    TooLong(usize),
}

/// The agent's word for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentRefusal {
    BadRequest,
    UnknownMethod,
    Invalid,
    Unsupported,
    Busy,
    Denied,
    /// The display is off.
    Asleep,
    NoElement,
    NotFound,
    Timeout,
    Crashed,
    TooLarge,
    Failed,
}

impl AgentRefusal {
    /// An unknown word is a plain failure.
    pub fn parse(word: &str) -> AgentRefusal {
        match word {
            "bad_request" => AgentRefusal::BadRequest,
            "unknown_method" => AgentRefusal::UnknownMethod,
            "invalid" => AgentRefusal::Invalid,
            "unsupported" => AgentRefusal::Unsupported,
            "busy" => AgentRefusal::Busy,
            "denied" => AgentRefusal::Denied,
            "asleep" => AgentRefusal::Asleep,
            "no_element" => AgentRefusal::NoElement,
            "not_found" => AgentRefusal::NotFound,
            "timeout" => AgentRefusal::Timeout,
            "crashed" => AgentRefusal::Crashed,
            "too_large" => AgentRefusal::TooLarge,
            _ => AgentRefusal::Failed,
        }
    }
}

impl AgentError {
    /// Whether the agent cannot be used any more.
    pub fn is_fatal(&self) -> bool {
        matches!(self, AgentError::Gone(_) | AgentError::Silent { .. })
    }

    /// For something that may be asked of another backend without harm: where the agent is gone,
    /// nothing is lost by asking again.
    pub fn of_reading(self, what: &'static str) -> PhoneError {
        match self.is_fatal() {
            true => PhoneError::unsupported(what, self.to_string()),
            false => self.of_acting(what),
        }
    }

    /// For something that must not happen twice.
    pub fn of_acting(self, what: &'static str) -> PhoneError {
        let message = self.to_string();
        match self {
            AgentError::Absent(reason) => PhoneError::unsupported(what, reason),
            AgentError::Gone(_) => {
                PhoneError::Failed(format!("{message}, while {what}; look at the screen before trying again"))
            }
            AgentError::Silent { .. } => {
                PhoneError::Timeout(format!("{message}, while {what}; look at the screen before trying again"))
            }
            AgentError::TooLong(_) => PhoneError::Invalid(message),
            AgentError::Refused { kind, .. } => match kind {
                AgentRefusal::UnknownMethod | AgentRefusal::Unsupported => PhoneError::unsupported(what, message),
                AgentRefusal::BadRequest | AgentRefusal::Invalid => PhoneError::Invalid(message),
                AgentRefusal::Denied => PhoneError::Denied(message),
                AgentRefusal::Asleep => PhoneError::Denied(format!(
                    "{message}, so the phone shows nothing and accepts no input; wake it with press_key WAKEUP"
                )),
                AgentRefusal::NoElement => PhoneError::NoElement(message),
                AgentRefusal::Timeout => PhoneError::Timeout(message),
                AgentRefusal::Busy
                | AgentRefusal::NotFound
                | AgentRefusal::Crashed
                | AgentRefusal::TooLarge
                | AgentRefusal::Failed => PhoneError::Failed(message),
            },
        }
    }
}

/// While the agent is brought to the phone and started.
impl From<AdbError> for AgentError {
    fn from(error: AdbError) -> AgentError {
        AgentError::Absent(format!("the agent could not be started: {error}"))
    }
}
