//! The versions of Android that the phone can pretend to be.

use std::fmt;

/// One of four versions; between them every output format changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Android {
    V9,
    V11,
    V13,
    #[default]
    V15,
}

impl Android {
    pub const ALL: [Android; 4] = [Android::V9, Android::V11, Android::V13, Android::V15];

    /// `9`, `11`, `13` or `15`.
    pub fn parse(text: &str) -> Option<Android> {
        Android::ALL.into_iter().find(|version| version.release() == text)
    }

    pub fn release(self) -> &'static str {
        match self {
            Android::V9 => "9",
            Android::V11 => "11",
            Android::V13 => "13",
            Android::V15 => "15",
        }
    }

    pub fn sdk(self) -> u32 {
        match self {
            Android::V9 => 28,
            Android::V11 => 30,
            Android::V13 => 33,
            Android::V15 => 35,
        }
    }

    pub fn build(self) -> &'static str {
        match self {
            Android::V9 => "PQ3A.190801.002",
            Android::V11 => "RQ3A.211001.001",
            Android::V13 => "TQ3A.230901.001",
            Android::V15 => "AP4A.250105.002",
        }
    }

    pub fn security_patch(self) -> &'static str {
        match self {
            Android::V9 => "2019-08-01",
            Android::V11 => "2021-10-01",
            Android::V13 => "2023-09-01",
            Android::V15 => "2025-01-05",
        }
    }
}

impl fmt::Display for Android {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.release())
    }
}
