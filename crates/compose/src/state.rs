//! Where the state directory is, and which gateway runs on it.
//!
//! What lies inside belongs to the gateway, but for one file: `doors.json` says where the running
//! gateway can be reached. `demo` keeps to a subfolder of its own, so that trying things never touches
//! a real gateway.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{ComposeErrorKind, Error};

const FILE: &str = "doors.json";

/// How to reach the gateway that runs on a state directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayAddresses {
    /// The clients' door, as this machine reaches it.
    pub url: String,
    /// The boards' door, as this machine reaches it.
    pub devices_url: String,
    /// The boards' MQTT door, as this machine reaches it.
    #[serde(default)]
    pub mqtt_url: Option<String>,
    /// The one address a board must know, as boards reach it.
    #[serde(default)]
    pub ota_url: Option<String>,
    /// The certificate's fingerprint, where one is served.
    pub fingerprint: Option<String>,
    pub token: String,
}

/// A gateway at work.
#[derive(Clone, Debug)]
pub struct LocalGateway {
    pub directory: PathBuf,
    pub pid: u32,
    pub addresses: GatewayAddresses,
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

/// The gateway on exactly this directory. One that is still starting has no doors yet.
pub fn running(directory: &Path) -> Option<LocalGateway> {
    let lock = sinew_gateway::running_gateway(directory)?;
    let addresses: GatewayAddresses = serde_json::from_slice(&fs::read(directory.join(FILE)).ok()?).ok()?;
    // A file left behind by a gateway that was killed tells of other addresses.
    (lock.url.as_deref() == Some(&addresses.url)).then(|| LocalGateway {
        directory: directory.to_owned(),
        pid: lock.pid,
        addresses,
    })
}

/// Leaves word of the doors for client commands; readable by the owner alone, as it holds the token.
pub fn write_addresses(directory: &Path, addresses: &GatewayAddresses) -> Result<(), Error> {
    let path = directory.join(FILE);
    let write = || -> std::io::Result<()> {
        let beside = directory.join("doors.json.new");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&beside)?.write_all(&serde_json::to_vec_pretty(addresses)?)?;
        fs::rename(&beside, &path)
    };
    write().map_err(|error| Error::new(ComposeErrorKind::Io, format!("cannot write {}: {error}", path.display())))
}

pub fn remove_addresses(directory: &Path) {
    let _ = fs::remove_file(directory.join(FILE));
}
