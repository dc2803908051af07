//! The types that settings have.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

use super::read::Plain;
use super::{Field, Measure, Setting};

impl Setting for bool {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        *self = bool::deserialize(from)?;
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": "boolean"})
    }

    fn to_value(&self) -> Value {
        json!(self)
    }
}

impl Setting for String {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        *self = String::deserialize(from)?;
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": "string"})
    }

    fn to_value(&self) -> Value {
        json!(self)
    }
}

impl Setting for PathBuf {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        let path = String::deserialize(from)?;
        if path.trim().is_empty() {
            return Err(D::Error::custom("an empty path; name a file or folder, or leave the key out"));
        }
        if path == "~" || path.starts_with("~/") {
            let message = format!("`{path}` begins with `~`, which only a shell replaces; write the whole path");
            return Err(D::Error::custom(message));
        }
        *self = path.into();
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": "string", "minLength": 1})
    }

    fn to_value(&self) -> Value {
        json!(self)
    }

    fn settle_in(&mut self, folder: &Path) {
        *self = folder.join(&*self);
    }
}

/// An address to listen on: an IP address or `localhost`, and a port.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    local.as_deref().unwrap_or(text).parse().map_err(|_| {
        format!("`{text}` is not an address; expected IP:PORT or localhost:PORT, for example 127.0.0.1:7300")
    })
}

impl Setting for SocketAddr {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        let text = String::deserialize(from)?;
        *self = parse_address(&text).map_err(D::Error::custom)?;
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": "string"})
    }

    fn to_value(&self) -> Value {
        json!(self.to_string())
    }
}

/// Seconds in the file.
impl Setting for Duration {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        let seconds = from.deserialize_any(Number("a number of seconds"))?;
        *self = Duration::try_from_secs_f64(seconds).map_err(|_| D::Error::custom("not a number of seconds"))?;
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": "number", "minimum": 0})
    }

    fn to_value(&self) -> Value {
        match self.subsec_nanos() {
            0 => json!(self.as_secs()),
            _ => json!(self.as_secs_f64()),
        }
    }
}

impl Measure for Duration {
    fn measure(&self) -> f64 {
        self.as_secs_f64()
    }
}

macro_rules! whole_numbers {
    ($($type:ty)*) => {$(
        impl Setting for $type {
            fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
                let number = from.deserialize_any(Number("a whole number"))?;
                if number.fract() != 0.0 || !(0.0..=<$type>::MAX as f64).contains(&number) {
                    return Err(D::Error::custom(format!("{number} is not a whole number from 0 to {}", <$type>::MAX)));
                }
                *self = number as $type;
                Ok(())
            }

            fn schema() -> Value {
                json!({"type": "integer", "minimum": 0})
            }

            fn to_value(&self) -> Value {
                json!(self)
            }
        }

        impl Measure for $type {
            fn measure(&self) -> f64 {
                *self as f64
            }
        }
    )*};
}

whole_numbers!(u32 usize);

/// A number; the text says what is expected.
struct Number(&'static str);

impl Visitor<'_> for Number {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<f64, E> {
        Ok(number as f64)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<f64, E> {
        Ok(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<f64, E> {
        Ok(number)
    }
}

impl<T: Setting + Default> Setting for Option<T> {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        self.get_or_insert_with(T::default).read(from)
    }

    fn schema() -> Value {
        T::schema()
    }

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }

    fn fields() -> Vec<Field> {
        T::fields()
    }

    fn settle_in(&mut self, folder: &Path) {
        self.iter_mut().for_each(|value| value.settle_in(folder));
    }
}

impl<T: Setting + Default> Setting for Vec<T> {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        *self = from.deserialize_seq(List(PhantomData))?;
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }

    fn to_value(&self) -> Value {
        self.iter().map(T::to_value).collect()
    }

    fn fields() -> Vec<Field> {
        T::fields()
    }

    fn settle_in(&mut self, folder: &Path) {
        self.iter_mut().for_each(|value| value.settle_in(folder));
    }
}

struct List<T>(PhantomData<T>);

impl<'de, T: Setting + Default> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(Plain(PhantomData))? {
            values.push(value);
        }
        Ok(values)
    }
}

impl<T: Setting + Default> Setting for BTreeMap<String, T> {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        *self = from.deserialize_map(NamedValues(PhantomData))?;
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": T::schema()})
    }

    fn to_value(&self) -> Value {
        self.iter().map(|(name, value)| (name.clone(), value.to_value())).collect()
    }

    fn settle_in(&mut self, folder: &Path) {
        self.values_mut().for_each(|value| value.settle_in(folder));
    }
}

/// A table of anything that JSON has.
impl Setting for Map<String, Value> {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        *self = Deserialize::deserialize(from)?;
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": "object"})
    }

    fn to_value(&self) -> Value {
        Value::Object(self.clone())
    }
}

struct NamedValues<T>(PhantomData<T>);

impl<'de, T: Setting + Default> Visitor<'de> for NamedValues<T> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BTreeMap<String, T>, A::Error> {
        let mut values = BTreeMap::new();
        while let Some(name) = map.next_key()? {
            values.insert(name, map.next_value_seed(Plain(PhantomData))?);
        }
        Ok(values)
    }
}

/// Makes an enum a setting whose values are words: `choices! { Offer { "mqtt" => Offer::Mqtt, … } }`.
#[macro_export]
macro_rules! choices {
    ($type:ty { $($word:literal => $value:path),* $(,)? }) => {
        impl $crate::settings::Setting for $type {
            fn read<'de, D: $crate::settings::Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
                let mut word = String::new();
                word.read(from)?;
                *self = match word.as_str() {
                    $($word => $value,)*
                    _ => {
                        let words = [$(concat!("`", $word, "`")),*].join(", ");
                        let problem = format!("`{word}` is not one of {words}");
                        return Err(<D::Error as $crate::settings::Error>::custom(problem));
                    }
                };
                Ok(())
            }

            fn schema() -> $crate::Value {
                $crate::json!({"enum": [$($word),*]})
            }

            fn to_value(&self) -> $crate::Value {
                match self {
                    $($value => $crate::json!($word),)*
                }
            }
        }
    };
}
