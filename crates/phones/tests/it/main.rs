//! Phones and their tools: on paper, on the virtual phone, and through the real adb server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation ends a test")]

mod adb;
mod agent;
mod common;
mod docs;
mod leaving;
mod models;
mod notifications;
mod real_adb;
mod reference;
mod testers;
mod virtual_phone;
mod waits;
