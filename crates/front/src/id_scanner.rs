//! Finds the id of a JSON-RPC message without parsing it, so that an error can name it.
//!
//! The message may be too long to keep, cut off, or not quite JSON, and its id may be a number that no integer type
//! holds. So the scanner reads it piece by piece and keeps the id as text.

use sinew_tool::lenient;

/// Longer ids are not sent back.
const MAX_ID: usize = 256;

/// Reads a message in pieces.
#[derive(Default)]
pub(crate) struct IdScanner {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The key or value that is being read at the top level.
    token: Vec<u8>,
    /// Whether the token before the last `:` was `"id"`.
    is_id: bool,
    id: Option<String>,
}

impl IdScanner {
    pub(crate) fn scan(&mut self, piece: &[u8]) {
        for byte in piece {
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.keep(byte);
                self.in_string = true;
            }
            b'{' | b'[' => {
                self.keep(byte);
                self.depth += 1;
            }
            b':' if self.depth == 1 => self.is_id = std::mem::take(&mut self.token) == b"\"id\"",
            b',' if self.depth == 1 => self.end_value(),
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() <= MAX_ID {
            self.token.push(byte);
        }
    }

    fn end_value(&mut self) {
        let token = std::mem::take(&mut self.token);
        if std::mem::take(&mut self.is_id) && self.id.is_none() && token.len() <= MAX_ID {
            let token = lenient::repair(&token).into_owned();
            self.id = String::from_utf8(token).ok().filter(|text| is_id(text));
        }
    }

    /// The id as JSON; `null` if there is none that can be sent back.
    pub(crate) fn finish(self) -> String {
        self.id.unwrap_or_else(|| "null".to_owned())
    }
}

/// The id of a whole message as JSON, or `null`.
pub(crate) fn id_of(message: &[u8]) -> String {
    let mut scanner = IdScanner::default();
    scanner.scan(message);
    scanner.finish()
}

/// Strings and numbers are sent back; JSON-RPC allows nothing else.
fn is_id(text: &str) -> bool {
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<String>(text).is_ok(),
        Some(b'-' | b'0'..=b'9') => is_number(text),
        _ => false,
    }
}

/// A number as JSON writes it, also one that is out of the range of every type.
fn is_number(text: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let has_no_leading_zero = whole.len() == 1 || !whole.starts_with('0');
    is_digits(whole) && has_no_leading_zero && is_digits(fraction) && is_digits(exponent)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_id_is_found_wherever_it_is() {
        for (message, id) in [
            (r#"{"id":7}"#, "7"),
            (r#"{"params":{"id":1,"x":[{"id":2}]},"jsonrpc":"2.0","id":"a\"b"}"#, r#""a\"b""#),
            (r#"{"x":"\"id\":3,","id" : 1.50 , "method":"m"}"#, "1.50"),
            (r#"{"id":18446744073709551617}"#, "18446744073709551617"),
            (r#"{"id":-9e2,"method":5"#, "-9e2"),
            (r#"{"id":1e400}"#, "1e400"),
            (r#"{"id":-0.5E+9}"#, "-0.5E+9"),
            (r#"{"id":01}"#, "null"),
            (r#"{"id":1.}"#, "null"),
            (r#"{"id":1e}"#, "null"),
            (r#"{"id":-}"#, "null"),
            (r#"{"id":"a\ud83d","method":5}"#, r#""a\ufffd""#),
            (r#"{"id":null}"#, "null"),
            (r#"{"id":{"a":1},"b":2}"#, "null"),
            (r#"{"id":[1]}"#, "null"),
            (r#"{"id":1x}"#, "null"),
            (r#"{"idx":1,"x":"id"}"#, "null"),
            (r#"[{"id":1}]"#, "null"),
            ("", "null"),
            ("}}}]:,", "null"),
        ] {
            assert_eq!(id_of(message.as_bytes()), id, "{message}");
        }
        let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(MAX_ID));
        assert_eq!(id_of(long.as_bytes()), "null");
    }

    proptest! {
        #[test]
        fn the_id_of_any_object_is_found_in_pieces(
            before in any::<String>(), id in prop_oneof![any::<i64>().prop_map(|id| json!(id)), "[ -~]{0,20}".prop_map(|id| json!(id))],
            after in any::<String>(), size in 1usize..9,
        ) {
            let message = json!({"b": {"id": before}, "id": id, "a": [after]}).to_string();
            let mut scanner = IdScanner::default();
            message.as_bytes().chunks(size).for_each(|piece| scanner.scan(piece));
            prop_assert_eq!(serde_json::from_str::<Value>(&scanner.finish()).unwrap(), id);
        }

        #[test]
        fn any_bytes_give_a_valid_id(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(serde_json::from_str::<Value>(&id_of(&bytes)).is_ok());
        }

        #[test]
        fn numbers_are_those_of_json(text in "[-+]?[01]{0,2}[.]?[02]{0,2}([eE][-+]?[0-9]{0,2})?") {
            prop_assert_eq!(is_number(&text), serde_json::from_str::<serde_json::Number>(&text).is_ok());
        }
    }
}
