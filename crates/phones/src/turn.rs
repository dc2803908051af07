//! Whose turn it is on a phone: tools that act run one at a time, and the steps of one `run_steps` stay together.

use std::sync::PoisonError;

use sinew_tool::Caller;
use tokio::sync::{Mutex, MutexGuard};

tokio::task_local! {
    /// The turn that the work under way has already.
    static HELD: usize;
}

/// The turn to act on one phone.
#[derive(Default)]
pub struct Turn(Mutex<()>);

impl Turn {
    /// Waits for the turn. A step of a sequence that has it does not wait.
    pub(crate) async fn take(&self) -> Option<MutexGuard<'_, ()>> {
        match HELD.try_with(|held| *held == self.address()).unwrap_or(false) {
            true => None,
            false => Some(self.0.lock().await),
        }
    }

    /// The same for a call, whose time does not run while it waits.
    pub(crate) async fn take_for(&self, caller: &dyn Caller) -> Option<MutexGuard<'_, ()>> {
        if let Ok(free) = self.0.try_lock() {
            return Some(free);
        }
        caller.turn_awaited();
        let turn = self.take().await;
        caller.turn_came();
        turn
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// The turn of a sequence of steps.
pub(crate) struct SequenceTurn<'a> {
    turn: &'a Turn,
    guard: std::sync::Mutex<Option<MutexGuard<'a, ()>>>,
}

impl<'a> SequenceTurn<'a> {
    pub(crate) async fn take(turn: &'a Turn) -> SequenceTurn<'a> {
        SequenceTurn { turn, guard: std::sync::Mutex::new(turn.take().await) }
    }

    /// Makes a step, as part of the sequence.
    pub(crate) async fn make<T>(&self, step: impl Future<Output = T>) -> T {
        HELD.scope(self.turn.address(), step).await
    }

    /// Waits for something that may take long, such as a person. Others may act meanwhile.
    pub(crate) async fn wait_for<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = std::future::ready(()) => {}
        }
        drop(self.swap(None));
        let done = work.await;
        self.swap(self.turn.take().await);
        done
    }

    fn swap(&self, guard: Option<MutexGuard<'a, ()>>) -> Option<MutexGuard<'a, ()>> {
        std::mem::replace(&mut *self.guard.lock().unwrap_or_else(PoisonError::into_inner), guard)
    }
}
