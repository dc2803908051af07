//! A report as one HTML file.

use std::fmt::Write;

use sinew_tool::Content;

use super::{Observation, RunReport, StepRecord, escaped};

const STYLE: &str = "body{font:15px system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1c1b22}\
h2{margin:2rem 0 .5rem;font-size:1.05rem}.ok{color:#1a7f37}.failed{color:#b3261e}\
td,th{text-align:left;vertical-align:top;padding:.2rem 1.5rem .2rem 0}pre{background:#f4f3f8;padding:.75rem;overflow:auto;white-space:pre-wrap}\
.seen{display:flex;gap:1rem;flex-wrap:wrap}.seen>figure{flex:1 1 20rem;margin:0}img{max-width:16rem;border:1px solid #ccc}";

/// Runs, each under a heading of its own where it has one.
pub(super) fn page(title: &str, runs: &[(Option<String>, &RunReport)]) -> String {
    let title = escaped(title);
    // The policy keeps the page to itself, whatever a screen showed.
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\
         <style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n",
    );
    overview(runs, &mut page);
    for (nth, (heading, report)) in runs.iter().enumerate() {
        if let Some(heading) = heading {
            let _ = writeln!(page, "<h1 id=\"run-{}\">{}</h1>", nth + 1, escaped(heading));
        }
        run(report, &mut page);
    }
    page.push_str("</body></html>\n");
    page
}

/// How many went well, and a line for each that leads to it. One run needs none.
fn overview(runs: &[(Option<String>, &RunReport)], page: &mut String) {
    let named: Vec<_> = runs.iter().filter_map(|(heading, report)| Some((heading.as_ref()?, *report))).collect();
    if named.is_empty() {
        return;
    }
    let failed = named.iter().filter(|(_, report)| report.failure.is_some()).count();
    let class = if failed == 0 { "ok" } else { "failed" };
    let _ = writeln!(page, "<p class=\"{class}\">{failed} of {} runs failed</p>\n<table>", named.len());
    page.push_str("<tr><th>Result</th><th>Routine</th><th>Steps</th><th>Time</th><th>Failure</th></tr>\n");
    for (nth, (heading, report)) in named.iter().enumerate() {
        let (class, word, why) = match &report.failure {
            None => ("ok", "succeeded", String::new()),
            Some(failure) => {
                let step = report.failed_step().map_or_else(String::new, |step| format!("step {}: ", step.at));
                ("failed", "failed", format!("{step}{}", failure.message))
            }
        };
        let _ = writeln!(
            page,
            "<tr><td class=\"{class}\">{word}</td><td><a href=\"#run-{}\">{}</a></td><td>{}</td><td>{} ms</td><td>{}</td></tr>",
            nth + 1,
            escaped(heading),
            report.steps.len(),
            report.took.as_millis(),
            escaped(why.lines().next().unwrap_or_default())
        );
    }
    page.push_str("</table>\n");
}

fn run(report: &RunReport, page: &mut String) {
    let (class, word) = if report.failure.is_none() { ("ok", "succeeded") } else { ("failed", "failed") };
    let _ = writeln!(
        page,
        "<p class=\"{class}\">{} steps, {word} after {} ms</p>",
        report.steps.len(),
        report.took.as_millis()
    );
    report.steps.iter().for_each(|step| section(step, page));
    match &report.failure {
        Some(failure) if report.failed_step().is_none() => {
            let _ = writeln!(page, "<pre>{}</pre>", escaped(&failure.message));
        }
        _ => {}
    }
    if let Some(returned) = &report.returned {
        let _ = writeln!(page, "<h2>Result</h2>\n<pre>{}</pre>", escaped(&returned.to_string()));
    }
}

fn section(step: &StepRecord, page: &mut String) {
    let class = if step.outcome.is_ok() { "ok" } else { "failed" };
    let (at, what) = (escaped(&step.at), escaped(&step.what));
    let _ = writeln!(page, "<h2 class=\"{class}\">{at}. {what} <small>{} ms</small></h2>", step.took.as_millis());
    let _ = writeln!(page, "<pre>{}</pre>", escaped(&step.text()));
    if step.before.is_none() && step.after.is_none() {
        return;
    }
    page.push_str("<div class=\"seen\">\n");
    if let Some(screen) = &step.before {
        let _ = writeln!(page, "<figure><figcaption>Before</figcaption><pre>{}</pre></figure>", escaped(screen));
    }
    if let Some(seen) = &step.after {
        figure(seen, page);
    }
    page.push_str("</div>\n");
}

fn figure(seen: &Observation, page: &mut String) {
    page.push_str("<figure><figcaption>After</figcaption>");
    if let Some(Content::Image { data, mime_type, .. }) = &seen.picture {
        let is_base64 = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
        if is_base64 && matches!(mime_type.as_str(), "image/jpeg" | "image/png") {
            let _ = write!(page, "<img alt=\"The screen\" src=\"data:{mime_type};base64,{data}\">");
        }
    }
    let _ = writeln!(page, "<pre>{}</pre></figure>", escaped(&seen.screen));
}
