//! A report in the form of JUnit, which CI systems read.

use super::{RunReport, escaped};

pub(super) fn document(report: &RunReport, suite: &str, name: &str) -> String {
    let (suite, name, seconds) = (escaped(suite), escaped(name), report.took.as_secs_f64());
    let failures = u8::from(report.failure.is_some());
    let lines: Vec<String> = report
        .steps
        .iter()
        .map(|step| {
            let word = if step.outcome.is_ok() { "ok" } else { "failed" };
            format!("{}. {} {word} ({} ms): {}", step.at, step.what, step.took.as_millis(), step.text())
        })
        .collect();
    let failure = match &report.failure {
        Some(error) => {
            let screen = report.failed_step().and_then(|step| step.after.as_ref()).map_or("", |seen| &seen.screen);
            format!("<failure message=\"{}\">{}</failure>", escaped(&error.message), escaped(screen))
        }
        None => String::new(),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n\
         <testsuite name=\"{suite}\" tests=\"1\" failures=\"{failures}\" time=\"{seconds:.3}\">\n\
         <testcase classname=\"{suite}\" name=\"{name}\" time=\"{seconds:.3}\">{failure}<system-out>{}</system-out></testcase>\n\
         </testsuite>\n</testsuites>\n",
        escaped(&lines.join("\n"))
    )
}
