//! What is wrong with a value, in words that a model can act on.

use serde_json::Value;

use crate::evaluate::{Failure, Step};

impl Failure<'_> {
    /// Which part of the value is wrong (`a[0].b`, empty for the whole), and what is wrong with it. `schema` is the
    /// one that was compiled, `taker` what takes the value. The texts hold parts of schema and value as they are.
    pub fn explain(&self, schema: &Value, taker: &str) -> (String, String) {
        explain(schema, taker, self)
    }
}

fn explain(schema: &Value, taker: &str, failure: &Failure<'_>) -> (String, String) {
    let path = shown_path(&failure.path);
    let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    // The schema that holds the keyword says all that is expected.
    let node = schema.pointer(&failure.schema);
    let member = failure.member.as_deref().unwrap_or_default();
    match failure.keyword {
        "required" => {
            let wanted = node.and_then(|node| node.get("properties")?.get(member)).map(expectation);
            let wanted = wanted.map_or(String::new(), |wanted| format!(": it must be {wanted}"));
            (join(member), format!("is missing{wanted}"))
        }
        "additionalProperties" | "unevaluatedProperties" => {
            let known = node.map_or_else(KnownMembers::default, |node| match failure.keyword {
                "unevaluatedProperties" => KnownMembers::of_all_parts(schema, node),
                _ => KnownMembers::of(node),
            });
            (join(member), format!("is not known; {taker} takes {}", known.shown()))
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
    }
}

/// The members that a schema describes.
#[derive(Default)]
struct KnownMembers<'a> {
    names: Vec<&'a str>,
    patterns: Vec<&'a str>,
}

/// Names that are shown.
const MOST_NAMES: usize = 20;
/// Parts of a schema that are searched for names.
const MOST_PARTS: usize = 100;

impl<'a> KnownMembers<'a> {
    fn of(node: &'a Value) -> KnownMembers<'a> {
        let mut known = KnownMembers::default();
        known.add(node);
        known
    }

    /// Also what the parts describe that a schema is made of.
    fn of_all_parts(schema: &'a Value, node: &'a Value) -> KnownMembers<'a> {
        let mut known = KnownMembers::default();
        let mut open = vec![node];
        let mut seen: Vec<*const Value> = Vec::new();
        while let Some(part) = open.pop().filter(|_| seen.len() < MOST_PARTS) {
            if seen.contains(&std::ptr::from_ref(part)) {
                continue;
            }
            seen.push(part);
            known.add(part);
            for (keyword, member) in part.as_object().into_iter().flatten() {
                match (keyword.as_str(), member) {
                    ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => open.extend(parts.iter().rev()),
                    ("if" | "then" | "else", part) => open.push(part),
                    ("dependentSchemas", Value::Object(parts)) => open.extend(parts.values()),
                    ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                        open.extend(target.strip_prefix('#').and_then(|pointer| schema.pointer(pointer)));
                    }
                    _ => {}
                }
            }
        }
        known
    }

    fn add(&mut self, node: &'a Value) {
        let keys = |keyword: &str| node.get(keyword).and_then(Value::as_object).into_iter().flat_map(|all| all.keys());
        for (known, keyword) in [(&mut self.names, "properties"), (&mut self.patterns, "patternProperties")] {
            for key in keys(keyword).take(MOST_NAMES) {
                if known.len() < MOST_NAMES && !known.contains(&key.as_str()) {
                    known.push(key);
                }
            }
        }
    }

    fn shown(&self) -> String {
        let list = |all: &[&str]| all.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
        match (self.names.is_empty(), self.patterns.is_empty()) {
            (true, true) => "none".to_owned(),
            (false, true) => list(&self.names),
            (true, false) => format!("names that match {}", list(&self.patterns)),
            (false, false) => format!("{} and names that match {}", list(&self.names), list(&self.patterns)),
        }
    }
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
        Value::String(text) => format!("the string \"{}\"", shortened(text)),
        Value::Array(items) if items.len() == 1 => "an array of 1 item".to_owned(),
        Value::Array(items) => format!("an array of {} items", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
