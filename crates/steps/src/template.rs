//! Values from earlier answers: `${name}` and `${name.member.0}` in texts.
//!
//! A text that is one reference becomes the value it names, of whatever type; within a longer text the value is
//! inserted as text. A value never becomes a member, a name or a further reference. `$${` stands for `${`.

use serde_json::{Map, Value};

/// A reference has a name and a few members.
const MAX_REFERENCE: usize = 200;

/// A part of a text.
enum Part<'a> {
    Plain(&'a str),
    Reference(&'a str),
}

/// Bytes that the references of one step may become: a short text that is written thousands of times is a long one.
const MAX_FILLED: usize = 512 << 10;

/// Fills all texts of a value. The error says which reference is wrong.
pub(crate) fn fill(value: &Value, scope: &Map<String, Value>) -> Result<Value, String> {
    Filler { scope, room: MAX_FILLED }.fill(value)
}

/// Fills what can be filled; texts with a reference that leads nowhere stay as they are. Also says whether all could.
pub(crate) fn fill_known(value: &Value, scope: &Map<String, Value>) -> (Value, bool) {
    let mut is_whole = true;
    let filled = Filler { scope, room: MAX_FILLED }.fill_known(value, &mut is_whole);
    (filled, is_whole)
}

struct Filler<'a> {
    scope: &'a Map<String, Value>,
    /// Bytes that may still be inserted.
    room: usize,
}

impl Filler<'_> {
    fn fill(&mut self, value: &Value) -> Result<Value, String> {
        match value {
            Value::String(text) => self.fill_text(text),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect::<Result<_, _>>().map(Value::Array),
            Value::Object(members) => {
                let filled = members.iter().map(|(name, value)| Ok((name.clone(), self.fill(value)?)));
                filled.collect::<Result<_, String>>().map(Value::Object)
            }
            plain => Ok(plain.clone()),
        }
    }

    fn fill_known(&mut self, value: &Value, is_whole: &mut bool) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| self.fill_known(item, is_whole)).collect(),
            Value::Object(members) => {
                let filled = members.iter().map(|(name, value)| (name.clone(), self.fill_known(value, is_whole)));
                Value::Object(filled.collect())
            }
            plain => self.fill(plain).unwrap_or_else(|_| {
                *is_whole = false;
                plain.clone()
            }),
        }
    }

    fn fill_text(&mut self, text: &str) -> Result<Value, String> {
        let parts = parts(text)?;
        if let [Part::Reference(reference)] = parts[..] {
            let value = find(reference, self.scope)?;
            self.take(weigh(value))?;
            return Ok(value.clone());
        }
        let mut whole = String::new();
        for part in parts {
            match part {
                Part::Plain(plain) => whole.push_str(plain),
                Part::Reference(reference) => match find(reference, self.scope)? {
                    Value::String(text) => {
                        self.take(text.len())?;
                        whole.push_str(text);
                    }
                    plain @ (Value::Number(_) | Value::Bool(_)) => whole.push_str(&plain.to_string()),
                    other => {
                        let kind = if other.is_null() { "null" } else { "a list or an object" };
                        return Err(format!("`${{{reference}}}` is {kind} and cannot be part of a text"));
                    }
                },
            }
        }
        Ok(Value::String(whole))
    }

    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.room.checked_sub(bytes);
        self.room = left.ok_or_else(|| format!("the values of this step have more than {} KiB", MAX_FILLED >> 10))?;
        Ok(())
    }
}

/// About the bytes that a value takes.
pub(crate) fn weigh(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 16,
        Value::Array(items) => 16 + items.iter().map(weigh).sum::<usize>(),
        Value::Object(members) => 16 + members.iter().map(|(name, value)| name.len() + weigh(value)).sum::<usize>(),
        _ => 16,
    }
}

fn find<'a>(reference: &str, scope: &'a Map<String, Value>) -> Result<&'a Value, String> {
    let mut members = reference.split('.');
    let name = members.next().unwrap_or_default();
    let mut value = scope.get(name).ok_or_else(|| format!("`${{{reference}}}`: nothing is called `{name}` here"))?;
    for member in members {
        let next = match value {
            Value::Array(items) => member.parse::<usize>().ok().and_then(|index| items.get(index)),
            Value::Object(inner) => inner.get(member),
            _ => None,
        };
        value = next.ok_or_else(|| format!("`${{{reference}}}`: there is no `{member}`"))?;
    }
    Ok(value)
}

/// The names that a value refers to; an error where a reference is not written right.
pub(crate) fn names(value: &Value) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => names.extend(parts(text)?.iter().filter_map(|part| match part {
                Part::Reference(reference) => reference.split('.').next().map(str::to_owned),
                Part::Plain(_) => None,
            })),
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    Ok(names)
}

fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            parts.push(Part::Plain(&rest[..at]));
            parts.push(Part::Plain("{"));
        } else {
            if at > 0 {
                parts.push(Part::Plain(&rest[..at]));
            }
            let inside = &rest[at + 2..];
            let end = inside.find('}').filter(|end| *end <= MAX_REFERENCE);
            let end = end.ok_or_else(|| "a reference `${` has no `}`".to_owned())?;
            let reference = &inside[..end];
            let is_plain = |part: &str| {
                !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            };
            if !reference.split('.').all(is_plain) {
                return Err(format!("`${{{reference}}}` must be a name and members joined by dots"));
            }
            parts.push(Part::Reference(reference));
            rest = &inside[end + 1..];
            continue;
        }
        rest = &rest[at + 2..];
    }
    if !rest.is_empty() || parts.is_empty() {
        parts.push(Part::Plain(rest));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filled(value: Value) -> Result<Value, String> {
        let scope = json!({"who": "Zoë ${x}", "n": 5, "answer": {"list": [{"id": 7}], "none": null}});
        fill(&value, scope.as_object().unwrap())
    }

    #[test]
    fn a_reference_alone_keeps_its_type_and_within_a_text_it_is_text() {
        assert_eq!(filled(json!("${answer.list.0.id}")), Ok(json!(7)));
        assert_eq!(filled(json!("${answer.list}")), Ok(json!([{"id": 7}])));
        assert_eq!(filled(json!({"a": ["Hello ${who}, ${n}!"]})), Ok(json!({"a": ["Hello Zoë ${x}, 5!"]})));
        assert_eq!(filled(json!("")), Ok(json!("")));
        assert_eq!(filled(json!("costs $5 and $${n}")), Ok(json!("costs $5 and ${n}")));
    }

    #[test]
    fn values_are_inserted_and_never_read_again() {
        // The value of `who` looks like a reference and stays a text; names of members are not filled.
        assert_eq!(filled(json!("${who}")), Ok(json!("Zoë ${x}")));
        assert_eq!(filled(json!({"${n}": 1})), Ok(json!({"${n}": 1})));
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_named() {
        for (text, part) in [
            ("${nobody}", "`nobody`"),
            ("${answer.list.9}", "`9`"),
            ("x ${answer}", "cannot be part"),
            ("x ${answer.none}", "null"),
            ("${", "no `}`"),
            ("${a b}", "must be a name"),
            ("${}", "must be a name"),
        ] {
            let error = filled(json!(text)).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_filled_or_refused(text in "[$a-c{}. ]{0,30}") {
            let scope = json!({"a": 1, "b": {"c": "x"}});
            let known = names(&json!(text));
            let filled = fill(&json!(text), scope.as_object().unwrap());
            proptest::prop_assert!(known.is_ok() || filled.is_err());
        }
    }
}
