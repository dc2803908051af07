//! Arbitrary text as a document that is checked, and as two schemas that are compared. Whatever the text says, neither
//! takes more than a fixed amount of work and memory. Allocations count the work, since every step of both makes some.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use sinew_fuzz::{Allocated, CountingAllocator, allocated_by};
use sinew_spec::lint::{self, LintConfig};
use sinew_spec::{Document, compare};
use sinew_tool::Tool;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A tenth of a second on a usual machine, for texts of the few kilobytes that a fuzzer writes.
const MOST_ALLOCATIONS: usize = 2_000_000;
const MOST_MEMORY: usize = 200 << 20;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (_, checked) = allocated_by(|| lint::check(&Document::parse(text), &LintConfig::default()));
    assert_bounded("the document", checked, text.len());
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if let (Some(Ok(old)), Some(Ok(new))) = (values.next(), values.next()) {
        let tool = |schema: Value| Tool::new("fuzzed", "", schema.clone()).with_output_schema(schema);
        let (old, new) = (tool(old), tool(new));
        let (_, compared) = allocated_by(|| compare::diff(&[old], &[new]));
        assert_bounded("the pair", compared, text.len());
    }
});

fn assert_bounded(what: &str, allocated: Allocated, length: usize) {
    assert!(allocated.count <= MOST_ALLOCATIONS, "{what} of {length} bytes takes too much work: {allocated:?}");
    assert!(allocated.peak <= MOST_MEMORY, "{what} of {length} bytes takes too much memory: {allocated:?}");
}
