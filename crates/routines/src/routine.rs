//! A routine as its file describes it.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::{fmt, fs, io};

use serde_json::{Map, Value};
use sinew_schema::{Cost, Meter, Rejection, Validator};
use sinew_spec::{Document, ToolSpecification};
use sinew_steps::{Limits, Steps, WrittenCall};
use sinew_tool::{Args, ErrorKind, StepSource, Tool, ToolError, ToolUse};

use crate::device::{DEVICE, check_routine_name};
use crate::fitting::has_reference;
use crate::yaml;

/// A routine is written by hand or recorded; this is a thousand lines.
const MAX_FILE: usize = 256 << 10;

/// The heading of the section with the steps.
pub(crate) const SECTION: &str = "Steps";

/// The parameter by which a routine takes the device that it runs on.
pub const DEVICE_PARAMETER: &str = "device";

/// The schema of one routine.
pub(crate) const SCHEMA_ROOM: Cost =
    Cost { schemas: 2_000, patterns: 64, pattern_bytes: 16 << 10, pattern_states: 16 << 10, properties: 64 };
pub(crate) const CHECK_WORK: u64 = 1_000_000;

/// What one run may cost.
pub const LIMITS: Limits = Limits::OF_TOOL;

/// A checked routine.
#[derive(Clone, Debug)]
pub struct Routine {
    /// Its public description, and the tools that it calls.
    pub tool: Tool,
    pub steps: Steps,
    /// The line where the steps begin, and that of each call and `return`, by its place.
    first_line: usize,
    lines: HashMap<String, usize>,
}

/// Something that keeps a file from being a routine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutineProblem {
    /// Counted from 1.
    pub line: usize,
    pub message: String,
}

impl fmt::Display for RoutineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl Routine {
    /// Reads a file from the disk. The error says what is wrong with it.
    pub fn load(path: &Path) -> Result<Routine, String> {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        check_routine_name(name)?;
        let unreadable = |error: io::Error| format!("cannot be read: {error}");
        let about = fs::metadata(path).map_err(unreadable)?;
        if !about.is_file() {
            return Err("it is not a file".to_owned());
        }
        let length = about.len();
        if length > MAX_FILE as u64 {
            return Err(too_large(length));
        }
        let mut text = String::new();
        // The file may grow meanwhile.
        let file = fs::File::open(path).map_err(unreadable)?;
        file.take(MAX_FILE as u64 + 1).read_to_string(&mut text).map_err(unreadable)?;
        Routine::read(name, &text).map_err(|problem| problem.to_string())
    }

    /// Reads a file. `name` is the file's name without its ending; the tool must have it too, so that the one is found
    /// by the other.
    pub fn read(name: &str, text: &str) -> Result<Routine, RoutineProblem> {
        let at = |line: usize, message: String| RoutineProblem { line, message };
        if text.len() > MAX_FILE {
            return Err(at(1, too_large(text.len() as u64)));
        }
        if let Some(line) = first_blank(text) {
            return Err(at(line + 1, "what stands in `{{…}}` is to be filled in".to_owned()));
        }
        let document = Document::parse(text);
        let specification = match document.tools.as_slice() {
            [only] => only,
            [] => return Err(at(1, "the file describes no tool; `sinew routine new` writes an example".to_owned())),
            several => {
                return Err(at(1, format!("the file describes {} tools; a routine is one tool", several.len())));
            }
        };
        if specification.name != name {
            let line = line_of(text, &specification.name);
            return Err(at(line, format!("the tool is called `{}`, and the file `{name}.md`", specification.name)));
        }
        if !specification.input_known {
            let message = "its parameters cannot be read; `sinew spec lint` says why".to_owned();
            return Err(at(1, message));
        }
        let (first_line, written) = steps_of(text, specification)?;
        let yaml = yaml::read(&written).map_err(|error| at(first_line + error.line - 1, error.message))?;
        let mut tool = specification.to_tool();
        let parameters: Vec<&str> = tool.properties().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let steps = Steps::parse(&yaml.value, parameters, &LIMITS).map_err(|error| {
            let line = yaml.lines.get(&pointer_of(&error.at)).copied().unwrap_or(1);
            at(first_line + line - 1, error.to_string())
        })?;
        let calls = steps.calls();
        tool.uses = uses(&calls);
        tool.steps = StepSource::Tool(Arc::new(yaml.value));
        let line_of = |at: &str| first_line + yaml.lines.get(&pointer_of(at)).copied().unwrap_or(1) - 1;
        let places = calls.into_iter().map(|call| call.at).chain(steps.returns().into_iter().map(|(at, _)| at));
        let with_line = |at: String| {
            let line = line_of(&at);
            (at, line)
        };
        let lines = places.map(with_line).collect();
        let routine = Routine { tool, steps, first_line, lines };
        let own = routine.routines().find(|(_, called)| *called == name).map(|(line, _)| line);
        match own {
            None => Ok(routine),
            Some(line) => {
                let message = format!(
                    "`{name}` calls itself, which never ends; call another routine, or name the `device` whose tool \
                     `{name}` is meant"
                );
                Err(at(line, message))
            }
        }
    }

    /// Whether a `return` can never fit the output schema, or is missing. What has references is known only when it is
    /// returned. Apart from reading, because somebody waits for a thousand files to be read.
    pub fn check_returns(&self) -> Result<(), RoutineProblem> {
        if self.tool.output_schema.is_none() {
            return Ok(());
        }
        let returns = self.steps.returns();
        if returns.is_empty() {
            let wrong = |error: ToolError| RoutineProblem { line: self.first_line, message: error.message };
            return self.check_answer(None).map_err(wrong);
        }
        returns.into_iter().filter(|(_, value)| !has_reference(value)).try_for_each(|(place, value)| {
            self.check_answer(Some(value)).map_err(|error| RoutineProblem {
                line: self.lines.get(&place).copied().unwrap_or(self.first_line),
                message: format!("step {place}: {}", error.message),
            })
        })
    }

    /// The names of tools that it calls and that are routines if there are some of these names, with the line of each.
    pub(crate) fn routines(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_routine =
            |call: &WrittenCall<'_>| call.device.is_none_or(|device| self.known_device(device) == Some(DEVICE));
        self.steps.calls().into_iter().filter(is_routine).map(|call| (self.line_of(&call), call.tool))
    }

    /// The line of a call that is written in the steps.
    pub fn line_of(&self, call: &WrittenCall<'_>) -> usize {
        self.lines.get(&call.at).copied().unwrap_or(1)
    }

    /// What a device is called in a step where that is known before the first call: by its name, or by the default of a
    /// parameter.
    pub fn known_device<'a>(&'a self, written: &'a Value) -> Option<&'a str> {
        let text = written.as_str()?;
        let parameter = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        match parameter {
            Some(name) => self.tool.properties()?.get(name)?.get("default")?.as_str(),
            None => Some(text).filter(|text| !text.contains("${")),
        }
    }

    /// Whether what the steps returned is what the specification promises.
    pub fn check_answer(&self, returned: Option<&Value>) -> Result<(), ToolError> {
        let Some(schema) = &self.tool.output_schema else { return Ok(()) };
        let wrong = |fault: String| {
            let message = format!("the answer of `{}` does not fit its output schema: {fault}", self.tool.name);
            Err(ToolError::new(ErrorKind::BadAnswer, message))
        };
        let Some(returned) = returned else { return wrong("there is no step `return`".to_owned()) };
        // A schema that cannot be checked is left to the gateway, which says so.
        let Ok(validator) = Validator::compile_readable(schema, SCHEMA_ROOM) else { return Ok(()) };
        match validator.check(returned, &mut Meter::new(CHECK_WORK)) {
            Ok(()) => Ok(()),
            Err(Rejection::Exhausted) => wrong("it takes too much work to check".to_owned()),
            Err(Rejection::Failed(failure)) => {
                let (path, issue) = failure.explain(schema, "it");
                wrong(if path.is_empty() { format!("it {issue}") } else { format!("`{path}` {issue}") })
            }
        }
    }

    /// The values that the steps may refer to from the start. A parameter that was not given is its default, or null.
    pub fn scope(&self, args: &Args) -> Map<String, Value> {
        sinew_steps::scope_of(&self.tool, args)
    }
}

/// The line of the first place to fill in. Blocks of steps and JSON may have such braces of their own.
fn first_blank(text: &str) -> Option<usize> {
    if !text.contains("{{") {
        return None;
    }
    let is_blank = |line: &str| line.find("{{").is_some_and(|start| line[start..].contains("}}"));
    let mut is_fenced = false;
    text.lines().position(|line| {
        is_fenced ^= is_fence(line);
        !is_fenced && is_blank(line)
    })
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

fn too_large(length: u64) -> String {
    format!("the file has {length} bytes; a routine may have {MAX_FILE}")
}

/// The tools that the steps call, each once. A device that is an argument may be any.
fn uses(calls: &[WrittenCall<'_>]) -> Vec<ToolUse> {
    // Twenty steps are often calls of one tool.
    let uses: BTreeSet<(Option<&str>, &str)> = calls
        .iter()
        .map(|call| (call.device.and_then(Value::as_str).filter(|text| !text.contains("${")), call.tool))
        .collect();
    let owned =
        |(device, tool): (Option<&str>, &str)| ToolUse { device: device.map(str::to_owned), tool: tool.to_owned() };
    uses.into_iter().map(owned).collect()
}

/// The text of the fenced block under the heading, and the line in which it begins.
fn steps_of(text: &str, specification: &ToolSpecification) -> Result<(usize, String), RoutineProblem> {
    let has_section = specification.extra.iter().any(|(heading, _)| is_steps(heading));
    let is_heading =
        |line: &str| line.trim_start().starts_with('#') && is_steps(line.trim_start().trim_start_matches('#'));
    // What a reader does not see, such as a comment, must not be what is carried out.
    if let Some((second, _)) = text.lines().enumerate().filter(|(_, line)| is_heading(line)).nth(1) {
        let message = format!("there is a second `{SECTION}`; keep one");
        return Err(RoutineProblem { line: second + 1, message });
    }
    let mut lines = text.lines().enumerate();
    let heading = lines.find(|(_, line)| is_heading(line)).filter(|_| has_section);
    let Some((heading, _)) = heading else {
        let message = match has_section {
            true => format!("`{SECTION}` must be a heading of its own (`### {SECTION}`)"),
            false => format!("there is no section `{SECTION}` with the steps"),
        };
        return Err(RoutineProblem { line: text.lines().count().max(1), message });
    };
    let opening = lines.find(|(_, line)| !line.trim().is_empty());
    let Some((opening, _)) = opening.filter(|(_, line)| line.trim_start().starts_with("```")) else {
        let message = format!("under `{SECTION}` there must be a fenced block (```yaml) with a list of steps");
        return Err(RoutineProblem { line: heading + 1, message });
    };
    let mut block = String::new();
    while let Some((_, line)) = lines.next() {
        if !is_fence(line) {
            block.push_str(line);
            block.push('\n');
            continue;
        }
        // An end within a text would hide the steps after it.
        let rest = lines.take_while(|(_, line)| !line.starts_with('#')).find(|(_, line)| !line.trim().is_empty());
        return match rest {
            None => Ok((opening + 2, block)),
            Some((place, _)) => {
                let message = "after the block of steps there is more; if the block ends too early, write no ``` in it";
                Err(RoutineProblem { line: place + 1, message: message.to_owned() })
            }
        };
    }
    Err(RoutineProblem { line: opening + 1, message: "the block of steps has no end (```)".to_owned() })
}

fn is_steps(heading: &str) -> bool {
    let heading = heading.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
    heading.trim_matches('*').trim_end_matches(':').eq_ignore_ascii_case(SECTION)
}

/// `3.then.1` as a JSON pointer, which counts from 0.
fn pointer_of(at: &str) -> String {
    let part = |part: &str| match part.parse::<usize>() {
        Ok(number) => format!("/{}", number.saturating_sub(1)),
        Err(_) => format!("/{part}"),
    };
    at.split('.').filter(|text| !text.is_empty()).map(part).collect()
}

fn line_of(text: &str, word: &str) -> usize {
    text.lines().position(|line| !word.is_empty() && line.contains(word)).map_or(1, |index| index + 1)
}
