//! Comparing two JSON Schemas.
//!
//! A schema is a conjunction of keywords. If every keyword of the new schema accepts what the old
//! one accepted, so does the whole. So each keyword is compared on its own (or with those it
//! depends on), and each comparison returns in which directions it may have moved. If none says "narrower",
//! nothing accepted before is refused now; the same holds for "wider".
//!
//! One exception follows the standard: a new optional parameter is
//! additive, although an open object would have accepted anything under that name before.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Impact;
use super::budget::{CompareBudget, CompareWork, Looks};
use super::keywords;
use super::plain::{has_unevaluated, plain};
use super::proofs;
use super::rewrite::is_plain;
use super::wording;
use crate::model::SchemaRole;

/// Parts a schema may have; beyond that it is too complex to compare.
const MAX_NODES: usize = 20_000;
const MAX_DEPTH: usize = 100;
const TOO_COMPLEX: &str = "too complex to compare";

/// How the set of accepted values may have moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueEffect {
    Narrows,
    Widens,
    /// In both directions.
    Differs,
    /// Possibly; only a costly proof could decide.
    MayNarrow,
    MayWiden,
    Unknown,
    /// Not at all: only text changed.
    Says,
}

impl ValueEffect {
    pub(super) fn may_narrow(self) -> bool {
        matches!(self, ValueEffect::Narrows | ValueEffect::MayNarrow | ValueEffect::Differs | ValueEffect::Unknown)
    }

    pub(super) fn may_widen(self) -> bool {
        matches!(self, ValueEffect::Widens | ValueEffect::MayWiden | ValueEffect::Differs | ValueEffect::Unknown)
    }

    pub(super) fn impact(self, role: SchemaRole) -> Impact {
        match (self, role) {
            (ValueEffect::Says, _) => Impact::Cosmetic,
            (ValueEffect::Widens | ValueEffect::MayWiden, SchemaRole::Input)
            | (ValueEffect::Narrows | ValueEffect::MayNarrow, SchemaRole::Output) => Impact::Additive,
            (ValueEffect::Unknown | ValueEffect::MayNarrow | ValueEffect::MayWiden, _) => Impact::Undecided,
            _ => Impact::Breaking,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Delta {
    pub pointer: String,
    pub kind: &'static str,
    pub effect: ValueEffect,
    pub impact: Impact,
    pub message: String,
    /// How deep the pair of schemas is whose keywords changed.
    pub depth: usize,
}

/// What changed between two schemas.
pub(super) fn deltas(old: &Value, new: &Value, role: SchemaRole, work: &mut CompareWork) -> Vec<Delta> {
    let (before, after) = (Survey::of(old), Survey::of(new));
    let is_too_large = before.is_too_large || after.is_too_large;
    if is_too_large || !work.spend(before.parts + after.parts) {
        let message = if is_too_large { TOO_COMPLEX } else { "not compared: the changes of all tools are too many" };
        return vec![undecided(role, message)];
    }
    let refers = before.refers || after.refers;
    let walked = |work: &mut CompareWork, old: &Value, new: &Value, has_proofs| {
        work.on_a_pair(has_proofs, |budget| {
            let changed = if refers { changed_references(old, new, &budget.looks) } else { HashSet::new() };
            walked(old, new, role, &changed, budget)
        })
    };
    let mut found = mildest(old, new, work, walked);
    if found.is_empty() && wording::differs(old, new, refers) {
        found.push(Delta {
            pointer: String::new(),
            kind: "words-changed",
            effect: ValueEffect::Says,
            impact: Impact::Cosmetic,
            message: "text in the schema changed".to_owned(),
            depth: 0,
        });
    }
    found
}

/// Compares two schemas as they are written and, where that is not harmless, in the form that all of the same meaning
/// have.
fn mildest(
    old: &Value,
    new: &Value,
    work: &mut CompareWork,
    walked: impl Fn(&mut CompareWork, &Value, &Value, bool) -> Vec<Delta>,
) -> Vec<Delta> {
    let are_plain = is_plain(old) && is_plain(new);
    let found = walked(work, old, new, are_plain);
    let gravest = |deltas: &[Delta]| deltas.iter().map(|delta| delta.impact).max();
    if are_plain || gravest(&found) <= Some(Impact::Cosmetic) {
        return found;
    }
    let rewritten = work.on_a_pair(false, |budget| (plain(old, &budget.looks), plain(new, &budget.looks)));
    let (Some(old), Some(new)) = rewritten else { return found };
    // What `unevaluated…` refuses depends on how its neighbours are written, not only on what they accept.
    let is_proved = !has_unevaluated(&old) && !has_unevaluated(&new);
    let milder = walked(work, &old, &new, is_proved);
    // Each comparison may report too much, never too little, so the milder one is right.
    if gravest(&milder) < gravest(&found) { milder } else { found }
}

fn walked(
    old: &Value,
    new: &Value,
    role: SchemaRole,
    changed: &HashSet<&str>,
    budget: &mut CompareBudget,
) -> Vec<Delta> {
    let mut walker = Walker::new(Roots { old, new, changed }, role, budget);
    // A reference to the root leads to the pair that is being compared.
    walker.seen.insert(pair_of(old, new, true));
    walker.walk(old, new, true);
    let mut deltas = walker.deltas;
    if budget.is_over() {
        deltas.push(undecided(role, TOO_COMPLEX));
    }
    deltas
}

fn undecided(role: SchemaRole, message: &str) -> Delta {
    let (pointer, effect, depth) = (String::new(), ValueEffect::Unknown, 0);
    Delta { pointer, kind: "too-complex", effect, impact: effect.impact(role), message: message.to_owned(), depth }
}

/// The schema that accepts every value.
pub(super) static ANYTHING: Value = Value::Bool(true);

#[derive(Clone, Copy)]
pub(super) struct Roots<'a> {
    pub old: &'a Value,
    pub new: &'a Value,
    /// References whose targets changed. Equal texts without one of them are equal schemas.
    pub changed: &'a HashSet<&'a str>,
}

pub(super) struct Walker<'a, 'b> {
    pub roots: Roots<'a>,
    pub role: SchemaRole,
    pub budget: &'b mut CompareBudget,
    pub depth: usize,
    pub pointer: String,
    pub deltas: Vec<Delta>,
    /// Pairs of referenced schemas that are being compared or were; comparing them again would report
    /// the same, or never end.
    seen: HashSet<(usize, usize, bool)>,
    /// Inside a negation, where a pair still being compared must not be taken for equal and a new
    /// parameter is no addition.
    pub strict: bool,
    /// Only asked in which directions a pair may have moved.
    pub is_trial: bool,
}

impl<'a, 'b> Walker<'a, 'b> {
    fn new(roots: Roots<'a>, role: SchemaRole, budget: &'b mut CompareBudget) -> Walker<'a, 'b> {
        Walker {
            roots,
            role,
            budget,
            depth: 0,
            pointer: String::new(),
            deltas: Vec::new(),
            seen: HashSet::new(),
            strict: false,
            is_trial: false,
        }
    }

    pub(super) fn report(&mut self, kind: &'static str, effect: ValueEffect, message: impl Into<String>) {
        self.report_as(kind, effect, effect.impact(self.role), message);
    }

    /// Reports a change whose impact the standard defines, not the set of values.
    pub(super) fn report_as(
        &mut self,
        kind: &'static str,
        effect: ValueEffect,
        impact: Impact,
        message: impl Into<String>,
    ) {
        let message = message.into();
        // Each of many changes repeats the names that lead to it.
        let text = self.budget.text.checked_sub(self.pointer.len() + message.len());
        self.budget.text = text.unwrap_or_default();
        if text.is_none() {
            return;
        }
        let (pointer, depth) = (self.pointer.clone(), self.depth);
        self.deltas.push(Delta { pointer, kind, effect, impact, message, depth });
    }

    /// Whether another step could be spent.
    pub(super) fn spend_step(&mut self) -> bool {
        let left = self.budget.steps.checked_sub(1);
        self.budget.steps = left.unwrap_or_default();
        left.is_some()
    }

    /// Runs `step` one level below.
    pub(super) fn below(&mut self, segments: &[&str], step: impl FnOnce(&mut Self)) {
        let length = self.pointer.len();
        for segment in segments {
            self.pointer.push('/');
            if segment.contains(['~', '/']) {
                self.pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
            } else {
                self.pointer.push_str(segment);
            }
        }
        step(self);
        self.pointer.truncate(length);
    }

    /// Whether two schemas are the same text and mean the same.
    pub(super) fn same(&self, old: &Value, new: &Value) -> bool {
        self.budget.looks.equal(old, new) && (self.roots.changed.is_empty() || !refers(old, self.roots.changed))
    }

    /// In which directions a pair may have moved, without reporting: `(narrows, widens)`.
    pub(super) fn try_pair(&mut self, old: &'a Value, new: &'a Value, alone: bool, strict: bool) -> (bool, bool) {
        if self.same(old, new) {
            return (false, false);
        }
        let mut trial = Walker::new(self.roots, self.role, self.budget);
        trial.depth = self.depth + 1;
        trial.strict = self.strict || strict;
        trial.is_trial = true;
        trial.walk(old, new, alone);
        directions(&trial.deltas)
    }

    /// Compares two schemas at the same place. `alone` means that no sibling schema describes the
    /// same object, so that its `properties` are all there are.
    pub(super) fn walk(&mut self, old: &'a Value, new: &'a Value, alone: bool) {
        if self.same(old, new) {
            return;
        }
        let is_affordable = self.budget.looks.spend_keywords(old) && self.budget.looks.spend_keywords(new);
        if !is_affordable || self.budget.steps == 0 || self.depth > MAX_DEPTH {
            if self.deltas.last().is_none_or(|last| last.kind != "too-complex") {
                self.report("too-complex", ValueEffect::Unknown, TOO_COMPLEX);
            }
            return;
        }
        self.budget.steps -= 1;
        self.depth += 1;
        let first = self.deltas.len();
        self.walk_here(old, new, alone);
        if self.deltas.len() > first {
            proofs::take_back(self, first, old, new);
        }
        self.depth -= 1;
    }

    fn walk_here(&mut self, old: &'a Value, new: &'a Value, alone: bool) {
        match (old, new) {
            (Value::Bool(false), _) => {
                return self.report("schema-opened", ValueEffect::Widens, "nothing was accepted before");
            }
            (_, Value::Bool(false)) => {
                return self.report("schema-closed", ValueEffect::Narrows, "nothing is accepted any more");
            }
            (Value::Object(_) | Value::Bool(true), Value::Object(_) | Value::Bool(true)) => {}
            _ => {
                return self.report("schema-changed", ValueEffect::Unknown, "the schema cannot be compared");
            }
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
                // Keywords beside a reference count as well; only a bare one can be replaced by
                // its target.
                let holder = if one.is_some() { old } else { new };
                let bare = holder
                    .as_object()
                    .is_some_and(|map| map.keys().all(|key| key == "$ref" || keywords::is_annotation(key)));
                if bare {
                    self.walk_reference(one, two, old, new, alone);
                } else {
                    self.report(
                        "reference-changed",
                        ValueEffect::Unknown,
                        "a reference with keywords beside it was added or removed",
                    );
                }
            }
        }
    }

    /// Follows the references; a side without one is compared as it is.
    fn walk_reference(&mut self, one: Option<&str>, two: Option<&str>, old: &'a Value, new: &'a Value, alone: bool) {
        let looks = &self.budget.looks;
        let before = one.map_or(Some(old), |reference| looks.resolve(self.roots.old, reference));
        let after = two.map_or(Some(new), |reference| looks.resolve(self.roots.new, reference));
        let (Some(before), Some(after)) = (before, after) else {
            // Unresolvable references on both sides are equal.
            if one != two || before.is_some() != after.is_some() {
                self.report("reference-changed", ValueEffect::Unknown, "a reference that cannot be followed changed");
            }
            return;
        };
        let pair = pair_of(before, after, alone);
        // A pair that is being compared with siblings covers the pair without them.
        let seen = self.seen.contains(&pair) || !alone && self.seen.contains(&pair_of(before, after, true));
        if !seen {
            self.seen.insert(pair);
            self.walk(before, after, alone);
        } else if self.strict {
            self.report("too-complex", ValueEffect::Unknown, "a recursive schema under a negation cannot be compared");
        }
    }

    /// The target of a branch that is a reference, to inspect its keywords.
    pub(super) fn old_face(&self, schema: &'a Value) -> &'a Value {
        self.face(self.roots.old, schema)
    }

    pub(super) fn new_face(&self, schema: &'a Value) -> &'a Value {
        self.face(self.roots.new, schema)
    }

    fn face(&self, root: &'a Value, schema: &'a Value) -> &'a Value {
        let reference = schema.get("$ref").and_then(Value::as_str);
        reference.and_then(|reference| self.budget.looks.resolve(root, reference)).unwrap_or(schema)
    }
}

/// In which directions some changes may have moved a schema: `(narrows, widens)`.
pub(super) fn directions<'d>(deltas: impl IntoIterator<Item = &'d Delta>) -> (bool, bool) {
    deltas.into_iter().fold((false, false), |(narrows, widens), delta| {
        (narrows || delta.effect.may_narrow(), widens || delta.effect.may_widen())
    })
}

fn pair_of(old: &Value, new: &Value, alone: bool) -> (usize, usize, bool) {
    (std::ptr::from_ref(old) as usize, std::ptr::from_ref(new) as usize, alone)
}

/// The references whose targets changed, directly or through other references; all of them where it takes too many looks
/// to find out.
fn changed_references<'a>(old: &'a Value, new: &'a Value, looks: &Looks) -> HashSet<&'a str> {
    let mut all = HashSet::new();
    references(old, &mut all);
    references(new, &mut all);
    if all.is_empty() {
        return all;
    }
    // The target of a dynamic reference depends on the path to it.
    let dynamic = |root: &Value| has_key(root, "$dynamicRef") || has_key(root, "$recursiveRef");
    if (dynamic(old) || dynamic(new)) && anchors(old) != anchors(new) {
        return all;
    }
    let mut holders: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut changed: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for &reference in &all {
        let (before, after) = (looks.resolve(old, reference), looks.resolve(new, reference));
        let is_same = match (before, after) {
            (Some(before), Some(after)) => looks.equal(before, after),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            open.push(reference);
            continue;
        }
        let mut inside = HashSet::new();
        before.into_iter().for_each(|target| references(target, &mut inside));
        inside.into_iter().for_each(|other| holders.entry(other).or_default().push(reference));
    }
    if looks.is_spent() {
        return all;
    }
    // A reference to something that changed has changed.
    while let Some(reference) = open.pop() {
        if changed.insert(reference) {
            open.extend(holders.get(reference).into_iter().flatten());
        }
    }
    changed
}

pub(super) fn is_reference(key: &str) -> bool {
    key.starts_with('$') && matches!(key, "$ref" | "$dynamicRef" | "$recursiveRef")
}

fn references<'a>(schema: &'a Value, found: &mut HashSet<&'a str>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(reference) if is_reference(key) => {
                        found.insert(reference);
                    }
                    Value::Object(_) | Value::Array(_) => references(value, found),
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

pub(super) fn has_key(schema: &Value, wanted: &str) -> bool {
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
pub(super) fn refers(schema: &Value, references: &HashSet<&str>) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| match value {
            Value::String(reference) if is_reference(key) => references.contains(reference.as_str()),
            _ => refers(value, references),
        }),
        Value::Array(items) => items.iter().any(|item| refers(item, references)),
        _ => false,
    }
}

/// What one look at a whole schema shows.
#[derive(Default)]
struct Survey {
    parts: usize,
    is_too_large: bool,
    /// Whether there may be a reference.
    refers: bool,
}

impl Survey {
    fn of(schema: &Value) -> Survey {
        let mut survey = Survey::default();
        survey.look(schema);
        survey
    }

    fn look(&mut self, part: &Value) {
        self.parts += 1;
        if self.parts > MAX_NODES {
            (self.is_too_large, self.refers) = (true, true);
            return;
        }
        match part {
            Value::Object(members) => {
                for (key, member) in members {
                    self.refers |= is_reference(key);
                    self.look(member);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.look(item)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    /// Schemas that look as if they had one form, and some that nearly do.
    fn leaf() -> impl Strategy<Value = Value> {
        prop::sample::select(vec![
            json!({"type": "string"}),
            json!({"type": "string", "minLength": 1, "maxLength": 4}),
            json!({"type": "string", "minLength": 0}),
            json!({"type": "string", "enum": ["a"]}),
            json!({"type": "string", "enum": ["a", "b"]}),
            json!({"type": "integer", "enum": ["a"]}),
            json!({"type": "string", "enum": []}),
            json!({"type": "integer", "minimum": 0, "maximum": 9}),
            json!({"type": "integer", "minimum": 0.5}),
            json!({"type": "number", "minimum": 1}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1}),
            json!({"type": "null"}),
            json!({"type": "boolean"}),
            json!({"minimum": 3}),
            json!({}),
            json!(true),
            json!(false),
        ])
    }

    fn schema() -> impl Strategy<Value = Value> {
        let members = prop::collection::vec((prop::sample::select(vec!["a", "b", "c"]), leaf()), 0..3);
        let required = prop::sample::subsequence(vec!["a", "b"], 0..3);
        let rest = prop::option::of(prop_oneof![leaf(), Just(json!(false))]);
        (members, required, rest).prop_map(|(members, required, rest)| {
            let properties: Map<String, Value> =
                members.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
            let mut schema = json!({"type": "object", "properties": properties});
            if !required.is_empty() {
                schema["required"] = json!(required);
            }
            if let Some(rest) = rest {
                schema["additionalProperties"] = rest;
            }
            schema
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn rewriting_never_changes_the_verdict_about_two_plain_schemas(old in schema(), new in schema()) {
            prop_assume!(is_plain(&old) && is_plain(&new));
            let gravest = |old: &Value, new: &Value, role| {
                let found =
                    CompareWork::of_a_pair().on_a_pair(false, |budget| walked(old, new, role, &HashSet::new(), budget));
                found.iter().map(|delta| delta.impact).max()
            };
            let plainly = |schema| plain(schema, &Looks::new(usize::MAX)).unwrap();
            for role in [SchemaRole::Input, SchemaRole::Output] {
                prop_assert!(gravest(&plainly(&old), &plainly(&new), role) >= gravest(&old, &new, role));
            }
        }
    }
}
