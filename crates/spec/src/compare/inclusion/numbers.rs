//! Numbers and lengths: what is known and the opposite of what is wanted leave nothing in between.

use serde_json::{Number, Value};

use super::super::numbers::{divides, order, whole_limit};
use super::statements::{Counted, Statement};
use super::{MAX_VALUES, Prover};

impl Prover<'_> {
    pub(super) fn is_evident_for_integers(&mut self, facts: &[Statement<'_>], goals: &[Statement<'_>]) -> bool {
        let (mut low, mut high) = (i128::MIN, i128::MAX);
        let limits = |statements: &[Statement<'_>]| -> Vec<(i128, bool)> {
            let limit = |statement: &Statement<'_>| match statement {
                Statement::Limit { number, is_lower, is_shut } => {
                    Some((whole_limit(number, *is_shut, *is_lower)?.into(), *is_lower))
                }
                _ => None,
            };
            statements.iter().filter_map(limit).collect()
        };
        for (limit, is_lower) in limits(facts) {
            if is_lower { low = low.max(limit) } else { high = high.min(limit) }
        }
        for (limit, is_lower) in limits(goals) {
            if is_lower { high = high.min(limit - 1) } else { low = low.max(limit + 1) }
        }
        if low > high {
            return true;
        }
        let one = Number::from(1);
        if goals.iter().any(|goal| matches!(goal, Statement::Step(step) if divides(step, &one) == Some(true)))
            || has_finer_step(facts, goals)
        {
            return true;
        }
        let are_few = high.checked_sub(low).is_some_and(|more| more < MAX_VALUES as i128);
        let mut each = (low..=high).map(i64::try_from);
        are_few && each.all(|number| number.is_ok_and(|number| self.is_settled(facts, goals, &Value::from(number))))
    }

    pub(super) fn is_evident_for_strings(&mut self, facts: &[Statement<'_>], goals: &[Statement<'_>]) -> bool {
        match counts(facts, goals, Counted::Characters) {
            (low, Some(high)) if low > high => true,
            (_, Some(0)) => self.is_settled(facts, goals, &Value::String(String::new())),
            _ => false,
        }
    }
}

/// Whether every multiple of a known step is one of a wanted step.
fn has_finer_step(facts: &[Statement<'_>], goals: &[Statement<'_>]) -> bool {
    let finer = |goal: &Statement<'_>, fact: &Statement<'_>| match (goal, fact) {
        (Statement::Step(finer), Statement::Step(step)) => divides(finer, step) == Some(true),
        _ => false,
    };
    goals.iter().any(|goal| facts.iter().any(|fact| finer(goal, fact)))
}

/// For numbers that are not integers.
pub(super) fn is_evident_for_fractions(facts: &[Statement<'_>], goals: &[Statement<'_>]) -> bool {
    let one = Number::from(1);
    let is_whole = |fact: &Statement<'_>| matches!(fact, Statement::Step(step) if divides(&one, step) == Some(true));
    if facts.iter().any(is_whole) || has_finer_step(facts, goals) {
        return true;
    }
    let limits = |is_lower: bool| {
        let known = facts.iter().filter_map(move |fact| match fact {
            Statement::Limit { number, is_lower: lower, is_shut } if *lower == is_lower => Some((*number, *is_shut)),
            _ => None,
        });
        // What does not fulfil the goal is beyond its limit.
        known.chain(goals.iter().filter_map(move |goal| match goal {
            Statement::Limit { number, is_lower: lower, is_shut } if *lower != is_lower => Some((*number, !*is_shut)),
            _ => None,
        }))
    };
    limits(true).any(|(low, low_shut)| {
        limits(false).any(|(high, high_shut)| match order(low, high) {
            Some(std::cmp::Ordering::Greater) => true,
            // The only number left is excluded, or an integer.
            Some(std::cmp::Ordering::Equal) => {
                low_shut || high_shut || low.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            _ => false,
        })
    })
}

/// The smallest and the largest number of characters, items or members that is left.
pub(super) fn counts(facts: &[Statement<'_>], goals: &[Statement<'_>], counted: Counted) -> (u64, Option<u64>) {
    let (mut low, mut high) = (0, u64::MAX);
    for (statements, is_known) in [(facts, true), (goals, false)] {
        for statement in statements {
            match statement {
                Statement::Count { of, number, is_lower } if *of == counted => match (*is_lower, is_known) {
                    (true, true) => low = low.max(*number),
                    (false, true) => high = high.min(*number),
                    (true, false) if *number == 0 => return (1, Some(0)),
                    (true, false) => high = high.min(number - 1),
                    (false, false) => low = low.max(number.saturating_add(1)),
                },
                _ => {}
            }
        }
    }
    (low, (high < u64::MAX).then_some(high))
}
