//! Moving files to and from a phone.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::server::{AdbError, AdbStream, AdbTransport};
use crate::control::FolderEntry;

/// adb carries no larger piece.
const PIECE: usize = 64 << 10;

/// Remote paths longer than this are refused by adbd.
const MAX_PATH: usize = 1024;

/// More than the photos of ten years in one folder.
const MAX_ENTRIES: usize = 50_000;

/// All names of a folder together, in bytes: a hostile phone sends long ones.
const MAX_NAMES: usize = 8 << 20;

impl AdbTransport {
    /// Writes a file with the given permissions.
    pub async fn push(&self, bytes: &[u8], path: &str, mode: u32, limit: Duration) -> Result<(), AdbError> {
        let mut source = bytes;
        self.push_from(&mut source, path, mode, limit).await.map(drop)
    }

    /// Streams a file to the phone. adbd removes what it has of it where the stream ends early.
    pub async fn push_from(
        &self,
        from: &mut (dyn AsyncRead + Send + Unpin),
        path: &str,
        mode: u32,
        limit: Duration,
    ) -> Result<u64, AdbError> {
        let work = async {
            let mut stream = self.begin(path).await?;
            let target = format!("{path},{}", mode | 0o100_000);
            send(&mut stream, b"SEND", target.len() as u32, target.as_bytes()).await?;
            let mut piece = vec![0; PIECE];
            let mut sent = 0;
            loop {
                let unread = |error: std::io::Error| AdbError::Source(error.to_string());
                let length = from.read(&mut piece).await.map_err(unread)?;
                if length == 0 {
                    break;
                }
                sent += length as u64;
                send(&mut stream, b"DATA", length as u32, &piece[..length]).await?;
            }
            // The number is the file's time, in seconds.
            send(&mut stream, b"DONE", now(), &[]).await?;
            match receive(&mut stream).await? {
                (id, _) if &id == b"OKAY" => Ok(sent),
                (id, length) if &id == b"FAIL" => Err(AdbError::Refused(message(&mut stream, length).await?)),
                (id, _) => Err(garbled(id)),
            }
        };
        timeout(limit, work).await.unwrap_or(Err(AdbError::Timeout { what: "push".to_owned(), limit }))
    }

    /// Reads a whole file of at most `most` bytes.
    pub async fn pull(&self, path: &str, most: usize, limit: Duration) -> Result<Vec<u8>, AdbError> {
        let mut bytes = Vec::new();
        self.pull_to(path, &mut bytes, most as u64, limit).await?;
        Ok(bytes)
    }

    /// Streams a file of at most `most` bytes from the phone.
    pub async fn pull_to(
        &self,
        path: &str,
        into: &mut (dyn AsyncWrite + Send + Unpin),
        most: u64,
        limit: Duration,
    ) -> Result<u64, AdbError> {
        let work = async {
            let mut stream = self.begin(path).await?;
            send(&mut stream, b"RECV", path.len() as u32, path.as_bytes()).await?;
            read_file(&mut stream, into, most).await
        };
        timeout(limit, work).await.unwrap_or(Err(AdbError::Timeout { what: "pull".to_owned(), limit }))
    }

    /// The names in a folder; none where there is no such folder.
    pub async fn list(&self, path: &str, limit: Duration) -> Result<Vec<FolderEntry>, AdbError> {
        let work = async {
            let mut stream = self.begin(path).await?;
            let question = if self.large_files { b"LIS2" } else { b"LIST" };
            send(&mut stream, question, path.len() as u32, path.as_bytes()).await?;
            read_folder(&mut stream).await
        };
        timeout(limit, work).await.unwrap_or(Err(AdbError::Timeout { what: "list".to_owned(), limit }))
    }

    async fn begin(&self, path: &str) -> Result<AdbStream, AdbError> {
        if path.len() > MAX_PATH {
            return Err(AdbError::TooLong(path.len()));
        }
        self.open("sync:").await
    }
}

/// The present time as the protocol has it: seconds since 1970 in 32 bits.
fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// The pieces of a file until its end.
pub async fn read_file(
    stream: &mut AdbStream,
    into: &mut (dyn AsyncWrite + Send + Unpin),
    most: u64,
) -> Result<u64, AdbError> {
    let unwritten = |error: std::io::Error| AdbError::Source(error.to_string());
    let mut piece = vec![0; PIECE];
    let mut size = 0;
    loop {
        match receive(stream).await? {
            (id, length) if &id == b"DATA" && length as usize <= PIECE => {
                size += u64::from(length);
                if size > most {
                    return Err(AdbError::TooLarge { what: "pull".to_owned(), limit: most as usize });
                }
                let piece = &mut piece[..length as usize];
                stream.read_exact(piece).await.map_err(|_| gone())?;
                into.write_all(piece).await.map_err(unwritten)?;
            }
            (id, _) if &id == b"DONE" => {
                into.flush().await.map_err(unwritten)?;
                return Ok(size);
            }
            (id, length) if &id == b"FAIL" => return Err(AdbError::Refused(message(stream, length).await?)),
            (id, _) => return Err(garbled(id)),
        }
    }
}

/// The entries of a folder until their end, in the first form or the second.
pub async fn read_folder(stream: &mut AdbStream) -> Result<Vec<FolderEntry>, AdbError> {
    let (mut entries, mut names) = (Vec::new(), 0);
    loop {
        let mut id = [0; 4];
        stream.read_exact(&mut id).await.map_err(|_| gone())?;
        let (mode, size, modified, length) = match &id {
            // Mode, size, time.
            b"DENT" => {
                let [mode, size, modified, length] = numbers(stream).await?;
                (mode, u64::from(size), u64::from(modified), length as usize)
            }
            // Error, device, inode, mode, links, user, group, size, and three times, of which the second is this one.
            b"DNT2" => {
                let words: [u32; 18] = numbers(stream).await?;
                let wide = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
                (words[5], wide(9), wide(13), words[17] as usize)
            }
            b"DONE" => return Ok(entries),
            _ => return Err(garbled(id)),
        };
        if length > MAX_PATH {
            return Err(AdbError::Garbled(format!("a file name of {length} bytes")));
        }
        let mut name = vec![0; length];
        stream.read_exact(&mut name).await.map_err(|_| gone())?;
        names += length;
        if entries.len() >= MAX_ENTRIES || names > MAX_NAMES {
            return Err(AdbError::TooMany(entries.len()));
        }
        entries.push(FolderEntry { name: String::from_utf8_lossy(&name).into_owned(), mode, size, modified });
    }
}

async fn numbers<const COUNT: usize>(stream: &mut AdbStream) -> Result<[u32; COUNT], AdbError> {
    let mut bytes = [[0; 4]; COUNT];
    stream.read_exact(bytes.as_flattened_mut()).await.map_err(|_| gone())?;
    Ok(bytes.map(u32::from_le_bytes))
}

fn gone() -> AdbError {
    AdbError::Gone("file transfer".to_owned())
}

fn garbled(id: [u8; 4]) -> AdbError {
    AdbError::Garbled(format!("file transfer said {:?}", String::from_utf8_lossy(&id)))
}

async fn send(stream: &mut AdbStream, id: &[u8; 4], number: u32, data: &[u8]) -> Result<(), AdbError> {
    let packet = [&id[..], &number.to_le_bytes(), data].concat();
    stream.write_all(&packet).await.map_err(|_| gone())?;
    stream.flush().await.map_err(|_| gone())
}

async fn receive(stream: &mut AdbStream) -> Result<([u8; 4], u32), AdbError> {
    let mut head = [0; 8];
    stream.read_exact(&mut head).await.map_err(|_| gone())?;
    let [a, b, c, d, rest @ ..] = head;
    Ok(([a, b, c, d], u32::from_le_bytes(rest)))
}

async fn message(stream: &mut AdbStream, length: u32) -> Result<String, AdbError> {
    // 4 KB: a sentence.
    let mut text = vec![0; length.min(4096) as usize];
    stream.read_exact(&mut text).await.map_err(|_| gone())?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn folder(bytes: &[u8]) -> Result<Vec<FolderEntry>, AdbError> {
        let (mut ours, theirs) = tokio::io::duplex(1 << 16);
        let writing = async {
            // A reader that has enough does not wait for the rest.
            let _ = ours.write_all(bytes).await;
            drop(ours);
        };
        let mut stream: AdbStream = Box::new(theirs);
        let reading = async {
            let read = read_folder(&mut stream).await;
            drop(stream);
            read
        };
        tokio::join!(writing, reading).1
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// An entry of the first form.
    fn entry(name: &str, length: u32) -> Vec<u8> {
        [b"DENT".to_vec(), words(&[0o100_644, 5, 1_700_000_000, length]), name.as_bytes().to_vec()].concat()
    }

    #[tokio::test]
    async fn files_of_gigabytes_keep_their_size_in_the_second_form() {
        let plain = [entry("a", 1), b"DONE".to_vec()].concat();
        assert_eq!(folder(&plain).await.unwrap()[0].size, 5);
        let size = 5u64 << 30;
        let (low, high) = (size as u32, (size >> 32) as u32);
        let large = words(&[0, 1, 0, 2, 0, 0o100_644, 1, 2000, 2000, low, high, 7, 0, 1_700_000_000, 0, 8, 0, 3]);
        let large = [b"DNT2".to_vec(), large, b"dvdDONE".to_vec()].concat();
        let expected = FolderEntry { name: "dvd".to_owned(), mode: 0o100_644, size: 5 << 30, modified: 1_700_000_000 };
        assert_eq!(folder(&large).await.unwrap(), [expected]);
    }

    #[tokio::test]
    async fn a_folder_without_end_and_names_without_end_are_given_up() {
        let many = entry("x", 1).repeat(MAX_ENTRIES + 2);
        assert!(matches!(folder(&many).await, Err(AdbError::TooMany(MAX_ENTRIES))));
        let long = entry(&"x".repeat(MAX_PATH), MAX_PATH as u32).repeat(MAX_NAMES / MAX_PATH + 2);
        assert!(matches!(folder(&long).await, Err(AdbError::TooMany(_))));
        assert!(matches!(folder(&entry("x", u32::MAX)).await, Err(AdbError::Garbled(_))));
        assert!(matches!(folder(b"WHAT").await, Err(AdbError::Garbled(_))));
        assert!(matches!(folder(&entry("half", 9)).await, Err(AdbError::Gone(_))));
    }
}
