//! Moving files to and from a phone.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::server::{AdbError, AdbStream, AdbTransport};

/// adb carries no larger piece.
const PIECE: usize = 64 << 10;

/// Remote paths longer than this are refused by adbd.
const MAX_PATH: usize = 1024;

impl AdbTransport {
    /// Writes a file with the given permissions.
    pub async fn push(&self, bytes: &[u8], path: &str, mode: u32, limit: Duration) -> Result<(), AdbError> {
        let what = "push".to_owned();
        let work = async {
            let mut stream = self.begin(path).await?;
            let target = format!("{path},{}", mode | 0o100_000);
            send(&mut stream, b"SEND", target.len() as u32, target.as_bytes()).await?;
            for piece in bytes.chunks(PIECE) {
                send(&mut stream, b"DATA", piece.len() as u32, piece).await?;
            }
            // The number is the file's time, which nobody reads here.
            send(&mut stream, b"DONE", 0, &[]).await?;
            match receive(&mut stream).await? {
                (id, _) if &id == b"OKAY" => Ok(()),
                (id, length) if &id == b"FAIL" => Err(AdbError::Refused(message(&mut stream, length).await?)),
                (id, _) => Err(garbled(id)),
            }
        };
        timeout(limit, work).await.unwrap_or(Err(AdbError::Timeout { what, limit }))
    }

    /// Reads a whole file of at most `most` bytes.
    pub async fn pull(&self, path: &str, most: usize, limit: Duration) -> Result<Vec<u8>, AdbError> {
        let what = "pull".to_owned();
        let work = async {
            let mut stream = self.begin(path).await?;
            send(&mut stream, b"RECV", path.len() as u32, path.as_bytes()).await?;
            read_file(&mut stream, most).await
        };
        timeout(limit, work).await.unwrap_or(Err(AdbError::Timeout { what, limit }))
    }

    async fn begin(&self, path: &str) -> Result<AdbStream, AdbError> {
        if path.len() > MAX_PATH {
            return Err(AdbError::TooLong(path.len()));
        }
        self.open("sync:").await
    }
}

/// The pieces of a file until its end.
pub async fn read_file(stream: &mut AdbStream, most: usize) -> Result<Vec<u8>, AdbError> {
    let mut bytes = Vec::new();
    loop {
        match receive(stream).await? {
            (id, length) if &id == b"DATA" && length as usize <= PIECE => {
                if bytes.len() + length as usize > most {
                    return Err(AdbError::TooLarge { what: "pull".to_owned(), limit: most });
                }
                let start = bytes.len();
                bytes.resize(start + length as usize, 0);
                stream.read_exact(&mut bytes[start..]).await.map_err(|_| gone())?;
            }
            (id, _) if &id == b"DONE" => return Ok(bytes),
            (id, length) if &id == b"FAIL" => return Err(AdbError::Refused(message(stream, length).await?)),
            (id, _) => return Err(garbled(id)),
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
