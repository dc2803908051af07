//! The config for boards on real loopback sockets: against virtual boards, and against clients that
//! misbehave in every way we could think of.

// What cannot be is a failed test.
#![allow(clippy::panic)]

mod bad_input;
mod bootstrap;
mod broker;
mod calls;
mod faults;
mod firmware;
mod line;
mod listener;
mod mcp_mqtt;
mod mosquitto;
mod mqtt;
mod mqtt_trouble;
mod pictures;
mod provider;
mod relay;
mod relay_ota;
mod relay_trouble;
mod support;
mod trouble;
mod unread;
