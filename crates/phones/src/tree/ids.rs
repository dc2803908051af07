//! Ids that stay while the thing is the same.
//!
//! A node's identity is its parent's identity (at the root the app's), its class and its resource id.
//! Where siblings share those, the first resource id below them tells them apart; where that is the same
//! too, or they stand in a scrollable container, where they come and go, the first label at or below
//! them, and at last their order. Position, state and the content of fields do not count: a row keeps its
//! id while it scrolls, a switch while it flips, a field while it is typed in.

use std::collections::{HashMap, HashSet};

use super::{Tree, UiNodeId};

pub(super) fn assign(tree: &mut Tree) {
    let labels = first(tree, |index| label(tree, index).is_some());
    let ids = first(tree, |index| resource_id(tree, index).is_some());
    let below = |index: usize| ids[index].and_then(|inner| resource_id(tree, inner)).unwrap_or_default();
    // How many siblings share class and resource id, and how many of these the first resource id below.
    let mut twins: HashMap<u64, u32> = HashMap::with_capacity(tree.len());
    let kin: Vec<u64> = (0..tree.len()).map(|index| kin(tree, index)).collect();
    let near: Vec<u64> = (0..tree.len()).map(|index| Fnv(kin[index]).text(below(index)).0).collect();
    for key in kin.iter().chain(&near) {
        *twins.entry(*key).or_default() += 1;
    }
    let mut ids_given: Vec<UiNodeId> = Vec::with_capacity(tree.len());
    let mut identities: Vec<u64> = Vec::with_capacity(tree.len());
    let mut order: HashMap<u64, u32> = HashMap::new();
    let mut taken = HashSet::with_capacity(tree.len());
    for index in 0..tree.len() {
        let parent = tree.positions[index].parent;
        let node = &tree.nodes[index];
        let mut hash = Fnv::new().number(parent.map_or(1, |parent| identities[parent]));
        hash = hash.text(&node.class).text(node.resource_id.as_deref().unwrap_or_default());
        if parent.is_none() {
            hash = hash.text(&node.package);
        }
        let shifting = parent.is_some_and(|parent| tree.nodes[parent].scrollable);
        if shifting || twins[&near[index]] > 1 {
            if let Some(label) = labels[index].and_then(|labelled| label(tree, labelled)) {
                hash = hash.text(label);
            }
        } else if twins[&kin[index]] > 1 {
            hash = hash.text(below(index));
        }
        let nth = order.entry(hash.0).or_default();
        let identity = hash.number(u64::from(*nth)).0;
        *nth += 1;
        identities.push(identity);
        // Two identities may share 32 bits: the next free number keeps ids unique on a screen.
        let mut id = (identity ^ (identity >> 32)) as u32;
        while !taken.insert(id) {
            id = id.wrapping_add(1);
        }
        ids_given.push(UiNodeId(id));
    }
    for (position, id) in tree.positions.iter_mut().zip(ids_given) {
        position.id = id;
    }
}

/// Equal for siblings of the same class and resource id.
fn kin(tree: &Tree, index: usize) -> u64 {
    let node = &tree.nodes[index];
    let parent = tree.positions[index].parent.map_or(0, |parent| parent as u64 + 1);
    Fnv::new().number(parent).text(&node.class).text(node.resource_id.as_deref().unwrap_or_default()).0
}

/// For each node the first node at or below it that is meant.
fn first(tree: &Tree, is_meant: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
    let mut found: Vec<Option<usize>> = vec![None; tree.len()];
    for index in (0..tree.len()).rev() {
        if is_meant(index) {
            found[index] = Some(index);
        }
        // Going backwards, the first child comes last and wins; the parent itself wins later.
        if let (Some(parent), Some(inner)) = (tree.positions[index].parent, found[index]) {
            found[parent] = Some(inner);
        }
    }
    found
}

fn resource_id(tree: &Tree, index: usize) -> Option<&str> {
    tree.nodes[index].resource_id.as_deref().filter(|id| !id.is_empty())
}

fn label(tree: &Tree, index: usize) -> Option<&str> {
    let node = &tree.nodes[index];
    let text = if node.editable { &node.hint } else { &node.text };
    let filled = |text: &&str| !text.is_empty();
    node.description.as_deref().filter(filled).or_else(|| text.as_deref().filter(filled))
}

/// FNV-1a, 64 bits: the same on every run and machine, which the standard hasher does not promise.
#[derive(Clone, Copy)]
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(self, bytes: &[u8]) -> Fnv {
        Fnv(bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    /// With an end mark, so that `a`, `bc` and `ab`, `c` differ.
    fn text(self, text: &str) -> Fnv {
        self.bytes(text.as_bytes()).bytes(&[0xff])
    }

    fn number(self, number: u64) -> Fnv {
        self.bytes(&number.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Rect, Tree, UiNode};

    fn row(label: &str, top: i32) -> UiNode {
        UiNode {
            class: "Row".to_owned(),
            text: Some(label.to_owned()),
            bounds: Rect::new(0, top, 100, top + 10),
            ..UiNode::default()
        }
    }

    fn list(rows: &[&str]) -> Tree {
        let mut tree = Tree::builder(0);
        tree.open(UiNode { class: "List".to_owned(), scrollable: true, ..UiNode::default() });
        for (position, label) in rows.iter().enumerate() {
            tree.leaf(row(label, position as i32 * 10));
        }
        tree.finish()
    }

    fn id_of(tree: &Tree, label: &str) -> Option<super::UiNodeId> {
        tree.nodes().iter().position(|node| node.text.as_deref() == Some(label)).map(|index| tree.id(index))
    }

    #[test]
    fn a_row_keeps_its_id_while_it_scrolls() {
        let (before, after) = (list(&["one", "two", "three"]), list(&["two", "three", "four"]));
        assert_eq!(id_of(&before, "two"), id_of(&after, "two"));
        assert_eq!(id_of(&before, "three"), id_of(&after, "three"));
        assert_ne!(id_of(&before, "one"), id_of(&after, "four"));
    }

    #[test]
    fn a_lone_thing_keeps_its_id_while_its_text_and_state_change() {
        let screen = |text: &str, checked| {
            let mut tree = Tree::builder(0);
            tree.open(UiNode { class: "Frame".to_owned(), ..UiNode::default() });
            tree.leaf(UiNode {
                class: "Display".to_owned(),
                text: Some(text.to_owned()),
                checked,
                ..UiNode::default()
            });
            tree.finish()
        };
        assert_eq!(screen("1", false).id(1), screen("12", true).id(1));
    }

    #[test]
    fn a_field_keeps_its_id_while_it_is_typed_in() {
        let form = |text: &str| {
            let mut tree = Tree::builder(0);
            for (hint, text) in [("Name", text), ("Street", "")] {
                tree.leaf(UiNode {
                    class: "EditText".to_owned(),
                    text: Some(text.to_owned()),
                    hint: Some(hint.to_owned()),
                    editable: true,
                    ..UiNode::default()
                });
            }
            tree.finish()
        };
        assert_eq!(form("").id(0), form("Ada").id(0));
        assert_ne!(form("").id(0), form("").id(1));
    }

    #[test]
    fn equal_twins_have_different_ids() {
        let tree = list(&["same", "same", "same"]);
        let ids: std::collections::HashSet<_> = (0..tree.len()).map(|index| tree.id(index)).collect();
        assert_eq!(ids.len(), 4);
    }

    #[test]
    fn wrappers_are_told_apart_by_what_is_inside_and_not_by_what_that_says() {
        let screen = |zoom: &str| {
            let bare = || UiNode { class: "Row".to_owned(), ..UiNode::default() };
            let named = |id: &str, text: &str| UiNode {
                class: "Text".to_owned(),
                resource_id: Some(format!("app:id/{id}")),
                text: Some(text.to_owned()),
                ..UiNode::default()
            };
            let mut tree = Tree::builder(0);
            tree.open(bare());
            for (id, text) in [("title", "Map"), ("zoom", zoom)] {
                tree.open(bare());
                tree.leaf(named(id, text));
                tree.leaf(named("button", "+"));
                tree.close();
            }
            let tree = tree.finish();
            (0..tree.len()).map(|index| tree.id(index)).collect::<Vec<_>>()
        };
        assert_eq!(screen("1.0"), screen("3.0"));
    }
}
