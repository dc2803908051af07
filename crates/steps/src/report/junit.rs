//! Reports in the form of JUnit, which CI systems read.

use std::fmt::Write;

use super::{RunReport, SuiteCase, escaped};

pub(super) fn document(cases: &[SuiteCase]) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    for suite in cases.chunk_by(|one, other| one.lane == other.lane) {
        let failures = suite.iter().filter(|case| case.report.failure.is_some()).count();
        let seconds: f64 = suite.iter().map(|case| case.report.took.as_secs_f64()).sum();
        let lane = escaped(lane_of(&suite[0]));
        let _ = writeln!(
            text,
            "<testsuite name=\"{lane}\" tests=\"{}\" failures=\"{failures}\" time=\"{seconds:.3}\">",
            suite.len()
        );
        suite.iter().for_each(|case| text.push_str(&test_case(case)));
        text.push_str("</testsuite>\n");
    }
    text + "</testsuites>\n"
}

fn lane_of(case: &SuiteCase) -> &str {
    if case.lane.is_empty() { "routines" } else { &case.lane }
}

fn test_case(case: &SuiteCase) -> String {
    let RunReport { steps, failure, took, .. } = &case.report;
    let lines: Vec<String> = steps
        .iter()
        .map(|step| {
            let word = if step.outcome.is_ok() { "ok" } else { "failed" };
            format!("{}. {} {word} ({} ms): {}", step.at, step.what, step.took.as_millis(), step.text())
        })
        .collect();
    let failure = failure.as_ref().map_or_else(String::new, |error| {
        let screen = case.report.failed_step().and_then(|step| step.after.as_ref()).map_or("", |seen| &seen.screen);
        format!("<failure message=\"{}\">{}</failure>", escaped(&error.message), escaped(screen))
    });
    format!(
        "<testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\">{failure}<system-out>{}</system-out></testcase>\n",
        escaped(lane_of(case)),
        escaped(&case.name),
        took.as_secs_f64(),
        escaped(&lines.join("\n"))
    )
}
