//! Tools that a document only lists, in a table, in bullets or in another form that is not read as a tool: each is
//! reported, so that none is lost silently.

use std::collections::HashSet;
use std::ops::Range;

use super::blocks::{Block, BlockKind};
use super::names::{self, Confidence};
use super::table::Table;
use super::tool_headings::is_further;
use super::{MAX_TOOLS, Problem, bullets, html_table, labels, prose, rows};
use crate::json;
use crate::lint::rules;
use sinew_tool::finding::Span;
use sinew_tool::text::clip;

/// Looks for names of tools in the blocks outside `tools`, the ranges of blocks that were read as tools under the
/// names in `known`.
pub(super) fn unread(text: &str, blocks: &[Block], tools: &[Range<usize>], known: KnownNames) -> Vec<Problem> {
    let mut search = Search { text, known, is_alone: tools.is_empty(), found: Vec::new() };
    let mut ahead = tools.iter().peekable();
    let mut below = ListHeadings::default();
    let mut is_announced = false;
    let mut is_other = false;
    for (index, block) in blocks.iter().enumerate() {
        ahead.next_if(|tool| tool.end <= index);
        let is_inside = ahead.peek().is_some_and(|tool| tool.contains(&index));
        if let BlockKind::Heading { level, text: words } = block.kind {
            let title = words.of(text);
            if is_further(text, block) {
                break;
            }
            below.pass(level, title);
            is_other = bullets::is_about_others(title) && !names::lists_tools(title);
            continue;
        }
        search.headings(block);
        search.announced(block, &blocks[index + 1..]);
        if is_inside {
            search.lists_in_tools(block);
        } else {
            let is_list = below.list_tools() && !is_other || std::mem::take(&mut is_announced);
            search.block(
                block,
                if is_list {
                    Listing::Tools
                } else if is_other {
                    Listing::Others
                } else {
                    Listing::Unknown
                },
            );
            is_announced = announces_tools(text, block);
        }
    }
    search.found
}

/// The headings around a place, as far as they say whether a list there is one of tools.
#[derive(Default)]
pub(super) struct ListHeadings {
    /// The level of the outermost heading around this place that lists tools.
    list: Option<usize>,
    /// The level of the heading of a section inside it, whose lists are of something else.
    section: Option<usize>,
}

impl ListHeadings {
    pub(super) fn pass(&mut self, level: usize, title: &str) {
        for open in [&mut self.list, &mut self.section] {
            *open = open.filter(|open| level > *open);
        }
        if names::lists_tools(title) {
            self.list.get_or_insert(level);
        } else if labels::section(title).is_some() {
            self.section.get_or_insert(level);
        }
    }

    pub(super) fn list_tools(&self) -> bool {
        self.list.is_some() && self.section.is_none()
    }
}

/// "The server has these tools:"
fn announces_tools(text: &str, block: &Block) -> bool {
    let BlockKind::Prose(lines) = &block.kind else { return false };
    lines.last().is_some_and(|line| says_tools(line.of(text)))
}

fn says_tools(line: &str) -> bool {
    let line = line.trim_end().trim_end_matches('*');
    let is_opening = line.ends_with([':', '：']);
    is_opening && line.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("tools"))
}

/// The names of tools that need no further word.
#[derive(Default)]
pub(super) struct KnownNames {
    /// As they are, and without the module in front of them.
    names: HashSet<String>,
    /// Those that have no module in front.
    bare: HashSet<String>,
}

impl KnownNames {
    pub(super) fn add(&mut self, name: &str) {
        match name.rsplit_once(['.', '/']) {
            Some((_, short)) => self.names.insert(short.to_owned()),
            None => self.bare.insert(name.to_owned()),
        };
        self.names.insert(name.to_owned());
    }

    fn contains(&self, name: &str) -> bool {
        let short = name.rsplit(['.', '/']).next().unwrap_or_default();
        self.names.contains(name) || self.bare.contains(short)
    }
}

/// What a list is of, by the heading or the sentence above it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    Tools,
    Others,
    Unknown,
}

struct Search<'a> {
    text: &'a str,
    known: KnownNames,
    /// Whether no tool of the document was read.
    is_alone: bool,
    found: Vec<Problem>,
}

impl Search<'_> {
    fn report(&mut self, name: &str, span: Span) {
        if self.known.contains(name) || self.found.len() > MAX_TOOLS {
            return;
        }
        self.known.add(name);
        let name = clip(name);
        let message = format!(
            "`{name}` looks like a tool and was not read, because it has no heading of its own; describe it below \
             `## Tool: `{name}``"
        );
        self.found.push(Problem { rule: &rules::TOOL_UNREAD, span, message });
    }

    /// Headings where Markdown has none of its own: in quotes, in lists, and as the summary of `<details>`.
    fn headings(&mut self, block: &Block) {
        let sure = |words: &str| names::tool(words).filter(|(_, confidence)| *confidence != Confidence::Listed);
        match &block.kind {
            BlockKind::Prose(lines) => {
                for line in lines {
                    let words = line.of(self.text).trim_start_matches(|c: char| c == '>' || c.is_whitespace());
                    let words = rows::bulleted(words).unwrap_or(words);
                    if prose::is_heading(words)
                        && let Some((name, _)) = sure(words.trim_matches(['#', ' ', '\t']))
                    {
                        self.report(&name, *line);
                    }
                }
            }
            BlockKind::Html => {
                for (words, span) in html_table::headings(self.text, block.span) {
                    if let Some((name, _)) = sure(&words) {
                        self.report(&name, span);
                    }
                }
            }
            _ => {}
        }
    }

    /// `Tool: x` that is not a heading, above a table of parameters.
    fn announced(&mut self, block: &Block, below: &[Block]) {
        let BlockKind::Prose(lines) = &block.kind else { return };
        let mut own = below.iter().take_while(|block| !matches!(block.kind, BlockKind::Heading { .. }));
        for line in lines {
            let Some(name) = names::announced_on(line.of(self.text).trim()) else { continue };
            let table = own.find(|block| {
                Table::of(self.text, &block.kind, block.span).is_some_and(|table| table.columns().is_some())
            });
            if let Some(table) = table {
                self.report(&name, line.to(table.span));
            }
        }
    }

    /// Several definitions in one fence are more than the tool around them.
    fn lists_in_tools(&mut self, block: &Block) {
        let BlockKind::Fence { body, .. } = &block.kind else { return };
        let defined = defined_in(self.text, *body);
        if defined.len() > 1 {
            defined.into_iter().for_each(|(name, span)| self.report(&name, span));
        }
    }

    fn block(&mut self, block: &Block, listing: Listing) {
        let is_list = listing == Listing::Tools;
        match &block.kind {
            BlockKind::Prose(lines) => self.lines(lines, listing),
            BlockKind::Table(_) | BlockKind::Html => {
                if let Some(table) = Table::of(self.text, &block.kind, block.span) {
                    self.table(&table, is_list);
                } else if is_list {
                    for term in html_table::definitions(self.text, block.span) {
                        let name = term.cells.first().and_then(|cell| Some((cell.span, named(&cell.text)?)));
                        name.into_iter().for_each(|(span, name)| self.report(&name, span));
                    }
                }
            }
            BlockKind::Fence { body, .. } => {
                defined_in(self.text, *body).into_iter().for_each(|(name, span)| self.report(&name, span));
            }
            BlockKind::Heading { .. } | BlockKind::Comment => {}
        }
    }

    /// Bullets in a list of tools, or that look like tools themselves, and names in bold type alone on a line.
    fn lines(&mut self, lines: &[Span], listing: Listing) {
        let mut is_list = listing == Listing::Tools;
        let mut outer: Option<usize> = None;
        for (index, line) in lines.iter().enumerate() {
            let words = line.of(self.text);
            let body = words.trim_start();
            let indent = words.len() - body.len();
            let Some(item) = rows::bulleted(body) else {
                let bold =
                    body.trim_end().trim_end_matches(':').strip_prefix("**").and_then(|bold| bold.strip_suffix("**"));
                if let Some(name) = bold.and_then(named) {
                    self.report(&name, *line);
                }
                is_list |= says_tools(body);
                continue;
            };
            // What is further inside a tool's bullet describes it, and a bullet with a type is a parameter.
            let is_part = outer.is_some_and(|outer| indent > outer) || rows::read_bullet(self.text, *line).is_some();
            if is_part {
                continue;
            }
            outer = None;
            let Some(name) = leading_name(item) else { continue };
            let is_meant = is_list
                || listing == Listing::Unknown
                    && (self.has_parameters(indent, &lines[index + 1..])
                        || bullets::is_tool(item, &name, self.is_alone));
            if is_meant {
                outer = Some(indent);
                self.report(&name, *line);
            }
        }
    }

    /// Whether a bullet further inside describes a parameter of the one before it.
    fn has_parameters(&self, indent: usize, below: &[Span]) -> bool {
        let inside = below.iter().take_while(|line| {
            let words = line.of(self.text);
            words.len() - words.trim_start().len() > indent
        });
        inside.into_iter().any(|line| rows::read_bullet(self.text, *line).is_some())
    }

    /// A table with a column of tools.
    fn table(&mut self, table: &Table, is_list: bool) {
        let Some(column) = table.header.cells.iter().position(|cell| heads_tools(&cell.text, is_list)) else { return };
        for cell in table.rows.iter().filter_map(|row| row.cells.get(column)) {
            let names: Vec<&str> = match cell.text.matches('`').count() {
                0..=2 => vec![cell.text.as_str()],
                _ => cell.text.split('`').skip(1).step_by(2).collect(),
            };
            for name in names.into_iter().filter_map(named_any) {
                self.report(&name, cell.span);
            }
        }
    }
}

/// Names and places of the tools that a fence defines in JSON.
fn defined_in(text: &str, body: Span) -> Vec<(String, Span)> {
    const SCHEMAS: [&str; 3] = ["inputSchema", "input_schema", "parameters"];
    let json = body.of(text);
    if !SCHEMAS.iter().any(|key| json.contains(&format!("\"{key}\""))) || !json.contains("\"name\"") {
        return Vec::new();
    }
    let Ok(reading) = json::read(text, body) else { return Vec::new() };
    let mut found = Vec::new();
    for value in &reading.values {
        let value = value.get("result").unwrap_or(value);
        let list = value.get("tools").or_else(|| value.get("functions")).unwrap_or(value);
        let entries = if list.items().is_empty() { std::slice::from_ref(value) } else { list.items() };
        for entry in entries {
            let entry = entry.get("function").unwrap_or(entry);
            let is_defined = SCHEMAS.iter().any(|key| entry.get(key).is_some());
            let name = entry.get("name").filter(|_| is_defined);
            found.extend(name.and_then(|node| Some((node.as_str()?.to_owned(), node.span))));
        }
    }
    found
}

/// Whether the column below this title names tools; in a list of tools "Name" does.
fn heads_tools(title: &str, is_list: bool) -> bool {
    match prose::unmark(title).to_lowercase().as_str() {
        "tool" | "tools" | "tool name" | "mcp tool" | "mcp tools" | "tool id" | "werkzeug" | "outil"
        | "herramienta" | "工具" | "ツール" => true,
        "name" | "function" | "command" | "method" | "action" | "operation" | "endpoint" => is_list,
        _ => false,
    }
}

/// A name in code, or one that prose would not have.
fn named(words: &str) -> Option<String> {
    names::tool(words).filter(|(_, confidence)| *confidence != Confidence::Listed).map(|(name, _)| name)
}

fn named_any(words: &str) -> Option<String> {
    names::tool(words).map(|(name, _)| name)
}

/// The name at the beginning of a bullet: `` `read_file`: Reads a file ``.
fn leading_name(item: &str) -> Option<String> {
    let bold =
        item.strip_prefix("**").and_then(|bold| bold.split_once("**")).map(|(bold, _)| bold.trim_end_matches(':'));
    let code = prose::first_code(bold.unwrap_or(item)).filter(|_| bold.unwrap_or(item).starts_with('`'));
    if let Some(code) = code {
        return named(&format!("`{code}`"));
    }
    if let Some(bold) = bold {
        return named(bold);
    }
    let end = item.find([':', '：', '–', '—', '(']).or_else(|| item.find(" - ")).unwrap_or(item.len());
    let link = item.starts_with('[').then(|| item.find(')')).flatten().map(|close| close + 1);
    named(item[..link.unwrap_or(end)].trim())
}
