//! Positions in a text: byte spans for programs, lines and columns for people.

use std::ops::Range;

/// A range of a text, in bytes from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// The empty span at an offset.
    pub fn at(offset: usize) -> Span {
        Span { start: offset, end: offset }
    }

    /// From the beginning of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end.max(self.start) }
    }

    pub fn contains(self, offset: usize) -> bool {
        (self.start..self.end).contains(&offset)
    }

    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// Where a finding is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// The document as a whole, or something that has no text.
    #[default]
    Whole,
    /// A line, counted from 1.
    Line(usize),
    /// A range of the text and the position of its beginning.
    Text { span: Span, start: Position },
}

impl Place {
    pub fn line(self) -> Option<usize> {
        match self {
            Place::Whole => None,
            Place::Line(line) => Some(line),
            Place::Text { start, .. } => Some(start.line),
        }
    }

    pub fn column(self) -> Option<usize> {
        match self {
            Place::Text { start, .. } => Some(start.column),
            _ => None,
        }
    }

    pub fn span(self) -> Option<Span> {
        match self {
            Place::Text { span, .. } => Some(span),
            _ => None,
        }
    }
}

/// Line and column, both counted from 1; the column counts characters, not bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// Where the lines of a text begin. `\n`, `\r\n` and a lone `\r` each end a line.
#[derive(Clone, Debug)]
pub struct Lines {
    starts: Vec<usize>,
    /// How many characters lie before every [`STEP`]th byte, so that a column deep in a very long
    /// line costs no more than any other.
    counts: Vec<usize>,
    length: usize,
}

const STEP: usize = 1024;

impl Lines {
    pub fn new(text: &str) -> Lines {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        if text.contains('\r') {
            let is_end = |index: usize| bytes[index] == b'\n' || bytes.get(index + 1) != Some(&b'\n');
            let ends = text.match_indices(['\n', '\r']).map(|(index, _)| index);
            starts.extend(ends.filter(|index| is_end(*index)).map(|index| index + 1));
        } else {
            starts.extend(text.match_indices('\n').map(|(index, _)| index + 1));
        }
        let mut total = 0;
        let mut counts = vec![0];
        for chunk in bytes.chunks(STEP) {
            total += characters(chunk);
            counts.push(total);
        }
        Lines { starts, counts, length: bytes.len() }
    }

    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// The position of a byte offset; an offset past the end counts as the end.
    pub fn position(&self, text: &str, offset: usize) -> Position {
        let offset = offset.min(self.length);
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line - 1];
        Position { line, column: self.before(text, offset) - self.before(text, start) + 1 }
    }

    /// The place of a span.
    pub fn place(&self, text: &str, span: Span) -> Place {
        Place::Text { span, start: self.position(text, span.start) }
    }

    /// The bytes of a line, counted from 1, without its ending.
    pub fn line(&self, text: &str, number: usize) -> Range<usize> {
        let start = self.starts.get(number.saturating_sub(1)).copied().unwrap_or(self.length);
        let end = self.starts.get(number).copied().unwrap_or(self.length);
        let body = text.get(start..end).unwrap_or_default();
        start..start + body.trim_end_matches(['\r', '\n']).len()
    }

    fn before(&self, text: &str, offset: usize) -> usize {
        let step = offset / STEP;
        let rest = text.as_bytes().get(step * STEP..offset).unwrap_or_default();
        self.counts.get(step).copied().unwrap_or_default() + characters(rest)
    }
}

/// Characters begin at every byte that is not a continuation byte.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, offset: usize) -> (usize, usize) {
        let position = Lines::new(text).position(text, offset);
        (position.line, position.column)
    }

    #[test]
    fn every_kind_of_line_ending_ends_one_line() {
        let text = "a\nb\r\nc\rd";
        assert_eq!(Lines::new(text).count(), 4);
        assert_eq!(at(text, 2), (2, 1));
        assert_eq!(at(text, 5), (3, 1));
        assert_eq!(at(text, 7), (4, 1));
        assert_eq!(&text[Lines::new(text).line(text, 2)], "b");
    }

    #[test]
    fn columns_count_characters() {
        let text = "日本語|עברית|x";
        assert_eq!(at(text, text.find('x').unwrap()), (1, 11));
        assert_eq!(at(text, 9999), (1, 12));
    }

    #[test]
    fn a_column_far_into_a_long_line_is_exact() {
        let text = "é".repeat(5000);
        assert_eq!(at(&text, 2 * 4321), (1, 4322));
    }

    #[test]
    fn an_empty_text_has_one_line() {
        assert_eq!(at("", 0), (1, 1));
    }
}
