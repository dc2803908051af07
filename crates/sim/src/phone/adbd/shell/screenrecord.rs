//! `screenrecord`: a video of the screen, as an MP4 file whose pictures are JPEGs.

use std::time::Duration;

use sinew_phones::Image;
use sinew_phones::image::{self, JpegOptions};

use super::{Io, Shell};
use crate::phone::handset::Denial;
use crate::phone::mp4::Mp4;

/// Android's own default and most, in seconds.
const LONGEST: u64 = 180;
/// A real phone records at its display's rate; two a second show what happens on this one.
const PAUSE: Duration = Duration::from_millis(500);

impl Shell {
    pub(super) async fn screenrecord(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let mut seconds = LONGEST;
        let (mut size, mut target) = (None, None);
        let mut words = args.iter();
        while let Some(word) = words.next() {
            match *word {
                "--time-limit" => match words.next().and_then(|text| text.parse().ok()) {
                    Some(limit @ 1..=LONGEST) => seconds = limit,
                    _ => return wrong(format!("Time limit {}s outside acceptable range [1,{LONGEST}]", seconds), io),
                },
                "--size" => match words.next().and_then(|text| parse_size(text)) {
                    Some(given) => size = Some(given),
                    None => return wrong("Invalid size, must be width x height".to_owned(), io),
                },
                "--bit-rate" | "--rotate" | "--display-id" => drop(words.next()),
                "--verbose" | "--bugreport" => {}
                path if !path.starts_with('-') => target = Some(path),
                option => return wrong(format!("unrecognized option '{option}'"), io),
            }
        }
        let Some(path) = target else { return wrong("Must specify output file (see --help).".to_owned(), io) };
        if self.handset.is_denied(Denial::Capture) {
            return wrong("ERROR: unable to create virtual display".to_owned(), io);
        }
        // The file is there from the beginning, and a recorder whose file was removed brings it back to nobody.
        if let Err(trouble) = self.write_file(path, Vec::new()) {
            return wrong(format!("Unable to open '{path}': {trouble}"), io);
        }
        let side = size.map(|(width, height): (u32, u32)| width.max(height));
        let mut video = Mp4::new(PAUSE);
        for nth in 0..seconds * 1000 / PAUSE.as_millis() as u64 {
            if nth > 0 {
                self.handset.pass(PAUSE).await;
            }
            let canvas = self.handset.with(|machine| machine.paint());
            let longest = canvas.width.max(canvas.height);
            let canvas = canvas.shrunk(side.map_or(1, |side| longest / side.max(1) as i32).max(1));
            let (width, height) = (canvas.width as u32, canvas.height as u32);
            let picture = Image::Rgba { width, height, pixels: canvas.bytes().to_vec() };
            let options = JpegOptions { quality: 60, max_side: side, grayscale: false, marks: Vec::new() };
            match image::finish(picture, &options) {
                Ok(jpeg) => video.push(&jpeg.bytes, (jpeg.width, jpeg.height)),
                Err(error) => return wrong(format!("ERROR: {error}"), io),
            }
        }
        self.handset.recorder_stops().await;
        if self.read_file(path).is_err() {
            return 0;
        }
        match self.write_file(path, video.finish()) {
            Ok(()) => 0,
            Err(trouble) => wrong(format!("ERROR: writing '{path}': {trouble}"), io),
        }
    }
}

fn parse_size(text: &str) -> Option<(u32, u32)> {
    let (width, height) = text.split_once('x')?;
    let side = |text: &str| text.parse().ok().filter(|side| (2..=8192).contains(side));
    Some((side(width)?, side(height)?))
}

fn wrong(message: String, io: &mut Io<'_, '_>) -> u8 {
    io.error(message);
    1
}
