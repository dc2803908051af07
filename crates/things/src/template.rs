//! Texts with `${name}` in them. A value is escaped for where it stands, so that it never becomes structure.

use std::fmt::Write;

use sinew_tool::{Args, ErrorKind, ToolError, Value, json};

/// A text with gaps for arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Gap(String),
}

/// Where a text template stands, and so how its values are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPlace {
    /// A payload or body that is not JSON.
    Plain,
    /// Path or query of a URL.
    Url,
    /// A level of an MQTT topic.
    Topic,
    Header,
}

/// A payload or body: JSON where it looks like JSON, else text.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyTemplate {
    Json(JsonTemplate),
    Text(TextTemplate),
}

/// JSON with gaps: `"${name}"` inserts text, `${name}` without quotes the value itself.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonTemplate {
    Fixed(Value),
    Text(TextTemplate),
    Value(String),
    List(Vec<JsonTemplate>),
    Object(Vec<(String, JsonTemplate)>),
}

/// Values that stand in topics, headers and URLs are names and numbers.
const MAX_VALUE_BYTES: usize = 1024;
/// What a body may become; gadgets have little memory.
pub const MAX_BODY_BYTES: usize = 64 << 10;
/// Marks a gap without quotes while the JSON around it is read. No JSON text of a person begins so.
const BARE: char = '\u{0}';

impl TextTemplate {
    pub fn parse(text: &str) -> Result<TextTemplate, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, behind) = after.split_once('}').ok_or_else(|| format!("`${{{after}` has no closing brace"))?;
            check_name(name)?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Gap(name.to_owned()));
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(TextTemplate { parts })
    }

    pub fn names(&self) -> Vec<&str> {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Gap(name) => Some(name.as_str()),
                Part::Text(_) => None,
            })
            .collect()
    }

    /// The text before the first gap.
    pub fn fixed_start(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }

    /// The template with every value in its place.
    pub fn fill(&self, args: &Args, place: TextPlace) -> Result<String, ToolError> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Gap(name) => {
                    let value = args.get(name).filter(|value| !value.is_null());
                    let value = value.ok_or_else(|| refuse(name, "is missing, and is needed here"))?;
                    place.insert(name, &to_text(name, value)?, &mut filled)?;
                }
            }
        }
        Ok(filled)
    }
}

impl TextPlace {
    fn insert(self, name: &str, text: &str, filled: &mut String) -> Result<(), ToolError> {
        if self != TextPlace::Plain && text.len() > MAX_VALUE_BYTES {
            return Err(refuse(name, &format!("has more than {MAX_VALUE_BYTES} bytes")));
        }
        match self {
            TextPlace::Plain => filled.push_str(text),
            TextPlace::Header if text.chars().any(char::is_control) => {
                return Err(refuse(name, "has control characters, which cannot stand in a header"));
            }
            TextPlace::Header => filled.push_str(text),
            TextPlace::Topic if text.is_empty() || text.contains(['+', '#', '/', '\0']) => {
                return Err(refuse(
                    name,
                    "cannot be a level of an MQTT topic: it must not be empty or have `+`, `#` or `/`",
                ));
            }
            TextPlace::Topic => filled.push_str(text),
            TextPlace::Url if matches!(text, "" | "." | "..") => {
                return Err(refuse(name, "cannot be a part of a URL: it must not be empty, `.` or `..`"));
            }
            TextPlace::Url => {
                for byte in text.bytes() {
                    match byte {
                        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => filled.push(byte.into()),
                        // Writing to a string never fails.
                        _ => drop(write!(filled, "%{byte:02X}")),
                    }
                }
            }
        }
        Ok(())
    }
}

impl BodyTemplate {
    pub fn parse(text: &str) -> Result<BodyTemplate, String> {
        match text.trim_start().starts_with(['{', '[']) {
            true => {
                let marked = mark_bare_gaps(text)?;
                let value = serde_json::from_str(&marked)
                    .map_err(|error| format!("begins like JSON but is not valid JSON: {error}"))?;
                Ok(BodyTemplate::Json(JsonTemplate::read(value)?))
            }
            false => TextTemplate::parse(text).map(BodyTemplate::Text),
        }
    }

    pub fn names(&self) -> Vec<&str> {
        match self {
            BodyTemplate::Text(text) => text.names(),
            BodyTemplate::Json(json) => json.names(),
        }
    }

    pub fn is_json(&self) -> bool {
        matches!(self, BodyTemplate::Json(_))
    }

    pub fn fill(&self, args: &Args) -> Result<String, ToolError> {
        let filled = match self {
            BodyTemplate::Text(text) => text.fill(args, TextPlace::Plain)?,
            BodyTemplate::Json(json) => json.fill(args)?.unwrap_or_default().to_string(),
        };
        if filled.len() > MAX_BODY_BYTES {
            let message =
                format!("the message would have {} bytes; at most {MAX_BODY_BYTES} are allowed", filled.len());
            return Err(ToolError::new(ErrorKind::TooLarge, message));
        }
        Ok(filled)
    }
}

impl JsonTemplate {
    fn read(value: Value) -> Result<JsonTemplate, String> {
        Ok(match value {
            Value::String(text) => match text.strip_prefix(BARE) {
                Some(name) => JsonTemplate::Value(name.to_owned()),
                None => JsonTemplate::Text(TextTemplate::parse(&text)?),
            },
            Value::Array(items) => {
                JsonTemplate::List(items.into_iter().map(JsonTemplate::read).collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let read = |(name, value): (String, Value)| {
                    if name.contains("${") || name.starts_with(BARE) {
                        return Err(format!(
                            "`{}`: the name of a member cannot be an argument",
                            name.trim_start_matches(BARE)
                        ));
                    }
                    Ok((name, JsonTemplate::read(value)?))
                };
                JsonTemplate::Object(members.into_iter().map(read).collect::<Result<_, _>>()?)
            }
            other => JsonTemplate::Fixed(other),
        })
    }

    fn names(&self) -> Vec<&str> {
        match self {
            JsonTemplate::Fixed(_) => Vec::new(),
            JsonTemplate::Text(text) => text.names(),
            JsonTemplate::Value(name) => vec![name],
            JsonTemplate::List(items) => items.iter().flat_map(JsonTemplate::names).collect(),
            JsonTemplate::Object(members) => members.iter().flat_map(|(_, value)| value.names()).collect(),
        }
    }

    /// `None` for a value that was not given: its member is left out.
    fn fill(&self, args: &Args) -> Result<Option<Value>, ToolError> {
        Ok(match self {
            JsonTemplate::Fixed(value) => Some(value.clone()),
            JsonTemplate::Text(text) => Some(json!(text.fill(args, TextPlace::Plain)?)),
            JsonTemplate::Value(name) => args.get(name).cloned(),
            JsonTemplate::List(items) => {
                let filled: Result<Vec<_>, _> = items.iter().map(|item| item.fill(args)).collect();
                Some(filled?.into_iter().flatten().collect())
            }
            JsonTemplate::Object(members) => {
                let mut filled = serde_json::Map::new();
                for (name, template) in members {
                    if let Some(value) = template.fill(args)? {
                        filled.insert(name.clone(), value);
                    }
                }
                Some(Value::Object(filled))
            }
        })
    }
}

/// Puts gaps that stand outside of JSON strings into strings of their own.
fn mark_bare_gaps(text: &str) -> Result<String, String> {
    let mut marked = String::with_capacity(text.len());
    let (mut in_string, mut is_escaped) = (false, false);
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if !in_string && let Some(after) = rest.strip_prefix("${") {
            let (name, behind) = after.split_once('}').ok_or_else(|| format!("`${{{after}` has no closing brace"))?;
            check_name(name)?;
            marked.push_str(&json!(format!("{BARE}{name}")).to_string());
            rest = behind;
            continue;
        }
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = in_string,
            '"' => in_string = !in_string,
            _ => {}
        }
        marked.push(character);
        rest = &rest[character.len_utf8()..];
    }
    Ok(marked)
}

fn check_name(name: &str) -> Result<(), String> {
    let is_plain =
        !name.is_empty() && name.chars().all(|each| each.is_ascii_alphanumeric() || each == '_' || each == '-');
    is_plain
        .then_some(())
        .ok_or_else(|| format!("`${{{name}}}` does not name an argument; use letters, digits, `_` and `-`"))
}

fn to_text(name: &str, value: &Value) -> Result<String, ToolError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(refuse(name, "must be a text, a number, or true or false")),
    }
}

fn refuse(name: &str, issue: &str) -> ToolError {
    ToolError::new(ErrorKind::InvalidArguments, format!("`{name}` {issue}"))
        .with_details(json!({"parameter_name": name, "issue": issue}))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn args(value: Value) -> Args {
        value.as_object().cloned().expect("an object")
    }

    fn text(template: &str, place: TextPlace, value: Value) -> Result<String, String> {
        let template = TextTemplate::parse(template).expect("valid");
        template.fill(&args(json!({"x": value})), place).map_err(|error| error.message)
    }

    fn body(template: &str, value: Value) -> String {
        BodyTemplate::parse(template).expect("valid").fill(&args(value)).expect("filled")
    }

    #[test]
    fn a_value_is_escaped_for_where_it_stands() {
        assert_eq!(text("cmnd/${x}/POWER", TextPlace::Topic, json!("plug 1")).as_deref(), Ok("cmnd/plug 1/POWER"));
        assert_eq!(
            text("/a/${x}?b=${x}", TextPlace::Url, json!("ä/&?#")).as_deref(),
            Ok("/a/%C3%A4%2F%26%3F%23?b=%C3%A4%2F%26%3F%23")
        );
        assert_eq!(text("Bearer ${x}", TextPlace::Header, json!(5)).as_deref(), Ok("Bearer 5"));
        for (place, values) in [
            (TextPlace::Topic, vec![json!("a/b"), json!("+"), json!("#"), json!(""), json!("a\0")]),
            (TextPlace::Url, vec![json!(""), json!("."), json!("..")]),
            (TextPlace::Header, vec![json!("a\r\nb"), json!("\u{7f}")]),
            (TextPlace::Plain, vec![json!([1]), json!({}), json!(null)]),
        ] {
            for value in values {
                let error = text("${x}", place, value.clone()).expect_err("refused");
                assert!(error.starts_with("`x` "), "{value}: {error}");
            }
        }
    }

    #[test]
    fn json_keeps_its_structure_whatever_is_inserted() {
        let template =
            r#"{"state": "${state}", "brightness": ${level}, "note": "a ${state} b", "list": [${level}, 1]}"#;
        let filled = body(template, json!({"state": "ON\", \"evil\": \"1", "level": 5}));
        let value: Value = serde_json::from_str(&filled).expect("JSON");
        assert_eq!(value["state"], "ON\", \"evil\": \"1");
        assert_eq!(
            (&value["brightness"], &value["list"], value.as_object().map(|all| all.len())),
            (&json!(5), &json!([5, 1]), Some(4))
        );
        // A value that was not given leaves its member out.
        assert_eq!(body(r#"{"a": ${a}, "b": 1}"#, json!({})), r#"{"b":1}"#);
    }

    #[test]
    fn what_is_wrong_with_a_template_is_said() {
        for wrong in ["${", "${}", "${a b}", "{\"a\": ${x", "{a: 1}", "{\"${x}\": 1}", "{${x}: 1}"] {
            assert!(BodyTemplate::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(BodyTemplate::parse("{\"a\": ${x}, \"b\": \"${y}\"}").expect("valid").names(), ["x", "y"]);
    }

    proptest! {
        #[test]
        fn no_value_escapes_from_its_string(value in "\\PC{0,20}|[\"\\\\{}$]{0,8}") {
            let filled = body(r#"{"a":"${x}"}"#, json!({"x": value}));
            prop_assert_eq!(serde_json::from_str::<Value>(&filled).unwrap(), json!({"a": value}));
        }

        #[test]
        fn no_value_leaves_its_topic_level_or_url_part(value in "[-a-z+#/?&%.=]{0,8}") {
            if let Ok(topic) = text("a/${x}/b", TextPlace::Topic, json!(value)) {
                prop_assert_eq!(topic.split('/').count(), 3);
            }
            if let Ok(url) = text("/a/${x}?q=1", TextPlace::Url, json!(value)) {
                prop_assert!(url.matches(['/', '?', '=', '&', '#']).count() == 4, "{}", url);
            }
        }
    }
}
