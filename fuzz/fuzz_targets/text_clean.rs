//! Any text, cleaned: nothing hidden is left, and cleaning again changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_tool::text::{TABLE, Treatment, clean, clean_line};

fuzz_target!(|input: (&str, u8)| {
    let (text, max) = input;
    let cleaned = clean(text, usize::MAX);
    assert_eq!(clean(&cleaned, usize::MAX), cleaned);
    for character in cleaned.chars() {
        let row = TABLE.iter().find(|(from, to, ..)| (*from..=*to).contains(&(character as u32)));
        let is_kept = row.is_none_or(|row| matches!(row.2, Treatment::Kept | Treatment::KeptInPlace));
        assert!(is_kept, "{character:?}");
    }
    let line = clean_line(text, usize::from(max));
    assert!(line.chars().count() <= usize::from(max) && !line.contains(['\n', '\t']));
});
