//! A markdown text as a flat row of blocks, each with its place.
//!
//! This is not all of markdown: it is the part that carries structure in a specification, read so
//! that no byte loses its place. What is not a heading, fence, table, comment or break is prose and
//! kept word for word. The work is linear in the text.

use super::prose;
use sinew_tool::finding::Span;

#[derive(Clone, Debug)]
pub struct Block {
    pub kind: BlockKind,
    /// Whole lines, without the last line's ending.
    pub span: Span,
    /// Whether something other than this block's neighbour stood before it: a blank line, a comment.
    pub gap: bool,
}

#[derive(Clone, Debug)]
pub enum BlockKind {
    Heading {
        level: usize,
        /// The words of the heading.
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
}

/// What the reader noticed while cutting: a fence or comment that is never closed.
#[derive(Clone, Debug)]
pub struct Unclosed {
    pub span: Span,
    pub what: &'static str,
}

pub fn cut(text: &str) -> (Vec<Block>, Vec<Unclosed>) {
    let mut cutter = Cutter {
        text,
        lines: split(text),
        blocks: Vec::new(),
        unclosed: Vec::new(),
        gap: false,
        no_fence: [usize::MAX; 2],
        no_comment: false,
    };
    let mut at = 0;
    while at < cutter.lines.len() {
        at = cutter.step(at);
    }
    (cutter.blocks, cutter.unclosed)
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
    unclosed: Vec<Unclosed>,
    gap: bool,
    /// The shortest fence of backticks and of tildes known to have no closing line from here on, so
    /// that a text of a thousand opening fences is not searched a thousand times.
    no_fence: [usize; 2],
    no_comment: bool,
}

impl<'a> Cutter<'a> {
    fn line(&self, at: usize) -> &'a str {
        self.lines[at].of(self.text)
    }

    /// Reads the block that begins at a line; answers with the line after it.
    fn step(&mut self, at: usize) -> usize {
        let line = self.line(at);
        let body = line.trim();
        if body.is_empty() || prose::is_break(body) {
            self.gap = true;
            return at + 1;
        }
        if body.starts_with("<!--")
            && let Some(next) = self.comment(at)
        {
            self.gap = true;
            return next;
        }
        if let Some((level, text)) = heading(line, self.lines[at].start) {
            let span = self.lines[at];
            self.push(BlockKind::Heading { level, text }, span);
            return at + 1;
        }
        if let Some(next) = self.fence(at) {
            return next;
        }
        if self.is_table(at) {
            return self.table(at);
        }
        self.prose(at)
    }

    fn push(&mut self, kind: BlockKind, span: Span) {
        self.blocks.push(Block { kind, span, gap: self.gap });
        self.gap = false;
    }

    fn comment(&mut self, at: usize) -> Option<usize> {
        if self.no_comment {
            return None;
        }
        let line = self.line(at).trim();
        if let Some(close) = line.find("-->") {
            // Words after a comment on one line belong to somebody; then the line is prose.
            return (close + 3 == line.len()).then_some(at + 1);
        }
        let close = (at + 1..self.lines.len()).find(|index| self.line(*index).contains("-->"));
        match close {
            Some(close) => Some(close + 1),
            None => {
                self.no_comment = true;
                let span = self.lines[at];
                self.unclosed.push(Unclosed { span, what: "comment" });
                None
            }
        }
    }

    fn fence(&mut self, at: usize) -> Option<usize> {
        let line = self.line(at);
        let indent = line.len() - line.trim_start().len();
        let (mark, length, info) = fence_mark(line)?;
        if mark == '`' && info.contains('`') {
            return None;
        }
        let known = &self.no_fence[usize::from(mark == '~')];
        if length >= *known {
            return None;
        }
        let close = (at + 1..self.lines.len()).find(|index| {
            fence_mark(self.line(*index))
                .is_some_and(|(other, other_length, rest)| other == mark && other_length >= length && rest.is_empty())
        });
        let Some(close) = close else {
            self.no_fence[usize::from(mark == '~')] = length;
            let span = self.lines[at];
            self.unclosed.push(Unclosed { span, what: "fence" });
            return None;
        };
        let language = info.to_owned();
        let body = Span::new(self.lines.get(at + 1)?.start, self.lines[close].start);
        let span = self.lines[at].to(self.lines[close]);
        self.push(BlockKind::Fence { language, body, indent }, span);
        Some(close + 1)
    }

    fn is_table(&self, at: usize) -> bool {
        self.line(at).contains('|') && at + 1 < self.lines.len() && is_delimiter(self.line(at + 1))
    }

    fn table(&mut self, at: usize) -> usize {
        let mut next = at + 2;
        while next < self.lines.len() && self.line(next).contains('|') && fence_mark(self.line(next)).is_none() {
            next += 1;
        }
        let rows = self.lines[at..next].to_vec();
        let span = rows[0].to(rows[rows.len() - 1]);
        self.push(BlockKind::Table(rows), span);
        next
    }

    fn prose(&mut self, at: usize) -> usize {
        let mut next = at + 1;
        while next < self.lines.len() {
            let line = self.line(next);
            let body = line.trim();
            let ends = body.is_empty()
                || prose::is_break(body)
                || body.starts_with("<!--")
                || heading(line, 0).is_some()
                || fence_mark(line).is_some()
                || self.is_table(next);
            if ends {
                break;
            }
            next += 1;
        }
        let lines = self.lines[at..next].to_vec();
        let span = lines[0].to(lines[lines.len() - 1]);
        self.push(BlockKind::Prose(lines), span);
        next
    }
}

/// The level and words of an ATX heading in a line that begins at `start`.
fn heading(line: &str, start: usize) -> Option<(usize, Span)> {
    let body = line.trim_start_matches(' ');
    let indent = line.len() - body.len();
    let level = body.len() - body.trim_start_matches('#').len();
    if indent > 3 || !(1..=6).contains(&level) {
        return None;
    }
    let rest = &body[level..];
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return None;
    }
    let words = rest.trim();
    let open = words.trim_end_matches('#');
    let words = if open.is_empty() || open.ends_with([' ', '\t']) { open.trim_end() } else { words };
    let at = start + indent + level + (rest.len() - rest.trim_start().len());
    Some((level, Span::new(at, at + words.len())))
}

/// The mark, length and info string of a line that opens or closes a fence.
fn fence_mark(line: &str) -> Option<(char, usize, &str)> {
    let body = line.trim();
    let mark = body.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = body.trim_start_matches(mark);
    let length = body.len() - rest.len();
    (length >= 3).then(|| (mark, length, rest.trim()))
}

/// Whether a line would open a fence or a comment that goes on to further lines.
pub fn opens(line: &str) -> bool {
    let body = line.trim();
    let comment = body.starts_with("<!--") && !body.contains("-->");
    comment || fence_mark(line).is_some_and(|(mark, _, info)| mark == '~' || !info.contains('`'))
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
    fn comments_are_left_out() {
        assert_eq!(shape("a\n<!-- one\n# two\n-->\nb <!-- c -->"), "p1; p1");
    }

    #[test]
    fn thousands_of_open_fences_are_read_in_no_time() {
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
