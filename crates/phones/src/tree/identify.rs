//! Selectors for nodes that are there: the reverse of finding them.

use serde_json::{Map, Value, json};

use super::select::{By, Condition, Matching, Relation, Selector};
use super::{Tree, UiNode};

/// Texts that are longer are what a page says, not what a thing is called.
const MAX_NAME: usize = 60;
/// Neighbours that are tried, the nearest containers and texts first.
const MAX_NEIGHBOURS: usize = 24;

/// A selector that fits this node, or a part of it, and nothing else on the screen. `None` where the node has nothing
/// of its own to be known by.
pub fn identify(tree: &Tree, index: usize) -> Option<Selector> {
    let fits_alone = |selector: &Selector| means(tree, selector, index);
    let own = names_of(tree, index);
    let alone = own.iter().map(|conditions| Selector { conditions: conditions.clone(), relation: None });
    if let Some(selector) = alone.into_iter().find(fits_alone) {
        return Some(selector);
    }
    let kind = vec![condition(By::Class, last_name(&tree.node(index).class), Matching::Name)];
    let related = |(relation, anchor): (Relation, Selector)| {
        let with = |conditions: &Vec<Condition>| Selector {
            conditions: conditions.clone(),
            relation: Some((relation, Box::new(anchor.clone()))),
        };
        own.iter().chain([&kind]).map(with).find(fits_alone)
    };
    neighbours(tree, index).into_iter().find_map(related)
}

/// Whether the selector means this node as a person would see it.
fn means(tree: &Tree, selector: &Selector, index: usize) -> bool {
    let [found] = selector.find_things(tree)[..] else { return false };
    let node = tree.node(index);
    // What stands in a button is the button, but a label beside a field is not the field.
    let has_state = node.editable || node.checkable;
    found == index || (!has_state && (index..tree.position(index).end).contains(&found))
}

/// What a node can be known by without its surroundings, the most lasting first.
fn names_of(tree: &Tree, index: usize) -> Vec<Vec<Condition>> {
    let node = tree.node(index);
    let id = node.resource_id.as_deref().map(last_name).filter(|id| is_lasting_id(id));
    let id = id.map(|id| condition(By::ResourceId, id, Matching::Name));
    let description = said(node.description.as_deref(), By::Description);
    // What is typed into a field changes.
    let text = if node.editable { None } else { said(node.text.as_deref(), By::Text) };
    let texts = [description, text].into_iter().flatten();
    let mut names: Vec<Vec<Condition>> = id.iter().map(|id| vec![id.clone()]).collect();
    for text in texts {
        names.push(vec![text.clone()]);
        names.extend(id.iter().map(|id| vec![id.clone(), text.clone()]));
    }
    if !node.editable {
        let parts = index + 1..tree.position(index).end;
        let labels = parts.take(MAX_NEIGHBOURS).map(|part| tree.node(part));
        let labels = labels.flat_map(|part| {
            [said(part.text.as_deref(), By::Text), said(part.description.as_deref(), By::Description)]
        });
        names.extend(labels.flatten().map(|label| vec![label]));
    }
    names
}

/// Things around a node that are known by themselves.
fn neighbours(tree: &Tree, index: usize) -> Vec<(Relation, Selector)> {
    let known = |index: usize, relation: Relation| {
        let names = names_of(tree, index).into_iter();
        let mut selectors = names.map(|conditions| Selector { conditions, relation: None });
        selectors.find(|selector| selector.find_things(tree) == [index]).map(|selector| (relation, selector))
    };
    let containers = tree.ancestors(index).take(MAX_NEIGHBOURS).filter_map(|around| known(around, Relation::Inside));
    let before = (0..index).rev().take(MAX_NEIGHBOURS);
    let after = (index + 1..tree.len()).take(MAX_NEIGHBOURS);
    let beside = before.chain(after).filter(|other| tree.node(*other).text.is_some());
    containers.chain(beside.filter_map(|other| known(other, Relation::Near))).collect()
}

/// Selectors for things that tell this screen from others: ids first, then descriptions and texts. None for what is
/// typed or counted.
pub fn landmarks(tree: &Tree, most: usize) -> Vec<Selector> {
    let by_rank = |rank: By| {
        let said = move |node: &UiNode| match rank {
            By::ResourceId => {
                // Android's own frames are on every screen.
                let id = node.resource_id.as_deref().filter(|id| !id.starts_with("android:"))?;
                let id = Some(last_name(id)).filter(|id| is_lasting_id(id))?;
                Some(condition(By::ResourceId, id, Matching::Name))
            }
            By::Description => said(node.description.as_deref(), By::Description),
            By::Text if !node.editable => said(node.text.as_deref(), By::Text),
            By::Text | By::Class => None,
        };
        // What can be used says more about a screen than its frames.
        let is_usable = |node: &&UiNode| node.clickable || node.editable || node.checkable;
        let shown = || tree.nodes().iter().filter(|node| node.visible);
        let in_order = shown().filter(is_usable).chain(shown().filter(move |node| !is_usable(node)));
        let is_counted =
            move |own: &Condition| rank != By::ResourceId && own.value.contains(|letter: char| letter.is_ascii_digit());
        in_order.filter_map(said).filter(move |own| !is_counted(own))
    };
    let conditions = [By::ResourceId, By::Description, By::Text].into_iter().flat_map(by_rank);
    let selectors = conditions.take(most * 4).map(|own| Selector { conditions: vec![own], relation: None });
    selectors.filter(|selector| selector.find_things(tree).len() == 1).take(most).collect()
}

fn said(text: Option<&str>, by: By) -> Option<Condition> {
    let text = text.filter(|text| !text.trim().is_empty() && text.len() <= MAX_NAME && !text.contains('\n'))?;
    Some(condition(by, text, Matching::Exact))
}

/// Names that a compiler shortened or numbered mean nothing in the next version of an app.
fn is_lasting_id(id: &str) -> bool {
    id.len() > 2 && !id.contains("obfuscated") && !id.starts_with(|c: char| c.is_ascii_digit())
}

fn last_name(name: &str) -> &str {
    name.rsplit(['/', '.', '$']).next().unwrap_or(name)
}

fn condition(by: By, value: &str, matching: Matching) -> Condition {
    Condition { by, value: value.to_owned(), matching }
}

impl Selector {
    /// As it is written in steps.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        for Condition { by, value, matching } in &self.conditions {
            members.insert(by.member().to_owned(), json!(value));
            if *matching == Matching::Exact {
                members.insert("exact".to_owned(), json!(true));
            }
        }
        if let Some((relation, anchor)) = &self.relation {
            members.insert(relation.word().to_owned(), anchor.to_json());
        }
        Value::Object(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Rect;

    /// Two rows with a label and a switch each, a field, and a button without a name.
    fn settings() -> Tree {
        let mut tree = Tree::builder(0);
        tree.open(UiNode::new("android.widget.FrameLayout", Rect::new(0, 0, 1000, 1000)));
        for (top, name) in [(0, "Wi-Fi"), (100, "Bluetooth")] {
            tree.open(UiNode {
                resource_id: Some("com.x:id/row".to_owned()),
                clickable: true,
                ..UiNode::new("android.widget.LinearLayout", Rect::new(0, top, 1000, top + 100))
            });
            let label = UiNode::new("android.widget.TextView", Rect::new(0, top, 500, top + 100));
            tree.leaf(UiNode { text: Some(name.to_owned()), ..label });
            let switch = UiNode::new("android.widget.Switch", Rect::new(800, top, 1000, top + 100));
            tree.leaf(UiNode { checkable: true, clickable: true, ..switch });
            tree.close();
        }
        let field = UiNode::new("android.widget.EditText", Rect::new(0, 300, 1000, 400));
        let id = Some("com.x:id/search".to_owned());
        tree.leaf(UiNode { text: Some("typed".to_owned()), editable: true, resource_id: id, ..field });
        tree.leaf(UiNode { clickable: true, ..UiNode::new("android.widget.ImageView", Rect::new(0, 400, 1000, 500)) });
        tree.finish()
    }

    fn named(index: usize) -> Value {
        identify(&settings(), index).map_or(Value::Null, |selector| selector.to_json())
    }

    #[test]
    fn a_node_is_known_by_its_id_its_words_or_its_neighbours() {
        assert_eq!(named(1), json!({"text": "Wi-Fi", "exact": true}));
        assert_eq!(named(6), json!({"class": "Switch", "near": {"text": "Bluetooth", "exact": true}}));
        assert_eq!(named(7), json!({"id": "search"}));
        assert_eq!(named(8), json!({"class": "ImageView", "near": {"id": "search"}}));
    }

    #[test]
    fn what_is_written_finds_the_same_node_again() {
        let tree = settings();
        for index in 0..tree.len() {
            let Some(selector) = identify(&tree, index) else { continue };
            let read = Selector::from_json(&selector.to_json()).expect("a selector");
            assert_eq!(read.find_things(&tree), selector.find_things(&tree), "{selector}");
            assert!(means(&tree, &read, index), "{selector}");
        }
    }

    #[test]
    fn landmarks_fit_one_thing_each_and_are_nothing_that_was_typed() {
        let tree = settings();
        let found: Vec<Value> = landmarks(&tree, 9).iter().map(Selector::to_json).collect();
        let words = |text: &str| json!({"text": text, "exact": true});
        assert_eq!(found, [json!({"id": "search"}), words("Wi-Fi"), words("Bluetooth")]);
    }
}
