//! What other crates may do with a connected phone beyond the tools of this one: [`PhoneAccess`] runs commands on it
//! and calls its apps, and an [`Extension`] runs beside each phone for as long as it is connected.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sinew_tool::{Announce, BoxFuture};
use tokio_util::sync::CancellationToken;

use crate::adb::AdbTransport;
use crate::adb::command::ShellCommand;
use crate::adb::shell::{CommandLimits, CommandOutput};
use crate::agent::{ActivityAnswer, ActivityCall, AgentError, Companion, CompanionError, Standby};
use crate::phone::{PhoneIdentity, Work};

/// Direct access to one connected phone. Every answer comes within the bound that is given.
pub trait PhoneAccess: Send + Sync {
    fn about(&self) -> PhoneIdentity;

    fn run<'a>(&'a self, command: &'a ShellCommand, limits: CommandLimits) -> Work<'a, CommandOutput>;

    /// Whether the agent runs already.
    fn has_agent(&self) -> bool;

    /// Calls a content provider through the agent, which is started where need be. Bundles are the
    /// agent's JSON; null where there is none.
    fn provider_call<'a>(
        &'a self,
        authority: &'a str,
        method: &'a str,
        extras: &'a Value,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Value, AgentError>>;

    /// Calls an activity for its result, through the companion.
    fn activity_call<'a>(
        &'a self,
        call: &'a ActivityCall<'a>,
        limit: Duration,
    ) -> BoxFuture<'a, Result<ActivityAnswer, CompanionError>>;
}

/// Work that accompanies each connected phone and may announce devices of its own, for example the apps on it.
pub trait Extension: fmt::Debug + Send + Sync {
    /// Runs until `shutdown`, which comes when the phone leaves; reports its devices as left before it ends.
    fn run(
        &self,
        phone: Arc<dyn PhoneAccess>,
        announce: Announce,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, ()>;
}

/// Access through adb.
pub struct AdbAccess {
    about: PhoneIdentity,
    transport: AdbTransport,
    agent: Standby,
    companion: Companion,
}

impl AdbAccess {
    pub fn new(about: PhoneIdentity, transport: AdbTransport, agent: Standby) -> AdbAccess {
        let companion = Companion::new(transport.clone());
        AdbAccess { about, transport, agent, companion }
    }
}

impl PhoneAccess for AdbAccess {
    fn about(&self) -> PhoneIdentity {
        self.about.clone()
    }

    fn run<'a>(&'a self, command: &'a ShellCommand, limits: CommandLimits) -> Work<'a, CommandOutput> {
        Box::pin(async move { Ok(self.transport.run(command, limits).await?) })
    }

    fn has_agent(&self) -> bool {
        self.agent.running().is_some()
    }

    fn provider_call<'a>(
        &'a self,
        authority: &'a str,
        method: &'a str,
        extras: &'a Value,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Value, AgentError>> {
        Box::pin(async move {
            let agent = self.agent.agent().await?;
            agent.provider_call(authority, method, None, extras, None, limit).await
        })
    }

    fn activity_call<'a>(
        &'a self,
        call: &'a ActivityCall<'a>,
        limit: Duration,
    ) -> BoxFuture<'a, Result<ActivityAnswer, CompanionError>> {
        Box::pin(self.companion.call(call, limit))
    }
}
