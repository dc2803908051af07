//! Reading: a specification document, a `tools/list` answer or a manifest becomes a [`Document`].
//!
//! Reading never fails. The canonical template is read strictly, everything else as tolerantly as
//! real documents need; what was wrong is kept as problems, with places, for
//! [`crate::lint`] to report.
//!
//! `blocks` splits the text (`leaves`: what the Markdown parser knows), `tool_headings` finds where tools begin,
//! `names` and `labels` recognise tools and sections, `parts` sorts what is below a heading, `assemble` builds tools, `schemas` reads tables and schemas, `rows` their rows, `types` the names in type
//! cells; `listed` finds tools that were not read; `listing` reads the JSON formats.

mod assemble;
pub(crate) mod blocks;
mod bullets;
pub(crate) mod html_table;
pub(crate) mod labels;
mod leaves;
mod listed;
pub(crate) mod listing;
pub(crate) mod meta;
pub(crate) mod names;
mod no_tools;
mod parts;
pub mod places;
pub(crate) mod prose;
pub(crate) mod rows;
pub(crate) mod schemas;
pub mod table;
mod tool_headings;
pub mod types;

use sinew_tool::Tool;
use sinew_tool::finding::{Lines, Rule, Span};

use crate::json;
use crate::lint::rules;
use crate::model::{Section, ToolSpecification};

/// Larger texts are refused: they were not written by hand, and a model could not read them.
pub const MAX_BYTES: usize = 8 << 20;

/// More tools are refused: a tool takes some ten kilobytes while it is read and printed.
pub const MAX_TOOLS: usize = 10_000;
/// More cells of tables are refused, since each takes some hundred bytes. A tool has some dozens.
const MAX_CELLS: usize = 400_000;

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Markdown,
    ToolsList,
    Manifest,
}

/// How much the source of a tool list can state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListDetail {
    /// A text of which nobody knows who wrote it.
    #[default]
    Unknown,
    /// A server of MCP, which states all that a list has members for.
    Complete,
    /// A board or an app, whose protocol knows names, descriptions and arguments; some know results too.
    Short,
}

impl ListDetail {
    /// Whether what only one of two lists states is a change. A list of an unknown source is taken for an earlier one
    /// of the same device.
    pub fn is_comparable_with(self, other: ListDetail) -> bool {
        use ListDetail::{Complete, Short};
        !matches!((self, other), (Complete, Short) | (Short, Complete))
    }
}

/// A problem found while reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub rule: &'static Rule,
    pub span: Span,
    pub message: String,
}

/// A document as read.
#[derive(Clone, Debug)]
pub struct Document {
    pub format: Format,
    pub detail: ListDetail,
    /// The text that all spans point into: without a byte order mark, and empty where it was not
    /// text or too large.
    pub text: String,
    pub lines: Lines,
    pub title: Option<String>,
    /// Markdown between the title and the first tool, or a manifest's instructions.
    pub intro: String,
    pub tools: Vec<ToolSpecification>,
    /// Markdown after the first tool that belongs to no tool; of a list, its members beside the tools.
    pub further: String,
    /// Where the document says that there are no tools.
    pub says_no_tools: Option<Span>,
    pub problems: Vec<Problem>,
}

impl Document {
    /// Reads a text in any of the three formats: JSON begins with a bracket.
    pub fn parse(text: &str) -> Document {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if let Some(refused) = refuse(text) {
            return refused;
        }
        match text.trim_start().as_bytes().first() {
            Some(b'{' | b'[') => listing::read(text),
            _ => assemble::read(text),
        }
    }

    /// Reads a file's bytes. Text that is not UTF-8 is reported, not guessed.
    pub fn from_bytes(bytes: &[u8]) -> Document {
        if bytes.len() > MAX_BYTES {
            return too_large(bytes.len() as u64);
        }
        let wide = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        match std::str::from_utf8(bytes) {
            Ok(text) => Document::parse(text),
            Err(_) if wide => Document::refused(
                &rules::NOT_TEXT,
                Span::default(),
                "the file is UTF-16; save it as UTF-8".to_owned(),
                String::new(),
            ),
            Err(error) => {
                let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
                let message = format!(
                    "byte {} is not UTF-8: the file is binary or in another encoding; save it as UTF-8",
                    error.valid_up_to()
                );
                Document::refused(&rules::NOT_TEXT, Span::at(good.len()), message, good.to_owned())
            }
        }
    }

    /// Whether there is a text to check.
    pub fn is_text(&self) -> bool {
        !self.problems.iter().any(|problem| [&rules::NOT_TEXT, &rules::TOO_LARGE].contains(&problem.rule))
    }

    /// The problem that keeps the tools from being read at all. Such a document is not compared:
    /// missing tools would look like changes.
    pub fn unreadable(&self) -> Option<&Problem> {
        let fatal = [&rules::NOT_TEXT, &rules::TOO_LARGE, &rules::LIST_NOT_JSON, &rules::LIST_SHAPE];
        self.problems.iter().find(|problem| fatal.contains(&problem.rule))
    }

    /// Whether no tool was found although the document does not say that there is none.
    pub fn has_no_tools(&self) -> bool {
        self.format == Format::Markdown && self.tools.is_empty() && self.says_no_tools.is_none()
    }

    /// The tools as a client would see them.
    pub fn to_tools(&self) -> Vec<Tool> {
        self.tools.iter().map(ToolSpecification::to_tool).collect()
    }

    /// Whether the document was written in the canonical form: every tool under `## Tool:`, with the
    /// eight sections under their own headings, in order.
    pub fn is_canonical(&self) -> bool {
        !self.tools.is_empty() && self.tools.iter().all(|tool| self.is_canonical_tool(tool))
    }

    /// The same for one of its tools.
    pub fn is_canonical_tool(&self, tool: &ToolSpecification) -> bool {
        let places = &tool.places.sections;
        self.format == Format::Markdown
            && places.len() == Section::ALL.len()
            && places.iter().zip(Section::ALL).all(|(place, section)| {
                place.is_heading && place.section == section && place.heading.of(&self.text) == section.heading()
            })
    }

    fn refused(rule: &'static Rule, span: Span, message: String, text: String) -> Document {
        Document { problems: vec![Problem { rule, span, message }], ..Document::empty(Format::Markdown, text) }
    }

    fn empty(format: Format, text: String) -> Document {
        Document {
            format,
            detail: ListDetail::Unknown,
            lines: Lines::new(&text),
            text,
            title: None,
            intro: String::new(),
            further: String::new(),
            tools: Vec::new(),
            says_no_tools: None,
            problems: Vec::new(),
        }
    }
}

/// Reads the JSON of a `tools/list` answer: the result, the whole JSON-RPC message, the bare array,
/// or a single tool.
pub fn tools_list_json(text: &str) -> Document {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    refuse(text).unwrap_or_else(|| listing::read_as(text, Some(Format::ToolsList)))
}

/// Reads an mMCP manifest: `instructions` and `tools` with `parameters`.
pub fn manifest(text: &str) -> Document {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    refuse(text).unwrap_or_else(|| listing::read_as(text, Some(Format::Manifest)))
}

fn refuse(text: &str) -> Option<Document> {
    if text.len() > MAX_BYTES {
        return Some(too_large(text.len() as u64));
    }
    let at = text.find('\0')?;
    let message = "the file contains a NUL byte: it is binary, not text".to_owned();
    Some(Document::refused(&rules::NOT_TEXT, Span::at(at), message, text[..at].to_owned()))
}

/// The document of a file that is too large to be read.
pub fn too_large(bytes: u64) -> Document {
    beyond(&format!("{} MiB", bytes >> 20), &format!("{} MiB", MAX_BYTES >> 20))
}

/// The document of a file with more of something than is read.
fn beyond(has: &str, most: &str) -> Document {
    let message = format!("the file has {has}; a specification is read up to {most}. Split it by module");
    Document::refused(&rules::TOO_LARGE, Span::default(), message, String::new())
}

/// Refuses a text in Markdown whose parts would need more memory than checking a document should.
fn refuse_parts(text: &str, blocks: &[blocks::Block]) -> Option<Document> {
    let cells = text.bytes().filter(|byte| *byte == b'|').count();
    if cells > MAX_CELLS {
        return Some(beyond(&format!("{cells} cells of tables"), &MAX_CELLS.to_string()));
    }
    let values = blocks.iter().map(|block| match block.kind {
        blocks::BlockKind::Fence { body, .. } => json::most_values(body.of(text)),
        _ => 0,
    });
    let values: usize = values.sum();
    let has = || format!("blocks of code with {values} values");
    (values > json::MAX_VALUES).then(|| beyond(&has(), &json::MAX_VALUES.to_string()))
}

fn refuse_tools(count: usize) -> Option<Document> {
    (count > MAX_TOOLS).then(|| beyond(&format!("more than {MAX_TOOLS} tools"), &MAX_TOOLS.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(document: &Document) -> Vec<&str> {
        document.problems.iter().map(|problem| problem.rule.id).collect()
    }

    #[test]
    fn binary_files_are_reported_with_a_place() {
        assert_eq!(rules(&Document::from_bytes(b"\x7fELF\x02\x01\x01\0\0")), ["not-text"]);
        let latin = Document::from_bytes(b"# caf\xe9\nmore");
        assert_eq!(rules(&latin), ["not-text"]);
        assert_eq!(latin.lines.position(&latin.text, latin.problems[0].span.start).column, 6);
        assert!(Document::from_bytes(&[0xff, 0xfe, b'#', 0]).problems[0].message.contains("UTF-16"));
        assert_eq!(rules(&Document::parse("# a\0b")), ["not-text"]);
    }

    #[test]
    fn fifty_megabytes_are_refused_at_once() {
        assert_eq!(rules(&Document::parse(&"# x\n".repeat(13 << 20))), ["too-large"]);
    }

    #[test]
    fn documents_with_too_many_parts_are_refused_however_short_they_are() {
        let list = |count: usize| format!("[{}]", vec![r#"{"name":"a"}"#; count].join(","));
        let headings = |count: usize| "## Tool: `a`\n".repeat(count);
        let bullets = |count: usize| {
            format!("## Tools\n\n{}", (0..count).map(|index| format!("- `dim_{index}`: Dims.\n")).collect::<String>())
        };
        for text in [list(MAX_TOOLS), headings(MAX_TOOLS), bullets(MAX_TOOLS)] {
            assert!(!rules(&Document::parse(&text)).contains(&"too-large"));
        }
        let fences = |count: usize| format!("```json\n[{}]\n```\n", vec!["0"; count / 2].join(",")).repeat(2);
        assert_eq!(rules(&Document::parse(&fences(json::MAX_VALUES - 10))), [""; 0]);
        let rows = "|".repeat(MAX_CELLS + 1);
        for text in
            [list(MAX_TOOLS + 1), headings(MAX_TOOLS + 1), bullets(MAX_TOOLS + 1), fences(json::MAX_VALUES + 10), rows]
        {
            assert_eq!(rules(&Document::parse(&text)), ["too-large"]);
        }
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_text() {
        let document = Document::parse("\u{feff}# Title - MCP Tool Specification\n");
        assert_eq!(document.title.as_deref(), Some("Title - MCP Tool Specification"));
        assert_eq!(tools_list_json("\u{feff}{\"tools\":[{\"name\":\"x\"}]}").tools.len(), 1);
    }
}
