//! Texts that strangers chose, made fit for tables and models.

/// The text without control characters and invisible marks that could hide or turn words around,
/// cut to `max` characters.
pub(crate) fn clean(text: &str, max: usize) -> String {
    let mut kept = text.chars().filter(|character| !is_unseemly(*character));
    let mut cleaned: String = kept.by_ref().take(max).collect();
    if kept.next().is_some() {
        cleaned.pop();
        cleaned.push('…');
    }
    cleaned
}

/// Like [`clean`], on one line.
pub(crate) fn clean_line(text: &str, max: usize) -> String {
    clean(text, max).replace(['\n', '\t'], " ")
}

/// The longest prefix of at most `max` bytes that ends between characters.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

fn is_unseemly(character: char) -> bool {
    let is_control = character.is_control() && character != '\n' && character != '\t';
    // Direction overrides and the tag block show nothing, yet a model reads them.
    let is_hidden = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}');
    is_control || is_hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_taken_out_and_long_texts_cut() {
        assert_eq!(clean("a\u{1b}[31mb\u{202e}c\u{e0041}\nd", 20), "a[31mbc\nd");
        assert_eq!(clean("äöüß", 4), "äöüß");
        assert_eq!(clean("äöüßx", 4), "äöü…");
        assert_eq!(clean_line("a\nb", 9), "a b");
        assert_eq!(cut("aäb", 2), "a");
        assert_eq!(cut("ab", 9), "ab");
    }
}
