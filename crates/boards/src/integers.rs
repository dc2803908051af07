//! Integers that firmware cannot hold: it has 32 bits, and saturates anything beyond.

use sinew_tool::{Args, ErrorKind, Tool, ToolError, Value, json};

/// The error for a call with an integer that the board would silently change. A tool that declares a range is trusted.
pub(crate) fn find_too_wide(args: &Args, tool: Option<&Tool>) -> Option<ToolError> {
    let properties = tool?.input_schema.get("properties")?;
    let is_too_wide = |(name, value): &(&String, &Value)| {
        let fits = |number: f64| (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
        let Some(schema) = properties.get(name.as_str()).filter(|schema| schema["type"] == "integer") else {
            return false;
        };
        let is_declared = schema["minimum"].is_number() && schema["maximum"].is_number();
        !is_declared && value.as_f64().is_some_and(|number| !fits(number))
    };
    let (name, value) = args.iter().find(is_too_wide)?;
    let issue = format!("is {value}; the board keeps 32 bits, from {} to {}", i32::MIN, i32::MAX);
    let error = ToolError::new(ErrorKind::InvalidArguments, format!("`{name}` {issue}"));
    Some(error.with_details(json!({"parameter_name": name, "issue": issue})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_integers_beyond_32_bits_without_a_declared_range_are_refused() {
        let properties = json!({
            "plain": {"type": "integer"},
            "wide": {"type": "integer", "minimum": 0, "maximum": 1_u64 << 40},
            "text": {"type": "string"},
        });
        let tool = Tool::new("t", "", json!({"type": "object", "properties": properties}));
        let refused = |name: &str, value: Value| {
            let args: Args = [(name.to_owned(), value)].into_iter().collect();
            find_too_wide(&args, Some(&tool)).map(|error| error.kind)
        };
        for fine in [json!(0), json!(i32::MIN), json!(i32::MAX), json!(7.0), json!("3000000000"), json!(null)] {
            assert_eq!(refused("plain", fine.clone()), None, "{fine}");
        }
        for wide in [json!(1_i64 << 31), json!(-(1_i64 << 31) - 1), json!(u64::MAX), json!(3e9)] {
            assert_eq!(refused("plain", wide.clone()), Some(ErrorKind::InvalidArguments), "{wide}");
            assert_eq!(refused("text", wide.clone()), None);
            assert_eq!(refused("unknown", wide), None);
        }
        assert_eq!(refused("wide", json!(1_u64 << 33)), None);
    }
}
