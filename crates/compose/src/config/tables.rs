//! The tables of `sinew.toml` that belong to no single crate.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sinew_apps::offer::ProtocolNames;
use sinew_boards::{Backend, BoardLimits, OfferedTransport, Pictures};
use sinew_front::dialout::EndpointAddress;
use sinew_phones::{Extension, Profile, adb};
use sinew_spec::lint;
use sinew_tool::settings::{Deserializer, Error, Setting, parse_address};
use sinew_tool::{Value, json};

use super::hosts::check_advertised;
use crate::android::AgentSetting;

sinew_tool::settings! {
    /// How boards are served.
    pub struct BoardsConfig {
        /// Name or address under which boards reach this machine, without scheme or port; guessed by default. `sinew
        /// doctor` shows it.
        pub advertise: Option<String> = None, check check_advertised;
        /// The transport that the bootstrap names to boards: `mqtt`, `websocket` or `both`.
        pub bootstrap: OfferedTransport = OfferedTransport::Mqtt;
        /// A model that answers questions about photos, as OpenAI's chat completions. Without it the photo itself goes
        /// to the client.
        pub vision: Option<VisionConfig> = None, check |vision| pictures(vision.as_ref()).map(drop);
        /// What the listeners for boards bear.
        pub limits: BoardLimits = BoardLimits::default();
    }
}

sinew_tool::settings! {
    /// A model that looks at photos.
    pub struct VisionConfig {
        /// Where it answers, for example `http://127.0.0.1:11434/v1/chat/completions`.
        pub url: String = String::new();
        /// Its name there.
        pub model: String = String::new();
        /// The key to use it with, where one is needed.
        pub key: Option<String> = None;
        /// A file whose first line is the key, or a credential of systemd with that name. Relative to the configuration file.
        pub key_file: Option<PathBuf> = None;
    }
}

impl BoardsConfig {
    pub fn pictures(&self) -> Result<Pictures, String> {
        pictures(self.vision.as_ref())
    }
}

fn pictures(vision: Option<&VisionConfig>) -> Result<Pictures, String> {
    let Some(VisionConfig { url, model, key, .. }) = vision else { return Ok(Pictures::Attach) };
    Backend::new(url, model, key.as_deref()).map(Pictures::Ask)
}

sinew_tool::settings! {
    /// A broker of MCP endpoints.
    pub struct EndpointConfig {
        /// Its address, `wss://HOST/mcp/?token=TOKEN`.
        pub url: String = String::new(), check |url| url.parse::<EndpointAddress>().map(drop);
        /// A file whose first line is the address, or a credential of systemd with that name. Relative to the configuration file.
        pub url_file: Option<PathBuf> = None;
        /// Offer every device's tools under names of their own.
        pub unfolded: bool = false;
    }
}

sinew_tool::settings! {
    /// Whether and how the phones that adb sees are offered.
    pub struct PhonesConfig {
        /// Whether phones are offered.
        pub enabled: bool = true;
        /// Which tools: `full`, `compact` with those that matter most, or `tester` with those that change apps too.
        pub profile: Profile = Profile::Full;
        /// The part of Sinew that runs on the phone: `true` for the one inside the program, `false`, or a folder with an
        /// `agent.jar` that `android/build` made (relative to the file).
        pub agent: AgentSetting = AgentSetting::Switch(true);
        /// The folder with the APKs that `install_app` installs by name (relative to the file).
        pub apks: Option<PathBuf> = None;
        /// The tools that apps on the phones offer, see `docs/apps.md`.
        pub apps: AppsConfig = AppsConfig::default();
    }
}

sinew_tool::settings! {
    /// Whether and how the tools of apps are offered. The names are those by which apps are recognised.
    pub struct AppsConfig {
        /// Whether apps are looked for.
        pub enabled: bool = true;
        /// Seconds between two looks at a phone's packages.
        pub interval: Duration = Duration::from_secs(15), within 1..=86_400;
        /// Another action of activities that advertise tools.
        pub advertise: Option<String> = None;
        /// Another action of the intent that calls such a tool.
        pub call: Option<String> = None;
        /// Another name of the meta-data that holds the tools.
        pub manifest: Option<String> = None;
        /// Another action of the broadcast that asks for tools.
        pub discovery: Option<String> = None;
        /// Another action of the broadcast that calls one.
        pub invoke: Option<String> = None;
        /// Another MIME type in the filter of providers with one tool.
        pub provider_type: Option<String> = None;
        /// Another action in the filter of providers with many tools.
        pub provider_action: Option<String> = None;
        /// Another action of services with a capability file.
        pub service: Option<String> = None;
        /// Another action of services with Android's app functions.
        pub functions: Option<String> = None;
    }
}

impl AppsConfig {
    pub fn settings(&self, state: &Path) -> Option<sinew_apps::WatchSettings> {
        let mut names = ProtocolNames::default();
        for (name, own) in [
            (&mut names.advertise, &self.advertise),
            (&mut names.call, &self.call),
            (&mut names.manifest, &self.manifest),
            (&mut names.discovery, &self.discovery),
            (&mut names.invoke, &self.invoke),
            (&mut names.provider_type, &self.provider_type),
            (&mut names.provider_action, &self.provider_action),
            (&mut names.service, &self.service),
            (&mut names.functions, &self.functions),
        ] {
            own.iter().for_each(|own| name.clone_from(own));
        }
        let (interval, cache) = (self.interval, Some(state.join("apps")));
        self.enabled.then_some(sinew_apps::WatchSettings { names, interval, cache })
    }
}

impl PhonesConfig {
    pub fn offer(&self, state: &Path) -> Option<adb::PhoneOptions> {
        let extension = self.apps.settings(state).map(|settings| Arc::new(settings) as Arc<dyn Extension>);
        self.enabled.then(|| adb::PhoneOptions {
            apks: self.apks.clone(),
            profile: self.profile,
            agent: self.agent.source(),
            extension,
            remembered: Some(adb::NetworkPhones::in_state(state)),
            state: Some(state.to_owned()),
            records: None,
        })
    }
}

sinew_tool::settings! {
    /// How specifications are checked, for a repository that keeps its `sinew.toml` beside them.
    pub struct SpecConfig {
        /// `off`, `advice`, `warning` or `error` by rule, see `docs/spec-rules.md`.
        pub rules: BTreeMap<String, String> = BTreeMap::new(), check |rules| lint_config(rules).map(drop);
        /// Characters that a name may have.
        pub name_length: usize = lint::LintConfig::default().name_length, within 1..=1_000;
        /// Tokens that a description may have.
        pub description_tokens: usize = lint::LintConfig::default().description_tokens, within 1..=100_000;
        /// Other rules for some files; the last that fits wins.
        pub overrides: Vec<RuleOverride> = Vec::new();
    }
}

sinew_tool::settings! {
    /// Rules for the files that one of the patterns fits.
    pub struct RuleOverride {
        /// Patterns relative to the folder of the configuration: `*` and `?` stand for anything but `/`, `**` also for
        /// folders.
        pub paths: Vec<String> = Vec::new();
        /// `off`, `advice`, `warning` or `error` by rule.
        pub rules: BTreeMap<String, String> = BTreeMap::new(), check |rules| lint_config(rules).map(drop);
    }
}

impl SpecConfig {
    /// The rules for a file, named relative to the configuration's folder.
    pub fn rules_for(&self, path: &str) -> Result<lint::LintConfig, String> {
        let mut config = self.rules()?;
        let fits = |one: &&RuleOverride| one.paths.iter().any(|pattern| matches(pattern.as_bytes(), path.as_bytes()));
        for (id, level) in self.overrides.iter().filter(fits).flat_map(|one| &one.rules) {
            config.set(id, level)?;
        }
        Ok(config)
    }

    pub fn rules(&self) -> Result<lint::LintConfig, String> {
        let mut config = lint_config(&self.rules)?;
        config.name_length = self.name_length;
        config.description_tokens = self.description_tokens;
        Ok(config)
    }
}

fn lint_config(rules: &BTreeMap<String, String>) -> Result<lint::LintConfig, String> {
    let mut config = lint::LintConfig::default();
    for (id, level) in rules {
        config.set(id, level)?;
    }
    Ok(config)
}

/// Whether a pattern fits a path.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => path.is_empty(),
        [b'*', b'*', b'/', rest @ ..] => {
            let folders = (0..path.len()).filter(|at| path[*at] == b'/').map(|at| at + 1);
            std::iter::once(0).chain(folders).any(|at| matches(rest, &path[at..]))
        }
        [b'*', b'*', rest @ ..] => (0..=path.len()).any(|at| matches(rest, &path[at..])),
        [b'*', rest @ ..] => {
            let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
            (0..=end).any(|at| matches(rest, &path[at..]))
        }
        [b'?', rest @ ..] => path.first().is_some_and(|byte| *byte != b'/') && matches(rest, &path[1..]),
        [first, rest @ ..] => path.first() == Some(first) && matches(rest, &path[1..]),
    }
}

/// Where boards speak MQTT, if anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum MqttAddress {
    Off,
    At(SocketAddr),
}

impl MqttAddress {
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            MqttAddress::Off => None,
            MqttAddress::At(address) => Some(address),
        }
    }
}

impl From<MqttAddress> for String {
    fn from(address: MqttAddress) -> String {
        address.address().map_or("off".to_owned(), |address| address.to_string())
    }
}

impl TryFrom<String> for MqttAddress {
    type Error = String;

    fn try_from(text: String) -> Result<MqttAddress, String> {
        text.parse()
    }
}

impl FromStr for MqttAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<MqttAddress, String> {
        if text == "off" {
            return Ok(MqttAddress::Off);
        }
        parse_address(text).map(MqttAddress::At).map_err(|why| format!("{why}; or `off`"))
    }
}

impl Setting for MqttAddress {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        let mut text = String::new();
        text.read(from)?;
        *self = text.parse().map_err(D::Error::custom)?;
        Ok(())
    }

    fn schema() -> Value {
        String::schema()
    }

    fn to_value(&self) -> Value {
        json!(String::from(*self))
    }
}
