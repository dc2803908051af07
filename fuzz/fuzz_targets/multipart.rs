//! Arbitrary bytes as a form of a board. What is found in it lies inside it, and a form that is read is read
//! the same behind a preamble.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_boards::vision::multipart;

fuzz_target!(|input: &[u8]| {
    let (head, body) = input.split_at(input.len().min(32));
    let _ = multipart::boundary(&String::from_utf8_lossy(head));
    for boundary in ["x", "----ESP32_CAMERA_BOUNDARY"] {
        let Ok(parts) = multipart::parse(body, boundary) else { continue };
        assert!(parts.len() <= 8);
        assert!(parts.iter().map(|part| part.name.len() + part.body.len()).sum::<usize>() <= body.len());
        let behind = [b"preamble\r\n", body].concat();
        assert_eq!(multipart::parse(&behind, boundary).map(|again| again.len()), Ok(parts.len()));
    }
});
