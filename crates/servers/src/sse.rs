//! Server-sent events, read from any pieces of bytes.

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    pub data: String,
    /// The last id the stream named so far; where it is resumed.
    pub id: Option<String>,
    /// Milliseconds after which to reconnect, if this event said so.
    pub retry: Option<u64>,
}

/// An event, or a line without end, that is longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseTooLong;

/// Reads a stream of events. Bytes that are not UTF-8 are replaced; fields of other names are ignored.
#[derive(Debug)]
pub struct SseReader {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    has_id: bool,
    id: Option<String>,
    retry: Option<u64>,
    /// The last byte was CR, so that LF would belong to it.
    after_cr: bool,
    is_first_line: bool,
    limit: usize,
}

/// An id is sent back in a header.
const MAX_ID_BYTES: usize = 1024;
/// Nobody waits longer than a minute because a server says so.
const MAX_RETRY_TIME_MS: u64 = 60_000;

impl SseReader {
    /// `limit`: the longest event, in bytes.
    pub fn new(limit: usize) -> SseReader {
        SseReader {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            has_id: false,
            id: None,
            retry: None,
            after_cr: false,
            is_first_line: true,
            limit,
        }
    }

    /// Reads the next bytes; the events that ended in them are added to `events`.
    pub fn read(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseTooLong> {
        for byte in bytes {
            let is_second_half = std::mem::take(&mut self.after_cr) && *byte == b'\n';
            match byte {
                b'\n' if is_second_half => {}
                b'\r' | b'\n' => {
                    self.after_cr = *byte == b'\r';
                    events.extend(self.end_line()?);
                }
                _ => {
                    self.line.push(*byte);
                    if self.line.len() > self.limit {
                        return Err(SseTooLong);
                    }
                }
            }
        }
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<SseEvent>, SseTooLong> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_first_line) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            return Ok(self.end_event());
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.data.len() + value.len() >= self.limit {
                    return Err(SseTooLong);
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"id" if value.len() <= MAX_ID_BYTES && !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
                self.has_id = true;
            }
            b"retry" => {
                let time = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
                self.retry = time.map(|time| time.min(MAX_RETRY_TIME_MS));
            }
            _ => {}
        }
        // The buffer serves the next line.
        line.clear();
        self.line = line;
        Ok(None)
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        let retry = self.retry.take();
        let (has_data, has_id) = (std::mem::take(&mut self.has_data), std::mem::take(&mut self.has_id));
        // An event without data still says where the stream can be resumed.
        if !has_data && !has_id && retry.is_none() {
            return None;
        }
        let data = String::from_utf8_lossy(&std::mem::take(&mut self.data)).into_owned();
        Some(SseEvent { data, id: self.id.clone(), retry })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let (mut reader, mut events) = (SseReader::new(1000), Vec::new());
        pieces.iter().for_each(|piece| reader.read(piece, &mut events).expect("short enough"));
        events
    }

    fn event(data: &str, id: Option<&str>) -> SseEvent {
        SseEvent { data: data.to_owned(), id: id.map(str::to_owned), retry: None }
    }

    #[test]
    fn events_end_with_an_empty_line_whatever_ends_lines() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = format!(
                "\u{feff}: hi{end}event: message{end}data: a{end}data:b{end}{end}id: 7{end}data{end}{end}data: c"
            );
            assert_eq!(read(&[stream.as_bytes()]), [event("a\nb", None), event("", Some("7"))], "{end:?}");
        }
    }

    #[test]
    fn an_id_stays_until_the_next_one() {
        let events = read(&[b"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n"]);
        assert_eq!(events, [event("a", Some("1")), event("b", Some("1")), event("c", Some(""))]);
        assert_eq!(read(&[b"id: 7\n\n: hi\n\ndata: a\n\n"]), [event("", Some("7")), event("a", Some("7"))]);
    }

    #[test]
    fn the_time_to_reconnect_is_bounded() {
        let events = read(&[b"retry: 99999999\n\nretry: x\ndata: a\n\n"]);
        assert_eq!(events[0].retry, Some(MAX_RETRY_TIME_MS));
        assert_eq!(events[1], event("a", None));
    }

    #[test]
    fn neither_a_line_nor_an_event_grows_beyond_the_limit() {
        let mut reader = SseReader::new(10);
        assert_eq!(reader.read(b"data: 0123456789", &mut Vec::new()), Err(SseTooLong));
        let mut reader = SseReader::new(10);
        assert_eq!(reader.read(b"data: 012\ndata: 345\ndata: 678\n", &mut Vec::new()), Err(SseTooLong));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(stream in "(data|id|retry|:|\\n|\\r|\u{feff}| |x|[0-9]){0,60}", cut in 0..60_usize) {
            let bytes = stream.as_bytes();
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(read(&[head, tail]), read(&[bytes]));
        }
    }
}
