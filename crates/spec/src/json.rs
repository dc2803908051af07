//! A lenient JSON parser that keeps the place of every value.
//!
//! It reads JSON written by people: comments, trailing commas and `...` are accepted and noted as
//! [`JsonMistake`]s. For strict JSON, check that there are none.
//! Depth is bounded, so the tree may be walked by recursion.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use sinew_tool::finding::Span;

/// The limit of serde_json.
pub(crate) const MAX_DEPTH: usize = 128;

/// More values would need more memory than checking a document should: each takes up to half a kilobyte while it is
/// read and checked. Lists of a thousand tools with nested parameters have some 200,000.
pub(crate) const MAX_VALUES: usize = 250_000;

#[derive(Clone, Debug)]
pub struct JsonNode {
    pub span: Span,
    pub kind: JsonKind,
}

#[derive(Clone, Debug)]
pub enum JsonKind {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<JsonNode>),
    Object(Vec<JsonMember>),
}

#[derive(Clone, Debug)]
pub struct JsonMember {
    pub key: String,
    pub key_span: Span,
    pub value: JsonNode,
}

/// Something that JSON does not allow but whose meaning is clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonMistake {
    pub span: Span,
    pub kind: MistakeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MistakeKind {
    Comment,
    TrailingComma,
    /// `...` where a value or a member should be.
    Ellipsis,
    /// The same key twice in one object.
    RepeatedKey,
    /// More than one value in a text.
    SecondValue,
}

impl MistakeKind {
    /// Whether removing the span fixes it without changing the meaning.
    pub fn is_removable(self) -> bool {
        matches!(self, MistakeKind::Comment | MistakeKind::TrailingComma)
    }

    pub fn says(self) -> &'static str {
        match self {
            MistakeKind::Comment => "JSON has no comments",
            MistakeKind::TrailingComma => "JSON has no comma after the last element",
            MistakeKind::Ellipsis => "`...` is not JSON; write a complete value",
            MistakeKind::RepeatedKey => "the same key occurs twice in one object",
            MistakeKind::SecondValue => "there is more than one JSON value here",
        }
    }
}

/// Why a text is not JSON, even for a lenient parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonFault {
    pub span: Span,
    pub message: String,
}

#[derive(Clone, Debug)]
pub(crate) struct JsonReading {
    /// At least one.
    pub values: Vec<JsonNode>,
    pub mistakes: Vec<JsonMistake>,
}

/// At least as many values as a text has, read as JSON.
pub(crate) fn most_values(text: &str) -> usize {
    text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() + 1
}

/// Reads the part of `text` in `span`; all spans in the result count from the beginning of `text`.
pub(crate) fn read(text: &str, span: Span) -> Result<JsonReading, JsonFault> {
    let mut reader = JsonReader { text, end: span.end.min(text.len()), at: span.start, count: 0, mistakes: Vec::new() };
    let mut values: Vec<JsonNode> = Vec::new();
    reader.space()?;
    while reader.at < reader.end {
        let start = reader.at;
        let Some(value) = reader.value(0)? else {
            return Err(reader.fault(start, "`...` is not a JSON value"));
        };
        if !values.is_empty() {
            let span = Span::new(start, reader.at);
            reader.mistakes.push(JsonMistake { span, kind: MistakeKind::SecondValue });
        }
        values.push(value);
        reader.space()?;
    }
    if values.is_empty() {
        return Err(reader.fault(span.start, "there is no JSON here"));
    }
    Ok(JsonReading { values, mistakes: reader.mistakes })
}

impl JsonNode {
    pub fn to_value(&self) -> Value {
        match &self.kind {
            JsonKind::Null => Value::Null,
            JsonKind::Bool(bool) => Value::Bool(*bool),
            JsonKind::Number(number) => Value::Number(number.clone()),
            JsonKind::String(text) => Value::String(text.clone()),
            JsonKind::Array(items) => Value::Array(items.iter().map(JsonNode::to_value).collect()),
            JsonKind::Object(members) => {
                let mut map = Map::with_capacity(members.len());
                for member in members {
                    map.insert(member.key.clone(), member.value.to_value());
                }
                Value::Object(map)
            }
        }
    }

    /// The member of that name; of two, the last, as in other JSON parsers.
    pub fn member(&self, key: &str) -> Option<&JsonMember> {
        match &self.kind {
            JsonKind::Object(members) => members.iter().rev().find(|member| member.key == key),
            _ => None,
        }
    }

    pub fn get(&self, key: &str) -> Option<&JsonNode> {
        self.member(key).map(|member| &member.value)
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            JsonKind::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn items(&self) -> &[JsonNode] {
        match &self.kind {
            JsonKind::Array(items) => items,
            _ => &[],
        }
    }

    /// The place of a JSON pointer's target, or of its nearest existing ancestor. For a member of an
    /// object that is its key, which reads better under an excerpt than the whole value.
    pub fn place(&self, pointer: &str) -> Span {
        let mut node = self;
        let mut place = self.span;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            match &node.kind {
                JsonKind::Object(_) => match node.member(&step) {
                    Some(member) => (node, place) = (&member.value, member.key_span),
                    None => return place,
                },
                JsonKind::Array(items) => match step.parse::<usize>().ok().and_then(|index| items.get(index)) {
                    Some(item) => (node, place) = (item, item.span),
                    None => return place,
                },
                _ => return place,
            }
        }
        place
    }
}

/// How many bytes of a string can be copied as they are: up to a quote, a backslash or a control character. Eight bytes
/// are looked at together, since most of a text in JSON is strings.
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // The highest bit of the first byte that is below `least`; bytes after it may be marked wrongly.
    let below = |word: u64, least: u64| word.wrapping_sub(EACH * least) & !word & (EACH << 7);
    let mut at = 0;
    while let Some(eight) = bytes[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*eight);
        let is = |byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
        let ends = below(word, 0x20) | is(b'"') | is(b'\\');
        if ends != 0 {
            return at + ends.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let is_plain = |byte: &&u8| **byte >= 0x20 && !matches!(**byte, b'"' | b'\\');
    at + bytes[at..].iter().take_while(is_plain).count()
}

struct JsonReader<'a> {
    text: &'a str,
    end: usize,
    at: usize,
    /// How many values were begun.
    count: usize,
    mistakes: Vec<JsonMistake>,
}

impl<'a> JsonReader<'a> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        (self.at < self.end).then(|| self.text.as_bytes()[self.at])
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..self.end).unwrap_or_default()
    }

    fn fault(&self, start: usize, message: impl Into<String>) -> JsonFault {
        let mut end = (start + 1).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        JsonFault { span: Span::new(start.min(end), end), message: message.into() }
    }

    /// Steps over white space and comments.
    #[inline]
    fn space(&mut self) -> Result<(), JsonFault> {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                b'/' | b'#' | 0..0x20 | 0x80.. => return self.unusual_space(),
                _ => break,
            }
        }
        Ok(())
    }

    /// White space that JSON does not know, and comments.
    fn unusual_space(&mut self) -> Result<(), JsonFault> {
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
            self.mistakes.push(JsonMistake { span: Span::new(start, self.at), kind: MistakeKind::Comment });
        }
    }

    /// `None` for an ellipsis.
    fn value(&mut self, depth: usize) -> Result<Option<JsonNode>, JsonFault> {
        let start = self.at;
        if depth > MAX_DEPTH {
            return Err(self.fault(start, format!("the JSON nests deeper than {MAX_DEPTH} levels")));
        }
        self.count += 1;
        if self.count > MAX_VALUES {
            return Err(self.fault(start, format!("the JSON has more than {MAX_VALUES} values")));
        }
        if self.ellipsis() {
            return Ok(None);
        }
        let kind = match self.peek() {
            Some(b'{') => JsonKind::Object(self.object(depth)?),
            Some(b'[') => JsonKind::Array(self.array(depth)?),
            Some(b'"') => JsonKind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => JsonKind::Number(self.number()?),
            _ => self.word()?,
        };
        Ok(Some(JsonNode { span: Span::new(start, self.at), kind }))
    }

    #[inline]
    fn ellipsis(&mut self) -> bool {
        matches!(self.peek(), Some(b'.' | 0x80..)) && self.take_ellipsis()
    }

    fn take_ellipsis(&mut self) -> bool {
        let length = if self.rest().starts_with("...") {
            3
        } else if self.rest().starts_with('…') {
            '…'.len_utf8()
        } else {
            return false;
        };
        self.mistakes.push(JsonMistake { span: Span::new(self.at, self.at + length), kind: MistakeKind::Ellipsis });
        self.at += length;
        true
    }

    fn object(&mut self, depth: usize) -> Result<Vec<JsonMember>, JsonFault> {
        let mut members = Vec::new();
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
                members.push(JsonMember { key, key_span, value });
            }
            Ok(())
        })?;
        let repeated = repeated_keys(&members).map(|span| JsonMistake { span, kind: MistakeKind::RepeatedKey });
        self.mistakes.extend(repeated);
        Ok(members)
    }

    fn array(&mut self, depth: usize) -> Result<Vec<JsonNode>, JsonFault> {
        let mut items = Vec::new();
        self.list(b']', |reader| {
            if let Some(item) = reader.value(depth + 1)? {
                items.push(item);
            }
            Ok(())
        })?;
        Ok(items)
    }

    /// The elements between the opening bracket at this position and its closing one.
    fn list(
        &mut self,
        close: u8,
        mut element: impl FnMut(&mut Self) -> Result<(), JsonFault>,
    ) -> Result<(), JsonFault> {
        let open = self.at;
        self.at += 1;
        let mut comma = None;
        loop {
            self.space()?;
            match self.peek() {
                Some(byte) if byte == close => {
                    if let Some(comma) = comma {
                        self.mistakes
                            .push(JsonMistake { span: Span::new(comma, comma + 1), kind: MistakeKind::TrailingComma });
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

    fn string(&mut self) -> Result<String, JsonFault> {
        let open = self.at;
        let bytes = &self.text.as_bytes()[..self.end];
        let mut at = open + 1;
        let mut is_plain = true;
        loop {
            at += plain_length(bytes.get(at..).unwrap_or_default());
            let Some(byte) = bytes.get(at) else { break };
            match byte {
                b'"' => {
                    self.at = at + 1;
                    if is_plain {
                        return Ok(self.text[open + 1..at].to_owned());
                    }
                    let raw = &self.text[open..self.at];
                    return serde_json::from_str(raw).map_err(|_| {
                        self.fault(open, "this string contains a control character or an invalid escape")
                    });
                }
                b'\n' | b'\r' => return Err(self.fault(open, "this string is not closed on its line")),
                _ => {
                    is_plain = false;
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
            }
        }
        Err(self.fault(open, "this string is never closed"))
    }

    fn number(&mut self) -> Result<Number, JsonFault> {
        let start = self.at;
        let rest = self.rest();
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let length = rest.bytes().take_while(is_part).count();
        let raw = &rest[..length];
        if raw.len() < 10 && !raw.starts_with(['0', '-']) && raw.bytes().all(|byte| byte.is_ascii_digit()) {
            let small = raw.parse::<u32>().unwrap_or_default();
            self.at += length;
            return Ok(small.into());
        }
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

    fn word(&mut self) -> Result<JsonKind, JsonFault> {
        let start = self.at;
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let kind = match &rest[..length] {
            "true" => JsonKind::Bool(true),
            "false" => JsonKind::Bool(false),
            "null" => JsonKind::Null,
            "" => {
                let found = rest.chars().next().map_or("the end".to_owned(), |c| format!("`{c}`"));
                return Err(self.fault(start, format!("expected a JSON value, found {found}")));
            }
            word => {
                let word: String = word.chars().take(40).collect();
                return Err(self.fault(start, format!("`{word}` is not a JSON value; put text in double quotes")));
            }
        };
        self.at += length;
        Ok(kind)
    }
}

/// The places of keys that occurred before in the same object.
fn repeated_keys(members: &[JsonMember]) -> impl Iterator<Item = Span> + '_ {
    /// Few keys are compared faster than hashed.
    const FEW: usize = 16;
    let mut seen = HashSet::new();
    members.iter().enumerate().filter_map(move |(index, member)| {
        let is_repeated = match members.len() {
            ..=FEW => members[..index].iter().any(|before| before.key == member.key),
            _ => !seen.insert(member.key.as_str()),
        };
        is_repeated.then_some(member.key_span)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lenient(text: &str) -> (Value, Vec<MistakeKind>) {
        let reading = read(text, Span::new(0, text.len())).unwrap();
        (reading.values[0].to_value(), reading.mistakes.iter().map(|slip| slip.kind).collect())
    }

    fn fault(text: &str) -> JsonFault {
        read(text, Span::new(0, text.len())).unwrap_err()
    }

    #[test]
    fn strict_json_is_read_without_a_mistake() {
        let text = r#" {"a": [1, -2.5e3, "x\n\u00e9", true, false, null], "b": {}} "#;
        assert_eq!(lenient(text), (serde_json::from_str(text).unwrap(), vec![]));
    }

    #[test]
    fn mistakes_in_json_are_read_and_noted() {
        use MistakeKind::*;
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
    fn the_number_of_values_is_bounded() {
        let list = |count: usize| format!("[{}]", vec!["{}"; count - 1].join(","));
        let reading = |text: &str| read(text, Span::new(0, text.len())).map(|reading| reading.values.len());
        assert_eq!(reading(&list(MAX_VALUES)), Ok(1));
        let more = list(MAX_VALUES + 1);
        assert!(fault(&more).message.contains("more than 250000 values"));
        assert!(fault(&vec!["[...]"; MAX_VALUES].join(" ")).message.contains("values"));
        for text in ["1", "[]", "[1, 2]", "{\"a\": {\"b\": [1, 2]}, \"c\": 3}", "{} {}"] {
            let mut reader = JsonReader { text, end: text.len(), at: 0, count: 0, mistakes: Vec::new() };
            reader.value(0).unwrap();
            assert!(reader.count <= most_values(text), "{text}");
        }
    }

    #[test]
    fn the_plain_part_of_a_string_ends_where_it_should() {
        let plain = "é !#[]~\u{7f}\u{80}日本 and more of it";
        for end in ["\"", "\\", "\n", "\0", "\u{1f}", "\"\n\\"] {
            for start in 0..plain.len() {
                let text = [&plain.as_bytes()[start..], end.as_bytes(), b"\"x"].concat();
                assert_eq!(plain_length(&text), plain.len() - start, "{start} {end:?}");
            }
        }
        assert_eq!(plain_length(plain.as_bytes()), plain.len());
        assert_eq!(plain_length(b""), 0);
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
