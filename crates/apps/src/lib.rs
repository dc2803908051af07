//! The tools that apps on a phone offer: finding them, announcing the apps as devices, calling them.
//!
//! [`offer`] reads what an app declares. [`watch`] keeps the apps of one phone as devices: `packages` and `cache`
//! choose which APKs to read, `scan` reads them through `phone_file` and queries the apps through `query`, and
//! [`device`] calls a tool through `invoke`. The phone is reached through [`sinew_phones::PhoneAccess`] alone.
//! App authors use [`lint`] and [`scaffold`]; [`rules`] has the rules and their explanations.

#![warn(unreachable_pub)]

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
