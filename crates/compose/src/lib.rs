//! One gateway with its device families and listeners: configured, opened and closed together.
//!
//! Tests, the demo, the benchmark and the command line all start a gateway with [`House::open`]. Nothing here knows
//! command-line arguments or terminals. A new device family is a new crate and one line in [`house`].

pub mod android;
pub mod board_doors;
pub mod brokers;
pub mod config;
mod error;
mod group;
pub mod house;
pub mod state;

pub use config::{Config, Overrides};
pub use error::{Error, ErrorKind};
pub use house::{Certificate, House, Settings, allow_many_sockets};
