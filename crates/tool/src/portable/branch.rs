//! References followed, `allOf` merged: one level of a schema as plain keywords.

use serde_json::{Map, Value, json};

use super::sentences;

/// One level of a schema, with its references and `allOf` folded in.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    pub members: Map<String, Value>,
    /// What could not be folded in.
    pub notes: Vec<String>,
    /// The references that were followed to get here, so that a circle is noticed.
    pub trail: Vec<String>,
    /// A reference led back to where it came from.
    pub is_circle: bool,
    /// It says `false`: nothing fits.
    pub is_impossible: bool,
}

/// `allOf` inside `allOf`, and a reference to a reference.
const DEEPEST: usize = 16;

impl Level {
    pub(super) fn read(root: &Value, schema: &Value, trail: &[String]) -> Level {
        let mut level = Level { trail: trail.to_vec(), ..Level::default() };
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
            self.is_circle = true;
            return;
        }
        for (keyword, member) in members {
            match keyword.as_str() {
                "$ref" => self.follow(root, member, depth),
                "allOf" => member.as_array().into_iter().flatten().for_each(|part| self.take(root, part, depth - 1)),
                _ => self.put(keyword, member),
            }
        }
    }

    fn follow(&mut self, root: &Value, target: &Value, depth: usize) {
        let Some(target) = target.as_str() else { return };
        if self.trail.iter().any(|seen| seen == target) {
            self.is_circle = true;
            return;
        }
        let Some(schema) = find(root, target) else { return };
        self.trail.push(target.to_owned());
        self.take(root, schema, depth - 1);
    }

    /// Adds a keyword to those that are there; both hold.
    pub(super) fn put(&mut self, keyword: &str, member: &Value) {
        let Some(known) = self.members.get_mut(keyword) else {
            self.members.insert(keyword.to_owned(), member.clone());
            return;
        };
        if known == member {
            return;
        }
        match keyword {
            "title" | "description" | "default" | "examples" | "$defs" | "definitions" => {}
            "properties" => {
                let (Value::Object(known), Value::Object(new)) = (known, member) else { return };
                for (name, schema) in new {
                    both(known.entry(name.clone()).or_insert(Value::Null), schema);
                }
            }
            "items" if known.is_object() && member.is_object() => both(known, member),
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
            _ => self.notes.push(
                sentences::keyword(keyword, member)
                    .unwrap_or_else(|| format!("Also {keyword}: {}.", sentences::value(member))),
            ),
        }
    }

    /// This level and a branch of it.
    pub(super) fn with(&self, root: &Value, branch: &Value) -> Level {
        let mut level = self.clone();
        level.members.shift_remove("anyOf");
        level.members.shift_remove("oneOf");
        level.take(root, branch, DEEPEST);
        level
    }
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
fn find<'a>(root: &'a Value, target: &str) -> Option<&'a Value> {
    let pointer = target.strip_prefix('#')?;
    root.pointer(&percent_decoded(pointer))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
