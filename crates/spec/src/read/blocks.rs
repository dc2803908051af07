//! A Markdown text as a flat list of blocks, each with its place.
//!
//! pulldown-cmark decides what is a heading, a fenced block, HTML or a comment. Everything else is
//! prose and kept word for word. Tables are found here, more tolerantly than CommonMark extensions do: a row with
//! a cell too many still describes a parameter.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use sinew_tool::finding::Span;

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
    let mut leaves = leaves(&masked, &lines);
    for _ in 0..MAX_READINGS {
        let Some(open) = leaves.iter().find(|leaf| leaf.unclosed.is_some()) else { break };
        let what = open.unclosed.unwrap_or_default();
        unclosed.push(Unclosed { span: lines[open.first], what });
        masked = mask(masked.into_owned(), &lines, open).into();
        leaves = self::leaves(&masked, &lines);
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
    let is_lone = |at: usize| bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n');
    if !(0..bytes.len()).any(is_lone) {
        return text.into();
    }
    let mut even = bytes.to_vec();
    (0..bytes.len()).filter(|at| is_lone(*at)).for_each(|at| even[at] = b'\n');
    String::from_utf8(even).map_or(text.into(), Into::into)
}

/// A block that pulldown-cmark recognised, with its first and last line.
struct Leaf {
    first: usize,
    last: usize,
    kind: LeafKind,
    unclosed: Option<&'static str>,
}

enum LeafKind {
    Heading { level: usize, text: Span },
    Fence,
    Html,
    Comment,
}

fn leaves(text: &str, lines: &[Span]) -> Vec<Leaf> {
    let line_of = |offset: usize| lines.partition_point(|line| line.start <= offset).saturating_sub(1);
    let mut leaves: Vec<Leaf> = Vec::new();
    let mut containers = 0;
    let mut quotes = 0;
    let mut heading: Option<(usize, Span)> = None;
    for (event, range) in Parser::new_ext(text, Options::empty()).into_offset_iter() {
        let whole = || {
            let length = text.get(range.clone()).map_or(0, |body| body.trim_end().len());
            (line_of(range.start), line_of(range.start + length.saturating_sub(1)))
        };
        match event {
            Event::Start(Tag::BlockQuote(_)) => (containers, quotes) = (containers + 1, quotes + 1),
            Event::End(TagEnd::BlockQuote(_)) => (containers, quotes) = (containers - 1, quotes - 1),
            Event::Start(Tag::List(_) | Tag::Item) => containers += 1,
            Event::End(TagEnd::List(_) | TagEnd::Item) => containers -= 1,
            Event::Start(Tag::Heading { level, .. }) if containers == 0 => {
                let (first, last) = whole();
                // The rule after a table does not make a heading of its last row.
                if lines[first..last].iter().any(|line| is_delimiter(line.of(text))) {
                    continue;
                }
                heading = Some((leaves.len(), Span::at(usize::MAX)));
                let text = Span::at(lines[first].end);
                leaves.push(Leaf {
                    first,
                    last,
                    kind: LeafKind::Heading { level: level as usize, text },
                    unclosed: None,
                });
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some((index, words)) = heading.take()
                    && words.start <= words.end
                    && let LeafKind::Heading { text, .. } = &mut leaves[index].kind
                {
                    *text = words;
                }
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) if quotes == 0 => {
                let (first, last) = whole();
                let opening = lines[first].of(text);
                if lines[first].start + (opening.len() - opening.trim_start().len()) == range.start {
                    let unclosed = (!is_closed(text, lines[first], lines[last])).then_some("fence");
                    leaves.push(Leaf { first, last, kind: LeafKind::Fence, unclosed });
                }
            }
            Event::Start(Tag::HtmlBlock) if containers == 0 => {
                let (mut first, last) = whole();
                if let Some((level, text)) = html_heading(text, lines[first]) {
                    let kind = LeafKind::Heading { level, text };
                    leaves.push(Leaf { first, last: first, kind, unclosed: None });
                    first += 1;
                }
                if first <= last {
                    leaves.push(html(text, Span::new(lines[first].start, lines[last].end), first, last));
                }
            }
            _ => {
                if let Some((_, words)) = &mut heading {
                    let start = words.start.min(range.start);
                    *words =
                        Span::new(start, if words.start == usize::MAX { range.end } else { words.end.max(range.end) });
                }
            }
        }
    }
    // If ranges overlap, the first counts.
    let mut next = 0;
    leaves.retain(|leaf| {
        let keeps = leaf.first >= next && leaf.first <= leaf.last;
        next = if keeps { leaf.last + 1 } else { next };
        keeps
    });
    leaves
}

fn is_closed(text: &str, first: Span, last: Span) -> bool {
    let (Some((mark, length, _)), Some((other, other_length, rest))) =
        (fence_mark(first.of(text)), fence_mark(last.of(text)))
    else {
        return false;
    };
    first != last && mark == other && other_length >= length && rest.is_empty()
}

/// HTML blocks that only a certain text ends; all others end at a blank line.
const RAW: &[(&str, &str)] = &[
    ("<!--", "-->"),
    ("<pre", "</pre>"),
    ("<script", "</script>"),
    ("<style", "</style>"),
    ("<textarea", "</textarea>"),
    ("<![cdata[", "]]>"),
    ("<?", "?>"),
    ("<!", ">"),
];

fn html(text: &str, span: Span, first: usize, last: usize) -> Leaf {
    let body = span.of(text).trim().to_lowercase();
    let raw = RAW.iter().find(|(open, _)| body.starts_with(open));
    let is_open = raw.is_some_and(|(open, close)| !body[open.len()..].contains(close));
    let is_comment = body.starts_with("<!--");
    // Text after a comment on its last line is content, so the block is kept as it is.
    let kind = if is_comment && body.ends_with("-->") { LeafKind::Comment } else { LeafKind::Html };
    let what = if is_comment { "comment" } else { "HTML element" };
    Leaf { first, last, kind, unclosed: is_open.then_some(what) }
}

/// The level and the words of a heading in HTML that fills a line: `<h3>read_file</h3>`.
fn html_heading(text: &str, line: Span) -> Option<(usize, Span)> {
    let words = line.of(text).trim();
    let level = words.strip_prefix(['<'])?.strip_prefix(['h', 'H'])?.chars().next()?.to_digit(10)?;
    let (open, inner) = (words.find('>')? + 1, words.rfind("</")?);
    let closes = words[inner + 2..].trim_end_matches('>').eq_ignore_ascii_case(&format!("h{level}"));
    let is_whole = (1..=6).contains(&level) && closes && words.ends_with('>') && open <= inner;
    let start = line.start + (line.of(text).len() - line.of(text).trim_start().len());
    is_whole.then(|| (level as usize, Span::new(start + open, start + inner)))
}

/// Neutralises the opening of an unclosed block, and all later ones that cannot be closed either:
/// what would close them would have closed this one.
fn mask(text: String, lines: &[Span], open: &Leaf) -> String {
    let mut bytes = text.clone().into_bytes();
    let own = fence_mark(lines[open.first].of(&text)).filter(|_| matches!(open.kind, LeafKind::Fence));
    for line in &lines[open.first..] {
        let words = line.of(&text);
        let start = line.start + (words.len() - words.trim_start().len());
        let masks = match own {
            Some((mark, length, _)) => {
                fence_mark(words).is_some_and(|(other, other_length, _)| other == mark && other_length >= length)
            }
            None => {
                words.trim_start().starts_with('<')
                    && (*line == lines[open.first]
                        || open.unclosed == Some("comment") && words.trim_start().starts_with("<!--"))
            }
        };
        if masks && let Some(byte) = bytes.get_mut(start) {
            *byte = b'x';
            // Without its first mark, a fence of four would be one of three.
            if let Some((_, length, _)) = fence_mark(words) {
                bytes[start..start + length].fill(b'x');
            }
        }
    }
    String::from_utf8(bytes).unwrap_or(text)
}

/// The lines of a text, without their endings.
fn split(text: &str) -> Vec<Span> {
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

/// The mark, length and info string of a line that opens or closes a fence.
fn fence_mark(line: &str) -> Option<(char, usize, &str)> {
    let body = line.trim();
    let mark = body.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = body.trim_start_matches(mark);
    let length = body.len() - rest.len();
    (length >= 3).then(|| (mark, length, rest.trim()))
}

/// Whether a line would open a fence or HTML that goes on to further lines.
pub(crate) fn opens(line: &str) -> bool {
    line.trim_start().starts_with('<')
        || fence_mark(line).is_some_and(|(mark, _, info)| mark == '~' || !info.contains('`'))
}

fn is_delimiter(line: &str) -> bool {
    let line = line.trim();
    line.contains('-')
        && line.contains('|')
        && line.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t'))
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
