//! A JSON reader that remembers where everything stood.
//!
//! It reads the JSON of documents written by people: comments, commas too many and the `...` of
//! somebody in a hurry are read over and noted as [`Slip`]s. Whoever needs strict JSON asks whether
//! there are any. Depth is bounded, so the tree may be walked by recursion.

use serde_json::{Map, Number, Value};

use sinew_tool::finding::Span;

/// As deep as serde_json reads.
const MAX_DEPTH: usize = 128;

#[derive(Clone, Debug)]
pub struct Node {
    pub span: Span,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

#[derive(Clone, Debug)]
pub struct Member {
    pub key: String,
    pub key_span: Span,
    pub value: Node,
}

/// Something that JSON does not allow and a person means well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slip {
    pub span: Span,
    pub kind: SlipKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlipKind {
    Comment,
    TrailingComma,
    /// `...` where a value or a member should be.
    Ellipsis,
    /// The same key twice in one object.
    RepeatedKey,
    /// More than one value in a text.
    SecondValue,
}

impl SlipKind {
    /// Whether leaving the span out mends it without changing the meaning.
    pub fn is_removable(self) -> bool {
        matches!(self, SlipKind::Comment | SlipKind::TrailingComma)
    }

    pub fn says(self) -> &'static str {
        match self {
            SlipKind::Comment => "JSON has no comments",
            SlipKind::TrailingComma => "JSON has no comma after the last element",
            SlipKind::Ellipsis => "`...` is not JSON; write a complete value",
            SlipKind::RepeatedKey => "the same key stands twice in one object",
            SlipKind::SecondValue => "more than one JSON value stands here",
        }
    }
}

/// Why a text is not JSON even for a lenient reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub span: Span,
    pub message: String,
}

#[derive(Clone, Debug)]
pub struct Reading {
    /// At least one.
    pub values: Vec<Node>,
    pub slips: Vec<Slip>,
}

/// Reads the part of `text` in `span`; all spans in the answer count from the beginning of `text`.
pub fn read(text: &str, span: Span) -> Result<Reading, Fault> {
    let mut reader = Reader { text, end: span.end.min(text.len()), at: span.start, slips: Vec::new() };
    let mut values = Vec::new();
    reader.space()?;
    while reader.at < reader.end {
        let start = reader.at;
        let Some(value) = reader.value(0)? else {
            return Err(reader.fault(start, "`...` is not a JSON value"));
        };
        if !values.is_empty() {
            reader.slips.push(Slip { span: value.span, kind: SlipKind::SecondValue });
        }
        values.push(value);
        reader.space()?;
    }
    if values.is_empty() {
        return Err(reader.fault(span.start, "there is no JSON here"));
    }
    Ok(Reading { values, slips: reader.slips })
}

impl Node {
    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(bool) => Value::Bool(*bool),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::String(text) => Value::String(text.clone()),
            Kind::Array(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Kind::Object(members) => {
                let mut map = Map::new();
                for member in members {
                    map.insert(member.key.clone(), member.value.to_value());
                }
                Value::Object(map)
            }
        }
    }

    /// The member of that name; of two, the last, as every JSON reader takes it.
    pub fn member(&self, key: &str) -> Option<&Member> {
        match &self.kind {
            Kind::Object(members) => members.iter().rev().find(|member| member.key == key),
            _ => None,
        }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.member(key).map(|member| &member.value)
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::Array(items) => items,
            _ => &[],
        }
    }

    /// The place a JSON pointer leads to, or of the nearest ancestor that exists. For a member of an
    /// object that is its key, which reads better under an excerpt than the whole value.
    pub fn place(&self, pointer: &str) -> Span {
        let mut node = self;
        let mut place = self.span;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            match &node.kind {
                Kind::Object(_) => match node.member(&step) {
                    Some(member) => (node, place) = (&member.value, member.key_span),
                    None => return place,
                },
                Kind::Array(items) => match step.parse::<usize>().ok().and_then(|index| items.get(index)) {
                    Some(item) => (node, place) = (item, item.span),
                    None => return place,
                },
                _ => return place,
            }
        }
        place
    }
}

struct Reader<'a> {
    text: &'a str,
    end: usize,
    at: usize,
    slips: Vec<Slip>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        (self.at < self.end).then(|| self.text.as_bytes()[self.at])
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..self.end).unwrap_or_default()
    }

    fn fault(&self, start: usize, message: impl Into<String>) -> Fault {
        let mut end = (start + 1).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        Fault { span: Span::new(start.min(end), end), message: message.into() }
    }

    /// Steps over white space and comments.
    fn space(&mut self) -> Result<(), Fault> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            self.at += blank;
            let rest = self.rest();
            let start = self.at;
            let length = if rest.starts_with("//") || rest.starts_with('#') {
                rest.find(['\n', '\r']).unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                match rest.find("*/") {
                    Some(close) => close + 2,
                    None => return Err(self.fault(start, "this comment is never closed")),
                }
            } else {
                return Ok(());
            };
            self.at += length;
            self.slips.push(Slip { span: Span::new(start, self.at), kind: SlipKind::Comment });
        }
    }

    /// `None` for an ellipsis.
    fn value(&mut self, depth: usize) -> Result<Option<Node>, Fault> {
        let start = self.at;
        if depth > MAX_DEPTH {
            return Err(self.fault(start, format!("the JSON nests deeper than {MAX_DEPTH} levels")));
        }
        if self.ellipsis() {
            return Ok(None);
        }
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.object(depth)?),
            Some(b'[') => Kind::Array(self.array(depth)?),
            Some(b'"') => Kind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => Kind::Number(self.number()?),
            _ => self.word()?,
        };
        Ok(Some(Node { span: Span::new(start, self.at), kind }))
    }

    fn ellipsis(&mut self) -> bool {
        let length = if self.rest().starts_with("...") {
            3
        } else if self.rest().starts_with('…') {
            '…'.len_utf8()
        } else {
            return false;
        };
        self.slips.push(Slip { span: Span::new(self.at, self.at + length), kind: SlipKind::Ellipsis });
        self.at += length;
        true
    }

    fn object(&mut self, depth: usize) -> Result<Vec<Member>, Fault> {
        let mut members: Vec<Member> = Vec::new();
        let mut keys = std::collections::HashSet::new();
        self.list(b'}', |reader| {
            if reader.ellipsis() {
                return Ok(());
            }
            let start = reader.at;
            if reader.peek() != Some(b'"') {
                return Err(reader.fault(start, "expected a key in double quotes"));
            }
            let key = reader.string()?;
            let key_span = Span::new(start, reader.at);
            reader.space()?;
            if reader.peek() != Some(b':') {
                return Err(reader.fault(reader.at, format!("expected `:` after the key {key:?}")));
            }
            reader.at += 1;
            reader.space()?;
            if let Some(value) = reader.value(depth + 1)? {
                if !keys.insert(key.clone()) {
                    reader.slips.push(Slip { span: key_span, kind: SlipKind::RepeatedKey });
                }
                members.push(Member { key, key_span, value });
            }
            Ok(())
        })?;
        Ok(members)
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Node>, Fault> {
        let mut items = Vec::new();
        self.list(b']', |reader| {
            items.extend(reader.value(depth + 1)?);
            Ok(())
        })?;
        Ok(items)
    }

    /// The elements between an opening bracket, which stands here, and its closing one.
    fn list(&mut self, close: u8, mut element: impl FnMut(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        let open = self.at;
        self.at += 1;
        let mut comma = None;
        loop {
            self.space()?;
            match self.peek() {
                Some(byte) if byte == close => {
                    if let Some(comma) = comma {
                        self.slips.push(Slip { span: Span::new(comma, comma + 1), kind: SlipKind::TrailingComma });
                    }
                    self.at += 1;
                    return Ok(());
                }
                None => return Err(self.fault(open, "this bracket is never closed")),
                Some(_) => {}
            }
            element(self)?;
            self.space()?;
            match self.peek() {
                Some(b',') => {
                    comma = Some(self.at);
                    self.at += 1;
                }
                Some(byte) if byte == close => comma = None,
                None => return Err(self.fault(open, "this bracket is never closed")),
                Some(_) => {
                    return Err(self.fault(self.at, format!("expected `,` or `{}`", close as char)));
                }
            }
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let open = self.at;
        let bytes = self.text.as_bytes();
        let mut at = open + 1;
        while at < self.end {
            match bytes[at] {
                b'"' => {
                    self.at = at + 1;
                    let raw = &self.text[open..self.at];
                    return serde_json::from_str(raw)
                        .map_err(|_| self.fault(open, "this string holds a control character or a wrong escape"));
                }
                b'\\' => at += 2,
                b'\n' | b'\r' => return Err(self.fault(open, "this string is not closed on its line")),
                _ => at += 1,
            }
        }
        Err(self.fault(open, "this string is never closed"))
    }

    fn number(&mut self) -> Result<Number, Fault> {
        let start = self.at;
        let rest = self.rest();
        let length = rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        let raw = &rest[..length];
        // serde_json decides what is a number; the value of a float is taken from the standard
        // library, which rounds exactly, so that printing and reading again gives the same number.
        let number: Option<Number> = serde_json::from_str(raw).ok();
        let number = number.ok_or_else(|| self.fault(start, format!("`{raw}` is not a JSON number")))?;
        self.at += length;
        if number.is_f64()
            && let Some(exact) = raw.parse().ok().and_then(Number::from_f64)
        {
            return Ok(exact);
        }
        Ok(number)
    }

    fn word(&mut self) -> Result<Kind, Fault> {
        let start = self.at;
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let kind = match &rest[..length] {
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            "null" => Kind::Null,
            "" => {
                let found = rest.chars().next().map_or("the end".to_owned(), |c| format!("`{c}`"));
                return Err(self.fault(start, format!("expected a JSON value, found {found}")));
            }
            word => {
                let word: String = word.chars().take(40).collect();
                return Err(self.fault(start, format!("`{word}` is not a JSON value; text stands in double quotes")));
            }
        };
        self.at += length;
        Ok(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lenient(text: &str) -> (Value, Vec<SlipKind>) {
        let reading = read(text, Span::new(0, text.len())).unwrap();
        (reading.values[0].to_value(), reading.slips.iter().map(|slip| slip.kind).collect())
    }

    fn fault(text: &str) -> Fault {
        read(text, Span::new(0, text.len())).unwrap_err()
    }

    #[test]
    fn strict_json_is_read_without_a_slip() {
        let text = r#" {"a": [1, -2.5e3, "x\n\u00e9", true, false, null], "b": {}} "#;
        assert_eq!(lenient(text), (serde_json::from_str(text).unwrap(), vec![]));
    }

    #[test]
    fn what_people_write_is_read_and_noted() {
        use SlipKind::*;
        assert_eq!(lenient("{\"a\": 1, // one\n}"), (json!({"a": 1}), vec![Comment, TrailingComma]));
        assert_eq!(lenient("[1, ...]"), (json!([1]), vec![Ellipsis]));
        assert_eq!(lenient("{ ... }"), (json!({}), vec![Ellipsis]));
        assert_eq!(lenient("{\"a\": ...}"), (json!({}), vec![Ellipsis]));
        assert_eq!(lenient("/* x */ 5 # six"), (json!(5), vec![Comment, Comment]));
        assert_eq!(lenient("{\"a\":1,\"a\":2}"), (json!({"a": 2}), vec![RepeatedKey]));
        assert_eq!(lenient("{} {}").1, [SecondValue]);
    }

    #[test]
    fn a_fault_names_its_place() {
        assert_eq!(fault("{\"a\" 1}").span.start, 5);
        assert_eq!(fault("{\"a\": foo}").span.start, 6);
        for broken in ["", "{", "[1", "\"x", "{'a': 1}", "[1 2]", "/*", "01", "\"\\q\"", "1e999", "é", "\"a\nb\""] {
            assert!(read(broken, Span::new(0, broken.len())).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let deep = "[".repeat(100_000);
        assert!(fault(&deep).message.contains("deeper"));
    }

    #[test]
    fn a_pointer_leads_to_the_key() {
        let text = r#"{"a": {"b/c": [10, 20]}}"#;
        let node = &read(text, Span::new(0, text.len())).unwrap().values[0];
        assert_eq!(node.place("/a/b~1c").of(text), "\"b/c\"");
        assert_eq!(node.place("/a/b~1c/1").of(text), "20");
        assert_eq!(node.place("/a/missing/more").of(text), "\"a\"");
        assert_eq!(node.place(""), node.span);
    }
}
