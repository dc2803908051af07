//! The name book: public names, bound to a tool and its input schema.
//!
//! A tool's public name depends on its own name and its input schema, never on which devices happen
//! to be here. The first schema under a name gets the plain name; every later one a suffix from its
//! digest. A public name is only looked up, never taken apart.
//!
//! Each name belongs to the device it was minted for. A device has a quota; beyond it, and when the
//! book is full, its tools get long names that can be computed from the tool alone and need no place
//! in the book. When the owner is forgotten, a name goes to another device that uses it, else it
//! rests: for a time it can only come back to the same tool.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::json;
use sinew_tool::{DeviceId, DeviceKey, Digest};

use crate::offer::Offered;
use crate::shared::{NameChange, NameClaim};

/// New names have at most this many characters of `[A-Za-z0-9_-]`. Clients put the name of the server in front of a
/// tool's name, and some drop tools whose name then has more than 60 characters.
pub(crate) const MAX_LENGTH: usize = 48;

/// The limit of earlier versions. Names that were made then are still valid.
const EARLIER_MAX_LENGTH: usize = 64;

/// Names of each kind that are kept. 100,000 is far beyond any honest use, and some 20 MB.
const MAX_NAMES: usize = 100_000;

/// Digits of the suffix of a computed name: 80 bits, so that no other tool with the same ones can be found.
const COMPUTED: usize = 20;

pub(crate) struct NameBook {
    /// Names of the folded form, by tool name and input-schema digest.
    folded: NameTable,
    /// The tool's part of unfolded names, by tool name alone: the device's part tells schemas apart.
    words: NameTable,
    /// How many names count for each device.
    owned: HashMap<DeviceKey, usize>,
    /// Names that one device may own by minting, and names of each kind in all.
    quota: usize,
    capacity: usize,
    /// The description that each public name stands for.
    faces: HashMap<Arc<str>, Digest>,
    /// Counts the changes of what names stand for.
    pub(crate) version: u64,
}

#[derive(Default)]
struct NameTable {
    minted: HashMap<(String, String), Slot>,
    taken: HashSet<Arc<str>>,
}

struct Slot {
    name: Arc<str>,
    owner: Option<DeviceKey>,
    resting: Option<i64>,
    face: Option<Digest>,
}

/// A public name, and whether it is a computed one.
pub(crate) struct PublicName {
    pub name: Arc<str>,
    pub is_computed: bool,
}

impl NameBook {
    /// A book that never mints the reserved names, with what was minted before.
    pub(crate) fn new(reserved: &[&str], quota: usize, minted: impl IntoIterator<Item = NameClaim>) -> NameBook {
        let (folded, words, owned) = (NameTable::default(), NameTable::default(), HashMap::new());
        let mut book = NameBook { folded, words, owned, quota, capacity: MAX_NAMES, faces: HashMap::new(), version: 0 };
        book.folded.taken.extend(reserved.iter().map(|name| Arc::from(*name)));
        minted.into_iter().for_each(|claim| book.adopt(claim));
        book
    }

    /// Takes over a claim from the store or from another gateway. It replaces what this book had for the same tool or
    /// under the same name.
    pub(crate) fn adopt(&mut self, claim: NameClaim) {
        let NameClaim { tool, digest, name, owner, resting, face } = claim;
        let table = if digest.is_empty() { &mut self.words } else { &mut self.folded };
        let key = (tool, digest);
        let same_name = |known: &&(String, String)| table.minted.get(*known).is_some_and(|slot| slot.name == name);
        let replaced = match table.taken.contains(&name) {
            true => table.minted.keys().find(same_name).cloned(),
            false => None,
        };
        for old in replaced.iter().chain([&key]).filter_map(|key| table.minted.remove(key)).collect::<Vec<_>>() {
            table.taken.remove(&old.name);
            if !key.1.is_empty() {
                self.faces.remove(&old.name);
            }
            if let Some(count) = old.owner.and_then(|owner| self.owned.get_mut(&owner)) {
                *count -= 1;
            }
        }
        table.taken.insert(name.clone());
        if let Some(owner) = &owner {
            *self.owned.entry(owner.clone()).or_default() += 1;
        }
        if let Some(face) = face {
            self.faces.insert(name.clone(), face);
        }
        table.minted.insert(key, Slot { name, owner, resting, face });
        self.version += 1;
    }

    /// All names that were given.
    pub(crate) fn claims(&self) -> Vec<NameClaim> {
        let all = self.folded.minted.iter().chain(&self.words.minted);
        let claim = |((tool, digest), slot): (&(String, String), &Slot)| NameClaim {
            tool: tool.clone(),
            digest: digest.clone(),
            name: slot.name.clone(),
            owner: slot.owner.clone(),
            resting: slot.resting,
            face: slot.face,
        };
        all.map(claim).collect()
    }

    /// The public name of a tool in the folded form. What must be written down is pushed to `changes`.
    pub(crate) fn public(
        &mut self,
        owner: &DeviceKey,
        tool: &str,
        input: Digest,
        changes: &mut Vec<NameChange>,
    ) -> PublicName {
        self.find_or_mint(owner, (tool.to_owned(), input.hex()), input, changes)
    }

    /// The tool's part of its unfolded name.
    pub(crate) fn word(&mut self, owner: &DeviceKey, tool: &str, changes: &mut Vec<NameChange>) -> PublicName {
        self.find_or_mint(owner, (tool.to_owned(), String::new()), Digest::of(&json!(tool)), changes)
    }

    fn find_or_mint(
        &mut self,
        owner: &DeviceKey,
        key: (String, String),
        digest: Digest,
        changes: &mut Vec<NameChange>,
    ) -> PublicName {
        let owned = self.owned_by(owner);
        let book = if key.1.is_empty() { &mut self.words } else { &mut self.folded };
        if let Some(slot) = book.minted.get_mut(&key) {
            if slot.owner.is_none() {
                self.owned.insert(owner.clone(), owned + 1);
                (slot.owner, slot.resting) = (Some(owner.clone()), None);
                changes.push(NameChange::Keep(slot.to_claim(&key)));
            }
            return PublicName { name: slot.name.clone(), is_computed: false };
        }
        // Tools whose different names become one when made plain may share a schema too, hence the
        // digest over both.
        let both = Digest::of(&json!([key.0, key.1]));
        let plain = plain(&key.0);
        if owned >= self.quota || book.minted.len() >= self.capacity {
            return PublicName { name: with_suffix(&plain, &both.short(COMPUTED)).into(), is_computed: true };
        }
        let suffixes = [digest.short(6), both.short(8), both.short(16), both.short(COMPUTED)];
        let mut candidates =
            std::iter::once(plain.clone()).chain(suffixes.iter().map(|suffix| with_suffix(&plain, suffix)));
        // The last candidate is the computed name, which no other tool can have.
        let is_free = |name: &String| !book.taken.contains(name.as_str()) && !looks_computed(name);
        let name = candidates.find(is_free).unwrap_or_else(|| with_suffix(&plain, &both.short(COMPUTED)));
        let slot = Slot { name: name.into(), owner: Some(owner.clone()), resting: None, face: None };
        let name = slot.name.clone();
        self.owned.insert(owner.clone(), owned + 1);
        book.taken.insert(name.clone());
        changes.push(NameChange::Keep(slot.to_claim(&key)));
        book.minted.insert(key, slot);
        PublicName { name, is_computed: false }
    }

    /// The description that the public name of a tool stands for.
    pub(crate) fn face(&self, public: &str) -> Option<Digest> {
        self.faces.get(public).copied()
    }

    pub(crate) fn set_face(&mut self, tool: &str, input: Digest, face: Digest, changes: &mut Vec<NameChange>) {
        let key = (tool.to_owned(), input.hex());
        if let Some(slot) = self.folded.minted.get_mut(&key) {
            slot.face = Some(face);
            self.faces.insert(slot.name.clone(), face);
            self.version += 1;
            changes.push(NameChange::Keep(slot.to_claim(&key)));
        }
    }

    /// Whether a tool is listed under its public name, and not set apart because it describes itself differently. A name
    /// that is not in the book stands for one description only.
    pub(crate) fn is_primary(&self, offered: &Offered) -> bool {
        self.face(&offered.public) == Some(offered.face)
    }

    pub(crate) fn owned_by(&self, device: &DeviceKey) -> usize {
        self.owned.get(device).copied().unwrap_or(0)
    }

    /// Gives back the names of a device that is forgotten. `heir` finds another device that uses one.
    pub(crate) fn forget(
        &mut self,
        device: &DeviceKey,
        heir: impl Fn(&str, &str) -> Option<DeviceKey>,
        now: i64,
        changes: &mut Vec<NameChange>,
    ) {
        if self.owned.remove(device).is_none_or(|count| count == 0) {
            return;
        }
        for (key, slot) in self.folded.minted.iter_mut().chain(&mut self.words.minted) {
            if slot.owner.as_ref() == Some(device) {
                slot.owner = heir(&key.0, &key.1);
                match &slot.owner {
                    Some(heir) => *self.owned.entry(heir.clone()).or_default() += 1,
                    None => slot.resting = Some(now),
                }
                changes.push(NameChange::Keep(slot.to_claim(key)));
            }
        }
    }

    /// Lets names rest that nobody owns: those of an older store whose tools no known device has.
    pub(crate) fn rest_unowned(&mut self, now: i64, changes: &mut Vec<NameChange>) {
        for (key, slot) in self.folded.minted.iter_mut().chain(&mut self.words.minted) {
            if slot.owner.is_none() && slot.resting.is_none() {
                slot.resting = Some(now);
                changes.push(NameChange::Keep(slot.to_claim(key)));
            }
        }
    }

    /// Frees the names that began to rest before `until`.
    pub(crate) fn release(&mut self, until: i64, changes: &mut Vec<NameChange>) {
        for book in [&mut self.folded, &mut self.words] {
            let (taken, faces) = (&mut book.taken, &mut self.faces);
            book.minted.retain(|(tool, digest), slot| {
                let is_over = slot.resting.is_some_and(|since| since < until);
                if is_over {
                    taken.remove(&slot.name);
                    if !digest.is_empty() {
                        faces.remove(&slot.name);
                    }
                    changes.push(NameChange::Release { tool: tool.clone(), digest: digest.clone() });
                }
                !is_over
            });
        }
    }
}

impl Slot {
    fn to_claim(&self, (tool, digest): &(String, String)) -> NameClaim {
        let Slot { name, owner, resting, face } = self;
        NameClaim {
            tool: tool.clone(),
            digest: digest.clone(),
            name: name.clone(),
            owner: owner.clone(),
            resting: *resting,
            face: *face,
        }
    }
}

/// Whether a name ends like a computed one: a device must not choose a tool name that is another tool's computed name.
fn looks_computed(name: &str) -> bool {
    let digits = name.rsplit_once('_').map_or("", |(_, digits)| digits);
    digits.len() == COMPUTED && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The public name of a tool that describes itself differently from those that had the public name first. It can be
/// computed from the tool alone, and no other tool can have it.
pub(crate) fn apart(offered: &Offered) -> Arc<str> {
    let Offered { ready, .. } = offered;
    let digest = Digest::of(&json!([ready.tool.name, ready.digest.hex(), ready.face.hex()]));
    with_suffix(&plain(&ready.tool.name), &digest.short(COMPUTED)).into()
}

/// `<device>__<tool>`, cut with a digest if it would be too long. Some device ids start with a digit.
pub(crate) fn unfolded(device: &DeviceId, word: &str) -> String {
    // The whole id of the device is in the name, so the digest only distinguishes the tools of one device.
    let name = with_good_start(format!("{device}__{word}"));
    unfolded_within(MAX_LENGTH, 8, name, device, word)
}

/// The unfolded name that earlier versions listed, if it differs. Clients may still call the tool by it.
pub(crate) fn earlier_unfolded(device: &DeviceId, word: &str) -> Option<String> {
    let earlier = unfolded_within(EARLIER_MAX_LENGTH, 12, format!("{device}__{word}"), device, word);
    (earlier != unfolded(device, word)).then_some(earlier)
}

fn unfolded_within(limit: usize, digits: usize, name: String, device: &DeviceId, word: &str) -> String {
    if name.len() <= limit {
        return name;
    }
    let digest = Digest::of(&json!([device.as_str(), word]));
    with_suffix_within(limit, &name, &digest.short(digits))
}

/// Gemini wants a letter or `_` first.
fn with_good_start(name: String) -> String {
    if name.starts_with(|first: char| first.is_ascii_digit() || first == '-') { format!("_{name}") } else { name }
}

/// The nearest plain name: letters of other scripts are transliterated, and what does not fit becomes `_`.
fn plain(tool: &str) -> String {
    if !tool.is_ascii() {
        let latin = deunicode::deunicode_with_tofu(tool, " ");
        let words: Vec<&str> =
            latin.split(|each: char| !each.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        return plain(&words.join("_"));
    }
    let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '_' || character == '-';
    let name: String = tool.chars().map(|character| if is_plain(character) { character } else { '_' }).collect();
    let name = with_good_start(name);
    match name.len() {
        0 => "tool".to_owned(),
        1..=MAX_LENGTH => name,
        _ => with_suffix(&name, &Digest::of(&json!(tool)).short(8)),
    }
}

/// `name_suffix`, the name cut so that both fit. All parts are ASCII.
fn with_suffix(name: &str, suffix: &str) -> String {
    with_suffix_within(MAX_LENGTH, name, suffix)
}

fn with_suffix_within(limit: usize, name: &str, suffix: &str) -> String {
    let room = limit - suffix.len() - 1;
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

    fn book(quota: usize) -> NameBook {
        NameBook::new(&["list_devices"], quota, [])
    }

    fn device(name: &str) -> DeviceKey {
        DeviceKey(name.to_owned())
    }

    #[test]
    fn the_first_schema_gets_the_plain_name_and_later_ones_a_suffix() {
        let (mut book, mut news) = (book(100), Vec::new());
        let mut name = |tool: &str, number| book.public(&device("a"), tool, digest(number), &mut news).name.to_string();
        assert_eq!(name("self.audio.set_volume", 1), "self_audio_set_volume");
        let second = format!("self_audio_set_volume_{}", digest(2).short(6));
        assert_eq!(name("self.audio.set_volume", 2), second);
        assert_eq!(name("self.audio.set_volume", 1), "self_audio_set_volume");
        assert_eq!(name("self.audio.set_volume", 2), second);
        assert_eq!(news.len(), 2);
    }

    #[test]
    fn names_in_other_scripts_are_readable() {
        let (mut book, mut news) = (book(100), Vec::new());
        let mut name = |tool: &str| book.public(&device("a"), tool, digest(1), &mut news).name.to_string();
        assert_eq!(name("天气"), "Tian_Qi");
        assert_eq!(name("获取weather"), "Huo_Qu_weather");
        assert_eq!(name("Größe.ändern"), "Grosse_andern");
        assert_eq!(name("включить_свет"), "vkliuchit_svet");
        assert_eq!(name("\u{e000}"), "tool", "what has no sound");
    }

    #[test]
    fn reserved_names_are_never_minted() {
        let name = book(100).public(&device("a"), "list_devices", digest(1), &mut Vec::new()).name;
        assert_eq!(*name, *format!("list_devices_{}", digest(1).short(6)));
    }

    #[test]
    fn names_that_become_one_when_made_plain_stay_apart() {
        let (mut book, mut news) = (book(100), Vec::new());
        let names: HashSet<_> = ["a.b", "a_b", "a b", "a/b", "a:b"]
            .map(|tool| book.public(&device("a"), tool, digest(1), &mut news).name)
            .into();
        assert_eq!(names.len(), 5);
        let words: HashSet<_> = ["a.b", "a_b", "a b"].map(|tool| book.word(&device("a"), tool, &mut news).name).into();
        assert_eq!(words.len(), 3);
    }

    #[test]
    fn beyond_its_quota_a_device_gets_computed_names_and_takes_no_more_room() {
        let (mut book, mut news) = (book(3), Vec::new());
        let names: Vec<_> = (0..9).map(|number| book.public(&device("a"), "t", digest(number), &mut news)).collect();
        assert_eq!(names.iter().filter(|named| named.is_computed).count(), 6);
        assert_eq!(names.iter().map(|named| &named.name).collect::<HashSet<_>>().len(), 9);
        assert!(names.iter().all(|named| fits(&named.name)));
        assert_eq!((news.len(), book.folded.minted.len(), book.owned_by(&device("a"))), (3, 3, 3));
        // The same tool gets the same name, and another device still mints.
        assert_eq!(book.public(&device("a"), "t", digest(8), &mut news).name, names[8].name);
        assert!(!book.public(&device("b"), "u", digest(1), &mut news).is_computed);
    }

    #[test]
    fn a_full_book_still_names_the_tools_of_a_new_device() {
        let mut book = NameBook { capacity: 2, ..book(100) };
        for number in 0..2 {
            book.public(&device("a"), "t", digest(number), &mut Vec::new());
        }
        let named = book.public(&device("b"), "t", digest(9), &mut Vec::new());
        assert!(named.is_computed && fits(&named.name));
        assert_eq!(book.folded.minted.len(), 2);
    }

    #[test]
    fn a_tool_cannot_be_named_like_the_computed_name_of_another() {
        let mut book = book(1);
        book.public(&device("a"), "first", digest(0), &mut Vec::new());
        let computed = book.public(&device("a"), "unlock", digest(1), &mut Vec::new());
        assert!(computed.is_computed);
        let copy = book.public(&device("b"), &computed.name, digest(1), &mut Vec::new());
        assert_ne!(copy.name, computed.name);
    }

    #[test]
    fn a_forgotten_devices_name_rests_for_its_own_tool_and_is_free_afterwards() {
        let (mut book, mut news) = (book(100), Vec::new());
        let nobody = |_: &str, _: &str| None;
        assert_eq!(&*book.public(&device("lock"), "unlock", digest(1), &mut news).name, "unlock");
        book.forget(&device("lock"), nobody, 1_000, &mut news);
        // Another tool does not inherit the name.
        assert_ne!(&*book.public(&device("evil"), "unlock", digest(2), &mut news).name, "unlock");
        // The same tool gets it back, on any device: a name says what is called, not who answers.
        assert_eq!(&*book.public(&device("spare"), "unlock", digest(1), &mut news).name, "unlock");
        book.forget(&device("spare"), nobody, 2_000, &mut news);
        book.release(2_000, &mut news);
        assert_ne!(&*book.public(&device("late"), "unlock", digest(3), &mut news).name, "unlock");
        book.release(2_001, &mut news);
        assert_eq!(&*book.public(&device("later"), "unlock", digest(4), &mut news).name, "unlock");
    }

    #[test]
    fn a_name_that_another_device_uses_goes_to_that_device() {
        let (mut book, mut news) = (book(100), Vec::new());
        book.public(&device("one"), "x", digest(1), &mut news);
        book.forget(&device("one"), |_, _| Some(device("two")), 5, &mut news);
        assert_eq!((book.owned_by(&device("one")), book.owned_by(&device("two"))), (0, 1));
        book.release(i64::MAX, &mut news);
        assert_ne!(&*book.public(&device("three"), "x", digest(2), &mut news).name, "x");
    }

    #[test]
    fn an_unfolded_name_fits_also_when_both_parts_are_long() {
        let device = DeviceId::parse("a-device-with-a-long-id1").unwrap();
        assert_eq!(unfolded(&device, "tool"), "a-device-with-a-long-id1__tool");
        let (one, two) = ("x".repeat(64), format!("{}y", "x".repeat(63)));
        assert!(fits(&unfolded(&device, &one)));
        assert_ne!(unfolded(&device, &one), unfolded(&device, &two));
    }

    #[test]
    fn a_name_from_an_earlier_version_stays_as_it_was() {
        let long = "a".repeat(60);
        let minted = |digest: String, name: &str| NameClaim {
            tool: "t".to_owned(),
            digest,
            name: name.into(),
            owner: Some(device("a")),
            resting: None,
            face: None,
        };
        let stored = [minted(digest(1).hex(), &long), minted(String::new(), &long)];
        let mut book = NameBook::new(&[], 100, stored);
        assert_eq!(*book.public(&device("a"), "t", digest(1), &mut Vec::new()).name, *long);
        assert_eq!(*book.word(&device("a"), "t", &mut Vec::new()).name, *long);
        assert!(fits(&book.public(&device("a"), &long, digest(2), &mut Vec::new()).name));
    }

    #[test]
    fn an_unfolded_name_of_an_earlier_version_is_known_if_it_differs() {
        let device = DeviceId::parse("a-device-with-a-long-id1").unwrap();
        assert_eq!(earlier_unfolded(&device, "tool"), None);
        let digit = DeviceId::parse("4b-lamp").expect("a valid id");
        assert_eq!(unfolded(&digit, "on"), "_4b-lamp__on");
        assert_eq!(earlier_unfolded(&digit, "on").as_deref(), Some("4b-lamp__on"));
        let word = "x".repeat(30);
        assert_eq!(earlier_unfolded(&device, &word), Some(format!("{device}__{word}")));
        assert_eq!(earlier_unfolded(&device, &"x".repeat(64)).map(|name| name.len()), Some(64));
    }

    /// What the store would hold after these changes.
    fn stored(changes: &[NameChange]) -> Vec<NameClaim> {
        let mut kept: HashMap<(String, String), NameClaim> = HashMap::new();
        for change in changes {
            match change.clone() {
                NameChange::Keep(minted) => drop(kept.insert((minted.tool.clone(), minted.digest.clone()), minted)),
                NameChange::Release { tool, digest } => drop(kept.remove(&(tool, digest))),
            }
        }
        kept.into_values().collect()
    }

    proptest! {
        /// Whoever comes, is forgotten and comes again, and wherever the gateway restarts: a name means one tool.
        #[test]
        fn a_name_never_means_another_tool(
            wishes in proptest::collection::vec(
                ("([a-c._ä]{0,3}|[xy.]{62,66}|list_devices|a_[0-9a-f]{6})", 0u8..4, 0u8..3, any::<bool>()), 1..60),
            restart in 0usize..60,
            quota in 1usize..40,
        ) {
            let (mut book, mut news) = (book(quota), Vec::new());
            let mut names: HashMap<Arc<str>, (String, u8)> = HashMap::new();
            let mut words: HashMap<Arc<str>, String> = HashMap::new();
            for (step, (tool, number, who, forgets)) in wishes.into_iter().enumerate() {
                if step == restart {
                    book = NameBook::new(&["list_devices"], quota, stored(&news));
                }
                let who = device(&who.to_string());
                if forgets {
                    book.forget(&who, |_, _| None, 0, &mut news);
                }
                let name = book.public(&who, &tool, digest(number), &mut news).name;
                let word = book.word(&who, &tool, &mut news).name;
                prop_assert!(fits(&name) && fits(&word) && &*name != "list_devices");
                prop_assert_eq!(names.entry(name).or_insert((tool.clone(), number)), &(tool.clone(), number));
                prop_assert_eq!(words.entry(word).or_insert(tool.clone()), &tool);
            }
        }
    }
}
