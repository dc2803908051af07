//! The agreed tools of pinned devices, as `sinew.lock` has them.
//!
//! A device that is not pinned may change its tools, and the change is reported as an event. What a pinned one changes
//! is held back, neither listed nor called, until a person accepts exactly what was shown (`agreement` decides what
//! counts as changed, `held` has what is held back).

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sinew_spec::compare::{Change, CompareWork, Impact};
use sinew_spec::lock::{Follow, Lock, LockedOwner, LockedTool, locked_form};
use sinew_tool::text::clip;
use sinew_tool::{DeviceInfo, DeviceKey, Tool, Toolset};

use crate::agreement::{Decision, decide, higher_version, may_change_text};
use crate::held::{DeviceText, HeldTool, HeldTools};
use crate::settings::OpenError;

/// The largest lock that is read: ten thousand tools.
const MAX_LOCK: u64 = 64 << 20;

/// Steps of comparing for all tools of a device, each about a microsecond. A hundred tools that all change take some ten
/// thousand.
pub(crate) const MAX_COMPARE_STEPS: usize = 200_000;

pub(crate) struct Pins {
    owners: BTreeMap<String, Arc<LockedOwner>>,
    file: Option<PathBuf>,
}

/// What was agreed on about a device and what it has now, compared. Comparing takes a while, so it is done outside the
/// registry's lock, and done again where the agreement changed meanwhile.
pub(crate) struct Review {
    agreed: Option<Arc<LockedOwner>>,
    /// The agreement with what the device may change by itself.
    next: Option<Arc<LockedOwner>>,
    pub held: Option<Arc<HeldTools>>,
}

impl Pins {
    /// Without a file the pins last as long as the gateway.
    pub(crate) fn open(file: Option<PathBuf>) -> Result<Pins, OpenError> {
        let lock = match file.as_deref().map(read) {
            Some(lock) => lock?,
            None => Lock::default(),
        };
        let owners = lock.owners.into_iter().map(|(key, owner)| (key, Arc::new(owner))).collect();
        Ok(Pins { owners, file })
    }

    /// Makes pins of 0.1.0, which let a device change much by itself, strict. Says how many there were.
    pub(crate) fn make_strict(&mut self) -> usize {
        let old = self.owners.values_mut().filter(|owner| owner.follow.is_none());
        old.map(|owner| Arc::make_mut(owner).follow = Some(Follow::Nothing)).count()
    }

    pub(crate) fn is_pinned(&self, key: &DeviceKey) -> bool {
        self.owners.contains_key(&key.0)
    }

    pub(crate) fn follow(&self, key: &DeviceKey) -> Option<Follow> {
        self.owners.get(&key.0).map(|owner| owner.follow.unwrap_or_default())
    }

    /// What was agreed on about a device.
    pub(crate) fn agreed(&self, key: &DeviceKey) -> Option<Arc<LockedOwner>> {
        self.owners.get(&key.0).cloned()
    }

    /// The text of a lock that has this device alone.
    pub(crate) fn text_of(&self, key: &DeviceKey) -> Option<String> {
        let owner = (**self.owners.get(&key.0)?).clone();
        Some(Lock { owners: [(key.0.clone(), owner)].into() }.to_text())
    }

    /// Takes over an agreement about a device, or that there is none.
    pub(crate) fn set(&mut self, key: &DeviceKey, agreed: Option<Arc<LockedOwner>>) {
        match agreed {
            Some(agreed) => drop(self.owners.insert(key.0.clone(), agreed)),
            None => self.unpin(key),
        }
    }

    pub(crate) fn unpin(&mut self, key: &DeviceKey) {
        self.owners.remove(&key.0);
    }

    /// Whether a review is one of what is agreed on now.
    pub(crate) fn can_settle(&self, key: &DeviceKey, review: &Review) -> bool {
        is_same(self.owners.get(&key.0), review.agreed.as_ref())
    }

    /// Takes over what a review allows. Gives whether the agreement changed.
    pub(crate) fn settle(&mut self, key: &DeviceKey, review: &Review) -> bool {
        let has_changed = !is_same(self.owners.get(&key.0), review.next.as_ref());
        if has_changed {
            self.set(key, review.next.clone());
        }
        has_changed
    }

    /// The file and what it should hold now.
    pub(crate) fn to_file(&self) -> Option<(PathBuf, String)> {
        let owners = || self.owners.iter().map(|(key, owner)| (key.clone(), (**owner).clone())).collect();
        self.file.clone().map(|file| (file, Lock { owners: owners() }.to_text()))
    }
}

fn is_same(one: Option<&Arc<LockedOwner>>, two: Option<&Arc<LockedOwner>>) -> bool {
    one.map(Arc::as_ptr) == two.map(Arc::as_ptr)
}

/// The agreement about a device in the text of a lock that has it alone.
pub(crate) fn of_text(key: &DeviceKey, text: &str) -> Result<LockedOwner, String> {
    let mut owner = Lock::parse(text)?.owners.remove(&key.0).ok_or("it says nothing of this device")?;
    owner.follow.get_or_insert(Follow::Nothing);
    Ok(owner)
}

/// The tools that were agreed on.
pub(crate) fn agreed_tools(agreed: &LockedOwner) -> Toolset {
    Toolset::new(agreed.tools.values().map(|entry| entry.tool.clone()))
}

/// An agreement about the tools as they are. Of a device that is pinned already only `follow` changes: what is held back
/// stays so.
pub(crate) fn pin(agreed: Option<&LockedOwner>, info: &DeviceInfo, tools: &Toolset, follow: Follow) -> LockedOwner {
    if let Some(agreed) = agreed {
        return LockedOwner { follow: Some(follow), ..agreed.clone() };
    }
    let entry = |tool: &Tool| (tool.name.clone(), LockedTool { tool: tool.clone(), pinned: true });
    let tools = tools.iter().map(entry).collect();
    let mut owner =
        LockedOwner { version: info.version.clone(), follow: Some(follow), tools, ..LockedOwner::default() };
    agree_on_text(&mut owner, &DeviceText::of(info));
    owner
}

/// Takes one tool as it is now.
pub(crate) fn accept(owner: &mut LockedOwner, tool: &Tool) {
    owner.tools.insert(tool.name.clone(), LockedTool { tool: tool.clone(), pinned: true });
}

/// Takes what the device writes about itself as it is now.
pub(crate) fn agree_on_text(owner: &mut LockedOwner, text: &DeviceText) {
    owner.name = Some(text.name.clone());
    owner.instructions = Some(text.instructions.clone());
}

impl Review {
    /// Of a device that is as it was when it was reviewed.
    pub(crate) fn as_before(agreed: Option<Arc<LockedOwner>>, held: Option<Arc<HeldTools>>) -> Review {
        Review { next: agreed.clone(), agreed, held }
    }

    /// Compares what a device brings with what is agreed on next: what was agreed until now, or what a person makes of it.
    pub(crate) fn of(
        agreed: Option<Arc<LockedOwner>>,
        next: Option<Arc<LockedOwner>>,
        info: &DeviceInfo,
        tools: &Toolset,
    ) -> Review {
        // A device that has no tools at the moment, such as a locked phone, has not dropped them.
        let Some(before) = next.clone().filter(|_| !tools.is_empty()) else {
            return Review { agreed, next, held: None };
        };
        let mut owner = (*before).clone();
        let mut held = Vec::new();
        let mut work = CompareWork::new(MAX_COMPARE_STEPS);
        for tool in tools {
            match decide(&before, &info.version, tool, &mut work) {
                Decision::Same => {}
                Decision::Taken => accept(&mut owner, tool),
                Decision::Held { why, changes } => {
                    let agreed = before.tools.get(&tool.name).map(|agreed| locked_form(&agreed.tool));
                    held.push(HeldTool { tool: tool.name.clone(), entry: locked_form(tool), agreed, why, changes });
                }
            }
        }
        let text = review_text(&mut owner, &before, info);
        if let Some(version) = higher_version(&before.version, &info.version) {
            owner.version = version;
        }
        let names: HashSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let gone = owner.tools.keys().filter(|name| !names.contains(name.as_str())).cloned().collect();
        let next = if owner == *before { before } else { Arc::new(owner) };
        Review { agreed, next: Some(next), held: HeldTools::new(held, text, gone).map(Arc::new) }
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sinew_tool::{Admission, Family, FamilyName, Reach, Status, TextTrust};

    use super::*;

    fn relay(description: &str) -> Toolset {
        Toolset::new([Tool::new("relay", description, json!({"type": "object"}))])
    }

    fn board() -> DeviceInfo {
        DeviceInfo {
            key: DeviceKey("board:01".to_owned()),
            suggested_id: "board-01".to_owned(),
            family: Family::new(FamilyName::of("board"), TextTrust::Attributed, Reach::OneLink),
            admission: Admission::OwnToken,
            name: "bench".to_owned(),
            version: "1.0.0".to_owned(),
            status: Status::Ready,
            instructions: None,
            labels: Vec::new(),
            attributes: Default::default(),
        }
    }

    #[test]
    fn a_review_of_an_agreement_that_changed_meanwhile_is_not_taken() {
        let (info, mut pins) = (board(), Pins::open(None).unwrap());
        let key = &info.key;
        let review = |pins: &Pins, next: Option<LockedOwner>, tools: &Toolset| {
            Review::of(pins.agreed(key), next.map(Arc::new), &info, tools)
        };
        let pinned = |tools: &Toolset| pin(None, &info, tools, Follow::Nothing);
        let (first, second) = (relay("Switches."), relay("Switches the relay."));
        let unpinned = review(&pins, None, &first);
        assert!(pins.can_settle(key, &unpinned) && !pins.settle(key, &unpinned));

        let one = review(&pins, Some(pinned(&first)), &first);
        assert!(pins.can_settle(key, &one) && pins.settle(key, &one));
        assert!(!pins.can_settle(key, &unpinned), "the device was pinned meanwhile");
        let agreed = pins.agreed(key);
        let change = Review::of(agreed.clone(), agreed, &info, &second);
        assert!(change.held.as_ref().is_some_and(|held| held.holds("relay")));
        assert!(
            pins.can_settle(key, &change) && !pins.settle(key, &change),
            "it is held back, so nothing is agreed on"
        );

        // A person accepts it while another change is compared.
        let mut accepted = (*pins.agreed(key).unwrap()).clone();
        accept(&mut accepted, second.find("relay").unwrap());
        let accepted = review(&pins, Some(accepted), &second);
        assert!(accepted.held.is_none() && pins.settle(key, &accepted));
        assert!(!pins.can_settle(key, &change));
    }
}
