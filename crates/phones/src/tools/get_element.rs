//! `get_element`: one element in full.

use serde_json::{Map, Value, json};
use sinew_tool::{Args, Outcome, ToolError};

use super::element::Target;
use super::{Operator, budget};
use crate::screen::is_on;
use crate::tree::{Tree, UiNode, ValueRange, json};

/// The limit where the caller gives none. A label can be megabytes long.
const DEFAULT_BYTES: usize = 16 << 10;

/// What the members beside the texts take at most: names, numbers, states.
const ENVELOPE: usize = 1 << 10;

/// The longest class name, package or resource id that is passed on.
const MAX_NAME: usize = 120;

pub(super) async fn get_element(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let target = Target::required(args)?;
    let budget = budget(args)?.unwrap_or(DEFAULT_BYTES);
    let tree = on.live_tree().await?;
    let index = on.find(&tree, &target)?;
    let mut element = describe(&tree, index, budget.saturating_sub(ENVELOPE).max(100));
    let known = on.memory.lock().refs.of(tree.id(index));
    if let Some(name) = known {
        element.insert("ref".to_owned(), json!(name));
    }
    Ok(Outcome::json(Value::Object(element)))
}

fn describe(tree: &Tree, index: usize, budget: usize) -> Map<String, Value> {
    let node = tree.node(index);
    let mut budget = ByteBudget { left: budget, omitted: 0 };
    let mut element = Map::new();
    let mut put = |name: &str, value: Value| {
        element.insert(name.to_owned(), value);
    };
    put("id", json!(tree.id(index).to_string()));
    put("className", json!(short(&node.class)));
    for (name, text) in [("packageName", Some(&node.package)), ("resourceId", node.resource_id.as_ref())] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            put(name, json!(short(text)));
        }
    }
    let texts = [("text", &node.text), ("contentDescription", &node.description), ("hint", &node.hint)];
    for (name, text) in texts {
        // The content of a password field is never passed on, although some phones report it.
        if let Some(text) = text.as_deref().filter(|_| !(node.password && name == "text")) {
            put(name, json!(budget.take(text)));
        }
    }
    put("texts", json!(inner_texts(tree, index, &mut budget)));
    put("bounds", json::bounds(node.bounds));
    put("visibleBounds", json::bounds(tree.visible_bounds(index)));
    put("states", json!(states(tree, index)));
    // Where the caret of a password stands says how long it is.
    if let Some((start, end)) = node.selection.filter(|_| !node.password) {
        put("selection", json!({"start": start, "end": end}));
    }
    if let Some([low, high, value]) = node.range.map(ValueRange::numbers) {
        put("range", json!({"low": low, "high": high, "value": value}));
    }
    put("actions", json!(actions(node)));
    if budget.omitted > 0 {
        put("omitted", json!(budget.omitted));
    }
    element
}

/// The texts and descriptions below an element, in reading order.
fn inner_texts(tree: &Tree, index: usize, budget: &mut ByteBudget) -> Vec<String> {
    let inside = (index + 1..tree.position(index).end).map(|inner| tree.node(inner)).filter(|node| !node.password);
    let texts = inside.flat_map(|node| [node.text.as_deref(), node.description.as_deref()]).flatten();
    let kept = texts.map(|text| budget.take(text));
    kept.filter(|text| !text.is_empty()).collect()
}

fn states(tree: &Tree, index: usize) -> Vec<&'static str> {
    let (node, is_on) = (tree.node(index), is_on(tree, index));
    let states = [
        (node.enabled, "enabled"),
        (!node.enabled, "disabled"),
        (is_on == Some(true), "on"),
        (is_on == Some(false), "off"),
        (node.selected, "selected"),
        (node.focused, "focused"),
        (node.password, "password"),
        (!node.visible, "not visible"),
    ];
    states.into_iter().filter(|(holds, _)| *holds).map(|(_, word)| word).collect()
}

fn actions(node: &UiNode) -> Vec<&'static str> {
    let actions = [
        (node.clickable || node.checkable || node.editable, "click_element"),
        (node.long_clickable, "long_click_element"),
        (node.editable, "input_text"),
        (node.scrollable, "scroll"),
    ];
    actions.into_iter().filter(|(holds, _)| *holds).map(|(_, word)| word).collect()
}

fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_NAME)]
}

/// The bytes of text that may still be passed on, and those that could not.
struct ByteBudget {
    left: usize,
    omitted: usize,
}

impl ByteBudget {
    fn take(&mut self, text: &str) -> String {
        // Longer than the room in any case, so that a megabyte is not serialised to be measured.
        let candidate = &text[..text.floor_char_boundary(self.left)];
        let bytes = json!(candidate).to_string().len();
        // A character may take up to six bytes in JSON.
        let kept = if bytes <= self.left { candidate } else { &text[..text.floor_char_boundary(self.left / 6)] };
        self.left -= json!(kept).to_string().len().min(self.left);
        self.omitted += text.len() - kept.len();
        kept.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Rect;

    fn tree(text: &str, rows: usize) -> Tree {
        let mut tree = Tree::builder(0);
        let bounds = Rect::new(0, 0, 10, 10);
        tree.open(UiNode { text: Some(text.to_owned()), clickable: true, ..UiNode::new(text, bounds) });
        for _ in 0..rows {
            tree.leaf(UiNode { text: Some(text.to_owned()), ..UiNode::new("Text", bounds) });
        }
        tree.finish()
    }

    #[test]
    fn texts_come_whole_where_they_fit_and_are_counted_where_not() {
        let whole = describe(&tree("a label", 2), 0, 1000);
        assert_eq!((&whole["text"], &whole["texts"]), (&json!("a label"), &json!(["a label", "a label"])));
        assert!(!whole.contains_key("omitted"));
        let long = "é\u{1}".repeat(100_000);
        let cut = describe(&tree(&long, 1000), 0, 2000);
        assert!(Value::Object(cut.clone()).to_string().len() <= 2000 + ENVELOPE, "{cut:?}");
        assert!(cut["omitted"].as_u64().unwrap() > 100_000_000);
    }

    #[test]
    fn passwords_are_not_told() {
        let mut tree = Tree::builder(0);
        let secret =
            UiNode { text: Some("secret".to_owned()), password: true, ..UiNode::new("EditText", Rect::default()) };
        tree.open(secret.clone());
        tree.leaf(secret);
        let told = Value::Object(describe(&tree.finish(), 0, 1000)).to_string();
        assert!(!told.contains("secret") && told.contains("password"), "{told}");
    }
}
