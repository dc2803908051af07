//! The screen as it changes: viewers take turns at capturing, and all get what one of them captured.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use sinew_tool::{LivePicture, LiveRequest};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::image::{Jpeg, JpegOptions, finish_all};
use crate::phone::{Image, Phone, PhoneError};

/// Ten pictures a second are fluent enough for a person.
const PACE: Duration = Duration::from_millis(100);
/// The pace while nothing changes: fast enough not to miss much, a quarter of the work.
const IDLE_PACE: Duration = Duration::from_millis(400);
/// How long after a change the next one is expected soon.
const LIVELY: Duration = Duration::from_secs(2);
/// Sizes that are made of one capture; viewers of further ones wait for a capture of their own.
const MAX_SIZES: usize = 4;

/// The last capture of a screen.
#[derive(Default)]
pub(crate) struct LiveScreen(Mutex<LiveState>);

#[derive(Default)]
struct LiveState {
    /// When the next capture may begin.
    next: Option<Instant>,
    changed: Option<Instant>,
    /// The PNG file that the pictures were made of, as a number.
    source: Option<u64>,
    sizes: Vec<WantedSize>,
    failure: Option<PhoneError>,
}

struct WantedSize {
    max_side: u32,
    quality: u8,
    asked: Instant,
    picture: Option<LivePicture>,
}

impl LiveScreen {
    pub(crate) async fn next_picture(
        &self,
        phone: &dyn Phone,
        wanted: &LiveRequest,
    ) -> Result<Option<LivePicture>, PhoneError> {
        let deadline = Instant::now() + wanted.patience;
        loop {
            let mut state = self.0.lock().await;
            state.want(wanted);
            if state.next.is_none_or(|next| Instant::now() >= next) {
                state.capture(phone).await;
            }
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            let picture = state.picture(wanted).filter(|picture| Some(&picture.digest) != wanted.known.as_ref());
            if let Some(picture) = picture {
                return Ok(Some(picture.clone()));
            }
            let next = state.next.unwrap_or_else(Instant::now);
            // The others look at what was captured while this one waits.
            drop(state);
            if next >= deadline {
                sleep_until(deadline).await;
                return Ok(None);
            }
            sleep_until(next).await;
        }
    }
}

impl LiveState {
    fn want(&mut self, wanted: &LiveRequest) {
        let now = Instant::now();
        let fits = |size: &&mut WantedSize| (size.max_side, size.quality) == (wanted.max_side, wanted.quality);
        if let Some(size) = self.sizes.iter_mut().find(fits) {
            size.asked = now;
            return;
        }
        self.sizes.retain(|size| now.duration_since(size.asked) < LIVELY);
        self.sizes.truncate(MAX_SIZES - 1);
        let (max_side, quality) = (wanted.max_side, wanted.quality);
        self.sizes.insert(0, WantedSize { max_side, quality, asked: now, picture: None });
    }

    fn picture(&self, wanted: &LiveRequest) -> Option<&LivePicture> {
        let fits = |size: &&WantedSize| (size.max_side, size.quality) == (wanted.max_side, wanted.quality);
        self.sizes.iter().find(fits)?.picture.as_ref()
    }

    async fn capture(&mut self, phone: &dyn Phone) {
        let began = Instant::now();
        // A viewer that leaves in the middle must not make the next one hurry.
        self.next = Some(began + PACE);
        let has_changed = self.take(phone).await;
        if let Ok(true) = has_changed {
            self.changed = Some(began);
        }
        self.failure = has_changed.err();
        let is_lively = self.failure.is_none() && self.changed.is_some_and(|changed| changed.elapsed() < LIVELY);
        self.next = Some(began + if is_lively { PACE } else { IDLE_PACE });
    }

    /// Captures for every size that is wanted now. Whether something changed.
    async fn take(&mut self, phone: &dyn Phone) -> Result<bool, PhoneError> {
        let now = Instant::now();
        self.sizes.retain(|size| now.duration_since(size.asked) < LIVELY);
        let mut has_changed = false;
        for nth in 0..self.sizes.len() {
            let size = &self.sizes[nth];
            match phone.small_screenshot(size.max_side, size.quality).await {
                Ok(bytes) => has_changed |= self.sizes[nth].set(bytes),
                Err(PhoneError::Unsupported { .. }) => return self.take_whole(phone).await,
                Err(error) => return Err(error),
            }
        }
        Ok(has_changed)
    }

    /// Where the phone makes no small pictures: one whole picture, scaled here.
    async fn take_whole(&mut self, phone: &dyn Phone) -> Result<bool, PhoneError> {
        let image = phone.screenshot().await?;
        let source = match &image {
            Image::Png(bytes) => Some(number_of(bytes)),
            Image::Rgba { .. } => None,
        };
        if source.is_some() && source == self.source && self.sizes.iter().all(|size| size.picture.is_some()) {
            return Ok(false);
        }
        let options = |size: &WantedSize| JpegOptions {
            quality: size.quality,
            max_side: Some(size.max_side),
            ..JpegOptions::default()
        };
        let options: Vec<JpegOptions> = self.sizes.iter().map(options).collect();
        // Tens of milliseconds of one core.
        let made = tokio::task::spawn_blocking(move || finish_all(image, &options)).await;
        let made = made.map_err(|error| PhoneError::Failed(format!("the picture was not made: {error}")))??;
        self.source = source;
        let mut has_changed = false;
        for (size, Jpeg { bytes, .. }) in self.sizes.iter_mut().zip(made) {
            has_changed |= size.set(bytes);
        }
        Ok(has_changed)
    }
}

impl WantedSize {
    /// Whether it is another picture.
    fn set(&mut self, bytes: Vec<u8>) -> bool {
        let digest = format!("{:016x}", number_of(&bytes));
        let is_other = self.picture.as_ref().is_none_or(|picture| picture.digest != digest);
        if is_other {
            self.picture = Some(LivePicture { bytes: Arc::from(bytes), digest });
        }
        is_other
    }
}

fn number_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::phone::{Capabilities, PhoneIdentity, Work};

    /// Each picture has another colour once `moves` is set; counts its captures.
    #[derive(Default)]
    struct CountingPhone {
        captures: AtomicU32,
        colour: AtomicU32,
        moves: bool,
    }

    impl Phone for CountingPhone {
        fn about(&self) -> PhoneIdentity {
            PhoneIdentity::default()
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities::default()
        }

        fn screenshot(&self) -> Work<'_, Image> {
            Box::pin(async {
                self.captures.fetch_add(1, Ordering::Relaxed);
                if self.moves {
                    self.colour.fetch_add(20, Ordering::Relaxed);
                }
                let colour = self.colour.load(Ordering::Relaxed) as u8;
                Ok(Image::Rgba { width: 64, height: 64, pixels: vec![colour; 64 * 64 * 4] })
            })
        }
    }

    fn wanted(max_side: u32, known: Option<&LivePicture>) -> LiveRequest {
        let known = known.map(|picture| picture.digest.clone());
        LiveRequest { max_side, quality: 60, known, patience: Duration::from_secs(5) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_viewer_who_knows_the_picture_waits_for_another_and_is_told_when_there_is_none() {
        let (live, phone) = (LiveScreen::default(), CountingPhone::default());
        let first = live.next_picture(&phone, &wanted(32, None)).await.unwrap().unwrap();
        let began = Instant::now();
        assert_eq!(live.next_picture(&phone, &wanted(32, Some(&first))).await, Ok(None));
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        phone.colour.store(90, Ordering::Relaxed);
        let second = live.next_picture(&phone, &wanted(32, Some(&first))).await.unwrap().unwrap();
        assert_ne!(first.digest, second.digest);
        assert!(second.bytes.starts_with(&[0xff, 0xd8, 0xff]));
    }

    async fn view_20(live: &LiveScreen, phone: &CountingPhone) {
        let mut last = None;
        for _ in 0..20 {
            last = live.next_picture(phone, &wanted(32, last.as_ref())).await.unwrap();
            assert!(last.is_some());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn viewers_share_captures_and_a_screen_is_never_captured_faster_than_its_pace() {
        let (live, phone) = (LiveScreen::default(), CountingPhone { moves: true, ..CountingPhone::default() });
        let began = Instant::now();
        tokio::join!(view_20(&live, &phone), view_20(&live, &phone), view_20(&live, &phone));
        let at_most = began.elapsed().as_millis() / PACE.as_millis() + 1;
        let captures = phone.captures.load(Ordering::Relaxed);
        assert!((20..=21).contains(&captures) && u128::from(captures) <= at_most, "{captures} of {at_most}");
    }
}
