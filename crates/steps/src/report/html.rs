//! A report as one HTML file.

use std::fmt::Write;
use std::time::Duration;

use sinew_tool::Content;

use super::{Observation, RunReport, StepRecord, escaped};

const STYLE: &str = ":root{color-scheme:light dark;--dim:light-dark(#f4f3f8,#25242c);--ok:light-dark(#1a7f37,#57c878);--failed:light-dark(#b3261e,#ff8a80)}\
body{font:15px system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem}\
h2{margin:2.5rem 0 .5rem;font-size:1.05rem;border-top:1px solid #8886;padding-top:1rem}small{font-weight:normal;opacity:.7}\
.ok{color:var(--ok)}.failed{color:var(--failed)}td,th{text-align:left;vertical-align:top;padding:.2rem 1.5rem .2rem 0}\
pre{background:var(--dim);padding:.75rem;margin:.25rem 0;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere}\
.seen{display:flex;gap:1rem;flex-wrap:wrap;align-items:flex-start;margin-top:.75rem}figure{flex:1 1 18rem;min-width:0;margin:0}\
figure.picture{flex:0 0 auto}img{max-width:14rem;max-height:26rem;border:1px solid #8886}figcaption{opacity:.7}";

/// Runs, each under a heading of its own where it has one.
pub(super) fn page(title: &str, runs: &[(Option<String>, &RunReport)]) -> String {
    let title = escaped(title);
    // The policy keeps the page to itself, whatever a screen showed.
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
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
            "<tr><td class=\"{class}\">{word}</td><td><a href=\"#run-{}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td></tr>",
            nth + 1,
            escaped(heading),
            report.steps.len(),
            shown(report.took),
            escaped(why.lines().next().unwrap_or_default())
        );
    }
    page.push_str("</table>\n");
}

fn run(report: &RunReport, page: &mut String) {
    let (count, took) = (report.steps.len(), shown(report.took));
    let steps = if count == 1 { "step" } else { "steps" };
    let _ = match (&report.failure, report.failed_step()) {
        (None, _) => writeln!(page, "<p class=\"ok\">{count} {steps}, succeeded after {took}</p>"),
        (Some(_), None) => writeln!(page, "<p class=\"failed\">{count} {steps}, failed after {took}</p>"),
        (Some(_), Some(step)) => {
            let at = escaped(&step.at);
            writeln!(page, "<p class=\"failed\">{count} {steps}, failed at step {at} after {took}</p>")
        }
    };
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
    let (class, failed) = if step.outcome.is_ok() { ("ok", "") } else { ("failed", " failed") };
    let (at, what, took) = (escaped(&step.at), escaped(&step.what), shown(step.took));
    let _ = writeln!(page, "<h2 class=\"{class}\">{at}. {what}{failed} <small>{took}</small></h2>");
    let _ = writeln!(page, "<pre>{}</pre>", escaped(&step.text()));
    if step.before.is_none() && step.after.is_none() {
        return;
    }
    page.push_str("<div class=\"seen\">\n");
    if let Some(screen) = &step.before {
        figure("Before", screen, page);
    }
    if let Some(seen) = &step.after {
        match step.before.as_ref() == Some(&seen.screen) {
            true => page.push_str("<figure><figcaption>After: the same</figcaption></figure>\n"),
            false => figure("After", &seen.screen, page),
        }
        picture(seen, page);
    }
    page.push_str("</div>\n");
}

fn figure(caption: &str, screen: &str, page: &mut String) {
    let _ = writeln!(page, "<figure><figcaption>{caption}</figcaption><pre>{}</pre></figure>", escaped(screen));
}

fn picture(seen: &Observation, page: &mut String) {
    let Some(Content::Image { data, mime_type, .. }) = &seen.picture else { return };
    let is_base64 = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    if is_base64 && matches!(mime_type.as_str(), "image/jpeg" | "image/png") {
        let _ = writeln!(
            page,
            "<figure class=\"picture\"><img alt=\"The screen\" src=\"data:{mime_type};base64,{data}\"></figure>"
        );
    }
}

/// A time as people read it.
fn shown(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}
