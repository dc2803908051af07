//! `sinew tools show`: one tool, with its arguments as a table and an example call.

use serde_json::{Value, json};
use sinew_api::{Devices, ListedTool, Tools};
use sinew_tool::spelling::nearest;
use sinew_tool::{ErrorKind, ToolError};

use super::tools::{self, kind, plain};
use crate::args::ReachArgs;
use crate::client::{GatewayClient, GatewayTarget};
use crate::error::CliError;
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_json};

/// A tool and the devices that have it exactly so.
struct FoundTool {
    tool: ListedTool,
    devices: Vec<String>,
}

impl FoundTool {
    fn is_same(&self, other: &ListedTool) -> bool {
        self.tool.description == other.description && self.tool.input_schema == other.input_schema
    }
}

pub async fn show(tool: &str, device: Option<&str>, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let mut client = GatewayTarget::find(reach)?.connect().await?;
    let mut found = find(&mut client, tool, device).await?;
    let FoundTool { tool, devices } = found.remove(0);
    if printer.is_json() {
        let others: Vec<_> = found.iter().map(|other| json!({"tool": other.tool, "devices": other.devices})).collect();
        print_json(&json!({"tool": tool, "devices": devices, "others": others}));
        return Ok(());
    }
    print(&page(&tool, &devices, printer));
    for other in found {
        let line = format!(
            "{} {} a different tool of this name: `sinew tools show {} --device {}`",
            clean(&other.devices.join(", ")),
            if other.devices.len() == 1 { "has" } else { "have" },
            clean(&other.tool.name),
            clean(&other.devices[0])
        );
        print(&printer.fact("Others", &line));
    }
    Ok(())
}

/// The tools of this name, which may differ from device to device; at least one.
async fn find(client: &mut GatewayClient, wanted: &str, device: Option<&str>) -> Result<Vec<FoundTool>, CliError> {
    let devices = match device {
        Some(device) => vec![device.to_owned()],
        None => {
            let answer: Devices = client.get_all("/api/v1/devices").await?;
            answer.devices.into_iter().filter(|device| device.tools > 0).map(|device| device.id).collect()
        }
    };
    let (mut found, mut names) = (Vec::<FoundTool>::new(), Vec::new());
    for device in devices {
        for tool in tools::of_device(client, &device).await? {
            if !tools::is_same_name(&tool.name, wanted) {
                names.push(tool.name);
            } else if let Some(same) = found.iter_mut().find(|found| found.is_same(&tool)) {
                same.devices.push(device.clone());
            } else {
                found.push(FoundTool { tool, devices: vec![device.clone()] });
            }
        }
    }
    if !found.is_empty() {
        return Ok(found);
    }
    // The gateway's own tools belong to no device, and a name for clients may have the device in it.
    let listed: Tools = client.get("/api/v1/tools?shape=folded").await?;
    if let Some(tool) = listed.tools.into_iter().find(|tool| tool.name == wanted && device.is_none()) {
        return Ok(vec![FoundTool { tool, devices: Vec::new() }]);
    }
    let hint = match nearest(wanted, names.iter().map(String::as_str)) {
        Some(name) => format!("did you mean `{name}`?"),
        None => "`sinew tools` lists the tools".to_owned(),
    };
    Err(ToolError::new(ErrorKind::UnknownTool, format!("there is no tool `{wanted}`; {hint}")).into())
}

fn page(tool: &ListedTool, devices: &[String], printer: Printer) -> String {
    let mut page = format!("{}\n", printer.paint(TextStyle::Bold, &clean(&tool.name)));
    if !tool.description.trim().is_empty() {
        page.push_str(&format!("{}\n", printer.wrap(&clean(tool.description.trim()), 0)));
    }
    page.push('\n');
    let schema = &tool.input_schema;
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut table = Table::new(["ARGUMENT", "TYPE", "NEEDED", "DEFAULT", "DESCRIPTION"]).wrap(&["TYPE", "DESCRIPTION"]);
    let properties = schema["properties"].as_object();
    for (name, property) in properties.into_iter().flatten() {
        let is_required = required.iter().any(|required| required == name);
        table.row([
            (Some(TextStyle::Bold), name.clone()),
            (None, kind(property)),
            (None, if is_required { "yes" } else { "" }.to_owned()),
            (None, property.get("default").map(plain).unwrap_or_default()),
            (None, property["description"].as_str().unwrap_or_default().to_owned()),
        ]);
    }
    match properties.is_some_and(|properties| !properties.is_empty()) {
        true => page.push_str(&printer.table(&table)),
        false => page.push_str("No arguments are listed.\n"),
    }
    if let Some(device) = devices.first() {
        page.push('\n');
        page.push_str(&printer.fact("Devices", &devices.join(", ")));
        page.push_str(&printer.fact("Example", &format!("sinew call {device} {}", example(tool))));
    }
    if !tool.simplified.is_empty() {
        page.push_str(
            "\nSimplified in the list for AI clients (docs/clients.md); calls are checked with the device's own schema, \
             except for what the description calls not checked:\n",
        );
        tool.simplified.iter().for_each(|part| page.push_str(&format!("  {}\n", clean(part))));
    }
    page
}

/// The tool with the arguments that it needs.
fn example(tool: &ListedTool) -> String {
    let schema = &tool.input_schema;
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut words = vec![clean(&tool.name)];
    for name in required.iter().filter_map(Value::as_str) {
        let value = plain(&example_value(&schema["properties"][name]));
        let is_plain =
            !value.is_empty() && value.chars().all(|letter| letter.is_alphanumeric() || "-_.:/".contains(letter));
        words.push(match is_plain {
            true => format!("{name}={value}"),
            false => format!("{name}='{}'", value.replace('\'', "'\\''")),
        });
    }
    words.join(" ")
}

/// A value that fits: the schema's own example or default, else the first choice, else something of its type.
fn example_value(property: &Value) -> Value {
    let given = [property["examples"].get(0), property.get("default"), property["enum"].get(0), property.get("const")];
    if let Some(value) = given.into_iter().flatten().next() {
        return value.clone();
    }
    match property["type"].as_str() {
        Some("integer" | "number") => property.get("minimum").or(property.get("maximum")).cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(schema: Value) -> ListedTool {
        ListedTool {
            name: "self.lamp.set".to_owned(),
            description: "Sets the lamp. It stays so until it is set again, also after a restart of the board."
                .to_owned(),
            input_schema: schema,
            own_name: None,
            simplified: Vec::new(),
            more: Default::default(),
        }
    }

    #[test]
    fn a_tool_is_shown_with_its_arguments_and_an_example_that_fits_eighty_columns() {
        let tool = tool(json!({
            "properties": {
                "brightness": {"type": "integer", "minimum": 0, "maximum": 100, "description": "How bright"},
                "color": {"enum": ["warm white", "red"]},
                "fade": {"type": "number", "default": 0.5, "description": "Seconds that the change takes, so that it does not hurt the eyes at night"},
            },
            "required": ["brightness", "color"],
        }));
        let text = page(&tool, &["lamp".to_owned(), "lamp-2".to_owned()], Printer::narrow(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for part in [
            "ARGUMENT",
            "integer 0–100",
            "lamp, lamp-2",
            "sinew call lamp self.lamp.set brightness=0 color='warm white'",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(page(&super::tests::tool(json!({})), &[], Printer::plain()).contains("No arguments"));
    }

    #[test]
    fn what_is_simplified_for_ai_clients_is_shown_with_the_client_it_is_for() {
        let part = "/properties/mail: format, for Gemini";
        let tool = ListedTool { simplified: vec![part.to_owned()], ..tool(json!({})) };
        assert!(page(&tool, &[], Printer::plain()).contains(&format!("\n  {part}\n")));
    }
}
