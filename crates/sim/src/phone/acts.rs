//! What the phone does when something on its screen is touched.

use sinew_phones::LogLevel;

use super::act::{Act, Dialog, Field, Screen};
use super::edit::Editor;
use super::geometry::Rect;
use super::machine::{Machine, SYSTEM_PID};
use super::setup::Lock;

impl Machine {
    /// Does what a view promises, touched at a place inside its rectangle.
    pub(super) fn act(&mut self, act: Act, place: (f32, f32), rect: Rect) {
        match act {
            Act::Launch(app) => drop(self.launch(app)),
            Act::Open(screen) => self.open(screen),
            Act::Back => self.go_back(),
            Act::Home => self.go_home(),
            Act::Recents => self.show_recents(),
            Act::CloseTask(app) => drop(self.stop(app)),
            Act::CloseTasks => {
                let apps: Vec<_> = self.tasks.iter().map(|task| task.app).collect();
                for app in apps {
                    self.stop(app);
                }
                self.go_home();
            }
            Act::Toggle(key) => self.toggle(key),
            Act::Slide(key, most) => {
                let part = (place.0 - rect.left as f32) / rect.width().max(1) as f32;
                let value = (part.clamp(0.0, 1.0) * most as f32).round() as u32;
                self.settings.insert(key.to_owned(), value.to_string());
            }
            Act::Calculate(key) => self.calculator.press(key),
            Act::NewNote => {
                let number = self.notes.create();
                self.open(Screen::Note(number));
                self.set_focus(Some(Field::NoteTitle));
            }
            Act::Ask(dialog) => {
                self.keyboard = None;
                self.dialog = Some(dialog);
            }
            Act::Confirm => self.confirm(),
            Act::Dismiss => self.dialog = None,
            Act::CopyNote(number) => {
                if let Some(text) = self.notes.find(number).map(|note| note.body.clone()) {
                    self.set_clipboard(&text);
                    self.show_toast("Note copied");
                }
            }
            Act::ClearSearch => self.contacts.search.clear(),
            Act::ZoomIn => self.zoom_by(2.0),
            Act::ZoomOut => self.zoom_by(0.5),
            Act::Stopwatch => self.stopwatch.toggle(self.now),
            Act::StopwatchReset => self.stopwatch.reset(),
            Act::Reveal => self.reveal(),
            Act::BuildNumber => self.tap_build_number(),
            Act::OpenNotice(number) => {
                let app = self.notices.iter().find(|notice| notice.number == number).map(|notice| notice.app);
                self.notices.retain(|notice| notice.number != number);
                if let Some(app) = app {
                    self.launch(app);
                }
            }
            Act::DismissNotice(number) => self.notices.retain(|notice| notice.number != number),
            Act::ClearNotices => self.notices.clear(),
            Act::Panel(panel) => self.show_panel(Some(panel)),
            Act::ClosePanel => self.panel = None,
            Act::PinDigit(digit) => self.pin_digit(digit),
            Act::PinDelete => drop(self.pin.pop()),
            Act::Type(ch) => {
                self.insert(&ch.to_string());
                if let Some(keyboard) = &mut self.keyboard {
                    keyboard.shift = false;
                }
            }
            Act::ImeShift => {
                if let Some(keyboard) = &mut self.keyboard {
                    keyboard.shift = !keyboard.shift;
                }
            }
            Act::ImeSymbols => {
                if let Some(keyboard) = &mut self.keyboard {
                    keyboard.symbols = !keyboard.symbols;
                }
            }
            Act::ImeDelete => self.edit(Editor::delete_before),
            Act::ImeEnter => self.enter(),
            Act::ImeHide => self.keyboard = None,
            Act::Nothing => {}
        }
    }

    fn zoom_by(&mut self, factor: f32) {
        if let Some(rect) = self.find_view(&|view| view.zooms).map(|view| view.rect) {
            self.camera = self.camera.moved(rect, rect.centre(), rect.centre(), factor);
        }
    }

    fn toggle(&mut self, key: &'static str) {
        let on = !self.is_on(key);
        self.put_setting(
            key,
            match (key, on) {
                ("secure/ui_night_mode", true) => "2",
                ("secure/ui_night_mode", false) | (_, true) => "1",
                (_, false) => "0",
            },
        );
    }

    /// Changes a setting, with what follows from it.
    pub fn put_setting(&mut self, key: &str, value: &str) {
        self.settings.insert(key.to_owned(), value.to_owned());
        self.say(SYSTEM_PID, LogLevel::Debug, "SettingsProvider", format!("{key}={value}"));
        if key == "global/airplane_mode_on" && value == "1" {
            for radio in ["global/wifi_on", "global/bluetooth_on"] {
                self.settings.insert(radio.to_owned(), "0".to_owned());
            }
        }
        if key == "system/accelerometer_rotation" && value == "0" {
            self.settings.insert("system/user_rotation".to_owned(), self.held.to_string());
        }
    }

    fn confirm(&mut self) {
        let gone = match self.dialog.take() {
            Some(Dialog::DeleteNote(number)) => {
                self.notes.delete(number);
                self.show_toast("Note deleted");
                Screen::Note(number)
            }
            Some(Dialog::DeleteContact(index)) => {
                self.contacts.delete(index);
                Screen::Contact(index)
            }
            None => return,
        };
        if self.screen() == Some(gone) {
            self.go_back();
        }
    }

    pub(super) fn reveal(&mut self) {
        self.revealed = self.passphrase == "sesame";
        if !self.revealed {
            self.show_toast("Wrong passphrase");
        }
    }

    fn tap_build_number(&mut self) {
        self.build_taps += 1;
        match self.build_taps {
            7 => {
                self.put_setting("global/development_settings_enabled", "1");
                self.show_toast("You are now a developer!");
            }
            4..7 => self.show_toast(format!("{} steps from being a developer", 7 - self.build_taps)),
            _ => {}
        }
    }

    pub(super) fn pin_digit(&mut self, digit: char) {
        let Lock::Pin(right) = &self.setup.lock else { return };
        self.pin.push(digit);
        if self.pin == *right {
            self.locked = false;
            self.pin.clear();
        } else if self.pin.len() >= right.len() {
            self.pin.clear();
            self.say(SYSTEM_PID, LogLevel::Warning, "LockSettingsService", "wrong PIN");
        }
    }
}
