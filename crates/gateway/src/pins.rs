//! What was agreed: the tools of pinned devices, as `sinew.lock` keeps them.
//!
//! A device that nobody pinned may change its tools, and the change is told. Of a pinned one, a
//! breaking change without a new major version and words that changed in silence are held back:
//! neither listed nor called, until somebody accepts them. What else a pinned device changes is
//! taken over, so that the next change is measured by it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use sinew_spec::compare::{Change, diff};
use sinew_spec::lock::{self, Decision, Lock, Verdict};
use sinew_tool::{DeviceId, DeviceInfo, DeviceKey, Notice, Tool, Toolset};

use crate::settings::OpenError;
use crate::text::clean_line;

/// The largest lock that is read: ten thousand tools.
const MAX_LOCK: u64 = 64 << 20;
/// Changes told in one event; the rest are counted. An event holds 16 KiB.
const MAX_TOLD: usize = 40;
/// The longest message of a change.
const MAX_MESSAGE: usize = 240;

pub(crate) struct Pins {
    lock: Lock,
    file: Option<PathBuf>,
}

/// The tools of a device of which some are held back.
#[derive(Debug)]
pub(crate) struct Held {
    /// All of them, as the device gave them.
    pub toolset: Arc<Toolset>,
    /// Why, for each that is held back.
    pub verdicts: Vec<Verdict>,
}

impl Held {
    pub(crate) fn holds(&self, tool: &str) -> bool {
        self.verdicts.iter().any(|verdict| verdict.tool == tool)
    }

    /// The tools that are offered.
    pub(crate) fn rest(&self) -> Toolset {
        Toolset::new(self.toolset.iter().filter(|tool| !self.holds(&tool.name)).cloned())
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

    /// Takes one tool as it is now.
    pub(crate) fn accept(&mut self, info: &DeviceInfo, tool: &Tool) {
        self.lock.accept(&info.key.0, &info.version, tool);
    }

    /// Judges the tools a device brings, and takes over what it may change. Says what is held back, and
    /// whether the lock is another now.
    pub(crate) fn judge(&mut self, info: &DeviceInfo, tools: &Arc<Toolset>) -> (Option<Held>, bool) {
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
                owner.tools.insert(tool.name.clone(), lock::Entry { tool: tool.clone(), pinned: true });
                has_changed = true;
            }
        }
        let verdicts: Vec<Verdict> =
            verdicts.into_iter().filter(|verdict| verdict.decision == Decision::Quarantined).collect();
        let held = (!verdicts.is_empty()).then(|| Held { toolset: tools.clone(), verdicts });
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
pub(crate) struct Turn {
    pub id: DeviceId,
    pub before: Arc<Toolset>,
    pub after: Arc<Toolset>,
    pub held: Option<Arc<Held>>,
}

impl Turn {
    /// The event, where anything changed. The words of tools that are held back are not in it: a model
    /// may read events.
    pub(crate) fn notice(&self) -> Option<Notice> {
        let list = |tools: &Toolset| tools.iter().cloned().collect::<Vec<_>>();
        let comparison = diff(&list(&self.before), &list(&self.after));
        if comparison.changes.is_empty() && self.held.is_none() {
            return None;
        }
        let is_held = |tool: &str| self.held.as_ref().is_some_and(|held| held.holds(tool));
        let told = comparison.changes.iter().take(MAX_TOLD).map(|change| {
            let mut told = shown(change);
            if is_held(&change.tool)
                && let Some(told) = told.as_object_mut()
            {
                told.shift_remove("message");
            }
            told
        });
        let mut body = json!({"bump": comparison.bump.word(), "changes": told.collect::<Vec<_>>()});
        if let Some(more) = comparison.changes.len().checked_sub(MAX_TOLD).filter(|more| *more > 0) {
            body["more"] = json!(more);
        }
        if let Some(held) = &self.held {
            let names = held.verdicts.iter().take(MAX_TOLD).map(|verdict| clean_line(&verdict.tool, 64));
            body["quarantined"] = json!(names.collect::<Vec<_>>());
        }
        Some(Notice { topic: "sinew/tools_changed".to_owned(), body })
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
