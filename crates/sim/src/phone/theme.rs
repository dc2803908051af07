//! Colours of the phone, by day and by night.

use super::canvas::Color;

#[derive(Clone, Copy, Debug)]
pub struct Theme {
    pub back: Color,
    /// Cards and bars.
    pub surface: Color,
    /// Fields and quiet buttons.
    pub tint: Color,
    pub text: Color,
    pub dim: Color,
    pub accent: Color,
    pub on_accent: Color,
    pub line: Color,
    pub danger: Color,
}

pub const DAY: Theme = Theme {
    back: Color::hex(0xf6f4fa),
    surface: Color::hex(0xffffff),
    tint: Color::hex(0xe6e1f0),
    text: Color::hex(0x1b1a21),
    dim: Color::hex(0x625f6b),
    accent: Color::hex(0x5a45b5),
    on_accent: Color::hex(0xffffff),
    line: Color::hex(0xdedae6),
    danger: Color::hex(0xb3261e),
};

pub const NIGHT: Theme = Theme {
    back: Color::hex(0x131218),
    surface: Color::hex(0x201e27),
    tint: Color::hex(0x35313f),
    text: Color::hex(0xece8f2),
    dim: Color::hex(0xa7a2b2),
    accent: Color::hex(0xc3b3ff),
    on_accent: Color::hex(0x2b1f66),
    line: Color::hex(0x3b3746),
    danger: Color::hex(0xf2b8b5),
};

/// Emoji are drawn in one warm colour that reads on light and dark.
pub const EMOJI: Color = Color::hex(0xd98200);
