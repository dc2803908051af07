//! Arbitrary text as a document that is printed: no word of it is lost unless it is named, in Markdown as in HTML, and
//! printing again changes nothing.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use sinew_spec::{Document, Format, print};

fuzz_target!(|input: &[u8]| {
    let document = Document::from_bytes(input);
    if document.unreadable().is_some() {
        return;
    }
    let rendered = print::render_document("fuzzed", &document);
    assert_eq!(rendered.lost, print::render_html_document("fuzzed", &document).lost, "{}", rendered.text);
    let again = print::render_document("fuzzed", &Document::parse(&rendered.text));
    assert!(
        again.text.split_whitespace().eq(rendered.text.split_whitespace()),
        "{}\n=====\n{}",
        rendered.text,
        again.text
    );
    // The attributes of HTML are markup.
    if document.format == Format::Markdown && !document.text.contains('<') {
        let known: HashSet<String> =
            names(&rendered.text).chain(rendered.lost.iter().flat_map(|(_, lost)| names(lost))).collect();
        let lost: Vec<String> = names(&document.text).filter(|name| !known.contains(name)).collect();
        assert!(lost.is_empty(), "lost {lost:?}\n{}", rendered.text);
    }
});

/// Words with letters and digits, which no heading, label or type of the canonical form replaces.
fn names(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() >= 8);
    let is_name = |word: &&str| word.bytes().any(|byte| byte.is_ascii_digit()) && word.contains(char::is_alphabetic);
    words.filter(is_name).map(str::to_lowercase)
}
