//! Repairs small faults in JSON that real clients and devices make.
//!
//! - A byte order mark before a message is skipped; some programs on Windows write one.
//! - Half a surrogate pair in an escape sequence, as JavaScript's `slice` leaves it, becomes U+FFFD.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The message without its faults; borrowed if it has none.
pub fn repair(message: &[u8]) -> Cow<'_, [u8]> {
    let message = message.strip_prefix(BYTE_ORDER_MARK).unwrap_or(message);
    // Found many times faster than the place of the first.
    if !message.contains(&b'\\') {
        return Cow::Borrowed(message);
    }
    let mut repaired = Cow::Borrowed(message);
    let mut at = 0;
    while let Some(found) = message[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        let Some(unit) = code_unit(message, at) else {
            // Skips the escaped character too, which may be a backslash.
            at = message.len().min(at + 2);
            continue;
        };
        let is_pair = matches!(unit, 0xd800..=0xdbff)
            && code_unit(message, at + 6).is_some_and(|next| matches!(next, 0xdc00..=0xdfff));
        if !is_pair && matches!(unit, 0xd800..=0xdfff) {
            repaired.to_mut()[at + 2..at + 6].copy_from_slice(b"fffd");
        }
        at += if is_pair { 12 } else { 6 };
    }
    repaired
}

/// Reads JSON after [`repair`].
pub fn read<T: DeserializeOwned>(message: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(&repair(message))
}

/// The JSON text without its faults; borrowed if it has none.
pub fn repair_text(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match repair(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // Only ASCII was replaced, by ASCII.
        Cow::Owned(repaired) => String::from_utf8(repaired).map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

/// The UTF-16 code unit of an escape such as `\u00e9` at `at`.
fn code_unit(message: &[u8], at: usize) -> Option<u16> {
    let digits = message.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn half_pairs_are_replaced_and_the_rest_stays() {
        for (message, expected) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uDC00x""#, r#""\ufffdx""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""\u00e9\n""#, r#""\u00e9\n""#),
            ("\u{feff}{}", "{}"),
            ("\\", "\\"),
        ] {
            assert_eq!(repair(message.as_bytes()), expected.as_bytes(), "{message}");
            assert_eq!(repair_text(message), expected, "{message}");
        }
    }

    proptest! {
        #[test]
        fn a_string_of_any_code_units_can_be_read(units in prop::collection::vec(any::<u16>(), 0..20)) {
            let text: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let message = format!("\"{text}\"");
            let read: String = serde_json::from_slice(&repair(message.as_bytes())).unwrap();
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }

        #[test]
        fn valid_messages_stay_as_they_are(text in any::<String>()) {
            let message = serde_json::to_vec(&text).unwrap();
            prop_assert!(matches!(repair(&message), Cow::Borrowed(same) if same == message));
        }
    }
}
