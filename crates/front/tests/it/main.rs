//! The doors over real loopback sockets, with a made-up device behind the real gateway.

#![allow(clippy::unwrap_used, clippy::panic)]

mod admin;
mod auth;
mod bad_input;
mod client;
mod dialout;
mod errors;
mod fake;
mod hostile;
mod legacy;
mod modern;
mod phones;
mod pipes;
mod rest;
mod stopping;
mod tls;
