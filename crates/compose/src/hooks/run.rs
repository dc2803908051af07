//! Carries hooks out, one event after another.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, json};
use sinew_gateway::{Gateway, Principal, Request, StoredEvent, Update};
use sinew_steps::{RunReport, StepClock, StepHost};
use sinew_tool::{Args, BoxFuture, ErrorKind, Outcome, ToolError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{EVENT, HookPlan, LIMITS};
use crate::relay::is_selected;

/// In the audit.
pub(super) const DOOR: &str = "hook";
/// Events that are read at once.
const PAGE: usize = 100;
const MINUTE: Duration = Duration::from_secs(60);

/// Follows the events for one hook until `end`. What happened before is left alone.
pub(crate) async fn run(plan: HookPlan, gateway: Gateway, end: CancellationToken) -> std::io::Result<()> {
    let who = Principal::hook(&plan.config.name);
    let hook = RunningHook { plan, gateway, who, rate: Mutex::default() };
    let mut watch = hook.gateway.watch();
    let mut cursor = hook.skip_old().await;
    loop {
        tokio::select! {
            update = watch.next() => {
                if matches!(update, Update::Event { .. }) {
                    cursor = hook.take_new(cursor, &end).await;
                }
            }
            () = end.cancelled() => return Ok(()),
        }
    }
}

struct RunningHook {
    plan: HookPlan,
    gateway: Gateway,
    who: Principal,
    rate: Mutex<HookRate>,
}

#[derive(Default)]
struct HookRate {
    /// When it acted within the last minute.
    recent: Vec<Instant>,
    left_out: u64,
}

impl RunningHook {
    /// The cursor after the newest event.
    async fn skip_old(&self) -> Option<String> {
        let mut cursor = None;
        loop {
            match self.gateway.seen_by(&self.who).events(None, cursor.as_deref(), usize::MAX).await {
                Ok(page) if page.events.is_empty() => return Some(page.next),
                Ok(page) => cursor = Some(page.next),
                Err(_) => return cursor,
            }
        }
    }

    async fn take_new(&self, mut cursor: Option<String>, end: &CancellationToken) -> Option<String> {
        loop {
            // A hook hears what its rights let it see.
            let page = match self.gateway.seen_by(&self.who).events(None, cursor.as_deref(), PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(hook = self.plan.config.name, "events cannot be read: {}", error.message);
                    return cursor;
                }
            };
            for event in &page.events {
                if end.is_cancelled() {
                    return cursor;
                }
                if self.is_wanted(event) {
                    tokio::select! {
                        () = self.act(event) => {}
                        () = end.cancelled() => return cursor,
                    }
                }
            }
            cursor = Some(page.next);
            if page.events.is_empty() {
                return cursor;
            }
        }
    }

    fn is_wanted(&self, event: &StoredEvent) -> bool {
        let is_device = |wanted: &String| {
            self.gateway.find_device(&event.device).is_some_and(|device| is_selected(&device, wanted))
        };
        self.plan.is_about(&event.topic) && self.plan.config.device.as_ref().is_none_or(is_device)
    }

    /// Whether it has acted less often than it may.
    fn may_act(&self) -> bool {
        let (now, name) = (Instant::now(), &self.plan.config.name);
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        rate.recent.retain(|then| now.duration_since(*then) < MINUTE);
        let may = rate.recent.len() < self.plan.config.per_minute as usize;
        match may {
            true => {
                if rate.left_out > 0 {
                    let count = std::mem::take(&mut rate.left_out);
                    tracing::warn!(
                        hook = name,
                        count,
                        "events left out, because they came more often than `per-minute`"
                    );
                }
                rate.recent.push(now);
            }
            false => rate.left_out += 1,
        }
        may
    }

    async fn act(&self, event: &StoredEvent) {
        let name = &self.plan.config.name;
        let shown = json!({"device": event.device, "topic": event.topic, "body": event.body, "at": event.at});
        let scope = Map::from_iter([(EVENT.to_owned(), shown.clone())]);
        let host = HookHost { hook: self, clock: sinew_routines::RunClock::default() };
        let report: RunReport = sinew_steps::run(&self.plan.steps, &host, scope, &LIMITS).await;
        let done = match (&report.failure, &self.plan.webhook, &report.returned) {
            (Some(failure), _, _) => Err(failure.message.clone()),
            (None, Some(webhook), Some(_)) if self.may_act() => {
                webhook.post(&self.gateway, &self.who, event, &shown).await
            }
            (None, ..) => Ok(()),
        };
        match done {
            Ok(()) => tracing::debug!(hook = name, device = event.device, topic = event.topic, "hook done"),
            Err(why) => tracing::warn!(hook = name, device = event.device, topic = event.topic, "hook failed: {why}"),
        }
    }
}

/// Makes the calls of a hook.
struct HookHost<'h> {
    hook: &'h RunningHook,
    clock: sinew_routines::RunClock,
}

impl StepHost for HookHost<'_> {
    fn call<'a>(
        &'a self,
        device: Option<&'a str>,
        tool: &'a str,
        arguments: &'a Args,
    ) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let request = Request::new(self.hook.who.clone(), tool, arguments.clone(), DOOR);
            match device {
                // Looks for a condition are not what the hook does.
                Some(sinew_routines::DEVICE) if !self.hook.may_act() => Ok(Outcome::text("left out")),
                Some(device) => self.hook.gateway.call_on(device, request).await,
                None => Err(ToolError::new(ErrorKind::InvalidArguments, "a condition on a screen names its device")),
            }
        })
    }

    fn clock(&self) -> &dyn StepClock {
        &self.clock
    }
}
