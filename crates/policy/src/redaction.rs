//! Arguments that are not kept.

use crate::selection::select;
use crate::selector::{AnyOf, DeviceFacts, DeviceSelector, ToolFacts, ToolSelector};

sinew_tool::settings! {
    /// Arguments that are secret: neither the audit nor a person who is asked to approve a call sees them. What a schema
    /// marks as `writeOnly` or as `format: password` is secret without any entry here.
    pub struct RedactionRule {
        /// Devices, as in the rules of the policy. By default all.
        pub on: AnyOf<DeviceSelector> = AnyOf::default();
        /// Tools, as in the rules of the policy. By default all.
        pub tools: AnyOf<ToolSelector> = AnyOf::default();
        /// JSON pointers to the arguments, for example `/code`. By default all arguments.
        pub args: Vec<String> = Vec::new();
    }
}

impl RedactionRule {
    pub fn matches(&self, device: &DeviceFacts<'_>, tool: &ToolFacts<'_>) -> bool {
        // A device may say of itself whatever it likes: it can only make more secret.
        select((&self.on, &self.tools), device, tool).is_some()
    }
}
