//! Checks arguments and answers against a JSON Schema, with errors a model can act on.

use serde_json::{Value, json};
use sinew_schema::{Cost, Exhausted, Failure, Invalid, Meter, Rejection, Step, Validator};
use sinew_tool::text::clean_line;
use sinew_tool::{ErrorKind, Schema, ToolError};

/// A compiled schema. Shared by all tools with the same schema.
pub(crate) struct CompiledSchema {
    schema: Schema,
    /// Why the schema does not compile, where it does not; then everything fits.
    validator: Result<Validator, String>,
}

/// `Err` where finding out takes more work than the meter allows.
pub(crate) type CheckResult<E> = Result<Result<(), E>, Exhausted>;

impl CompiledSchema {
    /// Compiles a schema. The error says that it needs more than `room`, or that checking it would never end.
    pub(crate) fn new(schema: Schema, room: Cost) -> Result<CompiledSchema, Invalid> {
        let validator = match Validator::compile(&schema, room) {
            Ok(validator) => Ok(validator),
            Err(wrong @ Invalid::Wrong { .. }) => Err(clean_line(&wrong.to_string(), 200)),
            Err(invalid) => return Err(invalid),
        };
        Ok(CompiledSchema { schema, validator })
    }

    /// Why the schema cannot be used for checking.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.validator.as_ref().err().map(String::as_str)
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn cost(&self) -> Cost {
        self.validator.as_ref().map_or(Cost::default(), Validator::cost)
    }

    /// Patterns that are not enforced, with the reason.
    pub(crate) fn unenforced(&self) -> &[String] {
        self.validator.as_ref().map_or(&[], Validator::unenforced)
    }

    /// Checks the arguments of a call.
    pub(crate) fn arguments(&self, tool: &str, args: &Value, meter: &mut Meter) -> CheckResult<ToolError> {
        self.first_failure(args, meter, |failure| {
            let (parameter, issue) = explain(&self.schema, tool, failure);
            let subject = match parameter.as_str() {
                "" => "the arguments: what was given".to_owned(),
                parameter => format!("argument `{parameter}`"),
            };
            ToolError::new(ErrorKind::InvalidArguments, format!("{subject} {issue}"))
                .with_details(json!({"parameter_name": parameter, "issue": issue}))
        })
    }

    /// Checks an answer; the fault in one sentence.
    pub(crate) fn answer(&self, tool: &str, answer: &Value, meter: &mut Meter) -> CheckResult<String> {
        self.first_failure(answer, meter, |failure| {
            let (path, issue) = explain(&self.schema, tool, failure);
            if path.is_empty() { format!("it {issue}") } else { format!("`{path}` {issue}") }
        })
    }

    fn first_failure<E>(
        &self,
        value: &Value,
        meter: &mut Meter,
        explain: impl FnOnce(&Failure<'_>) -> E,
    ) -> CheckResult<E> {
        let Ok(validator) = &self.validator else { return Ok(Ok(())) };
        match validator.check(value, meter) {
            Ok(()) => Ok(Ok(())),
            Err(Rejection::Failed(failure)) => Ok(Err(explain(&failure))),
            Err(Rejection::Exhausted) => Err(Exhausted),
        }
    }
}

/// Which part of the value is wrong, and what is wrong with it.
fn explain(schema: &Value, tool: &str, failure: &Failure<'_>) -> (String, String) {
    let path = shown_path(&failure.path);
    let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    // The schema that holds the keyword says all that is expected.
    let node = schema.pointer(&failure.schema);
    let member = failure.member.as_deref().unwrap_or_default();
    let (path, issue) = match failure.keyword {
        "required" => {
            let wanted = node.and_then(|node| node.get("properties")?.get(member)).map(expectation);
            let wanted = wanted.map_or(String::new(), |wanted| format!(": it must be {wanted}"));
            (join(member), format!("is missing{wanted}"))
        }
        "additionalProperties" | "unevaluatedProperties" => {
            let known = node.and_then(|node| node.get("properties")).and_then(Value::as_object);
            let known: Vec<String> =
                known.into_iter().flat_map(|known| known.keys()).take(20).map(|name| format!("`{name}`")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            (join(member), format!("is not known; `{tool}` takes {known}"))
        }
        "propertyNames" => (join(member), "has a name that is not allowed".to_owned()),
        keyword => {
            let wanted = node.map(expectation).filter(|_| EXPECTED.contains(&keyword));
            let issue = match wanted {
                Some(wanted) => format!("must be {wanted}, got {}", describe(failure.value)),
                None => unfulfilled(keyword, node),
            };
            (path, issue)
        }
    };
    (clean_line(&path, 100), clean_line(&issue, 500))
}

/// The keywords that [`expectation`] describes.
const EXPECTED: &[&str] = &[
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
];

/// What is wrong where another keyword is not fulfilled.
fn unfulfilled(keyword: &str, node: Option<&Value>) -> String {
    let limit = node.and_then(|node| node.get(keyword)).map(Value::to_string).unwrap_or_default();
    match keyword {
        "anyOf" => "fits none of the forms that are allowed (`anyOf`)".to_owned(),
        "oneOf" => "does not fit exactly one of the forms that are allowed (`oneOf`)".to_owned(),
        "not" => "has a form that is excluded (`not`)".to_owned(),
        "multipleOf" => format!("must be a multiple of {limit}"),
        "minProperties" => format!("must have at least {limit} members"),
        "maxProperties" => format!("must have at most {limit} members"),
        "uniqueItems" => "has the same item twice".to_owned(),
        "contains" => "does not contain the items that are expected (`contains`)".to_owned(),
        "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" => "has too many items".to_owned(),
        _ => "is not allowed".to_owned(),
    }
}

/// `a[0].b`
fn shown_path(steps: &[Step<'_>]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Item(place) => path.push_str(&format!("[{place}]")),
            Step::Member(name) => {
                path.push_str(if path.is_empty() { "" } else { "." });
                path.push_str(name);
            }
        }
    }
    path
}

/// What a schema expects: `an integer from 0 to 100`.
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

/// What was given: `the string "x"`.
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
    use std::sync::Arc;

    use super::*;
    use crate::prepare::SCHEMA_BUDGET;

    fn compiled(schema: Value) -> CompiledSchema {
        CompiledSchema::new(Arc::new(schema), SCHEMA_BUDGET).unwrap()
    }

    fn check(schema: Value, args: Value) -> Result<(), ToolError> {
        let check = compiled(schema);
        assert_eq!(check.fault(), None);
        check.arguments("the_tool", &args, &mut Meter::new(10_000)).unwrap()
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
    fn what_no_expectation_says_has_a_sentence_of_its_own() {
        let one = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
        for (schema, given, issue) in [
            (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), json!(1), "fits none of the forms"),
            (json!({"oneOf": [true, true]}), json!(1), "does not fit exactly one"),
            (json!({"not": {}}), json!(1), "has a form that is excluded"),
            (json!({"multipleOf": 5}), json!(7), "must be a multiple of 5"),
            (json!({"minProperties": 1}), json!({}), "must have at least 1 members"),
            (json!({"uniqueItems": true}), json!([1, 1]), "has the same item twice"),
            (json!({"prefixItems": [true], "items": false}), json!([1, 2]), "has too many items"),
            (json!(false), json!(1), "is not allowed"),
        ] {
            let message = check(one(schema), json!({"a": given})).unwrap_err().message;
            assert!(message.starts_with(&format!("argument `a` {issue}")), "{message}");
        }
        says(
            one(json!({"propertyNames": {"maxLength": 1}})),
            json!({"a": {"bb": 1}}),
            "argument `a.bb` has a name that is not allowed",
        );
    }

    #[test]
    fn a_schema_that_does_not_compile_lets_everything_through() {
        for broken in
            [json!({"properties": {"a": {"type": "loud"}}}), json!({"$ref": "http://127.0.0.1:1/schema.json"})]
        {
            let check = compiled(broken);
            assert!(check.fault().is_some());
            assert_eq!(check.arguments("x", &json!({"a": 1}), &mut Meter::new(0)), Ok(Ok(())));
        }
    }

    #[test]
    fn an_answer_that_does_not_fit_is_explained() {
        let check = compiled(json!({"properties": {"a": {"items": {"type": "integer"}}}, "required": ["a"]}));
        let answer = |answer: Value| check.answer("x", &answer, &mut Meter::new(1_000)).unwrap().unwrap_err();
        assert_eq!(answer(json!({"a": ["b"]})), "`a[0]` must be an integer, got the string \"b\"");
        assert_eq!(answer(json!({})), "`a` is missing: it must be a value");
    }

    #[test]
    fn work_that_is_not_worth_it_is_given_up() {
        let check = compiled(json!({"properties": {"a": {"pattern": "^(a+)+(?=b)$"}}}));
        let mut meter = Meter::new(10_000);
        assert_eq!(check.arguments("x", &json!({"a": "a".repeat(20_000)}), &mut meter), Err(Exhausted));
    }
}
