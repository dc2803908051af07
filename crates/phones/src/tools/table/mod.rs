//! The table of phone tools: twelve groups, each a page of `docs/tools`. The groups of the reference come first and in
//! its order.

pub mod arguments;
mod device;
mod elements;
mod files;
mod gestures;
mod models;
mod notifications;
mod screen;
mod system;
mod testing;
mod text;
mod touch;
mod utilities;

use super::row::ToolRow;

/// Tools that belong together.
pub struct ToolGroup {
    /// The file of its page.
    pub file: &'static str,
    pub title: &'static str,
    pub introduction: &'static str,
    pub rows: &'static [ToolRow],
}

pub static GROUPS: [ToolGroup; 12] = [
    screen::GROUP,
    system::GROUP,
    touch::GROUP,
    gestures::GROUP,
    elements::GROUP,
    text::GROUP,
    utilities::GROUP,
    models::GROUP,
    notifications::GROUP,
    testing::GROUP,
    files::GROUP,
    device::GROUP,
];

/// All phone tools.
pub fn rows() -> impl Iterator<Item = &'static ToolRow> {
    GROUPS.iter().flat_map(|group| group.rows)
}

pub fn find(name: &str) -> Option<&'static ToolRow> {
    rows().find(|row| row.name == name)
}

/// Carries a tool out by an async function of two arguments.
macro_rules! run {
    ($($path:ident)::+) => {
        |on, args| Box::pin($($path)::+(on, args))
    };
}
use run;

/// What pages say about reading the screen.
const SEES: &str = "- **Data handling**: the answer shows whatever is on the screen, private things included. It goes to the caller and is not kept; the audit keeps the arguments alone.\n- **Permissions**: a client token for the gateway. Windows that an app marks as secure are left out by Android itself.";
/// What pages say about touching and pressing.
const ACTS: &str = "- **What can go wrong**: a touch or key does what a person's would, also send, buy or delete. Look before acting, and again afterwards.\n- **Permissions**: a client token for the gateway; acting calls to one phone take turns, and each is in the audit.";
/// What pages say about entering text.
const TYPES: &str = "- **Data handling**: the text is in the audit of the gateway, cut where it is long; do not enter secrets through a model.\n- **What can go wrong**: the field may belong to another app than expected; look before typing.";
/// What most acting tools answer.
const DONE: &str = "A sentence that says what was done.";

#[cfg(test)]
mod tests;
