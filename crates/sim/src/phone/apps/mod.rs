//! The apps. Each builds its screens from the phone's state; what a touch does is in [`super::acts`].

mod browser;
mod calculator;
mod clock;
mod contacts;
mod gallery;
mod notes;
mod parts;
mod settings;
mod vault;

pub(super) use browser::Browser;
pub(super) use calculator::Calculator;
pub(super) use clock::Stopwatch;
pub(super) use contacts::Contacts;
pub(super) use notes::Notes;
pub(super) use parts::field;
pub(super) use settings::default_settings;

use super::act::AppScreen;
use super::geometry::PixelRect;
use super::machine::PhoneMachine;
use super::view::View;

/// Builds a screen that will be placed in `area`.
pub(super) fn screen(machine: &PhoneMachine, screen: AppScreen, area: PixelRect) -> View {
    match screen {
        AppScreen::Calculator => calculator::screen(machine),
        AppScreen::Notes => notes::list(machine),
        AppScreen::Note(number) => notes::editor(machine, number),
        AppScreen::Contacts => contacts::list(machine, area),
        AppScreen::Contact(index) => contacts::card(machine, index),
        AppScreen::Gallery => gallery::grid(machine),
        AppScreen::Picture(index) => gallery::picture(machine, index),
        AppScreen::Clock => clock::screen(machine),
        AppScreen::Browser => browser::screen(machine),
        AppScreen::Vault => vault::screen(machine),
        AppScreen::Settings => settings::main(machine),
        AppScreen::SettingsPage(index) => settings::page(machine, index),
    }
}
