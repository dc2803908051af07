//! A Markdown text as a flat list of blocks, each with its place.
//!
//! pulldown-cmark decides what is a heading, a fenced block, HTML or a comment. Everything else is
//! prose and kept word for word. Tables are found here, more tolerantly than CommonMark extensions do: a row with
//! a cell too many still describes a parameter.

use sinew_tool::finding::Span;

use super::leaves::{self, Leaf, LeafKind, fence_mark, is_delimiter, mask};
use super::prose;

#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub kind: BlockKind,
    /// Whole lines, without the last line's ending.
    pub span: Span,
    /// Whether a blank line or a comment separates it from the block before.
    pub gap: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum BlockKind {
    Heading {
        level: usize,
        /// The text of the heading.
        text: Span,
    },
    Fence {
        language: String,
        /// The lines between the fences.
        body: Span,
        indent: usize,
    },
    /// Header, delimiter and rows.
    Table(Vec<Span>),
    /// Consecutive lines.
    Prose(Vec<Span>),
    /// Raw HTML, kept whole.
    Html,
    /// An HTML comment.
    Comment,
}

/// A fence, comment or HTML element that is never closed.
#[derive(Clone, Debug)]
pub(crate) struct Unclosed {
    pub span: Span,
    pub what: &'static str,
}

/// How often the text is parsed again after an unclosed block was found. Each pass neutralises all
/// openings of one length; real documents use one or two.
const MAX_READINGS: usize = 8;

pub(crate) fn cut(text: &str) -> (Vec<Block>, Vec<Unclosed>) {
    let lines = split(text);
    let mut unclosed = Vec::new();
    // An unclosed block would swallow the rest of the text; its opening is read as prose instead.
    let mut masked = even(text);
    let mut leaves = leaves::leaves(&masked, &lines);
    for _ in 0..MAX_READINGS {
        let Some(open) = leaves.iter().find(|leaf| leaf.unclosed.is_some()) else { break };
        let what = open.unclosed.unwrap_or_default();
        unclosed.push(Unclosed { span: lines[open.first], what });
        masked = mask(masked.into_owned(), &lines, open).into();
        leaves = leaves::leaves(&masked, &lines);
    }
    unclosed.sort_by_key(|one| one.span.start);
    let mut cutter = Cutter { text, lines, blocks: Vec::new(), gap: false };
    let mut at = 0;
    for leaf in leaves {
        cutter.between(at, leaf.first);
        at = leaf.last + 1;
        cutter.leaf(leaf);
    }
    cutter.between(at, cutter.lines.len());
    (cutter.blocks, unclosed)
}

/// The parts of a text that are fenced blocks.
#[derive(Default)]
pub(crate) struct Fences(Vec<Span>);

impl Fences {
    pub(crate) fn of(text: &str) -> Fences {
        let (blocks, _) = cut(text);
        let fences = blocks.iter().filter(|block| matches!(block.kind, BlockKind::Fence { .. }));
        Fences(fences.map(|block| block.span).collect())
    }

    pub(crate) fn contains(&self, at: usize) -> bool {
        let before = self.0.partition_point(|fence| fence.start <= at);
        before > 0 && self.0[before - 1].contains(at)
    }
}

/// The same text with `\n` for every lone `\r`, which pulldown-cmark does not take for a line ending
/// everywhere. No byte changes its place.
fn even(text: &str) -> std::borrow::Cow<'_, str> {
    let bytes = text.as_bytes();
    if !text.contains('\r') {
        return text.into();
    }
    let is_lone = |at: usize| bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n');
    if !(0..bytes.len()).any(is_lone) {
        return text.into();
    }
    let mut even = bytes.to_vec();
    (0..bytes.len()).filter(|at| is_lone(*at)).for_each(|at| even[at] = b'\n');
    String::from_utf8(even).map_or(text.into(), Into::into)
}

/// The lines of a text, without their endings.
fn split(text: &str) -> Vec<Span> {
    if !text.contains('\r') {
        let whole = text.strip_suffix('\n').unwrap_or(text);
        let mut at = 0;
        let line = |line: &str| {
            let span = Span::new(at, at + line.len());
            at = span.end + 1;
            span
        };
        return if text.is_empty() { Vec::new() } else { whole.split('\n').map(line).collect() };
    }
    let bytes = text.as_bytes();
    let mut lines = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'\n' || bytes[at] == b'\r' {
            lines.push(Span::new(start, at));
            if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') {
                at += 1;
            }
            start = at + 1;
        }
        at += 1;
    }
    if start < bytes.len() {
        lines.push(Span::new(start, bytes.len()));
    }
    lines
}

struct Cutter<'a> {
    text: &'a str,
    lines: Vec<Span>,
    blocks: Vec<Block>,
    gap: bool,
}

impl<'a> Cutter<'a> {
    fn line(&self, at: usize) -> &'a str {
        self.lines[at].of(self.text)
    }

    fn push(&mut self, kind: BlockKind, span: Span) {
        self.blocks.push(Block { kind, span, gap: self.gap });
        self.gap = false;
    }

    fn leaf(&mut self, leaf: Leaf) {
        let span = self.lines[leaf.first].to(self.lines[leaf.last]);
        match leaf.kind {
            LeafKind::Heading { level, text } => self.push(BlockKind::Heading { level, text }, span),
            LeafKind::Html => self.push(BlockKind::Html, span),
            LeafKind::Comment => {
                self.push(BlockKind::Comment, span);
                self.gap = true;
            }
            LeafKind::Fence => {
                let line = self.line(leaf.first);
                let indent = line.len() - line.trim_start().len();
                let language = fence_mark(line).map(|(_, _, info)| info.to_owned()).unwrap_or_default();
                let body = Span::new(self.lines[(leaf.first + 1).min(leaf.last)].start, self.lines[leaf.last].start);
                self.push(BlockKind::Fence { language, body, indent }, span);
            }
        }
    }

    /// Finds tables, breaks and prose in the lines that belong to no other block.
    fn between(&mut self, from: usize, to: usize) {
        let mut at = from;
        while at < to {
            let body = self.line(at).trim();
            if body.is_empty() || prose::is_break(body) {
                self.gap = true;
                at += 1;
                continue;
            }
            let is_table = self.is_table(at, to);
            let mut next = at + if is_table { 2 } else { 1 };
            while next < to {
                let body = self.line(next).trim();
                let goes_on = match is_table {
                    true => body.contains('|'),
                    false => !body.is_empty() && !prose::is_break(body) && !self.is_table(next, to),
                };
                if !goes_on {
                    break;
                }
                next += 1;
            }
            let lines = self.lines[at..next].to_vec();
            let span = lines[0].to(lines[lines.len() - 1]);
            self.push(if is_table { BlockKind::Table(lines) } else { BlockKind::Prose(lines) }, span);
            at = next;
        }
    }

    fn is_table(&self, at: usize, to: usize) -> bool {
        self.line(at).contains('|') && at + 1 < to && is_delimiter(self.line(at + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> String {
        let (blocks, _) = cut(text);
        let name = |block: &Block| {
            let gap = if block.gap { " " } else { "" };
            let kind = match &block.kind {
                BlockKind::Heading { level, text: words } => format!("h{level}({})", words.of(text)),
                BlockKind::Fence { language, body, .. } => format!("f[{language}]({})", body.of(text).trim_end()),
                BlockKind::Table(rows) => format!("t{}", rows.len()),
                BlockKind::Prose(lines) => format!("p{}", lines.len()),
                BlockKind::Html => "html".to_owned(),
                BlockKind::Comment => "c".to_owned(),
            };
            format!("{gap}{kind}")
        };
        blocks.iter().map(name).collect::<Vec<_>>().join(";")
    }

    #[test]
    fn a_document_is_cut_into_blocks() {
        let text =
            "# Title #\n\ntext\nmore\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n```json\n# no heading\n```\n## Two\n";
        assert_eq!(shape(text), "h1(Title); p2;t3; f[json](# no heading);h2(Two)");
    }

    #[test]
    fn line_endings_may_be_mixed() {
        assert_eq!(shape("# A\r\n\r\ntext\rmore\n## B\r"), "h1(A); p2;h2(B)");
    }

    #[test]
    fn an_unclosed_fence_or_comment_swallows_nothing() {
        let text = "```json\n{\n## Tool: `x`\n<!-- open\n# C";
        assert_eq!(shape(text), "p2;h2(Tool: `x`);p1;h1(C)");
        let (_, unclosed) = cut(text);
        assert_eq!(unclosed.iter().map(|one| one.what).collect::<Vec<_>>(), ["fence", "comment"]);
    }

    #[test]
    fn comments_are_blocks_of_their_own() {
        assert_eq!(shape("a\n\n<!-- one\n# two\n-->\nb <!-- c -->"), "p1; c; p1");
    }

    #[test]
    fn underlined_headings_are_headings_and_html_has_none() {
        assert_eq!(shape("Title\n=====\n\nTool: `x`\n---------\ntext"), "h1(Title); h2(Tool: `x`);p1");
        assert_eq!(shape("<pre>\n# no heading\n\n## none\n</pre>\n# A"), "html;h1(A)");
        assert_eq!(shape("- item\n\n  # in the item\n\n# B"), "p1; p1; h1(B)");
        assert_eq!(shape("| a | b |\n|---|---|\n| 1 |\n---\ntext"), "t3; p1");
        assert_eq!(shape("> # quoted\n\n# C"), "p1; h1(C)");
    }

    #[test]
    fn an_unclosed_element_swallows_nothing() {
        assert_eq!(shape("<pre>\n# A\n\n## B"), "p1;h1(A); h2(B)");
        assert_eq!(shape("````\n# A\n```\nx\n```\n# B"), "p1;h1(A);f[](x);h1(B)");
    }

    #[test]
    fn thousands_of_open_fences_are_read_with_little_work() {
        let text = "```a\n".repeat(200_000);
        assert_eq!(cut(&text).1.len(), 1);
    }

    #[test]
    fn hashes_without_a_space_are_not_headings() {
        assert_eq!(shape("#tag\n"), "p1");
        assert_eq!(shape("####### seven\n"), "p1");
        assert_eq!(shape("# C#\n"), "h1(C#)");
    }
}
