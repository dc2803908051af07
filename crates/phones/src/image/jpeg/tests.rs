//! What another decoder makes of the files.

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;

use super::*;
use crate::image::scale;
use crate::image::tests::sample;

fn decoded(file: &[u8]) -> (Option<(usize, usize)>, Vec<u8>) {
    let mut decoder = JpegDecoder::new(ZCursor::new(file));
    let pixels = decoder.decode().unwrap();
    (decoder.dimensions(), pixels)
}

/// The mean square of the differences, a channel each.
fn error(raster: &Raster, quality: u8) -> f64 {
    let (size, pixels) = decoded(&encode_in(raster, quality, 1).unwrap());
    assert_eq!(size, Some((raster.width as usize, raster.height as usize)));
    // The decoder answers grey in three equal channels.
    let channels = |pixel: &[u8]| [pixel[0], pixel[pixel.len().min(3) / 2], pixel[pixel.len().min(3) - 1]];
    let original = raster.pixels.chunks_exact(raster.depth as usize).flat_map(channels);
    let sum: f64 = original.zip(&pixels).map(|(a, b)| (f64::from(a) - f64::from(*b)).powi(2)).sum();
    sum / pixels.len() as f64
}

fn smooth(width: u32, height: u32, depth: Depth) -> Raster {
    let pixel = |x: u32, y: u32| [(x * 255 / width) as u8, (y * 255 / height) as u8, ((x + y) / 4) as u8, 255];
    let pixels = (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y).into_iter().take(depth as usize)));
    Raster { width, height, pixels: pixels.collect(), depth }
}

#[test]
fn another_decoder_sees_the_same_picture() {
    for depth in [Depth::Gray, Depth::Rgb, Depth::Rgba] {
        for (width, height) in [(1, 1), (7, 9), (16, 16), (17, 33), (100, 40), (33, 16)] {
            let raster = smooth(width, height, depth);
            let error = error(&raster, 95);
            assert!(error < 6.0 + 2000.0 / f64::from(width * height), "{width}x{height} {depth:?}: {error}");
        }
    }
}

#[test]
fn flat_squares_keep_their_colour() {
    for color in [[0, 0, 0], [255, 255, 255], [255, 0, 0], [12, 200, 99]] {
        let pixels = color.repeat(48 * 48);
        let raster = Raster { width: 48, height: 48, pixels, depth: Depth::Rgb };
        let error = error(&raster, 80);
        assert!(error < 12.0, "{color:?}: {error}");
        assert!(encode_in(&raster, 80, 1).unwrap().len() < 700, "a head and a few bytes");
    }
}

#[test]
fn less_quality_is_less_like_the_original_and_every_quality_is_readable() {
    let raster = Raster::decode(sample(120, 90)).unwrap();
    let errors = [1, 25, 50, 75, 100].map(|quality| error(&raster, quality));
    assert!(errors.windows(2).all(|pair| pair[0] > pair[1]), "{errors:?}");
}

#[test]
fn noise_at_the_highest_quality_stays_within_what_a_file_can_tell() {
    let mut seed = 1u32;
    let mut noise = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if seed >> 31 == 0 { 0 } else { 255 }
    };
    let pixels = (0..64 * 64).map(|_| noise()).collect();
    let raster = Raster { width: 64, height: 64, pixels, depth: Depth::Gray };
    assert!(error(&raster, 100) < 1.0);
}

#[test]
fn bands_make_the_same_picture_as_one_piece() {
    let color = Raster::decode(sample(230, 410)).unwrap();
    let gray = scale::gray(Raster::decode(sample(230, 410)).unwrap());
    for raster in [color, gray] {
        let whole = decoded(&encode_in(&raster, 80, 1).unwrap());
        assert_eq!(whole.0, Some((230, 410)));
        for bands in [2, 3, 4, 13, 26, 40] {
            assert!(decoded(&encode_in(&raster, 80, bands).unwrap()) == whole, "{bands} bands");
        }
    }
}

#[test]
fn a_picture_that_no_file_can_hold_is_refused() {
    for (width, height, bytes) in [(0, 5, 0), (70_000, 1, 70_000), (4, 4, 5)] {
        let raster = Raster { width, height, pixels: vec![0; bytes], depth: Depth::Gray };
        assert!(encode_in(&raster, 80, 1).is_err());
    }
}
