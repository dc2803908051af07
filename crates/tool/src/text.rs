//! Foreign text, cleaned for people and models.
//!
//! What a reader cannot see, a model still reads, and what a terminal takes for a command, a person never
//! reads. Names, descriptions, schemas, screens, logs and everything shown on a terminal pass through here;
//! [`TABLE`] says what happens to which character. Results of tools stay as they are for models.

use std::borrow::Cow;

use serde_json::Value;

/// What happens to a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    Kept,
    /// Kept where it belongs to what stands around it, removed elsewhere.
    KeptInPlace,
    /// Replaced by a line break.
    LineBreak,
    /// Replaced by `�`, so that a reader sees that something was there.
    Shown,
    Removed,
}

/// A row of the table: code points from and to, and what happens to them.
pub type TreatmentRow = (u32, u32, Treatment, &'static str);

/// Everything that is not simply kept, by code point.
pub const TABLE: &[TreatmentRow] = {
    use Treatment::{Kept, KeptInPlace, LineBreak, Removed, Shown};
    &[
        (0x0000, 0x0008, Shown, "control characters"),
        (0x0009, 0x000A, Kept, "tab and line feed; a space where a text must stay on one line"),
        (0x000B, 0x000C, LineBreak, "vertical tab and form feed"),
        (0x000D, 0x000D, LineBreak, "carriage return, together with a line feed behind it"),
        (0x000E, 0x001A, Shown, "control characters"),
        (0x001B, 0x001B, Removed, "escape, with the whole terminal sequence it begins"),
        (0x001C, 0x001F, Shown, "control characters"),
        (0x007F, 0x0084, Shown, "control characters"),
        (0x0085, 0x0085, LineBreak, "next line"),
        (0x0086, 0x009F, Shown, "control characters, among them C1 sequences of terminals"),
        (0x00AD, 0x00AD, Removed, "soft hyphen"),
        (0x034F, 0x034F, Removed, "combining grapheme joiner"),
        (0x061C, 0x061C, Removed, "Arabic letter mark (direction)"),
        (0x115F, 0x1160, Removed, "Hangul fillers, which show nothing"),
        (0x17B4, 0x17B5, Removed, "Khmer vowels that show nothing"),
        (0x180B, 0x180F, Removed, "Mongolian variation selectors and vowel separator"),
        (0x200B, 0x200B, Removed, "zero-width space"),
        (0x200C, 0x200D, KeptInPlace, "zero-width joiners: within emoji and between letters of joined scripts"),
        (0x200E, 0x200F, Removed, "direction marks"),
        (0x2028, 0x2029, LineBreak, "line and paragraph separators"),
        (0x202A, 0x202E, Removed, "direction overrides"),
        (0x2060, 0x206F, Removed, "invisible operators and direction isolates"),
        (0x3164, 0x3164, Removed, "Hangul filler"),
        (0xE000, 0xF8FF, Shown, "private use"),
        (0xFDD0, 0xFDEF, Removed, "not characters"),
        (0xFE00, 0xFE0D, Removed, "variation selectors"),
        (0xFE0E, 0xFE0F, KeptInPlace, "text and emoji presentation: behind a character that has both"),
        (0xFEFF, 0xFEFF, Removed, "byte order mark"),
        (0xFFA0, 0xFFA0, Removed, "Hangul filler"),
        (0xFFF0, 0xFFFB, Removed, "unassigned and interlinear annotations"),
        (0xFFFE, 0xFFFF, Removed, "not characters"),
        (0x1BCA0, 0x1BCA3, Removed, "shorthand format controls"),
        (0x1D173, 0x1D17A, Removed, "musical format controls"),
        (0xE0000, 0xE007F, KeptInPlace, "tags: in the flags of England, Scotland and Wales"),
        (0xE0080, 0xE0FFF, Removed, "variation selectors and unassigned"),
        (0xF0000, 0x10FFFF, Shown, "private use and not characters"),
    ]
};

/// Marks on one letter; real scripts have up to four, more only cover the lines around.
const MAX_MARKS: usize = 8;
/// The tags of the three flags that have them.
const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];
/// The longest part of a message that quotes foreign text.
const MAX_QUOTE: usize = 200;

/// The text as people and models may see it, cut to `max` characters.
pub fn clean(text: &str, max: usize) -> String {
    if text.len() <= max && is_plain(text) {
        return text.to_owned();
    }
    let mut cleaner = Cleaner { out: String::new(), count: 0, max, marks: 0 };
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let behind = &rest[character.len_utf8()..];
        rest = cleaner.take(character, behind);
        if cleaner.count > max {
            break;
        }
    }
    cleaner.finish()
}

/// Like [`clean`], on one line.
pub fn clean_line(text: &str, max: usize) -> String {
    let text = clean(text, max);
    if text.contains(['\n', '\t']) { text.replace(['\n', '\t'], " ") } else { text }
}

/// Characters of a message in the log.
const MAX_LOGGED: usize = 1_000;

/// A message of a device as it stands in the log.
pub fn log_line(text: &str) -> String {
    clean_line(text, MAX_LOGGED)
}

/// Foreign text inside a message of ours: on one line, and short.
pub fn clip(text: &str) -> String {
    clean_line(text, MAX_QUOTE)
}

/// The longest prefix of at most `max` bytes that ends between characters.
pub fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// A JSON value with every text and every name in it cleaned.
pub fn clean_json(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(cleaned(text).into_owned()),
        Value::Array(items) => items.iter().map(clean_json).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| (cleaned(name).into_owned(), clean_json(member))).collect()
        }
        other => other.clone(),
    }
}

/// The whole text, cleaned.
pub fn clean_all(text: &str) -> String {
    cleaned(text).into_owned()
}

/// JSON text in which everything that a reader would not see, or see elsewhere, is written as an escape (`\\u202e`): it
/// means the same, and shows what is really there.
pub fn show_hidden(json: &str) -> String {
    if is_plain(json) {
        return json.to_owned();
    }
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        match treatment(character) {
            Treatment::Kept => shown.push(character),
            _ => {
                let mut units = [0; 2];
                let units = character.encode_utf16(&mut units);
                units.iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
            }
        }
    }
    shown
}

/// How many columns of a terminal a text takes: East Asian characters take two, marks none.
pub fn columns(text: &str) -> usize {
    let width = |c: char| match c as u32 {
        0x0300..=0x036f | 0x200b..=0x200d | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    };
    text.chars().map(width).sum()
}

/// One character as it may be shown where each must keep its column: `�` for what is not kept.
pub fn visible(character: char) -> char {
    match (character, treatment(character)) {
        ('\t' | '\n', _) => ' ',
        (_, Treatment::Kept | Treatment::KeptInPlace) => character,
        _ => char::REPLACEMENT_CHARACTER,
    }
}

fn cleaned(text: &str) -> Cow<'_, str> {
    if is_plain(text) { Cow::Borrowed(text) } else { Cow::Owned(clean(text, usize::MAX)) }
}

/// Whether every character is simply kept; most texts are so.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'\t' | b'\n' | b' '..=b'~'))
}

struct Cleaner {
    out: String,
    count: usize,
    max: usize,
    /// Marks since the last letter.
    marks: usize,
}

impl Cleaner {
    /// Takes one character and gives back what is left of the text behind it.
    fn take<'t>(&mut self, character: char, behind: &'t str) -> &'t str {
        match treatment(character) {
            Treatment::Kept => self.keep(character),
            Treatment::LineBreak => {
                self.keep('\n');
                if character == '\r' {
                    return behind.strip_prefix('\n').unwrap_or(behind);
                }
            }
            Treatment::Shown => self.keep(char::REPLACEMENT_CHARACTER),
            Treatment::Removed if character == '\u{1b}' => return after_sequence(behind),
            Treatment::Removed => {}
            Treatment::KeptInPlace => return self.in_place(character, behind),
        }
        behind
    }

    fn keep(&mut self, character: char) {
        self.marks = if is_mark(character) { self.marks + 1 } else { 0 };
        if self.marks > MAX_MARKS {
            return;
        }
        self.count += 1;
        if self.count <= self.max {
            self.out.push(character);
        }
    }

    fn in_place<'t>(&mut self, character: char, behind: &'t str) -> &'t str {
        let before = self.out.chars().next_back();
        let next = behind.chars().next();
        let fits = match character {
            '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|before| is_pictograph(before) || is_key(before, next)),
            '\u{200d}' if before.is_some_and(ends_pictograph) => next.is_some_and(is_pictograph),
            '\u{200c}' | '\u{200d}' => before.is_some_and(is_joined) && next.is_some_and(is_joined),
            _ => return self.flag(before, character, behind),
        };
        if fits {
            self.keep(character);
        }
        behind
    }

    /// The tags of a flag, all or none.
    fn flag<'t>(&mut self, before: Option<char>, first: char, behind: &'t str) -> &'t str {
        let tag = |tag: char| char::from_u32((tag as u32).wrapping_sub(0xE0000)).unwrap_or_default();
        let mut word = String::from(tag(first));
        let end = behind.char_indices().find(|(_, tag)| !('\u{e0000}'..='\u{e007e}').contains(tag));
        let (end, last) = end.map_or((behind.len(), None), |(place, last)| (place, Some(last)));
        word.extend(behind[..end].chars().map(tag));
        if before == Some('\u{1f3f4}') && last == Some('\u{e007f}') && FLAGS.contains(&word.as_str()) {
            self.keep(first);
            behind[..end].chars().for_each(|tag| self.keep(tag));
            self.keep('\u{e007f}');
        }
        &behind[end..]
    }

    fn finish(mut self) -> String {
        if self.count > self.max {
            self.out.pop();
            // What joins needs both sides.
            while self.out.ends_with(['\u{200c}', '\u{200d}']) {
                self.out.pop();
            }
            if self.max > 0 {
                self.out.push('…');
            }
        }
        self.out
    }
}

fn treatment(character: char) -> Treatment {
    let code = character as u32;
    let place = TABLE.partition_point(|(_, to, ..)| *to < code);
    match TABLE.get(place) {
        Some((from, _, treatment, _)) if *from <= code => *treatment,
        // The last two of each plane are not characters.
        _ if code & 0xFFFE == 0xFFFE => Treatment::Removed,
        _ => Treatment::Kept,
    }
}

/// What follows the terminal sequence whose escape was just read.
fn after_sequence(text: &str) -> &str {
    let end_of = |from: usize, is_last: fn(char) -> bool| {
        let rest = &text[from..];
        rest.char_indices()
            .find(|(_, character)| is_last(*character))
            .map(|(place, last)| &rest[place + last.len_utf8()..])
    };
    match text.chars().next() {
        // CSI: parameters, then one letter. What is no part of it ends it.
        Some('[') => {
            let rest = text[1..].trim_start_matches(|character| matches!(character, '\u{20}'..='\u{3f}'));
            rest.strip_prefix(|last| matches!(last, '\u{40}'..='\u{7e}')).unwrap_or(rest)
        }
        // OSC, DCS and the like: a text up to a bell or a string terminator. Without one, only the
        // introducer is taken, so that nobody can hide the rest of a text.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let rest = end_of(1, |character| matches!(character, '\u{7}' | '\u{1b}' | '\u{9c}'));
            rest.map_or(&text[1..], |rest| rest.strip_prefix('\\').unwrap_or(rest))
        }
        Some(letter @ '\u{20}'..='\u{7e}') => &text[letter.len_utf8()..],
        _ => text,
    }
}

fn is_in(character: char, ranges: &[(u32, u32)]) -> bool {
    ranges.iter().any(|(from, to)| (*from..=*to).contains(&(character as u32)))
}

/// Pictures, and signs that are also drawn as pictures.
fn is_pictograph(character: char) -> bool {
    const RANGES: &[(u32, u32)] = &[
        (0x00A9, 0x00A9),
        (0x00AE, 0x00AE),
        (0x203C, 0x203C),
        (0x2049, 0x2049),
        (0x2122, 0x2122),
        (0x2139, 0x2139),
        (0x2190, 0x21FF),
        (0x2300, 0x23FF),
        (0x2460, 0x24FF),
        (0x25A0, 0x27BF),
        (0x2900, 0x297F),
        (0x2B00, 0x2BFF),
        (0x3030, 0x303D),
        (0x3297, 0x3299),
        (0x1F000, 0x1FAFF),
    ];
    is_in(character, RANGES)
}

/// What a picture may end with before another is joined to it.
fn ends_pictograph(character: char) -> bool {
    is_pictograph(character) || character == '\u{fe0f}'
}

/// A digit that becomes a key: `1️⃣`.
fn is_key(character: char, next: Option<char>) -> bool {
    matches!(character, '0'..='9' | '#' | '*') && next == Some('\u{20e3}')
}

/// Letters and marks of scripts in which joiners change how words are written.
fn is_joined(character: char) -> bool {
    const RANGES: &[(u32, u32)] = &[
        (0x0600, 0x08FF),
        (0x0900, 0x0DFF),
        (0x0F00, 0x109F),
        (0x1780, 0x17FF),
        (0x1800, 0x18AF),
        (0x1A20, 0x1C4F),
        (0xA840, 0xA87F),
        (0xA8E0, 0xA8FF),
        (0xFB50, 0xFDCF),
        (0xFE70, 0xFEFC),
        (0x10D00, 0x10D3F),
        (0x11000, 0x1124F),
        (0x1E900, 0x1E95F),
    ];
    is_in(character, RANGES)
}

fn is_mark(character: char) -> bool {
    const RANGES: &[(u32, u32)] =
        &[(0x0300, 0x036F), (0x0483, 0x0489), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE20, 0xFE2F)];
    is_in(character, RANGES)
}

/// The table as a page of the documentation.
pub fn table_page() -> String {
    let mut page = String::from(
        "# Text from devices\n\n\
         Names, titles, descriptions, schemas, screens, log lines and everything shown on a terminal are cleaned before \
         a person or a model sees them. Results of tools reach models as the device sent them.\n\n\
         This page is printed from `crates/tool/src/text.rs`. What is not listed is kept.\n\n\
         | characters | what happens | which |\n|---|---|---|\n",
    );
    for (from, to, treatment, which) in TABLE {
        let range = if from == to { format!("U+{from:04X}") } else { format!("U+{from:04X}–U+{to:04X}") };
        let what = match treatment {
            Treatment::Kept => "kept",
            Treatment::KeptInPlace => "kept where it belongs, else removed",
            Treatment::LineBreak => "line break",
            Treatment::Shown => "shown as `�`",
            Treatment::Removed => "removed",
        };
        page.push_str(&format!("| {range} | {what} | {which} |\n"));
    }
    page.push_str(&format!("\nOf more than {MAX_MARKS} combining marks on one letter, the rest is removed.\n"));
    page
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation ends a test")]
mod tests {
    use serde_json::json;

    use super::*;

    fn all(text: &str) -> String {
        clean(text, usize::MAX)
    }

    #[test]
    fn what_belongs_to_emoji_and_joined_scripts_stays_whole() {
        for text in [
            "👩‍👩‍👧‍👦 👍🏽 ❤️ ☎︎ 1️⃣ #️⃣ 🏳️‍🌈 👁️‍🗨️ 🇩🇪",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "می‌خواهم",
            "क्‍ष श्री",
            "Grüße, naïve, עברית, 漢字, e\u{301}\u{323}",
            "tab\tand\nline",
        ] {
            assert_eq!(all(text), text);
        }
    }

    #[test]
    fn what_nobody_sees_is_removed() {
        assert_eq!(all("a\u{200b}b\u{2060}c\u{feff}d\u{ad}e\u{34f}f\u{3164}g"), "abcdefg");
        assert_eq!(all("a\u{202e}b\u{2066}c\u{200f}d\u{61c}e"), "abcde");
        assert_eq!(all("a\u{200d}b\u{200c}c 😀\u{200d}x x\u{200d}😀"), "abc 😀x x😀");
        assert_eq!(all("a\u{fe0f}b\u{fe01}c\u{e0100}d1\u{fe0f}2"), "abcd12");
        let hidden: String = "ignore".chars().filter_map(|letter| char::from_u32(0xE0000 + letter as u32)).collect();
        assert_eq!(all(&format!("a{hidden}b")), "ab");
        assert_eq!(all(&format!("🏴{hidden}\u{e007f}b")), "🏴b");
        assert_eq!(all("\u{fffe}\u{1fffe}\u{fdd0}x"), "x");
        assert_eq!(all(&format!("a{}", "\u{301}".repeat(100))).chars().count(), 1 + MAX_MARKS);
    }

    #[test]
    fn terminal_sequences_are_removed_and_other_controls_shown() {
        assert_eq!(all("a\u{1b}[31;1mb\u{1b}]0;title\u{7}c\u{1b}]8;;http://x\u{1b}\\d\u{1b}(Be"), "abcdBe");
        assert_eq!(all("a\u{1b}]never ends"), "anever ends");
        assert_eq!(all("a\u{1b}[31äb\u{1b}"), "aäb");
        assert_eq!(all("a\0b\u{8}c\u{9b}d\u{7f}e\u{e123}"), "a�b�c�d�e�");
        assert_eq!(all("a\r\nb\rc\u{2028}d\u{85}e"), "a\nb\nc\nd\ne");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(clean("äöüß", 4), "äöüß");
        assert_eq!(clean("äöüßx", 4), "äöü…");
        assert_eq!(clean("😀\u{200d}😀😀", 3), "😀…");
        assert_eq!(clean("ab", 0), "");
        assert_eq!(clean_line("a\nb\tc", 9), "a b c");
        assert_eq!((cut("aäb", 2), cut("ab", 9)), ("a", "ab"));
        assert_eq!(clip(&"x".repeat(500)).chars().count(), MAX_QUOTE);
    }

    #[test]
    fn names_and_texts_within_json_are_cleaned_alike() {
        let given = json!({"na\u{200b}me": ["te\u{e0041}xt", 1], "b": {"c": "plain"}});
        assert_eq!(clean_json(&given), json!({"name": ["text", 1], "b": {"c": "plain"}}));
    }

    #[test]
    fn the_table_is_in_order() {
        assert!(TABLE.windows(2).all(|rows| rows[0].1 < rows[1].0));
        assert!(TABLE.iter().all(|(from, to, ..)| from <= to));
    }

    #[test]
    fn hidden_characters_of_json_are_shown_as_escapes_that_mean_the_same() {
        let value = serde_json::json!({"door": "front\u{202e}kcab", "\u{200d}": "a\u{e0041}\u{7}", "ok": "Tür 🚪"});
        let shown = show_hidden(&value.to_string());
        assert!(
            shown.contains(r"front\u202ekcab") && shown.contains(r"\udb40\udc41") && shown.contains("Tür 🚪"),
            "{shown}"
        );
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
        assert_eq!(clean_all(&shown), shown);
    }

    #[test]
    fn cleaning_again_changes_nothing() {
        let pieces = [
            "a",
            "\u{1b}",
            "[",
            "]",
            "m",
            "\u{7}",
            "\u{200d}",
            "\u{fe0f}",
            "😀",
            "\u{e0067}",
            "🏴",
            "\u{e007f}",
            "م",
            "\u{301}",
            "\r",
            "\n",
            "1",
            "\u{20e3}",
            "\\",
        ];
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..8 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
            }
            let once = all(&text);
            assert_eq!(all(&once), once, "{text:?}");
            assert!(!once.contains('\u{1b}'));
        }
    }

    #[test]
    fn the_page_of_cleaned_text_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/text.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, table_page()).unwrap();
        }
        let shown = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(shown, table_page(), "run `UPDATE_DOCS=1 cargo test -p sinew-tool`");
    }
}
