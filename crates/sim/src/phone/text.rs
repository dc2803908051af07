//! Text: bidirectional order and line breaking. Its letters come from [`super::shaping`] and
//! [`super::glyphs`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use unicode_bidi::{BidiInfo, Level};
use unicode_segmentation::UnicodeSegmentation;

use super::glyphs::advance;
use super::shaping::shape;

/// Size in pixels and weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FontStyle {
    pub size: f32,
    pub bold: bool,
}

/// One drawn character of a line, left to right.
#[derive(Clone, Debug, PartialEq)]
pub struct Glyph {
    pub ch: char,
    pub x: f32,
    pub width: f32,
    /// The byte of the text that it stands for.
    pub at: usize,
    pub rtl: bool,
}

/// One line of text, ready to draw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextLine {
    pub start: usize,
    pub end: usize,
    pub width: f32,
    /// The paragraph reads from right to left.
    pub rtl: bool,
    pub glyphs: Vec<Glyph>,
}

impl FontStyle {
    pub fn line_height(self) -> f32 {
        (self.size * 1.3).round()
    }

    pub fn baseline(self) -> f32 {
        (self.size * 1.02).round()
    }
}

impl TextLine {
    /// Where the cursor stands when it is before byte `at`.
    pub fn cursor_x(&self, at: usize) -> f32 {
        if let Some(glyph) = self.glyphs.iter().find(|glyph| glyph.at == at) {
            return if glyph.rtl { glyph.x + glyph.width } else { glyph.x };
        }
        match self.glyphs.iter().filter(|glyph| glyph.at < at).max_by_key(|glyph| glyph.at) {
            Some(glyph) if glyph.rtl => glyph.x,
            Some(glyph) => glyph.x + glyph.width,
            None => 0.0,
        }
    }

    /// The byte nearest to a horizontal place.
    pub fn byte_at(&self, x: f32) -> usize {
        let mut best = (f32::MAX, self.end);
        let stops = self.glyphs.iter().map(|glyph| glyph.at).chain([self.end]);
        for at in stops {
            let distance = (self.cursor_x(at) - x).abs();
            if distance < best.0 {
                best = (distance, at);
            }
        }
        best.1
    }
}

/// Breaks a text into lines that fit a width. There is always at least one line. Remembered: the same
/// words are measured and drawn over and over.
pub(super) fn lines(text: &str, style: FontStyle, width: f32) -> Arc<Vec<TextLine>> {
    type LineKey = (String, u32, bool, u32);
    thread_local! {
        static KNOWN: RefCell<HashMap<LineKey, Arc<Vec<TextLine>>>> = RefCell::default();
    }
    /// A full screen has about a hundred texts.
    const MOST: usize = 1024;
    // A long note is worth its own work each time, a long memory is not.
    if text.len() > 1000 {
        return Arc::new(break_lines(text, style, width));
    }
    let key = (text.to_owned(), style.size.to_bits(), style.bold, width.to_bits());
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= MOST {
            known.clear();
        }
        Arc::clone(known.entry(key).or_insert_with(|| Arc::new(break_lines(text, style, width))))
    })
}

fn break_lines(text: &str, style: FontStyle, width: f32) -> Vec<TextLine> {
    let mut lines = Vec::new();
    let mut start = 0;
    for paragraph in text.split('\n') {
        break_paragraph(paragraph, start, style, width, &mut lines);
        start += paragraph.len() + 1;
    }
    lines
}

/// The width of a text on one line.
pub(super) fn width(text: &str, style: FontStyle) -> f32 {
    lines(text, style, f32::MAX).iter().map(|line| line.width).fold(0.0, f32::max)
}

fn break_paragraph(text: &str, offset: usize, style: FontStyle, width: f32, out: &mut Vec<TextLine>) {
    let bidi = BidiInfo::new(text, None);
    let rtl = bidi.paragraphs.first().is_some_and(|paragraph| paragraph.level.is_rtl());
    let shaped = shape(text);
    let advance = |at: usize| shaped.get(&at).map_or(0.0, |ch| advance(*ch, style));
    let mut start = 0;
    loop {
        let (mut used, mut end, mut last_space) = (0.0, text.len(), None);
        for (at, cluster) in text[start..].grapheme_indices(true) {
            let at = start + at;
            let wide: f32 = cluster.char_indices().map(|(inner, _)| advance(at + inner)).sum();
            if cluster == " " {
                last_space = Some(at + 1);
            } else if used + wide > width && at > start {
                end = last_space.unwrap_or(at);
                break;
            }
            used += wide;
        }
        out.push(order(&bidi, &shaped, start..end, offset, style, rtl));
        if end >= text.len() {
            return;
        }
        start = end;
    }
}

/// Puts the characters of one line into visual order.
fn order(
    bidi: &BidiInfo<'_>,
    shaped: &HashMap<usize, char>,
    range: std::ops::Range<usize>,
    offset: usize,
    style: FontStyle,
    rtl: bool,
) -> TextLine {
    let mut line =
        TextLine { start: offset + range.start, end: offset + range.end, width: 0.0, rtl, glyphs: Vec::new() };
    let Some(paragraph) = bidi.paragraphs.first().filter(|_| !range.is_empty()) else { return line };
    let (levels, runs) = bidi.visual_runs(paragraph, range);
    for run in runs {
        let right_to_left = levels.get(run.start).is_some_and(Level::is_rtl);
        let mut clusters: Vec<(usize, &str)> = bidi.text[run.clone()].grapheme_indices(true).collect();
        if right_to_left {
            clusters.reverse();
        }
        for (inner, cluster) in clusters {
            for (deep, _) in cluster.char_indices() {
                let at = run.start + inner + deep;
                let Some(&ch) = shaped.get(&at) else { continue };
                let ch = if right_to_left { mirrored(ch) } else { ch };
                let wide = advance(ch, style);
                line.glyphs.push(Glyph { ch, x: line.width, width: wide, at: offset + at, rtl: right_to_left });
                line.width += wide;
            }
        }
    }
    line
}

fn mirrored(ch: char) -> char {
    match ch {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        '{' => '}',
        '}' => '{',
        '<' => '>',
        '>' => '<',
        '«' => '»',
        '»' => '«',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::glyphs::coverage;
    use super::*;

    const STYLE: FontStyle = FontStyle { size: 40.0, bold: false };

    fn drawn(text: &str) -> String {
        lines(text, STYLE, f32::MAX)[0].glyphs.iter().map(|glyph| glyph.ch).collect()
    }

    #[test]
    fn every_newline_makes_a_line_and_long_lines_are_broken_at_spaces() {
        let broken = lines("one two three\n\nfour", STYLE, width("one two", STYLE) + 1.0);
        let text = "one two three\n\nfour";
        let pieces: Vec<&str> = broken.iter().map(|line| &text[line.start..line.end]).collect();
        assert_eq!(pieces, ["one two ", "three", "", "four"]);
    }

    #[test]
    fn a_word_wider_than_the_line_is_broken_inside() {
        assert!(lines("aaaaaaaaaaaaaaaaaaaaaaaa", STYLE, 100.0).len() > 2);
        assert_eq!(lines("ab", STYLE, 1.0).len(), 2, "every line holds at least one cluster");
    }

    #[test]
    fn hebrew_is_drawn_from_right_to_left() {
        assert_eq!(drawn("שלום"), "םולש");
        assert!(lines("שלום", STYLE, 500.0)[0].rtl);
        assert_eq!(drawn("a (שב) b"), "a (בש) b");
    }

    #[test]
    fn arabic_letters_join() {
        // Meem initial, reh final, hah initial, beh medial, alef final: in visual order, reversed.
        assert_eq!(drawn("مرحبا"), "\u{fe8e}\u{fe92}\u{fea3}\u{feae}\u{fee3}");
        assert_eq!(drawn("لا"), "\u{fefb}");
    }

    #[test]
    fn emoji_have_a_shape_and_joiners_have_none() {
        assert_eq!(drawn("👩\u{200d}💻\u{fe0f}").chars().count(), 2);
        assert!(!coverage('🎉', STYLE).alpha.is_empty());
        assert!(!coverage('\u{4e2d}', STYLE).alpha.is_empty(), "what no font has is a box");
    }

    #[test]
    fn the_cursor_finds_its_place_and_back() {
        let line = &lines("hello", STYLE, 500.0)[0];
        for at in 0..=5 {
            assert_eq!(line.byte_at(line.cursor_x(at)), at);
        }
    }
}
