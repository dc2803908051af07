//! A small painter: rectangles, circles, lines, polygons and text with smooth edges, and PNG.
//!
//! Plain areas are filled row by row; only edges are blended, so a whole screen is painted in
//! milliseconds even in an unoptimised build.

use super::geometry::PixelRect;
use super::glyphs;
use super::text::{FontStyle, TextLine};

/// Red, green, blue, opacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgba(pub u8, pub u8, pub u8, pub u8);

impl Rgba {
    pub const BLACK: Rgba = Rgba::hex(0x000000);
    pub const WHITE: Rgba = Rgba::hex(0xffffff);

    pub const fn hex(rgb: u32) -> Rgba {
        Rgba((rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8, 255)
    }

    pub const fn alpha(self, alpha: u8) -> Rgba {
        Rgba(self.0, self.1, self.2, alpha)
    }

    /// A colour between this one (0) and another (1).
    pub fn mix(self, other: Rgba, amount: f32) -> Rgba {
        let part = |a: u8, b: u8| (f32::from(a) + (f32::from(b) - f32::from(a)) * amount) as u8;
        Rgba(part(self.0, other.0), part(self.1, other.1), part(self.2, other.2), part(self.3, other.3))
    }
}

/// A picture being painted. Nothing is drawn outside `clip`.
pub struct ScreenCanvas {
    pub width: i32,
    pub height: i32,
    pub clip: PixelRect,
    pixels: Vec<[u8; 4]>,
}

impl ScreenCanvas {
    pub fn new(width: i32, height: i32) -> ScreenCanvas {
        let pixels = vec![[0, 0, 0, 255]; (width.max(0) * height.max(0)) as usize];
        ScreenCanvas { width, height, clip: PixelRect::new(0, 0, width, height), pixels }
    }

    /// RGBA, row by row.
    pub fn bytes(&self) -> &[u8] {
        self.pixels.as_flattened()
    }

    #[cfg(test)]
    pub fn pixel(&self, x: i32, y: i32) -> Option<[u8; 4]> {
        let inside = PixelRect::new(0, 0, self.width, self.height).contains(x as f32, y as f32);
        inside.then(|| self.pixels[(y * self.width + x) as usize])
    }

    pub fn fill(&mut self, rect: PixelRect, color: Rgba) {
        let area = rect.intersect(self.clip);
        if area.is_empty() || color.3 == 0 {
            return;
        }
        for y in area.top..area.bottom {
            let row = (y * self.width) as usize;
            let cells = &mut self.pixels[row + area.left as usize..row + area.right as usize];
            if color.3 == 255 {
                cells.fill([color.0, color.1, color.2, 255]);
            } else {
                cells.iter_mut().for_each(|cell| blend(cell, color, 255));
            }
        }
    }

    /// A vertical run from one colour to another.
    pub fn gradient(&mut self, rect: PixelRect, top: Rgba, bottom: Rgba) {
        for y in rect.top..rect.bottom {
            let amount = (y - rect.top) as f32 / rect.height().max(1) as f32;
            self.fill(PixelRect::new(rect.left, y, rect.right, y + 1), top.mix(bottom, amount));
        }
    }

    pub fn round(&mut self, rect: PixelRect, radius: f32, color: Rgba) {
        let radius = radius.min(rect.width() as f32 / 2.0).min(rect.height() as f32 / 2.0);
        if radius < 1.0 {
            return self.fill(rect, color);
        }
        let edge = radius.ceil() as i32;
        self.fill(PixelRect::new(rect.left, rect.top + edge, rect.right, rect.bottom - edge), color);
        let (left, right) = (rect.left as f32 + radius, rect.right as f32 - radius);
        let (top, bottom) = (rect.top as f32 + radius, rect.bottom as f32 - radius);
        // The bands of a pill meet in the middle and must not overlap: opacity would count twice there.
        for band in [rect.top..rect.top + edge, (rect.bottom - edge).max(rect.top + edge)..rect.bottom] {
            for y in band {
                let dy = (top - (y as f32 + 0.5)).max(y as f32 + 0.5 - bottom).max(0.0);
                let inset = radius - (radius * radius - dy * dy).max(0.0).sqrt();
                let (from, to) = (rect.left + inset.ceil() as i32 + 1, rect.right - inset.ceil() as i32 - 1);
                self.fill(PixelRect::new(from, y, to, y + 1), color);
                let sides = (rect.left..from.min(rect.right)).chain(to.max(from)..rect.right);
                for x in sides {
                    let dx = (left - (x as f32 + 0.5)).max(x as f32 + 0.5 - right).max(0.0);
                    self.dot(x, y, color, radius + 0.5 - dx.hypot(dy));
                }
            }
        }
    }

    /// The outline of a rounded rectangle.
    pub fn frame(&mut self, rect: PixelRect, radius: f32, thick: f32, color: Rgba) {
        let (cx, cy) = rect.centre();
        let radius = radius.min(rect.width() as f32 / 2.0).min(rect.height() as f32 / 2.0);
        let (half_w, half_h) = (rect.width() as f32 / 2.0 - radius, rect.height() as f32 / 2.0 - radius);
        let reach = (radius + thick).ceil() as i32;
        for y in rect.top..rect.bottom {
            let middle = y >= rect.top + reach && y < rect.bottom - reach;
            let mut x = rect.left;
            while x < rect.right {
                if middle && x == rect.left + reach {
                    x = x.max(rect.right - reach);
                }
                let dx = ((x as f32 + 0.5 - cx).abs() - half_w).max(0.0);
                let dy = ((y as f32 + 0.5 - cy).abs() - half_h).max(0.0);
                let outside = dx.hypot(dy);
                let straight = dx.max(dy);
                let distance = radius - if dx > 0.0 && dy > 0.0 { outside } else { straight };
                self.dot(x, y, color, (distance + 0.5).min(thick - distance + 0.5));
                x += 1;
            }
        }
    }

    pub fn circle(&mut self, cx: f32, cy: f32, radius: f32, color: Rgba) {
        let area = around(cx - radius, cy - radius, cx + radius, cy + radius).intersect(self.clip);
        for y in area.top..area.bottom {
            let dy = y as f32 + 0.5 - cy;
            let half = (radius * radius - dy * dy).max(0.0).sqrt();
            // Two pixels at either end are blended; between them the row is plain.
            let (from, to) = ((cx - half).ceil() as i32 + 2, (cx + half).floor() as i32 - 2);
            if from < to {
                self.fill(PixelRect::new(from, y, to, y + 1), color);
            }
            let middle = if from < to { from..to } else { area.right..area.right };
            let reach = (cx - half).floor() as i32 - 2;
            let edges = (reach.max(area.left)..middle.start.min(area.right))
                .chain(middle.end.max(area.left)..((cx + half).ceil() as i32 + 2).min(area.right));
            for x in edges {
                self.dot(x, y, color, radius + 0.5 - (x as f32 + 0.5 - cx).hypot(dy));
            }
        }
    }

    /// A ring around a radius; `keep` selects the angle in turns, clockwise from the top.
    pub fn ring(&mut self, cx: f32, cy: f32, radius: f32, thick: f32, color: Rgba, keep: impl Fn(f32) -> bool) {
        let reach = radius + thick / 2.0 + 1.0;
        let area = around(cx - reach, cy - reach, cx + reach, cy + reach).intersect(self.clip);
        for y in area.top..area.bottom {
            for x in area.left..area.right {
                let (dx, dy) = (x as f32 + 0.5 - cx, y as f32 + 0.5 - cy);
                let amount = thick / 2.0 + 0.5 - (dx.hypot(dy) - radius).abs();
                if amount > 0.0 && keep((dx.atan2(-dy) / std::f32::consts::TAU).rem_euclid(1.0)) {
                    self.dot(x, y, color, amount);
                }
            }
        }
    }

    /// A line with round ends.
    pub fn line(&mut self, from: (f32, f32), to: (f32, f32), thick: f32, color: Rgba) {
        let half = thick / 2.0;
        let (vx, vy) = (to.0 - from.0, to.1 - from.1);
        let length = vx.hypot(vy).max(0.001);
        let (nx, ny) = (-vy / length * half, vx / length * half);
        let corners =
            [(from.0 + nx, from.1 + ny), (to.0 + nx, to.1 + ny), (to.0 - nx, to.1 - ny), (from.0 - nx, from.1 - ny)];
        self.polygon(&corners, color);
        self.circle(from.0, from.1, half, color);
        self.circle(to.0, to.1, half, color);
    }

    /// A filled polygon, even-odd, four scan lines a pixel.
    pub fn polygon(&mut self, points: &[(f32, f32)], color: Rgba) {
        let low = points.iter().map(|point| point.1).fold(f32::MAX, f32::min);
        let high = points.iter().map(|point| point.1).fold(f32::MIN, f32::max);
        let area = around(0.0, low, self.width as f32, high).intersect(self.clip);
        let mut amounts = vec![0f32; self.width as usize + 1];
        for y in area.top..area.bottom {
            let scans = [0.125, 0.375, 0.625, 0.875].map(|sub| crossings(points, y as f32 + sub));
            let (left, right) = (area.left as f32, area.right as f32);
            let spans = || {
                scans.iter().flat_map(|scan| scan.chunks_exact(2)).map(|pair| (pair[0].max(left), pair[1].min(right)))
            };
            // What all four scan lines cover is plain; only the rest is blended.
            let single = scans.iter().all(|scan| scan.len() == 2);
            let from = spans().map(|span| span.0.ceil() as i32).max().unwrap_or(0);
            let to = spans().map(|span| span.1.floor() as i32).min().unwrap_or(0);
            let plain = if single && from < to { from..to } else { 0..0 };
            self.fill(PixelRect::new(plain.start, y, plain.end, y + 1), color);
            let (mut first, mut last) = (area.right, area.left);
            for (start, end) in spans().filter(|span| span.0 < span.1) {
                let mut x = start.floor() as i32;
                while x < end.ceil() as i32 {
                    if plain.contains(&x) {
                        x = plain.end;
                        continue;
                    }
                    let part = (end.min(x as f32 + 1.0) - start.max(x as f32)).max(0.0);
                    amounts[x.clamp(0, self.width) as usize] += part * 0.25;
                    x += 1;
                }
                (first, last) = (first.min(start.floor() as i32), last.max(end.ceil() as i32));
            }
            let edges = (first..last.min(if plain.is_empty() { last } else { plain.start }))
                .chain(if plain.is_empty() { last..last } else { plain.end..last });
            for x in edges {
                let amount = std::mem::take(&mut amounts[x.clamp(0, self.width) as usize]);
                self.dot(x, y, color, amount);
            }
        }
    }

    /// Draws a line of text with its left edge at `x` and its top at `y`.
    pub fn text(&mut self, line: &TextLine, x: f32, y: f32, style: FontStyle, color: Rgba, emoji: Rgba) {
        let base = y + style.baseline();
        for glyph in &line.glyphs {
            let ink = if glyphs::is_emoji(glyph.ch) { emoji } else { color };
            let shape = glyphs::coverage(glyph.ch, style);
            let left = (x + glyph.x).round() as i32 + shape.left;
            let top = base.round() as i32 + shape.top;
            for (row, cells) in shape.alpha.chunks(shape.width.max(1)).enumerate() {
                for (column, amount) in cells.iter().enumerate().filter(|(_, amount)| **amount > 0) {
                    self.dot(left + column as i32, top + row as i32, ink, f32::from(*amount) / 255.0);
                }
            }
        }
    }

    fn dot(&mut self, x: i32, y: i32, color: Rgba, amount: f32) {
        let clip = self.clip;
        if amount > 0.0 && x >= clip.left && x < clip.right && y >= clip.top && y < clip.bottom {
            blend(&mut self.pixels[(y * self.width + x) as usize], color, (amount.min(1.0) * 255.0) as u32);
        }
    }

    /// So many times smaller.
    pub fn shrunk(&self, times: i32) -> ScreenCanvas {
        let times = times.max(1);
        let mut small = ScreenCanvas::new(self.width / times, self.height / times);
        for (index, cell) in small.pixels.iter_mut().enumerate() {
            let (x, y) = (index as i32 % small.width * times, index as i32 / small.width * times);
            let mut sums = [0u32; 4];
            for row in y..y + times {
                let start = (row * self.width + x) as usize;
                for pixel in &self.pixels[start..start + times as usize] {
                    sums.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += u32::from(*value));
                }
            }
            *cell = sums.map(|sum| (sum / (times * times) as u32) as u8);
        }
        small
    }

    /// The picture as PNG, RGBA as `screencap -p` writes it.
    pub fn to_png(&self) -> Vec<u8> {
        self.encode(png::Compression::Fastest)
    }

    /// The same, as small as it gets.
    #[cfg(test)]
    pub fn to_small_png(&self) -> Vec<u8> {
        self.encode(png::Compression::High)
    }

    fn encode(&self, compression: png::Compression) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(compression);
        // Writing to memory fails only when the size is zero; the answer is then no picture at all.
        let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(self.bytes()));
        if written.is_err() {
            out.clear();
        }
        out
    }
}

/// Where a horizontal line crosses the sides of a polygon, from left to right.
fn crossings(points: &[(f32, f32)], y: f32) -> Vec<f32> {
    let sides = points.iter().zip(points.iter().cycle().skip(1));
    let mut crossings: Vec<f32> = sides
        .filter(|(a, b)| (a.1 <= y) != (b.1 <= y))
        .map(|(a, b)| a.0 + (y - a.1) / (b.1 - a.1) * (b.0 - a.0))
        .collect();
    crossings.sort_by(f32::total_cmp);
    crossings
}

fn around(left: f32, top: f32, right: f32, bottom: f32) -> PixelRect {
    PixelRect::new(left.floor() as i32, top.floor() as i32, right.ceil() as i32, bottom.ceil() as i32)
}

fn blend(cell: &mut [u8; 4], color: Rgba, amount: u32) {
    let alpha = u32::from(color.3) * amount / 255;
    let mix = |under: u8, over: u8| ((u32::from(under) * (255 - alpha) + u32::from(over) * alpha) / 255) as u8;
    *cell = [mix(cell[0], color.0), mix(cell[1], color.1), mix(cell[2], color.2), 255];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_outside_the_clip_and_no_shape_is_too_large() {
        let mut canvas = ScreenCanvas::new(40, 40);
        canvas.clip = PixelRect::new(10, 10, 30, 30);
        canvas.fill(PixelRect::new(-100, -100, 900, 900), Rgba::WHITE);
        canvas.round(PixelRect::new(-100, -100, 900, 900), 50.0, Rgba::WHITE);
        canvas.frame(PixelRect::new(-5, -5, 60, 60), 8.0, 3.0, Rgba::WHITE);
        canvas.circle(15.0, 15.0, 1e3, Rgba::WHITE);
        canvas.line((-90.0, 4.0), (900.0, 40.0), 5.0, Rgba::WHITE);
        canvas.polygon(&[(-50.0, -50.0), (500.0, 20.0), (-50.0, 90.0)], Rgba::WHITE);
        assert_eq!(canvas.pixel(5, 5), Some([0, 0, 0, 255]));
        assert_eq!(canvas.pixel(20, 20), Some([255, 255, 255, 255]));
        assert_eq!(canvas.pixel(40, 5), None);
    }

    #[test]
    fn a_png_can_be_read_back() {
        let mut canvas = ScreenCanvas::new(8, 4);
        canvas.fill(PixelRect::new(0, 0, 4, 4), Rgba::hex(0x3366cc));
        for bytes in [canvas.to_png(), canvas.to_small_png()] {
            let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut pixels).unwrap();
            assert_eq!(pixels, canvas.bytes());
        }
        assert_eq!(canvas.shrunk(2).pixel(0, 0), Some([0x33, 0x66, 0xcc, 255]));
    }
}
