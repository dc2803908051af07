//! Things that are drawn rather than written: switches, icons, the clock's face, the map.

use super::canvas::{Rgba, ScreenCanvas};
use super::geometry::PixelRect;
use super::glyphs;
use super::text::{self, FontStyle};
use super::theme::EMOJI;

#[derive(Clone, Debug, PartialEq)]
pub enum Art {
    /// A character in the middle, in the view's colour.
    Icon(char),
    Switch(bool),
    /// A slider and how far it is, 0 to 1.
    Slider(f32),
    /// A picture of the gallery and the camera that looks at it.
    Picture(usize, Camera),
    /// An analogue clock at so many milliseconds of the day.
    ClockFace(u64),
    /// Turns for ever; milliseconds since boot.
    Spinner(u64),
    /// Back, home and recents of the navigation bar.
    NavBack,
    NavHome,
    NavRecents,
    /// Hills in the evening.
    Wallpaper,
}

/// Where one looks on a picture: the middle, in parts of its width and height, and how close.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Camera {
    pub x: f32,
    pub y: f32,
    pub zoom: f32,
}

impl Default for Camera {
    fn default() -> Camera {
        Camera { x: 0.5, y: 0.5, zoom: 1.0 }
    }
}

/// The closest and the farthest one can look.
pub(super) const ZOOM: (f32, f32) = (1.0, 8.0);

impl Camera {
    /// The length of the picture's side on the screen: at zoom 1 it just covers the view.
    fn side(self, view: PixelRect) -> f32 {
        view.width().max(view.height()).max(1) as f32 * self.zoom
    }

    pub fn on_screen(self, view: PixelRect, u: f32, v: f32) -> (f32, f32) {
        let (cx, cy) = view.centre();
        (cx + (u - self.x) * self.side(view), cy + (v - self.y) * self.side(view))
    }

    fn on_picture(self, view: PixelRect, x: f32, y: f32) -> (f32, f32) {
        let (cx, cy) = view.centre();
        (self.x + (x - cx) / self.side(view), self.y + (y - cy) / self.side(view))
    }

    /// Zooms and moves so that what was under `from` comes to lie under `to`.
    pub fn moved(self, view: PixelRect, from: (f32, f32), to: (f32, f32), factor: f32) -> Camera {
        let held = self.on_picture(view, from.0, from.1);
        let zoom = (self.zoom * factor).clamp(ZOOM.0, ZOOM.1);
        let zoomed = Camera { zoom, ..self };
        let now = zoomed.on_picture(view, to.0, to.1);
        Camera { x: self.x + held.0 - now.0, y: self.y + held.1 - now.1, zoom }.kept_inside(view)
    }

    /// The picture always covers the view.
    fn kept_inside(self, view: PixelRect) -> Camera {
        let keep = |at: f32, length: i32| {
            let half = (length as f32 / 2.0 / self.side(view)).min(0.5);
            at.clamp(half, 1.0 - half)
        };
        Camera { x: keep(self.x, view.width()), y: keep(self.y, view.height()), zoom: self.zoom }
    }
}

/// Paints a piece of art into a rectangle.
pub(super) fn paint(canvas: &mut ScreenCanvas, art: &Art, rect: PixelRect, color: Rgba, accent: Rgba, scale: f32) {
    let (cx, cy) = rect.centre();
    let dp = |value: f32| value * scale;
    match art {
        Art::Icon(ch) => icon(canvas, *ch, rect, color),
        Art::Switch(on) => {
            let track = PixelRect::new(
                rect.right - dp(46.0) as i32,
                (cy - dp(13.0)) as i32,
                rect.right,
                (cy + dp(13.0)) as i32,
            );
            canvas.round(track, dp(13.0), if *on { accent } else { color.alpha(70) });
            let x = if *on { track.right as f32 - dp(13.0) } else { track.left as f32 + dp(13.0) };
            canvas.circle(x, cy, dp(9.0), Rgba::WHITE);
        }
        Art::Slider(part) => {
            let (left, right) = (rect.left as f32 + dp(10.0), rect.right as f32 - dp(10.0));
            let x = left + (right - left) * part.clamp(0.0, 1.0);
            canvas.line((left, cy), (right, cy), dp(5.0), color.alpha(70));
            canvas.line((left, cy), (x, cy), dp(5.0), accent);
            canvas.circle(x, cy, dp(10.0), accent);
        }
        Art::Picture(index, camera) => picture(canvas, *index, *camera, rect),
        Art::ClockFace(ms) => clock_face(canvas, *ms, rect, color, accent),
        Art::Spinner(ms) => {
            let turn = (*ms % 1200) as f32 / 1200.0;
            let radius = rect.width().min(rect.height()) as f32 / 2.0 - dp(3.0);
            canvas.ring(cx, cy, radius, dp(4.0), color.alpha(50), |_| true);
            canvas.ring(cx, cy, radius, dp(4.0), accent, |angle| (angle - turn).rem_euclid(1.0) < 0.3);
        }
        Art::NavBack => {
            let s = dp(7.0);
            canvas.polygon(&[(cx - s, cy), (cx + s * 0.8, cy - s), (cx + s * 0.8, cy + s)], color);
        }
        Art::NavHome => canvas.circle(cx, cy, dp(7.0), color),
        Art::NavRecents => {
            let s = dp(6.5) as i32;
            let (x, y) = (cx as i32, cy as i32);
            canvas.round(PixelRect::new(x - s, y - s, x + s, y + s), dp(1.5), color);
        }
        Art::Wallpaper => wallpaper(canvas, rect),
    }
}

fn icon(canvas: &mut ScreenCanvas, ch: char, rect: PixelRect, color: Rgba) {
    let style = FontStyle { size: rect.width().min(rect.height()) as f32 * 0.52, bold: false };
    let shape = glyphs::coverage(ch, style);
    let rows = shape.alpha.len() / shape.width.max(1);
    let (cx, cy) = rect.centre();
    let line = text::lines(&ch.to_string(), style, f32::MAX)[0].clone();
    let x = cx - shape.width as f32 / 2.0 - shape.left as f32;
    let y = cy - rows as f32 / 2.0 - shape.top as f32 - style.baseline();
    canvas.text(&line, x, y, style, color, color);
}

fn wallpaper(canvas: &mut ScreenCanvas, rect: PixelRect) {
    canvas.gradient(rect, Rgba::hex(0x2b2a6b), Rgba::hex(0xe58b73));
    let (w, h) = (rect.width() as f32, rect.height() as f32);
    canvas.circle(w * 0.72, h * 0.56, w.min(h) * 0.11, Rgba::hex(0xffd9a0).alpha(230));
    let hills = [(0.62, 0.10, 0x8a4a78), (0.72, 0.08, 0x5c3a73), (0.82, 0.06, 0x37305f)];
    for (index, (level, swing, color)) in hills.into_iter().enumerate() {
        let mut points = vec![(0.0, h), (0.0, h * level)];
        for step in 0..=40 {
            let t = step as f32 / 40.0;
            let wave = (t * 7.0 + index as f32 * 2.1).sin() * 0.6 + (t * 13.0 + index as f32).sin() * 0.4;
            points.push((w * t, h * (level - swing * wave)));
        }
        points.push((w, h));
        canvas.polygon(&points, Rgba::hex(color));
    }
}

fn clock_face(canvas: &mut ScreenCanvas, ms: u64, rect: PixelRect, color: Rgba, accent: Rgba) {
    let (cx, cy) = rect.centre();
    let radius = rect.width().min(rect.height()) as f32 / 2.0 * 0.94;
    canvas.circle(cx, cy, radius, color.alpha(18));
    canvas.ring(cx, cy, radius, radius * 0.02, color.alpha(120), |_| true);
    let on = |turn: f32, part: f32| {
        let angle = turn * std::f32::consts::TAU;
        (cx + angle.sin() * radius * part, cy - angle.cos() * radius * part)
    };
    for tick in 0..60 {
        let (length, thick) = if tick % 5 == 0 { (0.84, 0.022) } else { (0.90, 0.010) };
        let turn = tick as f32 / 60.0;
        canvas.line(on(turn, length), on(turn, 0.94), radius * thick, color);
    }
    let day = ms as f64 / 1000.0;
    let turn = |seconds: f64| (day % seconds / seconds) as f32;
    canvas.line((cx, cy), on(turn(43_200.0), 0.5), radius * 0.045, color);
    canvas.line((cx, cy), on(turn(3600.0), 0.74), radius * 0.03, color);
    canvas.line(on(turn(60.0), -0.15), on(turn(60.0), 0.82), radius * 0.014, accent);
    canvas.circle(cx, cy, radius * 0.04, accent);
}

/// The places of the map, which show up when one looks closer.
const PLACES: [(&str, f32, f32, f32); 7] = [
    ("Harbour", 0.36, 0.62, 1.0),
    ("Old Town", 0.50, 0.55, 1.0),
    ("Lighthouse", 0.71, 0.33, 1.0),
    ("Mirror Lake", 0.56, 0.40, 1.0),
    ("Bakery", 0.478, 0.565, 3.0),
    ("Library", 0.522, 0.532, 3.0),
    ("Boat hire", 0.345, 0.636, 3.0),
];

fn picture(canvas: &mut ScreenCanvas, index: usize, camera: Camera, rect: PixelRect) {
    let clip = canvas.clip;
    canvas.clip = clip.intersect(rect);
    let at = |u: f32, v: f32| camera.on_screen(rect, u, v);
    let length = |part: f32| part * camera.side(rect);
    if index == 0 {
        map(canvas, camera, rect);
    } else {
        let skies = [
            (0x74b9e8, 0xe8f4d9),
            (0xf3a683, 0x574b90),
            (0x0c2461, 0x60a3bc),
            (0xffe29f, 0xff719a),
            (0xa8e6cf, 0x3d84a8),
        ];
        let (top, bottom) = skies[index % skies.len()];
        canvas.gradient(rect, Rgba::hex(top), Rgba::hex(bottom));
        let (x, y) = at(0.3 + 0.08 * index as f32, 0.38);
        canvas.circle(x, y, length(0.07), Rgba::hex(0xfff3c4));
        for layer in 0..3 {
            let level = 0.55 + 0.1 * layer as f32;
            let mut points = vec![at(0.0, 1.2), at(0.0, level)];
            for step in 0..=24 {
                let t = step as f32 / 24.0;
                let wave =
                    (t * 9.0 + (layer * 3 + index * 5) as f32).sin() * 0.05 + (t * 23.0 + index as f32).cos() * 0.015;
                points.push(at(t, level + wave));
            }
            points.push(at(1.0, 1.2));
            canvas.polygon(&points, Rgba::hex(bottom).mix(Rgba::BLACK, 0.25 + 0.2 * layer as f32));
        }
    }
    canvas.clip = clip;
}

fn map(canvas: &mut ScreenCanvas, camera: Camera, rect: PixelRect) {
    let at = |u: f32, v: f32| camera.on_screen(rect, u, v);
    let length = |part: f32| part * camera.side(rect);
    canvas.fill(rect, Rgba::hex(0x9fd0e6));
    let coast = |grow: f32| -> Vec<(f32, f32)> {
        (0..72)
            .map(|step| {
                let angle = step as f32 / 72.0 * std::f32::consts::TAU;
                let wobble =
                    (angle * 3.0).sin() * 0.035 + (angle * 5.0 + 1.0).cos() * 0.025 + (angle * 11.0).sin() * 0.01;
                let reach = 0.30 + wobble + grow;
                at(0.52 + angle.cos() * reach, 0.5 + angle.sin() * reach * 0.9)
            })
            .collect()
    };
    canvas.polygon(&coast(0.035), Rgba::hex(0xb9dfef));
    canvas.polygon(&coast(0.012), Rgba::hex(0xf1e3b8));
    canvas.polygon(&coast(0.0), Rgba::hex(0xcfe3b4));
    for (u, v, r) in [(0.66, 0.58, 0.10), (0.60, 0.65, 0.07), (0.71, 0.50, 0.06), (0.42, 0.36, 0.06)] {
        let (x, y) = at(u, v);
        canvas.circle(x, y, length(r), Rgba::hex(0x9cc68a));
    }
    let (x, y) = at(0.56, 0.40);
    canvas.circle(x, y, length(0.045), Rgba::hex(0x8cc4e0));
    for step in 0..12 {
        let (u, v) = (0.465 + (step % 4) as f32 * 0.022, 0.525 + (step / 4) as f32 * 0.022);
        let ((l, t), (r, b)) = (at(u, v), at(u + 0.013, v + 0.012));
        canvas.round(PixelRect::new(l as i32, t as i32, r as i32, b as i32), length(0.002), Rgba::hex(0xc9b8a8));
    }
    let roads: [&[(f32, f32)]; 3] = [
        &[(0.30, 0.64), (0.36, 0.62), (0.43, 0.59), (0.50, 0.55), (0.58, 0.50), (0.64, 0.42), (0.71, 0.33)],
        &[(0.50, 0.55), (0.48, 0.47), (0.45, 0.40), (0.44, 0.31)],
        &[(0.50, 0.55), (0.54, 0.63), (0.56, 0.72)],
    ];
    for (thick, color) in [(0.016, 0xd8a94c), (0.011, 0xfff4d6)] {
        for road in roads {
            for pair in road.windows(2) {
                canvas.line(at(pair[0].0, pair[0].1), at(pair[1].0, pair[1].1), length(thick), Rgba::hex(color));
            }
        }
    }
    let style = FontStyle { size: (rect.width().min(rect.height()) as f32 * 0.034).max(12.0), bold: true };
    for (name, u, v, from) in PLACES {
        if camera.zoom + 0.01 < from {
            continue;
        }
        let (x, y) = at(u, v);
        canvas.circle(x, y, style.size * 0.34, Rgba::hex(0xb3261e));
        canvas.circle(x, y, style.size * 0.14, Rgba::WHITE);
        let line = text::lines(name, style, f32::MAX)[0].clone();
        let left = x - line.width / 2.0;
        for (dx, dy) in [(-2.0, 0.0), (2.0, 0.0), (0.0, -2.0), (0.0, 2.0)] {
            canvas.text(&line, left + dx, y + style.size * 0.3 + dy, style, Rgba::WHITE.alpha(210), EMOJI);
        }
        canvas.text(&line, left, y + style.size * 0.3, style, Rgba::hex(0x3a3226), EMOJI);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: PixelRect = PixelRect::new(0, 100, 1000, 2100);

    #[test]
    fn what_the_fingers_hold_stays_under_them() {
        let camera = Camera::default();
        let before = camera.on_picture(VIEW, 600.0, 900.0);
        let after = camera.moved(VIEW, (600.0, 900.0), (600.0, 900.0), 2.0);
        assert_eq!(after.zoom, 2.0);
        let now = after.on_picture(VIEW, 600.0, 900.0);
        assert!((before.0 - now.0).abs() < 1e-4 && (before.1 - now.1).abs() < 1e-4);
    }

    #[test]
    fn the_picture_always_covers_the_view() {
        let far = Camera::default().moved(VIEW, (0.0, 0.0), (9e5, 9e5), 0.1);
        assert_eq!(far.zoom, 1.0);
        assert!((far.x - 0.25).abs() < 1e-4 && (far.y - 0.5).abs() < 1e-4, "{far:?}");
        let near = Camera::default().moved(VIEW, (500.0, 1000.0), (500.0, 1000.0), 100.0);
        assert_eq!(near.zoom, 8.0);
    }
}
