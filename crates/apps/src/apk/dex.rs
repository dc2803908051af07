//! The strings of an app's code, from its dex files.
//!
//! A dex file keeps its strings sorted, so a string is found in a few steps. Code that contains a string may still
//! use it wrongly; code without it cannot use it at all.

use super::bytes::{offset_at, u32_at};
use super::source::RangeCache;
use super::zip;
use super::{ApkError, ReadAt};

/// A dex file has at most 65,536 methods, which fit well.
const MAX_DEX: usize = 64 << 20;
/// Real apps have some tens at most.
const MAX_FILES: usize = 100;

/// Which of the words the app's code contains; `None` if the app has no code.
pub async fn read_code(source: &dyn ReadAt, words: &[&'static str]) -> Result<Option<Vec<&'static str>>, ApkError> {
    let mut window = RangeCache::new(source);
    let directory = zip::read_directory(&mut window).await?;
    let is_dex = |name: &[u8]| name.starts_with(b"classes") && name.ends_with(b".dex");
    let files: Vec<&zip::ZipEntry> =
        directory.entries.iter().filter(|entry| is_dex(&entry.name)).take(MAX_FILES).collect();
    if files.is_empty() {
        return Ok(None);
    }
    let mut found: Vec<&'static str> = Vec::new();
    for entry in files {
        let bytes = zip::read_entry(&mut RangeCache::new(source), &directory, entry, MAX_DEX).await?;
        let strings =
            DexStrings::read(&bytes).ok_or_else(|| ApkError::damaged("a dex file has no table of strings"))?;
        for word in words {
            if !found.contains(word) && strings.contains(word) {
                found.push(word);
            }
        }
    }
    Ok(Some(found))
}

struct DexStrings<'a> {
    bytes: &'a [u8],
    count: usize,
    table: usize,
}

impl<'a> DexStrings<'a> {
    fn read(bytes: &'a [u8]) -> Option<DexStrings<'a>> {
        let is_dex = bytes.starts_with(b"dex\n");
        let (count, table) = (offset_at(bytes, 0x38)?, offset_at(bytes, 0x3c)?);
        let end = table.checked_add(count.checked_mul(4)?)?;
        (is_dex && end <= bytes.len()).then_some(DexStrings { bytes, count, table })
    }

    fn contains(&self, word: &str) -> bool {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).map(|text| text.cmp(word.as_bytes())) {
                Some(std::cmp::Ordering::Equal) => return true,
                Some(std::cmp::Ordering::Less) => low = middle + 1,
                Some(std::cmp::Ordering::Greater) | None => high = middle,
            }
        }
        false
    }

    /// The bytes of a string, after the number of its characters and before the final zero.
    fn get(&self, index: usize) -> Option<&'a [u8]> {
        let place = u32_at(self.bytes, self.table + index * 4)? as usize;
        let counted = self.bytes.get(place..)?;
        let number = counted.iter().take(5).position(|byte| byte & 0x80 == 0)? + 1;
        let text = &counted[number..];
        Some(&text[..text.iter().position(|byte| *byte == 0)?])
    }
}
