//! A program that runs on a phone: its input and its outputs as separate streams.

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use super::command::ShellCommand;
use super::server::{AdbError, AdbStream, AdbTransport};

/// Frames of the second shell protocol.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const EXIT: u8 = 3;

/// What is written or read at a time.
const PIECE: usize = 32 << 10;

/// The input of a running program. The program ends when both halves are dropped, which closes its input.
pub struct ProgramInput {
    stream: WriteHalf<AdbStream>,
    framed: bool,
}

/// The output of a running program.
pub struct ProgramOutput {
    stream: ReadHalf<AdbStream>,
    framed: bool,
    /// What of a frame's head has arrived.
    head: Vec<u8>,
    /// The frame that is being read: its kind, and how much of it is left.
    frame: (u8, usize),
}

/// A piece of a program's output.
#[derive(Debug, PartialEq, Eq)]
pub enum ProgramEvent {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// The program ended with this code, or, without one, the stream ended.
    End(Option<u8>),
}

impl AdbTransport {
    /// Starts a program. On a phone without shell v2 its errors must be redirected by the command.
    pub async fn start(&self, command: &ShellCommand) -> Result<(ProgramInput, ProgramOutput), AdbError> {
        let (service, framed) = match self.shell_v2 {
            true => (format!("shell,v2,raw:{}", command.line()), true),
            false => (format!("exec:{}", command.line()), false),
        };
        Ok(halves(self.open(&service).await?, framed))
    }
}

pub(crate) fn halves(stream: AdbStream, framed: bool) -> (ProgramInput, ProgramOutput) {
    let (reader, writer) = tokio::io::split(stream);
    (
        ProgramInput { stream: writer, framed },
        ProgramOutput { stream: reader, framed, head: Vec::new(), frame: (STDOUT, 0) },
    )
}

impl ProgramInput {
    pub async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        for piece in bytes.chunks(PIECE) {
            if self.framed {
                let mut frame = vec![STDIN];
                frame.extend((piece.len() as u32).to_le_bytes());
                frame.extend(piece);
                self.stream.write_all(&frame).await?;
            } else {
                self.stream.write_all(piece).await?;
            }
        }
        self.stream.flush().await
    }
}

impl ProgramOutput {
    /// The next piece; after the end, the end again. Nothing is lost where it is cancelled.
    pub async fn read(&mut self) -> ProgramEvent {
        self.next().await.unwrap_or(ProgramEvent::End(None))
    }

    async fn next(&mut self) -> std::io::Result<ProgramEvent> {
        loop {
            if !self.framed {
                let piece = self.piece(PIECE).await?;
                return Ok(if piece.is_empty() { ProgramEvent::End(None) } else { ProgramEvent::Stdout(piece) });
            }
            if self.frame.1 == 0 {
                if let [kind, a, b, c, d] = *self.head.as_slice() {
                    self.frame = (kind, u32::from_le_bytes([a, b, c, d]) as usize);
                    self.head.clear();
                    continue;
                }
                let more = self.piece(5 - self.head.len()).await?;
                if more.is_empty() {
                    return Ok(ProgramEvent::End(None));
                }
                self.head.extend(more);
                continue;
            }
            let piece = self.piece(self.frame.1.min(PIECE)).await?;
            if piece.is_empty() {
                return Ok(ProgramEvent::End(None));
            }
            self.frame.1 -= piece.len();
            match self.frame.0 {
                STDOUT => return Ok(ProgramEvent::Stdout(piece)),
                STDERR => return Ok(ProgramEvent::Stderr(piece)),
                EXIT => return Ok(ProgramEvent::End(piece.first().copied())),
                // Later versions may add kinds; unknown ones are skipped.
                _ => {}
            }
        }
    }

    async fn piece(&mut self, most: usize) -> std::io::Result<Vec<u8>> {
        let mut piece = vec![0; most];
        let read = self.stream.read(&mut piece).await?;
        piece.truncate(read);
        Ok(piece)
    }
}
