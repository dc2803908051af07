//! Text fields: focus, cursor, clipboard, and what typing does.

use sinew_phones::LogcatLevel;

use super::act::{AppScreen, TextField};
use super::edit::{Editor, TextCursor};
use super::geometry::PixelRect;
use super::layout;
use super::machine::{PhoneMachine, SYSTEM_PID};
use super::system::Keyboard;
use super::text;
use super::view::{Align, View};

/// A field holds at most so many bytes; this bounds the memory of the phone.
const MOST: usize = 256 * 1024;

impl PhoneMachine {
    /// Types at the cursor. False where no field has the focus.
    pub fn type_text(&mut self, text: &str) -> bool {
        if !self.awake || self.locked || self.focus.is_none() {
            return false;
        }
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.enter();
            }
            self.insert(line);
        }
        true
    }

    /// Makes a text the whole content of a field in sight, as an accessibility service does.
    pub fn set_text(&mut self, field: TextField, text: &str) -> bool {
        let in_sight = self.is_in_sight(field);
        if in_sight {
            self.set_focus(Some(field));
            self.cursor = TextCursor { at: self.field_text(field).len(), anchor: 0 };
            let text = if field.is_multi_line() { text.to_owned() } else { text.replace('\n', " ") };
            self.insert(&text);
        }
        in_sight
    }

    /// Selects characters of a field in sight, as an accessibility service does.
    pub fn select(&mut self, field: TextField, start: usize, end: usize) -> bool {
        let text = self.field_text(field);
        let at = |characters: usize| {
            let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            places.nth(characters)
        };
        let (Some(anchor), Some(at), true) = (at(start), at(end), self.is_in_sight(field)) else { return false };
        self.set_focus(Some(field));
        self.cursor = TextCursor { at, anchor };
        true
    }

    pub fn is_in_sight(&self, field: TextField) -> bool {
        self.find_view(&|view| view.field == Some(field)).is_some()
    }

    pub fn clipboard(&self) -> Option<&str> {
        self.clipboard.as_deref()
    }

    pub fn set_clipboard(&mut self, text: &str) {
        self.clipboard = Some(text.to_owned());
        self.say(
            SYSTEM_PID,
            LogcatLevel::Debug,
            "ClipboardService",
            format!("new clip, {} characters", text.chars().count()),
        );
    }

    pub fn is_keyboard_shown(&self) -> bool {
        self.keyboard.is_some()
    }

    /// What a field says.
    pub fn field_text(&self, field: TextField) -> &str {
        let note = match self.screen() {
            Some(AppScreen::Note(number)) => self.notes.find(number),
            _ => None,
        };
        match field {
            TextField::NoteTitle => note.map_or("", |note| &note.title),
            TextField::NoteBody => note.map_or("", |note| &note.body),
            TextField::Search => &self.contacts.search,
            TextField::Passphrase => &self.passphrase,
            TextField::Address => &self.browser.address,
            TextField::Reply => &self.reply,
        }
    }

    fn set_field_text(&mut self, field: TextField, text: String) {
        let screen = self.screen();
        let note = match screen {
            Some(AppScreen::Note(number)) => self.notes.find_mut(number),
            _ => None,
        };
        match (field, note) {
            (TextField::NoteTitle, Some(note)) => note.title = text,
            (TextField::NoteBody, Some(note)) => note.body = text,
            (TextField::Search, _) => {
                self.contacts.search = text;
                self.scroll.remove("contacts");
            }
            (TextField::Passphrase, _) => self.passphrase = text,
            (TextField::Address, _) => self.browser.address = text,
            (TextField::Reply, _) => self.reply = text,
            (TextField::NoteTitle | TextField::NoteBody, None) => {}
        }
    }

    pub(super) fn set_focus(&mut self, field: Option<TextField>) {
        if self.focus != field {
            self.focus = field;
            self.cursor = TextCursor::at(field.map_or(0, |field| self.field_text(field).len()));
        }
        if field.is_some() && self.keyboard.is_none() {
            self.keyboard = Some(Keyboard::default());
        }
    }

    pub(super) fn focus_next(&mut self) {
        let Some(window) = self.focused_window() else { return };
        let mut fields = Vec::new();
        collect_fields(&window.root, &mut fields);
        let next = match fields.iter().position(|field| Some(*field) == self.focus) {
            Some(index) => fields.get(index + 1).or(fields.first()),
            None => fields.first(),
        };
        if let Some(field) = next {
            self.set_focus(Some(*field));
        }
    }

    /// Focuses a field and puts the cursor where the finger is.
    pub(super) fn focus_at(&mut self, field: TextField, (x, y): (f32, f32)) {
        let place = self.find_view(&|view| view.field == Some(field)).map(|view| {
            let inner = layout::inner(&view, self.scale());
            let style = layout::style(&view, self.scale());
            let lines = text::lines(&view.text, style, inner.width() as f32);
            let row = ((y - inner.top as f32) / style.line_height()).max(0.0) as usize;
            let line = &lines[row.min(lines.len() - 1)];
            let left = if line.rtl { inner.right as f32 - line.width } else { inner.left as f32 };
            line.byte_at(x - left)
        });
        self.set_focus(Some(field));
        if let Some(at) = place {
            self.cursor = TextCursor::at(at).fitted(self.field_text(field));
        }
    }

    pub(super) fn select_word(&mut self) {
        self.edit(Editor::select_word);
    }

    /// The enter key: a new line, or on to the next thing.
    pub(super) fn enter(&mut self) {
        match self.focus {
            Some(field) if field.is_multi_line() => self.insert("\n"),
            Some(TextField::NoteTitle) => self.set_focus(Some(TextField::NoteBody)),
            Some(TextField::Address) => {
                let address = self.browser.address.clone();
                self.browser.visit(&address);
                self.leave_screen();
            }
            Some(TextField::Passphrase) => {
                self.keyboard = None;
                self.reveal();
            }
            _ => self.keyboard = None,
        }
    }

    pub(super) fn insert(&mut self, text: &str) {
        let room = MOST.saturating_sub(self.focus.map_or(0, |field| self.field_text(field).len()));
        let end = text.char_indices().map(|(at, ch)| at + ch.len_utf8()).take_while(|end| *end <= room).last();
        let text = &text[..end.unwrap_or(0)];
        self.edit(|editor| editor.insert(text));
    }

    pub(super) fn edit(&mut self, change: impl FnOnce(&mut Editor)) {
        let Some(field) = self.focus else { return };
        let mut editor = Editor::new(self.field_text(field).to_owned(), self.cursor);
        change(&mut editor);
        self.cursor = editor.cursor;
        self.set_field_text(field, editor.text);
        self.scroll_to_cursor(field);
    }

    pub(super) fn copy(&mut self, cut: bool) {
        let Some(field) = self.focus else { return };
        let text = Editor::new(self.field_text(field).to_owned(), self.cursor).selected().to_owned();
        if !text.is_empty() && field != TextField::Passphrase {
            self.set_clipboard(&text);
            if cut {
                self.insert("");
            }
        }
    }

    pub(super) fn paste(&mut self) {
        if let Some(text) = self.clipboard.clone() {
            let single = !self.focus.is_some_and(TextField::is_multi_line);
            self.insert(&if single { text.replace('\n', " ") } else { text });
        }
    }

    /// The cursor goes up or down a line, as wide as it was.
    pub(super) fn move_line(&mut self, step: isize) {
        let Some(field) = self.focus else { return };
        let Some(view) = self.find_view(&|view| view.field == Some(field)) else { return };
        let inner = layout::inner(&view, self.scale());
        let lines = text::lines(&view.text, layout::style(&view, self.scale()), inner.width() as f32);
        let at = self.cursor.at;
        let row = lines.iter().rposition(|line| line.start <= at).unwrap_or(0);
        if let Some(line) = row.checked_add_signed(step).and_then(|row| lines.get(row)) {
            self.cursor = TextCursor::at(line.byte_at(lines[row].cursor_x(at))).fitted(self.field_text(field));
        }
    }

    /// What is typed stays in sight.
    fn scroll_to_cursor(&mut self, field: TextField) {
        let Some(window) = self.focused_window() else { return };
        let Some(scroller) = window
            .root
            .find(&|view| view.scroll.is_some() && view.find(&|inside| inside.field == Some(field)).is_some())
        else {
            return;
        };
        let (Some(view), Some(scroll)) = (scroller.find(&|view| view.field == Some(field)), scroller.scroll) else {
            return;
        };
        let inner = layout::inner(view, self.scale());
        let style = layout::style(view, self.scale());
        let lines = text::lines(&view.text, style, inner.width() as f32);
        let row = lines.iter().rposition(|line| line.start <= self.cursor.at).unwrap_or(0);
        let top = inner.top + (row as f32 * style.line_height()) as i32;
        let bottom = top + style.line_height() as i32;
        let hidden = (bottom - scroller.rect.bottom).max(0) - (scroller.rect.top - top).max(0);
        self.scroll.insert(scroll.slot, (scroll.offset + hidden).clamp(0, scroll.extent));
    }
}

fn collect_fields(view: &View, out: &mut Vec<TextField>) {
    out.extend(view.field);
    view.children.iter().for_each(|child| collect_fields(child, out));
}

/// Text starts at the right in a right-to-left paragraph unless the view wants it elsewhere.
pub(super) fn line_left(view: &View, line: &text::TextLine, inner: PixelRect) -> f32 {
    let room = inner.width() as f32 - line.width;
    match view.look.align {
        Align::Centre => inner.left as f32 + room / 2.0,
        Align::End => inner.left as f32 + room,
        Align::Start if line.rtl => inner.left as f32 + room,
        Align::Start => inner.left as f32,
    }
}
