//! How much text a listed schema has: references and alternatives copy what they hold.

use serde_json::{Map, Value};

use super::branch::Level;
use super::check::{MOST_VALUES, is_too_long};
use super::node::Rewriter;
use super::sentences::{self, described};

/// Bytes that a listed schema may have more than its original: references that are written out multiply. The largest
/// seen on real devices has 6 KiB.
const MOST_WRITTEN_OUT: usize = 16 << 10;
/// Bytes of any listed schema, as many as that of a device may have.
const MOST_LISTED: usize = 64 << 10;
/// What is reported where a schema is listed without some of its parts.
pub(super) const TOO_LONG: &str = "more text than is listed";
/// Characters of a sentence that several alternatives say, all of them together.
const MOST_REPEATED: usize = 16 << 10;
/// Bytes that are read for it, listed or not, in all tries together.
pub(super) const MOST_READ: usize = 4 << 20;
/// What copying a part of a schema costs, as bytes that are read.
const COPIED_PART: usize = 16;
/// The keywords of a part, without what they hold.
const PLAIN_PART: usize = 32;

/// Bytes that the listed form of a schema may have.
pub(super) fn most_listed(schema: &Value) -> usize {
    MOST_LISTED.min(schema.to_string().len() + MOST_WRITTEN_OUT)
}

pub(super) struct Room {
    listed: usize,
    /// Bytes that may be read, and those that may still be.
    readable: usize,
    read: usize,
    /// Values that lists of values may still have.
    values: usize,
    pub(super) is_cut: bool,
}

impl Room {
    /// `listed`: the bytes of the result, roughly; `read`: those that may be read for it.
    pub(super) fn new(listed: usize, read: usize) -> Room {
        Room { listed, readable: read, read, values: MOST_VALUES, is_cut: false }
    }

    /// Bytes that were read.
    pub(super) fn work(&self) -> usize {
        self.readable - self.read
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listed == 0 || self.read == 0
    }

    /// Takes room for text that can be left out; whether there is enough.
    pub(super) fn takes(&mut self, bytes: usize) -> bool {
        self.read(bytes);
        let left = self.listed.checked_sub(bytes).filter(|_| !self.is_empty());
        self.listed = left.unwrap_or(self.listed);
        self.is_cut |= left.is_none();
        left.is_some()
    }

    /// Takes room for a list of values; whether clients accept it.
    pub(super) fn takes_values(&mut self, texts: &[Value]) -> bool {
        let left = self.values.checked_sub(texts.len()).filter(|_| !is_too_long(texts));
        self.values = left.unwrap_or(self.values);
        left.is_some()
    }

    pub(super) fn read(&mut self, bytes: usize) {
        self.read = self.read.saturating_sub(bytes);
    }

    pub(super) fn read_level(&mut self, level: &Level, times: usize) {
        self.read(COPIED_PART * level.weight() * times);
    }

    fn must_take(&mut self, bytes: usize) {
        self.listed = self.listed.saturating_sub(bytes);
    }
}

impl Rewriter<'_> {
    /// A part with its title, its description and the sentences, or with words that say that they are too long.
    pub(super) fn described(&mut self, mut members: Map<String, Value>, level: &Level, sentences: &[String]) -> Value {
        let names = members.get("properties").and_then(Value::as_object).into_iter().flat_map(|all| all.keys());
        // A name that is required stands there twice.
        self.room.must_take(PLAIN_PART + names.map(|name| 2 * (name.len() + 4)).sum::<usize>());
        let texts = ["title", "description"].into_iter().filter_map(|text| level.members.get(text)?.as_str());
        let texts = texts.chain(sentences.iter().map(String::as_str)).map(|text| text.len() + 1);
        let values = ["enum", "default"].into_iter().filter_map(|keyword| members.get(keyword));
        if self.room.takes(texts.chain(values.map(|value| value.to_string().len())).sum()) {
            return described(members, level, sentences);
        }
        members.shift_remove("enum");
        members.shift_remove("default");
        self.room.must_take(sentences::LEFT_OUT.len());
        described(members, &Level::default(), &[sentences::LEFT_OUT.to_owned()])
    }

    /// Takes room for sentences that several parts say; fewer words where there is none.
    pub(super) fn said_in_each(&mut self, parts: usize, mut sentences: Vec<String>) -> Vec<String> {
        let most = MOST_REPEATED / parts.max(1);
        sentences.iter_mut().for_each(|sentence| sentences::shorten(sentence, most));
        let bytes: usize = sentences.iter().map(|sentence| sentence.len() + 1).sum();
        if self.room.takes(bytes * parts) { sentences } else { vec![sentences::LEFT_OUT.to_owned()] }
    }

    /// The sentences that there is room for.
    pub(super) fn listed_notes(&mut self, notes: Vec<String>) -> Vec<String> {
        let before = notes.len();
        let mut listed: Vec<String> = notes.into_iter().filter(|note| self.room.takes(note.len() + 1)).collect();
        if listed.len() < before && !listed.iter().any(|note| note == sentences::LEFT_OUT) {
            listed.push(sentences::LEFT_OUT.to_owned());
        }
        listed
    }
}
