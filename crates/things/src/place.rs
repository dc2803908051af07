//! Where a value stands in a text, and how it is inserted there: escaped, or refused by the character that could become
//! structure. `docs/things.md` has the same rules as a table.

use std::fmt::Write;

use sinew_tool::ToolError;

use crate::template::{Surroundings, refuse};

/// Where a text template stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPlace {
    /// A payload or body that has no form we know.
    Text,
    /// A string in JSON.
    JsonText,
    /// `name=value&name=value`
    Form,
    /// XML and HTML.
    Markup,
    /// Path or query of a URL.
    Url,
    /// A level of an MQTT topic.
    Topic,
    Header,
}

/// Values that stand in topics, headers and URLs are names and numbers.
const MAX_VALUE_BYTES: usize = 1024;
/// What separates and groups in the command languages of gadgets.
const SEPARATORS: &str = "\"'`\\;,=&|<>{}[]";
/// What separates the parts of a header.
const HEADER_SEPARATORS: &str = "\"\\;,";

impl TextPlace {
    pub(crate) fn insert(
        self,
        name: &str,
        text: &str,
        around: Surroundings,
        filled: &mut String,
    ) -> Result<(), ToolError> {
        let is_short = matches!(self, TextPlace::Url | TextPlace::Topic | TextPlace::Header);
        if is_short && text.len() > MAX_VALUE_BYTES {
            return Err(refuse(name, &format!("has more than {MAX_VALUE_BYTES} bytes")));
        }
        match self {
            TextPlace::Text if around.is_alone => filled.push_str(text),
            TextPlace::Text | TextPlace::JsonText if around.is_quoted => push_quoted(text, filled),
            TextPlace::JsonText => filled.push_str(text),
            TextPlace::Text => {
                refuse_characters(name, text, SEPARATORS, "between other text")?;
                refuse_spaces(name, text, around)?;
                filled.push_str(text);
            }
            TextPlace::Markup => {
                refuse_characters(name, text, "", "in XML or HTML")?;
                push_markup(text, filled);
            }
            TextPlace::Form => push_percent(text, filled),
            TextPlace::Url if matches!(text, "" | "." | "..") => {
                return Err(refuse(name, "cannot be a part of a URL: it must not be empty, `.` or `..`"));
            }
            TextPlace::Url => push_percent(text, filled),
            TextPlace::Topic if text.is_empty() => {
                return Err(refuse(name, "is empty, which cannot be a level of an MQTT topic"));
            }
            TextPlace::Topic => {
                refuse_characters(name, text, "+#/", "in a level of an MQTT topic")?;
                if filled.is_empty() && text.starts_with('$') {
                    return Err(refuse(name, "begins with `$`, which cannot begin an MQTT topic: it is for brokers"));
                }
                filled.push_str(text);
            }
            TextPlace::Header => {
                refuse_characters(name, text, HEADER_SEPARATORS, "in a header")?;
                refuse_spaces(name, text, around)?;
                filled.push_str(text);
            }
        }
        Ok(())
    }
}

/// Refuses control characters, characters that Unicode gives no meaning, and those in `more`.
fn refuse_characters(name: &str, text: &str, more: &str, place: &str) -> Result<(), ToolError> {
    let found = text.chars().find(|each| each.is_control() || is_noncharacter(*each) || more.contains(*each));
    let Some(found) = found else { return Ok(()) };
    let shown = match more.contains(found) {
        true => format!("`{found}`"),
        false => format!("the control character U+{:04X}", u32::from(found)),
    };
    Err(refuse(name, &format!("has {shown}, which cannot stand {place}")))
}

/// Words that are followed by others are one word each.
fn refuse_spaces(name: &str, text: &str, around: Surroundings) -> Result<(), ToolError> {
    match !around.is_last && text.contains(char::is_whitespace) {
        true => Err(refuse(name, "has a space, which cannot stand before other text")),
        false => Ok(()),
    }
}

fn is_noncharacter(character: char) -> bool {
    let code = u32::from(character);
    (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
}

/// As JSON has it between quotes.
fn push_quoted(text: &str, filled: &mut String) {
    let quoted = sinew_tool::Value::from(text).to_string();
    filled.push_str(&quoted[1..quoted.len() - 1]);
}

fn push_percent(text: &str, filled: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => filled.push(byte.into()),
            // Writing to a string never fails.
            _ => drop(write!(filled, "%{byte:02X}")),
        }
    }
}

fn push_markup(text: &str, filled: &mut String) {
    for character in text.chars() {
        match character {
            '&' => filled.push_str("&amp;"),
            '<' => filled.push_str("&lt;"),
            '>' => filled.push_str("&gt;"),
            '"' => filled.push_str("&quot;"),
            '\'' => filled.push_str("&#39;"),
            other => filled.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sinew_tool::{Value, json};

    use super::*;
    use crate::template::TextTemplate;

    fn text(template: &str, place: TextPlace, value: Value) -> Result<String, String> {
        let template = TextTemplate::parse(template).expect("valid");
        let args = json!({"x": value}).as_object().cloned().expect("an object");
        template.fill(&args, place).map_err(|error| error.message)
    }

    #[test]
    fn a_value_is_escaped_for_where_it_stands() {
        assert_eq!(text("cmnd/${x}/POWER", TextPlace::Topic, json!("plug 1")).as_deref(), Ok("cmnd/plug 1/POWER"));
        assert_eq!(text("a/${x}", TextPlace::Topic, json!("$x")).as_deref(), Ok("a/$x"));
        assert_eq!(
            text("/a/${x}?b=${x}", TextPlace::Url, json!("ä/&?#")).as_deref(),
            Ok("/a/%C3%A4%2F%26%3F%23?b=%C3%A4%2F%26%3F%23")
        );
        assert_eq!(text("Bearer ${x}", TextPlace::Header, json!(5)).as_deref(), Ok("Bearer 5"));
    }

    #[test]
    fn what_could_become_structure_is_refused_by_its_name() {
        let topic = [
            "a/b",
            "+",
            "#",
            "",
            "a\0",
            "a\u{1}",
            "a\n",
            "\u{7f}",
            "\u{85}",
            "\u{9f}",
            "\u{fdd0}",
            "\u{1fffe}",
            "$SYS",
        ];
        for (template, place, values) in [
            ("${x}/set", TextPlace::Topic, &topic[..]),
            ("/${x}", TextPlace::Url, &["", ".", ".."]),
            (
                "room=${x}; role=guest",
                TextPlace::Header,
                &["a; role=admin", "a, b", "a\r\nb", "\u{7f}", "a b", "\"", "\\"],
            ),
            ("${x}", TextPlace::Header, &["a, b", "a;q=1"]),
        ] {
            for value in values {
                let error = text(template, place, json!(value)).expect_err(value);
                assert!(error.starts_with("`x` "), "{value:?}: {error}");
            }
        }
        for value in [json!([1]), json!({}), json!(null)] {
            assert!(text("${x}", TextPlace::Text, value.clone()).is_err(), "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_value_leaves_its_topic_level_or_url_part(value in "[-a-z+#/?&%.=$\u{0}-\u{9f}]{0,8}") {
            if let Ok(topic) = text("${x}/b/${x}", TextPlace::Topic, json!(value)) {
                prop_assert_eq!(topic.split('/').count(), 3);
                prop_assert!(!topic.starts_with('$') && !topic.contains(char::is_control));
            }
            if let Ok(url) = text("/a/${x}?q=1", TextPlace::Url, json!(value)) {
                prop_assert!(url.matches(['/', '?', '=', '&', '#']).count() == 4, "{}", url);
            }
        }

        #[test]
        fn no_value_adds_a_part_to_a_text(value in "\\PC{0,12}|[\"'\\\\;,=&|<>{}\\[\\] a]{0,8}") {
            for (template, place) in [("a ${x} b", TextPlace::Text), ("a=${x}; b", TextPlace::Header)] {
                if let Ok(filled) = text(template, place, json!(value)) {
                    let separates = |each: char| each.is_whitespace() || ";,\"\\".contains(each);
                    prop_assert_eq!(filled.matches(separates).count(), template.matches(separates).count());
                }
            }
            if let Ok(filled) = text("<a b=\"${x}\">${x}</a>", TextPlace::Markup, json!(value)) {
                prop_assert_eq!(filled.matches(['<', '>', '"', '\'']).count(), 6);
            }
        }
    }
}
