//! What a virtual camera sees: a little landscape, drawn by code, with readable text on it.

use font8x8::legacy::BASIC_LEGACY;
use sinew_phones::PhoneError;
use sinew_phones::image::{Depth, Raster};

pub const WIDTH: usize = 320;
pub const HEIGHT: usize = 240;
/// Small enough for a board's memory, good enough to read the text.
const QUALITY: u8 = 80;

type Rgb = [u8; 3];

/// What stands in the picture.
#[derive(Clone, Debug)]
pub struct CameraScene {
    /// Lines of text, ASCII; other characters become `?`.
    pub lines: Vec<String>,
    /// A night sky instead of a day's.
    pub dark: bool,
    /// How bright the picture is, 0 to 100.
    pub brightness: u8,
    /// Moves the sun, so that no two pictures are alike.
    pub counter: u32,
}

impl CameraScene {
    /// The picture as JPEG, [`WIDTH`] by [`HEIGHT`].
    pub fn to_jpeg(&self) -> Result<Vec<u8>, PhoneError> {
        let (width, height) = (WIDTH as u32, HEIGHT as u32);
        let raster = Raster { width, height, pixels: self.draw(), depth: Depth::Rgb };
        Ok(raster.to_jpeg(QUALITY)?.bytes)
    }

    fn draw(&self) -> Vec<u8> {
        let mut canvas = SceneCanvas { pixels: vec![[0; 3]; WIDTH * HEIGHT] };
        let (zenith, horizon, light, hills) = if self.dark {
            ([12, 16, 48], [60, 48, 96], [236, 236, 214], [[36, 48, 56], [24, 36, 40]])
        } else {
            ([88, 164, 232], [208, 232, 248], [255, 214, 64], [[112, 168, 88], [72, 132, 64]])
        };
        canvas.fill(|_, y| blend(zenith, horizon, y as f32 / HEIGHT as f32));
        let sun = 30 + (self.counter as usize * 29) % (WIDTH - 60);
        canvas.disc(sun, 58, 20, light);
        for (index, (color, height)) in hills.into_iter().zip([96.0, 60.0]).enumerate() {
            let phase = index as f32 * 1.9;
            canvas.below(color, |x| HEIGHT as f32 - height - 18.0 * (x as f32 / 47.0 + phase).sin());
        }
        canvas.house(222, 160, if self.dark { [255, 220, 120] } else { [168, 208, 232] });
        // Bright enough to be seen at 0, since a camera without light makes a poor demonstration.
        let dim = 0.35 + 0.65 * f32::from(self.brightness.min(100)) / 100.0;
        canvas.pixels.iter_mut().for_each(|pixel| *pixel = blend([0; 3], *pixel, dim));
        for (row, line) in self.lines.iter().enumerate() {
            let scale = if row == 0 { 2 } else { 1 };
            canvas.text(8, 100 + row * 20, scale, line);
        }
        canvas.pixels.into_flattened()
    }
}

struct SceneCanvas {
    pixels: Vec<Rgb>,
}

impl SceneCanvas {
    fn fill(&mut self, color: impl Fn(usize, usize) -> Rgb) {
        for (index, pixel) in self.pixels.iter_mut().enumerate() {
            *pixel = color(index % WIDTH, index / WIDTH);
        }
    }

    fn set(&mut self, x: usize, y: usize, color: Rgb) {
        if x < WIDTH && y < HEIGHT {
            self.pixels[y * WIDTH + x] = color;
        }
    }

    fn rect(&mut self, x: usize, y: usize, width: usize, height: usize, color: Rgb) {
        for (dx, dy) in (0..height).flat_map(|dy| (0..width).map(move |dx| (dx, dy))) {
            self.set(x + dx, y + dy, color);
        }
    }

    fn disc(&mut self, x: usize, y: usize, radius: usize, color: Rgb) {
        for (dx, dy) in (0..=2 * radius).flat_map(|dy| (0..=2 * radius).map(move |dx| (dx, dy))) {
            if dx.abs_diff(radius).pow(2) + dy.abs_diff(radius).pow(2) <= radius * radius {
                self.set(x + dx - radius, y + dy - radius, color);
            }
        }
    }

    fn below(&mut self, color: Rgb, edge: impl Fn(usize) -> f32) {
        for x in 0..WIDTH {
            let top = edge(x).clamp(0.0, HEIGHT as f32) as usize;
            self.rect(x, top, 1, HEIGHT - top, color);
        }
    }

    fn house(&mut self, x: usize, y: usize, window: Rgb) {
        for row in 0..22 {
            self.rect(x + 26 - row * 26 / 22, y - 22 + row, row * 52 / 22, 1, [152, 64, 48]);
        }
        self.rect(x + 4, y, 44, 34, [220, 204, 176]);
        self.rect(x + 10, y + 8, 12, 12, window);
        self.rect(x + 30, y + 12, 10, 22, [112, 80, 56]);
    }

    /// White letters on a shadow, readable on any ground.
    fn text(&mut self, x: usize, y: usize, scale: usize, text: &str) {
        for (shift, color) in [(1, [0, 0, 0]), (0, [255, 255, 255])] {
            for (column, character) in text.chars().enumerate() {
                let glyph = BASIC_LEGACY.get(character as usize).unwrap_or(&BASIC_LEGACY[usize::from(b'?')]);
                for (row, bits) in glyph.iter().enumerate() {
                    for bit in (0..8).filter(|bit| bits & (1 << bit) != 0) {
                        let (left, top) = (x + (column * 8 + bit) * scale + shift, y + row * scale + shift);
                        self.rect(left, top, scale, scale, color);
                    }
                }
            }
        }
    }
}

fn blend(from: Rgb, to: Rgb, share: f32) -> Rgb {
    std::array::from_fn(|index| {
        let (from, to) = (f32::from(from[index]), f32::from(to[index]));
        (from + (to - from) * share).clamp(0.0, 255.0) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene() -> CameraScene {
        CameraScene {
            lines: vec!["board-ddee01".to_owned(), "photo 1 \u{65e5}".to_owned()],
            dark: false,
            brightness: 75,
            counter: 1,
        }
    }

    #[test]
    fn a_scene_becomes_a_jpeg_of_moderate_size() {
        let jpeg = scene().to_jpeg().expect("drawn");
        assert!(jpeg.starts_with(&[0xff, 0xd8]) && jpeg.ends_with(&[0xff, 0xd9]));
        assert!((2_000..40_000).contains(&jpeg.len()), "{} bytes", jpeg.len());
    }

    #[test]
    fn theme_brightness_counter_and_text_are_seen() {
        let plain = scene().draw();
        for other in [
            CameraScene { dark: true, ..scene() },
            CameraScene { brightness: 10, ..scene() },
            CameraScene { counter: 2, ..scene() },
            CameraScene { lines: vec![], ..scene() },
        ] {
            assert_ne!(other.draw(), plain);
        }
    }

    #[test]
    fn text_that_leaves_the_picture_is_cut() {
        let long = CameraScene { lines: vec!["w".repeat(500); 40], ..scene() };
        assert_eq!(long.draw().len(), WIDTH * HEIGHT * 3);
    }
}
