//! Changes outside the schemas: versions, notes, errors, examples, security, further sections, members of a `tools/list`
//! entry that only some clients know, and the text around all tools.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Change, Impact, change};
use crate::model::{ToolSpecification, error_codes};
use crate::read::prose::one_line;
use crate::read::{Document, Format, meta};
use sinew_tool::text::clip;

/// Changes of one tool outside its schemas, added to those that are known already.
pub(super) fn diff(old: &ToolSpecification, new: &ToolSpecification, changes: &mut Vec<Change>) {
    let not_compared: BTreeSet<String> =
        changes.iter().filter(|change| change.kind == "not-compared").map(|change| change.path.clone()).collect();
    let mut report = |path: &str, kind: &'static str, impact: Impact, message: String| {
        changes.push(change(&old.name, path, kind, impact, message));
    };
    version(old, new, &mut report);
    errors(old, new, &mut report);
    let texts = [
        ("/inputSchema", "notes-changed", "the text about the parameters", &old.input_notes, &new.input_notes),
        ("/outputSchema", "notes-changed", "the text about the result", &old.output_notes, &new.output_notes),
        ("/security", "security-changed", "the security considerations", &old.security, &new.security),
        ("/idempotency", "idempotency-changed", "the text about repeated calls", &old.idempotency, &new.idempotency),
        ("/examples", "notes-changed", "the text about the examples", &old.examples_notes, &new.examples_notes),
    ];
    for (path, kind, what, one, two) in texts {
        if one_line(one) != one_line(two) && !not_compared.contains(path) {
            report(path, kind, Impact::Cosmetic, format!("{what} changed"));
        }
    }
    // Where neither stands in a document, the examples were made from the schemas.
    let are_written = !old.places.examples.is_empty() || !new.places.examples.is_empty();
    if are_written && old.examples != new.examples {
        report("/examples", "examples-changed", Impact::Cosmetic, "the usage examples changed".to_owned());
    }
    further(old, new, &mut report);
    unknown(old, new, &mut report);
}

fn version(
    old: &ToolSpecification,
    new: &ToolSpecification,
    report: &mut impl FnMut(&str, &'static str, Impact, String),
) {
    let (kind, impact, message) = match (old.semver(), new.semver()) {
        (Some(one), Some(two)) if two < one => {
            ("version-lowered", Impact::Breaking, format!("the version went down from {one} to {two}"))
        }
        (Some(one), None) => ("version-removed", Impact::Undecided, format!("the version {one} is no longer stated")),
        (None, None) if old.version != new.version => {
            ("version-changed", Impact::Cosmetic, "the version changed, and neither is a semantic one".to_owned())
        }
        _ => return,
    };
    report("/version", kind, impact, message);
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

/// Sections that the author added.
fn further(
    old: &ToolSpecification,
    new: &ToolSpecification,
    report: &mut impl FnMut(&str, &'static str, Impact, String),
) {
    let (one, two) = (sections(old), sections(new));
    let titles: BTreeSet<&str> = one.iter().chain(&two).map(|(title, _)| *title).collect();
    for title in titles {
        let of = |all: &[(&str, String)]| -> Vec<String> {
            all.iter().filter(|(own, _)| *own == title).map(|(_, text)| text.clone()).collect()
        };
        let (before, after) = (of(&one), of(&two));
        let (kind, what) = match (before.is_empty(), after.is_empty()) {
            _ if before == after => continue,
            (true, _) => ("section-added", "is new"),
            (_, true) => ("section-removed", "is gone"),
            _ => ("section-changed", "changed"),
        };
        report("/sections", kind, Impact::Cosmetic, format!("the section \"{}\" {what}", clip(title)));
    }
}

/// Those of a list hold its unknown members, which are compared one by one.
fn sections(spec: &ToolSpecification) -> Vec<(&str, String)> {
    let sections = if spec.unknown.is_empty() { spec.extra.as_slice() } else { &[] };
    sections.iter().map(|(title, text)| (title.as_str(), one_line(text))).collect()
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
        let step = |key: &str| key.replace('~', "~0").replace('/', "~1");
        let nested = ["annotations", "_meta"].iter().find_map(|outer| {
            let inner = key.strip_prefix(outer)?.strip_prefix('.')?;
            Some(format!("/{outer}/{}", step(inner)))
        });
        let path = nested.unwrap_or_else(|| format!("/{}", step(key)));
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

/// Changes of the text around all tools, in two documents of one format.
pub(super) fn around(old: &Document, new: &Document) -> Vec<Change> {
    let text = |path, kind, what: &str, one: String, two: String| {
        let message = format!("{what} changed");
        (one != two).then(|| change("", path, kind, Impact::Cosmetic, message))
    };
    let found = match (old.format, new.format) {
        (Format::Markdown, Format::Markdown) => {
            let title = |document: &Document| one_line(document.title.as_deref().unwrap_or_default());
            vec![
                text("/title", "title-changed", "the title of the document", title(old), title(new)),
                text("/introduction", "text-changed", "the text before the tools", intro(old), intro(new)),
                text(
                    "/further",
                    "text-changed",
                    "the text after the tools",
                    one_line(&old.further),
                    one_line(&new.further),
                ),
            ]
        }
        // A list has no instructions.
        _ => {
            let instructions = |document: &Document| match document.format {
                Format::Manifest => one_line(&document.intro),
                Format::Markdown | Format::ToolsList => String::new(),
            };
            let kind = "instructions-changed";
            vec![text("/instructions", kind, "the instructions", instructions(old), instructions(new))]
        }
    };
    found.into_iter().flatten().collect()
}

/// What stands before the tools, without the version that their own versions come from.
fn intro(document: &Document) -> String {
    let lines = document.intro.lines().filter(|line| meta::version_in(line).is_none());
    one_line(&lines.collect::<Vec<_>>().join("\n"))
}
