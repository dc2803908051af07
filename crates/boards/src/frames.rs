//! Marks WebSocket text messages as binary before the WebSocket library reads them.
//!
//! The library closes a connection over one text that is not UTF-8, and firmware sends names of networks as they are.
//! Which messages were texts is remembered here.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::stream::BoardStream;

/// The bytes under a WebSocket.
pub(crate) struct TextAsBinary {
    pub(crate) stream: BoardStream,
    scanner: FrameScanner,
}

impl TextAsBinary {
    pub(crate) fn new(stream: BoardStream) -> TextAsBinary {
        TextAsBinary { stream, scanner: FrameScanner::default() }
    }

    /// Marks messages in bytes that were read before.
    pub(crate) fn mark(&mut self, bytes: &mut [u8]) {
        self.scanner.scan(bytes);
    }

    /// Whether the next message was a text.
    pub(crate) fn take_is_text(&mut self) -> bool {
        self.scanner.texts.pop_front().unwrap_or(false)
    }
}

const OPCODE: u8 = 0x0f;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
/// Flags and opcode, length in its longest form, mask.
const HEADER: usize = 14;

/// Follows the frames in a stream of bytes, however it is cut.
#[derive(Default)]
struct FrameScanner {
    header: [u8; HEADER],
    /// Bytes of the header that were seen.
    seen: usize,
    /// Bytes of the payload that are still to come.
    payload: u64,
    /// For each message that was begun and not taken, whether it is a text.
    texts: VecDeque<bool>,
}

impl FrameScanner {
    fn scan(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            if self.payload > 0 {
                let passed = usize::try_from(self.payload).unwrap_or(usize::MAX).min(bytes.len());
                self.payload -= passed as u64;
                bytes = &mut bytes[passed..];
                continue;
            }
            let (byte, rest) = (bytes[0], 1);
            if self.seen == 0 {
                match byte & OPCODE {
                    TEXT => {
                        bytes[0] = byte & !OPCODE | BINARY;
                        self.texts.push_back(true);
                    }
                    BINARY => self.texts.push_back(false),
                    // Continuations belong to the message before, control frames to none.
                    _ => {}
                }
            }
            self.header[self.seen] = byte;
            self.seen += 1;
            if let Some(payload) = self.payload_length() {
                (self.seen, self.payload) = (0, payload);
            }
            bytes = &mut bytes[rest..];
        }
    }

    /// Once the header is whole.
    fn payload_length(&self) -> Option<u64> {
        let header = &self.header[..self.seen];
        let second = *header.get(1)?;
        let extended = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = if second & 0x80 == 0 { 0 } else { 4 };
        if header.len() < 2 + extended + mask {
            return None;
        }
        let long = header[2..2 + extended].iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
        Some(if extended == 0 { u64::from(second & 0x7f) } else { long })
    }
}

impl AsyncRead for TextAsBinary {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.scanner.scan(&mut buf.filled_mut()[before..]);
        result
    }
}

impl AsyncWrite for TextAsBinary {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A masked frame of a client.
    fn frame(first: u8, payload: usize) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload {
            0..=125 => bytes.push(0x80 | payload as u8),
            126..=65535 => {
                bytes.push(0x80 | 126);
                bytes.extend((payload as u16).to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 127);
                bytes.extend((payload as u64).to_be_bytes());
            }
        }
        bytes.extend([0x81; 4]);
        bytes.extend(vec![0x81; payload]);
        bytes
    }

    #[test]
    fn texts_become_binary_however_the_bytes_are_cut_and_nothing_else_changes() {
        // A text, a ping inside a text of two parts, a binary message, an empty text, a long one.
        let parts = [(0x81, 5), (0x01, 300), (0x89, 3), (0x80, 7), (0x82, 126), (0x81, 0), (0x81, 70_000)];
        let sent: Vec<u8> = parts.iter().flat_map(|(first, payload)| frame(*first, *payload)).collect();
        let expected: Vec<u8> = parts
            .iter()
            .flat_map(|(first, payload)| frame(if first & 0x0f == 1 { first + 1 } else { *first }, *payload))
            .collect();
        for size in [1, 2, 3, 7, 1000, sent.len()] {
            let mut scanner = FrameScanner::default();
            let mut bytes = sent.clone();
            bytes.chunks_mut(size).for_each(|piece| scanner.scan(piece));
            assert!(bytes == expected, "cut into pieces of {size}");
            assert_eq!(scanner.texts, [true, true, false, true, true]);
        }
    }
}
