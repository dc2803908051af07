//! A compiled schema: a graph of nodes, one for each schema object that can be reached.

use std::collections::{HashMap, HashSet};

use serde_json::{Number, Value};

use crate::compile::Cost;
use crate::pattern::Pattern;

/// A compiled schema.
#[derive(Debug)]
pub struct Validator {
    /// The first one is the root.
    pub(crate) nodes: Vec<Node>,
    pub(crate) patterns: Vec<Pattern>,
    /// `5.0` is an integer, but for draft 4.
    pub(crate) floats_are_integers: bool,
    pub(crate) cost: Cost,
    pub(crate) unenforced: Vec<String>,
    pub(crate) unread: Vec<String>,
    pub(crate) is_of_older_draft: bool,
}

impl Validator {
    /// What the compiled schema takes; for limits over many schemas.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// The patterns that are not enforced, each with the reason, ready to be shown.
    pub fn unenforced(&self) -> &[String] {
        &self.unenforced
    }

    /// The parts that could not be read and are not checked, each with its place and the reason; the first 16.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// Whether a keyword was read as an older draft has it, although the schema does not name that draft.
    pub fn is_of_older_draft(&self) -> bool {
        self.is_of_older_draft
    }

    /// The JSON pointer of the schema object behind a node.
    pub(crate) fn pointer(&self, id: NodeId) -> String {
        let mut steps = Vec::new();
        let mut next = Some(id);
        while let Some(node) = next.map(|id| &self.nodes[id.index()]) {
            steps.push(&*node.step);
            next = node.parent;
        }
        steps.iter().rev().copied().collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(pub u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternId(pub u32);

#[derive(Debug)]
pub(crate) struct Node {
    /// The node below which this one stands in the document; `None` for the root and for the target of a
    /// reference, whose step is the whole pointer.
    pub parent: Option<NodeId>,
    /// The part of the JSON pointer from the parent to here.
    pub step: Box<str>,
    pub kind: NodeKind,
}

#[derive(Debug, Default)]
pub(crate) enum NodeKind {
    /// `true`
    #[default]
    Anything,
    /// `false`
    Nothing,
    Assertions(Assertions),
}

#[derive(Debug, Default)]
pub(crate) struct Assertions {
    pub types: Option<Types>,
    pub rules: Vec<Assertion>,
    /// Applied last: to what the other rules have not looked at.
    pub unevaluated_items: Option<NodeId>,
    pub unevaluated_properties: Option<NodeId>,
}

/// A set of JSON types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Types(pub u8);

impl Types {
    pub(crate) const INTEGER: Types = Types(1 << 6);

    pub(crate) fn named(name: &str) -> Option<Types> {
        let names = ["null", "boolean", "number", "string", "array", "object", "integer"];
        names.iter().position(|known| *known == name).map(|place| Types(1 << place))
    }

    pub(crate) fn with(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    pub(crate) fn has(self, value: &Value, floats_are_integers: bool) -> bool {
        let kind = match value {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::Number(_) => 2,
            Value::String(_) => 3,
            Value::Array(_) => 4,
            Value::Object(_) => 5,
        };
        self.0 & (1 << kind) != 0
            || (self.0 & Types::INTEGER.0 != 0
                && value.as_number().is_some_and(|number| is_integer(number, floats_are_integers)))
    }
}

fn is_integer(number: &Number, floats_are_integers: bool) -> bool {
    let is_whole = || number.as_f64().is_some_and(|float| float.is_finite() && float.fract() == 0.0);
    !number.is_f64() || (floats_are_integers && is_whole())
}

#[derive(Debug)]
pub(crate) enum Assertion {
    Const(Value),
    Enum { texts: HashSet<Box<str>>, others: Vec<Value> },
    Bound { keyword: &'static str, bound: Bound, limit: Number },
    MultipleOf(Number),
    Length { keyword: &'static str, bound: Bound, limit: u64 },
    Pattern(PatternId),
    ItemCount { keyword: &'static str, bound: Bound, limit: u64 },
    UniqueItems,
    Items { prefix: Vec<NodeId>, prefix_keyword: &'static str, rest: Option<NodeId>, rest_keyword: &'static str },
    Contains { node: NodeId, min: u64, max: Option<u64> },
    MemberCount { keyword: &'static str, bound: Bound, limit: u64 },
    Required(Vec<Box<str>>),
    Members(Members),
    PropertyNames(NodeId),
    DependentRequired(Vec<(Box<str>, Vec<Box<str>>)>),
    DependentSchemas(Vec<(Box<str>, NodeId)>),
    Reference(NodeId),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If { condition: NodeId, then: Option<NodeId>, otherwise: Option<NodeId> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    AtLeast,
    AtMost,
    Above,
    Below,
}

impl Bound {
    pub(crate) fn admits<T: PartialOrd>(self, value: &T, limit: &T) -> bool {
        match self {
            Bound::AtLeast => value >= limit,
            Bound::AtMost => value <= limit,
            Bound::Above => value > limit,
            Bound::Below => value < limit,
        }
    }
}

/// `properties`, `patternProperties` and `additionalProperties`, which are decided together.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub named: HashMap<Box<str>, NodeId>,
    pub patterns: Vec<(PatternId, NodeId)>,
    pub additional: Option<NodeId>,
}
