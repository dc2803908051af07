//! The two ends of a running command: what it writes, and what is typed to it.

use super::super::connection::{AdbdStream, Closed, StreamReader, StreamWriter};

/// Frames of the second shell protocol.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const EXIT: u8 = 3;
const CLOSE_STDIN: u8 = 4;

/// What one frame carries at most, here.
const PIECE: usize = 64 * 1024;

/// A stream to a person or a program, with or without frames. Its halves may be used side by side.
pub struct LiveStream<'s> {
    /// Whether lines end as a terminal wants them, and what is typed is shown.
    pub pty: bool,
    pub(super) typed: LiveInput<'s>,
    pub(super) told: LiveOutput<'s>,
}

impl<'s> LiveStream<'s> {
    pub fn plain(stream: &'s mut AdbdStream, pty: bool) -> LiveStream<'s> {
        LiveStream::new(stream, pty, false)
    }

    pub fn framed(stream: &'s mut AdbdStream, pty: bool) -> LiveStream<'s> {
        LiveStream::new(stream, pty, true)
    }

    fn new(stream: &'s mut AdbdStream, pty: bool, framed: bool) -> LiveStream<'s> {
        let typed = LiveInput { reader: &mut stream.reader, framed, held: Vec::new(), ended: false };
        LiveStream { pty, typed, told: LiveOutput { writer: &mut stream.writer, framed, pty } }
    }

    pub async fn write(&mut self, out: &[u8], err: &[u8]) -> Result<(), Closed> {
        self.told.write(out, err).await
    }

    pub async fn exit(&mut self, code: u8) -> Result<(), Closed> {
        match self.told.framed {
            true => self.told.writer.write(&frame(EXIT, &[code])).await,
            false => Ok(()),
        }
    }

    /// What is typed next; `None` at its end.
    pub async fn read(&mut self) -> Option<Vec<u8>> {
        self.typed.read().await
    }
}

/// What a command tells.
pub(super) struct LiveOutput<'s> {
    writer: &'s mut StreamWriter,
    framed: bool,
    pty: bool,
}

impl LiveOutput<'_> {
    pub(super) async fn write(&mut self, out: &[u8], err: &[u8]) -> Result<(), Closed> {
        self.frames(STDOUT, out).await?;
        // A terminal has only one output.
        self.frames(if self.pty { STDOUT } else { STDERR }, err).await
    }

    async fn frames(&mut self, id: u8, data: &[u8]) -> Result<(), Closed> {
        let lines;
        let data = match self.pty {
            true => {
                lines = String::from_utf8_lossy(data).replace('\n', "\r\n");
                lines.as_bytes()
            }
            false => data,
        };
        if !self.framed {
            return self.writer.write(data).await;
        }
        for piece in data.chunks(PIECE) {
            self.writer.write(&frame(id, piece)).await?;
        }
        Ok(())
    }
}

/// What is typed to a command.
pub(super) struct LiveInput<'s> {
    reader: &'s mut StreamReader,
    framed: bool,
    held: Vec<u8>,
    ended: bool,
}

impl LiveInput<'_> {
    /// What is typed next; `None` at its end.
    pub(super) async fn read(&mut self) -> Option<Vec<u8>> {
        if !self.framed {
            return self.reader.read().await;
        }
        while !self.ended {
            if let Some((id, data)) = self.next_frame() {
                match id {
                    STDIN => return Some(data),
                    CLOSE_STDIN => self.ended = true,
                    _ => {}
                }
                continue;
            }
            // A frame that does not end within its bounds is not waited for.
            if self.held.len() > 2 * PIECE + 5 + super::super::packet::MAX_PAYLOAD as usize {
                return None;
            }
            self.held.extend(self.reader.read().await?);
        }
        None
    }

    fn next_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let [id, a, b, c, d, ..] = *self.held.as_slice() else { return None };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if self.held.len() < length.checked_add(5)? {
            return None;
        }
        let rest = self.held.split_off(5 + length);
        let frame = std::mem::replace(&mut self.held, rest);
        Some((id, frame[5..].to_vec()))
    }
}

fn frame(id: u8, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![id];
    frame.extend((data.len() as u32).to_le_bytes());
    frame.extend(data);
    frame
}
