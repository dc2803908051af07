//! What several gateways of one cluster share: names, ids, tokens, what people gave devices, pins, events, the audit, and
//! the keys that seal request state and make the tokens of boards.
//!
//! Each is a small trait. The local form is the store of this gateway (`store`); a cluster gives each a second form that
//! asks the others, usually in front of the local one. Everything else the store keeps belongs to one gateway alone.
//!
//! Nothing here waits on the path of a call except [`AuditLog::record`], which a form answers from its own disk. What
//! must be read on that path (tokens) is mirrored: the form pushes changes, and the gateway reads its copy.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use sinew_tool::{BoxFuture, DeviceId, DeviceKey, Digest, Notice, ToolError};
use tokio::sync::broadcast;

use crate::labels::Label;
use crate::view::{AuditFilter, AuditRecord, EventPage};

/// The shared parts of one gateway.
#[derive(Clone)]
pub struct Shared {
    pub names: Arc<dyn NameClaims>,
    pub ids: Arc<dyn IdClaims>,
    pub tokens: Arc<dyn TokenStore>,
    pub marks: Arc<dyn DeviceMarks>,
    pub pins: Arc<dyn AgreedPins>,
    pub events: Arc<dyn EventLog>,
    pub audit: Arc<dyn AuditLog>,
    pub request_keys: Arc<dyn RequestKeys>,
    pub board_keys: Arc<dyn BoardKeys>,
}

/// Public names, of which each means one tool on all gateways.
pub trait NameClaims: Send + Sync {
    /// Keeps the changes before anybody sees them. Blocks for the time of a commit or of one round trip.
    ///
    /// The answer has the names that another gateway claimed first: those of the same tools under another name, and those
    /// of other tools under the same name. The gateway takes them over and names its tools again.
    fn keep(&self, changes: Vec<NameChange>) -> Result<Vec<NameClaim>, ToolError>;
}

/// Ids of devices, of which each means one device on all gateways.
pub trait IdClaims: Send + Sync {
    /// Whether a device may have an id, which no other device has at this gateway. Blocks for the time of one round trip.
    fn claim(&self, id: &DeviceId, device: &DeviceKey) -> bool;
}

/// The local form: nobody else has devices.
pub(crate) struct OwnIds;

impl IdClaims for OwnIds {
    fn claim(&self, _: &DeviceId, _: &DeviceKey) -> bool {
        true
    }
}

/// A public name and the tool it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameClaim {
    pub tool: String,
    /// The digest of the input schema in hex; empty for the tool's part of an unfolded name.
    pub digest: String,
    pub name: Arc<str>,
    /// The device it counts for; `None` where it rests, or was minted before owners were kept.
    pub owner: Option<DeviceKey>,
    /// When it began to rest, in milliseconds of the gateway's running time.
    pub resting: Option<i64>,
    /// The digest of the description that the name stands for, where several devices describe the tool differently.
    pub face: Option<Digest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameChange {
    Keep(NameClaim),
    Release { tool: String, digest: String },
}

/// All tokens but the gateway's own, as hashes.
pub trait TokenStore: Send + Sync {
    /// Blocks until the token is kept. The listener has it then.
    fn add(&self, token: TokenRow) -> Result<(), ToolError>;

    /// The listener no longer has the token when this returns, also with an error. Blocks until that is kept.
    fn revoke(&self, id: &str) -> Result<(), ToolError>;

    /// Notes when a token was used, in milliseconds of Unix time. Never waits.
    fn note_use(&self, id: &str, at: i64);

    /// Calls the listener with all tokens: now, and whenever they change, wherever that was done. There is one listener.
    fn listen(&self, listener: TokenListener);
}

pub type TokenListener = Box<dyn Fn(Vec<TokenRow>) + Send + Sync>;

/// A token as it is kept.
#[derive(Clone, Debug)]
pub struct TokenRow {
    pub id: String,
    pub kind: TokenKind,
    /// The device that a device token is for.
    pub device: Option<String>,
    pub label: String,
    /// SHA-256 of its text.
    pub hash: [u8; 32],
    /// Milliseconds of Unix time, like the two below.
    pub created_at: i64,
    pub expires_at: Option<i64>,
    /// 0 for never.
    pub last_use: Arc<AtomicI64>,
}

impl TokenRow {
    /// The name of its caller in the audit and in the policy.
    pub(crate) fn caller(&self) -> String {
        if self.label.is_empty() { self.id.clone() } else { self.label.clone() }
    }

    pub(crate) fn is_expired(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    Client,
    Admin,
    Device,
    /// Of a newer version; it permits nothing.
    Unknown,
}

impl TokenKind {
    /// The name in tables and in the store.
    pub fn word(self) -> &'static str {
        match self {
            TokenKind::Client => "client",
            TokenKind::Admin => "admin",
            TokenKind::Device => "device",
            TokenKind::Unknown => "unknown",
        }
    }

    pub fn parse(word: &str) -> TokenKind {
        let known = [TokenKind::Client, TokenKind::Admin, TokenKind::Device];
        known.into_iter().find(|kind| kind.word() == word).unwrap_or(TokenKind::Unknown)
    }
}

/// The names and labels that people gave devices. Each gateway keeps its own copy with its devices; what another changed
/// comes through [`Gateway::set_marks`](crate::Gateway::set_marks).
pub trait DeviceMarks: Send + Sync {
    /// Somebody changed the marks of a device at this gateway. Never waits.
    fn note(&self, device: &DeviceKey, marks: GivenMarks);
}

/// What people gave a device. The configuration can give it further labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenMarks {
    pub name: Option<String>,
    pub labels: Vec<Label>,
}

/// The local form: nobody else has to know.
pub(crate) struct OwnMarks;

impl DeviceMarks for OwnMarks {
    fn note(&self, _: &DeviceKey, _: GivenMarks) {}
}

/// The agreed tools of pinned devices. Each gateway keeps its own copy in its lock; what another changed comes through
/// [`Gateway::set_pin`](crate::Gateway::set_pin).
pub trait AgreedPins: Send + Sync {
    /// What is agreed on about a device changed at this gateway: the text of a lock that has this device alone, or nothing
    /// for one that is not pinned any more. Never waits.
    fn note(&self, device: &DeviceKey, agreed: Option<String>);
}

/// The local form: nobody else has to know.
pub(crate) struct OwnPins;

impl AgreedPins for OwnPins {
    fn note(&self, _: &DeviceKey, _: Option<String>) {}
}

/// What devices sent, and what the gateway reports about them.
pub trait EventLog: Send + Sync {
    /// Adds an event. Never waits: where too many wait to be written it is dropped, and readers see the gap.
    fn add(&self, device: &DeviceId, notice: Notice);

    /// Counts events that were dropped before they came here.
    fn skip(&self, device: &DeviceId, count: u64);

    /// Events that were dropped since the gateway started.
    fn dropped(&self) -> u64;

    /// Removes the events of a device whose id another device may get.
    fn forget(&self, device: &DeviceId);

    /// Events after a cursor, oldest first; from the oldest kept without one. A cursor that this log did not give out is
    /// [`ErrorKind::BadCursor`](sinew_tool::ErrorKind::BadCursor).
    fn page(
        &self,
        device: Option<DeviceId>,
        since: Option<String>,
        limit: usize,
    ) -> BoxFuture<'_, Result<EventPage, ToolError>>;

    /// The device of each event, once the event can be read.
    fn subscribe(&self) -> broadcast::Receiver<DeviceId>;
}

/// One record for each call, decision and change, at the gateway that made it.
pub trait AuditLog: Send + Sync {
    /// Whether calls can be recorded now; the error refuses the call before anything is sent.
    fn check(&self) -> Result<(), ToolError>;

    /// Records something and waits until that is committed: only then may the answer leave.
    fn record(&self, row: AuditRow) -> BoxFuture<'_, Result<(), ToolError>>;

    /// Records something that nobody waits for.
    fn record_unawaited(&self, row: AuditRow);

    /// The newest calls that fit, newest first.
    fn find(&self, filter: AuditFilter, limit: usize) -> BoxFuture<'_, Result<Vec<AuditRecord>, ToolError>>;
}

/// Something to record. `at` in milliseconds of Unix time.
#[derive(Clone, Debug)]
pub struct AuditRow {
    pub kind: RecordKind,
    pub at: i64,
    pub principal: String,
    pub door: &'static str,
    pub device: Option<DeviceId>,
    pub tool: Option<String>,
    pub name: String,
    /// The id of the caller's token, or its name where it has none; `None` where the gateway itself acts.
    pub caller: Option<String>,
    /// What decided about the call.
    pub decided: Option<String>,
    /// The run that the call began or belongs to.
    pub run: Option<Arc<str>>,
    /// HMAC-SHA-256 over the JSON text of the arguments, with the key of this installation.
    pub args_digest: [u8; 32],
    pub args: String,
    pub kept: KeptArgs,
    pub outcome: &'static str,
    pub duration_us: i64,
    pub bytes: i64,
    /// Whether the call was sent to the device; not kept.
    pub is_sent: bool,
}

/// What an audit record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    Call,
    /// A person approved or denied a call.
    Decision,
    /// An administrator changed something.
    Change,
    /// A device became known, or changed by itself.
    Device,
}

impl RecordKind {
    pub const ALL: [RecordKind; 4] = [RecordKind::Call, RecordKind::Decision, RecordKind::Change, RecordKind::Device];

    /// The name in tables and in the store.
    pub fn word(self) -> &'static str {
        match self {
            RecordKind::Call => "call",
            RecordKind::Decision => "decision",
            RecordKind::Change => "change",
            RecordKind::Device => "device",
        }
    }
}

/// How much of the text of the arguments is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptArgs {
    Whole,
    /// The beginning.
    Cut,
    /// Without secrets.
    Redacted,
}

impl KeptArgs {
    pub(crate) fn number(self) -> i64 {
        match self {
            KeptArgs::Whole => 0,
            KeptArgs::Cut => 1,
            KeptArgs::Redacted => 2,
        }
    }
}

/// The keys that seal what clients carry between the rounds of an unfinished call, so that each gateway can open what
/// another sealed.
pub trait RequestKeys: Send + Sync {
    /// The first key seals; all of them open. There is at least one.
    fn keys(&self) -> Vec<[u8; 32]>;
}

/// The keys from which the tokens of approved boards are made, so that a board which asks another gateway gets the same
/// token.
pub trait BoardKeys: Send + Sync {
    /// The first key makes tokens; those of all are found again. There is at least one.
    fn keys(&self) -> Vec<String>;
}
