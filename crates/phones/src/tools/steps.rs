//! Several steps in one call: the inline form of `sinew_steps`.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sinew_steps::{Limits, Observation, RunReport, StepHost, StepRecord, Steps, WrittenCall};
use sinew_tool::outcome::ResourceBody;
use sinew_tool::{Args, BoxFuture, Content, ErrorKind, Outcome, ToolError};
use tokio::time::Instant;

use super::args::{boolean, invalid, word};
use super::read::to_jpeg;
use super::{Operator, budget, table};
use crate::image::JpegOptions;

/// 20: a short sequence. A longer one should look at the screen in between.
const MAX_STEPS: usize = 20;
/// Loops included.
const MAX_EXECUTED: usize = 100;
const MAX_ITEMS: usize = 50;

/// A tool that takes this argument runs steps, and is not a step itself.
const STEPS: &str = "steps";

pub(super) async fn run(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let started = Instant::now();
    let time = on.deadline.saturating_duration_since(started);
    let limits = Limits { written: MAX_STEPS, executed: MAX_EXECUTED, items: MAX_ITEMS, time };
    let steps = args.get(STEPS).ok_or_else(|| invalid(STEPS, "Missing required parameter 'steps'"))?;
    let steps = Steps::parse(steps, [], &limits).map_err(|error| invalid(STEPS, error.to_string()))?;
    check_tools(&steps)?;
    // The screen comes to rest between the steps unless told not to.
    let settle = boolean(args, "settle")?.unwrap_or(true);
    let budget = budget(args)?;
    let wanted = word(args, "report", &["json", "html"])?;
    let host = PhoneSteps { on, started, settle, observes: wanted.is_some() };
    let report = sinew_steps::run(&steps, &host, Map::new(), &limits).await;
    let file = wanted.map(|form| report_file(&report, form));
    match &report.failure {
        None => Ok(done(&report, budget, file)),
        Some(error) => Err(stopped(on, error, &report, budget, file).await),
    }
}

fn check_tools(steps: &Steps) -> Result<(), ToolError> {
    for WrittenCall { device, tool, .. } in steps.calls() {
        let row = table::find(tool).filter(|row| !row.arguments.iter().any(|argument| argument.name == STEPS));
        if row.is_none() {
            let message = format!("'{tool}' cannot be a step; use the name of a phone tool other than run_steps");
            return Err(invalid(STEPS, message));
        }
        if device.is_some() {
            return Err(invalid(STEPS, "The steps of run_steps are for this phone; they have no `device`"));
        }
    }
    Ok(())
}

/// Steps on one phone, as part of one call.
struct PhoneSteps<'a> {
    on: &'a Operator<'a>,
    started: Instant,
    settle: bool,
    observes: bool,
}

impl StepHost for PhoneSteps<'_> {
    fn call<'a>(
        &'a self,
        _: Option<&'a str>,
        tool: &'a str,
        arguments: &'a Args,
    ) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let acts = table::find(tool).is_some_and(|row| row.acts());
            if !self.settle || !acts || arguments.contains_key("settle") {
                return self.on.call(tool, arguments).await;
            }
            let mut arguments = arguments.clone();
            arguments.insert("settle".to_owned(), json!(true));
            self.on.call(tool, &arguments).await
        })
    }

    fn pause(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn observe<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Option<Observation>> {
        Box::pin(async move {
            if !self.observes {
                return None;
            }
            let screen = match self.on.tree().await {
                Ok(tree) => self.on.show(&tree, Some(MAX_SCREEN)),
                Err(error) => format!("cannot be read: {error}"),
            };
            let options = JpegOptions { quality: 60, max_side: Some(480), grayscale: false, marks: Vec::new() };
            let picture = match self.on.phone.screenshot().await {
                Ok(image) => to_jpeg(image, options).await.ok(),
                Err(_) => None,
            };
            Some(Observation { screen, picture })
        })
    }
}

/// The text of one screen in a report.
const MAX_SCREEN: usize = 4_000;

fn line(step: &StepRecord) -> String {
    format!("{}. {}: {}", step.at, step.what, step.text())
}

fn done(report: &RunReport, budget: Option<usize>, file: Option<Content>) -> Outcome {
    let lines: Vec<String> =
        report.steps.iter().flat_map(|step| line(step).lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let mut outcome = Outcome::text(crate::screen::join(&lines, budget));
    let answers = report.steps.iter().filter_map(|step| step.outcome.as_ref().ok());
    let others = answers.flat_map(|answer| &answer.content).filter(|item| !matches!(item, Content::Text(_)));
    outcome.content.extend(others.cloned());
    outcome.content.extend(file);
    outcome.structured = report.returned.clone().filter(Value::is_object);
    outcome
}

/// The failure of a step, with what was done before and the screen it met.
async fn stopped(
    on: &Operator<'_>,
    error: &ToolError,
    report: &RunReport,
    budget: Option<usize>,
    file: Option<Content>,
) -> ToolError {
    let screen = match on.tree().await {
        Ok(tree) => on.show(&tree, budget),
        Err(error) => format!("cannot be read: {error}"),
    };
    let (at, what) = report.failed_step().map_or(("?", "?"), |step| (&step.at, &step.what));
    let before: Vec<String> = report.steps.iter().filter(|step| step.outcome.is_ok()).map(line).collect();
    let before = match before.is_empty() {
        true => "nothing was done before".to_owned(),
        false => format!("done before:\n{}", before.join("\n")),
    };
    let message = format!("step {at} ({what}) failed: {}\n{before}\nthe screen now:\n{screen}", error.message);
    let lines: Vec<String> = message.lines().map(str::to_owned).collect();
    let place = at.parse::<usize>().map_or_else(|_| json!(at), |number| json!(number));
    let mut details = json!({"step": place, "tool": what, "details": error.details});
    if let Some(Content::Resource { body, .. }) = file {
        details["report"] = match body {
            ResourceBody::Text(text) => json!(text),
            ResourceBody::Blob(data) => json!(data),
        };
    }
    let kind = if error.kind == ErrorKind::TooLarge { ErrorKind::InvalidArguments } else { error.kind };
    ToolError::new(kind, crate::screen::join(&lines, budget)).with_details(details)
}

fn report_file(report: &RunReport, form: &str) -> Content {
    let (uri, mime_type, body) = match form {
        "html" => {
            let page = report.to_html("Steps on a phone");
            ("sinew:report/steps.html", "text/html", ResourceBody::Blob(STANDARD.encode(page)))
        }
        _ => ("sinew:report/steps.json", "application/json", ResourceBody::Text(report.to_json().to_string())),
    };
    Content::Resource { uri: uri.to_owned(), mime_type: Some(mime_type.to_owned()), body }
}
