//! The files of routines that people make of calls over the HTTP interface.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use sinew_api::{DraftRoutine, NewRoutine, RoutineDraft, SavedRoutine};
use sinew_front::RoutineFiles;
use sinew_gateway::{Gateway, JournalEntry, Principal, Role, Shape};
use sinew_routines::{RecordedCall, Routine, check_routine_name, record};
use sinew_tool::{BoxFuture, ErrorKind, ToolError};

/// Calls that one request may name; a routine can be made of a tenth of them.
const MAX_CALLS: usize = 1_000;

pub(crate) struct GatewayRoutines {
    pub(crate) gateway: Gateway,
    pub(crate) folder: PathBuf,
}

impl GatewayRoutines {
    async fn draft_of(&self, wanted: DraftRoutine) -> Result<RoutineDraft, ToolError> {
        let DraftRoutine { name, calls } = wanted;
        check_routine_name(&name).map_err(refused)?;
        if calls.len() > MAX_CALLS {
            return Err(refused(format!("`calls` has {} ids; expected {MAX_CALLS} at most", calls.len())));
        }
        let after = calls.iter().min().copied().unwrap_or(0).saturating_sub(1);
        let calls: HashSet<u64> = calls.into_iter().collect();
        let mut kept = self.gateway.find_journal(after, None, usize::MAX)?;
        kept.retain(|entry| calls.contains(&entry.id));
        if kept.len() < calls.len() {
            let kept: HashSet<u64> = kept.iter().map(|entry| entry.id).collect();
            let gone = calls.difference(&kept).min().copied().unwrap_or(0);
            let message =
                format!("the journal has no call {gone}; it keeps the last ones, and only while somebody records");
            return Err(ToolError::new(ErrorKind::UnknownResource, message));
        }
        let is_wanted = |entry: &&Arc<JournalEntry>| {
            let is_own = entry.device.as_str() == sinew_routines::DEVICE;
            !entry.is_nested && entry.result.is_ok() && !is_own
        };
        let list = self.gateway.list(&Principal::new("routines", Role::Admin), Shape::Unfolded);
        let schema_of = |entry: &JournalEntry| {
            let is_tool = |tool: &&sinew_gateway::PublicTool| {
                tool.device.as_ref() == Some(&entry.device) && tool.own_name == entry.tool
            };
            // A tool that is gone by now has no schema to guess from.
            list.tools.iter().find(is_tool).map_or(Value::Null, |tool| (*tool.tool.input_schema).clone())
        };
        let recorded: Vec<RecordedCall> =
            kept.iter().filter(is_wanted).map(|entry| recorded(entry, schema_of(entry))).collect();
        let made = tokio::task::spawn_blocking(move || {
            let file = record(&name, &recorded).map_err(refused)?;
            let read = Routine::read(&name, &file);
            let routine = read.map_err(|problem| refused(format!("what was recorded is no routine: {problem}")))?;
            Ok(RoutineDraft { name, file, calls: recorded.len(), steps: routine.steps.len() })
        });
        made.await.map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))?
    }
}

impl RoutineFiles for GatewayRoutines {
    fn draft(&self, wanted: DraftRoutine) -> BoxFuture<'_, Result<RoutineDraft, ToolError>> {
        Box::pin(self.draft_of(wanted))
    }

    fn save(&self, routine: NewRoutine) -> BoxFuture<'_, Result<SavedRoutine, ToolError>> {
        let folder = self.folder.clone();
        Box::pin(async move {
            let saved = tokio::task::spawn_blocking(move || save(&folder, &routine));
            saved.await.map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))?
        })
    }
}

fn save(folder: &Path, routine: &NewRoutine) -> Result<SavedRoutine, ToolError> {
    let NewRoutine { name, file } = routine;
    check_routine_name(name).map_err(refused)?;
    let checked = Routine::read(name, file).and_then(|routine| routine.check_returns());
    checked.map_err(|problem| refused(format!("the file is no routine: {problem}")))?;
    let path = folder.join(format!("{name}.md"));
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::File::create_new(&path))
        .and_then(|mut created| created.write_all(file.as_bytes()));
    match written {
        Ok(()) => Ok(SavedRoutine { name: name.clone(), path: path.display().to_string() }),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(refused(format!("there is a routine `{name}` already; choose another name")))
        }
        Err(error) => Err(ToolError::new(ErrorKind::ActionFailed, format!("{name}.md cannot be written: {error}"))),
    }
}

fn recorded(entry: &JournalEntry, input_schema: Value) -> RecordedCall {
    let screens = &entry.screens;
    let has_screen = screens.before.is_some() || screens.after.is_some();
    let answer = entry.result.as_ref().map_or(Value::Null, |outcome| {
        outcome.structured.clone().unwrap_or_else(|| json!({"text": outcome.joined_text()}))
    });
    RecordedCall {
        device: entry.device.to_string(),
        tool: entry.tool.clone(),
        args: screens.lasting_args.clone().unwrap_or_else(|| entry.args.clone()),
        input_schema,
        answer,
        acted: has_screen.then(|| screens.landmark.clone()),
    }
}

fn refused(why: String) -> ToolError {
    ToolError::new(ErrorKind::InvalidArguments, why)
}

#[cfg(test)]
mod tests {
    use sinew_gateway::Settings;

    use super::*;

    #[tokio::test]
    async fn only_routines_are_saved_and_only_kept_calls_become_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let gateway = Gateway::open(Settings::default()).expect("a gateway");
        let files = GatewayRoutines { gateway, folder: folder.path().join("routines") };
        let text = sinew_routines::new_from_template("status").replace("{{", "").replace("}}", "");
        let routine = |name: &str, file: &str| NewRoutine { name: name.to_owned(), file: file.to_owned() };
        let saved = files.save(routine("status", &text)).await.expect("saved");
        assert_eq!(std::fs::read_to_string(&saved.path).ok(), Some(text.clone()));
        for (name, file, part) in [
            ("status", text.as_str(), "already"),
            ("other", text.as_str(), "is no routine"),
            ("../status", text.as_str(), "small letters"),
            ("get_run", text.as_str(), "a tool of its own"),
        ] {
            let refused = files.save(routine(name, file)).await.expect_err(name);
            assert!(refused.message.contains(part), "{refused:?}");
        }
        let draft = |calls: Vec<u64>| files.draft(DraftRoutine { name: "again".to_owned(), calls });
        let gone = draft(vec![7, 9]).await.expect_err("no such call");
        assert!(gone.kind == ErrorKind::UnknownResource && gone.message.contains("no call 7"), "{gone:?}");
        assert!(draft(Vec::new()).await.expect_err("nothing").message.contains("no call was recorded"));
        assert!(draft((0..=1_000).collect()).await.expect_err("too many").message.contains("1000 at most"));
    }
}
