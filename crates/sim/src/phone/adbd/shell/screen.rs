//! What is on the screen: `uiautomator`, `screencap`, `wm`.

use super::{Io, Shell};
use crate::phone::handset::Denial;
use crate::phone::machine::PhoneMachine;
use crate::phone::setup::LockScreen;

impl Shell {
    /// Fails with exit code 0, as the real one does: check the text.
    pub(super) fn uiautomator(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let Some(("dump", rest)) = args.split_first().map(|(first, rest)| (*first, rest)) else {
            io.line("Usage: uiautomator <subcommand> [options]\n\nAvailable subcommands:\n\nhelp: displays help message\n\nruntest: executes UI automation tests\n\ndump: creates an XML dump of current UI hierarchy\n    dump [--verbose][file]\n\nevents: prints out accessibility events until terminated");
            return 0;
        };
        let path = rest.iter().find(|arg| !arg.starts_with("--")).copied().unwrap_or("/sdcard/window_dump.xml");
        let denied = self.handset.is_denied(Denial::Tree);
        let compressed = rest.contains(&"--compressed");
        if self.handset.is_tree_held() {
            io.error("java.lang.IllegalStateException: UiAutomationService android.accessibilityservice.IAccessibilityServiceClient$Stub$Proxy already registered!");
            return 1;
        }
        let dump = self.handset.with(|machine| match machine.is_animated() {
            true => Err("ERROR: could not get idle state."),
            false if denied => Err("ERROR: null root node returned by UiTestAutomationBridge."),
            false => machine.dump(compressed).ok_or("ERROR: null root node returned by UiTestAutomationBridge."),
        });
        match dump {
            Err(trouble) => io.error(trouble),
            Ok(xml) => match self.store(path, xml.into_bytes(), false, io) {
                // The misspelling is Android's own.
                Ok(()) => io.line(format!("UI hierchary dumped to: {path}")),
                Err(trouble) => io.error(format!("java.io.FileNotFoundException: {path}: open failed: {trouble}")),
            },
        }
        0
    }

    pub(super) fn screencap(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let mut png = false;
        let mut target = None;
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match *arg {
                "-p" => png = true,
                "-d" => drop(args.next()),
                path => {
                    png |= path.ends_with(".png");
                    target = Some(path);
                }
            }
        }
        if self.handset.is_denied(Denial::Capture) {
            io.error("Capturing failed.");
            return 1;
        }
        let canvas = self.handset.with(|machine| machine.paint());
        let data = match png {
            true => canvas.to_png(),
            false => {
                // Width, height, format 1 (RGBA), colour space 0: the header since Android 9.
                let head = [canvas.width as u32, canvas.height as u32, 1, 0];
                let mut raw: Vec<u8> = head.into_iter().flat_map(u32::to_le_bytes).collect();
                raw.extend_from_slice(canvas.bytes());
                raw
            }
        };
        match target.map(|path| (path, self.store(path, data.clone(), false, io))) {
            None => io.bytes(&data),
            Some((_, Ok(()))) => {}
            Some((path, Err(trouble))) => {
                io.error(format!("Error opening file: {path} ({trouble})"));
                return 1;
            }
        }
        0
    }

    pub(super) fn wm(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let args: Vec<&str> = args.iter().copied().filter(|arg| !matches!(*arg, "-d" | "0")).collect();
        self.handset.with(|machine| match args.as_slice() {
            ["size"] => {
                let (width, height) = machine.setup.size;
                io.line(format!("Physical size: {width}x{height}"));
                if let Some((width, height)) = machine.size_override {
                    io.line(format!("Override size: {width}x{height}"));
                }
                0
            }
            ["size", "reset"] => {
                machine.size_override = None;
                0
            }
            ["size", size] => match size.split_once('x').map(|(w, h)| (w.parse(), h.parse())) {
                // The range within which a screen can still be laid out.
                Some((Ok(width), Ok(height))) if (200..=8000).contains(&width) && (200..=8000).contains(&height) => {
                    machine.size_override = Some((width, height));
                    0
                }
                _ => {
                    io.error(format!("Error: bad size {size}"));
                    255
                }
            },
            ["density"] => {
                io.line(format!("Physical density: {}", machine.setup.density));
                if let Some(density) = machine.density_override {
                    io.line(format!("Override density: {density}"));
                }
                0
            }
            ["density", "reset"] => {
                machine.density_override = None;
                0
            }
            ["density", value] => match value.parse() {
                Ok(density) if (72..=1200).contains(&density) => {
                    machine.density_override = Some(density);
                    0
                }
                _ => {
                    io.error("Error: density must be >= 72");
                    255
                }
            },
            ["dismiss-keyguard"] => {
                machine.dismiss_lock();
                0
            }
            ["user-rotation" | "set-user-rotation", rest @ ..] => rotate(machine, rest, io),
            [command, ..] => {
                io.line(format!("Unknown command: {command}"));
                255
            }
            [] => 255,
        })
    }
}

fn rotate(machine: &mut PhoneMachine, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
    match args {
        [] => {
            let free = machine.is_on("system/accelerometer_rotation");
            io.line(if free { "free".to_owned() } else { format!("lock {}", machine.rotation()) });
        }
        ["free"] => machine.put_setting("system/accelerometer_rotation", "1"),
        ["lock", turns @ ..] => {
            machine.put_setting("system/accelerometer_rotation", "0");
            // The filter above takes a lone "0" for a display; no number means upright.
            machine.put_setting("system/user_rotation", turns.first().copied().unwrap_or("0"));
        }
        _ => return 255,
    }
    0
}

/// Whether the phone asks for more than a swipe.
pub(super) fn is_lock_secure(machine: &PhoneMachine) -> bool {
    matches!(machine.setup.lock, LockScreen::Pin(_))
}
