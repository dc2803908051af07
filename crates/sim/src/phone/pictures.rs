//! Every screen can be painted; on request the pictures are written to a folder to look at.

use std::path::PathBuf;

use super::act::{App, Dialog, Field, Panel, Screen};
use super::*;

/// What to do to a fresh phone before the picture is taken.
type Prepare = fn(&mut Machine);

const SCREENS: &[(&str, Prepare)] = &[
    ("home", |_| {}),
    ("drawer", |machine| machine.place = machine::Place::Drawer),
    ("recents", |machine| {
        machine.launch(App::Notes);
        machine.launch(App::Calculator);
        machine.show_recents();
    }),
    ("calculator", |machine| {
        machine.launch(App::Calculator);
        "12.5*(3+4)".chars().for_each(|key| machine.calculator.press(key));
    }),
    ("notes", |machine| {
        machine.launch(App::Notes);
    }),
    ("note", |machine| {
        machine.launch(App::Notes);
        let number = machine.notes.create();
        machine.open(Screen::Note(number));
        machine.set_text(Field::NoteTitle, "Für Zoë 🎉");
        machine.set_text(
            Field::NoteBody,
            "Brot, Äpfel & Käse 🍞\nשלום (עולם) 123\nمرحبا بالعالم\nΚαλημέρα κόσμε\nПривет, мир! ☕",
        );
    }),
    ("dialog", |machine| {
        machine.open(Screen::Note(3));
        machine.dialog = Some(Dialog::DeleteNote(3));
    }),
    ("contacts", |machine| {
        machine.launch(App::Contacts);
    }),
    ("contact", |machine| machine.open(Screen::Contact(42))),
    ("gallery", |machine| {
        machine.launch(App::Gallery);
    }),
    ("map", |machine| machine.open(Screen::Picture(0))),
    ("map-zoomed", |machine| {
        machine.open(Screen::Picture(0));
        let camera = art::Camera { x: 0.48, y: 0.56, zoom: 3.2 };
        machine.camera = camera;
    }),
    ("clock", |machine| {
        machine.launch(App::Clock);
    }),
    ("settings", |machine| {
        machine.launch(App::Settings);
    }),
    ("settings-dark", |machine| {
        machine.put_setting("secure/ui_night_mode", "2");
        machine.open(Screen::SettingsPage(6));
    }),
    ("shade", |machine| machine.show_panel(Some(Panel::Notifications))),
    ("quick-settings", |machine| machine.show_panel(Some(Panel::QuickSettings))),
    ("lock", |machine| {
        machine.sleep();
        machine.wake();
    }),
    ("lock-pin", |machine| {
        machine.setup.lock = Lock::Pin("1234".to_owned());
        machine.sleep();
        machine.wake();
    }),
    ("browser", |machine| {
        machine.open_url("https://example.org/");
    }),
    ("vault", |machine| {
        machine.launch(App::Vault);
    }),
    ("home-landscape", |machine| machine.turn(1)),
    ("calculator-landscape", |machine| {
        machine.turn(1);
        machine.launch(App::Calculator);
    }),
];

/// The pictures that the documentation shows.
const SHOWN: [&str; 4] = ["home", "note", "map-zoomed", "quick-settings"];

#[test]
fn every_screen_can_be_painted_and_shows_something() {
    let folder = std::env::var_os("SINEW_PICTURES").map(PathBuf::from);
    for (name, prepare) in SCREENS {
        let mut machine = Machine::new(Setup::default());
        prepare(&mut machine);
        let canvas = machine.paint();
        assert_eq!((canvas.width, canvas.height), machine.size());
        let colors: std::collections::HashSet<&[u8]> = canvas.bytes().chunks_exact(4).step_by(97).collect();
        if *name == "vault" {
            assert!(colors.len() < 20, "a secure screen is black");
        } else {
            assert!(colors.len() > 5, "{name} shows nothing");
        }
        if let Some(folder) = &folder {
            std::fs::write(folder.join(format!("{name}.png")), canvas.shrunk(2).to_png()).unwrap();
            if SHOWN.contains(name) {
                let path = folder.join(format!("phone-{name}.png"));
                std::fs::write(path, canvas.shrunk(3).to_small_png()).unwrap();
            }
        }
    }
}

#[test]
fn no_screen_is_too_small_or_too_large_to_be_laid_out_and_painted() {
    for (size, density) in [((200, 200), 1200), ((200, 3000), 160), ((3000, 200), 72)] {
        for (name, prepare) in SCREENS {
            let mut machine = Machine::new(Setup { size, density, ..Setup::default() });
            prepare(&mut machine);
            machine.paint();
            machine.tree();
            for (x, y) in [(0.0, 0.0), (100.0, 100.0), (199.0, 199.0)] {
                for phase in [touch::Phase::Down, touch::Phase::Up] {
                    machine.pointer(touch::Pointer { finger: 0, phase, x, y });
                }
            }
            assert_eq!(machine.size(), if name.ends_with("landscape") { (size.1, size.0) } else { size });
        }
    }
}
