//! Keys and typing: what a hardware key, the keyboard on the screen or an accessibility service does
//! to the focused field and to the phone.

use sinew_phones::LogLevel;

use super::act::{Field, Panel, Screen};
use super::edit::{Cursor, Editor};
use super::layout;
use super::machine::{Machine, SYSTEM_PID};
use super::system::Keyboard;
use super::text;
use super::view::{Align, View};

/// Modifiers held while a key is pressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub shift: bool,
    pub ctrl: bool,
}

/// Android's key codes that this phone knows, beside letters and digits.
pub mod code {
    pub const HOME: u32 = 3;
    pub const BACK: u32 = 4;
    pub const DPAD_UP: u32 = 19;
    pub const DPAD_DOWN: u32 = 20;
    pub const DPAD_LEFT: u32 = 21;
    pub const DPAD_RIGHT: u32 = 22;
    pub const VOLUME_UP: u32 = 24;
    pub const VOLUME_DOWN: u32 = 25;
    pub const POWER: u32 = 26;
    pub const A: u32 = 29;
    pub const Z: u32 = 54;
    pub const TAB: u32 = 61;
    pub const SPACE: u32 = 62;
    pub const ENTER: u32 = 66;
    pub const DEL: u32 = 67;
    pub const MENU: u32 = 82;
    pub const NOTIFICATION: u32 = 83;
    pub const PAGE_UP: u32 = 92;
    pub const PAGE_DOWN: u32 = 93;
    pub const ESCAPE: u32 = 111;
    pub const FORWARD_DEL: u32 = 112;
    pub const MOVE_HOME: u32 = 122;
    pub const MOVE_END: u32 = 123;
    pub const NUMPAD_ENTER: u32 = 160;
    pub const SETTINGS: u32 = 176;
    pub const APP_SWITCH: u32 = 187;
    pub const SLEEP: u32 = 223;
    pub const WAKEUP: u32 = 224;
    pub const CUT: u32 = 277;
    pub const COPY: u32 = 278;
    pub const PASTE: u32 = 279;
}

/// A field holds at most so many bytes; a note is not a novel, and nobody fills the memory.
const MOST: usize = 256 * 1024;

impl Machine {
    /// A key goes down and up.
    pub fn key(&mut self, key: u32, held: Held) {
        match key {
            code::POWER if self.awake => return self.sleep(),
            code::POWER | code::WAKEUP => return self.wake(),
            code::SLEEP => return self.sleep(),
            _ if !self.awake => return,
            code::HOME => return self.go_home(),
            code::BACK => return self.go_back(),
            code::APP_SWITCH => return self.show_recents(),
            code::NOTIFICATION => return self.show_panel(Some(Panel::Notifications)),
            code::VOLUME_UP => return self.change_volume(1),
            code::VOLUME_DOWN => return self.change_volume(-1),
            _ => {}
        }
        if self.locked {
            let digit = typed(key, held).filter(char::is_ascii_digit);
            match (digit, key) {
                (Some(digit), _) => self.pin_digit(digit),
                (_, code::MENU) => drop(self.dismiss_lock()),
                _ => {}
            }
            return;
        }
        match key {
            code::SETTINGS => drop(self.launch(super::act::App::Settings)),
            code::PAGE_UP => self.page(-1),
            code::PAGE_DOWN => self.page(1),
            code::ESCAPE if self.dialog.is_some() || self.keyboard.is_some() => self.go_back(),
            _ if self.focus.is_some() && self.dialog.is_none() => self.key_in_field(key, held),
            _ if self.screen() == Some(Screen::Calculator) => match (typed(key, held), key) {
                (Some(ch), _) => self.calculator.press(ch),
                (_, code::ENTER | code::NUMPAD_ENTER) => self.calculator.press('='),
                (_, code::DEL) => self.calculator.press('⌫'),
                _ => {}
            },
            code::TAB => self.focus_next(),
            _ => {}
        }
    }

    /// A character from a keyboard while no field has the focus: only the calculator listens.
    pub fn key_character(&mut self, ch: char) {
        if self.awake && !self.locked && self.focus.is_none() && self.screen() == Some(Screen::Calculator) {
            self.calculator.press(ch);
        }
    }

    fn key_in_field(&mut self, key: u32, held: Held) {
        match key {
            code::ENTER | code::NUMPAD_ENTER => self.enter(),
            code::TAB => self.focus_next(),
            code::DEL => self.edit(Editor::delete_before),
            code::FORWARD_DEL => self.edit(Editor::delete_after),
            code::DPAD_LEFT => self.edit(Editor::left),
            code::DPAD_RIGHT => self.edit(Editor::right),
            code::DPAD_UP => self.move_line(-1),
            code::DPAD_DOWN => self.move_line(1),
            code::MOVE_HOME => self.edit(Editor::line_start),
            code::MOVE_END => self.edit(Editor::line_end),
            code::COPY => self.copy(false),
            code::CUT => self.copy(true),
            code::PASTE => self.paste(),
            _ if held.ctrl => match key - key.min(code::A) {
                0 => self.edit(Editor::select_all),
                2 => self.copy(false),
                21 => self.paste(),
                23 => self.copy(true),
                _ => {}
            },
            _ => {
                if let Some(ch) = typed(key, held) {
                    self.insert(&ch.to_string());
                }
            }
        }
    }

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
    pub fn set_text(&mut self, field: Field, text: &str) -> bool {
        let in_sight = self.find_view(&|view| view.field == Some(field)).is_some();
        if in_sight {
            self.set_focus(Some(field));
            self.cursor = Cursor { at: self.field_text(field).len(), anchor: 0 };
            let text = if field.is_multi_line() { text.to_owned() } else { text.replace('\n', " ") };
            self.insert(&text);
        }
        in_sight
    }

    pub fn clipboard(&self) -> Option<&str> {
        self.clipboard.as_deref()
    }

    pub fn set_clipboard(&mut self, text: &str) {
        self.clipboard = Some(text.to_owned());
        self.say(
            SYSTEM_PID,
            LogLevel::Debug,
            "ClipboardService",
            format!("new clip, {} characters", text.chars().count()),
        );
    }

    pub fn focused_field(&self) -> Option<Field> {
        self.focus
    }

    pub fn is_keyboard_shown(&self) -> bool {
        self.keyboard.is_some()
    }

    /// What a field says.
    pub fn field_text(&self, field: Field) -> &str {
        let note = match self.screen() {
            Some(Screen::Note(number)) => self.notes.find(number),
            _ => None,
        };
        match field {
            Field::NoteTitle => note.map_or("", |note| &note.title),
            Field::NoteBody => note.map_or("", |note| &note.body),
            Field::Search => &self.contacts.search,
            Field::Passphrase => &self.passphrase,
            Field::Address => &self.browser.address,
        }
    }

    fn set_field_text(&mut self, field: Field, text: String) {
        let screen = self.screen();
        let note = match screen {
            Some(Screen::Note(number)) => self.notes.find_mut(number),
            _ => None,
        };
        match (field, note) {
            (Field::NoteTitle, Some(note)) => note.title = text,
            (Field::NoteBody, Some(note)) => note.body = text,
            (Field::Search, _) => {
                self.contacts.search = text;
                self.scroll.remove("contacts");
            }
            (Field::Passphrase, _) => self.passphrase = text,
            (Field::Address, _) => self.browser.address = text,
            (Field::NoteTitle | Field::NoteBody, None) => {}
        }
    }

    pub(super) fn set_focus(&mut self, field: Option<Field>) {
        if self.focus != field {
            self.focus = field;
            self.cursor = Cursor::at(field.map_or(0, |field| self.field_text(field).len()));
        }
        if field.is_some() && self.keyboard.is_none() {
            self.keyboard = Some(Keyboard::default());
        }
    }

    fn focus_next(&mut self) {
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
    pub(super) fn focus_at(&mut self, field: Field, (x, y): (f32, f32)) {
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
            self.cursor = Cursor::at(at).fitted(self.field_text(field));
        }
    }

    pub(super) fn select_word(&mut self) {
        self.edit(Editor::select_word);
    }

    /// The enter key: a new line, or on to the next thing.
    pub(super) fn enter(&mut self) {
        match self.focus {
            Some(field) if field.is_multi_line() => self.insert("\n"),
            Some(Field::NoteTitle) => self.set_focus(Some(Field::NoteBody)),
            Some(Field::Address) => {
                let address = self.browser.address.clone();
                self.browser.visit(&address);
                self.leave_screen();
            }
            Some(Field::Passphrase) => {
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

    fn copy(&mut self, cut: bool) {
        let Some(field) = self.focus else { return };
        let text = Editor::new(self.field_text(field).to_owned(), self.cursor).selected().to_owned();
        if !text.is_empty() && field != Field::Passphrase {
            self.set_clipboard(&text);
            if cut {
                self.insert("");
            }
        }
    }

    fn paste(&mut self) {
        if let Some(text) = self.clipboard.clone() {
            let single = !self.focus.is_some_and(Field::is_multi_line);
            self.insert(&if single { text.replace('\n', " ") } else { text });
        }
    }

    /// The cursor goes up or down a line, as wide as it was.
    fn move_line(&mut self, step: isize) {
        let Some(field) = self.focus else { return };
        let Some(view) = self.find_view(&|view| view.field == Some(field)) else { return };
        let inner = layout::inner(&view, self.scale());
        let lines = text::lines(&view.text, layout::style(&view, self.scale()), inner.width() as f32);
        let at = self.cursor.at;
        let row = lines.iter().rposition(|line| line.start <= at).unwrap_or(0);
        if let Some(line) = row.checked_add_signed(step).and_then(|row| lines.get(row)) {
            self.cursor = Cursor::at(line.byte_at(lines[row].cursor_x(at))).fitted(self.field_text(field));
        }
    }

    /// What is typed stays in sight.
    fn scroll_to_cursor(&mut self, field: Field) {
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

    /// Scrolls what can be scrolled by a page.
    fn page(&mut self, step: i32) {
        let Some(view) = self.find_view(&|view| view.scroll.is_some_and(|scroll| scroll.extent > 0)) else { return };
        if let Some(scroll) = view.scroll {
            let to = scroll.offset + step * view.rect.height() * 9 / 10;
            self.scroll.insert(scroll.slot, to.clamp(0, scroll.extent));
        }
    }

    fn change_volume(&mut self, step: i32) {
        let now: i32 = self.settings.get("system/volume_music").and_then(|value| value.parse().ok()).unwrap_or(0);
        self.settings.insert("system/volume_music".to_owned(), (now + step).clamp(0, 15).to_string());
    }

    /// The first view in the focused window that fits.
    pub(super) fn find_view(&self, fits: &dyn Fn(&View) -> bool) -> Option<View> {
        self.focused_window().and_then(|window| window.root.find(fits).cloned())
    }
}

fn collect_fields(view: &View, out: &mut Vec<Field>) {
    out.extend(view.field);
    view.children.iter().for_each(|child| collect_fields(child, out));
}

/// Text starts at the right in a right-to-left paragraph unless the view wants it elsewhere.
pub fn line_left(view: &View, line: &text::Line, inner: super::geometry::Rect) -> f32 {
    let room = inner.width() as f32 - line.width;
    match view.look.align {
        Align::Centre => inner.left as f32 + room / 2.0,
        Align::End => inner.left as f32 + room,
        Align::Start if line.rtl => inner.left as f32 + room,
        Align::Start => inner.left as f32,
    }
}

/// The character a key types on a US keyboard.
fn typed(key: u32, held: Held) -> Option<char> {
    let plain = match key {
        7..=16 => char::from_digit(key - 7, 10)?,
        17 => '*',
        18 => '#',
        code::A..=code::Z => char::from_u32(u32::from('a') + key - code::A)?,
        55 => ',',
        56 => '.',
        code::SPACE => ' ',
        68 => '`',
        69 => '-',
        70 => '=',
        71 => '[',
        72 => ']',
        73 => '\\',
        74 => ';',
        75 => '\'',
        76 => '/',
        77 => '@',
        81 => '+',
        144..=153 => char::from_digit(key - 144, 10)?,
        154 => '/',
        155 => '*',
        156 => '-',
        157 => '+',
        158 => '.',
        162 => '(',
        163 => ')',
        _ => return None,
    };
    Some(if held.shift { shifted(plain) } else { plain })
}

fn shifted(ch: char) -> char {
    const PLAIN: &str = "1234567890-=[]\\;'`,./";
    const SHIFTED: &str = "!@#$%^&*()_+{}|:\"~<>?";
    match PLAIN.chars().position(|plain| plain == ch) {
        Some(index) => SHIFTED.chars().nth(index).unwrap_or(ch),
        None => ch.to_ascii_uppercase(),
    }
}
