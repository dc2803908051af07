//! Arbitrary bytes on a serial line. The pieces in which they come make no difference, and every message is JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_serial::lines::{MAX_LINE_BYTES, SerialReader, SerialText};

fn read(pieces: &[&[u8]]) -> Vec<SerialText> {
    let mut reader = SerialReader::default();
    pieces.iter().for_each(|piece| reader.read(piece));
    std::iter::from_fn(|| reader.next_text()).collect()
}

fuzz_target!(|input: &[u8]| {
    let (cut, line) = input.split_first().map_or((0, input), |(cut, rest)| (usize::from(*cut), rest));
    let (head, tail) = line.split_at(cut.min(line.len()));
    let texts = read(&[line]);
    assert_eq!(read(&[head, tail]), texts);
    for text in texts {
        if let SerialText::Message(message) = text {
            assert!(message.len() <= 3 * MAX_LINE_BYTES);
            assert!(message.starts_with('{'));
        }
    }
});
