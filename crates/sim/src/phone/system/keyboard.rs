//! The keyboard on the screen.

use super::super::act::TouchAction;
use super::super::canvas::Rgba;
use super::super::machine::PhoneMachine;
use super::super::view::{Align, View, column, label, row};

/// Which layer of keys is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keyboard {
    pub shift: bool,
    pub symbols: bool,
}

const LETTERS: [&str; 3] = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];
const SYMBOLS: [&str; 3] = ["1234567890", "@#€_&-+()", "*\"':;!?"];

pub(crate) fn keyboard(machine: &PhoneMachine, state: Keyboard) -> View {
    let theme = machine.theme();
    let cap = |text: &str, back: Rgba, act: TouchAction| {
        label(text)
            .class("android.inputmethodservice.Keyboard$Key")
            .size(20.0)
            .color(theme.text)
            .align(Align::Centre)
            .fill()
            .back(back)
            .corner(8.0)
            .on_tap(act)
    };
    let key = |ch: char| {
        let ch = if state.shift { ch.to_ascii_uppercase() } else { ch };
        cap(&ch.to_string(), theme.surface, TouchAction::Type(ch))
    };
    let quiet = theme.line;
    let wide =
        |text: &str, dp: f32, says: &str, act: TouchAction| cap(text, quiet, act).size(15.0).says(says).width(dp);
    let layer = if state.symbols { SYMBOLS } else { LETTERS };
    let line = |keys: &str| row(keys.chars().map(key)).gap(5.0).fill();
    let switch = if state.symbols { "ABC" } else { "?123" };
    let shift = if state.shift { "⬆" } else { "⇧" };
    let mut third = vec![wide(shift, 46.0, "Shift", TouchAction::ImeShift)];
    third.extend(layer[2].chars().map(key));
    third.push(wide("⌫", 46.0, "Delete", TouchAction::ImeDelete));
    let enter = cap("⏎", theme.accent, TouchAction::ImeEnter).color(theme.on_accent).says("Enter").width(56.0);
    let last = row([
        wide(switch, 54.0, "Symbol keyboard", TouchAction::ImeSymbols),
        key(','),
        cap(" ", theme.surface, TouchAction::Type(' ')).says("Space").width(170.0),
        key('.'),
        wide("⌄", 40.0, "Hide keyboard", TouchAction::ImeHide),
        enter,
    ]);
    column([line(layer[0]), line(layer[1]).pad(18.0, 0.0), row(third).gap(5.0).fill(), last.gap(5.0).fill()])
        .class("FrameLayout")
        .id("keyboard_view")
        .gap(8.0)
        .pad(5.0, 8.0)
        .back(theme.tint)
        .fill()
}
