//! References inside a schema, all written as plain paths.
//!
//! A part of a schema may be named (`"$anchor": "point"`) and referred to by its name (`"$ref": "#point"`), it may have
//! an address (`"$id": "point.json"`, `"$ref": "point.json"`), and a path may be percent-encoded. Few readers of schemas
//! know these forms, so all become `#/$defs/point`.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The keywords that refer to a part of the schema.
pub const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Rewrites references by name, by the address of a part (`$id`) and by percent-encoded paths, as far as they lead
/// somewhere.
pub fn make_plain(schema: &mut Value) {
    let root = schema.clone();
    let mut places = None;
    rewrite_within(schema, "", &mut |base, target| {
        if target == "#" && base.is_empty() {
            return None;
        }
        let path = places.get_or_insert_with(|| NamedPlaces::of(&root)).path(base, target)?;
        // A path that still has the sign would be decoded a second time.
        let is_usable = !path.contains('%') && root.pointer(&path).is_some();
        (is_usable && target.strip_prefix('#') != Some(&path)).then(|| format!("#{path}"))
    });
}

/// Whether [`make_plain`] has nothing to do, as far as a glance shows.
pub fn are_plain(schema: &Value) -> bool {
    let (mut are_plain, mut have_addresses, mut are_there) = (true, false, false);
    visit(schema, &mut |members| {
        have_addresses |= address_of(members).is_some();
        are_plain &= REFERENCES.iter().filter_map(|word| members.get(*word)?.as_str()).all(|target| {
            are_there = true;
            target == "#" || !target.starts_with('#') || (target.starts_with("#/") && !target.contains('%'))
        });
    });
    are_plain && !(have_addresses && are_there)
}

/// Replaces the targets of references for which there is another.
pub fn rewrite(schema: &mut Value, other: &mut impl FnMut(&str) -> Option<String>) {
    rewrite_within(schema, "", &mut |_, target| other(target));
}

/// The same with the address that the references of a part start from.
fn rewrite_within(schema: &mut Value, base: &str, other: &mut impl FnMut(&str, &str) -> Option<String>) {
    let Value::Object(members) = schema else { return };
    let own = address_of(members).map(|address| joined(base, address));
    let base = own.as_deref().unwrap_or(base);
    for word in REFERENCES {
        if let Some(Value::String(target)) = members.get_mut(word)
            && let Some(replaced) = other(base, target)
        {
            *target = replaced;
        }
    }
    for (keyword, member) in members.iter_mut() {
        match (place_of(keyword), member) {
            (Holds::Data, _) => {}
            (Holds::Names, Value::Object(all)) => all.values_mut().for_each(|part| rewrite_within(part, base, other)),
            (_, Value::Array(all)) => all.iter_mut().for_each(|part| rewrite_within(part, base, other)),
            (_, part) => rewrite_within(part, base, other),
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

/// The paths of the parts that have an address or a name.
#[derive(Default)]
struct NamedPlaces {
    by_address: HashMap<String, String>,
    by_name: HashMap<String, String>,
    /// Names are unique for one address only.
    by_address_and_name: HashMap<(String, String), String>,
}

impl NamedPlaces {
    fn of(root: &Value) -> NamedPlaces {
        let mut places = NamedPlaces::default();
        places.by_address.insert(String::new(), String::new());
        places.collect(root, "", "");
        places
    }

    /// Where a reference leads that stands below the address `base`.
    fn path(&self, base: &str, target: &str) -> Option<String> {
        let (address, fragment) = target.split_once('#').unwrap_or((target, ""));
        let address = if address.is_empty() { base.to_owned() } else { joined(base, address) };
        let fragment = percent_decoded(fragment);
        if fragment.is_empty() || fragment.starts_with('/') {
            return Some(format!("{}{fragment}", self.by_address.get(&address)?));
        }
        let is_here = self.by_address.contains_key(&address);
        let anywhere = || self.by_name.get(&fragment).filter(|_| is_here).cloned();
        self.by_address_and_name.get(&(address.clone(), fragment.clone())).cloned().or_else(anywhere)
    }

    fn collect(&mut self, schema: &Value, base: &str, path: &str) {
        let Value::Object(members) = schema else { return };
        let own = address_of(members).map(|address| joined(base, address));
        if let Some(address) = &own {
            self.by_address.entry(address.clone()).or_insert_with(|| path.to_owned());
        }
        let base = own.as_deref().unwrap_or(base);
        let text = |keyword: &str| members.get(keyword).and_then(Value::as_str);
        // Up to draft 7 the identifier of a part could be a name.
        let earlier = ["$id", "id"].into_iter().filter_map(|keyword| text(keyword)?.strip_prefix('#'));
        for name in ["$anchor", "$dynamicAnchor"].into_iter().filter_map(text).chain(earlier) {
            self.by_name.entry(name.to_owned()).or_insert_with(|| path.to_owned());
            self.by_address_and_name.entry((base.to_owned(), name.to_owned())).or_insert_with(|| path.to_owned());
        }
        for (keyword, member) in members {
            let path = format!("{path}/{}", escaped(keyword));
            match (place_of(keyword), member) {
                (Holds::Data, _) => {}
                (Holds::Names, Value::Object(all)) => {
                    all.iter().for_each(|(name, part)| self.collect(part, base, &format!("{path}/{}", escaped(name))));
                }
                (_, Value::Array(all)) => {
                    all.iter().enumerate().for_each(|(at, part)| self.collect(part, base, &format!("{path}/{at}")));
                }
                (_, part) => self.collect(part, base, &path),
            }
        }
    }
}

/// The address that a part of a schema gives itself.
fn address_of(members: &Map<String, Value>) -> Option<&str> {
    let address = ["$id", "id"].into_iter().find_map(|keyword| members.get(keyword)?.as_str())?;
    let address = address.split('#').next().unwrap_or_default();
    (!address.is_empty()).then_some(address)
}

/// An address that is written relative to another.
fn joined(base: &str, address: &str) -> String {
    let has_scheme = |text: &str| text.split(['/', '?']).next().is_some_and(|first| first.contains(':'));
    if has_scheme(address) {
        return address.to_owned();
    }
    let host =
        base.find("://").map(|at| at + 3).map(|start| base[start..].find('/').map_or(base.len(), |at| start + at));
    let (host, path) = base.split_at(host.unwrap_or(0));
    if let Some(rest) = address.strip_prefix("//") {
        return format!("{}//{rest}", base.split("//").next().unwrap_or_default());
    }
    let folder = match address.starts_with('/') {
        true => "",
        false => path.rsplit_once('/').map_or("", |(folder, _)| folder),
    };
    let mut steps: Vec<&str> = Vec::new();
    for step in folder.split('/').chain(address.split('/')).filter(|step| !step.is_empty() && *step != ".") {
        match step {
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    let is_absolute = !host.is_empty() || path.starts_with('/') || address.starts_with('/');
    format!("{host}{}{}", if is_absolute { "/" } else { "" }, steps.join("/"))
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
    fn references_by_address_become_paths() {
        for (base, address, expected) in [
            ("https://a.example/s/all.json", "point.json", "https://a.example/s/point.json"),
            ("https://a.example/s/all.json", "/point", "https://a.example/point"),
            ("https://a.example/s/all.json", "../p/./q", "https://a.example/p/q"),
            ("https://a.example", "p", "https://a.example/p"),
            ("https://a.example/s", "//b.example/p", "https://b.example/p"),
            ("https://a.example/s", "urn:p", "urn:p"),
            ("all.json", "p.json", "p.json"),
            ("", "p", "p"),
        ] {
            assert_eq!(joined(base, address), expected, "{base} {address}");
        }
        let mut schema = json!({
            "$id": "https://a.example/s/all.json",
            "properties": {
                "a": {"$ref": "point.json"}, "b": {"$ref": "/s/point.json#/$defs/x"}, "c": {"$ref": "point.json#top"},
                "d": {"$ref": "https://a.example/s/all.json#/$defs/p"}, "e": {"$ref": "https://b.example/else"},
                "f": {"$ref": "#/$defs/p"},
            },
            "$defs": {"p": {"$id": "point.json", "$anchor": "top", "properties": {"x": {"$ref": "#/$defs/x"}, "y": {"$ref": "#"}},
                "$defs": {"x": {"type": "integer"}}}},
        });
        assert!(!are_plain(&schema));
        make_plain(&mut schema);
        let targets = ["a", "b", "c", "d", "e", "f"].map(|name| schema["properties"][name]["$ref"].as_str().unwrap());
        let point = "#/$defs/p";
        assert_eq!(targets, [point, "#/$defs/p/$defs/x", point, point, "https://b.example/else", point]);
        let within = &schema["$defs"]["p"]["properties"];
        assert_eq!((&within["x"]["$ref"], &within["y"]["$ref"]), (&json!("#/$defs/p/$defs/x"), &json!(point)));
    }

    #[test]
    fn plain_references_stay() {
        let schema = json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "https://example.org/#x"}}});
        assert!(are_plain(&schema));
    }
}
