//! Finding nodes by what they say or are.

use super::{Tree, UiNode};

/// A property to look at, and what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    pub by: By,
    pub value: String,
    /// Letter by letter; otherwise a part is enough, in any case.
    pub exact: bool,
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

    fn of(self, node: &UiNode) -> Option<&str> {
        match self {
            By::Text => node.text.as_deref(),
            By::Description => node.description.as_deref(),
            By::ResourceId => node.resource_id.as_deref(),
            By::Class => Some(&node.class),
        }
    }
}

impl Selector {
    /// The indexes of all nodes that fit, in reading order.
    pub fn find<'a>(&'a self, tree: &'a Tree) -> impl Iterator<Item = usize> + 'a {
        let lower = self.value.to_lowercase();
        let ascii = lower.is_ascii();
        let fits = move |node: &UiNode| {
            self.by.of(node).is_some_and(|text| match self.exact {
                true => text == self.value,
                false if ascii && text.is_ascii() => contains_ignoring_case(text.as_bytes(), lower.as_bytes()),
                false => text.to_lowercase().contains(&lower),
            })
        };
        tree.nodes().iter().enumerate().filter(move |(_, node)| fits(node)).map(|(index, _)| index)
    }
}

/// For plain ASCII, without making a copy of every text on the screen. `lower` is lower case.
fn contains_ignoring_case(text: &[u8], lower: &[u8]) -> bool {
    lower.is_empty() || text.windows(lower.len()).any(|part| part.eq_ignore_ascii_case(lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(by: By, value: &str, exact: bool) -> usize {
        let mut tree = Tree::builder(0);
        for (class, text) in [("a.Button", "Submit"), ("a.Button", "Résumé"), ("a.Text", "submit now")] {
            tree.leaf(UiNode { class: class.to_owned(), text: Some(text.to_owned()), ..UiNode::default() });
        }
        Selector { by, value: value.to_owned(), exact }.find(&tree.finish()).count()
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
}
