//! What is on the screen: a tree of nodes, kept flat in reading order.
//!
//! A backend builds one with [`TreeBuilder`]. Ids are given when it is finished, see [`ids`].

pub mod identify;
mod ids;
pub mod json;
pub mod select;
pub mod xml;

use std::fmt;

/// One element on the screen, as the phone reports it. Two nodes are equal when they look the same, whatever their
/// handles: agents give new handles with every tree.
#[derive(Clone, Debug, Default)]
pub struct UiNode {
    pub class: String,
    pub text: Option<String>,
    pub description: Option<String>,
    /// `package:id/name`, where the app gave one.
    pub resource_id: Option<String>,
    pub package: String,
    /// What an empty field shows.
    pub hint: Option<String>,
    pub bounds: Rect,
    pub checkable: bool,
    pub checked: bool,
    pub clickable: bool,
    pub long_clickable: bool,
    pub enabled: bool,
    pub focusable: bool,
    pub focused: bool,
    pub scrollable: bool,
    pub editable: bool,
    pub password: bool,
    pub selected: bool,
    pub visible: bool,
    /// The selected characters of a field, from and to; equal where there is only a caret. `None` where the backend does
    /// not say it.
    pub selection: Option<(usize, usize)>,
    /// `None` for what is no slider, and where the backend does not say it.
    pub range: Option<ValueRange>,
    /// The backend's own name for it, which comes back in [`crate::Phone::set_text`].
    pub handle: Option<u64>,
}

impl PartialEq for UiNode {
    fn eq(&self, other: &UiNode) -> bool {
        fn face(node: &UiNode) -> impl PartialEq + '_ {
            let UiNode {
                class,
                text,
                description,
                resource_id,
                package,
                hint,
                bounds,
                checkable,
                checked,
                clickable,
                long_clickable,
                enabled,
                focusable,
                focused,
                scrollable,
                editable,
                password,
                selected,
                visible,
                range,
                selection: _,
                handle: _,
            } = node;
            let can = (checkable, clickable, long_clickable, focusable, scrollable, editable, password);
            let is = (checked, enabled, focused, selected, visible);
            let shows = (text, description, hint, range);
            (class, shows, resource_id, package, bounds, can, is)
        }
        face(self) == face(other)
    }
}

impl Eq for UiNode {}

impl UiNode {
    /// What a field holds: one that is empty may show its hint as its text.
    pub fn content(&self) -> &str {
        match self.text == self.hint {
            true => "",
            false => self.text.as_deref().unwrap_or_default(),
        }
    }

    /// An enabled and visible node that can do nothing yet.
    pub fn new(class: impl Into<String>, bounds: Rect) -> UiNode {
        UiNode { class: class.into(), bounds, enabled: true, visible: true, ..UiNode::default() }
    }
}

/// What a slider can be set to, and what it is set to: `64 of 0..255`. All three are finite numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueRange {
    low: f32,
    high: f32,
    value: f32,
}

impl ValueRange {
    /// `None` for what is not a range of numbers.
    pub fn new(low: f32, high: f32, value: f32) -> Option<ValueRange> {
        let is_range = low < high && [low, high, value].iter().all(|number| number.is_finite());
        is_range.then_some(ValueRange { low, high, value })
    }

    /// The least value, the greatest, and the value itself.
    pub fn numbers(self) -> [f32; 3] {
        [self.low, self.high, self.value]
    }
}

impl fmt::Display for ValueRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}..{}", self.value, self.low, self.high)
    }
}

/// Pixels; the right and bottom edges are outside. Phones report negative, empty and inverted ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rect {
    pub left: i32,
    pub top: i32,
    pub right: i32,
    pub bottom: i32,
}

impl Rect {
    pub fn new(left: i32, top: i32, right: i32, bottom: i32) -> Rect {
        Rect { left, top, right, bottom }
    }

    pub fn is_empty(self) -> bool {
        self.left >= self.right || self.top >= self.bottom
    }

    pub fn center(self) -> (i32, i32) {
        let middle = |a: i32, b: i32| ((i64::from(a) + i64::from(b)) / 2) as i32;
        (middle(self.left, self.right), middle(self.top, self.bottom))
    }

    pub fn intersect(self, other: Rect) -> Rect {
        Rect {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        }
    }

    pub fn contains(self, x: i32, y: i32) -> bool {
        self.left <= x && x < self.right && self.top <= y && y < self.bottom
    }
}

/// An id that stays while the thing is the same: `node_1f3a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UiNodeId(pub u32);

impl UiNodeId {
    pub fn parse(text: &str) -> Option<UiNodeId> {
        let hex = text.strip_prefix("node_")?;
        let plain = !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        plain.then(|| u32::from_str_radix(hex, 16).ok().map(UiNodeId)).flatten()
    }
}

impl fmt::Display for UiNodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node_{:x}", self.0)
    }
}

/// Where a node stands in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePosition {
    pub id: UiNodeId,
    pub parent: Option<usize>,
    pub depth: usize,
    /// The index after the last node below this one.
    pub end: usize,
}

/// A screen's nodes in reading order: a node, then everything below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    nodes: Vec<UiNode>,
    positions: Vec<NodePosition>,
    /// Quarter turns, 0 to 3.
    pub rotation: u8,
    /// Whether the phone sent more nodes than a tree holds.
    pub truncated: bool,
}

/// 50,000: five times the largest screen anybody measures, and some 20 MB.
pub const MAX_NODES: usize = 50_000;

impl Tree {
    pub fn builder(rotation: u8) -> TreeBuilder {
        TreeBuilder { tree: Tree { rotation: rotation % 4, ..Tree::default() }, open: Vec::new() }
    }

    pub fn nodes(&self) -> &[UiNode] {
        &self.nodes
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn node(&self, index: usize) -> &UiNode {
        &self.nodes[index]
    }

    pub fn position(&self, index: usize) -> NodePosition {
        self.positions[index]
    }

    pub fn id(&self, index: usize) -> UiNodeId {
        self.positions[index].id
    }

    pub fn find(&self, id: UiNodeId) -> Option<usize> {
        self.positions.iter().position(|position| position.id == id)
    }

    pub fn children(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.positions[index].end;
        let mut next = index + 1;
        std::iter::from_fn(move || {
            let child = (next < end).then_some(next)?;
            next = self.positions[child].end;
            Some(child)
        })
    }

    pub fn roots(&self) -> impl Iterator<Item = usize> + '_ {
        let mut next = 0;
        std::iter::from_fn(move || {
            let root = (next < self.nodes.len()).then_some(next)?;
            next = self.positions[root].end;
            Some(root)
        })
    }

    /// The node's parent, its parent, and so on.
    pub fn ancestors(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.positions[index].parent, |parent| self.positions[*parent].parent)
    }

    /// [`Tree::visible_bounds`] of all nodes, in one pass.
    pub fn all_visible_bounds(&self) -> Vec<Rect> {
        // What a node's children are clipped to, and what is left of the node itself.
        let mut clips: Vec<Rect> = Vec::with_capacity(self.len());
        let mut visible = Vec::with_capacity(self.len());
        for (node, position) in self.nodes.iter().zip(&self.positions) {
            let own = position.parent.map_or(node.bounds, |parent| node.bounds.intersect(clips[parent]));
            let clip = match position.parent {
                Some(parent) if !node.scrollable => clips[parent],
                _ => own,
            };
            clips.push(clip);
            visible.push(own);
        }
        visible
    }

    /// The part of a node that its scrollable ancestors and its window leave to be seen.
    pub fn visible_bounds(&self, index: usize) -> Rect {
        let clips = |ancestor: &usize| self.nodes[*ancestor].scrollable || self.positions[*ancestor].parent.is_none();
        let clips = self.ancestors(index).filter(clips);
        clips.fold(self.nodes[index].bounds, |bounds, ancestor| bounds.intersect(self.nodes[ancestor].bounds))
    }
}

/// Builds a tree in reading order. More than [`MAX_NODES`] are counted as `truncated` and left out.
pub struct TreeBuilder {
    tree: Tree,
    /// The open nodes' indexes; `None` for one that was left out.
    open: Vec<Option<usize>>,
}

impl TreeBuilder {
    /// Quarter turns; what is more than three counts from zero again.
    pub fn set_rotation(&mut self, rotation: u8) {
        self.tree.rotation = rotation % 4;
    }

    /// Begins a node; its children follow until [`TreeBuilder::close`].
    pub fn open(&mut self, node: UiNode) {
        let index = self.tree.nodes.len();
        if index >= MAX_NODES {
            self.tree.truncated = true;
            self.open.push(None);
            return;
        }
        let parent = self.open.last().copied().flatten();
        let depth = parent.map_or(0, |parent| self.tree.positions[parent].depth + 1);
        self.tree.nodes.push(without_password(node));
        self.tree.positions.push(NodePosition { id: UiNodeId(0), parent, depth, end: index + 1 });
        self.open.push(Some(index));
    }

    /// Ends the node begun last. One too many is ignored.
    pub fn close(&mut self) {
        if let Some(Some(index)) = self.open.pop() {
            self.tree.positions[index].end = self.tree.nodes.len();
        }
    }

    /// A node without children.
    pub fn leaf(&mut self, node: UiNode) {
        self.open(node);
        self.close();
    }

    /// How many nodes are open.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Ends what is still open and gives every node its id.
    pub fn finish(mut self) -> Tree {
        while !self.open.is_empty() {
            self.close();
        }
        ids::assign(&mut self.tree);
        self.tree
    }
}

/// What a password field holds is shown to nobody, although some phones report it: a dot for each character, as Android
/// itself shows it.
fn without_password(mut node: UiNode) -> UiNode {
    if node.password && node.text != node.hint {
        node.text = node.text.map(|text| "•".repeat(text.chars().count()));
    }
    node
}
