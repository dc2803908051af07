//! Calls that wait for a person, and what was decided about them.
//!
//! An approval is good for one call: the same caller, device, tool and arguments under the same policy; or for more, where
//! the person or the rule says so (`grants`). Requests are in memory, so that a restart of the gateway approves nothing.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use sinew_tool::{
    Caller, Consent, ConsentRequest, ConsentWay, DeviceId, Digest, Effect, ErrorKind, PendingApproval, ToolError,
};
use tokio::sync::watch;
use tokio::time::Instant;

use super::grants::{ApprovalGrant, Decider, Grant, GrantReach, Grants};
use crate::principal::Principal;
use crate::settings::OpenError;
use crate::store::AuditKey;

/// How long a request can be decided, and how long a decision can be used.
const OPEN_TIME: Duration = Duration::from_secs(600);
/// A person reads this many.
const MAX_OPEN: usize = 200;
const MAX_OPEN_PER_CALLER: usize = 8;
/// Calls that were denied and whose callers may come back for the answer.
const MAX_DENIED: usize = 200;
/// Who decided, where a client was asked and answered itself.
const CLIENTS_WORD: Decider<'_> = Decider { name: "the client's own word", is_person: false };

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
    /// What the tool does; `None` where nobody said so.
    pub effect: Option<Effect>,
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
    /// This caller's calls of the tool on the device until somebody revokes it. Of tools that can do harm, or of which
    /// nobody said what they do, with the same arguments only.
    Always,
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
    /// How the client may ask; `None` for a call whose client cannot, or that is a part of another.
    pub(crate) question: Option<ConsentRequest>,
    /// "Always" means these arguments.
    pub(crate) binds_args: bool,
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
    /// The client asks and repeats the call; the request stays open.
    Asked,
    /// The client said no, perhaps without asking anybody; the request stays open.
    Declined {
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
    grants: Grants,
    /// Id, who asked and who denied; oldest first.
    denied: VecDeque<(String, String, String)>,
    /// Whether the gateway stops, so that nobody can wait any more.
    is_closed: bool,
}

/// What was decided and by whom; `None` as long as nobody has.
type Decided = Option<(ApprovalDecision, String)>;

struct OpenApproval {
    asking: Asking,
    ends: Instant,
    decided: watch::Sender<Decided>,
}

impl CallApprovals {
    /// Takes what was always allowed from its file, or keeps it in memory alone.
    pub(crate) fn open(file: Option<PathBuf>, key: AuditKey) -> Result<CallApprovals, OpenError> {
        let table = ApprovalTable { grants: Grants::open(file, key)?, ..ApprovalTable::default() };
        Ok(CallApprovals { table: Mutex::new(table), ..CallApprovals::default() })
    }

    /// Waits until a person decided about the call, at most for `wait`. Identical calls share one request, and each needs
    /// an approval of its own. The caller hears of it while it waits, and its client asks where it can.
    pub(crate) async fn ask(
        &self,
        mut asking: Asking,
        wait: Duration,
        caller: &dyn Caller,
    ) -> Result<Answer, ToolError> {
        let ends = Instant::now() + wait;
        // A client that was asked comes back with the id; a new question about what was denied would never end.
        let denied = caller.resumed_approval().and_then(|id| self.table().denied_by(&id, &asking.binding.principal));
        if let Some(by) = denied {
            return Ok(Answer::Denied { by });
        }
        let is_form = asking.question.as_ref().is_some_and(|question| question.way == ConsentWay::Form);
        let mut has_asked = false;
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
            let mut asked = pin!(async {
                match &asking.question {
                    Some(question) => caller.consent(&question.about(&id)).await,
                    None => Consent::Waits,
                }
            });
            let decided = loop {
                tokio::select! {
                    biased;
                    said = &mut asked, if !has_asked => {
                        has_asked = true;
                        match said {
                            Consent::Repeats => return Ok(Answer::Asked),
                            // The decision is made on the page.
                            _ if !is_form => {}
                            Consent::Waits => {}
                            // Somebody else may have been faster, and the first decision counts.
                            Consent::Accepted => drop(self.decide(&id, ApprovalDecision::Once, CLIENTS_WORD)),
                            Consent::Declined => return Ok(Answer::Declined { id: id.clone() }),
                        }
                    }
                    decided = tokio::time::timeout_at(ends, decided.wait_for(Option::is_some)) => break decided,
                }
            };
            if decided.is_ok() && asking.question.is_some() {
                caller.consent_ended(&id);
            }
            match decided {
                Ok(Ok(decision)) => {
                    if let Some((ApprovalDecision::Deny, by)) = &*decision {
                        return Ok(Answer::Denied { by: by.clone() });
                    }
                    // Approved: this call takes the approval, or asks again where another took it.
                }
                Ok(Err(_)) if self.table().is_closed => return Err(stopping()),
                Ok(Err(_)) => {
                    let message = "the request for approval ended before anybody decided, because the policy or the \
                                   caller's token changed; nothing was sent. Call it again";
                    return Err(ToolError::new(ErrorKind::ApprovalNeeded, message));
                }
                Err(_) => return Ok(Answer::Waiting { id: id.clone() }),
            }
        }
    }

    /// Answers whoever waits, because the gateway stops.
    pub(crate) fn close(&self) {
        let mut table = self.table();
        table.is_closed = true;
        table.open.clear();
    }

    /// Makes an approval good again whose call was not sent.
    pub(crate) fn give_back(&self, approved: Approved) {
        if let Some(grant) = approved.used_up {
            self.table().grants.give_back(*grant);
        }
    }

    /// What can still be used, newest first.
    pub(crate) fn grants(&self) -> Vec<ApprovalGrant> {
        self.table().grants.list()
    }

    pub(crate) fn revoke(&self, id: &str) -> Result<ApprovalGrant, ToolError> {
        let revoked = self.table().grants.revoke(id)?;
        self.note_change();
        Ok(revoked)
    }

    /// Forgets what a caller asked for and was allowed.
    pub(crate) fn forget_caller(&self, caller: &str) {
        self.forget_revoked(|who| who.id != caller);
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
        table.grants.retain_callers(is_valid);
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
        table.grants.forget_other_policies(version);
        self.note_change();
    }

    /// Forgets what was approved without a passphrase.
    pub(crate) fn keep_those_of_people(&self) {
        self.table().grants.keep_those_of_people();
        self.note_change();
    }

    /// Forgets what a person approved who approves nothing any more.
    pub(crate) fn forget_decider(&self, person: &str) {
        self.table().grants.forget_decider(person);
        self.note_change();
    }

    /// The principal whose call waits as this.
    pub(crate) fn asker_of(&self, id: &str) -> Option<String> {
        self.table().open.get(id).map(|open| open.asking.binding.principal.clone())
    }

    /// The first decision counts. Returns the call that was decided about.
    pub(crate) fn decide(&self, id: &str, decision: ApprovalDecision, by: Decider<'_>) -> Result<Asking, ToolError> {
        let mut table = self.table();
        let asking = table.open.get(id).ok_or_else(|| not_waiting(id))?.asking.clone();
        let keep = asking.request.keep;
        let grant = |reach, time| Grant::new(id, by, &asking, reach, time);
        let granted = match decision {
            ApprovalDecision::For(time) => Some(grant(GrantReach::AnyArguments, Some(time))),
            ApprovalDecision::Once if !keep.is_zero() => Some(grant(GrantReach::AnyArguments, Some(keep))),
            ApprovalDecision::Once => Some(grant(GrantReach::Once, Some(OPEN_TIME))),
            ApprovalDecision::Always if asking.binds_args => Some(grant(GrantReach::SameArguments, None)),
            ApprovalDecision::Always => Some(grant(GrantReach::AnyArguments, None)),
            ApprovalDecision::Deny => None,
        };
        match granted {
            Some(grant) => table.grants.add(grant)?,
            None => table.note_denied(id, &asking.binding.principal, by.name),
        }
        if let Some(open) = table.open.remove(id) {
            open.decided.send_replace(Some((decision, by.name.to_owned())));
        }
        self.note_change();
        Ok(asking)
    }

    fn table(&self) -> MutexGuard<'_, ApprovalTable> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        table.open.retain(|_, open| open.ends > now);
        table.grants.expire(now);
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

/// Why a call that waited for a person is answered.
fn stopping() -> ToolError {
    let message = "the gateway stops, and nobody decided about this call; nothing was sent. Call it again when the gateway \
                   runs";
    ToolError::new(ErrorKind::ApprovalNeeded, message)
}

impl ApprovalTable {
    /// Uses an approval for this call, if there is one.
    fn spend(&mut self, binding: &Binding) -> Option<Approved> {
        let (ApprovalGrant { id, by, .. }, used_up) = self.grants.spend(binding)?;
        Some(Approved { id, by, used_up })
    }

    fn note_denied(&mut self, id: &str, principal: &str, by: &str) {
        if self.denied.len() >= MAX_DENIED {
            self.denied.pop_front();
        }
        self.denied.push_back((id.to_owned(), principal.to_owned(), by.to_owned()));
    }

    /// Who denied it to this caller.
    fn denied_by(&self, id: &str, principal: &str) -> Option<String> {
        let mut denied = self.denied.iter();
        denied.find(|(denied, of, _)| denied == id && of == principal).map(|(.., by)| by.clone())
    }

    fn open(&mut self, asking: &mut Asking) -> Result<(String, watch::Receiver<Decided>), ToolError> {
        if self.is_closed {
            return Err(stopping());
        }
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
            let is_denied = self.denied.iter().any(|(denied, ..)| *denied == id);
            if !self.open.contains_key(&id) && !self.grants.contains(&id) && !is_denied {
                return Ok(id);
            }
        }
    }
}
