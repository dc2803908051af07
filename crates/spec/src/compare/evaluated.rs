//! Which members or items `unevaluatedProperties` and `unevaluatedItems` leave alone: those that another keyword of the
//! same place describes, whatever it says about them. So a keyword that accepts everything counts here.

use std::collections::BTreeSet;

use serde_json::Value;

use super::budget::Looks;
use super::keywords::get;
use super::schema::{ANYTHING, ValueEffect, Walker};
use crate::model::properties;

/// Parts of one schema that are looked at; beyond that nothing is known.
const MAX_PARTS: usize = 2000;

#[derive(Default)]
struct Evaluated<'a> {
    is_unknown: bool,
    everything: bool,
    names: BTreeSet<&'a str>,
    patterns: BTreeSet<&'a str>,
    /// How many items at the front have schemas of their own.
    first_items: usize,
    /// What is described only where a condition holds.
    conditional: Vec<Conditional<'a>>,
}

enum Conditional<'a> {
    Branch(&'a Value),
    Dependent(&'a str, &'a Value),
    If {
        condition: &'a Value,
        then: &'a Value,
        otherwise: &'a Value,
    },
    Contains(&'a Value),
    /// A reference whose target is not known.
    Reference(&'a str),
}

/// Whether what has to be shown is that nothing was lost or that nothing was gained.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    KeepsAll,
    AddsNothing,
}

/// Reports what an `unevaluated…` that is in both versions may refuse or accept because of its neighbours.
pub(super) fn compare<'a>(walker: &mut Walker<'a, '_>, old: &'a Value, new: &'a Value, keyword: &'static str) {
    let keeps_all = covers(walker, (old, new), keyword, Direction::KeepsAll, true);
    let adds_nothing = covers(walker, (old, new), keyword, Direction::AddsNothing, true);
    let (effect, what) = match (keeps_all, adds_nothing) {
        (true, true) => return,
        (false, true) => (ValueEffect::MayNarrow, "may refuse what was accepted before"),
        (true, false) => (ValueEffect::MayWiden, "may accept what was refused before"),
        (false, false) => (ValueEffect::Unknown, "may refuse something else now"),
    };
    let message = format!("`{keyword}` {what}, because other keywords describe something else");
    walker.below(&[keyword], |walker| walker.report("schema-changed", effect, message));
}

/// Whether all that one version describes is described in the other one. What `properties` of the pair itself gained
/// or lost has been reported where `is_top`.
fn covers<'a>(
    walker: &mut Walker<'a, '_>,
    pair: (&'a Value, &'a Value),
    keyword: &'static str,
    direction: Direction,
    is_top: bool,
) -> bool {
    if walker.same(pair.0, pair.1) {
        return true;
    }
    if !walker.spend_step() {
        return false;
    }
    let looks = &walker.budget.looks;
    let evaluated = |schema, root| Evaluated::of(schema, root, looks, keyword, false);
    let (old, new) = (evaluated(pair.0, walker.roots.old), evaluated(pair.1, walker.roots.new));
    let (mut asked, given, schema, root) = match direction {
        Direction::KeepsAll => (old, new, pair.0, walker.roots.old),
        Direction::AddsNothing => (new, old, pair.1, walker.roots.new),
    };
    if is_top && let Some(own) = properties(schema) {
        asked.names.retain(|name| !own.contains_key(*name));
    }
    if asked.is_unknown || given.is_unknown {
        return false;
    }
    given.includes(&asked)
        && asked.conditional.iter().all(|part| {
            let most = part.most(root, &walker.budget.looks, keyword);
            !most.is_unknown && given.includes(&most)
                || given.conditional.iter().any(|other| part.is_covered(other, walker, keyword, direction))
        })
}

impl<'a> Evaluated<'a> {
    /// What a schema describes; with `always`, as if every condition held.
    fn of(schema: &'a Value, root: &'a Value, looks: &Looks, keyword: &str, always: bool) -> Evaluated<'a> {
        let mut found = Evaluated::default();
        let mut open = vec![(schema, true)];
        for _ in 0..MAX_PARTS {
            let Some((part, is_itself)) = open.pop() else { return found };
            if !looks.spend_keywords(part) {
                found.is_unknown = true;
                return found;
            }
            found.add(part, keyword, is_itself);
            found.follow(part, root, looks, always, &mut open);
            if always && found.conditional.iter().any(|part| !matches!(part, Conditional::Contains(_))) {
                for part in std::mem::take(&mut found.conditional) {
                    part.unfold(&mut found, &mut open);
                }
            }
        }
        found.is_unknown |= !open.is_empty();
        found
    }

    fn add(&mut self, part: &'a Value, keyword: &str, is_itself: bool) {
        let keys = |key| get(part, key).and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str());
        // An `unevaluated…` further inside describes the rest.
        self.everything |= !is_itself && get(part, keyword).is_some();
        if keyword == "unevaluatedProperties" {
            self.everything |= get(part, "additionalProperties").is_some();
            self.names.extend(keys("properties"));
            self.patterns.extend(keys("patternProperties"));
            return;
        }
        let first = |key| get(part, key).and_then(Value::as_array).map_or(0, Vec::len);
        self.first_items = self.first_items.max(first("prefixItems")).max(first("items"));
        let items = get(part, "items");
        self.everything |= match items {
            Some(Value::Array(_)) => get(part, "additionalItems").is_some(),
            items => items.is_some(),
        };
        self.conditional.extend(get(part, "contains").map(Conditional::Contains));
    }

    /// Schemas that say something about the same value.
    fn follow(
        &mut self,
        part: &'a Value,
        root: &'a Value,
        looks: &Looks,
        always: bool,
        open: &mut Vec<(&'a Value, bool)>,
    ) {
        let list = |key| get(part, key).and_then(Value::as_array).into_iter().flatten();
        let map = |key| get(part, key).and_then(Value::as_object).into_iter().flatten();
        open.extend(list("allOf").map(|inner| (inner, false)));
        for key in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(reference) = get(part, key).and_then(Value::as_str) else { continue };
            match looks.resolve(root, reference).filter(|_| key == "$ref") {
                Some(target) => open.push((target, false)),
                None if always => self.is_unknown = true,
                None => self.conditional.push(Conditional::Reference(reference)),
            }
        }
        self.conditional.extend(list("anyOf").chain(list("oneOf")).map(Conditional::Branch));
        let dependent = map("dependentSchemas").chain(map("dependencies")).filter(|(_, schema)| !schema.is_array());
        self.conditional.extend(dependent.map(|(name, schema)| Conditional::Dependent(name, schema)));
        self.conditional.extend(get(part, "if").map(|condition| Conditional::If {
            condition,
            then: get(part, "then").unwrap_or(&ANYTHING),
            otherwise: get(part, "else").unwrap_or(&ANYTHING),
        }));
    }

    /// Whether this describes, on no condition, what the other describes on no condition.
    fn includes(&self, other: &Evaluated<'_>) -> bool {
        self.everything
            || !other.everything
                && other.names.is_subset(&self.names)
                && other.patterns.is_subset(&self.patterns)
                && other.first_items <= self.first_items
    }
}

impl<'a> Conditional<'a> {
    /// All that it can describe.
    fn most(&self, root: &'a Value, looks: &Looks, keyword: &str) -> Evaluated<'a> {
        let mut most = Evaluated::default();
        let mut open = Vec::new();
        self.unfold(&mut most, &mut open);
        for (part, _) in open {
            let found = Evaluated::of(part, root, looks, keyword, true);
            most.is_unknown |= found.is_unknown;
            most.everything |= found.everything || get(part, keyword).is_some() || !found.conditional.is_empty();
            most.names.extend(found.names);
            most.patterns.extend(found.patterns);
            most.first_items = most.first_items.max(found.first_items);
        }
        most
    }

    fn unfold(&self, found: &mut Evaluated<'a>, open: &mut Vec<(&'a Value, bool)>) {
        match *self {
            Conditional::Branch(schema) | Conditional::Dependent(_, schema) => open.push((schema, false)),
            Conditional::If { condition, then, otherwise } => {
                open.extend([condition, then, otherwise].map(|schema| (schema, false)));
            }
            Conditional::Contains(_) => found.everything = true,
            Conditional::Reference(_) => found.is_unknown = true,
        }
    }

    /// Whether the other version describes as much as this, wherever this describes anything.
    fn is_covered(
        &self,
        other: &Conditional<'a>,
        walker: &mut Walker<'a, '_>,
        keyword: &'static str,
        direction: Direction,
    ) -> bool {
        let in_order = |own: &'a Value, other: &'a Value| match direction {
            Direction::KeepsAll => (own, other),
            Direction::AddsNothing => (other, own),
        };
        let holds_too = |walker: &mut Walker<'a, '_>, own, other| {
            let (old, new) = in_order(own, other);
            let (narrows, widens) = walker.try_pair(old, new, false, true);
            !if direction == Direction::KeepsAll { narrows } else { widens }
        };
        let describes =
            |walker: &mut Walker<'a, '_>, own, other| covers(walker, in_order(own, other), keyword, direction, false);
        match (self, other) {
            (Conditional::Branch(own), Conditional::Branch(other)) => {
                holds_too(walker, own, other) && describes(walker, own, other)
            }
            (Conditional::Dependent(name, own), Conditional::Dependent(same, other)) => {
                name == same && describes(walker, own, other)
            }
            (
                Conditional::If { condition, then, otherwise },
                Conditional::If { condition: other, then: other_then, otherwise: other_otherwise },
            ) => {
                walker.same(condition, other)
                    && describes(walker, then, other_then)
                    && describes(walker, otherwise, other_otherwise)
            }
            (Conditional::Contains(own), Conditional::Contains(other)) => holds_too(walker, own, other),
            (Conditional::Reference(own), Conditional::Reference(other)) => {
                own == other && !walker.roots.changed.contains(own)
            }
            _ => false,
        }
    }
}
