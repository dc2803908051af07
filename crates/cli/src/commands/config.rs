//! `sinew config`: checks a configuration file, or prints the schema of all of them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sinew_api::{CheckPolicy, PolicyWarnings};
use sinew_compose::config::schema;
use sinew_compose::{GatewayConfig, Overrides};

use sinew_tool::settings::Setting;

use crate::args::{ConfigArgs, ConfigCommand, ReachArgs};
use crate::client::GatewayTarget;
use crate::error::CliError;
use crate::terminal::{Printer, TextStyle, clean, print, print_json};

/// For scripts and editors, as a misspelt flag.
const WRONG: u8 = 2;

pub async fn run(args: ConfigArgs, printer: Printer) -> Result<(), CliError> {
    match args.command {
        ConfigCommand::Check { file, state } => check(&file, state, printer).await,
        ConfigCommand::Schema => {
            print_json(&schema());
            Ok(())
        }
    }
}

/// Loads what `serve` loads, and opens nothing. The state says for whom there is a rule and no token; a gateway that runs
/// on it also says which rules match nothing.
async fn check(file: &Path, state: Option<PathBuf>, printer: Printer) -> Result<(), CliError> {
    let wrong = |error: sinew_compose::Error| CliError { exit: WRONG, ..error.into() };
    let settings = GatewayConfig::settings(file, &Overrides { state, ..Overrides::default() }).map_err(wrong)?;
    let config = GatewayConfig::load(file).map_err(wrong)?;
    let unmatched = match unmatched(&settings.state, &config).await {
        Some(unmatched) => unmatched,
        None => {
            let problems = sinew_gateway::check_callers(&settings.state, &config.policy).into_iter();
            problems.map(|problem| (problem.key, problem.message)).collect()
        }
    };
    let warnings = GatewayConfig::policy_warnings(file, unmatched).map_err(wrong)?;
    if printer.is_json() {
        print_json(&json!({"file": file, "status": "ok", "warnings": warnings}));
        return Ok(());
    }
    for warning in &warnings {
        print(&format!("{} {}\n", printer.paint(TextStyle::Warn, "warning:"), clean(warning)));
    }
    print(&format!("{} is valid.\n", file.display()));
    Ok(())
}

/// Selectors of the policy that match no caller, device or tool of the gateway on this state; `None` where none runs.
async fn unmatched(state: &Path, config: &GatewayConfig) -> Option<Vec<(String, String)>> {
    let running = sinew_compose::state::find_running(state)?;
    let mut policy = config.policy.to_value();
    remove_unset(&mut policy);
    let request = CheckPolicy { policy };
    let mut client = GatewayTarget::of_running(&running, &ReachArgs::default()).ok()?.connect().await.ok()?;
    let answer: PolicyWarnings = client.post("/api/v1/policy/check", &request).await.ok()?;
    Some(answer.warnings.into_iter().map(|warning| (warning.key, warning.message)).collect())
}

/// A setting that is not set is null in the value of its table.
fn remove_unset(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(remove_unset);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_unset),
        _ => {}
    }
}
