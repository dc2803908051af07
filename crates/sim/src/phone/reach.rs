//! The way to the apps of a virtual phone that is driven directly: its own shell, with no adb between.

use std::convert::Infallible;
use std::time::Duration;

use serde_json::Value;
use sinew_phones::adb::command::ShellCommand;
use sinew_phones::adb::shell::{CommandLimits, CommandOutput};
use sinew_phones::agent::{ActivityAnswer, ActivityCall, AgentError, AgentRefusal, CompanionError};
use sinew_phones::control::{FolderEntry, Held};
use sinew_phones::{Phone, PhoneAccess, PhoneError, PhoneIdentity, PhoneShell, Work};
use sinew_tool::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::adbd::shell::Shell;
use super::direct::VirtualPhone;
use super::handset::{Handset, gone};

impl PhoneShell for VirtualPhone {
    fn run_command<'a>(&'a self, command: &'a ShellCommand, limits: CommandLimits) -> Work<'a, CommandOutput> {
        self.run(command, limits)
    }

    fn feed<'a>(
        &'a self,
        command: &'a ShellCommand,
        input: &'a mut (dyn AsyncRead + Send + Unpin),
        limits: CommandLimits,
    ) -> Work<'a, CommandOutput> {
        Box::pin(async move {
            let mut bytes = Vec::new();
            input.read_to_end(&mut bytes).await.map_err(|error| PhoneError::Failed(error.to_string()))?;
            self.handset.take_time().await?;
            let mut shell = Shell::new(self.handset.clone());
            let late = |_| PhoneError::Timeout(format!("`{}` took too long", command.name()));
            let run = timeout(limits.time, shell.run_with(command.line(), bytes));
            let (stdout, stderr, exit) = run.await.map_err(late)?;
            Ok(CommandOutput { stdout, stderr, exit })
        })
    }

    fn hold<'a>(&'a self, open: &'a ShellCommand, close: &'a ShellCommand) -> Work<'a, Box<dyn Held>> {
        Box::pin(async move {
            self.handset.take_time().await?;
            let ((tell, opened), (release, released)) = (oneshot::channel(), oneshot::channel::<Infallible>());
            let (mut shell, handset) = (Shell::new(self.handset.clone()), self.handset.clone());
            let (open, close) = (open.line().to_owned(), close.line().to_owned());
            // Of its own: the phone ends what it has begun, whoever has left.
            let closing = tokio::spawn(async move {
                let (out, err, _) = shell.run(&open).await;
                let printed = String::from_utf8_lossy(&[out, err].concat()).trim().to_owned();
                shell.set_variable("opened", &printed);
                let _ = tell.send(printed);
                tokio::select! {
                    _ = released => {}
                    () = handset.unplugged() => {}
                }
                shell.run(&close).await;
            });
            let opened = opened.await.map_err(|_| gone())?;
            let held: Box<dyn Held> =
                Box::new(HeldDirectly { handset: self.handset.clone(), opened, release, closing });
            Ok(held)
        })
    }

    fn list_folder<'a>(&'a self, path: &'a str) -> Work<'a, Vec<FolderEntry>> {
        Box::pin(async move {
            self.handset.take_time().await?;
            let files = self.handset.files();
            let entry = |name: String| {
                let stat = files.stat(&format!("{path}/{name}")).ok()?;
                Some(FolderEntry { name, mode: stat.mode, size: stat.size, modified: u64::from(stat.time) })
            };
            Ok(files.list(path).unwrap_or_default().into_iter().filter_map(entry).collect())
        })
    }

    fn pull<'a>(
        &'a self,
        path: &'a str,
        into: &'a mut (dyn AsyncWrite + Send + Unpin),
        most: u64,
        _: Duration,
    ) -> Work<'a, u64> {
        Box::pin(async move {
            self.handset.take_time().await?;
            let failed = |why: String| PhoneError::Failed(why);
            let data = self.handset.files().read(path).map(|file| file.data.clone());
            let data = data.map_err(|error| failed(format!("open failed: {}", error.text())))?;
            if data.len() as u64 > most {
                return Err(PhoneError::TooLarge(format!("`pull` answered more than {most} bytes")));
            }
            into.write_all(&data).await.map_err(|error| failed(error.to_string()))?;
            Ok(data.len() as u64)
        })
    }

    fn push<'a>(&'a self, from: &'a mut (dyn AsyncRead + Send + Unpin), path: &'a str, _: Duration) -> Work<'a, u64> {
        Box::pin(async move {
            let mut data = Vec::new();
            from.read_to_end(&mut data).await.map_err(|error| PhoneError::Failed(error.to_string()))?;
            self.handset.take_time().await?;
            let (size, time) = (data.len() as u64, self.handset.with(|machine| (machine.epoch() / 1000) as u32));
            let written = self.handset.files().write(path, data, 0o644, time);
            written.map_err(|error| PhoneError::Failed(format!("couldn't create file: {}", error.text())))?;
            Ok(size)
        })
    }
}

/// What is open on a phone that is driven directly.
struct HeldDirectly {
    handset: Handset,
    opened: String,
    release: oneshot::Sender<Infallible>,
    closing: JoinHandle<()>,
}

impl Held for HeldDirectly {
    fn opened(&self) -> &str {
        &self.opened
    }

    fn lost(&mut self) -> Work<'_, Infallible> {
        Box::pin(async {
            self.handset.unplugged().await;
            Err(gone())
        })
    }

    fn release(self: Box<Self>) -> Work<'static, ()> {
        Box::pin(async move {
            drop(self.release);
            self.closing.await.map_err(|_| gone())
        })
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
