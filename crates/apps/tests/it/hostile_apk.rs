//! APKs built to exhaust or mislead their reader: each is refused with a reason, none takes long or panics.

#![allow(clippy::panic, clippy::unwrap_used)]

use proptest::prelude::*;
use sinew_apps::apk::{ApkError, parse_binary_xml, read_code, read_manifest};

/// An archive written by hand, so that every field can be wrong.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    entries: u16,
}

impl Archive {
    /// Adds an entry with a local header; returns its offset.
    fn add(&mut self, name: &str, method: u16, data: &[u8], size: u32) -> u32 {
        let offset = self.bytes.len() as u32;
        self.bytes.extend(0x0403_4b50u32.to_le_bytes());
        self.bytes.extend([0; 4]);
        self.bytes.extend(method.to_le_bytes());
        self.bytes.extend([0; 16]);
        self.bytes.extend((name.len() as u16).to_le_bytes());
        self.bytes.extend([0; 2]);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(data);
        self.list(name, method, data.len() as u32, size, offset);
        offset
    }

    /// Adds an entry to the directory alone.
    fn list(&mut self, name: &str, method: u16, compressed: u32, size: u32, offset: u32) {
        self.directory.extend(0x0201_4b50u32.to_le_bytes());
        self.directory.extend([0; 6]);
        self.directory.extend(method.to_le_bytes());
        self.directory.extend([0; 8]);
        for field in [compressed, size] {
            self.directory.extend(field.to_le_bytes());
        }
        self.directory.extend((name.len() as u16).to_le_bytes());
        self.directory.extend([0; 12]);
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.entries += 1;
    }

    fn done(mut self) -> Vec<u8> {
        let start = self.bytes.len() as u32;
        self.bytes.extend(&self.directory);
        self.bytes.extend(0x0605_4b50u32.to_le_bytes());
        self.bytes.extend([0; 4]);
        self.bytes.extend(self.entries.to_le_bytes());
        self.bytes.extend(self.entries.to_le_bytes());
        self.bytes.extend((self.directory.len() as u32).to_le_bytes());
        self.bytes.extend(start.to_le_bytes());
        self.bytes.extend([0; 2]);
        self.bytes
    }
}

const MANIFEST: &str = "AndroidManifest.xml";

async fn refusal(bytes: Vec<u8>) -> String {
    read_manifest(&bytes, &|_| true).await.unwrap_err().to_string()
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec(bytes, 6)
}

/// Binary XML: a pool of strings and elements that open and close.
struct Xml {
    bytes: Vec<u8>,
}

impl Xml {
    fn new(strings: &[&str]) -> Xml {
        let mut data = Vec::new();
        let mut offsets = Vec::new();
        for text in strings {
            offsets.extend((data.len() as u32).to_le_bytes());
            let units: Vec<u16> = text.encode_utf16().collect();
            let length = units.len() as u32;
            if length > 0x7fff {
                data.extend(((length >> 16) as u16 | 0x8000).to_le_bytes());
            }
            data.extend((length as u16).to_le_bytes());
            data.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
            data.extend([0; 2]);
        }
        let start = 28 + offsets.len();
        let mut bytes = vec![3, 0, 8, 0, 0, 0, 0, 0];
        bytes.extend([1, 0, 28, 0]);
        bytes.extend(((start + data.len()) as u32).to_le_bytes());
        bytes.extend((strings.len() as u32).to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend((start as u32).to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(offsets);
        bytes.extend(data);
        Xml { bytes }
    }

    fn open(&mut self, name: u32, attributes: &[(u32, u32)]) {
        let size = 36 + 20 * attributes.len() as u32;
        self.bytes.extend([2, 1, 16, 0]);
        self.bytes.extend(size.to_le_bytes());
        self.bytes.extend([1, 0, 0, 0, 255, 255, 255, 255]);
        self.bytes.extend(u32::MAX.to_le_bytes());
        self.bytes.extend(name.to_le_bytes());
        self.bytes.extend([20, 0, 20, 0]);
        self.bytes.extend((attributes.len() as u16).to_le_bytes());
        self.bytes.extend([0; 6]);
        for (name, value) in attributes {
            self.bytes.extend(u32::MAX.to_le_bytes());
            self.bytes.extend(name.to_le_bytes());
            self.bytes.extend(value.to_le_bytes());
            self.bytes.extend([8, 0, 0, 3]);
            self.bytes.extend(value.to_le_bytes());
        }
    }

    fn close(&mut self) {
        self.bytes.extend([3, 1, 16, 0, 24, 0, 0, 0]);
        self.bytes.extend([0; 16]);
    }

    fn done(mut self) -> Vec<u8> {
        let size = self.bytes.len() as u32;
        self.bytes[4..8].copy_from_slice(&size.to_le_bytes());
        self.bytes
    }
}

fn plain_manifest() -> Vec<u8> {
    let mut xml = Xml::new(&["manifest", "package", "com.example.app"]);
    xml.open(0, &[(1, 2)]);
    xml.close();
    xml.done()
}

#[tokio::test]
async fn an_archive_written_by_hand_is_read_like_any_other() {
    let manifest = plain_manifest();
    let mut stored = Archive::default();
    stored.add(MANIFEST, 0, &manifest, manifest.len() as u32);
    let mut packed = Archive::default();
    packed.add(MANIFEST, 8, &deflated(&manifest), manifest.len() as u32);
    for bytes in [stored.done(), packed.done()] {
        assert_eq!(read_manifest(&bytes, &|_| true).await.unwrap().package, "com.example.app");
    }
}

#[tokio::test]
async fn a_zip_bomb_is_refused_whether_it_declares_its_size_or_not() {
    let bomb = deflated(&vec![0; 50 << 20]);
    assert!(bomb.len() < 100_000);
    let mut honest = Archive::default();
    honest.add(MANIFEST, 8, &bomb, 50 << 20);
    assert!(refusal(honest.done()).await.contains("at most"));
    let mut lying = Archive::default();
    lying.add(MANIFEST, 8, &bomb, 1000);
    assert!(refusal(lying.done()).await.contains("does not decompress to the 1000 bytes"));
}

#[tokio::test]
async fn a_manifest_of_five_megabytes_is_refused() {
    let mut xml = Xml::new(&["manifest", &"x".repeat(2_600_000)]);
    xml.open(0, &[]);
    xml.close();
    let manifest = xml.done();
    let mut archive = Archive::default();
    archive.add(MANIFEST, 8, &deflated(&manifest), manifest.len() as u32);
    assert!(refusal(archive.done()).await.contains("at most"));
}

#[tokio::test]
async fn entries_that_overlap_or_repeat_are_refused() {
    let manifest = plain_manifest();
    let size = manifest.len() as u32;
    let mut shared = Archive::default();
    let offset = shared.add(MANIFEST, 0, &manifest, size);
    shared.list("classes.dex", 0, size, size, offset);
    assert!(refusal(shared.done()).await.contains("overlap"));

    let mut nested = Archive::default();
    nested.add(MANIFEST, 0, &manifest, size);
    nested.list("res/a.xml", 0, 10, 10, 20);
    assert!(refusal(nested.done()).await.contains("overlap"));

    let mut twice = Archive::default();
    twice.add(MANIFEST, 0, &manifest, size);
    twice.add(MANIFEST, 0, &manifest, size);
    assert!(refusal(twice.done()).await.contains("two entries"));

    let mut beyond = Archive::default();
    beyond.list(MANIFEST, 0, 1 << 30, 1 << 30, 0);
    assert!(refusal(beyond.done()).await.contains("beyond"));
}

#[tokio::test]
async fn a_local_header_that_contradicts_the_directory_is_refused() {
    let manifest = plain_manifest();
    let mut archive = Archive::default();
    archive.add(MANIFEST, 0, &manifest, manifest.len() as u32);
    let mut bytes = archive.done();
    bytes[30] = b'X';
    assert!(refusal(bytes).await.contains("disagree"));
}

#[tokio::test]
async fn unknown_methods_wrong_sizes_and_non_archives_are_refused() {
    let manifest = plain_manifest();
    let mut odd = Archive::default();
    odd.add(MANIFEST, 14, &manifest, manifest.len() as u32);
    assert!(refusal(odd.done()).await.contains("method 14"));
    let mut short = Archive::default();
    short.add(MANIFEST, 0, &manifest, manifest.len() as u32 + 1);
    assert!(refusal(short.done()).await.contains("but the directory says"));
    assert!(refusal(Archive::default().done()).await.contains("no AndroidManifest.xml"));
    for bytes in [Vec::new(), vec![0; 22], vec![0; 100_000], b"PK".to_vec()] {
        assert!(matches!(read_manifest(&bytes, &|_| true).await, Err(ApkError::NotAnApk(_))));
    }
}

#[tokio::test]
async fn an_apk_truncated_anywhere_is_refused() {
    let manifest = plain_manifest();
    let mut archive = Archive::default();
    archive.add(MANIFEST, 8, &deflated(&manifest), manifest.len() as u32);
    let whole = archive.done();
    for length in 0..whole.len() {
        assert!(read_manifest(&whole[..length].to_vec(), &|_| true).await.is_err(), "cut at {length}");
    }
}

#[test]
fn binary_xml_truncated_anywhere_is_refused() {
    let whole = plain_manifest();
    assert!(parse_binary_xml(&whole).is_ok());
    for length in 0..whole.len() {
        assert!(parse_binary_xml(&whole[..length]).is_err(), "cut at {length}");
    }
    let mut open = Xml::new(&["manifest"]);
    open.open(0, &[]);
    assert!(parse_binary_xml(&open.done()).unwrap_err().to_string().contains("ends inside an element"));
}

#[test]
fn elements_that_nest_without_end_are_refused() {
    let mut xml = Xml::new(&["a"]);
    for _ in 0..100_000 {
        xml.open(0, &[]);
    }
    assert!(matches!(parse_binary_xml(&xml.done()), Err(ApkError::Refused(_))));
}

#[test]
fn one_long_string_in_many_places_is_stored_once() {
    let long = "x".repeat(1_000_000);
    let mut xml = Xml::new(&["manifest", "package", &long]);
    xml.open(0, &[]);
    for _ in 0..10_000 {
        xml.open(0, &[(1, 2)]);
        xml.close();
    }
    xml.close();
    assert_eq!(parse_binary_xml(&xml.done()).unwrap().children.len(), 10_000);
}

#[test]
fn overlapping_strings_are_bounded() {
    // Each string starts inside the previous one and ends at the same byte.
    let mut xml = Xml::new(&[]);
    let count = 20_000u32;
    let body = 1_000_000u32;
    let start = 28 + 4 * count;
    let mut pool = vec![1, 0, 28, 0];
    pool.extend((start + 4 * count + body * 2).to_le_bytes());
    pool.extend(count.to_le_bytes());
    pool.extend([0; 8]);
    pool.extend(start.to_le_bytes());
    pool.extend([0; 4]);
    for index in 0..count {
        pool.extend((index * 4).to_le_bytes());
    }
    for _ in 0..count {
        pool.extend((0x8000u16 | (body >> 16) as u16).to_le_bytes());
        pool.extend(((body & 0xffff) as u16).to_le_bytes());
    }
    pool.extend(std::iter::repeat_n(b'x', body as usize * 2));
    xml.bytes.truncate(8);
    xml.bytes.extend(pool);
    for name in 0..count {
        xml.open(name, &[]);
        xml.close();
    }
    assert!(matches!(parse_binary_xml(&xml.done()), Err(ApkError::Refused(_))));
}

#[tokio::test]
async fn invalid_dex_is_refused_and_an_app_without_code_has_none() {
    let manifest = plain_manifest();
    let mut archive = Archive::default();
    archive.add(MANIFEST, 0, &manifest, manifest.len() as u32);
    assert_eq!(read_code(&archive.done(), &["x"]).await, Ok(None));
    let mut archive = Archive::default();
    archive.add("classes.dex", 0, b"dex\n035\0", 8);
    assert!(read_code(&archive.done(), &["x"]).await.is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_manifest_with_any_byte_changed_is_read_or_refused(at in 0usize..200, value: u8) {
        let mut bytes = plain_manifest();
        let at = at % bytes.len();
        bytes[at] = value;
        let _ = parse_binary_xml(&bytes);
        let mut archive = Archive::default();
        archive.add(MANIFEST, 0, &bytes, bytes.len() as u32);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _ = runtime.block_on(read_manifest(&archive.done(), &|_| true));
    }

    #[test]
    fn an_archive_with_any_byte_changed_is_read_or_refused(at in 0usize..1000, value: u8) {
        let manifest = plain_manifest();
        let mut archive = Archive::default();
        archive.add(MANIFEST, 8, &deflated(&manifest), manifest.len() as u32);
        let mut bytes = archive.done();
        let at = at % bytes.len();
        bytes[at] = value;
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _ = runtime.block_on(read_manifest(&bytes, &|_| true));
    }
}
