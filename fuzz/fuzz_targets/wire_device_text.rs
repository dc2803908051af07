//! Arbitrary frames into a device board, in both dialects. In its own dialect it answers with JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use sinew_wire::device::{Board, BoardDialect, Property, Reply, ToolSpec};

fuzz_target!(|input: &[u8]| {
    let mut standard = board(BoardDialect::Standard);
    let mut firmware = board(BoardDialect::Firmware);
    for piece in input.split(|byte| *byte == 0xff) {
        let text = String::from_utf8_lossy(piece);
        if let Some(answer) = standard.handle_text(&text) {
            assert!(serde_json::from_str::<Value>(&answer).is_ok(), "{answer}");
        }
        let _ = firmware.handle_text(&text);
    }
});

fn board(dialect: BoardDialect) -> Board {
    let spec = ToolSpec::new("t", "A tool")
        .with(Property::integer_or("n", 0..=100, 1))
        .with(Property::boolean_or("b", true))
        .with(Property::text("s"));
    Board::new("fuzzed", "1").speaking(dialect).tool(spec, |arguments| match arguments.boolean("b")? {
        true => Ok(Reply::from(arguments.text("s")?)),
        false => Ok(Reply::jpeg(arguments.text("s")?.as_bytes())),
    })
}
