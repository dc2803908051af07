//! References inside a schema, all written as plain paths.
//!
//! A part of a schema may be named (`"$anchor": "point"`) and referred to by its name (`"$ref": "#point"`), and a path
//! may be percent-encoded. Few readers of schemas know either form, so both become `#/$defs/point`.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The keywords that refer to a part of the schema.
pub const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Rewrites references by name and percent-encoded paths, as far as they lead somewhere.
pub fn make_plain(schema: &mut Value) {
    let mut names = None;
    let root = schema.clone();
    rewrite(schema, &mut |target| {
        let fragment = target.strip_prefix('#')?;
        if fragment.is_empty() || (fragment.starts_with('/') && !fragment.contains('%')) {
            return None;
        }
        let fragment = percent_decoded(fragment);
        let path = match fragment.starts_with('/') {
            true => fragment,
            false => names.get_or_insert_with(|| named_parts(&root)).get(&fragment)?.clone(),
        };
        // A path that still has the sign would be decoded a second time.
        (!path.contains('%') && root.pointer(&path).is_some()).then(|| format!("#{path}"))
    });
}

/// Whether [`make_plain`] changes something.
pub fn are_plain(schema: &Value) -> bool {
    let mut are_plain = true;
    visit(schema, &mut |members| {
        are_plain &= REFERENCES.iter().filter_map(|word| members.get(*word)?.as_str()).all(|target| {
            target == "#" || !target.starts_with('#') || (target.starts_with("#/") && !target.contains('%'))
        });
    });
    are_plain
}

/// Replaces the targets of references for which there is another.
pub fn rewrite(schema: &mut Value, other: &mut impl FnMut(&str) -> Option<String>) {
    let Value::Object(members) = schema else { return };
    for word in REFERENCES {
        if let Some(Value::String(target)) = members.get_mut(word)
            && let Some(replaced) = other(target)
        {
            *target = replaced;
        }
    }
    for (keyword, member) in members.iter_mut() {
        match (place_of(keyword), member) {
            (Holds::Data, _) => {}
            (Holds::Names, Value::Object(all)) => all.values_mut().for_each(|part| rewrite(part, other)),
            (_, Value::Array(all)) => all.iter_mut().for_each(|part| rewrite(part, other)),
            (_, part) => rewrite(part, other),
        }
    }
}

/// Visits every schema object in a schema.
fn visit<'a>(schema: &'a Value, visitor: &mut impl FnMut(&'a Map<String, Value>)) {
    let Value::Object(members) = schema else { return };
    visitor(members);
    for (keyword, member) in members {
        match (place_of(keyword), member) {
            (Holds::Data, _) => {}
            (Holds::Names, Value::Object(all)) => all.values().for_each(|part| visit(part, visitor)),
            (_, Value::Array(all)) => all.iter().for_each(|part| visit(part, visitor)),
            (_, part) => visit(part, visitor),
        }
    }
}

/// What a keyword holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Values: nothing in them is a schema.
    Data,
    /// Schemas, by names that anybody may choose.
    Names,
    /// A schema, or a list of schemas.
    Schemas,
}

/// What a keyword holds; unknown keywords may hold schemas that something refers to.
pub fn place_of(keyword: &str) -> Holds {
    match keyword {
        "enum" | "const" | "default" | "examples" | "required" => Holds::Data,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependentRequired"
        | "dependencies" => Holds::Names,
        _ => Holds::Schemas,
    }
}

/// The paths of the parts that have a name.
fn named_parts(root: &Value) -> HashMap<String, String> {
    let mut names = HashMap::new();
    collect_names(root, "", &mut names);
    names
}

fn collect_names(schema: &Value, path: &str, names: &mut HashMap<String, String>) {
    let Value::Object(members) = schema else { return };
    let text = |keyword: &str| members.get(keyword).and_then(Value::as_str);
    // Up to draft 7 the identifier of a part could be a name.
    let earlier = ["$id", "id"].into_iter().filter_map(|keyword| text(keyword)?.strip_prefix('#'));
    for name in ["$anchor", "$dynamicAnchor"].into_iter().filter_map(text).chain(earlier) {
        names.entry(name.to_owned()).or_insert_with(|| path.to_owned());
    }
    for (keyword, member) in members {
        let path = format!("{path}/{}", escaped(keyword));
        match (place_of(keyword), member) {
            (Holds::Data, _) => {}
            (Holds::Names, Value::Object(all)) => {
                all.iter().for_each(|(name, part)| collect_names(part, &format!("{path}/{}", escaped(name)), names));
            }
            (_, Value::Array(all)) => {
                all.iter().enumerate().for_each(|(at, part)| collect_names(part, &format!("{path}/{at}"), names));
            }
            (_, part) => collect_names(part, &path, names),
        }
    }
}

/// A name as a step of a JSON pointer.
pub fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A fragment of an address as text; what is not valid stays as it is.
pub fn percent_decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| fragment.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_by_name_become_paths() {
        let mut schema = json!({
            "properties": {"a": {"$ref": "#point"}, "b": {"$dynamicRef": "#node"}, "c": {"$ref": "#old"},
                "d": {"$ref": "#/$defs/a%20b"}, "e": {"$ref": "#nowhere"}, "f": {"$ref": "#/$defs/p"},
                "$ref": {"const": {"$ref": "#point"}}},
            "$defs": {"p": {"$anchor": "point"}, "n/m": {"$dynamicAnchor": "node"}, "o": {"$id": "#old"}, "a b": {}},
        });
        assert!(!are_plain(&schema));
        make_plain(&mut schema);
        let properties = &schema["properties"];
        let target = |name: &str, word: &str| properties[name][word].as_str().unwrap().to_owned();
        assert_eq!(
            [target("a", "$ref"), target("b", "$dynamicRef"), target("c", "$ref"), target("d", "$ref")],
            ["#/$defs/p", "#/$defs/n~1m", "#/$defs/o", "#/$defs/a b"]
        );
        assert_eq!([target("e", "$ref"), target("f", "$ref")], ["#nowhere", "#/$defs/p"]);
        assert_eq!(properties["$ref"]["const"]["$ref"], "#point", "a value is not a schema");
    }

    #[test]
    fn plain_references_stay() {
        let schema = json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "https://example.org/#x"}}});
        assert!(are_plain(&schema));
    }
}
