//! What the MCP door may offer besides devices: prompts, templates, completion, further resources.
//!
//! The gateway itself has none of these and says so. The conformance fixture brings them.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, CompleteRequestParams, CompleteResult, GetPromptRequestParams, GetPromptResponse, Prompt,
    ReadResourceResult, Resource, ResourceTemplate, ServerCapabilities,
};
use tokio::sync::broadcast;

use crate::Settings;

pub(crate) trait Extras: Send + Sync {
    fn declare(&self, capabilities: &mut ServerCapabilities);
    /// Takes precedence over the gateway's tools.
    fn call_tool(&self, name: &str) -> Option<CallToolResult>;
    fn prompts(&self) -> Vec<Prompt>;
    fn prompt(&self, params: GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData>;
    fn complete(&self, params: &CompleteRequestParams) -> CompleteResult;
    fn resources(&self) -> Vec<Resource>;
    fn templates(&self) -> Vec<ResourceTemplate>;
    fn read(&self, uri: &str) -> Option<ReadResourceResult>;
    fn changes(&self) -> broadcast::Receiver<ExtraChange>;
}

/// A list of the extras reads differently now.
#[derive(Clone, Copy)]
pub(crate) enum ExtraChange {
    Tools,
    Prompts,
}

pub(crate) fn of(settings: &Settings) -> Option<Arc<dyn Extras>> {
    settings.conformance.then(|| Arc::new(crate::conformance::Fixture::new()) as Arc<dyn Extras>)
}
