//! `screenrecord`: a video of the screen, as an MP4 file whose pictures are JPEGs.

use std::time::Duration;

use sinew_phones::Image;
use sinew_phones::image::{self, JpegOptions};

use super::stream::regex;
use super::{Io, Shell};
use crate::phone::handset::{Denial, Handset};
use crate::phone::mp4::Mp4;
use crate::phone::programs::RunningProgram;

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
        if let Err(trouble) = self.write_file(path, Vec::new()) {
            return wrong(format!("Unable to open '{path}': {trouble}"), io);
        }
        let side = size.map(|(width, height): (u32, u32)| width.max(height));
        let recorder = Recorder { handset: self.handset.clone(), path: self.path(path), seconds, side };
        let program = self.handset.programs().start(format!("screenrecord {}", args.join(" ")));
        // It hears nothing of a connection that ends.
        let recorded = tokio::spawn(async move { recorder.run(&program).await });
        match recorded.await.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(()) => 0,
            Err(trouble) => wrong(format!("ERROR: {trouble}"), io),
        }
    }

    /// `pkill [-SIGNAL] -f PATTERN`, for programs that run beside the shells; others belong to the system and to apps.
    pub(super) fn pkill(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let Some(pattern) = args.iter().find(|arg| !arg.starts_with('-')) else {
            return wrong("pkill: Needs 1 argument".to_owned(), io);
        };
        match regex(pattern, false) {
            Ok(pattern) => u8::from(!self.handset.programs().interrupt(|line| pattern.is_match(line))),
            Err(trouble) => wrong(format!("pkill: {trouble}"), io),
        }
    }
}

/// A recording that goes on by itself.
struct Recorder {
    handset: Handset,
    path: String,
    seconds: u64,
    side: Option<u32>,
}

impl Recorder {
    /// Records for its time or until it is interrupted.
    async fn run(self, program: &RunningProgram) -> Result<(), String> {
        let mut video = Mp4::new(PAUSE);
        let recording = async {
            for nth in 0..self.seconds * 1000 / PAUSE.as_millis() as u64 {
                if nth > 0 {
                    self.handset.pass(PAUSE).await;
                }
                let (jpeg, size) = self.picture()?;
                video.push(&jpeg, size);
            }
            self.handset.recorder_stops().await;
            Ok::<(), String>(())
        };
        tokio::select! {
            biased;
            () = program.interrupted() => {}
            recorded = recording => recorded?,
        }
        let time = self.handset.with(|machine| (machine.epoch() / 1000) as u32);
        let mut files = self.handset.files();
        // A file that was removed meanwhile comes back to nobody.
        match files.read(&self.path).is_ok() {
            true => files.write(&self.path, video.finish(), 0o644, time).map_err(|trouble| trouble.text().to_owned()),
            false => Ok(()),
        }
    }

    /// The screen as a JPEG, with its width and height.
    fn picture(&self) -> Result<(Vec<u8>, (u32, u32)), String> {
        let canvas = self.handset.with(|machine| machine.paint());
        let longest = canvas.width.max(canvas.height);
        let canvas = canvas.shrunk(self.side.map_or(1, |side| longest / side.max(1) as i32).max(1));
        let (width, height) = (canvas.width as u32, canvas.height as u32);
        let picture = Image::Rgba { width, height, pixels: canvas.bytes().to_vec() };
        let options = JpegOptions { quality: 60, max_side: self.side, grayscale: false, marks: Vec::new() };
        let jpeg = image::finish(picture, &options).map_err(|error| error.to_string())?;
        Ok((jpeg.bytes, (jpeg.width, jpeg.height)))
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
