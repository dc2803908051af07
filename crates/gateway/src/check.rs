//! Arguments and answers against a JSON Schema, with errors a model can act on.

use std::sync::Arc;

use jsonschema::error::{ValidationError, ValidationErrorKind};
use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, json};
use sinew_tool::{ErrorKind, Schema, ToolError};

use crate::schema::nameless;
use crate::text::clean_line;

/// A schema, ready to judge. Shared by all tools with the same schema.
pub(crate) struct Check {
    schema: Schema,
    /// Why the schema does not compile, where it does not; then everything fits.
    validator: Result<Validator, String>,
}

impl Check {
    pub(crate) fn new(schema: Schema) -> Check {
        // A pattern of a device must not cost more than it is worth: few steps back, small automata.
        let patterns =
            PatternOptions::fancy_regex().backtrack_limit(10_000).size_limit(1 << 20).dfa_size_limit(1 << 20);
        let options = jsonschema::options().offline().with_pattern_options(patterns);
        let validator = options.build(&nameless(&schema)).map_err(|error| clean_line(&error.to_string(), 200));
        Check { schema, validator }
    }

    /// Why the schema cannot judge anything.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.validator.as_ref().err().map(String::as_str)
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Judges the arguments of a call.
    pub(crate) fn arguments(&self, tool: &str, args: &Value) -> Result<(), ToolError> {
        match self.first_error(args) {
            None => Ok(()),
            Some(error) => Err(explain(&self.schema, tool, &error)),
        }
    }

    /// Judges an answer; the fault in one sentence.
    pub(crate) fn answer(&self, answer: &Value) -> Result<(), String> {
        match self.first_error(answer) {
            None => Ok(()),
            Some(error) => Err(clean_line(&error.to_string(), 200)),
        }
    }

    fn first_error<'i>(&self, value: &'i Value) -> Option<ValidationError<'i>> {
        self.validator.as_ref().ok()?.validate(value).err()
    }
}

/// What is wrong with an argument, in the caller's words.
fn explain(schema: &Arc<Value>, tool: &str, error: &ValidationError<'_>) -> ToolError {
    let path = argument_path(&error.instance_path().to_string());
    let place = error.schema_path().to_string();
    // The error points at a keyword; the schema that holds it tells the whole expectation.
    let node = place.rsplit_once('/').and_then(|(parent, _)| schema.pointer(parent));
    let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let (parameter, issue) = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let wanted = node.and_then(|node| node.get("properties")?.get(name)).map(expectation);
            let wanted = wanted.map_or(String::new(), |wanted| format!(": it must be {wanted}"));
            (join(name), format!("is missing{wanted}"))
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let name = unexpected.first().map_or("", String::as_str);
            let known = node.and_then(|node| node.get("properties")).and_then(Value::as_object);
            let known: Vec<String> =
                known.into_iter().flat_map(|known| known.keys()).take(20).map(|name| format!("`{name}`")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            (join(name), format!("is not known; `{tool}` takes {known}"))
        }
        kind => {
            let wanted = node.map(expectation).filter(|_| speaks_for_itself(kind));
            let issue = match wanted {
                Some(wanted) => format!("must be {wanted}, got {}", describe(error.instance())),
                None => format!("is not valid: {}", clean_line(&error.to_string(), 200)),
            };
            (path.clone(), issue)
        }
    };
    let parameter = clean_line(&parameter, 100);
    let issue = clean_line(&issue, 500);
    let subject = if parameter.is_empty() {
        "the arguments: what was given".to_owned()
    } else {
        format!("argument `{parameter}`")
    };
    ToolError::new(ErrorKind::InvalidArguments, format!("{subject} {issue}"))
        .with_details(json!({"parameter_name": parameter, "issue": issue}))
}

/// Whether type, range, enum and the like explain this failure.
fn speaks_for_itself(kind: &ValidationErrorKind) -> bool {
    use ValidationErrorKind as Kind;
    matches!(
        kind,
        Kind::Type { .. }
            | Kind::Enum { .. }
            | Kind::Constant { .. }
            | Kind::Minimum { .. }
            | Kind::Maximum { .. }
            | Kind::ExclusiveMinimum { .. }
            | Kind::ExclusiveMaximum { .. }
            | Kind::MinLength { .. }
            | Kind::MaxLength { .. }
            | Kind::Pattern { .. }
            | Kind::MinItems { .. }
            | Kind::MaxItems { .. }
    )
}

/// `/a/0/b` as `a[0].b`.
fn argument_path(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !path.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{part}]"));
        } else {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(&part);
        }
    }
    path
}

/// What a schema wants, in words: `an integer from 0 to 100`.
fn expectation(schema: &Value) -> String {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let shown: Vec<String> = choices.iter().take(20).map(Value::to_string).collect();
        let more = if choices.len() > 20 { ", …" } else { "" };
        return format!("one of {}{more}", shown.join(", "));
    }
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let words: Vec<&str> = kinds.into_iter().map(article).collect();
    let kind = if words.is_empty() { "a value".to_owned() } else { words.join(" or ") };
    format!("{kind}{}{}", range(schema), shape(schema))
}

fn article(kind: &str) -> &str {
    match kind {
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a string",
        "boolean" => "true or false",
        "array" => "an array",
        "object" => "an object",
        other => other,
    }
}

fn range(schema: &Value) -> String {
    let bound = |key: &str| schema.get(key).filter(|bound| bound.is_number());
    match (bound("minimum"), bound("maximum"), bound("exclusiveMinimum"), bound("exclusiveMaximum")) {
        (Some(low), Some(high), _, _) => format!(" from {low} to {high}"),
        (Some(low), None, _, None) => format!(" of at least {low}"),
        (None, Some(high), None, _) => format!(" of at most {high}"),
        (low, high, above, below) => {
            let bounds = [("at least", low), ("at most", high), ("above", above), ("below", below)];
            let bounds: Vec<String> =
                bounds.into_iter().filter_map(|(word, bound)| Some(format!("{word} {}", bound?))).collect();
            if bounds.is_empty() { String::new() } else { format!(" {}", bounds.join(" and ")) }
        }
    }
}

fn shape(schema: &Value) -> String {
    let count = |key: &str| schema.get(key).and_then(Value::as_u64);
    let span = |low: Option<u64>, high: Option<u64>, what: &str| match (low, high) {
        (Some(low), Some(high)) => format!(" of {low} to {high} {what}"),
        (Some(low), None) => format!(" of at least {low} {what}"),
        (None, Some(high)) => format!(" of at most {high} {what}"),
        (None, None) => String::new(),
    };
    let mut shape = span(count("minLength"), count("maxLength"), "characters");
    shape.push_str(&span(count("minItems"), count("maxItems"), "items"));
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        shape.push_str(&format!(" matching `{pattern}`"));
    }
    shape
}

/// What came, in words.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the string \"{}\"", clean_line(text, 40)),
        Value::Array(items) if items.len() == 1 => "an array of 1 item".to_owned(),
        Value::Array(items) => format!("an array of {} items", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, args: Value) -> Result<(), ToolError> {
        let check = Check::new(Arc::new(schema));
        assert_eq!(check.fault(), None);
        check.arguments("the_tool", &args)
    }

    fn says(schema: Value, args: Value, expected: &str) {
        assert_eq!(check(schema, args).map_err(|error| error.message), Err(expected.to_owned()));
    }

    fn volume() -> Value {
        json!({
            "type": "object",
            "properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}},
            "required": ["volume"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn an_error_names_the_argument_the_expectation_and_what_came() {
        assert_eq!(check(volume(), json!({"volume": 50})), Ok(()));
        assert_eq!(check(volume(), json!({"volume": 50.0})), Ok(()));
        let wanted = "argument `volume` must be an integer from 0 to 100, got";
        says(volume(), json!({"volume": "loud"}), &format!("{wanted} the string \"loud\""));
        says(volume(), json!({"volume": 101}), &format!("{wanted} 101"));
        says(volume(), json!({"volume": 1.5}), &format!("{wanted} 1.5"));
        says(volume(), json!({"volume": null}), &format!("{wanted} null"));
        says(volume(), json!({"volume": [1]}), &format!("{wanted} an array of 1 item"));
    }

    #[test]
    fn missing_and_unknown_arguments_are_named() {
        says(volume(), json!({}), "argument `volume` is missing: it must be an integer from 0 to 100");
        says(volume(), json!({"volume": 1, "vol": 2}), "argument `vol` is not known; `the_tool` takes `volume`");
    }

    #[test]
    fn details_are_for_programs() {
        let error = check(volume(), json!({"volume": true})).unwrap_err();
        let issue = "must be an integer from 0 to 100, got true";
        assert_eq!(error.details, json!({"parameter_name": "volume", "issue": issue}));
        assert_eq!(error.kind, ErrorKind::InvalidArguments);
    }

    #[test]
    fn expectations_are_whole_sentences() {
        let one = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
        says(
            one(json!({"enum": ["dark", "light"]})),
            json!({"a": 1}),
            "argument `a` must be one of \"dark\", \"light\", got 1",
        );
        says(
            one(json!({"type": ["string", "null"]})),
            json!({"a": {}}),
            "argument `a` must be a string or null, got an object",
        );
        says(
            one(json!({"type": "string", "minLength": 2, "pattern": "^x"})),
            json!({"a": "y"}),
            "argument `a` must be a string of at least 2 characters matching `^x`, got the string \"y\"",
        );
        says(
            one(json!({"type": "number", "exclusiveMinimum": 0})),
            json!({"a": 0}),
            "argument `a` must be a number above 0, got 0",
        );
        says(
            one(json!({"type": "array", "maxItems": 1})),
            json!({"a": [1, 2]}),
            "argument `a` must be an array of at most 1 items, got an array of 2 items",
        );
        says(
            one(json!({"type": "array", "items": {"type": "object", "properties": {"b": {"type": "boolean"}}}})),
            json!({"a": [{"b": 1}]}),
            "argument `a[0].b` must be true or false, got 1",
        );
        says(one(json!({"const": 3})), json!({"a": 4}), "argument `a` must be 3, got 4");
    }

    #[test]
    fn expectations_behind_a_local_reference_are_found() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/level"}},
            "$defs": {"level": {"type": "integer", "maximum": 9}},
        });
        says(schema, json!({"a": 10}), "argument `a` must be an integer of at most 9, got 10");
    }

    #[test]
    fn a_schema_that_does_not_compile_lets_everything_through() {
        let check = Check::new(Arc::new(json!({"type": "object", "properties": {"a": {"type": "loud"}}})));
        assert!(check.fault().is_some());
        assert_eq!(check.arguments("x", &json!({"a": 1})), Ok(()));
    }

    #[test]
    fn a_remote_reference_is_not_fetched() {
        let check = Check::new(Arc::new(json!({"$ref": "http://127.0.0.1:1/schema.json"})));
        assert!(check.fault().is_some());
    }

    #[test]
    fn a_pattern_built_to_run_for_ever_is_cut_short() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+(?=b)$"}}});
        let check = Check::new(Arc::new(schema));
        assert!(check.arguments("x", &json!({"a": "a".repeat(2000)})).is_err());
    }
}
