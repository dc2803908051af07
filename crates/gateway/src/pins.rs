//! What was agreed: the tools of pinned devices, as `sinew.lock` keeps them.
//!
//! A device that nobody pinned may change its tools, and the change is told. Of a pinned one, a
//! breaking change without a new major version and words that changed in silence are held back:
//! neither listed nor called, until somebody accepts them. What else a pinned device changes is
//! taken over, so that the next change is measured by it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use sinew_spec::compare::{Bump, Change, diff};
use sinew_spec::lock::{self, Decision, Lock, Verdict};
use sinew_tool::text::clean_line;
use sinew_tool::{DeviceId, DeviceInfo, DeviceKey, Notice, Tool, Toolset};

use crate::settings::OpenError;

/// The largest lock that is read: ten thousand tools.
const MAX_LOCK: u64 = 64 << 20;
/// Changes told in one event; the rest are counted. An event holds 16 KiB.
const MAX_TOLD: usize = 40;
/// The event about changed tools.
pub(crate) const TOOLS_CHANGED: &str = "sinew/tools_changed";
/// The longest message of a change.
const MAX_MESSAGE: usize = 240;

pub(crate) struct Pins {
    lock: Lock,
    file: Option<PathBuf>,
}

/// The tools of a device that are held back.
#[derive(Debug)]
pub(crate) struct HeldTools {
    /// Why, for each.
    pub verdicts: Vec<Verdict>,
}

impl HeldTools {
    pub(crate) fn holds(&self, tool: &str) -> bool {
        self.verdicts.iter().any(|verdict| verdict.tool == tool)
    }

    /// Their names, as an event tells them.
    pub(crate) fn names(&self) -> Vec<String> {
        self.verdicts.iter().take(MAX_TOLD).map(|verdict| clean_line(&verdict.tool, 64)).collect()
    }

    /// What a person can do about it.
    pub(crate) fn remedy(&self, id: &DeviceId) -> String {
        let tools = match self.verdicts.as_slice() {
            [only] => format!("`{}` changed", clean_line(&only.tool, 64)),
            several => format!("{} tools changed", several.len()),
        };
        format!(
            "{tools} against what was agreed and will not be offered; `sinew devices changes {id}` shows how, \
             `sinew devices accept {id}` takes it"
        )
    }

    pub(crate) fn to_json(&self) -> Value {
        let held = self.verdicts.iter().map(|verdict| {
            json!({
                "tool": clean_line(&verdict.tool, 128),
                "why": clean_line(&verdict.why, 1_000),
                "changes": verdict.changes.iter().take(MAX_TOLD).map(shown).collect::<Vec<_>>(),
            })
        });
        held.collect()
    }
}

impl Pins {
    /// Without a file the pins last as long as the gateway.
    pub(crate) fn open(file: Option<PathBuf>) -> Result<Pins, OpenError> {
        let lock = match file.as_deref().map(read) {
            Some(lock) => lock?,
            None => Lock::default(),
        };
        Ok(Pins { lock, file })
    }

    pub(crate) fn is_pinned(&self, key: &DeviceKey) -> bool {
        self.lock.owners.contains_key(&key.0)
    }

    /// The tools that were agreed on.
    pub(crate) fn agreed(&self, key: &DeviceKey) -> Option<Toolset> {
        let owner = self.lock.owners.get(&key.0)?;
        Some(Toolset::new(owner.tools.values().map(|entry| entry.tool.clone())))
    }

    pub(crate) fn pin(&mut self, info: &DeviceInfo, tools: &Toolset) {
        let tools: Vec<Tool> = tools.iter().cloned().collect();
        self.lock.record(&info.key.0, &info.version, &tools, Some(true));
    }

    pub(crate) fn unpin(&mut self, key: &DeviceKey) {
        self.lock.owners.remove(&key.0);
    }

    /// The tools that were agreed on and are not there any more. A device that has none at the moment,
    /// such as a locked phone, has not dropped them.
    pub(crate) fn gone(&self, key: &DeviceKey, tools: &Toolset) -> Vec<String> {
        let agreed = self.lock.owners.get(&key.0).filter(|_| !tools.is_empty());
        let names = agreed.into_iter().flat_map(|owner| owner.tools.keys());
        names.filter(|name| tools.find(name).is_none()).cloned().collect()
    }

    /// Agrees that a tool is gone.
    pub(crate) fn forget(&mut self, key: &DeviceKey, tool: &str) {
        if let Some(owner) = self.lock.owners.get_mut(&key.0) {
            owner.tools.remove(tool);
        }
    }

    /// Takes one tool as it is now.
    pub(crate) fn accept(&mut self, info: &DeviceInfo, tool: &Tool) {
        self.lock.accept(&info.key.0, &info.version, tool);
    }

    /// Judges the tools a device brings, and takes over what it may change. Says what is held back, and
    /// whether the lock is another now.
    pub(crate) fn judge(&mut self, info: &DeviceInfo, tools: &Arc<Toolset>) -> (Option<HeldTools>, bool) {
        // A device that has none at the moment, such as a locked phone, has not dropped them.
        if tools.is_empty() || !self.is_pinned(&info.key) {
            return (None, false);
        }
        let list: Vec<Tool> = tools.iter().cloned().collect();
        let verdicts = lock::check(&self.lock, &info.key.0, &info.version, &list);
        let Some(owner) = self.lock.owners.get_mut(&info.key.0) else { return (None, false) };
        let mut has_changed = owner.version != info.version;
        owner.version.clone_from(&info.version);
        for verdict in &verdicts {
            if let (Decision::New | Decision::Changed, Some(tool)) = (verdict.decision, tools.find(&verdict.tool)) {
                owner.tools.insert(tool.name.clone(), lock::LockedTool { tool: tool.clone(), pinned: true });
                has_changed = true;
            }
        }
        let verdicts: Vec<Verdict> =
            verdicts.into_iter().filter(|verdict| verdict.decision == Decision::Quarantined).collect();
        let held = (!verdicts.is_empty()).then_some(HeldTools { verdicts });
        (held, has_changed)
    }

    /// The file and what it should hold now.
    pub(crate) fn to_file(&self) -> Option<(PathBuf, String)> {
        self.file.clone().map(|file| (file, self.lock.to_text()))
    }
}

fn read(file: &Path) -> Result<Lock, OpenError> {
    let unreadable = |source| OpenError::Io { what: "read the lock", path: file.to_owned(), source };
    let about = match std::fs::metadata(file) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Lock::default()),
        Err(error) => return Err(unreadable(error)),
    };
    if about.len() > MAX_LOCK {
        let detail = format!("it is larger than {} MiB", MAX_LOCK >> 20);
        return Err(OpenError::Lock { path: file.to_owned(), detail });
    }
    let text = std::fs::read_to_string(file).map_err(unreadable)?;
    Lock::parse(&text).map_err(|detail| OpenError::Lock { path: file.to_owned(), detail })
}

/// What happened to a device's tools, to be told outside the registry's lock: comparing takes a while.
pub(crate) struct ToolsetChange {
    pub id: DeviceId,
    pub before: Arc<Toolset>,
    pub after: Arc<Toolset>,
    /// What was held back until now, and what is from here on.
    pub was_held: Option<Arc<HeldTools>>,
    pub held: Option<Arc<HeldTools>>,
}

impl ToolsetChange {
    /// The event, where anything changed. The words of tools that are held back are not in it: a model
    /// may read events.
    pub(crate) fn notice(&self) -> Option<Notice> {
        let list = |tools: &Toolset| tools.iter().cloned().collect::<Vec<_>>();
        let mut changes = match self.before.digest() == self.after.digest() {
            true => Vec::new(),
            false => diff(&list(&self.before), &list(&self.after)).changes,
        };
        let is_held = |held: &Option<Arc<HeldTools>>, tool: &str| held.as_ref().is_some_and(|held| held.holds(tool));
        let verdicts = |held: &'_ Option<Arc<HeldTools>>| held.iter().flat_map(|held| held.verdicts.clone()).collect();
        let (mut caught, mut released): (Vec<Verdict>, Vec<Verdict>) = (verdicts(&self.held), verdicts(&self.was_held));
        caught.retain(|verdict| !is_held(&self.was_held, &verdict.tool));
        released.retain(|verdict| !is_held(&self.held, &verdict.tool) && self.after.find(&verdict.tool).is_some());
        // A tool may be held back or let go without a change of its own, because a version or the lock
        // is another. It is told with the changes it is measured by.
        for verdict in caught.iter().chain(&released) {
            if !changes.iter().any(|change| change.tool == verdict.tool) {
                changes.extend(verdict.changes.iter().cloned());
            }
        }
        if changes.is_empty() && caught.is_empty() {
            return None;
        }
        let bump = Bump::of(changes.iter().map(|change| change.impact).max());
        let told = changes.iter().take(MAX_TOLD).map(|change| {
            let mut told = shown(change);
            if is_held(&self.held, &change.tool)
                && let Some(told) = told.as_object_mut()
            {
                told.shift_remove("message");
            }
            told
        });
        let mut body = json!({"bump": bump.word(), "changes": told.collect::<Vec<_>>()});
        if let Some(more) = changes.len().checked_sub(MAX_TOLD).filter(|more| *more > 0) {
            body["more"] = json!(more);
        }
        if let Some(held) = &self.held {
            body["quarantined"] = json!(held.names());
        }
        if !released.is_empty() {
            let names = released.iter().take(MAX_TOLD).map(|verdict| clean_line(&verdict.tool, 64));
            body["released"] = json!(names.collect::<Vec<_>>());
        }
        Some(Notice { topic: TOOLS_CHANGED.to_owned(), body })
    }
}

fn shown(change: &Change) -> Value {
    json!({
        "tool": clean_line(&change.tool, 64),
        "path": clean_line(&change.path, 96),
        "kind": change.kind,
        "impact": change.impact.word(),
        "message": clean_line(&change.message, MAX_MESSAGE),
    })
}
