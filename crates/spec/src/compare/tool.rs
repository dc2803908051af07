//! One tool: its description, hints, audience and schemas.

use sinew_tool::text::clip;
use sinew_tool::{Audience, Tool};

use super::budget::CompareWork;
use super::keywords::equal;
use super::schema::deltas;
use super::{Change, Impact, change};
use crate::model::SchemaRole;
use crate::read::prose::one_line;

/// What changed about one tool.
pub fn diff_tool(old: &Tool, new: &Tool) -> Vec<Change> {
    diff_tool_within(old, new, &mut CompareWork::of_a_pair())
}

/// The same for one of several tools, which share what may be spent. What is over is reported as undecided.
pub fn diff_tool_within(old: &Tool, new: &Tool, work: &mut CompareWork) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut report = |path: &str, kind: &'static str, impact: Impact, message: String| {
        changes.push(change(&old.name, path, kind, impact, message));
    };
    if one_line(&old.description) != one_line(&new.description) {
        let message = format!("the description changed to \"{}\"", clip(&one_line(&new.description)));
        report("/description", "description-changed", Impact::Cosmetic, message);
    }
    if old.title != new.title {
        report("/title", "title-changed", Impact::Cosmetic, "the title changed".to_owned());
    }
    for (path, kind, impact, message) in hint_changes(old, new) {
        report(path, kind, impact, message);
    }
    match (old.audience, new.audience) {
        (Audience::Everyone, Audience::User) => {
            report(
                "/annotations/audience",
                "audience-narrowed",
                Impact::Breaking,
                "models no longer see the tool".to_owned(),
            );
        }
        (Audience::User, Audience::Everyone) => {
            report("/annotations/audience", "audience-widened", Impact::Additive, "models see the tool now".to_owned());
        }
        _ => {}
    }
    if !equal(&old.input_schema, &new.input_schema) {
        for delta in deltas(&old.input_schema, &new.input_schema, SchemaRole::Input, work) {
            report(&format!("/inputSchema{}", delta.pointer), delta.kind, delta.impact, delta.message);
        }
    }
    match (&old.output_schema, &new.output_schema) {
        (Some(old), Some(new)) if !equal(old, new) => {
            for delta in deltas(old, new, SchemaRole::Output, work) {
                report(&format!("/outputSchema{}", delta.pointer), delta.kind, delta.impact, delta.message);
            }
        }
        (Some(_), None) => {
            let message = "the result is no longer described".to_owned();
            report("/outputSchema", "output-removed", Impact::Breaking, message);
        }
        (None, Some(_)) => {
            report("/outputSchema", "output-added", Impact::Additive, "the result is described now".to_owned())
        }
        _ => {}
    }
    changes
}

/// Hints are promises about effects: becoming more dangerous breaks callers that rely on them. Unstated
/// hints mean what the protocol says: not read-only, destructive, not idempotent, open world.
fn hint_changes(old: &Tool, new: &Tool) -> Vec<(&'static str, &'static str, Impact, String)> {
    let (one, two) = (old.hints, new.hints);
    let reads = |hint: Option<bool>| hint.unwrap_or(false);
    let mut found = Vec::new();
    let mut report = |path, kind, before: bool, after: bool, stated: bool, worse: &str, better: &str| {
        let (impact, message) = match (before, after) {
            (false, true) => (Impact::Breaking, worse),
            (true, false) => (Impact::Additive, better),
            _ if stated => (Impact::Cosmetic, "the hint is stated differently, with the same meaning"),
            _ => return,
        };
        found.push((path, kind, impact, message.to_owned()));
    };
    report(
        "/annotations/readOnlyHint",
        "read-only-changed",
        !reads(one.read_only),
        !reads(two.read_only),
        one.read_only != two.read_only,
        "the tool no longer only reads",
        "the tool only reads now",
    );
    // A read-only tool is not destructive, whatever its other hints say.
    let destroys = |read_only: Option<bool>, hint: Option<bool>| !reads(read_only) && hint.unwrap_or(true);
    let (before, after) = (destroys(one.read_only, one.destructive), destroys(two.read_only, two.destructive));
    if reads(one.read_only) == reads(two.read_only) || one.destructive != two.destructive {
        report(
            "/annotations/destructiveHint",
            "destructive-changed",
            before,
            after,
            one.destructive != two.destructive,
            "the tool may be destructive now",
            "the tool is not destructive any more",
        );
    }
    report(
        "/annotations/idempotentHint",
        "idempotent-changed",
        !reads(one.idempotent),
        !reads(two.idempotent),
        one.idempotent != two.idempotent,
        "a second call is no longer harmless",
        "a second call is harmless now",
    );
    report(
        "/annotations/openWorldHint",
        "open-world-changed",
        one.open_world.unwrap_or(true),
        two.open_world.unwrap_or(true),
        one.open_world != two.open_world,
        "the tool may use systems outside now",
        "the tool uses no systems outside now",
    );
    found
}
