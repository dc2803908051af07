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

pub use browser::Browser;
pub use calculator::Calculator;
pub use clock::Stopwatch;
pub use contacts::Contacts;
pub use notes::Notes;
pub use settings::default_settings;

use super::act::Screen;
use super::geometry::Rect;
use super::machine::Machine;
use super::view::View;

/// Builds a screen that will be placed in `area`.
pub fn screen(machine: &Machine, screen: Screen, area: Rect) -> View {
    match screen {
        Screen::Calculator => calculator::screen(machine),
        Screen::Notes => notes::list(machine),
        Screen::Note(number) => notes::editor(machine, number),
        Screen::Contacts => contacts::list(machine, area),
        Screen::Contact(index) => contacts::card(machine, index),
        Screen::Gallery => gallery::grid(machine),
        Screen::Picture(index) => gallery::picture(machine, index),
        Screen::Clock => clock::screen(machine),
        Screen::Browser => browser::screen(machine),
        Screen::Vault => vault::screen(machine),
        Screen::Settings => settings::main(machine),
        Screen::SettingsPage(index) => settings::page(machine, index),
    }
}
