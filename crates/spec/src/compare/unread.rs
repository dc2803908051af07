//! What a comparison could not look at: parameters and tools that were not read, and tools that share a name. Where
//! their texts differ, nobody knows what the difference means.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use sinew_tool::finding::Span;
use sinew_tool::text::clip;

use super::{Change, Impact, change};
use crate::lint::rules;
use crate::model::ToolSpecification;
use crate::read::Document;
use crate::read::blocks::{self, BlockKind};
use crate::read::places::SchemaSource;
use crate::read::prose::one_line;

/// The texts of one tool that describe its parameters or its result and could not be read.
pub(super) fn parts(old: &ToolSpecification, new: &ToolSpecification) -> Vec<Change> {
    let is_faulty = |source: &SchemaSource| {
        !(source.faults.is_empty() && source.unread.is_empty() && source.other_tables.is_empty())
    };
    let input = |spec: &ToolSpecification| {
        let is_unread = !spec.input_known && !spec.input_notes.is_empty() || is_faulty(&spec.places.input);
        is_unread.then(|| one_line(&spec.input_notes))
    };
    let output = |spec: &ToolSpecification| is_faulty(&spec.places.output).then(|| one_line(&spec.output_notes));
    let parts = [
        ("/inputSchema", "the input", input(old), input(new)),
        ("/outputSchema", "the result", output(old), output(new)),
    ];
    let differing = parts.into_iter().filter(|(_, _, one, two)| one != two);
    let tell = |(path, what, ..): (&str, &str, _, _)| {
        let message = format!("{what} could not be compared, because a text about it could not be read");
        change(&old.name, path, "not-compared", Impact::Undecided, message)
    };
    differing.map(tell).collect()
}

/// The tools of two documents that were not read, or that callers cannot tell from another one.
pub(super) fn tools(old: &Document, new: &Document) -> Vec<Change> {
    let (before, after) = (unread(old), unread(new));
    let missing = |one: &[(String, String)], other: &[(String, String)]| {
        let known: HashSet<&(String, String)> = other.iter().collect();
        one.iter().filter(|tool| !known.contains(tool)).map(|(title, _)| title.clone()).collect::<Vec<_>>()
    };
    let mut titles = missing(&before, &after);
    titles.extend(missing(&after, &before));
    titles.sort();
    titles.dedup();
    let not_read = titles.into_iter().map(|title| {
        let message = "could not be compared, because it was not read as a tool in both documents";
        change(&title, "", "not-compared", Impact::Undecided, message)
    });
    not_read.chain(repeated(&old.tools, &new.tools)).collect()
}

/// Title and text of what looks like tools and was not read: headings, and names that are only listed.
fn unread(document: &Document) -> Vec<(String, String)> {
    let mut starts: BTreeMap<usize, Span> = document
        .problems
        .iter()
        .filter(|problem| problem.rule == &rules::TOOL_UNREAD)
        .map(|problem| (problem.span.start, problem.span))
        .collect();
    if starts.is_empty() {
        return Vec::new();
    }
    let text = document.text.as_str();
    let (blocks, _) = blocks::cut(text);
    let mut found = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let BlockKind::Heading { level, text: words } = block.kind else { continue };
        if starts.remove(&words.start).is_none() {
            continue;
        }
        let ends =
            |block: &&blocks::Block| matches!(block.kind, BlockKind::Heading { level: other, .. } if other <= level);
        let end = blocks[index + 1..].iter().find(ends).map_or(text.len(), |next| next.span.start);
        found.push((clip(&one_line(words.of(text))), one_line(&text[words.end..end])));
    }
    // Of several names in one fence or on one line the first stands for all.
    let mut told = 0;
    for (start, span) in starts {
        if start < told {
            continue;
        }
        let fence = blocks.get(blocks.partition_point(|block| block.span.end < start));
        let whole = fence.filter(|block| matches!(block.kind, BlockKind::Fence { .. })).map(|block| block.span);
        let end = || text[start..].find('\n').map_or(text.len(), |at| start + at);
        told = whole.map_or_else(|| end().max(span.end), |whole| whole.end);
        let from = whole.map_or(start, |whole| whole.start);
        let title = span.of(text).lines().next().unwrap_or_default();
        found.push((clip(&one_line(title)), one_line(&text[from..told])));
    }
    found
}

/// Of several tools with one name callers get the first. A change of another one may be meant.
fn repeated(old: &[ToolSpecification], new: &[ToolSpecification]) -> Vec<Change> {
    let (before, after) = (later(old), later(new));
    let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    let differing = names.into_iter().filter(|name| before.get(name) != after.get(name));
    let tell = |name| {
        let message = "another tool of the same name changed, came or went; give each its own name";
        change(name, "", "not-compared", Impact::Undecided, message)
    };
    differing.map(tell).collect()
}

/// The tools after the first of their name.
fn later(tools: &[ToolSpecification]) -> HashMap<&str, Vec<&ToolSpecification>> {
    let mut seen = HashSet::new();
    let mut later: HashMap<&str, Vec<&ToolSpecification>> = HashMap::new();
    for tool in tools.iter().filter(|tool| !seen.insert(tool.name.as_str())) {
        later.entry(&tool.name).or_default().push(tool);
    }
    later
}
