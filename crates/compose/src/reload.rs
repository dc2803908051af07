//! What is taken from a changed configuration file while the gateway runs: the policy, and the devices it names.

use std::path::{Path, PathBuf};
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

/// Many editors empty a file before they write it: a text is taken when it stayed the same for so long.
const SETTLE: Duration = Duration::from_millis(500);

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
    let mut before = read(path.clone()).await;
    let mut in_force = before.clone().unwrap_or_default();
    let mut started_with = GatewayConfig::load_text(&path, &in_force).ok().map(|config| config.to_value());
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = hangup.wait() => tracing::info!(path = %path.display(), "SIGHUP: reading the configuration again"),
            () = stop.cancelled() => return Ok(()),
        }
        if read(path.clone()).await == before {
            continue;
        }
        let Some(text) = stop.run_until_cancelled(settled(|| read(path.clone()))).await else { return Ok(()) };
        if text == before {
            continue;
        }
        before = text.clone();
        match take(&path, &in_force, text) {
            Err(error) => {
                tracing::error!(error, "the changed configuration has a mistake; policy and devices stay as they are");
                gateway.set_config_problem(Some(error));
            }
            Ok((config, text)) => {
                in_force = text;
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

/// The text of the file, or why there is none.
async fn read(path: PathBuf) -> Result<String, String> {
    let text = tokio::fs::read_to_string(&path).await;
    text.map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// What two looks in a row find.
async fn settled<T: PartialEq, F: Future<Output = T>>(look: impl Fn() -> F) -> T {
    let mut seen = look().await;
    loop {
        tokio::time::sleep(SETTLE).await;
        let now = look().await;
        if now == seen {
            return seen;
        }
        seen = now;
    }
}

/// The configuration that a changed text is, with that very text. A file that lost all its text was not written to the
/// end, or by mistake: nobody drops a whole policy in this way.
fn take(path: &Path, in_force: &str, text: Result<String, String>) -> Result<(GatewayConfig, String), String> {
    let text = text?;
    if text.trim().is_empty() && !in_force.trim().is_empty() {
        return Err(format!(
            "{} is empty now; write it again, or restart the gateway to run it with nothing but defaults",
            path.display()
        ));
    }
    let config = GatewayConfig::load_text(path, &text).map_err(|error| error.to_string())?;
    Ok((config, text))
}

/// Keys that differ and are not taken while the gateway runs.
fn changed_keys(old: &Value, new: &Value) -> Vec<String> {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Vec::new() };
    let differs = |(key, value): (&String, &Value)| {
        (!RELOADED.contains(&key.as_str()) && old.get(key) != Some(value)).then(|| key.clone())
    };
    new.iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_text_is_taken_when_two_looks_in_a_row_find_it() {
        let texts = Mutex::new(["", "half", "half and", "all of it", "all of it", "later"].iter());
        let found = settled(|| std::future::ready(texts.lock().unwrap().next())).await;
        assert_eq!(found, Some(&"all of it"));
    }

    #[test]
    fn a_file_that_lost_its_text_drops_no_policy() {
        let path = Path::new("sinew.toml");
        let taken = |in_force: &str, text: &str| take(path, in_force, Ok(text.to_owned())).map(|(_, text)| text);
        for empty in ["", " \n\t\n"] {
            let problem = taken("[policy]\nread-only = true\n", empty).unwrap_err();
            assert!(problem.contains("sinew.toml is empty now"), "{problem}");
            assert_eq!(taken("\n", empty).unwrap(), empty);
        }
        assert_eq!(taken("[policy]\nread-only = true\n", "# nothing\n").unwrap(), "# nothing\n");
        let problem = taken("", "[policy]\nread-only = ").unwrap_err();
        assert!(problem.starts_with("sinew.toml:2: "), "{problem}");
        assert_eq!(take(path, "", Err("gone".to_owned())).unwrap_err(), "gone");
    }
}
