//! The network phones that somebody connected. The adb server forgets them when it ends, so their addresses are kept
//! in a file of the state directory, one a line: `sinew phones connect` writes it, the tracker reads it.

use std::io;
use std::path::{Path, PathBuf};

use super::server::checked;

/// More than anybody connects by hand; a longer file is not ours.
const MOST: usize = 256;
const MOST_BYTES: u64 = 64 << 10;

/// The addresses that are kept in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkPhones {
    file: PathBuf,
}

impl NetworkPhones {
    /// In the state directory of a gateway.
    pub fn in_state(state: &Path) -> NetworkPhones {
        NetworkPhones { file: state.join("network-phones") }
    }

    /// The addresses, in the order in which they were connected. A file that is missing, or a line that is not an
    /// address, is ignored.
    pub fn addresses(&self) -> Vec<String> {
        let is_ours = std::fs::metadata(&self.file).is_ok_and(|about| about.len() <= MOST_BYTES);
        let text = if is_ours { std::fs::read_to_string(&self.file).unwrap_or_default() } else { String::new() };
        let lines = text.lines().map(str::trim).filter(|line| checked(line).is_ok());
        lines.take(MOST).map(str::to_owned).collect()
    }

    pub fn add(&self, address: &str) -> io::Result<()> {
        let mut addresses = self.addresses();
        if addresses.iter().any(|known| known == address) {
            return Ok(());
        }
        if addresses.len() >= MOST {
            let message = format!("{} has {MOST} phones already; disconnect one first", self.file.display());
            return Err(io::Error::other(message));
        }
        addresses.push(address.to_owned());
        self.write(&addresses)
    }

    /// Whether it was there.
    pub fn remove(&self, address: &str) -> io::Result<bool> {
        let mut addresses = self.addresses();
        let before = addresses.len();
        addresses.retain(|known| known != address);
        if addresses.len() == before {
            return Ok(false);
        }
        self.write(&addresses).map(|()| true)
    }

    /// Atomically, so that nobody reads half of it.
    fn write(&self, addresses: &[String]) -> io::Result<()> {
        if let Some(folder) = self.file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let beside = self.file.with_extension(format!("{}.new", std::process::id()));
        let text: String = addresses.iter().map(|address| format!("{address}\n")).collect();
        std::fs::write(&beside, text)?;
        std::fs::rename(&beside, &self.file)
    }
}

/// The address as it is written in the file and in adb's list: with the port that adb would assume.
pub fn with_port(address: &str) -> String {
    let has_port = match address.strip_prefix('[') {
        Some(rest) => rest.contains("]:"),
        None => address.contains(':'),
    };
    if has_port { address.to_owned() } else { format!("{address}:5555") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_kept_until_they_are_removed_and_nonsense_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = NetworkPhones::in_state(&folder.path().join("new"));
        assert_eq!(remembered.addresses(), Vec::<String>::new());
        for address in ["10.0.0.2:5555", "phone.local:5555", "10.0.0.2:5555"] {
            remembered.add(address).unwrap();
        }
        assert_eq!(remembered.addresses(), ["10.0.0.2:5555", "phone.local:5555"]);
        assert!(remembered.remove("10.0.0.2:5555").unwrap());
        assert!(!remembered.remove("10.0.0.2:5555").unwrap());
        std::fs::write(&remembered.file, "good:1\n\nhost:kill\u{7}\n two words\n").unwrap();
        assert_eq!(remembered.addresses(), ["good:1"]);
        std::fs::write(&remembered.file, "a:1\n".repeat(100_000)).unwrap();
        assert_eq!(remembered.addresses(), Vec::<String>::new());
    }

    #[test]
    fn the_port_that_adb_assumes_is_said() {
        for (address, full) in [
            ("10.0.0.2", "10.0.0.2:5555"),
            ("10.0.0.2:40001", "10.0.0.2:40001"),
            ("[fe80::1]", "[fe80::1]:5555"),
            ("[fe80::1]:7", "[fe80::1]:7"),
        ] {
            assert_eq!(with_port(address), full);
        }
    }
}
