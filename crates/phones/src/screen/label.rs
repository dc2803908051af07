//! What a thing on the screen says: cleaned, merged from its own texts and those inside it, and cut to what is enough
//! to recognise it by.

use std::borrow::Cow;
use std::fmt;

use sinew_tool::text::clean_all;

use super::ItemKind;
use crate::tree::UiNode;

/// Longer labels are cut; `get_element` shows the whole.
pub const MAX_LABEL: usize = 80;

/// A label on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemLabel {
    text: String,
    /// How many characters were left out at the end.
    rest: usize,
    /// Whether it is the name of a resource id, because the thing says nothing.
    is_id: bool,
}

impl ItemLabel {
    /// One line of harmless characters, without quotes that would end it.
    pub fn of(text: &str) -> ItemLabel {
        let mut label = ItemLabel::default();
        let mut length = 0;
        let text = clean_all(text);
        let mut characters = text.chars();
        for character in characters.by_ref() {
            let character = match character {
                '"' => '\'',
                _ if character.is_whitespace() => ' ',
                _ => character,
            };
            if character != ' ' || !(length == 0 || label.text.ends_with(' ')) {
                if length == MAX_LABEL {
                    label.rest = 1 + characters.count();
                    break;
                }
                label.text.push(character);
                length += 1;
            }
        }
        if label.rest == 0 {
            label.text.truncate(label.text.trim_end().len());
        }
        label
    }

    /// What a node says itself. For what is switched, a text that only names the state comes later, see [`state`].
    pub fn of_node(node: &UiNode, kind: ItemKind) -> ItemLabel {
        let label = |text: &Option<String>| ItemLabel::of(&without_icons(text.as_deref().unwrap_or_default()));
        let (text, description) = (label(&node.text), label(&node.description));
        match kind {
            ItemKind::Field => {
                let hint = label(&node.hint);
                if hint.is_empty() { description } else { hint }
            }
            ItemKind::Switch | ItemKind::Check | ItemKind::Radio | ItemKind::Slider => description,
            // "Follow" is said four times, "Follow Ada Lovelace" once.
            _ if description.covers(&text) => description,
            _ => text.and(&description),
        }
    }

    /// `#name` of a resource id that means something.
    pub fn of_resource_id(node: &UiNode) -> ItemLabel {
        let name = node.resource_id.as_deref().and_then(|id| id.rsplit('/').next()).unwrap_or_default();
        match ItemLabel::of(name) {
            label if label.text.contains("obfuscated") => ItemLabel::default(),
            label => ItemLabel { is_id: !label.is_empty(), ..label },
        }
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Both, unless one of them says all that the other does.
    pub fn and(mut self, more: &ItemLabel) -> ItemLabel {
        if self.is_empty() || more.covers(&self) {
            return more.clone();
        }
        if more.is_empty() || self.covers(more) {
            return self;
        }
        if self.rest > 0 {
            self.rest += more.text.chars().count() + more.rest;
            return self;
        }
        let whole = format!("{}, {}", self.text, more.text);
        let cut = whole.char_indices().nth(MAX_LABEL).map_or(whole.len(), |(at, _)| at);
        self.rest = more.rest + whole[cut..].chars().count();
        self.text = whole[..cut].to_owned();
        self
    }

    /// Whether everything that `other` says is said here too, whatever the case and the punctuation: the same words in a
    /// row. What has no words, such as "+", is covered by the same text alone.
    pub fn covers(&self, other: &ItemLabel) -> bool {
        if self.is_empty() || other.is_empty() {
            return false;
        }
        let (own, other_words) = (words(&self.text), words(&other.text));
        self.text == other.text || (!other_words.is_empty() && holds_words(&own, &other_words))
    }
}

/// A text without the characters of icon fonts: they have no meaning of their own, and only the app knows their pictures.
fn without_icons(text: &str) -> Cow<'_, str> {
    let is_private = |character: char| matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10fffd}');
    if text.contains(is_private) { Cow::Owned(text.replace(is_private, " ")) } else { Cow::Borrowed(text) }
}

/// The words of a text in small letters, with a space between them. Symbols and pictographs say something; other
/// punctuation does not.
fn words(text: &str) -> String {
    let is_symbol = |character: char| matches!(character, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}');
    let separates = |character: char| !character.is_alphanumeric() && !is_symbol(character);
    let words: Vec<&str> = text.split(separates).filter(|word| !word.is_empty()).collect();
    words.join(" ").to_lowercase()
}

/// Whether `part` stands in `whole` and does not begin or end inside a word. Thai and the scripts after it in Unicode, as
/// Chinese and Japanese, write without spaces, so there every place is as good.
fn holds_words(whole: &str, part: &str) -> bool {
    let is_of_word = |character: char| character.is_alphanumeric() && character < '\u{0e00}';
    let joins =
        |one: Option<char>, other: Option<char>| [one, other].iter().all(|beside| beside.is_some_and(is_of_word));
    whole.match_indices(part).any(|(at, _)| {
        let (before, after) = (&whole[..at], &whole[at + part.len()..]);
        !joins(before.chars().next_back(), part.chars().next())
            && !joins(part.chars().next_back(), after.chars().next())
    })
}

/// `"Sign in"`, `"The first eighty characters"+214`, `#submit`, or nothing.
impl fmt::Display for ItemLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_id, self.rest) {
            (true, _) => write!(f, "#{}", self.text),
            (false, 0) => write!(f, "\"{}\"", self.text),
            (false, rest) => write!(f, "\"{}\"+{rest}", self.text),
        }
    }
}

/// The own text of something that is switched: stock Android names a tile in its description and says "On" as its
/// text. It comes after everything else, and is left out where it only repeats the state.
pub fn state(node: &UiNode) -> ItemLabel {
    let text = node.text.as_deref().unwrap_or_default();
    match text.trim().to_ascii_lowercase().as_str() {
        "on" | "off" => ItemLabel::default(),
        _ => ItemLabel::of(text),
    }
}

/// What a field holds, with its line breaks as `\n`. An empty field shows its hint, which is not its content.
pub fn content(node: &UiNode) -> ItemLabel {
    let text = node.content();
    match () {
        () if node.password => ItemLabel::of(&"•".repeat(text.chars().take(8).count())),
        () if text.contains('\n') => ItemLabel::of(&text.replace('\n', "\\n")),
        () => ItemLabel::of(text),
    }
}

/// Where a slider stands: within its range where that is known, else as its text says it.
pub fn position(node: &UiNode) -> ItemLabel {
    node.range.map_or_else(|| content(node), |range| ItemLabel::of(&range.to_string()))
}
