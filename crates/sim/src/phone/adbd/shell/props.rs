//! Properties, settings, providers, and `cmd`.

use super::super::connection::Closed;
use super::dumpsys::DISPLAY;
use super::installer::is_install;
use super::{Io, Shell};
use crate::phone::act::Panel;
use crate::phone::android::Android;
use crate::phone::machine::{KEYBOARD, PhoneMachine};

fn properties(machine: &PhoneMachine) -> Vec<(&'static str, String)> {
    let setup = &machine.setup;
    let android = setup.android;
    let (build, release) = (android.build(), android.release());
    let pairs = [
        ("persist.sys.locale", "en-US".to_owned()),
        ("persist.sys.timezone", "UTC".to_owned()),
        ("ro.build.characteristics", "phone".to_owned()),
        ("ro.build.display.id", build.to_owned()),
        ("ro.build.fingerprint", format!("sinew/virtual/virtual:{release}/{build}/1:user/release-keys")),
        ("ro.build.id", build.to_owned()),
        ("ro.build.type", "user".to_owned()),
        ("ro.build.version.release", release.to_owned()),
        ("ro.build.version.sdk", android.sdk().to_string()),
        ("ro.build.version.security_patch", android.security_patch().to_owned()),
        ("ro.debuggable", "0".to_owned()),
        ("ro.hardware", "virtual".to_owned()),
        ("ro.product.brand", "sinew".to_owned()),
        ("ro.product.cpu.abi", "arm64-v8a".to_owned()),
        ("ro.product.cpu.abilist", "arm64-v8a,armeabi-v7a,armeabi".to_owned()),
        ("ro.product.device", "virtual".to_owned()),
        ("ro.product.manufacturer", "Sinew".to_owned()),
        ("ro.product.model", setup.model.clone()),
        ("ro.product.name", "sinew_virtual".to_owned()),
        ("ro.secure", "1".to_owned()),
        ("ro.serialno", setup.serial.clone()),
        ("ro.sf.lcd_density", setup.density.to_string()),
        ("service.adb.tcp.port", "5555".to_owned()),
        ("sys.boot_completed", "1".to_owned()),
    ];
    pairs.into()
}

impl Shell {
    pub(super) fn getprop(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let all = self.handset.with(|machine| properties(machine));
        match args {
            [] => all.iter().for_each(|(name, value)| io.line(format!("[{name}]: [{value}]"))),
            [name, rest @ ..] => {
                let found = all.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
                io.line(found.or(rest.first().copied()).unwrap_or(""));
            }
        }
        0
    }

    pub(super) fn settings(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let args: Vec<&str> = match args {
            ["--user", _, rest @ ..] => rest.to_vec(),
            all => all.to_vec(),
        };
        let known = args.get(1).is_some_and(|space| matches!(*space, "system" | "secure" | "global"));
        match args.as_slice() {
            ["get", space, key, ..] if known => {
                let value = self.handset.with(|machine| machine.settings.get(&format!("{space}/{key}")).cloned());
                io.line(value.as_deref().unwrap_or("null"));
                0
            }
            ["put", space, key, value, ..] if known => {
                self.handset.with(|machine| {
                    // A table of settings that nobody empties must not grow for ever.
                    if machine.settings.len() < 1000 {
                        machine.put_setting(&format!("{space}/{key}"), value);
                    }
                });
                0
            }
            ["delete", space, key, ..] if known => {
                let gone = self.handset.with(|machine| machine.settings.remove(&format!("{space}/{key}")).is_some());
                io.line(format!("Deleted {} rows", u8::from(gone)));
                0
            }
            ["list", space] if known => {
                let prefix = format!("{space}/");
                self.handset.with(|machine| {
                    for (key, value) in &machine.settings {
                        if let Some(key) = key.strip_prefix(&prefix) {
                            io.line(format!("{key}={value}"));
                        }
                    }
                });
                0
            }
            _ => {
                io.error("Invalid command or namespace\nSettings provider (settings) commands:\n  get [--user <USER_ID> | current] NAMESPACE KEY\n  put NAMESPACE KEY VALUE\n  list NAMESPACE");
                255
            }
        }
    }

    pub(super) fn content(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let value = |name: &str| args.iter().position(|arg| *arg == name).and_then(|at| args.get(at + 1)).copied();
        let Some(uri) = value("--uri").and_then(|uri| uri.strip_prefix("content://")) else {
            io.error("[ERROR] Unsupported operation or no --uri given");
            return if self.android() < Android::V11 { 0 } else { 1 };
        };
        let (authority, path) = uri.split_once('/').unwrap_or((uri, ""));
        let space = path.split('/').next().unwrap_or_default();
        match (args.first().copied().unwrap_or(""), authority) {
            ("query", "settings") => {
                let prefix = format!("{space}/");
                self.handset.with(|machine| {
                    let rows =
                        machine.settings.iter().filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?, value)));
                    for (index, (key, value)) in rows.enumerate() {
                        io.line(format!("Row: {index} _id={index}, name={key}, value={value}"));
                    }
                });
                0
            }
            ("insert" | "update", "settings") => {
                let bound = |name: &str| {
                    args.iter().find_map(|arg| {
                        arg.strip_prefix(name)?.strip_prefix(':')?.split_once(':').map(|(_, value)| value)
                    })
                };
                if let (Some(key), Some(value)) = (bound("name"), bound("value")) {
                    self.settings(&["put", space, key, value], io);
                }
                0
            }
            ("query", "com.android.contacts") => {
                self.handset.with(|machine| {
                    for index in 0..200 {
                        io.line(format!("Row: {index} _id={index}, display_name={}", machine.contacts.name(index)));
                    }
                });
                0
            }
            _ => {
                io.error(format!("Error while accessing provider:{authority}"));
                io.error(format!("java.lang.IllegalStateException: Could not find provider: {authority}"));
                io.error("\tat com.android.commands.content.Content$Command.execute(Content.java:521)");
                if self.android() < Android::V11 { 0 } else { 1 }
            }
        }
    }

    pub(super) fn ime(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let own = format!("{KEYBOARD}/.LatinIME");
        match args {
            ["list", flags @ ..] if flags.contains(&"-s") => io.line(own),
            ["list", ..] => io.line(format!("{own}:\n  mId={own} mSettingsActivityName=null")),
            ["set" | "enable", id, ..] if *id == own => io.line(format!("Input method {id} selected for user #0")),
            ["set" | "enable", id, ..] => {
                io.error(format!("Unknown input method {id} cannot be selected for user #0"));
                return 255;
            }
            _ => {}
        }
        0
    }

    pub(super) fn svc(&self, args: &[&str]) -> u8 {
        self.handset.with(|machine| match args {
            ["wifi", word] => machine.put_setting("global/wifi_on", if *word == "enable" { "1" } else { "0" }),
            ["bluetooth", word] => {
                machine.put_setting("global/bluetooth_on", if *word == "enable" { "1" } else { "0" })
            }
            ["power", "stayon", word] => {
                // Whatever it is plugged into: AC, USB and wireless.
                let sources = match *word {
                    "true" => "7",
                    "usb" => "2",
                    "ac" => "1",
                    _ => "0",
                };
                machine.put_setting("global/stay_on_while_plugged_in", sources);
            }
            _ => {}
        });
        0
    }

    /// `cmd <service> …`: commands of running services.
    pub(super) async fn cmd(&mut self, args: &[&str], io: &mut Io<'_, '_>) -> Result<u8, Closed> {
        let Some((service, rest)) = args.split_first() else {
            io.error("cmd: No service specified; use -l to list all services");
            return Ok(20);
        };
        let command = match *service {
            "activity" => "am",
            "window" => "wm",
            "package" => "pm",
            other => other,
        };
        if let Some(code) = self.answer_mistake(command, rest, io) {
            return Ok(code);
        }
        Ok(match *service {
            "statusbar" => {
                let panel = match rest.first().copied() {
                    Some("expand-notifications") => Some(Panel::Notifications),
                    Some("expand-settings") => Some(Panel::QuickSettings),
                    Some("collapse") => None,
                    other => {
                        io.error(format!("Unknown command: {}", other.unwrap_or_default()));
                        return Ok(255);
                    }
                };
                self.handset.with(|machine| machine.show_panel(panel));
                0
            }
            "package" if is_install(rest) => self.install(rest, io).await,
            "media_session" => self.handset.with(|machine| volume(machine, rest, io)),
            "package" => self.pm(rest, io),
            "activity" => self.am(rest, io).await,
            "app_function" if self.handset.virtual_apps().iter().any(|virtual_app| virtual_app.functions.is_some()) => {
                self.app_function(rest, io)
            }
            "window" => self.wm(rest, io),
            "settings" => self.settings(rest, io),
            "content" => self.content(rest, io),
            "input" => self.input(rest, io).await,
            "input_method" => 0,
            "display" if rest == ["get-displays"] && self.android() >= Android::V13 => {
                let (awake, (width, height)) = self.handset.with(|machine| (machine.is_awake(), machine.size()));
                let state = if awake { "ON" } else { "OFF" };
                io.line("Displays:");
                io.line(format!("Display id 0: DisplayInfo{{\"Built-in Screen\", displayId 0, state {state}, type INTERNAL, uniqueId \"local:{DISPLAY}\", app {width} x {height}, real {width} x {height}}}, isValid=true"));
                0
            }
            "uimode" => {
                match rest {
                    ["night", "yes"] => self.handset.with(|machine| machine.put_setting("secure/ui_night_mode", "2")),
                    ["night", "no"] => self.handset.with(|machine| machine.put_setting("secure/ui_night_mode", "1")),
                    _ => {}
                }
                let night = self.handset.with(|machine| machine.is_on("secure/ui_night_mode"));
                io.line(format!("Night mode: {}", if night { "yes" } else { "no" }));
                0
            }
            "locale" | "notification" | "overlay" | "appops" | "power" | "battery" | "wifi" | "connectivity" => 0,
            "clipboard" | "accessibility" | "display" | "audio" | "vibrator" => {
                io.error("No shell command implementation.");
                255
            }
            "-l" => {
                io.line("Currently running services:\n  activity\n  clipboard\n  display\n  input\n  package\n  settings\n  statusbar\n  window");
                0
            }
            other => {
                io.error(format!("cmd: Can't find service: {other}"));
                20
            }
        })
    }
}

/// `cmd media_session volume --stream N [--get | --set LEVEL]`.
fn volume(machine: &mut PhoneMachine, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
    let value = |name: &str| args.iter().position(|arg| *arg == name).and_then(|at| args.get(at + 1)).copied();
    let stream = value("--stream").unwrap_or("3");
    let (name, highest) = match stream {
        "2" => ("ring", 7),
        "4" => ("alarm", 7),
        "5" => ("notification", 7),
        _ => ("music", 15),
    };
    if args.first() != Some(&"volume") {
        io.error(format!("Error: unknown command '{}'", args.first().copied().unwrap_or_default()));
        return 1;
    }
    let key = format!("system/volume_{name}");
    io.line(format!("[V] will control stream={stream} (STREAM_{})", name.to_uppercase()));
    if let Some(level) = value("--set").and_then(|level| level.parse::<u32>().ok()) {
        machine.put_setting(&key, &level.min(highest).to_string());
    }
    if args.contains(&"--get") {
        let level = machine.settings.get(&key).map_or("5", String::as_str);
        io.line(format!("[V] volume is {level} in range [0..{highest}]"));
    }
    0
}
