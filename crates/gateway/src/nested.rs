//! Calls that are part of another call: those a device makes as its caller, and those to the members of a label.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sinew_tool::{
    Answer, Args, BoxFuture, Caller, ErrorKind, LogLevel, NestedCalls, Outcome, PlannedCall, Question, ToolError, Value,
};
use tokio::time::Instant;

use crate::access::CallIdentity;
use crate::call::Request;
use crate::gateway::Gateway;
use crate::principal::Principal;
use crate::view::Shape;

/// Calls within calls; a routine of routines is fine, one that calls itself ends here.
pub(crate) const MAX_DEPTH: u8 = 4;

/// Where a call stands within others. The default is a call that came from outside.
#[derive(Clone, Default)]
pub(crate) struct Nesting {
    /// How many calls this one is within.
    pub depth: u8,
    pub agreed: Arc<AgreedCalls>,
    /// The outer call was answered, or will be before this one: a person may take longer than a client waits.
    pub is_detached: bool,
}

/// Calls that a person approved as parts of a larger one, each under the policy of that moment.
#[derive(Default)]
pub(crate) struct AgreedCalls(Mutex<Vec<(String, CallIdentity)>>);

impl AgreedCalls {
    pub(crate) fn add(&self, policy: &str, calls: impl IntoIterator<Item = CallIdentity>) {
        let mut agreed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        agreed.extend(calls.into_iter().map(|call| (policy.to_owned(), call)));
    }

    pub(crate) fn contains(&self, policy: &str, call: &CallIdentity) -> bool {
        let agreed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        agreed.iter().any(|(under, agreed)| under == policy && agreed == call)
    }
}

/// Lets a device call other tools with its caller's rights and within its caller's time.
#[derive(Clone)]
pub(crate) struct AsCaller {
    pub gateway: Gateway,
    pub who: Principal,
    pub door: &'static str,
    /// The tool that makes the calls.
    pub tool: String,
    pub caller: Arc<dyn Caller>,
    pub ends: Instant,
    pub nesting: Nesting,
}

impl AsCaller {
    /// A run can outlast the right to begin it.
    fn check_token(&self) -> Result<(), ToolError> {
        match self.gateway.tokens().is_valid(&self.who) {
            true => Ok(()),
            false => Err(ToolError::new(ErrorKind::PermissionDenied, "the token of the caller was revoked meanwhile")),
        }
    }

    pub(crate) fn time_left(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }
}

impl NestedCalls for AsCaller {
    fn principal(&self) -> &str {
        &self.who.id
    }

    fn call<'a>(
        &'a self,
        device: Option<&'a str>,
        tool: &'a str,
        args: Args,
    ) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        let request = Request {
            who: self.who.clone(),
            name: tool.to_owned(),
            args,
            shape: Shape::Folded,
            caller: Arc::new(PartCaller(self.caller.clone())),
            budget: Some(self.time_left()),
            door: self.door,
            // The person agreed to the outer call, not to what it does next.
            is_confirmed: false,
        };
        Box::pin(async move {
            self.check_token()?;
            if self.nesting.depth >= MAX_DEPTH {
                let message = format!(
                    "`{}` was not called: calls are nested {MAX_DEPTH} deep already; does a routine call itself?",
                    request.name
                );
                return Err(ToolError::new(ErrorKind::Unsupported, message));
            }
            let nesting = Nesting { depth: self.nesting.depth + 1, ..self.nesting.clone() };
            self.gateway.start(device, request, nesting).await
        })
    }

    fn agree<'a>(&'a self, calls: &'a [PlannedCall]) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            self.check_token()?;
            self.gateway.agree(self, calls).await
        })
    }

    fn within(&self, time: Duration) -> Arc<dyn NestedCalls> {
        let nesting = Nesting { is_detached: true, ..self.nesting.clone() };
        Arc::new(AsCaller { ends: Instant::now() + time, nesting, ..self.clone() })
    }
}

/// The caller of a nested call: gets its log. The outer call reports progress, and a question would not say which
/// device asks.
pub(crate) struct PartCaller(pub Arc<dyn Caller>);

impl Caller for PartCaller {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn log(&self, level: LogLevel, data: Value) {
        self.0.log(level, data);
    }

    fn ask(&self, _: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
        let message =
            "the device has a question, which a call within another call cannot carry; call the device by itself";
        Box::pin(std::future::ready(Err(ToolError::new(ErrorKind::InputRequired, message))))
    }
}
