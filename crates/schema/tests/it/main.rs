//! The validator against another one, and against schemas and values built to stop it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation ends a test")]

mod bounded;
mod differential;
mod keywords;
mod readable;

use serde_json::Value;
use sinew_schema::{Cost, Invalid, Meter, Rejection, Validator};

/// More than any test needs.
const ROOM: Cost =
    Cost { schemas: 10_000, patterns: 1_000, pattern_bytes: 100_000, pattern_states: 100_000, properties: 100 };

fn compile(schema: &Value) -> Result<Validator, Invalid> {
    Validator::compile(schema, ROOM)
}

fn fits(schema: &Value, value: &Value) -> bool {
    match compile(schema).unwrap().check(value, &mut Meter::new(1_000_000)) {
        Ok(()) => true,
        Err(Rejection::Failed(_)) => false,
        Err(Rejection::Exhausted) => panic!("{schema} takes too much work on {value}"),
    }
}
