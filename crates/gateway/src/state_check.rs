//! Looks at a state directory as opening it would, and changes nothing.

use std::path::Path;

use crate::gateway::SECRETS;
use crate::pins::Pins;
use crate::settings::OpenError;
use crate::{store, tokens};

/// Why a gateway would not open this state directory, as far as that can be seen while none uses it. `lock` is where
/// pins are kept, if not there.
pub fn check_state(dir: &Path, lock: Option<&Path>) -> Result<(), OpenError> {
    SECRETS.iter().try_for_each(|name| tokens::check_secret(&dir.join(name)))?;
    Pins::open(Some(lock.map_or_else(|| dir.join("sinew.lock"), Path::to_owned)))?;
    store::check_closed(dir)
}
