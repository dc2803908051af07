//! The tool-specification document: read, check, print, compare, lock.
//!
//! ```
//! use sinew_spec::{Document, lint, print};
//!
//! let document = Document::parse(&print::new_from_template("relay_switch"));
//! let findings = lint::check(&document, &lint::LintConfig::default());
//! assert!(findings.iter().all(|finding| finding.rule.id == "unfilled"));
//! ```
//!
//! [`read`] turns a text into a [`Document`] of [`ToolSpecification`]s, each with its place; [`lint`] has
//! the rules and returns findings; [`print`] writes the canonical document; [`compare`] says what a
//! change means for callers; [`lock`] records the agreed tools.
//!
//! Text in, values out: no files, no network, no clock. Nothing here panics on any input, and the
//! work is bounded by the size of the input.

#![warn(unreachable_pub)]

pub mod compare;
pub mod cores;
mod json;
pub mod lint;
pub mod lock;
mod model;
mod outline;
pub mod print;
pub mod read;
mod schema;

pub use model::{Example, Idempotent, Section, ToolSpecification};
pub use read::{Document, Format, ListDetail};
