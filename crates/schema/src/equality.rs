//! Equality and order of JSON values as JSON Schema sees them: `1` equals `1.0`, members have no order.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use serde_json::{Number, Value};

use crate::meter::{Exhausted, Meter};

pub(crate) fn equal(one: &Value, two: &Value, meter: &mut Meter) -> Result<bool, Exhausted> {
    meter.spend(1)?;
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => Ok(compare(one, two) == Some(Ordering::Equal)),
        (Value::String(one), Value::String(two)) => {
            meter.spend_length(one.len().min(two.len()))?;
            Ok(one == two)
        }
        (Value::Array(one), Value::Array(two)) => {
            if one.len() != two.len() {
                return Ok(false);
            }
            for (one, two) in one.iter().zip(two) {
                if !equal(one, two, meter)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(one), Value::Object(two)) => {
            if one.len() != two.len() {
                return Ok(false);
            }
            for (name, member) in one {
                meter.spend_length(name.len())?;
                match two.get(name) {
                    Some(other) if equal(member, other, meter)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (one, two) => Ok(one == two),
    }
}

/// The order of two numbers; exact where both are integers.
pub(crate) fn compare(one: &Number, two: &Number) -> Option<Ordering> {
    match (one.as_i128(), two.as_i128()) {
        (Some(one), Some(two)) => Some(one.cmp(&two)),
        _ => one.as_f64()?.partial_cmp(&two.as_f64()?),
    }
}

/// Whether a number is a multiple of another, with room for what binary fractions cannot express.
pub(crate) fn is_multiple(number: &Number, step: &Number) -> bool {
    if let (Some(number), Some(step)) = (number.as_i128(), step.as_i128()) {
        return step != 0 && number % step == 0;
    }
    let (Some(number), Some(step)) = (number.as_f64(), step.as_f64()) else { return false };
    let quotient = number / step;
    if !quotient.is_finite() {
        return false;
    }
    let error = (quotient - quotient.round()).abs();
    error <= 1e-9_f64.max(quotient.abs() * f64::EPSILON)
}

/// Whether no item equals another.
pub(crate) fn all_differ(items: &[Value], meter: &mut Meter) -> Result<bool, Exhausted> {
    // The keys are random, so nobody can choose values whose hashes collide.
    let keys = RandomState::new();
    meter.spend(items.len() as u64)?;
    let mut seen: HashMap<u64, Vec<usize>> = HashMap::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let same_hash = seen.entry(hash(item, &keys, meter)?).or_default();
        for other in same_hash.iter() {
            if equal(item, &items[*other], meter)? {
                return Ok(false);
            }
        }
        same_hash.push(place);
    }
    Ok(true)
}

fn hash(value: &Value, keys: &RandomState, meter: &mut Meter) -> Result<u64, Exhausted> {
    meter.spend(2)?;
    Ok(match value {
        Value::Null => keys.hash_one(0_u8),
        Value::Bool(truth) => keys.hash_one((1_u8, truth)),
        // Adding zero makes one of the two zeros.
        Value::Number(number) => keys.hash_one((2_u8, (number.as_f64().unwrap_or_default() + 0.0).to_bits())),
        Value::String(text) => {
            meter.spend_length(text.len())?;
            keys.hash_one((3_u8, text))
        }
        Value::Array(items) => {
            let mut all = keys.hash_one((4_u8, items.len()));
            for item in items {
                all = keys.hash_one((all, hash(item, keys, meter)?));
            }
            all
        }
        Value::Object(members) => {
            let mut all = 0_u64;
            for (name, member) in members {
                meter.spend_length(name.len())?;
                all = all.wrapping_add(keys.hash_one((name, hash(member, keys, meter)?)));
            }
            keys.hash_one((5_u8, all))
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation ends a test")]
mod tests {
    use serde_json::json;

    use super::*;

    fn differ(items: Value) -> bool {
        all_differ(items.as_array().unwrap(), &mut Meter::new(1_000)).unwrap()
    }

    #[test]
    fn equal_numbers_and_reordered_members_are_equal() {
        assert!(!differ(json!([1, 1.0])));
        assert!(!differ(json!([0.0, -0.0])));
        assert!(!differ(json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}])));
        assert!(differ(json!([0, false, null, "", [], {}, "0", [0], {"a": 0}])));
        assert!(differ(json!([9_007_199_254_740_993_i64, 9_007_199_254_740_992_i64])));
    }

    #[test]
    fn multiples_of_decimal_fractions_are_found() {
        let is = |number: Value, step: Value| is_multiple(number.as_number().unwrap(), step.as_number().unwrap());
        assert!(is(json!(0.3), json!(0.1)) && is(json!(19.99), json!(0.01)) && is(json!(9), json!(3)));
        assert!(!is(json!(0.35), json!(0.1)) && !is(json!(10), json!(3)) && !is(json!(1), json!(0)));
    }
}
