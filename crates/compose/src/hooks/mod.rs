//! `[[hooks]]`: what devices report starts a routine or a request to another service, without a model.
//!
//! A hook is a caller of its own, `hook:NAME` in the audit and in the policy. Its condition and arguments are steps, so
//! that they read like those of a routine.

mod run;
mod webhook;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};
use sinew_steps::{Limits, Steps};

pub(crate) use run::run;
use webhook::Webhook;

/// The name of the event in conditions and arguments.
const EVENT: &str = "event";
/// A condition and one call.
const LIMITS: Limits = Limits { written: 8, executed: 8, items: 1, time: Duration::from_secs(600) };
/// Names are part of the audit and of rules.
const MAX_NAME: usize = 48;

sinew_tool::settings! {
    /// Joins an event to a routine, or to a request to another service.
    pub struct HookConfig {
        /// Its name, in the audit and in rules: `hook:NAME`. Letters a-z, digits, `-` and `_`.
        pub name: String = String::new();
        /// The device that reports it: an id, a given name or `label:NAME`. Without it, any.
        pub device: Option<String> = None;
        /// The topic of the event, as `sinew events` shows it; `*` at the end stands for any rest.
        pub event: String = String::new();
        /// A condition as in steps, about `${event.body}`, `${event.device}` and `${event.topic}`.
        pub when: Map<String, Value> = Map::new();
        /// The routine to run.
        pub run: Option<String> = None;
        /// Its arguments; `${event.body.x}` inserts a part of the event.
        pub arguments: Map<String, Value> = Map::new();
        /// Address that the event is posted to, instead of a routine.
        pub url: Option<String> = None;
        /// Key that signs what is posted.
        pub secret: Option<String> = None;
        /// A file whose first line is the key, or a credential of systemd with that name. Relative to the configuration file.
        pub secret_file: Option<PathBuf> = None;
        /// How often it may act in a minute; what comes sooner is left out and counted in the log.
        pub per_minute: u32 = 30, within 1..=6_000;
    }
}

/// A checked hook.
#[derive(Clone, Debug)]
pub struct HookPlan {
    config: HookConfig,
    steps: Steps,
    webhook: Option<Webhook>,
}

impl PartialEq for HookPlan {
    /// The rest follows from the configuration.
    fn eq(&self, other: &HookPlan) -> bool {
        self.config == other.config
    }
}

/// Checks hooks. The error names the place of the one that is wrong.
pub fn plan(hooks: &[HookConfig]) -> Result<Vec<HookPlan>, (usize, String)> {
    let mut names = BTreeSet::new();
    let plan_one = |(index, hook): (usize, &HookConfig)| {
        let is_new = names.insert(hook.name.clone());
        match is_new {
            true => HookPlan::new(hook).map_err(|why| (index, format!("`{}`: {why}", hook.name))),
            false => Err((index, format!("two hooks are called `{}`", hook.name))),
        }
    };
    hooks.iter().enumerate().map(plan_one).collect()
}

impl HookPlan {
    fn new(config: &HookConfig) -> Result<HookPlan, String> {
        let is_name = (1..=MAX_NAME).contains(&config.name.len())
            && config.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
        if !is_name {
            return Err(format!("`name` must be 1 to {MAX_NAME} of a-z, 0-9, `-` and `_`"));
        }
        if config.event.is_empty() {
            return Err("`event` is missing: the topic, as `sinew events` shows it, or `*`".to_owned());
        }
        let (action, webhook) = match (&config.run, &config.url) {
            (Some(_), Some(_)) | (None, None) => {
                return Err("expected either `run`, the name of a routine, or `url`".to_owned());
            }
            (Some(routine), None) => {
                let call = json!({"call": routine, "device": sinew_routines::DEVICE, "arguments": config.arguments});
                (call, None)
            }
            (None, Some(url)) => {
                if !config.arguments.is_empty() {
                    return Err("`arguments` belong to `run`; what is posted to a `url` is the event".to_owned());
                }
                (json!({"return": true}), Some(Webhook::new(url, config.secret.as_deref())?))
            }
        };
        let steps = match config.when.is_empty() {
            true => json!([action]),
            false => json!([{"if": config.when, "then": [action]}]),
        };
        let steps = Steps::parse(&steps, [EVENT], &LIMITS).map_err(|error| error.message.clone())?;
        Ok(HookPlan { config: config.clone(), steps, webhook })
    }

    fn is_about(&self, topic: &str) -> bool {
        match self.config.event.strip_suffix('*') {
            Some(start) => topic.starts_with(start),
            None => topic == self.config.event,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(change: impl Fn(&mut HookConfig)) -> Result<Vec<HookPlan>, (usize, String)> {
        let mut config = HookConfig {
            name: "bell".to_owned(),
            event: "notifications/button".to_owned(),
            run: Some("good_night".to_owned()),
            ..HookConfig::default()
        };
        change(&mut config);
        plan(&[config])
    }

    #[test]
    fn what_is_wrong_with_a_hook_is_told() {
        assert!(hook(|_| {}).is_ok());
        let wrong = |change: fn(&mut HookConfig)| hook(change).expect_err("refused").1;
        assert!(wrong(|hook| hook.name = "Bell 1".to_owned()).contains("`name`"));
        assert!(wrong(|hook| hook.event = String::new()).contains("sinew events"));
        assert!(wrong(|hook| hook.run = None).contains("either"));
        assert!(wrong(|hook| hook.url = Some("https://example.com/".to_owned())).contains("either"));
        assert!(wrong(|hook| (hook.run, hook.url) = (None, Some("ftp://x/".to_owned()))).contains("http"));
        let unknown = |hook: &mut HookConfig| {
            hook.arguments.insert("x".to_owned(), json!("${nothing.x}"));
        };
        assert!(hook(unknown).expect_err("refused").1.contains("nothing"));
        let condition = |hook: &mut HookConfig| {
            hook.when.insert("pressed".to_owned(), json!(true));
        };
        assert!(hook(condition).is_err());
        let twice = [hook(|_| {}).expect("a plan")[0].config.clone(), hook(|_| {}).expect("a plan")[0].config.clone()];
        assert_eq!(plan(&twice).expect_err("refused").0, 1);
    }

    #[test]
    fn a_star_stands_for_any_rest_of_a_topic() {
        let plan = |event: &str| hook(|hook| hook.event = event.to_owned()).expect("a plan").remove(0);
        assert!(plan("notifications/*").is_about("notifications/button"));
        assert!(plan("*").is_about("joined"));
        assert!(!plan("notifications/button").is_about("notifications/button2"));
    }
}
