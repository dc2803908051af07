//! The agreed tools of pinned devices, as `sinew.lock` has them.
//!
//! A device that is not pinned may change its tools, and the change is reported as an event. What a pinned one changes
//! is held back, neither listed nor called, until a person accepts exactly what was shown (`agreement` decides what
//! counts as changed, `held` has what is held back).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sinew_spec::compare::{Change, Impact};
use sinew_spec::lock::{Follow, Lock, LockedOwner, LockedTool, locked_form};
use sinew_tool::text::clip;
use sinew_tool::{DeviceInfo, DeviceKey, Tool, Toolset};

use crate::agreement::{Decision, decide, higher_version, may_change_text};
use crate::held::{DeviceText, HeldTool, HeldTools};
use crate::settings::OpenError;

/// The largest lock that is read: ten thousand tools.
const MAX_LOCK: u64 = 64 << 20;

pub(crate) struct Pins {
    lock: Lock,
    file: Option<PathBuf>,
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

    /// Makes pins of 0.1.0, which let a device change much by itself, strict. Says how many there were.
    pub(crate) fn make_strict(&mut self) -> usize {
        let old = self.lock.owners.values_mut().filter(|owner| owner.follow.is_none());
        old.map(|owner| owner.follow = Some(Follow::Nothing)).count()
    }

    pub(crate) fn is_pinned(&self, key: &DeviceKey) -> bool {
        self.lock.owners.contains_key(&key.0)
    }

    pub(crate) fn follow(&self, key: &DeviceKey) -> Option<Follow> {
        self.lock.owners.get(&key.0).map(|owner| owner.follow.unwrap_or_default())
    }

    /// The tools that were agreed on.
    pub(crate) fn agreed(&self, key: &DeviceKey) -> Option<Toolset> {
        let owner = self.lock.owners.get(&key.0)?;
        Some(Toolset::new(owner.tools.values().map(|entry| entry.tool.clone())))
    }

    /// Agrees on the tools as they are. Of a device that is pinned already only `follow` changes: what is held back stays
    /// so.
    pub(crate) fn pin(&mut self, info: &DeviceInfo, tools: &Toolset, follow: Follow) {
        if let Some(owner) = self.lock.owners.get_mut(&info.key.0) {
            owner.follow = Some(follow);
            return;
        }
        let tools: Vec<Tool> = tools.iter().cloned().collect();
        self.lock.record(&info.key.0, &info.version, &tools, Some(true));
        if let Some(owner) = self.lock.owners.get_mut(&info.key.0) {
            owner.follow = Some(follow);
            agree_on_text(owner, &DeviceText::of(info));
        }
    }

    pub(crate) fn unpin(&mut self, key: &DeviceKey) {
        self.lock.owners.remove(&key.0);
    }

    /// Agrees that a tool is gone.
    pub(crate) fn forget(&mut self, key: &DeviceKey, tool: &str) {
        if let Some(owner) = self.lock.owners.get_mut(&key.0) {
            owner.tools.remove(tool);
        }
    }

    /// Takes one tool as it is now.
    pub(crate) fn accept(&mut self, key: &DeviceKey, tool: &Tool) {
        if let Some(owner) = self.lock.owners.get_mut(&key.0) {
            owner.tools.insert(tool.name.clone(), LockedTool { tool: tool.clone(), pinned: true });
        }
    }

    /// Takes what the device writes about itself as it is now.
    pub(crate) fn accept_text(&mut self, key: &DeviceKey, text: &DeviceText) {
        if let Some(owner) = self.lock.owners.get_mut(&key.0) {
            agree_on_text(owner, text);
        }
    }

    /// Compares what a device brings with what was agreed, and takes over what it may change by itself. Gives what is
    /// held back, and whether the lock changed.
    pub(crate) fn review(&mut self, info: &DeviceInfo, tools: &Arc<Toolset>) -> (Option<HeldTools>, bool) {
        // A device that has no tools at the moment, such as a locked phone, has not dropped them.
        let Some(owner) = self.lock.owners.get_mut(&info.key.0).filter(|_| !tools.is_empty()) else {
            return (None, false);
        };
        let before = owner.clone();
        let mut held = Vec::new();
        for tool in tools.iter() {
            match decide(&before, &info.version, tool) {
                Decision::Same => {}
                Decision::Taken => {
                    owner.tools.insert(tool.name.clone(), LockedTool { tool: tool.clone(), pinned: true });
                }
                Decision::Held { why, changes } => {
                    let agreed = before.tools.get(&tool.name).map(|agreed| locked_form(&agreed.tool));
                    held.push(HeldTool { tool: tool.name.clone(), entry: locked_form(tool), agreed, why, changes });
                }
            }
        }
        let text = review_text(owner, &before, info);
        if let Some(version) = higher_version(&before.version, &info.version) {
            owner.version = version;
        }
        let gone: Vec<String> = owner.tools.keys().filter(|name| tools.find(name).is_none()).cloned().collect();
        let has_changed = *owner != before;
        (HeldTools::new(held, text, gone), has_changed)
    }

    /// The file and what it should hold now.
    pub(crate) fn to_file(&self) -> Option<(PathBuf, String)> {
        self.file.clone().map(|file| (file, self.lock.to_text()))
    }
}

fn agree_on_text(owner: &mut LockedOwner, text: &DeviceText) {
    owner.name = Some(text.name.clone());
    owner.instructions = Some(text.instructions.clone());
}

/// What is held back of the device's own text: the agreed one, the new one, and the changes.
fn review_text(
    owner: &mut LockedOwner,
    before: &LockedOwner,
    info: &DeviceInfo,
) -> Option<(DeviceText, DeviceText, Vec<Change>)> {
    let now = DeviceText::of(info);
    let (Some(name), Some(instructions)) = (before.name.clone(), before.instructions.clone()) else {
        // A lock of 0.1.0 says nothing about it.
        agree_on_text(owner, &now);
        return None;
    };
    let agreed = DeviceText { name, instructions };
    if agreed == now {
        return None;
    }
    if may_change_text(before, &info.version).is_ok() {
        agree_on_text(owner, &now);
        return None;
    }
    let parts = [("/name", &agreed.name, &now.name), ("/instructions", &agreed.instructions, &now.instructions)];
    let changed = parts.into_iter().filter(|(_, agreed, now)| agreed != now);
    let changes = changed.map(|(path, _, now)| Change {
        tool: String::new(),
        path: path.to_owned(),
        kind: "text-changed",
        impact: Impact::Cosmetic,
        message: format!("the device's own text changed to \"{}\"", clip(now)),
    });
    let changes = changes.collect();
    Some((agreed, now, changes))
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
