//! Several steps in one call.

use serde_json::{Value, json};
use sinew_tool::{Args, Content, Outcome, ToolError};

use super::args::{boolean, invalid};
use super::row::ToolRow;
use super::{Operator, budget, table};

/// 20: a short sequence. A longer one should look at the screen in between.
const MAX_STEPS: usize = 20;

/// A tool that takes this argument runs steps, and is not a step itself.
const STEPS: &str = "steps";

pub(super) async fn run(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let steps = read(args)?;
    // The screen comes to rest between the steps unless told not to.
    let settle = boolean(args, "settle")?.unwrap_or(true);
    let budget = budget(args)?;
    let mut lines = Vec::new();
    let mut outcome = Outcome::default();
    let count = steps.len();
    for (nth, (row, mut arguments)) in steps.into_iter().enumerate() {
        if settle && row.acts() && nth + 1 < count && !arguments.contains_key("settle") {
            arguments.insert("settle".to_owned(), json!(true));
        }
        let tool = row.name;
        let done = on.call(tool, &arguments).await;
        match done {
            Ok(done) => {
                let told = format!("{}. {tool}: {}", nth + 1, done.joined_text());
                lines.extend(told.lines().map(str::to_owned));
                outcome.content.extend(done.content.into_iter().filter(|item| !matches!(item, Content::Text(_))));
            }
            Err(error) => return Err(stopped(on, nth, tool, error, &lines, budget).await),
        }
    }
    let text = crate::screen::join(&lines, budget);
    outcome.content.insert(0, Content::Text(text));
    Ok(outcome)
}

/// The failure of a step, with what was done before and the screen it met.
async fn stopped(
    on: &Operator<'_>,
    nth: usize,
    tool: &str,
    error: ToolError,
    done: &[String],
    budget: Option<usize>,
) -> ToolError {
    let screen = match on.tree().await {
        Ok(tree) => on.show(&tree, budget),
        Err(error) => format!("cannot be read: {error}"),
    };
    let before = match nth {
        0 => "nothing was done before".to_owned(),
        _ => format!("done before:\n{}", done.join("\n")),
    };
    let message = format!("step {} ({tool}) failed: {}\n{before}\nthe screen now:\n{screen}", nth + 1, error.message);
    let lines: Vec<String> = message.lines().map(str::to_owned).collect();
    ToolError::new(error.kind, crate::screen::join(&lines, budget))
        .with_details(json!({"step": nth + 1, "tool": tool, "details": error.details}))
}

fn read(args: &Args) -> Result<Vec<(&'static ToolRow, Args)>, ToolError> {
    let steps = args.get(STEPS).and_then(Value::as_array);
    let steps = steps.ok_or_else(|| invalid("steps", "Parameter 'steps' must be an array of {tool, arguments}"))?;
    if steps.is_empty() || steps.len() > MAX_STEPS {
        return Err(invalid(
            "steps",
            format!("Parameter 'steps' must have 1 to {MAX_STEPS} steps, has {}", steps.len()),
        ));
    }
    let step = |(nth, step): (usize, &Value)| {
        let tool = step.get("tool").and_then(Value::as_str);
        let tool = tool.ok_or_else(|| invalid("steps", format!("steps[{nth}] must name its `tool`")))?;
        let row = table::find(tool).filter(|row| !row.arguments.iter().any(|argument| argument.name == STEPS));
        let row = row.ok_or_else(|| {
            invalid(
                "steps",
                format!(
                    "steps[{nth}].tool '{tool}' cannot be a step; use the name of a phone tool other than run_steps"
                ),
            )
        })?;
        let arguments = match step.get("arguments") {
            None | Some(Value::Null) => Args::new(),
            Some(Value::Object(arguments)) => arguments.clone(),
            Some(_) => return Err(invalid("steps", format!("steps[{nth}].arguments must be an object"))),
        };
        Ok((row, arguments))
    };
    steps.iter().enumerate().map(step).collect()
}
