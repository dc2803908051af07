//! Finding things on the screen and acting on them.

use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::text::clean_line;
use sinew_tool::{Args, ErrorKind, Outcome, ToolError};

use super::args::{boolean, filled_text, invalid, text};
use super::gesture::TAP;
use super::{Operator, budget};
use crate::phone::PhoneError;
use crate::screen::label::MAX_LABEL;
use crate::screen::refs::Refs;
use crate::screen::{Item, ScreenView, diff};
use crate::touch::Stroke;
use crate::tree::select::{By, Condition, Selector};
use crate::tree::{self, Rect, Tree, UiNodeId};

/// Letters of a text that are compared with a selector.
const MAX_COMPARED: usize = 100;

/// What a call means by "the element".
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// A ref or an id.
    Named(String),
    /// The first that fits `by` and `value`.
    Described(Selector),
    /// The only one that fits a selector.
    Selected(Selector),
}

impl Target {
    /// `None` where the call names none.
    pub(super) fn read(args: &Args) -> Result<Option<Target>, ToolError> {
        if let Some(name) = text(args, "element_id")? {
            return match name.is_empty() {
                true => Err(invalid("element_id", "Parameter 'element_id' must be non-empty")),
                false => Ok(Some(Target::Named(name))),
            };
        }
        if let Some(selector) = given_selector(args)? {
            return Ok(Some(Target::Selected(selector)));
        }
        if text(args, "by")?.is_none() && text(args, "value")?.is_none() {
            return Ok(None);
        }
        Ok(Some(Target::Described(selector(args)?)))
    }

    pub(super) fn required(args: &Args) -> Result<Target, ToolError> {
        Target::read(args)?.ok_or_else(|| invalid("element_id", "Missing required parameter 'element_id'"))
    }

    /// How answers call it.
    pub(super) fn shown(&self, tree: &Tree, index: usize) -> String {
        match self {
            Target::Named(name) => name.clone(),
            Target::Described(_) | Target::Selected(_) => tree.id(index).to_string(),
        }
    }
}

fn given_selector(args: &Args) -> Result<Option<Selector>, ToolError> {
    match args.get("selector") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => Selector::from_json(value).map(Some).map_err(|why| invalid("selector", why)),
    }
}

/// What to look for: a `selector`, or `by` and `value`.
pub(super) fn selector(args: &Args) -> Result<Selector, ToolError> {
    if let Some(selector) = given_selector(args)? {
        return Ok(selector);
    }
    let by = filled_text(args, "by")?;
    let wrong = || {
        invalid(
            "by",
            format!("Invalid 'by' value: '{by}'. Must be one of: text, content_desc, resource_id, class_name"),
        )
    };
    let by = By::find(&by).ok_or_else(wrong)?;
    Ok(Selector::by(by, filled_text(args, "value")?, boolean(args, "exact_match")?.unwrap_or(false)))
}

impl Operator<'_> {
    /// The node a target means on this tree. The error for a missing one says whether it was never seen or is gone,
    /// and what changed.
    pub(super) fn find(&self, tree: &Tree, target: &Target) -> Result<usize, ToolError> {
        match target {
            Target::Described(selector) => first_fit(tree, selector).ok_or_else(|| self.not_there(tree, selector)),
            Target::Selected(selector) => match selector.find_things(tree)[..] {
                [one] => Ok(one),
                [] => Err(self.not_there(tree, selector)),
                ref several => Err(self.ambiguous(tree, selector, several)),
            },
            Target::Named(name) => self.seek(tree, target).ok_or_else(|| self.lost(tree, name)),
        }
    }

    /// The same without an error.
    pub(super) fn seek(&self, tree: &Tree, target: &Target) -> Option<usize> {
        match target {
            Target::Described(selector) => first_fit(tree, selector),
            Target::Selected(selector) => selector.find_things(tree).first().copied(),
            Target::Named(name) => self.id_of(name).and_then(|id| tree.find(id)),
        }
    }

    /// The error names what is most like it, so that whoever wrote the selector sees what became of the element.
    fn not_there(&self, tree: &Tree, selector: &Selector) -> ToolError {
        if !self.may_show() {
            return missing(format!("No element on the screen has {selector}."));
        }
        let what_is = self.what_is_there(tree, selector);
        let hint = self.other_name(tree, selector);
        let hint = hint.unwrap_or_else(|| "Look with get_screen, or scroll_to_element.".to_owned());
        missing(format!("No element on the screen has {selector}. {hint} {what_is}"))
    }

    /// The app of the screen, and what is most like a selector that fits nothing.
    fn what_is_there(&self, tree: &Tree, selector: &Selector) -> String {
        let view = ScreenView::of(tree);
        let mut memory = self.memory.lock();
        // 3: the one that was meant, and its neighbours.
        let asks_for_id = selector.conditions.iter().any(|condition| condition.by == By::ResourceId);
        let nearest: Vec<String> = nearest_items(tree, &view, selector)
            .into_iter()
            .take(3)
            .map(|item| {
                let id = id_of_item(tree, item).filter(|_| asks_for_id);
                let id = id.map(|id| format!(" id {id}")).unwrap_or_default();
                format!("{} {item}{id}", memory.refs.name(item))
            })
            .collect();
        let nearest = match nearest.is_empty() {
            // An app that was renamed throughout: what its elements are called now.
            true if asks_for_id => ids_on_screen(tree, &view),
            true => String::new(),
            false => format!(" Most like it:\n{}", nearest.join("\n")),
        };
        let package = if view.package.is_empty() { "an unknown app" } else { &view.package };
        format!("The screen is of {package}.{nearest}")
    }

    /// What to look for instead, where the name of the selector is a description and not a text, or the other way round.
    pub(super) fn other_name(&self, tree: &Tree, selector: &Selector) -> Option<String> {
        let (by, swapped) = selector.by_other_name().filter(|_| self.may_show())?;
        let (member, word) = (by.member(), by.word());
        let is_there = !swapped.find(tree).is_empty();
        is_there.then(|| format!("One has it as its {member}: use `{member}` in the selector, or `by: {word}`."))
    }

    fn ambiguous(&self, tree: &Tree, selector: &Selector, several: &[usize]) -> ToolError {
        let remedy = "say more about the one you mean (exact, id, near, below, inside)";
        if !self.may_show() {
            return missing(format!("{} elements have {selector}; {remedy}.", several.len()));
        }
        let view = ScreenView::of(tree);
        let mut memory = self.memory.lock();
        // 5: enough to see what tells them apart.
        let shown: Vec<String> = several
            .iter()
            .take(5)
            .map(|index| match view.find(tree.id(*index)) {
                Some(item) => format!("{} {item}", memory.refs.name(item)),
                None => {
                    let (node, (x, y)) = (tree.node(*index), tree.visible_bounds(*index).center());
                    let text = node.text.as_deref().or(node.description.as_deref()).unwrap_or_default();
                    format!("{} \"{}\" @{x},{y}", tree.id(*index), clean_line(text, MAX_LABEL))
                }
            })
            .collect();
        missing(format!("{} elements have {selector}; {remedy}. The first:\n{}", several.len(), shown.join("\n")))
    }

    pub(super) fn id_of(&self, name: &str) -> Option<UiNodeId> {
        self.memory.id_of(name)
    }

    fn lost(&self, tree: &Tree, name: &str) -> ToolError {
        if !self.may_show() {
            return missing(format!("Element '{name}' not found in accessibility tree."));
        }
        let view = ScreenView::of(tree);
        let mut memory = self.memory.lock();
        let was = memory.refs.find(name).map(|known| known.face.clone());
        if was.is_none() && UiNodeId::parse(name).is_none() {
            let why = match Refs::is_name(name) {
                true => "no screen shown so far had this ref",
                false => "it is neither a ref (e7) nor an id (node_1f3a)",
            };
            return missing(format!("Element '{name}' not found in accessibility tree: {why}. Look with get_screen."));
        }
        let Some(before) = memory.shown.remove(self.caller) else {
            return missing(format!("Element '{name}' not found in accessibility tree. Look with get_screen first."));
        };
        // 600: enough to see where one is; the whole screen is a call away.
        let changes = diff::to_text(&before, &view, &mut memory.refs, Some(600));
        memory.shown.insert(self.caller, view);
        let was = was.map(|face| format!(" It was: {face}.")).unwrap_or_default();
        missing(format!("Element '{name}' not found in accessibility tree.{was} Since the last look:\n{changes}"))
    }
}

/// The things on the screen that share most with what the selector says, the nearest first.
fn nearest_items<'v>(tree: &Tree, view: &'v ScreenView, selector: &Selector) -> Vec<&'v Item> {
    let closeness = |item: &Item| {
        let node = tree.find(item.id).map(|index| tree.node(index));
        let face = item.face();
        let said = |condition: &Condition| match (condition.by, node) {
            (By::ResourceId, _) => {
                let wanted = short_id(&condition.value);
                let own = id_of_item(tree, item).map_or(0, |id| resemblance(wanted, id));
                // `new_note` may have been the button "New note".
                own.max(likeness(&wanted.replace(['_', '-'], " "), &face))
            }
            (By::Class, Some(node)) => likeness(&condition.value, &node.class) / 2,
            _ => likeness(&condition.value, &face),
        };
        selector.conditions.iter().map(said).sum::<usize>()
    };
    let mut items: Vec<(usize, &Item)> = view.items.iter().map(|item| (closeness(item), item)).collect();
    items.retain(|(closeness, _)| *closeness > 0);
    items.sort_by_key(|(closeness, _)| std::cmp::Reverse(*closeness));
    items.into_iter().map(|(_, item)| item).collect()
}

/// The id of an item without the app's own prefix: `new_note` of `com.example:id/new_note`.
fn id_of_item<'t>(tree: &'t Tree, item: &Item) -> Option<&'t str> {
    let index = tree.find(item.id)?;
    tree.node(index).resource_id.as_deref().map(short_id).filter(|id| !id.is_empty())
}

fn short_id(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id)
}

/// The ids of what can be seen, where there are any.
fn ids_on_screen(tree: &Tree, view: &ScreenView) -> String {
    let mut ids: Vec<&str> = Vec::new();
    for id in view.items.iter().filter_map(|item| id_of_item(tree, item)) {
        if !ids.contains(&id) && ids.len() < MAX_IDS {
            ids.push(id);
        }
    }
    if ids.is_empty() { String::new() } else { format!(" Its ids are {}.", ids.join(", ")) }
}

/// Ids that an error lists.
const MAX_IDS: usize = 12;

/// How many of the pairs of letters of two ids are in both, in percent; nothing below a third.
fn resemblance(one: &str, other: &str) -> usize {
    let (one, mut other) = (pairs(one), pairs(other));
    let all = one.len() + other.len();
    let mut shared = 0;
    for pair in &one {
        if let Some(at) = other.iter().position(|own| own == pair) {
            other.swap_remove(at);
            shared += 1;
        }
    }
    match shared * 200 / all.max(1) {
        percent if percent >= 34 => percent,
        _ => 0,
    }
}

/// Neighbouring letters.
fn pairs(text: &str) -> Vec<[char; 2]> {
    let letters: Vec<char> = text.chars().take(MAX_COMPARED).flat_map(char::to_lowercase).collect();
    letters.windows(2).map(|pair| [pair[0], pair[1]]).collect()
}

/// How many of the wanted text's pairs of letters another text has too, in percent; nothing below half.
fn likeness(wanted: &str, text: &str) -> usize {
    let (wanted, text) = (pairs(wanted), pairs(text));
    let shared = wanted.iter().filter(|pair| text.contains(pair)).count();
    match shared * 100 / wanted.len().max(1) {
        percent if percent >= 50 => percent,
        _ => 0,
    }
}

pub(super) fn missing(message: String) -> ToolError {
    ToolError::new(ErrorKind::ElementNotFound, message)
}

/// The first fitting node that can be seen, or else the first.
fn first_fit(tree: &Tree, selector: &Selector) -> Option<usize> {
    let found = selector.find(tree);
    found.iter().find(|index| is_visible(tree, **index)).or_else(|| found.first()).copied()
}

pub(super) fn is_visible(tree: &Tree, index: usize) -> bool {
    tree.node(index).visible && !tree.visible_bounds(index).is_empty()
}

pub(super) async fn find(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let selector = selector(args)?;
    let budget = budget(args)?;
    let tree = on.live_tree().await?;
    let mut elements: Vec<Value> = Vec::new();
    // 40: the envelope and the count of what was left out.
    let (mut spent, mut omitted) = (40, 0);
    for index in selector.find(&tree) {
        // What comes after the first one that does not fit is only counted.
        if omitted > 0 {
            omitted += 1;
            continue;
        }
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
    let mut answer = json!({"elements": &elements});
    if omitted > 0 {
        answer["omitted"] = json!(omitted);
    }
    // Only our own form of the question has more than the reference answers.
    if elements.is_empty() && omitted == 0 && args.contains_key("selector") && on.may_show() {
        answer["instead"] = json!(on.what_is_there(&tree, &selector));
    }
    Ok(Outcome::json(answer))
}

pub(super) async fn click(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let name = press(on, args, TAP, "clickable").await?;
    Ok(Outcome::text(format!("Click performed on element '{name}'")))
}

pub(super) async fn long_click(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    // 800 ms: Android's own threshold is 400 to 500 ms, and slower ones can be set.
    let name = press(on, args, Duration::from_millis(800), "long-clickable").await?;
    Ok(Outcome::text(format!("Long-click performed on element '{name}'")))
}

/// Presses the visible part of an element. A label inside a row presses the row.
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

/// A point of the node that no other element covers: the centre, or else one of eight around it.
fn touch_point(tree: &Tree, index: usize, taker: usize) -> (i32, i32) {
    let bounds = tree.visible_bounds(index);
    let (x, y) = bounds.center();
    let inset = |from: i32, to: i32| ((i64::from(to) - i64::from(from)) / 3).min(i64::from(i32::MAX)) as i32;
    let (dx, dy) = (inset(bounds.left, bounds.right), inset(bounds.top, bounds.bottom));
    let steps = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, -1), (-1, 1), (1, 1)];
    let points = steps.map(|(right, down)| (x + right * dx, y + down * dy));
    let root = tree.ancestors(index).last().unwrap_or(index);
    let visible = tree.all_visible_bounds();
    let covers: Vec<Rect> = (taker + 1..tree.position(root).end)
        .filter(|other| *other != index && (tree.node(*other).clickable || tree.node(*other).editable))
        .map(|other| visible[other])
        .collect();
    let free = |(x, y): &(i32, i32)| !covers.iter().any(|cover| cover.contains(*x, *y));
    points.into_iter().find(free).unwrap_or((x, y))
}
