//! An agent that is started when it is needed; without one, the shell serves alone.
//!
//! Nothing happens on a phone before somebody uses it. Reading the screen, setting text, several
//! fingers and the clipboard start the agent; one finger and keys use it where it runs. Whatever it
//! cannot do says [`PhoneError::Unsupported`] with the reason, and the shell below takes over.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::error::AgentError;
use super::files::AgentSource;
use super::link::Agent;
use crate::adb::AdbTransport;
use crate::phone::{Capabilities, Phone, PhoneError, PhoneIdentity, Work};
use crate::touch::{Key, Stroke};
use crate::tree::{Tree, UiNode};

/// An agent that ran this long started without a problem.
const SETTLED: Duration = Duration::from_secs(60);

/// An agent that is idle this long is ended: it keeps other programs from reading the screen. Longer than
/// any single call.
const IDLE: Duration = Duration::from_secs(900);

/// The longest pause before the next try.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The agent of one phone, whether it runs or not. Cheap to clone.
#[derive(Clone)]
pub struct Standby {
    shared: Arc<StandbyInner>,
}

struct StandbyInner {
    transport: AdbTransport,
    source: AgentSource,
    state: Mutex<StandbyState>,
    /// One start at a time.
    starting: tokio::sync::Mutex<()>,
    changed: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct StandbyState {
    agent: Option<(Agent, Instant)>,
    /// Consecutive failed starts and agents that died soon after their start.
    failures: u32,
    trouble: Option<(String, Instant)>,
}

impl Standby {
    pub fn new(transport: AdbTransport, source: AgentSource) -> Standby {
        let shared = StandbyInner {
            transport,
            source,
            state: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
            changed: OnceLock::new(),
        };
        Standby { shared: Arc::new(shared) }
    }

    /// Called whenever the agent starts or ends. Only the first listener is kept.
    pub fn on_change(&self, listener: impl Fn() + Send + Sync + 'static) {
        let _ = self.shared.changed.set(Box::new(listener));
    }

    /// The agent where it runs.
    pub fn running(&self) -> Option<Agent> {
        let agent = self.shared.lock().agent.as_ref().map(|(agent, _)| agent.clone());
        agent.filter(|agent| agent.ended().is_none())
    }

    /// The agent, started where need be; or why there is none.
    pub async fn agent(&self) -> Result<Agent, AgentError> {
        if let Some(agent) = self.running() {
            return Ok(agent);
        }
        let jar = self.shared.source.jar().await?;
        let _one = self.shared.starting.lock().await;
        if let Some(agent) = self.running() {
            return Ok(agent);
        }
        self.shared.bury()?;
        match Agent::start(&self.shared.transport, &jar).await {
            Ok(agent) => {
                self.welcome(&agent);
                Ok(agent)
            }
            Err(error) => {
                self.shared.fail(error.to_string(), Duration::from_secs(1));
                self.shared.tell();
                Err(error)
            }
        }
    }

    pub(super) fn welcome(&self, agent: &Agent) {
        tracing::info!(phone = %self.shared.transport.serial, version = %agent.hello().version, "agent started");
        {
            let mut state = self.shared.lock();
            state.agent = Some((agent.clone(), Instant::now()));
            state.trouble = None;
        }
        self.shared.tell();
        // The task that waits for the end keeps neither the agent nor the phone alive.
        let (closed, shared) = (agent.closed(), Arc::downgrade(&self.shared));
        tokio::spawn(async move {
            loop {
                let ended = tokio::time::timeout(IDLE / 15, closed.cancelled()).await.is_ok();
                let Some(shared) = shared.upgrade() else { return };
                if ended || shared.let_go() {
                    return shared.tell();
                }
            }
        });
    }

    /// The agent's state for people: its version, or why it does not run.
    fn status(&self) -> String {
        if let Some(agent) = self.running() {
            return agent.hello().version.clone();
        }
        if self.shared.source == AgentSource::Off {
            return "off".to_owned();
        }
        let state = self.shared.lock();
        let ended = state.agent.as_ref().and_then(|(agent, _)| agent.ended());
        match ended.or_else(|| state.trouble.as_ref().map(|(why, _)| why.clone())) {
            Some(why) => format!("absent: {why}"),
            None => "ready to start".to_owned(),
        }
    }
}

impl StandbyInner {
    fn lock(&self) -> MutexGuard<'_, StandbyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends an agent that has been idle for long. That is not a failure, so the next start has no pause.
    fn let_go(&self) -> bool {
        let mut state = self.lock();
        let is_idle = state.agent.as_ref().is_some_and(|(agent, _)| agent.idle() >= IDLE);
        if is_idle {
            state.agent = None;
            state.failures = 0;
        }
        is_idle
    }

    /// Counts an agent that died, and refuses until the next start is allowed.
    fn bury(&self) -> Result<(), AgentError> {
        let dead = self.lock().agent.take();
        if let Some((agent, since)) = dead {
            if since.elapsed() >= SETTLED {
                self.lock().failures = 0;
            }
            self.fail(format!("the agent ended: {}", agent.ended().unwrap_or_default()), Duration::ZERO);
        }
        let state = self.lock();
        match &state.trouble {
            Some((why, until)) if *until > Instant::now() => {
                let rest = until.duration_since(Instant::now()).as_secs() + 1;
                Err(AgentError::Absent(format!("{why}; next attempt in {rest} s")))
            }
            _ => Ok(()),
        }
    }

    /// After the first trouble the pause is as given, then two seconds, and it doubles.
    fn fail(&self, why: String, first: Duration) {
        tracing::warn!(phone = %self.transport.serial, "{why}");
        let mut state = self.lock();
        let pause = match state.failures {
            0 => first,
            failures => Duration::from_secs(1 << failures.min(9)).min(LONGEST_PAUSE),
        };
        state.failures = state.failures.saturating_add(1);
        state.trouble = Some((why, Instant::now() + pause));
    }

    fn tell(&self) {
        if let Some(changed) = self.changed.get() {
            changed();
        }
    }
}

/// Whether two strokes overlap in time.
fn has_several_fingers(strokes: &[Stroke]) -> bool {
    let mut times: Vec<_> = strokes.iter().map(|stroke| (stroke.start(), stroke.end())).collect();
    times.sort();
    times.windows(2).any(|pair| pair[1].0 < pair[0].1)
}

impl Standby {
    async fn wanted(&self, what: &'static str) -> Result<Agent, PhoneError> {
        self.agent().await.map_err(|error| error.of_acting(what))
    }

    fn at_hand(&self, what: &'static str) -> Result<Agent, PhoneError> {
        self.running().ok_or_else(|| PhoneError::unsupported(what, "the agent does not run"))
    }
}

impl Phone for Standby {
    fn about(&self) -> PhoneIdentity {
        PhoneIdentity { serial: self.shared.transport.serial.clone(), ..PhoneIdentity::default() }
    }

    fn capabilities(&self) -> Capabilities {
        match self.running() {
            Some(agent) => agent.capabilities(),
            None => Capabilities { agent: Some(self.status()), ..Capabilities::default() },
        }
    }

    fn tree(&self) -> Work<'_, Tree> {
        Box::pin(async { self.wanted("reading the screen's tree").await?.tree().await })
    }

    fn touch<'a>(&'a self, strokes: &'a [Stroke]) -> Work<'a, ()> {
        Box::pin(async move {
            let agent = match has_several_fingers(strokes) {
                true => self.wanted("touching with several fingers").await?,
                false => self.at_hand("touching the screen")?,
            };
            agent.touch(strokes).await
        })
    }

    fn key(&self, key: Key) -> Work<'_, ()> {
        Box::pin(async move { self.at_hand("pressing a key")?.key(key).await })
    }

    fn set_text<'a>(&'a self, node: &'a UiNode, text: &'a str) -> Work<'a, ()> {
        Box::pin(async move {
            let agent = self.wanted("setting a field's text").await?;
            agent.set_text(node, text).await
        })
    }

    fn select<'a>(&'a self, node: &'a UiNode, start: usize, end: usize) -> Work<'a, ()> {
        Box::pin(async move { self.wanted("selecting text").await?.select(node, start, end).await })
    }

    /// Watching is worth a start: the shell takes a second for each picture.
    fn small_screenshot(&self, max_side: u32, quality: u8) -> Work<'_, Vec<u8>> {
        Box::pin(
            async move { self.wanted("taking small screenshots").await?.small_screenshot(max_side, quality).await },
        )
    }

    fn type_text<'a>(&'a self, text: &'a str) -> Work<'a, ()> {
        Box::pin(async move {
            let agent = self.wanted("typing").await?;
            agent.type_text(text).await
        })
    }

    fn clipboard(&self) -> Work<'_, Option<String>> {
        Box::pin(async { self.wanted("reading the clipboard").await?.clipboard().await })
    }

    fn set_clipboard<'a>(&'a self, text: &'a str) -> Work<'a, ()> {
        Box::pin(async move { self.wanted("setting the clipboard").await?.set_clipboard(text).await })
    }
}
