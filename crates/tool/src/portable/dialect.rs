//! What counts in an older draft of JSON Schema.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::references::{self, Holds, place_of};

/// The draft that a schema says it is written in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Draft {
    Four,
    SixOrSeven,
    Of2019,
    Of2020,
}

impl Draft {
    fn of(schema: &Value) -> Draft {
        let named = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let known = [
            ("draft-04", Draft::Four),
            ("draft-06", Draft::SixOrSeven),
            ("draft-07", Draft::SixOrSeven),
            ("2019-09", Draft::Of2019),
        ];
        known.iter().find(|(word, _)| named.contains(word)).map_or(Draft::Of2020, |(_, draft)| *draft)
    }

    /// Whether a keyword is a rule in this draft; the gateway checks calls in the same way.
    fn counts(self, keyword: &str, member: &Value) -> bool {
        let first = match keyword {
            "const" | "contains" | "propertyNames" | "if" | "then" | "else" => Draft::SixOrSeven,
            "exclusiveMinimum" | "exclusiveMaximum" if member.is_number() => Draft::SixOrSeven,
            "dependentRequired"
            | "dependentSchemas"
            | "minContains"
            | "maxContains"
            | "unevaluatedItems"
            | "unevaluatedProperties" => Draft::Of2019,
            "prefixItems" => Draft::Of2020,
            _ => Draft::Four,
        };
        self >= first
    }
}

/// What may stand beside a reference in every draft.
const BESIDE_A_REFERENCE: [&str; 9] =
    ["$ref", "$schema", "$defs", "definitions", "title", "description", "default", "examples", "$comment"];

/// The schema without what does not count in its draft, and with references that are plain paths.
pub(super) fn counted(schema: &Value) -> Cow<'_, Value> {
    let mut counted = Cow::Borrowed(schema);
    if !references::are_plain(schema) {
        references::make_plain(counted.to_mut());
    }
    let draft = Draft::of(schema);
    if draft < Draft::Of2020 {
        reduce(counted.to_mut(), draft);
    }
    counted
}

fn reduce(schema: &mut Value, draft: Draft) {
    let Value::Object(members) = schema else { return };
    // Up to draft 7 nothing beside a reference is a rule.
    if draft <= Draft::SixOrSeven && members.get("$ref").is_some_and(Value::is_string) {
        members.retain(|keyword, _| BESIDE_A_REFERENCE.contains(&keyword.as_str()));
    }
    members.retain(|keyword, member| draft.counts(keyword, member));
    for (keyword, member) in members.iter_mut() {
        match (place_of(keyword), member) {
            (Holds::Data, _) => {}
            (Holds::Names, Value::Object(all)) => reduce_all(all, draft),
            (_, Value::Array(all)) => all.iter_mut().for_each(|part| reduce(part, draft)),
            (_, part) => reduce(part, draft),
        }
    }
}

fn reduce_all(all: &mut Map<String, Value>, draft: Draft) {
    all.values_mut().for_each(|part| reduce(part, draft));
}
