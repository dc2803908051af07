//! The types that all crates share.
//!
//! A [`Tool`] is a named function with a schema; a [`Device`] is a thing that has tools. A [`Call`] asks a
//! device to run one and carries a way back to its [`Caller`]; the answer is an [`Outcome`] or a
//! [`ToolError`]. Every error that leaves Sinew is a row of the table in [`error`].
//!
//! Nothing here knows JSON-RPC, sockets, clocks or an async runtime.

#![warn(unreachable_pub)]

pub mod admission;
pub mod attributes;
pub mod call;
pub mod device;
pub mod digest;
pub mod error;
pub mod family;
pub mod finding;
pub mod header_arguments;
mod label;
pub mod lenient;
mod live;
pub mod manifest;
pub mod outcome;
pub mod plain_http;
pub mod portable;
pub mod references;
pub mod refusals;
pub mod schema_size;
pub mod settings;
pub mod slots;
pub mod spelling;
mod stand_in;
pub mod text;
pub mod tool;
mod trace;
pub mod wire_form;

pub use admission::{Admission, Admit, Applicant, Bearer, Enrol, Enrolment, Presences, TokenId, network_of};
pub use attributes::Attributes;
pub use call::{
    Answer, Args, Attachment, Call, CallOrigin, Caller, Consent, ConsentRequest, ConsentWay, LogLevel, NestedCalls,
    PendingApproval, PlannedCall, Question, REDACTED, Silent, ToolAccess,
};
pub use device::{
    Announce, BoxFuture, Device, DeviceEvent, DeviceId, DeviceInfo, DeviceKey, LeaveReason, Notice, Picture,
    ShownScreen, Status,
};
pub use digest::Digest;
pub use error::{ErrorKind, ToolError};
pub use family::{Family, FamilyName, Reach, TextTrust};
pub use label::{MAX_LABEL_LENGTH, MAX_LABELS, check_labels, is_label};
pub use live::{LivePicture, LiveRequest};
pub use manifest::{Manifest, ProtocolVersion};
pub use outcome::{Content, Outcome, ResourceLink};
pub use stand_in::StandIn;
pub use tool::{Audience, Effect, Hints, LOOK, Schema, StepSource, Tool, ToolUse, Toolset};
pub use trace::TraceParent;

/// Tool versions follow semantic versioning.
pub use semver::Version;
/// The JSON value type of all crates; tools are written with `json!`.
pub use serde_json::{Value, json};
