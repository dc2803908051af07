//! The endpoints over real loopback sockets, with a fake device behind the real gateway.

#![allow(clippy::unwrap_used, clippy::panic)]

mod admin;
mod auth;
mod bad_input;
mod client;
mod consent;
mod dialout;
mod errors;
mod hostile;
mod leases;
mod lenient;
mod lines;
mod metrics;
mod phone_files;
mod phones;
mod progress;
mod rest;
mod revisions;
mod schemas;
mod server;
mod sessions;
mod shutdown;
mod sign_in;
mod stateless;
mod tls;
mod traces;
