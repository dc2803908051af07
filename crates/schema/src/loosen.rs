//! Rules that would refuse too much once a part of what they look at is left out.
//!
//! A schema without one of its keywords accepts more, and so does what contains it, except below `not`, `oneOf`, `if`,
//! `maxContains` and `unevaluated…`, which accept less.

use crate::node::{Assertion, Node, NodeId, NodeKind};

/// Removes from each rule what it cannot decide, because one of the `faulty` nodes has lost a part.
pub(crate) fn loosen(nodes: &mut [Node], faulty: &[NodeId]) {
    if faulty.is_empty() {
        return;
    }
    let is_partial = leading_to(nodes, faulty, |node| node.children());
    let mut unsure = faulty.to_vec();
    for (at, node) in nodes.iter_mut().enumerate() {
        let NodeKind::Assertions(rules) = &mut node.kind else { continue };
        let before = rules.rules.len();
        rules.rules.retain_mut(|rule| keep(rule, &is_partial));
        if rules.rules.len() < before {
            unsure.push(NodeId(at as u32));
        }
    }
    // Which members and items were looked at is not known where a rule for the same value is missing.
    let is_unsure = leading_to(nodes, &unsure, |node| node.same_value().collect());
    for (node, _) in nodes.iter_mut().zip(is_unsure).filter(|(_, is_unsure)| *is_unsure) {
        if let NodeKind::Assertions(rules) = &mut node.kind {
            (rules.unevaluated_items, rules.unevaluated_properties) = (None, None);
        }
    }
}

/// Whether a rule can still be decided, perhaps in a looser form.
fn keep(rule: &mut Assertion, is_partial: &[bool]) -> bool {
    let is_partial = |node: &NodeId| is_partial[node.index()];
    match rule {
        Assertion::Not(node) => return !is_partial(node),
        Assertion::If { condition, .. } => return !is_partial(condition),
        Assertion::OneOf(nodes) if nodes.iter().any(is_partial) => *rule = Assertion::AnyOf(std::mem::take(nodes)),
        Assertion::Contains { node, max, .. } if is_partial(node) => *max = None,
        _ => {}
    }
    true
}

/// For each node whether one of `ends` is reached from it.
fn leading_to(nodes: &[Node], ends: &[NodeId], next: impl Fn(&Node) -> Vec<NodeId>) -> Vec<bool> {
    let mut before = vec![Vec::new(); nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        next(node).into_iter().for_each(|child| before[child.index()].push(at));
    }
    let mut leads = vec![false; nodes.len()];
    let mut open: Vec<usize> = ends.iter().map(|end| end.index()).collect();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut leads[at], true) {
            open.extend(&before[at]);
        }
    }
    leads
}

impl Node {
    /// The schemas that are applied to the same value.
    pub(crate) fn same_value(&self) -> impl Iterator<Item = NodeId> + '_ {
        let rules = match &self.kind {
            NodeKind::Assertions(rules) => rules.rules.as_slice(),
            NodeKind::Anything | NodeKind::Nothing => &[],
        };
        rules.iter().flat_map(|rule| match rule {
            Assertion::Reference(node) | Assertion::Not(node) => vec![*node],
            Assertion::AllOf(nodes) | Assertion::AnyOf(nodes) | Assertion::OneOf(nodes) => nodes.clone(),
            Assertion::If { condition, then, otherwise } => {
                [Some(*condition), *then, *otherwise].into_iter().flatten().collect()
            }
            Assertion::DependentSchemas(nodes) => nodes.iter().map(|(_, node)| *node).collect(),
            _ => Vec::new(),
        })
    }

    /// The schemas that are applied to the value or to what it holds.
    fn children(&self) -> Vec<NodeId> {
        let mut children: Vec<NodeId> = self.same_value().collect();
        let NodeKind::Assertions(rules) = &self.kind else { return children };
        children.extend(rules.unevaluated_items.into_iter().chain(rules.unevaluated_properties));
        for rule in &rules.rules {
            match rule {
                Assertion::Items { prefix, rest, .. } => children.extend(prefix.iter().chain(rest)),
                Assertion::Contains { node, .. } | Assertion::PropertyNames(node) => children.push(*node),
                Assertion::Members(members) => {
                    children.extend(members.named.values().chain(&members.additional));
                    children.extend(members.patterns.iter().map(|(_, node)| node));
                }
                _ => {}
            }
        }
        children
    }
}
