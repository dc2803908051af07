//! Pictures; the first is a map that can be zoomed and moved.

use super::super::act::{AppScreen, TouchAction};
use super::super::art::{Art, Camera};
use super::super::canvas::Rgba;
use super::super::machine::PhoneMachine;
use super::super::view::{Align, View, column, label, row, scroller, space, spring, stack, view};
use super::parts::toolbar;

pub(super) const PICTURES: [&str; 6] =
    ["Map of the island", "Morning hills", "Evening hills", "Night hills", "Desert", "Green valley"];

pub(super) fn grid(machine: &PhoneMachine) -> View {
    let theme = machine.theme();
    let thumbnail = |index: usize| {
        column([
            view("ImageView").decoration().wide().height(160.0).art(Art::Picture(index, Camera::default())),
            label(PICTURES[index]).id("picture_name").size(13.5).color(theme.text).one_line().pad(10.0, 8.0),
        ])
        .class("FrameLayout")
        .id("thumbnail")
        .says(PICTURES[index])
        .back(theme.surface)
        .on_tap(TouchAction::Open(AppScreen::Picture(index)))
    };
    let rows = (0..PICTURES.len() / 2).map(|line| row([thumbnail(line * 2), thumbnail(line * 2 + 1)]).gap(12.0));
    column([
        toolbar(machine, "Gallery", false, Vec::new()),
        scroller("gallery", machine.offset("gallery"), [column(rows).gap(12.0).pad(14.0, 6.0)]).id("gallery_grid"),
    ])
    .back(theme.back)
    .fill()
}

pub(super) fn picture(machine: &PhoneMachine, index: usize) -> View {
    let camera = machine.camera;
    let name = PICTURES.get(index).copied().unwrap_or("Picture");
    let picture =
        View { zooms: true, ..view("ImageView").id("photo").says(name).fill().art(Art::Picture(index, camera)) };
    let chip = |text: String| {
        label(text).size(14.0).bold().color(Rgba::WHITE).back(Rgba::BLACK.alpha(150)).corner(18.0).pad(16.0, 9.0)
    };
    let button = |text: &str, id, says: &str, act| {
        label(text)
            .class("ImageButton")
            .id(id)
            .says(says)
            .size(24.0)
            .color(Rgba::WHITE)
            .align(Align::Centre)
            .width(52.0)
            .height(52.0)
            .back(Rgba::BLACK.alpha(150))
            .corner(26.0)
            .on_tap(act)
    };
    let top = row([
        button("←", "up", "Navigate up", TouchAction::Back),
        space(12.0),
        chip(name.to_owned()).id("photo_title").across(Align::Centre),
    ]);
    let chips = column([
        chip(format!("Zoom {:.1}×", camera.zoom)).id("zoom_level"),
        chip(format!("Centre {:.2}, {:.2}", camera.x, camera.y)).id("position"),
    ]);
    let bottom = row([
        chips.gap(8.0).tight().decoration().across(Align::End),
        spring(),
        button("−", "zoom_out", "Zoom out", TouchAction::ZoomOut).across(Align::End),
        space(10.0),
        button("+", "zoom_in", "Zoom in", TouchAction::ZoomIn).across(Align::End),
    ]);
    stack([
        picture,
        row([top]).pad(14.0, 14.0).tight().decoration(),
        row([bottom]).pad(14.0, 14.0).decoration().corner_of_stack(Align::Start, Align::End),
    ])
    .back(Rgba::BLACK)
    .fill()
}
