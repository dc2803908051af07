//! Every screen can be painted, and `docs/virtual-phone.md` is up to date.
//!
//! `UPDATE_DOCS=1 cargo test -p sinew-sim` rewrites the page and its pictures. `SINEW_PICTURES` names a
//! folder for pictures of all screens, to look at.

use std::path::PathBuf;

use super::act::{AppScreen, Dialog, Panel, StockApp, TextField};
use super::adbd::shell::formats;
use super::*;

/// What to do to a fresh phone before the picture is taken.
type Prepare = fn(&mut PhoneMachine);

const SCREENS: &[(&str, Prepare)] = &[
    ("home", |_| {}),
    ("drawer", |machine| machine.place = machine::Overlay::Drawer),
    ("recents", |machine| {
        machine.launch(StockApp::Notes);
        machine.launch(StockApp::Calculator);
        machine.show_recents();
    }),
    ("calculator", |machine| {
        machine.launch(StockApp::Calculator);
        "12.5*(3+4)".chars().for_each(|key| machine.calculator.press(key));
    }),
    ("notes", |machine| {
        machine.launch(StockApp::Notes);
    }),
    ("note", |machine| {
        machine.launch(StockApp::Notes);
        let number = machine.notes.create();
        machine.open(AppScreen::Note(number));
        machine.set_text(TextField::NoteTitle, "Für Zoë 🎉");
        machine.set_text(
            TextField::NoteBody,
            "Brot, Äpfel & Käse 🍞\nשלום (עולם) 123\nمرحبا بالعالم\nΚαλημέρα κόσμε\nПривет, мир! ☕",
        );
    }),
    ("dialog", |machine| {
        machine.open(AppScreen::Note(3));
        machine.dialog = Some(Dialog::DeleteNote(3));
    }),
    ("contacts", |machine| {
        machine.launch(StockApp::Contacts);
    }),
    ("contact", |machine| machine.open(AppScreen::Contact(42))),
    ("gallery", |machine| {
        machine.launch(StockApp::Gallery);
    }),
    ("map", |machine| machine.open(AppScreen::Picture(0))),
    ("map-zoomed", |machine| {
        machine.open(AppScreen::Picture(0));
        let camera = art::Camera { x: 0.48, y: 0.56, zoom: 3.2 };
        machine.camera = camera;
    }),
    ("clock", |machine| {
        machine.launch(StockApp::Clock);
    }),
    ("settings", |machine| {
        machine.launch(StockApp::Settings);
    }),
    ("settings-dark", |machine| {
        machine.put_setting("secure/ui_night_mode", "2");
        machine.open(AppScreen::SettingsPage(6));
    }),
    ("shade", |machine| machine.show_panel(Some(Panel::Notifications))),
    ("quick-settings", |machine| machine.show_panel(Some(Panel::QuickSettings))),
    ("lock", |machine| {
        machine.sleep();
        machine.wake();
    }),
    ("lock-pin", |machine| {
        machine.setup.lock = LockScreen::Pin("1234".to_owned());
        machine.sleep();
        machine.wake();
    }),
    ("browser", |machine| {
        machine.open_url("https://example.org/");
    }),
    ("vault", |machine| {
        machine.launch(StockApp::Vault);
    }),
    ("home-landscape", |machine| machine.turn(1)),
    ("calculator-landscape", |machine| {
        machine.turn(1);
        machine.launch(StockApp::Calculator);
    }),
];

/// The pictures that the documentation shows.
const SHOWN: [&str; 4] = ["home", "note", "map-zoomed", "quick-settings"];

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

const INTRODUCTION: &str = "\
# The virtual phone

Printed from the code. A little phone of its own, for trying Sinew without hardware and for testing it: apps with a \
back stack, a keyboard, a clipboard, a log, notifications, rotation, a lock. What it shows, what it tells an \
accessibility service and what a finger can touch come from one and the same tree, so they agree. It has no clock of \
its own: tests step its time, and the same touches always lead to the same screen.

![Home screen](images/phone-home.png) ![A note in five scripts](images/phone-note.png) \
![The map, zoomed in](images/phone-map-zoomed.png) ![Quick settings](images/phone-quick-settings.png)

It can be told to refuse its tree, its screen or its touch, to be slow, and to be unplugged in the middle of a command.

## Its apps

";

const OVER_ADB: &str = "
The vault's screen is secure: no picture of it can be taken, and since Android 14 its balance is hidden from services \
that are no accessibility tools. The passphrase is `sesame`. The clock never comes to rest; its activity `.CrashActivity` \
crashes it, and `.HangActivity` lets Android report that it does not answer.

Two more have no screen: a shopping list whose tools can be tried, and the companion, so that activities of apps that you \
install can be called. On a real phone `sinew phones install-companion` installs the companion. \
Apps that you install have their version, times and permissions in `dumpsys package`, and can be updated, granted and \
refused permissions, cleared and removed.

## Over adb

It listens as adbd does, over TCP and without authentication, so the real `adb connect` works, and with it programs that \
use adb: adbutils, and mobile-mcp but for its list of apps, which runs Java on the phone. `shell`, `exec` (with it `adb install`, \
streamed), `sync`, `framebuffer:`, `tcpip:` and `reverse:` (listed; nothing on the phone connects) are served; ports are \
refused. The shell is an interpreter of its own (quotes, pipes, lists, groups, redirections, `$(…)`, `$((…))`, `if`, `for`, \
`while`, `read`, `trap`, patterns `*` and `?` for files; no functions, no `case`) and never runs a command of the host; `sed`, `awk` and \
`find` know what scripts for phones use. `screenrecord` writes MP4 files of JPEG pictures, two a second. uiautomator2, agent-device and Appium's UiAutomator2 driver \
(tried with 3.7, 0.21 and 8.7) find the phone, run commands and, in agent-device, list and open apps, tap, go back and take screenshots, until they start \
a program of their own on it, which a phone without Java cannot run. Pinch, clipboard and text beyond a US keyboard cannot be done by a \
stock shell, and here they cannot either.

It runs no Java, but for one program where it is told to: Sinew's agent, the same classes that run on phones, on a JVM \
of this computer (`java -cp agent-host.jar sinew.agent.HostMain`) over this phone's screen, clipboard and installed apps. \
While that reads the screen `uiautomator dump` fails, as on phones. It can be killed in the middle of a call.

One thing is kinder than a real phone: `uiautomator dump` looks whether the screen rests and answers at once, where a real \
one watches it for a second and gives up after ten. `--latency` makes every command slow.

A command answers in the form of Android 9, 11, 13 or 15. No real phone was at hand: this is what each form was modelled on.

";

/// The page, as the code would have it.
fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("| app | package | starts |\n|---|---|---|\n");
    for entry in StockApp::ALL.map(StockApp::entry) {
        page.push_str(&format!("| {} | `{}` | `{}` |\n", entry.label, entry.package, entry.activity));
    }
    page + OVER_ADB + &formats::to_markdown()
}

#[test]
fn the_page_about_the_virtual_phone_is_fresh() {
    let path = docs().join("virtual-phone.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page(), "docs/virtual-phone.md is stale; rewrite it with UPDATE_DOCS=1 cargo test -p sinew-sim");
    for name in SHOWN {
        assert!(docs().join(format!("images/phone-{name}.png")).is_file(), "{name}");
    }
}

#[test]
fn every_screen_can_be_painted_and_shows_something() {
    let folder = std::env::var_os("SINEW_PICTURES").map(PathBuf::from);
    for (name, prepare) in SCREENS {
        let mut machine = PhoneMachine::new(PhoneSetup::default());
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
        }
        if SHOWN.contains(name) && std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(docs().join(format!("images/phone-{name}.png")), canvas.shrunk(3).to_small_png()).unwrap();
        }
    }
}

#[test]
fn no_screen_is_too_small_or_too_large_to_be_laid_out_and_painted() {
    for (size, density) in [((200, 200), 1200), ((200, 3000), 160), ((3000, 200), 72)] {
        for (name, prepare) in SCREENS {
            let mut machine = PhoneMachine::new(PhoneSetup { size, density, ..PhoneSetup::default() });
            prepare(&mut machine);
            machine.paint();
            machine.tree();
            for (x, y) in [(0.0, 0.0), (100.0, 100.0), (199.0, 199.0)] {
                for phase in [touch::TouchPhase::Down, touch::TouchPhase::Up] {
                    machine.pointer(touch::Pointer { finger: 0, phase, x, y });
                }
            }
            assert_eq!(machine.size(), if name.ends_with("landscape") { (size.1, size.0) } else { size });
        }
    }
}
