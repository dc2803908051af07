//! Measures how long reading an APK takes and how many bytes are read: best of seven.
//! `cargo run --release -p sinew-apps --example apk_speed FILE.apk …`

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use sinew_apps::apk::{ApkError, ApkFile, ReadAt};
use sinew_apps::offer::{self, ProtocolNames};
use sinew_tool::BoxFuture;

struct Counted {
    file: ApkFile,
    bytes: AtomicU64,
    reads: AtomicU64,
}

impl ReadAt for Counted {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read_at(&self, offset: u64, length: usize) -> BoxFuture<'_, Result<Vec<u8>, ApkError>> {
        self.bytes.fetch_add(length as u64, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.file.read_at(offset, length)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let mut best = f64::MAX;
        let mut line = String::new();
        for _ in 0..7 {
            let started = Instant::now();
            let source =
                Counted { file: ApkFile::open(Path::new(&path))?, bytes: AtomicU64::new(0), reads: AtomicU64::new(0) };
            let (_, offer) = offer::read(&source, &ProtocolNames::default()).await?;
            best = best.min(started.elapsed().as_secs_f64() * 1000.0);
            let (bytes, reads) = (source.bytes.into_inner(), source.reads.into_inner());
            let share = bytes as f64 * 100.0 / source.file.len() as f64;
            line = format!("{} tools; {bytes} bytes ({share:.2} %) in {reads} reads", offer.tools.len());
        }
        println!("{path}: {best:.2} ms; {line}");
    }
    Ok(())
}
