//! The tools as clients see them, made of the [`table`].

use std::sync::{Arc, LazyLock};

use sinew_tool::Toolset;

use super::table;

/// How much of the phone's tools a client is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// The tools that do most of the work, for models with a small context.
    Compact,
    #[default]
    Full,
    /// Also what testers need: apps are changed, permissions granted, intents sent.
    Tester,
}

sinew_tool::choices! { Profile { "full" => Profile::Full, "compact" => Profile::Compact, "tester" => Profile::Tester } }

/// For the server's `instructions`: what is common to many tools.
pub const INSTRUCTIONS: &str = "Phone tools: look with get_screen; its lines are `ref kind \"label\" state @x,y`. \
Pass a ref (e7) as `element_id`; it stays valid while the thing is the same. Or describe an element by `by` and `value`, or by `selector`: {text, description, id, class, exact}, and near, below or inside another selector. \
A label followed by +N was cut by N characters: get_element shows it whole. A `slider` is dragged with swipe. \
Tools that act take `return`: `diff` shows what changed since you last looked, `screen` the whole screen; and `settle`: wait until the screen stops changing (implied by return). \
`max_bytes` limits any text answer. Coordinates are pixels of the current rotation.";

static COMPACT: LazyLock<Arc<Toolset>> = LazyLock::new(|| list(Profile::Compact));
static FULL: LazyLock<Arc<Toolset>> = LazyLock::new(|| list(Profile::Full));
static TESTER: LazyLock<Arc<Toolset>> = LazyLock::new(|| list(Profile::Tester));

fn list(profile: Profile) -> Arc<Toolset> {
    Arc::new(Toolset::new(table::rows().filter(|row| row.profile <= profile).map(|row| row.to_tool(profile))))
}

/// The tools of a profile; shared by all phones.
pub fn tools(profile: Profile) -> Arc<Toolset> {
    match profile {
        Profile::Compact => COMPACT.clone(),
        Profile::Full => FULL.clone(),
        Profile::Tester => TESTER.clone(),
    }
}
