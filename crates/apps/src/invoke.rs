//! Calling one tool of an app.

use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::{Args, ErrorKind, Outcome, ToolError};

use crate::app_function::{self, AppFunctionSupport, FunctionResult};
use crate::arguments::to_texts;
use crate::offer::{AppTool, OfferKind};
use crate::{app_function::execute_command, broadcast};
use sinew_phones::PhoneAccess;
use sinew_phones::PhoneError;
use sinew_phones::adb::shell::CommandLimits;
use sinew_phones::agent::{ActivityAnswer, ActivityCall, AgentError, AgentRefusal, CompanionError};

/// More than an app can send through Android at once, with space for escapes.
const MAX_ANSWER: usize = 8 << 20;

/// Calls a tool with arguments that already match its schema. A call that may have taken effect is never retried.
pub(crate) async fn invoke(
    access: &dyn PhoneAccess,
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

/// Why tools of services are listed as unusable.
pub(crate) const NO_SERVICE: &str = "tools of a mobile.mcp.SERVICE answer through a PendingIntent, which cannot be received over adb; the app can also offer them as an mMCP activity or as a content provider";

async fn activity(
    access: &dyn PhoneAccess,
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
        // Nothing was started, so it is safe to try the app's activity that handles the action.
        Err(CompanionError::Refused { kind, .. }) if kind == "not_found" => {
            let implicit = ActivityCall { component: None, ..explicit };
            access.activity_call(&implicit, limit).await
        }
        answer => answer,
    };
    match answer.map_err(activity_error)? {
        ActivityAnswer { code: -1, result: Some(text) } => Ok(Outcome::text(text)),
        ActivityAnswer { code: -1, result: None } => Ok(empty("the activity succeeded but returned no `result`")),
        ActivityAnswer { code: 0, result: Some(text) } => Err(ToolError::new(ErrorKind::ActionFailed, text)),
        ActivityAnswer { code: 0, result: None } => {
            let message = "the activity was canceled without a reason; it may have crashed, or somebody closed it";
            Err(ToolError::new(ErrorKind::ActionFailed, message))
        }
        ActivityAnswer { code, result } => {
            let text = result.unwrap_or_else(|| "no reason given".to_owned());
            Err(ToolError::new(ErrorKind::ActionFailed, format!("the activity ended with the code {code}: {text}")))
        }
    }
}

fn activity_error(error: CompanionError) -> ToolError {
    match error {
        CompanionError::Refused { kind, message } => {
            let (kind, remedy) = match kind.as_str() {
                "denied" => (ErrorKind::PermissionDenied, "the app must export the activity without a permission"),
                "ambiguous" => {
                    (ErrorKind::ActionFailed, "several apps handle it, and Android would ask the user to choose")
                }
                "not_found" => (ErrorKind::ActionFailed, "the app has changed, or its activity is disabled"),
                "abandoned" => (ErrorKind::ActionFailed, "somebody closed it on the phone, or the app crashed"),
                _ => (ErrorKind::ActionFailed, "check the phone before you try again"),
            };
            ToolError::new(kind, format!("{message}; {remedy}"))
        }
        other => PhoneError::from(other).into(),
    }
}

async fn receiver(
    access: &dyn PhoneAccess,
    package: &str,
    tool: &AppTool,
    args: &Args,
    limit: Duration,
) -> Result<Outcome, ToolError> {
    let component = format!("{package}/{}", tool.component);
    let parameters = Value::Object(args.clone()).to_string();
    let extras = [("tool", tool.tool.name.as_str()), ("params", parameters.as_str())];
    let command = broadcast::command(tool.action.as_deref().unwrap_or_default(), &component, &extras);
    let output = access.run(&command, CommandLimits { time: limit, bytes: MAX_ANSWER }).await?;
    match broadcast::parse(&output)? {
        broadcast::BroadcastResult { data: Some(data), .. } => Ok(Outcome::text(data)),
        broadcast::BroadcastResult { code: 0, data: None } => {
            let message =
                "no receiver answered the broadcast: the app crashed, or its receiver was removed or disabled";
            Err(ToolError::new(ErrorKind::ActionFailed, message))
        }
        broadcast::BroadcastResult { .. } => Ok(empty("the app answered without data")),
    }
}

async fn provider(
    access: &dyn PhoneAccess,
    tool: &AppTool,
    args: &Args,
    limit: Duration,
) -> Result<Outcome, ToolError> {
    let name = &tool.tool.name;
    let extras = json!({"tool_name": name, "tool_arguments": {"map": to_texts(args)}});
    let authority = tool.authority.as_deref().unwrap_or_default();
    let bundle = access.provider_call(authority, "execute_tool", &extras, limit).await.map_err(provider_error)?;
    let odd = |what: String| ToolError::new(ErrorKind::BadAnswer, what);
    let Some(bundle) = bundle.as_object() else {
        return Err(odd("the provider answered null where a bundle was expected".to_owned()));
    };
    if let Some(other) = bundle.get("tool_name").and_then(text).filter(|other| other != name) {
        return Err(odd(format!("the provider returned the result of another tool, `{other}`")));
    }
    let field = |key: &str| bundle.get(key).and_then(text);
    match bundle.get("success") {
        Some(Value::Bool(true)) => Ok(match field("tool_result") {
            Some(result) => Outcome::text(result),
            None => empty("the provider succeeded but returned no `tool_result`"),
        }),
        Some(Value::Bool(false)) => {
            let reason = field("error_message").unwrap_or_else(|| "the app failed without a reason".to_owned());
            Err(ToolError::new(ErrorKind::ActionFailed, reason))
        }
        _ => Err(odd("the provider's answer lacks the boolean `success`".to_owned())),
    }
}

fn provider_error(error: AgentError) -> ToolError {
    let message = error.to_string();
    let kind = match &error {
        AgentError::Refused { kind, .. } => match kind {
            AgentRefusal::TooLarge => ErrorKind::TooLarge,
            AgentRefusal::Busy => ErrorKind::Busy,
            AgentRefusal::Denied => ErrorKind::PermissionDenied,
            AgentRefusal::Timeout => ErrorKind::Timeout,
            AgentRefusal::Unsupported | AgentRefusal::UnknownMethod => ErrorKind::Unsupported,
            _ => ErrorKind::ActionFailed,
        },
        AgentError::Absent(_) => return PhoneError::unsupported("calling a provider tool", message).into(),
        AgentError::TooLong(_) => ErrorKind::TooLarge,
        AgentError::Silent { .. } => ErrorKind::Timeout,
        AgentError::Gone(_) => ErrorKind::DeviceLost,
    };
    ToolError::new(kind, message)
}

/// The text of a bundle's value, also if the app stored something other than a string.
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
    access: &dyn PhoneAccess,
    package: &str,
    tool: &AppTool,
    support: AppFunctionSupport,
    args: &Args,
    limit: Duration,
) -> Result<Outcome, ToolError> {
    let function = tool.function.as_deref().unwrap_or_default();
    let parameters = Value::Object(args.clone()).to_string();
    let command = execute_command(package, function, &parameters, support, limit);
    let output = access.run(&command, CommandLimits { time: limit, bytes: MAX_ANSWER }).await?;
    Ok(match app_function::parse(&output.text(), tool.tool.output_schema.as_deref())? {
        FunctionResult::Nothing => empty("the function succeeded and returned nothing"),
        FunctionResult::Text(text) | FunctionResult::Json(Value::String(text)) => Outcome::text(text),
        FunctionResult::Json(object @ Value::Object(_)) => Outcome::json(object),
        FunctionResult::Json(value) => Outcome::text(value.to_string()),
    })
}

/// An outcome without content. The note says why; it is in `_meta`, which models do not see.
fn empty(note: &str) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.meta.insert("sinew/note".to_owned(), json!(note));
    outcome
}
