//! What people decide about calls that wait, and what they allowed.

use serde_json::json;
use sinew_policy::CallerKind;
use sinew_tool::{ErrorKind, ToolError, Value};
use tokio::sync::watch;

use crate::access::{ApprovalDecision, ApprovalGrant, ApprovalRequest, Asking, Decider, not_waiting};
use crate::gateway::Gateway;
use crate::principal::{Principal, Role};
use crate::record::Note;
use crate::registry::now;
use crate::settings::OpenError;
use crate::shared::RecordKind;
use crate::tokens;

impl Gateway {
    /// The calls that wait for a person, oldest first.
    pub fn approval_requests(&self) -> Vec<ApprovalRequest> {
        self.forget_revoked_requests();
        self.access().approvals.list()
    }

    /// A call that waits for a person.
    pub fn approval_request(&self, id: &str) -> Result<ApprovalRequest, ToolError> {
        self.approval_requests().into_iter().find(|request| request.id == id).ok_or_else(|| not_waiting(id))
    }

    /// Changes whenever a call begins or ends to wait for a person, and when an approval is revoked.
    pub fn approval_changes(&self) -> watch::Receiver<u64> {
        self.access().approvals.subscribe()
    }

    /// The approvals that can still be used, newest first.
    pub fn grants(&self) -> Vec<ApprovalGrant> {
        self.forget_revoked_requests();
        self.access().approvals.grants()
    }

    /// Ends an approval. Everybody who decides may.
    pub fn revoke_grant(&self, who: &Principal, door: &'static str, id: &str) -> Result<ApprovalGrant, ToolError> {
        check_role(who)?;
        let revoked = self.access().approvals.revoke(id)?;
        self.recorder().note(Note {
            kind: RecordKind::Decision,
            who: Some(who),
            door,
            device: None,
            tool: Some(revoked.tool.clone()),
            what: "revoke_approval",
            details: json!({"approval": id, "caller": revoked.principal, "device": revoked.device, "by": revoked.by}),
            outcome: "ok",
        });
        Ok(revoked)
    }

    /// Forgets what somebody asked for and was allowed, who is not a caller any more.
    pub fn forget_caller(&self, who: &Principal) {
        self.access().approvals.forget_caller(&who.id);
    }

    /// Forgets what a person asked for, was allowed and allowed others, who was removed.
    pub fn forget_person(&self, who: &Principal) {
        self.forget_caller(who);
        self.access().approvals.forget_decider(&who.name);
    }

    /// Ends everything of a caller who signed in: what it has open, what it asked for and what it was allowed.
    pub fn end_sign_in(&self, who: &Principal) {
        self.tokens().end_sign_in(who);
        self.forget_caller(who);
    }

    /// Whether only people who showed a passphrase decide.
    pub fn needs_passphrase(&self) -> bool {
        self.access().in_force().needs_passphrase()
    }

    /// The key that signs the requests which say that a call waits; it is in the state directory.
    pub fn webhook_key(&self) -> Result<String, OpenError> {
        tokens::secret(self.settings().state_dir.as_deref(), "webhook-key")
    }

    /// Whether the decisions of this administrator count.
    pub fn takes_decisions_of(&self, who: &Principal) -> bool {
        self.access().in_force().takes_decision_of(who)
    }

    fn forget_revoked_requests(&self) {
        self.access().approvals.forget_revoked(|who| self.tokens().is_valid(who));
    }

    /// Decides about a call that waits. Only administrators may, with `approvals = "passphrase"` only people, and nobody
    /// approves a call of their own.
    pub fn decide_approval(
        &self,
        who: &Principal,
        door: &'static str,
        id: &str,
        decision: ApprovalDecision,
    ) -> Result<ApprovalRequest, ToolError> {
        check_role(who)?;
        let denied = decision == ApprovalDecision::Deny;
        if !denied && !self.takes_decisions_of(who) {
            let message = "this gateway takes approvals only from people who show their passphrase: sign in to the console \
                           with it, or use `sinew approvals approve ID --as NAME`";
            return Err(ToolError::new(ErrorKind::PermissionDenied, message));
        }
        self.forget_revoked_requests();
        if !denied && self.access().approvals.asker_of(id).is_some_and(|asker| asker == who.id) {
            let message = "this call was made with the same token or by the same person; somebody else approves it. Give \
                           clients tokens of their own (`sinew token new --client NAME`), or add a person with \
                           `sinew people add NAME --role approver` and approve it with `--as NAME`";
            return Err(ToolError::new(ErrorKind::PermissionDenied, message));
        }
        let Asking { request, on, args_digest, binding, .. } = self.access().approvals.decide(
            id,
            decision,
            Decider { name: &who.name, is_person: who.kind == CallerKind::Person },
        )?;
        let lasts = match decision {
            ApprovalDecision::For(time) => json!(time.as_secs()),
            ApprovalDecision::Once if !request.keep.is_zero() => json!(request.keep.as_secs()),
            ApprovalDecision::Always => json!("always"),
            ApprovalDecision::Once | ApprovalDecision::Deny => Value::Null,
        };
        self.recorder().note(Note {
            kind: RecordKind::Decision,
            who: Some(who),
            door,
            device: Some(on),
            tool: Some(request.tool.clone()),
            what: if denied { "deny" } else { "approve" },
            details: json!({"approval": id, "caller": request.principal, "caller_id": binding.principal,
                "args_digest": args_digest, "for_s": lasts, "why": request.reason, "policy": binding.policy,
                "waited_ms": now() - request.at}),
            outcome: if denied { "denied" } else { "ok" },
        });
        tracing::info!(
            id,
            ?decision,
            by = who.name,
            caller = request.principal,
            device = request.device,
            tool = request.tool,
            "call decided"
        );
        Ok(request)
    }
}

fn check_role(who: &Principal) -> Result<(), ToolError> {
    match who.role {
        Role::Admin => Ok(()),
        _ => {
            Err(ToolError::new(ErrorKind::PermissionDenied, "only an administrator approves calls; use an admin token"))
        }
    }
}
