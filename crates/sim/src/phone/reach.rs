//! The way to the apps of a virtual phone that is driven directly: its own shell, with no adb between.

use std::time::Duration;

use serde_json::Value;
use sinew_phones::adb::command::ShellCommand;
use sinew_phones::adb::shell::{CommandLimits, CommandOutput};
use sinew_phones::agent::{ActivityAnswer, ActivityCall, AgentError, AgentRefusal, CompanionError};
use sinew_phones::app_control::RunCommand;
use sinew_phones::{Phone, PhoneAccess, PhoneError, PhoneIdentity, Work};
use sinew_tool::BoxFuture;
use tokio::time::timeout;

use super::adbd::shell::Shell;
use super::direct::VirtualPhone;

impl RunCommand for VirtualPhone {
    fn run_command<'a>(&'a self, command: &'a ShellCommand, limits: CommandLimits) -> Work<'a, CommandOutput> {
        self.run(command, limits)
    }
}

impl PhoneAccess for VirtualPhone {
    fn about(&self) -> PhoneIdentity {
        Phone::about(self)
    }

    fn run<'a>(&'a self, command: &'a ShellCommand, limits: CommandLimits) -> Work<'a, CommandOutput> {
        Box::pin(async move {
            self.handset.take_time().await?;
            let mut shell = Shell::new(self.handset.clone());
            let late = |_| PhoneError::Timeout(format!("`{}` took too long", command.name()));
            let (stdout, stderr, exit) = timeout(limits.time, shell.run(command.line())).await.map_err(late)?;
            Ok(CommandOutput { stdout, stderr, exit })
        })
    }

    fn has_agent(&self) -> bool {
        true
    }

    fn provider_call<'a>(
        &'a self,
        authority: &'a str,
        method: &'a str,
        extras: &'a Value,
        _: Duration,
    ) -> BoxFuture<'a, Result<Value, AgentError>> {
        let refused =
            |(kind, message): (String, String)| AgentError::Refused { kind: AgentRefusal::parse(&kind), message };
        let virtual_apps = self.handset.virtual_apps();
        let answer = match virtual_apps.iter().find_map(|virtual_app| virtual_app.providers.get(authority)) {
            Some(provider) => provider(method, extras).map_err(refused),
            None => Err(refused(("not_found".to_owned(), format!("no app offers the content provider '{authority}'")))),
        };
        Box::pin(std::future::ready(answer))
    }

    fn activity_call<'a>(
        &'a self,
        _: &'a ActivityCall<'a>,
        _: Duration,
    ) -> BoxFuture<'a, Result<ActivityAnswer, CompanionError>> {
        let absent = CompanionError::Absent(Phone::about(self).serial);
        Box::pin(std::future::ready(Err(absent)))
    }
}
