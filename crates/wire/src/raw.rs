//! JSON read only as far as needed: the wanted members of an object, each as its text.
//!
//! A tree of values would take some thirty times the size of a board's message, and several copies of a picture.

use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use sinew_tool::lenient::repair_text;

/// The members of these names, where `null` counts as absent.
pub(crate) fn pick<'a, const N: usize>(
    text: &'a str,
    names: [&str; N],
) -> Result<[Option<&'a RawValue>; N], serde_json::Error> {
    Ok(pick_all(text, names)?.map(present))
}

pub(crate) fn present(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| raw.get() != "null")
}

/// The members of these names, `null` or not; the last one counts where a name comes twice.
pub(crate) fn pick_all<'a, const N: usize>(
    text: &'a str,
    names: [&str; N],
) -> Result<[Option<&'a RawValue>; N], serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let members = PickMembers(names).deserialize(&mut reader)?;
    reader.end()?;
    Ok(members)
}

/// The first items of an array.
pub(crate) fn items(text: &str, limit: usize) -> Result<Vec<&RawValue>, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let items = FirstItems(limit).deserialize(&mut reader)?;
    reader.end()?;
    Ok(items)
}

/// A raw value as text, where it is a JSON string.
pub(crate) fn string(raw: &RawValue) -> Option<String> {
    read(raw.get()).ok()
}

/// Reads a value whole, also where half a surrogate pair is in its texts. Raw values may have that.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(&repair_text(text))
}

/// Whether a raw value is the string `word`, which has nothing in it to escape.
pub(crate) fn is_word(raw: &RawValue, word: &str) -> bool {
    raw.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) == Some(word)
}

struct PickMembers<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for PickMembers<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for PickMembers<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut members = [None; N];
        while let Some(index) = map.next_key_seed(KeyIndex(&self.0))? {
            match index.and_then(|index| members.get_mut(index)) {
                Some(member) => *member = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(members)
    }
}

/// The place of a key among the names.
struct KeyIndex<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for KeyIndex<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyIndex<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|name| *name == key))
    }
}

struct FirstItems(usize);

impl<'de> DeserializeSeed<'de> for FirstItems {
    type Value = Vec<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for FirstItems {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
        let mut items = Vec::new();
        while items.len() < self.0 {
            match seq.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(items),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked<const N: usize>(text: &str, names: [&str; N]) -> Option<[Option<String>; N]> {
        pick(text, names).ok().map(|members| members.map(|raw| raw.map(|raw| raw.get().to_owned())))
    }

    #[test]
    fn wanted_members_come_as_the_text_they_are() {
        let text = r#" {"a":[1, 2],"x":{"b":0},"\u0062":"c","n":null} "#;
        assert_eq!(picked(text, ["b", "n", "a"]), Some([Some("\"c\"".into()), None, Some("[1, 2]".into())]));
    }

    #[test]
    fn a_member_said_twice_counts_as_said_last() {
        assert_eq!(picked(r#"{"id":1,"id":2}"#, ["id"]), Some([Some("2".into())]));
    }

    #[test]
    fn what_is_not_one_object_is_an_error() {
        for text in ["", "5", "[]", "{", "{}{}", "{\"a\":}", "\"a\""] {
            assert_eq!(picked(text, ["a"]), None, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_skipped_without_recursion() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(picked(&format!(r#"{{"a":{deep}, "b":{deep}}}"#), ["a"]).is_some());
        assert_eq!(picked(&deep, ["a"]), None);
        assert_eq!(items(&deep, 10).map(|items| items.len()).ok(), Some(1));
    }

    #[test]
    fn an_array_is_read_to_its_limit_and_checked_to_its_end() {
        let count = |text: &str| items(text, 2).map(|items| items.len()).ok();
        assert_eq!([count("[]"), count("[1]"), count("[1,2,3]")], [Some(0), Some(1), Some(2)]);
        assert_eq!([count("[1,2,3"), count("{}"), count("[1] 2")], [None; 3]);
    }
}
