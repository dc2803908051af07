//! YAML into JSON values, with the line of every item. Only plain data: aliases, tags and repeated keys are refused.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};
use serde_json::{Map, Number, Value};

/// Lists and maps in each other.
const MAX_DEPTH: usize = 32;
/// Values in one text, which is a thousand steps of many arguments.
const MAX_VALUES: usize = 20_000;

/// A text that was read.
#[derive(Debug, PartialEq)]
pub(crate) struct Yaml {
    pub(crate) value: Value,
    /// The line of every item of a list, counted from 1, by its JSON pointer. Steps are such items.
    pub(crate) lines: HashMap<String, usize>,
}

/// What is wrong, and in which line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct YamlError {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// A list or map that is not complete yet.
struct Open {
    kind: OpenKind,
    pointer: String,
}

enum OpenKind {
    List(Vec<Value>),
    Map(Map<String, Value>, Option<String>),
}

pub(crate) fn read(text: &str) -> Result<Yaml, YamlError> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| syntax(&error))?;
        reader.take(event, span)?;
    }
    match reader.whole {
        Some(value) => Ok(Yaml { value, lines: reader.lines }),
        None => Err(YamlError { line: 1, message: "there is nothing".to_owned() }),
    }
}

fn syntax(error: &ScanError) -> YamlError {
    let hint = "; write a `${reference}` within braces in quotes";
    YamlError { line: error.marker().line(), message: format!("this is not YAML: {}{hint}", error.info()) }
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    whole: Option<Value>,
    lines: HashMap<String, usize>,
    values: usize,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let line = span.start.line();
        let wrong = |message: &str| YamlError { line, message: message.to_owned() };
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if anchor != 0 || tag.is_some() {
                    return Err(wrong("anchors and tags are not used here; write the value itself"));
                }
                if let Some(Open { kind: OpenKind::Map(members, name @ None), .. }) = self.open.last_mut() {
                    if members.contains_key(&*text) {
                        return Err(wrong(&format!("`{text}` stands twice")));
                    }
                    *name = Some(text.into_owned());
                    return Ok(());
                }
                self.place(scalar(&text, style), line)
            }
            Event::Alias(_) => Err(wrong("aliases are not used here; write the value itself")),
            Event::SequenceStart(anchor, tag) => self.begin(OpenKind::List(Vec::new()), anchor, tag.is_some(), line),
            Event::MappingStart(anchor, tag) => {
                self.begin(OpenKind::Map(Map::new(), None), anchor, tag.is_some(), line)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open { kind: OpenKind::List(items), .. }) => self.put(Value::Array(items), line),
                Some(Open { kind: OpenKind::Map(members, _), .. }) => self.put(Value::Object(members), line),
                None => Err(wrong("this ends something that did not begin")),
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                Ok(())
            }
        }
    }

    fn begin(&mut self, kind: OpenKind, anchor: usize, has_tag: bool, line: usize) -> Result<(), YamlError> {
        let wrong = |message: String| YamlError { line, message };
        if anchor != 0 || has_tag {
            return Err(wrong("anchors and tags are not used here; write the value itself".to_owned()));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(wrong(format!("lists and maps may be nested {MAX_DEPTH} deep")));
        }
        self.count(line)?;
        let pointer = self.next_pointer(line)?;
        if self.is_listed() {
            self.lines.insert(pointer.clone(), line);
        }
        self.open.push(Open { kind, pointer });
        Ok(())
    }

    /// A value that is complete and was not noted yet.
    fn place(&mut self, value: Value, line: usize) -> Result<(), YamlError> {
        self.count(line)?;
        if self.is_listed() {
            self.lines.insert(self.next_pointer(line)?, line);
        }
        self.put(value, line)
    }

    fn count(&mut self, line: usize) -> Result<(), YamlError> {
        self.values += 1;
        match self.values > MAX_VALUES {
            true => Err(YamlError { line, message: format!("there are more than {MAX_VALUES} values") }),
            false => Ok(()),
        }
    }

    /// Whether the next value is an item, or the whole.
    fn is_listed(&self) -> bool {
        matches!(self.open.last(), None | Some(Open { kind: OpenKind::List(_), .. }))
    }

    /// Where the next value goes.
    fn next_pointer(&self, line: usize) -> Result<String, YamlError> {
        match self.open.last() {
            None => Ok(String::new()),
            Some(Open { kind: OpenKind::List(items), pointer }) => Ok(format!("{pointer}/{}", items.len())),
            Some(Open { kind: OpenKind::Map(_, Some(name)), pointer }) => Ok(format!("{pointer}/{name}")),
            Some(Open { kind: OpenKind::Map(_, None), .. }) => {
                Err(YamlError { line, message: "the name of a member must be a text".to_owned() })
            }
        }
    }

    fn put(&mut self, value: Value, line: usize) -> Result<(), YamlError> {
        match self.open.last_mut() {
            None if self.whole.is_some() => {
                return Err(YamlError { line, message: "there is a second document; one is enough".to_owned() });
            }
            None => self.whole = Some(value),
            Some(Open { kind: OpenKind::List(items), .. }) => items.push(value),
            Some(Open { kind: OpenKind::Map(members, name), .. }) => {
                members.insert(name.take().unwrap_or_default(), value);
            }
        }
        Ok(())
    }
}

/// Words as JSON has them; everything else, such as `yes` and `0x10`, is text.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => match serde_json::from_str::<Number>(text) {
            Ok(number) => Value::Number(number),
            Err(_) => Value::String(text.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_data_is_read_with_its_lines() {
        let text = "- call: tap\n  arguments: {x: 1, y: 2.5}\n- expect:\n    value: '1'\n    is: yes\n- wait: null\n";
        let yaml = read(text).unwrap();
        assert_eq!(
            yaml.value,
            json!([
                {"call": "tap", "arguments": {"x": 1, "y": 2.5}},
                {"expect": {"value": "1", "is": "yes"}},
                {"wait": null},
            ])
        );
        assert_eq!((yaml.lines["/0"], yaml.lines["/1"], yaml.lines["/2"]), (1, 3, 6));
        assert_eq!(read("then:\n- a\n- [b]\n").unwrap().lines["/then/1"], 3);
    }

    #[test]
    fn what_is_not_plain_data_is_refused_with_its_line() {
        let deep = "[".repeat(40) + &"]".repeat(40);
        let cases = [
            ("a: &x 1\nb: *x", 1, "anchors"),
            ("- 1\n- *x", 2, ""),
            ("a: !!str 1", 1, "tags"),
            ("a: 1\na: 2", 2, "twice"),
            ("- 1\n---\n- 2", 2, "second document"),
            ("? [1]\n: 2", 1, "must be a text"),
            ("a: [1", 1, "not YAML"),
            ("", 1, "nothing"),
            (&deep, 1, "deep"),
        ];
        for (text, line, part) in cases {
            let error = read(text).unwrap_err();
            assert!(error.message.contains(part) && error.line >= line, "{text}: {error:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in "[-a-z0-9:{}\\[\\],&*!#|>'\"\\n ?%@`~]{0,200}") {
            let _ = read(&text);
        }

        #[test]
        fn json_is_read_as_it_is(value in value()) {
            prop_assert_eq!(read(&value.to_string()).unwrap().value, value);
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z ]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 30, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,5}", inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }
}
