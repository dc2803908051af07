//! The tools of apps: their APKs, their authors' rules, and apps on a virtual phone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation ends a test")]

mod apk;
mod app_authors;
#[path = "../../../phones/tests/it/common/calls.rs"]
mod calls;
mod hostile_apk;
mod offered;
mod recipes;
#[path = "../../../phones/tests/it/common/tracked.rs"]
mod tracked;
#[path = "../../../phones/tests/it/common/virtual_adb.rs"]
mod virtual_adb;
mod virtual_apps;
