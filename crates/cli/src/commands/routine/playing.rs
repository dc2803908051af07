//! The steps of a file, carried out from here: each is an ordinary call with the token of the command line.

use serde_json::Value;
use sinew_api::{CallRequest, CallResult};
use sinew_routines::{LIMITS, Routine, RunClock};
use sinew_steps::{RunReport, StepClock, StepHost, StepRecord};
use sinew_tool::{Args, BoxFuture, Content, ErrorKind, Outcome, ToolError};

use crate::client::GatewayClient;
use crate::error::{CliError, CliErrorKind};

/// What is said about each step when it is done.
pub(super) type StepLog<'a> = &'a (dyn Fn(&StepRecord) + Send + Sync);

/// Plays a routine once.
pub(super) async fn play(
    routine: &Routine,
    arguments: &Args,
    client: GatewayClient,
    confirmed: bool,
    log: StepLog<'_>,
) -> (RunReport, GatewayClient) {
    let host = CommandHost { client: tokio::sync::Mutex::new(client), confirmed, clock: RunClock::default(), log };
    let mut report = sinew_steps::run(&routine.steps, &host, routine.scope(arguments), &LIMITS).await;
    if report.failure.is_none() {
        report.failure = routine.check_answer(report.returned.as_ref()).err();
    }
    (report, host.client.into_inner())
}

struct CommandHost<'a> {
    client: tokio::sync::Mutex<GatewayClient>,
    confirmed: bool,
    clock: RunClock,
    log: StepLog<'a>,
}

impl StepHost for CommandHost<'_> {
    fn call<'a>(
        &'a self,
        device: Option<&'a str>,
        tool: &'a str,
        arguments: &'a Args,
    ) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let request = CallRequest {
                device: device.map(str::to_owned),
                tool: tool.to_owned(),
                arguments: arguments.clone(),
                timeout_ms: None,
                confirmed: self.confirmed,
            };
            let answered = self.client.lock().await.post::<CallResult>("/api/v1/call", &request).await;
            answered.map(outcome).map_err(error)
        })
    }

    fn clock(&self) -> &dyn StepClock {
        &self.clock
    }

    fn stepped(&self, step: &StepRecord) {
        (self.log)(step);
    }
}

fn outcome(answer: CallResult) -> Outcome {
    let content = answer.content.iter().filter_map(Content::from_json).collect();
    Outcome { content, structured: answer.structured, ..Outcome::default() }
}

fn error(error: CliError) -> ToolError {
    let kind = ErrorKind::from_error_type(error.error_type).unwrap_or(ErrorKind::ActionFailed);
    ToolError::new(kind, error.message).with_details(error.details)
}

/// Nothing is called with a parameter missing.
pub(super) fn check_arguments(routine: &Routine, arguments: &Args) -> Result<(), CliError> {
    let missing: Vec<&str> = required(routine).into_iter().filter(|name| !arguments.contains_key(*name)).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => {
            let message = format!("`{}` needs {}; give it as NAME=VALUE", routine.tool.name, missing.join(", "));
            Err(CliError::new(CliErrorKind::Usage, message))
        }
    }
}

fn required(routine: &Routine) -> Vec<&str> {
    let required = routine.tool.input_schema["required"].as_array();
    required.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Arguments that the specification itself gives: the first example of each parameter. The error names what has none.
pub(super) fn example_arguments(routine: &Routine, given: Args) -> Result<Args, String> {
    let mut arguments = given;
    let required = required(routine);
    for (name, property) in routine.tool.properties().into_iter().flatten() {
        if arguments.contains_key(name) {
            continue;
        }
        match property["examples"].get(0).or_else(|| property.get("default")) {
            Some(example) => {
                arguments.insert(name.clone(), example.clone());
            }
            None if required.contains(&name.as_str()) => {
                return Err(format!("the parameter `{name}` has no example to test it with; add one to the file"));
            }
            None => {}
        }
    }
    Ok(arguments)
}
