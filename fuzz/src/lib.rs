//! What fuzz targets share: an allocator that counts, for targets that bound work and memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);

/// Counts allocations and the bytes in use. A target declares it as its `#[global_allocator]`.
pub struct CountingAllocator;

unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        COUNT.fetch_add(1, Ordering::Relaxed);
        TOTAL.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What some work allocated.
#[derive(Clone, Copy, Debug)]
pub struct Allocated {
    /// Allocations.
    pub count: usize,
    /// Bytes of all allocations together.
    pub bytes: usize,
    /// The most bytes in use at once.
    pub peak: usize,
}

/// Runs some work and says what it allocated.
pub fn allocated_by<R>(work: impl FnOnce() -> R) -> (R, Allocated) {
    let (in_use, count, total) =
        (IN_USE.load(Ordering::Relaxed), COUNT.load(Ordering::Relaxed), TOTAL.load(Ordering::Relaxed));
    PEAK.store(in_use, Ordering::Relaxed);
    let result = work();
    let allocated = Allocated {
        count: COUNT.load(Ordering::Relaxed) - count,
        bytes: TOTAL.load(Ordering::Relaxed) - total,
        peak: PEAK.load(Ordering::Relaxed).saturating_sub(in_use),
    };
    (result, allocated)
}
