//! Calls that are part of another call: those a device makes as its caller, and those to the members of a label.

use std::collections::BTreeMap;
use std::sync::Arc;

use sinew_tool::{
    Answer, Args, BoxFuture, Caller, ErrorKind, LogLevel, NestedCalls, Outcome, Question, ToolError, Value,
};
use tokio::time::Instant;

use crate::call::Request;
use crate::gateway::Gateway;
use crate::principal::Principal;
use crate::view::Shape;

/// Calls within calls; a routine of routines is fine, one that calls itself ends here.
const MAX_DEPTH: u8 = 4;

/// Lets a device call other tools with its caller's rights and within its caller's time.
pub(crate) struct AsCaller {
    pub gateway: Gateway,
    pub who: Principal,
    pub door: &'static str,
    pub caller: Arc<dyn Caller>,
    pub ends: Instant,
    /// How many calls this one is within.
    pub depth: u8,
}

impl NestedCalls for AsCaller {
    fn call(&self, tool: &str, args: Args) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        let request = Request {
            who: self.who.clone(),
            name: tool.to_owned(),
            args,
            shape: Shape::Folded,
            caller: Arc::new(PartCaller(self.caller.clone())),
            budget: Some(self.ends.saturating_duration_since(Instant::now())),
            door: self.door,
            // The person agreed to the outer call, not to what it does next.
            is_confirmed: false,
        };
        Box::pin(async move {
            if self.depth >= MAX_DEPTH {
                let message = format!(
                    "`{}` was not called: calls are nested {MAX_DEPTH} deep already; does a routine call itself?",
                    request.name
                );
                return Err(ToolError::new(ErrorKind::Unsupported, message));
            }
            self.gateway.start(None, request, self.depth + 1).await
        })
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
