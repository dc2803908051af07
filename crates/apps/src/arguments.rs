//! Arguments in the form that provider tools take: a map of strings.

use serde_json::{Map, Value};
use sinew_tool::Args;

/// Strings unchanged, whole numbers without a fraction, arrays and objects as JSON. A null is left out, because
/// a map of strings has no other way to express it.
pub(crate) fn to_texts(args: &Args) -> Map<String, Value> {
    args.iter().filter_map(|(name, value)| Some((name.clone(), Value::String(text(value)?)))).collect()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(match number.as_f64() {
            // Up to 2^53 every whole number is exact.
            Some(real) if number.is_f64() && real.fract() == 0.0 && real.abs() <= 9_007_199_254_740_992.0 => {
                (real as i64).to_string()
            }
            _ => number.to_string(),
        }),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Some(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_value_has_its_text() {
        let args = json!({
            "plain": "a \"b\"\nc \\ é", "empty": "", "whole": 3, "round": 3.0, "large": 1e15, "negative": -0.0,
            "part": 2.5, "huge": 1e300, "big": 18446744073709551615u64, "yes": true, "no": false, "nothing": null,
            "list": ["a", 1, null], "object": {"x": {"y": "z"}},
        });
        let texts = Value::Object(to_texts(args.as_object().unwrap()));
        assert_eq!(
            texts,
            json!({
                "plain": "a \"b\"\nc \\ é", "empty": "", "whole": "3", "round": "3", "large": "1000000000000000",
                "negative": "0", "part": "2.5", "huge": "1e+300", "big": "18446744073709551615", "yes": "true",
                "no": "false", "list": "[\"a\",1,null]", "object": "{\"x\":{\"y\":\"z\"}}",
            })
        );
    }
}
