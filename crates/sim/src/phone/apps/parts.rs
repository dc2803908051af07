//! Pieces that several apps share.

use super::super::act::{TextField, TouchAction};
use super::super::art::Art;
use super::super::canvas::Rgba;
use super::super::machine::PhoneMachine;
use super::super::view::{Align, View, column, label, row, space, view};

/// A bar with a title; a way back where `back` says so; buttons at the end.
pub(super) fn toolbar(machine: &PhoneMachine, title: &str, back: bool, buttons: Vec<View>) -> View {
    let theme = machine.theme();
    let mut inside = Vec::new();
    if back {
        inside.push(symbol(machine, '←', "Navigate up", TouchAction::Back));
    } else {
        inside.push(space(12.0));
    }
    inside.push(
        label(title).id("toolbar_title").size(22.0).bold().color(theme.text).one_line().wide().across(Align::Centre),
    );
    inside.extend(buttons);
    row(inside).class("ViewGroup").id("toolbar").height(64.0).pad(6.0, 0.0)
}

/// A button that is only a symbol.
pub(super) fn symbol(machine: &PhoneMachine, ch: char, says: &str, act: TouchAction) -> View {
    view("ImageButton")
        .says(says)
        .width(48.0)
        .height(48.0)
        .art(Art::Icon(ch))
        .color(machine.theme().text)
        .on_tap(act)
        .across(Align::Centre)
}

/// A round mark with a character.
pub(super) fn badge(ch: char, color: Rgba, dp: f32) -> View {
    view("ImageView")
        .decoration()
        .width(dp)
        .height(dp)
        .back(color)
        .corner(dp / 2.0)
        .color(Rgba::WHITE)
        .art(Art::Icon(ch))
        .across(Align::Centre)
}

/// A row with a title and a line below it.
pub(super) fn entry(machine: &PhoneMachine, lead: View, title: &str, below: &str) -> View {
    let theme = machine.theme();
    let mut words = vec![label(title).id("android:id/title").size(16.5).color(theme.text).one_line().wide()];
    if !below.is_empty() {
        words.push(label(below).id("android:id/summary").size(13.5).color(theme.dim).one_line().wide());
    }
    row([lead, space(18.0), column(words).across(Align::Centre)]).pad(18.0, 0.0)
}

/// A text field with what has been typed so far.
pub(crate) fn field(machine: &PhoneMachine, field: TextField, hint: &'static str) -> View {
    let theme = machine.theme();
    let mut view = View { hint, field: Some(field), text: machine.field_text(field).to_owned(), ..view("EditText") };
    view.state.focused = machine.focus == Some(field);
    view.color(theme.text).wide()
}

/// A filled button with a word.
pub(super) fn button(machine: &PhoneMachine, text: &str, act: TouchAction) -> View {
    let theme = machine.theme();
    label(text)
        .class("Button")
        .size(15.0)
        .bold()
        .color(theme.on_accent)
        .back(theme.accent)
        .corner(24.0)
        .align(Align::Centre)
        .pad(26.0, 14.0)
        .on_tap(act)
}
