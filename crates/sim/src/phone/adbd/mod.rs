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
}

impl AdbdPhone {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.handset.files()
    }
}

/// Serves one phone to whoever connects, until told to stop.
pub async fn run(listener: TcpListener, handset: Handset, shutdown: CancellationToken) -> io::Result<()> {
    let device = AdbdPhone { handset, reversed: Arc::default() };
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (socket, peer) = accepted?;
        // An unplugged phone answers nobody.
        if !device.handset.is_plugged_in() {
            continue;
        }
        let (device, shutdown) = (device.clone(), shutdown.clone());
        tasks.spawn(async move {
            let unplugged = device.handset.clone();
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = unplugged.unplugged() => {}
                ended = connection::run(socket, device) => {
                    if let Err(error) = ended {
                        tracing::debug!(%peer, %error, "adb connection ended");
                    }
                }
            }
        });
    }
    tasks.close();
    tasks.wait().await;
    Ok(())
}
