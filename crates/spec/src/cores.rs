//! Work on many documents or tools at once.

use std::num::NonZero;

/// Fewer items than this are not worth a thread.
const FEW: usize = 32;

/// The result of `work` for each item, in their order.
pub fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get).min(items.len().div_ceil(FEW));
    if cores < 2 {
        return items.iter().map(work).collect();
    }
    let chunks = items.chunks(items.len().div_ceil(cores));
    std::thread::scope(|scope| {
        let threads: Vec<_> = chunks.map(|chunk| scope.spawn(|| chunk.iter().map(&work).collect::<Vec<R>>())).collect();
        let results = threads.into_iter().map(|thread| thread.join());
        results.flat_map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// The results of two pieces of work that are both worth a thread.
pub(crate) fn on_two_cores<A: Send, B>(one: impl FnOnce() -> A + Send, two: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let two = two();
        (one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), two)
    })
}
