//! The way to the apps of a virtual phone that is driven directly: its own shell, with no adb between.

use std::time::Duration;

use serde_json::Value;
use sinew_phones::adb::command::Command;
use sinew_phones::adb::shell::{Limits, Output};
use sinew_phones::agent::{ActivityAnswer, ActivityCall, AgentError, CompanionError, Refusal};
use sinew_phones::{About, Access, Phone, PhoneError, Work};
use sinew_tool::BoxFuture;
use tokio::time::timeout;

use super::adbd::shell::Shell;
use super::direct::VirtualPhone;

impl Access for VirtualPhone {
    fn about(&self) -> About {
        Phone::about(self)
    }

    fn run<'a>(&'a self, command: &'a Command, limits: Limits) -> Work<'a, Output> {
        Box::pin(async move {
            self.handset.take_time().await?;
            let mut shell = Shell::new(self.handset.clone());
            let late = |_| PhoneError::Timeout(format!("`{}` took too long", command.name()));
            let (stdout, stderr, exit) = timeout(limits.time, shell.run(command.line())).await.map_err(late)?;
            Ok(Output { stdout, stderr, exit })
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
        let refused = |(kind, message): (String, String)| AgentError::Refused { kind: Refusal::parse(&kind), message };
        let guests = self.handset.guests();
        let answer = match guests.iter().find_map(|guest| guest.providers.get(authority)) {
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
