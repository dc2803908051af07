//! What other crates may do with a connected phone beyond the tools of this one: [`Access`] runs commands on it
//! and calls its apps, and an [`Extension`] runs beside each phone for as long as it is connected.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sinew_tool::{Announce, BoxFuture};
use tokio_util::sync::CancellationToken;

use crate::adb::Transport;
use crate::adb::command::Command;
use crate::adb::shell::{Limits, Output};
use crate::agent::{ActivityAnswer, ActivityCall, AgentError, Companion, CompanionError, Standby};
use crate::phone::{About, Work};

/// Direct access to one connected phone. Every answer comes within the bound that is given.
pub trait Access: Send + Sync {
    fn about(&self) -> About;

    fn run<'a>(&'a self, command: &'a Command, limits: Limits) -> Work<'a, Output>;

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
    fn run(&self, phone: Arc<dyn Access>, announce: Announce, shutdown: CancellationToken) -> BoxFuture<'static, ()>;
}

/// Access through adb.
pub struct AdbAccess {
    about: About,
    transport: Transport,
    agent: Standby,
    companion: Companion,
}

impl AdbAccess {
    pub fn new(about: About, transport: Transport, agent: Standby) -> AdbAccess {
        let companion = Companion::new(transport.clone());
        AdbAccess { about, transport, agent, companion }
    }
}

impl Access for AdbAccess {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn run<'a>(&'a self, command: &'a Command, limits: Limits) -> Work<'a, Output> {
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
