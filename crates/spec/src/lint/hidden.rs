//! Text that a reader does not see and a model does: invisible characters, written as they are, as JSON
//! escapes or as character references.

use super::{Reporter, rules, unseen};
use crate::read::blocks::Fences;
use sinew_tool::finding::Span;

/// Further findings of this kind would add nothing.
const MAX_TOLD: usize = 20;

pub(super) fn check(reporter: &mut Reporter<'_>) {
    let text = reporter.text();
    let mut found: Vec<(Span, char, &str)> = Vec::new();
    if !text.is_ascii() || text.bytes().any(|byte| hides(byte.into())) {
        found.extend(characters(text).map(|(span, character)| (span, character, "is invisible")));
    }
    let (escapes, references) = (text.contains("\\u"), text.contains('&'));
    if escapes || references {
        let code = if reporter.is_markdown() { Fences::of(text) } else { Fences::default() };
        let is_code = |at: usize| !reporter.is_markdown() || code.contains(at);
        if escapes {
            let written = json_escapes(text).filter(|(span, _)| is_code(span.start));
            found.extend(written.map(|(span, character)| (span, character, "is written as a JSON escape")));
        }
        if references && reporter.is_markdown() {
            let written = character_references(text).filter(|(span, _)| !is_code(span.start));
            found.extend(written.map(|(span, character)| (span, character, "is written as a character reference")));
        }
    }
    found.sort_by_key(|(span, ..)| *span);
    if reporter.is_markdown() {
        let fences = Fences::of(text);
        let element = "this element is not shown to people, and models read what is in it";
        let definition = "this definition of a link is not shown to people, and models read what is in it";
        let mut unseen: Vec<(Span, String)> = unseen::elements(text)
            .map(|span| (span, element.to_owned()))
            .chain(unseen::link_comments(text).map(|span| (span, definition.to_owned())))
            .filter(|(span, _)| !fences.contains(span.start))
            .collect();
        unseen.sort_by_key(|(span, _)| *span);
        tell(reporter, unseen);
    }
    let says = |(span, character, how): (Span, char, &str)| {
        let code = character as u32;
        (span, format!("U+{code:04X} {how} and hides or reorders text: people and models read different text"))
    };
    tell(reporter, found.into_iter().map(says).collect());
}

/// Reports the first ones, and how many more there are.
fn tell(reporter: &mut Reporter<'_>, mut found: Vec<(Span, String)>) {
    let more = found.split_off(found.len().min(MAX_TOLD));
    for (span, message) in found {
        reporter.report(&rules::HIDDEN_TEXT, span, message);
    }
    if let Some((span, message)) = more.first() {
        reporter.report(&rules::HIDDEN_TEXT, *span, format!("{message} ({} such places from here on)", more.len()));
    }
}

/// Invisible characters that reorder, separate or change others.
fn hides(character: char) -> bool {
    matches!(character,
        '\u{0000}'..='\u{0008}' | '\u{000b}' | '\u{000e}'..='\u{001f}' | '\u{007f}'..='\u{009f}' | '\u{2028}' | '\u{2029}'
        | '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Hidden characters that the surrounding script does not need.
fn characters(text: &str) -> impl Iterator<Item = (Span, char)> + '_ {
    text.char_indices().filter(|(_, character)| hides(*character)).filter_map(move |(at, character)| {
        let end = at + character.len_utf8();
        if is_flag_tag(text, at) {
            return None;
        }
        let before = text[..at].chars().next_back();
        let after = text[end..].chars().next();
        (!belongs(character, before, after)).then_some((Span::new(at, end), character))
    })
}

/// Whether this is a tag of one of the three flags that are written with tags: England, Scotland and Wales.
fn is_flag_tag(text: &str, at: usize) -> bool {
    const FLAGS: [&str; 3] = [
        "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
        "\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
    ];
    let start = text[..at].char_indices().rev().take(6).find(|(_, before)| *before == '\u{1f3f4}');
    start.is_some_and(|(start, _)| FLAGS.iter().any(|flag| text[start..].starts_with(flag) && at < start + flag.len()))
}

/// Whether a joiner or selector belongs to its neighbours, as in emoji or Persian.
fn belongs(character: char, before: Option<char>, after: Option<char>) -> bool {
    let joined = |c: Option<char>| {
        c.is_some_and(|c| matches!(c, '\u{0600}'..='\u{08ff}' | '\u{0900}'..='\u{0dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'))
    };
    let pictured = |c: Option<char>| c.is_some_and(is_picture);
    match character {
        '\u{200c}' => joined(before) && joined(after),
        '\u{200d}' => joined(before) && joined(after) || pictured(before) && pictured(after),
        '\u{200e}' | '\u{200f}' => false,
        // The emoji and text selectors, after characters that have both forms; `1️⃣` begins with a digit.
        '\u{fe0e}' | '\u{fe0f}' => {
            pictured(before) || before.is_some_and(|c| c.is_ascii_digit() || matches!(c, '#' | '*' | '©' | '®'))
        }
        '\u{e0100}'..='\u{e01ef}' | '\u{fe00}'..='\u{fe02}' => before.is_some_and(
            |c| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'),
        ),
        _ => false,
    }
}

fn is_picture(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
}

/// `\u200b` and pairs such as `\udb40\udc41`.
fn json_escapes(text: &str) -> impl Iterator<Item = (Span, char)> + '_ {
    let unit = |at: usize| -> Option<u32> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    text.match_indices("\\u").filter_map(move |(at, _)| {
        let first = unit(at)?;
        // An escaped backslash does not begin an escape.
        let slashes = text[..at].len() - text[..at].trim_end_matches('\\').len();
        let (code, length) = match first {
            0xd800..=0xdbff => (0x10000 + ((first - 0xd800) << 10) + (unit(at + 6)?.checked_sub(0xdc00)? & 0x3ff), 12),
            code => (code, 6),
        };
        let character = char::from_u32(code).filter(|character| hides(*character) && *character != '\u{fe0f}')?;
        slashes.is_multiple_of(2).then_some((Span::new(at, at + length), character))
    })
}

/// `&#8203;`, `&#x200b;` and HTML's named references.
fn character_references(text: &str) -> impl Iterator<Item = (Span, char)> + '_ {
    text.match_indices('&').filter_map(move |(at, _)| {
        let rest = text[at + 1..].get(..32).unwrap_or(&text[at + 1..]);
        let name = &rest[..rest.find(';')?];
        let code = match name.strip_prefix('#') {
            Some(number) => match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            },
            None => match name {
                "ZeroWidthSpace"
                | "NegativeThinSpace"
                | "NegativeMediumSpace"
                | "NegativeThickSpace"
                | "NegativeVeryThinSpace" => 0x200b,
                "zwnj" => 0x200c,
                "zwj" => 0x200d,
                "lrm" => 0x200e,
                "rlm" => 0x200f,
                "shy" => 0x00ad,
                "NoBreak" => 0x2060,
                "af" | "ApplyFunction" => 0x2061,
                "it" | "InvisibleTimes" => 0x2062,
                "ic" | "InvisibleComma" => 0x2063,
                _ => return None,
            },
        };
        let character = char::from_u32(code).filter(|character| hides(*character))?;
        Some((Span::new(at, at + name.len() + 2), character))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_found_in_every_spelling() {
        for text in [
            "a\u{200b}b",
            "a\u{00ad}b",
            "x\u{fe01}",
            "A\u{fe0f}",
            "a\u{200d}b",
            "\u{e0041}",
            "a\u{2063}b",
            "a\u{202e}b",
            "a\u{2028}b",
            "a\u{1b}[8mb",
            "a\u{8}b",
            "a\u{85}b",
        ] {
            assert_eq!(characters(text).count(), 1, "{text:?}");
        }
        for text in ["\\u200b", "\\uDB40\\uDC41", "\\u202E", "\\\\\\u2060"] {
            assert_eq!(json_escapes(text).count(), 1, "{text:?}");
        }
        for text in ["&#8203;", "&#x200B;", "&zwnj;", "&shy;", "&InvisibleTimes;"] {
            assert_eq!(character_references(text).count(), 1, "{text:?}");
        }
    }

    #[test]
    fn joiners_and_selectors_of_real_writing_are_left_alone() {
        for text in [
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} a\tb\r\n\u{c}",
            "👩‍👩‍👧 ❤️ 🗂️ 1️⃣",
            "می‌خواهم",
            "क्‍ष",
            "日本語 עברית العربية",
            "葛\u{e0100}",
        ] {
            assert_eq!(characters(text).count(), 0, "{text:?}");
        }
        assert_eq!(json_escapes("\\\\u200b \\u00e9 \\u").count(), 0);
        assert_eq!(character_references("AT&T; &amp; &#233; & x").count(), 0);
    }
}
