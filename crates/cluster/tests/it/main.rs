//! Several gateways in one process, joined by a real NATS server.

#![allow(clippy::panic)]

mod bad_days;
mod calls;
mod devices;
mod leases;
mod moves;
mod nats_server;
mod sharing;
mod stops;
mod support;
