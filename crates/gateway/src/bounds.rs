//! How large a schema is, and how much work: a device must not make the gateway run in circles.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// A schema larger than this is not passed on; the largest seen on real devices has 6 KiB.
const MAX_SIZE: usize = 64 << 10;
const MAX_DEPTH: usize = 32;
/// Schemas visited to judge one value, references followed. A schema of 64 KiB has some 3,000; only
/// references that multiply each other come near this.
const MAX_WORK: u64 = 20_000;
/// The longest way through references, each a few frames on the stack.
const MAX_WAY: usize = 128;

/// Says what is wrong with a schema that is too large or too deep.
pub(crate) fn size(schema: &Value) -> Result<(), String> {
    measure(schema, 0, &mut MAX_SIZE.clone())
}

/// Says what is wrong with a schema that is too much work to check values against.
pub(crate) fn work(schema: &Value) -> Result<(), String> {
    let mut walk = Walk { root: schema, known: HashMap::new(), open: HashSet::new() };
    match walk.work(schema, 0)? {
        0..=MAX_WORK => Ok(()),
        _ => Err("takes too much work to check".to_owned()),
    }
}

/// A reference within the same document, in the one form that is followed: `#` or `#/a/b`.
pub(crate) fn is_local(reference: &Value) -> bool {
    reference.as_str().is_some_and(|text| text == "#" || (text.starts_with("#/") && !text.contains('%')))
}

fn measure(value: &Value, depth: usize, room: &mut usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("nests deeper than {MAX_DEPTH} levels"));
    }
    let size = match value {
        Value::String(text) => text.len() + 3,
        Value::Object(members) => 2 + members.keys().map(|key| key.len() + 4).sum::<usize>(),
        _ => 3,
    };
    *room = room.checked_sub(size).ok_or_else(|| format!("is larger than {} KiB", MAX_SIZE >> 10))?;
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| measure(item, depth + 1, room)),
        Value::Object(members) => members.values().try_for_each(|member| measure(member, depth + 1, room)),
        _ => Ok(()),
    }
}

struct Walk<'a> {
    root: &'a Value,
    known: HashMap<*const Value, u64>,
    /// Schemas that are being applied to one and the same value: coming back to one would never end.
    open: HashSet<*const Value>,
}

impl<'a> Walk<'a> {
    fn work(&mut self, schema: &'a Value, way: usize) -> Result<u64, String> {
        if let Some(work) = self.known.get(&std::ptr::from_ref(schema)) {
            return Ok(*work);
        }
        let Value::Object(members) = schema else { return Ok(1) };
        if way > MAX_WAY {
            return Err(format!("takes more than {MAX_WAY} steps from one reference to the next"));
        }
        if !self.open.insert(schema) {
            return Err("refers to itself without end".to_owned());
        }
        let mut total = 1u64;
        for (word, member) in members {
            for part in self.parts(word, member, &SAME_VALUE) {
                total = total.saturating_add(self.work(part, way + 1)?);
            }
        }
        self.open.remove(&std::ptr::from_ref(schema));
        // From here on the value gets smaller with each step, so that a schema may well come back.
        self.known.insert(schema, 1);
        let open = std::mem::take(&mut self.open);
        for (word, member) in members {
            for part in self.parts(word, member, &PART_OF_VALUE) {
                total = total.saturating_add(self.work(part, way + 1)?);
            }
        }
        self.open = open;
        self.known.insert(schema, total);
        Ok(total)
    }

    fn parts(&self, word: &str, member: &'a Value, words: &Words) -> Vec<&'a Value> {
        if words.one_or_more.contains(&word) {
            return match member {
                Value::Array(schemas) => schemas.iter().collect(),
                schema => vec![schema],
            };
        }
        if words.named.contains(&word) {
            return member.as_object().into_iter().flat_map(|schemas| schemas.values()).collect();
        }
        if words.references.contains(&word)
            && let Some(text) = member.as_str().and_then(|text| text.strip_prefix('#'))
        {
            return self.root.pointer(text).into_iter().collect();
        }
        Vec::new()
    }
}

/// The keywords that hold schemas.
struct Words {
    one_or_more: &'static [&'static str],
    named: &'static [&'static str],
    references: &'static [&'static str],
}

const SAME_VALUE: Words = Words {
    one_or_more: &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"],
    named: &["dependentSchemas", "dependencies"],
    references: &["$ref", "$dynamicRef", "$recursiveRef"],
};

const PART_OF_VALUE: Words = Words {
    one_or_more: &[
        "items",
        "prefixItems",
        "additionalItems",
        "contains",
        "propertyNames",
        "additionalProperties",
        "unevaluatedItems",
        "unevaluatedProperties",
    ],
    named: &["properties", "patternProperties"],
    references: &[],
};

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn honest_schemas_pass_also_those_of_trees() {
        let tree = json!({
            "type": "object",
            "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": {"$ref": "#/$defs/value"}},
            "$defs": {"value": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/value"}}]}},
        });
        assert_eq!(work(&tree), Ok(()));
    }

    #[test]
    fn a_schema_that_comes_back_to_itself_on_the_same_value_is_refused() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"anyOf": [{"$ref": "#"}]}]}),
            json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        ] {
            assert_eq!(work(&schema), Err("refers to itself without end".to_owned()), "{schema}");
        }
    }

    #[test]
    fn references_that_multiply_each_other_are_refused() {
        let mut defs = Map::new();
        for level in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            defs.insert(format!("d{level}"), json!({"anyOf": [next, next]}));
        }
        defs.insert("d30".to_owned(), json!({"type": "string"}));
        let bomb = json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs});
        assert_eq!(work(&bomb), Err("takes too much work to check".to_owned()));
    }

    #[test]
    fn a_long_chain_of_references_is_refused() {
        let defs: Map<String, Value> =
            (0..1_000).map(|n| (format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}))).collect();
        assert!(work(&json!({"$ref": "#/$defs/d0", "$defs": defs})).is_err());
    }

    #[test]
    fn size_and_depth_have_bounds() {
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"items": deep});
        }
        assert!(size(&deep).is_err());
        let wide: Map<String, Value> = (0..10_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        assert!(size(&json!({"properties": wide})).is_err());
    }
}
