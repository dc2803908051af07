//! What a node must know after a restart, also while NATS is away: which tokens were revoked, and the keys of the other
//! nodes, of request state and of boards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sinew_gateway::private_files::write_private_synced;
use sinew_presence::NodeId;

use super::records::{hex, parse_hex};
use crate::core::lock;

/// Beyond so many the oldest are forgotten: nobody revokes so many within the time that a node may be away.
const MAX_REVOKED: usize = 10_000;
/// As many nodes as a cluster may have had.
const MAX_KEYS: usize = 256;
/// Far more than both take.
const MAX_FILE: u64 = 4 << 20;

pub(super) struct KeptFile {
    /// `None` for a gateway in memory.
    path: Option<PathBuf>,
    kept: Mutex<Kept>,
}

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    /// When each token was revoked, in milliseconds of Unix time.
    revoked: BTreeMap<String, u64>,
    /// Of each node, in hex.
    request_keys: BTreeMap<String, String>,
    #[serde(default)]
    board_keys: BTreeMap<String, String>,
}

impl KeptFile {
    pub(super) fn open(path: Option<PathBuf>) -> Result<KeptFile, String> {
        let kept = match &path {
            Some(path) if path.exists() => {
                let wrong = |why: String| {
                    let file = path.display();
                    format!(
                        "{file} cannot be read: {why}; without it, tokens that were revoked may come back. Repair it, or delete \
                         it and look through `sinew token list`"
                    )
                };
                let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
                if size > MAX_FILE {
                    return Err(wrong(format!("it is larger than {} MiB", MAX_FILE >> 20)));
                }
                let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
                serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?
            }
            _ => Kept::default(),
        };
        Ok(KeptFile { path, kept: Mutex::new(kept) })
    }

    pub(super) fn is_revoked(&self, id: &str) -> bool {
        lock(&self.kept).revoked.contains_key(id)
    }

    pub(super) fn revoked(&self) -> Vec<String> {
        lock(&self.kept).revoked.keys().cloned().collect()
    }

    pub(super) fn note_revoked(&self, id: &str) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut kept = lock(&self.kept);
        if kept.revoked.contains_key(id) {
            return;
        }
        kept.revoked.insert(id.to_owned(), u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        while kept.revoked.len() > MAX_REVOKED {
            let Some(oldest) = kept.revoked.iter().min_by_key(|(_, at)| **at).map(|(id, _)| id.clone()) else { break };
            kept.revoked.remove(&oldest);
        }
        self.save(&kept);
    }

    /// The keys of the other nodes.
    pub(super) fn request_keys(&self) -> Vec<[u8; 32]> {
        lock(&self.kept).request_keys.values().filter_map(|key| parse_hex(key)).collect()
    }

    pub(super) fn note_request_key(&self, node: &NodeId, key: [u8; 32]) {
        let mut kept = lock(&self.kept);
        if note_key(&mut kept.request_keys, node, hex(&key)) {
            self.save(&kept);
        }
    }

    /// From which the other nodes make the tokens of boards.
    pub(super) fn board_keys(&self) -> Vec<String> {
        lock(&self.kept).board_keys.values().cloned().collect()
    }

    pub(super) fn note_board_key(&self, node: &NodeId, key: String) {
        let mut kept = lock(&self.kept);
        if note_key(&mut kept.board_keys, node, key) {
            self.save(&kept);
        }
    }

    fn save(&self, kept: &Kept) {
        let Some(path) = &self.path else { return };
        let text = serde_json::to_vec_pretty(kept).unwrap_or_default();
        if let Err(error) = write_private_synced(path, &text) {
            tracing::error!(file = %path.display(), "what the cluster shares could not be kept: {error}");
        }
    }
}

/// Whether that is news.
fn note_key(keys: &mut BTreeMap<String, String>, node: &NodeId, key: String) -> bool {
    let known = keys.get(node.as_str());
    let is_new = known != Some(&key) && (known.is_some() || keys.len() < MAX_KEYS);
    if is_new {
        keys.insert(node.to_string(), key);
    }
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_revoked_is_known_after_a_restart_and_a_damaged_file_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cluster.json");
        let file = KeptFile::open(Some(path.clone())).unwrap();
        file.note_revoked("0a1b2c3d");
        file.note_request_key(&NodeId::parse("attic").unwrap(), [7; 32]);
        file.note_board_key(&NodeId::parse("attic").unwrap(), "snw_0123".to_owned());
        let again = KeptFile::open(Some(path.clone())).unwrap();
        assert!(again.is_revoked("0a1b2c3d") && !again.is_revoked("ffffffff"));
        assert_eq!((again.request_keys(), again.board_keys()), (vec![[7; 32]], vec!["snw_0123".to_owned()]));
        std::fs::write(&path, "{").unwrap();
        let told = KeptFile::open(Some(path)).err().unwrap();
        assert!(told.contains("cluster.json") && told.contains("may come back"), "{told}");
    }

    #[test]
    fn the_oldest_make_room() {
        let file = KeptFile::open(None).unwrap();
        for number in 0..MAX_REVOKED + 5 {
            file.note_revoked(&format!("{number:08x}"));
        }
        assert_eq!(file.revoked().len(), MAX_REVOKED);
    }
}
