//! Texts with `${name}` in them. A value is escaped for where it stands, or refused, so that it never becomes structure.

use sinew_tool::{Args, ErrorKind, ToolError, Value, json};

pub use crate::place::TextPlace;

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

/// What is around a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// The gap is the whole text.
    pub(crate) is_alone: bool,
    /// It stands between double quotes.
    pub(crate) is_quoted: bool,
    /// It ends the text.
    pub(crate) is_last: bool,
}

/// A payload or body, by what its text or its `Content-Type` says it is.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyTemplate {
    Json(JsonTemplate),
    /// `name=value&name=value`
    Form(TextTemplate),
    /// XML and HTML.
    Markup(TextTemplate),
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

    /// The text without its gaps.
    fn fixed_text(&self) -> String {
        let fixed = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Gap(_) => None,
        });
        fixed.collect()
    }

    /// The template with every value in its place.
    pub fn fill(&self, args: &Args, place: TextPlace) -> Result<String, ToolError> {
        let mut filled = String::new();
        let mut is_quoted = false;
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                Part::Text(text) => {
                    filled.push_str(text);
                    is_quoted = is_quoted_after(text, is_quoted);
                }
                Part::Gap(name) => {
                    let value = args.get(name).filter(|value| !value.is_null());
                    let value = value.ok_or_else(|| refuse(name, "is missing, and is needed here"))?;
                    let is_last = index + 1 == self.parts.len();
                    let around = Surroundings { is_alone: self.parts.len() == 1, is_quoted, is_last };
                    place.insert(name, &to_text(name, value)?, around, &mut filled)?;
                }
            }
        }
        Ok(filled)
    }
}

/// Whether the next character stands between double quotes.
fn is_quoted_after(text: &str, mut is_quoted: bool) -> bool {
    let mut is_escaped = false;
    for character in text.chars() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_quoted,
            '"' => is_quoted = !is_quoted,
            _ => {}
        }
    }
    is_quoted
}

impl BodyTemplate {
    pub fn parse(text: &str) -> Result<BodyTemplate, String> {
        BodyTemplate::parse_as(text, "")
    }

    /// `content_type` says what the text is; where it is empty, the text does.
    pub fn parse_as(text: &str, content_type: &str) -> Result<BodyTemplate, String> {
        let content_type = content_type.to_ascii_lowercase();
        let start = text.trim_start();
        if start.starts_with(['{', '[']) || content_type.contains("json") {
            return parse_json(text).map(BodyTemplate::Json);
        }
        if start.starts_with('"')
            && let Ok(json) = parse_json(text)
        {
            return Ok(BodyTemplate::Json(json));
        }
        let template = TextTemplate::parse(text)?;
        Ok(if start.starts_with('<') || content_type.contains("xml") || content_type.contains("html") {
            BodyTemplate::Markup(template)
        } else if content_type.contains("x-www-form-urlencoded") || (content_type.is_empty() && is_form(&template)) {
            BodyTemplate::Form(template)
        } else {
            BodyTemplate::Text(template)
        })
    }

    pub fn names(&self) -> Vec<&str> {
        match self {
            BodyTemplate::Text(text) | BodyTemplate::Form(text) | BodyTemplate::Markup(text) => text.names(),
            BodyTemplate::Json(json) => json.names(),
        }
    }

    /// What a body is sent as, where the configuration does not say.
    pub fn content_type(&self) -> &'static str {
        match self {
            BodyTemplate::Json(_) => "application/json",
            BodyTemplate::Form(_) => "application/x-www-form-urlencoded",
            BodyTemplate::Markup(_) | BodyTemplate::Text(_) => "text/plain; charset=utf-8",
        }
    }

    pub fn fill(&self, args: &Args) -> Result<String, ToolError> {
        let filled = match self {
            BodyTemplate::Text(text) => text.fill(args, TextPlace::Text)?,
            BodyTemplate::Form(text) => text.fill(args, TextPlace::Form)?,
            BodyTemplate::Markup(text) => text.fill(args, TextPlace::Markup)?,
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

fn parse_json(text: &str) -> Result<JsonTemplate, String> {
    let marked = mark_bare_gaps(text)?;
    let value = serde_json::from_str(&marked).map_err(|error| format!("should be JSON and is not: {error}"))?;
    JsonTemplate::read(value)
}

/// Whether a text looks like `name=value&name=value`.
fn is_form(template: &TextTemplate) -> bool {
    let text = template.fixed_text();
    let is_plain = |each: char| each.is_ascii_alphanumeric() || "-._~%+[]".contains(each);
    let is_pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        !name.is_empty() && name.chars().chain(value.chars()).all(is_plain)
    };
    text.contains('&') && text.contains('=') && text.split('&').all(is_pair)
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
            JsonTemplate::Text(text) => Some(json!(text.fill(args, TextPlace::JsonText)?)),
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

pub(crate) fn refuse(name: &str, issue: &str) -> ToolError {
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

    fn body(template: &str, value: Value) -> String {
        BodyTemplate::parse(template).expect("valid").fill(&args(value)).expect("filled")
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
        // Nor does JSON that stands in a string.
        let nested = body(r#"{"body": "{\"a\": \"${x}\"}"}"#, json!({"x": "\", \"b\": \"1"}));
        let outer: Value = serde_json::from_str(&nested).expect("JSON");
        let inner: Value = serde_json::from_str(outer["body"].as_str().expect("a text")).expect("JSON");
        assert_eq!(inner, json!({"a": "\", \"b\": \"1"}));
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

    #[test]
    fn a_body_is_what_its_type_says_or_else_what_it_looks_like() {
        let kind = |text: &str, content_type: &str| match BodyTemplate::parse_as(text, content_type) {
            Ok(BodyTemplate::Json(_)) => "JSON",
            Ok(BodyTemplate::Form(_)) => "form",
            Ok(BodyTemplate::Markup(_)) => "markup",
            Ok(BodyTemplate::Text(_)) => "text",
            Err(_) => "wrong",
        };
        for (text, content_type, expected) in [
            (r#" {"a": ${x}}"#, "", "JSON"),
            (r#""${x}""#, "", "JSON"),
            (r#""${x}" and more"#, "", "text"),
            ("${x}", "application/json", "JSON"),
            ("a=${x}", "Application/vnd.api+JSON", "wrong"),
            ("a=${x}&b=c", "", "form"),
            ("a[]=${x}&b", "", "form"),
            ("a=${x}", "application/x-www-form-urlencoded; charset=utf-8", "form"),
            ("a=${x}", "", "text"),
            ("R&B is ${x} = good", "", "text"),
            ("a=${x}&b=c", "text/plain", "text"),
            ("<a>${x}</a>", "", "markup"),
            ("${x}", "text/xml", "markup"),
            ("SET ${x}", "", "text"),
        ] {
            assert_eq!(kind(text, content_type), expected, "{text} {content_type}");
        }
    }

    #[test]
    fn a_value_stays_a_value_in_every_kind_of_body() {
        let fill = |template: &str, value: &str| {
            BodyTemplate::parse(template)
                .expect("valid")
                .fill(&args(json!({"x": value})))
                .map_err(|error| error.message)
        };
        for (template, value, filled) in [
            ("state=${x}&user=guest", "on&user=admin", "state=on%26user%3Dadmin&user=guest"),
            (r#""${x}""#, r#"a","b"#, r#""a\",\"b""#),
            (r#"SET {"a":"${x}"}"#, r#"1","b":"\2"#, r#"SET {"a":"1\",\"b\":\"\\2"}"#),
            ("<v>${x}</v>", "</v><w a='1'>&\"", "<v>&lt;/v&gt;&lt;w a=&#39;1&#39;&gt;&amp;&quot;</v>"),
            ("${x}", "anything;\nat all", "anything;\nat all"),
            ("SAY ${x}", "good morning", "SAY good morning"),
        ] {
            assert_eq!(fill(template, value).as_deref(), Ok(filled), "{template}");
        }
        for (template, value, part) in [
            ("Backlog Power ${x}; Delay 1", "ON;Restart", "`;`"),
            ("${x},${x}", "1,2", "`,`"),
            ("SET ${x}", "a\nSET b", "control character U+000A"),
            (r#"SET {"a":${x}}"#, r#"1,"b":2"#, "`,`"),
            (r#"SET {"a":${x}}"#, "{}", "`{`"),
            ("say '${x}'", "it's", "`'`"),
            ("SET ${x} TO 5", "a TO 6", "a space"),
            ("<a ${x}>", "\u{1}", "control character U+0001"),
            ("a=${x}", "b=c", "`=`"),
        ] {
            let problem = fill(template, value).expect_err(template);
            assert!(problem.starts_with("`x` ") && problem.contains(part), "{template}: {problem}");
        }
    }

    proptest! {
        #[test]
        fn no_value_escapes_from_its_string(value in "\\PC{0,20}|[\"\\\\{}$]{0,8}") {
            let filled = body(r#"{"a":"${x}"}"#, json!({"x": value}));
            prop_assert_eq!(serde_json::from_str::<Value>(&filled).unwrap(), json!({"a": value}));
        }
    }
}
