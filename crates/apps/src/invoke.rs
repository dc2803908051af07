//! Calling one tool of an app, in whichever form the app offers it.

use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::{Args, ErrorKind, Outcome, ToolError};

use crate::app_function::{self, AppFunctionSupport, FunctionResult};
use crate::arguments::to_texts;
use crate::offer::{AppTool, OfferKind};
use crate::{app_function::execute_command, broadcast};
use sinew_phones::Access;
use sinew_phones::PhoneError;
use sinew_phones::adb::shell::Limits;
use sinew_phones::agent::{ActivityAnswer, ActivityCall, AgentError, CompanionError, Refusal};

/// More than an app can send through Android at once, and room for escapes.
const MAX_ANSWER: usize = 8 << 20;

/// Calls a tool. The arguments fit its schema already. Nothing is tried twice that may have happened.
pub async fn invoke(
    access: &dyn Access,
    package: &str,
    tool: &AppTool,
    support: AppFunctionSupport,
    args: &Args,
    limit: Duration,
) -> Result<Outcome, ToolError> {
    let called = match tool.kind {
        OfferKind::Activity => activity(access, package, tool, args, limit).await,
        OfferKind::Broadcast => receiver(access, package, tool, args, limit).await,
        OfferKind::Provider | OfferKind::ProviderMany => provider(access, tool, args, limit).await,
        OfferKind::AppFunction => app_function(access, package, tool, support, args, limit).await,
        OfferKind::Service => Err(ToolError::new(ErrorKind::Unsupported, NO_SERVICE)),
    };
    called.map_err(|error| {
        let message = format!("{} of {package}: {}", tool.tool.name, error.message);
        ToolError { message, ..error }
    })
}

/// Why tools of services are listed but not offered.
pub const NO_SERVICE: &str = "tools of a mobile.mcp.SERVICE answer through a PendingIntent, which nothing on this side of adb can receive; the app can offer them as an mMCP activity or as a content provider too";

async fn activity(
    access: &dyn Access,
    package: &str,
    tool: &AppTool,
    args: &Args,
    limit: Duration,
) -> Result<Outcome, ToolError> {
    let component = format!("{package}/{}", tool.component);
    let parameters = Value::Object(args.clone()).to_string();
    let explicit = ActivityCall {
        component: Some(&component),
        package: Some(package),
        action: tool.action.as_deref().unwrap_or_default(),
        tool_name: &tool.tool.name,
        parameters: &parameters,
    };
    let answer = match access.activity_call(&explicit, limit).await {
        // Nothing was started, so another activity of the app may be: the one that takes the action.
        Err(CompanionError::Refused { kind, .. }) if kind == "not_found" => {
            let implicit = ActivityCall { component: None, ..explicit };
            access.activity_call(&implicit, limit).await
        }
        answer => answer,
    };
    match answer.map_err(activity_error)? {
        ActivityAnswer { code: -1, result: Some(text) } => Ok(Outcome::text(text)),
        ActivityAnswer { code: -1, result: None } => Ok(empty("the activity ended well but left no `result`")),
        ActivityAnswer { code: 0, result: Some(text) } => Err(ToolError::new(ErrorKind::ActionFailed, text)),
        ActivityAnswer { code: 0, result: None } => {
            let message = "the activity was canceled and gave no reason; it may have crashed, or somebody left it";
            Err(ToolError::new(ErrorKind::ActionFailed, message))
        }
        ActivityAnswer { code, result } => {
            let text = result.unwrap_or_else(|| "it gave no reason".to_owned());
            Err(ToolError::new(ErrorKind::ActionFailed, format!("the activity ended with the code {code}: {text}")))
        }
    }
}

fn activity_error(error: CompanionError) -> ToolError {
    match error {
        CompanionError::Refused { kind, message } => {
            let (kind, remedy) = match kind.as_str() {
                "denied" => (ErrorKind::PermissionDenied, "the app must export the activity without a permission"),
                "ambiguous" => (ErrorKind::ActionFailed, "the phone would ask a person to choose between apps"),
                "not_found" => (ErrorKind::ActionFailed, "the app has changed, or its activity is switched off"),
                "abandoned" => (ErrorKind::ActionFailed, "somebody closed it on the phone, or the app crashed"),
                _ => (ErrorKind::ActionFailed, "look at the phone before trying again"),
            };
            ToolError::new(kind, format!("{message}; {remedy}"))
        }
        other => PhoneError::from(other).into(),
    }
}

async fn receiver(
    access: &dyn Access,
    package: &str,
    tool: &AppTool,
    args: &Args,
    limit: Duration,
) -> Result<Outcome, ToolError> {
    let component = format!("{package}/{}", tool.component);
    let parameters = Value::Object(args.clone()).to_string();
    let extras = [("tool", tool.tool.name.as_str()), ("params", parameters.as_str())];
    let command = broadcast::command(tool.action.as_deref().unwrap_or_default(), &component, &extras);
    let output = access.run(&command, Limits { time: limit, bytes: MAX_ANSWER }).await?;
    match broadcast::parse(&output)? {
        broadcast::BroadcastResult { data: Some(data), .. } => Ok(Outcome::text(data)),
        broadcast::BroadcastResult { code: 0, data: None } => {
            let message = "nobody answered the broadcast: the app crashed, or its receiver is gone or switched off";
            Err(ToolError::new(ErrorKind::ActionFailed, message))
        }
        broadcast::BroadcastResult { .. } => Ok(empty("the app answered without data")),
    }
}

async fn provider(access: &dyn Access, tool: &AppTool, args: &Args, limit: Duration) -> Result<Outcome, ToolError> {
    let name = &tool.tool.name;
    let extras = json!({"tool_name": name, "tool_arguments": {"map": to_texts(args)}});
    let authority = tool.authority.as_deref().unwrap_or_default();
    let bundle = access.provider_call(authority, "execute_tool", &extras, limit).await.map_err(provider_error)?;
    let odd = |what: String| ToolError::new(ErrorKind::BadAnswer, what);
    let Some(bundle) = bundle.as_object() else {
        return Err(odd("the provider answered null where a bundle was expected".to_owned()));
    };
    if let Some(other) = bundle.get("tool_name").and_then(text).filter(|other| other != name) {
        return Err(odd(format!("the provider answered for another tool, `{other}`")));
    }
    let told = |key: &str| bundle.get(key).and_then(text);
    match bundle.get("success") {
        Some(Value::Bool(true)) => Ok(match told("tool_result") {
            Some(result) => Outcome::text(result),
            None => empty("the provider says that it succeeded but gave no `tool_result`"),
        }),
        Some(Value::Bool(false)) => {
            let reason = told("error_message").unwrap_or_else(|| "the app failed and gave no reason".to_owned());
            Err(ToolError::new(ErrorKind::ActionFailed, reason))
        }
        _ => Err(odd("the provider's answer lacks the boolean `success`".to_owned())),
    }
}

fn provider_error(error: AgentError) -> ToolError {
    let message = error.to_string();
    let kind = match &error {
        AgentError::Refused { kind, .. } => match kind {
            Refusal::TooLarge => ErrorKind::TooLarge,
            Refusal::Busy => ErrorKind::Busy,
            Refusal::Denied => ErrorKind::PermissionDenied,
            Refusal::Timeout => ErrorKind::Timeout,
            Refusal::Unsupported | Refusal::UnknownMethod => ErrorKind::Unsupported,
            _ => ErrorKind::ActionFailed,
        },
        AgentError::Absent(_) => return PhoneError::unsupported("calling a provider tool", message).into(),
        AgentError::TooLong(_) => ErrorKind::TooLarge,
        AgentError::Silent { .. } => ErrorKind::Timeout,
        AgentError::Gone(_) => ErrorKind::DeviceLost,
    };
    ToolError::new(kind, message)
}

/// The text of a bundle's value, also where an app put something else than a string.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(typed) if typed.len() == 1 => match typed.values().next() {
            Some(Value::String(text)) => Some(text.clone()),
            other => other.map(Value::to_string),
        },
        other => Some(other.to_string()),
    }
}

async fn app_function(
    access: &dyn Access,
    package: &str,
    tool: &AppTool,
    support: AppFunctionSupport,
    args: &Args,
    limit: Duration,
) -> Result<Outcome, ToolError> {
    let function = tool.function.as_deref().unwrap_or_default();
    let parameters = Value::Object(args.clone()).to_string();
    let command = execute_command(package, function, &parameters, support, limit);
    let output = access.run(&command, Limits { time: limit, bytes: MAX_ANSWER }).await?;
    Ok(match app_function::parse(&output.text(), tool.tool.output_schema.as_deref())? {
        FunctionResult::Nothing => empty("the function ended well and returned nothing"),
        FunctionResult::Text(text) | FunctionResult::Json(Value::String(text)) => Outcome::text(text),
        FunctionResult::Json(object @ Value::Object(_)) => Outcome::json(object),
        FunctionResult::Json(value) => Outcome::text(value.to_string()),
    })
}

/// An outcome without content says why it has none, where a program looks and a model does not stumble.
fn empty(note: &str) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.meta.insert("sinew/note".to_owned(), json!(note));
    outcome
}
