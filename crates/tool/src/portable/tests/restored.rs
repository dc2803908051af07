//! Reads a listed schema as a careful model does, with all its text, and holds it against the original.
//!
//! Every sentence is turned back into the rule it states. What fits the schema restored in this way must fit the
//! original; the only way out is text that says that something is left out, and only at the place where it stands.

use jsonschema::paths::Location;
use proptest::prelude::{TestCaseError, prop_assert};
use serde_json::{Map, Value, json};

use super::super::{input, sentences};

/// Checks that whatever fits the listed schema with its text fits the original.
pub(super) fn check_refusals(root: &Value, given: impl Iterator<Item = Value>) -> Result<(), TestCaseError> {
    let Ok(original) = jsonschema::validator_for(root) else { return Ok(()) };
    let portable = input(root);
    let mut listed = portable.schema.clone();
    portable.notes.iter().for_each(|note| sentences::say(&mut listed, note));
    let restored = document(&listed);
    let reader = jsonschema::validator_for(&restored).unwrap_or_else(|error| panic!("{error}: {restored}"));
    for value in given.filter(|value| reader.is_valid(value)) {
        let mut open = Vec::new();
        open_places(&listed, &value, "", &mut open);
        for error in original.iter_errors(&value) {
            let place = error.instance_path().to_string();
            let is_within = |outer: &str, inner: &str| inner == outer || inner.starts_with(&format!("{outer}/"));
            let is_open = open.iter().any(|open| is_within(open, &place))
                || (is_composed(error.schema_path()) && open.iter().any(|open| is_within(&place, open)));
            prop_assert!(is_open, "{error} at {} in {value}: {root} became {listed}", error.schema_path());
        }
    }
    Ok(())
}

fn is_composed(schema_path: &Location) -> bool {
    let keywords = ["anyOf", "oneOf", "allOf", "not", "if", "then", "else", "contains", "$ref", "dependentSchemas"];
    schema_path.as_str().split('/').any(|segment| keywords.contains(&segment))
}

fn text(schema: &Value) -> &str {
    schema.get("description").and_then(Value::as_str).unwrap_or_default()
}

/// Where the text says that it leaves something out.
fn open_places(listed: &Value, value: &Value, place: &str, open: &mut Vec<String>) {
    if text(listed).contains('…') {
        open.push(place.to_owned());
    }
    for (name, schema) in listed.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(member) = value.get(name) {
            open_places(schema, member, &format!("{place}/{name}"), open);
        }
    }
    if let (Some(items), Some(all)) = (listed.get("items"), value.as_array()) {
        all.iter().enumerate().for_each(|(at, item)| open_places(items, item, &format!("{place}/{at}"), open));
    }
    for form in listed.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        open_places(form, value, place, open);
    }
}

/// The whole schema. Where the text says that a part repeats another, it is a reference to that one.
fn document(listed: &Value) -> Value {
    let mut parts = Map::new();
    let mut unread = vec![restored(listed)];
    let root = unread[0].clone();
    while let Some(part) = unread.pop() {
        for path in repeated_paths(&part) {
            if !parts.contains_key(&definition(&path)) {
                let repeated = restored(part_at(listed, &path));
                unread.push(repeated.clone());
                parts.insert(definition(&path), repeated);
            }
        }
    }
    json!({"allOf": [root], "$defs": parts})
}

/// The name of a definition: brackets and spaces do not belong into a reference.
fn definition(path: &str) -> String {
    path.replace("[]", "_items").replace(' ', "_")
}

/// The paths that the references in a restored part name.
fn repeated_paths(restored: &Value) -> Vec<String> {
    match restored {
        Value::Array(all) => all.iter().flat_map(repeated_paths).collect(),
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix("#/$defs/"));
            own.map(|name| name.replace("_items", "[]").replace('_', " "))
                .into_iter()
                .chain(members.values().flat_map(repeated_paths))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The only part of a listed schema that `tree.left[]` can mean.
fn part_at<'a>(listed: &'a Value, path: &str) -> &'a Value {
    let path = path.replace("[]", ".[]");
    path.split('.').filter(|step| !step.is_empty() && *step != "all arguments").fold(listed, |part, step| {
        let forms = part["anyOf"].as_array().map_or_else(|| vec![part], |forms| forms.iter().collect());
        let within = |form: &&'a Value| match step {
            "[]" => form.get("items"),
            name => form.get("properties")?.get(name),
        };
        let meant: Vec<&Value> = forms.iter().filter_map(within).collect();
        assert_eq!(meant.len(), 1, "`{path}` is one part of {listed}");
        meant[0]
    })
}

fn restored(listed: &Value) -> Value {
    let Value::Object(members) = listed else { panic!("{listed} is not a schema") };
    let text = text(listed);
    if text.contains(sentences::ONLY_NULL) {
        return json!({"type": "null"});
    }
    if text.contains(sentences::NEVER) {
        return json!(false);
    }
    let mut schema = Map::new();
    let mut properties = Map::new();
    for (keyword, member) in members {
        let restored = match (keyword.as_str(), member) {
            ("description" | "title" | "default", _) => continue,
            ("properties", Value::Object(all)) => {
                let is_placeholder =
                    |text: &str| text.contains(sentences::ANY_NAME) || text.contains(sentences::UNUSED);
                let real = all.iter().filter(|(_, schema)| !is_placeholder(self::text(schema)));
                properties.extend(real.map(|(name, schema)| (name.clone(), restored(schema))));
                continue;
            }
            ("items", items) => restored(items),
            ("anyOf", Value::Array(forms)) => forms.iter().map(restored).collect(),
            ("type", _) if text.contains(sentences::ANYTHING) => continue,
            (_, other) => other.clone(),
        };
        schema.insert(keyword.clone(), restored);
    }
    let mut rules = Vec::new();
    let mut needed = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = match read_sentence(rest, &mut schema, &mut properties, &mut needed, &mut rules) {
            Some(after) => after,
            None => {
                let mut characters = rest.chars();
                characters.next();
                characters.as_str()
            }
        };
    }
    schema.insert("properties".to_owned(), Value::Object(properties));
    // A rule that is not quoted in full says nothing here; its place is open.
    rules.retain(|rule: &Value| !rule.to_string().contains('…'));
    schema.retain(|_, rule| !rule.to_string().contains('…'));
    needed.iter().for_each(|name| rules.push(json!({"required": [name]})));
    match text.contains(sentences::MAY_BE_NULL) {
        true => rules.push(json!({"anyOf": [schema, {"type": "null"}]})),
        false => rules.push(Value::Object(schema)),
    }
    json!({"allOf": rules})
}

/// Reads one sentence at the start of `text` and adds its rule; what follows it is returned.
fn read_sentence<'a>(
    text: &'a str,
    schema: &mut Map<String, Value>,
    properties: &mut Map<String, Value>,
    needed: &mut Vec<String>,
    rules: &mut Vec<Value>,
) -> Option<&'a str> {
    for (start, keyword) in [
        ("Not: ", "not"),
        ("And: ", "allOf"),
        ("Exactly one of: ", "oneOf"),
        ("At least one of: ", "anyOf"),
        ("A multiple of ", "multipleOf"),
        ("Less than ", "exclusiveMaximum"),
        ("Greater than ", "exclusiveMinimum"),
        ("Names of members: ", "propertyNames"),
        ("Members that need others: ", "dependentSchemas"),
    ] {
        if let Some((rule, after)) = text.strip_prefix(start).and_then(read_json) {
            rules.push(match (keyword, rule) {
                ("allOf", rule) => rule,
                ("dependentSchemas", Value::Object(all)) => {
                    let schema = |needed: Value| if needed.is_array() { json!({"required": needed}) } else { needed };
                    let all: Map<String, Value> =
                        all.into_iter().map(|(name, needed)| (name, schema(needed))).collect();
                    json!({ keyword: all })
                }
                (_, rule) => json!({ keyword: rule }),
            });
            return Some(after);
        }
    }
    if let Some(after) = text.strip_prefix("Repeats the form of ") {
        let (path, after) = after
            .split_once('.')
            .filter(|(path, _)| *path == "all arguments")
            .or_else(|| after.strip_prefix('`').and_then(|after| after.split_once('`')))?;
        rules.push(json!({"$ref": format!("#/$defs/{}", definition(path))}));
        return Some(after);
    }
    // These mean the members that are listed beside them.
    for (start, keyword) in
        [("Members by name pattern: ", "patternProperties"), ("Further members, each: ", "additionalProperties")]
    {
        if let Some((rule, after)) = text.strip_prefix(start).and_then(read_json) {
            match schema.contains_key(keyword) {
                true => rules.push(json!({ keyword: rule })),
                false => _ = schema.insert(keyword.to_owned(), rule),
            }
            return Some(after);
        }
    }
    if let Some(after) = text.strip_prefix("No other members.") {
        schema.insert("additionalProperties".to_owned(), json!(false));
        return Some(after);
    }
    if let Some(after) = text.strip_prefix("No item twice.") {
        rules.push(json!({"uniqueItems": true}));
        return Some(after);
    }
    if let Some(after) = text.strip_prefix("One of: ") {
        let (values, after) = read_list(after)?;
        rules.push(json!({"enum": values}));
        return Some(after);
    }
    if let Some(after) = text.strip_prefix("Pattern: `") {
        let (pattern, after) = after.split_once("`.")?;
        rules.push(json!({"pattern": pattern}));
        return Some(after);
    }
    if let Some(after) = text.strip_prefix("If ") {
        let (condition, after) = read_json(after)?;
        let (then, after) = read_json(after.strip_prefix(" then ")?)?;
        let (other, after) = match after.strip_prefix(" else ") {
            Some(after) => read_json(after)?,
            None => (json!(true), after),
        };
        rules.push(json!({"if": condition, "then": then, "else": other}));
        return Some(after);
    }
    if let Some(after) = text.strip_prefix("The first items, in order: ") {
        let (first, after) = read_json(after)?;
        let (further, after) = match after.strip_prefix(". Further items, each: ") {
            Some(after) => read_json(after)?,
            None => (json!(!after.starts_with(". No further items.")), after),
        };
        rules.push(json!({"prefixItems": first, "items": further}));
        return Some(after);
    }
    if let Some(after) = text.strip_prefix("At most ") {
        let (count, after) = read_json(after)?;
        rules.push(json!({"maxProperties": count}));
        return after.strip_prefix(" members.").or_else(|| after.strip_prefix(" member."));
    }
    if let Some((count, after)) = text.strip_prefix("At least ").and_then(read_json) {
        if let Some(after) = after.strip_prefix(" members.").or_else(|| after.strip_prefix(" member.")) {
            rules.push(json!({"minProperties": count}));
            return Some(after);
        }
        let (item, after) = read_json(after.strip_prefix(" items are: ")?)?;
        rules.push(json!({"contains": item, "minContains": count}));
        return Some(after);
    }
    if let Some(after) = text.strip_prefix("Only these members: ") {
        let (mut rule, after) = read_names(after)?;
        rule["additionalProperties"] = json!(false);
        rules.push(rule);
        return Some(after);
    }
    if let Some(after) = text.strip_prefix("Members other than ") {
        let (mut rule, after) = read_names(after)?;
        let (each, after) = read_json(after.strip_prefix(", each: ")?)?;
        rule["additionalProperties"] = each;
        rules.push(rule);
        return Some(after);
    }
    for (start, keyword) in [("Exactly one of these forms: ", "oneOf"), ("At least one of these forms: ", "anyOf")] {
        if let Some(after) = text.strip_prefix(start) {
            let (forms, after) = read_forms(after)?;
            rules.push(json!({ keyword: forms }));
            return Some(after);
        }
    }
    if let Some(after) = text.strip_prefix("Never with `") {
        let (name, after) = after.split_once("`.")?;
        properties.insert(name.to_owned(), json!(false));
        return Some(after);
    }
    if let Some((name, after)) = text.strip_prefix('`').and_then(|after| after.split_once('`')) {
        if let Some(after) = after.strip_prefix(" is null or left out.") {
            properties.insert(name.to_owned(), json!({"type": "null"}));
            return Some(after);
        }
        if let Some(after) = after.strip_prefix(" must be null.") {
            properties.insert(name.to_owned(), json!({"type": "null"}));
            needed.push(name.to_owned());
            return Some(after);
        }
    }
    None
}

fn read_json(text: &str) -> Option<(Value, &str)> {
    for word in ["true", "false", "null"] {
        if let Some(after) = text.strip_prefix(word) {
            return Some((serde_json::from_str(word).ok()?, after));
        }
    }
    if text.starts_with(['{', '[', '"']) {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let value = values.next()?.ok()?;
        return Some((value, &text[values.byte_offset()..]));
    }
    // The full stop of a sentence is not part of a number.
    let end = text.find(|after: char| !"-0123456789.e".contains(after)).unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    Some((serde_json::from_str(number).ok()?, &text[number.len()..]))
}

fn read_list(text: &str) -> Option<(Vec<Value>, &str)> {
    let (value, mut after) = read_json(text)?;
    let mut all = vec![value];
    while let Some((value, more)) = after.strip_prefix(", ").and_then(read_json) {
        all.push(value);
        after = more;
    }
    Some((all, after))
}

/// Members that may hold anything, by name or by pattern.
fn read_names(text: &str) -> Option<(Value, &str)> {
    let (names, after) = read_quoted(text.strip_prefix("none").unwrap_or(text));
    let patterns = after.strip_prefix(" and ").unwrap_or(after).strip_prefix("names like ");
    let (patterns, after) = patterns.map_or((Map::new(), after), read_quoted);
    Some((json!({"properties": names, "patternProperties": patterns}), after))
}

fn read_quoted(text: &str) -> (Map<String, Value>, &str) {
    let mut names = Map::new();
    let mut after = text;
    while let Some((name, more)) =
        after.strip_prefix(", ").unwrap_or(after).strip_prefix('`').and_then(|text| text.split_once('`'))
    {
        names.insert(name.to_owned(), json!(true));
        after = more;
    }
    (names, after)
}

/// `` `kind` = "x" with `path`, only `kind`, `path`; `url`. ``
fn read_forms(text: &str) -> Option<(Vec<Value>, &str)> {
    let mut forms = Vec::new();
    let mut after = text;
    loop {
        let (mut required, mut properties) = (Vec::new(), Map::new());
        if let Some(more) = after.strip_prefix("nothing needed") {
            after = more;
        }
        while let Some((name, more)) = after.strip_prefix('`').and_then(|text| text.split_once('`')) {
            required.push(name.to_owned());
            after = more;
            if let Some((value, more)) = after.strip_prefix(" = ").and_then(read_json) {
                properties.insert(name.to_owned(), json!({"const": value}));
                after = more;
            }
            after = after.strip_prefix(" with ").unwrap_or(after);
        }
        let mut form = json!({"required": required, "properties": properties});
        if let Some(more) = after.strip_prefix(", only ") {
            let (names, more) = read_quoted(more);
            form = json!({"allOf": [form, {"properties": names, "additionalProperties": false}]});
            after = more;
        }
        forms.push(form);
        match after.strip_prefix("; ") {
            Some(more) => after = more,
            None => return Some((forms, after)),
        }
    }
}
