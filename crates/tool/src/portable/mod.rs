//! Schemas that every AI client and the API behind it accepts.
//!
//! The APIs behind MCP clients take less than JSON Schema, and one schema they dislike costs the user every tool of the
//! session. So a tool is *listed* with a portable schema and *checked* with its own. What the portable schema cannot say
//! is written as text into the description of the part it concerns.
//!
//! - [`input`]: a value that fits the portable schema fits the original too, except for what is written as text
//! - [`output`]: a value that fits the original fits the portable schema; clients check results with it
//! - [`violations`]: what a schema has that some client refuses; none for what the two functions give
//!
//! [`RULES`] lists each rule with the client or API it is for; `docs/clients.md` is printed from it.

mod alternatives;
mod argument_names;
mod branch;
mod check;
mod description;
mod dialect;
mod kind;
mod node;
mod room;
mod rules;
mod sentences;
#[cfg(test)]
mod tests;
mod values;

use serde_json::Value;

pub use check::{keeps_shape, violations};
pub use description::{Description, LONGEST_DESCRIPTION, describe};
use node::Rewriter;
use room::Room;
pub use rules::{PortableRule, RULES};
pub use sentences::ELSEWHERE;

/// A portable schema, and what it could not say.
#[derive(Clone, Debug, PartialEq)]
pub struct Portable {
    pub schema: Value,
    /// Sentences about the whole, for the description of the tool ([`describe`]).
    pub notes: Vec<String>,
    pub simplified: Vec<Simplification>,
    /// What it took to make this, as bytes that are read.
    pub work: usize,
}

/// A part of a schema that is listed in a simpler form.
#[derive(Clone, Debug, PartialEq)]
pub struct Simplification {
    /// A JSON pointer into the schema.
    pub path: String,
    /// A keyword, or a few words.
    pub what: String,
}

impl Simplification {
    /// Why.
    pub fn rule(&self) -> &'static PortableRule {
        PortableRule::of(&self.what)
    }
}

/// `/properties/mail: format, for Gemini`
impl std::fmt::Display for Simplification {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = if self.path.is_empty() { "the root" } else { &self.path };
        write!(f, "{path}: {}, for {}", self.what, self.rule().refused_by)
    }
}

/// Which way a schema may differ from the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// It may accept less, and more where the description says so.
    Input,
    /// It may only accept more.
    Output,
}

/// The input schema as it is listed.
pub fn input(schema: &Value) -> Portable {
    listed(schema, Direction::Input)
}

/// The output schema as it is listed.
pub fn output(schema: &Value) -> Portable {
    listed(schema, Direction::Output)
}

/// Times that a schema is rewritten with less room, because its listed form is too long.
const MOST_TRIES: usize = 8;

/// The rewriter counts roughly, so what it made is measured.
fn listed(schema: &Value, direction: Direction) -> Portable {
    let counted = dialect::counted(schema);
    let most = room::most_listed(&counted);
    // Short parts have less text than is counted for them.
    let (mut room, mut work) = (2 * most, 0);
    for _ in 0..MOST_TRIES {
        let portable = Rewriter::new(&counted, direction, Room::new(room, room::MOST_READ - work)).root();
        work += portable.work;
        let length = portable.schema.to_string().len();
        if length <= most {
            return Portable { work, ..portable };
        }
        room = room * most / length * 3 / 4;
    }
    let schema = serde_json::json!({"type": "object", "properties": {}});
    let simplified = vec![Simplification { path: String::new(), what: room::TOO_LONG.to_owned() }];
    Portable { schema, notes: vec![sentences::LEFT_OUT.to_owned()], simplified, work }
}
