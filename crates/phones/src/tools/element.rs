//! Finding things on the screen and acting on them.

use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::{Args, ErrorKind, Outcome, ToolError};

use super::args::{boolean, filled_text, invalid, text};
use super::gesture::{TAP, scroll_stroke};
use super::{Operator, budget};
use crate::phone::PhoneError;
use crate::screen::{View, diff};
use crate::touch::Stroke;
use crate::tree::select::{By, Selector};
use crate::tree::{self, NodeId, Rect, Tree};

/// What a call means by "the element": a ref or an id, or the first that fits a description.
#[derive(Clone, Debug)]
pub enum Target {
    Named(String),
    Described(Selector),
}

impl Target {
    /// `None` where the call names none.
    pub fn read(args: &Args) -> Result<Option<Target>, ToolError> {
        if let Some(name) = text(args, "element_id")? {
            return match name.is_empty() {
                true => Err(invalid("Parameter 'element_id' must be non-empty")),
                false => Ok(Some(Target::Named(name))),
            };
        }
        if text(args, "by")?.is_none() && text(args, "value")?.is_none() {
            return Ok(None);
        }
        Ok(Some(Target::Described(selector(args)?)))
    }

    pub fn required(args: &Args) -> Result<Target, ToolError> {
        Target::read(args)?.ok_or_else(|| invalid("Missing required parameter 'element_id'"))
    }

    /// How answers call it.
    pub fn shown(&self, tree: &Tree, index: usize) -> String {
        match self {
            Target::Named(name) => name.clone(),
            Target::Described(_) => tree.id(index).to_string(),
        }
    }
}

pub fn selector(args: &Args) -> Result<Selector, ToolError> {
    let by = filled_text(args, "by")?;
    let wrong =
        || invalid(format!("Invalid 'by' value: '{by}'. Must be one of: text, content_desc, resource_id, class_name"));
    let by = By::find(&by).ok_or_else(wrong)?;
    Ok(Selector { by, value: filled_text(args, "value")?, exact: boolean(args, "exact_match")?.unwrap_or(false) })
}

impl Operator<'_> {
    /// The node a target means on this tree. One that is not there is told apart: never seen, or gone,
    /// and what came instead.
    pub(super) fn find(&self, tree: &Tree, target: &Target) -> Result<usize, ToolError> {
        match target {
            Target::Described(selector) => first_fit(tree, selector).ok_or_else(|| {
                let (by, value) = (selector.by.word(), &selector.value);
                missing(format!(
                    "No element on the screen has {by} '{value}'. Look with get_screen, or scroll_to_element."
                ))
            }),
            Target::Named(name) => {
                let found = self.id_of(name).and_then(|id| tree.find(id));
                found.ok_or_else(|| self.lost(tree, name))
            }
        }
    }

    fn id_of(&self, name: &str) -> Option<NodeId> {
        NodeId::parse(name).or_else(|| self.memory.lock().refs.find(name).map(|known| known.id))
    }

    fn lost(&self, tree: &Tree, name: &str) -> ToolError {
        let view = View::of(tree);
        let mut memory = self.memory.lock();
        let was = memory.refs.find(name).map(|known| known.face.clone());
        let Some(before) = memory.shown.take() else {
            return missing(format!("Element '{name}' not found in accessibility tree. Look with get_screen first."));
        };
        // 600: enough to see where one is; the whole screen is a call away.
        let changes = diff::to_text(&before, &view, &mut memory.refs, Some(600));
        memory.shown = Some(view);
        let was = was.map(|face| format!(" It was: {face}.")).unwrap_or_default();
        missing(format!("Element '{name}' not found in accessibility tree.{was} Since the last look:\n{changes}"))
    }
}

fn missing(message: String) -> ToolError {
    ToolError::new(ErrorKind::ElementNotFound, message)
}

/// The first fitting node that can be seen, or else the first.
fn first_fit(tree: &Tree, selector: &Selector) -> Option<usize> {
    let seen = selector.find(tree).find(|index| is_visible(tree, *index));
    seen.or_else(|| selector.find(tree).next())
}

pub fn is_visible(tree: &Tree, index: usize) -> bool {
    tree.node(index).visible && !tree.visible_bounds(index).is_empty()
}

pub async fn find(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let selector = selector(args)?;
    let budget = budget(args)?;
    let tree = on.live_tree().await?;
    let mut elements: Vec<Value> = Vec::new();
    // 40: the envelope and the count of what was left out.
    let (mut spent, mut omitted) = (40, 0);
    for index in selector.find(&tree) {
        let element = tree::json::element(&tree, index);
        if let Some(budget) = budget {
            spent += element.to_string().len() + 1;
            if spent > budget {
                omitted += 1;
                continue;
            }
        }
        elements.push(element);
    }
    let mut answer = json!({"elements": elements});
    if omitted > 0 {
        answer["omitted"] = json!(omitted);
    }
    Ok(Outcome::json(answer))
}

pub async fn click(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let name = press(on, args, TAP, "clickable").await?;
    Ok(Outcome::text(format!("Click performed on element '{name}'")))
}

pub async fn long_click(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    // 800 ms: Android's own threshold is 400 to 500 ms, and slower ones can be set.
    let name = press(on, args, Duration::from_millis(800), "long-clickable").await?;
    Ok(Outcome::text(format!("Long-click performed on element '{name}'")))
}

/// Presses an element where it can be seen. A label inside a row presses the row.
async fn press(on: &Operator<'_>, args: &Args, time: Duration, quality: &str) -> Result<String, ToolError> {
    let target = Target::required(args)?;
    let tree = on.live_tree().await?;
    let index = on.find(&tree, &target)?;
    let name = target.shown(&tree, index);
    let has = |index: &usize| match quality {
        "clickable" => tree.node(*index).clickable || tree.node(*index).checkable || tree.node(*index).editable,
        _ => tree.node(*index).long_clickable,
    };
    let failed = |why: &str| ToolError::from(PhoneError::Failed(format!("Node '{name}' {why}")));
    let taker = std::iter::once(index).chain(tree.ancestors(index)).find(has);
    let taker = taker.ok_or_else(|| failed(&format!("is not {quality}")))?;
    if !tree.node(taker).enabled {
        return Err(failed("is disabled"));
    }
    if !is_visible(&tree, index) {
        return Err(failed("is not visible; bring it into view with scroll_to_element"));
    }
    let (x, y) = touch_point(&tree, index, taker);
    on.phone.touch(&[Stroke::hold(x as f32, y as f32, Duration::ZERO, time)]).await?;
    Ok(name)
}

/// A point of the node that no other thing takes: the centre, or else one of eight around it.
fn touch_point(tree: &Tree, index: usize, taker: usize) -> (i32, i32) {
    let bounds = tree.visible_bounds(index);
    let (x, y) = bounds.center();
    let inset = |from: i32, to: i32| ((i64::from(to) - i64::from(from)) / 3).min(i64::from(i32::MAX)) as i32;
    let (dx, dy) = (inset(bounds.left, bounds.right), inset(bounds.top, bounds.bottom));
    let steps = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, -1), (-1, 1), (1, 1)];
    let points = steps.map(|(right, down)| (x + right * dx, y + down * dy));
    let root = tree.ancestors(index).last().unwrap_or(index);
    let covers: Vec<Rect> = (taker + 1..tree.place(root).end)
        .filter(|other| *other != index && (tree.node(*other).clickable || tree.node(*other).editable))
        .map(|other| tree.visible_bounds(other))
        .collect();
    let free = |(x, y): &(i32, i32)| !covers.iter().any(|cover| cover.contains(*x, *y));
    points.into_iter().find(free).unwrap_or((x, y))
}

/// How often a container known to hold the element is scrolled.
const MAX_SCROLLS: usize = 5;

/// How often a list is scrolled in search of something not seen yet, each way.
const MAX_SEARCH: usize = 20;

pub async fn scroll_to(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let target = Target::required(args)?;
    let tree = on.live_tree().await?;
    let known = match &target {
        Target::Named(name) => on.id_of(name).map(|id| tree.find(id)),
        Target::Described(selector) => Some(first_fit(&tree, selector)),
    };
    match known {
        Some(Some(index)) if is_visible(&tree, index) => {
            Ok(Outcome::text(format!("Element '{}' is already visible", target.shown(&tree, index))))
        }
        Some(Some(index)) => bring_in(on, &target, tree, index).await,
        // Seen earlier, or described: it may be further up or down.
        Some(None) if matches!(&target, Target::Described(_)) || on.has_shown(&target) => {
            search(on, &target, tree).await
        }
        _ => Err(on.find(&tree, &target).err().unwrap_or_else(|| missing("Element not found".to_owned()))),
    }
}

impl Operator<'_> {
    fn has_shown(&self, target: &Target) -> bool {
        let Target::Named(name) = target else { return false };
        let Some(id) = self.id_of(name) else { return false };
        self.memory.lock().refs.of(id).is_some()
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
        index = match on.find(&tree, target) {
            Ok(index) => index,
            Err(_) => return search(on, target, tree).await,
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
            if let Ok(index) = on.find_quietly(&tree, target)
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

impl Operator<'_> {
    fn find_quietly(&self, tree: &Tree, target: &Target) -> Result<usize, ()> {
        let found = match target {
            Target::Described(selector) => first_fit(tree, selector),
            Target::Named(name) => self.id_of(name).and_then(|id| tree.find(id)),
        };
        found.ok_or(())
    }
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
