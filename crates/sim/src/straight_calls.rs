//! The steps of a device's tool without a gateway: nobody decides about them.

use std::sync::Arc;
use std::time::Duration;

use sinew_tool::{Args, BoxFuture, Call, Caller, Device, NestedCalls, Outcome, PlannedCall, ToolAccess, ToolError};

/// Calls that go straight back to one device, to try its tools alone.
pub struct StraightCalls(Arc<dyn Device>);

impl StraightCalls {
    /// Calls a tool of a device whose steps are on itself.
    pub async fn call_device(device: Arc<dyn Device>, tool: &str, args: Args) -> Result<Outcome, ToolError> {
        let nested = Arc::new(StraightCalls(device.clone()));
        device.call(Call { nested, ..Call::new(tool, args) }).await
    }
}

impl NestedCalls for StraightCalls {
    fn principal(&self) -> &str {
        ""
    }

    fn device(&self) -> &str {
        ""
    }

    fn is_part(&self) -> bool {
        false
    }

    fn access(&self, _: &str) -> ToolAccess {
        ToolAccess::Free
    }

    fn call<'a>(&'a self, _: Option<&'a str>, tool: &'a str, args: Args) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        self.0.call(Call::new(tool, args))
    }

    fn agree<'a>(&'a self, _: &'a [PlannedCall]) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn join_run(&self, id: &str) -> String {
        id.to_owned()
    }

    fn within(&self, _: Duration, _: Arc<dyn Caller>) -> Arc<dyn NestedCalls> {
        Arc::new(StraightCalls(self.0.clone()))
    }
}
