//! Calls that wait for a person, and what was decided about them.
//!
//! An approval is good for one call: the same caller, device, tool and arguments under the same policy; or for all
//! arguments for a time, where the person or the rule says so. Everything is in memory, so that a restart of the gateway
//! approves nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use sinew_tool::{Caller, DeviceId, Digest, ErrorKind, PendingApproval, ToolError};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::principal::Principal;

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
    /// The JSON text of the arguments, without secrets.
    pub args: String,
    /// Why a person is asked.
    pub reason: String,
    /// For so long an approval also covers the caller's later calls of the tool on the device, with any arguments.
    pub keep: Duration,
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

/// A call that asks for a person's decision.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub(crate) binding: Binding,
    pub(crate) on: DeviceId,
    /// Its id is given when it is listed.
    pub(crate) request: ApprovalRequest,
    /// The digest of the arguments in the record of the call, in hex.
    pub(crate) args_digest: String,
    pub(crate) who: Principal,
}

/// What an approval is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) principal: String,
    pub(crate) policy: Arc<str>,
    /// The rules that asked. An approval for a time holds for no other rule.
    pub(crate) asked_by: Vec<String>,
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
    Approved(Approved),
    Denied {
        by: String,
    },
    /// Nobody decided in time; the request stays open.
    Waiting {
        id: String,
    },
}

/// The approval that a call used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Approved {
    pub(crate) id: String,
    pub(crate) by: String,
    /// `None` where it is good for more calls.
    used_up: Option<Box<Grant>>,
}

#[derive(Default)]
pub(crate) struct CallApprovals {
    table: Mutex<ApprovalTable>,
    /// Counts the changes of the list.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct ApprovalTable {
    open: BTreeMap<String, OpenApproval>,
    grants: Vec<Grant>,
}

/// What was decided and by whom; `None` as long as nobody has.
type Decided = Option<(ApprovalDecision, String)>;

struct OpenApproval {
    asking: Asking,
    ends: Instant,
    decided: watch::Sender<Decided>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Grant {
    id: String,
    by: String,
    binding: Binding,
    /// Any arguments, any number of calls.
    for_a_while: bool,
    ends: Instant,
}

impl CallApprovals {
    /// Waits until a person decided about the call, at most for `wait`. Identical calls share one request, and each needs
    /// an approval of its own. The caller hears of it while it waits.
    pub(crate) async fn ask(
        &self,
        mut asking: Asking,
        wait: Duration,
        caller: &dyn Caller,
    ) -> Result<Answer, ToolError> {
        let ends = Instant::now() + wait;
        loop {
            let (id, mut decided) = {
                let mut table = self.table();
                if let Some(approved) = table.spend(&asking.binding) {
                    return Ok(Answer::Approved(approved));
                }
                table.open(&mut asking)?
            };
            let ApprovalRequest { device, tool, reason, .. } = asking.request.clone();
            caller.waits_for_approval(&PendingApproval { id: id.clone(), device, tool, reason });
            self.note_change();
            match tokio::time::timeout_at(ends, decided.wait_for(Option::is_some)).await {
                Ok(Ok(decision)) => {
                    if let Some((ApprovalDecision::Deny, by)) = &*decision {
                        return Ok(Answer::Denied { by: by.clone() });
                    }
                    // Approved: this call takes the approval, or asks again where another took it.
                }
                Ok(Err(_)) => {
                    let message = "the request for approval ended before anybody decided, because the policy or the \
                                   caller's token changed; nothing was sent. Call it again";
                    return Err(ToolError::new(ErrorKind::ApprovalNeeded, message));
                }
                Err(_) => return Ok(Answer::Waiting { id }),
            }
        }
    }

    /// Makes an approval good again whose call was not sent.
    pub(crate) fn give_back(&self, approved: Approved) {
        self.table().grants.extend(approved.used_up.map(|grant| *grant));
    }

    pub(crate) fn list(&self) -> Vec<ApprovalRequest> {
        let table = self.table();
        let mut open: Vec<ApprovalRequest> = table.open.values().map(|open| open.asking.request.clone()).collect();
        open.sort_by(|one, two| (one.at, &one.id).cmp(&(two.at, &two.id)));
        open
    }

    /// Forgets what callers asked for whose tokens are gone.
    pub(crate) fn forget_revoked(&self, is_valid: impl Fn(&Principal) -> bool) {
        let mut table = self.table();
        let before = table.open.len();
        table.open.retain(|_, open| is_valid(&open.asking.who));
        if table.open.len() != before {
            self.note_change();
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Forgets what was asked and approved under other policies.
    pub(crate) fn forget_other_policies(&self, version: &Arc<str>) {
        let mut table = self.table();
        table.open.retain(|_, open| open.asking.binding.policy == *version);
        table.grants.retain(|grant| grant.binding.policy == *version);
        self.note_change();
    }

    /// The first decision counts. Returns the call that was decided about.
    pub(crate) fn decide(&self, id: &str, decision: ApprovalDecision, by: &str) -> Result<Asking, ToolError> {
        let mut table = self.table();
        let OpenApproval { asking, decided, .. } = table.open.remove(id).ok_or_else(|| not_waiting(id))?;
        let keep = asking.request.keep;
        let (for_a_while, time) = match decision {
            ApprovalDecision::For(time) => (true, time),
            ApprovalDecision::Once if !keep.is_zero() => (true, keep),
            ApprovalDecision::Once | ApprovalDecision::Deny => (false, OPEN_TIME),
        };
        if decision != ApprovalDecision::Deny {
            if table.grants.len() >= MAX_GRANTS {
                table.grants.remove(0);
            }
            let (id, by, binding) = (id.to_owned(), by.to_owned(), asking.binding.clone());
            table.grants.push(Grant { id, by, binding, for_a_while, ends: Instant::now() + time });
        }
        decided.send_replace(Some((decision, by.to_owned())));
        self.note_change();
        Ok(asking)
    }

    fn table(&self) -> MutexGuard<'_, ApprovalTable> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        table.open.retain(|_, open| open.ends > now);
        table.grants.retain(|grant| grant.ends > now);
        table
    }
}

pub(crate) fn not_waiting(id: &str) -> ToolError {
    let message = format!(
        "no call waits for approval as `{id}`; it was decided, or it is older than {} minutes. \
         `sinew approvals` lists those that wait",
        OPEN_TIME.as_secs() / 60
    );
    ToolError::new(ErrorKind::UnknownResource, message)
}

impl ApprovalTable {
    /// Uses up an approval for this call, if there is one.
    fn spend(&mut self, binding: &Binding) -> Option<Approved> {
        let place = self.grants.iter().position(|grant| grant.covers(binding))?;
        let Grant { id, by, for_a_while, .. } = &self.grants[place];
        let (id, by, for_a_while) = (id.clone(), by.clone(), *for_a_while);
        let used_up = (!for_a_while).then(|| Box::new(self.grants.remove(place)));
        Some(Approved { id, by, used_up })
    }

    fn open(&mut self, asking: &mut Asking) -> Result<(String, watch::Receiver<Decided>), ToolError> {
        let binding = &asking.binding;
        if let Some(open) = self.open.values().find(|open| open.asking.binding == *binding) {
            return Ok((open.asking.request.id.clone(), open.decided.subscribe()));
        }
        let of_caller = self.open.values().filter(|open| open.asking.binding.principal == binding.principal).count();
        if of_caller >= MAX_OPEN_PER_CALLER || self.open.len() >= MAX_OPEN {
            let message = "too many calls wait for approval already; nothing was sent. Try again when some are decided";
            return Err(ToolError::new(ErrorKind::Busy, message));
        }
        let id = self.new_id()?;
        asking.request.id.clone_from(&id);
        let (decided, receiver) = watch::channel(None);
        let ends = Instant::now() + OPEN_TIME;
        self.open.insert(id.clone(), OpenApproval { asking: asking.clone(), ends, decided });
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
                let is_answered = binding.asked_by.iter().all(|rule| own.asked_by.contains(rule));
                is_answered && Binding { call, asked_by: own.asked_by.clone(), ..binding.clone() } == *own
            }
            false => binding == own,
        }
    }
}
