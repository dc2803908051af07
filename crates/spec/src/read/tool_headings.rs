//! Finding the headings that begin tools, and those that look as if they did.

use std::collections::HashSet;

use super::blocks::{Block, BlockKind};
use super::listed::ListHeadings;
use super::names::{self, Confidence};
use super::table::{Column, Table};
use super::{Problem, labels, prose, schemas};
use crate::lint::rules;
use crate::model::Section;
use sinew_tool::finding::Span;

pub(super) struct ToolHeading {
    /// The index of the heading's block.
    pub(super) block: usize,
    pub(super) level: usize,
    pub(super) words: Span,
    pub(super) name: String,
}

/// The headings that begin tools: those that say `Tool:`, and names with something below them that looks like one.
pub(super) fn tool_starts(text: &str, blocks: &[Block]) -> (Vec<ToolHeading>, Vec<Problem>) {
    let mut unread = Vec::new();
    let mut candidates = Vec::new();
    let mut below = ListHeadings::default();
    let mut shallowest = usize::MAX;
    for (index, block) in blocks.iter().enumerate() {
        let BlockKind::Heading { level, text: words } = block.kind else { continue };
        if is_further(text, block) {
            break;
        }
        below.pass(level, words.of(text));
        match names::tool(words.of(text)) {
            Some((name, confidence))
                if confidence != Confidence::Listed
                    || below.list_tools()
                    || describes_input(text, &blocks[index + 1..]) =>
            {
                let start = ToolHeading { block: index, level, words, name };
                candidates.push((
                    start,
                    confidence == Confidence::Explicit,
                    std::mem::replace(&mut shallowest, usize::MAX),
                ));
                continue;
            }
            None if names::lists_tools(words.of(text)) => {}
            _ => {
                if let Some(name) = stated_name(text, level, words, &blocks[index + 1..]) {
                    let start = ToolHeading { block: index, level, words, name };
                    candidates.push((start, true, std::mem::replace(&mut shallowest, usize::MAX)));
                    continue;
                }
            }
        }
        shallowest = shallowest.min(level);
    }
    let next: Vec<usize> = candidates.iter().skip(1).map(|(start, _, _)| start.block).chain([blocks.len()]).collect();
    let mut starts: Vec<ToolHeading> = Vec::new();
    let mut shallowest = usize::MAX;
    for ((start, is_explicit, before), next) in candidates.into_iter().zip(next) {
        shallowest = shallowest.min(before);
        // A heading deeper than the tool around it is part of that tool.
        let inside = starts.last().is_some_and(|open| start.level > open.level && shallowest > open.level);
        let is_meant = is_explicit || looks_like_a_tool(text, &blocks[start.block + 1..next]);
        if is_meant && !inside {
            shallowest = usize::MAX;
            starts.push(start);
            continue;
        }
        shallowest = shallowest.min(start.level);
        match starts.last() {
            Some(around) if inside && is_meant => unread.push(nested(&start, around)),
            _ if inside => {}
            _ => unread.push(not_read(&start)),
        }
    }
    let untitled = untitled(text, blocks, &starts, &unread);
    unread.extend(untitled);
    unread.sort_by_key(|problem| problem.span);
    (starts, unread)
}

/// The name that a section right below a heading states, whatever that heading says: "Dimming", with the sections of the
/// standard and an invocation name among them.
fn stated_name(text: &str, level: usize, words: Span, below: &[Block]) -> Option<String> {
    // The title of a document names the document: printing puts one above everything.
    if level == 1 || labels::section(words.of(text)).is_some() {
        return None;
    }
    let mut sections = below.iter().enumerate().filter_map(|(index, block)| match block.kind {
        BlockKind::Heading { level, text: words } => Some((index, level, labels::section(words.of(text)))),
        _ => None,
    });
    let is_own = |(_, inner, section): &(usize, usize, Option<Section>)| *inner > level && section.is_some();
    let (at, ..) = sections.by_ref().take_while(is_own).find(|(_, _, section)| *section == Some(Section::Name))?;
    let BlockKind::Prose(lines) = &below.get(at + 1)?.kind else { return None };
    let name = prose::first_code(lines.first()?.of(text))?;
    names::tool(&format!("`{name}`")).map(|(name, _)| name)
}

/// Headings that are no names of tools, or too common a word, although parameters are described right below them.
fn untitled(text: &str, blocks: &[Block], starts: &[ToolHeading], unread: &[Problem]) -> Vec<Problem> {
    let reported: HashSet<usize> = unread.iter().map(|problem| problem.span.start).collect();
    let mut found = Vec::new();
    let mut inside = 0;
    let mut ahead = starts.iter().peekable();
    for (index, block) in blocks.iter().enumerate() {
        if let Some(start) = ahead.next_if(|start| start.block == index) {
            inside = end_of(text, blocks, start, ahead.peek().map_or(blocks.len(), |next| next.block));
        }
        let BlockKind::Heading { text: words, .. } = block.kind else { continue };
        if is_further(text, block) {
            break;
        }
        let title = words.of(text);
        if index < inside || reported.contains(&words.start) || labels::section(title).is_some() {
            continue;
        }
        let below = &blocks[index + 1..];
        let is_name = names::tool(title).is_some();
        let own = below.iter().position(|block| matches!(block.kind, BlockKind::Heading { .. })).unwrap_or(below.len());
        let below_own = &below[..own];
        if describes_input(text, below)
            || is_name && looks_like_a_tool(text, below_own)
            || below_own.iter().any(|block| tables_parameters(text, block, title))
        {
            let why = if is_name { "it may be any word" } else { "it is not a name" };
            let message = format!(
                "\"{}\" describes parameters and was not read as a tool, because {why}; write the heading as \
                 `## Tool: `name``",
                sinew_tool::text::clip(title)
            );
            found.push(Problem { rule: &rules::TOOL_UNREAD, span: words, message });
        }
    }
    found
}

/// Whether a table says of parameters whether they are required. Below a heading that cannot be a tool's it must call them
/// parameters, for settings and members of objects are described in the same way.
fn tables_parameters(text: &str, block: &Block, title: &str) -> bool {
    let Some(table) = Table::of(text, &block.kind, block.span) else { return false };
    let columns = table.columns().unwrap_or_default();
    let asks = columns.iter().any(|column| matches!(column, Column::Required | Column::Optional));
    let names_parameters = || table.header.cells.iter().any(|cell| labels::announces_parameters(&cell.text));
    asks && (names::may_be_tool(title) || names_parameters() && !labels::announces_parameters(title))
}

/// Whether parameters are described right below a heading.
fn describes_input(text: &str, below: &[Block]) -> bool {
    let body = below.iter().take_while(|block| match block.kind {
        BlockKind::Heading { text: words, .. } => labels::section(words.of(text)).is_some(),
        _ => true,
    });
    body.into_iter().any(|block| labels_input(text, block))
}

/// Whether a heading or a bold label says that parameters follow.
fn labels_input(text: &str, block: &Block) -> bool {
    let is_input = |words: &str| labels::section(words) == Some(Section::Input) && labels::announces_parameters(words);
    match &block.kind {
        BlockKind::Heading { text: words, .. } => is_input(words.of(text)),
        BlockKind::Prose(lines) => {
            lines.iter().any(|line| labels::label(line.of(text)).is_some_and(|(words, _)| is_input(words)))
        }
        _ => false,
    }
}

fn nested(start: &ToolHeading, around: &ToolHeading) -> Problem {
    let [name, outer] = [&start.name, &around.name].map(|name| sinew_tool::text::clip(name));
    let message = format!(
        "`{name}` looks like a tool and was read as a part of `{outer}`, whose heading is above it; if it is a tool of its \
         own, write the heading as `## Tool: `{name}``"
    );
    Problem { rule: &rules::TOOL_UNREAD, span: start.words, message }
}

/// Whether a block begins the part after all tools. Inside a tool the same heading is a section of it.
pub(super) fn is_further(text: &str, block: &Block) -> bool {
    matches!(block.kind, BlockKind::Heading { level: 1 | 2, text: words } if labels::is_further(words.of(text)))
}

fn not_read(start: &ToolHeading) -> Problem {
    let message = format!(
        "`{}` looks like a tool and was not read: nothing below it describes parameters or a result; add the eight \
         sections, a table of parameters or a JSON Schema, and write the heading as `## Tool: `{}``",
        sinew_tool::text::clip(&start.name),
        sinew_tool::text::clip(&start.name)
    );
    Problem { rule: &rules::TOOL_UNREAD, span: start.words, message }
}

/// A tool ends where the next begins, or at another heading of its level. Its sections may be of that level too, if the
/// first one is what only tools have.
pub(super) fn end_of(text: &str, blocks: &[Block], start: &ToolHeading, next: usize) -> usize {
    let body = &blocks[(start.block + 1).min(next)..next];
    // Whether the sections are of the tool's own level; unknown before the first.
    let mut are_level = None;
    let mut is_below_heading = true;
    let ends = |block: &Block| {
        let is_first = std::mem::take(&mut is_below_heading);
        match &block.kind {
            BlockKind::Heading { level, .. } if *level < start.level => true,
            BlockKind::Heading { level, text: words } if *level == start.level => {
                let section = labels::section(words.of(text));
                let begins = match section {
                    Some(Section::Name | Section::Input | Section::Output) => true,
                    Some(Section::Purpose) => is_first,
                    _ => false,
                };
                section.is_none() || !*are_level.get_or_insert(begins)
            }
            _ => {
                if is_section(text, block) {
                    are_level.get_or_insert(false);
                }
                false
            }
        }
    };
    body.iter().position(ends).map_or(next, |offset| start.block + 1 + offset)
}

/// Whether a heading or a bold label begins a section.
fn is_section(text: &str, block: &Block) -> bool {
    let is_title = |words: &str| labels::section(words).is_some();
    match &block.kind {
        BlockKind::Heading { text: words, .. } => is_title(words.of(text)),
        BlockKind::Prose(lines) => {
            lines.iter().any(|line| labels::label(line.of(text).trim_start()).is_some_and(|(words, _)| is_title(words)))
        }
        _ => false,
    }
}

/// Whether the text below a likely heading looks like a tool: a section, a table of parameters,
/// or a definition in JSON or YAML.
fn looks_like_a_tool(text: &str, blocks: &[Block]) -> bool {
    blocks.iter().any(|block| match &block.kind {
        BlockKind::Heading { .. } => is_section(text, block),
        _ if schemas::is_list(text, &block.kind, block.span) => true,
        BlockKind::Table(_) | BlockKind::Html => {
            Table::of(text, &block.kind, block.span).is_some_and(|table| table.columns().is_some())
        }
        BlockKind::Fence { body, .. } => {
            let body = body.of(text);
            let keys = ["inputSchema", "input_schema", "parameters:", "\"parameters\""];
            keys.iter().any(|key| body.contains(key))
        }
        BlockKind::Prose(_) => is_section(text, block),
        BlockKind::Comment => false,
    })
}
