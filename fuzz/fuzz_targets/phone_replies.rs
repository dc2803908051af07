//! Arbitrary bytes as what an adb server and a phone send: a block, the frames of a shell, the output of an old one, the
//! pieces of a file, the names in a folder. Nothing is read beyond its limit, and an end in the middle is an error.
#![no_main]

use std::io::Cursor;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use libfuzzer_sys::fuzz_target;
use sinew_phones::adb::server::{AdbStream, read_block};
use sinew_phones::adb::shell::{read_frames, read_plain};
use sinew_phones::adb::sync::{read_file, read_folder};
use sinew_phones::adb::track;

const LIMIT: usize = 1000;

fuzz_target!(|input: &[u8]| {
    let stream = || -> AdbStream { Box::new(tokio::io::join(Cursor::new(input.to_vec()), tokio::io::sink())) };
    if let Ok(text) = at_once(read_block(&mut stream())) {
        for entry in track::parse(&text) {
            assert!(!entry.serial.is_empty() && !entry.state.is_empty());
            let _ = track::remedy(&entry.state);
        }
    }
    if let Ok(output) = at_once(read_frames(&mut stream(), "x", LIMIT)) {
        assert!(output.stdout.len() <= LIMIT && output.stderr.len() <= LIMIT);
        let _ = output.text();
    }
    if let Ok(output) = at_once(read_plain(&mut stream(), "x", LIMIT)) {
        assert!(output.stdout.len() <= LIMIT);
    }
    let mut bytes = Vec::new();
    let _ = at_once(read_file(&mut stream(), &mut bytes, LIMIT as u64));
    assert!(bytes.len() <= LIMIT);
    if let Ok(entries) = at_once(read_folder(&mut stream())) {
        assert!(entries.iter().all(|entry| entry.name.len() <= 3 * LIMIT));
    }
});

/// All bytes are there already, so nothing waits.
fn at_once<T>(work: impl Future<Output = T>) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits for more than there is"),
    }
}
