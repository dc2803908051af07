//! Objects, arrays, texts and numbers as they are listed.

use serde_json::{Map, Value, json};

use super::Direction;
use super::branch::{Level, RestOfMembers, keys};
use super::check::{ARRAY_BOUNDS, is_portable_name};
use super::kind::{Kinds, kinds, values};
use super::node::{Part, Rewriter, SchemaPath, Written};
use super::sentences;

/// Why a part is not written out.
pub(super) enum Cut {
    /// It has the form of a part above it: the path of that part, where it says which.
    Repeats(Option<String>),
    TooDeep,
    /// The whole schema has too many parts or too much text.
    TooMuch,
}

impl Cut {
    fn sentence(&self) -> String {
        match self {
            Cut::Repeats(Some(above)) => sentences::repeats(above),
            Cut::Repeats(None) => sentences::REPEATS_ANOTHER.to_owned(),
            Cut::TooDeep => sentences::DEEPER.to_owned(),
            Cut::TooMuch => sentences::LEFT_OUT.to_owned(),
        }
    }
}

/// The member of an object that takes members of any name.
const ANY_NAME: &str = "any_name";
/// The member of an object that takes none.
const UNUSED: &str = "unused";

impl Rewriter<'_> {
    pub(super) fn object(&mut self, level: &Level, place: &SchemaPath<'_>) -> Option<Written> {
        let required = level.required();
        let mut properties = Map::new();
        let mut sentences = Vec::new();
        let declared = level.members.get("properties").and_then(Value::as_object);
        let undeclared = required.iter().filter(|name| declared.is_none_or(|declared| !declared.contains_key(**name)));
        let undeclared: Vec<(String, Value)> =
            undeclared.map(|name| Some(((*name).to_owned(), undeclared_member(level)?))).collect::<Option<_>>()?;
        let undeclared = undeclared.iter().map(|(name, schema)| (name, schema));
        // A result may leave out what its schema does not describe.
        let is_input = self.direction == Direction::Input;
        let undeclared = undeclared.filter(|_| is_input);
        for (name, schema) in declared.into_iter().flatten().chain(undeclared) {
            if self.room.is_empty() {
                self.room.is_cut = true;
                sentences.push(sentences::LEFT_OUT.to_owned());
                break;
            }
            let is_needed = required.contains(&name.as_str());
            let path = format!("{}/properties/{}", place.path, name.replace('~', "~0").replace('/', "~1"));
            if !is_portable_name(name) {
                self.note(&path, "name");
                let verb = if is_needed { "Needs" } else { "May have" };
                let schema = sentences::schema(self.root, schema);
                sentences.push(format!("{verb} a member {}: {schema}.", json!(name)));
                continue;
            }
            let inner = SchemaPath { path: &path, depth: place.depth + 1, is_optional: !is_needed, ..*place };
            match self.schema(schema, &inner) {
                Part::Listed(schema) => {
                    properties.insert(name.clone(), schema);
                }
                Part::Null => {
                    self.note(&path, "null");
                    let rule = if is_needed { "must be null" } else { "is null or left out" };
                    sentences.push(format!("`{name}` {rule}."));
                }
                Part::Never if is_needed => return None,
                Part::Never => {
                    self.note(&path, "false");
                    sentences.push(format!("Never with `{name}`."));
                }
            }
        }
        let required: Vec<&str> = required.into_iter().filter(|name| properties.contains_key(*name)).collect();
        let mut members = Map::new();
        members.insert("type".to_owned(), json!("object"));
        if properties.is_empty() && place.depth > 0 && self.direction == Direction::Input {
            self.note(place.path, "no members");
            properties.extend(self.stand_in(level, place));
        }
        members.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            members.insert("required".to_owned(), json!(required));
        }
        Some((members, sentences))
    }

    /// The member of an object without members, which some APIs refuse. Where members of any name have a schema, it is
    /// that of the placeholder too.
    fn stand_in(&mut self, level: &Level, place: &SchemaPath<'_>) -> Map<String, Value> {
        let has_patterns = !keys(level.members.get("patternProperties")).is_empty();
        let is_without_others = level.members.get("unevaluatedProperties") == Some(&json!(false));
        if !has_patterns && (is_without_others || level.rests.iter().any(RestOfMembers::is_closed)) {
            return placeholder(string(), sentences::UNUSED);
        }
        let path = format!("{}/additionalProperties", place.path);
        let inner = SchemaPath { path: &path, depth: place.depth + 1, is_optional: true, ..*place };
        let listed = match level.rests.as_slice() {
            [rest] if !has_patterns => self.schema(&rest.rule, &inner),
            _ => Part::Never,
        };
        match listed {
            // Nothing may stand beside alternatives.
            Part::Listed(Value::Object(schema)) if !schema.contains_key("anyOf") => {
                placeholder(schema, sentences::ANY_NAME)
            }
            _ => placeholder(string(), sentences::ANY_NAME),
        }
    }

    pub(super) fn array(&mut self, level: &Level, place: &SchemaPath<'_>) -> Option<Written> {
        let path = format!("{}/items", place.path);
        let inner = SchemaPath { path: &path, depth: place.depth + 1, is_optional: false, ..*place };
        let mut bounds: Vec<(String, Value)> =
            ARRAY_BOUNDS.into_iter().filter_map(|bound| whole(level, bound)).collect();
        let items = match (level.members.get("items"), level.members.get("prefixItems")) {
            // The text says which is which; listed are the forms that an item may have.
            (items, Some(Value::Array(first))) if !first.is_empty() && self.direction == Direction::Input => {
                let each: Vec<&Value> = items.into_iter().collect();
                self.schema(&json!({"anyOf": first, "allOf": each}), &inner)
            }
            (None, _) if self.direction == Direction::Input => {
                self.note(place.path, "no items");
                Part::Listed(self.anything(&Level::default(), &inner))
            }
            (Some(items), _) => self.schema(items, &inner),
            (None, _) => Part::Listed(json!({})),
        };
        let items = match items {
            Part::Listed(items) => items,
            Part::Null => {
                self.note(&path, "null");
                self.described(string(), &Level::default(), &[sentences::ONLY_NULL.to_owned()])
            }
            Part::Never => {
                self.note(&path, "false");
                if bounds.iter().any(|(bound, least)| bound == "minItems" && least.as_u64() > Some(0)) {
                    return None;
                }
                bounds.retain(|(bound, _)| bound != "maxItems");
                bounds.push(("maxItems".to_owned(), json!(0)));
                self.anything(&Level::default(), &inner)
            }
        };
        let mut members = Map::new();
        members.insert("type".to_owned(), json!("array"));
        members.insert("items".to_owned(), items);
        members.extend(bounds);
        Some((members, Vec::new()))
    }

    pub(super) fn text(&mut self, level: &Level, place: &SchemaPath<'_>) -> Written {
        let mut members = string();
        let mut sentences = Vec::new();
        if let Some(values) = values(level) {
            let (mut texts, others): (Vec<Value>, Vec<Value>) =
                values.into_iter().partition(|value| value.as_str().is_some_and(|text| !text.is_empty()));
            let others: Vec<Value> = others.into_iter().filter(|value| value.is_string()).collect();
            let mut seen = std::collections::HashSet::new();
            texts.retain(|text| seen.insert(text.clone()));
            let has_texts = !texts.is_empty();
            match (has_texts, self.direction) {
                (false, _) => sentences.push(sentences::one_of(&others)),
                (true, Direction::Output) if !others.is_empty() => {}
                (true, _) if !self.room.takes_values(&texts) => {
                    self.note(place.path, "more than 500 values");
                    sentences.push(sentences::one_of(&texts));
                }
                (true, _) => {
                    members.insert("enum".to_owned(), Value::Array(texts));
                }
            }
            if !others.is_empty() {
                self.note(place.path, "enum with an empty text");
                sentences.extend(has_texts.then(|| sentences::EMPTY_TEXT.to_owned()));
            }
        }
        members.extend(["minLength", "maxLength"].into_iter().filter_map(|bound| whole(level, bound)));
        (members, sentences)
    }

    pub(super) fn number_or_boolean(&self, level: &Level, kind: &str) -> Written {
        let mut members = Map::new();
        members.insert("type".to_owned(), json!(kind));
        let bounds = ["minimum", "maximum"].into_iter().filter(|_| kind != "boolean");
        members.extend(bounds.filter_map(|bound| {
            let limit = level.members.get(bound).filter(|limit| limit.is_number())?;
            Some((bound.to_owned(), limit.clone()))
        }));
        (members, Vec::new())
    }

    /// What stands where a schema is not written out: its type, its plain members, and why.
    pub(super) fn cut(&mut self, level: &Level, place: &SchemaPath<'_>, why: &Cut) -> Value {
        if self.direction == Direction::Output {
            return self.open(level);
        }
        let read;
        let seen = match &level.circle {
            Some(target) => {
                read = Level::read(self.root, &json!({"$ref": target}), &[]);
                &read
            }
            None => level,
        };
        let kind = single_kind(seen);
        let mut members = Map::from_iter([("type".to_owned(), json!(kind.unwrap_or("string")))]);
        let mut sentences = Vec::new();
        match kind {
            Some("object") => {
                let plain = if self.is_full() { Map::new() } else { self.plain_members(seen, place) };
                let needed: Vec<&str> = seen.required().into_iter().filter(|name| plain.contains_key(*name)).collect();
                if !needed.is_empty() {
                    members.insert("required".to_owned(), json!(needed));
                }
                let shown = if plain.is_empty() { placeholder(string(), sentences::ANY_NAME) } else { plain };
                members.insert("properties".to_owned(), Value::Object(shown));
            }
            Some("array") => {
                let items = self.described(string(), &Level::default(), &[sentences::ANYTHING.to_owned()]);
                members.insert("items".to_owned(), items);
            }
            Some(_) => {}
            None => sentences.push(sentences::ANYTHING.to_owned()),
        }
        sentences.push(why.sentence());
        if level.circle.is_some() && !self.is_full() {
            sentences.extend(sentences::beside(self.root, level));
        }
        self.described(members, level, &sentences)
    }

    /// The members of an object that hold no others.
    fn plain_members(&mut self, level: &Level, place: &SchemaPath<'_>) -> Map<String, Value> {
        let mut plain = Map::new();
        for (name, schema) in level.members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let member = Level::read(self.root, schema, &level.trail);
            self.room.read_level(&member, 1);
            let Some(kind) = single_kind(&member).filter(|_| is_scalar(&member)) else { continue };
            if is_portable_name(name) && member.circle.is_none() && !member.is_impossible && !member.is_too_deep {
                plain.extend(self.typed(&member, kind, place).map(|schema| (name.clone(), schema)));
            }
        }
        plain
    }
}

/// The kind of a schema that has one, beside null.
fn single_kind(level: &Level) -> Option<&'static str> {
    let is_composed = ["anyOf", "oneOf"].iter().any(|keyword| level.members.contains_key(*keyword));
    let Kinds::Of(mut kinds) = kinds(level, Direction::Input) else { return None };
    kinds.retain(|kind| *kind != "null");
    match kinds.as_slice() {
        [kind] if !is_composed => Some(kind),
        _ => None,
    }
}

/// Whether a schema has one kind, and its values hold no others.
pub(super) fn is_scalar(level: &Level) -> bool {
    single_kind(level).is_some_and(|kind| ["string", "integer", "number", "boolean"].contains(&kind))
}

/// What a required member must be that the schema does not describe; `None` where it may not be there.
pub(super) fn undeclared_member(level: &Level) -> Option<Value> {
    if level.rests.iter().any(|rest| rest.is_closed() && rest.patterns.is_empty()) {
        return None;
    }
    let rules: Vec<&Value> = level.rests.iter().filter(|rest| !rest.is_closed()).map(|rest| &rest.rule).collect();
    Some(if rules.is_empty() { json!({}) } else { json!({"allOf": rules}) })
}

fn placeholder(schema: Map<String, Value>, text: &str) -> Map<String, Value> {
    let name = if text == sentences::UNUSED { UNUSED } else { ANY_NAME };
    let mut schema = Value::Object(schema);
    sentences::say(&mut schema, text);
    Map::from_iter([(name.to_owned(), schema)])
}

fn string() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!("string"))])
}

/// A bound that is a whole number, also if it is written as `2.0`.
fn whole(level: &Level, bound: &str) -> Option<(String, Value)> {
    let number = level.members.get(bound)?;
    let whole = number.as_u64().or_else(|| {
        let number = number.as_f64().filter(|number| number.fract() == 0.0 && (0.0..9e15).contains(number))?;
        Some(number as u64)
    })?;
    Some((bound.to_owned(), json!(whole)))
}
