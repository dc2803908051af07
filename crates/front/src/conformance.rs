//! What the official conformance suite needs and no device has: prompts, resource templates, completion, `test://`
//! resources, and tools that change the lists.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, InputRequests, InputRequiredResult, Prompt, PromptArgument, PromptMessage,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role, ServerCapabilities,
};
use serde_json::{Value, json};
use tokio::sync::broadcast;

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/// A list of the fixture that changed.
#[derive(Clone, Copy)]
pub(crate) enum FixtureChange {
    Tools,
    Prompts,
}

pub(crate) struct ConformanceFixture {
    changes: broadcast::Sender<FixtureChange>,
}

impl ConformanceFixture {
    pub(crate) fn new() -> ConformanceFixture {
        ConformanceFixture { changes: broadcast::channel(16).0 }
    }

    fn trigger(&self, change: FixtureChange) -> CallToolResult {
        // It is fine when nobody listens.
        let _ = self.changes.send(change);
        CallToolResult::success(vec![ContentBlock::text("The list was declared changed.")])
    }

    pub(crate) fn declare(&self, capabilities: &mut ServerCapabilities) {
        let declared = ServerCapabilities::builder().enable_prompts().enable_prompts_list_changed().build();
        capabilities.prompts = declared.prompts;
        capabilities.completions = Some(Default::default());
    }

    /// Takes precedence over the gateway's tools.
    pub(crate) fn call_tool(&self, name: &str) -> Option<CallToolResult> {
        match name {
            "test_trigger_tool_change" => Some(self.trigger(FixtureChange::Tools)),
            "test_trigger_prompt_change" => Some(self.trigger(FixtureChange::Prompts)),
            _ => None,
        }
    }

    pub(crate) fn prompts(&self) -> Vec<Prompt> {
        let argument = |name: &str| PromptArgument::new(name).with_description("Any text").with_required(true);
        let prompt =
            |name: &str, arguments: Option<Vec<PromptArgument>>| Prompt::new(name, Some("A test prompt"), arguments);
        vec![
            prompt("test_input_required_result_prompt", None),
            prompt("test_prompt_with_arguments", Some(vec![argument("arg1"), argument("arg2")])),
            prompt("test_prompt_with_embedded_resource", Some(vec![argument("resourceUri")])),
            prompt("test_prompt_with_image", None),
            prompt("test_simple_prompt", None),
        ]
    }

    pub(crate) fn prompt(&self, params: GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
        let text = |text: &str| PromptMessage::new_text(Role::User, text);
        let argument = |name: &str| {
            let given = params.arguments.as_ref().and_then(|arguments| arguments.get(name)).and_then(Value::as_str);
            given.ok_or_else(|| ErrorData::invalid_params(format!("the prompt needs the argument `{name}`"), None))
        };
        let messages = match params.name.as_str() {
            "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
            "test_prompt_with_arguments" => {
                let (one, two) = (argument("arg1")?, argument("arg2")?);
                vec![text(&format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
            }
            "test_prompt_with_embedded_resource" => {
                let contents =
                    ResourceContents::text("Embedded resource content for testing.", argument("resourceUri")?);
                let resource = PromptMessage::new(Role::User, ContentBlock::resource(contents));
                vec![resource, text("Please process the embedded resource above.")]
            }
            "test_prompt_with_image" => {
                let image = PromptMessage::new(Role::User, ContentBlock::image(PNG, "image/png"));
                vec![image, text("Please analyze the image above.")]
            }
            "test_input_required_result_prompt" => {
                let answers = params.input_responses.unwrap_or_default();
                match answers.get("user_context").and_then(|answer| answer["content"]["context"].as_str()) {
                    Some(context) => vec![text(&format!("Use this context: {context}"))],
                    None => return Ok(InputRequiredResult::from_input_requests(context_question()?).into()),
                }
            }
            unknown => return Err(ErrorData::invalid_params(format!("no prompt `{unknown}`"), None)),
        };
        Ok(GetPromptResult::new(messages).into())
    }

    pub(crate) fn complete(&self, params: &CompleteRequestParams) -> CompleteResult {
        let values = ["paris", "park", "party", "testing"].map(str::to_owned).into_iter();
        let fitting = values.filter(|value| value.starts_with(&params.argument.value)).collect();
        CompleteResult::new(CompletionInfo::new(fitting).unwrap_or_default())
    }

    pub(crate) fn resources(&self) -> Vec<Resource> {
        let resource =
            |uri: &str, kind: &str| Resource::new(uri, uri).with_description("A test resource").with_mime_type(kind);
        vec![
            resource("test://static-binary", "image/png"),
            resource("test://static-text", "text/plain"),
            resource("test://watched-resource", "text/plain"),
        ]
    }

    pub(crate) fn templates(&self) -> Vec<ResourceTemplate> {
        let template = ResourceTemplate::new("test://template/{id}/data", "test template");
        vec![template.with_description("Data with an id").with_mime_type("application/json")]
    }

    pub(crate) fn read(&self, uri: &str) -> Option<ReadResourceResult> {
        let contents = match uri {
            "test://static-text" => ResourceContents::text("This is the content of the static text resource.", uri),
            "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
            "test://watched-resource" => ResourceContents::text("Watched content.", uri),
            _ => {
                let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
            }
        };
        Some(ReadResourceResult::new(vec![contents]))
    }

    pub(crate) fn changes(&self) -> broadcast::Receiver<FixtureChange> {
        self.changes.subscribe()
    }
}

fn context_question() -> Result<InputRequests, ErrorData> {
    let question = json!({"user_context": {"method": "elicitation/create", "params": {
        "mode": "form",
        "message": "What context should the prompt use?",
        "requestedSchema": {
            "type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"],
        },
    }}});
    serde_json::from_value(question).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
