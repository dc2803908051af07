//! Boxes with numbers, so that a model can name what it sees.

use super::{Depth, Raster};
use crate::tree::Rect;

/// A box around something, with the number of its ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub bounds: Rect,
    pub number: u32,
}

/// Digits of three by five dots, each row's dots in the low bits.
const DIGITS: [[u8; 5]; 10] = [
    [7, 5, 5, 5, 7],
    [2, 6, 2, 2, 7],
    [7, 1, 7, 4, 7],
    [7, 1, 7, 1, 7],
    [5, 5, 7, 1, 1],
    [7, 4, 7, 1, 7],
    [7, 4, 7, 5, 7],
    [7, 1, 2, 2, 2],
    [7, 5, 7, 5, 7],
    [7, 5, 7, 1, 7],
];

/// Boxes in turn take one of these, so that neighbours differ.
const COLORS: [[u8; 3]; 4] = [[220, 30, 30], [20, 110, 220], [10, 130, 60], [160, 30, 170]];

/// Draws the marks, which are in coordinates of a picture of size `full`.
pub(super) fn draw(raster: &mut Raster, marks: &[Mark], full: (u32, u32)) {
    let fit = |at: i32, new: u32, old: u32| (i64::from(at) * i64::from(new) / i64::from(old.max(1))) as i32;
    // Three dots of a digit are one 160th of the longest side, and never less than two pixels a dot.
    let dot = (raster.width.max(raster.height) / 480).max(2) as i32;
    for (nth, mark) in marks.iter().enumerate() {
        let color = COLORS[nth % COLORS.len()];
        let bounds = Rect {
            left: fit(mark.bounds.left, raster.width, full.0),
            top: fit(mark.bounds.top, raster.height, full.1),
            right: fit(mark.bounds.right, raster.width, full.0),
            bottom: fit(mark.bounds.bottom, raster.height, full.1),
        };
        let bounds = bounds.intersect(Rect::new(0, 0, raster.width as i32, raster.height as i32));
        if bounds.is_empty() {
            continue;
        }
        let line = (dot / 2).max(1);
        let Rect { left, top, right, bottom } = bounds;
        fill(raster, Rect::new(left, top, right, top + line), color);
        fill(raster, Rect::new(left, bottom - line, right, bottom), color);
        fill(raster, Rect::new(left, top, left + line, bottom), color);
        fill(raster, Rect::new(right - line, top, right, bottom), color);
        number(raster, (left, top), dot, mark.number, color);
    }
}

fn number(raster: &mut Raster, (left, top): (i32, i32), dot: i32, number: u32, color: [u8; 3]) {
    let digits: Vec<usize> = number.to_string().bytes().map(|digit| usize::from(digit - b'0')).collect();
    let width = (digits.len() as i32 * 4 + 1) * dot;
    fill(raster, Rect::new(left, top, left + width, top + 7 * dot), color);
    for (nth, digit) in digits.into_iter().enumerate() {
        for (row, dots) in DIGITS[digit].into_iter().enumerate() {
            for column in (0..3).filter(|column| dots >> (2 - column) & 1 == 1) {
                let x = left + (nth as i32 * 4 + 1 + column) * dot;
                let y = top + (row as i32 + 1) * dot;
                fill(raster, Rect::new(x, y, x + dot, y + dot), [255; 3]);
            }
        }
    }
}

fn fill(raster: &mut Raster, area: Rect, color: [u8; 3]) {
    let area = area.intersect(Rect::new(0, 0, raster.width as i32, raster.height as i32));
    if area.is_empty() {
        return;
    }
    let depth = raster.depth as usize;
    let ink = match raster.depth {
        Depth::Gray => [((u32::from(color[0]) + u32::from(color[1]) + u32::from(color[2])) / 3) as u8, 0, 0, 255],
        Depth::Rgb | Depth::Rgba => [color[0], color[1], color[2], 255],
    };
    let stride = raster.width as usize * depth;
    for line in raster.pixels.chunks_exact_mut(stride).take(area.bottom as usize).skip(area.top as usize) {
        for pixel in line[area.left as usize * depth..area.right as usize * depth].chunks_exact_mut(depth) {
            pixel.copy_from_slice(&ink[..depth]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_drawn_where_it_belongs_and_nowhere_else() {
        let mut raster = Raster { width: 100, height: 100, pixels: vec![0; 30_000], depth: Depth::Rgb };
        draw(&mut raster, &[Mark { bounds: Rect::new(200, 200, 380, 380), number: 12 }], (400, 400));
        let at = |x: usize, y: usize| &raster.pixels[(y * 100 + x) * 3..][..3];
        assert_eq!(at(50, 50), [220, 30, 30]);
        assert_eq!(at(94, 80), [220, 30, 30]);
        assert_eq!(at(49, 49), [0, 0, 0]);
        assert_eq!(at(80, 80), [0, 0, 0]);
        assert!(raster.pixels.chunks(3).any(|pixel| pixel == [255; 3]), "the number is white");
    }

    #[test]
    fn marks_beyond_the_picture_do_no_harm() {
        for depth in [Depth::Gray, Depth::Rgb, Depth::Rgba] {
            let mut raster = Raster { width: 5, height: 5, pixels: vec![0; 25 * depth as usize], depth };
            let far = [Rect::new(-900, -900, 9000, 9000), Rect::new(i32::MIN, 0, i32::MAX, 1), Rect::new(9, 9, 3, 3)];
            let marks: Vec<Mark> = far.into_iter().map(|bounds| Mark { bounds, number: 987_654 }).collect();
            draw(&mut raster, &marks, (5, 5));
        }
    }
}
