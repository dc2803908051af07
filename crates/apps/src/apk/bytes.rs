//! Little-endian numbers from foreign bytes: `None` beyond the end, never a panic.

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_le_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}

/// A u32 that is an offset or a length.
pub(super) fn offset_at(bytes: &[u8], at: usize) -> Option<usize> {
    u32_at(bytes, at).map(|offset| offset as usize)
}
