//! Files on devices as MCP resources: `device://<id>/files/<path>` is what the device's tool `read_file` answers, and with
//! a slash at the end what `list_files` does. Reading one is a call like any other.

use rmcp::model::{ErrorData, ReadResourceResult, ResourceContents, ResourceTemplate};
use serde_json::json;
use sinew_gateway::{Principal, Request, Shape};
use sinew_tool::outcome::ResourceBody;
use sinew_tool::{Content, ErrorKind, Outcome, ToolError};

use crate::state::FrontState;
use crate::{query, translate};

const SCHEME: &str = "device://";
const FOLDER: &str = "/files/";
const READ: &str = "read_file";
const LIST: &str = "list_files";
const JSON: &str = "application/json";

/// A file or folder of a device.
pub(crate) struct FileUri {
    device: String,
    path: String,
}

impl FileUri {
    pub(crate) fn parse(uri: &str) -> Option<FileUri> {
        let (device, path) = uri.strip_prefix(SCHEME)?.split_once(FOLDER)?;
        let is_name = !device.is_empty() && !device.contains('/');
        is_name.then(|| FileUri { device: device.to_owned(), path: query::decoded_path(path) })
    }

    /// Reads it with the rights of this caller.
    pub(crate) async fn read(
        &self,
        front: &FrontState,
        who: &Principal,
        door: &'static str,
        uri: &str,
    ) -> Result<ReadResourceResult, ErrorData> {
        let folder = self.path.strip_suffix('/').or_else(|| self.path.is_empty().then_some(""));
        let (tool, args) = match folder {
            // The shared storage itself.
            Some("") => (LIST, json!({})),
            Some(folder) => (LIST, json!({"path": folder})),
            None => (READ, json!({"path": self.path})),
        };
        let args = args.as_object().cloned().unwrap_or_default();
        let _running = front.calls.token();
        let answer = front.gateway.call_on(&self.device, Request::new(who.clone(), tool, args, door)).await;
        let outcome = answer.map_err(|error| translate::to_protocol_error(&not_there(error)))?;
        Ok(ReadResourceResult::new(contents(outcome, uri)))
    }
}

/// The resource that a caller names is what it does not find, not a tool.
fn not_there(error: ToolError) -> ToolError {
    let kind = match error.kind {
        ErrorKind::UnknownTool | ErrorKind::UnknownDevice => ErrorKind::UnknownResource,
        kind => kind,
    };
    ToolError { kind, ..error }
}

fn contents(outcome: Outcome, uri: &str) -> Vec<ResourceContents> {
    if let Some(value) = outcome.structured.as_ref().filter(|value| !value.is_null()) {
        return vec![ResourceContents::text(value.to_string(), uri).with_mime_type(JSON)];
    }
    let items = outcome.content.into_iter().filter_map(|item| match item {
        Content::Resource { mime_type, body, .. } => {
            let contents = match body {
                ResourceBody::Text(text) => ResourceContents::text(text, uri),
                ResourceBody::Blob(blob) => ResourceContents::blob(blob, uri),
            };
            Some(mime_type.into_iter().fold(contents, ResourceContents::with_mime_type))
        }
        _ => None,
    });
    items.collect()
}

/// What clients can fill in, where a device that the caller sees has files.
pub(crate) fn template(front: &FrontState, who: &Principal) -> Option<ResourceTemplate> {
    let list = front.gateway.list(who, Shape::Folded);
    list.tools.iter().any(|tool| tool.own_name == READ).then(|| {
        ResourceTemplate::new(format!("{SCHEME}{{device}}{FOLDER}{{+path}}"), "file")
            .with_description("A file in the shared storage of a phone; a path with a slash at its end lists a folder")
    })
}
