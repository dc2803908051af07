//! Rewrites a schema, part by part.

use serde_json::{Map, Value, json};

use super::branch::Level;
use super::check::{ARRAY_BOUNDS, KEPT};
use super::kind::{Kinds, concerns, is_of, kinds, values};
use super::room::{Room, TOO_LONG};
use super::sentences;
use super::values::{Cut, is_scalar};
use super::{Direction, Portable, Simplification, argument_names, description};
use crate::header_arguments::HEADER;

/// Parts of the result. References that are written out multiply; beyond this the rest is written as text.
const MOST_PARTS: usize = 2_000;
/// Levels of the result. Models lose their way in deeper arguments, and some APIs refuse them.
const DEEPEST: usize = 10;
/// Entries for people; one schema with a hundred remarks says no more than one with fifty.
const MOST_SIMPLIFIED: usize = 50;

pub(super) struct Rewriter<'a> {
    pub(super) root: &'a Value,
    pub(super) direction: Direction,
    parts: usize,
    /// For each reference of the current trail where it was followed; `None` where that is one of several forms.
    followed: Vec<Option<String>>,
    pub(super) room: Room,
    simplified: Vec<Simplification>,
}

/// Where the rewriter is.
#[derive(Clone, Copy)]
pub(super) struct SchemaPath<'a> {
    pub path: &'a str,
    pub depth: usize,
    pub trail: &'a [String],
    /// Whether the value may be left out, so that nobody needs to give null.
    pub is_optional: bool,
    /// Whether the path alone does not say which part is meant, because it leads into one of several forms.
    pub is_among_several: bool,
}

impl SchemaPath<'_> {
    /// Whether the part is reached from the root through `properties` alone.
    fn is_argument(&self, level: &Level) -> bool {
        let keywords = self.path.split('/').skip(1).step_by(2);
        level.trail.len() == 1 && !self.is_among_several && keywords.into_iter().all(|word| word == "properties")
    }
}

/// What is listed for a part of a schema.
pub(super) enum Part {
    Listed(Value),
    /// Only null fits, which no client can give everywhere.
    Null,
    /// Nothing fits.
    Never,
}

/// Keywords of the listed schema, and the sentences that belong to them.
pub(super) type Written = (Map<String, Value>, Vec<String>);

impl<'a> Rewriter<'a> {
    pub(super) fn new(root: &'a Value, direction: Direction, room: Room) -> Rewriter<'a> {
        Rewriter { root, direction, parts: 0, followed: Vec::new(), room, simplified: Vec::new() }
    }

    pub(super) fn root(mut self) -> Portable {
        let level = Level::read(self.root, self.root, &["#".to_owned()]);
        let (mut level, notes) = self.fold_alternatives(level);
        if self.direction == Direction::Input && argument_names::add(self.root, &mut level) {
            self.note("", "arguments of parts");
        }
        let mut notes = self.listed_notes(notes);
        let rules_of_forms = notes.len();
        let place = SchemaPath { path: "", depth: 0, trail: &level.trail, is_optional: false, is_among_several: false };
        self.followed = vec![Some(String::new()); level.trail.len()];
        let is_possible = !level.is_impossible && kinds(&level, Direction::Output).has_objects();
        let written = if is_possible { self.written(&level, "object", &place) } else { None };
        let (mut schema, more) = written.unwrap_or_else(|| {
            let empty = Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), json!({}))]);
            (empty, vec![sentences::NEVER.to_owned()])
        });
        notes.extend(self.listed_notes(more));
        if level.is_too_deep {
            notes.push(sentences::DEEPER.to_owned());
        }
        notes.dedup();
        for text in ["title", "description"] {
            if let Some(text_member @ Value::String(_)) = level.members.get(text) {
                schema.insert(text.to_owned(), text_member.clone());
            }
        }
        schema.shift_remove("default");
        let mut schema = Value::Object(schema);
        if self.direction == Direction::Output {
            // Nobody reads what a description says of results.
            notes.drain(..).take(rules_of_forms).for_each(|rule| sentences::say(&mut schema, &rule));
        }
        let (notes, is_divided) = description::divide(notes, &mut schema);
        for (is_so, what) in [
            (level.is_too_deep, "nested too deep"),
            (is_divided, "more rules than 640 characters"),
            (self.parts > MOST_PARTS, "more than 2,000 parts"),
            (self.room.is_cut, TOO_LONG),
        ] {
            if is_so {
                self.simplified.truncate(MOST_SIMPLIFIED - 1);
                self.note("", what);
            }
        }
        Portable { schema, notes, simplified: self.simplified, work: self.room.work() }
    }

    pub(super) fn schema(&mut self, schema: &Value, place: &SchemaPath<'_>) -> Part {
        let level = Level::read(self.root, schema, place.trail);
        self.part(&level, place)
    }

    /// One part. A result is left open where it cannot be said what fits.
    pub(super) fn part(&mut self, level: &Level, place: &SchemaPath<'_>) -> Part {
        self.parts += 1;
        self.room.read_level(level, 1);
        self.followed.truncate(place.trail.len());
        let here = (!place.is_among_several).then(|| place.path.to_owned());
        self.followed.resize(level.trail.len(), here);
        let part = if level.is_impossible {
            Part::Never
        } else if let Some(why) = self.reason_to_cut(level, place) {
            Part::Listed(self.cut(level, place, &why))
        } else {
            self.level(level, &SchemaPath { trail: &level.trail, ..*place })
        };
        match (part, self.direction) {
            (Part::Null | Part::Never, Direction::Output) => Part::Listed(self.open(level)),
            (part, _) => part,
        }
    }

    fn reason_to_cut(&mut self, level: &Level, place: &SchemaPath<'_>) -> Option<Cut> {
        if self.is_full() {
            return Some(Cut::TooMuch);
        }
        if let Some(target) = &level.circle {
            self.note(place.path, "recursion");
            let at = place.trail.iter().position(|followed| followed == target);
            let above = at.and_then(|at| self.followed.get(at)?.clone());
            // A part that is only itself says nothing.
            return Some(Cut::Repeats(above.filter(|above| above != place.path)));
        }
        if level.is_too_deep || (place.depth > DEEPEST && !is_scalar(level)) {
            self.note(place.path, "nested too deep");
            return Some(Cut::TooDeep);
        }
        None
    }

    pub(super) fn is_full(&self) -> bool {
        self.parts > MOST_PARTS || self.room.is_empty()
    }

    fn level(&mut self, level: &Level, place: &SchemaPath<'_>) -> Part {
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = level.members.get(keyword) {
                return self.alternatives(level, keyword, branches, place);
            }
        }
        let mut kinds = match kinds(level, self.direction) {
            Kinds::Never => return Part::Never,
            Kinds::Any => return Part::Listed(self.anything(level, place)),
            Kinds::Of(kinds) => kinds,
        };
        let is_nullable = kinds.contains(&"null");
        kinds.retain(|kind| *kind != "null");
        if is_nullable {
            self.note(place.path, "null");
            if self.direction == Direction::Output {
                return Part::Listed(self.open(level));
            }
        }
        if kinds.len() > 1 {
            self.note(place.path, "several types");
        }
        let parts: Vec<Value> = kinds.iter().filter_map(|kind| self.typed(level, kind, place)).collect();
        self.joined(parts, is_nullable, place)
    }

    pub(super) fn open(&mut self, level: &Level) -> Value {
        self.described(Map::new(), level, &[])
    }

    /// A value of any type. An input needs one, and a string can hold every other.
    pub(super) fn anything(&mut self, level: &Level, place: &SchemaPath<'_>) -> Value {
        if self.direction == Direction::Output {
            return self.open(level);
        }
        self.note(place.path, "any value");
        let members = Map::from_iter([("type".to_owned(), json!("string"))]);
        let mut sentences = vec![sentences::ANYTHING.to_owned()];
        sentences.extend(self.told(level, "string", place));
        self.described(members, level, &sentences)
    }

    pub(super) fn typed(&mut self, level: &Level, kind: &str, place: &SchemaPath<'_>) -> Option<Value> {
        let (members, mut sentences) = self.written(level, kind, place)?;
        if self.direction == Direction::Output {
            self.room.read(sentences.iter().map(String::len).sum());
            if members.get("properties").and_then(Value::as_object).is_some_and(Map::is_empty) {
                return Some(self.open(level));
            }
            sentences.clear();
        }
        Some(self.described(members, level, &sentences))
    }

    /// The keywords for one kind of value, and what they cannot say; `None` where nothing fits.
    fn written(&mut self, level: &Level, kind: &str, place: &SchemaPath<'_>) -> Option<Written> {
        let (mut members, mut sentences) = match kind {
            "object" => self.object(level, place)?,
            "array" => self.array(level, place)?,
            "string" => self.text(level, place),
            other => self.number_or_boolean(level, other),
        };
        if let Some(values) = values(level).filter(|_| kind != "string") {
            let fitting: Vec<Value> = values.into_iter().filter(|value| is_of(value, kind)).collect();
            sentences.push(sentences::one_of(&fitting));
            self.note(place.path, "enum of other things than texts");
        }
        if let Some(default) = level.members.get("default").filter(|_| self.direction == Direction::Input) {
            let is_listed = |values: &Value| values.as_array().is_some_and(|values| values.contains(default));
            match is_of(default, kind) && members.get("enum").is_none_or(is_listed) {
                true => {
                    members.insert("default".to_owned(), default.clone());
                }
                false if default.is_null() => {}
                // It cannot be given, so it is a mistake.
                false if values(level).is_some_and(|values| !values.contains(default)) => {}
                false => sentences.push(format!("Default: {}.", sentences::value(default))),
            }
        }
        if let Some(header @ Value::String(_)) = level.members.get(HEADER).filter(|_| place.is_argument(level)) {
            members.insert(HEADER.to_owned(), header.clone());
        }
        sentences.extend(self.told(level, kind, place));
        Some((members, sentences))
    }

    /// What is not kept and means something for this kind of value, as text.
    pub(super) fn told(&mut self, level: &Level, kind: &str, place: &SchemaPath<'_>) -> Vec<String> {
        let mut sentences = Vec::new();
        for (keyword, member) in &level.members {
            let is_kept = KEPT.contains(&keyword.as_str()) || ARRAY_BOUNDS.contains(&keyword.as_str());
            // References into the first two are written out, and tuples are told where they are read.
            let is_kept = is_kept || matches!(keyword.as_str(), "$defs" | "definitions" | "prefixItems");
            if is_kept || !concerns(keyword, kind) {
                continue;
            }
            self.note(place.path, keyword);
            sentences.extend(sentences::keyword(self.root, keyword, member));
        }
        for told in level.told.iter().filter(|told| concerns(&told.keyword, kind)) {
            self.note(place.path, &told.keyword);
            sentences.push(told.sentence.clone());
        }
        for rest in level.rests.iter().filter(|_| kind == "object") {
            self.note(place.path, "additionalProperties");
            sentences.push(sentences::rest(self.root, rest, level));
        }
        sentences
    }

    pub(super) fn note(&mut self, path: &str, what: &str) {
        let simplified = Simplification { path: path.to_owned(), what: what.to_owned() };
        if self.simplified.len() < MOST_SIMPLIFIED && !self.simplified.contains(&simplified) {
            self.simplified.push(simplified);
        }
    }
}
