//! Sinew's agent on a phone, and its companion app: what shell commands cannot do.
//!
//! [`link`] speaks with one running agent, [`start`] brings it to the phone and starts it, [`phone`]
//! makes it a [`crate::Phone`], [`standby`] keeps one ready and falls back where there is none.
//! [`companion`] calls activities through the app. The protocol stands in `docs/android-agent.md`.

pub mod companion;
mod error;
mod files;
mod hello;
mod link;
mod phone;
mod standby;
mod start;
#[cfg(test)]
mod tests;
pub mod tree;

pub use companion::{ActivityAnswer, ActivityCall, Companion, CompanionError};
pub use error::{AgentError, AgentRefusal};
pub use files::{AGENT_FILE, AgentSource, COMPANION_FILE};
pub use hello::AgentHello;
pub use link::Agent;
pub use standby::Standby;
