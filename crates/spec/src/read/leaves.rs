//! The blocks that pulldown-cmark recognises: headings, fences, HTML and comments, by line.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use sinew_tool::finding::Span;

/// A block that pulldown-cmark recognised, with its first and last line.
pub(super) struct Leaf {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) kind: LeafKind,
    pub(super) unclosed: Option<&'static str>,
}

pub(super) enum LeafKind {
    Heading { level: usize, text: Span },
    Fence,
    Html,
    Comment,
}

pub(super) fn leaves(text: &str, lines: &[Span]) -> Vec<Leaf> {
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
pub(super) fn mask(text: String, lines: &[Span], open: &Leaf) -> String {
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

/// The mark, length and info string of a line that opens or closes a fence.
pub(super) fn fence_mark(line: &str) -> Option<(char, usize, &str)> {
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

pub(super) fn is_delimiter(line: &str) -> bool {
    let line = line.trim();
    line.contains('-')
        && line.contains('|')
        && line.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t'))
}
