//! Building tools from the blocks of a Markdown text.

use std::collections::HashSet;
use std::sync::Arc;

use sinew_tool::Audience;

use super::blocks::{self, Block, BlockKind};
use super::listed::{self, KnownNames};
use super::names::{self, Confidence};
use super::parts::{self, Piece, even, prose_of};
use super::schemas::{self, SchemaReading};
use super::table::Table;
use super::{Document, Format, Problem, meta, prose};
use crate::lint::rules;
use crate::model::{Example, SchemaRole, Section, ToolSpecification};
use sinew_tool::finding::Span;

pub(super) fn read(text: &str) -> Document {
    let (blocks, unclosed) = blocks::cut(text);
    let mut document = Document::empty(Format::Markdown, text.to_owned());
    for open in unclosed {
        let message = format!("this {} is never closed; the text after it was read as if it were not there", open.what);
        document.problems.push(Problem { rule: &rules::UNCLOSED, span: open.span, message });
    }
    let (starts, unread) = tool_starts(text, &blocks);
    let first = starts.first().map_or(blocks.len(), |start| start.block);
    let (title, intro) = opening(text, &blocks[..first]);
    document.title = title;
    let version = intro.iter().find_map(|piece| piece.lines().iter().find_map(|line| version_at(text, *line)));
    document.intro = prose_of(text, &intro);
    let mut further: Vec<Piece> = Vec::new();
    let mut ranges = Vec::new();
    for (index, start) in starts.iter().enumerate() {
        let next = starts.get(index + 1).map_or(blocks.len(), |next| next.block);
        let end = end_of(&blocks, start, next);
        let end_offset = blocks.get(end).map_or(text.len(), |block| block.span.start);
        let mut spec = assemble(text, start, &blocks[start.block + 1..end], end_offset);
        if spec.version.is_none()
            && let Some((value, span)) = &version
        {
            spec.version = Some(value.clone());
            spec.places.version = Some(*span);
        }
        document.tools.push(spec);
        ranges.push(start.block..end);
        let outside = blocks[end..next].iter().filter(|block| !is_further(text, block));
        further.extend(outside.filter(|block| !matches!(block.kind, BlockKind::Comment)).map(Piece::of));
    }
    document.further = prose_of(text, &further);
    let mut known = KnownNames::default();
    document.tools.iter().for_each(|tool| known.add(&tool.name));
    starts.iter().for_each(|start| known.add(&start.name));
    unread.iter().filter_map(|problem| names::tool(problem.span.of(text))).for_each(|(name, _)| known.add(&name));
    document.problems.extend(unread);
    if document.tools.is_empty() {
        let lines = text_lines(&blocks);
        document.says_no_tools = lines.into_iter().find(|line| names::says_no_tools(line.of(text)));
    }
    if document.says_no_tools.is_none() {
        document.problems.extend(listed::unread(text, &blocks, &ranges, known));
    }
    document
}

struct ToolHeading {
    /// The index of the heading's block.
    block: usize,
    level: usize,
    words: Span,
    name: String,
}

/// The headings that begin tools: those that say `Tool:`, and names with something below them that looks like one.
fn tool_starts(text: &str, blocks: &[Block]) -> (Vec<ToolHeading>, Vec<Problem>) {
    let mut unread = Vec::new();
    let mut candidates = Vec::new();
    let mut listed_below = None;
    let mut shallowest = usize::MAX;
    for (index, block) in blocks.iter().enumerate() {
        let BlockKind::Heading { level, text: words } = block.kind else { continue };
        if is_further(text, block) {
            break;
        }
        if listed_below.is_some_and(|below| level <= below) {
            listed_below = None;
        }
        match names::tool(words.of(text)) {
            Some((name, confidence))
                if confidence != Confidence::Listed
                    || listed_below.is_some()
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
            None if names::lists_tools(words.of(text)) => listed_below = Some(level),
            _ => {}
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

/// Headings that are no names of tools, or too common a word, although parameters are described right below them.
fn untitled(text: &str, blocks: &[Block], starts: &[ToolHeading], unread: &[Problem]) -> Vec<Problem> {
    let reported: HashSet<usize> = unread.iter().map(|problem| problem.span.start).collect();
    let mut found = Vec::new();
    let mut inside = 0;
    let mut ahead = starts.iter().peekable();
    for (index, block) in blocks.iter().enumerate() {
        if let Some(start) = ahead.next_if(|start| start.block == index) {
            inside = end_of(blocks, start, ahead.peek().map_or(blocks.len(), |next| next.block));
        }
        let BlockKind::Heading { text: words, .. } = block.kind else { continue };
        if is_further(text, block) {
            break;
        }
        let title = words.of(text);
        if index < inside || reported.contains(&words.start) || names::section(title).is_some() {
            continue;
        }
        let below = &blocks[index + 1..];
        let is_name = names::tool(title).is_some();
        let own = below.iter().position(|block| matches!(block.kind, BlockKind::Heading { .. })).unwrap_or(below.len());
        if describes_input(text, below) || is_name && looks_like_a_tool(text, &below[..own]) {
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

/// Whether parameters are described right below a heading.
fn describes_input(text: &str, below: &[Block]) -> bool {
    let body = below.iter().take_while(|block| match block.kind {
        BlockKind::Heading { text: words, .. } => names::section(words.of(text)).is_some(),
        _ => true,
    });
    body.into_iter().any(|block| labels_input(text, block))
}

/// Whether a heading or a bold label says that parameters follow.
fn labels_input(text: &str, block: &Block) -> bool {
    let is_input = |words: &str| names::section(words) == Some(Section::Input) && names::announces_parameters(words);
    match &block.kind {
        BlockKind::Heading { text: words, .. } => is_input(words.of(text)),
        BlockKind::Prose(lines) => {
            lines.iter().any(|line| names::label(line.of(text)).is_some_and(|(words, _)| is_input(words)))
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
fn is_further(text: &str, block: &Block) -> bool {
    matches!(block.kind, BlockKind::Heading { level: 1 | 2, text: words } if names::is_further(words.of(text)))
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

/// A tool ends where the next begins, or at another heading of its level.
fn end_of(blocks: &[Block], start: &ToolHeading, next: usize) -> usize {
    let ends = |block: &Block| matches!(block.kind, BlockKind::Heading { level, .. } if level <= start.level);
    let body = &blocks[(start.block + 1).min(next)..next];
    body.iter().position(ends).map_or(next, |offset| start.block + 1 + offset)
}

/// Whether the text below a likely heading looks like a tool: a section, a table of parameters,
/// or a definition in JSON or YAML.
fn looks_like_a_tool(text: &str, blocks: &[Block]) -> bool {
    blocks.iter().any(|block| match &block.kind {
        BlockKind::Heading { text: words, .. } => names::section(words.of(text)).is_some(),
        _ if schemas::is_list(text, &block.kind, block.span) => true,
        BlockKind::Table(_) | BlockKind::Html => {
            Table::of(text, &block.kind, block.span).is_some_and(|table| table.columns().is_some())
        }
        BlockKind::Fence { body, .. } => {
            let body = body.of(text);
            let keys = ["inputSchema", "input_schema", "parameters:", "\"parameters\""];
            keys.iter().any(|key| body.contains(key))
        }
        BlockKind::Prose(lines) => lines.iter().any(|line| {
            names::label(line.of(text).trim_start()).is_some_and(|(words, _)| names::section(words).is_some())
        }),
        BlockKind::Comment => false,
    })
}

fn assemble(text: &str, start: &ToolHeading, body: &[Block], end: usize) -> ToolSpecification {
    let mut parts = parts::sort(text, body, end);
    let mut spec = ToolSpecification::default();
    spec.places.whole = Span::new(start.words.start, end);
    spec.places.heading = start.words;
    spec.places.heading_name = Some(start.name.clone());

    // A definition in JSON within the prose describes the tool as well as a section would.
    let [purpose, name, input, output, errors, idempotency, examples, security] = &mut parts.sections;
    take_meta(text, &mut parts.lead, &mut spec, true);
    take_meta(text, purpose, &mut spec, false);
    let entry = schemas::take_definition(text, [&mut parts.lead, purpose, input]);
    let yaml = schemas::yaml(text, [&parts.lead, purpose, input]);
    if input.is_empty() {
        let lone = schemas::take_lone_table(text, &mut parts.lead).or_else(|| schemas::take_lone_table(text, purpose));
        input.extend(lone);
        if input.is_empty() && entry.is_none() {
            input.extend(schemas::take_lone_list(text, &mut parts.lead));
        }
    }
    let tail = std::mem::take(purpose);
    let mut said = std::mem::take(&mut parts.lead);
    said.extend(tail.into_iter().enumerate().map(|(index, piece)| Piece { gap: piece.gap || index == 0, ..piece }));
    spec.purpose = prose_of(text, &said);

    take_meta(text, name, &mut spec, false);
    let stated = name.iter().find_map(|piece| invocation_name(text, piece));
    spec.places.name = stated.as_ref().map(|(_, span)| *span);
    spec.name = stated.map_or_else(|| start.name.clone(), |(name, _)| name);

    let SchemaReading { schema, notes, place } = schemas::read(text, input, entry.as_ref(), SchemaRole::Input);
    spec.input_known = schema.is_some() || place.says_none;
    spec.input = Arc::new(schema.unwrap_or_else(crate::model::no_arguments));
    (spec.input_notes, spec.places.input) = (notes, place);
    if spec.places.input.schema.is_none() && spec.places.input.table.is_none() {
        spec.places.input.faults.extend(yaml);
    }
    let SchemaReading { schema, notes, place } = schemas::read(text, output, entry.as_ref(), SchemaRole::Output);
    spec.output = schema.map(Arc::new);
    (spec.output_notes, spec.places.output) = (notes, place);

    spec.errors = prose_of(text, errors);
    spec.idempotency = prose_of(text, idempotency);
    spec.security = prose_of(text, security);
    take_examples(text, examples, &mut spec);
    spec.extra = parts.extra.iter().map(|(title, pieces)| (title.clone(), prose_of(text, pieces))).collect();
    if let Some(entry) = &entry {
        spec.adopt(entry);
    }
    if spec.version.is_none() {
        stated_version(text, start, &said, &mut spec);
    }
    spec.places.sections = std::mem::take(&mut parts.places);
    mark_unfilled(&mut spec, text);
    spec
}

impl ToolSpecification {
    /// Fills what the sections do not state from a definition in JSON.
    fn adopt(&mut self, entry: &schemas::JsonDefinition) {
        let Ok(tool) = sinew_tool::Tool::from_json(&entry.value) else { return };
        if self.purpose.is_empty() {
            self.purpose = prose::from_text(&tool.description);
        }
        if self.hints == sinew_tool::Hints::default() {
            self.hints = tool.hints;
        }
        self.title = self.title.take().or(tool.title);
        if tool.audience == Audience::User {
            self.audience = Audience::User;
        }
    }
}

/// A section that only says "not stated" counts as empty.
fn mark_unfilled(spec: &mut ToolSpecification, text: &str) {
    for place in &mut spec.places.sections {
        let body = Span::new(place.heading.end, place.whole.end).of(text);
        if body.trim_matches([' ', '\n', '\r', '*', ':', '-']) == prose::NOT_STATED.trim() {
            place.is_filled = false;
        }
    }
}

/// A version in the heading (`Tool: x (v1.2.0)`), in a table under it, or in the description's prose,
/// as the standard writes it: `Version: 1.0.2`.
fn stated_version(text: &str, start: &ToolHeading, said: &[Piece], spec: &mut ToolSpecification) {
    let lines = said.iter().flat_map(|piece| match &piece.kind {
        BlockKind::Prose(lines) | BlockKind::Table(lines) => lines.as_slice(),
        _ => &[],
    });
    let inline = lines.copied().find_map(|line| {
        let (value, at) = meta::version_within(line.of(text))?;
        Some((value.to_owned(), Span::new(line.start + at, line.start + at + value.len())))
    });
    let tabled = || said.iter().find_map(|piece| version_in_table(text, piece));
    let found = inline.or_else(tabled).or_else(|| {
        let words = start.words.of(text);
        // Text in backticks is the name, even if it looks like a version.
        let name_end = prose::first_code(words).and_then(|name| Some(words.find(name)? + name.len())).unwrap_or(0);
        let (value, at) = meta::bare_version(&words[name_end..])?;
        let at = start.words.start + name_end + at;
        Some((value.to_owned(), Span::new(at, at + value.len())))
    });
    if let Some((value, span)) = found {
        spec.version = Some(value);
        spec.places.version = Some(span);
    }
}

/// The version below the title of its column: `| Version | Since |`.
fn version_in_table(text: &str, piece: &Piece) -> Option<(String, Span)> {
    let table = Table::of(text, &piece.kind, piece.span).filter(|table| table.columns().is_none())?;
    let is_version = |title: &str| prose::unmark(title).eq_ignore_ascii_case("version");
    let column = table.header.cells.iter().position(|cell| is_version(&cell.text))?;
    let cell = table.rows.first()?.cells.get(column)?;
    let value = meta::version(&cell.text)?;
    let at = cell.span.start + cell.span.of(text).find(value)?;
    Some((value.to_owned(), Span::new(at, at + value.len())))
}

fn version_at(text: &str, line: Span) -> Option<(String, Span)> {
    let (value, at) = meta::version_in(line.of(text))?;
    let start = line.start + at;
    Some((value.to_owned(), Span::new(start, start + value.len())))
}

/// Takes the lines about the whole tool out of its prose. A version may be in the description as
/// well; promises such as hints count only under the heading.
fn take_meta(text: &str, pieces: &mut Vec<Piece>, spec: &mut ToolSpecification, under_heading: bool) {
    for piece in pieces.iter_mut() {
        let BlockKind::Prose(lines) = &mut piece.kind else { continue };
        lines.retain(|line| {
            let words = line.of(text);
            if spec.version.is_none()
                && let Some((value, span)) = version_at(text, *line)
            {
                spec.version = Some(value);
                spec.places.version = Some(span);
                return false;
            }
            if !under_heading {
                return true;
            }
            if spec.title.is_none()
                && let Some(title) = meta::title_in(words)
            {
                spec.title = Some(title.to_owned());
                return false;
            }
            if let Some(hints) = meta::hints_in(words) {
                spec.hints = hints;
                return false;
            }
            if let Some(audience) = meta::audience_in(words) {
                spec.audience = audience;
                return false;
            }
            true
        });
    }
    pieces.retain(|piece| !matches!(&piece.kind, BlockKind::Prose(lines) if lines.is_empty()));
}

fn invocation_name(text: &str, piece: &Piece) -> Option<(String, Span)> {
    let line = piece.lines().iter().find(|line| !line.of(text).trim().is_empty())?;
    let words = line.of(text);
    if words.trim() == prose::NOT_STATED {
        return None;
    }
    let name = prose::first_code(words).unwrap_or_else(|| words.trim().trim_matches(['*', '-', ' ']));
    let at = line.start + words.find(name)?;
    (!name.is_empty()).then(|| (prose::one_line(name), Span::new(at, at + name.len())))
}

fn take_examples(text: &str, pieces: &[Piece], spec: &mut ToolSpecification) {
    let mut intro: Vec<Piece> = Vec::new();
    for piece in pieces {
        let BlockKind::Fence { language, body, indent } = &piece.kind else {
            intro.push(piece.clone());
            continue;
        };
        spec.examples.push(Example {
            intro: prose_of(text, &std::mem::take(&mut intro)),
            // A fence of tildes may have backticks here; one of backticks may not.
            language: language.replace('`', "").trim().to_owned(),
            body: dedent(body.of(text), *indent),
        });
        spec.places.examples.push(*body);
    }
    spec.examples_notes = prose_of(text, &intro);
}

/// The lines of a fence without the indentation of the fence itself.
fn dedent(body: &str, indent: usize) -> String {
    let body = even(body);
    let body = body.strip_suffix('\n').unwrap_or(&body);
    let strip = |line: &str| {
        let own = line.len() - line.trim_start_matches([' ', '\t']).len();
        line[own.min(indent)..].to_owned()
    };
    body.split('\n').map(strip).collect::<Vec<_>>().join("\n")
}

fn opening(text: &str, blocks: &[Block]) -> (Option<String>, Vec<Piece>) {
    let mut title = None;
    let mut pieces = Vec::new();
    let first = blocks.iter().position(|block| matches!(block.kind, BlockKind::Heading { .. }));
    for (index, block) in blocks.iter().enumerate() {
        match block.kind {
            // Below another heading it would separate what belongs to that one.
            BlockKind::Heading { level: 1, text: words } if first == Some(index) => {
                title = Some(words.of(text).to_owned());
            }
            _ => pieces.push(Piece::of(block)),
        }
    }
    (title, pieces)
}

fn text_lines(blocks: &[Block]) -> Vec<Span> {
    let lines = |block: &Block| match &block.kind {
        BlockKind::Heading { text, .. } => vec![*text],
        BlockKind::Prose(lines) => lines.clone(),
        _ => Vec::new(),
    };
    blocks.iter().flat_map(lines).collect()
}
