//! App tools: what the apps on a phone offer, found, announced and called.
//!
//! [`offer`] judges what an app says of itself. Around it: [`follow`] keeps the apps of one phone as
//! devices, `scan` reads many APKs through `file` and asks the apps through `ask`, `packages` and
//! `cache` choose which, and [`device`] calls a tool through `invoke`. [`sinew_phones::Access`] is the way to the phone.
//! For the authors of such apps there are [`lint`] and [`scaffold`]; [`rules`] has what both say.

pub mod apk;
mod arguments;
mod ask;
mod broadcast;
mod cache;
#[cfg(test)]
mod chaos;
pub mod device;
mod file;
pub mod follow;
mod function;
mod invoke;
pub mod lint;
pub mod offer;
mod packages;
pub mod rules;
pub mod scaffold;
mod scan;

pub use device::AppDevice;
pub use follow::{Follower, Settings};
