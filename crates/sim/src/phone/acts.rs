//! What the phone does when something on its screen is touched.

use sinew_phones::LogcatLevel;

use super::act::{AppScreen, Dialog, TextField, TouchAction};
use super::edit::Editor;
use super::geometry::PixelRect;
use super::machine::{PhoneMachine, SYSTEM_PID};
use super::setup::LockScreen;
use super::system::REPLY;

impl PhoneMachine {
    /// Runs the action of a view that was touched at a position inside its rectangle.
    pub(super) fn act(&mut self, act: TouchAction, place: (f32, f32), rect: PixelRect) {
        match act {
            TouchAction::Launch(app) => drop(self.launch(app)),
            TouchAction::Open(screen) => self.open(screen),
            TouchAction::Back => self.go_back(),
            TouchAction::Home => self.go_home(),
            TouchAction::Recents => self.show_recents(),
            TouchAction::CloseTask(app) => drop(self.stop(app)),
            TouchAction::CloseTasks => {
                let apps: Vec<_> = self.tasks.iter().map(|task| task.app).collect();
                for app in apps {
                    self.stop(app);
                }
                self.go_home();
            }
            TouchAction::Toggle(key) => self.toggle(key),
            TouchAction::Slide(key, most) => {
                let part = (place.0 - rect.left as f32) / rect.width().max(1) as f32;
                let value = (part.clamp(0.0, 1.0) * most as f32).round() as u32;
                self.settings.insert(key.to_owned(), value.to_string());
            }
            TouchAction::Calculate(key) => self.calculator.press(key),
            TouchAction::NewNote => {
                let number = self.notes.create();
                self.open(AppScreen::Note(number));
                self.set_focus(Some(TextField::NoteTitle));
            }
            TouchAction::Ask(dialog) => {
                self.keyboard = None;
                self.dialog = Some(dialog);
            }
            TouchAction::Confirm => self.confirm(),
            TouchAction::Dismiss => self.dialog = None,
            TouchAction::CopyNote(number) => {
                if let Some(text) = self.notes.find(number).map(|note| note.body.clone()) {
                    self.set_clipboard(&text);
                    self.show_toast("Note copied");
                }
            }
            TouchAction::ClearSearch => self.contacts.search.clear(),
            TouchAction::ZoomIn => self.zoom_by(2.0),
            TouchAction::ZoomOut => self.zoom_by(0.5),
            TouchAction::Stopwatch => self.stopwatch.toggle(self.now),
            TouchAction::StopwatchReset => self.stopwatch.reset(),
            TouchAction::Reveal => self.reveal(),
            TouchAction::BuildNumber => self.tap_build_number(),
            TouchAction::OpenNotice(number) => {
                let app = self.notices.iter().find(|notice| notice.number == number).map(|notice| notice.app);
                self.notices.retain(|notice| notice.number != number);
                if let Some(app) = app {
                    self.launch(app);
                }
            }
            TouchAction::DismissNotice(number) => self.notices.retain(|notice| notice.number != number),
            TouchAction::ClearNotices => self.notices.clear(),
            TouchAction::NoticeAction(number, nth) => self.press_notice(number, nth),
            TouchAction::SendReply(number) => self.send_reply(number),
            TouchAction::Panel(panel) => self.show_panel(Some(panel)),
            TouchAction::ClosePanel => self.panel = None,
            TouchAction::PinDigit(digit) => self.pin_digit(digit),
            TouchAction::PinDelete => drop(self.pin.pop()),
            TouchAction::Type(ch) => {
                self.insert(&ch.to_string());
                if let Some(keyboard) = &mut self.keyboard {
                    keyboard.shift = false;
                }
            }
            TouchAction::ImeShift => {
                if let Some(keyboard) = &mut self.keyboard {
                    keyboard.shift = !keyboard.shift;
                }
            }
            TouchAction::ImeSymbols => {
                if let Some(keyboard) = &mut self.keyboard {
                    keyboard.symbols = !keyboard.symbols;
                }
            }
            TouchAction::ImeDelete => self.edit(Editor::delete_before),
            TouchAction::ImeEnter => self.enter(),
            TouchAction::ImeHide => self.keyboard = None,
            TouchAction::Nothing => {}
        }
    }

    fn press_notice(&mut self, number: u32, nth: usize) {
        let Some(notice) = self.notices.iter().find(|notice| notice.number == number) else { return };
        if notice.actions.get(nth) == Some(&REPLY) {
            self.replying = Some(number);
            self.reply.clear();
            self.set_focus(Some(TextField::Reply));
        } else {
            self.notices.retain(|notice| notice.number != number);
        }
    }

    fn send_reply(&mut self, number: u32) {
        self.replying = None;
        self.set_focus(None);
        self.keyboard = None;
        self.notices.retain(|notice| notice.number != number);
        let text = std::mem::take(&mut self.reply);
        self.say(SYSTEM_PID, LogcatLevel::Info, "RemoteInput", format!("replied: {text}"));
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
        self.say(SYSTEM_PID, LogcatLevel::Debug, "SettingsProvider", format!("{key}={value}"));
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
                AppScreen::Note(number)
            }
            Some(Dialog::DeleteContact(index)) => {
                self.contacts.delete(index);
                AppScreen::Contact(index)
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
        let LockScreen::Pin(right) = &self.setup.lock else { return };
        self.pin.push(digit);
        if self.pin == *right {
            self.locked = false;
            self.pin.clear();
        } else if self.pin.len() >= right.len() {
            self.pin.clear();
            self.say(SYSTEM_PID, LogcatLevel::Warning, "LockSettingsService", "wrong PIN");
        }
    }
}
