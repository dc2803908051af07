//! The resource table: looks up one value by its id, in a table that may have megabytes.
//!
//! A lookup reads only the chunk headers, one offset, one entry and one string. Of several configurations the
//! default one is used, otherwise the first that has the entry.

use super::ApkError;
use super::binary_xml::{PoolLayout, decode_string, string_extent};
use super::bytes::{offset_at, u16_at, u32_at};
use super::element::XmlValue;
use super::source::RangeCache;

const TABLE: u16 = 0x0002;
const POOL: u16 = 0x0001;
const PACKAGE: u16 = 0x0200;
const TYPE: u16 = 0x0201;
/// A table up to this size is read whole: one round trip instead of several.
const SMALL: u64 = 128 << 10;
/// The smallest read: the headers of small chunks are close together.
const PAGE: usize = 4 << 10;
/// Tables of large apps have some thousand chunks.
const MAX_CHUNKS: usize = 50_000;
/// Real references have two or three steps; more indicate a circle.
const MAX_HOPS: usize = 8;
/// The longest text that is read from a resource.
const MAX_STRING: usize = 1 << 20;
/// The header of a type with the largest known configuration.
const TYPE_HEAD: usize = 20 + 64;

pub(super) struct ResourceTable<'a> {
    window: RangeCache<'a>,
    base: u64,
    size: u64,
    pool: u64,
    packages: Vec<PackageChunk>,
}

struct PackageChunk {
    id: u8,
    /// Its chunks are in `start..end`, counted from the start of the table.
    start: u64,
    end: u64,
}

struct ChunkHeader {
    kind: u16,
    header: u64,
    size: u64,
}

impl<'a> ResourceTable<'a> {
    pub(super) async fn open(window: RangeCache<'a>, base: u64, size: u64) -> Result<ResourceTable<'a>, ApkError> {
        let mut table = ResourceTable { window, base, size, pool: 0, packages: Vec::new() };
        if size <= SMALL {
            table.window.get(base, size as usize).await?;
        }
        let head = table.head(0, size).await?;
        if head.kind != TABLE {
            return Err(ApkError::damaged("resources.arsc is not a resource table"));
        }
        let mut at = head.header;
        while at + 8 <= head.size {
            let chunk = table.head(at, head.size).await?;
            match chunk.kind {
                POOL if table.pool == 0 => table.pool = at,
                PACKAGE => {
                    let id = u32_at(table.get(at, 12).await?, 8).unwrap_or_default();
                    // A table of one app has one package; shared libraries add a few.
                    if table.packages.len() < 256 {
                        table.packages.push(PackageChunk {
                            id: id as u8,
                            start: at + chunk.header,
                            end: at + chunk.size,
                        });
                    }
                }
                _ => {}
            }
            at += chunk.size;
        }
        Ok(table)
    }

    /// The value of a resource. `None` if it belongs to another package or is a complex value.
    pub(super) async fn look_up(&mut self, id: u32) -> Result<Option<XmlValue>, ApkError> {
        let mut id = id;
        for _ in 0..MAX_HOPS {
            match self.entry(id).await? {
                Some((0x01 | 0x07, next)) => id = next,
                Some((0x03, index)) => return Ok(self.string(index).await?.map(|text| XmlValue::Text(text.into()))),
                Some((0x10 | 0x11, data)) => return Ok(Some(XmlValue::Number(data as i32))),
                Some((0x12, data)) => return Ok(Some(XmlValue::Bool(data != 0))),
                Some((kind, data)) => return Ok(Some(XmlValue::Other { kind, data })),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Type and data of the entry.
    async fn entry(&mut self, id: u32) -> Result<Option<(u8, u32)>, ApkError> {
        let [package, kind, _, _] = id.to_be_bytes();
        let Some(found) = self.packages.iter().find(|one| one.id == package) else { return Ok(None) };
        let (mut at, end) = (found.start, found.end);
        let mut second = None;
        for _ in 0..MAX_CHUNKS {
            if at + 8 > end {
                break;
            }
            let chunk = self.head(at, end).await?;
            if chunk.kind == TYPE && self.get(at, 9).await?[8] == kind {
                let length = TYPE_HEAD.min(chunk.size as usize);
                let head = self.get(at, length).await?;
                let configuration = offset_at(head, 20).unwrap_or_default();
                // Only zeroes after its size: the configuration for every phone.
                let default = head.iter().skip(24).take(configuration.saturating_sub(4)).all(|byte| *byte == 0);
                let value = self.value_in(at, &chunk, id as u16).await?;
                if default && value.is_some() {
                    return Ok(value);
                }
                second = second.or(value);
            }
            at += chunk.size;
        }
        Ok(second)
    }

    async fn value_in(&mut self, at: u64, chunk: &ChunkHeader, index: u16) -> Result<Option<(u8, u32)>, ApkError> {
        let Some(place) = self.entry_offset(at, chunk, index).await? else { return Ok(None) };
        const COMPLEX: u16 = 1;
        const COMPACT: u16 = 8;
        if place + 8 > chunk.size {
            return Err(ApkError::damaged("a resource lies outside its type"));
        }
        let head = self.get(at + place, 8).await?;
        let (size, flags) = (u16_at(head, 0).unwrap_or_default(), u16_at(head, 2).unwrap_or_default());
        if flags & COMPACT != 0 {
            return Ok(u32_at(head, 4).map(|data| ((flags >> 8) as u8, data)));
        }
        if flags & COMPLEX != 0 {
            return Ok(None);
        }
        let value = place + u64::from(size);
        if value + 8 > chunk.size {
            return Err(ApkError::damaged("a resource lies outside its type"));
        }
        let value = self.get(at + value, 8).await?;
        Ok(u32_at(value, 4).map(|data| (value[3], data)))
    }

    /// The offset of an entry in its type's chunk. Types store their entries in one of three forms.
    async fn entry_offset(&mut self, at: u64, chunk: &ChunkHeader, index: u16) -> Result<Option<u64>, ApkError> {
        const SPARSE: u8 = 1;
        const SHORT: u8 = 2;
        if chunk.size < 20 {
            return Ok(None);
        }
        let head = self.get(at, 20).await?;
        let flags = head[9];
        let (count, entries) = (u32_at(head, 12).unwrap_or_default(), u32_at(head, 16).unwrap_or_default());
        let width = if flags & SHORT != 0 { 2 } else { 4 };
        if chunk.header + u64::from(count) * width > chunk.size {
            return Err(ApkError::damaged("a type of resources is longer than its chunk"));
        }
        let offset = if flags & SPARSE != 0 {
            let rows = self.get(at + chunk.header, count as usize * 4).await?;
            let row = rows.chunks_exact(4).find(|row| u16_at(row, 0) == Some(index));
            row.and_then(|row| u16_at(row, 2)).map(|offset| u64::from(offset) * 4)
        } else if u32::from(index) >= count {
            None
        } else {
            let row = self.get(at + chunk.header + u64::from(index) * width, width as usize).await?;
            match flags & SHORT {
                0 => u32_at(row, 0).filter(|offset| *offset != u32::MAX).map(u64::from),
                _ => u16_at(row, 0).filter(|offset| *offset != u16::MAX).map(|offset| u64::from(offset) * 4),
            }
        };
        Ok(offset.map(|offset| u64::from(entries) + offset))
    }

    async fn string(&mut self, index: u32) -> Result<Option<String>, ApkError> {
        if self.pool == 0 {
            return Ok(None);
        }
        let Some(layout) = PoolLayout::read(self.get(self.pool, PoolLayout::LENGTH).await?) else { return Ok(None) };
        if index >= layout.count {
            return Ok(None);
        }
        let offset = self.get(self.pool + layout.header as u64 + u64::from(index) * 4, 4).await?;
        let offset = u32_at(offset, 0).unwrap_or_default();
        let place = self.pool + layout.strings as u64 + u64::from(offset);
        let room = self.size.saturating_sub(place).min(8) as usize;
        let Some((start, length)) = string_extent(self.get(place, room).await?, layout.utf8) else { return Ok(None) };
        if length > MAX_STRING {
            return Err(ApkError::Refused(format!(
                "a string resource has {length} bytes; at most {MAX_STRING} are read"
            )));
        }
        let bytes = self.get(place + start as u64, length).await?;
        Ok(Some(decode_string(bytes, layout.utf8)))
    }

    /// The header of the chunk at `at`, which must end by `end`.
    async fn head(&mut self, at: u64, end: u64) -> Result<ChunkHeader, ApkError> {
        let bytes = self.get(at, 8).await?;
        let (kind, header, size) = (u16_at(bytes, 0), u16_at(bytes, 2), u32_at(bytes, 4));
        match (kind, header.map(u64::from), size.map(u64::from)) {
            (Some(kind), Some(header), Some(size)) if header >= 8 && size >= header && at + size <= end => {
                Ok(ChunkHeader { kind, header, size })
            }
            _ => Err(ApkError::damaged("resources.arsc is truncated")),
        }
    }

    /// Bytes of the table. What lies after its end belongs to other entries of the archive.
    async fn get(&mut self, at: u64, length: usize) -> Result<&[u8], ApkError> {
        if at.checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Err(ApkError::damaged("resources.arsc is truncated"));
        }
        self.window.get_ahead(self.base + at, length, PAGE).await
    }
}
