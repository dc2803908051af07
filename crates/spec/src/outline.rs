//! The outline of a JSON text: where each value begins and ends, without the values themselves. For long texts of
//! which only some parts are read.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use crate::json::{MAX_DEPTH, plain_length};

/// The outline of one strict JSON value.
pub(crate) struct Outline<'a> {
    text: &'a str,
    /// In the order of the text: an object is followed by its keys and values, an array by its items.
    parts: Vec<Part>,
    /// Where the keys are that refer to other schemas.
    references: Vec<u32>,
}

/// A value or a key. Texts of [`crate::read::MAX_BYTES`] need no larger numbers.
struct Part {
    start: u32,
    end: u32,
    /// The index of the first part that is not inside this one.
    after: u32,
}

/// A guess, so that a long list of parts is not copied while it grows.
const BYTES_OF_A_PART: usize = 6;
/// A key for each value of the largest list that is read as a document.
const MAX_PARTS: usize = 500_000;

impl<'a> Outline<'a> {
    /// `None` if the text is longer than [`crate::read::MAX_BYTES`], not strict JSON, or has keys that are repeated or
    /// written with escapes.
    pub(crate) fn read(text: &'a str) -> Option<Outline<'a>> {
        if text.len() > crate::read::MAX_BYTES {
            return None;
        }
        let parts = Vec::with_capacity((text.len() / BYTES_OF_A_PART).min(MAX_PARTS));
        let outline = Outline { text, parts, references: Vec::new() };
        let mut scanner = Scanner { outline, at: 0, keys: Vec::new() };
        scanner.value(0)?;
        scanner.peek().is_none().then_some(scanner.outline)
    }

    pub(crate) fn root(&self) -> OutlineNode<'_> {
        OutlineNode { outline: self, index: 0 }
    }
}

/// A value of an outline.
#[derive(Clone, Copy)]
pub(crate) struct OutlineNode<'a> {
    outline: &'a Outline<'a>,
    index: usize,
}

impl<'a> OutlineNode<'a> {
    fn part(self) -> &'a Part {
        &self.outline.parts[self.index]
    }

    pub(crate) fn text(self) -> &'a str {
        let Part { start, end, .. } = self.part();
        &self.outline.text[*start as usize..*end as usize]
    }

    pub(crate) fn is_object(self) -> bool {
        self.text().starts_with('{')
    }

    pub(crate) fn is_array(self) -> bool {
        self.text().starts_with('[')
    }

    /// The content of a string in which nothing is escaped.
    pub(crate) fn as_plain_str(self) -> Option<&'a str> {
        self.text().strip_prefix('"')?.strip_suffix('"').filter(|text| !text.contains('\\'))
    }

    pub(crate) fn to_value(self) -> Option<Value> {
        if self.is_object() {
            let mut members = Map::with_capacity(self.members().count());
            for (key, member) in self.members() {
                members.insert(key.to_owned(), member.to_value()?);
            }
            return Some(Value::Object(members));
        }
        if self.is_array() {
            return self.items().map(OutlineNode::to_value).collect::<Option<_>>().map(Value::Array);
        }
        match self.as_plain_str() {
            Some(text) => Some(Value::String(text.to_owned())),
            // The text is strict JSON, as its outline was made.
            None => serde_json::from_str(self.text()).ok(),
        }
    }

    /// Whether there is a reference to another schema inside.
    pub(crate) fn refers(self) -> bool {
        let (part, references) = (self.part(), &self.outline.references);
        let next = references.partition_point(|at| *at < part.start);
        references.get(next).is_some_and(|at| *at < part.end)
    }

    /// The parts directly inside.
    fn children(self) -> impl Iterator<Item = OutlineNode<'a>> {
        let (mut next, end) = (self.index + 1, self.part().after as usize);
        std::iter::from_fn(move || {
            let child = (next < end).then_some(OutlineNode { index: next, ..self })?;
            next = child.part().after as usize;
            Some(child)
        })
    }

    /// The items of an array.
    pub(crate) fn items(self) -> impl Iterator<Item = OutlineNode<'a>> {
        self.children().take(if self.is_array() { usize::MAX } else { 0 })
    }

    /// The members of an object.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'a str, OutlineNode<'a>)> {
        let mut children = self.children().take(if self.is_object() { usize::MAX } else { 0 });
        let key = |part: &Part| &self.outline.text[part.start as usize + 1..part.end as usize - 1];
        std::iter::from_fn(move || Some((key(children.next()?.part()), children.next()?)))
    }

    pub(crate) fn member(self, key: &str) -> Option<OutlineNode<'a>> {
        self.members().find(|(name, _)| *name == key).map(|(_, member)| member)
    }
}

struct Scanner<'a> {
    outline: Outline<'a>,
    at: usize,
    /// The keys so far of the objects around this place.
    keys: Vec<&'a str>,
}

impl<'a> Scanner<'a> {
    /// The next byte that is not white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.outline.text.as_bytes();
        while let b' ' | b'\n' | b'\r' | b'\t' = bytes.get(self.at)? {
            self.at += 1;
        }
        Some(bytes[self.at])
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        let first = self.peek()?;
        let index = self.open()?;
        match first {
            _ if depth > MAX_DEPTH => return None,
            b'{' => self.object(depth)?,
            b'[' => self.list(b']', |scanner| scanner.value(depth + 1))?,
            b'"' => self.string().map(drop)?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => self.word()?,
        }
        self.close(index);
        Some(())
    }

    fn open(&mut self) -> Option<usize> {
        let index = self.outline.parts.len();
        self.outline.parts.push(Part { start: self.at as u32, end: 0, after: 0 });
        (index < MAX_PARTS).then_some(index)
    }

    fn close(&mut self, index: usize) {
        let after = self.outline.parts.len() as u32;
        let part = &mut self.outline.parts[index];
        (part.end, part.after) = (self.at as u32, after);
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        let outer = self.keys.len();
        self.list(b'}', |scanner| {
            scanner.peek()?;
            let index = scanner.open()?;
            let (key, is_plain) = scanner.string()?;
            scanner.close(index);
            if matches!(key, "$ref" | "$dynamicRef" | "$recursiveRef") {
                scanner.outline.references.push(scanner.outline.parts[index].start);
            }
            scanner.keys.push(key);
            scanner.take(b':')?;
            scanner.value(depth + 1).filter(|()| is_plain)
        })?;
        let are_unique = are_unique(&self.keys[outer..]);
        self.keys.truncate(outer);
        are_unique.then_some(())
    }

    /// The elements between the opening bracket at this position and its closing one.
    fn list(&mut self, close: u8, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        if self.take(close).is_some() {
            return Some(());
        }
        loop {
            element(self)?;
            if self.take(b',').is_none() {
                return self.take(close);
            }
        }
    }

    /// What is between the quotes, and whether nothing in it is escaped.
    fn string(&mut self) -> Option<(&'a str, bool)> {
        let (text, start) = (self.outline.text, self.at);
        let bytes = text.as_bytes();
        let mut at = start + 1;
        let mut is_plain = true;
        if bytes[start] != b'"' {
            return None;
        }
        loop {
            at += plain_length(&bytes[at..]);
            match bytes.get(at)? {
                b'"' => break,
                b'\\' if at + 2 < bytes.len() => {
                    is_plain = false;
                    at += 2;
                }
                _ => return None,
            }
        }
        self.at = at + 1;
        if !is_plain {
            serde_json::from_str::<String>(&text[start..self.at]).ok()?;
        }
        Some((&text[start + 1..at], is_plain))
    }

    fn number(&mut self) -> Option<()> {
        let rest = &self.outline.text[self.at..];
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let raw = &rest[..rest.bytes().take_while(is_part).count()];
        let is_small = raw.len() < 10 && !raw.starts_with('0') && raw.bytes().all(|byte| byte.is_ascii_digit());
        self.at += raw.len();
        (is_small || serde_json::from_str::<Number>(raw).is_ok()).then_some(())
    }

    fn word(&mut self) -> Option<()> {
        let rest = &self.outline.text.as_bytes()[self.at..];
        let word = ["true", "false", "null"].iter().find(|word| rest.starts_with(word.as_bytes()))?;
        self.at += word.len();
        Some(())
    }
}

fn are_unique(keys: &[&str]) -> bool {
    /// Few keys are compared faster than hashed.
    const FEW: usize = 16;
    if keys.len() > FEW {
        let mut seen = HashSet::new();
        return keys.iter().all(|key| seen.insert(key));
    }
    keys.iter().enumerate().all(|(index, key)| !keys[..index].contains(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_items_are_found_with_their_text() {
        let text = r#" {"a ] } é": [1, {"x" : -2.5e3}, "\"", []], "b":{}, "c": null } "#;
        let outline = Outline::read(text).unwrap();
        let members: Vec<(&str, &str)> = outline.root().members().map(|(key, value)| (key, value.text())).collect();
        assert_eq!(members, [("a ] } é", r#"[1, {"x" : -2.5e3}, "\"", []]"#), ("b", "{}"), ("c", "null")]);
        let items: Vec<&str> = outline.root().member("a ] } é").unwrap().items().map(OutlineNode::text).collect();
        assert_eq!(items, ["1", r#"{"x" : -2.5e3}"#, r#""\"""#, "[]"]);
        assert_eq!(outline.root().items().count(), 0);
        assert_eq!(outline.root().member("b").unwrap().members().count(), 0);
    }

    #[test]
    fn references_are_known_by_their_place() {
        let outline =
            Outline::read(r##"[{"a": {"$ref": "#"}}, {"$refs": "$ref"}, {"b": {"$dynamicRef": "#x"}}]"##).unwrap();
        let refer: Vec<bool> = outline.root().items().map(OutlineNode::refers).collect();
        assert_eq!(refer, [true, false, true]);
    }

    #[test]
    fn what_is_not_strict_json_has_no_outline() {
        for text in [
            "",
            "{",
            "[1",
            "\"x",
            "{'a': 1}",
            "[1 2]",
            "[1,]",
            "{\"a\": 1,}",
            "01",
            "-",
            "1e999",
            "\"\\q\"",
            "\"\\ud800\"",
            "\"a\nb\"",
            "é",
            "{} {}",
            "[...]",
            "// x\n1",
            "tru",
            "truex",
            "{\"a\" 1}",
            "{\"a\": 1, \"a\": 2}",
            "{1: 2}",
            "{\"\\u0061\": 1}",
            "[}",
            "{]",
        ] {
            assert!(Outline::read(text).is_none(), "{text}");
        }
        assert!(Outline::read(&"[".repeat(100_000)).is_none());
    }
}
