//! `anyOf` and `oneOf`: side by side inside a schema, folded into one object at its root.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::Direction;
use super::branch::Level;
use super::kind::{are_disjoint, kinds, only_value, values};
use super::node::{Part, Rewriter, SchemaPath};
use super::sentences::{self, form, say};

/// Every alternative repeats what they have in common, and models choose badly among many.
const MOST_ALTERNATIVES: usize = 16;
/// Alternatives that are compared with each other.
const MOST_COMPARED: usize = 64;
/// Parts of a schema that are copied for its alternatives, each of which holds what they have in common.
const MOST_COPIED: usize = 50_000;
/// What comparing two alternatives costs, as bytes that are read.
const COMPARISON: usize = 64;
/// Alternatives in the only alternative of the root; beyond this they are written as text.
const MOST_FOLDED: usize = 4;
/// Forms at the root in few words; beyond this they are quoted as they were written, and cut.
const LONGEST_FORMS: usize = 4_000;

impl Rewriter<'_> {
    pub(super) fn alternatives(
        &mut self,
        level: &Level,
        keyword: &str,
        branches: &[Value],
        place: &SchemaPath<'_>,
    ) -> Part {
        let common = level.common();
        let (read, unread) = branches.split_at(readable(&common, branches));
        let compared = read.len().min(MOST_COMPARED);
        self.room.read_level(&common, read.len());
        self.room.read(COMPARISON * compared * compared);
        let mut levels: Vec<Level> = read.iter().map(|branch| common.with(self.root, branch)).collect();
        levels.retain(|level| !level.is_impossible);
        let (mut levels, is_repeated) = joined_values(&common, levels);
        let mut rules = Vec::new();
        if !unread.is_empty() {
            self.note(place.path, "more than 16 alternatives");
            rules.push(format!("Or one of these forms: {}.", sentences::schema(self.root, &json!(unread))));
        }
        let is_exclusive = unread.is_empty() && !is_repeated && self.all_disjoint(&levels);
        if keyword == "oneOf" && !is_exclusive {
            self.note(place.path, keyword);
            rules.extend(sentences::keyword(self.root, keyword, &json!(branches)));
        }
        if keyword == "anyOf" {
            // Both cannot be listed together.
            let other = level.members.get("oneOf");
            rules.extend(other.and_then(|other| sentences::keyword(self.root, "oneOf", other)));
        }
        let before = levels.len();
        levels.retain(|level| !kinds(level, Direction::Input).is_null());
        let mut is_nullable = levels.len() < before;
        if self.direction == Direction::Input {
            rules = self.said_in_each(levels.len().min(MOST_ALTERNATIVES), rules);
        }
        let mut parts: Vec<Value> = Vec::new();
        let is_among_several = place.is_among_several || levels.len() > 1 || !unread.is_empty();
        for one in &levels {
            match self.part(one, &SchemaPath { depth: place.depth + 1, is_among_several, ..*place }) {
                Part::Null => is_nullable = true,
                Part::Never => {}
                Part::Listed(part) => match part.get("anyOf").and_then(Value::as_array) {
                    Some(inner) => parts.extend(inner.iter().cloned()),
                    None => parts.push(part),
                },
            }
        }
        if is_nullable {
            self.note(place.path, "null");
        }
        if self.direction == Direction::Output {
            // A result that one form leaves open is open.
            let is_open = is_nullable || !unread.is_empty() || parts.iter().any(|part| part.get("type").is_none());
            if is_open || parts.is_empty() || parts.len() > MOST_ALTERNATIVES {
                return Part::Listed(self.open(level));
            }
        }
        if parts.len() > 1 && keyword == "oneOf" {
            self.note(place.path, keyword);
        }
        if self.direction == Direction::Input {
            parts.iter_mut().for_each(|part| rules.iter().for_each(|rule| say(part, rule)));
        }
        self.joined(parts, is_nullable, place)
    }

    /// One part that takes each of several.
    pub(super) fn joined(&mut self, parts: Vec<Value>, is_nullable: bool, place: &SchemaPath<'_>) -> Part {
        let mut distinct: Vec<Value> = Vec::new();
        for part in parts {
            if distinct.len() >= MOST_COMPARED || !distinct.contains(&part) {
                distinct.push(part);
            }
        }
        if distinct.len() > MOST_ALTERNATIVES {
            self.note(place.path, "more than 16 alternatives");
            let others = distinct.split_off(MOST_ALTERNATIVES);
            let sentence = format!("Or one of these forms: {}.", sentences::values(&others));
            for sentence in self.said_in_each(distinct.len(), vec![sentence]) {
                distinct.iter_mut().for_each(|part| say(part, &sentence));
            }
        }
        if is_nullable && !place.is_optional && self.direction == Direction::Input {
            distinct.iter_mut().for_each(|part| say(part, sentences::MAY_BE_NULL));
        }
        match distinct.len() {
            0 if is_nullable => Part::Null,
            0 => Part::Never,
            1 => Part::Listed(distinct.swap_remove(0)),
            _ => Part::Listed(json!({"anyOf": distinct})),
        }
    }

    fn all_disjoint(&self, levels: &[Level]) -> bool {
        let others = |at: usize| levels.iter().skip(at + 1);
        levels.len() <= MOST_COMPARED
            && levels.iter().enumerate().all(|(at, one)| others(at).all(|two| are_disjoint(self.root, one, two)))
    }

    /// Alternatives at the root become properties of one object, and the rule is written as text.
    pub(super) fn fold_alternatives(&mut self, level: Level) -> (Level, Vec<String>) {
        let mut folded = level;
        let mut sentences = Vec::new();
        for _ in 0..MOST_FOLDED {
            let Some(keyword) = ["anyOf", "oneOf"].into_iter().find(|word| folded.members.contains_key(*word)) else {
                return (folded, sentences);
            };
            self.note("", "alternatives at the root");
            let Some(Value::Array(mut branches)) = folded.members.shift_remove(keyword) else { continue };
            let common = folded.common();
            let unread = branches.split_off(readable(&common, &branches));
            if !unread.is_empty() {
                // What they have in common is listed; the forms are written as text.
                branches.extend(unread);
                sentences.extend(sentences::keyword(self.root, keyword, &json!(branches)));
                continue;
            }
            let possible = branches.into_iter().map(|branch| (common.with(self.root, &branch), branch));
            let (mut levels, branches): (Vec<Level>, Vec<Value>) =
                possible.filter(|(level, _)| takes_objects(level)).unzip();
            match levels.len() {
                0 => folded.is_impossible = true,
                1 => {
                    let other = folded.members.get("oneOf");
                    sentences.extend(other.and_then(|other| sentences::keyword(self.root, "oneOf", other)));
                    folded = levels.swap_remove(0);
                }
                _ => {
                    sentences.extend(self.rule_of_forms(keyword, &folded, &branches));
                    let leaves = self.leaves(levels);
                    folded = self.union(&folded, &leaves);
                    folded.is_impossible |= leaves.is_empty();
                }
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            let rest = folded.members.shift_remove(keyword);
            sentences.extend(rest.and_then(|rest| sentences::keyword(self.root, keyword, &rest)));
        }
        (folded, sentences)
    }

    /// The forms, with each that has forms of its own replaced by those, as long as there are not too many.
    fn leaves(&self, forms: Vec<Level>) -> Vec<Level> {
        let mut leaves = Vec::new();
        let mut open: Vec<Level> = forms.into_iter().rev().collect();
        while let Some(mut level) = open.pop() {
            let keyword = ["anyOf", "oneOf"].into_iter().find(|word| level.members.contains_key(*word));
            let branches = keyword.and_then(|keyword| level.members.get(keyword)?.as_array());
            let room = MOST_COMPARED.saturating_sub(leaves.len() + open.len());
            let (Some(keyword), Some(branches)) =
                (keyword, branches.filter(|branches| branches.len() <= room).cloned())
            else {
                leaves.push(level);
                continue;
            };
            level.members.shift_remove(keyword);
            let inner = branches.iter().rev().map(|branch| level.with(self.root, branch));
            open.extend(inner.filter(takes_objects));
        }
        leaves
    }

    /// Which of several forms must fit: in few words where these say all that the listed members do not.
    fn rule_of_forms(&self, keyword: &str, base: &Level, branches: &[Value]) -> Option<String> {
        let own: Vec<Level> = branches.iter().map(|branch| Level::read(self.root, branch, &["#".to_owned()])).collect();
        let is_free = |level: &Level| level.required().is_empty();
        let alike = members_alike(base, &own);
        let are_plain = own.len() <= MOST_COMPARED && own.iter().all(|level| self.is_plain_form(level, &alike));
        let quoted = || sentences::keyword(self.root, keyword, &json!(branches));
        if !are_plain || (keyword == "oneOf" && own.iter().any(is_free)) {
            return quoted();
        }
        if own.iter().any(|level| is_free(level) && level.rests.is_empty()) {
            return None;
        }
        let which = if keyword == "oneOf" { "Exactly one" } else { "At least one" };
        let forms = own.iter().map(|level| form(self.root, level)).collect::<Vec<_>>().join("; ");
        if forms.len() > LONGEST_FORMS { quoted() } else { Some(format!("{which} of these forms: {forms}.")) }
    }

    /// Whether `form` says all about a form that the listed members do not.
    fn is_plain_form(&self, level: &Level, alike: &HashSet<&str>) -> bool {
        let known = ["type", "properties", "required", "title", "description", "$comment"];
        let has_known_keywords = level.members.keys().all(|keyword| known.contains(&keyword.as_str()));
        let is_closed_at_most = level.rests.iter().all(|rest| rest.is_closed() && rest.patterns.is_empty());
        let is_readable =
            level.told.is_empty() && level.circle.is_none() && !level.is_too_deep && level.rests.len() <= 1;
        let required: HashSet<&str> = level.required().into_iter().collect();
        let is_told = |name: &str, schema: &Value| {
            required.contains(name) && only_value(&Level::read(self.root, schema, &[])).is_some()
        };
        has_known_keywords
            && is_closed_at_most
            && is_readable
            && level.properties().all(|(name, schema)| alike.contains(name.as_str()) || is_told(name, schema))
    }

    fn union(&self, base: &Level, levels: &[Level]) -> Level {
        let mut union = base.clone();
        let empty = Map::new();
        let properties = |level| Level::property_map(level).unwrap_or(&empty);
        let all: Vec<&Map<String, Value>> = levels.iter().map(properties).collect();
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
        let mut common = levels.first().map(Level::required).unwrap_or_default();
        for level in levels.iter().skip(1) {
            let required: HashSet<&str> = level.required().into_iter().collect();
            common.retain(|name| required.contains(name));
        }
        union.members.insert("properties".to_owned(), Value::Object(merged));
        union.members.insert("required".to_owned(), json!(common));
        union
    }
}

fn takes_objects(level: &Level) -> bool {
    !level.is_impossible && kinds(level, Direction::Output).has_objects()
}

/// The members that the listed schema says all about: every form that has one says the same of it, and so do those
/// that leave it to what they have in common.
fn members_alike<'a>(base: &Level, forms: &'a [Level]) -> HashSet<&'a str> {
    let mut said: HashMap<&str, (&Value, usize)> = HashMap::new();
    let mut differing = HashSet::new();
    for (name, schema) in forms.iter().flat_map(Level::properties) {
        let (first, times) = said.entry(name.as_str()).or_insert((schema, 0));
        *times += 1;
        if *first != schema {
            differing.insert(name.as_str());
        }
    }
    let of_base = |name: &str| base.property_map().and_then(|members| members.get(name));
    let is_alike = |name: &str, schema: &Value, times: usize| {
        times == forms.len() || of_base(name).is_none_or(|of_base| of_base == schema)
    };
    said.retain(|name, (schema, times)| !differing.contains(name) && is_alike(name, schema, *times));
    said.into_keys().collect()
}

/// How many of the alternatives are read.
fn readable(base: &Level, branches: &[Value]) -> usize {
    branches.len().min(MOST_ALTERNATIVES.max(MOST_COPIED / (1 + base.weight())))
}

/// Alternatives that are only values become one list of values. Also whether a value is in several.
fn joined_values(base: &Level, levels: Vec<Level>) -> (Vec<Level>, bool) {
    let annotations = ["type", "enum", "title", "description", "$comment", "deprecated"];
    let is_list = |level: &Level| {
        let is_common = |keyword: &str, member: &Value| base.members.get(keyword) == Some(member);
        let has_only_values = (level.members.iter())
            .all(|(keyword, member)| annotations.contains(&keyword.as_str()) || is_common(keyword, member));
        let is_plain = level.told == base.told && level.rests == base.rests && level.circle.is_none();
        has_only_values && is_plain && !level.is_too_deep && values(level).is_some()
    };
    let (lists, mut others): (Vec<Level>, Vec<Level>) = levels.into_iter().partition(is_list);
    if lists.len() < 2 {
        others.splice(0..0, lists);
        return (others, false);
    }
    let text = |level: &Level, keyword: &str| level.members.get(keyword).and_then(Value::as_str).map(str::to_owned);
    let common = text(base, "description").unwrap_or_default();
    let mut texts: Vec<String> = Vec::from_iter(Some(common.clone()).filter(|common| !common.is_empty()));
    let mut all: Vec<Value> = Vec::new();
    let mut seen = HashSet::new();
    let mut is_repeated = false;
    for list in &lists {
        let values = values(list).unwrap_or_default();
        let description = text(list, "description").map(|text| text.trim_start_matches(&common).trim().to_owned());
        let title = text(list, "title").filter(|_| !base.members.contains_key("title"));
        if let Some(own) = description.filter(|own| !own.is_empty()).or(title) {
            texts.push(format!("{}: {own}", sentences::values(&values)));
        }
        for value in values {
            // `1` and `1.0` are the same value.
            let key = value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string());
            match seen.insert(key) {
                true => all.push(value),
                false => is_repeated = true,
            }
        }
    }
    let mut joined = base.clone();
    joined.members.insert("enum".to_owned(), Value::Array(all));
    if !texts.is_empty() {
        joined.members.insert("description".to_owned(), json!(texts.join(" ")));
    }
    others.insert(0, joined);
    (others, is_repeated)
}
