//! The tree as `get_accessibility_tree` answers it: every member at every node.

use serde_json::{Map, Value, json};

use super::{Rect, Tree};

/// Nodes below this depth hang at it, in reading order: two levels of JSON each, and many JSON
/// readers give up at 128.
const MAX_DEPTH: usize = 56;

/// `{"nodes": […]}`. With a budget the nodes beyond so many bytes of JSON are left out and counted
/// in `omitted`.
pub fn to_json(tree: &Tree, budget: Option<usize>) -> Value {
    let mut spent = 0;
    let mut omitted = 0;
    // The ancestors of the node at hand, each with the depth it was written at.
    let mut open: Vec<(usize, Value)> = Vec::new();
    let mut nodes: Vec<Value> = Vec::new();
    for index in 0..tree.len() {
        if omitted > 0 {
            omitted += tree.len() - index;
            break;
        }
        let node = one(tree, index);
        if let Some(budget) = budget {
            // 60: what the envelope and the note of omission take.
            let size = node.to_string().len() + 1;
            if spent + size + 60 > budget {
                omitted += 1;
                continue;
            }
            spent += size;
        }
        let depth = tree.position(index).depth.min(MAX_DEPTH);
        close_down_to(depth, &mut open, &mut nodes);
        open.push((depth, node));
    }
    close_down_to(0, &mut open, &mut nodes);
    let mut answer = json!({"nodes": nodes});
    if omitted > 0 {
        answer["omitted"] = json!(omitted);
    }
    answer
}

/// Hands every open node at `depth` or deeper to its parent, or to the roots.
fn close_down_to(depth: usize, open: &mut Vec<(usize, Value)>, roots: &mut Vec<Value>) {
    while open.last().is_some_and(|(own, _)| *own >= depth) {
        let Some((_, node)) = open.pop() else { return };
        match open.last_mut().and_then(|(_, parent)| parent["children"].as_array_mut()) {
            Some(children) => children.push(node),
            None => roots.push(node),
        }
    }
}

fn one(tree: &Tree, index: usize) -> Value {
    let node = tree.node(index);
    object([
        ("id", json!(tree.id(index).to_string())),
        ("className", json!(node.class)),
        ("text", json!(node.text)),
        ("contentDescription", json!(node.description)),
        ("resourceId", json!(node.resource_id)),
        ("bounds", bounds(node.bounds)),
        ("clickable", json!(node.clickable)),
        ("longClickable", json!(node.long_clickable)),
        ("focusable", json!(node.focusable)),
        ("scrollable", json!(node.scrollable)),
        ("editable", json!(node.editable)),
        ("enabled", json!(node.enabled)),
        ("visible", json!(node.visible)),
        ("children", json!([])),
    ])
}

/// An element as `find_elements` answers it.
pub fn element(tree: &Tree, index: usize) -> Value {
    let node = tree.node(index);
    object([
        ("id", json!(tree.id(index).to_string())),
        ("text", json!(node.text)),
        ("contentDescription", json!(node.description)),
        ("resourceId", json!(node.resource_id)),
        ("className", json!(node.class)),
        ("bounds", bounds(node.bounds)),
        ("clickable", json!(node.clickable)),
        ("longClickable", json!(node.long_clickable)),
        ("scrollable", json!(node.scrollable)),
        ("editable", json!(node.editable)),
        ("enabled", json!(node.enabled)),
    ])
}

pub fn bounds(bounds: Rect) -> Value {
    object([
        ("left", json!(bounds.left)),
        ("top", json!(bounds.top)),
        ("right", json!(bounds.right)),
        ("bottom", json!(bounds.bottom)),
    ])
}

/// With room for all members from the start: trees have thousands of these.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let mut object = Map::with_capacity(N);
    for (name, value) in members {
        object.insert(name.to_owned(), value);
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::super::UiNode;
    use super::*;

    fn chain(depth: usize) -> Tree {
        let mut tree = Tree::builder(0);
        (0..depth).for_each(|_| tree.open(UiNode::new("a.View", Rect::new(0, 0, 1, 1))));
        tree.finish()
    }

    fn levels(value: &Value) -> usize {
        let mut level = 0;
        let mut nodes = &value["nodes"];
        while nodes.as_array().is_some_and(|nodes| !nodes.is_empty()) {
            level += 1;
            nodes = &nodes[0]["children"];
        }
        level
    }

    #[test]
    fn every_member_is_shown_at_every_node() {
        let mut tree = Tree::builder(0);
        tree.open(UiNode::new("android.widget.FrameLayout", Rect::new(0, 0, 1080, 2400)));
        tree.leaf(UiNode {
            text: Some("Calculator".to_owned()),
            ..UiNode::new("android.widget.TextView", Rect::new(100, 50, 500, 120))
        });
        let value = to_json(&tree.finish(), None);
        let root = &value["nodes"][0];
        let members: Vec<&String> = root.as_object().unwrap().keys().collect();
        assert_eq!(
            members,
            [
                "id",
                "className",
                "text",
                "contentDescription",
                "resourceId",
                "bounds",
                "clickable",
                "longClickable",
                "focusable",
                "scrollable",
                "editable",
                "enabled",
                "visible",
                "children"
            ]
        );
        let child = &root["children"][0];
        assert_eq!(child.as_object().unwrap().keys().collect::<Vec<_>>(), members);
        assert_eq!((&root["text"], &child["text"]), (&Value::Null, &json!("Calculator")));
        assert_eq!(child["bounds"], json!({"left": 100, "top": 50, "right": 500, "bottom": 120}));
    }

    #[test]
    fn a_deep_tree_is_written_in_levels_that_readers_bear() {
        let value = to_json(&chain(5000), None);
        assert_eq!(levels(&value), MAX_DEPTH + 1);
        assert!(serde_json::from_str::<Value>(&value.to_string()).is_ok());
        assert_eq!(value.to_string().matches("\"id\"").count(), 5000);
    }

    #[test]
    fn a_budget_leaves_out_and_says_how_much() {
        let value = to_json(&chain(30), Some(2000));
        assert!(value.to_string().len() <= 2000);
        let shown = value.to_string().matches("\"id\"").count();
        assert_eq!(value["omitted"], json!(30 - shown));
        assert!(shown > 3);
    }
}
