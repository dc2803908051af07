//! Sources of an APK's bytes: a file, memory, or a phone.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use sinew_tool::BoxFuture;

use super::ApkError;

/// A source that can be read in ranges. Each read may be a round trip to a phone.
pub trait ReadAt: Send + Sync {
    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Exactly `length` bytes from `offset`. Callers stay inside [`ReadAt::len`].
    fn read_at(&self, offset: u64, length: usize) -> BoxFuture<'_, Result<Vec<u8>, ApkError>>;
}

impl ReadAt for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read_at(&self, offset: u64, length: usize) -> BoxFuture<'_, Result<Vec<u8>, ApkError>> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = start.checked_add(length).and_then(|end| self.get(start..end)).map(<[u8]>::to_vec);
        Box::pin(async { found.ok_or_else(|| ApkError::Unreadable("read beyond the end".to_owned())) })
    }
}

/// An APK on this computer.
pub struct ApkFile {
    file: Mutex<File>,
    length: u64,
}

impl ApkFile {
    pub fn open(path: &Path) -> std::io::Result<ApkFile> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(ApkFile { file: Mutex::new(file), length })
    }
}

impl ReadAt for ApkFile {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, length: usize) -> BoxFuture<'_, Result<Vec<u8>, ApkError>> {
        let read = || {
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = vec![0; length];
            file.read_exact(&mut bytes)?;
            Ok::<_, std::io::Error>(bytes)
        };
        let bytes = read().map_err(|error| ApkError::Unreadable(error.to_string()));
        Box::pin(async { bytes })
    }
}

/// Keeps the ranges that were read, so that nothing is fetched twice.
pub(super) struct RangeCache<'a> {
    source: &'a dyn ReadAt,
    held: Vec<(u64, Vec<u8>)>,
}

impl<'a> RangeCache<'a> {
    pub(super) fn new(source: &'a dyn ReadAt) -> RangeCache<'a> {
        RangeCache { source, held: Vec::new() }
    }

    pub(super) fn source(&self) -> &'a dyn ReadAt {
        self.source
    }

    pub(super) fn len(&self) -> u64 {
        self.source.len()
    }

    pub(super) fn holds(&self, offset: u64, length: usize) -> bool {
        self.find(offset, length).is_some()
    }

    fn find(&self, offset: u64, length: usize) -> Option<usize> {
        let end = offset.checked_add(length as u64)?;
        self.held.iter().position(|(start, bytes)| *start <= offset && end <= *start + bytes.len() as u64)
    }

    pub(super) async fn get(&mut self, offset: u64, length: usize) -> Result<&[u8], ApkError> {
        self.get_ahead(offset, length, 0).await
    }

    /// As [`RangeCache::get`], but a fetch reads at least `ahead` bytes, for later use.
    pub(super) async fn get_ahead(&mut self, offset: u64, length: usize, ahead: usize) -> Result<&[u8], ApkError> {
        let missing = || ApkError::damaged(format!("bytes {offset} to {offset} + {length} lie beyond its end"));
        offset.checked_add(length as u64).filter(|end| *end <= self.len()).ok_or_else(missing)?;
        let index = match self.find(offset, length) {
            Some(index) => index,
            None => {
                let most = usize::try_from(self.len() - offset).unwrap_or(usize::MAX);
                let wanted = length.max(ahead).min(most);
                let bytes = self.source.read_at(offset, wanted).await?;
                if bytes.len() != wanted {
                    let got = bytes.len();
                    return Err(ApkError::Unreadable(format!(
                        "{wanted} bytes at {offset} were requested, but {got} arrived"
                    )));
                }
                self.held.push((offset, bytes));
                self.held.len() - 1
            }
        };
        let (start, bytes) = &self.held[index];
        // In range: `find` checked that this segment covers it.
        let from = (offset - start) as usize;
        Ok(&bytes[from..from + length])
    }
}
