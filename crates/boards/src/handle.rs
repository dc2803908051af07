//! What the gateway holds of a board: its particulars, its tools, and a way to its task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use sinew_tool::{BoxFuture, Call, Device, DeviceInfo, ErrorKind, Outcome, ToolError, Toolset};
use tokio::sync::{mpsc, oneshot};

/// One stay of one board.
pub struct BoardDevice {
    info: ArcSwap<DeviceInfo>,
    tools: ArcSwap<Toolset>,
    commands: mpsc::UnboundedSender<Command>,
    /// Calls that have entered and not left. This, not the channel, bounds the queue, so that a
    /// cancellation always finds room.
    open: AtomicUsize,
    most_open: usize,
    last_order: AtomicU64,
}

/// What a board's task is asked to do. Small, because a channel reserves room for 32 of them.
pub(crate) enum Command {
    Call(Box<Order>),
    /// The caller gave the order of this number up.
    Cancel(u64),
}

pub(crate) struct Order {
    pub(crate) number: u64,
    pub(crate) call: Call,
    pub(crate) reply: oneshot::Sender<Result<Outcome, ToolError>>,
}

impl BoardDevice {
    pub(crate) fn new(info: DeviceInfo, most_open: usize) -> (Arc<BoardDevice>, mpsc::UnboundedReceiver<Command>) {
        let (commands, receiver) = mpsc::unbounded_channel();
        let device = BoardDevice {
            info: ArcSwap::from_pointee(info),
            tools: ArcSwap::from_pointee(Toolset::default()),
            commands,
            open: AtomicUsize::new(0),
            most_open,
            last_order: AtomicU64::new(0),
        };
        (Arc::new(device), receiver)
    }

    pub(crate) fn set_info(&self, info: DeviceInfo) {
        self.info.store(Arc::new(info));
    }

    pub(crate) fn set_tools(&self, tools: Arc<Toolset>) {
        self.tools.store(tools);
    }

    fn away(&self) -> ToolError {
        let message = format!(
            "{} is not connected any more; nothing was sent. Try again when the board is back.",
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

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let mut entry = Entry::new(self)?;
            let (reply, answer) = oneshot::channel();
            let order = Box::new(Order { number: entry.number, call, reply });
            if self.commands.send(Command::Call(order)).is_err() {
                entry.done = true;
                return Err(self.away());
            }
            let answer = answer.await;
            entry.done = true;
            answer.unwrap_or_else(|_| Err(self.away()))
        })
    }
}

/// A call inside the device. Dropped unfinished, it cancels.
struct Entry<'a> {
    device: &'a BoardDevice,
    number: u64,
    done: bool,
}

impl<'a> Entry<'a> {
    fn new(device: &'a BoardDevice) -> Result<Entry<'a>, ToolError> {
        if device.open.fetch_add(1, Ordering::Relaxed) >= device.most_open {
            device.open.fetch_sub(1, Ordering::Relaxed);
            let message = format!(
                "{} has {} calls waiting already, as many as its queue holds; nothing was sent. Try again later.",
                device.info.load().suggested_id,
                device.most_open
            );
            return Err(ToolError::new(ErrorKind::Busy, message));
        }
        Ok(Entry { device, number: device.last_order.fetch_add(1, Ordering::Relaxed), done: false })
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.device.open.fetch_sub(1, Ordering::Relaxed);
        if !self.done {
            // An error means that the board is gone and the order with it.
            let _ = self.device.commands.send(Command::Cancel(self.number));
        }
    }
}
