//! `sinew.toml`: its tables, and how it joins the command line.
//!
//! Each crate declares its own settings; here they become one file. A flag wins over the file, the file over the
//! default. `docs/config.md` and `sinew config schema` are printed from the same declarations.

mod file;
mod hosts;
mod secrets;
mod tables;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sinew_front::dialout::EndpointAddress;
use sinew_front::tls::TlsIdentity;
use sinew_gateway::{AccessSettings, JournalSettings, Shape};
use sinew_policy::{EffectRule, PolicySettings, RedactionRule, Severity};
use sinew_signin::{OAuthSettings, PublicAddress};
use sinew_tool::settings::Setting;
use sinew_tool::{Value, json};

use crate::brokers;
use crate::cluster::ClusterConfig;
use crate::error::{ComposeErrorKind, Error};
use crate::families::FamilyPlans;
use crate::log::LogConfig;
use crate::relay::RelayConfig;
use crate::server::{CertificateSource, ServerSettings};
use crate::state::{self, StartedBy};

pub use file::{ConfigProblem, MOVED, read_expectations};
pub use sinew_tool::settings::parse_address;
pub use tables::{AppsConfig, BoardsConfig, EndpointConfig, MqttAddress, PhonesConfig, SpecConfig, VisionConfig};

sinew_tool::settings! {
    /// Everything `sinew.toml` can say.
    pub struct GatewayConfig {
        /// Address of the listener for clients: MCP, REST, command line.
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 7300));
        /// Address of the listener for boards.
        pub devices: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 7301));
        /// Address of the MQTT listener for boards, or `off`. Sound of boards goes to the UDP port of the same number.
        pub mqtt: MqttAddress = MqttAddress::At(SocketAddr::from(([127, 0, 0, 1], 7302)));
        /// State directory: token, names, audit, events. By default `~/.local/state/sinew`. Relative to the file.
        pub state: Option<PathBuf> = None;
        /// Serve clients over HTTPS. Without `tls-cert` the gateway makes a certificate for the machine's addresses.
        pub tls: bool = false;
        /// Certificate chain to serve, PEM. Implies `tls`, needs `tls-key`. Relative to the file.
        pub tls_cert: Option<PathBuf> = None;
        /// Private key of the certificate, PEM. Relative to the file.
        pub tls_key: Option<PathBuf> = None;
        /// Serve boards over TLS (wss, mqtts) with the same certificate.
        pub devices_tls: bool = false;
        /// Allow listening beyond loopback without TLS. Tokens then travel in the clear.
        pub insecure_lan: bool = false;
        /// The log on standard error.
        pub log: LogConfig = LogConfig::default();
        /// Calls, limits and what is kept.
        pub gateway: sinew_gateway::Settings = sinew_gateway::Settings::default();
        /// Seconds that calls may take, by patterns of device and tool: `"board-*/self.printer.*" = 300`. The most exact
        /// pattern counts; without one, `call-timeout` of `[gateway]`.
        pub budgets: BTreeMap<String, Duration> = BTreeMap::new(), check sinew_gateway::check_budgets;
        /// How clients are served.
        pub clients: sinew_front::FrontSettings = sinew_front::FrontSettings::default();
        /// The pages for people at `/console/`, see `docs/console.md`.
        pub console: sinew_console::ConsoleSettings = sinew_console::ConsoleSettings::default();
        /// Sign-in for clients that have no field for a token, see `docs/sign-in.md`. It needs `public-url` in `[clients]`.
        pub oauth: Option<OAuthSettings> = None;
        /// How boards are served.
        pub boards: BoardsConfig = BoardsConfig::default();
        /// Boards that keep their voice assistant.
        pub relay: RelayConfig = RelayConfig::default();
        /// Android phones that adb sees. They are found by themselves once an adb server runs, which is started where
        /// `adb` is on the PATH; without adb nothing happens.
        pub phones: PhonesConfig = PhonesConfig::default();
        /// Brokers of MCP endpoints that the gateway dials to offer its tools there.
        pub endpoints: Vec<EndpointConfig> = Vec::new();
        /// MQTT brokers behind which boards are found, see `docs/boards.md`.
        pub brokers: Vec<brokers::BrokerConfig> = Vec::new();
        /// MCP servers that Sinew calls, see `docs/servers.md`.
        pub servers: Vec<sinew_servers::ServerConfig> = Vec::new();
        /// How servers are found and added while the gateway runs, see `docs/servers.md`.
        pub find: sinew_servers::FindSettings = sinew_servers::FindSettings::default();
        /// Boards on serial lines, see `docs/serial.md`.
        pub serial: Vec<sinew_serial::SerialConfig> = Vec::new();
        /// Gadgets that speak plain MQTT or HTTP, see `docs/things.md`.
        pub things: Vec<sinew_things::ThingConfig> = Vec::new();
        /// Directory of routines, see `docs/routines.md`. By default `routines` beside this file; without a file, in the
        /// state directory. Relative to the file.
        pub routines: Option<PathBuf> = None;
        /// Events that start a routine or are posted to another service, see `docs/routines.md`.
        pub hooks: Vec<crate::hooks::HookConfig> = Vec::new();
        /// Who may call which tools, see `docs/policy.md`.
        pub policy: PolicySettings = PolicySettings::default();
        /// What some tools do, where the gateway does not know it or you know better.
        pub effects: Vec<EffectRule> = Vec::new();
        /// The record of calls, decisions and changes, see `docs/audit.md`.
        pub audit: AuditConfig = AuditConfig::default();
        /// Recent calls with their answers, in memory, see `docs/audit.md`.
        pub journal: JournalSettings = JournalSettings::default();
        /// Arguments that are kept nowhere, see `docs/audit.md`.
        pub redact: Vec<RedactionRule> = Vec::new();
        /// Several gateways as one, see `docs/cluster.md`.
        pub cluster: Option<ClusterConfig> = None;
        /// How `sinew spec` checks tool specifications. It reads the nearest `sinew.toml` in a file's folder or above it.
        pub spec: Option<SpecConfig> = None;
    }
    internal {
        /// The file it was read from.
        pub file: Option<PathBuf> = None;
        /// The files that hold its secrets: those that it names, and itself if a secret stands in it.
        pub secret_files: Vec<PathBuf> = Vec::new();
    }
}

sinew_tool::settings! {
    /// The record of calls, decisions and changes.
    pub struct AuditConfig {
        /// A command that gets each seal of the audit as a line of JSON on its standard input, to keep it elsewhere. For
        /// example `["logger", "-t", "sinew-seal"]`.
        pub send_seals: Vec<String> = Vec::new();
    }
}

/// What the command line says otherwise; it wins over the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overrides {
    pub listen: Option<SocketAddr>,
    pub devices: Option<SocketAddr>,
    pub mqtt: Option<MqttAddress>,
    pub advertise: Option<String>,
    #[serde(skip)]
    pub state: Option<PathBuf>,
    #[serde(skip)]
    pub token: Option<String>,
    pub tls: bool,
    /// Certificate chain and private key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    pub devices_tls: bool,
    pub insecure_lan: bool,
}

/// The JSON Schema of the file, for editors. Keys that have moved into tables are marked as deprecated.
pub fn schema() -> Value {
    let mut schema = GatewayConfig::schema();
    for (key, table) in MOVED {
        let key = key.replace('_', "-");
        let mut moved = schema["properties"][*table]["properties"][&key].clone();
        moved["deprecated"] = json!(true);
        moved["description"] = json!(format!("Now `{key}` in `[{table}]`."));
        schema["properties"][&key] = moved;
    }
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("sinew.toml");
    schema
}

/// How the tools are offered: each device's under names of their own, or those of equal devices as one.
pub fn shape(unfolded: bool) -> Shape {
    if unfolded { Shape::Unfolded } else { Shape::Folded }
}

fn read_text(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path)
        .map_err(|error| Error::new(ComposeErrorKind::Config, format!("cannot read {}: {error}", path.display())))
}

impl GatewayConfig {
    /// Reads a file; an error says where in it.
    pub fn load(path: &Path) -> Result<GatewayConfig, Error> {
        GatewayConfig::load_text(path, &read_text(path)?)
    }

    /// The same for a text that was read from the file already.
    pub fn load_text(path: &Path, text: &str) -> Result<GatewayConfig, Error> {
        let mut config = GatewayConfig::parse_in(path, text)?;
        config.read_secrets().map_err(|problem| problem.in_file(path, text))?;
        config.check().map_err(|problem| problem.in_file(path, text))?;
        Ok(config)
    }

    /// Everything that `sinew serve` makes of a file before it opens anything; an error says where in it.
    pub fn settings(path: &Path, flags: &Overrides) -> Result<ServerSettings, Error> {
        let text = read_text(path)?;
        let config = GatewayConfig::load_text(path, &text)?;
        config.join(flags).map_err(|problem| problem.in_file(path, &text))
    }

    fn parse_in(path: &Path, text: &str) -> Result<GatewayConfig, Error> {
        let mut config = GatewayConfig::parse(text).map_err(|problem| problem.in_file(path, text))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        config.settle_in(folder);
        config.routines.get_or_insert_with(|| folder.join("routines"));
        config.file = Some(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        Ok(config)
    }

    /// What no setting alone can say.
    pub fn check(&self) -> Result<(), ConfigProblem> {
        let [present, missing] = match (&self.tls_cert, &self.tls_key) {
            (Some(_), None) => ["tls-cert", "tls-key"],
            (None, Some(_)) => ["tls-key", "tls-cert"],
            _ => ["", ""],
        };
        if !missing.is_empty() {
            return Err(ConfigProblem::at(present, format!("`{present}` needs `{missing}`, which is missing")));
        }
        let gateway = &self.gateway;
        if gateway.call_timeout > gateway.max_call_timeout {
            let message = "`call-timeout` is more than `max-call-timeout`";
            return Err(ConfigProblem::at("gateway.call-timeout", message));
        }
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            if endpoint.url.is_empty() {
                return Err(ConfigProblem::at(format!("endpoints.{index}"), "an endpoint needs a `url`"));
            }
        }
        brokers::check(&self.brokers)?;
        FamilyPlans::of(self)?;
        self.cluster.as_ref().map(ClusterConfig::plan).transpose()?;
        self.check_sign_in()?;
        // Whether plain text is allowed may be said on the command line.
        self.relay.server(true)?;
        let mut problems = self.access().check();
        problems.retain(|problem| problem.severity == Severity::Error);
        problems.into_iter().next().map_or(Ok(()), |problem| Err(ConfigProblem::at(problem.key, problem.message)))
    }

    fn check_sign_in(&self) -> Result<(), ConfigProblem> {
        let Some(oauth) = &self.oauth else { return Ok(()) };
        let Some(url) = &self.clients.public_url else {
            let message = "`[oauth]` needs `public-url` in `[clients]`: the address under which clients and people reach the gateway";
            return Err(ConfigProblem::at("oauth", message));
        };
        PublicAddress::parse(url)
            .map_err(|why| ConfigProblem::at("clients.public-url", format!("`public-url` {why}")))?;
        oauth.check().map_err(|(key, message)| ConfigProblem::at(format!("oauth.{key}"), message))?;
        if oauth.issuer.is_none() && !self.console.enabled {
            let message =
                "`[oauth]` without `issuer` needs the console, where people sign in; set `enabled` in `[console]`";
            return Err(ConfigProblem::at("oauth", message));
        }
        Ok(())
    }

    /// What in the policy of a file probably does not do what was meant, each with its line. `more` are warnings that a
    /// gateway with its devices adds, by key.
    pub fn policy_warnings(path: &Path, more: Vec<(String, String)>) -> Result<Vec<String>, Error> {
        let text = read_text(path)?;
        let config = GatewayConfig::parse_in(path, &text)?;
        let own = config.access().check().into_iter().filter(|problem| problem.severity == Severity::Warning);
        let all = own.map(|problem| (problem.key, problem.message)).chain(more);
        Ok(all.map(|(key, message)| ConfigProblem::at(key, message).in_file(path, &text).message).collect())
    }

    /// Who may do what.
    pub fn access(&self) -> AccessSettings {
        AccessSettings {
            policy: self.policy.clone(),
            effects: self.effects.clone(),
            redactions: self.redact.clone(),
            approve_all: false,
        }
    }

    fn addresses(&self) -> Result<Vec<(EndpointAddress, Shape)>, ConfigProblem> {
        let read = |(index, endpoint): (usize, &EndpointConfig)| {
            let address =
                endpoint.url.parse().map_err(|why: String| ConfigProblem::at(format!("endpoints.{index}"), why))?;
            Ok((address, shape(endpoint.unfolded)))
        };
        self.endpoints.iter().enumerate().map(read).collect()
    }

    /// File and flags joined and checked, without a file to point at.
    pub fn with(self, flags: &Overrides) -> Result<ServerSettings, Error> {
        self.join(flags).map_err(Error::from)
    }

    /// The settings with what the command line says otherwise.
    pub fn overridden(mut self, flags: &Overrides) -> GatewayConfig {
        self.listen = flags.listen.unwrap_or(self.listen);
        self.devices = flags.devices.unwrap_or(self.devices);
        self.mqtt = flags.mqtt.unwrap_or(self.mqtt);
        self.boards.advertise = flags.advertise.clone().or(self.boards.advertise);
        self.state = flags.state.clone().or(self.state);
        if let Some((cert, key)) = &flags.certificate {
            (self.tls_cert, self.tls_key) = (Some(cert.clone()), Some(key.clone()));
        }
        self.tls |= flags.tls || self.tls_cert.is_some();
        self.devices_tls |= flags.devices_tls;
        self.insecure_lan |= flags.insecure_lan;
        self
    }

    fn join(self, flags: &Overrides) -> Result<ServerSettings, ConfigProblem> {
        let this = self.overridden(flags);
        let endpoints = this.addresses()?;
        let families = FamilyPlans::of(&this)?;
        let access = this.access();
        let pictures = this.boards.pictures().map_err(|why| ConfigProblem::at("boards.vision", why))?;
        let files = this.tls_cert.zip(this.tls_key);
        if let Some((cert, key)) = &files {
            TlsIdentity::from_files(cert, key).map_err(|error| ConfigProblem::at("tls-cert", error.to_string()))?;
        }
        let (open, mqtt) = (this.insecure_lan, this.mqtt.address());
        let listen = Listener { key: "listen", is_flag: flags.listen.is_some(), address: this.listen };
        let devices = Listener { key: "devices", is_flag: flags.devices.is_some(), address: this.devices };
        let mqtt_listener = mqtt.map(|address| Listener { key: "mqtt", is_flag: flags.mqtt.is_some(), address });
        let listeners: Vec<Listener> = [listen, devices].into_iter().chain(mqtt_listener).collect();
        for listener in &listeners {
            let (tls, tls_key) =
                if listener.key == "listen" { (this.tls, "tls") } else { (this.devices_tls, "devices-tls") };
            listener.check_exposure(tls || open, tls_key)?;
        }
        check_apart(&listeners)?;
        let voice_server = this.relay.server(open)?;
        let cluster = this.cluster.as_ref().map(ClusterConfig::plan).transpose()?;
        let advertise = this.boards.advertise.clone();
        hosts::check_advertised(&advertise)
            .map_err(|why| ConfigProblem::at("boards.advertise", format!("`advertise` {why}")))?;
        let state = state::directory(this.state.as_deref());
        let state = state.map_err(|error| ConfigProblem::at("state", error.message))?;
        let plan = |(index, broker): (usize, &brokers::BrokerConfig)| {
            broker.plan(&state).map_err(|error| ConfigProblem::at(format!("brokers.{index}"), error.message))
        };
        let brokers = this.brokers.iter().enumerate().map(plan).collect::<Result<_, _>>()?;
        Ok(ServerSettings {
            send_seals: this.audit.send_seals,
            listen: this.listen,
            devices: this.devices,
            mqtt,
            advertise,
            offer: this.boards.bootstrap,
            limits: this.boards.limits,
            phones: this.phones.offer(&state),
            state,
            started_by: StartedBy::Serve,
            config_file: this.file,
            flags: flags.clone(),
            token: flags.token.clone(),
            tls: this.tls,
            devices_tls: this.devices_tls,
            certificate: files.map_or(CertificateSource::Own, |(cert, key)| CertificateSource::Files { cert, key }),
            gateway: sinew_gateway::Settings { access, journal: this.journal, budgets: this.budgets, ..this.gateway },
            clients: this.clients,
            console: this.console,
            oauth: this.oauth,
            pictures,
            relay: this.relay,
            voice_server,
            endpoints,
            brokers,
            families,
            find: this.find,
            routines: this.routines,
            cluster,
        })
    }
}

/// An address to listen on, and who said so: what is wrong is said about that place.
struct Listener {
    key: &'static str,
    is_flag: bool,
    address: SocketAddr,
}

impl Listener {
    /// `--listen` or `listen`.
    fn name(&self) -> String {
        if self.is_flag { format!("--{}", self.key) } else { format!("`{}`", self.key) }
    }

    fn check_exposure(&self, is_allowed: bool, tls_key: &str) -> Result<(), ConfigProblem> {
        if self.address.ip().is_loopback() || is_allowed {
            return Ok(());
        }
        let (tls, lan) = match self.is_flag {
            true => (format!("--{tls_key}"), "--insecure-lan"),
            false => (format!("`{tls_key} = true`"), "`insecure-lan = true`"),
        };
        let message = format!(
            "{} {} is reachable from the network, and without TLS tokens would travel in the clear; add {tls}, or {lan} if \
             you trust everyone on that network",
            self.name(),
            self.address
        );
        Err(ConfigProblem::at(self.key, message))
    }
}

/// Two listeners at one address: the second would find it taken, by us.
fn check_apart(listeners: &[Listener]) -> Result<(), ConfigProblem> {
    for (index, listener) in listeners.iter().enumerate() {
        let is_same = |other: &&Listener| other.address == listener.address && listener.address.port() != 0;
        if let Some(other) = listeners[..index].iter().find(is_same) {
            let (one, two, address) = (other.name(), listener.name(), listener.address);
            let message = format!("{one} and {two} are both {address}; give each a port of its own");
            return Err(ConfigProblem::at(listener.key, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
