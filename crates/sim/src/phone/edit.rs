//! Editing text: a cursor, a selection, and what keys do to them.

use unicode_segmentation::UnicodeSegmentation;

/// Where the cursor is in a text, in bytes, and where the selection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TextCursor {
    pub at: usize,
    pub anchor: usize,
}

impl TextCursor {
    pub(super) fn at(at: usize) -> TextCursor {
        TextCursor { at, anchor: at }
    }

    /// The selected bytes; empty where the cursor is only a cursor.
    pub(super) fn range(self) -> std::ops::Range<usize> {
        self.at.min(self.anchor)..self.at.max(self.anchor)
    }

    /// Within the text and between two characters, whatever happened to the text since.
    pub(super) fn fitted(self, text: &str) -> TextCursor {
        let fit = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        TextCursor { at: fit(self.at), anchor: fit(self.anchor) }
    }
}

/// A text while it is edited.
pub(super) struct Editor {
    pub text: String,
    pub cursor: TextCursor,
}

impl Editor {
    pub(super) fn new(text: String, cursor: TextCursor) -> Editor {
        let cursor = cursor.fitted(&text);
        Editor { text, cursor }
    }

    pub(super) fn selected(&self) -> &str {
        &self.text[self.cursor.range()]
    }

    /// Puts a text in place of the selection.
    pub(super) fn insert(&mut self, text: &str) {
        let range = self.cursor.range();
        self.text.replace_range(range.clone(), text);
        self.cursor = TextCursor::at(range.start + text.len());
    }

    /// Deletes the selection, or one character as people see it: an emoji goes as a whole.
    pub(super) fn delete_before(&mut self) {
        if self.cursor.range().is_empty() {
            self.cursor.anchor = self.before();
        }
        self.insert("");
    }

    pub(super) fn delete_after(&mut self) {
        if self.cursor.range().is_empty() {
            self.cursor.anchor = self.after();
        }
        self.insert("");
    }

    pub(super) fn left(&mut self) {
        self.cursor = TextCursor::at(self.before());
    }

    pub(super) fn right(&mut self) {
        self.cursor = TextCursor::at(self.after());
    }

    pub(super) fn line_start(&mut self) {
        let start = self.text[..self.cursor.at].rfind('\n').map_or(0, |at| at + 1);
        self.cursor = TextCursor::at(start);
    }

    pub(super) fn line_end(&mut self) {
        let end = self.text[self.cursor.at..].find('\n').map_or(self.text.len(), |at| self.cursor.at + at);
        self.cursor = TextCursor::at(end);
    }

    pub(super) fn select_all(&mut self) {
        self.cursor = TextCursor { anchor: 0, at: self.text.len() };
    }

    pub(super) fn select_word(&mut self) {
        let at = self.cursor.at;
        let word = self.text.unicode_word_indices().find(|(start, word)| *start <= at && at <= start + word.len());
        if let Some((start, word)) = word {
            self.cursor = TextCursor { anchor: start, at: start + word.len() };
        }
    }

    fn before(&self) -> usize {
        self.text[..self.cursor.at].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        let next = self.text[self.cursor.at..].graphemes(true).next();
        self.cursor.at + next.map_or(0, str::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_of_emoji_is_deleted_as_one() {
        let text = "a👨‍👩‍👧‍👦".to_owned();
        let mut editor = Editor::new(text.clone(), TextCursor::at(text.len()));
        editor.delete_before();
        assert_eq!(editor.text, "a");
        editor.delete_before();
        editor.delete_before();
        assert_eq!(editor.text, "");
    }

    #[test]
    fn typing_replaces_the_selection() {
        let mut editor = Editor::new("one שתיים three".to_owned(), TextCursor::at(6));
        editor.select_word();
        assert_eq!(editor.selected(), "שתיים");
        editor.insert("2");
        assert_eq!((editor.text.as_str(), editor.cursor), ("one 2 three", TextCursor::at(5)));
    }

    #[test]
    fn the_cursor_moves_by_line_and_by_character() {
        let mut editor = Editor::new("ab\ncd\nef".to_owned(), TextCursor::at(4));
        editor.line_start();
        assert_eq!(editor.cursor.at, 3);
        editor.line_end();
        assert_eq!(editor.cursor.at, 5);
        editor.left();
        editor.delete_after();
        assert_eq!(editor.text, "ab\nc\nef");
    }

    #[test]
    fn a_cursor_outside_the_text_is_brought_back() {
        let editor = Editor::new("é".to_owned(), TextCursor { at: 1, anchor: 900 });
        assert_eq!(editor.cursor, TextCursor { at: 0, anchor: 2 });
    }
}
