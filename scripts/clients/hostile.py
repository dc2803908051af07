"""A tool provider with schemas that AI clients and their APIs are known to refuse. Runs until it is stopped."""

import asyncio

from websocket_provider import serve


def properties(**schemas):
    return {"type": "object", "properties": schemas}


SCHEMAS = {
    "no_properties": {"type": "object"},
    "root_any_of": {"type": "object", "anyOf": [
        {"properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"properties": {"b": {"type": "integer"}}, "required": ["b"]}]},
    "root_one_of": {"oneOf": [{"type": "object", "properties": {"kind": {"const": "x"}}}, {"type": "object"}]},
    "root_conditional": {**properties(mode={"type": "string"}), "allOf": [
        {"if": {"required": ["mode"]}, "then": {"required": ["size"]}, "else": {"properties": {"size": False}}}]},
    "references": {**properties(a={"$ref": "#/$defs/tree"}), "$defs": {
        "tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#"}}}}},
    "dangling": properties(a={"$ref": "#/$defs/nowhere"}),
    "arrays": properties(a={"type": "array"}, b={"type": "array", "items": {"type": "array"}},
                         c={"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}),
    "nulls": properties(a={"type": ["string", "null"], "default": None}, b={"anyOf": [{"type": "integer"}, {"type": "null"}]},
                        c={"type": "array", "items": {"type": ["object", "null"]}}, d={"type": "null"}),
    "enums": properties(a={"enum": [1, "x", None, True]}, b={"type": "integer", "enum": [0, 1]}, c={"enum": ["", "x"]},
                        d={"type": "array", "enum": [1, 2]}, e={"const": {"a": 1}}),
    "booleans": properties(a=True, b=False, c={}, d="object"),
    "unions": properties(a={"type": ["string", "integer"], "description": "either", "minLength": 2},
                         b={"oneOf": [{"type": "string"}, {"type": "array"}], "description": "beside"}),
    "formats": properties(a={"type": "string", "format": "uri-template", "pattern": "^(?!x)", "contentEncoding": "base64"},
                          b={"type": "integer", "format": "uint64", "exclusiveMinimum": 0, "multipleOf": 3}),
    "names": {"type": "object", "required": ["größe"],
              "properties": {"größe": {"type": "integer"}, "a[]": {"type": "string"}, "x" * 100: {"type": "string"}}},
    "closed": {**properties(a={"type": "string"}), "additionalProperties": False, "patternProperties": {"^x-": {}},
               "propertyNames": {"maxLength": 3}, "dependentRequired": {"a": ["b"]}, "unevaluatedProperties": False,
               "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:x", "$comment": "y"},
    "deep": {},
    "empty_objects": properties(a={"type": "object"}, b={"type": "object", "properties": {}, "additionalProperties": False},
                                c={"type": "array", "items": {"type": "object"}},
                                d={"type": "object", "additionalProperties": {"type": "string"}}),
    "conditions": properties(a={"not": {"type": "string"}}, b={"if": {"type": "string"}, "then": {"maxLength": 3}},
                             c={"type": "array", "items": False}, d={"oneOf": [{"const": number} for number in range(40)]},
                             e={"anyOf": [properties(**{f"m{number}": {"type": "string"}}) for number in range(30)]}),
    "json_value": {**properties(a={"$ref": "#/$defs/json"}), "$defs": {"json": {"anyOf": [
        {"type": "string"}, {"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/json"}},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}}]}}},
    "recursion": properties(name={"type": "string"}, child={"$ref": "#"}),
    "draft_07": {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "definitions": {
        "a": properties(n={"$ref": "#/definitions/n", "minimum": 5}, m={"$ref": "#number"}),
        "n": {"$id": "#number", "type": "integer"}}},
    "long_text": {"type": "object", "oneOf": [
        {"properties": {"door": {"type": "string"}}, "required": ["door"]},
        {"properties": {"window": {"type": "string"}}, "required": ["window"]}]},
    "long_rules": {**properties(a={"type": "string"}), "propertyNames": {"enum": [f"name_{number}" for number in range(200)]}},
    "large": properties(a={"type": "string", "description": "x" * 70_000}),
    "many_values": properties(a={"enum": [f"value {number}" for number in range(600)]},
                              b={"type": "integer", "minimum": 0.2, "maximum": 0.8}),
    "addresses": {"$id": "https://example.org/s/all.json", **properties(a={"$ref": "point.json"}), "$defs": {
        "p": {"$id": "point.json", **properties(x={"$ref": "#/$defs/n"}), "$defs": {"n": {"type": "integer"}}}}},
    "root_with_null": {"type": ["object", "null"], "properties": {"a": {"type": "string"}}},
    "42_starts_with_a_digit": {"type": "object"},
    "a.very.long.name/with odd characters, and far more than sixty-four of them in all": {"type": "object"},
}
deep = {"type": "string"}
for _ in range(30):
    deep = {"type": "object", "properties": {"x": deep}, "required": ["x"]}
SCHEMAS["deep"] = deep

# Longer and shorter than what some APIs accept.
DESCRIPTIONS = {"long_text": "Opens what is closed. " * 200, "no_properties": ""}

TOOLS = [
    {"name": name, "description": DESCRIPTIONS.get(name, f"Hostile: {name}"), "inputSchema": schema,
     "outputSchema": {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}}
    for name, schema in SCHEMAS.items()
]


asyncio.run(serve("hostile", TOOLS, {"content": [{"type": "text", "text": "called"}]}))
