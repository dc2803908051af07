//! How a phone is made.

use super::android::Android;

/// How a phone is made.
#[derive(Clone, Debug)]
pub struct PhoneSetup {
    pub android: Android,
    pub serial: String,
    pub model: String,
    /// Natural size and density; 1080x2400 at 420 as most phones of these years.
    pub size: (i32, i32),
    pub density: i32,
    pub lock: LockScreen,
    /// Milliseconds since 1970 at boot.
    pub booted_at: i64,
}

impl Default for PhoneSetup {
    fn default() -> PhoneSetup {
        PhoneSetup {
            android: Android::default(),
            serial: "VIRTUAL0001".to_owned(),
            model: "Virtual Phone".to_owned(),
            size: (1080, 2400),
            density: 420,
            lock: LockScreen::Swipe,
            // 2026-02-11 16:30:00 UTC.
            booted_at: 1_770_827_400_000,
        }
    }
}

/// The lock screen of a phone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LockScreen {
    None,
    #[default]
    Swipe,
    Pin(String),
}
