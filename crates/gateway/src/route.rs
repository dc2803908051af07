//! From a name and arguments to one device and one of its tools.

use std::sync::Arc;

use serde_json::{Value, json};
use sinew_tool::text::clean_line;
use sinew_tool::{Args, ErrorKind, ToolError};

use crate::access::Lens;
use crate::builtin::{self, BuiltIn};
use crate::identity::unknown_device;
use crate::snapshot::{DeviceEntry, Holder, Snapshot};
use crate::view::Shape;

/// The tool that the caller asks for.
#[derive(Clone, Copy)]
pub(crate) enum RequestedTool<'a> {
    /// A tool by the public name of one form.
    Public { name: &'a str, shape: Shape },
    /// A tool of a device, both named by the caller.
    On { device: &'a str, tool: &'a str },
}

pub(crate) enum Target<'s> {
    BuiltIn(&'static BuiltIn),
    Device(Holder<'s>),
}

/// Finds the requested tool. In the folded form the selecting argument is taken out of `args`.
pub(crate) fn find<'s>(
    snapshot: &'s Snapshot,
    requested: RequestedTool<'_>,
    args: &mut Args,
    lens: &Lens,
    spec_tools: bool,
) -> Result<Target<'s>, ToolError> {
    match requested {
        RequestedTool::On { device, tool } => {
            let entry = seen_device(snapshot, device, lens)?;
            let offered = entry.offer.find(tool).filter(|offered| lens.sees(Holder { entry, offered }));
            let offered = offered.ok_or_else(|| {
                let (title, name) = (entry.title(), clean_line(tool, 128));
                let held = entry.held.as_ref().filter(|held| lens.knows_all() && held.holds(tool));
                let message = match (held, entry.withdrawn.get(tool).filter(|_| lens.knows_all())) {
                    (Some(held), _) => {
                        format!("`{name}` of {title} is held back: {}", held.remedy(&entry.id).unwrap_or_default())
                    }
                    (None, Some(why)) => format!("`{name}` of {title} is not offered: {why}"),
                    (None, None) => {
                        format!("{title} has no tool `{name}`; `sinew tools {}` lists those it has", entry.id)
                    }
                };
                ToolError::new(ErrorKind::UnknownTool, message)
            })?;
            Ok(Target::Device(Holder { entry, offered }))
        }
        RequestedTool::Public { name, shape } => {
            if let Some(built_in) = builtin::find(name, spec_tools) {
                return Ok(Target::BuiltIn(built_in));
            }
            let found = match shape {
                Shape::Folded => folded(snapshot, name, args, lens)?,
                Shape::Unfolded => unfolded(snapshot, name, lens),
            };
            found.map(Target::Device).ok_or_else(|| unknown_tool(name))
        }
    }
}

fn seen_device<'s>(snapshot: &'s Snapshot, text: &str, lens: &Lens) -> Result<&'s Arc<DeviceEntry>, ToolError> {
    let seen = || snapshot.devices.iter().filter(|entry| lens.sees_device(entry));
    let entry = snapshot.entry(text).filter(|entry| lens.sees_device(entry));
    entry.ok_or_else(|| unknown_device(text, seen()))
}

/// The same text for a tool that does not exist and for one that the caller may not see.
fn unknown_tool(name: &str) -> ToolError {
    let name = clean_line(name, 128);
    ToolError::new(ErrorKind::UnknownTool, format!("unknown tool `{name}`; the tool list is complete"))
}

fn unfolded<'s>(snapshot: &'s Snapshot, name: &str, lens: &Lens) -> Option<Holder<'s>> {
    let (device, tool) = snapshot.unfold().find(name)?;
    let entry = snapshot.devices.get(device)?;
    let offered = entry.offer.tools.get(tool)?;
    Some(Holder { entry, offered }).filter(|holder| lens.sees(*holder))
}

fn folded<'s>(
    snapshot: &'s Snapshot,
    name: &str,
    args: &mut Args,
    lens: &Lens,
) -> Result<Option<Holder<'s>>, ToolError> {
    // All tools of one public name have one schema, hence one selector.
    let Some(any) = snapshot.find_seen(name, lens) else { return Ok(None) };
    let wanted = match args.shift_remove(&any.selector) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.trim().is_empty() => None,
        Some(Value::String(text)) => Some(text),
        Some(_) => {
            let issue = "must be a string: the id or name of a device, see list_devices";
            return Err(wrong_selector(&any.selector, issue.to_owned()));
        }
    };
    match wanted {
        Some(text) => {
            let entry = seen_device(snapshot, &text, lens)?;
            let offered = snapshot.offered(name, entry).filter(|offered| lens.sees(Holder { entry, offered }));
            match offered {
                Some(offered) => Ok(Some(Holder { entry, offered })),
                None => Err(wrong_device(snapshot, name, &any.selector, &entry.title(), lens)),
            }
        }
        None => only_one(snapshot, name, &any.selector, lens).map(Some),
    }
}

/// The only device that has the tool. Where several have it, the caller must name one: a call meant for a lock that is
/// away must not open another. Devices that are away for long count where a person named, labelled or pinned them.
fn only_one<'s>(snapshot: &'s Snapshot, name: &str, selector: &str, lens: &Lens) -> Result<Holder<'s>, ToolError> {
    let holders = choices(snapshot, name, lens);
    if let [holder] = holders.as_slice() {
        return Ok(*holder);
    }
    if let Some(holder) = only_ready(&holders) {
        return Ok(holder);
    }
    let candidates: Vec<Value> = holders.iter().take(50).map(candidate).collect();
    let message = format!("several devices have `{name}`; name one in `{selector}`: {}", listed(&holders));
    let details =
        json!({"parameter_name": selector, "issue": "several devices have this tool", "candidates": candidates});
    Err(ToolError::new(ErrorKind::DeviceNeeded, message).with_details(details))
}

/// The devices that a call may mean, by id.
fn choices<'s>(snapshot: &'s Snapshot, name: &str, lens: &Lens) -> Vec<Holder<'s>> {
    let (mut holders, mut absent) = snapshot.holders(name, lens);
    if !holders.is_empty() {
        absent.retain(|holder| holder.entry.is_kept());
    }
    holders.append(&mut absent);
    holders.sort_by(|one, two| one.entry.id.cmp(&two.entry.id));
    holders
}

/// The only device that is ready, in a family that allows this choice.
fn only_ready<'s>(holders: &[Holder<'s>]) -> Option<Holder<'s>> {
    let mut ready = holders.iter().filter(|holder| holder.entry.is_ready());
    let (Some(only), None) = (ready.next(), ready.next()) else { return None };
    let family = &only.entry.info.family;
    let is_same = |holder: &Holder<'_>| holder.entry.info.family.name == family.name;
    (family.prefers_ready && holders.iter().all(is_same)).then_some(*only)
}

fn candidate(holder: &Holder<'_>) -> Value {
    let mut candidate = json!({"id": holder.entry.id.as_str(), "state": holder.entry.state().0});
    if let Some(name) = &holder.entry.name {
        candidate["name"] = json!(**name);
    }
    candidate
}

/// `board-a (ready), board-b "kitchen" (away) and 48 more`.
fn listed(holders: &[Holder<'_>]) -> String {
    let title = |holder: &Holder<'_>| format!("{} ({})", holder.entry.title(), holder.entry.state().0);
    let shown: Vec<String> = holders.iter().take(10).map(title).collect();
    match holders.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more, see list_devices", shown.join(", ")),
    }
}

fn wrong_device(snapshot: &Snapshot, name: &str, selector: &str, title: &str, lens: &Lens) -> ToolError {
    let holders = choices(snapshot, name, lens);
    wrong_selector(selector, format!("names {title}, which does not have `{name}`; it is on {}", listed(&holders)))
}

fn wrong_selector(selector: &str, issue: String) -> ToolError {
    ToolError::new(ErrorKind::InvalidArguments, format!("argument `{selector}` {issue}"))
        .with_details(json!({"parameter_name": selector, "issue": issue}))
}
