//! Text: fonts, shaping, bidirectional order, line breaking.
//!
//! DejaVu Sans covers Latin, Greek, Cyrillic, Hebrew and Arabic; Noto Emoji draws the emoji. Shaping is
//! the small part a note needs: Arabic letters take their joined forms, lam-alef its ligature, and
//! joiners and variation selectors take no room. What no font has is drawn as a box.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ab_glyph::{Font, FontRef};
use unicode_bidi::{BidiInfo, Level};
use unicode_segmentation::UnicodeSegmentation;

/// Size in pixels and weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
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
pub struct Line {
    pub start: usize,
    pub end: usize,
    pub width: f32,
    /// The paragraph reads from right to left.
    pub rtl: bool,
    pub glyphs: Vec<Glyph>,
}

/// The covered pixels of a glyph, relative to the pen on the baseline.
#[derive(Debug, Default)]
pub struct Coverage {
    pub left: i32,
    pub top: i32,
    pub width: usize,
    pub alpha: Vec<u8>,
}

impl Style {
    pub fn line_height(self) -> f32 {
        (self.size * 1.3).round()
    }

    pub fn baseline(self) -> f32 {
        (self.size * 1.02).round()
    }
}

impl Line {
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
pub fn lines(text: &str, style: Style, width: f32) -> Arc<Vec<Line>> {
    type Key = (String, u32, bool, u32);
    thread_local! {
        static KNOWN: RefCell<HashMap<Key, Arc<Vec<Line>>>> = RefCell::default();
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

fn break_lines(text: &str, style: Style, width: f32) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut start = 0;
    for paragraph in text.split('\n') {
        break_paragraph(paragraph, start, style, width, &mut lines);
        start += paragraph.len() + 1;
    }
    lines
}

/// The width of a text on one line.
pub fn width(text: &str, style: Style) -> f32 {
    lines(text, style, f32::MAX).iter().map(|line| line.width).fold(0.0, f32::max)
}

fn break_paragraph(text: &str, offset: usize, style: Style, width: f32, out: &mut Vec<Line>) {
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
    style: Style,
    rtl: bool,
) -> Line {
    let mut line = Line { start: offset + range.start, end: offset + range.end, width: 0.0, rtl, glyphs: Vec::new() };
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

/// The character to draw for each byte position; positions that draw nothing are absent.
fn shape(text: &str) -> HashMap<usize, char> {
    let chars: Vec<(usize, char)> = text.char_indices().filter(|(_, ch)| !is_invisible(*ch)).collect();
    let mut shaped = HashMap::with_capacity(chars.len());
    let neighbour = |mut index: usize, step: isize| -> Option<char> {
        loop {
            index = index.checked_add_signed(step)?;
            let (_, ch) = *chars.get(index)?;
            if !is_mark(ch) {
                return Some(ch);
            }
        }
    };
    let mut skip = false;
    for (index, &(at, ch)) in chars.iter().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        let joined_before = neighbour(index, -1).is_some_and(|before| joins(before) == Joining::Both);
        if ch == '\u{644}'
            && let Some(ligature) = chars.get(index + 1).and_then(|(_, next)| lam_alef(*next))
        {
            shaped.insert(at, form(ligature, u32::from(joined_before)));
            skip = true;
            continue;
        }
        let joined_after =
            joins(ch) == Joining::Both && neighbour(index, 1).is_some_and(|after| joins(after) != Joining::None);
        shaped.insert(at, arabic_form(ch, joined_before, joined_after));
    }
    shaped
}

/// Joiners, variation selectors, skin tones and direction marks take no room.
fn is_invisible(ch: char) -> bool {
    matches!(ch, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{1f3fb}'..='\u{1f3ff}' | '\u{feff}')
        || (ch.is_control() && ch != '\t')
}

fn is_mark(ch: char) -> bool {
    matches!(ch, '\u{64b}'..='\u{65f}' | '\u{670}')
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Joining {
    None,
    /// Joins only to the letter before it.
    Before,
    Both,
}

/// How many forms each letter from U+0621 to U+064A has in the presentation block that starts at U+FE80.
const FORMS: [u8; 42] = [
    1, 2, 2, 2, 2, 4, 2, 4, 2, 4, 4, 4, 4, 4, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4,
    4, 2, 2, 4,
];

fn forms(ch: char) -> Option<u8> {
    let index = (ch as u32).checked_sub(0x621)? as usize;
    FORMS.get(index).copied().filter(|forms| *forms > 0)
}

fn joins(ch: char) -> Joining {
    match forms(ch) {
        Some(4) => Joining::Both,
        Some(2) => Joining::Before,
        _ if ch == '\u{640}' => Joining::Both,
        _ => Joining::None,
    }
}

fn arabic_form(ch: char, before: bool, after: bool) -> char {
    if forms(ch).is_none() {
        return ch;
    }
    let first: u32 = FORMS.iter().take(ch as usize - 0x621).map(|forms| u32::from(*forms)).sum();
    let shift = match (before && joins(ch) != Joining::None, after) {
        (false, false) => 0,
        (true, false) => 1,
        (false, true) => 2,
        (true, true) => 3,
    };
    form(0xfe80 + first, shift)
}

fn lam_alef(alef: char) -> Option<u32> {
    match alef {
        '\u{622}' => Some(0xfef5),
        '\u{623}' => Some(0xfef7),
        '\u{625}' => Some(0xfef9),
        '\u{627}' => Some(0xfefb),
        _ => None,
    }
}

fn form(base: u32, shift: u32) -> char {
    char::from_u32(base + shift).unwrap_or('\u{fffd}')
}

struct Fonts {
    regular: Vec<FontRef<'static>>,
    bold: Vec<FontRef<'static>>,
}

fn fonts() -> &'static Fonts {
    static FONTS: OnceLock<Fonts> = OnceLock::new();
    FONTS.get_or_init(|| {
        let load = |sources: [&'static [u8]; 2]| {
            sources.into_iter().filter_map(|bytes| FontRef::try_from_slice(bytes).ok()).collect()
        };
        let emoji = epaint_default_fonts::NOTO_EMOJI_REGULAR;
        Fonts { regular: load([dejavu::sans::regular(), emoji]), bold: load([dejavu::sans::bold(), emoji]) }
    })
}

/// Whether a character is drawn with the emoji font, and therefore in its colour.
pub fn is_emoji(ch: char) -> bool {
    ch as u32 >= 0x1f000 || matches!(ch, '\u{2615}' | '\u{2728}' | '\u{2b50}' | '\u{2764}' | '\u{26a1}' | '\u{2705}')
}

fn font_for(ch: char, bold: bool) -> Option<&'static FontRef<'static>> {
    let family = if bold { &fonts().bold } else { &fonts().regular };
    let has = |font: &&'static FontRef<'static>| font.glyph_id(ch).0 != 0;
    if is_emoji(ch) { family.iter().rev().find(has) } else { family.iter().find(has) }
}

/// How far the pen moves for a character.
fn advance(ch: char, style: Style) -> f32 {
    thread_local! {
        static KNOWN: RefCell<HashMap<(char, bool), f32>> = RefCell::default();
    }
    /// More than all alphabets here; whoever writes more characters measures them again.
    const MOST: usize = 4096;
    let measure = || match font_for(ch, style.bold) {
        Some(font) => font.h_advance_unscaled(font.glyph_id(ch)) / font.units_per_em().unwrap_or(1000.0),
        None => 0.7,
    };
    style.size
        * KNOWN.with_borrow_mut(|known| {
            if known.len() >= MOST {
                known.clear();
            }
            *known.entry((ch, style.bold)).or_insert_with(measure)
        })
}

/// ab_glyph scales by the height of the font, designers by the em square.
fn scale(font: &FontRef<'static>, style: Style) -> f32 {
    style.size * font.height_unscaled() / font.units_per_em().unwrap_or(1000.0)
}

/// The pixels of a glyph, remembered: a screen repeats its letters.
pub fn coverage(ch: char, style: Style) -> Arc<Coverage> {
    type Key = (char, u32, bool);
    static CACHE: OnceLock<Mutex<HashMap<Key, Arc<Coverage>>>> = OnceLock::new();
    /// 4,096 glyphs of 40 pixels are about 6 MB; beyond that someone draws every character there is.
    const MOST: usize = 4096;
    let key = (ch, (style.size * 4.0) as u32, style.bold);
    let mut cache = CACHE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if cache.len() >= MOST {
        cache.clear();
    }
    Arc::clone(cache.entry(key).or_insert_with(|| Arc::new(rasterise(ch, style))))
}

fn rasterise(ch: char, style: Style) -> Coverage {
    let Some(font) = font_for(ch, style.bold) else { return box_for_missing(style) };
    let glyph = font.glyph_id(ch).with_scale(scale(font, style));
    let Some(outline) = font.outline_glyph(glyph) else { return Coverage::default() };
    let bounds = outline.px_bounds();
    let width = bounds.width().ceil() as usize;
    let mut alpha = vec![0; width * bounds.height().ceil() as usize];
    outline.draw(|x, y, amount| {
        if let Some(cell) = alpha.get_mut(y as usize * width + x as usize) {
            *cell = (amount.clamp(0.0, 1.0) * 255.0) as u8;
        }
    });
    Coverage { left: bounds.min.x as i32, top: bounds.min.y as i32, width, alpha }
}

fn box_for_missing(style: Style) -> Coverage {
    let (width, height) = ((style.size * 0.6) as usize, (style.size * 0.75) as usize);
    let mut alpha = vec![0; width * height];
    for y in 0..height {
        for x in 0..width {
            if x < 2 || y < 2 || x + 2 >= width || y + 2 >= height {
                alpha[y * width + x] = 200;
            }
        }
    }
    Coverage { left: (style.size * 0.05) as i32, top: -(height as i32), width, alpha }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { size: 40.0, bold: false };

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
