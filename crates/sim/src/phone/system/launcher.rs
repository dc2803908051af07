//! The home screen, the drawer with all apps, and the recent ones.

use super::super::act::{StockApp, TouchAction};
use super::super::art::Art;
use super::super::canvas::Rgba;
use super::super::machine::PhoneMachine;
use super::super::view::{Align, View, column, label, row, scroller, space, spring, stack, view};

/// The home screen, or the drawer over it.
pub(crate) fn launcher(machine: &PhoneMachine, drawer: bool) -> View {
    let content = if drawer { all_apps(machine) } else { home(machine) };
    let wallpaper = view("View").decoration().fill().art(Art::Wallpaper);
    stack([wallpaper, content]).id("launcher").fill()
}

fn home(machine: &PhoneMachine) -> View {
    let wall = machine.wall();
    let tall = machine.size().1 > machine.size().0;
    let clock = column([
        label(format!("{:02}:{:02}", wall.hour(), wall.minute()))
            .id("clock_widget")
            .size(64.0)
            .color(Rgba::WHITE)
            .wide()
            .align(Align::Centre),
        label(wall.strftime("%A, %d %B").to_string())
            .id("date_widget")
            .size(17.0)
            .color(Rgba::WHITE)
            .wide()
            .align(Align::Centre),
    ]);
    let page: Vec<View> = if tall {
        vec![icons(&StockApp::ALL[..4]), space(18.0), icons(&StockApp::ALL[4..])]
    } else {
        vec![icons(&StockApp::ALL)]
    };
    let top = if tall { 110.0 } else { 30.0 };
    column([
        space(top),
        clock,
        spring(),
        column(page).id("workspace").class("ViewGroup"),
        space(26.0),
        label("Swipe up for all apps").size(12.0).color(Rgba::WHITE.alpha(200)).wide().align(Align::Centre),
        space(64.0),
    ])
    .pad(12.0, 0.0)
    .fill()
}

fn icons(apps: &[StockApp]) -> View {
    row(apps.iter().map(|app| {
        let entry = app.entry();
        let icon = view("ImageView")
            .decoration()
            .width(58.0)
            .height(58.0)
            .back(entry.color)
            .corner(18.0)
            .color(Rgba::WHITE)
            .art(Art::Icon(entry.icon))
            .across(Align::Centre);
        let name = label(entry.label).decoration().size(12.5).color(Rgba::WHITE).wide().align(Align::Centre);
        View { text: entry.label.to_owned(), ..column([icon, space(6.0), name]) }
            .class("TextView")
            .id("icon")
            .says(entry.label)
            .on_tap(TouchAction::Launch(*app))
    }))
}

fn all_apps(machine: &PhoneMachine) -> View {
    let mut apps = StockApp::ALL;
    apps.sort_by_key(|app| app.entry().label);
    let rows = apps.map(|app| {
        let entry = app.entry();
        row([
            view("ImageView")
                .decoration()
                .width(44.0)
                .height(44.0)
                .back(entry.color)
                .corner(14.0)
                .color(Rgba::WHITE)
                .art(Art::Icon(entry.icon))
                .across(Align::Centre),
            space(18.0),
            label(entry.label).id("app_name").size(17.0).color(Rgba::WHITE).across(Align::Centre),
        ])
        .id("app_row")
        .pad(24.0, 12.0)
        .on_tap(TouchAction::Launch(app))
    });
    column([
        space(44.0),
        label("All apps").id("drawer_title").size(26.0).bold().color(Rgba::WHITE).pad(24.0, 12.0),
        scroller("drawer", machine.offset("drawer"), rows).id("apps_list_view"),
        space(48.0),
    ])
    .back(Rgba::hex(0x17152b).alpha(205))
    .fill()
}

/// The running apps as cards, the latest first.
pub(crate) fn recents(machine: &PhoneMachine) -> View {
    let wallpaper = view("View").decoration().fill().art(Art::Wallpaper);
    let cards = machine.tasks.iter().rev().map(|task| {
        let entry = task.app.entry();
        column([
            row([
                view("ImageView")
                    .decoration()
                    .width(36.0)
                    .height(36.0)
                    .back(entry.color)
                    .corner(12.0)
                    .color(Rgba::WHITE)
                    .art(Art::Icon(entry.icon))
                    .across(Align::Centre),
                space(14.0),
                label(entry.label).id("task_name").size(17.0).color(Rgba::WHITE).across(Align::Centre),
                spring(),
                label("✕")
                    .class("ImageButton")
                    .id("dismiss_task")
                    .says(format!("Close {}", entry.label))
                    .size(18.0)
                    .color(Rgba::WHITE)
                    .pad(14.0, 8.0)
                    .on_tap(TouchAction::CloseTask(task.app))
                    .across(Align::Centre),
            ]),
            space(34.0),
            label(task.screens.last().map_or("", |screen| screen.activity())).size(13.0).color(Rgba::WHITE.alpha(170)),
        ])
        .class("FrameLayout")
        .id("snapshot")
        .says(entry.label)
        .pad(18.0, 14.0)
        .back(Rgba::hex(0x17152b).alpha(190))
        .corner(24.0)
        .on_tap(TouchAction::Launch(task.app))
    });
    let empty = machine.tasks.is_empty();
    let list = column(cards).gap(14.0);
    let foot = match empty {
        true => label("No recent items").id("empty_message").size(18.0).color(Rgba::WHITE).wide().align(Align::Centre),
        false => label("Clear all")
            .class("Button")
            .id("clear_all")
            .size(16.0)
            .bold()
            .color(Rgba::WHITE)
            .wide()
            .align(Align::Centre)
            .pad(0.0, 16.0)
            .on_tap(TouchAction::CloseTasks),
    };
    let inside = scroller("recents", machine.offset("recents"), [list, space(20.0), foot]).id("overview_panel");
    stack([wallpaper, column([space(60.0), inside, space(60.0)]).pad(28.0, 0.0).fill()]).id("recents_view").fill()
}
