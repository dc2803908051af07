//! A board as the gateway sees it: its info, its tools, and a queue to its task.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use sinew_tool::{
    BoxFuture, Call, Caller, Device, DeviceInfo, DeviceKey, ErrorKind, LeaveReason, Outcome, Picture, ToolError,
    Toolset, Value, json,
};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::pipe::Received;
use crate::queue::Queue;
use crate::vision::gallery::Gallery;

/// One connection of one board.
pub struct BoardDevice {
    info: ArcSwap<DeviceInfo>,
    tools: ArcSwap<Toolset>,
    pub(crate) commands: Queue<Box<BoardCommand>>,
    /// Calls that are not finished. Calls are limited, and not the queue, so that a cancellation always fits.
    open: AtomicUsize,
    most_open: usize,
    last_number: AtomicU64,
    /// Who asked for the call in flight, where they look at its photos themselves.
    asker: Mutex<Option<Arc<dyn Caller>>>,
    gallery: Arc<Gallery>,
}

/// A command to a board's task.
pub(crate) enum BoardCommand {
    Call {
        number: u64,
        call: Call,
        reply: oneshot::Sender<Result<Outcome, ToolError>>,
    },
    /// The caller gave up the call with this number.
    Cancel(u64),
    /// A picture that the board uploaded, for the call in flight.
    Picture(Picture),
    /// A message of the board, from a pipe that shares its connection.
    Received(QueuedMessage),
    /// The board restarted; its tools may have changed. The permit is held while they are listed.
    Refresh(OwnedSemaphorePermit),
    /// The name or the labels of the board changed, by which it may be relayed.
    CheckRelayed,
    /// The connection to the broker broke: what was sent may be lost.
    ConnectionLost,
    /// The board is gone.
    Gone(LeaveReason),
}

/// A message, and the memory it holds until it is read.
pub(crate) struct QueuedMessage {
    pub(crate) received: Received,
    pub(crate) _memory: OwnedSemaphorePermit,
}

impl BoardDevice {
    pub(crate) fn new(info: DeviceInfo, most_open: usize, gallery: Arc<Gallery>) -> BoardDevice {
        BoardDevice {
            info: ArcSwap::from_pointee(info),
            tools: ArcSwap::from_pointee(Toolset::default()),
            commands: Queue::new(),
            open: AtomicUsize::new(0),
            most_open,
            last_number: AtomicU64::new(0),
            asker: Mutex::new(None),
            gallery,
        }
    }

    pub(crate) fn key(&self) -> DeviceKey {
        self.info.load().key.clone()
    }

    pub(crate) fn set_info(&self, info: DeviceInfo) {
        self.info.store(Arc::new(info));
    }

    /// Sets an attribute of the device.
    pub(crate) fn set_attribute(&self, name: &str, value: Value) {
        let mut info = DeviceInfo::clone(&self.info.load());
        info.attributes.insert(name.to_owned(), value);
        self.set_info(info);
    }

    /// Sets an attribute; true if that changed it.
    pub(crate) fn set_attribute_if_new(&self, name: &str, value: &str) -> bool {
        let is_new = self.info.load().attributes.get(name).is_none_or(|known| known != value);
        if is_new {
            self.set_attribute(name, json!(value));
        }
        is_new
    }

    pub(crate) fn set_asker(&self, asker: Option<Arc<dyn Caller>>) {
        *self.asker.lock().unwrap_or_else(PoisonError::into_inner) = asker;
    }

    pub(crate) fn asker(&self) -> Option<Arc<dyn Caller>> {
        self.asker.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_tools(&self, tools: Arc<Toolset>) {
        self.tools.store(tools);
    }

    fn away(&self) -> ToolError {
        let message = format!(
            "{} is not connected any more; nothing was sent. Try again when it is back.",
            self.info.load().suggested_id
        );
        ToolError::new(ErrorKind::DeviceAway, message)
    }
}

impl Device for BoardDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        self.info.load_full()
    }

    fn tools(&self) -> Arc<Toolset> {
        self.tools.load_full()
    }

    fn pictures(&self) -> Vec<Picture> {
        self.gallery.of(&self.info.load().key)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let mut entry = OpenCall::new(self)?;
            let (reply, answer) = oneshot::channel();
            let command = BoardCommand::Call { number: entry.number, call, reply };
            if !self.commands.push(Box::new(command)) {
                entry.done = true;
                return Err(self.away());
            }
            let answer = answer.await;
            entry.done = true;
            answer.unwrap_or_else(|_| Err(self.away()))
        })
    }
}

/// A call that is not finished. Dropping it cancels the call.
struct OpenCall<'a> {
    device: &'a BoardDevice,
    number: u64,
    done: bool,
}

impl<'a> OpenCall<'a> {
    fn new(device: &'a BoardDevice) -> Result<OpenCall<'a>, ToolError> {
        if device.open.fetch_add(1, Ordering::Relaxed) >= device.most_open {
            device.open.fetch_sub(1, Ordering::Relaxed);
            let message = format!(
                "{} has {} calls waiting already, as many as its queue holds; nothing was sent. Try again later.",
                device.info.load().suggested_id,
                device.most_open
            );
            return Err(ToolError::new(ErrorKind::Busy, message));
        }
        Ok(OpenCall { device, number: device.last_number.fetch_add(1, Ordering::Relaxed), done: false })
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.device.open.fetch_sub(1, Ordering::Relaxed);
        if !self.done {
            // If the queue is closed, the board is gone and the call with it.
            self.device.commands.push(Box::new(BoardCommand::Cancel(self.number)));
        }
    }
}
