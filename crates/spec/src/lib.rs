//! The tool-specification document: read, judge, print, compare, lock.
//!
//! ```
//! use sinew_spec::{Document, judge, print};
//!
//! let document = Document::parse(&print::new_from_template("relay_switch"));
//! let findings = judge::lint(&document, &judge::Config::default());
//! assert!(findings.iter().all(|finding| finding.rule.id == "unfilled"));
//! ```
//!
//! [`read`] turns a text into a [`Document`] of [`ToolSpec`]s, each with its place; [`judge`] holds
//! the rules and gives findings; [`print`] writes the canonical document; [`compare`] tells what a
//! change means for callers; [`lock`] remembers what was agreed.
//!
//! Text in, values out: no files, no network, no clock. Nothing here panics on any input, and the
//! work is bounded by the size of the input.

pub mod compare;
mod json;
pub mod judge;
pub mod lock;
mod model;
pub mod print;
pub mod read;
mod schema;

pub use model::{Example, Idempotent, Section, ToolSpec};
pub use read::{Document, Format};
