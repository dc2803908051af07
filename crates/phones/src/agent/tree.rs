//! The agent's tree, which is a flat list with depths, as a [`Tree`].

use serde_json::Value;

use crate::tree::{Rect, Tree, UiNode, ValueRange};

/// Handles of one run stay below this; above it stands which run.
const RUN: u32 = 48;

/// A handle that says of which run of the agent it is.
pub fn to_handle(run: u64, handle: u64) -> Option<u64> {
    (handle < 1 << RUN).then_some((run & 0xffff) << RUN | handle)
}

/// The agent's own handle, where it is of this run.
pub fn from_handle(run: u64, handle: u64) -> Option<u64> {
    (handle >> RUN == run & 0xffff).then_some(handle & ((1 << RUN) - 1))
}

/// Reads the answer to `tree`. What makes no sense in it is left out or taken as nothing.
pub fn parse(answer: &Value, run: u64) -> Option<Tree> {
    let nodes = answer["nodes"].as_array()?;
    let mut tree = Tree::builder(answer["rotation"].as_u64().unwrap_or_default() as u8 & 3);
    for value in nodes {
        let depth = value["depth"].as_u64().unwrap_or_default();
        while tree.depth() as u64 > depth {
            tree.close();
        }
        tree.open(node(value, run));
    }
    let mut tree = tree.finish();
    tree.truncated |= answer["truncated"] == true;
    Some(tree)
}

fn node(value: &Value, run: u64) -> UiNode {
    let text = |name: &str| value[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let edge =
        |nth: usize| value["bounds"][nth].as_i64().unwrap_or_default().clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    let flags = value["flags"].as_u64().unwrap_or_default();
    let has = |bit: u32| flags & (1 << bit) != 0;
    let own_text = text("text");
    let edge_of = |nth: usize| {
        let units = usize::try_from(value["selection"][nth].as_u64()?).ok()?;
        Some(to_characters(own_text.as_deref().unwrap_or_default(), units))
    };
    UiNode {
        class: text("class").unwrap_or_default(),
        selection: edge_of(0).zip(edge_of(1)).filter(|(start, end)| start <= end),
        text: own_text,
        description: text("description"),
        resource_id: text("id"),
        package: text("package").unwrap_or_default(),
        hint: text("hint"),
        bounds: Rect::new(edge(0), edge(1), edge(2), edge(3)),
        checkable: has(0),
        checked: has(1),
        clickable: has(2),
        long_clickable: has(3),
        enabled: has(4),
        focusable: has(5),
        focused: has(6),
        scrollable: has(7),
        editable: has(8),
        password: has(9),
        selected: has(10),
        visible: has(11),
        range: range(&value["range"]),
        handle: value["handle"].as_u64().and_then(|handle| to_handle(run, handle)),
    }
}

fn range(value: &Value) -> Option<ValueRange> {
    let number = |nth: usize| Some(value[nth].as_f64()? as f32);
    ValueRange::new(number(0)?, number(1)?, number(2)?)
}

/// Java counts in UTF-16; a place within a character is before it.
fn to_characters(text: &str, units: usize) -> usize {
    let mut passed = 0;
    text.chars()
        .take_while(|character| {
            passed += character.len_utf16();
            passed <= units
        })
        .count()
}

/// Where a character begins, as Java counts.
pub fn to_units(text: &str, characters: usize) -> usize {
    text.chars().take(characters).map(char::len_utf16).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_flat_list_becomes_a_tree() {
        let answer = json!({"rotation": 1, "truncated": true, "nodes": [
            {"depth": 0, "class": "A", "bounds": [0, 0, 10, 10], "flags": 16 | 2048, "handle": 65536},
            {"depth": 1, "class": "B", "text": "b", "hint": "h", "id": "p:id/b", "bounds": [-1, 2, 3, 99999999999i64], "flags": 4095},
            {"depth": 2, "class": "C"}, {"depth": 1, "class": "D"}, {"depth": 0, "class": "E"}, {"depth": 900}, 5,
        ]});
        let tree = parse(&answer, 3).unwrap_or_default();
        let shape: Vec<(&str, usize)> = tree
            .nodes()
            .iter()
            .enumerate()
            .map(|(nth, node)| (node.class.as_str(), tree.position(nth).depth))
            .collect();
        assert_eq!(shape, [("A", 0), ("B", 1), ("C", 2), ("D", 1), ("E", 0), ("", 1), ("", 0)]);
        assert!((tree.rotation, tree.truncated) == (1, true));
        let (first, second) = (tree.node(0), tree.node(1));
        assert!(first.visible && first.enabled && !first.editable);
        assert!(second.editable && second.focused && second.password && second.checked);
        assert_eq!(second.bounds, Rect::new(-1, 2, 3, i32::MAX));
        assert_eq!(first.handle.and_then(|handle| from_handle(3, handle)), Some(65536));
        assert_eq!(parse(&json!({"nodes": "no"}), 1), None);
    }

    #[test]
    fn a_selection_is_counted_in_characters() {
        let field = |text: &str, selection: Value| {
            let answer = json!({"nodes": [{"depth": 0, "text": text, "selection": selection}]});
            parse(&answer, 1).unwrap_or_default().node(0).selection
        };
        assert_eq!(field("a😀b", json!([1, 3])), Some((1, 2)));
        assert_eq!(field("a😀b", json!([2, 99])), Some((1, 3)), "within a pair, and beyond the end");
        for wrong in [json!([3, 1]), json!([-1, 2]), json!("x"), json!([1])] {
            assert_eq!(field("abc", wrong.clone()), None, "{wrong}");
        }
        assert_eq!((to_units("a😀b", 2), to_units("a😀b", 9)), (3, 4));
    }

    #[test]
    fn a_range_is_one_of_numbers() {
        let slider = |range: Value| {
            let answer = json!({"nodes": [{"depth": 0, "range": range}]});
            parse(&answer, 1).unwrap_or_default().node(0).range.map(|range| range.to_string())
        };
        assert_eq!(slider(json!([0, 255, 64])).as_deref(), Some("64 of 0..255"));
        assert_eq!(slider(json!([-1.0, 1.0, 0.1])).as_deref(), Some("0.1 of -1..1"));
        for wrong in [json!([1, 1, 1]), json!([0, 1]), json!([0, 1e300, 1]), json!([0, 1, "x"]), json!(5), Value::Null]
        {
            assert_eq!(slider(wrong.clone()), None, "{wrong}");
        }
    }

    #[test]
    fn a_handle_of_another_run_is_not_taken() {
        let handle = to_handle(7, 65537).unwrap_or_default();
        assert_eq!((from_handle(7, handle), from_handle(8, handle)), (Some(65537), None));
        assert_eq!(to_handle(1, u64::MAX), None);
    }
}
