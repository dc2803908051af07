//! A device's screen as it changes, for people who watch it.

use std::sync::Arc;
use std::time::Duration;

/// Which picture of a screen a viewer wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveRequest {
    /// The longest side in pixels.
    pub max_side: u32,
    /// JPEG quality, 1 to 100.
    pub quality: u8,
    /// The digest of the picture that the viewer has.
    pub known: Option<String>,
    /// How long to wait for another one.
    pub patience: Duration,
}

/// A picture of a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePicture {
    /// A JPEG file.
    pub bytes: Arc<[u8]>,
    /// Equal pictures of the same size have equal digests.
    pub digest: String,
}
