//! Arbitrary bytes as the stream of an MCP server. The pieces in which they come make no difference, and events stay
//! within their limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_servers::message::ServerMessage;
use sinew_servers::sse::{SseEvent, SseReader};

const LIMIT: usize = 4096;

fn read(pieces: &[&[u8]]) -> Option<Vec<SseEvent>> {
    let (mut reader, mut events) = (SseReader::new(LIMIT), Vec::new());
    pieces.iter().all(|piece| reader.read(piece, &mut events).is_ok()).then_some(events)
}

fuzz_target!(|input: &[u8]| {
    let (cut, stream) = input.split_first().map_or((0, input), |(cut, rest)| (usize::from(*cut), rest));
    let (head, tail) = stream.split_at(cut.min(stream.len()));
    let events = read(&[stream]);
    assert_eq!(read(&[head, tail]), events);
    for event in events.into_iter().flatten() {
        // Bytes that are not UTF-8 become three bytes each.
        assert!(event.data.len() <= 3 * LIMIT);
        let _ = ServerMessage::parse(&event.data);
    }
    let _ = ServerMessage::parse(&String::from_utf8_lossy(stream));
});
