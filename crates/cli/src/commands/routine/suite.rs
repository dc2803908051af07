//! `sinew routine test`: routines on several devices at once.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use futures_util::future::join_all;
use serde_json::{Value, json};
use sinew_api::Devices;
use sinew_routines::{DEVICE_PARAMETER, Routine, is_routine_name};
use sinew_steps::{RunReport, SuiteCase, to_html, to_junit};
use sinew_tool::{ErrorKind, ToolError};

use super::playing::{Playing, example_arguments, play};
use crate::args::ReachArgs;
use crate::client::{GatewayClient, GatewayTarget};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, TextStyle, clean, print, print_json, say};

#[derive(Debug, Args)]
pub(super) struct SuiteArgs {
    /// Directory of routines
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Run on this device, or on all with a label (`label:ci`): what has a parameter `device`
    #[arg(long, value_name = "DEVICE")]
    on: Vec<String>,
    /// Try a routine that failed so many times more, if it says that it is idempotent
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u8,
    /// Write the results for CI systems
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a page with an overview and every step; phones are photographed after each
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Agree to calls that need an approval
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    reach: ReachArgs,
}

/// A routine, or why the file is none.
type Loaded = (String, Result<Arc<Routine>, String>);

pub(super) async fn run(args: SuiteArgs, printer: Printer) -> Result<(), CliError> {
    // Nobody learns after the last run that there is no report.
    [&args.junit, &args.html].into_iter().flatten().try_for_each(|path| check_writable(path))?;
    let routines = load(&args.directory)?;
    let target = GatewayTarget::find(&args.reach)?;
    let devices = find_devices(&mut target.connect().await?, &args.on).await?;
    let plan = SuitePlan::new(routines, devices)?;
    let unbound: Vec<String> = plan.unbound(!args.on.is_empty());
    for name in &unbound {
        say(&format!(
            "{name} runs once, where its steps say, and not on each device of --on: it has no parameter \
             `{DEVICE_PARAMETER}`. Add one to the file, and write `device: \"${{{DEVICE_PARAMETER}}}\"` in its steps."
        ));
    }
    let played = plan.lanes.into_iter().map(|(device, list)| play_lane(device, list, &target, &args, printer));
    let played: Result<Vec<Vec<SuiteCase>>, CliError> = join_all(played).await.into_iter().collect();
    let mut cases: Vec<SuiteCase> = played?.into_iter().flatten().collect();
    for (device, list) in plan.alone {
        cases.extend(play_lane(device, list, &target, &args, printer).await?);
    }
    // A report has one part for each device; what ran once comes last.
    cases.sort_by(|one, other| (one.lane.is_empty(), &one.lane).cmp(&(other.lane.is_empty(), &other.lane)));
    let title = args.directory.display().to_string();
    write(args.junit.as_deref(), || to_junit(&cases))?;
    write(args.html.as_deref(), || to_html(&title, &cases))?;
    summary(&cases, &unbound, printer)
}

/// Which routines run where. Under no name are those that run once: where their steps or their default say.
struct SuitePlan {
    /// All at once: what uses the device of its lane and no other.
    lanes: Vec<(String, Vec<Loaded>)>,
    /// Afterwards, one after another: what uses other devices too, which may be those of a lane.
    alone: Vec<(String, Vec<Loaded>)>,
}

impl SuitePlan {
    fn new(routines: Vec<Loaded>, devices: Vec<String>) -> Result<SuitePlan, CliError> {
        let takes_device = |(_, routine): &Loaded| routine.as_ref().is_ok_and(|routine| device_of(routine).is_some());
        let (directed, fixed): (Vec<Loaded>, Vec<Loaded>) = routines.into_iter().partition(takes_device);
        if devices.is_empty() {
            let needs_device = |(_, routine): &&Loaded| {
                routine.as_ref().is_ok_and(|routine| device_of(routine).is_some_and(|own| own.get("default").is_none()))
            };
            if let Some((name, _)) = directed.iter().find(needs_device) {
                let message = format!("`{name}` takes a device; say which with --on DEVICE or --on label:NAME");
                return Err(CliError::new(CliErrorKind::Usage, message));
            }
            let mut all: Vec<Loaded> = fixed.into_iter().chain(directed).collect();
            all.sort_by(|(one, _), (other, _)| one.cmp(other));
            return Ok(SuitePlan { lanes: vec![(String::new(), all)], alone: Vec::new() });
        }
        let stays = |(_, routine): &Loaded| routine.as_ref().is_ok_and(|routine| stays_on_its_device(routine));
        let (own, wandering): (Vec<Loaded>, Vec<Loaded>) = directed.into_iter().partition(stays);
        let on_each = |list: &[Loaded]| -> Vec<(String, Vec<Loaded>)> {
            let on = |device: &String| (device.clone(), list.to_vec());
            if list.is_empty() { Vec::new() } else { devices.iter().map(on).collect() }
        };
        let mut alone = on_each(&wandering);
        if !fixed.is_empty() {
            alone.push((String::new(), fixed));
        }
        Ok(SuitePlan { lanes: on_each(&own), alone })
    }

    /// The routines that run once though devices were named.
    fn unbound(&self, has_devices: bool) -> Vec<String> {
        let fixed = self.alone.iter().filter(|(lane, _)| has_devices && lane.is_empty()).flat_map(|(_, list)| list);
        fixed.filter(|(_, routine)| routine.is_ok()).map(|(name, _)| name.clone()).collect()
    }
}

/// Whether all calls are made on the device that the routine takes. What another routine calls is not known here.
fn stays_on_its_device(routine: &Routine) -> bool {
    let own = json!(format!("${{{DEVICE_PARAMETER}}}"));
    routine.steps.calls().iter().all(|call| call.device == Some(&own))
}

/// The parameter by which a routine takes its device.
fn device_of(routine: &Routine) -> Option<&Value> {
    routine.tool.properties()?.get(DEVICE_PARAMETER)
}

/// All files of the directory, in the order of their names.
fn load(directory: &Path) -> Result<Vec<Loaded>, CliError> {
    let failed = |error: std::io::Error| CliError::new(CliErrorKind::Io, format!("{}: {error}", directory.display()));
    let entries = std::fs::read_dir(directory).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    let is_routine = |path: &PathBuf| {
        let name = path.file_stem().and_then(|stem| stem.to_str());
        path.extension().is_some_and(|ending| ending == "md") && name.is_some_and(is_routine_name)
    };
    paths.retain(is_routine);
    paths.sort();
    if paths.is_empty() {
        let message = format!("{} has no routine; `sinew routine new` writes one", directory.display());
        return Err(CliError::new(CliErrorKind::Usage, message));
    }
    let name = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(paths.iter().map(|path| (name(path), Routine::load(path).map(Arc::new))).collect())
}

async fn find_devices(client: &mut GatewayClient, on: &[String]) -> Result<Vec<String>, CliError> {
    if on.is_empty() {
        return Ok(Vec::new());
    }
    let known: Devices = client.get_all("/api/v1/devices").await?;
    let mut found: Vec<String> = Vec::new();
    for wanted in on {
        let before = found.len();
        let fits = |device: &&sinew_api::DeviceSummary| match wanted.strip_prefix("label:") {
            Some(label) => device.labels.iter().any(|own| own == label),
            None => device.id == *wanted || device.name.as_deref() == Some(wanted),
        };
        let fitting: Vec<String> = known.devices.iter().filter(fits).map(|device| device.id.clone()).collect();
        if fitting.is_empty() {
            let message = format!("no device is `{}`; `sinew devices` lists them with their labels", clean(wanted));
            return Err(CliError::new(CliErrorKind::Usage, message));
        }
        found.extend(fitting.into_iter().filter(|id| !found[..before].contains(id)).collect::<Vec<_>>());
    }
    Ok(found)
}

/// One device's routines, one after another.
async fn play_lane(
    lane: String,
    routines: Vec<Loaded>,
    target: &GatewayTarget,
    args: &SuiteArgs,
    printer: Printer,
) -> Result<Vec<SuiteCase>, CliError> {
    let mut client = target.connect().await?;
    let mut cases = Vec::new();
    let mut waiting: VecDeque<(Loaded, u8)> = routines.into_iter().map(|loaded| (loaded, 0)).collect();
    while let Some(((name, routine), tries)) = waiting.pop_front() {
        let report;
        let playing = Playing { confirmed: args.yes, observes: args.html.is_some(), log: &|_| {} };
        (report, client) = play_one(&lane, &routine, client, playing).await;
        let may_repeat = routine.as_ref().is_ok_and(|routine| routine.tool.hints.idempotent == Some(true));
        if report.failure.is_some() && may_repeat && tries < args.retries {
            waiting.push_front(((name, routine), tries + 1));
            continue;
        }
        let case = SuiteCase { lane: lane.clone(), name, report };
        if !printer.is_json() {
            print(&line(&case, printer));
        }
        cases.push(case);
    }
    Ok(cases)
}

async fn play_one(
    lane: &str,
    routine: &Result<Arc<Routine>, String>,
    client: GatewayClient,
    playing: Playing<'_>,
) -> (RunReport, GatewayClient) {
    let prepared = routine.as_ref().map_err(Clone::clone).and_then(|routine| {
        let device = (!lane.is_empty()).then(|| (DEVICE_PARAMETER.to_owned(), json!(lane)));
        Ok((routine, example_arguments(routine, device.into_iter().collect())?))
    });
    match prepared {
        Ok((routine, arguments)) => play(routine, &arguments, client, playing).await,
        Err(problem) => {
            let failure = Some(ToolError::new(ErrorKind::InvalidArguments, problem));
            (RunReport { failure, ..RunReport::default() }, client)
        }
    }
}

fn line(case: &SuiteCase, printer: Printer) -> String {
    let SuiteCase { lane, name, report } = case;
    let place = if lane.is_empty() { String::new() } else { format!(" on {}", clean(lane)) };
    let time = format!("{} ms", report.took.as_millis());
    match &report.failure {
        None => format!("{} {name}{place}, {time}\n", printer.paint(TextStyle::Good, "ok    ")),
        Some(failure) => {
            let step = report.failed_step().map_or(String::new(), |step| format!("step {} ({}): ", step.at, step.what));
            let why = format!("{step}{}", clean(&failure.message));
            format!(
                "{} {name}{place}, {time}\n       {}\n",
                printer.paint(TextStyle::Bad, "failed"),
                printer.wrap(&why, 7)
            )
        }
    }
}

fn write(path: Option<&Path>, text: impl FnOnce() -> String) -> Result<(), CliError> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, text()).map_err(|error| unwritable(path, &error))
}

/// Leaves what is there as it is.
fn check_writable(path: &Path) -> Result<(), CliError> {
    let is_new = !path.exists();
    OpenOptions::new().append(true).create(true).open(path).map_err(|error| unwritable(path, &error))?;
    if is_new {
        // An empty report would be read as one.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn unwritable(path: &Path, error: &std::io::Error) -> CliError {
    let message = format!("the report {} cannot be written: {error}", path.display());
    CliError::new(CliErrorKind::Io, message)
}

fn summary(cases: &[SuiteCase], unbound: &[String], printer: Printer) -> Result<(), CliError> {
    let failed = cases.iter().filter(|case| case.report.failure.is_some()).count();
    if printer.is_json() {
        let case =
            |case: &SuiteCase| json!({"device": case.lane, "routine": case.name, "report": case.report.to_json()});
        print_json(&json!({"cases": cases.iter().map(case).collect::<Vec<_>>(), "failed": failed, "unbound": unbound}));
    }
    match failed {
        0 => Ok(()),
        _ => Err(CliError::new(CliErrorKind::ChecksFailed, format!("{failed} of {} runs failed", cases.len()))),
    }
}

#[cfg(test)]
mod tests {
    use sinew_routines::new_from_template;

    use super::*;

    fn loaded(name: &str, takes_device: bool, steps: &str) -> Loaded {
        let text = new_from_template(name).replace("{{", "").replace("}}", "");
        let table = "| Name | Type | Required | Description | Example |\n|---|---|---|---|---|\n| `device` | string | Yes | Where. | `a` |";
        let text = if takes_device { text.replace("This tool takes no parameters.", table) } else { text };
        let start = text.find("```yaml\n").expect("steps") + "```yaml\n".len();
        let text = format!("{}{steps}- return: {{status: success}}\n```\n", &text[..start]);
        (name.to_owned(), Routine::read(name, &text).map(Arc::new).map_err(|problem| problem.to_string()))
    }

    fn names(lanes: &[(String, Vec<Loaded>)]) -> Vec<(&str, Vec<&str>)> {
        lanes.iter().map(|(lane, list)| (lane.as_str(), list.iter().map(|(name, _)| name.as_str()).collect())).collect()
    }

    #[test]
    fn only_what_stays_on_its_device_runs_beside_others() {
        let own = "- call: tap\n  device: \"${device}\"\n";
        let routines = vec![
            loaded("own", true, own),
            loaded("two", true, &format!("{own}- call: tap\n  device: b\n")),
            loaded("unnamed", true, &format!("{own}- call: tap\n")),
            loaded("nested", true, "- call: own\n  device: routines\n"),
            loaded("looks", true, &format!("{own}- expect: {{screen: {{text: x}}, device: b}}\n")),
            loaded("fixed", false, "- call: tap\n  device: a\n"),
        ];
        assert!(routines.iter().all(|(_, routine)| routine.is_ok()), "{routines:?}");
        let plan = SuitePlan::new(routines, vec!["a".to_owned(), "b".to_owned()]).expect("a plan");
        assert_eq!(names(&plan.lanes), [("a", vec!["own"]), ("b", vec!["own"])]);
        let wandering = vec!["two", "unnamed", "nested", "looks"];
        assert_eq!(names(&plan.alone), [("a", wandering.clone()), ("b", wandering), ("", vec!["fixed"])]);
        assert_eq!(plan.unbound(true), ["fixed"]);
        // Without devices, everything runs where it says, one after another.
        let plan =
            SuitePlan::new(vec![loaded("fixed", false, "- call: tap\n  device: a\n")], Vec::new()).expect("a plan");
        assert_eq!((names(&plan.lanes), plan.alone.len()), (vec![("", vec!["fixed"])], 0));
    }
}
