//! A table of pairs of schemas and how they are related, each compared in four ways: as a parameter and
//! as a field of the result, forwards and backwards.

use serde_json::{Value, json};
use sinew_spec::Document;
use sinew_spec::compare::{Impact, diff, diff_documents, diff_lists};
use sinew_tool::Tool;

use super::keyword_pairs;
use super::meaning_pairs;
use super::variance::accepts;

/// How the second schema is related to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Second {
    /// Accepts the same values.
    Same,
    /// Accepts all that the first does, and more.
    Wider,
    /// Neither accepts all that the other does.
    Other,
}

use Second::{Other, Same, Wider};

/// `$defs` of a schema are those of the whole.
const PAIRS: &[(Second, &str, &str)] = &[
    // The same in other words.
    (Same, r#"{"enum": ["a", "b"]}"#, r#"{"oneOf": [{"const": "a"}, {"const": "b"}]}"#),
    (
        Same,
        r#"{"type": "string", "enum": ["a", "b"]}"#,
        r#"{"oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}"#,
    ),
    (
        Same,
        r#"{"enum": ["a", "b"]}"#,
        r#"{"anyOf": [{"type": "string", "const": "b"}, {"const": "a", "description": "x"}]}"#,
    ),
    (Same, r#"{"enum": ["a", "b", "c"]}"#, r#"{"anyOf": [{"enum": ["a", "b"]}, {"const": "c"}]}"#),
    (Same, r#"{"const": 5}"#, r#"{"enum": [5]}"#),
    (Same, r#"{"type": "boolean"}"#, r#"{"enum": [true, false]}"#),
    (Same, r#"{"type": "boolean"}"#, r#"{"type": "boolean", "enum": [false, true]}"#),
    (Same, r#"{"type": ["boolean", "null"]}"#, r#"{"enum": [true, false, null]}"#),
    (Same, r#"{"allOf": [{"minLength": 2}, {"maxLength": 5}]}"#, r#"{"allOf": [{"maxLength": 5}, {"minLength": 2}]}"#),
    (Same, r#"{"allOf": [{"minLength": 2}, {"maxLength": 5}]}"#, r#"{"minLength": 2, "maxLength": 5}"#),
    (
        Same,
        r#"{"allOf": [{"allOf": [{"minimum": 1}]}, {"maximum": 9}]}"#,
        r#"{"allOf": [{"minimum": 1}, {"maximum": 9}]}"#,
    ),
    (
        Same,
        r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a", "b"]}"#,
        r#"{"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}]}"#,
    ),
    (
        Same,
        r#"{"type": "integer", "minimum": 1, "maximum": 9}"#,
        r#"{"allOf": [{"type": "integer"}, {"minimum": 1}, {"maximum": 9}]}"#,
    ),
    (Same, r#"{"minimum": 3}"#, r#"{"allOf": [{"minimum": 1}, {"minimum": 3}]}"#),
    (Same, r#"{"type": "integer"}"#, r#"{"type": "integer", "multipleOf": 1}"#),
    (Same, r#"{"type": "integer"}"#, r#"{"type": "integer", "multipleOf": 1.0}"#),
    (Same, r#"{"type": "integer"}"#, r#"{"type": "number", "multipleOf": 1}"#),
    (Same, r#"{"type": ["integer", "null"]}"#, r#"{"type": ["number", "null"], "multipleOf": 1.0}"#),
    (
        Same,
        r#"{"type": "integer", "multipleOf": 5, "minimum": 1}"#,
        r#"{"type": "number", "multipleOf": 5, "exclusiveMinimum": 0}"#,
    ),
    (Wider, r#"{"type": "number", "multipleOf": 2}"#, r#"{"type": "integer"}"#),
    (Same, r#"{"not": {"type": "string"}}"#, r#"{"type": ["null", "boolean", "number", "array", "object"]}"#),
    (
        Same,
        r#"{"not": {"type": ["string", "null"]}}"#,
        r#"{"type": ["boolean", "integer", "number", "array", "object"]}"#,
    ),
    (Same, r#"{"not": {"type": "number", "description": "x"}}"#, r#"{"not": {"type": ["number", "integer"]}}"#),
    (Same, r#"{"type": ["string", "null"], "not": {"type": "null"}}"#, r#"{"type": "string"}"#),
    (Same, r#"{"not": {"anyOf": [{"type": "null"}, {"type": "string"}]}}"#, r#"{"not": {"type": ["null", "string"]}}"#),
    (
        Same,
        r#"{"allOf": [{"not": {"type": "null"}}, {"not": {"type": "string"}}]}"#,
        r#"{"not": {"type": ["null", "string"]}}"#,
    ),
    (
        Same,
        r#"{"not": {"allOf": [{"type": "string"}, {"not": {"minLength": 3}}]}}"#,
        r#"{"anyOf": [{"not": {"type": "string"}}, {"minLength": 3}]}"#,
    ),
    (Wider, r#"{"not": {"type": ["string", "null"]}}"#, r#"{"not": {"type": "string"}}"#),
    (Wider, r#"{"type": "integer"}"#, r#"{"not": {"type": "string"}}"#),
    (Same, r#"{"enum": ["a", "b", "x"], "not": {"const": "x"}}"#, r#"{"enum": ["a", "b"]}"#),
    (Same, r#"{"not": {"const": "x"}}"#, r#"{"not": {"enum": ["x"]}}"#),
    (Same, r#"{"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "x"]}]}"#, r#"{"const": "b"}"#),
    (Same, r#"{"type": "string", "maxLength": 3, "enum": ["a", "b"]}"#, r#"{"enum": ["a", "b"]}"#),
    (Same, r#"{"minLength": 2, "enum": ["a", "abc"]}"#, r#"{"const": "abc"}"#),
    (Same, r#"{"type": "object", "not": {"required": ["a"]}}"#, r#"{"type": "object", "properties": {"a": false}}"#),
    (Same, r#"{"anyOf": [{"type": "integer"}, {"type": "number"}]}"#, r#"{"type": "number"}"#),
    (Same, r#"{"anyOf": [{"type": "string"}, {"type": "string", "minLength": 2}]}"#, r#"{"type": "string"}"#),
    (Same, r#"{"type": "array", "items": true}"#, r#"{"type": "array"}"#),
    (Same, r#"{"type": "object", "patternProperties": {}, "properties": {}}"#, r#"{"type": "object"}"#),
    (Same, r#"{"const": 1}"#, r#"{"const": 1.0}"#),
    (
        Same,
        r#"{"type": "object", "patternProperties": {"^": {"type": "string"}}, "additionalProperties": false}"#,
        r#"{"type": "object", "additionalProperties": {"type": "string"}}"#,
    ),
    (Same, r#"{"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}"#, r#"{"type": ["string", "null"]}"#),
    (
        Same,
        r#"{"type": ["string", "null"], "enum": ["a", "b", null]}"#,
        r#"{"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}"#,
    ),
    (Same, r#"{"anyOf": [{"const": "a"}, {"const": "b"}, {"type": "null"}]}"#, r#"{"enum": ["a", "b", null]}"#),
    (Same, r#"{"type": "boolean", "enum": [true]}"#, r#"{"type": "boolean", "not": {"const": false}}"#),
    (Same, r#"{"type": "integer", "multipleOf": 0.5}"#, r#"{"type": "integer"}"#),
    (Same, r#"{"type": "array", "contains": true}"#, r#"{"type": "array", "minItems": 1}"#),
    (Same, r#"{"type": "array", "maxItems": 0}"#, r#"{"type": "array", "items": false}"#),
    (
        Same,
        r#"{"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}"#,
        r#"{"type": "array", "minItems": 2, "prefixItems": [{"type": "number"}, {"type": "number"}], "items": false}"#,
    ),
    (
        Same,
        r#"{"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "maxItems": 1}"#,
        r#"{"type": "array", "items": {"type": "string"}, "maxItems": 1}"#,
    ),
    (
        Wider,
        r#"{"type": "array", "prefixItems": [{"type": "string"}], "items": false}"#,
        r#"{"type": "array", "prefixItems": [{"type": "string"}]}"#,
    ),
    (Same, r#"{"type": "number", "minimum": 0}"#, r#"{"type": "number", "not": {"exclusiveMaximum": 0}}"#),
    (Same, r#"{"type": "string", "maxLength": 3}"#, r#"{"type": "string", "not": {"minLength": 4}}"#),
    (Same, r#"{"type": "array", "minItems": 3}"#, r#"{"type": "array", "not": {"maxItems": 2}}"#),
    (Wider, r#"{"type": "string", "not": {"minLength": 2}}"#, r#"{"type": "string", "maxLength": 4}"#),
    (Same, r#"{"type": "object", "additionalProperties": {}}"#, r#"{"type": "object", "additionalProperties": true}"#),
    (
        Same,
        r#"{"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}"#,
        r#"{"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}"#,
    ),
    (
        Same,
        r#"{"type": "array", "items": [{"type": "string"}], "additionalItems": false}"#,
        r#"{"type": "array", "prefixItems": [{"type": "string"}], "items": false}"#,
    ),
    (
        Same,
        r#"{"type": "object", "dependencies": {"a": ["b"]}}"#,
        r#"{"type": "object", "dependentRequired": {"a": ["b"]}}"#,
    ),
    (
        Same,
        r#"{"type": "object", "dependencies": {"a": ["b"]}}"#,
        r#"{"type": "object", "dependentSchemas": {"a": {"required": ["b"]}}}"#,
    ),
    (
        Same,
        r#"{"type": "object", "dependentRequired": {"a": ["b"]}}"#,
        r#"{"type": "object", "dependentSchemas": {"a": {"required": ["b"]}}}"#,
    ),
    (
        Same,
        r#"{"type": "object", "dependencies": {"a": {"minProperties": 2}}}"#,
        r#"{"type": "object", "dependentSchemas": {"a": {"minProperties": 2}}}"#,
    ),
    (Same, r#"{"type": "string", "if": {"minLength": 3}}"#, r#"{"type": "string"}"#),
    (Same, r#"{"type": "string", "if": {"minLength": 3}, "then": {}}"#, r#"{"type": "string"}"#),
    (Same, r#"{"type": "string", "then": {"minLength": 3}}"#, r#"{"type": "string"}"#),
    (Same, r#"{"type": "array", "contains": {"type": "string"}, "minContains": 0}"#, r#"{"type": "array"}"#),
    (
        Same,
        r#"{"type": "array", "contains": {"type": "string"}, "minContains": 1}"#,
        r#"{"type": "array", "contains": {"type": "string"}}"#,
    ),
    (Same, r#"{"not": {"not": {"type": "string"}}}"#, r#"{"type": "string"}"#),
    (Same, r#"{"type": "string", "not": {"not": {"minLength": 2}}}"#, r#"{"type": "string", "minLength": 2}"#),
    (
        Same,
        r#"{"type": "object", "properties": {"a": {"type": "string"}}, "unevaluatedProperties": false}"#,
        r#"{"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}"#,
    ),
    (
        Same,
        r#"{"type": "object", "unevaluatedProperties": {"type": "integer"}}"#,
        r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#,
    ),
    (Same, r#"{"type": "object", "propertyNames": {"type": "string"}}"#, r#"{"type": "object"}"#),
    (Same, r#"{"type": "object", "propertyNames": {}}"#, r#"{"type": "object"}"#),
    (Same, r#"{"type": "integer", "exclusiveMinimum": 0}"#, r#"{"type": "integer", "minimum": 1}"#),
    (Same, r#"{"type": "integer", "exclusiveMaximum": 10}"#, r#"{"type": "integer", "maximum": 9}"#),
    (
        Same,
        r#"{"type": "integer", "minimum": 0.5, "maximum": 9.5}"#,
        r#"{"type": "integer", "minimum": 1, "maximum": 9}"#,
    ),
    (
        Same,
        r#"{"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 3}"#,
        r#"{"type": "integer", "minimum": 1, "maximum": 2}"#,
    ),
    (
        Same,
        r#"{"type": "object", "properties": {"a": false}}"#,
        r#"{"type": "object", "properties": {"a": {"not": {}}}}"#,
    ),
    (Same, r#"{"not": {}}"#, r#"{"not": true}"#),
    (
        Same,
        r##"{"$ref": "#/$defs/s", "maxLength": 5, "$defs": {"s": {"type": "string", "minLength": 2}}}"##,
        r#"{"type": "string", "minLength": 2, "maxLength": 5}"#,
    ),
    (
        Same,
        r##"{"allOf": [{"$ref": "#/$defs/s"}], "description": "x", "$defs": {"s": {"type": "string"}}}"##,
        r#"{"type": "string", "description": "x"}"#,
    ),
    (
        Same,
        r##"{"$ref": "#/$defs/s", "$defs": {"s": {"type": "string"}}}"##,
        r##"{"$ref": "#/$defs/t", "$defs": {"t": {"type": "string"}}}"##,
    ),
    (Same, r#"{"anyOf": [{"type": "string"}, {"type": "null"}]}"#, r#"{"type": ["string", "null"]}"#),
    (
        Same,
        r#"{"oneOf": [{"type": "string", "maxLength": 3}, {"type": "integer"}]}"#,
        r#"{"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 3}]}"#,
    ),
    (Same, r#"{"type": "array", "items": {}, "minItems": 0, "uniqueItems": false}"#, r#"{"type": "array"}"#),
    (Same, r#"{"type": "object", "additionalProperties": true, "required": []}"#, r#"{"type": "object"}"#),
    (
        Same,
        r#"{"type": "string", "description": "one"}"#,
        r#"{"type": "string", "description": "two", "examples": ["x"]}"#,
    ),
    (Same, r#"{"type": "string", "x-widget": "a"}"#, r#"{"type": "string", "markdownDescription": "b"}"#),
    (
        Same,
        r#"{"anyOf": [{"anyOf": [{"minLength": 1}, {"minimum": 1}]}, {"minItems": 1}]}"#,
        r#"{"anyOf": [{"minLength": 1}, {"minimum": 1}, {"minItems": 1}]}"#,
    ),
    (
        Same,
        r#"{"type": "string", "anyOf": [{"minLength": 2}, {"minLength": 2}]}"#,
        r#"{"type": "string", "minLength": 2}"#,
    ),
    // Widened.
    (Wider, r#"{"anyOf": [{"type": "string"}]}"#, r#"{"anyOf": [{"type": "string"}, {}]}"#),
    (Wider, r#"{"oneOf": [{"minimum": 1}, {"maximum": 5}]}"#, r#"{"anyOf": [{"minimum": 1}, {"maximum": 5}]}"#),
    (Wider, r#"{"type": "number", "multipleOf": 1}"#, r#"{"type": "number", "multipleOf": 0.5}"#),
    (Wider, r#"{"type": "number", "multipleOf": 0.5}"#, r#"{"type": "number", "multipleOf": 0.1}"#),
    (Wider, r#"{"type": "integer", "multipleOf": 6}"#, r#"{"type": "integer", "multipleOf": 3}"#),
    (
        Wider,
        r#"{"type": "object", "required": ["a", "b"]}"#,
        r#"{"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}"#,
    ),
    (
        Wider,
        r#"{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]}"#,
        r#"{"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}"#,
    ),
    (Wider, r#"{"type": "object", "properties": {"a": false}}"#, r#"{"type": "object", "properties": {}}"#),
    (Wider, r#"{"type": "string"}"#, r#"{"type": ["string", "null"]}"#),
    (Wider, r#"{"type": "integer"}"#, r#"{"type": "number"}"#),
    (Wider, r#"{"enum": ["a"]}"#, r#"{"enum": ["a", "b"]}"#),
    (Wider, r#"{"oneOf": [{"const": "a"}, {"const": "b"}]}"#, r#"{"enum": ["a", "b", "c"]}"#),
    (Wider, r#"{"type": "string", "maxLength": 5}"#, r#"{"type": "string", "maxLength": 9}"#),
    (Wider, r#"{"type": "string", "pattern": "^a$"}"#, r#"{"type": "string"}"#),
    (Wider, r#"{"type": "string", "format": "date"}"#, r#"{"type": "string"}"#),
    (Wider, r#"{"type": "array", "items": {"type": "integer"}}"#, r#"{"type": "array", "items": {"type": "number"}}"#),
    (Wider, r#"{"type": "array", "maxItems": 2}"#, r#"{"type": "array"}"#),
    (Wider, r#"{"type": "array", "uniqueItems": true}"#, r#"{"type": "array"}"#),
    (Wider, r#"{"type": "object", "additionalProperties": false}"#, r#"{"type": "object"}"#),
    (
        Wider,
        r#"{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}"#,
        r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#,
    ),
    (Wider, r#"{"not": {"minLength": 2}, "type": "string"}"#, r#"{"type": "string"}"#),
    (
        Wider,
        r#"{"anyOf": [{"type": "string"}, {"type": "integer"}]}"#,
        r#"{"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "object"}]}"#,
    ),
    (
        Wider,
        r#"{"allOf": [{"minLength": 2}, {"maxLength": 5}], "type": "string"}"#,
        r#"{"minLength": 2, "type": "string"}"#,
    ),
    (
        Wider,
        r##"{"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {"a": {"type": "string", "maxLength": 3}, "b": {"type": "integer"}}}"##,
        r##"{"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {"a": {"type": "string", "maxLength": 9}, "b": {"type": "integer"}}}"##,
    ),
    (
        Wider,
        r#"{"type": "object", "dependentRequired": {"a": ["b", "c"]}}"#,
        r#"{"type": "object", "dependentRequired": {"a": ["b"]}}"#,
    ),
    (Wider, r#"{"type": "array", "contains": {"type": "string"}}"#, r#"{"type": "array"}"#),
    (Wider, r#"{"const": 1}"#, r#"{"type": "integer"}"#),
    // Untouched parts beside something that widened.
    (
        Wider,
        r##"{"type": "object", "properties": {"f": {"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}, "n": {"type": "integer", "maximum": 5}}, "$defs": {"a": {"minimum": 1}, "b": {"maximum": 9}}}"##,
        r##"{"type": "object", "properties": {"f": {"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}, "n": {"type": "integer", "maximum": 9}}, "$defs": {"a": {"minimum": 1}, "b": {"maximum": 9}}}"##,
    ),
    (
        Wider,
        r#"{"type": "object", "properties": {"n": {"maximum": 5}}, "unevaluatedProperties": false}"#,
        r#"{"type": "object", "properties": {"n": {"maximum": 9}}, "unevaluatedProperties": false}"#,
    ),
    (
        Wider,
        r#"{"type": "object", "allOf": [{"properties": {"a": {"type": "string"}}}], "properties": {"n": {"maximum": 5}}, "unevaluatedProperties": false}"#,
        r#"{"type": "object", "allOf": [{"properties": {"a": {"type": "string"}}}], "properties": {"n": {"maximum": 9}}, "unevaluatedProperties": false}"#,
    ),
    (
        Wider,
        r#"{"type": "object", "properties": {"n": {"maximum": 5}}, "dependencies": {"a": ["b"]}}"#,
        r#"{"type": "object", "properties": {"n": {"maximum": 9}}, "dependencies": {"a": ["b"]}}"#,
    ),
    (
        Wider,
        r##"{"type": "object", "properties": {"t": {"$dynamicRef": "#node"}, "n": {"maximum": 5}}, "$defs": {"node": {"$dynamicAnchor": "node", "type": "object"}}}"##,
        r##"{"type": "object", "properties": {"t": {"$dynamicRef": "#node"}, "n": {"maximum": 9}}, "$defs": {"node": {"$dynamicAnchor": "node", "type": "object"}}}"##,
    ),
    (
        Wider,
        r##"{"type": "object", "properties": {"f": {"$ref": "#/$defs/filter"}, "n": {"maximum": 5}}, "$defs": {"filter": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/filter"}}}}]}}}"##,
        r##"{"type": "object", "properties": {"f": {"$ref": "#/$defs/filter"}, "n": {"maximum": 9}}, "$defs": {"filter": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/filter"}}}}]}}}"##,
    ),
    (
        Wider,
        r##"{"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}, "n": {"maximum": 5}}, "required": ["k"]}, {"type": "object", "properties": {"k": {"const": "b"}}, "required": ["k"]}]}"##,
        r##"{"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}, "n": {"maximum": 9}}, "required": ["k"]}, {"type": "object", "properties": {"k": {"const": "b"}}, "required": ["k"]}]}"##,
    ),
    // Neither.
    (Other, r#"{"type": "string"}"#, r#"{"type": "integer"}"#),
    (Other, r#"{"enum": ["a", "b"]}"#, r#"{"enum": ["b", "c"]}"#),
    (Other, r#"{"type": "integer", "multipleOf": 2}"#, r#"{"type": "integer", "multipleOf": 3}"#),
    (Other, r#"{"type": "integer", "minimum": 1, "maximum": 5}"#, r#"{"type": "integer", "minimum": 3, "maximum": 9}"#),
    (Other, r#"{"type": "string", "format": "date"}"#, r#"{"type": "string", "format": "uri"}"#),
    (Other, r#"{"type": "string", "pattern": "^a$"}"#, r#"{"type": "string", "pattern": "^b$"}"#),
    (Other, r#"{"type": "object", "required": ["a"]}"#, r#"{"type": "object", "required": ["b"]}"#),
    (Other, r#"{"oneOf": [{"const": "a"}, {"const": "b"}]}"#, r#"{"oneOf": [{"const": "a"}, {"const": "c"}]}"#),
    (
        Other,
        r#"{"type": "array", "prefixItems": [{"type": "string"}]}"#,
        r#"{"type": "array", "prefixItems": [{"type": "integer"}]}"#,
    ),
    (Other, r#"{"type": "array", "items": {"type": "string"}}"#, r#"{"type": "array", "items": {"type": "boolean"}}"#),
    (
        Other,
        r#"{"anyOf": [{"type": "string"}, {"type": "integer"}]}"#,
        r#"{"anyOf": [{"type": "string"}, {"type": "boolean"}]}"#,
    ),
    (Other, r#"{"type": ["string", "null"]}"#, r#"{"type": ["string", "boolean"]}"#),
    (
        Other,
        r##"{"$ref": "#/$defs/s", "$defs": {"s": {"type": "string"}}}"##,
        r##"{"$ref": "#/$defs/s", "$defs": {"s": {"type": "integer"}}}"##,
    ),
    (
        Other,
        r##"{"type": "array", "items": {"$ref": "#/$defs/s"}, "$defs": {"s": {"type": "object", "required": ["a"]}}}"##,
        r##"{"type": "array", "items": {"$ref": "#/$defs/s"}, "$defs": {"s": {"type": "object", "required": ["b"]}}}"##,
    ),
    (
        Other,
        r#"{"type": "object", "dependencies": {"a": ["b"]}}"#,
        r#"{"type": "object", "dependentRequired": {"a": ["c"]}}"#,
    ),
    (Other, r#"{"allOf": [{"type": "string"}, {"minLength": 2}]}"#, r#"{"type": "integer"}"#),
];

fn wrap(schema: &str, is_input: bool) -> Tool {
    let mut schema: Value = serde_json::from_str(schema).expect("a schema of the table");
    let definitions = schema.as_object_mut().and_then(|members| members.remove("$defs"));
    let mut whole = json!({"type": "object", "properties": {"x": schema}, "required": ["x"]});
    if let Some(definitions) = definitions {
        whole["$defs"] = definitions;
    }
    let open = json!({"type": "object"});
    match is_input {
        true => Tool::new("t", "d", whole),
        false => Tool::new("t", "d", open).with_output_schema(whole),
    }
}

/// Whether going from the first schema to the second may break somebody.
fn breaks(second: Second, is_input: bool, backwards: bool) -> bool {
    match second {
        Same => false,
        Wider => is_input == backwards,
        Other => true,
    }
}

#[test]
fn changes_get_the_right_class() {
    assert_classes(PAIRS);
}

#[test]
fn changes_of_every_keyword_get_the_right_class() {
    assert_classes(keyword_pairs::PAIRS);
}

#[test]
fn changes_that_share_few_keywords_get_the_right_class() {
    assert_classes(meaning_pairs::PAIRS);
}

#[test]
fn what_is_the_same_text_in_two_lists_changes_no_class() {
    let list = |schema: &str, is_input| {
        let mut tool = wrap(schema, is_input).to_json();
        let key = if is_input { "inputSchema" } else { "outputSchema" };
        for (name, same) in
            [("same", json!({"oneOf": [{"const": 1}, {"enum": [2]}]})), ("other", json!({"minimum": 3}))]
        {
            tool[key]["properties"][name] = same;
        }
        let nested = std::mem::take(&mut tool[key]);
        let defs = nested.get("$defs").cloned().unwrap_or(json!({}));
        tool[key] = json!({"type": "object", "properties": {"outer": nested, "same": {"not": {}}}, "$defs": defs});
        json!([tool])
    };
    for (_, one, two) in PAIRS.iter().chain(keyword_pairs::PAIRS).chain(meaning_pairs::PAIRS) {
        for (old, new, is_input) in [(one, two, true), (two, one, true), (one, two, false), (two, one, false)] {
            let (old, new) = (list(old, is_input).to_string(), list(new, is_input).to_string());
            let read = diff_documents(&Document::parse(&old), &Document::parse(&new));
            assert_eq!(diff_lists(&old, &new), Some(read), "{old}\n{new}");
        }
    }
}

#[test]
fn the_tables_are_right_about_values() {
    let values: Vec<Value> =
        VALUES.iter().map(|value| json!({"x": serde_json::from_str::<Value>(value).unwrap()})).collect();
    // Keywords of older drafts mean nothing to the validator.
    let is_old = |schema: &str| schema.contains(r#""items": ["#) || schema.contains(r#""dependencies""#);
    let is_current = |(_, one, two): &&(Second, &str, &str)| !is_old(one) && !is_old(two);
    for (second, one, two) in PAIRS.iter().chain(keyword_pairs::PAIRS).chain(meaning_pairs::PAIRS).filter(is_current) {
        let [first, other] = [one, two].map(|schema| wrap(schema, true).input_schema);
        for value in &values {
            let (before, after) = (accepts(&first, value), accepts(&other, value));
            let holds = match second {
                Same => before == after,
                Wider => !before || after,
                Other => true,
            };
            // A format is an assertion for callers and an annotation for this validator.
            assert!(holds || one.contains("format"), "{value}: {before} under {one}, {after} under {two}");
        }
    }
}

const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "1",
    "1.0",
    "2",
    "2.5",
    "3",
    "4",
    "5",
    "6",
    "7",
    "10",
    "-1",
    "\"\"",
    "\"a\"",
    "\"b\"",
    "\"abc\"",
    "\"abcdef\"",
    "\"abcdefghijkl\"",
    "\"x\"",
    "[]",
    "[1]",
    "[\"a\"]",
    "[\"a\", \"a\"]",
    "[\"a\", 1]",
    "[1, 2, 3, 4, 5]",
    "[{\"a\": 1}]",
    "{}",
    "{\"a\": 1}",
    "{\"a\": \"s\", \"b\": 2}",
    "{\"a\": {}, \"c\": 3}",
    "{\"x1\": 1.5}",
    "{\"long name\": 1}",
    "{\"a\": 7, \"b\": 1, \"c\": 1, \"d\": 1}",
    "{\"n\": 1.5, \"next\": {\"n\": 2}}",
    "{\"b\": 1}",
    "{\"k\": \"a\"}",
    "{\"k\": \"a\", \"n\": 0}",
    "{\"k\": \"b\", \"n\": 1}",
    "{\"k\": \"c\"}",
    "[1, 1]",
    "[\"a\", \"b\"]",
    "8",
    "9",
];

/// Each pair is compared in four ways.
fn assert_classes(pairs: &[(Second, &str, &str)]) {
    let (mut breaking, mut missed) = (0, Vec::new());
    let (mut harmless, mut false_alarms) = (0, Vec::new());
    let mut undecided = Vec::new();
    for (second, one, two) in pairs {
        for (is_input, backwards) in [(true, false), (true, true), (false, false), (false, true)] {
            let (old, new) = if backwards { (two, one) } else { (one, two) };
            let found = diff(&[wrap(old, is_input)], &[wrap(new, is_input)]);
            let gravest = found.changes.iter().map(|change| change.impact).max();
            let case = format!(
                "{old}\n -> {new}\n ({}) {gravest:?} {:?}",
                if is_input { "input" } else { "output" },
                found.changes
            );
            if gravest == Some(Impact::Undecided) {
                undecided.push(case.clone());
            }
            if breaks(*second, is_input, backwards) {
                breaking += 1;
                if gravest < Some(Impact::Undecided) {
                    missed.push(case);
                }
            } else {
                harmless += 1;
                let same_is_more =
                    *second == Same && gravest > Some(Impact::Cosmetic) && gravest != Some(Impact::Undecided);
                if gravest == Some(Impact::Breaking) || same_is_more {
                    false_alarms.push(case);
                }
            }
        }
    }
    let total = breaking + harmless;
    println!(
        "{total} cases: {breaking} breaking, {} missed; {harmless} harmless, {} called breaking; {} undecided",
        missed.len(),
        false_alarms.len(),
        undecided.len()
    );
    false_alarms.iter().for_each(|case| println!("called breaking: {case}"));
    assert!(total >= 300, "{total}");
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
    assert!(false_alarms.len() * 100 <= harmless * 3, "{}", false_alarms.join("\n\n"));
    assert!(undecided.len() * 100 <= total * 5, "{} undecided:\n{}", undecided.len(), undecided.join("\n\n"));
}

#[test]
fn items_beside_unevaluated_items_are_compared_as_they_are_meant() {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let list = |first: &[&Value], more: Value| {
        let mut schema = json!({"type": "array", "prefixItems": first, "unevaluatedItems": false});
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"type": "object", "properties": {"v": schema}})
    };
    let worst = |old: Value, new: Value| {
        let tool = |schema| Tool::new("t", "Does it.", schema);
        diff(&[tool(old)], &[tool(new)]).changes.iter().map(|change| change.impact).max()
    };
    let (one, two) = (&[&text][..], &[&text, &number][..]);
    assert_eq!(worst(list(one, json!({})), list(two, json!({}))), Some(Impact::Additive));
    assert_eq!(worst(list(two, json!({})), list(one, json!({}))), Some(Impact::Breaking));
    let described = json!({"contains": {"type": "string"}});
    assert_eq!(worst(list(one, described.clone()), list(two, described)), Some(Impact::Undecided));
    let inside = json!({"allOf": [{"minItems": 1}]});
    assert_eq!(worst(list(one, inside.clone()), list(two, inside)), Some(Impact::Undecided));
}

#[test]
fn a_version_that_nobody_states_is_not_too_small() {
    let document = |kind: &str, version: &str| {
        Document::parse(&format!(
            "# T\n\n## Tool: `t`\n\n{version}### 3. Input Schema (Parameters)\n\n| Parameter Name | Type | Required | \
             Description | Example Value |\n|---|---|---|---|---|\n| `a` | `{kind}` | Yes | It. | — |\n"
        ))
    };
    let unstated = diff_documents(&document("string", ""), &document("integer", ""));
    assert_eq!((unstated.versions.len(), unstated.unannounced().count()), (0, 1));
    let stated = diff_documents(&document("string", ""), &document("integer", "- **Version**: 1.0.1\n\n"));
    assert_eq!(stated.too_small().count(), 1);
    let enough = diff_documents(&document("string", ""), &document("integer", "- **Version**: 2.0.0\n\n"));
    assert_eq!(enough.unannounced().count(), 0);
}

#[test]
fn a_document_and_a_list_are_compared_by_what_both_can_state() {
    let document = Document::parse(include_str!("cases/read_file.md"));
    let tool = document.tools[0].to_tool();
    let entry = |more: Value| {
        let mut entry = json!({"name": tool.name, "description": tool.description, "inputSchema": *tool.input_schema});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Document::parse(&json!({"tools": [entry]}).to_string())
    };
    let same = diff_documents(&document, &entry(json!({})));
    assert_eq!(same.changes, []);
    assert!(same.not_compared.contains(&"security considerations") && same.not_compared.contains(&"output schemas"));
    let other = diff_documents(&document, &entry(json!({"outputSchema": {"type": "object"}})));
    assert!(other.changes.iter().any(|change| change.path.starts_with("/outputSchema")), "{:?}", other.changes);
    let itself = diff_documents(&document, &document);
    assert_eq!((itself.changes, itself.not_compared), (vec![], vec![]));
}
