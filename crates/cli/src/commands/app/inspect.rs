//! `sinew app inspect`: what a gateway would find in an app.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use sinew_apps::offer::finding::advice;
use sinew_apps::offer::{OfferKind, ProtocolNames, ToolQuery};
use sinew_apps::rules;
use sinew_tool::finding::Finding;

use super::{ParsedApp, file, read, shown};
use crate::error::CliError;
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_json};

pub async fn run(path: &Path, printer: Printer) -> Result<(), CliError> {
    let file = file(path)?;
    let ParsedApp { offer, .. } = read(&file, &ProtocolNames::default(), false).await?;
    let mut findings = offer.findings.clone();
    findings.extend(offer.queries.iter().map(asked));
    let version = match offer.version_name.is_empty() {
        true => offer.version_code.to_string(),
        false => offer.version_name.clone(),
    };
    if printer.is_json() {
        let tool = |tool: &sinew_apps::offer::AppTool| {
            json!({
                "name": tool.tool.name, "form": tool.kind.as_str(), "component": tool.component,
                "schema": *tool.tool.input_schema,
            })
        };
        let finding = |finding: &Finding| json!({"severity": finding.severity.word(), "message": finding.message});
        print_json(&json!({
            "package": offer.package,
            "version": version,
            "instructions": offer.instructions,
            "tools": offer.tools.iter().map(tool).collect::<Vec<Value>>(),
            "findings": findings.iter().map(finding).collect::<Vec<Value>>(),
        }));
        return Ok(());
    }
    let mut page = format!("{} {}\n", printer.paint(TextStyle::Bold, &clean(&offer.package)), clean(&version));
    if let Some(certificate) = &offer.certificate {
        let _ = writeln!(page, "signed by the certificate {certificate}");
    }
    if let Some(instructions) = &offer.instructions {
        let _ = writeln!(page, "says of itself: {}", clean(instructions));
    }
    page.push('\n');
    if offer.tools.is_empty() {
        page.push_str("No tools stand in the manifest.\n");
    } else {
        let mut table = Table::new(["TOOL", "FORM", "COMPONENT", "DESCRIPTION"]).cut(&["DESCRIPTION"]);
        for tool in &offer.tools {
            table.row([
                (Some(TextStyle::Bold), clean(&tool.tool.name)),
                (None, tool.kind.as_str().to_owned()),
                (Some(TextStyle::Dim), clean(&tool.component)),
                (None, clean(&tool.tool.description)),
            ]);
        }
        page.push_str(&printer.table(&table));
    }
    let path = file.display().to_string();
    for finding in &findings {
        page.push('\n');
        page.push_str(&shown(finding, &path, printer));
    }
    print(&page);
    Ok(())
}

/// What only the running app knows is said to be so.
fn asked(ask: &ToolQuery) -> Finding {
    let component = &ask.component;
    let message = match (ask.kind, &ask.authority) {
        (OfferKind::Provider | OfferKind::ProviderMany, Some(authority)) => {
            format!(
                "the provider {component} lists its tools only when it is queried at {authority}; install the app and run `sinew phones apps` to see them"
            )
        }
        (OfferKind::AppFunction, _) => {
            format!(
                "{component} has app functions, which Android lists when the app is installed; run `sinew phones apps` to see them"
            )
        }
        _ => format!(
            "the receiver {component} lists its tools only when it is queried; install the app and run `sinew phones apps` to see them"
        ),
    };
    advice(&rules::ASKED, message)
}
