//! Lines of text from a stream, of bounded length.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// 64 MiB: longer than any line that a gateway sends or takes.
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

    /// The next line that is not empty, without its end and small faults. None at the end of the stream. May be given up and called
    /// again: nothing is lost.
    pub async fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            let room = (MAX_LINE + 1).saturating_sub(self.started.len());
            (&mut self.reader).take(room as u64).read_until(b'\n', &mut self.started).await?;
            if self.started.len() > MAX_LINE {
                return Err(io::Error::other(format!("a line is longer than {MAX_LINE} bytes")));
            }
            let has_ended = !self.started.ends_with(b"\n");
            let line =
                String::from_utf8_lossy(&sinew_front::repair(&std::mem::take(&mut self.started))).trim().to_owned();
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
            assert_eq!(lines.next().await.expect("readable").as_deref(), expected);
        }
    }

    #[tokio::test]
    async fn a_byte_order_mark_and_half_a_surrogate_pair_do_not_hide_a_message() {
        let mut lines = LineReader::new("\u{feff}\n\u{feff}[\"\\ud83d\"]\n".as_bytes());
        for expected in [Some("[\"\\ufffd\"]"), None] {
            assert_eq!(lines.next().await.expect("readable").as_deref(), expected);
        }
    }
}
