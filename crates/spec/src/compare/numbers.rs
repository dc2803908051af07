//! Numbers of schemas, compared exactly as far as possible.

use std::cmp::Ordering;

use serde_json::Number;

/// Numbers compared exactly where they are whole.
pub(super) fn order(one: &Number, two: &Number) -> Option<Ordering> {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (whole(one), whole(two)) {
        (Some(one), Some(two)) => Some(one.cmp(&two)),
        _ => one.as_f64()?.partial_cmp(&two.as_f64()?),
    }
}

/// A limit as the outermost integer inside it; `None` if that is too large.
pub(super) fn whole_limit(limit: &Number, is_shut: bool, is_lower: bool) -> Option<i64> {
    let step = if is_lower { 1 } else { -1 };
    if let Some(number) = limit.as_i64() {
        return if is_shut { number.checked_add(step) } else { Some(number) };
    }
    // Beyond this, floats skip integers.
    let number = limit.as_f64().filter(|number| number.abs() < 9e15)?;
    let inner = if is_lower { number.ceil() } else { number.floor() };
    Some(inner as i64 + if inner == number && is_shut { step } else { 0 })
}

/// Whether one step divides another exactly, also for decimals: `0.5` divides `1.5`.
pub(super) fn divides(step: &Number, other: &Number) -> Option<bool> {
    let scaled = |number: &Number| -> Option<(i128, u32)> {
        let text = number.to_string();
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits.to_owned(), exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
        let value = format!("{whole}{fraction}").parse::<i128>().ok()?;
        let places = i32::try_from(fraction.len()).ok()? - exponent;
        match u32::try_from(places) {
            Ok(places) => Some((value, places)),
            Err(_) => Some((value.checked_mul(10i128.checked_pow(places.unsigned_abs())?)?, 0)),
        }
    };
    let ((one, places), (two, others)) = (scaled(step)?, scaled(other)?);
    let most = places.max(others);
    let one = one.checked_mul(10i128.checked_pow(most - places)?)?;
    let two = two.checked_mul(10i128.checked_pow(most - others)?)?;
    (one > 0).then(|| two % one == 0)
}
