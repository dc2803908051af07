//! What comparing may cost: for one pair of schemas, and for a whole list of tools.
//!
//! Whoever writes both schemas decides how long it takes to compare them, so everything that grows faster than the text
//! is counted. What is over is not compared, and reported as undecided.

use std::cell::Cell;

use serde_json::{Map, Value};

use crate::schema::resolve;

/// Steps for one pair of schemas; beyond that they are too complex to compare.
const MAX_STEPS: usize = 10_000;
/// Steps for proofs about one pair of schemas. Most proofs that are found take some dozens.
const MAX_PROOF_STEPS: usize = 40_000;
/// Parts of schemas that are looked at for one pair. The largest pairs of real tools take some ten thousand.
const MAX_LOOKS: usize = 2_000_000;
/// Bytes of places and messages for one pair: some ten thousand changes.
const MAX_TEXT: usize = 2 << 20;
/// Bytes of text, and looks, that take as long as one step.
const TEXT_PER_STEP: usize = 32;
const LOOKS_PER_STEP: usize = 32;

/// What may still be spent on a list of tools, in steps of about a microsecond.
#[derive(Debug)]
pub struct CompareWork {
    left: usize,
}

impl CompareWork {
    pub fn new(steps: usize) -> CompareWork {
        CompareWork { left: steps }
    }

    /// For one pair, which has bounds of its own.
    pub(super) fn of_a_pair() -> CompareWork {
        CompareWork::new(usize::MAX)
    }

    /// Takes steps, if so many are left.
    pub(super) fn spend(&mut self, steps: usize) -> bool {
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or_default();
        left.is_some()
    }

    /// Lets `compare` spend what one pair may take of what is left.
    pub(super) fn on_a_pair<R>(&mut self, has_proofs: bool, compare: impl FnOnce(&mut CompareBudget) -> R) -> R {
        let most = |wanted: usize| wanted.min(self.left);
        let (steps, proof_steps) = (most(MAX_STEPS), if has_proofs { most(MAX_PROOF_STEPS) } else { 0 });
        let looks = most(MAX_LOOKS / LOOKS_PER_STEP) * LOOKS_PER_STEP;
        let text = most(MAX_TEXT / TEXT_PER_STEP) * TEXT_PER_STEP;
        let mut budget = CompareBudget { steps, proof_steps, looks: Looks::new(looks), text };
        let found = compare(&mut budget);
        let spent = (steps - budget.steps) + (proof_steps - budget.proof_steps);
        let looked = (looks - budget.looks.left()).div_ceil(LOOKS_PER_STEP);
        let reported = (text - budget.text).div_ceil(TEXT_PER_STEP);
        self.left = self.left.saturating_sub(spent + looked + reported);
        found
    }
}

/// What may still be spent on one pair of schemas.
pub(super) struct CompareBudget {
    pub steps: usize,
    pub proof_steps: usize,
    pub looks: Looks,
    /// Bytes of what is reported.
    pub text: usize,
}

impl CompareBudget {
    /// Whether something was not looked at or not reported because it would have cost too much.
    pub(super) fn is_over(&self) -> bool {
        self.looks.is_spent() || self.text == 0
    }
}

/// How many parts of schemas may still be looked at. Whoever asks for more gets the answer that claims least.
pub(super) struct Looks(Cell<usize>);

impl Looks {
    pub(super) fn new(looks: usize) -> Looks {
        Looks(Cell::new(looks))
    }

    pub(super) fn left(&self) -> usize {
        self.0.get()
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left() == 0
    }

    /// Takes looks, if so many are left.
    pub(super) fn spend(&self, looks: usize) -> bool {
        let left = self.left().checked_sub(looks);
        self.0.set(left.unwrap_or_default());
        left.is_some()
    }

    /// Looks at every part of a value.
    pub(super) fn spend_whole(&self, value: &Value) -> bool {
        self.spend(1)
            && match value {
                Value::Object(members) => members.values().all(|member| self.spend_whole(member)),
                Value::Array(items) => items.iter().all(|item| self.spend_whole(item)),
                _ => true,
            }
    }

    /// Looks at the keywords of a schema: at their lists, and at all of the values that it names.
    pub(super) fn spend_keywords(&self, schema: &Value) -> bool {
        let look = |(key, value): (&String, &Value)| match value {
            _ if matches!(key.as_str(), "enum" | "const" | "default" | "examples") => self.spend_whole(value),
            Value::Array(items) => self.spend(1 + items.len()),
            Value::Object(members) => self.spend(1 + members.len()),
            _ => self.spend(1),
        };
        schema.as_object().is_none_or(|members| members.iter().all(look))
    }

    /// Equality, without hashing where the keys come in the same order.
    pub(super) fn equal(&self, one: &Value, two: &Value) -> bool {
        self.spend(1)
            && match (one, two) {
                (Value::Object(first), Value::Object(second)) if first.keys().eq(second.keys()) => {
                    first.values().zip(second.values()).all(|(one, two)| self.equal(one, two))
                }
                (Value::Object(first), Value::Object(second)) => self.equal_members(first, second),
                (Value::Array(first), Value::Array(second)) => {
                    first.len() == second.len() && first.iter().zip(second).all(|(one, two)| self.equal(one, two))
                }
                _ => one == two,
            }
    }

    fn equal_members(&self, one: &Map<String, Value>, two: &Map<String, Value>) -> bool {
        one.len() == two.len()
            && one.iter().all(|(key, value)| two.get(key).is_some_and(|other| self.equal(value, other)))
    }

    /// What a reference leads to. Anchors are looked for in all definitions.
    pub(super) fn resolve<'a>(&self, root: &'a Value, reference: &str) -> Option<&'a Value> {
        let count = |key| root.get(key).and_then(Value::as_object).map_or(0, Map::len);
        let is_path = reference == "#" || reference.starts_with("#/");
        let looks = if is_path { reference.len() / 8 } else { count("$defs") + count("definitions") };
        resolve(root, reference).filter(|_| self.spend(1 + looks))
    }
}
