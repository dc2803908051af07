//! The steps of a file, carried out from here: each is an ordinary call with the token of the command line.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use sinew_api::{CallRequest, CallResult};
use sinew_routines::{LIMITS, Routine, RunClock};
use sinew_steps::{Observation, RunReport, StepClock, StepHost, StepRecord};
use sinew_tool::{Args, BoxFuture, Content, ErrorKind, Outcome, ToolError};

use crate::client::GatewayClient;
use crate::error::{CliError, CliErrorKind};

/// What is said about each step when it is done.
pub(super) type StepLog<'a> = &'a (dyn Fn(&StepRecord) + Send + Sync);

/// How a routine is played.
#[derive(Clone, Copy)]
pub(super) struct Playing<'a> {
    /// The caller agrees to calls that need an approval.
    pub(super) confirmed: bool,
    /// Screens are looked at after each step, for a report.
    pub(super) observes: bool,
    pub(super) log: StepLog<'a>,
}

/// Plays a routine once.
pub(super) async fn play(
    routine: &Routine,
    arguments: &Args,
    client: GatewayClient,
    playing: Playing<'_>,
) -> (RunReport, GatewayClient) {
    let (client, clock) = (tokio::sync::Mutex::new(client), RunClock::default());
    let host = CommandHost { client, playing, clock, blind: Mutex::default() };
    let mut report = sinew_steps::run(&routine.steps, &host, routine.scope(arguments), &LIMITS).await;
    if report.failure.is_none() {
        report.failure = routine.check_answer(report.returned.as_ref()).err();
    }
    (report, host.client.into_inner())
}

struct CommandHost<'a> {
    client: tokio::sync::Mutex<GatewayClient>,
    playing: Playing<'a>,
    clock: RunClock,
    /// Devices without a screen.
    blind: Mutex<HashSet<String>>,
}

impl CommandHost<'_> {
    async fn make(&self, device: Option<&str>, tool: &str, arguments: Args) -> Result<Outcome, ToolError> {
        let request = CallRequest {
            device: device.map(str::to_owned),
            tool: tool.to_owned(),
            arguments,
            timeout_ms: None,
            confirmed: self.playing.confirmed,
        };
        let answered = self.client.lock().await.post::<CallResult>("/api/v1/call", &request).await;
        answered.map(outcome).map_err(error)
    }

    async fn look(&self, device: &str) -> Option<Observation> {
        let blind = || self.blind.lock().unwrap_or_else(PoisonError::into_inner);
        if blind().contains(device) {
            return None;
        }
        let seen = self.make(Some(device), Observation::TOOL, Observation::arguments()).await;
        if seen.as_ref().is_err_and(|error| error.kind == ErrorKind::UnknownTool) {
            blind().insert(device.to_owned());
            return None;
        }
        Some(Observation::of(seen))
    }
}

impl StepHost for CommandHost<'_> {
    fn call<'a>(
        &'a self,
        device: Option<&'a str>,
        tool: &'a str,
        arguments: &'a Args,
    ) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        Box::pin(self.make(device, tool, arguments.clone()))
    }

    fn observe<'a>(&'a self, device: Option<&'a str>) -> BoxFuture<'a, Option<Observation>> {
        Box::pin(async move {
            match device {
                Some(device) if self.playing.observes && !device.starts_with("label:") => self.look(device).await,
                _ => None,
            }
        })
    }

    fn clock(&self) -> &dyn StepClock {
        &self.clock
    }

    fn stepped(&self, step: &StepRecord) {
        (self.playing.log)(step);
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
