//! A virtual phone: a small working phone, not canned answers.
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
mod handset;
mod keys;
mod layout;
mod log;
mod machine;
mod mp4;
mod paint;
mod programs;
mod reach;
mod running;
mod setup;
mod shaping;
mod shopping;
mod system;
mod text;
mod theme;
mod touch;
mod tree;
mod typing;
mod view;
pub mod virtual_app;
mod windows;

#[cfg(test)]
mod pictures;
#[cfg(test)]
mod story;

pub use act::StockApp;
pub use agent::{AgentStandIn, ScriptedAgent};
pub use android::Android;
pub use canvas::ScreenCanvas;
pub use direct::VirtualPhone;
pub use handset::{Denial, Handset, PhoneClock};
pub use machine::PhoneMachine;
pub use running::{PhoneConfig, RunningPhones, run};
pub use setup::{LockScreen, PhoneSetup};
pub use shopping::shopping;
pub use virtual_app::VirtualApp;
