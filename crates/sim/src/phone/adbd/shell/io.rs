//! What a command reads and writes.

use super::super::connection::Closed;
use super::live::LiveStream;

/// What one line may print; more means a loop of files printing files.
const MOST_OUTPUT: usize = 128 * 1024 * 1024;

/// What a command reads and writes.
pub struct Io<'a, 's> {
    /// What comes through a pipe or from a file; `None` where there is a person.
    pub stdin: Option<Vec<u8>>,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
    pub(super) live: Option<&'a mut LiveStream<'s>>,
}

impl Io<'_, '_> {
    pub(super) fn quiet(stdin: Option<Vec<u8>>) -> Io<'static, 'static> {
        Io { stdin, out: Vec::new(), err: Vec::new(), live: None }
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        if self.out.len() + bytes.len() <= MOST_OUTPUT {
            self.out.extend_from_slice(bytes);
        }
    }

    pub fn line(&mut self, text: impl AsRef<str>) {
        self.bytes(text.as_ref().as_bytes());
        self.bytes(b"\n");
    }

    pub fn error(&mut self, text: impl AsRef<str>) {
        self.err.extend_from_slice(text.as_ref().as_bytes());
        self.err.push(b'\n');
    }

    /// Sends what has gathered, where someone is listening.
    pub async fn flush(&mut self) -> Result<(), Closed> {
        if let Some(live) = &mut self.live {
            let (out, err) = (std::mem::take(&mut self.out), std::mem::take(&mut self.err));
            live.write(&out, &err).await?;
        }
        Ok(())
    }

    /// Exactly so many bytes; `None` where fewer come, or more than a line may print are asked for. Who streams a file
    /// waits for the answer with the stream open, so its end is not waited for.
    pub async fn read_exact(&mut self, size: usize) -> Option<Vec<u8>> {
        if size > MOST_OUTPUT {
            return None;
        }
        let mut all = self.stdin.take().unwrap_or_default();
        while let Some(live) = &mut self.live
            && all.len() < size
        {
            all.extend(live.read().await?);
        }
        all.truncate(size);
        (all.len() == size).then_some(all)
    }

    /// Everything that comes in, to its end.
    pub async fn read_all(&mut self) -> Vec<u8> {
        if let Some(stdin) = self.stdin.take() {
            return stdin;
        }
        let mut all = Vec::new();
        if let Some(live) = &mut self.live {
            while let Some(more) = live.read().await {
                all.extend(more);
                if all.len() > MOST_OUTPUT {
                    break;
                }
            }
        }
        all
    }
}
