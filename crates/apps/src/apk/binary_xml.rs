//! Android's binary XML: a string pool, a map of attribute ids, and the elements in order.
//!
//! Attributes are identified by their resource id, not by their name: that is what Android does, and some packers
//! clear the names. A truncated file is refused as a whole.

use std::sync::Arc;

use super::bytes::{offset_at, u16_at, u32_at};
use super::element::{MAX_DEPTH, XmlAttribute, XmlElement, XmlValue};
use super::{ApkError, MAX_MANIFEST};

const XML: u16 = 0x0003;
const POOL: u16 = 0x0001;
const RESOURCE_MAP: u16 = 0x0180;
const START_ELEMENT: u16 = 0x0102;
const END_ELEMENT: u16 = 0x0103;
const NONE: u32 = u32::MAX;
const ANDROID: &str = "http://schemas.android.com/apk/res/android";
/// Strings of a pool may overlap, so the decoded text is bounded, not only the file.
const MAX_TEXT: usize = 4 * MAX_MANIFEST;

/// The attributes that the manifest is read for.
const ATTRIBUTES: &[(u32, &str)] = &[
    (0x0101_0003, "name"),
    (0x0101_0006, "permission"),
    (0x0101_0007, "readPermission"),
    (0x0101_0009, "protectionLevel"),
    (0x0101_000e, "enabled"),
    (0x0101_0010, "exported"),
    (0x0101_0018, "authorities"),
    (0x0101_0024, "value"),
    (0x0101_0025, "resource"),
    (0x0101_0026, "mimeType"),
    (0x0101_0202, "targetActivity"),
    (0x0101_020c, "minSdkVersion"),
    (0x0101_021b, "versionCode"),
    (0x0101_021c, "versionName"),
    (0x0101_0270, "targetSdkVersion"),
    (0x0101_0576, "versionCodeMajor"),
];

pub(super) fn parse(bytes: &[u8]) -> Result<XmlElement, ApkError> {
    let broken = || ApkError::damaged("its binary XML is truncated");
    if u16_at(bytes, 0) != Some(XML) {
        return Err(ApkError::damaged("it is not binary XML"));
    }
    let header = u16_at(bytes, 2).map(usize::from).filter(|header| *header >= 8).ok_or_else(broken)?;
    let size = offset_at(bytes, 4).ok_or_else(broken)?;
    let mut rest = bytes.get(header..size).ok_or_else(broken)?;
    let mut reader = XmlReader::default();
    while !rest.is_empty() {
        let (chunk, behind) = split_chunk(rest).ok_or_else(broken)?;
        reader.take(chunk)?;
        rest = behind;
    }
    match (reader.root, reader.open.is_empty()) {
        (Some(root), true) => Ok(root),
        (None, true) => Err(ApkError::damaged("its binary XML has no element")),
        (_, false) => Err(ApkError::damaged("its binary XML ends inside an element")),
    }
}

/// A chunk: its type, the length of its header, its bytes.
struct Chunk<'a> {
    kind: u16,
    header: usize,
    bytes: &'a [u8],
}

fn split_chunk(rest: &[u8]) -> Option<(Chunk<'_>, &[u8])> {
    let (kind, header) = (u16_at(rest, 0)?, usize::from(u16_at(rest, 2)?));
    let size = offset_at(rest, 4).filter(|size| *size >= header.max(8))?;
    let (bytes, behind) = rest.split_at_checked(size)?;
    Some((Chunk { kind, header, bytes }, behind))
}

#[derive(Default)]
struct XmlReader<'a> {
    pool: StringPool<'a>,
    ids: Vec<u32>,
    open: Vec<XmlElement>,
    root: Option<XmlElement>,
}

impl<'a> XmlReader<'a> {
    fn take(&mut self, chunk: Chunk<'a>) -> Result<(), ApkError> {
        let broken = || ApkError::damaged("an element of its binary XML is truncated");
        match chunk.kind {
            POOL if self.pool.bytes.is_empty() => self.pool = StringPool::new(chunk.bytes).ok_or_else(broken)?,
            RESOURCE_MAP => {
                let ids = chunk.bytes.get(chunk.header..).unwrap_or_default();
                self.ids = ids.chunks_exact(4).filter_map(|id| u32_at(id, 0)).collect();
            }
            START_ELEMENT => {
                if self.open.len() >= MAX_DEPTH {
                    return Err(ApkError::Refused(format!("its elements nest deeper than {MAX_DEPTH}")));
                }
                if self.open.is_empty() && self.root.is_some() {
                    return Err(ApkError::Refused("its binary XML has two root elements".to_owned()));
                }
                let element = self.element(&chunk)?.ok_or_else(broken)?;
                self.open.push(element);
            }
            END_ELEMENT => {
                let done = self.open.pop().ok_or_else(|| ApkError::damaged("an element ends that did not start"))?;
                match self.open.last_mut() {
                    Some(parent) => parent.children.push(done),
                    None => self.root = Some(done),
                }
            }
            // Namespaces are known, text has no meaning in a manifest, and Android skips unknown chunks.
            _ => {}
        }
        Ok(())
    }

    fn element(&mut self, chunk: &Chunk<'_>) -> Result<Option<XmlElement>, ApkError> {
        let Some(body) = chunk.bytes.get(chunk.header..) else { return Ok(None) };
        let (Some(line), Some(name)) = (u32_at(chunk.bytes, 8), u32_at(body, 4)) else { return Ok(None) };
        let fields = [u16_at(body, 8), u16_at(body, 10), u16_at(body, 12)].map(|field| field.map(usize::from));
        let [Some(start), Some(size), Some(count)] = fields else { return Ok(None) };
        let mut element = XmlElement {
            name: self.pool.get(name)?,
            attributes: Vec::with_capacity(count),
            children: Vec::new(),
            line,
        };
        let Some(table) = body.get(start..).filter(|table| size >= 20 && table.len() >= size * count) else {
            return Ok((count == 0).then_some(element));
        };
        for row in table.chunks_exact(size).take(count) {
            let Some(attribute) = self.attribute(row)? else { return Ok(None) };
            element.attributes.push(attribute);
        }
        Ok(Some(element))
    }

    fn attribute(&mut self, row: &[u8]) -> Result<Option<XmlAttribute>, ApkError> {
        let fields = (u32_at(row, 0), u32_at(row, 4), u32_at(row, 8), row.get(15), u32_at(row, 16));
        let (Some(namespace), Some(name), Some(raw), Some(&kind), Some(data)) = fields else { return Ok(None) };
        let known = self.ids.get(name as usize).and_then(|id| ATTRIBUTES.iter().find(|(known, _)| known == id));
        let (name, android) = match known {
            Some((_, name)) => (self.pool.known(name), true),
            None => {
                let has_id = self.ids.get(name as usize).is_some_and(|id| *id != 0);
                let android = has_id || (namespace != NONE && &*self.pool.get(namespace)? == ANDROID);
                (self.pool.get(name)?, android)
            }
        };
        let value = match kind {
            // The packager gives every attribute a type; outside Android's namespace the original text counts.
            _ if !android && raw != NONE && kind != 0x01 => XmlValue::Text(self.pool.get(raw)?),
            0x03 => XmlValue::Text(self.pool.get(data)?),
            0x01 | 0x07 => XmlValue::Reference(data),
            0x10 | 0x11 => XmlValue::Number(data as i32),
            0x12 => XmlValue::Bool(data != 0),
            // A value without a type is its original text.
            0x00 if raw != NONE => XmlValue::Text(self.pool.get(raw)?),
            _ => XmlValue::Other { kind, data },
        };
        Ok(Some(XmlAttribute { name, android, value }))
    }
}

/// The strings of a file, each decoded on first use and then shared.
#[derive(Default)]
struct StringPool<'a> {
    bytes: &'a [u8],
    layout: PoolLayout,
    decoded: std::collections::HashMap<u32, Arc<str>>,
    names: Vec<(&'static str, Arc<str>)>,
    text: usize,
}

/// The header of a string pool. The resource table has one too.
#[derive(Clone, Copy, Default)]
pub(super) struct PoolLayout {
    pub header: usize,
    pub count: u32,
    pub utf8: bool,
    /// Offset of the strings from the start of the pool.
    pub strings: usize,
}

impl PoolLayout {
    pub(super) const LENGTH: usize = 28;

    pub(super) fn read(header: &[u8]) -> Option<PoolLayout> {
        const UTF8: u32 = 1 << 8;
        Some(PoolLayout {
            header: usize::from(u16_at(header, 2)?),
            count: u32_at(header, 8)?,
            utf8: u32_at(header, 16)? & UTF8 != 0,
            strings: offset_at(header, 20)?,
        })
    }
}

impl<'a> StringPool<'a> {
    fn new(bytes: &'a [u8]) -> Option<StringPool<'a>> {
        Some(StringPool { bytes, layout: PoolLayout::read(bytes)?, ..StringPool::default() })
    }

    fn known(&mut self, name: &'static str) -> Arc<str> {
        if let Some((_, shared)) = self.names.iter().find(|(known, _)| *known == name) {
            return shared.clone();
        }
        let shared: Arc<str> = name.into();
        self.names.push((name, shared.clone()));
        shared
    }

    fn get(&mut self, index: u32) -> Result<Arc<str>, ApkError> {
        if let Some(text) = self.decoded.get(&index) {
            return Ok(text.clone());
        }
        let text = self.decode(index).ok_or_else(|| ApkError::damaged(format!("its string {index} is missing")))?;
        self.text += text.len();
        if self.text > MAX_TEXT {
            return Err(ApkError::Refused(format!("its strings have more than {MAX_TEXT} bytes")));
        }
        let text: Arc<str> = text.into();
        self.decoded.insert(index, text.clone());
        Ok(text)
    }

    fn decode(&self, index: u32) -> Option<String> {
        if index >= self.layout.count {
            return None;
        }
        let offset = offset_at(self.bytes, self.layout.header.checked_add(index as usize * 4)?)?;
        let bytes = self.bytes.get(self.layout.strings.checked_add(offset)?..)?;
        let (start, length) = string_extent(bytes, self.layout.utf8)?;
        Some(decode_string(bytes.get(start..start.checked_add(length)?)?, self.layout.utf8))
    }
}

/// The offset and length in bytes of the content of a string in a pool.
pub(super) fn string_extent(bytes: &[u8], utf8: bool) -> Option<(usize, usize)> {
    if utf8 {
        // The length in UTF-16 units, then in bytes; each takes a second byte if the first has its high bit set.
        let short = |at: usize| {
            let first = *bytes.get(at)?;
            match first & 0x80 {
                0 => Some((usize::from(first), at + 1)),
                _ => Some((usize::from(first & 0x7f) << 8 | usize::from(*bytes.get(at + 1)?), at + 2)),
            }
        };
        let (_, at) = short(0)?;
        let (length, at) = short(at)?;
        Some((at, length))
    } else {
        let first = usize::from(u16_at(bytes, 0)?);
        let (units, at) = match first & 0x8000 {
            0 => (first, 2),
            _ => ((first & 0x7fff) << 16 | usize::from(u16_at(bytes, 2)?), 4),
        };
        Some((at, units.checked_mul(2)?))
    }
}

pub(super) fn decode_string(bytes: &[u8], utf8: bool) -> String {
    if utf8 {
        return match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => decode_modified(bytes),
        };
    }
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Java's UTF-8: characters beyond the basic plane are two surrogates of three bytes each.
fn decode_modified(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        let surrogate = |bytes: &[u8]| match bytes {
            [0xed, two @ 0xa0..=0xbf, three @ 0x80..=0xbf, ..] => {
                Some(0xd000 | u16::from(two & 0x3f) << 6 | u16::from(three & 0x3f))
            }
            _ => None,
        };
        if let Some(high) = surrogate(rest) {
            let low = rest.get(3..).and_then(surrogate);
            let pair = low.and_then(|low| char::decode_utf16([high, low]).next()?.ok());
            text.push(pair.unwrap_or(char::REPLACEMENT_CHARACTER));
            rest = &rest[if pair.is_some() { 6 } else { 3 }..];
            continue;
        }
        let until = rest.iter().skip(1).position(|byte| *byte == 0xed).map_or(rest.len(), |at| at + 1);
        text.push_str(&String::from_utf8_lossy(&rest[..until]));
        rest = &rest[until..];
    }
    text
}
