//! Running a command on a phone: output, errors and exit code, within a time and a size.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::command::ShellCommand;
use super::server::{AdbError, AdbStream, AdbTransport};

/// What a command printed and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutput {
    pub stdout: Vec<u8>,
    /// Empty where the phone's shell mixes it into `stdout`.
    pub stderr: Vec<u8>,
    pub exit: u8,
}

impl CommandOutput {
    /// Both streams as text, the errors last; broken characters replaced.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&self.stderr));
        text
    }
}

#[derive(Clone, Copy, Debug)]
pub struct CommandLimits {
    pub time: Duration,
    pub bytes: usize,
}

impl CommandLimits {
    /// A megabyte of text.
    pub fn seconds(seconds: u64) -> CommandLimits {
        CommandLimits { time: Duration::from_secs(seconds), bytes: 1 << 20 }
    }

    pub fn megabytes(self, megabytes: usize) -> CommandLimits {
        CommandLimits { bytes: megabytes << 20, ..self }
    }
}

/// Ends the output of a shell that does not tell exit codes; followed by the code.
const EXIT_MARK: &str = "sinew-exit-";

impl AdbTransport {
    /// Runs a command to its end. Dropping the future closes the connection, which ends the command.
    pub async fn run(&self, command: &ShellCommand, limits: CommandLimits) -> Result<CommandOutput, AdbError> {
        let work = async {
            if self.shell_v2 {
                let mut stream = self.open(&format!("shell,v2,raw:{}", command.line())).await?;
                read_frames(&mut stream, command.name(), limits.bytes).await
            } else {
                let service = format!("exec:{{ {}; }} 2>&1; echo {EXIT_MARK}$?", command.line());
                let mut stream = self.open(&service).await?;
                read_plain(&mut stream, command.name(), limits.bytes).await
            }
        };
        let late = || Err(AdbError::Timeout { what: command.name().to_owned(), limit: limits.time });
        timeout(limits.time, work).await.unwrap_or_else(|_| late())
    }

    /// Runs a command that reads `input`, which is streamed to it. It reads as many bytes as it needs: the stream has no
    /// end of its own. Both of its outputs come as one.
    pub async fn feed(
        &self,
        command: &ShellCommand,
        input: &mut (dyn AsyncRead + Send + Unpin),
        limits: CommandLimits,
    ) -> Result<CommandOutput, AdbError> {
        let work = async {
            let mut stream = self.open(&format!("exec:{}; echo {EXIT_MARK}$?", command.line())).await?;
            let mut piece = vec![0; 64 << 10];
            loop {
                let length = input.read(&mut piece).await.map_err(|error| AdbError::Source(error.to_string()))?;
                // A command that refuses what it gets says so and closes its input.
                if length == 0 || stream.write_all(&piece[..length]).await.is_err() {
                    break;
                }
            }
            let _ = stream.flush().await;
            read_plain(&mut stream, command.name(), limits.bytes).await
        };
        let late = || Err(AdbError::Timeout { what: command.name().to_owned(), limit: limits.time });
        timeout(limits.time, work).await.unwrap_or_else(|_| late())
    }
}

/// Frames of shell v2: a kind, four bytes of length (little-endian), data.
pub async fn read_frames(stream: &mut AdbStream, what: &str, limit: usize) -> Result<CommandOutput, AdbError> {
    let mut output = CommandOutput::default();
    let gone = |_: std::io::Error| AdbError::Gone(what.to_owned());
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).await.map_err(gone)?;
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let sink = match head[0] {
            1 => &mut output.stdout,
            2 => &mut output.stderr,
            3 => {
                let mut code = [0];
                stream.read_exact(&mut code).await.map_err(gone)?;
                output.exit = code[0];
                return Ok(output);
            }
            // Later versions may add kinds; unknown ones are skipped.
            _ => &mut Vec::new(),
        };
        if sink.len() + length > limit {
            return Err(AdbError::TooLarge { what: what.to_owned(), limit });
        }
        let start = sink.len();
        sink.resize(start + length, 0);
        stream.read_exact(&mut sink[start..]).await.map_err(gone)?;
    }
}

/// The output of a shell that has but one stream, and the mark with the exit code at its end.
pub async fn read_plain(stream: &mut AdbStream, what: &str, limit: usize) -> Result<CommandOutput, AdbError> {
    let mut stdout = Vec::new();
    let read = stream.take(limit as u64 + 1).read_to_end(&mut stdout).await;
    read.map_err(|_| AdbError::Gone(what.to_owned()))?;
    if stdout.len() > limit {
        return Err(AdbError::TooLarge { what: what.to_owned(), limit });
    }
    let mark = stdout.windows(EXIT_MARK.len()).rposition(|part| part == EXIT_MARK.as_bytes());
    // Without the mark the stream ended before the command did.
    let mark = mark.ok_or_else(|| AdbError::Gone(what.to_owned()))?;
    let code = String::from_utf8_lossy(&stdout[mark + EXIT_MARK.len()..]).trim().parse().unwrap_or(1);
    stdout.truncate(mark);
    Ok(CommandOutput { stdout, stderr: Vec::new(), exit: code })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn frames(bytes: &[u8], limit: usize) -> Result<CommandOutput, AdbError> {
        let (mut ours, theirs) = tokio::io::duplex(1 << 16);
        ours.write_all(bytes).await.unwrap();
        drop(ours);
        let mut stream: AdbStream = Box::new(theirs);
        read_frames(&mut stream, "x", limit).await
    }

    fn frame(kind: u8, data: &[u8]) -> Vec<u8> {
        [&[kind][..], &(data.len() as u32).to_le_bytes(), data].concat()
    }

    #[tokio::test]
    async fn streams_and_code_are_told_apart() {
        let bytes = [frame(1, b"out"), frame(2, b"err"), frame(9, b"?"), frame(1, b"put"), frame(3, &[7])].concat();
        let output = frames(&bytes, 100).await.unwrap();
        assert_eq!((output.stdout.as_slice(), output.stderr.as_slice(), output.exit), (&b"output"[..], &b"err"[..], 7));
        assert_eq!(output.text(), "outputerr");
    }

    #[tokio::test]
    async fn a_phone_that_leaves_or_floods_is_an_error() {
        assert!(matches!(frames(&frame(1, b"half"), 100).await, Err(AdbError::Gone(_))));
        assert!(matches!(frames(&frame(1, &[0; 50]), 40).await, Err(AdbError::TooLarge { .. })));
        assert!(matches!(frames(&[1, 0xff, 0xff, 0xff, 0xff], 1000).await, Err(AdbError::TooLarge { .. })));
    }

    #[tokio::test]
    async fn an_old_shell_tells_its_code_at_the_end() {
        let plain = async |bytes: &[u8]| {
            let (mut ours, theirs) = tokio::io::duplex(1 << 16);
            ours.write_all(bytes).await.unwrap();
            drop(ours);
            let mut stream: AdbStream = Box::new(theirs);
            read_plain(&mut stream, "x", 100).await
        };
        let output = plain(b"hello\nsinew-exit-3\n").await.unwrap();
        assert_eq!((output.stdout.as_slice(), output.exit), (&b"hello\n"[..], 3));
        assert!(matches!(plain(b"hello").await, Err(AdbError::Gone(_))));
    }
}
