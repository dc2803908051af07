//! Reading a table of settings: keys are known or refused with the nearest one, values are checked where they stand,
//! so that the error has their place in the file.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

use super::Setting;
use crate::spelling::nearest;

/// A struct whose fields are settings; made by [`settings!`](crate::settings!).
pub trait SettingsTable {
    /// The fields, as Rust names them.
    const NAMES: &'static [&'static str];

    /// Reads the value of one field.
    fn read_field<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error>;
}

pub fn read_table<'de, T: SettingsTable, D: Deserializer<'de>>(table: &mut T, from: D) -> Result<(), D::Error> {
    from.deserialize_map(Fields(table))
}

struct Fields<'a, T>(&'a mut T);

impl<'de, T: SettingsTable> Visitor<'de> for Fields<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(Key(T::NAMES))? {
            self.0.read_field(name, &mut map)?;
        }
        Ok(())
    }
}

/// A key that is one of these, written with hyphens.
pub struct Key(pub &'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Key {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<&'static str, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Key {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the name of a setting")
    }

    fn visit_str<E: Error>(self, written: &str) -> Result<&'static str, E> {
        let names: Vec<String> = self.0.iter().map(|name| name.replace('_', "-")).collect();
        if let Some(at) = names.iter().position(|name| name == written) {
            return Ok(self.0[at]);
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let hint = match nearest(written, names.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("the keys are {}", names.join(", ")),
        };
        Err(E::custom(format!("unknown key `{written}`; {hint}")))
    }
}

/// Where a value goes, and what is checked of it.
pub struct FieldSlot<'a, T> {
    value: &'a mut T,
    name: &'a str,
    check: fn(&T) -> Result<(), String>,
}

impl<'a, T> FieldSlot<'a, T> {
    pub fn new(value: &'a mut T, name: &'a str, check: fn(&T) -> Result<(), String>) -> FieldSlot<'a, T> {
        FieldSlot { value, name, check }
    }
}

impl<'de, T: Setting> DeserializeSeed<'de> for FieldSlot<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.value.read(from)?;
        let refused = |problem| D::Error::custom(format!("`{}` {problem}", self.name.replace('_', "-")));
        (self.check)(self.value).map_err(refused)
    }
}

/// Reads a value that has no checks.
pub(super) struct Plain<T>(pub PhantomData<T>);

impl<'de, T: Setting + Default> DeserializeSeed<'de> for Plain<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        let mut value = T::default();
        value.read(from)?;
        Ok(value)
    }
}
