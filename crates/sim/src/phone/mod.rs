//! A virtual phone: a real little phone, not canned answers.
//!
//! [`machine`] is the phone itself, with no clock and no socket: apps, a back stack, a keyboard, a
//! clipboard, a log. What is on its screen is one tree of views ([`view`], [`layout`]), from which the
//! accessibility tree ([`tree`]), the picture ([`paint`]) and the touch targets ([`touch`]) come.
//! [`VirtualPhone`] drives it directly; [`adbd`] makes it a device that the real `adb` connects to.

mod act;
mod acts;
pub mod adbd;
mod agent;
mod android;
mod apps;
mod art;
mod canvas;
mod direct;
mod edit;
mod geometry;
mod glyphs;
pub mod guest;
mod handset;
mod keys;
mod layout;
mod log;
mod machine;
mod paint;
mod reach;
mod setup;
mod shaping;
mod shopping;
mod stand;
mod system;
mod text;
mod theme;
mod touch;
mod tree;
mod typing;
mod view;
mod windows;

#[cfg(test)]
mod pictures;
#[cfg(test)]
mod story;

pub use act::App;
pub use agent::{AgentEnd, Played};
pub use android::Android;
pub use canvas::Canvas;
pub use direct::VirtualPhone;
pub use guest::Guest;
pub use handset::{Clock, Denial, Handset};
pub use machine::Machine;
pub use setup::{Lock, Setup};
pub use shopping::shopping;
pub use stand::{PhoneConfig, Stand, run};
