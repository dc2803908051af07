//! What a screen looks like in words, and how small that is.

use super::*;
use crate::tree::{ValueRange, xml};

/// A screen in shorthand: `depth|class|label|flags|bounds`, flags c l s e k(checkable) x(checked).
fn screen(lines: &[(usize, &str, &str, &str, [i32; 4])]) -> Tree {
    let mut tree = Tree::builder(0);
    for (depth, class, text, flags, [left, top, right, bottom]) in lines {
        while tree.depth() > *depth {
            tree.close();
        }
        let is = |flag: char| flags.contains(flag);
        tree.open(UiNode {
            text: (!text.is_empty()).then(|| (*text).to_owned()),
            package: "app".to_owned(),
            clickable: is('c'),
            long_clickable: is('l'),
            scrollable: is('s'),
            editable: is('e'),
            checkable: is('k'),
            checked: is('x'),
            focused: is('f'),
            ..UiNode::new(*class, Rect::new(*left, *top, *right, *bottom))
        });
    }
    tree.finish()
}

fn text(tree: &Tree) -> String {
    ScreenView::of(tree).to_text(&mut Refs::default(), None)
}

#[test]
fn a_row_is_one_line_with_its_labels_and_its_switch() {
    let tree = screen(&[
        (0, "Frame", "", "", [0, 0, 100, 200]),
        (1, "Row", "", "c", [0, 0, 100, 20]),
        (2, "Text", "Wi-Fi", "", [0, 0, 50, 10]),
        (2, "Text", "Home", "", [0, 10, 50, 20]),
        (2, "android.widget.Switch", "", "kx", [80, 0, 100, 20]),
        (1, "EditText", "Ada \"L\"\n", "ef", [0, 30, 100, 50]),
        (1, "Text", "Hello", "", [0, 60, 100, 80]),
    ]);
    assert_eq!(
        text(&tree),
        "app app\ne1 switch \"Wi-Fi, Home\" on @50,10\ne2 field=\"Ada 'L'\\n\" focus @50,40\ne3 text \"Hello\" @50,70"
    );
}

#[test]
fn a_keyboard_is_one_line_whoever_made_it() {
    let keyboard = |package: &str, frame: &str| {
        let node = |class: &str, package: &str, bounds| UiNode {
            package: package.to_owned(),
            clickable: class == "Key",
            ..UiNode::new(class, bounds)
        };
        let mut tree = Tree::builder(0);
        tree.open(node("Frame", "app", Rect::new(0, 0, 100, 200)));
        tree.leaf(UiNode { editable: true, focused: true, ..node("EditText", "app", Rect::new(0, 0, 100, 20)) });
        tree.close();
        tree.open(node("Frame", package, Rect::new(0, 100, 100, 200)));
        tree.open(UiNode {
            resource_id: Some(frame.to_owned()),
            ..node("Frame", package, Rect::new(0, 100, 100, 200))
        });
        for key in 0..10 {
            let bounds = Rect::new(key * 10, 100, key * 10 + 10, 120);
            tree.leaf(UiNode { text: Some("q".to_owned()), ..node("Key", package, bounds) });
        }
        tree.close();
        tree.close();
        tree.leaf(UiNode { text: Some("Back".to_owned()), ..node("Key", "bar", Rect::new(0, 190, 100, 200)) });
        text(&tree.finish())
    };
    let expected = |package: &str| {
        format!(
            "app app\ne1 field=\"\" focus @50,10\n-- {package}\ne2 keyboard @50,150\n-- bar\ne3 btn \"Back\" @50,195"
        )
    };
    assert_eq!(keyboard("com.touchtype.swiftkey", "android:id/inputArea"), expected("com.touchtype.swiftkey"));
    let latin = "com.google.android.inputmethod.latin";
    assert_eq!(keyboard(latin, "x:id/keyboard"), expected(latin));
}

#[test]
fn a_budget_holds_even_for_one_long_line() {
    let long = ["é".repeat(500), "short".to_owned()];
    let text = join(&long, Some(200));
    assert!(text.len() <= 200 && text.ends_with("é\n… 2 more lines; raise max_bytes"), "{text}");
}

#[test]
fn a_button_inside_a_row_keeps_its_own_line() {
    let tree = screen(&[
        (0, "Frame", "", "", [0, 0, 100, 200]),
        (1, "Row", "", "cl", [0, 0, 100, 20]),
        (2, "Text", "Mail", "", [0, 0, 50, 20]),
        (2, "Button", "Delete", "c", [80, 0, 100, 20]),
    ]);
    assert_eq!(text(&tree), "app app\ne1 btn \"Mail\" long @50,10\ne2 btn \"Delete\" @90,10");
}

#[test]
fn what_is_scrolled_away_is_not_shown_and_what_sticks_out_is_aimed_at_its_visible_part() {
    let tree = screen(&[
        (0, "Frame", "", "", [0, 0, 100, 100]),
        (1, "List", "", "s", [0, 0, 100, 50]),
        (2, "Button", "half", "c", [0, 40, 100, 80]),
        (2, "Button", "out", "c", [0, 80, 100, 120]),
        (2, "Button", "inverted", "c", [50, 40, 10, 20]),
    ]);
    assert_eq!(text(&tree), "app app\ne1 scroll @50,25\ne2 btn \"half\" @50,45");
}

#[test]
fn a_page_that_is_clickable_as_a_whole_does_not_swallow_its_texts() {
    let tree = screen(&[
        (0, "Frame", "", "c", [0, 0, 100, 100]),
        (1, "Text", "one", "", [0, 0, 100, 10]),
        (1, "Text", "two", "", [0, 10, 100, 20]),
    ]);
    assert_eq!(text(&tree), "app app\ne1 btn @50,50\ne2 text \"one\" @50,5\ne3 text \"two\" @50,15");
}

#[test]
fn refs_last_across_screens_and_are_not_reused() {
    let mut refs = Refs::default();
    let list = |labels: &[&str]| {
        let mut lines = vec![(0, "List", "", "s", [0, 0, 100, 100])];
        for (nth, label) in labels.iter().enumerate() {
            let top = nth as i32 * 10;
            lines.push((1, "Row", label, "c", [0, top, 100, top + 10]));
        }
        ScreenView::of(&screen(&lines))
    };
    let (one, two) = (list(&["a", "b", "c"]), list(&["b", "c", "d"]));
    assert_eq!(one.to_text(&mut refs, None).lines().last(), Some("e4 btn \"c\" @50,25"));
    assert_eq!(two.to_text(&mut refs, None).lines().last(), Some("e5 btn \"d\" @50,25"));
    assert_eq!(diff::to_text(&one, &two, &mut refs, None), "~ e3 @50,5\n~ e4 @50,15\n+ e5 btn \"d\" @50,25\ngone: e2");
    assert_eq!(diff::to_text(&two, &two, &mut refs, None), "no change on the screen");
    assert_eq!(refs.find("e2").map(|known| known.face.as_str()), Some("btn \"a\""));
    assert_eq!(refs.find("e99"), None);
    assert_eq!(refs.find("ex"), None);
}

#[test]
fn a_budget_is_kept_and_what_is_missing_is_counted() {
    let rows: Vec<String> = (0..50).map(|nth| format!("row number {nth}")).collect();
    let mut lines = vec![(0, "List", "", "s", [0, 0, 100, 1000])];
    for (nth, label) in rows.iter().enumerate() {
        lines.push((1, "Row", label, "c", [0, nth as i32 * 10, 100, nth as i32 * 10 + 10]));
    }
    let view = ScreenView::of(&screen(&lines));
    let text = view.to_text(&mut Refs::default(), Some(300));
    assert!(text.len() <= 300, "{}", text.len());
    assert!(text.ends_with("more lines; raise max_bytes"), "{text}");
}

#[test]
fn hostile_labels_stay_one_harmless_line() {
    let shown = |text: &str| ItemLabel::of(text).to_string();
    assert_eq!(shown("a\u{202e}b\n\n\tc\u{e0041}\u{200b} \"d\" 👩‍👧"), "\"ab c 'd' 👩‍👧\"");
    assert_eq!(shown("  \n "), "\"\"");
    assert_eq!(shown(&"x".repeat(5000)), format!("\"{}\"+4920", "x".repeat(80)));
    assert_eq!(shown(&"x".repeat(80)), format!("\"{}\"", "x".repeat(80)));
    let started = std::time::Instant::now();
    let long = "é".repeat(2 << 20);
    assert!(shown(&long).ends_with(&format!("\"+{}", (2 << 20) - 80)), "{:?}", started.elapsed());
}

/// One node inside a window, with children that have texts.
fn thing(node: UiNode, inside: &[&str]) -> String {
    let mut tree = Tree::builder(0);
    tree.open(UiNode::new("Frame", Rect::new(0, 0, 1000, 1000)));
    tree.open(UiNode { bounds: Rect::new(0, 0, 100, 20), enabled: true, visible: true, ..node });
    for text in inside {
        tree.leaf(UiNode { text: Some((*text).to_owned()), ..UiNode::new("Text", Rect::new(0, 0, 10, 10)) });
    }
    let text = text(&tree.finish());
    text.lines().nth(1).unwrap_or_default().to_owned()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn what_is_switched_is_named_by_its_description_and_its_texts_and_the_state_comes_last() {
    let tile = |text: &str, description: &str, checked| UiNode {
        class: "android.widget.Switch".to_owned(),
        text: some(text),
        description: some(description),
        checkable: true,
        clickable: true,
        checked,
        ..UiNode::default()
    };
    assert_eq!(thing(tile("On", "Bluetooth", true), &[]), "e1 switch \"Bluetooth\" on @50,10");
    assert_eq!(thing(tile("Off", "Internet", false), &["Home"]), "e1 switch \"Internet, Home\" off @50,10");
    assert_eq!(thing(tile("Ein", "Ton", true), &["laut"]), "e1 switch \"Ton, laut, Ein\" on @50,10");
    assert_eq!(thing(tile("Remember me", "", false), &[]), "e1 switch \"Remember me\" off @50,10");
    let named = UiNode { resource_id: some("a:id/torch"), description: None, ..tile("ON", "", true) };
    assert_eq!(thing(named, &[]), "e1 switch #torch on @50,10");
}

#[test]
fn a_description_that_says_more_than_the_text_wins_and_texts_inside_are_kept() {
    let button = |text: Option<String>, description: Option<String>| UiNode {
        class: "Button".to_owned(),
        clickable: true,
        text,
        description,
        ..UiNode::default()
    };
    let shown = |text, description, inside: &[&str]| thing(button(text, description), inside);
    assert_eq!(shown(some("Follow"), some("Follow Ada L."), &[]), "e1 btn \"Follow Ada L.\" @50,10");
    assert_eq!(shown(some("Follow"), some("Ada L."), &[]), "e1 btn \"Follow, Ada L.\" @50,10");
    assert_eq!(shown(some("Save draft"), some("Save"), &[]), "e1 btn \"Save draft\" @50,10");
    assert_eq!(shown(None, some("Message"), &["Bob", "12:30"]), "e1 btn \"Message, Bob, 12:30\" @50,10");
    assert_eq!(shown(None, some("Bob, 12:30."), &["Bob", "12:30"]), "e1 btn \"Bob, 12:30.\" @50,10");
}

#[test]
fn a_text_is_left_out_only_where_its_words_are_said_already() {
    let row = |own: &str, inside: &str| {
        let row = UiNode { class: "Row".to_owned(), clickable: true, text: some(own), ..UiNode::default() };
        thing(row, &[inside])
    };
    for (own, inside, both) in [
        ("Location", "On", "Location, On"),
        ("iPhone 15", "5", "iPhone 15, 5"),
        ("iPhone 15", "15", "iPhone 15"),
        ("Wi-Fi, connected", "wi-fi", "Wi-Fi, connected"),
        ("Call the number 12:30", "12:30", "Call the number 12:30"),
        ("Like", "👍", "Like, 👍"),
        ("👍 12", "👍", "👍 12"),
        ("👍", "👎", "👍, 👎"),
        ("Add", "+", "Add, +"),
        ("C++", "+", "C++, +"),
        ("+", "+", "+"),
        ("", "+", "+"),
        ("Menu", "Open menu. New messages.", "Open menu. New messages."),
        ("ねこと共に", "ねこ", "ねこと共に"),
        ("ねこ3匹", "3", "ねこ3匹"),
        ("Zoë", "Zo", "Zoë, Zo"),
        ("Straße 5", "STRASSE", "Straße 5, STRASSE"),
    ] {
        assert_eq!(row(own, inside), format!("e1 btn \"{both}\" @50,10"), "{own:?} and {inside:?}");
    }
    // An empty text is nobody's description.
    let button = |text: Option<String>, description: Option<String>| UiNode {
        class: "Button".to_owned(),
        clickable: true,
        text,
        description,
        ..UiNode::default()
    };
    assert_eq!(thing(button(some("👍"), some("")), &[]), "e1 btn \"👍\" @50,10");
    assert_eq!(thing(button(some(""), some("👍")), &[]), "e1 btn \"👍\" @50,10");
    assert_eq!(thing(button(some("👍"), some("Like")), &[]), "e1 btn \"👍, Like\" @50,10");
    // An icon of a font has no meaning of its own.
    assert_eq!(thing(button(some("\u{e8b6}"), some("Search")), &["\u{f0349}"]), "e1 btn \"Search\" @50,10");
    let named = UiNode { resource_id: some("a:id/search"), ..button(some("\u{e8b6}"), None) };
    assert_eq!(thing(named, &[]), "e1 btn #search @50,10");
    assert_eq!(thing(button(some("\u{e8b6} Search"), None), &[]), "e1 btn \"Search\" @50,10");
}

#[test]
fn a_text_inside_a_text_that_says_it_has_no_line_of_its_own() {
    let tab = |description| UiNode { class: "Tab".to_owned(), description, ..UiNode::default() };
    let lines = |node: UiNode, inside: &[&str]| {
        let mut tree = Tree::builder(0);
        tree.open(UiNode { visible: true, enabled: true, bounds: Rect::new(0, 0, 100, 100), ..node });
        tree.open(UiNode::new("Frame", Rect::new(0, 0, 100, 50)));
        for text in inside {
            tree.leaf(UiNode { text: some(text), ..UiNode::new("Text", Rect::new(0, 0, 100, 50)) });
        }
        text(&tree.finish()).lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(tab(some("Alarm, Tab 1 of 5")), &["Alarm"]), ["e1 text \"Alarm, Tab 1 of 5\" @50,50"]);
    let both = ["e1 text \"Alarm\" @50,50", "e2 text \"8:30\" @50,25"];
    assert_eq!(lines(tab(some("Alarm")), &["Alarm", "8:30"]), both);
    assert_eq!(lines(tab(None), &["Alarm", "Alarm"]).len(), 2, "one beside the other");
}

#[test]
fn what_names_no_app_belongs_to_the_one_around_it() {
    let mut tree = Tree::builder(0);
    let node = |package: &str, text: &str| UiNode {
        package: package.to_owned(),
        text: some(text),
        ..UiNode::new("Text", Rect::new(0, 0, 100, 100))
    };
    tree.open(node("app", "one"));
    tree.leaf(node("", "two"));
    tree.open(node("other", "three"));
    tree.leaf(node("", "four"));
    let shown = text(&tree.finish());
    let expected =
        ["app app", "e1 text \"one\"", "e2 text \"two\"", "-- other", "e3 text \"three\"", "e4 text \"four\""];
    let lines: Vec<&str> = shown.lines().map(|line| line.trim_end_matches(" @50,50")).collect();
    assert_eq!(lines, expected);
}

#[test]
fn lists_sliders_and_hints_are_what_they_are() {
    let list = UiNode { class: "ListView".to_owned(), clickable: true, scrollable: true, ..UiNode::default() };
    assert_eq!(thing(list, &[]), "e1 scroll @50,10");
    let slider = UiNode {
        class: "android.widget.SeekBar".to_owned(),
        text: some("128.0"),
        description: some("Brightness"),
        ..UiNode::default()
    };
    assert_eq!(thing(slider.clone(), &[]), "e1 slider \"Brightness\"=\"128.0\" @50,10 drag x0-100");
    let ranged = UiNode { range: ValueRange::new(0.0, 255.0, 128.0), ..slider.clone() };
    assert_eq!(thing(ranged, &[]), "e1 slider \"Brightness\"=\"128 of 0..255\" @50,10 drag x0-100");
    let silent = UiNode { text: None, ..slider };
    assert_eq!(thing(silent, &[]), "e1 slider \"Brightness\" @50,10 drag x0-100");
    let field = |text: &str| UiNode {
        class: "EditText".to_owned(),
        editable: true,
        text: some(text),
        hint: some("Search"),
        ..UiNode::default()
    };
    assert_eq!(thing(field("Search"), &[]), "e1 field \"Search\"=\"\" @50,10");
    assert_eq!(thing(field("Searched"), &[]), "e1 field \"Search\"=\"Searched\" @50,10");
}

/// The store page of the fixtures, 42 KB of XML.
fn store_page() -> Option<Tree> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/fixtures/android/uidump/shirates-core__XmlDataAndroid_6.xml"
    );
    xml::parse(&std::fs::read_to_string(path).ok()?).ok()
}

#[test]
fn a_store_page_takes_a_kilobyte_and_loses_nothing_actionable() {
    let Some(tree) = store_page() else { return };
    let mut refs = Refs::default();
    let view = ScreenView::of(&tree);
    let text = view.to_text(&mut refs, None);
    assert!(text.len() <= 1000, "{} bytes:\n{text}", text.len());
    let visible = tree.all_visible_bounds();
    for (index, node) in tree.nodes().iter().enumerate() {
        let acts = node.clickable || node.long_clickable || node.editable || node.scrollable || node.checkable;
        if acts && node.visible && !visible[index].is_empty() {
            assert!(view.find(tree.id(index)).is_some(), "lost {node:?}");
        }
    }
    for label in ["For you", "Check it out", "Gardenscapes", "Movies & TV", "Voice Search", "ねこと共に"] {
        assert!(text.contains(label), "{label} is missing:\n{text}");
    }
}

#[test]
fn one_changed_thing_is_a_short_diff() {
    let Some(tree) = store_page() else { return };
    let mut refs = Refs::default();
    let before = ScreenView::of(&tree);
    before.to_text(&mut refs, None);
    let mut after = before.clone();
    after.items[3].selected = true;
    let text = diff::to_text(&before, &after, &mut refs, None);
    assert!(text.len() <= 300 && text.starts_with("~ e"), "{text}");
    let gone = ScreenView { items: before.items[1..].to_vec(), ..before.clone() };
    assert_eq!(diff::to_text(&before, &gone, &mut refs, None), "gone: e1");
}

#[test]
fn real_screens_take_a_few_percent_of_their_xml() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/fixtures/android/uidump");
    let Ok(files) = std::fs::read_dir(folder) else { return };
    let (mut xml_bytes, mut text_bytes) = (0, 0);
    for file in files {
        let dump = std::fs::read_to_string(file.unwrap().path()).unwrap();
        xml_bytes += dump.len();
        text_bytes += text(&xml::parse(&dump).unwrap()).len();
    }
    assert!(text_bytes * 1000 <= xml_bytes * 36, "{text_bytes} of {xml_bytes}");
}
