//! The screen for a model: one line for each thing worth acting on.
//!
//! [`ScreenView`] is what is left of a tree when wrappers are dropped and labels merged into what they
//! label ([`label`]); [`refs`] gives each thing a short, stable name; [`diff`] compares two views.

pub mod diff;
pub mod label;
pub mod refs;

use std::fmt::Write;

use crate::tree::{Rect, Tree, UiNode, UiNodeId};
use label::ItemLabel;
use refs::Refs;

/// The things on a screen, in reading order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScreenView {
    pub items: Vec<Item>,
    /// The app in front.
    pub package: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub id: UiNodeId,
    pub kind: ItemKind,
    /// What it says, or the name of its resource id; empty where nothing is known.
    pub label: ItemLabel,
    /// A field's content, a slider's position.
    pub value: Option<ItemLabel>,
    pub checked: Option<bool>,
    pub selected: bool,
    pub focused: bool,
    pub disabled: bool,
    pub long: bool,
    /// The part that can be seen.
    pub bounds: Rect,
    /// The window's app.
    pub package: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    Button,
    Field,
    Check,
    Switch,
    Radio,
    Slider,
    Scroll,
    Text,
    /// The keyboard as a whole: its keys are used through `input_text` and `press_key` and not listed.
    Keyboard,
}

impl ScreenView {
    pub fn of(tree: &Tree) -> ScreenView {
        let visible = tree.all_visible_bounds();
        let mut draft = ViewBuilder {
            tree,
            visible,
            items: Vec::new(),
            sources: Vec::new(),
            above: Vec::new(),
            packages: Vec::new(),
        };
        draft.read();
        let package = tree.roots().map(|root| tree.node(root).package.clone()).next().unwrap_or_default();
        ScreenView { items: draft.items, package }
    }

    pub fn find(&self, id: UiNodeId) -> Option<&Item> {
        self.items.iter().find(|item| item.id == id)
    }

    /// The screen as text, within a budget of bytes.
    pub fn to_text(&self, refs: &mut Refs, budget: Option<usize>) -> String {
        let mut lines = vec![format!("app {}", if self.package.is_empty() { "unknown" } else { &self.package })];
        let mut package = &self.package;
        for item in &self.items {
            if item.package != *package {
                package = &item.package;
                lines.push(format!("-- {package}"));
            }
            lines.push(format!("{} {}", refs.name(item), item));
        }
        if self.items.is_empty() {
            lines.push("nothing accessible on this screen; take a screenshot to see it".to_owned());
        }
        join(&lines, budget)
    }
}

/// Joins lines; those beyond the budget are left out and counted, and a first one that is too long is cut.
pub fn join(lines: &[String], budget: Option<usize>) -> String {
    let whole = lines.join("\n");
    let Some(budget) = budget.filter(|budget| whole.len() > *budget) else { return whole };
    let mut text = String::new();
    for (nth, line) in lines.iter().enumerate() {
        let rest = format!("… {} more lines; raise max_bytes", lines.len() - nth);
        let next = text.len() + line.len() + 1;
        if next + rest.len() > budget {
            if nth == 0 {
                text.push_str(&line[..line.floor_char_boundary(budget.saturating_sub(rest.len() + 1))]);
                text.push('\n');
            }
            text.push_str(&rest);
            break;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// The line without its ref: `btn "Sign in" disabled @540,1200`.
impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.face())?;
        let (x, y) = self.bounds.center();
        write!(f, " @{x},{y}")?;
        // Where a finger can drag it to.
        let Rect { left, top, right, bottom } = self.bounds;
        match self.kind {
            ItemKind::Slider if right - left >= bottom - top => write!(f, " drag x{left}-{right}"),
            ItemKind::Slider => write!(f, " drag y{top}-{bottom}"),
            _ => Ok(()),
        }
    }
}

impl Item {
    /// Everything but the place: what counts as a change.
    pub fn face(&self) -> String {
        let mut face = self.kind.word().to_owned();
        if !self.label.is_empty() {
            let _ = write!(face, " {}", self.label);
        }
        if let Some(value) = &self.value {
            let _ = write!(face, "={value}");
        }
        if let Some(checked) = self.checked {
            face.push_str(if checked { " on" } else { " off" });
        }
        let flags =
            [(self.selected, " sel"), (self.focused, " focus"), (self.disabled, " disabled"), (self.long, " long")];
        flags.into_iter().filter(|(set, _)| *set).for_each(|(_, word)| face.push_str(word));
        face
    }
}

impl ItemKind {
    /// Whether it is on or off.
    fn is_switched(self) -> bool {
        matches!(self, ItemKind::Check | ItemKind::Switch | ItemKind::Radio)
    }

    pub fn word(self) -> &'static str {
        match self {
            ItemKind::Button => "btn",
            ItemKind::Field => "field",
            ItemKind::Check => "check",
            ItemKind::Switch => "switch",
            ItemKind::Radio => "radio",
            ItemKind::Slider => "slider",
            ItemKind::Scroll => "scroll",
            ItemKind::Text => "text",
            ItemKind::Keyboard => "keyboard",
        }
    }

    fn of(node: &UiNode) -> ItemKind {
        let is = |word: &str| node.class.contains(word);
        let ends = |word: &str| node.class.ends_with(word);
        match () {
            () if node.editable => ItemKind::Field,
            () if node.checkable && (is("Switch") || is("Toggle")) => ItemKind::Switch,
            () if node.checkable && is("Radio") => ItemKind::Radio,
            () if node.checkable => ItemKind::Check,
            () if ends("SeekBar") || ends("Slider") => ItemKind::Slider,
            // A list that can also be clicked is a list.
            () if node.scrollable => ItemKind::Scroll,
            () if node.clickable || node.long_clickable => ItemKind::Button,
            () => ItemKind::Text,
        }
    }
}

/// A view while it is made.
struct ViewBuilder<'a> {
    tree: &'a Tree,
    visible: Vec<Rect>,
    items: Vec<Item>,
    /// The node each item was made of.
    sources: Vec<usize>,
    /// For each node the items above what is below it.
    above: Vec<ItemsAbove>,
    /// For each node the app it belongs to.
    packages: Vec<&'a str>,
}

/// The items that a node stands in, by their places in the list.
#[derive(Clone, Copy, Default)]
struct ItemsAbove {
    /// Takes the labels inside it.
    owner: Option<usize>,
    /// A text that may have said already what is inside it.
    text: Option<usize>,
}

impl ViewBuilder<'_> {
    fn read(&mut self) {
        let area = |bounds: Rect| {
            let side = |from: i32, to: i32| (i64::from(to) - i64::from(from)).max(0);
            side(bounds.left, bounds.right).saturating_mul(side(bounds.top, bounds.bottom))
        };
        let mut window = 0;
        // Where the keyboard's window ends.
        let mut keys = 0;
        for index in 0..self.tree.len() {
            let node = self.tree.node(index);
            let position = self.tree.position(index);
            // Some dumps name the app at some nodes only.
            let own = Some(node.package.as_str()).filter(|package| !package.is_empty());
            self.packages.push(own.or_else(|| Some(self.packages[position.parent?])).unwrap_or_default());
            let above = position.parent.map(|parent| self.above[parent]).unwrap_or_default();
            self.above.push(above);
            if index < keys {
                continue;
            }
            if position.parent.is_none() {
                window = area(node.bounds);
                if is_keyboard(self.tree, index) {
                    keys = position.end;
                    if !self.visible[index].is_empty() {
                        self.push(index, ItemKind::Keyboard, ItemLabel::default());
                    }
                    continue;
                }
            }
            if !node.visible || self.visible[index].is_empty() {
                continue;
            }
            let kind = ItemKind::of(node);
            let label = ItemLabel::of_node(node, kind);
            // A check box that is not clickable itself shows the state of its row.
            let lent = kind.is_switched() && !node.clickable;
            match above.owner {
                Some(owner) if kind == ItemKind::Text || lent => {
                    let item = &mut self.items[owner];
                    item.label = std::mem::take(&mut item.label).and(&label);
                    if lent {
                        item.label = std::mem::take(&mut item.label).and(&label::state(node));
                        item.checked = Some(node.checked);
                        item.kind = if item.kind == ItemKind::Button { kind } else { item.kind };
                    }
                }
                _ if kind == ItemKind::Text && self.is_said(&label, above) => {}
                _ => {
                    self.push(index, kind, label);
                    // What covers more than a third of its window is a page and not a row: its texts
                    // are listed separately.
                    let takes = !matches!(kind, ItemKind::Text | ItemKind::Scroll)
                        && area(self.visible[index]).saturating_mul(3) <= window;
                    let item = Some(self.items.len() - 1);
                    let text = item.filter(|_| kind == ItemKind::Text);
                    self.above[index] = ItemsAbove { owner: item.filter(|_| takes), text };
                }
            }
        }
        // States and ids come last, when everything below has lent its label.
        for (item, source) in self.items.iter_mut().zip(&self.sources) {
            let node = self.tree.node(*source);
            if ItemKind::of(node).is_switched() {
                item.label = std::mem::take(&mut item.label).and(&label::state(node));
            }
            if item.label.is_empty() && item.kind != ItemKind::Keyboard {
                item.label = ItemLabel::of_resource_id(node);
            }
        }
    }

    /// Whether a text says nothing that the one around it has not said.
    fn is_said(&self, label: &ItemLabel, above: ItemsAbove) -> bool {
        label.is_empty() || above.text.is_some_and(|text| self.items[text].label.covers(label))
    }

    fn push(&mut self, index: usize, kind: ItemKind, label: ItemLabel) {
        let node = self.tree.node(index);
        let value = match kind {
            ItemKind::Field => Some(label::content(node)),
            ItemKind::Slider => Some(label::position(node)).filter(|value| !value.is_empty()),
            _ => None,
        };
        let checked = kind.is_switched().then_some(node.checked);
        self.sources.push(index);
        self.items.push(Item {
            id: self.tree.id(index),
            kind,
            label,
            value,
            checked,
            selected: node.selected,
            focused: node.focused,
            disabled: !node.enabled,
            long: node.long_clickable,
            bounds: self.visible[index],
            package: self.packages[index].to_owned(),
        });
    }
}

/// Whether something is on, as the screen shows it: a row is what the switch in it is.
pub fn is_on(tree: &Tree, index: usize) -> Option<bool> {
    let node = tree.node(index);
    if node.checkable {
        return Some(node.checked);
    }
    let mut lent = None;
    let mut next = if ItemKind::of(node) == ItemKind::Button { index + 1 } else { tree.position(index).end };
    while next < tree.position(index).end {
        let inner = tree.node(next);
        let is_own_thing = inner.clickable
            || !matches!(ItemKind::of(inner), ItemKind::Text | ItemKind::Check | ItemKind::Switch | ItemKind::Radio);
        lent = Some(inner.checked).filter(|_| inner.checkable && inner.visible && !is_own_thing).or(lent);
        next = if is_own_thing { tree.position(next).end } else { next + 1 };
    }
    lent
}

/// Whether a window is an input method's. Android itself puts every one of them into a frame of this name; what
/// reports no frames is known by its package.
fn is_keyboard(tree: &Tree, root: usize) -> bool {
    tree.node(root).package.contains("inputmethod")
        || (root..tree.position(root).end)
            .any(|index| tree.node(index).resource_id.as_deref() == Some("android:id/inputArea"))
}

#[cfg(test)]
mod tests;
