//! What is taken from a changed configuration file while the gateway runs: the policy, and the devices it names.

use std::path::PathBuf;
use std::time::Duration;

use sinew_gateway::Gateway;
use sinew_tool::Value;
use sinew_tool::settings::Setting;
use tokio_util::sync::CancellationToken;

use crate::config::GatewayConfig;
use crate::families::{FamilyPlans, RunningFamilies};
use crate::hangup::Hangup;

/// Somebody who saved the file looks at the log next.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The keys that are taken from a changed file.
const RELOADED: [&str; 8] = ["policy", "effects", "redact", "budgets", "servers", "serial", "things", "hooks"];

/// Watches a configuration file until `stop`; SIGHUP has it read at once. A file with a mistake changes nothing.
/// Without a file, SIGHUP ends nothing.
///
/// The signal is listened to from the call on, before anything is awaited.
pub fn follow(
    path: Option<PathBuf>,
    gateway: Gateway,
    families: RunningFamilies,
    stop: CancellationToken,
) -> impl Future<Output = std::io::Result<()>> + Send + 'static {
    let hangup = Hangup::new();
    async move { follow_file(path, gateway, families, hangup?, stop).await }
}

async fn follow_file(
    path: Option<PathBuf>,
    gateway: Gateway,
    families: RunningFamilies,
    mut hangup: Hangup,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let Some(path) = path else {
        while stop.run_until_cancelled(hangup.wait()).await.is_some() {
            tracing::info!("SIGHUP: there is no configuration file to read again");
        }
        return Ok(());
    };
    let mut before = read(&path).await;
    let mut started_with = GatewayConfig::load(&path).ok().map(|config| config.to_value());
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = hangup.wait() => tracing::info!(path = %path.display(), "SIGHUP: reading the configuration again"),
            () = stop.cancelled() => return Ok(()),
        }
        let text = read(&path).await;
        if text == before {
            continue;
        }
        before = text;
        match GatewayConfig::load(&path) {
            Err(error) => {
                tracing::error!(%error, "the changed configuration has a mistake; policy and devices stay as they are");
                gateway.set_config_problem(Some(error.to_string()));
            }
            Ok(config) => {
                let mut problem = None;
                let waiting =
                    started_with.as_ref().map(|old| changed_keys(old, &config.to_value())).unwrap_or_default();
                started_with.get_or_insert_with(|| config.to_value());
                match gateway.set_access(config.access()) {
                    Ok(()) => {
                        gateway.set_budgets(config.budgets.clone());
                        tracing::info!(path = %path.display(), "policy and budgets loaded from the changed configuration");
                    }
                    Err(problems) => {
                        let why = problems.into_iter().next().map_or(String::new(), |problem| problem.message);
                        tracing::error!(problem = why, "the changed policy has a mistake; the old one stays in force");
                        problem = Some(why);
                    }
                }
                match FamilyPlans::of(&config) {
                    Ok(plans) => families.set(plans),
                    Err(wrong) => {
                        tracing::error!(
                            problem = wrong.message,
                            "the changed devices have a mistake; the old ones stay"
                        );
                        problem = Some(wrong.message);
                    }
                }
                gateway.set_config_problem(problem);
                if !waiting.is_empty() {
                    tracing::warn!(keys = waiting.join(", "), "changed keys that take effect after a restart");
                }
            }
        }
    }
}

async fn read(path: &std::path::Path) -> Option<String> {
    tokio::fs::read_to_string(path).await.ok()
}

/// Keys that differ and are not taken while the gateway runs.
fn changed_keys(old: &Value, new: &Value) -> Vec<String> {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Vec::new() };
    let differs = |(key, value): (&String, &Value)| {
        (!RELOADED.contains(&key.as_str()) && old.get(key) != Some(value)).then(|| key.clone())
    };
    new.iter().filter_map(differs).collect()
}
