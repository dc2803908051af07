//! How much a device's tools grow when they are listed.
//!
//! Clients get schemas in a portable form, in which references are written out and alternatives are folded. The form of
//! one schema is bounded by itself, and so are those of a device together: a tool that does not fit is withdrawn.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use sinew_tool::portable::{self, Portable};

use crate::prepare::PreparedTool;

/// Schemas of one device that may grow when they are listed, without being measured: the bounds of each are enough.
const MAX_UNMEASURED: usize = 64;
/// Bytes by which all listed schemas of a device may be longer than those that it wrote. The largest toolsets known have
/// some ten thousand.
const MAX_GROWTH: usize = 1 << 20;
/// Bytes that are read to make them: about a second.
const MAX_WORK: usize = 256 << 20;

type Form = fn(&Value) -> Portable;

/// What listing may still cost for one device.
struct ListingBudget {
    growth: usize,
    work: usize,
    /// The growth of a schema that several tools share.
    known: HashMap<*const Value, usize>,
}

impl ListingBudget {
    fn take(&mut self, schema: &Arc<Value>, form: Form) -> Option<()> {
        if portable::keeps_shape(schema) {
            return Some(());
        }
        let growth = match self.known.get(&Arc::as_ptr(schema)) {
            Some(growth) => *growth,
            None if self.work == 0 => return None,
            None => {
                let listed = form(schema);
                self.work = self.work.saturating_sub(listed.work);
                let growth = listed.schema.to_string().len().saturating_sub(schema.to_string().len());
                self.known.insert(Arc::as_ptr(schema), growth);
                growth
            }
        };
        self.growth = self.growth.checked_sub(growth)?;
        Some(())
    }
}

/// Divides the tools of a device into those that can be listed, and those for which too little is left.
pub(crate) fn divide(tools: Vec<Arc<PreparedTool>>) -> (Vec<Arc<PreparedTool>>, Vec<Arc<PreparedTool>>) {
    let schemas = |tool: &Arc<PreparedTool>| 1 + usize::from(tool.tool.output_schema.is_some());
    if tools.iter().map(schemas).sum::<usize>() <= MAX_UNMEASURED {
        return (tools, Vec::new());
    }
    let mut budget = ListingBudget { growth: MAX_GROWTH, work: MAX_WORK, known: HashMap::new() };
    tools.into_iter().partition(|tool| {
        let tool = &tool.tool;
        let input = budget.take(&tool.input_schema, portable::input);
        let output = tool.output_schema.as_ref().map_or(Some(()), |schema| budget.take(schema, portable::output));
        input.and(output).is_some()
    })
}

/// Why a tool is withdrawn.
pub(crate) fn reason() -> String {
    format!("the schemas of this device grow by more than {} KiB when they are listed", MAX_GROWTH >> 10)
}
