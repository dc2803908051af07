//! App tools: what the apps on a phone offer, found, announced and called.
//!
//! [`offer`] judges what an app says of itself. Around it: [`watch`] keeps the apps of one phone as
//! devices, `scan` reads many APKs through `file` and queries the apps through `ask`, `packages` and
//! `cache` choose which, and [`device`] calls a tool through `invoke`. [`sinew_phones::Access`] is the way to the phone.
//! For the authors of such apps there are [`lint`] and [`scaffold`]; [`rules`] has what both say.

pub mod apk;
mod app_function;
mod arguments;
mod broadcast;
mod cache;
pub mod device;
#[cfg(test)]
mod hostile_output;
mod invoke;
pub mod lint;
pub mod offer;
mod packages;
mod phone_file;
mod query;
pub mod rules;
pub mod scaffold;
mod scan;
pub mod watch;

pub use device::AppDevice;
pub use watch::{AppWatcher, WatchSettings};
