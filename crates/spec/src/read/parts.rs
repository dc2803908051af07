//! The text below a tool's heading, sorted into its sections, and sections as text again.

use super::blocks::{Block, BlockKind};
use super::places::SectionPlace;
use super::table::Table;
use super::{labels, leaves, prose, schemas};
use crate::model::Section;
use sinew_tool::finding::Span;

/// A part of a tool's text: a block, split at bold labels that act as headings.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub kind: BlockKind,
    pub span: Span,
    pub gap: bool,
}

impl Piece {
    pub(crate) fn of(block: &Block) -> Piece {
        Piece { kind: block.kind.clone(), span: block.span, gap: block.gap }
    }

    /// The lines of prose; none for other blocks.
    pub(crate) fn lines(&self) -> &[Span] {
        match &self.kind {
            BlockKind::Prose(lines) => lines,
            _ => &[],
        }
    }
}

/// Pieces as one Markdown text. Line endings and blank lines are normalised, everything else is kept.
pub(super) fn prose_of(text: &str, pieces: &[Piece]) -> String {
    let mut prose = String::new();
    let mut is_apart = false;
    // An underline that is escaped no longer ends what is above the next heading.
    let mut is_underlined = false;
    for piece in pieces {
        if matches!(piece.kind, BlockKind::Comment) {
            is_apart = true;
            continue;
        }
        if !prose.is_empty() {
            let ends = is_underlined && matches!(piece.kind, BlockKind::Heading { .. });
            prose.push_str(if piece.gap || is_apart || ends { "\n\n" } else { "\n" });
        }
        is_apart = false;
        is_underlined = piece.lines().last().is_some_and(|line| prose::is_underline(line.of(text)));
        match &piece.kind {
            BlockKind::Prose(lines) | BlockKind::Table(lines) => {
                let lines: Vec<String> = lines.iter().map(|line| kept_line(text, *line)).collect();
                prose.push_str(&lines.join("\n"));
            }
            BlockKind::Heading { .. } => prose.push_str(&kept_heading(even(piece.span.of(text)).trim())),
            BlockKind::Fence { .. } | BlockKind::Html => prose.push_str(&even(piece.span.of(text))),
            BlockKind::Comment => {}
        }
    }
    if prose == prose::NOT_STATED { String::new() } else { prose }
}

/// A line that begins in the middle of one (after a bold label), that opens a fence or comment which is never
/// closed, or that is a heading only inside a list must not become structure when it is printed elsewhere.
fn kept_line(text: &str, line: Span) -> String {
    let begins_line = line.start == 0 || matches!(text.as_bytes()[line.start - 1], b'\n' | b'\r');
    let words = line.of(text).trim_end();
    let is_structure = leaves::opens(words) || prose::is_heading(words) || prose::is_underline(words);
    if begins_line && !is_structure { words.to_owned() } else { prose::from_text(words) }
}

/// The same for a heading, whose text may span several lines above one of hyphens.
fn kept_heading(heading: &str) -> String {
    let kept = |line: &str| if leaves::opens(line) { prose::from_text(line) } else { line.to_owned() };
    heading.split('\n').map(kept).collect::<Vec<_>>().join("\n")
}

pub(super) fn even(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// A part of a line without what separated it from the rest; `None` if no words are left.
fn trimmed(text: &str, part: Span) -> Option<Span> {
    let words = part.of(text);
    let separators = [' ', '|', '·', '•', '∙', ',', ';'];
    let start = part.start + (words.len() - words.trim_start_matches(separators).len());
    let kept = words.trim_matches(separators);
    kept.contains(char::is_alphanumeric).then(|| Span::new(start, start + kept.len()))
}

enum Part {
    Lead,
    Section(Section),
    Extra,
}

/// Everything below a tool's heading, sorted into sections.
pub(super) struct Parts {
    pub sections: [Vec<Piece>; 8],
    pub lead: Vec<Piece>,
    pub extra: Vec<(String, Vec<Piece>)>,
    pub places: Vec<SectionPlace>,
    /// What tables of remarks say about idempotency.
    answers: Vec<Span>,
    /// Whether a comment was skipped just now.
    gap: bool,
}

pub(super) fn sort(text: &str, body: &[Block], end: usize) -> Parts {
    let mut parts = Parts {
        sections: Default::default(),
        lead: Vec::new(),
        extra: Vec::new(),
        places: Vec::new(),
        answers: Vec::new(),
        gap: false,
    };
    let mut current = Part::Lead;
    // The level of the tool's section headings, set by the first; deeper headings are content.
    let mut section_level = None;
    let mut by_bold = true;
    for block in body {
        if let BlockKind::Heading { level, text: words } = block.kind
            && section_level.is_none_or(|section_level| level <= section_level)
        {
            let title = words.of(text);
            if schemas::requirement_label(text, words).is_some() {
                section_level.get_or_insert(level);
                if !matches!(current, Part::Section(Section::Input)) {
                    parts.open(Section::Input, words, true, block.span.start);
                }
                (current, by_bold) = (Part::Section(Section::Input), false);
                parts.put(&current, Piece::of(block));
            } else if let Some(section) = labels::section(title) {
                section_level.get_or_insert(level);
                parts.open(section, words, true, block.span.start);
                (current, by_bold) = (Part::Section(section), false);
            } else {
                parts.close(block.span.start);
                parts.extra.push((prose::one_line(title), Vec::new()));
                (current, by_bold) = (Part::Extra, false);
            }
            continue;
        }
        match &block.kind {
            BlockKind::Comment => parts.gap = true,
            BlockKind::Prose(lines) => parts.prose(text, lines, block.gap, &mut current, by_bold),
            _ => {
                parts.idempotency_in_table(text, block);
                parts.put(&current, Piece::of(block));
            }
        }
    }
    parts.close(end);
    if parts.sections[Section::Idempotency as usize].is_empty() {
        std::mem::take(&mut parts.answers).into_iter().for_each(|answer| parts.answer_idempotency(answer));
    }
    parts
}

impl Parts {
    /// Sorts lines of prose. If the tool has no headings, bold labels that name a section act as
    /// headings; `**Idempotent**: …` belongs to the idempotency section wherever it is.
    fn prose(&mut self, text: &str, lines: &[Span], gap: bool, current: &mut Part, by_bold: bool) {
        let mut run: Vec<Span> = Vec::new();
        let mut gap = gap;
        for line in lines {
            let words = line.of(text);
            let in_idempotency = matches!(current, Part::Section(Section::Idempotency));
            if let Some(answer) = labels::idempotency_in(words).filter(|_| !in_idempotency) {
                let part = |range: std::ops::Range<usize>| {
                    trimmed(text, Span::new(line.start + range.start, line.start + range.end))
                };
                run.extend(part(0..answer.start));
                self.put_lines(current, std::mem::take(&mut run), gap);
                run.extend(part(answer.end..words.len()));
                self.answer_idempotency(Span::new(line.start + answer.start, line.start + answer.end));
                gap = true;
                continue;
            }
            let section = labels::label(words).and_then(|(bold, rest)| Some((labels::section(bold)?, bold, rest)));
            match section.filter(|_| by_bold) {
                Some((section, bold, rest)) => {
                    self.put_lines(current, std::mem::take(&mut run), gap);
                    let at = line.start + words.find(bold).unwrap_or_default();
                    self.open(section, Span::new(at, at + bold.len()), false, line.start);
                    *current = Part::Section(section);
                    gap = true;
                    if !rest.trim().is_empty() {
                        run.push(Span::new(line.end - rest.len(), line.end));
                    }
                }
                None => run.push(*line),
            }
        }
        self.put_lines(current, run, gap);
    }

    /// A table of remarks may answer it too: `| Idempotent | Yes |`.
    fn idempotency_in_table(&mut self, text: &str, block: &Block) {
        let Some(table) = Table::of(text, &block.kind, block.span).filter(|table| table.columns().is_none()) else {
            return;
        };
        for row in std::iter::once(&table.header).chain(&table.rows) {
            if let [label, answer, ..] = row.cells.as_slice()
                && labels::answers_idempotency(&prose::unmark(&label.text))
                && answer.said().is_some()
            {
                self.answers.push(answer.span);
            }
        }
    }

    fn answer_idempotency(&mut self, answer: Span) {
        let piece = Piece { kind: BlockKind::Prose(vec![answer]), span: answer, gap: false };
        self.sections[Section::Idempotency as usize].push(piece);
    }

    fn open(&mut self, section: Section, words: Span, is_heading: bool, at: usize) {
        self.close(at);
        let whole = Span::new(at, at);
        self.places.push(SectionPlace { section, heading: words, is_heading, whole, is_filled: false });
    }

    fn close(&mut self, at: usize) {
        if let Some(last) = self.places.last_mut().filter(|last| last.whole.end == last.whole.start) {
            last.whole.end = at.max(last.heading.end);
        }
    }

    fn put(&mut self, part: &Part, mut piece: Piece) {
        let pieces = match part {
            Part::Lead => &mut self.lead,
            Part::Section(section) => {
                if let Some(last) = self.places.last_mut() {
                    last.is_filled = true;
                }
                &mut self.sections[*section as usize]
            }
            Part::Extra => match self.extra.last_mut() {
                Some((_, pieces)) => pieces,
                None => return,
            },
        };
        piece.gap |= pieces.is_empty() || std::mem::take(&mut self.gap);
        pieces.push(piece);
    }

    fn put_lines(&mut self, part: &Part, lines: Vec<Span>, gap: bool) {
        if let (Some(first), Some(last)) = (lines.first(), lines.last()) {
            let span = first.to(*last);
            self.put(part, Piece { kind: BlockKind::Prose(lines), span, gap });
        }
    }
}
