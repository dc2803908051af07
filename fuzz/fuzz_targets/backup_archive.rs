//! Archives of backups: whatever is in the file, reading it ends, and no file leads out of the state directory.

#![no_main]

use std::io::Read;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = sinew_gateway::read_backup(bytes, bytes.len() as u64, |file, content| {
        assert!(!file.path.starts_with('/') && file.path.split('/').all(|part| !matches!(part, "" | "." | "..")));
        let mut read = Vec::new();
        content.take(1 << 20).read_to_end(&mut read)?;
        assert!(read.len() as u64 <= file.size);
        Ok(())
    });
});
