//! The zip archive: its directory, and single entries.
//!
//! What Android and other readers would read differently is refused: overlapping entries, two entries of one name,
//! a local header that contradicts the directory.

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::ApkError;
use super::bytes::{u16_at, u32_at, u64_at};
use super::source::RangeCache;

const END: u32 = 0x0605_4b50;
const END_LENGTH: u64 = 22;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const LOCAL: u32 = 0x0403_4b50;
const LOCAL_LENGTH: usize = 30;
/// The end record and the longest comment after it. The first read thus contains a whole small APK, and the
/// directory of many larger ones.
const TAIL: u64 = END_LENGTH + u16::MAX as u64;
/// The signing block lies before the directory and is usually smaller than this.
pub(super) const BEFORE_DIRECTORY: u64 = 12 << 10;
/// 65,535 entries with long names.
const MAX_DIRECTORY: u64 = 16 << 20;
/// Local headers of manifest and resources have a few bytes of padding.
const LOCAL_SLACK: usize = 64;

pub(super) struct ZipDirectory {
    /// Offset in the file; the entries lie before it.
    pub start: u64,
    pub entries: Vec<ZipEntry>,
}

pub(super) struct ZipEntry {
    pub name: Vec<u8>,
    method: u16,
    compressed: u64,
    pub size: u64,
    offset: u64,
}

impl ZipEntry {
    pub(super) fn is_stored(&self) -> bool {
        self.method == 0
    }
}

impl ZipDirectory {
    pub(super) fn find(&self, name: &str) -> Result<Option<&ZipEntry>, ApkError> {
        let mut found = self.entries.iter().filter(|entry| entry.name == name.as_bytes());
        let first = found.next();
        match found.next() {
            Some(_) => Err(ApkError::Refused(format!("it has two entries named {name}"))),
            None => Ok(first),
        }
    }

    fn refuse_overlaps(&self) -> Result<(), ApkError> {
        let mut spans: Vec<(u64, u64, &ZipEntry)> = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let length = (LOCAL_LENGTH + entry.name.len()) as u64 + entry.compressed;
            let end = entry.offset.checked_add(length).filter(|end| *end <= self.start);
            let shown = || String::from_utf8_lossy(&entry.name).into_owned();
            let end =
                end.ok_or_else(|| ApkError::damaged(format!("entry {:?} reaches beyond the entries", shown())))?;
            spans.push((entry.offset, end, entry));
        }
        spans.sort_unstable_by_key(|(offset, end, _)| (*offset, *end));
        for pair in spans.windows(2) {
            let ((_, end, one), (next, _, two)) = (&pair[0], &pair[1]);
            if next < end {
                let [one, two] = [one, two].map(|entry| String::from_utf8_lossy(&entry.name).into_owned());
                return Err(ApkError::Refused(format!("the entries {one:?} and {two:?} overlap")));
            }
        }
        Ok(())
    }
}

/// The end record: where the directory is.
struct EndRecord {
    entries: u64,
    size: u64,
    start: u64,
}

pub(super) async fn read_directory(window: &mut RangeCache<'_>) -> Result<ZipDirectory, ApkError> {
    let end = find_end(window).await?;
    if end.size > MAX_DIRECTORY {
        return Err(ApkError::Refused(format!(
            "its directory has {} bytes; at most {MAX_DIRECTORY} are read",
            end.size
        )));
    }
    let held = window.holds(end.start, end.size as usize);
    let before = if held { 0 } else { end.start.min(BEFORE_DIRECTORY) };
    let length = (before + end.size) as usize;
    let bytes = window.get(end.start - before, length).await?;
    let mut rest = &bytes[before as usize..];
    let mut directory = ZipDirectory { start: end.start, entries: Vec::new() };
    while !rest.is_empty() && (directory.entries.len() as u64) < end.entries {
        let (entry, length) = read_central(rest).ok_or_else(|| ApkError::damaged("its directory is truncated"))?;
        directory.entries.push(entry);
        rest = &rest[length..];
    }
    if (directory.entries.len() as u64) < end.entries {
        let told = end.entries;
        return Err(ApkError::damaged(format!("its directory has {} of {told} entries", directory.entries.len())));
    }
    directory.refuse_overlaps()?;
    Ok(directory)
}

async fn find_end(window: &mut RangeCache<'_>) -> Result<EndRecord, ApkError> {
    let length = window.len();
    let no_zip = || ApkError::NotAnApk("it has no zip end record".to_owned());
    if length < END_LENGTH {
        return Err(no_zip());
    }
    let tail = TAIL.min(length);
    let base = length - tail;
    let bytes = window.get(base, tail as usize).await?;
    // The comment must end where the file ends, so that a signature inside a comment is not taken for the record.
    let is_end = |at: &usize| {
        u32_at(bytes, *at) == Some(END)
            && u16_at(bytes, at + 20).is_some_and(|comment| at + 22 + usize::from(comment) == bytes.len())
    };
    let at = (0..=bytes.len() - END_LENGTH as usize).rev().find(is_end).ok_or_else(no_zip)?;
    let record = &bytes[at..];
    let (Some(entries), Some(size), Some(start)) = (u16_at(record, 10), u32_at(record, 12), u32_at(record, 16)) else {
        return Err(no_zip());
    };
    let place = base + at as u64;
    let mut end = EndRecord { entries: entries.into(), size: size.into(), start: start.into() };
    if entries == u16::MAX || size == u32::MAX || start == u32::MAX {
        end = find_end_64(window, place).await?.unwrap_or(end);
    }
    if end.start.checked_add(end.size).is_none_or(|behind| behind > place) {
        return Err(ApkError::damaged("its directory reaches beyond its end record"));
    }
    Ok(end)
}

async fn find_end_64(window: &mut RangeCache<'_>, place: u64) -> Result<Option<EndRecord>, ApkError> {
    let Some(at) = place.checked_sub(20) else { return Ok(None) };
    let locator = window.get(at, 20).await?;
    if u32_at(locator, 0) != Some(LOCATOR_64) {
        return Ok(None);
    }
    let at = u64_at(locator, 8).unwrap_or(u64::MAX);
    let record = window.get(at, 56).await?;
    match (u32_at(record, 0), u64_at(record, 32), u64_at(record, 40), u64_at(record, 48)) {
        (Some(END_64), Some(entries), Some(size), Some(start)) => Ok(Some(EndRecord { entries, size, start })),
        _ => Err(ApkError::damaged("its zip64 end record is invalid")),
    }
}

/// One entry of the directory, and the bytes it takes there.
fn read_central(bytes: &[u8]) -> Option<(ZipEntry, usize)> {
    if u32_at(bytes, 0) != Some(CENTRAL) {
        return None;
    }
    let method = u16_at(bytes, 10)?;
    let [mut compressed, mut size, mut offset] =
        [u32_at(bytes, 20)?, u32_at(bytes, 24)?, u32_at(bytes, 42)?].map(u64::from);
    let [name, extra, comment] = [u16_at(bytes, 28)?, u16_at(bytes, 30)?, u16_at(bytes, 32)?].map(usize::from);
    let length = 46 + name + extra + comment;
    let tail = bytes.get(46..length)?;
    let (name, extra) = (tail[..name].to_vec(), &tail[name..name + extra]);
    let mut large = wide_fields(extra);
    for field in [&mut size, &mut compressed, &mut offset] {
        if *field == u64::from(u32::MAX) {
            let (value, rest) = large.split_at_checked(8)?;
            (*field, large) = (u64_at(value, 0)?, rest);
        }
    }
    Some((ZipEntry { name, method, compressed, size, offset }, length))
}

/// The zip64 field among an entry's extras.
fn wide_fields(mut extra: &[u8]) -> &[u8] {
    while let (Some(id), Some(length)) = (u16_at(extra, 0), u16_at(extra, 2)) {
        let Some(data) = extra.get(4..4 + usize::from(length)) else { break };
        if id == 1 {
            return data;
        }
        extra = &extra[4 + data.len()..];
    }
    &[]
}

/// The offset of an entry's data. The extras in the local header may have another length than in the directory.
pub(super) async fn data_offset(
    window: &mut RangeCache<'_>,
    directory: &ZipDirectory,
    entry: &ZipEntry,
) -> Result<u64, ApkError> {
    let shown = String::from_utf8_lossy(&entry.name).into_owned();
    let length = LOCAL_LENGTH + entry.name.len();
    // Small entries are read together with their header.
    let whole = usize::try_from(entry.compressed).ok().filter(|size| *size <= TAIL as usize).unwrap_or(0);
    let header = window.get_ahead(entry.offset, length, length + whole + LOCAL_SLACK).await?;
    if u32_at(header, 0) != Some(LOCAL) || header[LOCAL_LENGTH..] != entry.name {
        return Err(ApkError::Refused(format!("directory and local header disagree about the entry {shown:?}")));
    }
    let extra = u16_at(header, 28).unwrap_or_default();
    let start = entry.offset + length as u64 + u64::from(extra);
    match start.checked_add(entry.compressed) {
        Some(end) if end <= directory.start => Ok(start),
        _ => Err(ApkError::damaged(format!("entry {shown:?} reaches beyond the entries"))),
    }
}

/// The content of an entry, if it has at most `limit` bytes.
pub(super) async fn read_entry(
    window: &mut RangeCache<'_>,
    directory: &ZipDirectory,
    entry: &ZipEntry,
    limit: usize,
) -> Result<Vec<u8>, ApkError> {
    let shown = String::from_utf8_lossy(&entry.name).into_owned();
    let size = usize::try_from(entry.size).ok().filter(|size| *size <= limit);
    let compressed = usize::try_from(entry.compressed).ok().filter(|size| *size <= limit);
    let (Some(size), Some(compressed)) = (size, compressed) else {
        return Err(ApkError::Refused(format!(
            "{shown} has {} bytes; at most {limit} are read",
            entry.size.max(entry.compressed)
        )));
    };
    let start = data_offset(window, directory, entry).await?;
    let data = window.get(start, compressed).await?;
    let content = match entry.method {
        0 => data.to_vec(),
        8 => {
            let wrong =
                |_| ApkError::Refused(format!("{shown} does not decompress to the {size} bytes in the directory"));
            decompress_to_vec_with_limit(data, size).map_err(wrong)?
        }
        other => return Err(ApkError::Refused(format!("{shown} is compressed with method {other}; APKs use 0 and 8"))),
    };
    match content.len() == size {
        true => Ok(content),
        false => Err(ApkError::damaged(format!("{shown} has {} bytes, but the directory says {size}", content.len()))),
    }
}
