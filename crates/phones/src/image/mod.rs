//! Pictures of the screen: from what the phone gives to what a caller gets.

mod annotate;
mod jpeg;
mod scale;

use png::{ColorType, Transformations};

use crate::phone::{Image, PhoneError};

pub use annotate::Mark;

/// 64 million pixels: eight times an 8K television, 256 MB.
const MAX_PIXELS: u64 = 64_000_000;

/// Pixels in memory, rows from the top.
#[derive(Clone, PartialEq, Eq)]
pub struct Raster {
    pub width: u32,
    pub height: u32,
    pub pixels: Vec<u8>,
    pub depth: Depth,
}

/// Bytes a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    Gray = 1,
    Rgb = 3,
    Rgba = 4,
}

/// What is to be done to a picture before it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct JpegOptions {
    /// JPEG quality, 1 to 100.
    pub quality: u8,
    /// The longest side is scaled down to this many pixels.
    pub max_side: Option<u32>,
    pub grayscale: bool,
    /// Boxes with their numbers, in the picture's own coordinates.
    pub marks: Vec<Mark>,
}

impl Default for JpegOptions {
    fn default() -> JpegOptions {
        JpegOptions { quality: 80, max_side: None, grayscale: false, marks: Vec::new() }
    }
}

/// A JPEG file and its size.
pub struct Jpeg {
    pub bytes: Vec<u8>,
    pub width: u32,
    pub height: u32,
}

/// Decodes, scales, marks and encodes. Takes tens of milliseconds: not for an async task's own thread.
pub fn finish(image: Image, options: &JpegOptions) -> Result<Jpeg, PhoneError> {
    finish_raster(Raster::decode(image)?, options)
}

/// The same picture in several forms.
pub fn finish_all(image: Image, options: &[JpegOptions]) -> Result<Vec<Jpeg>, PhoneError> {
    let raster = Raster::decode(image)?;
    options.iter().map(|options| finish_raster(raster.clone(), options)).collect()
}

fn finish_raster(mut raster: Raster, finish: &JpegOptions) -> Result<Jpeg, PhoneError> {
    let full = (raster.width, raster.height);
    if let Some(side) = finish.max_side {
        raster = scale::down(raster, side.max(1));
    }
    if finish.grayscale {
        raster = scale::gray(raster);
    }
    annotate::draw(&mut raster, &finish.marks, full);
    raster.to_jpeg(finish.quality)
}

impl Raster {
    pub fn decode(image: Image) -> Result<Raster, PhoneError> {
        match image {
            Image::Png(bytes) => decode_png(&bytes),
            Image::Rgba { width, height, pixels } => {
                let size = check_size(width, height)? * 4;
                if pixels.len() != size {
                    let message =
                        format!("the picture should have {size} bytes for {width}x{height}, and has {}", pixels.len());
                    return Err(PhoneError::Failed(message));
                }
                Ok(Raster { width, height, pixels, depth: Depth::Rgba })
            }
        }
    }

    pub fn to_jpeg(&self, quality: u8) -> Result<Jpeg, PhoneError> {
        let failed = |why: String| PhoneError::Failed(format!("the picture could not be made a JPEG: {why}"));
        let bytes = jpeg::encode(self, quality).map_err(failed)?;
        Ok(Jpeg { bytes, width: self.width, height: self.height })
    }
}

/// The number of pixels, within the limit.
fn check_size(width: u32, height: u32) -> Result<usize, PhoneError> {
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 || pixels > MAX_PIXELS {
        return Err(PhoneError::Failed(format!("a picture of {width}x{height} pixels cannot be a phone's screen")));
    }
    Ok(pixels as usize)
}

fn decode_png(bytes: &[u8]) -> Result<Raster, PhoneError> {
    let failed =
        |error: png::DecodingError| PhoneError::Failed(format!("the phone's screenshot is no readable PNG: {error}"));
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    decoder.ignore_checksums(true);
    let mut reader = decoder.read_info().map_err(failed)?;
    let (width, height) = (reader.info().width, reader.info().height);
    check_size(width, height)?;
    let size = reader.output_buffer_size().unwrap_or_default();
    let mut pixels = vec![0; size];
    let info = reader.next_frame(&mut pixels).map_err(failed)?;
    pixels.truncate(info.buffer_size());
    let (pixels, depth) = match info.color_type {
        ColorType::Rgba => (pixels, Depth::Rgba),
        ColorType::Rgb => (pixels, Depth::Rgb),
        ColorType::Grayscale => (pixels, Depth::Gray),
        ColorType::GrayscaleAlpha => (pixels.chunks_exact(2).map(|pixel| pixel[0]).collect(), Depth::Gray),
        ColorType::Indexed => return Err(PhoneError::Failed("the screenshot's palette was not expanded".to_owned())),
    };
    Ok(Raster { width, height, pixels, depth })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A picture with some structure in it.
    pub(crate) fn sample(width: u32, height: u32) -> Image {
        let pixel = |x: u32, y: u32| [(x * 255 / width) as u8, (y * 255 / height) as u8, ((x ^ y) & 0xff) as u8, 255];
        let pixels = (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect();
        Image::Rgba { width, height, pixels }
    }

    fn png_of(image: &Image) -> Image {
        let Image::Rgba { width, height, pixels } = image else { return image.clone() };
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, *width, *height);
        encoder.set_color(ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header().unwrap().write_image_data(pixels).unwrap();
        Image::Png(bytes)
    }

    #[test]
    fn a_png_becomes_the_same_pixels() {
        let image = sample(64, 48);
        let (direct, decoded) = (Raster::decode(image.clone()).unwrap(), Raster::decode(png_of(&image)).unwrap());
        assert!(direct == decoded);
    }

    #[test]
    fn a_jpeg_has_the_size_asked_for_and_begins_like_one() {
        let jpeg = finish(sample(400, 200), &JpegOptions { max_side: Some(100), ..JpegOptions::default() }).unwrap();
        assert_eq!((jpeg.width, jpeg.height), (100, 50));
        assert_eq!(jpeg.bytes[..3], [0xff, 0xd8, 0xff]);
        let untouched = finish(sample(40, 20), &JpegOptions { max_side: Some(100), ..JpegOptions::default() }).unwrap();
        assert_eq!((untouched.width, untouched.height), (40, 20));
    }

    #[test]
    fn less_quality_and_no_colour_take_less_room() {
        let size = |finish_with: JpegOptions| finish(sample(300, 300), &finish_with).unwrap().bytes.len();
        let full = size(JpegOptions::default());
        assert!(size(JpegOptions { quality: 20, ..JpegOptions::default() }) < full);
        assert!(size(JpegOptions { grayscale: true, ..JpegOptions::default() }) < full);
    }

    #[test]
    fn broken_pictures_are_refused_not_trusted() {
        let wrong = [
            Image::Png(b"not a png".to_vec()),
            Image::Png(Vec::new()),
            Image::Rgba { width: 10, height: 10, pixels: vec![0; 5] },
            Image::Rgba { width: u32::MAX, height: u32::MAX, pixels: Vec::new() },
            Image::Rgba { width: 0, height: 5, pixels: Vec::new() },
        ];
        for image in wrong {
            assert!(matches!(finish(image, &JpegOptions::default()), Err(PhoneError::Failed(_))));
        }
        let Image::Png(mut bytes) = png_of(&sample(50, 50)) else { return };
        bytes.truncate(bytes.len() / 2);
        assert!(finish(Image::Png(bytes), &JpegOptions::default()).is_err());
    }
}
