//! Boards that wait for approval, and the tokens of those that were approved.
//!
//! A board that nobody approved waits here under a code of six digits. One that was approved gets a
//! token of its own, the same each time it asks: it is made from a key of the gateway that approved it, the board's
//! hardware id and the board's own secret, so only its hash is kept, and knowing the hardware id
//! is not enough to get it. A revoked token is not made again; the board waits for approval again.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use serde_json::json;
use sha2::Sha256;
use sinew_tool::text::clean_line;
use sinew_tool::{Applicant, Enrol, Enrolment, ErrorKind, ToolError, network_of};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::gateway::Gateway;
use crate::registry::now;
use crate::settings::Settings;
use crate::shared::BoardKeys;
use crate::tokens::Tokens;

/// A waiting board asks every few seconds; one that has not asked for so long may lose its place.
const SILENT: Duration = Duration::from_secs(60);

/// A board that waits, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PendingBoard {
    pub code: String,
    pub hardware_id: String,
    /// The kind that the board reports.
    pub kind: String,
    pub version: String,
    pub address: IpAddr,
    /// Milliseconds of Unix time.
    pub since: i64,
    /// When it is forgotten, unless it asks again before. Milliseconds of Unix time.
    pub until: i64,
}

pub(crate) struct ApprovalQueue {
    keys: Arc<dyn BoardKeys>,
    limits: QueueLimits,
    waiting: Mutex<Vec<QueuedBoard>>,
    changes: watch::Sender<()>,
}

/// How many boards may wait, and for how long one is kept that asks no more.
#[derive(Clone, Copy)]
struct QueueLimits {
    total: usize,
    per_network: usize,
    time: Duration,
}

struct QueuedBoard {
    view: PendingBoard,
    secret: String,
    seen: Instant,
}

/// The token of a board, under the id of its row.
fn token(key: &str, id: &str, hardware_id: &str, secret: &str) -> Result<String, ToolError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes())
        .map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))?;
    for part in [id, hardware_id, secret] {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    let digits = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Ok(format!("snw_{digits}"))
}

impl ApprovalQueue {
    pub(crate) fn new(keys: Arc<dyn BoardKeys>, settings: &Settings) -> ApprovalQueue {
        let limits = QueueLimits {
            total: settings.pending_boards,
            per_network: settings.pending_boards_per_address,
            time: settings.pending_board_time,
        };
        ApprovalQueue { keys, limits, waiting: Mutex::default(), changes: watch::Sender::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<QueuedBoard>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let known = waiting.len();
        waiting.retain(|entry| entry.seen.elapsed() < self.limits.time);
        if waiting.len() < known {
            self.changes.send_replace(());
        }
        waiting
    }

    /// When a board that asks now is forgotten.
    fn until(&self) -> i64 {
        now().saturating_add(i64::try_from(self.limits.time.as_millis()).unwrap_or(i64::MAX))
    }

    fn receive(&self, tokens: &Tokens, applicant: &Applicant) -> Enrolment {
        let Applicant { hardware_id, secret, kind, version, address } = applicant;
        let find = |key: &String| tokens.find_of(hardware_id, |id| token(key, id, hardware_id, secret).ok());
        let approved = self.keys.keys().iter().find_map(find);
        if let Some(token) = approved {
            return Enrolment::Approved { token };
        }
        if tokens.is_of_another(hardware_id) {
            tracing::warn!(%hardware_id, %address, "refused to enrol a board under the id of another device");
            return Enrolment::Taken;
        }
        let mut waiting = self.waiting();
        let same = |entry: &&mut QueuedBoard| entry.view.hardware_id == *hardware_id && entry.secret == *secret;
        if let Some(entry) = waiting.iter_mut().find(same) {
            entry.seen = Instant::now();
            entry.view.until = self.until();
            return Enrolment::Pending { code: entry.view.code.clone() };
        }
        let has_room = make_room(&mut waiting, *address, self.limits);
        let Some(code) = new_code(&waiting).filter(|_| has_room) else { return Enrolment::Full };
        let view = PendingBoard {
            code: code.clone(),
            hardware_id: clean_line(hardware_id, 64),
            kind: clean_line(kind, 64),
            version: clean_line(version, 64),
            address: *address,
            since: now(),
            until: self.until(),
        };
        tracing::info!(%hardware_id, %address, "a board waits for approval: sinew boards approve {code}");
        waiting.push(QueuedBoard { view, secret: secret.clone(), seen: Instant::now() });
        self.changes.send_replace(());
        Enrolment::Pending { code }
    }

    fn approve(&self, tokens: &Tokens, code: &str) -> Result<PendingBoard, ToolError> {
        let entry = {
            let mut waiting = self.waiting();
            let place = waiting.iter().position(|entry| entry.view.code == code.trim());
            let place = place.ok_or_else(|| {
                let code = clean_line(code, 16);
                let message = format!("no board waits with the code `{code}`; `sinew boards` shows those that do");
                ToolError::new(ErrorKind::InvalidArguments, message)
                    .with_details(json!({"parameter_name": "code", "issue": "unknown code"}))
            })?;
            waiting.swap_remove(place)
        };
        self.changes.send_replace(());
        let hardware_id = &entry.view.hardware_id;
        let keys = self.keys.keys();
        let key = keys.first().ok_or_else(|| ToolError::new(ErrorKind::Internal, "there is no key for boards"))?;
        tokens.enrol(hardware_id, |id| token(key, id, hardware_id, &entry.secret))?;
        Ok(entry.view)
    }
}

impl Enrol for Gateway {
    fn enrol(&self, applicant: &Applicant) -> Enrolment {
        self.approvals().receive(self.tokens(), applicant)
    }
}

impl Gateway {
    /// The boards that wait to be approved, oldest first.
    pub fn waiting(&self) -> Vec<PendingBoard> {
        let mut views: Vec<PendingBoard> = self.approvals().waiting().iter().map(|entry| entry.view.clone()).collect();
        views.sort_by_key(|view| view.since);
        views
    }

    /// Changes whenever a board begins or ends to wait for approval.
    pub fn board_changes(&self) -> watch::Receiver<()> {
        self.approvals().changes.subscribe()
    }

    /// Approves the board with this code permanently. A token it got earlier stops working.
    pub fn approve(&self, code: &str) -> Result<PendingBoard, ToolError> {
        self.approvals().approve(self.tokens(), code)
    }
}

/// Makes room for a board from this address, if the limits leave none: false where they do not allow it.
///
/// Of its own network only a silent board makes room. If all places are taken, a silent board of the network with the
/// most boards does, or any of that network if it has more than the newcomer's: nobody keeps others out with many.
fn make_room(waiting: &mut Vec<QueuedBoard>, address: IpAddr, limits: QueueLimits) -> bool {
    let network = |entry: &QueuedBoard| network_of(entry.view.address);
    let count = |of: IpAddr| waiting.iter().filter(|entry| network(entry) == of).count();
    let own = network_of(address);
    let own_count = count(own);
    let is_own_full = own_count >= limits.per_network;
    if !is_own_full && waiting.len() < limits.total {
        return true;
    }
    let largest = waiting.iter().map(network).max_by_key(|network| count(*network)).unwrap_or(own);
    let loser = if is_own_full { own } else { largest };
    let may_lose_any = !is_own_full && count(largest) > own_count + 1;
    let of_loser = waiting.iter().enumerate().filter(|(_, entry)| network(entry) == loser);
    let oldest = of_loser.min_by_key(|(_, entry)| entry.seen);
    match oldest.filter(|(_, entry)| may_lose_any || entry.seen.elapsed() >= SILENT) {
        Some((index, _)) => {
            waiting.swap_remove(index);
            true
        }
        None => false,
    }
}

/// Six unused digits; `None` where the system gives no random numbers.
fn new_code(waiting: &[QueuedBoard]) -> Option<String> {
    loop {
        let mut bytes = [0; 4];
        getrandom::fill(&mut bytes).ok()?;
        let code = format!("{:06}", u32::from_be_bytes(bytes) % 1_000_000);
        if waiting.iter().all(|entry| entry.view.code != code) {
            return Some(code);
        }
    }
}
