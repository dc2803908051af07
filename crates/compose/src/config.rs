//! `sinew.toml`: what it may say, and how it joins the flags. `docs/config.md` is printed from here.
//!
//! Every key that a flag has too bears the flag's name; a flag wins over the file, the file over the
//! default.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sinew_apps::offer::Words;
use sinew_boards::{Backend, Offer, Pictures};
use sinew_front::dialout::Address;
use sinew_gateway::Shape;
use sinew_phones::{Extension, Profile, adb};
use sinew_spec::judge;
use sinew_tool::near::nearest;

use crate::android::Agent;
use crate::brokers;
use crate::error::{Error, ErrorKind};
use crate::house::{Certificate, Settings};
use crate::state;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    pub listen: SocketAddr,
    pub devices: SocketAddr,
    pub mqtt: MqttDoor,
    pub advertise: Option<String>,
    pub bootstrap: Offered,
    pub state: Option<PathBuf>,
    pub tls: bool,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub devices_tls: bool,
    pub insecure_lan: bool,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub call_timeout: u32,
    pub grace: u32,
    pub max_devices: u32,
    pub user_tools: bool,
    pub vision: Option<Vision>,
    pub endpoints: Vec<Endpoint>,
    pub brokers: Vec<brokers::Section>,
    pub lock: Option<PathBuf>,
    pub spec_tools: bool,
    pub spec: Option<Spec>,
    pub phones: Phones,
}

/// How specifications are judged, for a repository that keeps its `sinew.toml` beside them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Spec {
    /// `off`, `advice`, `warning` or `error` by rule.
    pub rules: BTreeMap<String, String>,
    pub name_length: Option<usize>,
    pub description_tokens: Option<usize>,
}

impl Spec {
    pub fn rules(&self) -> Result<judge::Config, String> {
        let mut config = judge::Config::default();
        for (id, level) in &self.rules {
            config.set(id, level)?;
        }
        config.name_length = self.name_length.unwrap_or(config.name_length);
        config.description_tokens = self.description_tokens.unwrap_or(config.description_tokens);
        Ok(config)
    }
}

/// What the bootstrap tells boards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offered {
    Mqtt,
    Websocket,
    Both,
}

/// A model that looks at photos.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Vision {
    pub url: String,
    pub model: String,
    pub key: Option<String>,
}

/// Whether and how the phones that adb sees are offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Phones {
    pub enabled: bool,
    pub profile: PhoneProfile,
    pub agent: Agent,
    pub apps: Apps,
}

/// Whether and how the tools of the apps on phones are offered. The words are those by which apps are
/// recognised; left out, they are the protocols' own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Apps {
    pub enabled: bool,
    /// Seconds between two looks at a phone's packages.
    pub interval: u32,
    pub advertise: Option<String>,
    pub call: Option<String>,
    pub manifest: Option<String>,
    pub discovery: Option<String>,
    pub invoke: Option<String>,
    pub provider_type: Option<String>,
    pub provider_action: Option<String>,
    pub service: Option<String>,
    pub functions: Option<String>,
}

impl Default for Apps {
    fn default() -> Apps {
        Apps {
            enabled: true,
            interval: 15,
            advertise: None,
            call: None,
            manifest: None,
            discovery: None,
            invoke: None,
            provider_type: None,
            provider_action: None,
            service: None,
            functions: None,
        }
    }
}

impl Apps {
    fn settings(&self, state: &Path) -> Option<sinew_apps::Settings> {
        let mut words = Words::default();
        for (word, own) in [
            (&mut words.advertise, &self.advertise),
            (&mut words.call, &self.call),
            (&mut words.manifest, &self.manifest),
            (&mut words.discovery, &self.discovery),
            (&mut words.invoke, &self.invoke),
            (&mut words.provider_type, &self.provider_type),
            (&mut words.provider_action, &self.provider_action),
            (&mut words.service, &self.service),
            (&mut words.functions, &self.functions),
        ] {
            own.iter().for_each(|own| word.clone_from(own));
        }
        let interval = Duration::from_secs(self.interval.into());
        self.enabled.then(|| sinew_apps::Settings { words, interval, cache: Some(state.join("apps")) })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhoneProfile {
    Full,
    Compact,
}

impl Default for Phones {
    fn default() -> Phones {
        Phones { enabled: true, profile: PhoneProfile::Full, agent: Agent::Switch(true), apps: Apps::default() }
    }
}

impl Phones {
    fn offer(&self, state: &Path) -> Option<adb::Offer> {
        let profile = match self.profile {
            PhoneProfile::Full => Profile::Full,
            PhoneProfile::Compact => Profile::Compact,
        };
        let extension = self.apps.settings(state).map(|settings| Arc::new(settings) as Arc<dyn Extension>);
        self.enabled.then(|| adb::Offer { profile, agent: self.agent.source(state), extension })
    }
}

/// A broker of MCP endpoints to offer the tools at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Endpoint {
    pub url: String,
    #[serde(default)]
    pub unfolded: bool,
}

/// Where boards speak MQTT, if anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum MqttDoor {
    Off,
    At(SocketAddr),
}

impl MqttDoor {
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            MqttDoor::Off => None,
            MqttDoor::At(address) => Some(address),
        }
    }
}

impl FromStr for MqttDoor {
    type Err = String;

    fn from_str(text: &str) -> Result<MqttDoor, String> {
        if text == "off" {
            return Ok(MqttDoor::Off);
        }
        text.parse().map(MqttDoor::At).map_err(|_| "expected an address such as 127.0.0.1:7302, or `off`".to_owned())
    }
}

impl TryFrom<String> for MqttDoor {
    type Error = String;

    fn try_from(text: String) -> Result<MqttDoor, String> {
        text.parse()
    }
}

impl From<MqttDoor> for String {
    fn from(door: MqttDoor) -> String {
        door.address().map_or("off".to_owned(), |address| address.to_string())
    }
}

/// What the command line says otherwise; it wins over the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub listen: Option<SocketAddr>,
    pub devices: Option<SocketAddr>,
    pub mqtt: Option<MqttDoor>,
    pub advertise: Option<String>,
    pub state: Option<PathBuf>,
    pub token: Option<String>,
    pub tls: bool,
    /// Certificate chain and private key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    pub devices_tls: bool,
    pub insecure_lan: bool,
}

/// How the tools are offered: each device's under names of their own, or those of equal devices as one.
pub fn shape(unfolded: bool) -> Shape {
    if unfolded { Shape::Unfolded } else { Shape::Folded }
}

/// One key, for the reference page and for the message about a wrong one.
pub struct Key {
    pub name: &'static str,
    pub example: &'static str,
    pub default: &'static str,
    pub meaning: &'static str,
}

macro_rules! keys {
    ($($name:literal $example:literal $default:literal $meaning:literal;)*) => {
        /// Every key, in the order of [`Config`].
        pub const KEYS: &[Key] = &[$(Key { name: $name, example: $example, default: $default, meaning: $meaning }),*];
    };
}

keys! {
    "listen"          r#""127.0.0.1:7300""#      r#""127.0.0.1:7300""#  "Address of the clients' door: MCP, REST, command line.";
    "devices"         r#""127.0.0.1:7301""#      r#""127.0.0.1:7301""#  "Address of the boards' door.";
    "mqtt"            r#""127.0.0.1:7302""#      r#""127.0.0.1:7302""#  "Address of the boards' MQTT door, or `off`. Sound of boards goes to the UDP port of the same number.";
    "advertise"       r#""192.168.1.5""#         "guessed"              "Name or address under which boards reach this machine; what they are told to come back to carries it. `sinew doctor` shows it.";
    "bootstrap"       r#""both""#                r#""mqtt""#            "What a board is told that asks for its settings: `mqtt`, `websocket` or `both`.";
    "state"           r#""/var/lib/sinew""#      "`~/.local/state/sinew`" "State directory: token, names, audit, events.";
    "tls"             "true"                     "false"                "Serve the clients' door over HTTPS. Without `tls-cert` the gateway makes a certificate for the machine's addresses.";
    "tls-cert"        r#""cert.pem""#            "none"                 "Certificate chain to serve, PEM. Implies `tls`, needs `tls-key`. Relative to the file.";
    "tls-key"         r#""key.pem""#             "none"                 "Private key of the certificate, PEM. Relative to the file.";
    "devices-tls"     "true"                     "false"                "Serve the boards' doors over TLS (wss, mqtts) with the same certificate.";
    "insecure-lan"    "true"                     "false"                "Allow listening beyond loopback without TLS; tokens then travel in the clear.";
    "allowed-hosts"   r#"["sinew.example"]"#     "loopback names and the machine's own" "Further host names under which clients reach the gateway; other `Host` headers are refused.";
    "allowed-origins" r#"["https://app.example"]"# "loopback"           "Further web origins whose pages may call the gateway.";
    "call-timeout"    "30"                       "30"                   "Seconds a call may take unless the caller says otherwise.";
    "grace"           "600"                      "600"                  "Seconds the tools of a device that left stay listed.";
    "max-devices"     "100000"                   "20000"                "Devices known at once, present or away; beyond it the one that is away longest is forgotten, and further ones are turned away.";
    "user-tools"      "true"                     "false"                "Also ask boards for the tools they keep for their users, such as reboot or firmware upgrade.";
    "vision"          r#"{ url = "http://127.0.0.1:11434/v1/chat/completions", model = "llava", key = "secret" }"# "none" "A model that answers questions about photos, as OpenAI's chat completions; `key` may be left out. Without it the photo itself goes to the client.";
    "endpoints"       r#"[{ url = "wss://broker.example/mcp/?token=secret" }]"# "none" "Brokers of MCP endpoints to dial and offer the tools at; also as `[[endpoints]]` sections at the end of the file. `unfolded = true` gives every device's tools names of their own.";
    "brokers"         r#"[{ url = "mqtts://broker.example:8883", username = "sinew", password-file = "broker-password", ca = "ca.pem" }]"# "none" "MQTT brokers behind which boards are found; also as `[[brokers]]` sections at the end of the file, see `docs/boards.md`. `password` may stand in the file itself; `ca` names authorities to trust instead of the system's. `presence`, `up` and `down` are the topics, by default `sinew/boards/{device}/presence`, `…/up` and `…/down`. `servers = \"#\"` takes the MCP servers on the broker for devices, those whose name fits the filter; `offer = \"sinew/home\"` offers the tools there as an MCP server of that name, with `unfolded = true` under names of their own.";
    "lock"            r#""sinew.lock""#          "`sinew.lock` in the state directory" "Where the tools of pinned devices are kept, as `sinew devices pin` agreed on them. Relative to the file.";
    "spec-tools"      "true"                     "false"                "Offer models the tools `validate_tool_specification` and `compare_tool_specifications`.";
    "spec"            r#"{ rules = { split-tool = "off", version-missing = "error" } }"# "none" "How `sinew spec` judges: `[spec.rules]` sets a rule to `off`, `advice`, `warning` or `error`; `name-length` and `description-tokens` under `[spec]` set what is too long. `sinew spec` finds it in the `sinew.toml` of the current folder.";
    "phones"          r#"{ enabled = true, profile = "compact", agent = false, apps = { interval = 60, advertise = "org.example.ADVERTISE" } }"# r#"{ agent = true, apps = { enabled = true, interval = 15 }, enabled = true, profile = "full" }"# "Phones that adb sees; also as a `[phones]` section at the end of the file. They come by themselves once there is an adb server, which is started where `adb` is on the PATH; without adb nothing happens. The `compact` profile offers a dozen tools instead of all. `agent` is `false`, `true` where its files are found beside `sinew` or in the state directory, or their folder (relative to the file). `[phones.apps]` is about the tools that apps on the phones offer, see `docs/apps.md`: `interval` is the seconds between two looks at a phone's packages; `advertise`, `call`, `manifest`, `discovery`, `invoke`, `provider-type`, `provider-action`, `service` and `functions` replace the names by which apps are recognised.";
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 7300)),
            devices: SocketAddr::from(([127, 0, 0, 1], 7301)),
            mqtt: MqttDoor::At(SocketAddr::from(([127, 0, 0, 1], 7302))),
            advertise: None,
            bootstrap: Offered::Mqtt,
            state: None,
            tls: false,
            tls_cert: None,
            tls_key: None,
            devices_tls: false,
            insecure_lan: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            call_timeout: 30,
            // Firmware opens its socket only during a conversation: ten minutes bridge the pause between two.
            grace: 600,
            max_devices: 20_000,
            user_tools: false,
            vision: None,
            endpoints: Vec::new(),
            brokers: Vec::new(),
            lock: None,
            spec_tools: false,
            spec: None,
            phones: Phones::default(),
        }
    }
}

impl Config {
    pub fn load(path: &Path) -> Result<Config, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::new(ErrorKind::Config, format!("cannot read {}: {error}", path.display())))?;
        let mut config = Config::parse(&text)
            .map_err(|what| Error::new(ErrorKind::Config, format!("{}: {what}", path.display())))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for file in
            [&mut config.tls_cert, &mut config.tls_key, &mut config.state, &mut config.lock].into_iter().flatten()
        {
            *file = folder.join(&*file);
        }
        if let Agent::Folder(files) = &mut config.phones.agent {
            *files = folder.join(&*files);
        }
        config.brokers.iter_mut().for_each(|broker| broker.settle_in(folder));
        Ok(config)
    }

    pub fn parse(text: &str) -> Result<Config, String> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string().trim().to_owned())?;
        for key in table.keys() {
            if !KEYS.iter().any(|known| known.name == key) {
                return Err(unknown(key));
            }
        }
        let config: Config = toml::from_str(text).map_err(|error| error.to_string().trim().to_owned())?;
        if config.tls_cert.is_some() != config.tls_key.is_some() {
            return Err("`tls-cert` and `tls-key` come together; one of them is missing".to_owned());
        }
        if config.call_timeout == 0 {
            return Err("`call-timeout` must be at least 1 second".to_owned());
        }
        if config.phones.apps.interval == 0 {
            return Err("`phones.apps.interval` must be at least 1 second".to_owned());
        }
        config.pictures().map_err(|problem| format!("`vision`: {problem}"))?;
        config.addresses().map_err(|problem| format!("`endpoints`: {problem}"))?;
        for broker in &config.brokers {
            broker.check().map_err(|problem| format!("`brokers`: {problem}"))?;
        }
        config.spec.as_ref().map(Spec::rules).transpose().map_err(|problem| format!("`spec`: {problem}"))?;
        Ok(config)
    }

    fn pictures(&self) -> Result<Pictures, String> {
        let Some(Vision { url, model, key }) = &self.vision else { return Ok(Pictures::Attach) };
        Backend::new(url, model, key.as_deref()).map(Pictures::Ask)
    }

    fn addresses(&self) -> Result<Vec<(Address, Shape)>, String> {
        let read = |endpoint: &Endpoint| Ok((endpoint.url.parse()?, shape(endpoint.unfolded)));
        self.endpoints.iter().map(read).collect()
    }

    /// File and flags joined, checked, and ready to compose.
    pub fn with(self, flags: &Overrides) -> Result<Settings, Error> {
        let endpoints = self.addresses().map_err(|problem| Error::new(ErrorKind::Config, problem))?;
        let pictures = self.pictures().map_err(|problem| Error::new(ErrorKind::Config, problem))?;
        let listen = flags.listen.unwrap_or(self.listen);
        let devices = flags.devices.unwrap_or(self.devices);
        let files = flags.certificate.clone().or(self.tls_cert.zip(self.tls_key));
        let tls = flags.tls || self.tls || files.is_some();
        let devices_tls = flags.devices_tls || self.devices_tls;
        let open = flags.insecure_lan || self.insecure_lan;
        check_exposure("--listen", listen, tls, "--tls", open)?;
        check_exposure("--devices", devices, devices_tls, "--devices-tls", open)?;
        let mqtt = flags.mqtt.unwrap_or(self.mqtt).address();
        let all = [("--listen", Some(listen)), ("--devices", Some(devices)), ("--mqtt", mqtt)];
        check_apart(&all)?;
        if let Some(address) = mqtt {
            check_exposure("--mqtt", address, devices_tls, "--devices-tls", open)?;
        }
        let state = flags.state.clone().or(self.state);
        let state = state::directory(state.as_deref())?;
        let brokers = self.brokers.iter().map(|broker| broker.plan(&state)).collect::<Result<_, _>>()?;
        Ok(Settings {
            listen,
            devices,
            mqtt,
            advertise: flags.advertise.clone().or(self.advertise),
            offer: match self.bootstrap {
                Offered::Mqtt => Offer::Mqtt,
                Offered::Websocket => Offer::WebSocket,
                Offered::Both => Offer::Both,
            },
            phones: self.phones.offer(&state),
            state,
            token: flags.token.clone(),
            tls,
            devices_tls,
            certificate: files.map_or(Certificate::Own, |(cert, key)| Certificate::Files { cert, key }),
            allowed_hosts: self.allowed_hosts,
            allowed_origins: self.allowed_origins,
            call_timeout: Duration::from_secs(self.call_timeout.into()),
            grace: Duration::from_secs(self.grace.into()),
            max_devices: self.max_devices as usize,
            user_tools: self.user_tools,
            spec_tools: self.spec_tools,
            lock: self.lock,
            pictures,
            endpoints,
            brokers,
        })
    }
}

fn check_exposure(flag: &str, address: SocketAddr, tls: bool, tls_flag: &str, open: bool) -> Result<(), Error> {
    if address.ip().is_loopback() || tls || open {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Config,
        format!(
            "{flag} {address} is reachable from the network, and without TLS tokens would travel in the clear; \
             add {tls_flag}, or --insecure-lan if you trust everyone on that network"
        ),
    ))
}

/// Two doors at one address: the second would find it taken, by us.
fn check_apart(doors: &[(&str, Option<SocketAddr>)]) -> Result<(), Error> {
    let same = |one: SocketAddr, other: SocketAddr| one == other && one.port() != 0;
    for (index, (flag, address)) in doors.iter().enumerate() {
        let twin = doors[..index].iter().find(|(_, other)| address.zip(*other).is_some_and(|(a, b)| same(a, b)));
        if let (Some((other, _)), Some(address)) = (twin, address) {
            let message = format!("{other} and {flag} are both {address}; give each door a port of its own");
            return Err(Error::new(ErrorKind::Config, message));
        }
    }
    Ok(())
}

fn unknown(key: &str) -> String {
    match nearest(key, KEYS.iter().map(|known| known.name)) {
        Some(name) => format!("unknown key `{key}`; did you mean `{name}`?"),
        None => {
            let names: Vec<_> = KEYS.iter().map(|known| known.name).collect();
            format!("unknown key `{key}`; the keys are {}", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_default() {
        assert_eq!(Config::parse(""), Ok(Config::default()));
    }

    #[test]
    fn every_key_is_described_with_an_example_that_loads() {
        let mut fields = std::collections::BTreeSet::new();
        let full: String = KEYS.iter().map(|key| format!("{} = {}\n", key.name, key.example)).collect();
        let config = Config::parse(&full).expect("the examples are valid");
        let table = toml::Table::try_from(&config).expect("a config is a table");
        fields.extend(table.keys().cloned());
        assert_eq!(fields, KEYS.iter().map(|key| key.name.to_owned()).collect());
    }

    #[test]
    fn the_described_defaults_are_the_defaults() {
        let table = toml::Table::try_from(Config::default()).expect("a config is a table");
        for key in KEYS {
            match table.get(key.name) {
                Some(toml::Value::Array(_)) | None => {}
                Some(value) => assert_eq!(value.to_string(), key.default, "{}", key.name),
            }
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest() {
        let message = |text: &str| Config::parse(text).expect_err("must be refused");
        assert_eq!(message("lisen = 1"), "unknown key `lisen`; did you mean `listen`?");
        assert_eq!(message("tls_cert = 'x'"), "unknown key `tls_cert`; did you mean `tls-cert`?");
        assert!(message("colour = true").contains("the keys are listen, devices"));
    }

    #[test]
    fn a_wrong_value_names_its_line() {
        let message = Config::parse("tls = true\nlisten = 7300").expect_err("must be refused");
        assert!(message.contains("line 2"), "{message}");
    }

    #[test]
    fn listening_beyond_loopback_needs_tls_or_the_word() {
        let doors = |edit: fn(&mut Overrides)| {
            let mut doors = Overrides { listen: "0.0.0.0:7300".parse().ok(), ..Overrides::default() };
            doors.state = Some("/tmp/sinew-none".into());
            edit(&mut doors);
            Config::default().with(&doors)
        };
        let refused = doors(|_| ()).expect_err("must be refused");
        assert_eq!(refused.kind, ErrorKind::Config);
        assert!(refused.message.contains("--tls") && refused.message.contains("--insecure-lan"));
        assert!(doors(|doors| doors.tls = true).is_ok());
        assert!(doors(|doors| doors.insecure_lan = true).is_ok());
        let boards = doors(|doors| {
            doors.tls = true;
            doors.devices = "0.0.0.0:7301".parse().ok();
        });
        assert!(boards.expect_err("must be refused").message.contains("--devices-tls"));
    }

    #[test]
    fn endpoints_are_addresses_of_brokers_and_their_tokens_stay_hidden() {
        let file = "[[endpoints]]\nurl = 'wss://b/?token=secret'\n[[endpoints]]\nurl = 'ws://c'\nunfolded = true";
        let addresses = Config::parse(file).expect("valid").addresses().expect("addresses");
        assert_eq!(format!("{addresses:?}"), "[(wss://b, Folded), (ws://c, Unfolded)]");
        let refused = Config::parse("endpoints = [{ url = 'https://b/?token=secret' }]").expect_err("no WebSocket");
        assert!(refused.contains("ws://") && !refused.contains("secret"), "{refused}");
    }

    #[test]
    fn phones_are_followed_unless_told_otherwise() {
        let profile = |text: &str| Config::parse(text).map(|config| config.phones.offer(Path::new("/nonexistent")));
        let profile = |text: &str| profile(text).map(|offer| offer.map(|offer| offer.profile));
        assert_eq!(profile(""), Ok(Some(Profile::Full)));
        assert_eq!(profile("[phones]\nprofile = 'compact'"), Ok(Some(Profile::Compact)));
        assert_eq!(profile("phones = { enabled = false }"), Ok(None));
        let agent = |text: &str| Config::parse(text).map(|config| config.phones.agent);
        assert_eq!(agent("[phones]\nagent = false"), Ok(Agent::Switch(false)));
        assert_eq!(agent("[phones]\nagent = 'built'"), Ok(Agent::Folder("built".into())));
        assert!(agent("[phones]\nagent = 5").is_err_and(|why| why.contains("android/build")));
        let apps = |text: &str| {
            let settings = Config::parse(text).map(|config| config.phones.apps.settings(Path::new("/nonexistent")));
            settings.map(|settings| settings.map(|apps| (apps.interval.as_secs(), apps.words.advertise)))
        };
        assert_eq!(apps(""), Ok(Some((15, Words::default().advertise))));
        assert_eq!(apps("[phones.apps]\nadvertise = 'x'\ninterval = 3"), Ok(Some((3, "x".to_owned()))));
        assert_eq!(apps("[phones.apps]\nenabled = false"), Ok(None));
        assert!(apps("[phones.apps]\ninterval = 0").is_err_and(|why| why.contains("interval")));
        let refused = profile("[phones]\nprofil = 'compact'").expect_err("misspelt");
        assert!(refused.contains("profil") && refused.contains("profile"), "{refused}");
    }

    #[test]
    fn a_flag_wins_over_the_file() {
        let config = Config::parse("listen = '127.0.0.1:1'\ndevices = '127.0.0.1:2'").expect("valid");
        let mut doors = Overrides { listen: "127.0.0.1:9".parse().ok(), ..Overrides::default() };
        doors.state = Some("/tmp/sinew-none".into());
        let settings = config.with(&doors).expect("valid");
        assert_eq!((settings.listen.port(), settings.devices.port()), (9, 2));
    }
}
