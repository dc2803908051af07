//! Specifications as people write them: read, checked, printed and compared.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation ends a test")]

mod changes;
mod compare;
mod corpus;
mod forms;
mod hostile;
mod keyword_pairs;
mod lossless;
mod meaning_pairs;
mod outside_schemas;
mod report;
mod rules;
mod standard;
mod unread;
mod variance;
mod variants;
mod work;
