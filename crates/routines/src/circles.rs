//! Routines that call themselves through others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

/// The calls of routines among each other: who calls whom, and in which line.
pub(crate) type CallGraph<'a> = BTreeMap<&'a str, Vec<(usize, &'a str)>>;

/// Circles whose way is worked out; a person reads a few.
const MAX_WAYS: usize = 20;

/// How a routine comes back to itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Circle<'a> {
    /// The line of the call that leads there.
    pub(crate) line: usize,
    /// All that are called on the way; empty where there are too many circles to tell.
    pub(crate) way: Vec<&'a str>,
}

impl fmt::Display for Circle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: it calls itself without end", self.line)?;
        if self.way.is_empty() { Ok(()) } else { write!(f, ": {}", self.way.join(", ")) }
    }
}

/// The routines that come back to themselves. The work grows with the number of calls, whatever they look like.
pub(crate) fn circles<'a>(calls: &CallGraph<'a>) -> BTreeMap<&'a str, Circle<'a>> {
    let mut search = Search { calls, marks: BTreeMap::new(), open: Vec::new(), groups: BTreeMap::new() };
    for name in calls.keys() {
        search.visit(name);
    }
    let groups = search.groups;
    let leads_back = |name: &str, to: &str| groups.get(name).is_some_and(|group| groups.get(to) == Some(group));
    let mut found = BTreeMap::new();
    for (name, called) in calls {
        let Some((line, _)) = called.iter().find(|(_, to)| leads_back(name, to)) else { continue };
        let way = if found.len() < MAX_WAYS { way_back(name, calls, &leads_back) } else { Vec::new() };
        found.insert(*name, Circle { line: *line, way });
    }
    found
}

/// Tarjan's search: routines that reach each other get the same group. No group has the number of another.
struct Search<'s, 'a> {
    calls: &'s CallGraph<'a>,
    /// When a routine was met, and the earliest that is met from it and still open.
    marks: BTreeMap<&'a str, (usize, usize)>,
    open: Vec<&'a str>,
    groups: BTreeMap<&'a str, usize>,
}

impl<'a> Search<'_, 'a> {
    /// As deep as there are routines, of which there are a thousand at most.
    fn visit(&mut self, name: &'a str) -> usize {
        if let Some((_, lowest)) = self.marks.get(name) {
            return *lowest;
        }
        let met = self.marks.len();
        self.marks.insert(name, (met, met));
        self.open.push(name);
        let mut lowest = met;
        let calls = self.calls;
        for (_, to) in calls.get(name).into_iter().flatten().filter(|(_, to)| calls.contains_key(to)) {
            let below = self.visit(to);
            if !self.groups.contains_key(to) {
                lowest = lowest.min(below);
            }
        }
        self.marks.insert(name, (met, lowest));
        if lowest == met {
            while let Some(member) = self.open.pop() {
                self.groups.insert(member, met);
                if member == name {
                    break;
                }
            }
        }
        lowest
    }
}

/// The shortest way from a routine to itself.
fn way_back<'a>(start: &'a str, calls: &CallGraph<'a>, leads_back: &dyn Fn(&str, &str) -> bool) -> Vec<&'a str> {
    let (mut from, mut seen) = (BTreeMap::new(), BTreeSet::new());
    let mut next = VecDeque::from([start]);
    while let Some(name) = next.pop_front() {
        for (_, to) in calls.get(name).into_iter().flatten().filter(|(_, to)| leads_back(start, to)) {
            if *to == start {
                let mut way = vec![start];
                let mut last = name;
                while last != start {
                    way.push(last);
                    last = from.get(last).copied().unwrap_or(start);
                }
                way.reverse();
                return way;
            }
            if seen.insert(*to) {
                from.insert(*to, name);
                next.push_back(to);
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph<'a>(calls: &[(&'a str, &'a str)]) -> CallGraph<'a> {
        let mut graph = CallGraph::new();
        for (line, (from, to)) in calls.iter().enumerate() {
            graph.entry(*from).or_default().push((line + 1, *to));
        }
        graph
    }

    #[test]
    fn who_comes_back_is_found_and_who_only_leads_there_is_not() {
        let calls = graph(&[("a", "x"), ("a", "b"), ("b", "c"), ("c", "a"), ("in", "a"), ("c", "out"), ("out", "end")]);
        let found = circles(&calls);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(found["a"], Circle { line: 2, way: vec!["b", "c", "a"] });
        assert_eq!(found["b"].to_string(), "line 3: it calls itself without end: c, a, b");
        // Between two circles is in none of them.
        let between = graph(&[("a", "b"), ("b", "a"), ("b", "m"), ("m", "x"), ("x", "y"), ("y", "x")]);
        assert_eq!(circles(&between).keys().copied().collect::<Vec<_>>(), ["a", "b", "x", "y"]);
        assert!(circles(&graph(&[("a", "b"), ("a", "c"), ("b", "c")])).is_empty());
    }

    #[test]
    fn a_thousand_that_all_call_each_other_are_found_at_once() {
        let names: Vec<String> = (0..1_000).map(|number| format!("r{number}")).collect();
        let calls = |at: usize| (1..=100).map(|step| (step, names[(at + step) % names.len()].as_str())).collect();
        let graph: CallGraph<'_> = (0..names.len()).map(|at| (names[at].as_str(), calls(at))).collect();
        assert_eq!(circles(&graph).len(), 1_000);
    }
}
