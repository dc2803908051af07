//! Printing without loss: text that has no place in the canonical form is kept.
//!
//! Every block of the source is compared with the printed text: prose and cells by words and their neighbours, JSON
//! by words; a list of tools is in `lossless_list`. A line, table or fenced block of which something is missing is added
//! under "Further sections". Headings and labels that name a section, titles of known columns, and other words for the
//! same type are markup: the canonical form says the same in its own words.

use std::collections::HashSet;

use sinew_tool::finding::Span;

use super::{Format, join, lossless_list, render_html, render_markdown, render_tool};
use crate::model::ToolSpecification;
use crate::read::blocks::{self, Block, BlockKind};
use crate::read::places::{self, Required};
use crate::read::table::{Cell, Column, Row, Table};
use crate::read::{Document, html_table, labels, names, prose, rows, schemas, types};

/// A document that was printed.
#[derive(Clone, Debug)]
pub struct Rendered {
    pub text: String,
    /// Words of the source that have no place in the canonical form, each with the line where it stands.
    pub lost: Vec<(usize, String)>,
}

/// Prints a document so that every word of it is kept.
pub fn render_document(title: &str, document: &Document) -> Rendered {
    let blocks = blocks_of(document);
    let whole = Whole::of(title, document, &blocks);
    let text = whole.markdown(title);
    Rendered { lost: lost(document, &blocks, &text), text }
}

/// The same as a page in HTML.
pub fn render_html_document(title: &str, document: &Document) -> Rendered {
    let blocks = blocks_of(document);
    let whole = Whole::of(title, document, &blocks);
    let text = render_html(title, &whole.intro, &whole.tools, &whole.further);
    Rendered { text, lost: lost(document, &blocks, &whole.markdown(title)) }
}

fn blocks_of(document: &Document) -> Vec<Block> {
    if document.format == Format::Markdown { blocks::cut(&document.text).0 } else { Vec::new() }
}

/// The words of a document that the canonical form does not hold.
fn lost(document: &Document, blocks: &[Block], canonical: &str) -> Vec<(usize, String)> {
    let source = document.text.as_str();
    let printed = Printed::new(canonical);
    if document.format != Format::Markdown {
        return lossless_list::lost(document, &printed);
    }
    let lost = blocks.iter().flat_map(|block| {
        let line = document.lines.position(source, block.span.start).line;
        missing(source, block, &printed).into_iter().map(move |word| (line, word))
    });
    lost.collect()
}

/// All that a document says, sorted by where it is printed.
struct Whole {
    intro: String,
    tools: Vec<ToolSpecification>,
    /// What belongs to no tool, after the first one.
    further: String,
}

impl Whole {
    fn markdown(&self, title: &str) -> String {
        let mut text = render_markdown(title, &self.intro, &self.tools);
        if !self.further.is_empty() {
            text.push_str(&format!("\n---\n\n## {}\n\n{}\n", labels::FURTHER, self.further));
        }
        text
    }

    fn of(title: &str, document: &Document, blocks: &[Block]) -> Whole {
        if document.format != Format::Markdown {
            return Whole {
                intro: prose::from_text(&document.intro),
                tools: document.tools.clone(),
                further: document.further.clone(),
            };
        }
        let source = document.text.as_str();
        // A tool begins at the words of its heading, its heading's block before them.
        let within = |span: Span| {
            let first = blocks.partition_point(|block| block.span.end <= span.start);
            blocks[first..].iter().take_while(move |block| block.span.start < span.end)
        };
        let tools: Vec<ToolSpecification> = document
            .tools
            .iter()
            .map(|tool| {
                let printed = Printed::new(&render_tool(tool));
                let missing = all_leftovers(source, within(tool.places.whole), &printed);
                with_further(tool, missing)
            })
            .collect();
        let first = document.tools.first().map_or(source.len(), |tool| tool.places.whole.start);
        let head = Printed::new(&format!("{title}\n{}", document.intro));
        let before = blocks.iter().take_while(|block| block.span.end <= first);
        let intro = join([document.intro.clone(), all_leftovers(source, before, &head)]);
        let known = Printed::new(&render_markdown(title, &intro, &tools));
        let owned = |block: &Block| {
            let begun = document.tools.partition_point(|tool| tool.places.whole.start <= block.span.start);
            document.tools[..begun].last().is_some_and(|tool| tool.places.whole.contains(block.span.start))
        };
        let outside = blocks.iter().filter(|block| block.span.start >= first && !owned(block));
        let further = join(
            std::iter::once(document.further.clone()).chain(
                outside
                    .filter(|block| matches!(block.kind, BlockKind::Comment))
                    .flat_map(|block| leftovers(source, block, &known)),
            ),
        );
        Whole { intro, tools, further }
    }
}

/// The tool with its leftover text in a last section.
fn with_further(tool: &ToolSpecification, missing: String) -> ToolSpecification {
    let mut tool = tool.clone();
    if missing.is_empty() {
        return tool;
    }
    match tool.extra.iter_mut().find(|(title, _)| labels::is_further(title)) {
        Some((_, text)) => *text = join([text.clone(), missing]),
        None => tool.extra.push((labels::FURTHER.to_owned(), missing)),
    }
    tool
}

/// The words of the printed text: as a set, as pairs of neighbours, and in order.
pub(super) struct Printed {
    words: HashSet<String>,
    /// Words that the canonical form may replace are skipped, so that what stood beside them are neighbours.
    pairs: HashSet<(String, String)>,
    phrase: String,
}

impl Printed {
    fn new(text: &str) -> Printed {
        let all: Vec<String> = words(text).collect();
        let lasting: Vec<&String> = all.iter().filter(|word| is_significant(word)).collect();
        let pairs = lasting.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        Printed { phrase: all.join(" "), pairs, words: all.into_iter().collect() }
    }

    /// The words of a text that were not printed.
    pub(super) fn lost_words(&self, text: &str) -> Vec<String> {
        significant(text).filter(|word| !self.words.contains(word)).collect()
    }

    /// The same, and pairs of neighbours that were printed apart: words that occur elsewhere say nothing of a sentence.
    pub(super) fn lost_phrases(&self, text: &str) -> Vec<String> {
        let words: Vec<String> = significant(text).collect();
        let mut lost: Vec<String> = words.iter().filter(|word| !self.words.contains(*word)).cloned().collect();
        if lost.is_empty() {
            let pairs = words.windows(2).map(|pair| (pair[0].clone(), pair[1].clone()));
            lost = pairs.filter(|pair| !self.pairs.contains(pair)).map(|(one, two)| format!("{one} {two}")).collect();
        }
        lost
    }

    /// What a line of prose says and was not printed. A line that describes a parameter becomes a row of a table.
    fn lost_line(&self, source: &str, line: Span) -> Vec<String> {
        let said = said(line.of(source));
        if said.is_empty() || schemas::requirement_label(source, line).is_some() || self.lost_phrases(said).is_empty() {
            return Vec::new();
        }
        let own = Span::new(line.end - said.len(), line.end);
        if let Some(row) = rows::read_bullet(source, line) {
            let mut lost = self.lost_words(said);
            if let Some(description) = row.description.as_ref().and_then(Cell::said).filter(|_| lost.is_empty()) {
                lost = self.lost_phrases(description);
            }
            return lost;
        }
        if rows::read_inline(source, own).is_some() {
            return self.lost_words(rows::inline_label(said).map_or(said, |(_, listed)| listed));
        }
        // What a line says of idempotency is printed in a section of its own.
        match labels::idempotency_in(said) {
            Some(answer) => [&said[..answer.start], &said[answer.clone()], &said[answer.end..]]
                .into_iter()
                .flat_map(|part| self.lost_phrases(part))
                .collect(),
            None => self.lost_phrases(said),
        }
    }
}

/// The words of a text: runs of letters and digits.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// The parts of some blocks that were not printed. Comments come last: they are not read as text, so that they would
/// change their place each time.
fn all_leftovers<'a>(source: &str, blocks: impl Iterator<Item = &'a Block>, printed: &Printed) -> String {
    let (comments, others): (Vec<&Block>, Vec<&Block>) =
        blocks.partition(|block| matches!(block.kind, BlockKind::Comment));
    join(others.into_iter().chain(comments).flat_map(|block| leftovers(source, block, printed)))
}

/// The parts of a block that were not printed, ready to be added to another section.
fn leftovers(source: &str, block: &Block, printed: &Printed) -> Vec<String> {
    match &block.kind {
        BlockKind::Prose(lines) => lines
            .iter()
            .filter(|line| !printed.lost_line(source, **line).is_empty())
            .map(|line| prose::from_text(line.of(source).trim_start()))
            .collect(),
        BlockKind::Heading { text, .. } if !missing(source, block, printed).is_empty() => {
            vec![format!("**{}**", prose::one_line(text.of(source)))]
        }
        _ if missing(source, block, printed).is_empty() => Vec::new(),
        _ => vec![block.span.of(source).replace("\r\n", "\n").replace('\r', "\n")],
    }
}

/// The words of a block that were not printed.
fn missing(source: &str, block: &Block, printed: &Printed) -> Vec<String> {
    match &block.kind {
        BlockKind::Heading { text, .. } => {
            let words = text.of(source);
            let is_structure = labels::section(words).is_some()
                || labels::is_further(words)
                || schemas::requirement_label(source, *text).is_some();
            // The words of a heading belong together; single words may occur anywhere.
            let phrase = self::words(tool_words(words)).collect::<Vec<_>>().join(" ");
            if is_structure || printed.phrase.contains(&phrase) { Vec::new() } else { vec![phrase] }
        }
        BlockKind::Prose(lines) => lines.iter().flat_map(|line| printed.lost_line(source, *line)).collect(),
        BlockKind::Table(_) | BlockKind::Html => match Table::of(source, &block.kind, block.span) {
            Some(table) => table_words(&table).iter().flat_map(|cell| printed.lost_phrases(cell)).collect(),
            None => printed.lost_words(&html_table::untagged(block.span.of(source))),
        },
        // A schema is printed with what the table adds to it.
        BlockKind::Fence { body, .. } => printed.lost_words(body.of(source)),
        BlockKind::Comment => printed.lost_phrases(block.span.of(source)),
    }
}

/// A tool's heading without the word `Tool`.
fn tool_words(heading: &str) -> &str {
    match names::tool(heading) {
        Some((_, names::Confidence::Explicit)) => heading.trim_start().get(4..).unwrap_or_default(),
        _ => heading,
    }
}

/// A line without the label of its section; empty if it only says that there is nothing.
fn said(line: &str) -> &str {
    let trimmed = line.trim();
    if trimmed == prose::NOT_STATED || schemas::says_only_none(trimmed) || trimmed == schemas::SCHEMA_LABEL {
        return "";
    }
    match labels::label(line) {
        Some((label, rest)) if labels::section(label).is_some() => said(rest),
        _ => line,
    }
}

/// Words that the canonical form does not replace by others.
fn significant(text: &str) -> impl Iterator<Item = String> + '_ {
    words(text).filter(|word| is_significant(word))
}

fn is_significant(word: &str) -> bool {
    let answers = ["yes", "no", "true", "false", "required", "optional", "default", "array", "list", "of"];
    !answers.contains(&word) && types::read(word).is_none()
}

/// The cells that must be printed. Titles of known columns are replaced by the standard's; all other titles must be
/// printed too. A row that says there are no parameters becomes a sentence.
fn table_words(table: &Table) -> Vec<String> {
    let columns = table.columns().unwrap_or_default();
    let known = |index: usize| columns.get(index).is_some_and(|column| *column != Column::Other);
    let titles = table.header.cells.iter().enumerate().filter(|(index, _)| !known(*index)).map(|(_, cell)| cell);
    let says_none = |row: &&Row| {
        !columns.is_empty() && row.cells.iter().all(|cell| cell.said().is_none_or(schemas::says_only_none))
    };
    let rows = table.rows.iter().filter(|row| !says_none(row));
    // An answer is printed as "Yes" or "No", and a default in it as a value.
    let said = |(index, cell): (usize, &Cell)| {
        let asks = matches!(columns.get(index), Some(Column::Required | Column::Optional));
        let is_answer =
            asks && matches!(places::answer(&cell.text).0, Required::Yes | Required::No) && !rows::says_more(cell);
        if is_answer { rows::default_in(cell).map(|default| default.text) } else { cell.said().map(str::to_owned) }
    };
    let cells = rows.flat_map(|row| row.cells.iter().enumerate().filter_map(said));
    titles.map(|cell| cell.text.clone()).chain(cells).collect()
}
