//! Settings: a list of pages, each a list of switches, sliders and facts.

use std::collections::BTreeMap;

use super::super::act::{AppScreen, StockApp, TouchAction};
use super::super::art::Art;
use super::super::canvas::Rgba;
use super::super::machine::{KEYBOARD, PhoneMachine};
use super::super::view::{Align, View, column, label, row, scroller, space, view};
use super::parts::{badge, entry, toolbar};

enum SettingsLine {
    Switch(&'static str, &'static str),
    Slider(&'static str, &'static str, u32),
    Fact(&'static str, fn(&PhoneMachine) -> String),
    Build,
    Apps,
}

struct SettingsPage {
    title: &'static str,
    summary: &'static str,
    icon: char,
    color: u32,
    lines: &'static [SettingsLine],
}

const PAGES: &[SettingsPage] = &[
    SettingsPage {
        title: "Network & internet",
        summary: "Wi-Fi, airplane mode",
        icon: '📶',
        color: 0x1e88e5,
        lines: &[
            SettingsLine::Switch("Wi-Fi", "global/wifi_on"),
            SettingsLine::Switch("Airplane mode", "global/airplane_mode_on"),
            SettingsLine::Fact("Network name", |machine| {
                if machine.is_on("global/wifi_on") { "VirtualWifi".to_owned() } else { "Not connected".to_owned() }
            }),
        ],
    },
    SettingsPage {
        title: "Connected devices",
        summary: "Bluetooth",
        icon: '🎧',
        color: 0x3949ab,
        lines: &[SettingsLine::Switch("Bluetooth", "global/bluetooth_on")],
    },
    SettingsPage {
        title: "Apps",
        summary: "Everything installed",
        icon: '📦',
        color: 0x00897b,
        lines: &[SettingsLine::Apps],
    },
    SettingsPage {
        title: "Notifications",
        summary: "Do Not Disturb",
        icon: '🔔',
        color: 0xe53935,
        lines: &[
            SettingsLine::Switch("Do Not Disturb", "global/zen_mode"),
            SettingsLine::Fact("Waiting notifications", |machine| machine.notices.len().to_string()),
        ],
    },
    SettingsPage {
        title: "Battery",
        summary: "87%",
        icon: '🔋',
        color: 0x43a047,
        lines: &[
            SettingsLine::Fact("Charge", |_| "87%".to_owned()),
            SettingsLine::Switch("Battery Saver", "global/low_power"),
        ],
    },
    SettingsPage {
        title: "Sound & vibration",
        summary: "Volume, touch feedback",
        icon: '🔊',
        color: 0x8e24aa,
        lines: &[
            SettingsLine::Slider("Media volume", "system/volume_music", 15),
            SettingsLine::Switch("Touch vibration", "system/haptic_feedback_enabled"),
        ],
    },
    SettingsPage {
        title: "Display",
        summary: "Dark theme, brightness, rotation",
        icon: '💡',
        color: 0xfb8c00,
        lines: &[
            SettingsLine::Slider("Brightness level", "system/screen_brightness", 255),
            SettingsLine::Switch("Dark theme", "secure/ui_night_mode"),
            SettingsLine::Switch("Auto-rotate screen", "system/accelerometer_rotation"),
        ],
    },
    SettingsPage {
        title: "Security",
        summary: "Screen lock",
        icon: '🔒',
        color: 0x546e7a,
        lines: &[SettingsLine::Fact("Screen lock", |machine| {
            format!("{:?}", machine.setup.lock).split('(').next().unwrap_or_default().to_owned()
        })],
    },
    SettingsPage {
        title: "Location",
        summary: "Which apps may know where you are",
        icon: '📍',
        color: 0xd81b60,
        lines: &[SettingsLine::Switch("Use location", "secure/location_mode")],
    },
    SettingsPage {
        title: "Accessibility",
        summary: "Text size, animations",
        icon: '👓',
        color: 0x5e35b1,
        lines: &[SettingsLine::Fact("Font size", |machine| {
            machine.settings.get("system/font_scale").cloned().unwrap_or_default()
        })],
    },
    SettingsPage {
        title: "System",
        summary: "Languages, date and time",
        icon: '📅',
        color: 0x757575,
        lines: &[
            SettingsLine::Fact("Time zone", |_| "UTC".to_owned()),
            SettingsLine::Fact("Date", |machine| machine.wall().date().to_string()),
        ],
    },
    SettingsPage {
        title: "About phone",
        summary: "Model, version, build",
        icon: '📱',
        color: 0x6d4c41,
        lines: &[
            SettingsLine::Fact("Model", |machine| machine.setup.model.clone()),
            SettingsLine::Fact("Serial number", |machine| machine.setup.serial.clone()),
            SettingsLine::Fact("Android version", |machine| machine.setup.android.release().to_owned()),
            SettingsLine::Fact("Security update", |machine| machine.setup.android.security_patch().to_owned()),
            SettingsLine::Build,
        ],
    },
];

pub(crate) fn default_settings() -> BTreeMap<String, String> {
    let keyboard = format!("{KEYBOARD}/.LatinIME");
    let pairs = [
        ("global/wifi_on", "1"),
        ("global/bluetooth_on", "0"),
        ("global/airplane_mode_on", "0"),
        ("global/zen_mode", "0"),
        ("global/low_power", "0"),
        ("global/adb_enabled", "1"),
        ("global/development_settings_enabled", "0"),
        ("global/window_animation_scale", "1.0"),
        ("global/transition_animation_scale", "1.0"),
        ("global/animator_duration_scale", "1.0"),
        ("secure/ui_night_mode", "1"),
        ("secure/location_mode", "0"),
        ("secure/flashlight_enabled", "0"),
        ("secure/default_input_method", keyboard.as_str()),
        ("secure/enabled_input_methods", keyboard.as_str()),
        ("secure/android_id", "5157a1c0ffee0001"),
        ("system/accelerometer_rotation", "1"),
        ("system/user_rotation", "0"),
        ("system/screen_brightness", "140"),
        ("system/screen_off_timeout", "60000"),
        ("system/volume_music", "6"),
        ("system/haptic_feedback_enabled", "1"),
        ("system/font_scale", "1.0"),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

pub(super) fn main(machine: &PhoneMachine) -> View {
    let theme = machine.theme();
    let rows = PAGES.iter().enumerate().map(|(index, page)| {
        entry(machine, badge(page.icon, Rgba::hex(page.color), 40.0), page.title, page.summary)
            .height(74.0)
            .on_tap(TouchAction::Open(AppScreen::SettingsPage(index)))
    });
    column([
        toolbar(machine, "Settings", false, Vec::new()),
        scroller("settings", machine.offset("settings"), rows).id("recycler_view"),
    ])
    .back(theme.back)
    .fill()
}

pub(super) fn page(machine: &PhoneMachine, index: usize) -> View {
    let theme = machine.theme();
    let Some(page) = PAGES.get(index) else { return main(machine) };
    let rows = page.lines.iter().flat_map(|line| match line {
        SettingsLine::Switch(title, key) => vec![switch(machine, title, key)],
        SettingsLine::Slider(title, key, most) => vec![slider(machine, title, key, *most)],
        SettingsLine::Fact(title, value) => vec![fact(machine, title, &value(machine))],
        SettingsLine::Build => {
            vec![fact(machine, "Build number", machine.setup.android.build()).on_tap(TouchAction::BuildNumber)]
        }
        SettingsLine::Apps => StockApp::ALL
            .iter()
            .map(|app| {
                let about = app.entry();
                entry(machine, badge(about.icon, about.color, 40.0), about.label, about.package)
                    .height(74.0)
                    .on_tap(TouchAction::Launch(*app))
            })
            .collect(),
    });
    column([
        toolbar(machine, page.title, true, Vec::new()),
        scroller("page", machine.offset("page"), rows).id("recycler_view"),
    ])
    .back(theme.back)
    .fill()
}

fn switch(machine: &PhoneMachine, title: &'static str, key: &'static str) -> View {
    let theme = machine.theme();
    let on = machine.is_on(key);
    row([
        label(title).id("android:id/title").size(16.5).color(theme.text).wide().across(Align::Centre),
        view("Switch")
            .id("android:id/switch_widget")
            .width(52.0)
            .height(32.0)
            .color(theme.dim)
            .art(Art::Switch(on))
            .checked(on)
            .across(Align::Centre),
    ])
    .pad(22.0, 0.0)
    .height(70.0)
    .on_tap(TouchAction::Toggle(key))
}

fn slider(machine: &PhoneMachine, title: &'static str, key: &'static str, most: u32) -> View {
    let theme = machine.theme();
    let value: f32 = machine.settings.get(key).and_then(|value| value.parse().ok()).unwrap_or(0.0);
    let part = value / most as f32;
    column([
        label(title).id("android:id/title").size(16.5).color(theme.text),
        space(4.0),
        view("SeekBar")
            .id("android:id/seekbar")
            .says(format!("{title}, {:.0}%", part * 100.0))
            .wide()
            .height(36.0)
            .color(theme.dim)
            .art(Art::Slider(part))
            .on_tap(TouchAction::Slide(key, most)),
    ])
    .pad(22.0, 14.0)
}

fn fact(machine: &PhoneMachine, title: &'static str, value: &str) -> View {
    let theme = machine.theme();
    column([
        label(title).id("android:id/title").size(16.5).color(theme.text),
        label(value).id("android:id/summary").size(13.5).color(theme.dim),
    ])
    .pad(22.0, 0.0)
    .pack(Align::Centre)
    .height(74.0)
}
