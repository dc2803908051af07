//! Schemas that devices wrote, made fit for clients: an object at the root, bounded, and without
//! anything that makes a client fetch a page or drop the tool.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use sinew_tool::header_arguments::{self, HEADER};
use sinew_tool::portable::ELSEWHERE;
use sinew_tool::references;
use sinew_tool::text::{clean_json, clean_line};

use crate::bounds;

const ANCHOR: &str = "$anchor";

/// An input schema, without the argument that selects a device.
#[derive(Debug, PartialEq)]
pub(crate) struct InputSchema {
    /// What clients get.
    pub listed: Value,
    /// Whether arguments can be checked with it.
    pub is_checked: bool,
    /// What a caller is told about arguments that are not listed, or not checked.
    pub notice: Option<String>,
}

/// What a caller is told about a tool whose arguments are not listed; at most 324 characters.
pub(crate) fn unlisted_notice(reason: &str) -> String {
    format!(
        "Its arguments are not listed and not checked, because its input schema {reason}. The author of the device can \
         shorten the schema, or split the tool."
    )
}

/// What a caller is told about a schema that cannot be read as a whole; at most 324 characters.
pub(crate) fn unread_notice(parts: &[String]) -> String {
    format!("Parts of its input schema cannot be read and are not checked: {}.", clean_line(&parts.join("; "), 250))
}

fn unchecked_notice(reason: &str) -> String {
    format!("Its arguments are not checked, because its input schema {reason}.")
}

/// What had to be fixed is pushed to `warnings`.
pub(crate) fn input(schema: &Value, warnings: &mut Vec<String>) -> InputSchema {
    let any_object = |unlisted: Option<&str>| InputSchema {
        listed: json!({"type": "object"}),
        is_checked: true,
        notice: unlisted.map(unlisted_notice),
    };
    let notice = match (bounds::size(schema), bounds::listed_size(schema)) {
        (Ok(_), _) => None,
        (Err(reason), listed) => {
            if let Err(reason) = listed {
                warnings.push(format!("its input schema {reason}; its arguments are not listed and not checked"));
                return any_object(Some(&reason));
            }
            warnings.push(format!("its input schema {reason}; its arguments are not checked"));
            Some(unchecked_notice(&reason))
        }
    };
    let mut listed = fix(schema, warnings);
    let Value::Object(root) = &mut listed else { return any_object(None) };
    if !root.contains_key("type") {
        root.insert("type".to_owned(), json!("object"));
    }
    if !is_of_objects(root.get("type")) {
        let reason = "is not that of an object";
        warnings.push(format!("its input schema {reason}; its arguments are not listed and not checked"));
        return any_object(Some(reason));
    }
    if root.get("properties").is_some_and(|properties| !properties.is_object()) {
        warnings.push("`properties` in its input schema is not an object and was left out".to_owned());
        root.shift_remove("properties");
    }
    InputSchema { listed, is_checked: notice.is_none(), notice }
}

/// Whether a schema with this `type` accepts objects.
fn is_of_objects(kinds: Option<&Value>) -> bool {
    match kinds {
        Some(Value::Array(kinds)) => kinds.contains(&json!("object")),
        kind => kind.and_then(Value::as_str) == Some("object"),
    }
}

/// The output schema as clients get it; `None` where strict clients could not use it.
pub(crate) fn output(schema: &Value, warnings: &mut Vec<String>) -> Option<Value> {
    if !is_of_objects(schema.get("type")) {
        warnings.push("its output schema is not that of an object and was left out".to_owned());
        return None;
    }
    if let Err(reason) = bounds::size(schema) {
        warnings.push(format!("its output schema {reason} and was left out"));
        return None;
    }
    let mut fixed = fix(schema, warnings);
    // It is for arguments.
    fixed.as_object_mut().into_iter().for_each(header_arguments::remove);
    Some(fixed)
}

/// The argument that selects the device: `device`, or another word where the tool has its own.
pub(crate) fn selector(input: &Value) -> String {
    let own = argument_names(input);
    let is_free = |word: &String| !own.contains(word.as_str());
    let words = ["device", "on_device"].into_iter().map(str::to_owned);
    let numbered = (2..).map(|number| format!("on_device_{number}"));
    words.chain(numbered).find(is_free).unwrap_or_default()
}

/// The arguments that a schema names, wherever it does: a tool may have its `device` in one of several forms only.
fn argument_names(root: &Value) -> HashSet<&str> {
    let mut names = HashSet::new();
    let mut seen = HashSet::new();
    let mut unread = vec![root];
    while let Some(schema) = unread.pop() {
        let Value::Object(members) = schema else { continue };
        if !seen.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        for (keyword, member) in members {
            match (keyword.as_str(), member) {
                ("properties", Value::Object(all)) => names.extend(all.keys().map(String::as_str)),
                ("required", Value::Array(all)) => names.extend(all.iter().filter_map(Value::as_str)),
                ("dependentRequired" | "dependentSchemas" | "dependencies", Value::Object(all)) => {
                    names.extend(all.keys().map(String::as_str));
                    names.extend(all.values().filter_map(Value::as_array).flatten().filter_map(Value::as_str));
                    unread.extend(all.values());
                }
                ("propertyNames", Value::Object(rule)) => {
                    let listed = rule.get("enum").and_then(Value::as_array).into_iter().flatten();
                    names.extend(listed.chain(rule.get("const")).filter_map(Value::as_str));
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => unread.extend(parts),
                ("if" | "then" | "else" | "not", part) => unread.push(part),
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                    unread.extend(target.strip_prefix('#').and_then(|pointer| root.pointer(pointer)));
                }
                _ => {}
            }
        }
    }
    names
}

/// The input schema with the selecting argument. It lists no devices, so that fifty boards cost no
/// more than one and nobody's coming or going changes it.
pub(crate) fn with_selector(input: &Value, selector: &str) -> Value {
    let mut schema = without_references_to_root(input);
    if let Value::Object(root) = &mut schema {
        // Up to draft 7 nothing counts beside a reference.
        if let Some(reference) = root.shift_remove("$ref") {
            let parts = root.entry("allOf").or_insert_with(|| json!([]));
            parts.as_array_mut().into_iter().for_each(|parts| parts.push(json!({"$ref": reference})));
        }
        let properties = root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(properties) = properties {
            // Not described here: a model pays for every word once a tool, and `list_devices` says it too.
            properties.insert(selector.to_owned(), json!({"type": "string"}));
        }
    }
    schema
}

/// The schema with its root as a definition where it refers to the root: the selecting argument is one of the call, not
/// of everything that is built like the arguments.
fn without_references_to_root(input: &Value) -> Value {
    let is_free = |name: &String| input.get("$defs").is_none_or(|known| known.get(name).is_none());
    let names = std::iter::once("arguments".to_owned()).chain((2..).map(|number| format!("arguments_{number}")));
    let name = names.into_iter().find(is_free).unwrap_or_default();
    let mut schema = input.clone();
    let mut has_some = false;
    references::rewrite(&mut schema, &mut |target| {
        has_some |= target == "#";
        (target == "#").then(|| format!("#/$defs/{name}"))
    });
    if let Value::Object(root) = &mut schema
        && has_some
    {
        let mut own = root.clone();
        own.retain(|keyword, _| !["$schema", "$defs", "definitions"].contains(&keyword.as_str()));
        header_arguments::remove(&mut own);
        let all = root.entry("$defs").or_insert_with(|| json!({}));
        if let Value::Object(all) = all {
            all.insert(name, Value::Object(own));
        }
    }
    schema
}

/// Says in the description of a part that it had a reference which is not followed.
fn mention_reference(members: &mut Map<String, Value>) {
    let text = members.get("description").and_then(Value::as_str).unwrap_or_default().trim_end();
    if !text.ends_with(ELSEWHERE) {
        let text = format!("{text} {ELSEWHERE}").trim_start().to_owned();
        members.insert("description".to_owned(), json!(text));
    }
}

/// An input schema as the device wrote it, but an object at its root, without invisible text, and without marks of
/// header arguments for which clients drop a tool. `None` if it is too large, or not that of an object.
pub(crate) fn exact_input(schema: &Value) -> Option<Value> {
    let is_of_objects = schema.get("type").is_none_or(|kinds| is_of_objects(Some(kinds)));
    bounds::listed_size(schema).ok().filter(|_| is_of_objects)?;
    let mut exact = clean_json(schema);
    SchemaFixer::new(true, &mut Vec::new()).root(&mut exact);
    if let Value::Object(root) = &mut exact {
        root.entry("type").or_insert_with(|| json!("object"));
    }
    Some(exact)
}

/// An output schema as the device wrote it, without invisible text. Marks of header arguments mean nothing in it.
pub(crate) fn exact_output(schema: &Value) -> Value {
    let mut exact = clean_json(schema);
    exact.as_object_mut().into_iter().for_each(header_arguments::remove);
    exact
}

/// An exact input schema with the selecting argument, and nothing else changed.
pub(crate) fn exact_with_selector(exact: &Value, selector: &str) -> Value {
    let mut exact = exact.clone();
    if let Value::Object(root) = &mut exact {
        let properties = root.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            properties.insert(selector.to_owned(), json!({"type": "string"}));
        }
    }
    exact
}

fn fix(schema: &Value, warnings: &mut Vec<String>) -> Value {
    // All names and texts alike, so that what refers to each other still does.
    let mut fixed = clean_json(schema);
    if !references::are_plain(&fixed) {
        references::make_plain(&mut fixed);
    }
    SchemaFixer::new(false, warnings).root(&mut fixed);
    fixed
}

struct SchemaFixer<'a> {
    /// Whether references, and the names of what they lead to, stay as they are.
    keeps_references: bool,
    headers: HashSet<String>,
    anchors: HashSet<String>,
    warnings: &'a mut Vec<String>,
}

impl SchemaFixer<'_> {
    fn new(keeps_references: bool, warnings: &mut Vec<String>) -> SchemaFixer<'_> {
        SchemaFixer { keeps_references, headers: HashSet::new(), anchors: HashSet::new(), warnings }
    }

    fn root(&mut self, schema: &mut Value) {
        if let Value::Object(root) = schema
            && root.shift_remove(HEADER).is_some()
        {
            self.warnings.push(format!("`{HEADER}` stands on no argument and was left out"));
        }
        self.schema(schema, true);
    }

    /// `is_argument`: the schema is reached from the root through `properties` alone.
    fn schema(&mut self, schema: &mut Value, is_argument: bool) {
        let Value::Object(members) = schema else { return };
        // A client drops a tool that uses it wrongly.
        if let Some(header) = members.get(HEADER)
            && !(is_argument && self.is_good_header(header, members.get("type")))
        {
            self.warnings.push(format!("an invalid `{HEADER}` was left out"));
            members.shift_remove(HEADER);
        }
        if !self.keeps_references {
            self.references(members);
        }
        for (word, member) in members.iter_mut() {
            match word.as_str() {
                "properties" => self.named(member, is_argument),
                "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => self.named(member, false),
                "enum" | "const" | "default" | "examples" => {}
                _ => self.nested(member),
            }
        }
    }

    fn references(&mut self, members: &mut Map<String, Value>) {
        for word in ["$ref", "$dynamicRef", "$recursiveRef"] {
            // Nothing is ever fetched, by us or because of us.
            if members.get(word).is_some_and(|target| !bounds::is_local(target)) {
                self.warnings.push(format!("a `{word}` that is not of the form `#/…` was left out"));
                members.shift_remove(word);
                mention_reference(members);
            }
        }
        // Names for parts of the document; without them every reference is a plain path. A plain anchor
        // leads nobody astray: no reference that is left goes by it.
        for word in ["$id", "$dynamicAnchor", "$recursiveAnchor"] {
            members.shift_remove(word);
        }
        if members.get(ANCHOR).is_some_and(|anchor| !self.is_good_anchor(anchor)) {
            members.shift_remove(ANCHOR);
        }
        if members.get("id").is_some_and(Value::is_string) {
            members.shift_remove("id");
        }
        let is_known = |dialect: &Value| dialect.as_str().is_some_and(|text| text.contains("://json-schema.org/"));
        if members.get("$schema").is_some_and(|dialect| !is_known(dialect)) {
            members.shift_remove("$schema");
        }
    }

    fn is_good_anchor(&mut self, anchor: &Value) -> bool {
        let Some(name) = anchor.as_str() else { return false };
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
            && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        is_plain && self.anchors.insert(name.to_owned())
    }

    fn named(&mut self, schemas: &mut Value, is_argument: bool) {
        if let Value::Object(schemas) = schemas {
            schemas.values_mut().for_each(|schema| self.schema(schema, is_argument));
        }
    }

    fn nested(&mut self, value: &mut Value) {
        match value {
            Value::Array(schemas) => schemas.iter_mut().for_each(|schema| self.schema(schema, false)),
            schema => self.schema(schema, false),
        }
    }

    fn is_good_header(&mut self, header: &Value, kind: Option<&Value>) -> bool {
        let is_simple = matches!(kind.and_then(Value::as_str), Some("string" | "integer" | "boolean"));
        let Some(name) = header.as_str().filter(|_| is_simple) else { return false };
        let is_token = (1..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        is_token && self.headers.insert(name.to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(schema: Value) -> (Value, usize) {
        let mut warnings = Vec::new();
        let schema = input(&schema, &mut warnings);
        (schema.listed, warnings.len())
    }

    #[test]
    fn a_good_schema_is_left_as_it_is() {
        let schema = json!({
            "type": "object",
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "x-mcp-header": {"type": "string"},
                "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
                "point": {"$ref": "#/$defs/point"},
            },
            "$defs": {"point": {"type": "array", "default": [{"$ref": "http://data"}]}},
        });
        assert_eq!(fixed(schema.clone()), (schema, 0));
    }

    #[test]
    fn a_plain_anchor_is_listed_once() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}, "$anchor": {"type": "string"}},
            "$defs": {
                "a": {"$anchor": "here", "type": "string"},
                "b": {"$anchor": "here", "type": "integer"},
                "c": {"$anchor": "http://evil.example/"},
                "d": {"const": {"$anchor": "data"}},
            },
        });
        let (listed, warnings) = fixed(schema);
        assert_eq!((listed["$defs"]["a"]["$anchor"].as_str(), warnings), (Some("here"), 0));
        assert!(listed["$defs"]["b"].get("$anchor").is_none(), "the second of a name");
        assert!(listed["$defs"]["c"].get("$anchor").is_none(), "not a plain name");
    }

    #[test]
    fn a_part_is_found_by_its_name() {
        let (listed, warnings) = fixed(json!({
            "type": "object",
            "properties": {"a": {"$ref": "#point"}, "b": {"$ref": "#/$defs/two%20words"}, "c": {"$ref": "#none"}},
            "$defs": {"p": {"$anchor": "point", "type": "integer"}, "two words": {"type": "string"}},
        }));
        assert_eq!(listed["properties"]["a"]["$ref"], "#/$defs/p");
        assert_eq!(listed["properties"]["b"]["$ref"], "#/$defs/two words");
        assert_eq!((&listed["properties"]["c"], warnings), (&json!({"description": ELSEWHERE}), 1));
    }

    #[test]
    fn the_argument_that_selects_a_device_is_not_part_of_what_is_built_like_the_arguments() {
        let tree = json!({
            "type": "object", "properties": {"name": {"type": "string"}, "child": {"$ref": "#"}},
            "$defs": {"arguments": {"type": "integer"}},
        });
        let listed = with_selector(&tree, "device");
        assert_eq!(listed["properties"]["device"], json!({"type": "string"}));
        assert_eq!(listed["properties"]["child"]["$ref"], "#/$defs/arguments_2");
        let own = &listed["$defs"]["arguments_2"];
        assert_eq!(
            (own["properties"].get("device"), &own["properties"]["child"]["$ref"]),
            (None, &json!("#/$defs/arguments_2"))
        );
        assert_eq!(own.get("$defs"), None);
        let portable = sinew_tool::portable::input(&listed).schema;
        assert_eq!(portable["properties"]["child"]["properties"].get("device"), None);
        let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(with_selector(&plain, "device").get("$defs"), None);
    }

    #[test]
    fn the_argument_that_selects_a_device_counts_beside_a_reference_of_an_older_draft() {
        let old = json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "$ref": "#/definitions/a",
            "definitions": {"a": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        });
        let listed = sinew_tool::portable::input(&with_selector(&old, "device")).schema;
        assert_eq!(listed["properties"], json!({"device": {"type": "string"}, "n": {"type": "integer"}}));
    }

    #[test]
    fn hidden_text_is_taken_out_of_names_descriptions_and_choices() {
        let (schema, _) = fixed(json!({
            "type": "object",
            "properties": {"mo\u{200b}de": {"description": "a\u{e0041}b", "enum": ["o\u{ad}n", "👩‍👧"]}},
            "required": ["mo\u{200b}de"],
        }));
        let expected = json!({
            "type": "object",
            "properties": {"mode": {"description": "ab", "enum": ["on", "👩‍👧"]}},
            "required": ["mode"],
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn wrong_header_annotations_are_taken_out() {
        let (schema, warnings) = fixed(json!({
            "type": "object",
            "x-mcp-header": "Root",
            "properties": {
                "a": {"type": "string", "x-mcp-header": "Same"},
                "b": {"type": "string", "x-mcp-header": "same"},
                "c": {"type": "number", "x-mcp-header": "Float"},
                "d": {"type": "string", "x-mcp-header": "two words"},
                "e": {"type": "array", "items": {"type": "string", "x-mcp-header": "Item"}},
                "f": {"type": "string", "x-mcp-header": 7},
            },
        }));
        assert_eq!(warnings, 6);
        assert_eq!(schema.to_string().matches("x-mcp-header").count(), 1);
    }

    #[test]
    fn the_root_is_always_an_object() {
        assert_eq!(fixed(json!({})), (json!({"type": "object"}), 0));
        assert_eq!(fixed(json!({"type": "string"})), (json!({"type": "object"}), 1));
        assert_eq!(fixed(json!({"type": ["string", "null"]})), (json!({"type": "object"}), 1));
        let with_null = json!({"type": ["object", "null"], "properties": {"a": {"type": "string"}}});
        assert_eq!(fixed(with_null.clone()), (with_null.clone(), 0));
        assert_eq!(output(&with_null, &mut Vec::new()), Some(with_null));
        assert_eq!(fixed(json!({"properties": []})), (json!({"type": "object"}), 1));
    }

    #[test]
    fn a_schema_that_is_too_deep_to_be_checked_is_listed() {
        let deep = |levels: usize| {
            let items =
                (0..levels).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
            json!({"type": "object", "properties": {"a": items, "b": {"$ref": "http://evil.example/"}}})
        };
        let mut warnings = Vec::new();
        let schema = input(&deep(100), &mut warnings);
        assert!(!schema.is_checked && warnings.len() == 2, "{warnings:?}");
        assert_eq!(schema.listed["properties"]["a"], deep(100)["properties"]["a"]);
        assert_eq!(schema.listed["properties"]["b"], json!({"description": ELSEWHERE}));
        assert_eq!(fixed(deep(1_000)), (json!({"type": "object"}), 1));
    }

    #[test]
    fn a_schema_without_measure_is_replaced() {
        let wide: Map<String, Value> = (0..10_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        assert_eq!(fixed(json!({"type": "object", "properties": wide})), (json!({"type": "object"}), 1));
    }

    #[test]
    fn nothing_points_outside() {
        let (schema, warnings) = fixed(json!({
            "$schema": "http://evil.example/schema",
            "properties": {"a": {"$ref": "http://evil.example/x"}, "b": {"anyOf": [{"$ref": "file:///etc/passwd"}]}},
        }));
        assert_eq!(warnings, 2);
        assert!(!schema.to_string().contains("evil") && !schema.to_string().contains("passwd"));
    }

    #[test]
    fn a_reference_that_is_left_out_is_mentioned_wherever_it_stands() {
        let outside = json!({"$ref": "http://evil.example/x"});
        let (schema, _) = fixed(json!({"type": "object", "properties": {
            "alone": outside,
            "told": {"$ref": "http://evil.example/x", "description": "Where to.", "type": "string"},
            "part": {"description": "Which.", "allOf": [{"type": "string", "description": "A name."}, outside]},
            "form": {"anyOf": [{"type": "integer"}, outside]},
            "list": {"type": "array", "items": outside},
            "named": {"$dynamicRef": "#nowhere"},
        }}));
        let portable = sinew_tool::portable::input(&schema).schema;
        for name in ["alone", "told", "part", "form", "list", "named"] {
            let text = portable["properties"][name].to_string();
            assert!(text.contains(ELSEWHERE), "{name}: {text}");
        }
        let told = portable["properties"]["told"]["description"].as_str().unwrap();
        assert_eq!(told, format!("Where to. {ELSEWHERE}"));
    }

    #[test]
    fn an_exact_schema_is_that_of_the_device() {
        let schema = json!({
            "$schema": "https://example.org/own", "$id": "https://example.org/tree", "type": "object",
            "properties": {
                "a": {"$ref": "#node"}, "b": {"$dynamicRef": "#node"}, "c": {"$ref": "https://example.org/other"},
                "d": {"$ref": "#"}, "e": {"$ref": "#/$defs/two%20words"}, "id": {"$anchor": "id", "type": "string"},
            },
            "$defs": {"n": {"$dynamicAnchor": "node", "type": "integer"}, "two words": {"type": "string"}},
        });
        assert_eq!(exact_input(&schema), Some(schema.clone()));
        assert_eq!(exact_output(&schema), schema);
        let mut selecting = schema.clone();
        selecting["properties"]["device"] = json!({"type": "string"});
        assert_eq!(exact_with_selector(&schema, "device"), selecting);
        let fixed = json!({"properties": {"a\u{200b}": {"type": "number", "x-mcp-header": "A"}}});
        assert_eq!(exact_input(&fixed), Some(json!({"properties": {"a": {"type": "number"}}, "type": "object"})));
    }

    #[test]
    fn an_output_schema_must_be_that_of_an_object() {
        let mut warnings = Vec::new();
        let good = json!({"type": "object", "properties": {}});
        assert_eq!(output(&good, &mut warnings), Some(good));
        let marked = json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}});
        let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(output(&marked, &mut warnings), Some(plain));
        assert_eq!(output(&json!({"type": "array"}), &mut warnings), None);
        assert_eq!(output(&json!({"$ref": "#"}), &mut warnings), None);
        assert_eq!(warnings.len(), 2);
    }

    #[test]
    fn the_selector_steps_aside_for_an_argument_of_the_tool() {
        let with = |words: &[&str]| {
            let properties: Map<String, Value> = words.iter().map(|word| (word.to_string(), json!({}))).collect();
            selector(&json!({"type": "object", "properties": properties}))
        };
        assert_eq!(with(&[]), "device");
        assert_eq!(with(&["device"]), "on_device");
        assert_eq!(with(&["device", "on_device"]), "on_device_2");
        let schema = with_selector(&json!({"type": "object", "additionalProperties": false}), "device");
        assert_eq!(schema["properties"]["device"]["type"], "string");
    }
    #[test]
    fn the_selector_steps_aside_for_an_argument_that_is_named_anywhere() {
        let own = json!({"properties": {"device": {"type": "integer"}}});
        for named in [
            json!({"allOf": [own]}),
            json!({"anyOf": [{"required": ["room"]}, own]}),
            json!({"oneOf": [{"allOf": [{"$ref": "#/$defs/own"}]}], "$defs": {"own": own}}),
            json!({"$ref": "#/$defs/first", "$defs": {"first": {"$ref": "#/$defs/own"}, "own": own}}),
            json!({"required": ["device"]}),
            json!({"if": {"required": ["a"]}, "then": {"required": ["device"]}}),
            json!({"if": {"required": ["a"]}, "else": own}),
            json!({"not": {"required": ["device"]}}),
            json!({"dependentRequired": {"a": ["device"]}}),
            json!({"dependentSchemas": {"a": own}}),
            json!({"dependencies": {"device": ["a"]}}),
            json!({"propertyNames": {"enum": ["device", "a"]}}),
        ] {
            assert_eq!(selector(&named), "on_device", "{named}");
        }
        let circle = json!({
            "allOf": [{"$ref": "#"}, {"$ref": "#/$defs/own"}, {"required": ["on_device"]}],
            "$defs": {"own": {"allOf": [{"$ref": "#/$defs/own"}, own]}},
        });
        assert_eq!(selector(&circle), "on_device_2");
        for other in [
            json!({"properties": {"a": own}}),
            json!({"$defs": {"unused": own}}),
            json!({"properties": {"a": {"enum": ["device"]}}}),
        ] {
            assert_eq!(selector(&other), "device", "{other}");
        }
    }
}
