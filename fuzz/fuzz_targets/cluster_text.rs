//! Messages and records of a cluster, from anybody who reaches its NATS server.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_cluster::foreign::{read_packets, read_record};

fuzz_target!(|bytes: &[u8]| {
    // Several packets of one connection.
    read_packets(bytes.split(|byte| *byte == 0xfe));
    if let Some(end) = bytes.iter().position(|byte| *byte == b'\n')
        && let Ok(key) = std::str::from_utf8(&bytes[..end])
    {
        read_record(key, &bytes[end + 1..]);
    }
});
