//! Phones through the adb server, with nothing but the commands that ship with Android.
//!
//! [`server`] speaks to the adb server, [`shell`] runs commands on a phone through it, [`sync`] moves
//! files, [`program`] speaks with a program while it runs, [`held`] lets the phone close what was opened on it,
//! [`command`] builds command lines that no argument can break out of. [`network_phones`] keeps the network phones that
//! were connected, [`known_phones`] recognises a phone at another address. [`phone`] is the
//! [`crate::Phone`] made of these, [`parse`] reads what the commands print, and [`track`] follows
//! which phones come and go.

pub(crate) mod awake;
pub mod command;
mod held;
pub mod known_phones;
pub mod network_phones;
pub mod parse;
pub mod phone;
pub mod program;
pub mod server;
pub mod shell;
pub mod sync;
pub mod track;

pub use known_phones::DeviceRecords;
pub use network_phones::NetworkPhones;
pub use phone::AdbPhone;
pub use server::{AdbError, AdbServer, AdbTransport};
pub use track::{PhoneOptions, list, run};
