//! Scrolling until something is in view.

use std::time::Duration;

use sinew_tool::{Args, Outcome, ToolError};

use super::Operator;
use super::element::{Target, is_visible, missing};
use super::gesture::scroll_stroke;
use crate::phone::PhoneError;
use crate::tree::{Rect, Tree};

/// How often a container known to hold the element is scrolled.
const MAX_SCROLLS: usize = 5;

/// How often a list is scrolled in search of something not seen yet, each way.
const MAX_SEARCH: usize = 20;

pub async fn scroll_to(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let target = Target::required(args)?;
    let tree = on.live_tree().await?;
    match on.seek(&tree, &target) {
        Some(index) if is_visible(&tree, index) => {
            Ok(Outcome::text(format!("Element '{}' is already visible", target.shown(&tree, index))))
        }
        Some(index) => bring_in(on, &target, tree, index).await,
        // Seen earlier, or described: it may be further up or down.
        None if on.may_be_elsewhere(&target) => search(on, &target, tree).await,
        None => on.find(&tree, &target).map(|_| Outcome::default()),
    }
}

impl Operator<'_> {
    fn may_be_elsewhere(&self, target: &Target) -> bool {
        let Target::Named(name) = target else { return true };
        self.id_of(name).is_some_and(|id| self.memory.lock().refs.of(id).is_some())
    }
}

/// Scrolls the container of an element that is in the tree but out of sight.
async fn bring_in(on: &Operator<'_>, target: &Target, mut tree: Tree, index: usize) -> Result<Outcome, ToolError> {
    let name = target.shown(&tree, index);
    let mut index = index;
    for scrolls in 1..=MAX_SCROLLS {
        let container = tree.ancestors(index).find(|ancestor| tree.node(*ancestor).scrollable);
        let container = container.ok_or_else(|| {
            ToolError::from(PhoneError::Failed(format!("No scrollable container found for element '{name}'")))
        })?;
        let area = tree.visible_bounds(container);
        let direction = direction_to(area, tree.node(index).bounds);
        swipe(on, area, direction).await?;
        tree = on.settled().await?.0;
        index = match on.seek(&tree, target) {
            Some(index) => index,
            None => return search(on, target, tree).await,
        };
        if is_visible(&tree, index) {
            return Ok(Outcome::text(format!("Scrolled to element '{name}' ({scrolls} scroll(s))")));
        }
    }
    Err(PhoneError::Failed(format!("Element '{name}' not visible after {MAX_SCROLLS} scroll attempts")).into())
}

fn direction_to(area: Rect, bounds: Rect) -> &'static str {
    match () {
        () if bounds.top >= area.bottom => "down",
        () if bounds.bottom <= area.top && bounds.top < area.top => "up",
        () if bounds.left >= area.right => "right",
        () if bounds.right <= area.left && bounds.left < area.left => "left",
        () => "down",
    }
}

/// Scrolls the largest list to its end and then to its beginning until the element appears.
async fn search(on: &Operator<'_>, target: &Target, mut tree: Tree) -> Result<Outcome, ToolError> {
    let mut scrolls = 0;
    for direction in ["down", "up"] {
        for _ in 0..MAX_SEARCH * if direction == "up" { 2 } else { 1 } {
            let Some(area) = main_list(&tree) else {
                return Err(
                    PhoneError::Failed(format!("No scrollable container found for element {}", told(target))).into()
                );
            };
            swipe(on, area, direction).await?;
            scrolls += 1;
            let next = on.settled().await?.0;
            let unmoved = next == tree;
            tree = next;
            if let Some(index) = on.seek(&tree, target)
                && is_visible(&tree, index)
            {
                let name = target.shown(&tree, index);
                return Ok(Outcome::text(format!("Scrolled to element '{name}' ({scrolls} scroll(s))")));
            }
            if unmoved {
                break;
            }
        }
    }
    Err(missing(format!("Element {} not found; scrolled {scrolls} time(s), to both ends", told(target))))
}

fn told(target: &Target) -> String {
    match target {
        Target::Named(name) => format!("'{name}'"),
        Target::Described(selector) => format!("with {} '{}'", selector.by.word(), selector.value),
    }
}

/// The visible part of the scrollable node that takes the most room.
fn main_list(tree: &Tree) -> Option<Rect> {
    let visible = tree.all_visible_bounds();
    let area = |bounds: &Rect| {
        (i64::from(bounds.right) - i64::from(bounds.left)) * (i64::from(bounds.bottom) - i64::from(bounds.top))
    };
    let lists = (0..tree.len()).filter(|index| tree.node(*index).scrollable).map(|index| visible[index]);
    // Of two that fill the same room the inner one scrolls; it comes later, and `max_by_key` keeps it.
    lists.filter(|bounds| !bounds.is_empty()).max_by_key(area)
}

/// Slowly, so that the content follows the finger and does not fly past.
async fn swipe(on: &Operator<'_>, area: Rect, direction: &str) -> Result<(), PhoneError> {
    let mut stroke = scroll_stroke(area, direction, 0.6)?;
    if let Some(last) = stroke.points.last_mut() {
        last.at = Duration::from_millis(600);
    }
    on.phone.touch(&[stroke]).await
}
