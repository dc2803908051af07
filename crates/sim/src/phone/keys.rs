//! Keys: what each does to the phone and to the focused field. Typing itself is in [`super::typing`].

use super::act::{AppScreen, Panel};
use super::edit::Editor;
use super::machine::PhoneMachine;
use super::view::View;

/// Modifiers held while a key is pressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modifiers {
    pub shift: bool,
    pub ctrl: bool,
}

/// Android's key codes that this phone knows, beside letters and digits.
pub(super) mod code {
    pub(crate) const HOME: u32 = 3;
    pub(crate) const BACK: u32 = 4;
    pub(crate) const DPAD_UP: u32 = 19;
    pub(crate) const DPAD_DOWN: u32 = 20;
    pub(crate) const DPAD_LEFT: u32 = 21;
    pub(crate) const DPAD_RIGHT: u32 = 22;
    pub(crate) const VOLUME_UP: u32 = 24;
    pub(crate) const VOLUME_DOWN: u32 = 25;
    pub(crate) const POWER: u32 = 26;
    pub(crate) const A: u32 = 29;
    pub(crate) const Z: u32 = 54;
    pub(crate) const TAB: u32 = 61;
    pub(crate) const SPACE: u32 = 62;
    pub(crate) const ENTER: u32 = 66;
    pub(crate) const DEL: u32 = 67;
    pub(crate) const MENU: u32 = 82;
    pub(crate) const NOTIFICATION: u32 = 83;
    pub(crate) const PAGE_UP: u32 = 92;
    pub(crate) const PAGE_DOWN: u32 = 93;
    pub(crate) const ESCAPE: u32 = 111;
    pub(crate) const FORWARD_DEL: u32 = 112;
    pub(crate) const MOVE_HOME: u32 = 122;
    pub(crate) const MOVE_END: u32 = 123;
    pub(crate) const NUMPAD_ENTER: u32 = 160;
    pub(crate) const SETTINGS: u32 = 176;
    pub(crate) const APP_SWITCH: u32 = 187;
    pub(crate) const SLEEP: u32 = 223;
    pub(crate) const WAKEUP: u32 = 224;
    pub(crate) const CUT: u32 = 277;
    pub(crate) const COPY: u32 = 278;
    pub(crate) const PASTE: u32 = 279;
}

impl PhoneMachine {
    /// A key goes down and up.
    pub fn key(&mut self, key: u32, held: Modifiers) {
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
            code::SETTINGS => drop(self.launch(super::act::StockApp::Settings)),
            code::PAGE_UP => self.page(-1),
            code::PAGE_DOWN => self.page(1),
            code::ESCAPE if self.dialog.is_some() || self.keyboard.is_some() => self.go_back(),
            _ if self.focus.is_some() && self.dialog.is_none() => self.key_in_field(key, held),
            _ if self.screen() == Some(AppScreen::Calculator) => match (typed(key, held), key) {
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
        if self.awake && !self.locked && self.focus.is_none() && self.screen() == Some(AppScreen::Calculator) {
            self.calculator.press(ch);
        }
    }

    fn key_in_field(&mut self, key: u32, held: Modifiers) {
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

/// The character a key types on a US keyboard.
fn typed(key: u32, held: Modifiers) -> Option<char> {
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
