//! Layout: gives every view of a tree its rectangle on the screen.

use super::geometry::PixelRect;
use super::text::{self, FontStyle};
use super::view::{Align, Flow, Len, View};

/// Places a view and everything below it. `scale` is pixels per dp.
pub(super) fn place(view: &mut View, rect: PixelRect, scale: f32) {
    Layouter { scale }.place(view, rect);
}

/// The part of a rectangle inside a view's padding.
pub(super) fn inner(view: &View, scale: f32) -> PixelRect {
    let [left, top, right, bottom] = view.layout.pad.map(|dp| (dp * scale).round() as i32);
    let rect = view.rect;
    PixelRect::new(rect.left + left, rect.top + top, rect.right - right, rect.bottom - bottom)
}

/// How a view's text is set.
pub(super) fn style(view: &View, scale: f32) -> FontStyle {
    FontStyle { size: view.look.size * scale, bold: view.look.bold }
}

struct Layouter {
    scale: f32,
}

impl Layouter {
    fn px(&self, dp: f32) -> i32 {
        (dp * self.scale).round() as i32
    }

    /// The size a view wants when it may be at most so wide.
    fn measure(&self, view: &View, limit: i32) -> (i32, i32) {
        let [left, top, right, bottom] = view.layout.pad.map(|dp| self.px(dp));
        let fixed = |len: Len| if let Len::Dp(dp) = len { Some(self.px(dp)) } else { None };
        let (width, height) = (fixed(view.layout.width), fixed(view.layout.height));
        if let (Some(width), Some(height)) = (width, height) {
            return (width, height);
        }
        let room = (width.unwrap_or(limit) - left - right).max(0);
        let (wide, high) = self.content(view, room);
        let full = if view.layout.width == Len::Fill { limit } else { wide + left + right };
        (width.unwrap_or(full), height.unwrap_or(high + top + bottom))
    }

    fn content(&self, view: &View, room: i32) -> (i32, i32) {
        if view.children.is_empty() {
            return self.text_size(view, room);
        }
        let gaps = self.px(view.layout.gap) * (view.children.len() as i32 - 1);
        let sizes = || view.children.iter().map(|child| self.measure(child, room));
        match view.layout.flow {
            Flow::Column => {
                (sizes().map(|size| size.0).max().unwrap_or(0), sizes().map(|size| size.1).sum::<i32>() + gaps)
            }
            Flow::Stack => {
                (sizes().map(|size| size.0).max().unwrap_or(0), sizes().map(|size| size.1).max().unwrap_or(0))
            }
            Flow::Row => {
                let widths = self.row_widths(view, room);
                let high = view.children.iter().zip(&widths).map(|(child, wide)| self.measure(child, *wide).1);
                (widths.iter().sum::<i32>() + gaps, high.max().unwrap_or(0))
            }
        }
    }

    fn text_size(&self, view: &View, room: i32) -> (i32, i32) {
        if view.text.is_empty() && view.hint.is_empty() {
            return (0, 0);
        }
        let style = style(view, self.scale);
        let shown = if view.text.is_empty() { view.hint } else { view.text.as_str() };
        let lines = text::lines(shown, style, room as f32);
        let count = if view.look.max_lines > 0 { lines.len().min(view.look.max_lines) } else { lines.len() };
        let wide = lines.iter().map(|line| line.width).fold(0.0, f32::max);
        ((wide.ceil() as i32).min(room), (style.line_height() * count as f32) as i32)
    }

    /// What each child of a row gets: its own width, or a share of what is left.
    fn row_widths(&self, view: &View, room: i32) -> Vec<i32> {
        let gaps = self.px(view.layout.gap) * (view.children.len() as i32 - 1);
        let mut left = room - gaps;
        let mut widths: Vec<Option<i32>> = Vec::with_capacity(view.children.len());
        for child in &view.children {
            let fixed = (child.layout.width != Len::Fill).then(|| self.measure(child, left.max(0)).0);
            left -= fixed.unwrap_or(0);
            widths.push(fixed);
        }
        let shares = widths.iter().filter(|width| width.is_none()).count().max(1) as i32;
        widths.into_iter().map(|width| width.unwrap_or(left.max(0) / shares)).collect()
    }

    fn place(&self, view: &mut View, rect: PixelRect) {
        view.rect = rect;
        let inside = inner(view, self.scale);
        match view.layout.flow {
            Flow::Column => self.place_column(view, inside),
            Flow::Row => self.place_row(view, inside),
            Flow::Stack => {
                for child in &mut view.children {
                    let (wide, high) = self.measure(child, inside.width());
                    let wide = if child.layout.width == Len::Fill { inside.width() } else { wide };
                    let high = if child.layout.height == Len::Fill { inside.height() } else { high };
                    let left = inside.left + shift(child.layout.across, inside.width() - wide);
                    let top = inside.top + shift(child.layout.down, inside.height() - high);
                    self.place(child, PixelRect::new(left, top, left + wide, top + high));
                }
            }
        }
    }

    fn place_column(&self, view: &mut View, inside: PixelRect) {
        let gap = self.px(view.layout.gap);
        let heights: Vec<Option<i32>> = view
            .children
            .iter()
            .map(|child| (child.layout.height != Len::Fill).then(|| self.measure(child, inside.width()).1))
            .collect();
        let used = heights.iter().flatten().sum::<i32>() + gap * (view.children.len() as i32 - 1).max(0);
        let shares = heights.iter().filter(|height| height.is_none()).count() as i32;
        let left_over = (inside.height() - used).max(0);
        let mut top = inside.top;
        match &mut view.scroll {
            Some(scroll) => {
                let total = scroll.list.map_or(used, |(_, total)| self.px(total));
                scroll.extent = (total - inside.height()).max(0);
                scroll.offset = scroll.offset.clamp(0, scroll.extent);
                top += scroll.list.map_or(0, |(lead, _)| self.px(lead)) - scroll.offset;
            }
            None if shares == 0 => top += shift(view.layout.pack, left_over),
            None => {}
        }
        for (child, height) in view.children.iter_mut().zip(heights) {
            let high = height.unwrap_or(if shares > 0 { left_over / shares } else { 0 });
            let wide = match child.layout.width {
                Len::Fill => inside.width(),
                _ => self.measure(child, inside.width()).0,
            };
            let left = inside.left + shift(child.layout.across, inside.width() - wide);
            self.place(child, PixelRect::new(left, top, left + wide, top + high));
            top += high + gap;
        }
    }

    fn place_row(&self, view: &mut View, inside: PixelRect) {
        let gap = self.px(view.layout.gap);
        let widths = self.row_widths(view, inside.width());
        let used = widths.iter().sum::<i32>() + gap * (view.children.len() as i32 - 1).max(0);
        let mut left = inside.left + shift(view.layout.pack, (inside.width() - used).max(0));
        for (child, wide) in view.children.iter_mut().zip(widths) {
            let high = match child.layout.height {
                Len::Fill => inside.height(),
                _ => self.measure(child, wide).1,
            };
            let top = inside.top + shift(child.layout.across, inside.height() - high);
            self.place(child, PixelRect::new(left, top, left + wide, top + high));
            left += wide + gap;
        }
    }
}

fn shift(align: Align, room: i32) -> i32 {
    match align {
        Align::Start => 0,
        Align::Centre => room / 2,
        Align::End => room,
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::{column, label, list, row, scroller, space, spring};
    use super::*;

    const SCREEN: PixelRect = PixelRect::new(0, 0, 400, 800);

    #[test]
    fn what_fills_shares_the_rest() {
        let mut view = row([space(50.0), spring(), spring()]).fill();
        place(&mut view, SCREEN, 2.0);
        let edges: Vec<(i32, i32)> = view.children.iter().map(|child| (child.rect.left, child.rect.right)).collect();
        assert_eq!(edges, [(0, 100), (100, 250), (250, 400)]);
    }

    #[test]
    fn text_grows_downwards_when_it_does_not_fit() {
        let mut view = column([label("a few words that need several lines").size(20.0), label("x")]);
        place(&mut view, SCREEN, 2.0);
        assert!(view.children[0].rect.height() > 100);
        assert_eq!(view.children[1].rect.top, view.children[0].rect.bottom);
    }

    #[test]
    fn a_scroller_never_goes_past_its_end() {
        let rows = || (0..30).map(|_| space(50.0));
        let mut view = scroller("slot", 9_999, rows());
        place(&mut view, SCREEN, 1.0);
        let scroll = view.scroll.unwrap();
        assert_eq!((scroll.extent, scroll.offset), (700, 700));
        assert_eq!(view.children[0].rect.bottom, 800);
    }

    #[test]
    fn a_list_builds_only_what_is_in_sight() {
        let mut view = list("slot", (1_000, 800), 2.0, (50.0, 200), |index| label(index.to_string()));
        place(&mut view, SCREEN, 2.0);
        assert_eq!(view.children.first().map(|row| (row.text.as_str(), row.rect.top)), Some(("10", 0)));
        assert_eq!(view.children.len(), 8);
        assert_eq!(view.scroll.map(|scroll| scroll.extent), Some(200 * 100 - 800));
    }
}
