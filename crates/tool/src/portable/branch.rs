//! References followed, `allOf` merged: one level of a schema as plain keywords.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::sentences;
use crate::references::{REFERENCES, percent_decoded};

/// One level of a schema, with its references and `allOf` folded in.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    pub members: Map<String, Value>,
    /// Rules that cannot be folded in.
    pub told: Vec<ToldRule>,
    pub rests: Vec<RestOfMembers>,
    /// The references that were followed to get here, so that a circle is noticed.
    pub trail: Vec<String>,
    /// How many of them were followed on the levels above.
    above: usize,
    /// The reference that led back to a level above.
    pub circle: Option<String>,
    /// It is made of so many parts inside each other that not all were read.
    pub is_too_deep: bool,
    /// It says `false`: nothing fits.
    pub is_impossible: bool,
}

/// A rule that is written as text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToldRule {
    pub keyword: String,
    pub sentence: String,
}

/// The rule of one part of a schema for members that this part does not name: its `additionalProperties`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RestOfMembers {
    pub names: Vec<String>,
    pub patterns: Vec<String>,
    pub rule: Value,
}

impl RestOfMembers {
    /// Whether members that the part does not name are refused.
    pub(super) fn is_closed(&self) -> bool {
        self.rule == Value::Bool(false)
    }
}

/// `allOf` inside `allOf`, and a reference to a reference.
const DEEPEST: usize = 16;

impl Level {
    pub(super) fn read(root: &Value, schema: &Value, trail: &[String]) -> Level {
        let mut level = Level { trail: trail.to_vec(), above: trail.len(), ..Level::default() };
        level.take(root, schema, DEEPEST);
        level
    }

    fn take(&mut self, root: &Value, schema: &Value, depth: usize) {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(false) => {
                self.is_impossible = true;
                return;
            }
            _ => return,
        };
        if depth == 0 {
            self.is_too_deep = true;
            return;
        }
        let has_tuple = members.contains_key("prefixItems") || members.get("items").is_some_and(Value::is_array);
        for (keyword, member) in members {
            match keyword.as_str() {
                keyword if REFERENCES.contains(&keyword) => self.follow(root, member, depth),
                "allOf" => member.as_array().into_iter().flatten().for_each(|part| self.take(root, part, depth - 1)),
                "if" => self.tell("if", sentences::condition(root, members)),
                "contains" => self.tell("contains", sentences::contained(root, members)),
                // Said with the keyword they belong to.
                "then" | "else" | "minContains" | "maxContains" => {}
                "prefixItems" | "items" if has_tuple => {
                    self.tell("prefixItems", sentences::tuple(root, members));
                    if member.is_array() {
                        self.put(root, "prefixItems", member);
                    }
                }
                "additionalItems" => {}
                "additionalProperties" if *member != Value::Bool(true) => self.rests.push(rest(members, member)),
                "additionalProperties" => {}
                "uniqueItems" if *member != Value::Bool(true) => {}
                // It holds for members that nothing else describes, and there are none.
                "unevaluatedProperties" if describes_all_members(root, members, depth) => {}
                "unevaluatedProperties" if may_describe_more(root, members, depth) => {
                    self.tell("unevaluatedProperties", sentences::undescribed(root, member));
                }
                // Draft 04: whether the limit beside it is one.
                "exclusiveMinimum" | "exclusiveMaximum" if member.is_boolean() => {
                    let limit = members.get(if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" });
                    if let Some(limit) = limit.filter(|_| *member == Value::Bool(true)) {
                        self.put(root, keyword, limit);
                    }
                }
                "const" => self.put(root, "enum", &json!([member])),
                _ => self.put(root, keyword, member),
            }
        }
    }

    fn follow(&mut self, root: &Value, target: &Value, depth: usize) {
        let Some(target) = target.as_str() else { return };
        match self.trail.iter().position(|seen| seen == target) {
            Some(at) if at < self.above => {
                self.circle = Some(target.to_owned());
                return;
            }
            // It holds already.
            Some(_) => return,
            None => {}
        }
        let Some(schema) = find(root, target) else {
            self.tell("$ref", Some(sentences::ELSEWHERE.to_owned()));
            return;
        };
        self.trail.push(target.to_owned());
        self.take(root, schema, depth - 1);
    }

    fn tell(&mut self, keyword: &str, sentence: Option<String>) {
        let told = sentence.map(|sentence| ToldRule { keyword: keyword.to_owned(), sentence });
        self.told.extend(told.filter(|told| !self.told.contains(told)));
    }

    /// Adds a keyword to those that are there; both hold.
    fn put(&mut self, root: &Value, keyword: &str, member: &Value) {
        let Some(known) = self.members.get_mut(keyword) else {
            self.members.insert(keyword.to_owned(), member.clone());
            return;
        };
        if known == member {
            return;
        }
        match keyword {
            "description" if member.as_str().is_some_and(|text| text.ends_with(sentences::ELSEWHERE)) => {
                self.tell("$ref", Some(sentences::ELSEWHERE.to_owned()));
            }
            "title" | "description" | "default" | "examples" | "$defs" | "definitions" | "prefixItems" => {}
            "properties" => {
                let (Value::Object(known), Value::Object(new)) = (known, member) else { return };
                for (name, schema) in new {
                    both(known.entry(name.clone()).or_insert(Value::Null), schema);
                }
            }
            "items" => both(known, member),
            "required" => {
                let (Value::Array(known), Value::Array(new)) = (known, member) else { return };
                let missing: Vec<Value> = new.iter().filter(|name| !known.contains(name)).cloned().collect();
                known.extend(missing);
            }
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
                limit(known, member, |known, new| new > known);
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
                limit(known, member, |known, new| new < known);
            }
            "type" => match common_types(known, member) {
                Some(common) => *known = common,
                None => self.is_impossible = true,
            },
            "enum" => {
                let (Value::Array(known), Value::Array(new)) = (known, member) else { return };
                known.retain(|value| new.contains(value));
                self.is_impossible |= known.is_empty();
            }
            _ => self.tell(keyword, sentences::keyword(root, keyword, member)),
        }
    }

    /// What the alternatives of this level have in common.
    pub(super) fn common(&self) -> Level {
        let is_common = |keyword: &String| !["anyOf", "oneOf"].contains(&keyword.as_str());
        let members = self.members.iter().filter(|(keyword, _)| is_common(keyword));
        let members = members.map(|(keyword, member)| (keyword.clone(), member.clone())).collect();
        let (told, rests, trail) = (self.told.clone(), self.rests.clone(), self.trail.clone());
        Level { members, told, rests, trail, circle: self.circle.clone(), ..*self }
    }

    /// This level, without alternatives, and one of them.
    pub(super) fn with(&self, root: &Value, branch: &Value) -> Level {
        let mut level = self.clone();
        level.above = level.trail.len();
        let own = level.members.shift_remove("description");
        level.take(root, branch, DEEPEST);
        let description = match (own, level.members.shift_remove("description")) {
            (Some(Value::String(own)), Some(Value::String(of_branch))) if own != of_branch => {
                Some(json!(format!("{} {of_branch}", own.trim_end())))
            }
            (own, of_branch) => own.or(of_branch),
        };
        level.members.extend(description.map(|text| ("description".to_owned(), text)));
        level
    }

    /// How many parts are copied with it.
    pub(super) fn weight(&self) -> usize {
        let members: usize = self.members.values().map(weight).sum();
        let told: usize = self.told.iter().map(|told| 1 + told.sentence.len() / 16).sum();
        let of_rest = |rest: &RestOfMembers| rest.names.len() + rest.patterns.len() + weight(&rest.rule);
        members + told + self.rests.iter().map(of_rest).sum::<usize>()
    }

    pub(super) fn property_map(&self) -> Option<&Map<String, Value>> {
        self.members.get("properties").and_then(Value::as_object)
    }

    pub(super) fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.property_map().into_iter().flatten()
    }

    /// The names of its members.
    pub(super) fn property_names(&self) -> Vec<String> {
        keys(self.members.get("properties"))
    }

    pub(super) fn required(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        let names = self.members.get("required").and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).filter(|name| seen.insert(*name)).collect()
    }
}

fn weight(value: &Value) -> usize {
    match value {
        Value::Array(all) => 1 + all.iter().map(weight).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(weight).sum::<usize>(),
        _ => 1,
    }
}

/// Whether a part, or one that it is made of, says something about members of every name.
fn describes_all_members(root: &Value, part: &Map<String, Value>, depth: usize) -> bool {
    let is_within = |part: &Map<String, Value>| {
        part.contains_key("unevaluatedProperties") || describes_all_members(root, part, depth - 1)
    };
    part.contains_key("additionalProperties") || (depth > 1 && made_of(root, part).any(is_within))
}

/// Whether a part has others that hold for some values only, each of which may describe members.
fn may_describe_more(root: &Value, part: &Map<String, Value>, depth: usize) -> bool {
    ["anyOf", "oneOf", "if", "dependentSchemas"].iter().any(|keyword| part.contains_key(*keyword))
        || (depth > 1 && made_of(root, part).any(|part| may_describe_more(root, part, depth - 1)))
}

/// The parts that hold wherever a part does.
fn made_of<'a>(root: &'a Value, part: &'a Map<String, Value>) -> impl Iterator<Item = &'a Map<String, Value>> {
    let referred = REFERENCES.iter().filter_map(|word| find(root, part.get(*word)?.as_str()?));
    let parts = part.get("allOf").and_then(Value::as_array).into_iter().flatten();
    referred.chain(parts).filter_map(Value::as_object)
}

fn rest(part: &Map<String, Value>, rule: &Value) -> RestOfMembers {
    RestOfMembers {
        names: keys(part.get("properties")),
        patterns: keys(part.get("patternProperties")),
        rule: rule.clone(),
    }
}

pub(super) fn keys(object: Option<&Value>) -> Vec<String> {
    object.and_then(Value::as_object).into_iter().flat_map(|members| members.keys().cloned()).collect()
}

fn both(known: &mut Value, new: &Value) {
    if known.is_null() {
        *known = new.clone();
    } else if known != new {
        *known = json!({"allOf": [known.take(), new]});
    }
}

fn limit(known: &mut Value, new: &Value, is_tighter: impl Fn(f64, f64) -> bool) {
    if let (Some(before), Some(after)) = (known.as_f64(), new.as_f64())
        && is_tighter(before, after)
    {
        *known = new.clone();
    }
}

/// The types that both allow; `None` where they have none in common.
fn common_types(one: &Value, two: &Value) -> Option<Value> {
    let list = |value: &Value| match value {
        Value::Array(all) => all.clone(),
        other => vec![other.clone()],
    };
    let (one, two) = (list(one), list(two));
    let has = |all: &[Value], kind: &Value| all.contains(kind) || (kind == "integer" && all.contains(&json!("number")));
    let mut common: Vec<Value> = one.iter().filter(|kind| has(&two, kind)).cloned().collect();
    common.extend(two.iter().filter(|kind| has(&one, kind) && !one.contains(kind)).cloned());
    (!common.is_empty()).then(|| json!(common))
}

/// The part of the document that a local reference names.
pub(super) fn find<'a>(root: &'a Value, target: &str) -> Option<&'a Value> {
    let pointer = target.strip_prefix('#')?;
    root.pointer(&percent_decoded(pointer))
}
