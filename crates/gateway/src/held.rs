//! What is held back of a pinned device, and the event about changed tools.

use std::sync::Arc;

use serde_json::{Value, json};
use sinew_spec::compare::{Bump, Change, CompareWork, diff_within};
use sinew_spec::lock::form_text;
use sinew_tool::text::clean_line;
use sinew_tool::{DeviceId, DeviceInfo, Digest, Notice, Toolset};

use crate::pins::MAX_COMPARE_STEPS;
use crate::view::{HeldChange, HeldForm, HeldToolView};

/// Changes shown at once; the rest are counted. An event holds 16 KiB.
const MAX_SHOWN: usize = 40;
/// Topics of the gateway's own events begin so, and those of devices never do.
pub(crate) const OWN_TOPICS: &str = "sinew/";
/// The longest topic of an event.
const MAX_TOPIC: usize = 128;
/// The event about changed tools.
pub(crate) const TOOLS_CHANGED: &str = "sinew/tools_changed";

/// The topic of an event about what is wrong with a device's tools.
pub(crate) const WARNING: &str = "sinew/warning";
/// The longest message of a change.
const MAX_MESSAGE: usize = 240;
/// Digits of the digest that names what is held back: 128 bits, so that no device can prepare two texts for one digest.
const DIGEST: usize = 32;

/// What differs from the agreement about a device, and is neither listed nor called.
#[derive(Debug)]
pub(crate) struct HeldTools {
    pub tools: Vec<HeldTool>,
    text: Option<HeldText>,
    /// Agreed tools that the device no longer has.
    pub gone: Vec<String>,
    /// Names exactly what is held back.
    pub digest: String,
}

#[derive(Debug)]
pub(crate) struct HeldTool {
    pub tool: String,
    /// The tool as the device has it now.
    pub entry: Value,
    /// The tool as it was agreed on; `None` for a new one.
    pub agreed: Option<Value>,
    pub why: String,
    pub changes: Vec<Change>,
}

/// The topic of an event that a device sent, whatever the device calls it.
pub(crate) fn device_topic(topic: &str) -> String {
    // Cleaned first, so that invisible characters do not hide how it begins.
    let topic = clean_line(topic, MAX_TOPIC);
    if topic.starts_with(OWN_TOPICS) { format!("device:{topic}") } else { topic }
}

/// In place of the name of a new tool in events.
const NEW_TOOL: &str = "*";

impl HeldTool {
    /// The name, as events have it.
    fn agreed_name(&self) -> String {
        self.agreed.as_ref().map_or_else(|| NEW_TOOL.to_owned(), |_| clean_line(&self.tool, 64))
    }

    /// A place in the tool, as far as it was agreed on: the names of new parameters are text of the device, too.
    fn agreed_part<'a>(&self, path: &'a str) -> &'a str {
        let Some(agreed) = &self.agreed else { return "" };
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        let known = ends.take_while(|end| agreed.pointer(&path[..*end]).is_some());
        known.last().map_or("", |end| &path[..end])
    }
}

/// What a device writes about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceText {
    pub name: String,
    pub instructions: String,
}

#[derive(Debug)]
struct HeldText {
    agreed: DeviceText,
    now: DeviceText,
    changes: Vec<Change>,
}

impl DeviceText {
    pub(crate) fn of(info: &DeviceInfo) -> DeviceText {
        DeviceText { name: info.name.clone(), instructions: info.instructions.clone().unwrap_or_default() }
    }
}

impl HeldTools {
    /// `None` where everything is as agreed.
    pub(crate) fn new(
        tools: Vec<HeldTool>,
        text: Option<(DeviceText, DeviceText, Vec<Change>)>,
        gone: Vec<String>,
    ) -> Option<HeldTools> {
        if tools.is_empty() && text.is_none() && gone.is_empty() {
            return None;
        }
        let text = text.map(|(agreed, now, changes)| HeldText { agreed, now, changes });
        let now = text.as_ref().map(|text| json!([text.now.name, text.now.instructions]));
        let entries: Vec<&Value> = tools.iter().map(|held| &held.entry).collect();
        let digest = Digest::of(&json!([entries, now, gone])).short(DIGEST);
        Some(HeldTools { tools, text, gone, digest })
    }

    pub(crate) fn holds(&self, tool: &str) -> bool {
        self.tools.iter().any(|held| held.tool == tool)
    }

    /// The text of the device that waits to be accepted.
    pub(crate) fn new_text(&self) -> Option<&DeviceText> {
        self.text.as_ref().map(|text| &text.now)
    }

    /// The device's information with the agreed text in place of the one that is held back.
    pub(crate) fn masked(&self, info: &Arc<DeviceInfo>) -> Arc<DeviceInfo> {
        let Some(HeldText { agreed, .. }) = &self.text else { return info.clone() };
        let instructions = Some(agreed.instructions.clone()).filter(|text| !text.is_empty());
        Arc::new(DeviceInfo { name: agreed.name.clone(), instructions, ..(**info).clone() })
    }

    /// The names of the tools, as an event has them.
    pub(crate) fn names(&self) -> Vec<String> {
        self.tools.iter().take(MAX_SHOWN).map(HeldTool::agreed_name).collect()
    }

    /// What a person can do about it; `None` where only tools are gone.
    pub(crate) fn remedy(&self, id: &DeviceId) -> Option<String> {
        let what = match (self.tools.as_slice(), &self.text) {
            ([], None) => return None,
            ([], Some(_)) => "its own text, which differs from what was agreed, is".to_owned(),
            ([only], _) => format!("`{}`, which differs from what was agreed, is", clean_line(&only.tool, 64)),
            (several, _) => format!("{} tools, which differ from what was agreed, are", several.len()),
        };
        Some(format!(
            "{what} held back; `sinew devices changes {id}` shows how, and \
             `sinew devices accept {id} {}` accepts it",
            self.digest
        ))
    }

    pub(crate) fn view(&self) -> Vec<HeldToolView> {
        let view = |held: &HeldTool| HeldToolView {
            tool: clean_line(&held.tool, 128),
            why: clean_line(&held.why, 1_000),
            changes: held.changes.iter().take(MAX_SHOWN).map(shown).collect(),
            form: HeldForm { agreed: held.agreed.as_ref().map(form_text), now: form_text(&held.entry) },
        };
        self.tools.iter().map(view).collect()
    }

    pub(crate) fn text_changes(&self) -> Vec<HeldChange> {
        self.text.iter().flat_map(|text| &text.changes).map(shown).collect()
    }

    pub(crate) fn text_form(&self) -> Option<HeldForm> {
        let form = |text: &DeviceText| form_text(&json!({"name": text.name, "instructions": text.instructions}));
        self.text.as_ref().map(|text| HeldForm { agreed: Some(form(&text.agreed)), now: form(&text.now) })
    }
}

/// What happened to a device's tools. The event is made outside the registry's lock, because comparing takes a while.
pub(crate) struct ToolsetChange {
    pub id: DeviceId,
    pub before: Arc<Toolset>,
    pub after: Arc<Toolset>,
    /// What was held back until now, and what is from here on.
    pub was_held: Option<Arc<HeldTools>>,
    pub held: Option<Arc<HeldTools>>,
}

impl ToolsetChange {
    /// The event, where anything changed. It has the places of changes and no text of the device: models read events.
    pub(crate) fn notice(&self) -> Option<Notice> {
        let list = |tools: &Toolset| tools.iter().cloned().collect::<Vec<_>>();
        let mut changes = match self.before.digest() == self.after.digest() {
            true => Vec::new(),
            false => {
                let work = &mut CompareWork::new(MAX_COMPARE_STEPS);
                diff_within(&list(&self.before), &list(&self.after), work).changes
            }
        };
        let is_held = |held: &Option<Arc<HeldTools>>, tool: &str| held.as_ref().is_some_and(|held| held.holds(tool));
        let caught: Vec<&HeldTool> =
            held_tools(&self.held).filter(|held| !is_held(&self.was_held, &held.tool)).collect();
        let released: Vec<&HeldTool> = held_tools(&self.was_held)
            .filter(|held| !is_held(&self.held, &held.tool) && self.after.find(&held.tool).is_some())
            .collect();
        // A tool may be held back or released without a change of its own, because a version or the lock changed. It is
        // reported with the changes that are the reason.
        for held in caught.iter().chain(&released) {
            if !changes.iter().any(|change| change.tool == held.tool) {
                changes.extend(held.changes.iter().cloned());
            }
        }
        if changes.is_empty() && caught.is_empty() {
            return None;
        }
        let bump = Bump::of(changes.iter().map(|change| change.impact).max());
        // What was held back until now was not agreed on either, except for a new tool that was accepted.
        let is_accepted = |held: &&HeldTool| held.agreed.is_none() && released.iter().any(|one| one.tool == held.tool);
        let held = |tool: &str| {
            let was_held = held_tools(&self.was_held).filter(|held| !is_accepted(held));
            held_tools(&self.held).chain(was_held).find(|held| held.tool == tool)
        };
        let places: Vec<Value> =
            changes.iter().take(MAX_SHOWN).map(|change| place(change, held(&change.tool))).collect();
        let mut body = json!({"bump": bump.word(), "changes": places});
        if let Some(more) = changes.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
            body["more"] = json!(more);
        }
        if let Some(held) = self.held.as_ref().filter(|held| !held.tools.is_empty()) {
            body["quarantined"] = json!(held.names());
        }
        if !released.is_empty() {
            let names = released.iter().take(MAX_SHOWN).map(|held| clean_line(&held.tool, 64));
            body["released"] = json!(names.collect::<Vec<_>>());
        }
        Some(Notice { topic: TOOLS_CHANGED.to_owned(), body })
    }
}

fn held_tools(held: &Option<Arc<HeldTools>>) -> impl Iterator<Item = &HeldTool> {
    held.iter().flat_map(|held| &held.tools)
}

/// `held`: the tool, if it is not as agreed.
fn place(change: &Change, held: Option<&HeldTool>) -> Value {
    json!({
        "tool": held.map_or_else(|| clean_line(&change.tool, 64), HeldTool::agreed_name),
        "path": clean_line(held.map_or(&*change.path, |held| held.agreed_part(&change.path)), 96),
        "kind": change.kind,
        "impact": change.impact.word(),
    })
}

fn shown(change: &Change) -> HeldChange {
    HeldChange {
        path: clean_line(&change.path, 96),
        kind: change.kind.to_owned(),
        impact: change.impact.word().to_owned(),
        message: clean_line(&change.message, MAX_MESSAGE),
    }
}
