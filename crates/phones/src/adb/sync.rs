//! Moving files to and from a phone.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::server::{AdbError, AdbStream, AdbTransport};
use crate::control::FolderEntry;

/// adb carries no larger piece.
const PIECE: usize = 64 << 10;

/// Remote paths longer than this are refused by adbd.
const MAX_PATH: usize = 1024;

/// More names than a folder that anybody reads has.
const MAX_ENTRIES: usize = 10_000;

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
            // The number is the file's time, which nobody reads here.
            send(&mut stream, b"DONE", 0, &[]).await?;
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
            send(&mut stream, b"LIST", path.len() as u32, path.as_bytes()).await?;
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

/// The entries of a folder until their end.
pub async fn read_folder(stream: &mut AdbStream) -> Result<Vec<FolderEntry>, AdbError> {
    let mut entries = Vec::new();
    loop {
        let (id, mode) = receive(stream).await?;
        let mut rest = [0; 12];
        stream.read_exact(&mut rest).await.map_err(|_| gone())?;
        let word = |at: usize| u32::from_le_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
        let (size, modified, length) = (word(0), word(4), word(8) as usize);
        match &id {
            b"DONE" => return Ok(entries),
            b"DENT" if length <= MAX_PATH => {
                let mut name = vec![0; length];
                stream.read_exact(&mut name).await.map_err(|_| gone())?;
                if entries.len() >= MAX_ENTRIES {
                    return Err(AdbError::TooLarge { what: "list".to_owned(), limit: MAX_ENTRIES });
                }
                let name = String::from_utf8_lossy(&name).into_owned();
                entries.push(FolderEntry { name, mode, size: u64::from(size), modified: u64::from(modified) });
            }
            _ => return Err(garbled(id)),
        }
    }
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
