//! What finding and calling the tools of apps needs of a phone, beyond the primitives of every phone.

use std::time::Duration;

use serde_json::Value;
use sinew_tool::BoxFuture;

use crate::adb::Transport;
use crate::adb::command::Command;
use crate::adb::shell::{Limits, Output};
use crate::agent::{ActivityAnswer, ActivityCall, AgentError, Companion, CompanionError, Standby};
use crate::phone::{About, Work};

/// The way to the apps of one phone. Every answer comes within the bound that is given.
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

/// The way through adb.
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
