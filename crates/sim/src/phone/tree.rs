//! The accessibility tree of what is on the screen, for services and for `uiautomator`.

use std::fmt::Write;

use sinew_phones::{Rect, Tree, TreeBuilder, UiNode, ValueRange};

use super::act::TouchAction;
use super::android::Android;
use super::art::Art;
use super::geometry::PixelRect;
use super::machine::PhoneMachine;
use super::view::View;
use super::windows::{PhoneWindow, WindowKind};

impl PhoneMachine {
    /// What an accessibility service sees: the focused window first, then the keyboard and the bars.
    /// What a dialog or a panel covers cannot be touched and is left out.
    pub fn tree(&self) -> Tree {
        let mut windows = self.windows();
        let focused = windows.iter().rposition(is_focusable);
        let mut builder = Tree::builder(self.rotation());
        if let Some(index) = focused {
            let window = windows.remove(index);
            self.add(&mut builder, &window);
        }
        for window in windows.iter().filter(|window| !is_focusable(window)) {
            self.add(&mut builder, window);
        }
        builder.finish()
    }

    fn add(&self, builder: &mut TreeBuilder, window: &PhoneWindow) {
        let hides_sensitive = self.setup.android >= Android::V15;
        let (width, height) = self.size();
        let mut depth = 0;
        walk(&window.root, PixelRect::new(0, 0, width, height), 0, 0, &mut |view, rect, level, _| {
            if view.sensitive && hides_sensitive {
                return false;
            }
            while depth > level {
                builder.close();
                depth -= 1;
            }
            builder.open(UiNode { selection: self.selection_in(view), ..node(view, window.package, rect) });
            depth = level + 1;
            true
        });
        for _ in 0..depth {
            builder.close();
        }
    }

    /// What is selected in a field, in characters.
    fn selection_in(&self, view: &View) -> Option<(usize, usize)> {
        let field = view.field.filter(|field| self.focus == Some(*field) && !view.state.password)?;
        let text = self.field_text(field);
        let range = self.cursor.fitted(text).range();
        Some((text[..range.start].chars().count(), text[..range.end].chars().count()))
    }

    /// The file that `uiautomator dump` writes: the focused window alone. `None` where there is none.
    pub fn dump(&self, compressed: bool) -> Option<String> {
        let window = self.focused_window()?;
        let (width, height) = self.size();
        let mut xml = format!(
            "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"{}\">",
            self.rotation()
        );
        let mut depth = 0;
        walk(&window.root, PixelRect::new(0, 0, width, height), 0, 0, &mut |view, rect, level, index| {
            if compressed && !says_something(view) && view.children.len() < 2 && level > 0 {
                return true;
            }
            while depth > level {
                xml.push_str("</node>");
                depth -= 1;
            }
            self.write_node(&mut xml, view, window.package, rect, index);
            depth = level + 1;
            true
        });
        for _ in 0..depth {
            xml.push_str("</node>");
        }
        xml.push_str("</hierarchy>");
        Some(xml)
    }

    fn write_node(&self, xml: &mut String, view: &View, package: &str, rect: PixelRect, index: usize) {
        let node = node(view, package, rect);
        xml.push_str("<node");
        let mut attribute = |name: &str, value: &str| {
            let _ = write!(xml, " {name}=\"{}\"", escape(value));
        };
        if is_unfriendly(view) {
            attribute("NAF", "true");
        }
        attribute("index", &index.to_string());
        attribute("text", node.text.as_deref().unwrap_or_default());
        attribute("resource-id", node.resource_id.as_deref().unwrap_or_default());
        attribute("class", &node.class);
        attribute("package", package);
        attribute("content-desc", node.description.as_deref().unwrap_or_default());
        for (name, value) in [
            ("checkable", node.checkable),
            ("checked", node.checked),
            ("clickable", node.clickable),
            ("enabled", node.enabled),
            ("focusable", node.focusable),
            ("focused", node.focused),
            ("scrollable", node.scrollable),
            ("long-clickable", node.long_clickable),
            ("password", node.password),
            ("selected", node.selected),
        ] {
            attribute(name, if value { "true" } else { "false" });
        }
        attribute("bounds", &format!("[{},{}][{},{}]", rect.left, rect.top, rect.right, rect.bottom));
        if self.setup.android >= Android::V15 {
            attribute("drawing-order", &(index + 1).to_string());
            attribute("hint", view.hint);
            attribute("display-id", "0");
        }
        xml.push('>');
    }
}

fn is_focusable(window: &PhoneWindow) -> bool {
    matches!(window.kind, WindowKind::StockApp | WindowKind::Dialog | WindowKind::Shade)
}

/// Visits what can be seen, in reading order, with its visible rectangle, its depth and its place among
/// its siblings. `visit` says whether to go below.
fn walk(
    view: &View,
    clip: PixelRect,
    level: usize,
    index: usize,
    visit: &mut dyn FnMut(&View, PixelRect, usize, usize) -> bool,
) -> usize {
    let rect = view.rect.intersect(clip);
    if rect.is_empty() {
        return 0;
    }
    let (level, index, below) = match view.decoration {
        // A decoration has no node of its own; what is in it belongs to its parent.
        true => (level, index, true),
        false => (level + 1, 0, visit(view, rect, level, index)),
    };
    let mut next = index;
    if below {
        let clip = if view.scroll.is_some() { rect } else { clip };
        for child in &view.children {
            next += walk(child, clip, level, next, visit);
        }
    }
    if view.decoration { next - index } else { 1 }
}

fn node(view: &View, package: &str, rect: PixelRect) -> UiNode {
    let filled = |text: String| (!text.is_empty()).then_some(text);
    let mut node = UiNode::new(view.full_class(), Rect::new(rect.left, rect.top, rect.right, rect.bottom));
    node.text = filled(view.spoken_text());
    node.description = filled(view.description.clone());
    node.resource_id = filled(view.full_id(package));
    node.package = package.to_owned();
    node.hint = filled(view.hint.to_owned());
    node.checkable = view.state.checkable;
    node.checked = view.state.checked;
    node.enabled = !view.state.disabled;
    node.password = view.state.password;
    node.editable = view.is_editable();
    node.clickable = view.tap.is_some() || view.is_editable();
    node.long_clickable = view.hold.is_some() || view.is_editable();
    node.focusable = node.clickable || view.scroll.is_some();
    node.focused = view.state.focused;
    node.scrollable = view.scroll.is_some_and(|scroll| scroll.extent > 0);
    if let (Some(TouchAction::Slide(_, most)), Some(Art::Slider(part))) = (&view.tap, &view.look.art) {
        let most = *most as f32;
        node.range = ValueRange::new(0.0, most, (part * most).round());
    }
    node.handle = view.field.map(|field| field as u64);
    node
}

fn says_something(view: &View) -> bool {
    !view.text.is_empty()
        || !view.description.is_empty()
        || !view.id.is_empty()
        || view.tap.is_some()
        || view.is_editable()
        || view.scroll.is_some()
}

/// Android marks what can be tapped but has nothing to say ("not accessibility friendly").
fn is_unfriendly(view: &View) -> bool {
    let silent = |view: &View| view.text.is_empty() && view.description.is_empty();
    view.tap.is_some() && view.find(&|inside| !silent(inside)).is_none()
}

/// As Android's serializer escapes: line breaks and what is beyond 16 bits as numbers, and what XML
/// cannot hold as a dot.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for ch in text.chars() {
        match ch {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\r' | '\t' | '\u{10000}'.. => {
                let _ = write!(out, "&#{};", ch as u32);
            }
            '\0'..='\u{1f}' | '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => out.push('.'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::act::{AppScreen, StockApp};
    use super::super::setup::PhoneSetup;
    use super::*;

    #[test]
    fn only_what_is_in_sight_is_in_the_tree_and_within_its_list() {
        let mut machine = PhoneMachine::new(PhoneSetup::default());
        machine.launch(StockApp::Contacts);
        let tree = machine.tree();
        let list = tree.nodes().iter().find(|node| node.class.ends_with("RecyclerView")).unwrap();
        assert!(list.scrollable);
        let rows: Vec<&UiNode> = tree
            .nodes()
            .iter()
            .filter(|node| node.resource_id.as_deref() == Some("com.android.contacts:id/contact_row"))
            .collect();
        assert!(rows.len() > 5 && rows.len() < 40, "{}", rows.len());
        assert!(rows.iter().all(|row| row.bounds.top >= list.bounds.top && row.bounds.bottom <= list.bounds.bottom));
    }

    #[test]
    fn a_dump_is_well_formed_and_escapes_what_a_note_says() {
        let mut machine = PhoneMachine::new(PhoneSetup::default());
        machine.open(AppScreen::Note(3));
        let xml = machine.dump(false).unwrap();
        assert!(xml.contains("text=\"Bread&#10;Apples &#127822;&#10;"), "{xml}");
        assert_eq!(xml.matches("<node").count(), xml.matches("</node>").count());
        let parsed = sinew_phones::tree::xml::parse(&xml).unwrap();
        assert_eq!(parsed.len(), xml.matches("<node").count());
        assert!(machine.dump(true).unwrap().len() < xml.len());
        assert_eq!(escape("a\u{1}<\u{202e}>"), "a.&lt;\u{202e}&gt;");
    }

    #[test]
    fn a_sleeping_phone_has_no_tree() {
        let mut machine = PhoneMachine::new(PhoneSetup::default());
        machine.sleep();
        assert!(machine.tree().is_empty());
        assert_eq!(machine.dump(false), None);
    }

    #[test]
    fn data_sensitive_views_are_hidden_from_services_since_android_14() {
        for (android, hidden) in [(Android::V13, false), (Android::V15, true)] {
            let mut machine = PhoneMachine::new(PhoneSetup { android, ..PhoneSetup::default() });
            machine.open(AppScreen::Vault);
            machine.passphrase = "sesame".to_owned();
            machine.reveal();
            let shows = |node: &UiNode| node.text.as_deref() == Some("12 345.67 €");
            assert_eq!(!machine.tree().nodes().iter().any(shows), hidden, "{android}");
            assert!(machine.dump(false).unwrap().contains("12 345.67 €"), "uiautomator is an accessibility tool");
        }
    }
}
