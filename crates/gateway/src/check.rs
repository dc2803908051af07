//! Checks arguments and answers against a JSON Schema, with errors a model can act on.

use serde_json::{Value, json};
use sinew_schema::{Cost, Exhausted, Failure, Invalid, Meter, Rejection, Validator};
use sinew_tool::text::clean_line;
use sinew_tool::{ErrorKind, Schema, ToolError};

/// A compiled schema. Shared by all tools with the same schema.
pub(crate) struct CompiledSchema {
    schema: Schema,
    validator: Validator,
}

/// `Err` where finding out takes more work than the meter allows.
pub(crate) type CheckResult<E> = Result<Result<(), E>, Exhausted>;

impl CompiledSchema {
    /// Compiles what can be read of a schema. The error says that it needs more than `room`, or that checking it would
    /// never end.
    pub(crate) fn new(schema: Schema, room: Cost) -> Result<CompiledSchema, Invalid> {
        let validator = Validator::compile_readable(&schema, room)?;
        Ok(CompiledSchema { schema, validator })
    }

    /// The parts that cannot be read and are not checked, each with the reason.
    pub(crate) fn unread(&self) -> impl Iterator<Item = String> {
        self.validator.unread().iter().map(|part| clean_line(part, 200))
    }

    /// Why strict clients would not take the schema.
    pub(crate) fn fault(&self) -> Option<String> {
        let older = self.validator.is_of_older_draft().then(|| "it is of a draft that it does not name".to_owned());
        self.unread().next().or(older)
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn cost(&self) -> Cost {
        self.validator.cost()
    }

    /// Patterns that are not enforced, with the reason.
    pub(crate) fn unenforced(&self) -> &[String] {
        self.validator.unenforced()
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
        match self.validator.check(value, meter) {
            Ok(()) => Ok(Ok(())),
            Err(Rejection::Failed(failure)) => Ok(Err(explain(&failure))),
            Err(Rejection::Exhausted) => Err(Exhausted),
        }
    }
}

/// Which part of the value is wrong, and what is wrong with it; both may hold text from the device.
fn explain(schema: &Value, tool: &str, failure: &Failure<'_>) -> (String, String) {
    let (path, issue) = failure.explain(schema, &format!("`{tool}`"));
    (clean_line(&path, 100), clean_line(&issue, 500))
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
    fn a_part_that_cannot_be_read_is_not_checked_and_the_others_are() {
        for broken in [
            json!({"type": "str"}),
            json!({"pattern": "["}),
            json!({"minLength": -1}),
            json!({"$ref": "http://127.0.0.1:1/schema.json"}),
        ] {
            let properties = json!({"a": broken, "b": {"type": "integer"}});
            let check = compiled(
                json!({"type": "object", "properties": properties, "required": ["b"], "additionalProperties": false}),
            );
            let unread: Vec<String> = check.unread().collect();
            assert!(unread.len() == 1 && unread[0].starts_with("at `/properties/a`: "), "{unread:?}");
            let fits = |args: Value| check.arguments("x", &args, &mut Meter::new(1_000)).unwrap().is_ok();
            assert!(fits(json!({"a": 1, "b": 1})) && fits(json!({"a": "x", "b": 1})));
            assert!(!fits(json!({"a": 1})) && !fits(json!({"b": "x"})) && !fits(json!({"b": 1, "c": 1})));
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
