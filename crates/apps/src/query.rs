//! Querying apps whose tools only the running app can list.

use std::time::Duration;

use serde_json::Value;

use crate::broadcast;
use crate::offer::finding::error;
use crate::offer::{
    AppOffer, AppTool, OfferKind, ProtocolNames, ToolQuery, broadcast_tools, bundle_text, provider_tools,
};
use crate::rules;
use sinew_phones::PhoneAccess;
use sinew_phones::PhoneError;
use sinew_phones::adb::command::ShellCommand;
use sinew_phones::adb::shell::CommandLimits;
use sinew_phones::agent::AgentError;
use sinew_tool::finding::Finding;

/// An app that is not running must start first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The keys of both generations of provider answers.
const KEYS: [&str; 7] =
    ["success", "tool", "tool_name", "tool_description", "tool_input_schema", "tool_input_required", "error_message"];

/// Runs the open queries of an offer and adds the answers to it: tools, or findings that say why there are none.
/// AppFunctions are listed by the phone, not by the app, and are not queried here.
pub(crate) async fn complete(access: &dyn PhoneAccess, offer: &mut AppOffer, names: &ProtocolNames) {
    for ask in offer.queries.clone() {
        let component = ask.component.clone();
        let asked = match ask.kind {
            OfferKind::Provider | OfferKind::ProviderMany => provider(access, ask, offer).await,
            OfferKind::Broadcast => receiver(access, ask, offer, names).await,
            OfferKind::Activity | OfferKind::Service | OfferKind::AppFunction => Ok(()),
        };
        if let Err(mut finding) = asked {
            finding.component = Some(component);
            offer.findings.push(finding);
        }
    }
}

async fn provider(access: &dyn PhoneAccess, ask: ToolQuery, offer: &mut AppOffer) -> Result<(), Finding> {
    let authority = ask.authority.clone().unwrap_or_default();
    let bundle = tool_info(access, &authority).await.map_err(|why| {
        error(&rules::PROVIDER_SILENT, format!("the provider {authority} did not list its tools: {why}"))
    })?;
    let provided = provider_tools(&bundle)?;
    for tool in provided.tools {
        offer.add(AppTool {
            tool,
            kind: provided.kind,
            component: ask.component.clone(),
            authority: Some(authority.clone()),
            action: None,
            function: None,
        });
    }
    offer.findings.extend(provided.findings);
    Ok(())
}

/// Uses the agent if it is running. Otherwise uses the shell, so that listing tools leaves nothing on the phone; the
/// agent is started only if the shell's output is incomplete.
async fn tool_info(access: &dyn PhoneAccess, authority: &str) -> Result<Value, String> {
    let printed = match access.has_agent() {
        true => None,
        false => Some(printed_info(access, authority).await.map_err(|error| error.to_string())?),
    };
    if let Some(Ok(bundle)) = &printed
        && provider_tools(bundle).is_ok_and(|provided| provided.findings.is_empty())
    {
        return Ok(bundle.clone());
    }
    match access.provider_call(authority, "get_tool_info", &Value::Null, ANSWER_TIMEOUT).await {
        Ok(bundle) => Ok(bundle),
        Err(AgentError::Absent(why)) => match printed {
            Some(Ok(bundle)) => Ok(bundle),
            Some(Err(lost)) => Err(format!("{lost}, and {why}")),
            None => Err(why),
        },
        Err(error) => Err(error.to_string()),
    }
}

/// The outer error means no answer, the inner one an answer that cannot be read.
async fn printed_info(access: &dyn PhoneAccess, authority: &str) -> Result<Result<Value, String>, PhoneError> {
    let command = ShellCommand::new("content call --uri").arg(format!("content://{authority}"));
    let limits = CommandLimits { time: ANSWER_TIMEOUT, bytes: 4 << 20 };
    let output = access.run(&command.literal("--method get_tool_info"), limits).await?;
    let text = output.text();
    if text.contains("Result: null") {
        return Ok(Ok(Value::Null));
    }
    if text.contains("Result: Bundle[") {
        return Ok(bundle_text(&text, &|key| KEYS.contains(&key)));
    }
    let line = |sign: &str| text.lines().map(str::trim).find(|line| line.contains(sign));
    let line = line("Exception").or_else(|| line("Error"));
    let line: String = line.unwrap_or("no known error message was printed").chars().take(300).collect();
    Err(match line.contains("SecurityException") {
        true => PhoneError::Denied(format!("{line}; the app must export it without a permission")),
        false => PhoneError::Failed(line),
    })
}

async fn receiver(
    access: &dyn PhoneAccess,
    ask: ToolQuery,
    offer: &mut AppOffer,
    names: &ProtocolNames,
) -> Result<(), Finding> {
    let component = format!("{}/{}", offer.package, ask.component);
    let command = broadcast::command(ask.action.as_deref().unwrap_or(&names.discovery), &component, &[]);
    let limits = CommandLimits { time: ANSWER_TIMEOUT, bytes: 4 << 20 };
    let silent = |why: String| {
        error(&rules::BROADCAST_SILENT, format!("the receiver {component} did not list its tools: {why}"))
    };
    let output = access.run(&command, limits).await.map_err(|error| silent(error.to_string()))?;
    broadcast::parse(&output).map_err(|error| silent(error.to_string()))?;
    let listed = broadcast_tools(&String::from_utf8_lossy(&output.stdout))?;
    for tool in listed.tools {
        offer.add(AppTool {
            tool,
            kind: OfferKind::Broadcast,
            component: ask.component.clone(),
            authority: None,
            action: Some(names.invoke.clone()),
            function: None,
        });
    }
    offer.findings.extend(listed.findings);
    offer.instructions = offer.instructions.take().or(listed.instructions);
    Ok(())
}
