//! Calls that wait for a person, and what was decided about them.
//!
//! An approval is good for one call: the same caller, device, tool and arguments under the same policy. Everything is in
//! memory, so that a restart of the gateway approves nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use sinew_tool::{DeviceId, Digest, ErrorKind, ToolError};
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a request can be decided, and how long a decision can be used.
const OPEN_TIME: Duration = Duration::from_secs(600);
/// A person reads this many.
const MAX_OPEN: usize = 200;
const MAX_OPEN_PER_CALLER: usize = 8;
const MAX_GRANTS: usize = 1_000;

/// A call that waits for a decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApprovalRequest {
    pub id: String,
    /// Who called.
    pub principal: String,
    /// The id and name of the device.
    pub device: String,
    /// The device's own name for the tool.
    pub tool: String,
    /// The JSON text of the arguments, cut where it is long.
    pub args: String,
    /// Why a person is asked.
    pub reason: String,
    /// When the call came, in milliseconds of Unix time.
    pub at: i64,
}

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// This call, once.
    Once,
    /// This call now, and this caller's calls of the tool on the device for a time, with any arguments.
    For(Duration),
    Deny,
}

/// What an approval is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) principal: String,
    pub(crate) policy: String,
    pub(crate) call: CallIdentity,
}

/// A tool of a device with its arguments, or several that are approved together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallIdentity {
    pub(crate) device: String,
    pub(crate) tool: Digest,
    pub(crate) args: Digest,
}

/// How a call that waited goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Approved,
    Denied {
        by: String,
    },
    /// Nobody decided in time; the request stays open.
    Waiting {
        id: String,
    },
}

#[derive(Default)]
pub(crate) struct CallApprovals {
    table: Mutex<ApprovalTable>,
}

#[derive(Default)]
struct ApprovalTable {
    open: BTreeMap<String, OpenApproval>,
    grants: Vec<Grant>,
}

/// What was decided and by whom; `None` as long as nobody has.
type Decided = Option<(ApprovalDecision, String)>;

struct OpenApproval {
    request: ApprovalRequest,
    on: DeviceId,
    binding: Binding,
    ends: Instant,
    decided: watch::Sender<Decided>,
}

struct Grant {
    binding: Binding,
    /// Any arguments, any number of calls.
    for_a_while: bool,
    ends: Instant,
}

impl CallApprovals {
    /// Waits until a person decided about the call, at most for `wait`. Identical calls share one request.
    pub(crate) async fn ask(
        &self,
        binding: Binding,
        on: &DeviceId,
        request: ApprovalRequest,
        wait: Duration,
    ) -> Result<Answer, ToolError> {
        let (id, mut decided) = {
            let mut table = self.table();
            if table.spend(&binding) {
                return Ok(Answer::Approved);
            }
            table.open(&binding, on, request)?
        };
        let decision = tokio::time::timeout(wait, decided.wait_for(Option::is_some)).await;
        let decision = match decision {
            Ok(Ok(decision)) => decision.clone(),
            // The request ended without a decision, or nobody answered.
            Ok(Err(_)) | Err(_) => None,
        };
        match decision {
            None => Ok(Answer::Waiting { id }),
            Some((ApprovalDecision::Deny, by)) => Ok(Answer::Denied { by }),
            // Of several identical calls that waited, one is let through by one approval.
            Some((_, by)) => Ok(if self.table().spend(&binding) { Answer::Approved } else { Answer::Denied { by } }),
        }
    }

    pub(crate) fn list(&self) -> Vec<ApprovalRequest> {
        let mut open: Vec<ApprovalRequest> = self.table().open.values().map(|open| open.request.clone()).collect();
        open.sort_by(|one, two| (one.at, &one.id).cmp(&(two.at, &two.id)));
        open
    }

    /// The first decision counts.
    pub(crate) fn decide(
        &self,
        id: &str,
        decision: ApprovalDecision,
        by: &str,
    ) -> Result<(ApprovalRequest, DeviceId), ToolError> {
        let mut table = self.table();
        let open = table.open.remove(id).ok_or_else(|| {
            let message = format!(
                "no call waits for approval as `{id}`; it was decided, or it is older than {} minutes. \
                 `sinew approvals` lists those that wait",
                OPEN_TIME.as_secs() / 60
            );
            ToolError::new(ErrorKind::UnknownResource, message)
        })?;
        let (for_a_while, time) = match decision {
            ApprovalDecision::For(time) => (true, time),
            ApprovalDecision::Once | ApprovalDecision::Deny => (false, OPEN_TIME),
        };
        if decision != ApprovalDecision::Deny {
            if table.grants.len() >= MAX_GRANTS {
                table.grants.remove(0);
            }
            table.grants.push(Grant { binding: open.binding, for_a_while, ends: Instant::now() + time });
        }
        open.decided.send_replace(Some((decision, by.to_owned())));
        Ok((open.request, open.on))
    }

    fn table(&self) -> MutexGuard<'_, ApprovalTable> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        table.open.retain(|_, open| open.ends > now);
        table.grants.retain(|grant| grant.ends > now);
        table
    }
}

impl ApprovalTable {
    /// Uses up an approval for this call, if there is one.
    fn spend(&mut self, binding: &Binding) -> bool {
        let place = self.grants.iter().position(|grant| grant.covers(binding));
        let Some(place) = place else { return false };
        if !self.grants[place].for_a_while {
            self.grants.remove(place);
        }
        true
    }

    fn open(
        &mut self,
        binding: &Binding,
        on: &DeviceId,
        mut request: ApprovalRequest,
    ) -> Result<(String, watch::Receiver<Decided>), ToolError> {
        if let Some(open) = self.open.values().find(|open| open.binding == *binding) {
            return Ok((open.request.id.clone(), open.decided.subscribe()));
        }
        let of_caller = self.open.values().filter(|open| open.binding.principal == binding.principal).count();
        if of_caller >= MAX_OPEN_PER_CALLER || self.open.len() >= MAX_OPEN {
            let message = "too many calls wait for approval already; nothing was sent. Try again when some are decided";
            return Err(ToolError::new(ErrorKind::Busy, message));
        }
        let id = self.new_id()?;
        request.id.clone_from(&id);
        let (decided, receiver) = watch::channel(None);
        let ends = Instant::now() + OPEN_TIME;
        self.open.insert(id.clone(), OpenApproval { request, on: on.clone(), binding: binding.clone(), ends, decided });
        Ok((id, receiver))
    }

    /// Short enough to type. It is no secret: only administrators decide.
    fn new_id(&self) -> Result<String, ToolError> {
        loop {
            let mut bytes = [0; 3];
            getrandom::fill(&mut bytes).map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))?;
            let id = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            if !self.open.contains_key(&id) {
                return Ok(id);
            }
        }
    }
}

impl Grant {
    fn covers(&self, binding: &Binding) -> bool {
        let own = &self.binding;
        match self.for_a_while {
            true => {
                let call = CallIdentity { args: own.call.args, ..binding.call.clone() };
                Binding { call, ..binding.clone() } == *own
            }
            false => binding == own,
        }
    }
}
