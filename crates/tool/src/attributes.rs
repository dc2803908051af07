//! Further details of a device, by name. A sorted list and not a map: there may be a hundred thousand devices with
//! four details each, and the smallest node of a map has space for eleven.

use std::ops::Index;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes {
    /// Sorted by name.
    pairs: Vec<(String, Value)>,
}

impl Attributes {
    pub fn new() -> Attributes {
        Attributes::default()
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.place(name).ok().map(|place| &self.pairs[place].1)
    }

    /// Replaces what had the name before.
    pub fn insert(&mut self, name: impl Into<String>, value: Value) {
        let name = name.into();
        match self.place(&name) {
            Ok(place) => self.pairs[place].1 = value,
            Err(place) => {
                self.pairs.reserve_exact(1);
                self.pairs.insert(place, (name, value));
            }
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.place(name).ok().map(|place| self.pairs.remove(place).1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value))
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.pairs.binary_search_by(|(known, _)| known.as_str().cmp(name))
    }
}

impl Extend<(String, Value)> for Attributes {
    fn extend<I: IntoIterator<Item = (String, Value)>>(&mut self, pairs: I) {
        pairs.into_iter().for_each(|(name, value)| self.insert(name, value));
    }
}

impl FromIterator<(String, Value)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Attributes {
        let mut attributes = Attributes::new();
        attributes.extend(pairs);
        attributes
    }
}

impl Index<&str> for Attributes {
    type Output = Value;

    /// `null` for what is not there, as in a JSON object.
    fn index(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&Value::Null)
    }
}

impl Serialize for Attributes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.pairs.len()))?;
        for (name, value) in &self.pairs {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Attributes, D::Error> {
        let pairs = Map::<String, Value>::deserialize(deserializer)?;
        Ok(pairs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attributes_are_found_by_name_kept_in_order_and_replaced() {
        let pairs = [("b", 1), ("a", 2), ("b", 3)].map(|(name, value)| (name.to_owned(), json!(value)));
        let mut attributes: Attributes = pairs.into_iter().collect();
        assert_eq!((attributes.get("b"), attributes.get("c")), (Some(&json!(3)), None));
        attributes.insert("c", json!("x"));
        assert_eq!(json!(attributes).to_string(), r#"{"a":2,"b":3,"c":"x"}"#);
        assert_eq!((&attributes["a"], &attributes["none"]), (&json!(2), &Value::Null));
        assert_eq!((attributes.remove("a"), attributes.remove("a")), (Some(json!(2)), None));
        assert_eq!(attributes.iter().count(), 2);
    }
}
