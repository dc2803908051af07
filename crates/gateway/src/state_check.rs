//! Looks at a state directory as opening it would, and changes nothing.

use std::path::Path;

use sinew_policy::{PolicyProblem, PolicySettings};

use crate::gateway::{BOOTSTRAP_KEY, OWN_TOKEN, SECRETS, check_audit_key};
use crate::pins::Pins;
use crate::settings::OpenError;
use crate::{store, token_labels, tokens};

/// Why a gateway would not open this state directory, as far as that can be seen while none uses it. `lock` is where
/// pins are kept, if not there.
pub fn check_state(dir: &Path, lock: Option<&Path>) -> Result<(), OpenError> {
    let mut secrets = SECRETS.iter().filter(|name| **name != OWN_TOKEN);
    secrets.try_for_each(|name| tokens::check_secret(&dir.join(name)))?;
    Pins::open(Some(lock.map_or_else(|| dir.join("sinew.lock"), Path::to_owned)))?;
    check_audit_key(dir)?;
    store::check_closed(dir)
}

/// Why a gateway would not use the token in this state directory. [`check_state`] leaves it to this.
pub fn check_own_token(dir: &Path) -> Result<(), OpenError> {
    tokens::check_secret(&dir.join(OWN_TOKEN))
}

/// What it means that the key of the boards' tokens is missing, if boards were approved with it.
pub fn lost_board_key(dir: &Path) -> Option<String> {
    let path = dir.join(BOOTSTRAP_KEY);
    let boards = if path.exists() { 0 } else { store::enrolled_boards(dir) };
    (boards > 0).then(|| {
        format!(
            "{} is missing, and {boards} approved boards have their tokens from it; without it each must be approved again when it asks for its configuration (`sinew boards`)",
            path.display()
        )
    })
}

/// Selectors of callers that match no token of this state directory; nothing where it has no store yet.
pub fn check_callers(dir: &Path, policy: &PolicySettings) -> Vec<PolicyProblem> {
    let tokens = store::callers(dir);
    tokens.map_or_else(Vec::new, |tokens| policy.check_callers(|name| token_labels::may_be_caller(name, &tokens)))
}
