//! One gateway with its device families and listeners: configured, opened and closed together.
//!
//! Tests, the demo, the benchmark and the command line all start a gateway with [`GatewayServer::open`]. Nothing here knows
//! command-line arguments or terminals. A new device family is a new crate and one line in [`server`], or in [`families`] where the configuration names its devices.

#![warn(unreachable_pub)]

pub mod android;
pub mod board_listeners;
pub mod brokers;
pub mod cluster;
pub mod config;
mod error;
pub mod families;
mod hangup;
pub mod hooks;
pub mod log;
pub mod relay;
mod relay_names;
pub mod reload;
mod routine_files;
mod seals;
pub mod server;
mod server_list;
pub mod state;
mod tasks;
mod webhook;

pub use config::{GatewayConfig, Overrides};
pub use error::{ComposeErrorKind, Error};
pub use server::{CertificateSource, GatewayServer, ServerSettings, allow_many_sockets};
