//! Whether one schema accepts everything that another one accepts, by proof.
//!
//! The question is always: does whatever fulfils all that is known fulfil at least one thing that is wanted? Schemas
//! are taken apart until only [`Statement`]s are left: a negation moves to the other side, an alternative that is
//! known is a case to prove on its own, and so is each part of a schema that is wanted. Statements are about values of
//! one type, and `numbers`, `arrays` and `objects` know when some of them lead to another. What is known may be left
//! out, and what is wanted too, so a proof that is found is always right; none may be found where there is one.

mod arrays;
mod numbers;
mod objects;
mod statements;
mod values;

use std::collections::HashSet;

use serde_json::Value;

use super::budget::{CompareBudget, Looks};
use super::keywords::{ALL, ARRAY, INTEGER, Kinds, NUMBER, OBJECT, STRING, kind_of};
use super::schema::{is_reference, refers};
use statements::{Part, Statement, parts};

/// Steps for one proof. Those that are found take some hundreds.
const MAX_STEPS: usize = 4_000;
/// Cases inside of cases.
const MAX_DEPTH: usize = 60;
/// More listed values than this are not looked at one by one.
const MAX_VALUES: usize = 256;

static NOTHING: Value = Value::Bool(false);

/// Whether `wide` accepts all that `narrow` accepts, as far as a proof is found with what is left of the budget.
/// `changed` are references that do not mean the same in both.
pub(super) fn accepts_all_of(
    wide: &Value,
    narrow: &Value,
    changed: &HashSet<&str>,
    budget: &mut CompareBudget,
) -> bool {
    let granted = MAX_STEPS.min(budget.proof_steps);
    let mut prover = Prover { changed, looks: &budget.looks, left: granted, depth: 0 };
    let is_proved = prover.follows([narrow], [wide]);
    budget.proof_steps -= granted - prover.left;
    is_proved
}

struct Prover<'p> {
    changed: &'p HashSet<&'p str>,
    looks: &'p Looks,
    left: usize,
    depth: usize,
}

#[derive(Clone, Default)]
struct Question<'a> {
    /// Not taken apart yet.
    known: Vec<Part<'a>>,
    wanted: Vec<Part<'a>>,
    /// Known schemas as a whole: whoever wants the same one gets it.
    schemas: Vec<&'a Value>,
    facts: Vec<Statement<'a>>,
    goals: Vec<Statement<'a>>,
    /// Known: one of several cases.
    cases: Vec<Part<'a>>,
    /// Wanted: several parts together.
    demands: Vec<Part<'a>>,
}

impl<'a> Question<'a> {
    fn with(
        &self,
        known: impl IntoIterator<Item = Part<'a>>,
        wanted: impl IntoIterator<Item = Part<'a>>,
    ) -> Question<'a> {
        let mut next = self.clone();
        next.known.extend(known);
        next.wanted.extend(wanted);
        next
    }
}

impl Prover<'_> {
    /// Whether a value that all of the known schemas accept is accepted by one of those wanted.
    fn follows<'a>(
        &mut self,
        known: impl IntoIterator<Item = &'a Value>,
        wanted: impl IntoIterator<Item = &'a Value>,
    ) -> bool {
        let parts = (known.into_iter().map(Part::Schema), wanted.into_iter().map(Part::Schema));
        self.is_answered(Question::default().with(parts.0, parts.1))
    }

    fn spend(&mut self, steps: usize) -> bool {
        let is_enough = self.left >= steps;
        self.left = self.left.saturating_sub(steps);
        is_enough
    }

    fn same(&self, one: &Value, two: &Value) -> bool {
        self.looks.equal(one, two) && (self.changed.is_empty() || !refers(one, self.changed))
    }

    /// Whether a keyword is a reference whose target changed.
    fn refers_to_changed(&self, key: &str, value: &Value) -> bool {
        is_reference(key) && value.as_str().is_none_or(|reference| self.changed.contains(reference))
    }

    fn is_answered(&mut self, question: Question<'_>) -> bool {
        if self.depth == MAX_DEPTH || !self.spend(1) {
            return false;
        }
        self.depth += 1;
        let is_answered = self.answer(question);
        self.depth -= 1;
        is_answered
    }

    fn answer(&mut self, mut question: Question<'_>) -> bool {
        if self.take_apart(&mut question) || self.is_evident(&question.facts, &question.goals) {
            return true;
        }
        if let Some(case) = question.cases.pop() {
            return self.in_each_case(&question, case);
        }
        question.demands.pop().is_some_and(|demand| self.in_each_part(&question, demand))
    }

    /// Everything that needs no cases. Returns whether that was enough for a proof.
    fn take_apart<'a>(&mut self, question: &mut Question<'a>) -> bool {
        loop {
            if let Some(part) = question.known.pop() {
                match part {
                    Part::Schema(Value::Bool(false)) => return true,
                    Part::Schema(schema @ Value::Object(members)) => {
                        question.schemas.push(schema);
                        question.known.extend(parts(members));
                    }
                    Part::Schema(_) => {}
                    Part::Statement(fact) => question.facts.push(fact),
                    Part::All(list) => question.known.extend(list.iter().map(Part::Schema)),
                    Part::Not(schema) => question.wanted.push(Part::Schema(schema)),
                    case => question.cases.push(case),
                }
            } else if let Some(part) = question.wanted.pop() {
                match part {
                    Part::Schema(Value::Bool(true)) => return true,
                    Part::Schema(schema @ Value::Object(members)) => {
                        if question.schemas.iter().any(|known| self.same(known, schema)) {
                            return true;
                        }
                        match parts(members).as_slice() {
                            [] => return true,
                            [only] => question.wanted.push(*only),
                            _ => question.demands.push(part),
                        }
                    }
                    Part::Schema(_) => {}
                    Part::Statement(goal) => question.goals.push(goal),
                    Part::Any(list) => question.wanted.extend(list.iter().map(Part::Schema)),
                    Part::Not(schema) => question.known.push(Part::Schema(schema)),
                    demand => question.demands.push(demand),
                }
            } else {
                return question
                    .cases
                    .iter()
                    .any(|case| question.demands.iter().any(|part| self.same_part(case, part)));
            }
        }
    }

    fn same_part(&self, one: &Part<'_>, two: &Part<'_>) -> bool {
        let all_same = |one: &[Value], two: &[Value]| {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| self.same(one, two))
        };
        match (one, two) {
            (Part::One(one), Part::One(two)) => all_same(one, two),
            (
                Part::If { condition, then, otherwise },
                Part::If { condition: condition_two, then: then_two, otherwise: otherwise_two },
            ) => {
                self.same(condition, condition_two) && self.same(then, then_two) && self.same(otherwise, otherwise_two)
            }
            _ => false,
        }
    }

    /// Whether the question is answered in each case of something known.
    fn in_each_case<'a>(&mut self, question: &Question<'a>, case: Part<'a>) -> bool {
        let present = |name| [Statement::Kinds(OBJECT), Statement::Required(name)].map(Part::Statement);
        let absent = |name| Part::Statement(Statement::Member { name, schema: &NOTHING });
        match case {
            Part::Any(list) => list.iter().all(|branch| self.is_answered(question.with([Part::Schema(branch)], []))),
            Part::One(list) => list.iter().enumerate().all(|(index, branch)| {
                let others = list.iter().enumerate().filter(|(other, _)| *other != index);
                self.is_answered(question.with([Part::Schema(branch)], others.map(|(_, other)| Part::Schema(other))))
            }),
            Part::If { condition, then, otherwise } => {
                self.is_answered(question.with([condition, then].map(Part::Schema), []))
                    && self.is_answered(question.with([Part::Schema(otherwise)], [Part::Schema(condition)]))
            }
            Part::WithMember { name, schema } => {
                self.is_answered(question.with([absent(name)], []))
                    && self.is_answered(question.with(present(name).into_iter().chain([Part::Schema(schema)]), []))
            }
            Part::WithMemberRequired { name, names } => {
                let needed =
                    names.iter().filter_map(Value::as_str).map(|name| Part::Statement(Statement::Required(name)));
                self.is_answered(question.with([absent(name)], []))
                    && self.is_answered(question.with(present(name).into_iter().chain(needed), []))
            }
            Part::Schema(_) | Part::Statement(_) | Part::All(_) | Part::Not(_) => false,
        }
    }

    /// Whether each part of something wanted is fulfilled.
    fn in_each_part<'a>(&mut self, question: &Question<'a>, demand: Part<'a>) -> bool {
        let present = |name| [Statement::Kinds(OBJECT), Statement::Required(name)].map(Part::Statement);
        match demand {
            Part::Schema(Value::Object(members)) => {
                parts(members).into_iter().all(|part| self.is_answered(question.with([], [part])))
            }
            Part::All(list) => list.iter().all(|part| self.is_answered(question.with([], [Part::Schema(part)]))),
            Part::One(list) => {
                let apart = |one: usize, two: usize| [&list[one], &list[two]].map(Part::Schema);
                self.is_answered(question.with([], [Part::Any(list)]))
                    && (0..list.len())
                        .all(|one| (0..one).all(|two| self.is_answered(question.with(apart(one, two), []))))
            }
            Part::If { condition, then, otherwise } => {
                self.is_answered(question.with([Part::Schema(condition)], [Part::Schema(then)]))
                    && self.is_answered(question.with([], [condition, otherwise].map(Part::Schema)))
            }
            Part::WithMember { name, schema } => self.is_answered(question.with(present(name), [Part::Schema(schema)])),
            Part::WithMemberRequired { name, names } => names.iter().all(|needed| {
                let needed = needed.as_str().map(|name| Part::Statement(Statement::Required(name)));
                self.is_answered(question.with(present(name), needed))
            }),
            Part::Schema(_) | Part::Statement(_) | Part::Any(_) | Part::Not(_) => false,
        }
    }

    /// Whether the facts alone lead to one of the goals, for values of each type.
    fn is_evident(&mut self, facts: &[Statement<'_>], goals: &[Statement<'_>]) -> bool {
        if !self.spend(1 + (facts.len() + goals.len()) / 8) {
            return false;
        }
        if !self.looks.spend(facts.len() * goals.len()) {
            return false;
        }
        if goals.iter().any(|goal| facts.iter().any(|fact| self.same_statement(fact, goal))) {
            return true;
        }
        let mut kinds = ALL;
        let mut values: Option<&[Value]> = None;
        for fact in facts {
            match fact {
                Statement::Kinds(stated) => kinds &= stated,
                Statement::Values(list) if values.is_none_or(|values| list.len() < values.len()) => values = Some(list),
                _ => {}
            }
        }
        for goal in goals {
            if let Statement::Kinds(stated) = goal {
                kinds &= !stated;
            }
        }
        if let Some(values) = values {
            let mut values = values.iter().filter(|value| kind_of(value) & kinds != 0);
            return values.clone().count() <= MAX_VALUES && values.all(|value| self.is_settled(facts, goals, value));
        }
        let each = [1, 2, INTEGER, NUMBER & !INTEGER, STRING, ARRAY, OBJECT];
        each.into_iter().filter(|kind| kinds & kind != 0).all(|kind| self.is_evident_for(kind, facts, goals))
    }

    fn is_evident_for(&mut self, kind: Kinds, facts: &[Statement<'_>], goals: &[Statement<'_>]) -> bool {
        // Values of other types than those it is about fulfil a statement.
        if goals.iter().any(|goal| goal.about() & kind == 0) {
            return true;
        }
        match kind {
            INTEGER => self.is_evident_for_integers(facts, goals),
            STRING => self.is_evident_for_strings(facts, goals),
            ARRAY => self.is_evident_for_arrays(facts, goals),
            OBJECT => self.is_evident_for_objects(facts, goals),
            1 => self.is_settled(facts, goals, &Value::Null),
            2 => [false, true].iter().all(|value| self.is_settled(facts, goals, &Value::Bool(*value))),
            _ => numbers::is_evident_for_fractions(facts, goals),
        }
    }

    /// Whether a value cannot occur, or fulfils a goal.
    fn is_settled(&mut self, facts: &[Statement<'_>], goals: &[Statement<'_>], value: &Value) -> bool {
        self.spend(1)
            && (facts.iter().any(|fact| self.is_fulfilled(fact, value) == Some(false))
                || goals.iter().any(|goal| self.is_fulfilled(goal, value) == Some(true)))
    }
}
