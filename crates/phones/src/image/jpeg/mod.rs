//! Baseline JPEG files, made for screens: most of a screen is flat, and flat parts cost next to nothing here.
//!
//! Colour is sampled at half the resolution, as libjpeg does by default, and the tables are the standard's own. Bands
//! of a large picture are encoded side by side: a JPEG may restart its bit stream at regular places. The arithmetic is
//! in [`dct`], the bit stream in [`huffman`].

mod dct;
mod huffman;

use super::{Depth, Raster};
use dct::{Quantizer, SampleBlock};
use huffman::{BitStream, Tables};

/// Half a million pixels are done in about a millisecond, and threads would not help.
const WORTH_SHARING: usize = 500_000;

/// The whole file.
pub(super) fn encode(raster: &Raster, quality: u8) -> Result<Vec<u8>, String> {
    let bands = match raster.width as usize * raster.height as usize {
        WORTH_SHARING.. => std::thread::available_parallelism().map_or(1, usize::from).min(4),
        _ => 1,
    };
    encode_in(raster, quality, bands)
}

fn encode_in(raster: &Raster, quality: u8, bands: usize) -> Result<Vec<u8>, String> {
    let side = |pixels: u32| {
        let side = u16::try_from(pixels).ok().filter(|side| *side > 0);
        side.ok_or_else(|| format!("a side of {pixels} pixels does not fit into a JPEG"))
    };
    let (width, height) = (side(raster.width)?, side(raster.height)?);
    if raster.pixels.len() != usize::from(width) * usize::from(height) * raster.depth as usize {
        return Err("the pixels are not as many as the size says".to_owned());
    }
    let picture = JpegEncoder { raster, light: Quantizer::light(quality), color: Quantizer::color(quality) };
    let (across, down) = (picture.across(), raster.height.div_ceil(picture.unit()) as usize);
    let rows = down.div_ceil(bands.max(1));
    // The interval between restarts is told in two bytes; a picture that is larger is encoded in one piece.
    let (rows, interval) = match u16::try_from(across * rows) {
        Ok(interval) if rows < down => (rows, interval),
        _ => (down, 0),
    };
    let mut file = picture.head(width, height, interval);
    for (index, part) in picture.scan(rows, down)?.iter().enumerate() {
        if index > 0 {
            // Restart markers count from 0 to 7 and again.
            file.extend_from_slice(&[0xff, 0xd0 | ((index - 1) % 8) as u8]);
        }
        file.extend_from_slice(part);
    }
    file.extend_from_slice(&[0xff, 0xd9]);
    Ok(file)
}

struct JpegEncoder<'a> {
    raster: &'a Raster,
    light: Quantizer,
    color: Quantizer,
}

impl JpegEncoder<'_> {
    /// The side of the squares that are encoded one after another.
    fn unit(&self) -> u32 {
        if self.raster.depth == Depth::Gray { 8 } else { 16 }
    }

    fn across(&self) -> usize {
        self.raster.width.div_ceil(self.unit()) as usize
    }

    /// The bit streams of all bands, each of so many rows of squares.
    fn scan(&self, rows: usize, down: usize) -> Result<Vec<Vec<u8>>, String> {
        if rows >= down {
            return Ok(vec![self.band(0, down)]);
        }
        std::thread::scope(|scope| {
            let bands = (0..down).step_by(rows).map(|row| scope.spawn(move || self.band(row, (row + rows).min(down))));
            let bands: Vec<_> = bands.collect();
            bands.into_iter().map(|band| band.join().map_err(|_| "the encoder died".to_owned())).collect()
        })
    }

    fn band(&self, from: usize, to: usize) -> Vec<u8> {
        let mut scan = BitStream::new(self.raster.pixels.len() / 16);
        let mut square = Macroblock::default();
        for row in from..to {
            for column in 0..self.across() {
                match self.raster.depth {
                    Depth::Gray => self.gray(column, row, &mut square, &mut scan),
                    Depth::Rgb => self.colored::<3>(column, row, &mut square, &mut scan),
                    Depth::Rgba => self.colored::<4>(column, row, &mut square, &mut scan),
                }
            }
        }
        scan.finish()
    }

    fn gray(&self, column: usize, row: usize, square: &mut Macroblock, scan: &mut BitStream) {
        for y in 0..8 {
            let line = self.line::<1>(row * 8 + y);
            for x in 0..8 {
                square.light[0][y][x] = f32::from(line[(column * 8 + x).min(line.len() - 1)]) - 128.0;
            }
        }
        scan.light(0, Tables::light(), self.light.apply(&mut square.light[0]));
    }

    fn colored<const DEPTH: usize>(&self, column: usize, row: usize, square: &mut Macroblock, scan: &mut BitStream) {
        let whole = (column + 1) * 16 <= self.raster.width as usize && (row + 1) * 16 <= self.raster.height as usize;
        if whole && let Some(color) = self.flat::<DEPTH>(column, row) {
            let [light, blue, red] = of_light_and_color(color.map(f32::from));
            for _ in 0..4 {
                scan.flat(0, Tables::light(), self.light.flat(light));
            }
            scan.flat(1, Tables::color(), self.color.flat(blue));
            scan.flat(2, Tables::color(), self.color.flat(red));
            return;
        }
        let mut edge = [[0; 64]; 2];
        for pair in 0..8 {
            // Two lines at a time: four neighbours share their colour.
            for (nth, edge) in edge.iter_mut().enumerate() {
                let line = self.line::<DEPTH>(row * 16 + pair * 2 + nth);
                let begin = column * 16 * DEPTH;
                match line.get(begin..begin + 16 * DEPTH) {
                    Some(pixels) => edge[..16 * DEPTH].copy_from_slice(pixels),
                    // Beyond the edge its last pixel goes on.
                    None => {
                        for x in 0..16 {
                            let at = (begin + x * DEPTH).min(line.len() - DEPTH);
                            edge[x * DEPTH..][..DEPTH].copy_from_slice(&line[at..at + DEPTH]);
                        }
                    }
                }
            }
            square.fill::<DEPTH>(pair, &edge);
        }
        for block in &mut square.light {
            scan.light(0, Tables::light(), self.light.apply(block));
        }
        scan.light(1, Tables::color(), self.color.apply(&mut square.blue));
        scan.light(2, Tables::color(), self.color.apply(&mut square.red));
    }

    /// The colour of a square that has but one.
    fn flat<const DEPTH: usize>(&self, column: usize, row: usize) -> Option<[u8; 3]> {
        let begin = column * 16 * DEPTH;
        let first = self.line::<DEPTH>(row * 16).get(begin..begin + 16 * DEPTH)?;
        let is_flat = first[DEPTH..] == first[..15 * DEPTH]
            && (1..16).all(|y| self.line::<DEPTH>(row * 16 + y).get(begin..begin + 16 * DEPTH) == Some(first));
        is_flat.then(|| [first[0], first[1], first[2]])
    }

    /// One line of pixels; below the last the last goes on.
    fn line<const DEPTH: usize>(&self, y: usize) -> &[u8] {
        let stride = self.raster.width as usize * DEPTH;
        let y = y.min(self.raster.height as usize - 1);
        &self.raster.pixels[y * stride..(y + 1) * stride]
    }

    /// Everything before the bit stream.
    fn head(&self, width: u16, height: u16, interval: u16) -> Vec<u8> {
        let mut head = vec![0xff, 0xd8];
        let mut segment = |marker: u8, parts: &[&[u8]]| {
            let length = parts.iter().map(|part| part.len()).sum::<usize>() + 2;
            head.extend_from_slice(&[0xff, marker]);
            head.extend_from_slice(&(length as u16).to_be_bytes());
            parts.iter().for_each(|part| head.extend_from_slice(part));
        };
        let [size_high, size_low] = height.to_be_bytes();
        let [width_high, width_low] = width.to_be_bytes();
        segment(0xe0, &[b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"]);
        segment(0xdb, &[&[0], &self.light.table()]);
        let colored = self.raster.depth != Depth::Gray;
        if colored {
            segment(0xdb, &[&[1], &self.color.table()]);
        }
        let components: &[u8] = if colored { &[3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1] } else { &[1, 1, 0x11, 0] };
        segment(0xc0, &[&[8, size_high, size_low, width_high, width_low], components]);
        for (nth, tables) in [Tables::light(), Tables::color()].into_iter().enumerate().take(1 + usize::from(colored)) {
            for (class, (counts, symbols)) in [(0x00, tables.differences), (0x10, tables.details)] {
                segment(0xc4, &[&[class | nth as u8], counts, symbols]);
            }
        }
        if interval > 0 {
            segment(0xdd, &[&interval.to_be_bytes()]);
        }
        let components: &[u8] = if colored { &[3, 1, 0x00, 2, 0x11, 3, 0x11] } else { &[1, 1, 0x00] };
        segment(0xda, &[components, &[0, 63, 0]]);
        head
    }
}

/// Sixteen by sixteen pixels on their way: four blocks of light, and one each of the two colours.
#[derive(Default)]
struct Macroblock {
    light: [SampleBlock; 4],
    blue: SampleBlock,
    red: SampleBlock,
}

impl Macroblock {
    /// Takes two lines of sixteen pixels.
    fn fill<const DEPTH: usize>(&mut self, pair: usize, lines: &[[u8; 64]; 2]) {
        let mut sums = [[0.0f32; 8]; 3];
        for (nth, line) in lines.iter().enumerate() {
            for half in 0..2 {
                let mut words = [0u32; 8];
                for (word, pixel) in words.iter_mut().zip(line[half * 8 * DEPTH..].chunks_exact(DEPTH)) {
                    *word = u32::from_le_bytes([pixel[0], pixel[1], pixel[2], pixel[DEPTH - 1]]);
                }
                // Through a signed number, because vector instructions know only those.
                let colors = [0, 8, 16].map(|shift| words.map(|word| (word >> shift & 0xff) as i32 as f32));
                let block = &mut self.light[pair / 4 * 2 + half];
                let row = &mut block[(pair * 2 + nth) % 8];
                for x in 0..8 {
                    row[x] = of_light([colors[0][x], colors[1][x], colors[2][x]]);
                }
                for (sum, color) in sums.iter_mut().zip(&colors) {
                    for x in 0..4 {
                        sum[half * 4 + x] += color[x * 2] + color[x * 2 + 1];
                    }
                }
            }
        }
        let [red, green, blue] = sums;
        for (x, ((red, green), blue)) in red.into_iter().zip(green).zip(blue).enumerate() {
            let mean = [red * 0.25, green * 0.25, blue * 0.25];
            [_, self.blue[pair][x], self.red[pair][x]] = of_light_and_color(mean);
        }
    }
}

/// The weights of Rec. 601, around zero.
fn of_light([red, green, blue]: [f32; 3]) -> f32 {
    0.299 * red + 0.587 * green + 0.114 * blue - 128.0
}

fn of_light_and_color([red, green, blue]: [f32; 3]) -> [f32; 3] {
    let to_blue = -0.168_735_9 * red - 0.331_264_1 * green + 0.5 * blue;
    let to_red = 0.5 * red - 0.418_687_6 * green - 0.081_312_4 * blue;
    [of_light([red, green, blue]), to_blue, to_red]
}

#[cfg(test)]
mod tests;
