//! How a gateway is set up, and why one may fail to open.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use sinew_policy::PolicyProblem;

use crate::access::AccessSettings;
use crate::journal::JournalSettings;

/// Events kept of one device at most. No answer holds more events either, so one can hold all of a device.
pub const MAX_DEVICE_EVENTS: usize = 1_000;

sinew_tool::settings! {
    /// The settings of a gateway. The defaults are those of `sinew serve`.
    pub struct Settings {
        /// Seconds a call may take unless the caller says otherwise.
        pub call_timeout: Duration = Duration::from_secs(30), within 1..=86_400;
        /// The same for callers that get progress reports, which wait for long calls: MCP clients that send a progress
        /// token. Starts again with each report of the device.
        // Clients send tokens with every call, so this is also how long a device that says nothing keeps a model waiting.
        pub progress_call_timeout: Duration = Duration::from_secs(120), within 1..=86_400;
        /// The most seconds that a caller can ask for. A device that reports progress, or that was busy with other calls
        /// before it could begin, can prolong a call by as much.
        pub max_call_timeout: Duration = Duration::from_secs(600), within 1..=86_400;
        /// Calls that one device may have open, running and waiting together. Further ones are refused as busy.
        pub open_calls: usize = 64, within 1..=10_000;
        /// The largest result that is passed on, in bytes.
        pub max_result: usize = 16 << 20, within 1024..=1_073_741_824;
        /// Seconds the tools of a device that left stay listed.
        // Firmware opens its socket only during a conversation: ten minutes bridge the pause between two.
        pub grace: Duration = Duration::from_secs(600), within 0..=31_536_000;
        /// Changes within so many seconds are announced to clients as one.
        pub coalesce: Duration = Duration::from_millis(50), within 0..=60;
        /// Devices known at once, present or away. Beyond it the one that is away longest is forgotten, and further
        /// ones are refused.
        pub max_devices: usize = 20_000, within 1..=10_000_000;
        /// A device that was away for so many seconds of the gateway's running time is forgotten, unless somebody
        /// named, labelled or pinned it; 0 forgets none.
        pub forget_after: Duration = Duration::from_secs(90 * 86_400), within 0..=3_153_600_000;
        /// Public names that one device may have minted in the course of time.
        // Two for each tool: a device with the most tools (512) can change all of them once.
        pub names_per_device: usize = 2_048, within 1..=1_000_000;
        /// Events kept in all.
        pub max_events: usize = 10_000, within 1..=100_000_000;
        /// Events kept of one device.
        pub max_device_events: usize = MAX_DEVICE_EVENTS, within 1..=1_000;
        /// Audit records kept. Old ones go about a thousand at a time.
        pub max_audit: usize = 1_000_000, within 1..=1_000_000_000;
        /// Also offer the tools that boards keep for their users, such as the copy of a screen. Those that can do harm
        /// (`self.reboot`, `self.upgrade_firmware`) stay with the command line and admin tokens.
        pub user_tools: bool = false;
        /// User tools that can do harm and are offered to models all the same, each by its name on the device. Needs
        /// `user-tools`.
        pub harmful_user_tools: Vec<String> = Vec::new();
        /// Boards that wait for approval at once. Beyond it, the address that has most of them loses the one that was
        /// silent longest.
        pub pending_boards: usize = 64, within 1..=100_000;
        /// Boards from one address, or from one /64 of IPv6, that wait for approval at once.
        pub pending_boards_per_address: usize = 8, within 1..=100_000;
        /// Seconds after which a waiting board that asks no more is forgotten.
        pub pending_board_time: Duration = Duration::from_secs(300), within 10..=86_400;
        /// Offer models the tools `validate_tool_specification` and `compare_tool_specifications`.
        pub spec_tools: bool = false;
        /// Where the tools of pinned devices are kept, instead of `sinew.lock` in the state directory. Relative to the
        /// configuration file.
        pub lock: Option<PathBuf> = None;
    }
    internal {
        /// Seconds that calls may take, by `DEVICE/TOOL` patterns; see `check_budgets`.
        pub budgets: BTreeMap<String, Duration> = BTreeMap::new();
        /// Where the store, the token and the lock live; `None` keeps everything in memory.
        pub state_dir: Option<PathBuf> = None;
        /// Where this gateway can be reached, written into the lock file for a second process.
        pub url: Option<String> = None;
        /// The gateway's own token, instead of the one in the state directory.
        pub token: Option<String> = None;
        /// Recent calls with their answers.
        pub journal: JournalSettings = JournalSettings::default();
        /// Who may do what.
        pub access: AccessSettings = AccessSettings::default();
    }
}

/// Why a gateway could not open its state.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the state directory {} is in use by {}; stop that one, or choose another directory with --state", .dir.display(), owner(*.pid, .url.as_deref())
    )]
    InUse { dir: PathBuf, pid: Option<u32>, url: Option<String> },

    #[error("the state directory {} can be read by other users and holds files that are not Sinew's; choose another directory with --state, or close this one with `chmod 700`", .dir.display())]
    Shared { dir: PathBuf },

    #[error("cannot {what} {}: {source}{}", .path.display(), remedy(.source))]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },

    #[error("the store {} is damaged ({detail}); nothing was changed: restore it from a copy, or move it away, and the gateway starts with an empty one", .path.display())]
    Damaged { path: PathBuf, detail: String },

    #[error("the store {} has format {found} and could not be changed to format {known} ({detail}); nothing was changed: restore it from a copy, or use the version that wrote it", .path.display())]
    Migration { path: PathBuf, found: i64, known: i64, detail: String },

    #[error("the store {} was written by a newer Sinew (format {found}, this one knows {known}); use that version, or choose another directory with --state", .path.display())]
    Newer { path: PathBuf, found: i64, known: i64 },

    #[error("the key of the audit is missing ({}): restore it from a copy of the state directory. If there is none, write any long secret to that file: the gateway starts, and nothing proves the records so far", .path.display())]
    NoAuditKey { path: PathBuf },

    #[error("a restore on {} was interrupted, so its files may be those of two gateways; run `sinew restore` again", .dir.display())]
    Interrupted { dir: PathBuf },

    #[error("the lock {} cannot be read ({detail}); fix it, or move it away and pin the devices again", .path.display())]
    Lock { path: PathBuf, detail: String },

    #[error("the token {what}: it must have 8 to 512 printable ASCII characters without spaces")]
    Token { what: String },

    #[error("the policy cannot be used: {}", first_message(.0))]
    Policy(Vec<PolicyProblem>),

    #[error("the system gives no random numbers: {0}")]
    Random(String),
}

fn first_message(problems: &[PolicyProblem]) -> &str {
    problems.first().map_or("", |problem| &problem.message)
}

fn remedy(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::ReadOnlyFilesystem => "; mount it writable, or choose another directory with --state",
        ErrorKind::PermissionDenied => "; let this user write there, or choose another directory with --state",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; free some space",
        _ => "",
    }
}

fn owner(pid: Option<u32>, url: Option<&str>) -> String {
    let process = pid.map_or("another gateway".to_owned(), |pid| format!("a gateway with process id {pid}"));
    match url {
        Some(url) => format!("{process} at {url}"),
        None => process,
    }
}
