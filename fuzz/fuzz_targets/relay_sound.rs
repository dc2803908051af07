//! Arbitrary bytes as a packet of sound of a board, and as a frame with a timestamp of a voice server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_boards::relay::read_foreign_sound;

fuzz_target!(|packet: &[u8]| read_foreign_sound(packet));
