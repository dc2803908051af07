//! `[[brokers]]` in the configuration: MQTT brokers, and what is found and offered there.

use std::path::{Path, PathBuf};

use sinew_boards::broker::{Address, Broker, Credentials, GATEWAY, OfferedServer, Topics};
use sinew_front::Front;
use sinew_gateway::{Principal, Role, Shape};
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigProblem, shape};
use crate::error::{ComposeErrorKind, Error};

/// What a pipe inside this process holds before its writer waits.
const PIPE: usize = 64 << 10;

sinew_tool::settings! {
    /// An MQTT broker.
    pub struct BrokerConfig {
        /// Its address, `mqtt://HOST:PORT` or `mqtts://HOST:PORT`.
        pub url: String = String::new();
        /// The name to log in with.
        pub username: Option<String> = None;
        /// The password of `username`.
        pub password: Option<String> = None;
        /// A file whose first line is the password, or a credential of systemd with that name. Relative to the
        /// configuration file.
        pub password_file: Option<PathBuf> = None;
        /// Authorities to trust instead of the system's, PEM. Relative to the configuration file.
        pub ca: Option<PathBuf> = None;
        /// Topic on which a board announces itself.
        pub presence: String = "sinew/boards/{device}/presence".to_owned();
        /// Topic for messages from a board.
        pub up: String = "sinew/boards/{device}/up".to_owned();
        /// Topic for messages to a board.
        pub down: String = "sinew/boards/{device}/down".to_owned();
        /// Which MCP servers on the broker become devices, by a filter over their names: `#` for all of them.
        pub servers: Option<String> = None;
        /// Name under which the gateway's own tools are offered there as an MCP server.
        pub offer: Option<String> = None;
        /// With `offer`: every device's tools under names of their own.
        pub unfolded: bool = false;
    }
}

/// A broker, ready to compose.
#[derive(Clone, Debug)]
pub struct BrokerPlan {
    pub boards: Broker,
    pub servers: Option<String>,
    pub offer: Option<(OfferedServer, Shape)>,
}

/// What is wrong with the brokers, each by itself or together.
pub fn check(brokers: &[BrokerConfig]) -> Result<(), ConfigProblem> {
    for (index, broker) in brokers.iter().enumerate() {
        let wrong = |why: String| ConfigProblem::at(format!("brokers.{index}"), format!("`brokers`: {why}"));
        broker.check().map_err(wrong)?;
        let place = |broker: &BrokerConfig| {
            Address::new(&broker.url, None, None).map(|address| address.to_string().to_lowercase())
        };
        let twin = brokers[..index].iter().any(|other| place(other) == place(broker));
        if twin {
            return Err(wrong(format!("{} is named twice; keep one of them", place(broker).unwrap_or_default())));
        }
    }
    Ok(())
}

impl BrokerConfig {
    /// What can be said without reading other files.
    fn check(&self) -> Result<(), String> {
        if self.url.is_empty() {
            return Err("a broker needs a `url`".to_owned());
        }
        Address::new(&self.url, None, None)?;
        Topics::new(&self.presence, &self.up, &self.down)?;
        if let Some(filter) = &self.servers
            && !is_filter(filter)
        {
            let message = "`servers` is a filter over the names of MCP servers: `#` stands for all of them, `home/+` for one level; `#` comes last and both stand alone between slashes";
            return Err(message.to_owned());
        }
        if let Some(name) = &self.offer {
            OfferedServer::new(String::new(), name, "")?;
        } else if self.unfolded {
            return Err("`unfolded` is about what is offered, and nothing is; set `offer`".to_owned());
        }
        if self.password.is_some() && self.password_file.is_some() {
            return Err("`password` and `password-file` are two ways to say the same; keep one".to_owned());
        }
        if self.username.is_none() && (self.password.is_some() || self.password_file.is_some()) {
            return Err("a password needs its `username`".to_owned());
        }
        Ok(())
    }

    pub fn address(&self) -> Result<Address, Error> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| {
                Error::new(ComposeErrorKind::Config, format!("cannot read {}: {error}", path.display()))
            })
        };
        let credentials =
            self.username.clone().map(|username| Credentials { username, password: self.password.clone() });
        let authorities = self.ca.as_deref().map(read).transpose()?;
        Address::new(&self.url, credentials, authorities.as_deref()).map_err(wrong)
    }

    pub fn boards(&self) -> Result<Broker, Error> {
        let topics = Topics::new(&self.presence, &self.up, &self.down).map_err(wrong)?;
        Ok(Broker { address: self.address()?, topics })
    }

    /// `state` is the folder that makes this gateway another than the next.
    pub fn plan(&self, state: &Path) -> Result<BrokerPlan, Error> {
        let offering = |name: &String| {
            let description = "Sinew: the tools of the boards, phones and apps of this gateway";
            OfferedServer::new(server_id(state), name, description).map_err(wrong)
        };
        let offer = self.offer.as_ref().map(offering).transpose()?;
        Ok(BrokerPlan {
            boards: self.boards()?,
            servers: self.servers.clone(),
            offer: offer.map(|offering| (offering, shape(self.unfolded))),
        })
    }
}

/// Whether a broker takes this as a filter of topics.
fn is_filter(text: &str) -> bool {
    let levels: Vec<&str> = text.split('/').collect();
    let fits = |(at, level): (usize, &&str)| match *level {
        "#" => at + 1 == levels.len(),
        "+" => true,
        other => !other.contains(['#', '+', '\0']),
    };
    (1..=128).contains(&text.len()) && levels.iter().enumerate().all(fits)
}

/// Pipes to the gateway's MCP, one for each client on a broker.
pub fn pipes(front: Front, shape: Shape, shutdown: CancellationToken) -> impl Fn(&str) -> DuplexStream + Send {
    move |client| {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (reader, writer) = tokio::io::split(theirs);
        let who = Principal::new(format!("broker client {client}"), Role::Client);
        let serving = sinew_front::stdio::run(front.clone(), who, shape, reader, writer, shutdown.clone());
        tokio::spawn(async move {
            if let Err(error) = serving.await {
                tracing::debug!(%error, "a session at a broker ended");
            }
        });
        ours
    }
}

/// The same each time for one gateway, and another for each.
fn server_id(state: &Path) -> String {
    let place = format!("{} {}", gethostname::gethostname().to_string_lossy(), state.display());
    format!("{GATEWAY}{}", &sinew_tool::Digest::of(&serde_json::json!(place)).hex()[..12])
}

fn wrong(problem: String) -> Error {
    Error::new(ComposeErrorKind::Config, format!("`brokers`: {problem}"))
}

#[cfg(test)]
mod tests {
    use crate::config::{ConfigProblem, GatewayConfig};

    fn parse(text: &str) -> Result<GatewayConfig, ConfigProblem> {
        let config = GatewayConfig::parse(text)?;
        config.check()?;
        Ok(config)
    }

    #[test]
    fn a_broker_needs_its_address_and_nothing_else() {
        let config = GatewayConfig::parse("[[brokers]]\nurl = 'mqtt://b'").expect("valid");
        let broker = config.brokers[0].boards().expect("valid");
        assert_eq!(broker.address.to_string(), "mqtt://b:1883");
        assert_eq!(format!("{:?}", broker.topics.up), "sinew/boards/{device}/up");
    }

    #[test]
    fn what_is_wrong_with_a_broker_is_said_without_its_password() {
        for wrong in [
            "",
            "url = ''",
            "url = 'mqtt://b'\n[[brokers]]\nurl = 'mqtt://B:1883'",
            "url = 'http://b'",
            "url = 'mqtt://b'\nup = 'a/b'",
            "url = 'mqtt://b'\nup = 'a/{device}'\ndown = 'a/{device}'",
            "url = 'mqtt://b'\npassword = 'secret'",
            "url = 'mqtt://b'\nusername = 'u'\npassword = 'secret'\npassword-file = 'f'",
            "url = 'mqtt://b'\nuser = 'u'",
            "url = 'mqtt://b'\noffer = 'a/#'",
            "url = 'mqtt://b'\nservers = ''",
            "url = 'mqtt://b'\nservers = 'a/#/b'",
            "url = 'mqtt://b'\nservers = 'a+'",
            "url = 'mqtt://b'\nunfolded = true",
        ] {
            let problem = parse(&format!("[[brokers]]\n{wrong}")).expect_err(wrong);
            assert!(!problem.message.contains("secret"), "{problem:?}");
        }
    }
}
