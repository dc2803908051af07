//! Where the state directory is, and which gateway runs on it.
//!
//! The files inside belong to the gateway, except three: `doors.json` says where the running gateway can be reached,
//! `last-start.json` what the last one was started with, and `takeover.lock` is held by a process that waits to replace
//! a gateway inside a client. `demo` uses a subfolder,
//! so that trying things never touches a real gateway.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sinew_gateway::private_files;

use crate::config::Overrides;
use crate::error::{ComposeErrorKind, Error};

const FILE: &str = "doors.json";
const LAST_START: &str = "last-start.json";
const TAKEOVER: &str = "takeover.lock";

/// How to reach the gateway that runs on a state directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayAddresses {
    /// For clients, as this machine reaches it.
    pub url: String,
    /// Host names and addresses at which other machines reach the listener for clients; none if it is open to this one
    /// only.
    #[serde(default)]
    pub remote_hosts: Vec<String>,
    /// For boards, as this machine reaches it.
    pub devices_url: String,
    /// For boards over MQTT, as this machine reaches it.
    #[serde(default)]
    pub mqtt_url: Option<String>,
    /// The one address that a board must know, as boards reach it.
    #[serde(default)]
    pub ota_url: Option<String>,
    /// The fingerprint of the certificate, if one is served.
    pub fingerprint: Option<String>,
    pub token: String,
    /// Missing in the files of versions before 0.2, which had no gateway that could be replaced.
    #[serde(default)]
    pub started_by: StartedBy,
    #[serde(default)]
    pub version: String,
    /// The folder whose files are its routines.
    #[serde(default)]
    pub routines: Option<PathBuf>,
}

impl GatewayAddresses {
    /// For clients, as other machines reach it.
    pub fn remote_urls(&self) -> Vec<String> {
        let scheme = self.url.split(':').next().unwrap_or("http");
        let port = self.url.rsplit(':').next().unwrap_or_default();
        let url = |host: &String| match host.contains(':') {
            true => format!("{scheme}://[{host}]:{port}"),
            false => format!("{scheme}://{host}:{port}"),
        };
        self.remote_hosts.iter().map(url).collect()
    }
}

/// Which command a gateway runs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartedBy {
    /// A command for a gateway alone; it stays until somebody stops it.
    #[default]
    Serve,
    Demo,
    /// A client's own process, which ends with the client.
    Client,
}

/// A gateway that runs on a state directory of this machine.
#[derive(Clone, Debug)]
pub struct LocalGateway {
    pub directory: PathBuf,
    pub pid: u32,
    pub addresses: GatewayAddresses,
}

impl LocalGateway {
    /// The gateway in a few words, for messages.
    pub fn describe(&self) -> String {
        let command = match self.addresses.started_by {
            StartedBy::Serve => "`sinew serve`",
            StartedBy::Demo => "`sinew demo`",
            StartedBy::Client => "a client's `sinew stdio`",
        };
        format!("the gateway of {command} at {} (process {})", self.addresses.url, self.pid)
    }
}

/// The state directory: the one given, else XDG's.
pub fn directory(given: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(given) = given {
        if given.as_os_str().is_empty() {
            let message = "the state directory is empty; name a folder, or leave it out for the usual one";
            return Err(Error::new(ComposeErrorKind::Config, message));
        }
        return std::path::absolute(given).map_err(|error| {
            Error::new(ComposeErrorKind::Config, format!("state directory {}: {error}", given.display()))
        });
    }
    // XDG says that a relative path is invalid and to be ignored.
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    from("XDG_STATE_HOME")
        .or_else(|| from("HOME").map(|home| home.join(".local/state")))
        .map(|base| base.join("sinew"))
        .ok_or_else(|| Error::new(ComposeErrorKind::Config, "no home directory to keep state in; give --state DIR"))
}

/// The folder of `sinew demo` inside a state directory.
pub fn demo(directory: &Path) -> PathBuf {
    directory.join("demo")
}

/// The gateway on this state directory, else the demo inside it.
pub fn find_running(directory: &Path) -> Option<LocalGateway> {
    running(directory).or_else(|| running(&demo(directory)))
}

/// The gateway on exactly this directory. One that is still starting has no addresses yet.
pub fn running(directory: &Path) -> Option<LocalGateway> {
    let lock = sinew_gateway::running_gateway(directory)?;
    let addresses: GatewayAddresses = serde_json::from_slice(&fs::read(directory.join(FILE)).ok()?).ok()?;
    // A file left behind by a gateway that was killed has other addresses.
    (lock.url.as_deref() == Some(&addresses.url)).then(|| LocalGateway {
        directory: directory.to_owned(),
        pid: lock.pid,
        addresses,
    })
}

/// Writes the addresses for client commands.
pub fn write_addresses(directory: &Path, addresses: &GatewayAddresses) -> Result<(), Error> {
    write_private(directory, FILE, addresses)
}

/// Writes a file that only the owner can read, as it may have a token.
pub(crate) fn write_private(directory: &Path, name: &str, content: &impl Serialize) -> Result<(), Error> {
    let path = directory.join(name);
    let write = || private_files::write_private(&path, &serde_json::to_vec_pretty(content)?);
    write().map_err(|error| Error::new(ComposeErrorKind::Io, format!("cannot write {}: {error}", path.display())))
}

/// Reads such a file; `None` where there is none.
pub(crate) fn read_private<T: serde::de::DeserializeOwned>(directory: &Path, name: &str) -> Result<Option<T>, Error> {
    let path = directory.join(name);
    let wrong = |why: String| Error::new(ComposeErrorKind::Io, format!("cannot read {}: {why}", path.display()));
    match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| wrong(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(error.to_string())),
    }
}

pub fn remove_addresses(directory: &Path) {
    let _ = fs::remove_file(directory.join(FILE));
}

/// What the last gateway on a state directory was started with. It stays when that gateway stops, so that
/// `sinew doctor` can say what keeps it from starting again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastStart {
    pub started_by: StartedBy,
    /// The configuration file, if there was one.
    pub config: Option<PathBuf>,
    #[serde(default)]
    pub flags: Overrides,
    /// The last start of `serve`, if another command was started later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serve: Option<Box<LastStart>>,
}

impl LastStart {
    pub fn read(directory: &Path) -> Result<Option<LastStart>, Error> {
        read_private(directory, LAST_START)
    }

    /// What a client must start its gateway with: like the last `serve`, so that no rule is lost when that stops.
    pub fn of_serve(self) -> LastStart {
        match self.serve {
            Some(serve) => *serve,
            None => self,
        }
    }

    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        write_private(directory, LAST_START, self)
    }

    /// The command, as it was typed or configured.
    pub fn command(&self) -> String {
        let command = match self.started_by {
            StartedBy::Serve => "sinew serve",
            StartedBy::Demo => "sinew demo",
            StartedBy::Client => "sinew stdio",
        };
        let config = self.config.as_ref().map(|config| format!(" --config {}", config.display()));
        format!("{command}{}", config.unwrap_or_default())
    }
}

/// The right to replace a gateway inside a client. The operating system ends it with the process.
pub struct Takeover {
    _file: fs::File,
}

impl Takeover {
    /// Asks the client that runs a gateway on this directory to stop it. None if another process asks already.
    pub fn request(directory: &Path) -> std::io::Result<Option<Takeover>> {
        let file = open_takeover(directory)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Takeover { _file: file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether a process waits to replace the gateway on this directory.
    pub fn is_requested(directory: &Path) -> bool {
        let file = fs::File::open(directory.join(TAKEOVER));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
    }
}

fn open_takeover(directory: &Path) -> std::io::Result<fs::File> {
    fs::create_dir_all(directory)?;
    private_files::private_options().read(true).write(true).create(true).truncate(false).open(directory.join(TAKEOVER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_takeover_is_asked_for_by_one_process_and_ends_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(!Takeover::is_requested(folder.path()));
        let first = Takeover::request(folder.path()).expect("a lock").expect("the first");
        assert!(Takeover::is_requested(folder.path()));
        assert!(Takeover::request(folder.path()).expect("a lock").is_none());
        drop(first);
        assert!(!Takeover::is_requested(folder.path()), "the file alone means nothing");
        assert!(Takeover::request(folder.path()).expect("a lock").is_some());
    }

    #[test]
    fn the_last_start_is_kept_without_its_token() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(LastStart::read(folder.path()).expect("readable"), None);
        let flags = Overrides {
            mqtt: "off".parse().ok(),
            listen: "127.0.0.1:9".parse().ok(),
            token: Some("snw_secret".to_owned()),
            ..Overrides::default()
        };
        let last = LastStart { config: Some("/etc/sinew.toml".into()), flags, ..LastStart::default() };
        last.write(folder.path()).expect("written");
        let text = fs::read_to_string(folder.path().join(LAST_START)).expect("a file");
        assert!(!text.contains("snw_secret"), "{text}");
        let flags = Overrides { token: None, ..last.flags.clone() };
        let read = || LastStart::read(folder.path());
        assert_eq!(read().expect("readable"), Some(LastStart { flags, ..last.clone() }));
        assert_eq!(last.command(), "sinew serve --config /etc/sinew.toml");
        let client =
            LastStart { started_by: StartedBy::Client, serve: Some(Box::new(last.clone())), ..LastStart::default() };
        assert_eq!(client.of_serve(), last);
        assert_eq!(last.clone().of_serve(), last);
        fs::write(folder.path().join(LAST_START), "{").expect("written");
        assert!(read().expect_err("damaged").message.contains(LAST_START));
    }

    #[test]
    fn a_file_of_an_older_version_is_a_gateway_that_stays() {
        let text = r#"{"url": "http://127.0.0.1:7300", "devices_url": "ws://x", "fingerprint": null, "token": "t"}"#;
        let addresses: GatewayAddresses = serde_json::from_str(text).expect("readable");
        assert_eq!((addresses.started_by, addresses.version.as_str()), (StartedBy::Serve, ""));
    }
}
