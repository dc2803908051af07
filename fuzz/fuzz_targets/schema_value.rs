//! A schema and a value, chosen together, must not exceed the work and memory they were given.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_fuzz::{CountingAllocator, allocated_by};
use sinew_schema::{Cost, Meter, Validator};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const ROOM: Cost =
    Cost { schemas: 10_000, patterns: 256, pattern_bytes: 32 << 10, pattern_states: 32 << 10, properties: 64 };
const WORK: u64 = 50_000;
/// Bytes in use for each unit that may be spent, and for each byte of the schema; with room for the automata.
const EACH_UNIT: usize = 64;
const EACH_BYTE: usize = 512;
const ALWAYS: usize = 2 << 20;

fn check<E>(compiled: Result<Validator, E>, value: &serde_json::Value) {
    let Ok(validator) = compiled else { return };
    let mut meter = Meter::new(WORK);
    let _ = validator.check(value, &mut meter);
    assert!(meter.spent() <= WORK);
}

fuzz_target!(|input: &[u8]| {
    let mut values = serde_json::Deserializer::from_slice(input).into_iter::<serde_json::Value>();
    let (Some(Ok(schema)), Some(Ok(value))) = (values.next(), values.next()) else { return };
    let ((), allocated) = allocated_by(|| {
        check(Validator::compile(&schema, ROOM), &value);
        check(Validator::compile_readable(&schema, ROOM), &value);
    });
    let allowed = ALWAYS + EACH_UNIT * WORK as usize + EACH_BYTE * input.len();
    assert!(allocated.peak <= allowed, "{allocated:?}, {allowed} allowed");
});
