//! The device whose tools are the routines.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::{
    Admission, Args, BoxFuture, Call, Caller, Device, DeviceInfo, DeviceKey, Effect, ErrorKind, Family, FamilyName,
    Hints, Outcome, Reach, Status, StepSource, TextTrust, Tool, ToolError, Toolset,
};
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use crate::clock::RunClock;
use crate::host::RunHost;
use crate::questions::RunCaller;
use crate::routine::{LIMITS, Routine};
use crate::runs::{Run, RunNews, Runs, WantedRun};

const FAMILY: Family = Family::new(FamilyName::of("routine"), TextTrust::Attributed, Reach::OneLink).pass_on();

/// A client that hears nothing for longer than this may give up; it gets the id of the run instead.
const PATIENCE: Duration = Duration::from_secs(40);
/// What is left of a call's time to answer it.
const MARGIN: Duration = Duration::from_secs(1);

/// Routines by name.
pub(crate) type RoutineBook = BTreeMap<String, Arc<Routine>>;

pub(crate) struct RoutinesDevice {
    directory: PathBuf,
    state: Mutex<DeviceState>,
    runs: Runs,
}

struct DeviceState {
    info: Arc<DeviceInfo>,
    tools: Arc<Toolset>,
    routines: Arc<RoutineBook>,
}

impl RoutinesDevice {
    pub(crate) fn new(directory: PathBuf) -> RoutinesDevice {
        let state =
            DeviceState { info: Arc::new(info(&[])), tools: Arc::new(Toolset::default()), routines: Arc::default() };
        RoutinesDevice { directory, state: Mutex::new(state), runs: Runs::default() }
    }

    /// Takes other routines, and what is wrong with files.
    pub(crate) fn set(&self, routines: RoutineBook, problems: &[String]) {
        let mut tools: Vec<Tool> = routines.values().map(|routine| routine.tool.clone()).collect();
        if !tools.is_empty() {
            tools.extend([get_run(), cancel_run()]);
        }
        tools.push(save_routine());
        let (tools, info) = (Arc::new(Toolset::new(tools)), Arc::new(info(problems)));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = DeviceState { info, tools, routines: Arc::new(routines) };
    }

    async fn act(&self, call: Call) -> Result<Outcome, ToolError> {
        match call.tool.as_str() {
            GET_RUN => Ok(Outcome::json(self.wanted_run(&call)?.to_json())),
            CANCEL_RUN => {
                let run = self.wanted_run(&call)?;
                run.cancel.cancel();
                Ok(Outcome::json(run.to_json()))
            }
            SAVE_ROUTINE => self.save(&call.args).await,
            _ => self.start(call).await,
        }
    }

    /// Whether a file that a model proposes can become a routine. Returns its name, its text and where it goes.
    async fn check_proposal(&self, args: &Args) -> Result<(String, String, PathBuf), ToolError> {
        let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (name, file) = (text("name"), text("file"));
        check_routine_name(&name).map_err(refused)?;
        let path = self.directory.join(format!("{name}.md"));
        // A link that leads nowhere is there too.
        if tokio::fs::symlink_metadata(&path).await.is_ok() {
            return Err(already_there(&name));
        }
        let read = tokio::task::spawn_blocking(move || {
            let problem = Routine::read(&name, &file).and_then(|routine| routine.check_returns()).err();
            (name, file, problem)
        });
        match read.await {
            Ok((name, file, None)) => Ok((name, file, path)),
            Ok((_, _, Some(problem))) => Err(refused(format!("the file is no routine: {problem}"))),
            Err(_) => Err(ToolError::new(ErrorKind::Internal, "reading the file failed; this is a mistake in Sinew")),
        }
    }

    /// Writes a file that a model proposes. It replaces none.
    async fn save(&self, args: &Args) -> Result<Outcome, ToolError> {
        let (name, file, path) = self.check_proposal(args).await?;
        let written = tokio::fs::OpenOptions::new().write(true).create_new(true).open(&path).await;
        let written = async {
            let mut written = written?;
            written.write_all(file.as_bytes()).await?;
            // Only then is it on its way to the disk.
            written.flush().await
        };
        match written.await {
            Ok(()) => Ok(Outcome::json(json!({"status": "success", "name": name}))),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(already_there(&name)),
            Err(error) => Err(ToolError::new(ErrorKind::ActionFailed, format!("{name}.md cannot be written: {error}"))),
        }
    }

    fn wanted_run(&self, call: &Call) -> Result<Arc<Run>, ToolError> {
        let id = call.args.get("run").and_then(Value::as_str).unwrap_or_default();
        self.runs.find(call.nested.principal(), id)
    }

    async fn start(&self, call: Call) -> Result<Outcome, ToolError> {
        let routines = self.state.lock().unwrap_or_else(PoisonError::into_inner).routines.clone();
        let routine = routines.get(&call.tool).cloned().ok_or_else(|| {
            ToolError::new(ErrorKind::UnknownTool, format!("there is no routine `{}` any more", call.tool))
        })?;
        let Call { args, budget, caller, nested, .. } = call;
        // The file may have changed since the call was decided about.
        if let decided @ StepSource::Tool(_) = nested.steps()
            && decided != routine.tool.steps
        {
            let message = format!("`{}` changed just now, and nothing was done; call it again", routine.tool.name);
            return Err(ToolError::new(ErrorKind::DeviceAway, message));
        }
        let is_part = nested.is_part();
        let waits_long = is_part || caller.is_patient();
        let wanted = WantedRun { principal: nested.principal(), routine: &routine.tool.name, args: &args, is_part };
        let (run, is_new) = match caller.continues() {
            Some(id) => (self.runs.resume(wanted, &id)?, false),
            None => self.runs.begin(wanted)?,
        };
        let outermost = nested.join_run(&run.id);
        let began = Instant::now();
        if is_new {
            let calls = nested.within(LIMITS.time, Arc::new(RunCaller::new(run.clone(), caller.clone())));
            let clock = RunClock::start(run.cancel.clone());
            let (steps_left, kept) = (self.runs.steps_of(&outermost, &run), self.runs.room());
            let (run, caller, done) = (run.clone(), caller.clone(), Default::default());
            let host = RunHost { run, calls, caller, clock, steps_left, kept, done };
            tokio::spawn(host.carry_out(routine, args));
        }
        let waiting = WaitingCaller::new(run.clone());
        let patience = if waits_long { Duration::MAX } else { PATIENCE };
        let ends = began + budget.saturating_sub(MARGIN);
        let answered = follow(&run, caller.as_ref(), patience, ends).await;
        // A run within another does not outlive it.
        if !is_part || run.ended().is_some() {
            waiting.leave();
        }
        answered
    }
}

fn refused(why: String) -> ToolError {
    ToolError::new(ErrorKind::InvalidArguments, why)
}

fn already_there(name: &str) -> ToolError {
    refused(format!("there is a routine `{name}` already; choose another name"))
}

/// The answer to a call of a run: its result, a question for the caller, or the id under which it goes on.
async fn follow(run: &Run, caller: &dyn Caller, patience: Duration, ends: Instant) -> Result<Outcome, ToolError> {
    loop {
        let wait = patience.min(ends.saturating_duration_since(Instant::now()));
        match tokio::time::timeout(wait, run.news()).await {
            Err(_) => return Err(run.still_runs()),
            Ok(RunNews::Ended(report)) => return run.answer(&report),
            Ok(RunNews::Asks(questions)) => {
                match tokio::time::timeout_at(ends, caller.ask(questions.asked.clone())).await {
                    Err(_) => return Err(run.still_runs()),
                    // The run waits here until the call comes again with the answer.
                    Ok(Err(error)) if error.kind == ErrorKind::InputRequired && caller.repeats_calls() => {
                        caller.parked(&run.id);
                        return Err(run.parked(error));
                    }
                    Ok(answer) => questions.answer(answer),
                }
            }
        }
    }
}

/// A caller that waits for an answer. A run ends when the last of them goes away without one.
struct WaitingCaller {
    run: Arc<Run>,
    is_answered: bool,
}

impl WaitingCaller {
    fn new(run: Arc<Run>) -> WaitingCaller {
        run.wait();
        WaitingCaller { run, is_answered: false }
    }

    /// With an answer, or with the id of the run.
    fn leave(mut self) {
        self.is_answered = true;
    }
}

impl Drop for WaitingCaller {
    fn drop(&mut self) {
        let is_wanted = self.run.is_wanted_after_leaving();
        if !self.is_answered && !is_wanted {
            self.run.cancel.cancel();
        }
    }
}

impl Device for RoutinesDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).info.clone()
    }

    fn tools(&self) -> Arc<Toolset> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).tools.clone()
    }

    fn check_call<'a>(&'a self, tool: &'a str, args: &'a Args) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            match tool {
                SAVE_ROUTINE => self.check_proposal(args).await.map(drop),
                _ => Ok(()),
            }
        })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(self.act(call))
    }
}

fn info(problems: &[String]) -> DeviceInfo {
    let problems = (!problems.is_empty()).then(|| ("problems".to_owned(), json!(problems)));
    DeviceInfo {
        key: DeviceKey(DEVICE.to_owned()),
        suggested_id: DEVICE.to_owned(),
        family: FAMILY,
        admission: Admission::Configured,
        name: "Routines".to_owned(),
        version: String::new(),
        status: Status::Ready,
        instructions: None,
        labels: Vec::new(),
        attributes: problems.into_iter().collect(),
    }
}

/// The key and id of the device whose tools are the routines.
pub const DEVICE: &str = "routines";

const GET_RUN: &str = "get_run";
const CANCEL_RUN: &str = "cancel_run";
const SAVE_ROUTINE: &str = "save_routine";

fn get_run() -> Tool {
    Tool::new(
        GET_RUN,
        "Returns the state of a routine's run, its steps, and its answer once it has ended.",
        run_schema(),
    )
    .with_hints(Hints::reading())
    .with_effect(Effect::Read)
}

fn cancel_run() -> Tool {
    let about = "Stops a run of a routine. Steps that were done stay done and are returned; the one under way may still have its effect.";
    Tool::new(CANCEL_RUN, about, run_schema()).with_effect(Effect::Change)
}

fn save_routine() -> Tool {
    let about = "Proposes a routine: a sequence of calls that worked becomes a tool of its own, once a person approves \
                 this call. `file` is Markdown: a tool specification with a section `### Steps`, a fenced YAML list of \
                 steps (`call`, `device`, `arguments`, `as`, `expect`, `if`, `each`, `wait`, `return`).";
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name of the new tool: small letters, digits and `_`."},
            "file": {"type": "string", "description": "The whole file."},
        },
        "required": ["name", "file"],
    });
    Tool::new(SAVE_ROUTINE, about, schema).with_effect(Effect::Danger)
}

/// Clients take names of 64 characters, and a public name may have a suffix.
const MAX_NAME: usize = 48;

/// Whether a text can be the name of a routine and of its file.
pub fn is_routine_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn run_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"run": {"type": "string", "description": "The id from the answer of a routine."}},
        "required": ["run"],
    })
}

/// Whether a routine may have this name; the error says why not.
pub fn check_routine_name(name: &str) -> Result<(), String> {
    match () {
        () if [GET_RUN, CANCEL_RUN, SAVE_ROUTINE].contains(&name) => {
            Err(format!("`{name}` is a tool of its own; choose another name"))
        }
        () if !is_routine_name(name) => {
            Err(format!("`{name}` is no name for a routine; expected at most {MAX_NAME} small letters, digits and `_`"))
        }
        () => Ok(()),
    }
}
