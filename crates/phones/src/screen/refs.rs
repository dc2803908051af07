//! Short, stable names: `e7` stays the name of an element while the element stays the same.

use std::collections::HashMap;

use super::Item;
use crate::tree::UiNodeId;

/// The refs of one phone. Numbers are never reused.
#[derive(Default)]
pub struct Refs {
    numbers: HashMap<UiNodeId, u32>,
    known: HashMap<u32, RefTarget>,
    last: u32,
}

/// What a ref stood for when it was last shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefTarget {
    pub id: UiNodeId,
    /// `btn "Sign in"`.
    pub face: String,
}

/// 5,000: hundreds of screens; then the oldest refs are forgotten.
const MAX_REFS: usize = 5_000;

impl Refs {
    /// `e7`, given out now or earlier.
    pub fn name(&mut self, item: &Item) -> String {
        format!("e{}", self.number(item))
    }

    pub fn number(&mut self, item: &Item) -> u32 {
        let number = *self.numbers.entry(item.id).or_insert_with(|| {
            self.last += 1;
            self.last
        });
        self.known.insert(number, RefTarget { id: item.id, face: item.face() });
        if self.known.len() > MAX_REFS {
            let oldest = number.saturating_sub(MAX_REFS as u32 / 2);
            self.known.retain(|number, _| *number >= oldest);
            self.numbers.retain(|_, number| *number >= oldest);
        }
        number
    }

    /// What `e7` stands for.
    pub fn find(&self, name: &str) -> Option<&RefTarget> {
        self.known.get(&digits(name)?.parse().ok()?)
    }

    /// Whether a text has the form of a ref, given out or not.
    pub fn is_name(name: &str) -> bool {
        digits(name).is_some()
    }

    /// The name of a node that was shown before.
    pub fn of(&self, id: UiNodeId) -> Option<String> {
        self.numbers.get(&id).map(|number| format!("e{number}"))
    }
}

fn digits(name: &str) -> Option<&str> {
    let digits = name.strip_prefix('e')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}
