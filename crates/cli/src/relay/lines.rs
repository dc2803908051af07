//! Lines of bytes from a stream, of bounded length.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// 64 MiB: longer than what a gateway sends or takes. The rest of a longer line is discarded; the gateway refuses its
/// beginning as too long and names the request.
const MAX_LINE: usize = 64 << 20;

pub struct LineReader<R> {
    reader: BufReader<R>,
    /// The beginning of a line, kept when a read is given up.
    started: Vec<u8>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(reader: R) -> LineReader<R> {
        LineReader { reader: BufReader::new(reader), started: Vec::new() }
    }

    /// The next line that is not empty, without its end and small faults. None at the end of the stream. May be given up
    /// and called again: nothing is lost.
    pub async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            let has_ended = bytes.is_empty();
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(bytes.len(), |end| end + 1);
            let room = MAX_LINE - self.started.len();
            self.started.extend_from_slice(&bytes[..length.min(room)]);
            self.reader.consume(length);
            if end.is_none() && !has_ended {
                continue;
            }
            let line = sinew_front::repair(&std::mem::take(&mut self.started)).trim_ascii().to_vec();
            match (line.is_empty(), has_ended) {
                (false, _) => return Ok(Some(line)),
                (true, true) => return Ok(None),
                (true, false) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_one_by_one_and_the_last_needs_no_end() {
        let mut lines = LineReader::new(&b"one\r\n\n\ntwo\nthree"[..]);
        for expected in [Some("one"), Some("two"), Some("three"), None, None] {
            assert_eq!(lines.next().await.expect("readable").as_deref(), expected.map(str::as_bytes));
        }
    }

    #[tokio::test]
    async fn a_byte_order_mark_and_half_a_surrogate_pair_do_not_hide_a_message() {
        let mut lines = LineReader::new("\u{feff}\n\u{feff}[\"\\ud83d\"]\n".as_bytes());
        for expected in [Some("[\"\\ufffd\"]"), None] {
            assert_eq!(lines.next().await.expect("readable").as_deref(), expected.map(str::as_bytes));
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_cut_and_the_next_is_whole() {
        let long = [b"{\"id\":7,".as_slice(), &vec![b'x'; MAX_LINE + 10], b"\nnext\n"].concat();
        let mut lines = LineReader::new(long.as_slice());
        let cut = lines.next().await.expect("readable").expect("a line");
        assert_eq!((cut.len(), &cut[..8]), (MAX_LINE, b"{\"id\":7,".as_slice()));
        assert_eq!(lines.next().await.expect("readable").as_deref(), Some(b"next".as_slice()));
    }
}
