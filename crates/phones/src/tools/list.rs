//! The tools as clients see them, made of the [`table`].

use std::sync::{Arc, LazyLock};

use sinew_tool::Toolset;

use super::table;

/// How much of the phone's tools a client is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    #[default]
    Full,
    /// A dozen tools that do most of the work, for models with a small context.
    Compact,
}

sinew_tool::choices! { Profile { "full" => Profile::Full, "compact" => Profile::Compact } }

/// For the server's `instructions`: what is common to many tools.
pub const INSTRUCTIONS: &str = "Phone tools: look with get_screen; its lines are `ref kind \"label\" state @x,y`. \
Pass a ref (e7) as `element_id`; it stays valid while the thing is the same. Or describe an element by `by` and `value`. \
A label followed by +N was cut by N characters: get_element shows it whole. A `slider` is dragged with swipe. \
Tools that act take `return`: `diff` shows what changed since you last looked, `screen` the whole screen; and `settle`: wait until the screen stops changing (implied by return). \
`max_bytes` limits any text answer. Coordinates are pixels of the current rotation.";

static FULL: LazyLock<Arc<Toolset>> = LazyLock::new(|| Arc::new(Toolset::new(table::rows().map(|row| row.to_tool()))));

static COMPACT: LazyLock<Arc<Toolset>> =
    LazyLock::new(|| Arc::new(Toolset::new(table::rows().filter(|row| row.compact).map(|row| row.to_tool()))));

/// The tools of a profile; shared by all phones.
pub fn tools(profile: Profile) -> Arc<Toolset> {
    match profile {
        Profile::Full => FULL.clone(),
        Profile::Compact => COMPACT.clone(),
    }
}
