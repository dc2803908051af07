//! Paints the phone's windows into a picture.

use super::art;
use super::canvas::{Rgba, ScreenCanvas};
use super::edit::TextCursor;
use super::geometry::PixelRect;
use super::layout;
use super::machine::PhoneMachine;
use super::text::{self, FontStyle};
use super::theme::{EMOJI, Theme};
use super::typing::line_left;
use super::view::{Fill, View};
use super::windows::WindowKind;

impl PhoneMachine {
    /// The screen as a picture. Secure windows and a sleeping phone are black.
    pub fn paint(&self) -> ScreenCanvas {
        let (width, height) = self.size();
        let mut painter = Painter {
            canvas: ScreenCanvas::new(width, height),
            scale: self.scale(),
            theme: self.theme(),
            cursor: self.cursor,
        };
        for window in self.windows() {
            if window.secure {
                continue;
            }
            if window.kind == WindowKind::Dialog {
                painter.canvas.fill(PixelRect::new(0, 0, width, height), Rgba::BLACK.alpha(130));
            }
            painter.view(&window.root);
        }
        if let Some((text, _)) = self.toast.as_ref().filter(|_| self.awake) {
            painter.toast(text, width, height);
        }
        painter.canvas
    }
}

struct Painter {
    canvas: ScreenCanvas,
    scale: f32,
    theme: Theme,
    cursor: TextCursor,
}

impl Painter {
    fn view(&mut self, view: &View) {
        let clip = self.canvas.clip;
        if view.rect.intersect(clip).is_empty() {
            return;
        }
        let corner = view.look.corner * self.scale;
        match view.look.fill {
            Some(Fill::Solid(color)) => self.canvas.round(view.rect, corner, color),
            Some(Fill::Gradient(top, bottom)) => self.canvas.gradient(view.rect, top, bottom),
            None => {}
        }
        if let Some(color) = view.look.border {
            self.canvas.frame(view.rect, corner, self.scale * 1.2, color);
        }
        if let Some(art) = &view.look.art {
            let inner = layout::inner(view, self.scale);
            art::paint(&mut self.canvas, art, inner, view.look.color, self.theme.accent, self.scale);
        }
        if view.scroll.is_some() {
            self.canvas.clip = clip.intersect(view.rect);
        }
        if view.children.is_empty() && view.look.art.is_none() {
            self.text(view);
        }
        for child in &view.children {
            self.view(child);
        }
        self.canvas.clip = clip;
    }

    fn text(&mut self, view: &View) {
        let style = layout::style(view, self.scale);
        let inner = layout::inner(view, self.scale);
        let shown = view.spoken_text();
        let hinted = shown.is_empty() && !view.hint.is_empty();
        let (words, color) = if hinted { (view.hint, self.theme.dim) } else { (shown.as_str(), view.look.color) };
        let mut lines = text::lines(words, style, inner.width() as f32).to_vec();
        if view.look.max_lines > 0 && lines.len() > view.look.max_lines {
            shorten(&mut lines, words, style, inner.width() as f32, view.look.max_lines);
        }
        // Text that is lower than its view stands in the middle, as in buttons and single-line fields.
        let high = (lines.len() as f32 * style.line_height()) as i32;
        let room = (inner.height() - high).max(0);
        let multi_line = view.field.is_some_and(super::act::TextField::is_multi_line);
        let mut top = inner.top as f32 + if multi_line { 0.0 } else { room as f32 / 2.0 };
        for line in &lines {
            let left = line_left(view, line, inner);
            if view.state.focused && view.field.is_some() && !hinted {
                self.selection(line, left, top, style);
            }
            self.canvas.text(line, left, top, style, color, EMOJI);
            top += style.line_height();
        }
        if view.state.focused && view.field.is_some() {
            self.cursor(view, &lines, hinted, inner, style);
        }
    }

    fn selection(&mut self, line: &text::TextLine, left: f32, top: f32, style: FontStyle) {
        let range = self.cursor.range();
        for glyph in line.glyphs.iter().filter(|glyph| range.contains(&glyph.at)) {
            let (from, to) = ((left + glyph.x) as i32, (left + glyph.x + glyph.width).ceil() as i32);
            let area = PixelRect::new(from, top as i32, to, (top + style.line_height()) as i32);
            self.canvas.fill(area, self.theme.accent.alpha(80));
        }
    }

    fn cursor(&mut self, view: &View, lines: &[text::TextLine], hinted: bool, inner: PixelRect, style: FontStyle) {
        let at = if hinted { 0 } else { self.cursor.at };
        let row = lines.iter().rposition(|line| line.start <= at).unwrap_or(0);
        let high = lines.len() as f32 * style.line_height();
        let multi_line = view.field.is_some_and(super::act::TextField::is_multi_line);
        let first = inner.top as f32 + if multi_line { 0.0 } else { ((inner.height() as f32 - high) / 2.0).max(0.0) };
        let top = first + row as f32 * style.line_height();
        let x = line_left(view, &lines[row], inner)
            + if view.state.password { lines[row].width } else { lines[row].cursor_x(at) };
        let area = PixelRect::new(
            x as i32,
            top as i32,
            x as i32 + (2.0 * self.scale) as i32,
            (top + style.line_height()) as i32,
        );
        self.canvas.fill(area, self.theme.accent);
    }

    fn toast(&mut self, words: &str, width: i32, height: i32) {
        let style = FontStyle { size: 14.0 * self.scale, bold: false };
        let line = text::lines(words, style, f32::MAX)[0].clone();
        let (pad, high) = (16.0 * self.scale, style.line_height() + 20.0 * self.scale);
        let left = (width as f32 - line.width) / 2.0;
        let top = height as f32 * 0.8;
        let area =
            PixelRect::new((left - pad) as i32, top as i32, (left + line.width + pad) as i32, (top + high) as i32);
        self.canvas.round(area, high / 2.0, Rgba::hex(0x323038));
        self.canvas.text(&line, left, top + 10.0 * self.scale, style, Rgba::WHITE, EMOJI);
    }
}

/// Cuts to so many lines; the last one ends in an ellipsis.
fn shorten(lines: &mut Vec<text::TextLine>, words: &str, style: FontStyle, width: f32, most: usize) {
    lines.truncate(most);
    let Some(last) = lines.pop() else { return };
    let mut cut = words[last.start..last.end].trim_end().to_owned();
    while !cut.is_empty() && text::width(&format!("{cut}…"), style) > width {
        cut.pop();
    }
    lines.push(text::lines(&format!("{cut}…"), style, f32::MAX)[0].clone());
}
