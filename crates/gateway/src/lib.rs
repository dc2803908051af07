//! The decisions: who may ask which device to keep which promise, and the memory of it.
//!
//! [`Gateway`] is the one door. Families announce devices to it, doors list and call tools through
//! it, and nothing else reaches a device. It knows no protocol: neither HTTP nor the board dialect.

mod gateway;
mod lock;
mod principal;
mod settings;
mod tokens;
mod view;
mod watch;

pub use gateway::{Gateway, Request, Snapshot};
pub use lock::{Running, running};
pub use principal::{Principal, Role};
pub use settings::{OpenError, Settings};
pub use tokens::{DeviceAdmission, TokenView, Tokens};
pub use view::{AuditRecord, DeviceView, Event, EventPage, PublicTool, Shape, ToolList};
pub use watch::{Change, Watch};
