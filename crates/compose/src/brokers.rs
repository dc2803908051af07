//! `[[brokers]]` in the configuration: MQTT brokers, and what is found and offered there.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sinew_boards::broker::{Address, Broker, Credentials, GATEWAY, Offering, Topics};
use sinew_front::Front;
use sinew_gateway::{Principal, Role, Shape};
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use crate::config::shape;
use crate::error::{Error, ErrorKind};

/// What a pipe inside this process holds before its writer waits.
const PIPE: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Section {
    pub url: String,
    pub username: Option<String>,
    pub password: Option<String>,
    /// Whose first line is the password.
    pub password_file: Option<PathBuf>,
    /// Authorities to trust instead of the system's, PEM.
    pub ca: Option<PathBuf>,
    #[serde(default = "presence")]
    pub presence: String,
    #[serde(default = "up")]
    pub up: String,
    #[serde(default = "down")]
    pub down: String,
    /// Which MCP servers there are devices, by a filter over their names.
    pub servers: Option<String>,
    /// The name under which the gateway's own tools are offered there.
    pub offer: Option<String>,
    #[serde(default)]
    pub unfolded: bool,
}

/// A broker, ready to compose.
#[derive(Clone, Debug)]
pub struct Plan {
    pub boards: Broker,
    pub servers: Option<String>,
    pub offer: Option<(Offering, Shape)>,
}

fn presence() -> String {
    "sinew/boards/{device}/presence".to_owned()
}

fn up() -> String {
    "sinew/boards/{device}/up".to_owned()
}

fn down() -> String {
    "sinew/boards/{device}/down".to_owned()
}

impl Section {
    /// What can be said without reading other files.
    pub fn check(&self) -> Result<(), String> {
        Address::new(&self.url, None, None)?;
        Topics::new(&self.presence, &self.up, &self.down)?;
        if let Some(filter) = &self.servers
            && !is_filter(filter)
        {
            let message = "`servers` is a filter over the names of MCP servers: `#` stands for all of them, `home/+` for one level; `#` comes last and both stand alone between slashes";
            return Err(message.to_owned());
        }
        if let Some(name) = &self.offer {
            Offering::new(String::new(), name, "")?;
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

    /// Files are relative to the folder of the configuration.
    pub fn settle_in(&mut self, folder: &Path) {
        for file in [&mut self.password_file, &mut self.ca].into_iter().flatten() {
            *file = folder.join(&*file);
        }
    }

    pub fn address(&self) -> Result<Address, Error> {
        let read = |path: &Path| {
            std::fs::read(path)
                .map_err(|error| Error::new(ErrorKind::Config, format!("cannot read {}: {error}", path.display())))
        };
        let password = match &self.password_file {
            None => self.password.clone(),
            Some(path) => {
                let text = String::from_utf8_lossy(&read(path)?).into_owned();
                Some(text.lines().next().unwrap_or_default().to_owned())
            }
        };
        let credentials = self.username.clone().map(|username| Credentials { username, password });
        let authorities = self.ca.as_deref().map(read).transpose()?;
        Address::new(&self.url, credentials, authorities.as_deref()).map_err(wrong)
    }

    pub fn boards(&self) -> Result<Broker, Error> {
        let topics = Topics::new(&self.presence, &self.up, &self.down).map_err(wrong)?;
        Ok(Broker { address: self.address()?, topics })
    }

    /// `state` is the folder that makes this gateway another than the next.
    pub fn plan(&self, state: &Path) -> Result<Plan, Error> {
        let offering = |name: &String| {
            let description = "Sinew: the tools of the boards, phones and apps of this gateway";
            Offering::new(server_id(state), name, description).map_err(wrong)
        };
        let offer = self.offer.as_ref().map(offering).transpose()?;
        Ok(Plan {
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
    Error::new(ErrorKind::Config, format!("`brokers`: {problem}"))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn a_broker_needs_its_address_and_nothing_else() {
        let config = Config::parse("[[brokers]]\nurl = 'mqtt://b'").expect("valid");
        let broker = config.brokers[0].boards().expect("valid");
        assert_eq!(broker.address.to_string(), "mqtt://b:1883");
        assert_eq!(format!("{:?}", broker.topics.up), "sinew/boards/{device}/up");
    }

    #[test]
    fn what_is_wrong_with_a_broker_is_said_without_its_password() {
        for wrong in [
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
            let problem = Config::parse(&format!("[[brokers]]\n{wrong}")).expect_err(wrong);
            assert!(!problem.contains("secret"), "{problem}");
        }
    }

    #[test]
    fn the_password_is_the_first_line_of_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("password"), "right\nmore\n").expect("written");
        let file = "[[brokers]]\nurl = 'mqtt://b'\nusername = 'u'\npassword-file = 'password'";
        std::fs::write(folder.path().join("sinew.toml"), file).expect("written");
        let config = Config::load(&folder.path().join("sinew.toml")).expect("valid");
        assert!(config.brokers[0].address().is_ok());
        std::fs::remove_file(folder.path().join("password")).expect("removed");
        assert!(config.brokers[0].address().expect_err("gone").message.contains("password"));
    }
}
