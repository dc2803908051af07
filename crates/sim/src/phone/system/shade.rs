//! What comes down from the top: notifications, quick settings, and the lock screen.

use super::super::act::{Panel, StockApp, TextField, TouchAction};
use super::super::apps::field;
use super::super::art::Art;
use super::super::canvas::Rgba;
use super::super::machine::PhoneMachine;
use super::super::setup::LockScreen;
use super::super::view::{Align, View, column, label, row, space, spring, stack, view};

/// A notification.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PhoneNotification {
    pub number: u32,
    pub app: StockApp,
    pub title: String,
    pub text: String,
    /// The labels of its buttons.
    pub actions: &'static [&'static str],
}

impl PhoneNotification {
    /// What Android calls it.
    pub(crate) fn key(&self) -> String {
        let (package, user) = (self.app.entry().package, 10_100 + self.app as u32);
        format!("0|{package}|{}|null|{user}", self.number)
    }
}

/// The action that opens a field for an answer.
pub(crate) const REPLY: &str = "Reply";

pub(crate) fn first_notices() -> Vec<PhoneNotification> {
    let notice = |number, app, title: &str, text: &str, actions| PhoneNotification {
        number,
        app,
        title: title.to_owned(),
        text: text.to_owned(),
        actions,
    };
    vec![
        notice(1, StockApp::Notes, "Reminder", "Water the plants 🌱", &["Done"]),
        notice(2, StockApp::Contacts, "Zoë Brontë", "Dinner at eight? שלום!", &[REPLY, "Mark as read"]),
        notice(3, StockApp::Settings, "System update", "Your phone is up to date", &[]),
    ]
}

const SCRIM: Rgba = Rgba::hex(0x14131c);
const CARD: Rgba = Rgba::hex(0x2a2836);
const DIM: Rgba = Rgba::hex(0xb9b4c8);

/// The switches of the quick settings; the same as in Settings.
const TILES: [(&str, &str, char); 8] = [
    ("Internet", "global/wifi_on", '📶'),
    ("Bluetooth", "global/bluetooth_on", '🎧'),
    ("Do Not Disturb", "global/zen_mode", '🌙'),
    ("Flashlight", "secure/flashlight_enabled", '🔦'),
    ("Auto-rotate", "system/accelerometer_rotation", '🔄'),
    ("Airplane mode", "global/airplane_mode_on", '✈'),
    ("Dark theme", "secure/ui_night_mode", '🌓'),
    ("Location", "secure/location_mode", '📍'),
];

pub(crate) fn shade(machine: &PhoneMachine, panel: Panel) -> View {
    let wall = machine.wall();
    let head = row([
        label(format!("{:02}:{:02}", wall.hour(), wall.minute())).id("shade_clock").size(34.0).color(Rgba::WHITE),
        space(12.0),
        label(wall.strftime("%a, %d %b").to_string()).id("date").size(15.0).color(DIM).across(Align::Centre),
    ]);
    let body = match panel {
        Panel::Notifications => notifications(machine),
        Panel::QuickSettings => quick_settings(machine),
    };
    column([space(34.0), head, space(18.0), body, spring()])
        .class("FrameLayout")
        .id("notification_panel")
        .pad(18.0, 0.0)
        .back(SCRIM.alpha(244))
        .fill()
        .on_tap(TouchAction::ClosePanel)
}

fn tile(machine: &PhoneMachine, index: usize, high: bool) -> View {
    let (name, key, icon) = TILES[index];
    let on = machine.is_on(key);
    let (back, ink) = if on { (Rgba::hex(0xc3b3ff), Rgba::hex(0x2b1f66)) } else { (CARD, Rgba::WHITE) };
    let picture =
        view("ImageView").decoration().art(Art::Icon(icon)).color(ink).width(30.0).height(30.0).across(Align::Centre);
    let state = if on { "On" } else { "Off" };
    let words = column([
        label(name).decoration().size(13.0).bold().one_line().color(ink),
        label(state).decoration().size(12.0).color(if on { ink } else { DIM }),
    ]);
    let inside = match high {
        true => row([picture, space(8.0), words.across(Align::Centre)]).tall(),
        false => row([picture.wide()]).tall(),
    };
    // As stock Android does it: the tile's own text is its state, and its description is its name.
    inside
        .class("Switch")
        .spoken(state)
        .says(name)
        .checked(on)
        .pad(12.0, 0.0)
        .height(if high { 66.0 } else { 56.0 })
        .back(back)
        .corner(24.0)
        .on_tap(TouchAction::Toggle(key))
}

fn notifications(machine: &PhoneMachine) -> View {
    let tiles = row((0..4).map(|index| tile(machine, index, false))).gap(10.0).id("quick_qs_panel");
    let cards = machine.notices.iter().map(|notice| {
        let entry = notice.app.entry();
        let head = row([
            view("ImageView")
                .id("android:id/icon")
                .width(36.0)
                .height(36.0)
                .back(entry.color)
                .corner(18.0)
                .color(Rgba::WHITE)
                .art(Art::Icon(entry.icon))
                .across(Align::Centre),
            space(14.0),
            column([
                label(entry.label).id("android:id/app_name_text").size(12.0).color(DIM),
                label(notice.title.as_str()).id("android:id/title").size(15.5).bold().color(Rgba::WHITE),
                label(notice.text.as_str()).id("android:id/text").size(14.0).color(Rgba::hex(0xe2deee)),
            ]),
        ]);
        let below = match machine.replying == Some(notice.number) {
            true => Some(reply_line(machine, notice.number)),
            false if notice.actions.is_empty() => None,
            false => Some(action_line(notice)),
        };
        column([head].into_iter().chain(below))
            .class("FrameLayout")
            .id("expandableNotificationRow")
            .pad(16.0, 14.0)
            .back(CARD)
            .corner(22.0)
            .on_tap(TouchAction::OpenNotice(notice.number))
            .on_hold(TouchAction::DismissNotice(notice.number))
    });
    let list = column(cards).gap(8.0).id("notification_stack_scroller");
    let foot = match machine.notices.is_empty() {
        true => label("No notifications")
            .id("no_notifications")
            .size(16.0)
            .color(DIM)
            .wide()
            .align(Align::Centre)
            .pad(0.0, 24.0),
        false => row([
            label("Manage")
                .class("Button")
                .id("manage_text")
                .size(14.0)
                .color(Rgba::WHITE)
                .pad(16.0, 12.0)
                .on_tap(TouchAction::Launch(StockApp::Settings)),
            spring(),
            label("Clear all")
                .class("Button")
                .id("dismiss_text")
                .says("Clear all notifications.")
                .size(14.0)
                .color(Rgba::WHITE)
                .pad(16.0, 12.0)
                .on_tap(TouchAction::ClearNotices),
        ]),
    };
    let more = label("Quick settings ⌄")
        .class("Button")
        .id("expand_indicator")
        .says("Open quick settings.")
        .size(13.0)
        .color(DIM)
        .wide()
        .align(Align::Centre)
        .pad(0.0, 8.0)
        .on_tap(TouchAction::Panel(Panel::QuickSettings));
    column([tiles, more, space(8.0), list, space(8.0), foot])
}

fn action_line(notice: &PhoneNotification) -> View {
    row(notice.actions.iter().enumerate().map(|(nth, action)| {
        label(*action)
            .class("Button")
            .id("android:id/action0")
            .size(14.0)
            .bold()
            .color(Rgba::hex(0xc3b3ff))
            .pad(12.0, 10.0)
            .on_tap(TouchAction::NoticeAction(notice.number, nth))
    }))
    .id("android:id/actions")
}

fn reply_line(machine: &PhoneMachine, number: u32) -> View {
    let send = label("➤")
        .class("ImageButton")
        .id("remote_input_send")
        .says("Send")
        .size(18.0)
        .color(Rgba::hex(0xc3b3ff))
        .pad(14.0, 8.0)
        .on_tap(TouchAction::SendReply(number));
    row([
        field(machine, TextField::Reply, "Reply").id("remote_input_text").color(Rgba::WHITE).size(15.0).height(44.0),
        send,
    ])
    .id("remote_input")
}

fn quick_settings(machine: &PhoneMachine) -> View {
    let brightness: f32 =
        machine.settings.get("system/screen_brightness").and_then(|value| value.parse().ok()).unwrap_or(0.0);
    let slider = view("SeekBar")
        .id("slider")
        .says("Display brightness")
        .spoken(format!("{brightness:.1}"))
        .height(40.0)
        .wide()
        .color(DIM)
        .art(Art::Slider(brightness / 255.0))
        .on_tap(TouchAction::Slide("system/screen_brightness", 255));
    let rows = (0..4).map(|line| row([tile(machine, line * 2, true), tile(machine, line * 2 + 1, true)]).gap(10.0));
    column([
        slider,
        space(14.0),
        column(rows).gap(10.0).id("quick_settings_panel").class("androidx.viewpager.widget.ViewPager"),
    ])
}

pub(crate) fn keyguard(machine: &PhoneMachine) -> View {
    let wall = machine.wall();
    let mut rows = vec![
        space(if machine.size().1 > machine.size().0 { 150.0 } else { 40.0 }),
        label(format!("{:02}:{:02}", wall.hour(), wall.minute()))
            .id("keyguard_clock")
            .size(82.0)
            .color(Rgba::WHITE)
            .wide()
            .align(Align::Centre),
        label(wall.strftime("%A, %d %B").to_string())
            .id("keyguard_date")
            .size(17.0)
            .color(Rgba::WHITE)
            .wide()
            .align(Align::Centre),
        spring(),
    ];
    match &machine.setup.lock {
        LockScreen::Pin(_) => rows.extend(pin_pad(machine)),
        LockScreen::None | LockScreen::Swipe => {
            rows.push(
                label("Swipe up to unlock")
                    .id("keyguard_indication_text")
                    .size(15.0)
                    .color(Rgba::WHITE)
                    .wide()
                    .align(Align::Centre),
            );
        }
    }
    rows.push(space(56.0));
    let wallpaper = view("View").decoration().fill().art(Art::Wallpaper);
    stack([wallpaper, column(rows).fill()]).id("keyguard_host_view").fill()
}

fn pin_pad(machine: &PhoneMachine) -> Vec<View> {
    let dots = "●".repeat(machine.pin.chars().count());
    let shown = label(if dots.is_empty() { "Enter PIN".to_owned() } else { dots });
    let key = |text: &str, act: TouchAction| {
        label(text)
            .class("Button")
            .size(26.0)
            .color(Rgba::WHITE)
            .align(Align::Centre)
            .wide()
            .height(62.0)
            .back(Rgba::WHITE.alpha(36))
            .corner(31.0)
            .on_tap(act)
    };
    let digit = |digit: char| key(&digit.to_string(), TouchAction::PinDigit(digit)).id("pin_key");
    let mut rows = vec![shown.id("pinEntry").size(18.0).color(Rgba::WHITE).wide().align(Align::Centre), space(18.0)];
    for line in ["123", "456", "789"] {
        rows.push(row(line.chars().map(digit)).gap(14.0).pad(56.0, 0.0));
        rows.push(space(12.0));
    }
    let delete = key("⌫", TouchAction::PinDelete).id("delete_button").says("Delete");
    rows.push(row([spring(), digit('0'), delete]).gap(14.0).pad(56.0, 0.0));
    rows
}
