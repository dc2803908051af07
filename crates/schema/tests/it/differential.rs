//! The same verdict as a validator that others wrote, on schemas and values made at random.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{compile, fits};

const NAMES: &[&str] = &["a", "b", "ab", "c"];
const PATTERNS: &[&str] = &[
    "^a",
    "b$",
    "^(a|b)*$",
    "[^a]",
    "a{2}",
    r"^\w+$",
    "^$",
    r"\d",
    "(?=b)",
    "^(?!a)",
    r"^\p{L}{1,2}$",
    "a.?b",
    "^[a-c]+$",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..6).prop_map(Value::from),
        proptest::sample::select(vec![0.5, 1.0, 1.5, -2.0, 1e300]).prop_map(Value::from),
        proptest::sample::select(vec!["", "a", "ab", "aab", "ba", "1", "ä", "abc"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let member = (proptest::sample::select(NAMES), inner.clone());
        prop_oneof![
            proptest::collection::vec(inner, 0..4).prop_map(Value::Array),
            proptest::collection::vec(member, 0..4)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

fn names() -> impl Strategy<Value = Value> {
    proptest::sample::subsequence(NAMES, 0..3).prop_map(|names| json!(names))
}

fn one_keyword(inner: BoxedStrategy<Value>) -> BoxedStrategy<(String, Value)> {
    let types = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let count = || (0u64..4).prop_map(Value::from);
    let limit = || proptest::sample::select(vec![json!(-1), json!(0), json!(1), json!(1.5), json!(3)]);
    let by_name = |names: &'static [&'static str], inner: &BoxedStrategy<Value>| {
        let member = (proptest::sample::select(names), inner.clone());
        proptest::collection::vec(member, 0..4).prop_map(|members| {
            members.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect::<Map<_, _>>().into()
        })
    };
    let list = proptest::collection::vec(inner.clone(), 1..4).prop_map(Value::Array);
    let named = |words: &'static [&'static str], value: BoxedStrategy<Value>| {
        (proptest::sample::select(words), value).prop_map(|(word, value)| (word.to_owned(), value)).boxed()
    };
    prop_oneof![
        3 => named(&["type"], proptest::sample::select(types.to_vec()).prop_map(Value::from).boxed()),
        1 => named(&["type"], proptest::sample::subsequence(types.to_vec(), 1..3).prop_map(|types| json!(types)).boxed()),
        1 => named(&["const"], value().boxed()),
        1 => named(&["enum"], proptest::collection::vec(value(), 1..4).prop_map(Value::Array).boxed()),
        2 => named(&["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"], count().boxed()),
        1 => named(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], limit().boxed()),
        1 => named(&["multipleOf"], proptest::sample::select(vec![json!(1), json!(2), json!(0.5)]).boxed()),
        1 => named(&["pattern"], proptest::sample::select(PATTERNS).prop_map(Value::from).boxed()),
        1 => named(&["uniqueItems"], any::<bool>().prop_map(Value::from).boxed()),
        1 => named(&["required"], names().boxed()),
        3 => named(&["properties", "dependentSchemas"], by_name(NAMES, &inner).boxed()),
        1 => named(&["patternProperties"], by_name(PATTERNS, &inner).boxed()),
        4 => named(&["items", "contains", "propertyNames", "additionalProperties", "not", "if", "then", "else", "unevaluatedProperties", "unevaluatedItems"], inner),
        3 => named(&["allOf", "anyOf", "oneOf", "prefixItems"], list.boxed()),
        1 => named(&["dependentRequired"], (proptest::sample::select(NAMES), names()).prop_map(|(name, names)| json!({ name: names })).boxed()),
        1 => named(&["$ref"], proptest::sample::select(vec![json!("#/$defs/a"), json!("#/$defs/b")]).boxed()),
    ]
    .boxed()
}

fn schema(depth: u32) -> BoxedStrategy<Value> {
    let leaf = any::<bool>().prop_map(Value::from).boxed();
    let inner = if depth == 0 { leaf.clone() } else { schema(depth - 1) };
    let object = proptest::collection::vec(one_keyword(inner), 0..5)
        .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into());
    prop_oneof![1 => leaf, 8 => object].boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn both_validators_agree(
        root in schema(3), a in schema(1), b in schema(1), values in proptest::collection::vec(value(), 1..12),
    ) {
        let mut root = if root.is_object() { root } else { json!({"allOf": [root]}) };
        root["$defs"] = json!({"a": a, "b": b});
        // References among them may form circles, which only one of the two refuses.
        if compile(&root).is_err() {
            return Ok(());
        }
        let theirs = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).offline().build(&root);
        let Ok(theirs) = theirs else { return Ok(()) };
        for value in values {
            prop_assert_eq!(fits(&root, &value), theirs.is_valid(&value), "{} against {}", value, root);
        }
    }

    #[test]
    fn both_engines_agree_on_patterns(pattern in "(\\^)?([ab.]|\\[\\^?a-b\\]|\\\\w|\\(a\\|b\\)|\\(\\?=b\\)|\\(\\?!a\\)|\\(\\?<=a\\)|\\\\b){0,5}([*+?]|\\{1,2\\})?[ab]?\\$?", texts in proptest::collection::vec("[abc _]{0,6}", 1..10)) {
        let schema = json!({"pattern": pattern});
        let Ok(theirs) = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).offline().build(&schema) else { return Ok(()) };
        if compile(&schema).is_err() {
            return Ok(());
        }
        for text in texts {
            prop_assert_eq!(fits(&schema, &json!(text)), theirs.is_valid(&json!(text)), "/{}/ against {:?}", pattern, text);
        }
    }
}
