//! `sinew tools`: lists the tools.

use serde_json::Value;
use sinew_api as api;

use super::tool_page;
use crate::args::{ToolsArgs, ToolsCommand};
use crate::client::{GatewayClient, GatewayTarget, encode};
use crate::error::CliError;
use crate::terminal::{Printer, Table, TextStyle, print, print_json};

pub async fn run(args: ToolsArgs, printer: Printer) -> Result<(), CliError> {
    if let Some(ToolsCommand::Show { tool, device, reach }) = &args.command {
        return tool_page::show(tool, device.as_deref(), reach, printer).await;
    }
    let mut client = GatewayTarget::find(&args.reach)?.connect().await?;
    let tools = match &args.device {
        Some(device) => of_device(&mut client, device).await?,
        None => {
            let shape = if args.unfolded { "unfolded" } else { "folded" };
            client.get::<api::Tools>(&format!("/api/v1/tools?shape={shape}")).await?.tools
        }
    };
    if printer.is_json() {
        print_json(&api::Tools { tools });
        return Ok(());
    }
    if tools.is_empty() {
        print("No tools: the device has none, or is not ready. `sinew devices` shows its state.\n");
        return Ok(());
    }
    let mut table = Table::new(["TOOL", "ARGUMENTS", "DESCRIPTION"]).cut(&["ARGUMENTS", "DESCRIPTION"]);
    for tool in &tools {
        table.row([
            (Some(TextStyle::Bold), tool.name.clone()),
            (None, argument_names(&tool.input_schema)),
            (None, tool.description.clone()),
        ]);
    }
    print(&printer.table(&table));
    print("`sinew tools show TOOL` shows the arguments of one.\n");
    Ok(())
}

/// Whether two names mean the same tool: clients see other characters than the device where MCP allows fewer.
pub fn is_same_name(own: &str, wanted: &str) -> bool {
    let plain = |name: &str| name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
    own == wanted || plain(own) == plain(wanted)
}

/// `volume, name?`: the arguments without their types.
pub fn argument_names(schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flatten().map(|(name, _)| {
        let optional = if required.iter().any(|required| required == name) { "" } else { "?" };
        format!("{name}{optional}")
    });
    names.collect::<Vec<_>>().join(", ")
}

/// The tools of one device under the names the device itself knows them by, as `sinew call` takes them.
pub async fn of_device(client: &mut GatewayClient, device: &str) -> Result<Vec<api::ListedTool>, CliError> {
    let mut answer: api::Tools = client.get(&format!("/api/v1/tools?device={}", encode(device))).await?;
    for tool in &mut answer.tools {
        if let Some(name) = tool.own_name.take() {
            tool.name = name;
        }
    }
    Ok(answer.tools)
}

/// `volume: integer 0–100, name?: string`; a question mark means that the argument may be left out.
pub fn arguments(schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let described = properties.into_iter().flatten().map(|(name, property)| {
        let optional = if required.iter().any(|required| required == name) { "" } else { "?" };
        format!("{name}{optional}: {}", kind(property))
    });
    described.collect::<Vec<_>>().join(", ")
}

pub fn kind(property: &Value) -> String {
    if let Some(choices) = property.get("enum").and_then(Value::as_array) {
        return choices.iter().map(plain).collect::<Vec<_>>().join("|");
    }
    let word = match property.get("type") {
        Some(Value::String(word)) => word.clone(),
        Some(Value::Array(words)) => words.iter().map(plain).collect::<Vec<_>>().join("|"),
        _ => "any".to_owned(),
    };
    match (property.get("minimum"), property.get("maximum")) {
        (Some(low), Some(high)) => format!("{word} {low}–{high}"),
        (Some(low), None) => format!("{word} from {low}"),
        (None, Some(high)) => format!("{word} to {high}"),
        (None, None) => word,
    }
}

pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_fit_one_line() {
        let schema = json!({
            "properties": {
                "volume": {"type": "integer", "minimum": 0, "maximum": 100},
                "theme": {"enum": ["light", "dark"]},
                "note": {"type": ["string", "null"]},
                "free": {},
            },
            "required": ["volume"],
        });
        assert_eq!(arguments(&schema), "volume: integer 0–100, theme?: light|dark, note?: string|null, free?: any");
        assert_eq!(arguments(&json!({"type": "object"})), "");
    }
}
