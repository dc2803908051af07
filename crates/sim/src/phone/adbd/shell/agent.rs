//! `app_process`: runs nothing but Sinew's agent, and that only where the phone was given one.

use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;

use super::super::connection::Closed;
use super::live::{LiveInput, LiveOutput, LiveStream};
use super::{Io, Shell};
use crate::phone::agent::{AgentStandIn, ScriptedAgent, answer_all};
use crate::phone::android::Android;

/// What a program ends with that was killed.
const KILLED: u8 = 137;

impl Shell {
    pub(super) async fn app_process(&mut self, args: &[&str], io: &mut Io<'_, '_>) -> Result<u8, Closed> {
        let Some(end) = self.handset.agent() else {
            io.error("/system/bin/sh: app_process: not found: this virtual phone runs no Java");
            return Ok(127);
        };
        let path = self.class_path.take().unwrap_or_default();
        let mode = self.files().read(&path).map(|file| file.mode);
        let (["/", "sinew.agent.Main"], Ok(mode)) = (args, mode) else {
            io.error("Error: could not find or load main class");
            return Ok(1);
        };
        if self.android() >= Android::V15 && mode & 0o222 != 0 {
            io.error(format!("java.lang.SecurityException: Writable dex file '{path}' is not allowed."));
            return Ok(1);
        }
        io.flush().await?;
        let Some(live) = &mut io.live else { return Ok(1) };
        let LiveStream { typed, told, .. } = &mut **live;
        let killed = self.handset.agent_killed();
        let code = tokio::select! {
            code = run(end, self, typed, told) => code,
            () = killed => Ok(KILLED),
        };
        self.handset.hold_tree(false);
        code
    }
}

async fn run(
    end: AgentStandIn,
    shell: &Shell,
    typed: &mut LiveInput<'_>,
    told: &mut LiveOutput<'_>,
) -> Result<u8, Closed> {
    match end {
        AgentStandIn::ScriptedAgent(played) => play(&played, typed, told).await,
        AgentStandIn::Java(jar) => {
            let Ok(listener) = TcpListener::bind(("127.0.0.1", 0)).await else { return Ok(1) };
            let port = listener.local_addr().map(|address| address.port()).unwrap_or_default();
            let mut java = Command::new("java");
            // Started for seconds: a quick compiler, and no time spent on a better one.
            java.args(["-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp"]).arg(&jar);
            java.args(["sinew.agent.HostMain", "--phone", &port.to_string()]);
            java.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
            let mut child = match java.spawn() {
                Ok(child) => child,
                Err(error) => {
                    told.write(b"", format!("java cannot be run: {error}\n").as_bytes()).await?;
                    return Ok(127);
                }
            };
            let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) =
                (child.stdin.take(), child.stdout.take(), child.stderr.take())
            else {
                return Ok(1);
            };
            let feed = async {
                while let Some(bytes) = typed.read().await {
                    if stdin.write_all(&bytes).await.is_err() {
                        break;
                    }
                }
                // Its input ends, and with it the agent; what it still says is carried back.
                drop(stdin);
                std::future::pending::<()>().await;
            };
            let drain = async {
                let (mut out, mut err) = (vec![0; 32 << 10], vec![0; 4 << 10]);
                let mut complaining = true;
                loop {
                    tokio::select! {
                        read = stdout.read(&mut out) => match read.unwrap_or(0) {
                            0 => return Ok(()),
                            read => told.write(&out[..read], b"").await?,
                        },
                        read = stderr.read(&mut err), if complaining => match read.unwrap_or(0) {
                            0 => complaining = false,
                            read => told.write(b"", &err[..read]).await?,
                        },
                    }
                }
            };
            tokio::select! {
                () = feed => {}
                () = answer_all(listener, shell.handset.clone()) => {}
                drained = drain => drained?,
            }
            let code = child.wait().await.ok().and_then(|status| status.code());
            Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(KILLED))
        }
    }
}

/// A scripted agent: a first line, and an answer to each line.
async fn play(played: &ScriptedAgent, typed: &mut LiveInput<'_>, told: &mut LiveOutput<'_>) -> Result<u8, Closed> {
    told.write(format!("{}\n", played.hello).as_bytes(), b"").await?;
    let mut held = Vec::new();
    while let Some(bytes) = typed.read().await {
        held.extend(bytes);
        while let Some(end) = held.iter().position(|byte| *byte == b'\n') {
            let rest = held.split_off(end + 1);
            let line = std::mem::replace(&mut held, rest);
            match (played.react)(String::from_utf8_lossy(&line).trim_end()) {
                Some(answer) => told.write(format!("{answer}\n").as_bytes(), b"").await?,
                None => return Ok(1),
            }
        }
    }
    Ok(0)
}
