//! One process owns a state directory.

use std::path::Path;

/// The gateway that holds a state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    pub pid: u32,
    pub url: Option<String>,
}

/// The gateway that runs on this state directory, if one does.
pub fn running(_state_dir: &Path) -> Option<Running> {
    None
}
