//! A schema and a value, chosen together, must not exceed the work and memory they were given.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use libfuzzer_sys::fuzz_target;
use sinew_schema::{Cost, Meter, Validator};

const ROOM: Cost =
    Cost { schemas: 10_000, patterns: 256, pattern_bytes: 32 << 10, pattern_states: 32 << 10, properties: 64 };
const WORK: u64 = 50_000;
/// Bytes in use for each unit that may be spent, and for each byte of the schema; with room for the automata.
const EACH_UNIT: usize = 64;
const EACH_BYTE: usize = 512;
const ALWAYS: usize = 2 << 20;

/// Counts the bytes in use and the most there were.
struct Counted;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

fuzz_target!(|input: &[u8]| {
    let mut values = serde_json::Deserializer::from_slice(input).into_iter::<serde_json::Value>();
    let (Some(Ok(schema)), Some(Ok(value))) = (values.next(), values.next()) else { return };
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let Ok(validator) = Validator::compile(&schema, ROOM) else { return };
    let mut meter = Meter::new(WORK);
    let _ = validator.check(&value, &mut meter);
    assert!(meter.spent() <= WORK);
    let used = MOST.load(Ordering::Relaxed).saturating_sub(before);
    let allowed = ALWAYS + EACH_UNIT * WORK as usize + EACH_BYTE * input.len();
    assert!(used <= allowed, "{used} bytes in use, {allowed} allowed");
});
