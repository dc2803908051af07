//! Rewrites a schema, part by part.

use serde_json::{Map, Value, json};

use super::branch::Level;
use super::check::{ARRAY_BOUNDS, KEPT, is_portable_name};
use super::kind::{concerns, is_of, kinds, values};
use super::sentences::{self, described, form, joined_texts, say};
use super::{Direction, Portable, Simplification};

/// Parts of the result. References that are written out multiply; beyond this the rest is written as text.
const MOST_PARTS: usize = 2_000;
/// Models lose their way in deeper arguments, and some APIs refuse them.
const DEEPEST: usize = 10;
const MOST_BRANCHES: usize = 8;
const MOST_SIMPLIFIED: usize = 50;

pub(super) struct Rewriter<'a> {
    root: &'a Value,
    direction: Direction,
    parts: usize,
    simplified: Vec<Simplification>,
}

/// Where the rewriter is.
struct SchemaPath<'a> {
    path: &'a str,
    depth: usize,
    trail: &'a [String],
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(root: &'a Value, direction: Direction) -> Rewriter<'a> {
        Rewriter { root, direction, parts: 0, simplified: Vec::new() }
    }

    pub(super) fn root(mut self) -> Portable {
        let level = Level::read(self.root, self.root, &["#".to_owned()]);
        let (level, mut notes) = self.fold_alternatives(level);
        notes.extend(level.notes.iter().cloned());
        let place = SchemaPath { path: "", depth: 0, trail: &level.trail };
        let (mut schema, more) = self.object(&level, &place);
        notes.extend(more);
        notes.extend(self.keywords_as_text(&level, "object", &place));
        for text in ["title", "description"] {
            if let Some(text_member @ Value::String(_)) = level.members.get(text) {
                schema.insert(text.to_owned(), text_member.clone());
            }
        }
        if self.direction == Direction::Output {
            notes.clear();
        }
        Portable { schema: Value::Object(schema), notes, simplified: self.simplified }
    }

    /// Alternatives at the root become properties of one object, and the rule is written as text.
    fn fold_alternatives(&mut self, level: Level) -> (Level, Vec<String>) {
        let mut folded = level;
        let mut sentences = Vec::new();
        for keyword in ["anyOf", "oneOf"] {
            let Some(Value::Array(branches)) = folded.members.shift_remove(keyword) else { continue };
            self.note("", "alternatives at the root");
            let levels: Vec<Level> = branches.iter().map(|branch| folded.with(self.root, branch)).collect();
            let levels: Vec<Level> = levels.into_iter().filter(|level| !level.is_impossible).collect();
            let forms: Vec<String> = levels.iter().map(form).collect();
            if levels.is_empty() {
                continue;
            }
            if levels.len() > 1 {
                let which = if keyword == "oneOf" { "Exactly one" } else { "At least one" };
                sentences.push(format!("{which} of these forms: {}.", forms.join("; ")));
            }
            folded = self.union(&folded, &levels);
        }
        (folded, sentences)
    }

    fn union(&self, base: &Level, levels: &[Level]) -> Level {
        let mut union = base.clone();
        let properties = |level: &Level| level.members.get("properties").and_then(Value::as_object).cloned();
        let all: Vec<Map<String, Value>> = levels.iter().map(|level| properties(level).unwrap_or_default()).collect();
        let mut merged = Map::new();
        for name in all.iter().flat_map(|one| one.keys()) {
            if merged.contains_key(name) {
                continue;
            }
            let mut variants: Vec<&Value> = all.iter().filter_map(|one| one.get(name)).collect();
            let is_everywhere = variants.len() == all.len();
            variants.dedup();
            let schema = match (variants.as_slice(), self.direction) {
                // Where one form leaves a member open, a result may hold anything there.
                (_, Direction::Output) if !is_everywhere => json!({}),
                ([one], _) => (*one).clone(),
                (several, _) => json!({"anyOf": several}),
            };
            merged.insert(name.clone(), schema);
        }
        let required = |level: &Level| -> Vec<Value> {
            level.members.get("required").and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let first = levels.first().map(&required).unwrap_or_default();
        let common: Vec<Value> =
            first.into_iter().filter(|name| levels.iter().all(|level| required(level).contains(name))).collect();
        union.members.insert("properties".to_owned(), Value::Object(merged));
        union.members.insert("required".to_owned(), Value::Array(common));
        union
    }

    /// One part, or `None` where nothing fits it.
    fn schema(&mut self, schema: &Value, place: &SchemaPath<'_>) -> Option<Value> {
        self.parts += 1;
        let level = Level::read(self.root, schema, place.trail);
        if level.is_impossible {
            return match self.direction {
                Direction::Input => None,
                Direction::Output => Some(json!({})),
            };
        }
        if level.is_circle || self.parts > MOST_PARTS || place.depth > DEEPEST {
            self.note(place.path, "nested too deep");
            return Some(self.cut(&level));
        }
        Some(self.level(&level, &SchemaPath { trail: &level.trail, ..*place }))
    }

    /// What stands where a schema goes on in a circle, or too deep.
    fn cut(&self, level: &Level) -> Value {
        if self.direction == Direction::Output {
            return described(Map::new(), level, &[]);
        }
        let is_simple = |kind: &&str| ["string", "integer", "number", "boolean", "array"].contains(kind);
        let kind = level.members.get("type").and_then(Value::as_str).filter(is_simple).unwrap_or("object");
        let mut members = Map::new();
        members.insert("type".to_owned(), json!(kind));
        match kind {
            "object" => members.insert("properties".to_owned(), json!({})),
            "array" => members.insert("items".to_owned(), json!({"type": "string"})),
            _ => None,
        };
        described(members, level, &["Nested in the same way as its parent.".to_owned()])
    }

    fn level(&mut self, level: &Level, place: &SchemaPath<'_>) -> Value {
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = level.members.get(keyword) {
                return self.alternatives(level, keyword, branches, place);
            }
        }
        let mut kinds = kinds(level, self.direction);
        if kinds.contains(&"null") {
            self.note(place.path, "null");
            if self.direction == Direction::Output {
                return described(Map::new(), level, &[]);
            }
            kinds.retain(|kind| *kind != "null");
        }
        match kinds.as_slice() {
            [] => {
                if self.direction == Direction::Input {
                    self.note(place.path, "any value");
                }
                self.anything(level)
            }
            [kind] => self.typed(level, kind, place),
            several => {
                let branches: Vec<Value> = several.iter().map(|kind| self.typed(level, kind, place)).collect();
                self.note(place.path, "several types");
                json!({"anyOf": branches})
            }
        }
    }

    fn anything(&self, level: &Level) -> Value {
        match self.direction {
            Direction::Output => described(Map::new(), level, &[]),
            Direction::Input => {
                let members = Map::from_iter([("type".to_owned(), json!("string"))]);
                described(members, level, &["Any JSON value.".to_owned()])
            }
        }
    }

    fn alternatives(&mut self, level: &Level, keyword: &str, branches: &[Value], place: &SchemaPath<'_>) -> Value {
        let mut levels: Vec<Level> = branches.iter().map(|branch| level.with(self.root, branch)).collect();
        if keyword == "anyOf" && level.members.contains_key("oneOf") {
            // Both cannot be expressed together; the other one is written as text.
            let other = sentences::value(&level.members["oneOf"]);
            levels.iter_mut().for_each(|level| level.notes.push(format!("And exactly one of: {other}.")));
        }
        levels.retain(|level| !level.is_impossible);
        let before = levels.len();
        levels.retain(|level| kinds(level, Direction::Input) != ["null"]);
        if self.direction == Direction::Output && (levels.len() < before || levels.len() > MOST_BRANCHES) {
            self.note(place.path, "null");
            return described(Map::new(), level, &[]);
        }
        levels.truncate(MOST_BRANCHES);
        let mut parts: Vec<Value> = Vec::new();
        for one in &levels {
            self.parts += 1;
            let part = match one.is_circle || self.parts > MOST_PARTS || place.depth > DEEPEST {
                true => self.cut(one),
                false => self.level(one, &SchemaPath { path: place.path, depth: place.depth + 1, trail: &one.trail }),
            };
            match part.get("anyOf").and_then(Value::as_array) {
                Some(inner) => parts.extend(inner.iter().cloned()),
                None => parts.push(part),
            }
        }
        // A result that one form leaves open is open.
        if self.direction == Direction::Output && parts.iter().any(|part| part.get("type").is_none()) {
            return described(Map::new(), level, &[]);
        }
        parts.dedup();
        match parts.len() {
            0 => self.anything(level),
            1 => parts.swap_remove(0),
            _ => joined_texts(&parts).unwrap_or_else(|| {
                if keyword == "oneOf" {
                    self.note(place.path, keyword);
                }
                if keyword == "oneOf" && self.direction == Direction::Input {
                    parts.iter_mut().for_each(|part| say(part, "Exactly one of the forms must fit."));
                }
                json!({"anyOf": parts})
            }),
        }
    }

    fn typed(&mut self, level: &Level, kind: &str, place: &SchemaPath<'_>) -> Value {
        let (mut members, mut sentences) = match kind {
            "object" => self.object(level, place),
            "array" => self.array(level, place),
            "string" => self.text(level, place),
            other => self.number_or_boolean(level, other),
        };
        if let Some(values) = values(level).filter(|_| kind != "string") {
            let fitting: Vec<Value> = values.into_iter().filter(|value| is_of(value, kind)).collect();
            sentences.push(format!("One of: {}.", sentences::values(&fitting)));
            self.note(place.path, "enum of other things than texts");
        }
        if let Some(default) = level.members.get("default").filter(|_| self.direction == Direction::Input) {
            match is_of(default, kind) {
                true => {
                    members.insert("default".to_owned(), default.clone());
                }
                false if default.is_null() => {}
                false => sentences.push(format!("Default: {}.", sentences::value(default))),
            }
        }
        if let Some(header @ Value::String(_)) = level.members.get("x-mcp-header") {
            members.insert("x-mcp-header".to_owned(), header.clone());
        }
        sentences.extend(level.notes.iter().cloned());
        sentences.extend(self.keywords_as_text(level, kind, place));
        if self.direction == Direction::Output {
            sentences.clear();
        }
        described(members, level, &sentences)
    }

    fn object(&mut self, level: &Level, place: &SchemaPath<'_>) -> (Map<String, Value>, Vec<String>) {
        let required = level.members.get("required").and_then(Value::as_array);
        let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
        let mut properties = Map::new();
        let mut sentences = Vec::new();
        for (name, schema) in level.members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let path = format!("{}/properties/{}", place.path, name.replace('~', "~0").replace('/', "~1"));
            if !is_portable_name(name) {
                self.note(&path, "name");
                let verb = if required.contains(&name.as_str()) { "Needs" } else { "May have" };
                sentences.push(format!(
                    "{verb} a member {}: {}.",
                    sentences::value(&json!(name)),
                    sentences::value(schema)
                ));
                continue;
            }
            let inner = SchemaPath { path: &path, depth: place.depth + 1, trail: place.trail };
            match self.schema(schema, &inner) {
                Some(schema) => {
                    properties.insert(name.clone(), schema);
                }
                None => {
                    self.note(&path, "false");
                    sentences.push(format!("Never with {}.", sentences::names([name.as_str()])));
                }
            }
        }
        // What is required must be possible to give.
        for name in &required {
            if self.direction == Direction::Input && is_portable_name(name) && !properties.contains_key(*name) {
                properties.insert((*name).to_owned(), self.anything(&Level::default()));
            }
        }
        let required: Vec<&str> = required.into_iter().filter(|name| properties.contains_key(*name)).collect();
        let mut members = Map::new();
        members.insert("type".to_owned(), json!("object"));
        members.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            members.insert("required".to_owned(), json!(required));
        }
        (members, sentences)
    }

    fn array(&mut self, level: &Level, place: &SchemaPath<'_>) -> (Map<String, Value>, Vec<String>) {
        let mut sentences = Vec::new();
        let path = format!("{}/items", place.path);
        let inner = SchemaPath { path: &path, depth: place.depth + 1, trail: place.trail };
        let items = match level.members.get("items") {
            Some(Value::Array(tuple)) => {
                sentences.extend(sentences::keyword("prefixItems", &Value::Array(tuple.clone())));
                None
            }
            // Beside `prefixItems` it applies to the later items only.
            Some(_) if level.members.contains_key("prefixItems") => None,
            Some(items) => self.schema(items, &inner),
            None => {
                if self.direction == Direction::Input && !level.members.contains_key("prefixItems") {
                    self.note(place.path, "no items");
                }
                None
            }
        };
        let items = items.unwrap_or_else(|| self.anything(&Level::default()));
        let mut members = Map::new();
        members.insert("type".to_owned(), json!("array"));
        members.insert("items".to_owned(), items);
        for bound in ARRAY_BOUNDS {
            members.extend(
                level.members.get(bound).filter(|value| value.is_u64()).map(|value| (bound.to_owned(), value.clone())),
            );
        }
        (members, sentences)
    }

    fn text(&mut self, level: &Level, place: &SchemaPath<'_>) -> (Map<String, Value>, Vec<String>) {
        let mut members = Map::new();
        let mut sentences = Vec::new();
        members.insert("type".to_owned(), json!("string"));
        if let Some(values) = values(level) {
            let (mut texts, others): (Vec<Value>, Vec<Value>) =
                values.into_iter().partition(|value| value.as_str().is_some_and(|text| !text.is_empty()));
            let others: Vec<Value> = others.into_iter().filter(|value| value.is_string()).collect();
            let mut seen = std::collections::HashSet::new();
            texts.retain(|text| seen.insert(text.clone()));
            match (texts.is_empty(), self.direction) {
                (true, _) => sentences.push(format!("One of: {}.", sentences::values(&others))),
                (false, Direction::Output) if !others.is_empty() => {}
                (false, _) => {
                    members.insert("enum".to_owned(), Value::Array(texts));
                }
            }
            if !others.is_empty() {
                self.note(place.path, "enum with an empty text");
            }
        }
        for bound in ["minLength", "maxLength"] {
            members.extend(
                level.members.get(bound).filter(|value| value.is_u64()).map(|value| (bound.to_owned(), value.clone())),
            );
        }
        (members, sentences)
    }

    fn number_or_boolean(&self, level: &Level, kind: &str) -> (Map<String, Value>, Vec<String>) {
        let mut members = Map::new();
        members.insert("type".to_owned(), json!(kind));
        let bounds = ["minimum", "maximum"].into_iter().filter(|_| kind != "boolean");
        members.extend(bounds.filter_map(|bound| {
            let limit = level.members.get(bound).filter(|limit| limit.is_number())?;
            Some((bound.to_owned(), limit.clone()))
        }));
        (members, Vec::new())
    }

    /// Keywords that are not kept and mean something for this kind of value, as text.
    fn keywords_as_text(&mut self, level: &Level, kind: &str, place: &SchemaPath<'_>) -> Vec<String> {
        let mut sentences = Vec::new();
        for (keyword, member) in &level.members {
            let is_kept = KEPT.contains(&keyword.as_str()) || ARRAY_BOUNDS.contains(&keyword.as_str());
            // References into them are written out, so nothing is missing.
            let is_kept = is_kept || matches!(keyword.as_str(), "$defs" | "definitions");
            if is_kept || !concerns(keyword, kind) {
                continue;
            }
            self.note(place.path, keyword);
            sentences.extend(sentences::keyword(keyword, member));
        }
        sentences
    }

    fn note(&mut self, path: &str, what: &str) {
        if self.simplified.len() < MOST_SIMPLIFIED {
            self.simplified.push(Simplification { path: path.to_owned(), what: what.to_owned() });
        }
    }
}
