//! The error of a device, cleaned and bounded before it is passed on.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use sinew_tool::text::clean;
use sinew_tool::{ErrorKind, ToolError};

use crate::record::weigh_value;

/// The longest error message of a device that is passed on; a screen full.
const MAX_MESSAGE: usize = 4_000;
/// The details of an error that are passed on, in bytes: what a program reads beside the message, and part of a log.
const MAX_DETAILS: usize = 64 << 10;
/// The report of a run in the details of its failure, in bytes: a hundred steps, each with its screens and a picture.
const MAX_REPORT: usize = 12 << 20;
/// Names of details that were left out which an error lists; more than any device of ours has.
const MAX_OMITTED: usize = 16;
/// The longest such name.
const MAX_OMITTED_NAME: usize = 64;

/// The member of the details that has the report of a run, a file as text.
const REPORT: &str = "report";

/// A device's word about a wrong argument, said as the gateway says it.
pub(crate) fn in_one_voice(mut error: ToolError) -> ToolError {
    let (parameter, issue) = (error.details["parameter_name"].as_str(), error.details["issue"].as_str());
    // A whole sentence stands for itself.
    let is_part = |issue: &str| issue.starts_with(|first: char| first.is_ascii_lowercase());
    if let (ErrorKind::InvalidArguments, Some(parameter), Some(issue)) = (error.kind, parameter, issue)
        && is_part(issue)
    {
        error.message = format!("argument `{parameter}` {issue}");
    }
    error
}

/// Errors of devices are read by people and models.
pub(crate) fn clean_error(mut error: ToolError) -> ToolError {
    error.message = clean(&error.message, MAX_MESSAGE);
    // Only the gateway asks people; a device that says so has acted or not, and nobody knows.
    if error.kind == ErrorKind::ApprovalNeeded {
        error.kind = ErrorKind::ActionFailed;
    }
    match &mut error.details {
        Value::Object(members) => leave_out_what_is_large(members),
        other if weigh_value(other) > MAX_DETAILS => *other = json!({"omitted": ["details"]}),
        _ => {}
    }
    error
}

/// The largest members go until the others fit; `omitted` names them.
fn leave_out_what_is_large(members: &mut Map<String, Value>) {
    let counted = members.iter().filter(|(name, value)| !is_report(name, value));
    let mut by_weight: Vec<(usize, &String)> =
        counted.map(|(name, value)| (name.len() + 4 + weigh_value(value), name)).collect();
    by_weight.sort_unstable();
    let mut total = 0;
    let too_much = by_weight.into_iter().filter(|(weight, _)| {
        total += weight;
        total > MAX_DETAILS
    });
    let omitted: BTreeSet<String> = too_much.map(|(_, name)| name.clone()).collect();
    if omitted.is_empty() {
        return;
    }
    members.retain(|name, _| !omitted.contains(name));
    let names: Vec<String> = omitted.iter().take(MAX_OMITTED).map(|name| clean(name, MAX_OMITTED_NAME)).collect();
    members.insert("omitted".to_owned(), json!(names));
}

fn is_report(name: &str, value: &Value) -> bool {
    name == REPORT && value.as_str().is_some_and(|report| report.len() <= MAX_REPORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(details: Value) -> Value {
        clean_error(ToolError::new(ErrorKind::ActionFailed, "it broke").with_details(details)).details
    }

    #[test]
    fn only_what_is_too_large_is_left_out_and_named() {
        let large = "x".repeat(MAX_DETAILS);
        assert_eq!(
            cleaned(json!({"step": 2, "log": large, "tool": "tap"})),
            json!({"step": 2, "tool": "tap", "omitted": ["log"]})
        );
        assert_eq!(cleaned(json!([large])), json!({"omitted": ["details"]}));
        let small = json!({"step": 2, "log": "short"});
        assert_eq!(cleaned(small.clone()), small);
    }

    #[test]
    fn a_report_has_a_limit_of_its_own() {
        let report = json!({"step": 2, "report": "x".repeat(MAX_REPORT)});
        assert_eq!(cleaned(report.clone()), report);
        for too_large in [json!("x".repeat(MAX_REPORT + 1)), json!(["x".repeat(MAX_DETAILS)])] {
            assert_eq!(cleaned(json!({"step": 2, "report": too_large})), json!({"step": 2, "omitted": ["report"]}));
        }
    }

    #[test]
    fn many_members_and_long_names_are_bounded_too() {
        let many = (0..10_000).map(|number| (format!("{number}{}", "n".repeat(1_000)), json!(1)));
        let cleaned = cleaned(many.collect());
        assert!(
            weigh_value(&cleaned) <= MAX_DETAILS + MAX_OMITTED * (MAX_OMITTED_NAME + 8),
            "{}",
            weigh_value(&cleaned)
        );
        assert_eq!(cleaned["omitted"].as_array().map(Vec::len), Some(MAX_OMITTED));
    }
}
