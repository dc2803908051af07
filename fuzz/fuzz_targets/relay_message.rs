//! Arbitrary text as a message of a voice server: every answer has the id of its request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_boards::relay::read_foreign_message;

fuzz_target!(|text: &str| read_foreign_message(text));
