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
        let text = text.trim_matches(|character: char| character.is_whitespace() || character.is_control());
        if !text.is_empty() {
            self.ready.push_back(read_text(text));
        }
    }
}

fn read_text(text: &str) -> SerialText {
    // Noise without a line end may stand before a message.
    let start = text.find("{\"").or_else(|| text.find('{'));
    if let Some(start) = start
        && text.ends_with('}')
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
