//! What people allowed: once, for a while, or always. All of it can be listed and revoked.
//!
//! What is allowed once or for a while is in memory and ends with the policy under which it was decided. What is always
//! allowed is kept in the state directory, covers only the tool and the rules that it was said of, and ends with the
//! caller's token, with the person who said it, and where only people may decide and none did.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sinew_tool::text::cut;
use sinew_tool::{Digest, ErrorKind, ToolError};
use tokio::time::Instant;

use super::approvals::{Asking, Binding, CallIdentity};
use crate::principal::{Principal, Role};
use crate::private_files::write_private_synced;
use crate::settings::OpenError;
use crate::store::{AuditKey, hex};

/// Decisions that are remembered at once.
const MAX_GRANTS: usize = 1_000;
/// Arguments that a list shows of a grant; the whole of them was shown to the person who decided.
const MAX_SHOWN: usize = 2_000;

/// How far an approval reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantReach {
    /// The same call, once.
    Once,
    /// The caller's calls of the tool on the device, with any arguments.
    AnyArguments,
    /// The caller's calls of the tool on the device, with the same arguments.
    SameArguments,
}

/// An approval that can still be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalGrant {
    pub id: String,
    /// The caller whose calls it covers.
    pub principal: String,
    /// The id and name of the device.
    pub device: String,
    pub tool: String,
    /// The JSON text of the arguments that it is bound to, without secrets; `None` where any are covered.
    pub args: Option<String>,
    pub reach: GrantReach,
    /// Why a person was asked.
    pub reason: String,
    /// Who decided.
    pub by: String,
    /// Whether that was somebody who showed a passphrase.
    #[serde(default)]
    pub by_person: bool,
    /// When that was, in milliseconds of Unix time.
    pub at: i64,
    /// When it ends, in milliseconds of Unix time; `None` for one that stays until it is revoked.
    pub ends: Option<i64>,
}

/// Who decides about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decider<'a> {
    pub(crate) name: &'a str,
    /// Somebody who showed a passphrase.
    pub(crate) is_person: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) view: ApprovalGrant,
    binding: Binding,
    who: Principal,
    /// `None` for one that is kept in the state directory.
    ends: Option<Instant>,
    /// The keyed digest of the arguments, of one that is kept: a plain one would give short secrets away.
    kept_args: String,
}

impl Grant {
    pub(super) fn new(id: &str, by: Decider<'_>, asking: &Asking, reach: GrantReach, time: Option<Duration>) -> Grant {
        let request = &asking.request;
        let ends_at = |time: Duration| super::authorize::unix_ms().saturating_add_unsigned(time.as_millis() as u64);
        let args = (reach != GrantReach::AnyArguments).then(|| shorten(&request.args));
        let view = ApprovalGrant {
            id: id.to_owned(),
            principal: request.principal.clone(),
            device: request.device.clone(),
            tool: request.tool.clone(),
            args,
            reach,
            reason: request.reason.clone(),
            by: by.name.to_owned(),
            by_person: by.is_person,
            at: super::authorize::unix_ms(),
            ends: time.map(ends_at),
        };
        let (binding, who) = (asking.binding.clone(), asking.who.clone());
        Grant { view, binding, who, ends: time.map(|time| Instant::now() + time), kept_args: String::new() }
    }

    fn is_kept(&self) -> bool {
        self.ends.is_none()
    }

    fn covers(&self, binding: &Binding, key: &AuditKey) -> bool {
        let (own, call) = (&self.binding, &binding.call);
        let is_same_tool =
            own.principal == binding.principal && own.call.device == call.device && own.call.tool == call.tool;
        // An approval is none for what another rule asks about.
        let is_answered = || binding.asked_by.iter().all(|rule| own.asked_by.contains(rule));
        let has_same_args = || match self.is_kept() {
            true => self.kept_args == keyed(key, call),
            false => own.call.args == call.args,
        };
        match self.view.reach {
            GrantReach::Once => binding == own,
            GrantReach::AnyArguments | GrantReach::SameArguments if !is_same_tool || !is_answered() => false,
            GrantReach::AnyArguments => self.is_kept() || own.policy == binding.policy,
            GrantReach::SameArguments => (self.is_kept() || own.policy == binding.policy) && has_same_args(),
        }
    }
}

fn shorten(args: &str) -> String {
    match args.len() > MAX_SHOWN {
        true => format!("{}…", cut(args, MAX_SHOWN)),
        false => args.to_owned(),
    }
}

fn keyed(key: &AuditKey, call: &CallIdentity) -> String {
    hex(&key.digest(format!("{:?}", ["grant", &call.args.hex()]).as_bytes()))
}

/// All grants, and the file of those that stay.
pub(super) struct Grants {
    all: Vec<Grant>,
    file: Option<PathBuf>,
    key: AuditKey,
}

impl Default for Grants {
    fn default() -> Grants {
        Grants { all: Vec::new(), file: None, key: AuditKey::new("") }
    }
}

impl Grants {
    /// What was allowed always, before the last stop too.
    pub(super) fn open(file: Option<PathBuf>, key: AuditKey) -> Result<Grants, OpenError> {
        let kept = match &file {
            Some(path) => read(path).map_err(|source| OpenError::Io {
                what: "read what is always allowed in",
                path: path.clone(),
                source,
            })?,
            None => Vec::new(),
        };
        Ok(Grants { all: kept.into_iter().filter_map(KeptGrant::into_grant).collect(), file, key })
    }

    /// Forgets those whose time is over.
    pub(super) fn expire(&mut self, now: Instant) {
        self.all.retain(|grant| grant.ends.is_none_or(|ends| ends > now));
    }

    /// Forgets what was allowed under other policies; what is always allowed is bound to its rules alone.
    pub(super) fn forget_other_policies(&mut self, version: &str) {
        self.all.retain(|grant| grant.is_kept() || &*grant.binding.policy == version);
    }

    /// Forgets those of callers that are gone.
    pub(super) fn retain_callers(&mut self, is_there: impl Fn(&Principal) -> bool) {
        self.retain(|grant| is_there(&grant.who));
    }

    /// Forgets what was decided without a passphrase.
    pub(super) fn keep_those_of_people(&mut self) {
        self.retain(|grant| grant.view.by_person);
    }

    /// Forgets what a person decided who decides nothing any more.
    pub(super) fn forget_decider(&mut self, person: &str) {
        self.retain(|grant| !(grant.view.by_person && grant.view.by == person));
    }

    fn retain(&mut self, stays: impl Fn(&Grant) -> bool) {
        let before = self.all.len();
        self.all.retain(stays);
        if self.all.len() != before
            && let Err(error) = self.write()
        {
            // What stays in the file is dropped again by the next start, which looks at callers and policy too.
            tracing::warn!(%error, "an approval that ended stays in the state directory");
        }
    }

    pub(super) fn add(&mut self, mut grant: Grant) -> Result<(), ToolError> {
        if self.all.len() >= MAX_GRANTS {
            let Some(oldest) = self.all.iter().position(|grant| !grant.is_kept()) else {
                let message =
                    format!("{MAX_GRANTS} approvals are kept already; revoke some with `sinew approvals revoke`");
                return Err(ToolError::new(ErrorKind::Busy, message));
            };
            self.all.remove(oldest);
        }
        let is_kept = grant.is_kept();
        if is_kept {
            grant.kept_args = keyed(&self.key, &grant.binding.call);
        }
        self.all.push(grant);
        if is_kept && let Err(error) = self.write() {
            self.all.pop();
            return Err(unwritten(&error));
        }
        Ok(())
    }

    /// Makes one good again that was used up.
    pub(super) fn give_back(&mut self, grant: Grant) {
        self.all.push(grant);
    }

    /// Uses a grant that covers the call, if there is one; one that is good once is used up, and given back by value.
    pub(super) fn spend(&mut self, binding: &Binding) -> Option<(ApprovalGrant, Option<Box<Grant>>)> {
        let place = self.all.iter().position(|grant| grant.covers(binding, &self.key))?;
        let view = self.all[place].view.clone();
        let used_up = (view.reach == GrantReach::Once).then(|| Box::new(self.all.remove(place)));
        Some((view, used_up))
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.all.iter().any(|grant| grant.view.id == id)
    }

    /// Newest first.
    pub(super) fn list(&self) -> Vec<ApprovalGrant> {
        let mut views: Vec<ApprovalGrant> = self.all.iter().map(|grant| grant.view.clone()).collect();
        views.sort_by(|one, two| (two.at, &two.id).cmp(&(one.at, &one.id)));
        views
    }

    pub(super) fn revoke(&mut self, id: &str) -> Result<ApprovalGrant, ToolError> {
        let Some(place) = self.all.iter().position(|grant| grant.view.id == id) else {
            let message = "no approval has this id; it was used, revoked, or its time is over. \
                           `sinew approvals grants` lists those there are";
            return Err(ToolError::new(ErrorKind::UnknownResource, message));
        };
        let removed = self.all.remove(place);
        if removed.is_kept()
            && let Err(error) = self.write()
        {
            let view = removed.view.clone();
            self.all.insert(place, removed);
            tracing::warn!(id = view.id, %error, "an approval was not revoked");
            return Err(unwritten(&error));
        }
        Ok(removed.view)
    }

    fn write(&self) -> io::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let grants: Vec<KeptGrant> = self.all.iter().filter(|grant| grant.is_kept()).map(KeptGrant::of).collect();
        let text = serde_json::to_vec(&KeptGrants { grants })?;
        write_private_synced(path, &text)
    }
}

fn unwritten(error: &io::Error) -> ToolError {
    let message = format!("the list of what is always allowed cannot be written: {error}; nothing was changed");
    ToolError::new(ErrorKind::Internal, message)
}

/// 1,000 grants with long arguments.
const MAX_FILE: u64 = 8 << 20;

fn read(path: &Path) -> io::Result<Vec<KeptGrant>> {
    use std::io::Read as _;
    let mut text = Vec::new();
    match std::fs::File::open(path) {
        Ok(file) => file.take(MAX_FILE).read_to_end(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let kept: KeptGrants = serde_json::from_slice(&text)
        .map_err(|error| io::Error::other(format!("{error}; remove the file to forget all of them")))?;
    Ok(kept.grants)
}

#[derive(Serialize, Deserialize)]
struct KeptGrants {
    grants: Vec<KeptGrant>,
}

/// A grant in the file.
#[derive(Serialize, Deserialize)]
struct KeptGrant {
    #[serde(flatten)]
    view: ApprovalGrant,
    caller: String,
    revocable: bool,
    device_key: String,
    tool_digest: String,
    args_digest: String,
    asked_by: Vec<String>,
}

impl KeptGrant {
    fn of(grant: &Grant) -> KeptGrant {
        KeptGrant {
            view: grant.view.clone(),
            caller: grant.who.id.clone(),
            revocable: grant.who.revocable,
            device_key: grant.binding.call.device.clone(),
            tool_digest: grant.binding.call.tool.hex(),
            args_digest: grant.kept_args.clone(),
            asked_by: grant.binding.asked_by.clone(),
        }
    }

    /// `None` for one that was edited until it means nothing.
    fn into_grant(self) -> Option<Grant> {
        let tool = Digest::parse(&self.tool_digest)?;
        if self.view.reach == GrantReach::Once || self.view.ends.is_some() {
            return None;
        }
        // Only the keyed digest of the arguments is kept.
        let call = CallIdentity { device: self.device_key, tool, args: Digest::of(&sinew_tool::Value::Null) };
        let binding = Binding { principal: self.caller.clone(), policy: "".into(), asked_by: self.asked_by, call };
        let who = Principal {
            id: self.caller,
            revocable: self.revocable,
            ..Principal::new(self.view.principal.clone(), Role::Client)
        };
        Some(Grant { view: self.view, binding, who, ends: None, kept_args: self.args_digest })
    }
}
