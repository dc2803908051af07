//! The decisions: who may call which tool of which device, and the record of it.
//!
//! [`Gateway`] is the only entry point. Families announce devices to it, endpoints list and call tools through
//! it, and nothing else reaches a device. It knows no protocol: neither HTTP nor the board dialect.
//!
//! Where things are: `registry` (the known devices; the only writer) publishes a `snapshot`; `prepare`
//! checks and compiles the tools of a device, with `schema`, `bounds` and `check`; `offer` gives them public names
//! from `names`, and `pins` has the agreed versions; `fold` makes the lists; `call` runs a call, with `route`,
//! `validation` and `record`; `store` is the database, whose parts that a
//! cluster shares are behind the traits in `shared`; unknown boards wait in `approvals`;
//! `leases` says who has a device to itself; `backup` puts everything into one file and back.

#![warn(unreachable_pub)]

mod access;
mod agreement;
mod approvals;
mod aside;
mod backup;
mod bounds;
mod budgets;
mod builtin;
mod call;
mod call_counts;
mod caller_view;
mod check;
mod commanding;
mod decisions;
mod device_error;
mod device_filter;
mod directory;
mod durations;
mod fleet_counts;
mod fold;
mod gateway;
mod held;
mod identity;
mod instructions;
mod journal;
mod label_call;
mod labels;
mod leases;
mod listed_size;
mod live_view;
mod names;
mod nested;
mod offer;
mod page_of;
mod pins;
mod prepare;
mod principal;
pub mod private_files;
mod record;
mod redaction;
mod registry;
mod route;
mod schema;
mod seen_events;
mod settings;
pub mod shared;
mod snapshot;
mod source;
mod specification;
mod state_check;
mod state_guard;
mod store;
mod token_labels;
mod tokens;
mod totals;
mod validation;
mod view;
mod watch;

pub use access::{
    AccessSettings, ApprovalDecision, ApprovalGrant, ApprovalRequest, CallExplanation, EffectFilter, GrantReach,
    ToolEffect,
};
pub use approvals::PendingBoard;
pub use aside::aside;
pub use backup::{ArchiveError, Backup, BackupFile, BackupManifest, RestoreError, Restored};
pub use backup::{read_backup, restore, write_backup_file};
pub use budgets::check_budgets;
pub use call::Request;
pub use call_counts::{CallClass, CallFailure, CallTotals, MinuteOfCalls};
pub use caller_view::CallerView;
pub use device_filter::DeviceFilter;
pub use durations::DurationCounts;
pub use fleet_counts::FleetCounts;
pub use gateway::{Gateway, verify_audit};
pub use journal::{JournalEntry, JournalSettings, Recording, Screens};
pub use labels::Label;
pub use leases::{
    FarLeases, LeaseView, MAX_CLIENT_SECONDS, MAX_PERSON_SECONDS, MAX_WAIT_SECONDS, OwnLease, Reservation,
};
pub use page_of::PageOf;
pub use prepare::ExactSchemas;
pub use principal::{Principal, Role};
pub use settings::{MAX_DEVICE_EVENTS, OpenError, Settings};
pub use sinew_spec::lock::Follow;
pub use snapshot::Snapshot;
pub use state_check::{check_callers, check_own_token, check_state, lost_board_key};
pub use state_guard::{RunningGateway, running_gateway};
pub use store::{AuditSeal, CommitCounts, time_of_chaining};
pub use token_labels::{IfTaken, label_of_client};
pub use tokens::{TokenView, Tokens};
pub use totals::Totals;
pub use view::{
    AuditFault, AuditFilter, AuditProblem, AuditRecord, AuditReport, DeviceChanges, DeviceView, EventPage, HeldChange,
    HeldForm, HeldToolView, PublicTool, Shape, StoredEvent, ToolList,
};
pub use watch::{Update, Watch};
