//! Two JSON Schemas side by side.
//!
//! A schema is a conjunction of keywords. If every keyword of the new schema accepts what the old
//! one's accepted, so does the whole; so each keyword is compared on its own (or with those it
//! depends on), and each answers in which directions it may have moved. No answer of "narrower"
//! anywhere is a proof that nothing accepted before is refused now, and likewise for "wider".
//!
//! One exception is made on purpose, because the standard makes it: a new optional parameter is
//! additive, although an open object would have accepted anything under that name before.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Impact;
use super::keywords;
use super::plain::plain;
use crate::schema::resolve;

/// Steps for one pair of schemas; beyond that they are called too complex, hence breaking.
const MAX_STEPS: usize = 10_000;
/// Parts a schema may have, for the same reason.
const MAX_NODES: usize = 20_000;
const MAX_DEPTH: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Callers write it: it may widen.
    Input,
    /// Callers read it: it may narrow.
    Output,
}

/// How the set of accepted values may have moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Narrows,
    Widens,
    /// In both directions.
    Differs,
    /// Perhaps; only a costly proof would tell.
    MayNarrow,
    MayWiden,
    Unknown,
    /// Not at all: words only.
    Says,
}

impl Effect {
    fn impact(self, direction: Direction) -> Impact {
        match (self, direction) {
            (Effect::Says, _) => Impact::Cosmetic,
            (Effect::Widens | Effect::MayWiden, Direction::Input)
            | (Effect::Narrows | Effect::MayNarrow, Direction::Output) => Impact::Additive,
            (Effect::Unknown | Effect::MayNarrow | Effect::MayWiden, _) => Impact::Undecided,
            _ => Impact::Breaking,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Delta {
    pub pointer: String,
    pub kind: &'static str,
    pub effect: Effect,
    pub impact: Impact,
    pub message: String,
}

pub fn deltas(old: &Value, new: &Value, direction: Direction) -> Vec<Delta> {
    let fits = |schema: &Value| count(schema, MAX_NODES) <= MAX_NODES;
    if !fits(old) || !fits(new) {
        return walked(old, new, direction, 0);
    }
    let found = walked(old, new, direction, MAX_STEPS);
    let gravest = |deltas: &[Delta]| deltas.iter().map(|delta| delta.impact).max();
    if gravest(&found) <= Some(Impact::Cosmetic) {
        return found;
    }
    // Either comparison proves what it does not tell, so the milder one is right.
    let milder = walked(&plain(old), &plain(new), direction, MAX_STEPS);
    if gravest(&milder) < gravest(&found) { milder } else { found }
}

fn walked(old: &Value, new: &Value, direction: Direction, mut budget: usize) -> Vec<Delta> {
    let changed = changed_references(old, new);
    let roots = Roots { old, new, changed: &changed };
    let mut walker = Walker::new(roots, direction, &mut budget);
    // A reference to the whole leads to the pair that is being compared.
    walker.seen.insert(pair_of(old, new, true));
    walker.walk(old, new, true);
    walker.deltas
}

/// Nothing is asked: every value is accepted.
pub static ANYTHING: Value = Value::Bool(true);

#[derive(Clone, Copy)]
struct Roots<'a> {
    old: &'a Value,
    new: &'a Value,
    /// References that lead to something else now. Equal texts without one of them are equal schemas.
    changed: &'a HashSet<&'a str>,
}

pub struct Walker<'a, 'b> {
    roots: Roots<'a>,
    pub direction: Direction,
    budget: &'b mut usize,
    depth: usize,
    pub pointer: String,
    pub deltas: Vec<Delta>,
    /// Pairs of referenced schemas that are being compared or were; comparing them again would say
    /// the same again, or never end.
    seen: HashSet<(usize, usize, bool)>,
    /// Inside a negation, where a pair still being compared must not be taken for equal and a new
    /// parameter is no addition.
    pub strict: bool,
}

impl<'a, 'b> Walker<'a, 'b> {
    fn new(roots: Roots<'a>, direction: Direction, budget: &'b mut usize) -> Walker<'a, 'b> {
        Walker {
            roots,
            direction,
            budget,
            depth: 0,
            pointer: String::new(),
            deltas: Vec::new(),
            seen: HashSet::new(),
            strict: false,
        }
    }

    pub fn tell(&mut self, kind: &'static str, effect: Effect, message: impl Into<String>) {
        self.tell_as(kind, effect, effect.impact(self.direction), message);
    }

    /// Tells a change whose impact the standard decides, not the set of values.
    pub fn tell_as(&mut self, kind: &'static str, effect: Effect, impact: Impact, message: impl Into<String>) {
        let pointer = self.pointer.clone();
        self.deltas.push(Delta { pointer, kind, effect, impact, message: message.into() });
    }

    /// Runs `step` one level below.
    pub fn below(&mut self, segments: &[&str], step: impl FnOnce(&mut Self)) {
        let length = self.pointer.len();
        for segment in segments {
            self.pointer.push('/');
            self.pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
        }
        step(self);
        self.pointer.truncate(length);
    }

    /// Whether two schemas are the same text and mean the same.
    pub fn same(&self, old: &Value, new: &Value) -> bool {
        old == new && (self.roots.changed.is_empty() || !refers(old, self.roots.changed))
    }

    /// In which directions a pair may have moved, without telling anything: `(narrows, widens)`.
    pub fn try_pair(&mut self, old: &'a Value, new: &'a Value, alone: bool, strict: bool) -> (bool, bool) {
        if self.same(old, new) {
            return (false, false);
        }
        let (narrows, widens);
        {
            let mut trial = Walker::new(self.roots, self.direction, self.budget);
            trial.depth = self.depth + 1;
            trial.strict = self.strict || strict;
            trial.walk(old, new, alone);
            let moved = |effects: [Effect; 4]| trial.deltas.iter().any(|delta| effects.contains(&delta.effect));
            narrows = moved([Effect::Narrows, Effect::MayNarrow, Effect::Differs, Effect::Unknown]);
            widens = moved([Effect::Widens, Effect::MayWiden, Effect::Differs, Effect::Unknown]);
        }
        (narrows, widens)
    }

    /// Compares two schemas at the same place. `alone` tells that no sibling schema describes the
    /// same object, so that its `properties` are all there are.
    pub fn walk(&mut self, old: &'a Value, new: &'a Value, alone: bool) {
        if self.same(old, new) {
            return;
        }
        if *self.budget == 0 || self.depth > MAX_DEPTH {
            if self.deltas.last().is_none_or(|last| last.kind != "too-complex") {
                self.tell("too-complex", Effect::Unknown, "too complex to compare");
            }
            return;
        }
        *self.budget -= 1;
        self.depth += 1;
        self.walk_here(old, new, alone);
        self.depth -= 1;
    }

    fn walk_here(&mut self, old: &'a Value, new: &'a Value, alone: bool) {
        match (old, new) {
            (Value::Bool(false), _) => {
                return self.tell("schema-opened", Effect::Widens, "nothing was accepted before");
            }
            (_, Value::Bool(false)) => {
                return self.tell("schema-closed", Effect::Narrows, "nothing is accepted any more");
            }
            (Value::Object(_) | Value::Bool(true), Value::Object(_) | Value::Bool(true)) => {}
            _ => return self.tell("schema-changed", Effect::Unknown, "this is not a schema that can be compared"),
        }
        let reference = |schema: &'a Value| schema.get("$ref").and_then(Value::as_str);
        match (reference(old), reference(new)) {
            (None, None) => keywords::compare(self, old, new, alone),
            (Some(one), Some(two)) => {
                let bare = |schema: &Value| {
                    schema
                        .as_object()
                        .is_some_and(|map| map.keys().all(|key| key == "$ref" || keywords::is_annotation(key)))
                };
                let pure = bare(old) && bare(new);
                self.walk_reference(Some(one), Some(two), old, new, alone && pure);
                keywords::compare(self, old, new, false);
            }
            (one, two) => {
                // What stands beside a reference counts as well; only a bare one can be replaced by
                // what it leads to.
                let holder = if one.is_some() { old } else { new };
                let bare = holder
                    .as_object()
                    .is_some_and(|map| map.keys().all(|key| key == "$ref" || keywords::is_annotation(key)));
                if bare {
                    self.walk_reference(one, two, old, new, alone);
                } else {
                    self.tell(
                        "reference-changed",
                        Effect::Unknown,
                        "a reference with conditions beside it was added or removed",
                    );
                }
            }
        }
    }

    /// Follows the references there are; the other side is compared as it stands.
    fn walk_reference(&mut self, one: Option<&str>, two: Option<&str>, old: &'a Value, new: &'a Value, alone: bool) {
        let before = one.map_or(Some(old), |reference| resolve(self.roots.old, reference));
        let after = two.map_or(Some(new), |reference| resolve(self.roots.new, reference));
        let (Some(before), Some(after)) = (before, after) else {
            // A reference that leads nowhere on both sides means the same nothing.
            if one != two || before.is_some() != after.is_some() {
                self.tell("reference-changed", Effect::Unknown, "a reference that cannot be followed changed");
            }
            return;
        };
        let pair = pair_of(before, after, alone);
        // What is being compared with siblings beside it may be taken for the same without them.
        let seen = self.seen.contains(&pair) || !alone && self.seen.contains(&pair_of(before, after, true));
        if !seen {
            self.seen.insert(pair);
            self.walk(before, after, alone);
        } else if self.strict {
            self.tell("too-complex", Effect::Unknown, "a recursive schema under a negation cannot be compared");
        }
    }

    /// The schema a branch leads to, for looking at its face.
    pub fn old_face(&self, schema: &'a Value) -> &'a Value {
        face(self.roots.old, schema)
    }

    pub fn new_face(&self, schema: &'a Value) -> &'a Value {
        face(self.roots.new, schema)
    }
}

fn pair_of(old: &Value, new: &Value, alone: bool) -> (usize, usize, bool) {
    (std::ptr::from_ref(old) as usize, std::ptr::from_ref(new) as usize, alone)
}

/// The references that lead to something else now, directly or by way of others.
fn changed_references<'a>(old: &'a Value, new: &'a Value) -> HashSet<&'a str> {
    let mut all = HashSet::new();
    references(old, &mut all);
    references(new, &mut all);
    // Where a dynamic reference leads depends on the way to it.
    let dynamic = |root: &Value| has_key(root, "$dynamicRef") || has_key(root, "$recursiveRef");
    if (dynamic(old) || dynamic(new)) && anchors(old) != anchors(new) {
        return all;
    }
    let mut holders: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut changed: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for reference in all {
        let (before, after) = (resolve(old, reference), resolve(new, reference));
        if before != after {
            open.push(reference);
            continue;
        }
        let mut inside = HashSet::new();
        before.into_iter().for_each(|target| references(target, &mut inside));
        inside.into_iter().for_each(|other| holders.entry(other).or_default().push(reference));
    }
    // What leads to something that changed has changed.
    while let Some(reference) = open.pop() {
        if changed.insert(reference) {
            open.extend(holders.get(reference).into_iter().flatten());
        }
    }
    changed
}

fn is_reference(key: &str) -> bool {
    matches!(key, "$ref" | "$dynamicRef" | "$recursiveRef")
}

fn references<'a>(schema: &'a Value, found: &mut HashSet<&'a str>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(reference) if is_reference(key) => {
                        found.insert(reference);
                    }
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn has_key(schema: &Value, wanted: &str) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| key == wanted || has_key(value, wanted)),
        Value::Array(items) => items.iter().any(|item| has_key(item, wanted)),
        _ => false,
    }
}

/// Every schema that a dynamic reference may lead to.
fn anchors(schema: &Value) -> Vec<&Value> {
    match schema {
        Value::Object(members) => {
            let own = ["$dynamicAnchor", "$recursiveAnchor"].iter().any(|key| members.contains_key(*key));
            own.then_some(schema).into_iter().chain(members.values().flat_map(anchors)).collect()
        }
        Value::Array(items) => items.iter().flat_map(anchors).collect(),
        _ => Vec::new(),
    }
}

/// Whether one of these references occurs.
fn refers(schema: &Value, references: &HashSet<&str>) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| match value {
            Value::String(reference) if is_reference(key) => references.contains(reference.as_str()),
            _ => refers(value, references),
        }),
        Value::Array(items) => items.iter().any(|item| refers(item, references)),
        _ => false,
    }
}

fn face<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(root, reference));
    target.unwrap_or(schema)
}

/// How many parts a value has, up to a limit.
fn count(value: &Value, limit: usize) -> usize {
    let mut total = 1;
    let mut add = |part: &Value| {
        if total <= limit {
            total += count(part, limit - total.min(limit));
        }
    };
    match value {
        Value::Object(members) => members.values().for_each(&mut add),
        Value::Array(items) => items.iter().for_each(&mut add),
        _ => {}
    }
    total
}
