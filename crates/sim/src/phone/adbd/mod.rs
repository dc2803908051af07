//! The phone as adb sees it: adbd's transport over TCP, without authentication.
//!
//! The real `adb connect` works against it. [`packet`] is the wire, [`connection`] the streams on it,
//! [`service`] what a stream can be opened to, [`sync`] file transfer, and [`shell`] the commands. No
//! command of the host is ever run: the shell is an interpreter of its own, over the virtual phone and a
//! few files in memory.

mod connection;
pub(super) mod files;
mod packet;
mod service;
pub mod shell;
mod sync;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::handset::Handset;
use files::Files;

/// What every connection to one phone shares.
#[derive(Clone)]
struct AdbdPhone {
    handset: Handset,
    /// What `adb reverse` asked for: the phone's port, and the host's.
    reversed: Arc<Mutex<Vec<(String, String)>>>,
    /// Connections, and services, some of which outlive their connection.
    tasks: TaskTracker,
    /// The phone is switched off.
    shutdown: CancellationToken,
}

impl AdbdPhone {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.handset.files()
    }

    /// Runs something until it ends or the phone is switched off.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<Option<()>> {
        self.tasks.spawn(self.shutdown.clone().run_until_cancelled_owned(work))
    }
}

/// Serves one phone to whoever connects, until told to stop. Dropped, it ends everything that runs on the phone.
pub async fn run(listener: TcpListener, handset: Handset, shutdown: CancellationToken) -> io::Result<()> {
    let shutdown = shutdown.child_token();
    let _ends_with_this = shutdown.clone().drop_guard();
    let device = AdbdPhone { handset, reversed: Arc::default(), tasks: TaskTracker::new(), shutdown };
    loop {
        let accepted = tokio::select! {
            () = device.shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (socket, peer) = accepted?;
        // An unplugged phone answers nobody.
        if !device.handset.is_plugged_in() {
            continue;
        }
        let phone = device.clone();
        device.spawn(async move {
            let unplugged = phone.handset.clone();
            tokio::select! {
                () = unplugged.unplugged() => {}
                ended = connection::run(socket, phone) => {
                    if let Err(error) = ended {
                        tracing::debug!(%peer, %error, "adb connection ended");
                    }
                }
            }
        });
    }
    device.tasks.close();
    device.tasks.wait().await;
    Ok(())
}
