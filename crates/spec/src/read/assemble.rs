//! Building tools from the blocks of a Markdown text.

use std::sync::Arc;

use sinew_tool::Audience;

use super::blocks::{self, Block, BlockKind};
use super::listed::{self, KnownNames};
use super::names;
use super::parts::{self, Piece, even, prose_of};
use super::schemas::{self, SchemaReading};
use super::table::Table;
use super::tool_headings::{ToolHeading, end_of, is_further, tool_starts};
use super::{Document, Format, Problem, meta, no_tools, prose};
use crate::lint::rules;
use crate::model::{Example, SchemaRole, ToolSpecification};
use sinew_tool::finding::Span;

pub(super) fn read(text: &str) -> Document {
    let (blocks, unclosed) = blocks::cut(text);
    if let Some(refused) = super::refuse_parts(text, &blocks) {
        return refused;
    }
    let mut document = Document::empty(Format::Markdown, text.to_owned());
    for open in unclosed {
        let message = format!("this {} is never closed; the text after it was read as if it were not there", open.what);
        document.problems.push(Problem { rule: &rules::UNCLOSED, span: open.span, message });
    }
    let (starts, unread) = tool_starts(text, &blocks);
    if let Some(refused) = super::refuse_tools(starts.len() + unread.len()) {
        return refused;
    }
    let first = starts.first().map_or(blocks.len(), |start| start.block);
    let (title, intro) = opening(text, &blocks[..first]);
    document.title = title;
    let version = intro.iter().find_map(|piece| piece.lines().iter().find_map(|line| version_at(text, *line)));
    document.intro = prose_of(text, &intro);
    let mut further: Vec<Piece> = Vec::new();
    let mut ranges = Vec::new();
    for (index, start) in starts.iter().enumerate() {
        let next = starts.get(index + 1).map_or(blocks.len(), |next| next.block);
        let end = end_of(text, &blocks, start, next);
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
        // "None." below the heading of all tools.
        let is_answer = |pair: &&[Span]| {
            names::lists_tools(pair[0].of(text).trim_start_matches(['#', ' ']))
                && matches!(
                    pair[1].of(text).trim_matches(['*', '_', '.', ' ', '`']).to_lowercase().as_str(),
                    "none" | "n/a"
                )
        };
        let answer = || lines.windows(2).find(is_answer).map(|pair| pair[1]);
        let statement = lines.iter().copied().find(|line| no_tools::says_no_tools(line.of(text)));
        document.says_no_tools = statement.or_else(answer);
    }
    if document.says_no_tools.is_none() {
        let listed = listed::unread(text, &blocks, &ranges, known);
        if let Some(refused) = super::refuse_tools(listed.len()) {
            return refused;
        }
        // Where names are found below it, the title of the document is no tool.
        if !listed.is_empty() && document.tools.is_empty() {
            let title = blocks.first().map(|block| block.span);
            let is_title = |problem: &Problem| title.is_some_and(|title| title.contains(problem.span.start));
            document.problems.retain(|problem| problem.rule != &rules::TOOL_UNREAD || !is_title(problem));
        }
        document.problems.extend(listed);
    }
    document
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
