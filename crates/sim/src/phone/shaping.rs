//! Shaping, as much as a note needs: Arabic letters take their joined forms, lam-alef its ligature,
//! and joiners and variation selectors take no room.

use std::collections::HashMap;

/// The character to draw for each byte position; positions that draw nothing are absent.
pub(super) fn shape(text: &str) -> HashMap<usize, char> {
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
