//! Changes outside the schemas: versions, errors, security, examples, and members of a
//! `tools/list` entry that only some clients know.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Change, Impact, change};
use crate::model::{ToolSpecification, error_codes};
use crate::read::prose::one_line;
use sinew_tool::text::clip;

/// Changes of one tool outside its schemas.
pub(super) fn diff(old: &ToolSpecification, new: &ToolSpecification) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut report = |path: &str, kind: &'static str, impact: Impact, message: String| {
        changes.push(change(&old.name, path, kind, impact, message));
    };
    match (old.semver(), new.semver()) {
        (Some(one), Some(two)) if two < one => {
            report(
                "/version",
                "version-lowered",
                Impact::Breaking,
                format!("the version went down from {one} to {two}"),
            );
        }
        (Some(one), None) => {
            report("/version", "version-removed", Impact::Undecided, format!("the version {one} is no longer stated"));
        }
        _ => {}
    }
    errors(old, new, &mut report);
    let texts = [
        ("/security", "security-changed", "the security considerations", &old.security, &new.security),
        ("/idempotency", "idempotency-changed", "the text about repeated calls", &old.idempotency, &new.idempotency),
    ];
    for (path, kind, what, one, two) in texts {
        if one_line(one) != one_line(two) {
            report(path, kind, Impact::Cosmetic, format!("{what} changed"));
        }
    }
    // Where neither stands in a document, the examples were made from the schemas.
    let are_written = !old.places.examples.is_empty() || !new.places.examples.is_empty();
    if are_written && old.examples != new.examples {
        report("/examples", "examples-changed", Impact::Cosmetic, "the usage examples changed".to_owned());
    }
    unknown(old, new, &mut report);
    changes
}

fn errors(
    old: &ToolSpecification,
    new: &ToolSpecification,
    report: &mut impl FnMut(&str, &'static str, Impact, String),
) {
    let codes = |spec: &ToolSpecification| error_codes(&spec.errors).into_iter().collect::<BTreeSet<_>>();
    let (one, two) = (codes(old), codes(new));
    for code in one.difference(&two) {
        let message = format!("the error `{}` is no longer described", clip(code));
        report("/errors", "error-removed", Impact::Cosmetic, message);
    }
    for code in two.difference(&one) {
        report("/errors", "error-added", Impact::Additive, format!("the error `{}` is new", clip(code)));
    }
    if one == two && one_line(&old.errors) != one_line(&new.errors) {
        report("/errors", "errors-changed", Impact::Cosmetic, "the text about errors changed".to_owned());
    }
}

fn unknown(
    old: &ToolSpecification,
    new: &ToolSpecification,
    report: &mut impl FnMut(&str, &'static str, Impact, String),
) {
    let keys: BTreeSet<&String> = old.unknown.keys().chain(new.unknown.keys()).collect();
    for key in keys {
        let (one, two) = (old.unknown.get(key), new.unknown.get(key));
        if one == two {
            continue;
        }
        let path = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        if key == "execution" {
            let (impact, message) = execution(one, two);
            report(&path, "execution-changed", impact, message);
        } else {
            report(&path, "member-changed", Impact::Cosmetic, format!("`{}` changed", clip(key)));
        }
    }
}

/// How a tool may be run as a task. Unstated means that it cannot be.
fn execution(one: Option<&Value>, two: Option<&Value>) -> (Impact, String) {
    let support = |value: Option<&Value>| {
        value.and_then(|value| value.get("taskSupport")).and_then(Value::as_str).unwrap_or("forbidden").to_owned()
    };
    let (before, after) = (support(one), support(two));
    let impact = match (before.as_str(), after.as_str()) {
        (one, two) if one == two => Impact::Cosmetic,
        (_, "optional") => Impact::Additive,
        ("optional" | "forbidden" | "required", "required" | "forbidden") => Impact::Breaking,
        _ => Impact::Undecided,
    };
    (impact, format!("running it as a task is {} now, was {}", clip(&after), clip(&before)))
}
