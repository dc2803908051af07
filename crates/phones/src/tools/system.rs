//! Buttons and panels of the system, and its log.

use serde_json::json;
use sinew_tool::{Args, Outcome, ToolError};

use super::args::{integer, invalid, text};
use super::{Operator, budget};
use crate::logs::{LogQuery, LogTime, LogcatLevel};
use crate::phone::PhoneError;
use crate::touch::Key;

/// Presses a button or opens a panel; `action` is how the reference calls it.
pub(super) async fn press(on: &Operator<'_>, key: Key, action: &str) -> Result<Outcome, ToolError> {
    match on.phone.key(key).await {
        Ok(()) => Ok(Outcome::text(format!("{action} executed successfully"))),
        Err(PhoneError::Failed(why)) => Err(PhoneError::Failed(format!("{action} failed: {why}")).into()),
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn logs(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let query = query(args)?;
    let budget = budget(args)?;
    let logs = on.phone.logs(&query).await?;
    let mut truncated = logs.truncated;
    let mut lines: Vec<String> = logs.lines.iter().map(ToString::to_string).collect();
    if let Some(budget) = budget {
        // 80: the envelope. The oldest lines go first.
        let mut spent = 80;
        let fits = lines.iter().rev().take_while(|line| {
            spent += json!(line).to_string().len();
            spent <= budget
        });
        let kept = fits.count();
        truncated |= kept < lines.len();
        lines.drain(..lines.len() - kept);
    }
    Ok(Outcome::json(json!({"logs": lines.join("\n"), "line_count": lines.len(), "truncated": truncated})))
}

fn query(args: &Args) -> Result<LogQuery, ToolError> {
    let lines = integer(args, "last_lines", 100, i64::MIN..=i64::MAX).map_err(|_| {
        let got = args.get("last_lines").cloned().unwrap_or_default();
        invalid("last_lines", format!("last_lines must be an integer, got {got}"))
    })?;
    if !(1..=1000).contains(&lines) {
        return Err(invalid("last_lines", format!("last_lines must be between 1 and 1000, got {lines}")));
    }
    let level = text(args, "level")?.unwrap_or_else(|| "D".to_owned());
    let mut letters = level.chars();
    let letter = letters.next().filter(|_| letters.next().is_none()).map(|letter| letter.to_ascii_uppercase());
    let level = letter.and_then(LogcatLevel::from_letter);
    let level = level.ok_or_else(|| {
        let got = text(args, "level").ok().flatten().unwrap_or_default();
        invalid("level", format!("level must be one of: V, D, I, W, E, F. Got: '{got}'"))
    })?;
    let time = |name: &str| -> Result<Option<LogTime>, ToolError> {
        let Some(text) = text(args, name)? else { return Ok(None) };
        let wrong =
            || invalid(name, format!("{name} must be an ISO 8601 time such as 2024-01-15T10:30:00, got '{text}'"));
        LogTime::parse(&text).map(Some).ok_or_else(wrong)
    };
    Ok(LogQuery {
        lines: lines.unsigned_abs() as usize,
        since: time("since")?,
        until: time("until")?,
        tag: text(args, "tag")?.filter(|tag| !tag.is_empty()),
        level,
        package: text(args, "package_name")?.filter(|package| !package.is_empty()),
    })
}
