//! Tools that only one side has: added, removed, or known again under another name.

use std::collections::{BTreeSet, HashMap, HashSet};

use sinew_tool::text::clip;
use sinew_tool::{Digest, Tool};

use super::{Change, Impact, ToolsByName, change};
use crate::read::prose::one_line;

/// Tools that only one side has.
pub(super) fn arrivals(went: &ToolsByName<'_>, came: &ToolsByName<'_>) -> Vec<Change> {
    let renamed = renamed_tools(went, came);
    let new_names: HashSet<&str> = renamed.values().copied().collect();
    let gone = went.keys().map(|name| match renamed.get(name) {
        Some(to) => {
            let message = format!("the tool was removed; it may have been renamed to `{}`", clip(to));
            change(name, "/name", "tool-renamed", Impact::Breaking, message)
        }
        None => change(name, "", "tool-removed", Impact::Breaking, "the tool was removed"),
    });
    let added = came.keys().filter(|name| !new_names.contains(*name));
    gone.chain(added.map(|name| change(name, "", "tool-added", Impact::Additive, "a new tool"))).collect()
}

/// Removed tools with the name of the added one that each may have become.
fn renamed_tools<'a>(went: &'a ToolsByName<'_>, came: &'a ToolsByName<'_>) -> HashMap<&'a str, &'a str> {
    let mut renamed = HashMap::new();
    if went.is_empty() || came.is_empty() {
        return renamed;
    }
    // Exactly the same description and arguments.
    let face = |tool: &Tool| (tool.input_digest(), one_line(&tool.description));
    let mut faces: HashMap<(Digest, String), Vec<&str>> = HashMap::new();
    for (name, tool) in came {
        faces.entry(face(tool)).or_default().push(name);
    }
    let mut taken: HashSet<&str> = HashSet::new();
    for (name, tool) in went {
        // With several equal new tools, the match is unknown.
        if let Some([only]) = faces.get(&face(tool)).map(Vec::as_slice)
            && taken.insert(only)
        {
            renamed.insert(*name, *only);
        }
    }
    let left: Vec<_> = went.iter().filter(|(name, _)| !renamed.contains_key(*name)).collect();
    let free: Vec<_> = came.iter().filter(|(name, _)| !taken.contains(*name)).collect();
    // Beyond this many, tools were replaced, not renamed.
    if left.len() * free.len() <= 400 {
        for (name, old) in left {
            let mut alike = free.iter().filter(|(to, new)| !taken.contains(*to) && looks_renamed(old, new));
            if let (Some((to, _)), None) = (alike.next(), alike.next()) {
                taken.insert(*to);
                renamed.insert(*name, **to);
            }
        }
    }
    renamed
}

/// Whether two tools are one under two names: the same arguments with another description, or the reverse.
/// A tool without arguments cannot be recognised by them.
fn looks_renamed(old: &Tool, new: &Tool) -> bool {
    let names = |tool: &Tool| -> BTreeSet<String> {
        tool.properties().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let (one, two) = (names(old), names(new));
    let same_arguments = one.len() >= 2 && one == two;
    let same_words =
        old.description.split_whitespace().count() >= 4 && one_line(&old.description) == one_line(&new.description);
    same_arguments || same_words
}
