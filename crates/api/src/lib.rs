//! The HTTP interface of a gateway: the requests and answers of `/api/v1`, the table of all routes, and who may use
//! each.
//!
//! The gateway answers with these types, the command line and the benchmark read them, and the OpenAPI document is
//! generated from them. Nothing here opens a socket.

#![warn(unreachable_pub)]

mod cluster;
mod devices;
mod document;
mod health;
mod overview;
mod paged;
mod people;
mod policy;
mod routes;
mod routines;
mod servers;
mod tokens;
mod tools;

use serde_json::{Map, Value};

pub use cluster::{ClusterNode, ClusterState};
pub use devices::{
    Accept, Approve, Changes, DeviceLease, DeviceSummary, Devices, EventRecord, Events, HeldForm, Labels, Pin,
    QuarantinedTool, Released, Rename, Reserve, Reserved, ToolChange, WaitingBoard, WaitingBoards,
};
pub use document::document;
pub use health::{
    BrokerPresences, GatewayStatus, HealthStatus, NotReadyReason, Readiness, RefusedRequest, RequestFailure,
    TOKEN_EXPIRED,
};
pub use overview::{CallMinute, FailedCall, Overview};
pub use paged::Paged;
pub use people::{CreatedPerson, LoginLink, NewPerson, People, Person, PersonRole, SignInEntry, SignIns};
pub use policy::{
    ApprovalVerdict, Approvals, CheckPolicy, Covers, Decide, Effects, Explain, Explained, ExplainedRule, Grant, Grants,
    MarkedTool, PersonLogin, PolicyWarning, PolicyWarnings, WaitingCall,
};
pub use routes::{Access, Method, Operation, Parameter, ROUTES, Route, find};
pub use routines::{DraftRoutine, NewRoutine, RoutineDraft, SavedRoutine};
pub use servers::{FoundServer, FoundServers, NewServer, Server, ServerSource, Servers};
pub use tokens::{
    Audit, AuditCheck, AuditEntry, AuditProblem, CreatedToken, IfTaken, Journal, JournalCall, NewToken, RecordJournal,
    Token, TokenList, TokenRole,
};
pub use tools::{CallLine, CallRequest, CallResult, ListedTool, Tools};

/// Fields that this version does not know. A newer gateway may send some.
pub type UnknownFields = Map<String, Value>;
