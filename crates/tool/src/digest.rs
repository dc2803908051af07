//! A fingerprint of a JSON value that does not depend on the order of its keys.

use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// SHA-256 over the canonical form of a JSON value: equal values, equal digests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(value: &Value) -> Digest {
        let mut hash = Sha256::new();
        // Depth is bounded by the JSON reader (128), so recursion is safe here.
        feed(&mut hash, value);
        Digest(hash.finalize().into())
    }

    /// The whole digest as 64 lower-case hex digits.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads what [`Digest::hex`] wrote.
    pub fn parse(hex: &str) -> Option<Digest> {
        let mut bytes = [0; 32];
        if hex.len() != 64 || !hex.is_ascii() {
            return None;
        }
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * place..2 * place + 2], 16).ok()?;
        }
        Some(Digest(bytes))
    }

    /// The first `digits` hex digits, for names that people read.
    pub fn short(&self, digits: usize) -> String {
        let mut hex = self.hex();
        hex.truncate(digits);
        hex
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.short(12))
    }
}

fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Number(number) => {
            hash.update(b"#");
            // 1 and 1.0 are the same number in JSON Schema, hence in a schema's digest.
            match number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15) {
                Some(whole) => hash.update((whole as i64).to_string()),
                None => hash.update(number.to_string()),
            }
            hash.update(b";");
        }
        Value::String(text) => feed_text(hash, b"s", text),
        Value::Array(items) => {
            hash.update(b"[");
            items.iter().for_each(|item| feed(hash, item));
            hash.update(b"]");
        }
        Value::Object(members) => {
            let mut keys: Vec<&String> = members.keys().collect();
            keys.sort_unstable();
            hash.update(b"{");
            for key in keys {
                feed_text(hash, b"k", key);
                feed(hash, &members[key.as_str()]);
            }
            hash.update(b"}");
        }
    }
}

fn feed_text(hash: &mut Sha256, mark: &[u8], text: &str) {
    hash.update(mark);
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let one = json!({"a": 1, "b": {"c": [1, 2], "d": null}});
        let two = json!({"b": {"d": null, "c": [1, 2]}, "a": 1});
        assert_eq!(Digest::of(&one), Digest::of(&two));
    }

    #[test]
    fn different_values_differ_even_where_their_text_runs_together() {
        assert_ne!(Digest::of(&json!(["ab", "c"])), Digest::of(&json!(["a", "bc"])));
        assert_ne!(Digest::of(&json!("1")), Digest::of(&json!(1)));
        assert_ne!(Digest::of(&json!([[1], 2])), Digest::of(&json!([1, [2]])));
        assert_ne!(Digest::of(&json!([2, 1])), Digest::of(&json!([1, 2])));
    }

    #[test]
    fn one_and_one_point_nought_are_one_number() {
        assert_eq!(Digest::of(&json!(1)), Digest::of(&json!(1.0)));
        assert_ne!(Digest::of(&json!(1.5)), Digest::of(&json!(1)));
    }

    #[test]
    fn short_is_a_prefix_of_hex() {
        let digest = Digest::of(&json!({}));
        assert_eq!(digest.hex().len(), 64);
        assert_eq!(Digest::parse(&digest.hex()), Some(digest));
        for wrong in ["", "00", &"g".repeat(64), &"é".repeat(32), &"0".repeat(65)] {
            assert_eq!(Digest::parse(wrong), None, "{wrong}");
        }
        assert!(digest.hex().starts_with(&digest.short(6)));
    }
}
