//! Smaller and grayer pictures.

use super::{Depth, Raster};

/// Scales so that the longest side is at most `side`, each new pixel the mean of those it covers.
pub(super) fn down(raster: Raster, side: u32) -> Raster {
    let longest = raster.width.max(raster.height);
    if longest <= side {
        return raster;
    }
    let shrink = |length: u32| ((u64::from(length) * u64::from(side) / u64::from(longest)) as u32).max(1);
    let (width, height) = (shrink(raster.width), shrink(raster.height));
    let depth = raster.depth as usize;
    let edges = |new: u32, old: u32| -> Vec<usize> {
        (0..=new).map(|at| (u64::from(at) * u64::from(old) / u64::from(new)) as usize).collect()
    };
    let (columns, rows) = (edges(width, raster.width), edges(height, raster.height));
    let stride = raster.width as usize * depth;
    let mut pixels = Vec::with_capacity(width as usize * height as usize * depth);
    let mut sums = vec![0u32; width as usize * depth];
    for row in rows.windows(2) {
        sums.fill(0);
        for line in raster.pixels.chunks_exact(stride).take(row[1]).skip(row[0]) {
            for (column, sum) in columns.windows(2).zip(sums.chunks_exact_mut(depth)) {
                for pixel in line[column[0] * depth..column[1] * depth].chunks_exact(depth) {
                    sum.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += u32::from(*value));
                }
            }
        }
        let lines = (row[1] - row[0]) as u32;
        for (column, sum) in columns.windows(2).zip(sums.chunks_exact(depth)) {
            let count = ((column[1] - column[0]) as u32 * lines).max(1);
            pixels.extend(sum.iter().map(|sum| (sum / count) as u8));
        }
    }
    Raster { width, height, pixels, depth: raster.depth }
}

pub(super) fn gray(raster: Raster) -> Raster {
    let depth = raster.depth as usize;
    if raster.depth == Depth::Gray {
        return raster;
    }
    // The weights of Rec. 601 in parts of 256.
    let luma =
        |pixel: &[u8]| ((77 * u32::from(pixel[0]) + 150 * u32::from(pixel[1]) + 29 * u32::from(pixel[2])) >> 8) as u8;
    let pixels = raster.pixels.chunks_exact(depth).map(luma).collect();
    Raster { pixels, depth: Depth::Gray, ..raster }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_new_pixel_is_the_mean_of_those_it_covers() {
        let raster = Raster { width: 4, height: 2, pixels: vec![0, 10, 20, 30, 0, 10, 20, 30], depth: Depth::Gray };
        let small = down(raster, 2);
        assert_eq!((small.width, small.height, small.pixels), (2, 1, vec![5, 25]));
    }

    #[test]
    fn a_very_long_picture_keeps_at_least_one_pixel_across() {
        let raster = Raster { width: 1, height: 1000, pixels: vec![7; 1000], depth: Depth::Gray };
        let small = down(raster, 10);
        assert_eq!((small.width, small.height, small.pixels), (1, 10, vec![7; 10]));
    }

    #[test]
    fn gray_white_is_white_and_gray_black_is_black() {
        let raster = Raster { width: 2, height: 1, pixels: vec![255, 255, 255, 255, 0, 0, 0, 255], depth: Depth::Rgba };
        assert_eq!(gray(raster).pixels, [255, 0]);
    }
}
