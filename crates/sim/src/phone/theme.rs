//! Colours of the phone, by day and by night.

use super::canvas::Rgba;

#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    pub back: Rgba,
    /// Cards and bars.
    pub surface: Rgba,
    /// Fields and quiet buttons.
    pub tint: Rgba,
    pub text: Rgba,
    pub dim: Rgba,
    pub accent: Rgba,
    pub on_accent: Rgba,
    pub line: Rgba,
    pub danger: Rgba,
}

pub(super) const DAY: Theme = Theme {
    back: Rgba::hex(0xf6f4fa),
    surface: Rgba::hex(0xffffff),
    tint: Rgba::hex(0xe6e1f0),
    text: Rgba::hex(0x1b1a21),
    dim: Rgba::hex(0x625f6b),
    accent: Rgba::hex(0x5a45b5),
    on_accent: Rgba::hex(0xffffff),
    line: Rgba::hex(0xdedae6),
    danger: Rgba::hex(0xb3261e),
};

pub(super) const NIGHT: Theme = Theme {
    back: Rgba::hex(0x131218),
    surface: Rgba::hex(0x201e27),
    tint: Rgba::hex(0x35313f),
    text: Rgba::hex(0xece8f2),
    dim: Rgba::hex(0xa7a2b2),
    accent: Rgba::hex(0xc3b3ff),
    on_accent: Rgba::hex(0x2b1f66),
    line: Rgba::hex(0x3b3746),
    danger: Rgba::hex(0xf2b8b5),
};

/// Emoji are drawn in one warm colour that reads on light and dark.
pub(super) const EMOJI: Rgba = Rgba::hex(0xd98200);
