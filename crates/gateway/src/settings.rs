//! How a gateway is set up, and why one may fail to open.

use std::path::PathBuf;
use std::time::Duration;

/// Events kept of one device at most. No answer holds more events either, so one can hold all of a device.
pub const MAX_DEVICE_EVENTS: usize = 1_000;

/// Everything a gateway can be told. The defaults are what `sinew serve` runs with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the store, the token and the lock live; `None` keeps everything in memory.
    pub state_dir: Option<PathBuf>,
    /// Where this gateway can be reached, written into the lock file for whoever comes second.
    pub url: Option<String>,
    /// The gateway's own token, instead of the one in the state directory.
    pub token: Option<String>,
    /// Lets clients see and call tools that are meant for people only.
    pub allow_user_tools: bool,
    /// Offers the built-in tools that judge and compare tool specifications.
    pub spec_tools: bool,
    /// Where the tools of pinned devices are kept, instead of `sinew.lock` in the state directory.
    pub lock_file: Option<PathBuf>,
    /// How long a call may take when the caller says nothing.
    pub budget: Duration,
    /// The longest budget a caller can ask for.
    pub max_budget: Duration,
    /// How long the tools of a device that left stay listed.
    pub grace: Duration,
    /// Changes that come within this window are told as one.
    pub coalesce: Duration,
    /// Calls that one device may have open, running and waiting together.
    pub queue: usize,
    /// The largest answer that is passed on, in bytes.
    pub max_outcome: usize,
    /// Known devices, present or away; beyond it the one away longest is forgotten.
    pub max_devices: usize,
    /// A device that was away for this much of the gateway's running time is forgotten, unless somebody named or
    /// pinned it; 0 forgets none.
    pub forget_after: Duration,
    /// Public names that one device may have minted in the course of time.
    pub names_per_device: usize,
    /// Events kept in all.
    pub max_events: usize,
    /// Events kept of one device; [`MAX_DEVICE_EVENTS`] at most.
    pub max_device_events: usize,
    /// Audit records kept.
    pub max_audit: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            state_dir: None,
            url: None,
            token: None,
            allow_user_tools: false,
            spec_tools: false,
            lock_file: None,
            budget: Duration::from_secs(30),
            max_budget: Duration::from_secs(600),
            grace: Duration::from_secs(600),
            coalesce: Duration::from_millis(50),
            queue: 64,
            max_outcome: 16 << 20,
            max_devices: 20_000,
            forget_after: Duration::from_secs(90 * 86_400),
            // Two for each tool: a device with the most tools (512) can change all of them once.
            names_per_device: 2_048,
            max_events: 10_000,
            max_device_events: MAX_DEVICE_EVENTS,
            max_audit: 1_000_000,
        }
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

    #[error("cannot {what} {}: {source}", .path.display())]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },

    #[error("the store {} is damaged ({detail}); nothing was changed: restore it from a copy, or move it away, and the gateway starts with an empty one", .path.display())]
    Damaged { path: PathBuf, detail: String },

    #[error("the store {} has format {found} and could not be changed to format {known} ({detail}); nothing was changed: restore it from a copy, or use the version that wrote it", .path.display())]
    Migration { path: PathBuf, found: i64, known: i64, detail: String },

    #[error("the store {} was written by a newer Sinew (format {found}, this one knows {known}); use that version, or choose another directory with --state", .path.display())]
    Newer { path: PathBuf, found: i64, known: i64 },

    #[error("the lock {} cannot be read ({detail}); mend it, or move it away and pin the devices anew", .path.display())]
    Lock { path: PathBuf, detail: String },

    #[error("the token {what}: it must have 8 to 512 printable ASCII characters without spaces")]
    Token { what: String },

    #[error("the system gives no random numbers: {0}")]
    Random(String),
}

fn owner(pid: Option<u32>, url: Option<&str>) -> String {
    let process = pid.map_or("another gateway".to_owned(), |pid| format!("a gateway with process id {pid}"));
    match url {
        Some(url) => format!("{process} at {url}"),
        None => process,
    }
}
