//! Announcements of servers by multicast DNS, from anybody on the network.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_servers::mdns::MdnsAnswers;

fuzz_target!(|bytes: &[u8]| {
    let mut answers = MdnsAnswers::default();
    // Several packets of one search.
    for packet in bytes.split(|byte| *byte == 0xfe) {
        let _ = answers.read(packet);
    }
    for server in answers.servers() {
        assert!(server.path.starts_with('/') && server.port != 0 && !server.name.is_empty());
    }
    let _ = answers.further_question();
});
