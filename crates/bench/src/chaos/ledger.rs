//! What clients saw, what boards did and what was recorded, call by call; and whether it fits together.

use std::collections::HashMap;

/// How a call ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallEnd {
    /// An answer, and whether it was a success.
    Answered { success: bool },
    /// Refused because it could not be recorded.
    NotRecorded,
    /// Refused before it became a call: the gateway was busy or stopping.
    TurnedAway,
    /// The gateway was killed before it answered.
    Cut,
}

#[derive(Default)]
pub(super) struct Ledger {
    ends: HashMap<u64, CallEnd>,
    executed: HashMap<u64, u32>,
    recorded: HashMap<u64, u32>,
    /// Calls whose execution cannot be seen.
    unobserved: std::collections::HashSet<u64>,
    violations: Vec<String>,
}

/// How many calls ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallCounts {
    pub(super) calls: usize,
    pub(super) succeeded: usize,
    pub(super) failed: usize,
    pub(super) not_recorded: usize,
    pub(super) cut: usize,
}

impl Ledger {
    pub(super) fn ended(&mut self, number: u64, end: CallEnd, is_observed: bool) {
        self.ends.insert(number, end);
        if !is_observed {
            self.unobserved.insert(number);
        }
    }

    pub(super) fn executed(&mut self, number: u64) {
        *self.executed.entry(number).or_default() += 1;
    }

    pub(super) fn recorded(&mut self, number: u64) {
        *self.recorded.entry(number).or_default() += 1;
    }

    /// Something that must not happen, whatever the calls say.
    pub(super) fn violated(&mut self, what: String) {
        self.violations.push(what);
    }

    pub(super) fn counts(&self) -> CallCounts {
        let count = |wanted: fn(&CallEnd) -> bool| self.ends.values().filter(|end| wanted(end)).count();
        CallCounts {
            calls: self.ends.len(),
            succeeded: count(|end| *end == CallEnd::Answered { success: true }),
            failed: count(|end| *end == CallEnd::Answered { success: false }),
            not_recorded: count(|end| *end == CallEnd::NotRecorded),
            cut: count(|end| *end == CallEnd::Cut),
        }
    }

    /// Everything that does not fit together, by call.
    pub(super) fn check(mut self) -> Vec<String> {
        let mut found = std::mem::take(&mut self.violations);
        let mut numbers: Vec<&u64> = self.ends.keys().chain(self.executed.keys()).chain(self.recorded.keys()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        found.extend(numbers.into_iter().filter_map(|number| self.check_call(*number)));
        found
    }

    fn check_call(&self, number: u64) -> Option<String> {
        let executed = self.executed.get(&number).copied().unwrap_or_default();
        let recorded = self.recorded.get(&number).copied().unwrap_or_default();
        let Some(end) = self.ends.get(&number) else {
            return Some(format!("call {number} was made by nobody: executed {executed}, recorded {recorded} times"));
        };
        let is_observed = !self.unobserved.contains(&number);
        let problem = match end {
            _ if executed > 1 => "was executed more than once",
            _ if recorded > 1 => "has more than one record",
            CallEnd::Answered { .. } if recorded == 0 => "was answered and has no record",
            CallEnd::Answered { success: true } if is_observed && executed == 0 => "succeeded without being executed",
            CallEnd::NotRecorded | CallEnd::TurnedAway if executed > 0 => "was refused and executed all the same",
            _ => return None,
        };
        Some(format!("call {number} {problem} ({end:?}, executed {executed}, recorded {recorded} times)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(end: CallEnd, executed: u32, recorded: u32) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.ended(7, end, true);
        (0..executed).for_each(|_| ledger.executed(7));
        (0..recorded).for_each(|_| ledger.recorded(7));
        ledger
    }

    #[test]
    fn what_may_happen_is_no_violation() {
        let (ok, failed) = (CallEnd::Answered { success: true }, CallEnd::Answered { success: false });
        for (end, executed, recorded) in [
            (ok, 1, 1),
            (failed, 0, 1),
            (failed, 1, 1),
            (CallEnd::NotRecorded, 0, 0),
            (CallEnd::NotRecorded, 0, 1),
            (CallEnd::TurnedAway, 0, 0),
            (CallEnd::Cut, 0, 0),
            (CallEnd::Cut, 1, 0),
            (CallEnd::Cut, 1, 1),
        ] {
            assert_eq!(ledger(end, executed, recorded).check(), Vec::<String>::new(), "{end:?}");
        }
        let mut unobserved = Ledger::default();
        unobserved.ended(1, ok, false);
        unobserved.recorded(1);
        assert_eq!(unobserved.check(), Vec::<String>::new());
    }

    #[test]
    fn every_violation_is_found() {
        let (ok, failed) = (CallEnd::Answered { success: true }, CallEnd::Answered { success: false });
        for (end, executed, recorded, problem) in [
            (ok, 2, 1, "executed more than once"),
            (ok, 1, 2, "more than one record"),
            (ok, 1, 0, "no record"),
            (failed, 0, 0, "no record"),
            (ok, 0, 1, "without being executed"),
            (CallEnd::NotRecorded, 1, 1, "refused and executed"),
            (CallEnd::TurnedAway, 1, 0, "refused and executed"),
            (CallEnd::Cut, 2, 1, "executed more than once"),
            (CallEnd::Cut, 0, 2, "more than one record"),
        ] {
            let found = ledger(end, executed, recorded).check();
            assert!(found.len() == 1 && found[0].contains(problem), "{end:?}: {found:?}");
        }
        let mut foreign = Ledger::default();
        foreign.executed(3);
        assert_eq!(foreign.check().len(), 1, "a call that nobody made");
    }
}
