//! `sinew devices show`: everything about one device.

use serde_json::Value;
use sinew_api::{DeviceSummary, Devices, ListedTool};
use sinew_tool::spelling::nearest;
use sinew_tool::{ErrorKind, ToolError};

use super::devices::style_of;
use super::{ago, tools};
use crate::args::DeviceArgs;
use crate::client::{GatewayTarget, encode};
use crate::error::CliError;
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_json};

pub async fn show(args: &DeviceArgs, printer: Printer) -> Result<(), CliError> {
    let mut client = GatewayTarget::find(&args.reach)?.connect().await?;
    let found: Devices = client.get(&format!("/api/v1/devices?id={}", encode(&args.device))).await?;
    let Some(device) = found.devices.first() else {
        let devices = client.get_all::<Devices>("/api/v1/devices").await?.devices;
        let names = devices.iter().flat_map(|device| std::iter::once(device.id.as_str()).chain(device.name.as_deref()));
        let hint = match nearest(&args.device, names) {
            Some(name) => format!("did you mean `{name}`?"),
            None => "`sinew devices` lists the devices".to_owned(),
        };
        let message = format!("there is no device `{}`; {hint}", args.device);
        return Err(ToolError::new(ErrorKind::UnknownDevice, message).into());
    };
    if printer.is_json() {
        print_json(device);
        return Ok(());
    }
    let tools = tools::of_device(&mut client, &device.id).await.unwrap_or_default();
    print(&page(device, &tools, printer));
    Ok(())
}

fn page(device: &DeviceSummary, tools: &[ListedTool], printer: Printer) -> String {
    let name = device.name.as_deref().map(|name| format!(" ({})", clean(name))).unwrap_or_default();
    let mut page = format!("{}{name}\n", printer.paint(TextStyle::Bold, &clean(&device.id)));
    let mut fact = |name: &str, value: &str| {
        if !value.trim().is_empty() {
            page.push_str(&printer.fact(name, &clean(value)));
        }
    };
    let state = printer.paint(style_of(&device.state), &clean(&device.state)).into_owned();
    fact("Kind", &format!("{} {}", device.kind, device.version));
    fact("Family", &device.family);
    fact("Labels", &device.labels.join(", "));
    fact("Admitted by", device.admitted_by.as_deref().unwrap_or_default());
    fact(
        "Tools",
        &match (device.pinned, device.quarantined) {
            (false, _) => device.tools.to_string(),
            (true, 0) => format!("{}, pinned", device.tools),
            (true, held) => {
                format!("{}, pinned; {held} held back, see `sinew devices changes {}`", device.tools, device.id)
            }
        },
    );
    for (name, value) in &device.attributes {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Array(list) => list.iter().map(tools::plain).collect::<Vec<_>>().join(", "),
            other => other.to_string(),
        };
        fact(&name.replace('_', " "), &text);
    }
    fact("Instructions", device.instructions.as_deref().unwrap_or_default());
    fact("Remedy", device.remedy.as_deref().unwrap_or_default());
    for warning in &device.warnings {
        fact("Warning", warning);
    }
    // After its name, and with its colour, which `clean` would remove.
    let state = printer.fact("State", &format!("{state}, since {}", ago(device.since)));
    let first = page.find('\n').map_or(0, |end| end + 1);
    page.insert_str(first, &state);
    if !tools.is_empty() {
        let mut table = Table::new(["TOOL", "ARGUMENTS", "DESCRIPTION"]).cut(&["ARGUMENTS", "DESCRIPTION"]);
        for tool in tools {
            table.row([
                (Some(TextStyle::Bold), tool.name.clone()),
                (None, tools::argument_names(&tool.input_schema)),
                (None, tool.description.clone()),
            ]);
        }
        page.push('\n');
        page.push_str(&printer.table(&table));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_device_is_shown_with_its_remedy_within_eighty_columns() {
        let device = DeviceSummary {
            id: "board-ddee01".to_owned(),
            name: Some("lamp".to_owned()),
            state: "away".to_owned(),
            kind: "companion".to_owned(),
            attributes: json!({"hardware_id": "aa:bb:cc:dd:ee:01", "forms": ["a", "b"]})
                .as_object()
                .cloned()
                .unwrap_or_default(),
            remedy: Some(
                "switch it on, or look at its serial console for what keeps it from reaching the gateway".to_owned(),
            ),
            ..DeviceSummary::default()
        };
        let text = page(&device, &[], Printer::narrow(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for part in ["board-ddee01 (lamp)", "away, since", "aa:bb:cc:dd:ee:01", "a, b", "switch it on"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }
}
