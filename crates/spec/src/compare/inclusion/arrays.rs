//! Arrays: their length, and what is known of each item.

use serde_json::Value;

use super::numbers::counts;
use super::statements::{Counted, Statement};
use super::{NOTHING, Prover};

impl Prover<'_> {
    pub(super) fn is_evident_for_arrays(&mut self, facts: &[Statement<'_>], goals: &[Statement<'_>]) -> bool {
        let (mut low, high) = counts(facts, goals, Counted::Items);
        for fact in facts {
            if let Statement::Contains { least, .. } = fact {
                low = low.max(*least);
            }
        }
        match high {
            Some(high) if low > high => return true,
            Some(0) => return self.is_settled(facts, goals, &Value::Array(Vec::new())),
            _ => {}
        }
        let positions = |statement: &Statement<'_>| match statement {
            Statement::Items { first, .. } => first.len(),
            _ => 0,
        };
        let described = facts.iter().chain(goals).map(positions).max().unwrap_or(0);
        // One position stands for all that are not described.
        let possible =
            high.map_or(described + 1, |high| (described + 1).min(usize::try_from(high).unwrap_or(usize::MAX)));
        if !self.spend(possible) {
            return false;
        }
        let needed = possible.min(usize::try_from(low).unwrap_or(usize::MAX));
        if (0..needed).any(|index| self.follows(items_at(facts, index), [&NOTHING])) {
            return true;
        }
        let never_contained = |prover: &mut Self, wanted: &Value| {
            (0..possible).all(|index| prover.follows(items_at(facts, index).into_iter().chain([wanted]), [&NOTHING]))
        };
        if facts
            .iter()
            .any(|fact| matches!(fact, Statement::Contains { schema, least: 1.., .. } if never_contained(self, schema)))
        {
            return true;
        }
        // An array that fulfils none of the goals has no item that fits these.
        let missing: Vec<&Value> = goals
            .iter()
            .filter_map(|goal| match goal {
                Statement::Contains { schema, least: 0 | 1, most: None } => Some(*schema),
                _ => None,
            })
            .collect();
        goals.iter().any(|goal| match goal {
            Statement::Unique => high.is_some_and(|high| high <= 1),
            Statement::Items { first, rest } => (0..possible).all(|index| {
                let wanted = first.get(index).unwrap_or(rest);
                self.follows(items_at(facts, index), missing.iter().copied().chain([wanted]))
            }),
            Statement::Contains { schema, least, most } => {
                let is_below = most.is_none_or(|most| high.is_some_and(|high| high <= most));
                is_below && (*least == 0 || self.is_contained(facts, low, possible, schema, *least))
            }
            _ => false,
        })
    }

    /// Whether so many items are sure to fit a schema: those of another `contains`, or all of them.
    fn is_contained(&mut self, facts: &[Statement<'_>], low: u64, possible: usize, wanted: &Value, least: u64) -> bool {
        let known = facts.iter().any(|fact| match fact {
            Statement::Contains { schema, least: known, .. } => *known >= least && self.follows([*schema], [wanted]),
            _ => false,
        });
        known || low >= least && (0..possible).all(|index| self.follows(items_at(facts, index), [wanted]))
    }
}

/// The schemas for one item.
fn items_at<'a>(facts: &[Statement<'a>], index: usize) -> Vec<&'a Value> {
    let at = |fact: &Statement<'a>| match fact {
        Statement::Items { first, rest } => Some(first.get(index).unwrap_or(rest)),
        _ => None,
    };
    facts.iter().filter_map(at).collect()
}
