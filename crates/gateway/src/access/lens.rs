//! What one caller sees of devices and tools. Everything that answers a caller looks through it, so that what is hidden
//! cannot be learned from lists, errors or suggestions.

use std::sync::Arc;

use sinew_policy::{Plan, Rights};
use sinew_tool::ToolUse;

use super::PolicyInForce;
use crate::nested::MAX_DEPTH;
use crate::snapshot::{DeviceEntry, Holder, Snapshot};

#[derive(Clone)]
pub(crate) struct Lens {
    snapshot: Arc<Snapshot>,
    in_force: Arc<PolicyInForce>,
    rights: Arc<Rights>,
    sees_user_tools: bool,
}

/// Callers with equal keys see the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LensKey {
    policy: Arc<str>,
    rights: Arc<Rights>,
    sees_user_tools: bool,
}

impl Lens {
    pub(crate) fn new(
        snapshot: Arc<Snapshot>,
        in_force: Arc<PolicyInForce>,
        rights: Arc<Rights>,
        sees_user_tools: bool,
    ) -> Lens {
        Lens { snapshot, in_force, rights, sees_user_tools }
    }

    /// Whether the policy hides nothing from anybody, so that lists can be shared.
    pub(crate) fn hides_nothing(&self) -> bool {
        !self.in_force.can_hide
    }

    /// Whether the caller may read what is said about all tools of a device, such as which are held back. Whoever writes
    /// the policy may.
    pub(crate) fn knows_all(&self) -> bool {
        self.hides_nothing() || self.rights.is_admin()
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.rights.is_admin()
    }

    pub(crate) fn sees_user_tools(&self) -> bool {
        self.sees_user_tools
    }

    pub(crate) fn key(&self) -> LensKey {
        LensKey {
            policy: self.in_force.version().clone(),
            rights: self.rights.clone(),
            sees_user_tools: self.sees_user_tools,
        }
    }

    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    pub(crate) fn in_force(&self) -> &Arc<PolicyInForce> {
        &self.in_force
    }

    pub(crate) fn plan(&self, holder: Holder<'_>) -> Arc<Plan> {
        self.in_force.plan(&self.rights, holder)
    }

    pub(crate) fn sees(&self, holder: Holder<'_>) -> bool {
        holder.offered.is_seen(self.sees_user_tools)
            && (self.hides_nothing() || !self.in_force.policy().hides(&self.plan(holder)))
            && holder.offered.tool.uses.iter().all(|tool| self.sees_use(tool, MAX_DEPTH))
    }

    /// Whether a tool that another one calls is seen on one device at least, or is not there at all. Calls end at a
    /// depth, so what is deeper is never called.
    fn sees_use(&self, tool: &ToolUse, depth: u8) -> bool {
        let used = self.snapshot.used(tool);
        let sees = |holder: &Holder<'_>| {
            let is_listed = holder.offered.is_seen(self.sees_user_tools)
                && (self.hides_nothing() || !self.in_force.policy().hides(&self.plan(*holder)));
            is_listed && (depth == 0 || holder.offered.tool.uses.iter().all(|tool| self.sees_use(tool, depth - 1)))
        };
        used.is_empty() || used.iter().any(sees)
    }

    /// A device is seen where one of its tools is. One without tools is seen unless a rule hides whatever it has.
    pub(crate) fn sees_device(&self, entry: &Arc<DeviceEntry>) -> bool {
        let tools = &entry.offer.tools;
        self.knows_all()
            || tools.iter().any(|offered| self.sees(Holder { entry, offered }))
            || (tools.is_empty() && !self.in_force.hides_device(&self.rights, entry))
    }
}
