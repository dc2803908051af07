//! `sinew policy`: who may call which tools.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use sinew_api::{Effects, Explain, Explained, MarkedTool};
use sinew_compose::GatewayConfig;
use sinew_compose::config::read_expectations;
use sinew_policy::{Mismatch, Policy, ToolSelector};

use crate::args::ReachArgs;
use crate::client::GatewayTarget;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_exact, print_json};

/// Tools of which nobody said what they do.
const UNMARKED: &str = "/api/v1/policy/effects?effect=unmarked";

#[derive(Debug, Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Explain what the policy says about a call, without making it
    Explain {
        /// Explain it for the token with this label, instead of your own
        #[arg(long = "as", value_name = "LABEL")]
        label: Option<String>,
        /// Id or name of the device
        device: String,
        /// Name of the tool
        tool: String,
        /// Arguments of the call, as a JSON object
        #[arg(value_name = "ARGUMENTS")]
        arguments: Option<String>,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Check a configuration's policy against a file of expectations
    Test {
        /// File with `[[expect]]` tables
        file: PathBuf,
        /// Configuration file with the policy
        #[arg(long, value_name = "FILE", default_value = "sinew.toml", env = "SINEW_CONFIG", hide_env_values = true)]
        config: PathBuf,
    },
    /// List tools of which nobody said what they do, with a proposal for each
    Review {
        /// List all tools, with who says what they do
        #[arg(long)]
        all: bool,
        /// Ask about each unmarked tool, and add what you choose to this configuration file
        #[arg(long, value_name = "FILE", conflicts_with = "all")]
        write: Option<PathBuf>,
        /// With --write: take the proposals without asking
        #[arg(long, requires = "write")]
        yes: bool,
        #[command(flatten)]
        reach: ReachArgs,
    },
}

pub async fn run(args: PolicyArgs, printer: Printer) -> Result<(), CliError> {
    match args.command {
        PolicyCommand::Explain { label, device, tool, arguments, reach } => {
            let request = Explain { token: label, device, tool, arguments: object(arguments.as_deref())? };
            explain(&request, &reach, printer).await
        }
        PolicyCommand::Test { file, config } => test(&file, &config, printer),
        PolicyCommand::Review { all, write: None, reach, .. } => review(all, &reach, printer).await,
        PolicyCommand::Review { write: Some(file), yes, reach, .. } => write_effects(&file, yes, &reach, printer).await,
    }
}

fn object(text: Option<&str>) -> Result<Map<String, Value>, CliError> {
    let Some(text) = text else { return Ok(Map::new()) };
    serde_json::from_str(text).map_err(|error| {
        let message =
            format!("the arguments are not a JSON object ({error}); expected for example '{{\"volume\": 5}}'");
        CliError::new(CliErrorKind::Usage, message)
    })
}

async fn explain(request: &Explain, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let answer: Explained =
        GatewayTarget::find(reach)?.connect().await?.post("/api/v1/policy/explain", request).await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    let mut text = format!("{}, by {}.\n", printer.paint(TextStyle::Bold, &answer.verdict), clean(&answer.reason));
    let source = answer.effect.source.as_deref().map(|source| format!(", says {source}")).unwrap_or_default();
    text.push_str(&format!("The tool's effect is {}{source}.\n", clean(&answer.effect.effect)));
    if !answer.listed {
        text.push_str("The tool is not listed for this caller.\n");
    }
    for rule in &answer.rules {
        let verdict = rule.verdict.as_deref().map(|verdict| format!(": {verdict}")).unwrap_or_default();
        text.push_str(&format!("  rule {} {}{verdict}\n", clean(&rule.id), clean(&rule.result)));
    }
    text.push_str(&format!("Without a rule: {}.\n", clean(&answer.default)));
    print(&text);
    Ok(())
}

/// Without a gateway, for continuous integration.
fn test(file: &Path, config: &Path, printer: Printer) -> Result<(), CliError> {
    let settings = GatewayConfig::load(config)?.access();
    let policy = Policy::new(settings.policy)
        .map_err(|problems| CliError::new(CliErrorKind::Config, problems.first().map_or("", |first| &first.message)))?;
    let expectations = read_expectations(file)?;
    let mismatches = expectations.run(&policy, &settings.effects);
    let total = expectations.expect.len();
    if printer.is_json() {
        print_json(
            &json!({"expectations": total, "mismatches": mismatches.iter().map(mismatch_json).collect::<Vec<_>>()}),
        );
    } else {
        mismatches.iter().for_each(|mismatch| print(&mismatch_line(mismatch)));
        print(&format!("{} of {total} expectations hold.\n", total - mismatches.len()));
    }
    match mismatches.len() {
        0 => Ok(()),
        count => Err(CliError::new(CliErrorKind::ChecksFailed, format!("{count} of {total} expectations do not hold"))),
    }
}

fn mismatch_json(mismatch: &Mismatch) -> Value {
    json!({
        "number": mismatch.index + 1,
        "expected": mismatch.expected.word(),
        "found": mismatch.found.verdict.word(),
        "reason": mismatch.found.reason.text(),
    })
}

fn mismatch_line(mismatch: &Mismatch) -> String {
    format!(
        "expectation {}: expected {}, found {}, by {}\n",
        mismatch.index + 1,
        mismatch.expected.word(),
        mismatch.found.verdict.word(),
        mismatch.found.reason.text()
    )
}

async fn review(all: bool, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let path = if all { "/api/v1/policy/effects" } else { UNMARKED };
    let answer: Effects = GatewayTarget::find(reach)?.connect().await?.get_all(path).await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    if answer.tools.is_empty() {
        print("Every tool has an effect.\n");
        return Ok(());
    }
    let mut table = Table::new(["DEVICE", "TOOL", "EFFECT", "SAYS", "PROPOSAL"]).cut(&["SAYS"]);
    for tool in &answer.tools {
        table.row([
            (Some(TextStyle::Bold), tool.device.clone()),
            (None, tool.tool.clone()),
            (None, tool.effect.clone()),
            (None, tool.source.clone().unwrap_or_default()),
            (Some(TextStyle::Dim), tool.proposal.clone()),
        ]);
    }
    print(&printer.table(&table));
    let unmarked: Vec<&MarkedTool> = answer.tools.iter().filter(|tool| tool.source.is_none()).collect();
    if !unmarked.is_empty() {
        print("\nTo mark them, run `sinew policy review --write sinew.toml`, or add what you agree with yourself:\n\n");
        let proposed: Vec<MarkedTool> =
            unmarked.iter().map(|tool| MarkedTool { effect: tool.proposal.clone(), ..(*tool).clone() }).collect();
        print_exact(&effect_tables(&proposed));
        print(&unwritable(&proposed));
    }
    Ok(())
}

/// Asks about each unmarked tool and adds the answers to the configuration file.
async fn write_effects(file: &Path, yes: bool, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    if !yes && !std::io::stdin().is_terminal() {
        let message = "nobody can be asked here; add --yes to take the proposals";
        return Err(CliError::new(CliErrorKind::Usage, message));
    }
    GatewayConfig::load(file)?;
    let answer: Effects = GatewayTarget::find(reach)?.connect().await?.get_all(UNMARKED).await?;
    let mut chosen = Vec::new();
    let is_writable = |tool: &MarkedTool| ToolSelector::exactly(&tool.tool).is_some();
    let (tools, left_out): (Vec<_>, Vec<_>) = answer.tools.into_iter().partition(is_writable);
    for tool in tools {
        let effect = if yes { Some(tool.proposal.clone()) } else { ask_effect(&tool, printer)? };
        chosen.extend(effect.map(|effect| MarkedTool { effect, ..tool }));
    }
    let tables = effect_tables(&chosen);
    let text = std::fs::read_to_string(file).map_err(|error| cannot("read", file, &error))?;
    let separator = if text.is_empty() || text.ends_with('\n') { "\n" } else { "\n\n" };
    if !chosen.is_empty() {
        std::fs::write(file, format!("{text}{separator}{tables}")).map_err(|error| cannot("write", file, &error))?;
        if let Err(error) = GatewayConfig::load(file) {
            std::fs::write(file, text).map_err(|error| cannot("write", file, &error))?;
            return Err(error.into());
        }
    }
    match printer.is_json() {
        true => print_json(&json!({ "tools": chosen })),
        false => {
            print(&format!("Added the effects of {} tools to {}.\n", chosen.len(), file.display()));
            print(&unwritable(&left_out));
        }
    }
    Ok(())
}

fn cannot(what: &str, file: &Path, error: &std::io::Error) -> CliError {
    CliError::new(CliErrorKind::Io, format!("cannot {what} {}: {error}", file.display()))
}

/// `None` leaves the tool unmarked.
fn ask_effect(tool: &MarkedTool, printer: Printer) -> Result<Option<String>, CliError> {
    let (name, device) = (clean(&tool.tool), clean(&tool.device));
    let question = format!("{} on {device}: read, change, danger or skip", printer.paint(TextStyle::Bold, &name));
    loop {
        print(&format!("{question} [{}]? ", tool.proposal));
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        let read =
            read.map_err(|error| CliError::new(CliErrorKind::Io, format!("cannot read your answer: {error}")))?;
        let word = line.trim().to_lowercase();
        let effects = ["read", "change", "danger"];
        match word.as_str() {
            _ if read == 0 => return Ok(None),
            "" => return Ok(Some(tool.proposal.clone())),
            "skip" | "s" => return Ok(None),
            word => match effects.iter().find(|effect| effect.starts_with(word)) {
                Some(effect) => return Ok(Some((*effect).to_owned())),
                None => print("Type read, change, danger or skip.\n"),
            },
        }
    }
}

/// Tables for the configuration file, one for each device and effect.
fn effect_tables(tools: &[MarkedTool]) -> String {
    let mut groups: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for tool in tools {
        // A device chooses the names of its tools, and one may look like a pattern.
        let selector = ToolSelector::exactly(&tool.tool).map(|selector| selector.to_string());
        groups.entry((&tool.device, &tool.effect)).or_default().extend(selector);
    }
    groups.retain(|_, names| !names.is_empty());
    let table = |((device, effect), names): ((&str, &str), Vec<String>)| {
        format!(
            "[[effects]]\non = [{}]\ntools = {}\neffect = \"{effect}\"\n",
            json!(format!("device:{device}")),
            list(&names)
        )
    };
    groups.into_iter().map(table).collect::<Vec<_>>().join("\n")
}

/// On one line if it fits a terminal, else one name on each.
fn list(names: &[String]) -> String {
    let line = json!(names).to_string();
    if line.len() <= 70 { line } else { format!("{:#}", json!(names)) }
}

/// Says which tools have names that no configuration file can hold.
fn unwritable(tools: &[MarkedTool]) -> String {
    let line = |tool: &MarkedTool| match ToolSelector::exactly(&tool.tool) {
        Some(_) => None,
        None => Some(format!(
            "Left out: `{}` on {}; its name is too long or has control characters. Select it with a pattern.\n",
            sinew_tool::text::clean_line(&tool.tool, 64),
            clean(&tool.device)
        )),
    };
    tools.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_patterns_are_written_exactly_and_always_for_their_device() {
        let marked = |tool: &str| MarkedTool {
            device: "toy".to_owned(),
            tool: tool.to_owned(),
            effect: "read".to_owned(),
            source: None,
            proposal: "read".to_owned(),
        };
        let tools = ["get_time", "*", "effect:danger", "a\nb"].map(marked);
        let expected = "[[effects]]\non = [\"device:toy\"]\ntools = [\"get_time\",\"exactly:*\",\"exactly:effect:danger\"]\neffect = \"read\"\n";
        assert_eq!(effect_tables(&tools), expected);
        assert_eq!(unwritable(&tools).lines().count(), 1);
    }
}
