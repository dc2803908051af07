//! Bundles: the answers of apps, as JSON from the agent or as text printed by a shell command.
//!
//! The agent's JSON is complete. The printed form (`Bundle[{key=value, …}]`) has no quoting, so it is split only at
//! expected keys; what Android does not print is marked as `opaque`.

use serde_json::de::{Deserializer, StreamDeserializer};
use serde_json::{Map, Value, json};

/// More than Android's binder transports.
const MAX_TEXT: usize = 4 << 20;

/// The strings of an array in the agent's bundle JSON; `None` if the value is not an array.
pub fn texts(value: &Value) -> Option<Vec<String>> {
    let items = value.get("strings").or_else(|| value.get("list")).or_else(|| value.get("charsequences"));
    let items = items.unwrap_or(value).as_array()?;
    Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Reads a printed bundle into the agent's JSON. `is_key` says which keys are expected in it.
///
/// ```
/// use sinew_apps::offer::bundle_text;
///
/// let printed = "Result: Bundle[{tool_name=forecast, tool_input_required=[city, day], success=true}]";
/// let bundle = bundle_text(printed, &|key| key.starts_with("tool_") || key == "success").unwrap();
/// assert_eq!(bundle["tool_name"], "forecast");
/// assert_eq!(bundle["success"], true);
/// assert_eq!(bundle["tool_input_required"]["strings"][1], "day");
/// ```
pub fn bundle_text(text: &str, is_key: &dyn Fn(&str) -> bool) -> Result<Value, String> {
    if text.len() > MAX_TEXT {
        return Err(format!("the answer has {} bytes; at most {MAX_TEXT} are read", text.len()));
    }
    let start = text.find("Bundle[").ok_or("the answer has no bundle")?;
    let body = &text[start + "Bundle[".len()..];
    if body.starts_with("mParcelledData") {
        return Err("this Android prints only the size of the answer; the agent is needed to read it".to_owned());
    }
    if body.starts_with("EMPTY_PARCEL") || body.starts_with("{}") {
        return Ok(json!({}));
    }
    let end = body.rfind("}]").ok_or("the printed bundle ends early")?;
    let inner = body.get(1..end).filter(|_| body.starts_with('{')).ok_or("the printed bundle has no braces")?;
    let mut bundle = Map::new();
    let mut rest = inner;
    while let Some((key, behind)) = key(rest, is_key) {
        let (value, next) = value(behind, is_key);
        bundle.entry(key).or_insert(value);
        rest = next;
    }
    Ok(Value::Object(bundle))
}

/// The key at the start, and what follows its `=`.
fn key<'a>(text: &'a str, is_key: &dyn Fn(&str) -> bool) -> Option<(&'a str, &'a str)> {
    let until = text.find(['=', ',', ' ', '{', '['])?;
    let (key, behind) = (&text[..until], text[until..].strip_prefix('=')?);
    is_key(key).then_some((key, behind))
}

/// The value at the start, and what follows the comma after it.
fn value<'a>(text: &'a str, is_key: &dyn Fn(&str) -> bool) -> (Value, &'a str) {
    // JSON may contain expected keys itself, so it is skipped as a whole.
    let skip = match text.trim_start().starts_with(['{', '[']) {
        true => json_length(text),
        false => 0,
    };
    let mut end = text.len();
    for (at, _) in text[skip..].match_indices(", ") {
        if key(&text[skip + at + 2..], is_key).is_some() {
            end = skip + at;
            break;
        }
    }
    let next = text.get(end + 2..).unwrap_or_default();
    (typed(&text[..end]), next)
}

fn json_length(text: &str) -> usize {
    let mut stream: StreamDeserializer<'_, _, serde::de::IgnoredAny> = Deserializer::from_str(text).into_iter();
    match stream.next() {
        Some(Ok(_)) => stream.byte_offset(),
        _ => 0,
    }
}

fn typed(text: &str) -> Value {
    let list = |text: &str| {
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        let items: Vec<&str> = inner.split(", ").filter(|item| !item.is_empty()).collect();
        Some(json!({ "strings": items }))
    };
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        // Before Android 10 an array prints as its address.
        _ if text.starts_with("[Ljava.lang.String;@") => {
            json!({"opaque": {"class": "[Ljava.lang.String;", "text": text}})
        }
        // JSON that is an array of anything else stays text.
        _ if text.starts_with('[') && !text.contains(['"', '{']) => list(text).unwrap_or_else(|| json!(text)),
        _ => json!(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_key(key: &str) -> bool {
        ["tool_name", "tool_description", "tool_input_schema", "tool_input_required", "success"].contains(&key)
    }

    #[test]
    fn commas_equals_and_braces_inside_values_do_not_split_them() {
        let text = "Result: Bundle[{tool_input_schema={\"a\": {\"description\": \"x, tool_name=fake}]\"}}, \
                    tool_description=One, two=three [4], {5}, success=true, tool_name=a}]\n";
        let bundle = bundle_text(text, &is_key).unwrap();
        assert_eq!(bundle["tool_name"], "a");
        assert_eq!(bundle["tool_description"], "One, two=three [4], {5}");
        assert_eq!(bundle["tool_input_schema"], "{\"a\": {\"description\": \"x, tool_name=fake}]\"}}");
    }

    #[test]
    fn text_without_a_bundle_is_refused() {
        assert!(bundle_text("Result: null", &is_key).is_err());
        assert!(bundle_text("Bundle[{tool_name=a", &is_key).is_err());
        assert!(bundle_text("Bundle[mParcelledData.dataSize=92]", &is_key).is_err());
        assert_eq!(bundle_text("Bundle[EMPTY_PARCEL]", &is_key), Ok(json!({})));
        assert_eq!(bundle_text("Bundle[}]", &is_key).map_err(|_| ()), Err(()));
    }

    #[test]
    fn many_commas_are_read_in_reasonable_time() {
        let text = format!("Bundle[{{tool_description={}, tool_name=a}}]", ", x".repeat(200_000));
        assert_eq!(bundle_text(&text, &is_key).unwrap()["tool_name"], "a");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".*") {
            let _ = bundle_text(&format!("Bundle[{{tool_name={text}}}]"), &is_key);
            let _ = bundle_text(&text, &is_key);
        }
    }
}
