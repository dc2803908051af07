//! Arbitrary text as a dump of a screen, in uiautomator's dialect and in Appium's. Whatever it holds, the tree hangs
//! together, ids are unique, and what is shown of it keeps its budget.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use sinew_phones::screen::refs::Refs;
use sinew_phones::screen::{ScreenView, diff};
use sinew_phones::tree::{MAX_NODES, json, xml};

const BUDGET: usize = 300;

fuzz_target!(|text: &str| {
    // Most inputs have no frame of their own.
    let framed = format!("<hierarchy rotation=\"0\">{text}</hierarchy>");
    let Ok(tree) = xml::parse(if text.contains("<hierarchy") { text } else { &framed }) else { return };
    assert!(tree.len() <= MAX_NODES);
    let mut ids = HashSet::new();
    for index in 0..tree.len() {
        let position = tree.position(index);
        assert!(position.end > index && position.end <= tree.len());
        assert!(position.parent.is_none_or(|parent| parent < index && tree.position(parent).end >= position.end));
        assert!(ids.insert(tree.id(index)));
        assert_eq!(tree.find(tree.id(index)), Some(index));
    }
    let (view, mut refs) = (ScreenView::of(&tree), Refs::default());
    assert!(view.to_text(&mut refs, Some(BUDGET)).len() <= BUDGET);
    assert!(view.to_text(&mut refs, None).lines().count() >= view.items.len());
    assert_eq!(diff::to_text(&view, &view, &mut refs, None), "no change on the screen");
    assert!(diff::to_text(&ScreenView::default(), &view, &mut refs, Some(BUDGET)).len() <= BUDGET);
    let whole = json::to_json(&tree, None).to_string();
    assert!(serde_json::from_str::<serde_json::Value>(&whole).is_ok(), "readers bear its depth");
});
