//! What changed between two views, in as few bytes as possible.

use std::collections::{HashMap, HashSet};

use super::refs::Refs;
use super::{Item, ScreenView, join};
use crate::tree::UiNodeId;

/// `+` new, `~` changed or moved, `gone:` the refs that left. The whole screen where that is shorter.
pub fn to_text(before: &ScreenView, after: &ScreenView, refs: &mut Refs, budget: Option<usize>) -> String {
    let mut lines = Vec::new();
    if before.package != after.package {
        lines.push(format!("app {} (was {})", after.package, before.package));
    }
    let old: HashMap<UiNodeId, &Item> = before.items.iter().map(|item| (item.id, item)).collect();
    for item in &after.items {
        let name = refs.name(item);
        match old.get(&item.id) {
            None => lines.push(format!("+ {name} {item}")),
            Some(was) if was.face() != item.face() => lines.push(format!("~ {name} {item}")),
            Some(was) if was.bounds.center() != item.bounds.center() => {
                let (x, y) = item.bounds.center();
                lines.push(format!("~ {name} @{x},{y}"));
            }
            Some(_) => {}
        }
    }
    // What never had a ref was never shown.
    let here: HashSet<UiNodeId> = after.items.iter().map(|item| item.id).collect();
    let left = before.items.iter().filter(|item| !here.contains(&item.id));
    let gone: Vec<String> = left.filter_map(|item| refs.of(item.id)).collect();
    if !gone.is_empty() {
        lines.push(format!("gone: {}", gone.join(" ")));
    }
    if lines.is_empty() {
        return "no change on the screen".to_owned();
    }
    let changes = join(&lines, None);
    let whole = after.to_text(refs, None);
    if changes.len() > whole.len() { after.to_text(refs, budget) } else { join(&lines, budget) }
}
