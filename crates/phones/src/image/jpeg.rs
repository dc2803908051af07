//! JPEG files, encoded in bands side by side.
//!
//! A JPEG may restart its bit stream at regular places, so parts of a picture that were encoded apart can stand
//! in one file: the first part's head with the whole height, and restart markers between the parts.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use super::{Depth, Raster};

/// Both block sizes in use, 8 of grey and 16 of coloured pictures, divide it.
const UNIT: usize = 16;

/// Half a million pixels are done in three milliseconds, and threads would not help.
const WORTH_SHARING: usize = 500_000;

/// The whole file.
pub fn encode(raster: &Raster, quality: u8) -> Result<Vec<u8>, String> {
    let threads = match raster.width as usize * raster.height as usize {
        WORTH_SHARING.. => std::thread::available_parallelism().map_or(1, usize::from).min(4),
        _ => 1,
    };
    encode_in(raster, quality, threads)
}

fn encode_in(raster: &Raster, quality: u8, bands: usize) -> Result<Vec<u8>, String> {
    let side = |pixels: u32| u16::try_from(pixels).map_err(|_| format!("{pixels} pixels are too many for a side"));
    let (width, height) = (side(raster.width)?, side(raster.height)?);
    let rows = usize::from(height).div_ceil(UNIT).div_ceil(bands) * UNIT;
    let block = if raster.depth == Depth::Gray { 8 } else { 16 };
    let blocks = usize::from(width).div_ceil(block) * (rows / block);
    // The interval is told in two bytes; a picture that is larger is encoded in one piece.
    let (Some(interval), true) = (u16::try_from(blocks).ok(), rows < usize::from(height)) else {
        return band(&raster.pixels, width, height, raster.depth, quality);
    };
    let bytes = rows * usize::from(width) * raster.depth as usize;
    let parts: Vec<Result<Vec<u8>, String>> = std::thread::scope(|scope| {
        let encoding = raster.pixels.chunks(bytes).enumerate().map(|(index, pixels)| {
            // Neither is larger than the height, which fits.
            let height = (usize::from(height) - index * rows).min(rows) as u16;
            scope.spawn(move || band(pixels, width, height, raster.depth, quality))
        });
        let encoding: Vec<_> = encoding.collect();
        encoding.into_iter().map(|part| part.join().unwrap_or_else(|_| Err("the encoder died".to_owned()))).collect()
    });
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    join(&parts, height, interval).ok_or_else(|| "the encoder wrote no JPEG".to_owned())
}

fn band(pixels: &[u8], width: u16, height: u16, depth: Depth, quality: u8) -> Result<Vec<u8>, String> {
    let colors = match depth {
        Depth::Gray => ColorType::Luma,
        Depth::Rgb => ColorType::Rgb,
        Depth::Rgba => ColorType::Rgba,
    };
    let mut bytes = Vec::with_capacity(pixels.len() / 8);
    let mut encoder = Encoder::new(&mut bytes, quality.clamp(1, 100));
    // The sampling that libjpeg chooses by default, and half the work.
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.encode(pixels, width, height, colors).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Files of equal width and tables become one.
fn join(parts: &[Vec<u8>], height: u16, interval: u16) -> Option<Vec<u8>> {
    let mut file = Vec::with_capacity(parts.iter().map(Vec::len).sum());
    for (index, part) in parts.iter().enumerate() {
        let Head { frame, scan, data } = head(part)?;
        if index == 0 {
            file.extend_from_slice(part.get(..scan)?);
            file.get_mut(frame + 5..frame + 7)?.copy_from_slice(&height.to_be_bytes());
            file.extend_from_slice(&[0xff, 0xdd, 0, 4]);
            file.extend_from_slice(&interval.to_be_bytes());
            file.extend_from_slice(part.get(scan..data)?);
        } else {
            // Restart markers count from 0 to 7 and again.
            file.extend_from_slice(&[0xff, 0xd0 | ((index - 1) % 8) as u8]);
        }
        file.extend_from_slice(part.get(data..)?.strip_suffix(&[0xff, 0xd9])?);
    }
    file.extend_from_slice(&[0xff, 0xd9]);
    Some(file)
}

/// Where things begin in a JPEG file.
struct Head {
    /// The frame's segment, which tells the size.
    frame: usize,
    /// The scan's segment.
    scan: usize,
    /// The scan's data.
    data: usize,
}

fn head(file: &[u8]) -> Option<Head> {
    let (mut at, mut frame) = (2, None);
    loop {
        let [0xff, marker, high, low] = *file.get(at..at + 4)? else { return None };
        let next = at + 2 + usize::from(u16::from_be_bytes([high, low]));
        match marker {
            0xc0 => frame = Some(at),
            0xda => return Some(Head { frame: frame?, scan: at, data: next }),
            _ => {}
        }
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use zune_jpeg::JpegDecoder;
    use zune_jpeg::zune_core::bytestream::ZCursor;

    use super::*;
    use crate::image::scale;
    use crate::image::tests::sample;

    fn pixels(file: &[u8]) -> (Option<(usize, usize)>, Vec<u8>) {
        let mut decoder = JpegDecoder::new(ZCursor::new(file));
        let pixels = decoder.decode().unwrap();
        (decoder.dimensions(), pixels)
    }

    #[test]
    fn bands_make_the_same_picture_as_one_piece() {
        let color = Raster::decode(sample(230, 410)).unwrap();
        let gray = scale::gray(Raster::decode(sample(230, 410)).unwrap());
        for raster in [color, gray] {
            let whole = pixels(&encode_in(&raster, 80, 1).unwrap());
            assert_eq!(whole.0, Some((230, 410)));
            for bands in [2, 3, 4, 13, 26, 40] {
                assert!(pixels(&encode_in(&raster, 80, bands).unwrap()) == whole, "{bands} bands");
            }
        }
    }

    #[test]
    fn a_file_that_is_no_jpeg_has_no_head() {
        for wrong in [&b""[..], b"\xff\xd8", b"\xff\xd8\xff\xda\0\x02", b"\xff\xd8\x00\x00\x00\x00", b"GIF89a...."] {
            assert!(head(wrong).is_none());
        }
    }
}
