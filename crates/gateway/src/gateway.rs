//! The one door.

use std::sync::Arc;
use std::time::Duration;

use sinew_tool::{Announce, Args, Caller, DeviceEvent, Digest, ErrorKind, Outcome, ToolError, Value};

use crate::principal::Principal;
use crate::settings::{OpenError, Settings};
use crate::tokens::Tokens;
use crate::view::{AuditRecord, DeviceView, EventPage, Shape, ToolList};
use crate::watch::{Change, Watch};

/// Decides who may ask which device to keep which promise, and remembers that it happened.
/// Cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    tokens: Tokens,
    changes: tokio::sync::broadcast::Sender<Change>,
}

/// Devices and tools at one moment; immutable.
pub struct Snapshot {
    devices: Vec<DeviceView>,
}

impl Snapshot {
    pub fn devices(&self) -> Vec<DeviceView> {
        self.devices.clone()
    }
}

/// One call by public name.
#[derive(Clone)]
pub struct Request {
    pub who: Principal,
    /// The public name, as listed in `shape`.
    pub name: String,
    pub args: Args,
    pub shape: Shape,
    pub caller: Arc<dyn Caller>,
    /// How long the answer may take; the settings' budget when `None`.
    pub budget: Option<Duration>,
    /// The door's word in the audit: `mcp`, `rest`, `stdio`, `api`.
    pub door: &'static str,
}

impl Gateway {
    pub fn open(settings: Settings) -> Result<Gateway, OpenError> {
        let tokens = Tokens::new(settings.token.unwrap_or_else(|| "snw_unfinished".to_owned()));
        Ok(Gateway { inner: Arc::new(Inner { tokens, changes: tokio::sync::broadcast::channel(16).0 }) })
    }

    /// Where families push their events.
    pub fn announce(&self) -> Announce {
        let gateway = self.clone();
        Arc::new(move |event| gateway.apply(event))
    }

    /// The only writer. Never blocks.
    pub fn apply(&self, _event: DeviceEvent) {}

    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::new(Snapshot { devices: Vec::new() })
    }

    pub async fn call(&self, request: Request) -> Result<Outcome, ToolError> {
        Err(ToolError::new(ErrorKind::UnknownTool, format!("unknown tool `{}`", request.name)))
    }

    /// Calls a tool of a device that is named by id or speaking name. `tool` is the device's own name
    /// for it, or a public one.
    #[allow(clippy::too_many_arguments)]
    pub async fn call_on(
        &self,
        _who: Principal,
        device: &str,
        _tool: &str,
        _args: Args,
        _caller: Arc<dyn Caller>,
        _budget: Option<Duration>,
        _door: &'static str,
    ) -> Result<Outcome, ToolError> {
        Err(ToolError::new(ErrorKind::UnknownDevice, format!("unknown device `{device}`")))
    }

    /// The tools a caller sees.
    pub fn list(&self, _who: &Principal, _shape: Shape) -> Arc<ToolList> {
        Arc::new(ToolList { tools: Vec::new(), digest: Digest::of(&Value::Null) })
    }

    /// All known devices, by id; also those that are away.
    pub fn devices(&self) -> Vec<DeviceView> {
        Vec::new()
    }

    /// A device by id or speaking name.
    pub fn find_device(&self, _text: &str) -> Option<DeviceView> {
        None
    }

    /// Gives a device a speaking name; an empty one takes it away.
    pub fn rename(&self, device: &str, _name: &str) -> Result<DeviceView, ToolError> {
        Err(ToolError::new(ErrorKind::UnknownDevice, format!("unknown device `{device}`")))
    }

    /// Events after a cursor, oldest first.
    pub async fn events(
        &self,
        _device: Option<&str>,
        _since: Option<&str>,
        _limit: usize,
    ) -> Result<EventPage, ToolError> {
        Ok(EventPage { events: Vec::new(), next: "0".to_owned(), dropped: 0 })
    }

    /// Changes of the folded list and of everything else.
    pub fn watch(&self) -> Watch {
        Watch { changes: self.inner.changes.subscribe() }
    }

    /// Like [`Gateway::watch`], where [`Change::Tools`] speaks of exactly the list this caller sees.
    pub fn watch_as(&self, _who: &Principal, _shape: Shape) -> Watch {
        self.watch()
    }

    pub fn tokens(&self) -> &Tokens {
        &self.inner.tokens
    }

    /// The newest calls, newest first.
    pub async fn audit(&self, _limit: usize) -> Result<Vec<AuditRecord>, ToolError> {
        Ok(Vec::new())
    }

    /// What a model should know before it calls anything.
    pub fn instructions(&self) -> String {
        String::new()
    }

    /// Writes the address into the lock file, once it is known.
    pub fn set_url(&self, _url: &str) {}

    /// Puts everything on disk and lets go of the state directory.
    pub async fn close(&self) {}
}
