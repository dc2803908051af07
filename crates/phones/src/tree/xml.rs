//! Reads UI dumps: uiautomator's (`<node …>`) and Appium's (class names as tags).
//!
//! A pull parser that keeps its own stack, because dumps nest without bound, and that accepts what
//! phones get wrong: raw `<` and `&` in values, forbidden characters, missing ends, text around.

use std::borrow::Cow;

use super::{Rect, Tree, UiNode};

/// The text contains no dump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the phone's answer is not a UI dump; it begins with {start:?}")]
pub struct NotADump {
    pub start: String,
}

/// Tags around the nodes that are none themselves.
const FRAMES: [&str; 5] = ["hierarchy", "displays", "display", "windows", "window"];

/// Reads the first dump in a text. One that ends early gives what was read, marked as truncated.
pub fn parse(text: &str) -> Result<Tree, NotADump> {
    let begin = ["<hierarchy", "<displays"].iter().filter_map(|tag| text.find(tag)).min();
    let begin = begin.ok_or_else(|| NotADump { start: text.trim().chars().take(120).collect() })?;
    let mut scanner = Scanner { rest: &text[begin..] };
    let mut tree = Tree::builder(0);
    // For each open element whether it is a node.
    let mut open: Vec<bool> = Vec::new();
    let mut complete = false;
    while let Some(tag) = scanner.next_tag() {
        match tag {
            Tag::Close => {
                if open.pop() == Some(true) {
                    tree.close();
                }
            }
            Tag::Open { name, attributes, empty } => {
                let frame = FRAMES.contains(&name);
                if frame {
                    if let Some(rotation) = attribute(&attributes, "rotation").and_then(|text| text.parse::<u8>().ok())
                    {
                        tree.set_rotation(rotation);
                    }
                } else {
                    tree.open(node(name, &attributes));
                }
                if !empty {
                    open.push(!frame);
                } else if !frame {
                    tree.close();
                }
            }
        }
        // What follows the outermost end tag was printed by the command itself.
        if open.is_empty() {
            complete = true;
            break;
        }
    }
    let mut tree = tree.finish();
    tree.truncated |= !complete;
    Ok(tree)
}

fn attribute<'a>(attributes: &'a [(&str, Cow<'a, str>)], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_ref())
}

fn node(tag: &str, attributes: &[(&str, Cow<'_, str>)]) -> UiNode {
    let mut node = UiNode { enabled: true, visible: true, ..UiNode::default() };
    let filled = |value: &str| (!value.is_empty()).then(|| value.to_owned());
    for (key, value) in attributes {
        let value = value.as_ref();
        let yes = value == "true";
        match *key {
            "class" => node.class = value.to_owned(),
            "text" => node.text = filled(value),
            "content-desc" => node.description = filled(value),
            "resource-id" => node.resource_id = filled(value),
            "package" => node.package = value.to_owned(),
            "hint" => node.hint = filled(value),
            "bounds" => node.bounds = bounds(value).unwrap_or_default(),
            "checkable" => node.checkable = yes,
            "checked" => node.checked = yes,
            "clickable" => node.clickable = yes,
            "long-clickable" => node.long_clickable = yes,
            "enabled" => node.enabled = yes,
            "focusable" => node.focusable = yes,
            "focused" => node.focused = yes,
            "scrollable" => node.scrollable = yes,
            "password" => node.password = yes,
            "selected" => node.selected = yes,
            "displayed" | "visible-to-user" => node.visible = yes,
            _ => {}
        }
    }
    if node.class.is_empty() && tag != "node" {
        node.class = tag.to_owned();
    }
    // No dump says whether a node can be edited; these signs do.
    node.editable = ["EditText", "AutoCompleteTextView"].iter().any(|end| node.class.ends_with(end))
        || node.password
        || node.hint.is_some();
    node
}

/// `[left,top][right,bottom]`.
fn bounds(text: &str) -> Option<Rect> {
    let (first, second) = text.strip_prefix('[')?.strip_suffix(']')?.split_once("][")?;
    let pair = |text: &str| {
        let (x, y) = text.split_once(',')?;
        Some((x.trim().parse::<i32>().ok()?, y.trim().parse::<i32>().ok()?))
    };
    let ((left, top), (right, bottom)) = (pair(first)?, pair(second)?);
    Some(Rect { left, top, right, bottom })
}

enum Tag<'a> {
    Open { name: &'a str, attributes: Vec<(&'a str, Cow<'a, str>)>, empty: bool },
    Close,
}

struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    /// The next element's start or end; declarations, comments and text are passed over. `None` at
    /// the end, also where it comes inside a tag.
    fn next_tag(&mut self) -> Option<Tag<'a>> {
        loop {
            let at = self.rest.find('<')?;
            self.rest = &self.rest[at + 1..];
            if let Some(after) = self.rest.strip_prefix("!--") {
                self.rest = &after[after.find("-->")? + 3..];
            } else if self.rest.starts_with(['?', '!']) {
                self.rest = &self.rest[self.rest.find('>')? + 1..];
            } else if self.rest.starts_with('/') {
                self.rest = &self.rest[self.rest.find('>')? + 1..];
                return Some(Tag::Close);
            } else {
                let name = self.take_name();
                if !name.is_empty() {
                    return self.attributes(name);
                }
            }
        }
    }

    fn attributes(&mut self, name: &'a str) -> Option<Tag<'a>> {
        let mut attributes = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            if let Some(after) = self.rest.strip_prefix("/>") {
                self.rest = after;
                return Some(Tag::Open { name, attributes, empty: true });
            }
            if let Some(after) = self.rest.strip_prefix('>') {
                self.rest = after;
                return Some(Tag::Open { name, attributes, empty: false });
            }
            let key = self.take_name();
            if key.is_empty() {
                // Not the start of anything: skip one character instead of failing.
                let mut characters = self.rest.chars();
                characters.next()?;
                self.rest = characters.as_str();
                continue;
            }
            self.rest = self.rest.trim_start();
            let Some(after) = self.rest.strip_prefix('=') else { continue };
            self.rest = after.trim_start();
            let Some(quote) = self.rest.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else { continue };
            let value = &self.rest[1..];
            let end = value.find(quote)?;
            attributes.push((key, unescape(&value[..end])));
            self.rest = &value[end + 1..];
        }
    }

    fn take_name(&mut self) -> &'a str {
        let ends =
            |character: char| character.is_whitespace() || matches!(character, '=' | '>' | '/' | '<' | '"' | '\'');
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let name = &self.rest[..end];
        self.rest = &self.rest[end..];
        name
    }
}

/// Named and numbered entities become characters, `&#10;` a real line break. What is no entity stays
/// as it is, and what is no character (a lone surrogate) becomes U+FFFD.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        // 10: the longest entity is `&#1114111;`.
        let end = rest.bytes().take(10).position(|byte| byte == b';');
        match end.and_then(|end| entity(&rest[1..end]).map(|character| (character, end))) {
            Some((character, end)) => {
                plain.push(character);
                rest = &rest[end + 1..];
            }
            None => {
                plain.push('&');
                rest = &rest[1..];
            }
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_shapes_of_dump_give_the_same_tree() {
        let uiautomator = r#"<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation="1">
            <node index="0" text="" class="a.Frame" package="p" bounds="[0,0][10,20]" enabled="true">
            <node text="Hi" class="a.Text" package="p" clickable="true" bounds="[1,2][3,4]" enabled="true"/></node></hierarchy>UI hierchary dumped to: /dev/tty"#;
        let appium = r#"<hierarchy class="hierarchy" rotation="1"><a.Frame package="p" bounds="[0,0][10,20]" displayed="true">
            <a.Text text="Hi" package="p" clickable="true" bounds="[1,2][3,4]"></a.Text></a.Frame></hierarchy>"#;
        let tree = parse(uiautomator).unwrap();
        assert_eq!(tree, parse(appium).unwrap());
        assert_eq!((tree.rotation, tree.len(), tree.truncated), (1, 2, false));
        assert_eq!(tree.node(1).text.as_deref(), Some("Hi"));
        assert_eq!(tree.position(1).parent, Some(0));
        assert_eq!(tree.node(1).bounds, Rect::new(1, 2, 3, 4));
    }

    #[test]
    fn entities_line_breaks_and_nonsense_survive() {
        let tree = parse(
            "<hierarchy><node text='a&#10;b &amp; c &bogus; &#xD800; <x> &' bounds='[-5,3][-9,1]' class='x.EditText'/></hierarchy>",
        )
        .unwrap();
        assert_eq!(tree.node(0).text.as_deref(), Some("a\nb & c &bogus; \u{fffd} <x> &"));
        assert_eq!(tree.node(0).bounds, Rect::new(-5, 3, -9, 1));
        assert!(tree.node(0).editable);
    }

    #[test]
    fn a_dump_that_breaks_off_gives_what_was_read() {
        let tree = parse("<hierarchy rotation='0'><node class='a'><node class='b'><node cla").unwrap();
        assert_eq!((tree.len(), tree.truncated), (2, true));
    }

    #[test]
    fn what_is_no_dump_says_how_it_begins() {
        let error = parse("ERROR: could not get idle state.\n").unwrap_err();
        assert!(error.to_string().contains("could not get idle state"), "{error}");
    }

    #[test]
    fn several_windows_are_several_roots() {
        let tree = parse("<displays><display id='0'><window><hierarchy rotation='2'><node class='a'/></hierarchy></window><window><hierarchy><node class='b'/></hierarchy></window></display></displays>").unwrap();
        assert_eq!(tree.roots().count(), 2);
        assert!(!tree.truncated);
    }

    #[test]
    fn depth_and_size_are_no_danger() {
        let depth = 20_000;
        let text = format!("<hierarchy>{}{}</hierarchy>", "<node class='a'>".repeat(depth), "</node>".repeat(depth));
        assert_eq!(parse(&text).unwrap().len(), depth);
        let many = format!("<hierarchy>{}</hierarchy>", "<node class='a'/>".repeat(crate::tree::MAX_NODES + 5));
        let tree = parse(&many).unwrap();
        assert_eq!((tree.len(), tree.truncated), (crate::tree::MAX_NODES, true));
    }

    #[test]
    fn real_dumps_are_read_whole() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/fixtures/android/uidump");
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            let tree = parse(&text).unwrap();
            let tags = text.matches('<').count() - text.matches("</").count() - text.matches("<?").count();
            assert_eq!(tree.len(), tags - 1, "{:?}", entry.path());
            assert!(!tree.truncated, "{:?}", entry.path());
            assert!(tree.nodes().iter().all(|node| !node.class.is_empty()), "{:?}", entry.path());
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,200}", cut in 0usize..200) {
            let framed = format!("<hierarchy>{text}");
            let _ = parse(&framed);
            let dump = "<hierarchy><node text='é&#10;' bounds='[0,0][1,1]'/><a.b c=\"d\"></a.b></hierarchy>";
            let cut = (0..=cut.min(dump.len())).rev().find(|at| dump.is_char_boundary(*at)).unwrap_or(0);
            let _ = parse(&dump[..cut]);
        }

        #[test]
        fn any_text_survives_as_an_attribute(text in "[^\u{0}]{0,60}") {
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
            let tree = parse(&format!("<hierarchy><node class=\"c\" text=\"{escaped}\"/></hierarchy>")).unwrap();
            prop_assert_eq!(tree.node(0).text.clone().unwrap_or_default(), text);
        }
    }
}
