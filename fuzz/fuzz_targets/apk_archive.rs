//! Arbitrary bytes as an APK, as its resource table, as an archive around a manifest. What is read stays inside the
//! file, and every answer comes at once.
#![no_main]

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use libfuzzer_sys::fuzz_target;
use sinew_apps::apk::{self, ApkError, ReadAt};
use sinew_apps::offer::{self, ProtocolNames};
use sinew_tool::BoxFuture;

/// Sees that nobody asks for what is not there, or for the same again and again.
struct Watched<'a> {
    bytes: &'a Vec<u8>,
    read: AtomicU64,
}

impl ReadAt for Watched<'_> {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, length: usize) -> BoxFuture<'_, Result<Vec<u8>, ApkError>> {
        assert!(offset + length as u64 <= self.len());
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        self.bytes.read_at(offset, length)
    }
}

fuzz_target!(|input: &[u8]| {
    let bytes = input.to_vec();
    let source = Watched { bytes: &bytes, read: AtomicU64::new(0) };
    let _ = at_once(offer::read(&source, &ProtocolNames::default()));
    let _ = at_once(apk::read_code(&bytes, &["execute_tool"]));
    for id in [0x7f01_0000, 0x7f02_0001, 0x0001_0000, u32::MAX] {
        let _ = at_once(apk::look_up(&bytes, id));
    }
    let archive = stored(&[("AndroidManifest.xml", input), ("classes.dex", input), ("META-INF/A.RSA", input)]);
    let _ = at_once(offer::read(&archive, &ProtocolNames::default()));
    let _ = at_once(apk::read_code(&archive, &["execute_tool"]));
});

/// An archive that is as it should be, with entries that may not be.
fn stored(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in entries {
        let (offset, size) = ((bytes.len() as u32).to_le_bytes(), (data.len() as u32).to_le_bytes());
        let length = (name.len() as u16).to_le_bytes();
        bytes.extend([&b"PK\x03\x04"[..], &[0; 14], &size, &size, &length, &[0; 2], name.as_bytes(), data].concat());
        directory
            .extend([&b"PK\x01\x02"[..], &[0; 16], &size, &size, &length, &[0; 12], &offset, name.as_bytes()].concat());
    }
    let (start, size) = ((bytes.len() as u32).to_le_bytes(), (directory.len() as u32).to_le_bytes());
    let count = (entries.len() as u16).to_le_bytes();
    bytes.extend(directory);
    bytes.extend([&b"PK\x05\x06"[..], &[0; 4], &count, &count, &size, &start, &[0; 2]].concat());
    bytes
}

/// All bytes are there already, so nothing waits.
fn at_once<T>(work: impl Future<Output = T>) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("waits for bytes that are there"),
    }
}
