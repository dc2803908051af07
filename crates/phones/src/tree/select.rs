//! Finding nodes by what they say or are, and by where they stand to others.

use std::fmt;

use serde_json::Value;
use sinew_steps::SELECTOR_MEMBERS;

use super::{Rect, Tree, UiNode};

/// What an element is: all conditions hold, and it stands as said to another element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    pub conditions: Vec<Condition>,
    pub relation: Option<(Relation, Box<Selector>)>,
}

/// A property, and what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub by: By,
    pub value: String,
    pub matching: Matching,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// A part is enough, in any case.
    Part,
    /// Letter by letter.
    Exact,
    /// The whole, or its last name: `title` for `com.shop:id/title`, `EditText` for `android.widget.EditText`.
    Name,
}

/// Where an element stands to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The one whose middle is nearest.
    Near,
    /// The nearest one below it that shares part of its width.
    Below,
    Inside,
}

impl Relation {
    pub const ALL: [(Relation, &'static str); 3] =
        [(Relation::Near, "near"), (Relation::Below, "below"), (Relation::Inside, "inside")];

    pub(super) fn word(self) -> &'static str {
        match self {
            Relation::Near => "near",
            Relation::Below => "below",
            Relation::Inside => "inside",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Text,
    Description,
    ResourceId,
    Class,
}

impl By {
    pub const ALL: [(By, &'static str); 4] = [
        (By::Text, "text"),
        (By::Description, "content_desc"),
        (By::ResourceId, "resource_id"),
        (By::Class, "class_name"),
    ];

    pub fn find(word: &str) -> Option<By> {
        By::ALL.iter().find(|(_, own)| own.eq_ignore_ascii_case(word)).map(|(by, _)| *by)
    }

    pub fn word(self) -> &'static str {
        match self {
            By::Text => "text",
            By::Description => "content_desc",
            By::ResourceId => "resource_id",
            By::Class => "class_name",
        }
    }

    /// What it is called in a selector.
    pub fn member(self) -> &'static str {
        match self {
            By::Text => "text",
            By::Description => "description",
            By::ResourceId => "id",
            By::Class => "class",
        }
    }

    fn of(self, node: &UiNode) -> Option<&str> {
        match self {
            By::Text => node.text.as_deref(),
            By::Description => node.description.as_deref(),
            By::ResourceId => node.resource_id.as_deref(),
            By::Class => Some(&node.class),
        }
    }
}

/// An element, its neighbour and the neighbour's surroundings.
const MAX_DEPTH: usize = 3;
const MAX_VALUE: usize = 1000;

impl Selector {
    pub fn by(by: By, value: impl Into<String>, is_exact: bool) -> Selector {
        let matching = if is_exact { Matching::Exact } else { Matching::Part };
        Selector { conditions: vec![Condition { by, value: value.into(), matching }], relation: None }
    }

    /// Reads `{"text": "Save", "below": {"id": "title"}}`. The error says what is wrong and what is possible.
    pub fn from_json(value: &Value) -> Result<Selector, String> {
        Selector::read(value, MAX_DEPTH)
    }

    fn read(value: &Value, depth: usize) -> Result<Selector, String> {
        let possible = || SELECTOR_MEMBERS.join(", ");
        let Value::Object(members) = value else {
            return Err(format!("a selector must be an object with {}", possible()));
        };
        let is_exact = match members.get("exact") {
            None => false,
            Some(Value::Bool(is_exact)) => *is_exact,
            Some(_) => return Err("`exact` in a selector must be true or false".to_owned()),
        };
        let mut selector = Selector::default();
        for (name, value) in members {
            if let Some((by, _)) = By::ALL.iter().find(|(by, _)| by.member() == name) {
                let text = value.as_str().filter(|text| !text.is_empty() && text.len() <= MAX_VALUE);
                let text =
                    text.ok_or_else(|| format!("`{name}` in a selector must be a text of 1 to {MAX_VALUE} bytes"))?;
                let matching = match by {
                    By::ResourceId | By::Class => Matching::Name,
                    _ if is_exact => Matching::Exact,
                    _ => Matching::Part,
                };
                selector.conditions.push(Condition { by: *by, value: text.to_owned(), matching });
            } else if let Some((relation, word)) = Relation::ALL.iter().find(|(_, own)| own == name) {
                if depth == 0 {
                    return Err(format!("a selector may be nested {MAX_DEPTH} deep"));
                }
                if selector.relation.is_some() {
                    return Err("a selector has one of near, below, inside".to_owned());
                }
                let inner = Selector::read(value, depth - 1).map_err(|why| format!("`{word}`: {why}"))?;
                selector.relation = Some((*relation, Box::new(inner)));
            } else if name != "exact" {
                return Err(format!("a selector has no `{name}`; possible are {}", possible()));
            }
        }
        match selector.conditions.is_empty() && selector.relation.is_none() {
            true => Err("a selector must say what the element is: text, description, id or class".to_owned()),
            false => Ok(selector),
        }
    }

    /// The indexes of all nodes that fit: in reading order, or by distance where another element is named.
    pub fn find(&self, tree: &Tree) -> Vec<usize> {
        let fits = (0..tree.len()).filter(|index| self.conditions.iter().all(|own| own.fits(tree.node(*index))));
        let fitting: Vec<usize> = fits.collect();
        let Some((relation, anchor)) = &self.relation else { return fitting };
        let anchors = anchor.find(tree);
        // The first anchor is the one meant: by reading order or distance, as for any selector.
        let Some(anchor) = anchors.iter().find(|index| tree.node(**index).visible).or_else(|| anchors.first()) else {
            return Vec::new();
        };
        related(tree, *relation, *anchor, fitting, self.conditions.is_empty())
    }

    /// The same with description in place of text, or text in place of description: a screen does not show which of them
    /// names a thing.
    pub fn by_other_name(&self) -> Option<(By, Selector)> {
        let other = |by: By| match by {
            By::Text => Some(By::Description),
            By::Description => Some(By::Text),
            By::ResourceId | By::Class => None,
        };
        let mut swapped = self.clone();
        let mut names = swapped.conditions.iter_mut().filter(|condition| other(condition.by).is_some());
        let (Some(name), None) = (names.next(), names.next()) else { return None };
        name.by = other(name.by)?;
        let by = name.by;
        Some((by, swapped))
    }

    /// The elements that fit as a person counts them: a thing and a part of it that both fit are one, and what cannot
    /// be seen does not count where something can.
    pub fn find_things(&self, tree: &Tree) -> Vec<usize> {
        let found = self.find(tree);
        let bounds = tree.all_visible_bounds();
        let is_seen = |index: &usize| tree.node(*index).visible && !bounds[*index].is_empty();
        let seen: Vec<usize> = found.iter().copied().filter(is_seen).collect();
        let found = if seen.is_empty() { found } else { seen };
        let mut in_order = found.clone();
        in_order.sort_unstable();
        let has_part = |index: usize| {
            let next = in_order.get(in_order.partition_point(|other| *other <= index));
            next.is_some_and(|next| *next < tree.position(index).end)
        };
        let innermost: Vec<usize> = found.into_iter().filter(|index| !has_part(*index)).collect();
        match self.relation {
            Some((Relation::Near | Relation::Below, _)) => innermost.into_iter().take(1).collect(),
            _ => innermost,
        }
    }
}

fn related(tree: &Tree, relation: Relation, anchor: usize, fitting: Vec<usize>, any: bool) -> Vec<usize> {
    let inside = anchor + 1..tree.position(anchor).end;
    if relation == Relation::Inside {
        return fitting.into_iter().filter(|index| inside.contains(index)).collect();
    }
    let visible = tree.all_visible_bounds();
    let from = visible[anchor];
    let is_other = |index: &usize| {
        let is_around = *index <= anchor && anchor < tree.position(*index).end;
        // Without conditions of its own a selector means something that can be used or read.
        let is_nothing = any && is_layout(tree.node(*index));
        !(is_around || is_nothing || inside.contains(index))
    };
    let mut placed: Vec<(i64, usize)> = fitting
        .into_iter()
        .filter(is_other)
        .filter_map(|index| {
            let bounds = visible[index];
            let is_there = !bounds.is_empty() && (relation == Relation::Near || is_below(bounds, from));
            is_there.then(|| (distance(bounds, from), index))
        })
        .collect();
    placed.sort();
    placed.into_iter().map(|(_, index)| index).collect()
}

fn is_layout(node: &UiNode) -> bool {
    let says_something = node.text.is_some() || node.description.is_some();
    !(says_something || node.clickable || node.editable || node.checkable)
}

fn is_below(bounds: Rect, above: Rect) -> bool {
    bounds.top >= above.center().1 && bounds.center().1 > above.center().1 && {
        let shared = bounds.intersect(Rect { top: i32::MIN, bottom: i32::MAX, ..above });
        !shared.is_empty()
    }
}

/// Squared, between the middles.
fn distance(a: Rect, b: Rect) -> i64 {
    let ((ax, ay), (bx, by)) = (a.center(), b.center());
    let square = |a: i32, b: i32| (i64::from(a) - i64::from(b)).saturating_pow(2);
    square(ax, bx).saturating_add(square(ay, by))
}

impl Condition {
    fn fits(&self, node: &UiNode) -> bool {
        let Some(text) = self.by.of(node) else { return false };
        match self.matching {
            Matching::Exact => text == self.value,
            Matching::Name => {
                text == self.value
                    || text.strip_suffix(&self.value).is_some_and(|before| before.ends_with(['/', '.', '$']))
            }
            Matching::Part if self.value.is_ascii() && text.is_ascii() => {
                contains_ignoring_case(text.as_bytes(), self.value.as_bytes())
            }
            Matching::Part => text.to_lowercase().contains(&self.value.to_lowercase()),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, condition) in self.conditions.iter().enumerate() {
            let joined = if nth > 0 { " and " } else { "" };
            write!(f, "{joined}{} '{}'", condition.by.word(), condition.value)?;
        }
        if let Some((relation, anchor)) = &self.relation {
            let space = if self.conditions.is_empty() { "" } else { " " };
            write!(f, "{space}{} {anchor}", relation.word())?;
        }
        Ok(())
    }
}

/// For plain ASCII, without making a copy of every text on the screen.
fn contains_ignoring_case(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn count(by: By, value: &str, exact: bool) -> usize {
        let mut tree = Tree::builder(0);
        for (class, text) in [("a.Button", "Submit"), ("a.Button", "Résumé"), ("a.Text", "submit now")] {
            tree.leaf(UiNode { class: class.to_owned(), text: Some(text.to_owned()), ..UiNode::default() });
        }
        Selector::by(by, value, exact).find(&tree.finish()).len()
    }

    #[test]
    fn a_part_in_any_case_is_enough_unless_exactness_is_asked() {
        assert_eq!(count(By::Text, "SUBMIT", false), 2);
        assert_eq!(count(By::Text, "Submit", true), 1);
        assert_eq!(count(By::Text, "RÉSUMÉ", false), 1);
        assert_eq!(count(By::Class, "button", false), 2);
        assert_eq!(count(By::Description, "submit", false), 0);
        assert_eq!(count(By::Text, "résumé und mehr", false), 0);
    }

    /// Two rows, each a label beside a switch, and a button below.
    fn rows() -> Tree {
        let mut tree = Tree::builder(0);
        tree.open(UiNode::new("android.widget.FrameLayout", Rect::new(0, 0, 1000, 1000)));
        for (top, name) in [(0, "Wi-Fi"), (100, "Bluetooth")] {
            let id = Some(format!("com.x:id/row_{}", name.to_lowercase()));
            tree.open(UiNode {
                resource_id: id,
                ..UiNode::new("android.widget.LinearLayout", Rect::new(0, top, 1000, top + 100))
            });
            let label = UiNode::new("android.widget.TextView", Rect::new(0, top, 500, top + 100));
            tree.leaf(UiNode { text: Some(name.to_owned()), ..label });
            let switch = UiNode::new("android.widget.Switch", Rect::new(800, top, 1000, top + 100));
            tree.leaf(UiNode { checkable: true, clickable: true, ..switch });
            tree.close();
        }
        let button = UiNode::new("android.widget.Button", Rect::new(0, 300, 1000, 400));
        tree.leaf(UiNode { text: Some("More".to_owned()), clickable: true, ..button });
        tree.finish()
    }

    fn found(selector: Value) -> Vec<usize> {
        Selector::from_json(&selector).unwrap().find_things(&rows())
    }

    #[test]
    fn an_element_is_told_apart_by_its_neighbours() {
        assert_eq!(found(json!({"class": "Switch"})), [3, 6]);
        assert_eq!(found(json!({"class": "Switch", "near": {"text": "bluetooth"}})), [6]);
        assert_eq!(found(json!({"class": "Switch", "inside": {"id": "row_wi-fi"}})), [3]);
        assert_eq!(found(json!({"class": "Switch", "inside": {"id": "row"}})), [0usize; 0]);
        assert_eq!(found(json!({"text": "more", "below": {"text": "Wi-Fi"}})), [7]);
        assert_eq!(found(json!({"class": "TextView", "below": {"text": "Wi-Fi"}})), [5]);
        assert_eq!(found(json!({"text": "Wi-Fi", "below": {"text": "More"}})), [0usize; 0]);
        assert_eq!(found(json!({"near": {"text": "More"}})), [5]);
    }

    #[test]
    fn a_selector_that_makes_no_sense_says_why() {
        let wrong = |selector: Value| Selector::from_json(&selector).unwrap_err();
        assert!(wrong(json!("Save")).contains("object"));
        assert!(wrong(json!({})).contains("must say"));
        assert!(wrong(json!({"label": "x"})).contains("no `label`"));
        assert!(wrong(json!({"text": 5})).contains("`text`"));
        assert!(wrong(json!({"text": "a", "near": {"text": "b"}, "below": {"text": "c"}})).contains("one of"));
        let mut deep = json!({"text": "x"});
        for _ in 0..50 {
            deep = json!({"text": "x", "inside": deep});
        }
        assert!(wrong(deep).contains("deep"));
    }

    #[test]
    fn a_selector_reads_as_a_sentence() {
        let selector = Selector::from_json(&json!({"text": "Save", "below": {"id": "title"}})).unwrap();
        assert_eq!(selector.to_string(), "text 'Save' below resource_id 'title'");
    }
}
