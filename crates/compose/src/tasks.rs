//! Tasks that stop together.

use std::io;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

#[derive(Default)]
pub(crate) struct TaskGroup {
    shutdown: CancellationToken,
    tasks: JoinSet<io::Result<()>>,
}

impl TaskGroup {
    /// Starts what runs until the token it is given is cancelled.
    pub(crate) fn spawn<F>(&mut self, start: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        self.tasks.spawn(start(self.shutdown.clone()));
    }

    pub(crate) fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    /// Waits until one of the tasks has ended, which none should do by itself; says how.
    pub(crate) async fn failed(&mut self) -> String {
        match self.tasks.join_next().await {
            None => std::future::pending().await,
            Some(Ok(Ok(()))) => "a listener closed by itself".to_owned(),
            Some(Ok(Err(error))) => format!("a listener failed: {error}"),
            Some(Err(error)) => format!("the task of a listener panicked: {error}"),
        }
    }

    /// Asks the tasks to stop and waits until all of them have.
    pub(crate) async fn stop(&mut self) {
        self.shutdown.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            if let Ok(Err(error)) = ended {
                tracing::warn!("while closing: {error}");
            }
        }
    }
}
