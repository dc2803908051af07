//! Work on many documents or tools at once.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fewer items than this are not worth a thread.
const FEW: usize = 32;

/// How many items a thread takes at a time, so that none waits long for another.
const BATCH: usize = 8;

/// The result of `work` for each item, in their order.
pub fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get).min(items.len().div_ceil(FEW));
    if cores < 2 {
        return items.iter().map(work).collect();
    }
    let batches: Vec<&[T]> = items.chunks(BATCH).collect();
    let next = AtomicUsize::new(0);
    let run = || -> Vec<(usize, Vec<R>)> {
        let taken = std::iter::from_fn(|| {
            let index = next.fetch_add(1, Ordering::Relaxed);
            batches.get(index).map(|batch| (index, batch.iter().map(&work).collect()))
        });
        taken.collect()
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..cores).map(|_| scope.spawn(run)).collect();
        let mut done = run();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().flat_map(|(_, results)| results).collect()
}

/// The results of two pieces of work that are both worth a thread.
pub(crate) fn on_two_cores<A: Send, B>(one: impl FnOnce() -> A + Send, two: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let two = two();
        (one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), two)
    })
}
