//! The packages without tools. Those are most packages, and they stay so until they are updated, so their APKs are
//! not read again: remembered in memory while a phone is connected, and in a file for the next connection.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sinew_tool::Digest;

use crate::offer::ProtocolNames;
use crate::packages::InstalledPackage;

/// The packages of one phone that offer no tools.
#[derive(Debug, Default)]
pub(crate) struct PackageCache {
    empty: BTreeSet<InstalledPackage>,
    file: Option<PathBuf>,
    /// Digest of the protocol names that were searched for: with other names, other packages offer tools.
    names: String,
    dirty: bool,
}

/// Five thousand packages with their paths; a larger file was not written by this cache.
const MAX_FILE: u64 = 4 << 20;

impl PackageCache {
    /// Opens the cache of a phone. A file that is missing, damaged or for other names counts as empty.
    pub(crate) fn open(folder: Option<&Path>, serial: &str, names: &ProtocolNames) -> PackageCache {
        let names = Digest::of(&json!(format!("{names:?}"))).hex();
        let file = folder.map(|folder| folder.join(format!("{}.json", Digest::of(&json!(serial)).hex())));
        let empty = file.as_deref().and_then(|file| load(file, &names)).unwrap_or_default();
        PackageCache { empty, file, names, dirty: false }
    }

    pub(crate) fn holds(&self, package: &InstalledPackage) -> bool {
        self.empty.contains(package)
    }

    pub(crate) fn insert(&mut self, package: InstalledPackage) {
        self.dirty |= self.empty.insert(package);
    }

    /// Removes packages that are no longer installed, and writes the file if something changed.
    pub(crate) fn keep(&mut self, installed: &[InstalledPackage]) {
        let before = self.empty.len();
        self.empty.retain(|package| installed.binary_search(package).is_ok());
        self.dirty |= before != self.empty.len();
        if let Some(file) = self.file.as_deref().filter(|_| self.dirty) {
            if let Err(error) = self.write(file) {
                tracing::debug!(%error, file = %file.display(), "cannot write the cache of packages without tools");
            }
            self.dirty = false;
        }
    }

    fn write(&self, file: &Path) -> io::Result<()> {
        let rows: Vec<Value> = self.empty.iter().map(|one| json!([one.package, one.version_code, one.path])).collect();
        let text = json!({"words": self.names, "empty": rows}).to_string();
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let fresh = file.with_extension("new");
        std::fs::write(&fresh, text)?;
        std::fs::rename(fresh, file)
    }
}

fn load(file: &Path, names: &str) -> Option<BTreeSet<InstalledPackage>> {
    if std::fs::metadata(file).ok()?.len() > MAX_FILE {
        return None;
    }
    let kept: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    if kept["words"] != names {
        return None;
    }
    let row = |row: &Value| {
        Some(InstalledPackage {
            package: row[0].as_str()?.to_owned(),
            version_code: row[1].as_u64()?,
            path: row[2].as_str()?.to_owned(),
        })
    };
    kept["empty"].as_array()?.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version_code: u64) -> InstalledPackage {
        InstalledPackage { package: name.to_owned(), path: format!("/data/app/{name}/base.apk"), version_code }
    }

    #[test]
    fn a_package_without_tools_is_remembered_until_it_is_updated_or_the_names_change() {
        let folder = tempfile::tempdir().unwrap();
        let names = ProtocolNames::default();
        let open = |names: &ProtocolNames| PackageCache::open(Some(folder.path()), "a/b:1", names);
        let mut cache = open(&names);
        cache.insert(package("a", 1));
        cache.insert(package("b", 1));
        cache.keep(&[package("a", 1), package("b", 2)]);
        let cache = open(&names);
        assert!(cache.holds(&package("a", 1)) && !cache.holds(&package("a", 2)) && !cache.holds(&package("b", 1)));
        assert!(!open(&ProtocolNames { advertise: "other".to_owned(), ..names.clone() }).holds(&package("a", 1)));
        assert!(!PackageCache::open(Some(folder.path()), "other", &names).holds(&package("a", 1)));
        let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        for damaged in ["", "{", "[]", "{\"words\": 5}"] {
            std::fs::write(&file, damaged).unwrap();
            assert!(!open(&names).holds(&package("a", 1)), "{damaged}");
        }
    }
}
