//! Several steps in one call: the inline form of `sinew_steps`.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sinew_steps::{Limits, Observation, RunReport, StepClock, StepHost, StepRecord, Steps, WrittenCall};
use sinew_tool::outcome::ResourceBody;
use sinew_tool::{Args, BoxFuture, Content, ErrorKind, LOOK, Outcome, PlannedCall, ToolAccess, ToolError};
use tokio::time::Instant;

use super::args::{boolean, invalid, word};
use super::row::ToolRow;
use super::{Operator, budget, table};
use crate::turn::SequenceTurn;

/// 20: a short sequence. A longer one should look at the screen in between.
const MAX_STEPS: usize = 20;
/// Loops included.
const MAX_EXECUTED: usize = 100;
const MAX_ITEMS: usize = 50;

/// Looks for an element where there is no `find_elements`.
const COMPACT_LOOK: &str = "wait_for_element";

/// A tool that takes this argument runs steps, and is not a step itself.
pub(super) const STEPS: &str = "steps";

pub(super) async fn run(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let time = on.deadline.saturating_duration_since(Instant::now());
    let limits = Limits { written: MAX_STEPS, executed: MAX_EXECUTED, items: MAX_ITEMS, time };
    let steps = args.get(STEPS).ok_or_else(|| invalid(STEPS, "Missing required parameter 'steps'"))?;
    let steps = Steps::parse(steps, [], &limits).map_err(|error| invalid(STEPS, error.to_string()))?;
    check_tools(on, &steps)?;
    // The screen comes to rest between the steps unless told not to.
    let settle = boolean(args, "settle")?.unwrap_or(true);
    let budget = budget(args)?;
    let wanted = word(args, "report", &["json", "html"])?;
    let run = run_id()?;
    on.calls.join_run(&run);
    let known = steps.known_calls(&Map::new(), &limits).into_iter();
    let known: Vec<PlannedCall> = known.map(|call| planned(on, settle, &call.tool, &call.args)).collect();
    on.calls.agree(&known).await?;
    let turn = SequenceTurn::take(on.turn).await;
    let host = PhoneSteps { on, started: Instant::now(), settle, observes: wanted.is_some(), turn };
    let report = sinew_steps::run(&steps, &host, Map::new(), &limits).await;
    let file = wanted.map(|form| report_file(&report, form));
    match &report.failure {
        None => Ok(done(&report, budget, file)),
        Some(error) => {
            let mut stopped = stopped(on, error, &report, budget, file).await;
            stopped.details["run"] = json!(run);
            Err(stopped)
        }
    }
}

/// The id under which the audit records of the steps are found together.
fn run_id() -> Result<String, ToolError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| ToolError::new(ErrorKind::Internal, format!("the system gives no random numbers: {error}")))?;
    Ok(format!("run-{:016x}", u64::from_be_bytes(bytes)))
}

fn check_tools(on: &Operator<'_>, steps: &Steps) -> Result<(), ToolError> {
    for call in steps.calls() {
        let WrittenCall { device, tool, .. } = call;
        if !(is_step(on, tool) || tool == LOOK && is_step(on, COMPACT_LOOK)) {
            let message =
                format!("'{tool}' cannot be a step; use the name of a tool of this phone other than run_steps");
            return Err(invalid(STEPS, message));
        }
        if device.is_some() {
            return Err(invalid(STEPS, "The steps of run_steps are for this phone; they have no `device`"));
        }
        if let Some(row) = table::find(tool) {
            let known: Vec<&str> = row.arguments().map(|argument| argument.name).collect();
            call.check_arguments(&known).map_err(|why| invalid(STEPS, why))?;
        }
    }
    Ok(())
}

/// A step as the call that is made.
fn planned(on: &Operator<'_>, settle: bool, tool: &str, arguments: &Args) -> PlannedCall {
    let mut args = arguments.clone();
    if settle && table::find(tool).is_some_and(ToolRow::acts) {
        args.entry("settle").or_insert(json!(true));
    }
    PlannedCall { device: Some(on.calls.device().to_owned()), tool: tool.to_owned(), args }
}

/// Looks for an element with a tool of the compact list, in the form of `find_elements`, which that list lacks.
async fn look_compactly(on: &Operator<'_>, arguments: &Args) -> Result<Outcome, ToolError> {
    let selector = arguments.get("selector").cloned().unwrap_or_default();
    let wanted = json!({"selector": selector, "timeout": 1});
    let wanted = wanted.as_object().cloned().unwrap_or_default();
    match on.calls.call(Some(on.calls.device()), COMPACT_LOOK, wanted).await {
        Ok(found) => Ok(Outcome::json(json!({"elements": [found.structured]}))),
        Err(error) if error.kind == ErrorKind::Timeout => Ok(Outcome::json(json!({"elements": []}))),
        Err(error) => Err(error),
    }
}

/// Whether the phone offers a tool to this caller, and steps may call it.
fn is_step(on: &Operator<'_>, tool: &str) -> bool {
    table::find(tool).is_some_and(|row| row.profile <= on.profile && !row.runs_steps())
        && on.calls.access(tool) != ToolAccess::Unknown
}

/// The screen, where the caller may see it.
async fn get_screen(on: &Operator<'_>, arguments: Args) -> Result<Outcome, ToolError> {
    on.calls.call(Some(on.calls.device()), Observation::TOOL, arguments).await
}

/// Steps on one phone, each a call of its own within the call of `run_steps`.
struct PhoneSteps<'a> {
    on: &'a Operator<'a>,
    started: Instant,
    settle: bool,
    observes: bool,
    turn: SequenceTurn<'a>,
}

impl StepHost for PhoneSteps<'_> {
    fn call<'a>(
        &'a self,
        _: Option<&'a str>,
        tool: &'a str,
        arguments: &'a Args,
    ) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        Box::pin(async move {
            if tool == LOOK && !is_step(self.on, LOOK) {
                return look_compactly(self.on, arguments).await;
            }
            let calls = self.on.calls;
            let call = planned(self.on, self.settle, tool, arguments);
            self.turn.wait_for(calls.agree(std::slice::from_ref(&call))).await?;
            self.turn.make(calls.call(call.device.as_deref(), tool, call.args)).await
        })
    }

    fn clock(&self) -> &dyn StepClock {
        self
    }

    fn observe<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Option<Observation>> {
        Box::pin(async move {
            if !self.observes {
                return None;
            }
            Some(Observation::of(get_screen(self.on, Observation::arguments()).await))
        })
    }
}

impl StepClock for PhoneSteps<'_> {
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

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
    let wanted = budget.map(|bytes| ("max_bytes".to_owned(), json!(bytes))).into_iter().collect();
    let Observation { screen, .. } = Observation::of(get_screen(on, wanted).await);
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
