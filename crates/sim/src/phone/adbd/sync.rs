//! File transfer: `adb push`, `adb pull`, `adb ls`, first and second generation of its questions.

use super::AdbdPhone;
use super::connection::{AdbdStream, Closed};
use super::files::{FileError, Stat};

/// The most data in one piece, by the protocol.
const PIECE: usize = 64 * 1024;
/// A file larger than this does not fit the phone anyway.
const LARGEST: usize = 64 * 1024 * 1024;
/// A path is never longer.
const LONGEST_PATH: usize = 1024;

/// Bytes from a stream, as many as are needed at a time.
struct SyncReader<'a> {
    stream: &'a mut AdbdStream,
    held: Vec<u8>,
}

impl SyncReader<'_> {
    async fn take(&mut self, count: usize) -> Result<Vec<u8>, Closed> {
        while self.held.len() < count {
            let more = self.stream.read().await.ok_or(Closed)?;
            self.held.extend(more);
        }
        let rest = self.held.split_off(count);
        Ok(std::mem::replace(&mut self.held, rest))
    }

    /// A question: four letters and a number.
    async fn head(&mut self) -> Result<([u8; 4], usize), Closed> {
        let bytes = self.take(8).await?;
        let [a, b, c, d, e, f, g, h] = bytes.as_slice() else { return Err(Closed) };
        Ok(([*a, *b, *c, *d], u32::from_le_bytes([*e, *f, *g, *h]) as usize))
    }
}

pub(super) async fn serve(stream: &mut AdbdStream, device: &AdbdPhone) -> Result<(), Closed> {
    let mut reader = SyncReader { stream, held: Vec::new() };
    loop {
        let (id, length) = reader.head().await?;
        if &id == b"QUIT" {
            return Ok(());
        }
        if length > LONGEST_PATH {
            return fail(reader.stream, "path too long").await;
        }
        let path = String::from_utf8_lossy(&reader.take(length).await?).into_owned();
        match &id {
            b"STAT" | b"LSTA" => {
                let found = stat(device, &path).unwrap_or(Stat { mode: 0, size: 0, time: 0 });
                let mut answer = b"STAT".to_vec();
                for word in [found.mode, found.size as u32, found.time] {
                    answer.extend(word.to_le_bytes());
                }
                reader.stream.write(&answer).await?;
            }
            b"STA2" | b"LST2" => {
                let answer = stat2(&id, stat(device, &path));
                reader.stream.write(&answer).await?;
            }
            b"LIST" | b"LIS2" => list(reader.stream, device, &path, &id == b"LIS2").await?,
            b"RECV" => receive(reader.stream, device, &path).await?,
            b"SEND" => send(&mut reader, device, &path).await?,
            _ => return fail(reader.stream, "unknown command").await,
        }
    }
}

fn stat(device: &AdbdPhone, path: &str) -> Result<Stat, FileError> {
    device.files().stat(path)
}

/// The second generation has an error number, and 64 bits for size and times.
fn stat2(id: &[u8; 4], found: Result<Stat, FileError>) -> Vec<u8> {
    let mut answer = id.to_vec();
    // 2 is ENOENT, 13 is EACCES.
    let (error, stat) = match found {
        Ok(stat) => (0u32, stat),
        Err(FileError::Forbidden) => (13, Stat { mode: 0, size: 0, time: 0 }),
        Err(_) => (2, Stat { mode: 0, size: 0, time: 0 }),
    };
    answer.extend(error.to_le_bytes());
    for word in [0u64, 0] {
        // Device and inode.
        answer.extend(word.to_le_bytes());
    }
    for word in [stat.mode, 1, 2000, 2000] {
        // Mode, links, user and group: the shell's.
        answer.extend(word.to_le_bytes());
    }
    answer.extend(stat.size.to_le_bytes());
    for _ in 0..3 {
        answer.extend(u64::from(stat.time).to_le_bytes());
    }
    answer
}

async fn list(stream: &mut AdbdStream, device: &AdbdPhone, path: &str, second: bool) -> Result<(), Closed> {
    let mut answer = Vec::new();
    let names = device.files().list(path).unwrap_or_default();
    for name in names {
        let Ok(found) = stat(device, &format!("{path}/{name}")) else { continue };
        if second {
            answer.extend(stat2(b"DNT2", Ok(found)));
        } else {
            answer.extend(b"DENT");
            for word in [found.mode, found.size as u32, found.time] {
                answer.extend(word.to_le_bytes());
            }
        }
        answer.extend((name.len() as u32).to_le_bytes());
        answer.extend(name.as_bytes());
    }
    answer.extend(b"DONE");
    // The rest of an entry, empty: five words in the first generation, eighteen in the second.
    answer.extend(vec![0; if second { 72 } else { 16 }]);
    stream.write(&answer).await
}

async fn receive(stream: &mut AdbdStream, device: &AdbdPhone, path: &str) -> Result<(), Closed> {
    let data = device.files().read(path).map(|file| file.data.clone());
    match data {
        Err(error) => fail(stream, &format!("open failed: {}", error.text())).await,
        Ok(data) => {
            for piece in data.chunks(PIECE) {
                let mut message = b"DATA".to_vec();
                message.extend((piece.len() as u32).to_le_bytes());
                message.extend(piece);
                device.handset.pass_moment().await;
                stream.write(&message).await?;
            }
            stream.write(b"DONE\0\0\0\0").await
        }
    }
}

async fn send(reader: &mut SyncReader<'_>, device: &AdbdPhone, target: &str) -> Result<(), Closed> {
    let (path, mode) = target.rsplit_once(',').unwrap_or((target, "420"));
    let mode = mode.parse().unwrap_or(0o644);
    let mut data = Vec::new();
    let mut too_large = false;
    let time = loop {
        let (id, length) = reader.head().await?;
        match &id {
            b"DATA" if length <= PIECE => {
                let piece = reader.take(length).await?;
                device.handset.pass_moment().await;
                too_large |= data.len() + piece.len() > LARGEST;
                if !too_large {
                    data.extend(piece);
                }
            }
            b"DONE" => break length as u32,
            _ => return fail(reader.stream, "invalid data message").await,
        }
    };
    let written = match too_large {
        true => Err(FileError::Full),
        false => device.files().write(path, data, mode, time),
    };
    device.handset.pass_moment().await;
    match written {
        Ok(()) => reader.stream.write(b"OKAY\0\0\0\0").await,
        Err(error) => fail(reader.stream, &format!("couldn't create file: {}", error.text())).await,
    }
}

async fn fail(stream: &mut AdbdStream, message: &str) -> Result<(), Closed> {
    let mut answer = b"FAIL".to_vec();
    answer.extend((message.len() as u32).to_le_bytes());
    answer.extend(message.as_bytes());
    stream.write(&answer).await
}
