//! One host's connection: many streams over one socket, each with one write in flight.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::packet::{AdbPacket, CLSE, CNXN, MAX_PAYLOAD, OKAY, OPEN, VERSION, WRTE};
use super::{AdbdPhone, service};
use crate::phone::android::Android;

/// Streams open at once; adb clients use a handful.
const MOST_STREAMS: usize = 256;
/// Packets waiting for the socket; enough that streams rarely wait for each other.
const OUTBOX: usize = 64;

/// The host closed the stream.
#[derive(Debug)]
pub struct Closed;

/// A stream as the service sees it. Its halves may be used side by side.
pub struct AdbdStream {
    pub reader: StreamReader,
    pub writer: StreamWriter,
    pub closed: CancellationToken,
    /// Whether its service goes on when it is closed.
    pub ignores_hangup: Arc<AtomicBool>,
}

impl AdbdStream {
    pub async fn read(&mut self) -> Option<Vec<u8>> {
        self.reader.read().await
    }

    pub async fn write(&mut self, data: &[u8]) -> Result<(), Closed> {
        self.writer.write(data).await
    }
}

pub struct StreamReader {
    local: u32,
    remote: u32,
    outbox: mpsc::Sender<AdbPacket>,
    inbox: mpsc::Receiver<Vec<u8>>,
}

impl StreamReader {
    /// What the host writes next; `None` when it has closed the stream.
    pub async fn read(&mut self) -> Option<Vec<u8>> {
        let data = self.inbox.recv().await?;
        self.outbox.send(AdbPacket::new(OKAY, self.local, self.remote, Vec::new())).await.ok()?;
        Some(data)
    }
}

pub struct StreamWriter {
    local: u32,
    remote: u32,
    most: usize,
    outbox: mpsc::Sender<AdbPacket>,
    /// One permit for each write that the host has taken.
    taken: Arc<Semaphore>,
}

impl StreamWriter {
    pub async fn write(&mut self, data: &[u8]) -> Result<(), Closed> {
        for piece in data.chunks(self.most) {
            let packet = AdbPacket::new(WRTE, self.local, self.remote, piece);
            self.outbox.send(packet).await.map_err(|_| Closed)?;
            self.taken.acquire().await.map_err(|_| Closed)?.forget();
        }
        Ok(())
    }
}

/// A stream as the connection sees it.
struct Handle {
    inbox: mpsc::Sender<Vec<u8>>,
    taken: Arc<Semaphore>,
    closed: CancellationToken,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.taken.close();
        self.closed.cancel();
    }
}

/// Serves one host until it disconnects or breaks the protocol. Dropped, it hangs up at once, as a cable does that is
/// pulled.
pub(super) async fn run(socket: TcpStream, device: AdbdPhone) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let (mut reader, mut writer) = socket.into_split();
    let (outbox, mut waiting) = mpsc::channel::<AdbPacket>(OUTBOX);
    let mut streams: HashMap<u32, Handle> = HashMap::new();
    let mut services = JoinSet::new();
    let mut next = 0u32;
    let mut most = 4096;
    let mut send = AbortOnDropHandle::new(tokio::spawn(async move {
        while let Some(packet) = waiting.recv().await {
            writer.write_all(&packet.to_bytes()).await?;
        }
        writer.shutdown().await
    }));
    // Read in a task of its own: a read that is given up half way would lose what it has read.
    let (arrived, mut arriving) = mpsc::channel(1);
    let _receive = AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            let packet = AdbPacket::read(&mut reader).await;
            let is_last = !matches!(packet, Ok(Some(_)));
            if arrived.send(packet).await.is_err() || is_last {
                return;
            }
        }
    }));
    loop {
        let packet = tokio::select! {
            packet = arriving.recv() => packet.unwrap_or(Ok(None)),
            // A service that has ended closes its stream.
            Some(Ok(local)) = services.join_next(), if !services.is_empty() => {
                streams.remove(&local);
                continue;
            }
            sent = &mut send => return sent.map_err(io::Error::other).and_then(|sent| sent),
        };
        let Some(packet) = packet? else { return Ok(()) };
        match packet.command {
            CNXN => {
                most = packet.arg1.clamp(4096, MAX_PAYLOAD) as usize;
                let hello = AdbPacket::new(CNXN, VERSION, MAX_PAYLOAD, banner(&device));
                let _ = outbox.send(hello).await;
            }
            OPEN if streams.len() < MOST_STREAMS && packet.arg0 != 0 => {
                next = next.wrapping_add(1).max(1);
                let (local, remote) = (next, packet.arg0);
                let (inbox, reading) = mpsc::channel(1);
                let handle = Handle { inbox, taken: Arc::new(Semaphore::new(0)), closed: CancellationToken::new() };
                let taken = Arc::clone(&handle.taken);
                let stream = AdbdStream {
                    reader: StreamReader { local, remote, outbox: outbox.clone(), inbox: reading },
                    writer: StreamWriter { local, remote, most, outbox: outbox.clone(), taken },
                    closed: handle.closed.clone(),
                    ignores_hangup: Arc::default(),
                };
                streams.insert(local, handle);
                let name = String::from_utf8_lossy(&packet.data).trim_end_matches('\0').to_owned();
                services.spawn(serve(name, stream, device.clone()));
            }
            OPEN => {
                let _ = outbox.send(AdbPacket::new(CLSE, 0, packet.arg0, Vec::new())).await;
            }
            OKAY => {
                if let Some(handle) = streams.get(&packet.arg1) {
                    handle.taken.add_permits(1);
                }
            }
            WRTE => {
                // A host that does not wait for our OKAY loses the stream.
                let taken = streams.get(&packet.arg1).is_some_and(|handle| handle.inbox.try_send(packet.data).is_ok());
                if !taken {
                    streams.remove(&packet.arg1);
                    let _ = outbox.send(AdbPacket::new(CLSE, 0, packet.arg0, Vec::new())).await;
                }
            }
            CLSE => drop(streams.remove(&packet.arg1)),
            _ => {}
        }
    }
}

/// Runs a service and closes its stream, whichever way it ends.
async fn serve(name: String, mut stream: AdbdStream, device: AdbdPhone) -> u32 {
    let StreamWriter { local, remote, ref outbox, .. } = stream.writer;
    let outbox = outbox.clone();
    let known = service::find(&name);
    if let Some(service) = known {
        let _ = outbox.send(AdbPacket::new(OKAY, local, remote, Vec::new())).await;
        // A task of the phone, because it may outlive the connection.
        let phone = device.clone();
        let _ = device
            .spawn(async move {
                let (closed, ignores_hangup) = (stream.closed.clone(), stream.ignores_hangup.clone());
                let hung_up = async {
                    closed.cancelled().await;
                    if ignores_hangup.load(Ordering::Relaxed) {
                        std::future::pending::<()>().await;
                    }
                };
                tokio::select! {
                    () = service::run(service, &mut stream, &phone) => {}
                    () = hung_up => {}
                }
            })
            .await;
        let _ = outbox.send(AdbPacket::new(CLSE, local, remote, Vec::new())).await;
    } else {
        let _ = outbox.send(AdbPacket::new(CLSE, 0, remote, Vec::new())).await;
    }
    local
}

/// The banner: our identity and features. Newer transfer features are left out because they are not supported.
fn banner(device: &AdbdPhone) -> String {
    device.handset.with(|machine| {
        let features = match machine.setup.android {
            Android::V9 => "shell_v2,cmd,stat_v2",
            _ => "shell_v2,cmd,stat_v2,ls_v2,fixed_push_mkdir,apex",
        };
        let model = &machine.setup.model;
        format!(
            "device::ro.product.name=sinew_virtual;ro.product.model={model};ro.product.device=virtual;features={features}"
        )
    })
}
