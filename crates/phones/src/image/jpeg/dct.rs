//! From samples to quantized frequencies.
//!
//! The cosine transform is that of Arai, Agui and Nakajima: five multiplications for eight samples, and factors that
//! fold into the quantization. It works on whole rows, which compilers turn into vector instructions.

/// Eight rows of eight samples.
pub(super) type SampleBlock = [[f32; 8]; 8];

/// Frequencies of a block in the order of the file, from coarse to fine.
pub(super) struct Frequencies {
    /// In the transform's own order, see [`ORDER`].
    values: [i16; 64],
    /// Whether there is anything but the mean.
    pub is_flat: bool,
}

impl Frequencies {
    /// The mean.
    pub(super) fn mean(&self) -> i16 {
        self.values[0]
    }

    /// The others, from coarse to fine.
    pub(super) fn details(&self) -> impl Iterator<Item = i16> + '_ {
        ORDER[1..].iter().map(|at| self.values[usize::from(*at)])
    }
}

/// Quality 50 of the standard's annex K, row by row.
const LIGHT: [u8; 64] = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51,
    87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101,
    72, 92, 95, 98, 112, 100, 103, 99,
];
const COLOR: [u8; 64] = [
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99,
];

/// Where the transform leaves the frequency that stands at each place of the file: a zigzag through the block, which
/// the transform leaves on its side.
const ORDER: [u8; 64] = order();

const fn order() -> [u8; 64] {
    let mut order = [0; 64];
    let (mut x, mut y, mut nth) = (0, 0, 0);
    while nth < 64 {
        order[nth] = x * 8 + y;
        // Up to the right on even diagonals, down to the left on odd ones, turning at the edges.
        if (x + y) % 2 == 0 {
            match (x, y) {
                (7, _) => y += 1,
                (_, 0) => x += 1,
                _ => (x, y) = (x + 1, y - 1),
            }
        } else {
            match (x, y) {
                (_, 7) => x += 1,
                (0, _) => y += 1,
                _ => (x, y) = (x - 1, y + 1),
            }
        }
        nth += 1;
    }
    order
}

/// What the transform leaves each frequency multiplied with, in each direction.
const FACTORS: [f32; 8] = [1.0, 1.387_039_8, 1.306_563, 1.175_875_6, 1.0, 0.785_694_96, 0.541_196_1, 0.275_899_4];

pub(super) struct Quantizer {
    steps: [u8; 64],
    /// What each frequency is multiplied with, on its side as the transform leaves it.
    shares: SampleBlock,
}

impl Quantizer {
    pub(super) fn light(quality: u8) -> Quantizer {
        Quantizer::new(&LIGHT, quality)
    }

    pub(super) fn color(quality: u8) -> Quantizer {
        Quantizer::new(&COLOR, quality)
    }

    /// Scales the table as libjpeg does, so that a quality means the same.
    fn new(table: &[u8; 64], quality: u8) -> Quantizer {
        let quality = u32::from(quality.clamp(1, 100));
        let percent = if quality < 50 { 5000 / quality } else { 200 - 2 * quality };
        let steps = table.map(|step| ((u32::from(step) * percent + 50) / 100).clamp(1, 255) as u8);
        let mut shares = SampleBlock::default();
        for (at, step) in steps.iter().enumerate() {
            let (y, x) = (at / 8, at % 8);
            shares[x][y] = 1.0 / (f32::from(*step) * FACTORS[x] * FACTORS[y] * 8.0);
        }
        Quantizer { steps, shares }
    }

    /// The steps in the order of the file.
    pub(super) fn table(&self) -> [u8; 64] {
        ORDER.map(|at| self.steps[usize::from(at % 8 * 8 + at / 8)])
    }

    /// The mean of a block that has the same value everywhere.
    pub(super) fn flat(&self, value: f32) -> i16 {
        round(value * 64.0 * self.shares[0][0])
    }

    pub(super) fn apply(&self, block: &mut SampleBlock) -> Frequencies {
        let first = block[0][0];
        if block.iter().all(|row| row.iter().fold(true, |flat, value| flat & (*value == first))) {
            let mut values = [0; 64];
            values[0] = self.flat(first);
            return Frequencies { values, is_flat: true };
        }
        transform(block);
        turn(block);
        transform(block);
        let mut values = [0; 64];
        let mut any = 0;
        for (row, (from, shares)) in block.iter().zip(&self.shares).enumerate() {
            for x in 0..8 {
                // 1023: no sample of eight bits leads further, and the file could not tell more.
                let value = round(from[x] * shares[x]).clamp(-1023, 1023);
                values[row * 8 + x] = value;
                any |= if row + x > 0 { value } else { 0 };
            }
        }
        Frequencies { values, is_flat: any == 0 }
    }
}

/// To the nearest whole number, without a branch: adding so large a number leaves no room for a fraction.
fn round(value: f32) -> i16 {
    const LARGE: f32 = 12_582_912.0;
    ((value + LARGE).to_bits() as i32 - LARGE.to_bits() as i32) as i16
}

fn turn(block: &mut SampleBlock) {
    let from = *block;
    for (y, row) in block.iter_mut().enumerate() {
        for (x, value) in row.iter_mut().enumerate() {
            *value = from[x][y];
        }
    }
}

/// The transform of every column at once.
fn transform(block: &mut SampleBlock) {
    let [a, b, c, d, e, f, g, h] = *block;
    let (sum0, sum1, sum2, sum3) = (add(a, h), add(b, g), add(c, f), add(d, e));
    let (far0, far1, far2, far3) = (sub(a, h), sub(b, g), sub(c, f), sub(d, e));

    let (outer, inner) = (add(sum0, sum3), add(sum1, sum2));
    let across = sub(sum0, sum3);
    let slope = scale(add(sub(sum1, sum2), across), std::f32::consts::FRAC_1_SQRT_2);
    block[0] = add(outer, inner);
    block[4] = sub(outer, inner);
    block[2] = add(across, slope);
    block[6] = sub(across, slope);

    let (low, middle, high) = (add(far3, far2), add(far2, far1), add(far1, far0));
    let turned = scale(sub(low, high), 0.382_683_43);
    let low = add(scale(low, 0.541_196_1), turned);
    let high = add(scale(high, 1.306_563), turned);
    let middle = scale(middle, std::f32::consts::FRAC_1_SQRT_2);
    let (near, off) = (add(far0, middle), sub(far0, middle));
    block[5] = add(off, low);
    block[3] = sub(off, low);
    block[1] = add(near, high);
    block[7] = sub(near, high);
}

fn add(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
    std::array::from_fn(|at| a[at] + b[at])
}

fn sub(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
    std::array::from_fn(|at| a[at] - b[at])
}

fn scale(a: [f32; 8], factor: f32) -> [f32; 8] {
    a.map(|value| value * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition.
    fn slow(block: &SampleBlock, u: usize, v: usize) -> f32 {
        let cosine = |at: usize, k: usize| {
            let scale = if k == 0 { std::f64::consts::FRAC_1_SQRT_2 } else { 1.0 };
            scale * ((2 * at + 1) as f64 * k as f64 * std::f64::consts::PI / 16.0).cos()
        };
        let sum: f64 = (0..64).map(|at| f64::from(block[at / 8][at % 8]) * cosine(at % 8, u) * cosine(at / 8, v)).sum();
        (sum / 4.0) as f32
    }

    #[test]
    fn the_fast_transform_agrees_with_the_definition() {
        let block: SampleBlock =
            std::array::from_fn(|y| std::array::from_fn(|x| ((x * 37 + y * 91 + x * y) % 256) as f32 - 128.0));
        let found = Quantizer::light(100).apply(&mut block.clone());
        for (at, value) in found.values.iter().enumerate() {
            let expected = slow(&block, at / 8, at % 8);
            assert!((f32::from(*value) - expected).abs() <= 0.51, "{at}: {value} {expected}");
        }
        assert!(!found.is_flat);
    }

    #[test]
    fn the_order_is_a_zigzag_that_begins_to_the_right() {
        let places: Vec<(u8, u8)> = ORDER.iter().map(|at| (at / 8, at % 8)).collect();
        assert_eq!(places[..6], [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (2, 0)]);
        assert_eq!(places[58..], [(5, 7), (6, 6), (7, 5), (7, 6), (6, 7), (7, 7)]);
        let mut sorted = ORDER;
        sorted.sort_unstable();
        assert!(sorted.iter().enumerate().all(|(at, place)| at == usize::from(*place)));
    }

    #[test]
    fn a_flat_block_is_its_mean_by_either_way() {
        let quantizer = Quantizer::color(80);
        for value in [-128.0, -3.0, 0.0, 0.4, 127.0] {
            let found = quantizer.apply(&mut [[value; 8]; 8]);
            assert_eq!((found.mean(), found.is_flat), (quantizer.flat(value), true));
            assert!(found.details().all(|detail| detail == 0));
        }
    }

    #[test]
    fn qualities_scale_the_tables_as_libjpeg_does() {
        assert_eq!(Quantizer::light(50).table()[..4], [16, 11, 12, 14]);
        assert_eq!(Quantizer::light(80).table()[..4], [6, 4, 5, 6]);
        assert_eq!(Quantizer::light(100).table(), [1; 64]);
        assert_eq!(Quantizer::color(1).table(), [255; 64]);
    }
}
