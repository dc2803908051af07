//! What is not an app: bars, the launcher, panels, the lock screen, the keyboard, dialogs.

mod keyboard;
mod launcher;
mod shade;

pub(super) use keyboard::{Keyboard, keyboard};
pub(super) use launcher::{launcher, recents};
pub(super) use shade::{PhoneNotification, REPLY, first_notices, keyguard, shade};

use super::act::{Dialog, TouchAction};
use super::art::Art;
use super::canvas::Rgba;
use super::machine::{Overlay, PhoneMachine};
use super::view::{Align, View, column, label, row, space, spring, stack, view};

/// The time and the status icons.
pub(super) fn status_bar(machine: &PhoneMachine) -> View {
    // White over pictures, dark over a light app.
    let over_picture =
        machine.locked || machine.panel.is_some() || machine.place != Overlay::Task || machine.is_secure();
    let color = if over_picture { Rgba::WHITE } else { machine.theme().text };
    let wall = machine.wall();
    let clock = format!("{:02}:{:02}", wall.hour(), wall.minute());
    let sign = |text: &str, says: &str| label(text).says(says).size(12.0).color(color).across(Align::Centre);
    let wifi = if machine.is_on("global/airplane_mode_on") {
        sign("✈", "Airplane mode.")
    } else if machine.is_on("global/wifi_on") {
        sign("▲", "Wi-Fi signal full.").id("wifi_combo")
    } else {
        sign("△", "Wi-Fi off.").id("wifi_combo")
    };
    row([
        label(clock.clone()).id("clock").says(clock).size(13.0).bold().color(color).across(Align::Centre),
        spring(),
        wifi,
        space(8.0),
        sign("87%", "Battery 87 percent.").id("battery"),
    ])
    .class("FrameLayout")
    .id("status_bar")
    .pad(16.0, 0.0)
    .tall()
}

pub(super) fn navigation_bar(machine: &PhoneMachine) -> View {
    let over_picture = machine.place != Overlay::Task || machine.panel.is_some() || machine.is_secure();
    let color = if over_picture { Rgba::WHITE } else { machine.theme().dim };
    let button =
        |id, says: &str, art, act| view("ImageView").id(id).says(says).art(art).color(color).on_tap(act).fill();
    let bar = row([
        button("back", "Back", Art::NavBack, TouchAction::Back),
        button("home", "Home", Art::NavHome, TouchAction::Home),
        button("recent_apps", "Overview", Art::NavRecents, TouchAction::Recents),
    ])
    .class("FrameLayout")
    .id("navigation_bar_frame")
    .pad(24.0, 0.0)
    .fill();
    match machine.keyboard {
        Some(_) => bar.back(machine.theme().tint),
        None => bar,
    }
}

/// A question in the middle of the screen; touching outside it means no.
pub(super) fn dialog(machine: &PhoneMachine, dialog: Dialog) -> View {
    let theme = machine.theme();
    let (title, message) = match dialog {
        Dialog::DeleteNote(number) => {
            let title = machine.notes.find(number).map_or("", |note| note.shown_title());
            ("Delete note?", format!("“{title}” will be gone for good."))
        }
        Dialog::DeleteContact(index) => {
            ("Delete contact?", format!("{} will be removed from this phone.", machine.contacts.name(index)))
        }
    };
    let button = |text: &str, id, color, act| {
        label(text).class("Button").id(id).bold().size(15.0).color(color).pad(16.0, 12.0).on_tap(act)
    };
    let card = column([
        label(title).id("android:id/alertTitle").size(21.0).color(theme.text),
        space(14.0),
        label(message).id("android:id/message").size(15.0).color(theme.dim),
        space(18.0),
        row([
            spring(),
            button("Cancel", "android:id/button2", theme.accent, TouchAction::Dismiss),
            button("Delete", "android:id/button1", theme.danger, TouchAction::Confirm),
        ]),
    ])
    .class("FrameLayout")
    .id("android:id/parentPanel")
    .pad(24.0, 22.0)
    .back(theme.surface)
    .corner(26.0)
    .width(312.0)
    .centred()
    // A touch on the card itself is no answer.
    .on_tap(TouchAction::Nothing);
    stack([card]).fill().on_tap(TouchAction::Dismiss)
}
