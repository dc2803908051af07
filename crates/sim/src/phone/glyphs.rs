//! Fonts: how wide a character is, and which pixels it covers.
//!
//! DejaVu Sans covers Latin, Greek, Cyrillic, Hebrew and Arabic; Noto Emoji draws the emoji. What no
//! font has is drawn as a box.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ab_glyph::{Font, FontRef};

use super::text::FontStyle;

/// The covered pixels of a glyph, relative to the pen on the baseline.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    pub left: i32,
    pub top: i32,
    pub width: usize,
    pub alpha: Vec<u8>,
}

struct Fonts {
    regular: Vec<FontRef<'static>>,
    bold: Vec<FontRef<'static>>,
}

fn fonts() -> &'static Fonts {
    static FONTS: OnceLock<Fonts> = OnceLock::new();
    FONTS.get_or_init(|| {
        let load = |sources: [&'static [u8]; 2]| {
            sources.into_iter().filter_map(|bytes| FontRef::try_from_slice(bytes).ok()).collect()
        };
        let emoji = epaint_default_fonts::NOTO_EMOJI_REGULAR;
        Fonts { regular: load([dejavu::sans::regular(), emoji]), bold: load([dejavu::sans::bold(), emoji]) }
    })
}

/// Whether a character is drawn with the emoji font, and therefore in its colour.
pub(super) fn is_emoji(ch: char) -> bool {
    ch as u32 >= 0x1f000 || matches!(ch, '\u{2615}' | '\u{2728}' | '\u{2b50}' | '\u{2764}' | '\u{26a1}' | '\u{2705}')
}

fn font_for(ch: char, bold: bool) -> Option<&'static FontRef<'static>> {
    let family = if bold { &fonts().bold } else { &fonts().regular };
    let has = |font: &&'static FontRef<'static>| font.glyph_id(ch).0 != 0;
    if is_emoji(ch) { family.iter().rev().find(has) } else { family.iter().find(has) }
}

/// How far the pen moves for a character.
pub(super) fn advance(ch: char, style: FontStyle) -> f32 {
    thread_local! {
        static KNOWN: RefCell<HashMap<(char, bool), f32>> = RefCell::default();
    }
    /// More than all alphabets here; whoever writes more characters measures them again.
    const MOST: usize = 4096;
    let measure = || match font_for(ch, style.bold) {
        Some(font) => font.h_advance_unscaled(font.glyph_id(ch)) / font.units_per_em().unwrap_or(1000.0),
        None => 0.7,
    };
    style.size
        * KNOWN.with_borrow_mut(|known| {
            if known.len() >= MOST {
                known.clear();
            }
            *known.entry((ch, style.bold)).or_insert_with(measure)
        })
}

/// ab_glyph scales by the height of the font, designers by the em square.
fn scale(font: &FontRef<'static>, style: FontStyle) -> f32 {
    style.size * font.height_unscaled() / font.units_per_em().unwrap_or(1000.0)
}

/// The pixels of a glyph, remembered: a screen repeats its letters.
pub(super) fn coverage(ch: char, style: FontStyle) -> Arc<Coverage> {
    type GlyphKey = (char, u32, bool);
    static CACHE: OnceLock<Mutex<HashMap<GlyphKey, Arc<Coverage>>>> = OnceLock::new();
    /// 4,096 glyphs of 40 pixels are about 6 MB; beyond that someone draws every character there is.
    const MOST: usize = 4096;
    let key = (ch, (style.size * 4.0) as u32, style.bold);
    let mut cache = CACHE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if cache.len() >= MOST {
        cache.clear();
    }
    Arc::clone(cache.entry(key).or_insert_with(|| Arc::new(rasterise(ch, style))))
}

fn rasterise(ch: char, style: FontStyle) -> Coverage {
    let Some(font) = font_for(ch, style.bold) else { return box_for_missing(style) };
    let glyph = font.glyph_id(ch).with_scale(scale(font, style));
    let Some(outline) = font.outline_glyph(glyph) else { return Coverage::default() };
    let bounds = outline.px_bounds();
    let width = bounds.width().ceil() as usize;
    let mut alpha = vec![0; width * bounds.height().ceil() as usize];
    outline.draw(|x, y, amount| {
        if let Some(cell) = alpha.get_mut(y as usize * width + x as usize) {
            *cell = (amount.clamp(0.0, 1.0) * 255.0) as u8;
        }
    });
    Coverage { left: bounds.min.x as i32, top: bounds.min.y as i32, width, alpha }
}

fn box_for_missing(style: FontStyle) -> Coverage {
    let (width, height) = ((style.size * 0.6) as usize, (style.size * 0.75) as usize);
    let mut alpha = vec![0; width * height];
    for y in 0..height {
        for x in 0..width {
            if x < 2 || y < 2 || x + 2 >= width || y + 2 >= height {
                alpha[y * width + x] = 200;
            }
        }
    }
    Coverage { left: (style.size * 0.05) as i32, top: -(height as i32), width, alpha }
}
