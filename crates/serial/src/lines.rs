//! The bytes of a serial line: JSON messages between boot noise and log lines.

use std::collections::VecDeque;

/// The longest line: boards have less memory than this. The rest of a longer one is dropped.
pub const MAX_LINE_BYTES: usize = 64 << 10;

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SerialText {
    /// A JSON object.
    Message(String),
    /// The board has just started: what the boot loaders of microcontrollers print.
    Boot,
    /// Anything else that a person could read.
    Log(String),
    /// A line that was longer than allowed.
    TooLong,
}

/// Takes the bytes of a line apart.
#[derive(Debug, Default)]
pub struct SerialReader {
    line: Vec<u8>,
    is_too_long: bool,
    ready: VecDeque<SerialText>,
}

/// A log line is shown to people.
const MAX_LOG_CHARACTERS: usize = 200;

impl SerialReader {
    pub fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' | b'\r' => self.end_line(),
                _ if self.line.len() < MAX_LINE_BYTES => self.line.push(*byte),
                _ => self.is_too_long = true,
            }
        }
    }

    pub fn next_text(&mut self) -> Option<SerialText> {
        self.ready.pop_front()
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            return self.ready.push_back(SerialText::TooLong);
        }
        let text = String::from_utf8_lossy(&line);
        // An escape begins a colour, which is one with what follows.
        let is_blank = |each: char| each.is_whitespace() || (each.is_control() && each != '\u{1b}');
        let text = text.trim_matches(is_blank);
        if !text.is_empty() {
            self.ready.push_back(read_text(text));
        }
    }
}

fn read_text(text: &str) -> SerialText {
    // Noise without a line end may stand before a message; words before it make it a log line that quotes one.
    let start = text.find("{\"").or_else(|| text.find('{'));
    if let Some(start) = start
        && text.ends_with('}')
        && !has_words(&text[..start])
        && serde_json::from_str::<&serde_json::value::RawValue>(&text[start..]).is_ok()
    {
        return SerialText::Message(text[start..].to_owned());
    }
    let is_boot = text.contains("rst:0x") || text.starts_with("ESP-ROM:") || text.starts_with("*** Booting Zephyr");
    match is_boot {
        true => SerialText::Boot,
        false => SerialText::Log(text.chars().filter(|each| !each.is_control()).take(MAX_LOG_CHARACTERS).collect()),
    }
}

/// Whether a text says something, apart from the colours of terminals.
fn has_words(text: &str) -> bool {
    let mut pieces = text.split('\u{1b}');
    let before = pieces.next().unwrap_or_default();
    let is_parameter = |each: char| each.is_ascii_digit() || matches!(each, '[' | ';' | '?');
    let behind = |piece: &str| {
        let mut rest = piece.trim_start_matches(is_parameter).chars();
        rest.next();
        rest.any(char::is_alphanumeric)
    };
    before.contains(char::is_alphanumeric) || pieces.any(behind)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<SerialText> {
        let mut reader = SerialReader::default();
        pieces.iter().for_each(|piece| reader.read(piece));
        std::iter::from_fn(|| reader.next_text()).collect()
    }

    #[test]
    fn messages_are_found_between_boot_noise_and_log_lines() {
        let line = b"\xff\xfe\x00ets Jun  8 2016 00:22:57\r\nrst:0x1 (POWERON_RESET),boot:0x13\r\nI (31) boot: hello {x}\r\n\x1b[0;32m>>{\"id\":1,\"result\":{}}\r\n{\"id\":2";
        assert_eq!(
            read(&[line]),
            [
                SerialText::Log("\u{fffd}\u{fffd}\0ets Jun  8 2016 00:22:57".replace('\0', "")),
                SerialText::Boot,
                SerialText::Log("I (31) boot: hello {x}".to_owned()),
                SerialText::Message("{\"id\":1,\"result\":{}}".to_owned()),
            ]
        );
    }

    #[test]
    fn a_log_line_that_quotes_a_message_is_a_log_line() {
        let message = r#"{"id":1,"result":{}}"#;
        for (before, is_message) in [
            ("", true),
            (">>> ", true),
            ("\u{fffd}\u{fffd}~", true),
            ("\u{1b}[0m\u{1b}[1;32m", true),
            ("I (100) net: got ", false),
            ("\u{1b}[0;32mgot ", false),
            ("[12] ", false),
        ] {
            let found = read(&[format!("{before}{message}\n").as_bytes()]);
            assert_eq!(found == [SerialText::Message(message.to_owned())], is_message, "{before:?} {found:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_dropped_and_the_next_is_read() {
        let long = vec![b'x'; MAX_LINE_BYTES + 1];
        assert_eq!(read(&[&long, &long, b"\n{}\n"]), [SerialText::TooLong, SerialText::Message("{}".to_owned())]);
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(line in "(\\{\"a\":1\\}|[a-z{}\"]|\\n|\\r|rst:0x){0,40}", cut in 0..60_usize) {
            let bytes = line.as_bytes();
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(read(&[head, tail]), read(&[bytes]));
        }
    }
}
