//! Checking a value, step by counted step.

use serde_json::{Map, Value};

use crate::equality::{all_differ, compare, equal, is_multiple};
use crate::meter::{Exhausted, Meter};
use crate::node::{Assertion, Assertions, Members, NodeId, NodeKind, Validator};

/// Schemas within schemas while one value is checked; each is a frame or two on the stack. A value nests at
/// most 128 deep, and few schemas take more than three steps for each level of it.
const MAX_DEPTH: usize = 512;

/// Why a value was not accepted.
#[derive(Debug)]
pub enum Rejection<'v> {
    /// It does not fit the schema.
    Failed(Failure<'v>),
    /// Finding out takes more work than the meter allowed.
    Exhausted,
}

/// The first thing that does not fit.
#[derive(Debug)]
pub struct Failure<'v> {
    /// From the top of the value to the part that does not fit.
    pub path: Vec<Step<'v>>,
    pub value: &'v Value,
    /// The JSON pointer of the schema object that the part does not fit.
    pub schema: String,
    /// The keyword that is not fulfilled.
    pub keyword: &'static str,
    /// The name of the member that is missing or not expected, where that is the failure.
    pub member: Option<String>,
}

/// One step into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'v> {
    Member(&'v str),
    Item(usize),
}

impl Validator {
    /// Checks a value; the first failure ends it.
    pub fn check<'v>(&self, value: &'v Value, meter: &mut Meter) -> Result<(), Rejection<'v>> {
        let mut check = Evaluation { validator: self, meter, depth: 0, trials: 0, path: Vec::new(), failure: None };
        match check.node(NodeId(0), value, None) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let nowhere = || Failure { path: Vec::new(), value, schema: String::new(), keyword: "", member: None };
                Err(Rejection::Failed(check.failure.take().unwrap_or_else(nowhere)))
            }
            Err(Exhausted) => Err(Rejection::Exhausted),
        }
    }
}

struct Evaluation<'c, 'v> {
    validator: &'c Validator,
    meter: &'c mut Meter,
    depth: usize,
    /// Schemas under way that may fail without the value failing: nothing is noted within them.
    trials: usize,
    path: Vec<Step<'v>>,
    failure: Option<Failure<'v>>,
}

/// Which parts of one value the rules have looked at; for `unevaluatedItems` and `unevaluatedProperties`.
struct Evaluated {
    parts: Vec<u64>,
}

impl Evaluated {
    fn of(value: &Value, meter: &mut Meter) -> Result<Evaluated, Exhausted> {
        let parts = match value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        };
        let words = parts.div_ceil(64);
        meter.spend(1 + words as u64)?;
        Ok(Evaluated { parts: vec![0; words] })
    }

    fn add(&mut self, part: usize) {
        self.parts[part / 64] |= 1 << (part % 64);
    }

    fn has(&self, part: usize) -> bool {
        self.parts[part / 64] & (1 << (part % 64)) != 0
    }

    fn add_all(&mut self, other: &Evaluated) {
        self.parts.iter_mut().zip(&other.parts).for_each(|(mine, theirs)| *mine |= theirs);
    }
}

type Fits = Result<bool, Exhausted>;

impl<'v> Evaluation<'_, 'v> {
    fn node(&mut self, id: NodeId, value: &'v Value, seen: Option<&mut Evaluated>) -> Fits {
        self.meter.spend(1)?;
        let validator = self.validator;
        let rules = match &validator.nodes[id.index()].kind {
            NodeKind::Anything => return Ok(true),
            NodeKind::Nothing => return Ok(self.fail(id, "", value)),
            NodeKind::Assertions(rules) => rules,
        };
        if self.depth >= MAX_DEPTH {
            return Err(Exhausted);
        }
        self.depth += 1;
        let fits = self.rules(id, rules, value, seen);
        self.depth -= 1;
        fits
    }

    fn rules(&mut self, id: NodeId, rules: &Assertions, value: &'v Value, outer: Option<&mut Evaluated>) -> Fits {
        if let Some(types) = rules.types
            && !types.has(value, self.validator.floats_are_integers)
        {
            return Ok(self.fail(id, "type", value));
        }
        if rules.unevaluated_items.is_none() && rules.unevaluated_properties.is_none() {
            return self.each(id, &rules.rules, value, outer);
        }
        let mut seen = Evaluated::of(value, self.meter)?;
        let fits =
            self.each(id, &rules.rules, value, Some(&mut seen))? && self.unevaluated(id, rules, value, &mut seen)?;
        if let Some(outer) = outer {
            outer.add_all(&seen);
        }
        Ok(fits)
    }

    fn each(&mut self, id: NodeId, rules: &[Assertion], value: &'v Value, mut seen: Option<&mut Evaluated>) -> Fits {
        for rule in rules {
            self.meter.spend(1)?;
            if !self.rule(id, rule, value, seen.as_deref_mut())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn rule(&mut self, id: NodeId, rule: &Assertion, value: &'v Value, mut seen: Option<&mut Evaluated>) -> Fits {
        let (keyword, fits) = match (rule, value) {
            (Assertion::Const(constant), _) => ("const", equal(constant, value, self.meter)?),
            (Assertion::Enum { texts, others }, _) => {
                let fits = match value {
                    Value::String(text) => {
                        self.meter.spend_length(text.len())?;
                        texts.contains(text.as_str())
                    }
                    other => self.is_one_of(other, others)?,
                };
                ("enum", fits)
            }
            (Assertion::Bound { keyword, bound, limit }, Value::Number(number)) => {
                let order = compare(number, limit);
                (*keyword, order.is_some_and(|order| bound.admits(&order, &std::cmp::Ordering::Equal)))
            }
            (Assertion::MultipleOf(step), Value::Number(number)) => ("multipleOf", is_multiple(number, step)),
            (Assertion::Length { keyword, bound, limit }, Value::String(text)) => {
                self.meter.spend_length(text.len())?;
                (*keyword, bound.admits(&(text.chars().count() as u64), limit))
            }
            (Assertion::Pattern(pattern), Value::String(text)) => {
                ("pattern", self.validator.patterns[pattern.0 as usize].is_match(text, self.meter)?)
            }
            (Assertion::ItemCount { keyword, bound, limit }, Value::Array(items)) => {
                (*keyword, bound.admits(&(items.len() as u64), limit))
            }
            (Assertion::UniqueItems, Value::Array(items)) => ("uniqueItems", all_differ(items, self.meter)?),
            (Assertion::Items { prefix, prefix_keyword, rest, rest_keyword }, Value::Array(items)) => {
                return self.items(id, items, prefix, prefix_keyword, *rest, rest_keyword, value, seen);
            }
            (Assertion::Contains { node, min, max }, Value::Array(items)) => {
                ("contains", self.contains(*node, items, *min, *max, seen)?)
            }
            (Assertion::MemberCount { keyword, bound, limit }, Value::Object(members)) => {
                (*keyword, bound.admits(&(members.len() as u64), limit))
            }
            (Assertion::Required(names), Value::Object(members)) => return self.required(id, names, members, value),
            (Assertion::Members(rule), Value::Object(members)) => return self.members(id, rule, members, value, seen),
            (Assertion::PropertyNames(node), Value::Object(members)) => {
                return self.property_names(id, *node, members, value);
            }
            (Assertion::DependentRequired(all), Value::Object(members)) => {
                for (name, wanted) in all {
                    self.meter.spend(1)?;
                    if members.contains_key(&**name) && !self.required(id, wanted, members, value)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            (Assertion::DependentSchemas(all), Value::Object(members)) => {
                for (name, node) in all {
                    self.meter.spend(1)?;
                    if members.contains_key(&**name) && !self.node(*node, value, seen.as_deref_mut())? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            (Assertion::Reference(node), _) => return self.node(*node, value, seen),
            (Assertion::AllOf(nodes), _) => {
                for node in nodes {
                    if !self.node(*node, value, seen.as_deref_mut())? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            (Assertion::AnyOf(nodes), _) => ("anyOf", self.count_fitting(nodes, value, seen, 1)? > 0),
            (Assertion::OneOf(nodes), _) => ("oneOf", self.count_fitting(nodes, value, seen, 2)? == 1),
            (Assertion::Not(node), _) => ("not", !self.attempt(*node, value, None)?),
            (Assertion::If { condition, then, otherwise }, _) => {
                let next = if self.attempt(*condition, value, seen.as_deref_mut())? { then } else { otherwise };
                return next.map_or(Ok(true), |node| self.node(node, value, seen));
            }
            _ => return Ok(true),
        };
        Ok(fits || self.fail(id, keyword, value))
    }

    /// Checks without noting a failure; what was seen counts only if it fits.
    fn attempt(&mut self, node: NodeId, value: &'v Value, seen: Option<&mut Evaluated>) -> Fits {
        self.trials += 1;
        let fits = match seen {
            None => self.node(node, value, None),
            Some(seen) => {
                let mut here = Evaluated::of(value, self.meter)?;
                let fits = self.node(node, value, Some(&mut here));
                if fits == Ok(true) {
                    seen.add_all(&here);
                }
                fits
            }
        };
        self.trials -= 1;
        fits
    }

    /// How many of the schemas fit. Stops at `enough`, unless it matters what each of them looks at.
    fn count_fitting(
        &mut self,
        nodes: &[NodeId],
        value: &'v Value,
        mut seen: Option<&mut Evaluated>,
        enough: usize,
    ) -> Result<usize, Exhausted> {
        let mut count = 0;
        for node in nodes {
            count += usize::from(self.attempt(*node, value, seen.as_deref_mut())?);
            if count >= enough && seen.is_none() {
                break;
            }
        }
        Ok(count)
    }

    fn is_one_of(&mut self, value: &Value, choices: &[Value]) -> Fits {
        for choice in choices {
            if equal(value, choice, self.meter)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes one step into the value.
    fn part(&mut self, step: Step<'v>, node: NodeId, value: &'v Value) -> Fits {
        self.path.push(step);
        let fits = self.node(node, value, None);
        self.path.pop();
        fits
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one rule")]
    fn items(
        &mut self,
        id: NodeId,
        items: &'v [Value],
        prefix: &[NodeId],
        prefix_keyword: &'static str,
        rest: Option<NodeId>,
        rest_keyword: &'static str,
        value: &'v Value,
        mut seen: Option<&mut Evaluated>,
    ) -> Fits {
        for (place, item) in items.iter().enumerate() {
            let (node, keyword) = match prefix.get(place) {
                Some(node) => (*node, prefix_keyword),
                None => match rest {
                    Some(node) => (node, rest_keyword),
                    None => break,
                },
            };
            if self.forbids(node) {
                return Ok(self.fail(id, keyword, value));
            }
            if !self.part(Step::Item(place), node, item)? {
                return Ok(false);
            }
            if let Some(seen) = &mut seen {
                seen.add(place);
            }
        }
        Ok(true)
    }

    fn contains(
        &mut self,
        node: NodeId,
        items: &'v [Value],
        min: u64,
        max: Option<u64>,
        mut seen: Option<&mut Evaluated>,
    ) -> Fits {
        let mut count = 0;
        for (place, item) in items.iter().enumerate() {
            if self.attempt(node, item, None)? {
                count += 1;
                if let Some(seen) = &mut seen {
                    seen.add(place);
                }
            }
        }
        Ok(count >= min && max.is_none_or(|max| count <= max))
    }

    fn required(&mut self, id: NodeId, names: &[Box<str>], members: &Map<String, Value>, value: &'v Value) -> Fits {
        for name in names {
            self.meter.spend(1)?;
            if !members.contains_key(&**name) {
                return Ok(self.fail_at(id, "required", value, name));
            }
        }
        Ok(true)
    }

    fn members(
        &mut self,
        id: NodeId,
        rule: &Members,
        members: &'v Map<String, Value>,
        value: &'v Value,
        mut seen: Option<&mut Evaluated>,
    ) -> Fits {
        for (place, (name, member)) in members.iter().enumerate() {
            self.meter.spend_length(name.len())?;
            let step = Step::Member(name);
            let mut is_known = false;
            if let Some(node) = rule.named.get(name.as_str()) {
                is_known = true;
                if !self.part(step, *node, member)? {
                    return Ok(false);
                }
            }
            for (pattern, node) in &rule.patterns {
                if self.validator.patterns[pattern.0 as usize].is_match(name, self.meter)? {
                    is_known = true;
                    if !self.part(step, *node, member)? {
                        return Ok(false);
                    }
                }
            }
            if let Some(node) = rule.additional.filter(|_| !is_known) {
                is_known = true;
                if self.forbids(node) {
                    return Ok(self.fail_at(id, "additionalProperties", value, name));
                }
                if !self.part(step, node, member)? {
                    return Ok(false);
                }
            }
            if let Some(seen) = seen.as_deref_mut().filter(|_| is_known) {
                seen.add(place);
            }
        }
        Ok(true)
    }

    fn property_names(&mut self, id: NodeId, node: NodeId, members: &'v Map<String, Value>, value: &'v Value) -> Fits {
        for name in members.keys() {
            self.meter.spend_length(name.len())?;
            // The name becomes a value of its own for as long as it is checked.
            let text = Value::String(name.clone());
            let fits = {
                let mut inner = Evaluation {
                    validator: self.validator,
                    meter: self.meter,
                    depth: self.depth,
                    trials: 1,
                    path: Vec::new(),
                    failure: None,
                };
                inner.node(node, &text, None)?
            };
            if !fits {
                return Ok(self.fail_at(id, "propertyNames", value, name));
            }
        }
        Ok(true)
    }

    /// What no other rule has looked at.
    fn unevaluated(&mut self, id: NodeId, rules: &Assertions, value: &'v Value, seen: &mut Evaluated) -> Fits {
        match (value, rules.unevaluated_items, rules.unevaluated_properties) {
            (Value::Array(items), Some(node), _) => {
                for (place, item) in items.iter().enumerate() {
                    self.meter.spend(1)?;
                    if seen.has(place) {
                        continue;
                    }
                    if self.forbids(node) {
                        return Ok(self.fail(id, "unevaluatedItems", value));
                    }
                    if !self.part(Step::Item(place), node, item)? {
                        return Ok(false);
                    }
                    seen.add(place);
                }
            }
            (Value::Object(members), _, Some(node)) => {
                for (place, (name, member)) in members.iter().enumerate() {
                    self.meter.spend(1)?;
                    if seen.has(place) {
                        continue;
                    }
                    if self.forbids(node) {
                        return Ok(self.fail_at(id, "unevaluatedProperties", value, name));
                    }
                    if !self.part(Step::Member(name), node, member)? {
                        return Ok(false);
                    }
                    seen.add(place);
                }
            }
            _ => {}
        }
        Ok(true)
    }

    fn forbids(&self, node: NodeId) -> bool {
        matches!(self.validator.nodes[node.index()].kind, NodeKind::Nothing)
    }

    /// Notes a failure, where one counts; always `false`.
    fn fail(&mut self, id: NodeId, keyword: &'static str, value: &'v Value) -> bool {
        self.note(id, keyword, value, None);
        false
    }

    fn fail_at(&mut self, id: NodeId, keyword: &'static str, value: &'v Value, member: &str) -> bool {
        self.note(id, keyword, value, Some(member));
        false
    }

    fn note(&mut self, id: NodeId, keyword: &'static str, value: &'v Value, member: Option<&str>) {
        if self.trials == 0 && self.failure.is_none() {
            let (path, schema) = (self.path.clone(), self.validator.pointer(id));
            self.failure = Some(Failure { path, value, schema, keyword, member: member.map(str::to_owned) });
        }
    }
}
