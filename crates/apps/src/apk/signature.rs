//! The signer: the digest of the signing certificate, from the signing block or from META-INF.
//!
//! The signature is not verified here: the phone verified it when it installed the app.

use sha2::{Digest as _, Sha256};

use super::ApkError;
use super::bytes::{offset_at, u32_at, u64_at};
use super::source::RangeCache;
use super::zip::{self, ZipDirectory};

const MAGIC: &[u8; 16] = b"APK Sig Block 42";
/// Size and magic, at the end of the block.
const FOOTER: u64 = 24;
/// Blocks have certificates, lineages and stamps, together a few kilobytes.
const MAX_BLOCK: u64 = 1 << 20;
/// Schemes 3.1, 3 and 2: after a key rotation, the newest scheme has the newest key.
const SCHEMES: [u32; 3] = [0x1b93_ad61, 0xf053_68c0, 0x7109_871a];
/// A PKCS #7 file with one certificate has about 1.5 KB.
const MAX_PKCS7: usize = 1 << 20;

/// The SHA-256 digest of the signer's certificate, in hexadecimal; `None` if the APK is not signed.
pub(super) async fn certificate(
    window: &mut RangeCache<'_>,
    directory: &ZipDirectory,
) -> Result<Option<String>, ApkError> {
    let digest = |certificate: &[u8]| {
        let bytes = Sha256::digest(certificate);
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    if let Some(block) = signing_block(window, directory).await? {
        let found = SCHEMES.iter().find_map(|scheme| certificate_in(find_pair(&block, *scheme)?));
        if let Some(certificate) = found {
            return Ok(Some(digest(certificate)));
        }
    }
    let is_signature = |name: &[u8]| {
        let end = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
        let inside = name.strip_prefix(b"META-INF/").is_some_and(|file| !file.contains(&b'/'));
        inside && [b"RSA".as_slice(), b"DSA", b"EC"].contains(&end)
    };
    let Some(entry) = directory.entries.iter().find(|entry| is_signature(&entry.name)) else { return Ok(None) };
    let bytes = zip::read_entry(window, directory, entry, MAX_PKCS7).await?;
    Ok(only_certificate(&bytes).map(digest))
}

/// The block before the directory, without its sizes and magic.
async fn signing_block(window: &mut RangeCache<'_>, directory: &ZipDirectory) -> Result<Option<Vec<u8>>, ApkError> {
    if directory.start < FOOTER {
        return Ok(None);
    }
    // Most blocks are complete in this one read.
    let before = directory.start.min(zip::BEFORE_DIRECTORY);
    let bytes = window.get(directory.start - before, before as usize).await?;
    let footer = &bytes[(before - FOOTER) as usize..];
    if &footer[8..] != MAGIC {
        return Ok(None);
    }
    let size = u64_at(footer, 0).unwrap_or_default();
    let start = directory.start.checked_sub(size).filter(|_| (FOOTER..=MAX_BLOCK).contains(&size));
    let start = start.ok_or_else(|| ApkError::damaged(format!("its signing block claims {size} bytes")))?;
    Ok(Some(window.get(start, (size - FOOTER) as usize).await?.to_vec()))
}

fn find_pair(mut block: &[u8], id: u32) -> Option<&[u8]> {
    while let Some(length) = u64_at(block, 0) {
        let pair = block.get(8..)?.get(..usize::try_from(length).ok()?)?;
        if u32_at(pair, 0) == Some(id) {
            return pair.get(4..);
        }
        block = &block[8 + pair.len()..];
    }
    None
}

/// Signers → signer → signed data → (digests, certificates → certificate), each with its length in front.
fn certificate_in(signers: &[u8]) -> Option<&[u8]> {
    let signed = prefixed(prefixed(prefixed(signers)?)?)?;
    let digests = prefixed(signed)?;
    prefixed(prefixed(signed.get(4 + digests.len()..)?)?)
}

fn prefixed(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(4..)?.get(..offset_at(bytes, 0)?)
}

/// The certificate of a PKCS #7 signature that has exactly one. Of several, only a verifier knows the signer's.
fn only_certificate(bytes: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const EXPLICIT_0: u8 = 0xa0;
    let (_, content, _) = der(bytes).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (_, _, rest) = der(content)?;
    let (_, signed, _) = der(rest).filter(|(tag, ..)| *tag == EXPLICIT_0)?;
    let (_, mut fields, _) = der(signed).filter(|(tag, ..)| *tag == SEQUENCE)?;
    // Version, digest algorithms, content; then the certificates.
    for _ in 0..3 {
        fields = der(fields)?.2;
    }
    let (_, certificates, _) = der(fields).filter(|(tag, ..)| *tag == EXPLICIT_0)?;
    let (_, _, others) = der(certificates)?;
    others.is_empty().then_some(certificates)
}

/// Tag, content, and what follows.
fn der(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, &first) = (bytes.first()?, bytes.get(1)?);
    let (length, header) = match first {
        0..=0x7f => (usize::from(first), 2),
        0x81..=0x84 => {
            let count = usize::from(first & 0x7f);
            let digits = bytes.get(2..2 + count)?;
            (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), 2 + count)
        }
        _ => return None,
    };
    let rest = bytes.get(header..)?;
    Some((tag, rest.get(..length)?, &rest[length..]))
}
