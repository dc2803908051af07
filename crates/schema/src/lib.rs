//! JSON Schema validation with a counter.
//!
//! Schemas and values come from devices and clients, so both are hostile. Compiling a schema takes time
//! and memory in proportion to its text. Checking a value spends a [`Meter`], one unit for each elementary
//! step, and stops when it is empty; memory in use never exceeds a constant per unit spent. No schema and
//! no value can get around the counter, whatever they make of references, `anyOf` or patterns.
//!
//! Supported are the assertions of the drafts 4 to 2020-12, without remote references; `format` and the
//! `content*` keywords are annotations. A pattern that cannot be run within bounds is not enforced, and
//! [`Validator::unenforced`] says which.

#![warn(unreachable_pub)]

mod compile;
mod equality;
mod evaluate;
mod explain;
mod loosen;
mod meter;
mod node;
mod pattern;

pub use compile::{Cost, Invalid};
pub use evaluate::{Failure, Rejection, Step};
pub use meter::{Exhausted, Meter};
pub use node::Validator;
