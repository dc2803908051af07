//! `input`: taps, swipes, keys and text, one finger at a time.

use std::time::Duration;

use sinew_phones::Stroke;

use super::{Io, Shell};
use crate::phone::android::Android;
use crate::phone::handset::Denial;
use crate::phone::keys::{Modifiers, code};
use crate::phone::touch::{Pointer, TouchPhase};

const SOURCES: [&str; 11] = [
    "touchscreen",
    "keyboard",
    "mouse",
    "stylus",
    "touchpad",
    "trackball",
    "gamepad",
    "dpad",
    "joystick",
    "touchnavigation",
    "rotaryencoder",
];

/// Names after `KEYCODE_`, beside letters and digits.
const NAMES: [(&str, u32); 40] = [
    ("HOME", 3),
    ("BACK", 4),
    ("STAR", 17),
    ("POUND", 18),
    ("DPAD_UP", 19),
    ("DPAD_DOWN", 20),
    ("DPAD_LEFT", 21),
    ("DPAD_RIGHT", 22),
    ("DPAD_CENTER", 23),
    ("VOLUME_UP", 24),
    ("VOLUME_DOWN", 25),
    ("POWER", 26),
    ("CAMERA", 27),
    ("COMMA", 55),
    ("PERIOD", 56),
    ("SHIFT_LEFT", 59),
    ("TAB", 61),
    ("SPACE", 62),
    ("ENTER", 66),
    ("DEL", 67),
    ("MINUS", 69),
    ("EQUALS", 70),
    ("SLASH", 76),
    ("AT", 77),
    ("PLUS", 81),
    ("MENU", 82),
    ("NOTIFICATION", 83),
    ("SEARCH", 84),
    ("PAGE_UP", 92),
    ("PAGE_DOWN", 93),
    ("ESCAPE", 111),
    ("FORWARD_DEL", 112),
    ("CTRL_LEFT", 113),
    ("MOVE_HOME", 122),
    ("MOVE_END", 123),
    ("APP_SWITCH", 187),
    ("SLEEP", 223),
    ("WAKEUP", 224),
    ("COPY", 278),
    ("PASTE", 279),
];

impl Shell {
    pub(super) async fn input(&mut self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let android = self.android();
        let mut args = args;
        while let Some((first, rest)) = args.split_first() {
            match *first {
                "-d" => args = rest.get(1..).unwrap_or_default(),
                source if SOURCES.contains(&source) => args = rest,
                _ => break,
            }
        }
        let Some((command, rest)) = args.split_first() else { return usage(android, "", io) };
        if self.handset.is_denied(Denial::Input) {
            return forbidden(android, command, io);
        }
        let numbers: Vec<f32> =
            rest.iter().filter_map(|arg| arg.parse().ok()).filter(|value: &f32| value.is_finite()).collect();
        let ms = |value: f32| Duration::from_millis(value.clamp(0.0, 120_000.0) as u64);
        match (*command, numbers.as_slice()) {
            ("tap", [x, y]) => {
                let stroke = Stroke::hold(*x, *y, Duration::ZERO, Duration::ZERO);
                self.play(&[stroke]).await
            }
            ("swipe" | "draganddrop", [x1, y1, x2, y2, time @ ..]) if time.len() < 2 => {
                let time = time.first().map_or(Duration::from_millis(300), |time| ms(*time));
                let mut stroke = Stroke::line((*x1, *y1), (*x2, *y2), Duration::ZERO, time);
                if *command == "draganddrop" {
                    let hold = Duration::from_millis(600);
                    stroke = Stroke::line((*x1, *y1), (*x2, *y2), hold, time);
                    stroke.points.insert(0, sinew_phones::Point { x: *x1, y: *y1, at: Duration::ZERO });
                }
                self.play(&[stroke]).await
            }
            ("motionevent", [x, y]) if android >= Android::V11 => {
                let phase = match rest.first().map(|kind| kind.to_ascii_uppercase()).as_deref() {
                    Some("DOWN") => TouchPhase::Down,
                    Some("MOVE") => TouchPhase::Move,
                    Some("UP") => TouchPhase::Up,
                    Some("CANCEL") => TouchPhase::Cancel,
                    _ => return usage(android, command, io),
                };
                self.handset.with(|machine| machine.pointer(Pointer { finger: 0, phase, x: *x, y: *y }));
                0
            }
            ("text", _) if !rest.is_empty() => self.input_text(&rest.join(" "), android, io),
            ("keyevent", _) if !rest.is_empty() => {
                let (keys, options): (Vec<&str>, Vec<&str>) = rest.iter().partition(|arg| !arg.starts_with("--"));
                let long = options.contains(&"--longpress");
                for key in keys {
                    let key = find_key(key);
                    // Held long, the power key only shows a menu, which this phone has not.
                    if !(long && key == code::POWER) {
                        self.handset.with(|machine| machine.key(key, Modifiers::default()));
                    }
                }
                0
            }
            ("keycombination", _) if android >= Android::V13 && rest.len() >= 2 => {
                let keys: Vec<u32> = rest.iter().filter(|arg| !arg.starts_with('-')).map(|key| find_key(key)).collect();
                let held = Modifiers {
                    shift: keys.iter().any(|key| matches!(key, 59 | 60)),
                    ctrl: keys.iter().any(|key| matches!(key, 113 | 114)),
                };
                for key in keys.into_iter().filter(|key| !matches!(key, 57..=60 | 113 | 114)) {
                    self.handset.with(|machine| machine.key(key, held));
                }
                0
            }
            ("press" | "roll" | "scroll", _) => 0,
            _ if android >= Android::V13 && KNOWN.contains(command) => {
                missing_argument(command, rest.last().unwrap_or(command), io)
            }
            _ => usage(android, command, io),
        }
    }

    async fn play(&self, strokes: &[Stroke]) -> u8 {
        u8::from(self.handset.play(strokes).await.is_err())
    }

    /// Only what a US keyboard has; anything else, and nothing at all is typed.
    fn input_text(&self, text: &str, android: Android, io: &mut Io<'_, '_>) -> u8 {
        let text = text.replace("%s", " ");
        if !text.chars().all(|ch| ch.is_ascii() && !ch.is_ascii_control()) {
            let message = "java.lang.NullPointerException: Attempt to get length of null array";
            if android < Android::V11 {
                io.error(format!("Exception in thread \"main\" {message}"));
                io.error("\tat com.android.commands.input.Input.sendText(Input.java:187)");
                return 1;
            }
            io.error(format!("\nException occurred while executing 'text':\n{message}"));
            io.error("\tat com.android.server.input.InputShellCommand.sendText(InputShellCommand.java:288)");
            return 255;
        }
        self.handset.with(|machine| {
            if !machine.type_text(&text) {
                text.chars().for_each(|ch| machine.key_character(ch));
            }
        });
        0
    }
}

fn find_key(name: &str) -> u32 {
    if let Ok(code) = name.parse() {
        return code;
    }
    let name = name.strip_prefix("KEYCODE_").unwrap_or(name);
    let mut chars = name.chars();
    if let (Some(ch), None) = (chars.next(), chars.next()) {
        match ch {
            '0'..='9' => return 7 + ch as u32 - '0' as u32,
            'A'..='Z' => return code::A + ch as u32 - 'A' as u32,
            _ => {}
        }
    }
    // An unknown name is sent as key 0, as old versions do; nothing listens to it.
    NAMES.iter().find(|(own, _)| *own == name).map_or(0, |(_, code)| *code)
}

/// What the command says of a line that it cannot read. Since Android 13 it is a shell command of the system server,
/// which answers as all of those do.
fn usage(android: Android, command: &str, io: &mut Io<'_, '_>) -> u8 {
    if android >= Android::V13 {
        return modern_usage(command, io);
    }
    let known = ["tap", "swipe", "text", "keyevent", "draganddrop", "motionevent", "press", "roll"].contains(&command);
    match (command.is_empty(), known) {
        (true, _) => {}
        (_, true) => io.error(format!("Error: Invalid arguments for command: {command}")),
        (_, false) => io.error(format!("Error: Unknown command: {command}")),
    }
    let text = "Usage: input [<source>] [-d DISPLAY_ID] <command> [<arg>...]\n\nThe commands and default sources are:\n      text <string> (Default: touchscreen)\n      keyevent [--longpress] <key code number or name> ... (Default: keyboard)\n      tap <x> <y> (Default: touchscreen)\n      swipe <x1> <y1> <x2> <y2> [duration(ms)] (Default: touchscreen)\n      draganddrop <x1> <y1> <x2> <y2> [duration(ms)] (Default: touchscreen)";
    io.error(text);
    if android < Android::V11 { 0 } else { 255 }
}

const KNOWN: [&str; 9] =
    ["tap", "swipe", "text", "keyevent", "draganddrop", "motionevent", "press", "roll", "keycombination"];

pub(super) fn modern_usage(command: &str, io: &mut Io<'_, '_>) -> u8 {
    if command.is_empty() {
        io.line("Usage: input [<source>] [-d DISPLAY_ID] <command> [<arg>...]\n\nThe sources are: ");
        SOURCES.iter().for_each(|source| io.line(format!("      {source}")));
        io.line("\n[-d DISPLAY_ID]: specify the display ID.\n      (Default: -1 for key event, 0 for motion event if not specified.)\n\nThe commands and default sources are:\n      text <string> (Default: keyboard)\n      keyevent [--longpress|--duration <duration to hold key down in ms>] [--doubletap] [--async] [--delay <duration between keycodes in ms>] <key code number or name> ... (Default: keyboard)\n      tap <x> <y> (Default: touchscreen)\n      swipe <x1> <y1> <x2> <y2> [duration(ms)] (Default: touchscreen)\n      draganddrop <x1> <y1> <x2> <y2> [duration(ms)] (Default: touchscreen)\n      press (Default: trackball)\n      roll <dx> <dy> (Default: trackball)\n      motionevent <DOWN|UP|MOVE|CANCEL> <x> <y> (Default: touchscreen)\n      keycombination [-t duration(ms)] <key code 1> <key code 2> ... (Default: keyboard, the key order is important here.)");
        return 0;
    }
    if !KNOWN.contains(&command) {
        io.line(format!("Unknown command: {command}"));
        return 0;
    }
    missing_argument(command, command, io)
}

/// The exception of a shell command that wants one more argument.
pub(super) fn missing_argument(command: &str, after: &str, io: &mut Io<'_, '_>) -> u8 {
    exception(command, &format!("Argument expected after \"{after}\""), io)
}

pub(super) fn exception(command: &str, message: &str, io: &mut Io<'_, '_>) -> u8 {
    io.error(format!("\nException occurred while executing '{command}':"));
    io.error(format!("java.lang.IllegalArgumentException: {message}"));
    io.error("\tat com.android.modules.utils.BasicShellCommandHandler.exec(BasicShellCommandHandler.java:97)");
    255
}

/// What vendors say who forbid input from adb.
fn forbidden(android: Android, command: &str, io: &mut Io<'_, '_>) -> u8 {
    if android < Android::V11 {
        io.error("java.lang.SecurityException: Injecting to another application requires INJECT_EVENTS permission");
        io.error("\tat android.os.Parcel.createException(Parcel.java:1950)");
        return 1;
    }
    io.error(format!("\nException occurred while executing '{command}':"));
    io.error("java.lang.SecurityException: Injecting input events requires the caller (or the source of the instrumentation, if any) to have the INJECT_EVENTS permission.");
    io.error(
        "\tat com.android.server.input.InputManagerService.injectInputEventToTarget(InputManagerService.java:676)",
    );
    255
}
