//! Phones and their tools: on paper, on the virtual phone, and through the real adb server.

mod adb;
mod agent;
mod common;
mod docs;
mod models;
mod real_adb;
mod reference;
mod virtual_phone;
