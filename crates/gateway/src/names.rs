//! The name book: public names, minted once, kept for ever.
//!
//! A tool's public name depends on its own name and its input schema, never on which devices happen
//! to be here. The first schema under a name gets the plain name; every later one a suffix from its
//! digest. Nobody takes a public name apart; it is only ever looked up.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::json;
use sinew_tool::{DeviceId, Digest};

/// What MCP clients accept: `[A-Za-z0-9_-]{1,64}`.
pub(crate) const MAX_LENGTH: usize = 64;

/// Distinct names one gateway ever mints. A device that changes its schema all the time must not
/// fill the memory; 100,000 is far beyond any honest use.
const MAX_NAMES: usize = 100_000;

/// A name that must be remembered: the key it was minted for, and the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Minted {
    pub tool: String,
    /// The input schema's digest in hex; empty for a word of the unfolded form.
    pub digest: String,
    pub name: Arc<str>,
}

#[derive(Default)]
pub(crate) struct NameBook {
    /// Names of the folded form, by tool name and input-schema digest.
    folded: Book,
    /// The tool's part of unfolded names, by tool name alone: the device's part tells schemas apart.
    words: Book,
}

#[derive(Default)]
struct Book {
    minted: HashMap<(String, String), Arc<str>>,
    taken: HashSet<Arc<str>>,
}

impl NameBook {
    /// A book that never mints the reserved names, with what was minted before.
    pub(crate) fn new(reserved: &[&str], minted: impl IntoIterator<Item = Minted>) -> NameBook {
        let mut book = NameBook::default();
        book.folded.taken.extend(reserved.iter().map(|name| Arc::from(*name)));
        for Minted { tool, digest, name } in minted {
            let page = if digest.is_empty() { &mut book.words } else { &mut book.folded };
            page.taken.insert(name.clone());
            page.minted.insert((tool, digest), name);
        }
        book
    }

    /// The public name of a tool in the folded form. What is new is pushed to `news`.
    pub(crate) fn public(&mut self, tool: &str, input: Digest, news: &mut Vec<Minted>) -> Option<Arc<str>> {
        self.folded.find_or_mint(tool, input.hex(), input, news)
    }

    /// The tool's part of its unfolded name.
    pub(crate) fn word(&mut self, tool: &str, news: &mut Vec<Minted>) -> Option<Arc<str>> {
        self.words.find_or_mint(tool, String::new(), Digest::of(&json!(tool)), news)
    }
}

impl Book {
    fn find_or_mint(&mut self, tool: &str, key: String, digest: Digest, news: &mut Vec<Minted>) -> Option<Arc<str>> {
        let key = (tool.to_owned(), key);
        if let Some(name) = self.minted.get(&key) {
            return Some(name.clone());
        }
        if self.minted.len() >= MAX_NAMES {
            return None;
        }
        let plain = plain(tool);
        // Tools whose different names become one when made plain may share a schema too, hence the
        // digest over both at the end.
        let both = Digest::of(&json!([tool, key.1]));
        let suffixes = [digest.short(6), both.short(8), both.short(16), both.short(40)];
        let candidates =
            std::iter::once(plain.clone()).chain(suffixes.iter().map(|suffix| with_suffix(&plain, suffix)));
        let name: Arc<str> = candidates.into_iter().find(|name| !self.taken.contains(name.as_str()))?.into();
        self.taken.insert(name.clone());
        news.push(Minted { tool: key.0.clone(), digest: key.1.clone(), name: name.clone() });
        self.minted.insert(key, name.clone());
        Some(name)
    }
}

/// `<device>__<tool>`, cut with a digest where it would be too long.
pub(crate) fn unfolded(device: &DeviceId, word: &str) -> String {
    let name = format!("{device}__{word}");
    if name.len() <= MAX_LENGTH {
        return name;
    }
    let digest = Digest::of(&json!([device.as_str(), word]));
    with_suffix(&name, &digest.short(12))
}

/// The nearest plain name: what does not fit becomes `_`.
fn plain(tool: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '_' || character == '-';
    let name: String = tool.chars().map(|character| if is_plain(character) { character } else { '_' }).collect();
    match name.len() {
        0 => "tool".to_owned(),
        1..=MAX_LENGTH => name,
        _ => with_suffix(&name, &Digest::of(&json!(tool)).short(8)),
    }
}

/// `name_suffix`, the name cut so that both fit. All parts are ASCII.
fn with_suffix(name: &str, suffix: &str) -> String {
    let room = MAX_LENGTH - suffix.len() - 1;
    format!("{}_{suffix}", &name[..name.len().min(room)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digest(number: u8) -> Digest {
        Digest::of(&json!(number))
    }

    fn fits(name: &str) -> bool {
        (1..=MAX_LENGTH).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    }

    #[test]
    fn the_first_schema_gets_the_plain_name_and_later_ones_a_suffix() {
        let (mut book, mut news) = (NameBook::default(), Vec::new());
        let mut name = |tool: &str, number| book.public(tool, digest(number), &mut news).unwrap().to_string();
        assert_eq!(name("self.audio.set_volume", 1), "self_audio_set_volume");
        let second = format!("self_audio_set_volume_{}", digest(2).short(6));
        assert_eq!(name("self.audio.set_volume", 2), second);
        assert_eq!(name("self.audio.set_volume", 1), "self_audio_set_volume");
        assert_eq!(name("self.audio.set_volume", 2), second);
        assert_eq!(news.len(), 2);
    }

    #[test]
    fn reserved_names_are_never_minted() {
        let mut book = NameBook::new(&["list_devices"], []);
        let name = book.public("list_devices", digest(1), &mut Vec::new()).unwrap();
        assert_eq!(*name, *format!("list_devices_{}", digest(1).short(6)));
    }

    #[test]
    fn names_that_become_one_when_made_plain_stay_apart() {
        let (mut book, mut news) = (NameBook::default(), Vec::new());
        let names: HashSet<_> =
            ["a.b", "a_b", "a b", "a/b", "a:b"].map(|tool| book.public(tool, digest(1), &mut news)).into();
        assert_eq!(names.len(), 5);
        let words: HashSet<_> = ["a.b", "a_b", "a b"].map(|tool| book.word(tool, &mut news)).into();
        assert_eq!(words.len(), 3);
    }

    #[test]
    fn an_unfolded_name_fits_also_when_both_parts_are_long() {
        let device = DeviceId::parse("a-device-with-a-long-id1").unwrap();
        assert_eq!(unfolded(&device, "tool"), "a-device-with-a-long-id1__tool");
        let (one, two) = ("x".repeat(64), format!("{}y", "x".repeat(63)));
        assert!(fits(&unfolded(&device, &one)));
        assert_ne!(unfolded(&device, &one), unfolded(&device, &two));
    }

    proptest! {
        #[test]
        fn a_name_once_minted_never_changes_and_is_never_shared(
            wishes in proptest::collection::vec(("([a-c._ä]{0,3}|[xy.]{62,66}|list_devices|a_[0-9a-f]{6})", 0u8..4), 1..60),
            restart in 0usize..60,
        ) {
            let (mut book, mut news) = (NameBook::new(&["list_devices"], []), Vec::new());
            let mut known: HashMap<(String, u8), (Arc<str>, Arc<str>)> = HashMap::new();
            for (step, (tool, number)) in wishes.into_iter().enumerate() {
                if step == restart {
                    book = NameBook::new(&["list_devices"], news.clone());
                }
                let name = book.public(&tool, digest(number), &mut news).unwrap();
                let word = book.word(&tool, &mut news).unwrap();
                prop_assert!(fits(&name) && fits(&word) && &*name != "list_devices");
                let first = known.entry((tool, number)).or_insert((name.clone(), word.clone()));
                prop_assert_eq!(&*first, &(name, word));
            }
            let names: HashSet<_> = known.values().map(|(name, _)| name).collect();
            prop_assert_eq!(names.len(), known.len());
            let tools: HashSet<_> = known.keys().map(|(tool, _)| tool).collect();
            let words: HashSet<_> = known.values().map(|(_, word)| word).collect();
            prop_assert_eq!(words.len(), tools.len());
        }
    }
}
