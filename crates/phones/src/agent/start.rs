//! Copies the agent to a phone and starts it.

use std::time::Duration;

use tokio::time::timeout;

use super::error::AgentError;
use super::hello::AgentHello;
use super::link::{Agent, LineBuffer};
use crate::adb::AdbTransport;
use crate::adb::command::ShellCommand;
use crate::adb::program::ProgramOutput;

/// Where the agent lies on the phone. The shell user may read there, apps may not.
const PLACE: &str = "/data/local/tmp/sinew-agent.jar";

/// A slow phone takes seconds to start a Java program; the caller has half a minute for everything.
const HELLO: Duration = Duration::from_secs(10);

/// Lines before the hello that are skipped: linkers warn on the same stream.
const MOST_NOISE: usize = 64;

impl Agent {
    /// Copies the agent to the phone, starts it and reads its hello.
    pub async fn start(transport: &AdbTransport, jar: &[u8]) -> Result<Agent, AgentError> {
        // 0444: since Android 14 a dex file that its reader may write is not loaded.
        transport.push(jar, PLACE, 0o444, Duration::from_secs(10)).await?;
        // `exec`, so that the shell does not stand between the stream and the program. Its end is told by the end of its
        // input: a signal would end it in the middle of a gesture, with the finger on the screen.
        let command = match transport.shell_v2 {
            true => ShellCommand::new(
                "trap '' HUP; CLASSPATH=/data/local/tmp/sinew-agent.jar exec app_process / sinew.agent.Main",
            ),
            false => ShellCommand::new(
                "trap '' HUP; CLASSPATH=/data/local/tmp/sinew-agent.jar exec app_process / sinew.agent.Main 2>/dev/null",
            ),
        };
        let (input, mut output) = transport.start(&command).await?;
        let mut lines = LineBuffer::default();
        let heard = timeout(HELLO, hear(&mut output, &mut lines)).await;
        let heard = heard.unwrap_or_else(|_| Err(format!("it said nothing within {} s", HELLO.as_secs())));
        let hello = heard.map_err(|why| {
            AgentError::Absent(format!("the agent did not start on phone {}: {why}", transport.serial))
        })?;
        Ok(Agent::new(hello, input, output, lines))
    }
}

async fn hear(output: &mut ProgramOutput, lines: &mut LineBuffer) -> Result<AgentHello, String> {
    let mut noise = 0;
    loop {
        while let Some(line) = lines.next() {
            if let Some(hello) = AgentHello::parse(&line) {
                return hello;
            }
            noise += 1;
            if noise > MOST_NOISE {
                return Err("it wrote too many lines that are not a hello".to_owned());
            }
        }
        lines.take(output.read().await)?;
    }
}
