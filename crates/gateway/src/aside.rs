//! Work that takes longer than the tasks on the same thread should wait.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does work that takes long, or waits for a disk or for another thread, while other threads take over the tasks of this
/// one.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
