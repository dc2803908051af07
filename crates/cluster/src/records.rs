//! The records of the store as text, and their keys. Whatever another version or a stranger wrote is left alone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sinew_presence::{Boot, DeviceHash, Entry, Key, NodeId, Owner, Record, Revision, Term};
use sinew_tool::{DeviceInfo, DeviceKey, Digest};

/// The version of the records and messages. A node leaves those of another one alone.
pub(crate) const VERSION: u32 = 1;
/// Buckets for devices. One with more than 200,000 records makes its server stop for seconds when a node begins to watch.
pub(crate) const SHARDS: usize = 8;
/// The longest record of a device that is read.
const MAX_RECORD: usize = 512 << 10;

/// What nodes tell each other of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeviceCard {
    pub(crate) info: DeviceInfo,
    /// The digest of its tools, which travel once for all devices that have the same.
    pub(crate) tools: String,
}

impl DeviceCard {
    pub(crate) fn toolset(&self) -> Option<Digest> {
        Digest::parse(&self.tools)
    }
}

pub(crate) type Card = Arc<DeviceCard>;

#[derive(Serialize, Deserialize)]
struct NodeText {
    v: u32,
    /// Of the run that is alive; none once it ended.
    boot: Option<String>,
    /// Of its lease; 0 in the first record of one.
    term: String,
}

#[derive(Serialize, Deserialize)]
struct DeviceText {
    v: u32,
    /// None once the device left.
    held: Option<HeldText>,
}

#[derive(Serialize, Deserialize)]
struct HeldText {
    node: String,
    boot: String,
    term: String,
    card: DeviceCard,
}

/// The identity of a device in the store.
pub(crate) fn hash_of(key: &DeviceKey) -> DeviceHash {
    let mut hash = [0; 16];
    hash.copy_from_slice(&Sha256::digest(key.0.as_bytes())[..16]);
    DeviceHash(hash)
}

/// The bucket of a device.
pub(crate) fn shard_of(device: DeviceHash) -> usize {
    usize::from(device.0[0]) * SHARDS / 256
}

/// The key of a record within its bucket.
pub(crate) fn text_of_key(key: &Key) -> String {
    match key {
        Key::Node(node) => node.to_string(),
        Key::Device(device) => device.to_string(),
    }
}

/// Reads the key of a record of a node, or with `is_device` of a device.
pub(crate) fn parse_key(text: &str, is_device: bool) -> Option<Key> {
    match is_device {
        true => parse_hash(text).map(Key::Device),
        false => NodeId::parse(text).map(Key::Node),
    }
}

pub(crate) fn parse_hash(text: &str) -> Option<DeviceHash> {
    let mut hash = [0; 16];
    // One device has one key: no capital letters, and no signs, which numbers may have.
    if text.len() != 32 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    for (place, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(DeviceHash(hash))
}

pub(crate) fn boot_text(boot: Boot) -> String {
    format!("{:016x}", boot.0)
}

pub(crate) fn parse_boot(text: &str) -> Option<Boot> {
    u64::from_str_radix(text, 16).ok().map(Boot)
}

pub(crate) fn text_of(record: &Record<Card>) -> Option<String> {
    let term_text = |term: Term| format!("{:x}", term.0);
    match record {
        Record::Lease { boot, term } => {
            let (boot, term) = (Some(boot_text(*boot)), term_text(*term));
            serde_json::to_string(&NodeText { v: VERSION, boot, term }).ok()
        }
        Record::Ended => {
            serde_json::to_string(&NodeText { v: VERSION, boot: None, term: term_text(Term::default()) }).ok()
        }
        Record::Left => serde_json::to_string(&DeviceText { v: VERSION, held: None }).ok(),
        Record::Held(Entry { owner, term, body }) => {
            let (node, boot, term) = (owner.node.to_string(), boot_text(owner.boot), term_text(*term));
            let held = HeldText { node, boot, term, card: DeviceCard::clone(body) };
            serde_json::to_string(&DeviceText { v: VERSION, held: Some(held) }).ok()
        }
    }
    .filter(|text| text.len() <= MAX_RECORD)
}

/// Reads a record; `None` for one of another version, or none of ours.
pub(crate) fn parse_record(key: &Key, text: &[u8]) -> Option<Record<Card>> {
    let parse_term = |text: &str| u64::from_str_radix(text, 16).ok().map(Revision);
    if text.len() > MAX_RECORD {
        return None;
    }
    match key {
        Key::Node(_) => {
            let NodeText { v, boot, term } = serde_json::from_slice(text).ok()?;
            let is_ours = v == VERSION;
            match boot.filter(|_| is_ours) {
                Some(boot) => Some(Record::Lease { boot: parse_boot(&boot)?, term: parse_term(&term)? }),
                None => is_ours.then_some(Record::Ended),
            }
        }
        Key::Device(device) => {
            let DeviceText { v, held } = serde_json::from_slice(text).ok()?;
            if v != VERSION {
                return None;
            }
            let Some(HeldText { node, boot, term, card }) = held else { return Some(Record::Left) };
            let owner = Owner { node: NodeId::parse(&node)?, boot: parse_boot(&boot)? };
            let term = parse_term(&term)?;
            // Nobody may speak for another device.
            (hash_of(&card.info.key) == *device && card.toolset().is_some())
                .then(|| Record::Held(Entry { owner, term, body: Arc::new(card) }))
        }
    }
}

#[cfg(test)]
mod tests {
    use sinew_tool::{Admission, Attributes, Family, FamilyName, Reach, Status, TextTrust, Toolset};

    use super::*;

    fn card(key: &str) -> Card {
        let info = DeviceInfo {
            key: DeviceKey(key.to_owned()),
            suggested_id: "lamp".to_owned(),
            family: Family::new(FamilyName::of("lamp"), TextTrust::Attributed, Reach::OneLink),
            admission: Admission::Local,
            name: "Lamp".to_owned(),
            version: "1".to_owned(),
            status: Status::Ready,
            instructions: None,
            labels: Vec::new(),
            attributes: Attributes::default(),
        };
        Arc::new(DeviceCard { info, tools: Toolset::default().digest().hex() })
    }

    #[test]
    fn records_come_back_as_they_were() {
        let (node, device) = (Key::Node(NodeId::parse("a").unwrap()), Key::Device(hash_of(&DeviceKey("x".to_owned()))));
        let owner = Owner { node: NodeId::parse("a").unwrap(), boot: Boot(7) };
        let held = Record::Held(Entry { owner, term: Revision(9), body: card("x") });
        let lease = Record::Lease { boot: Boot(u64::MAX), term: Revision(u64::MAX) };
        for (key, record) in [(&node, lease), (&node, Record::Ended), (&device, Record::Left), (&device, held)] {
            assert_eq!(parse_record(key, text_of(&record).unwrap().as_bytes()), Some(record));
            let text = text_of_key(key);
            assert_eq!(parse_key(&text, matches!(key, Key::Device(_))).as_ref(), Some(key));
        }
    }

    #[test]
    fn records_of_others_are_left_alone() {
        let device = Key::Device(hash_of(&DeviceKey("x".to_owned())));
        let owner = Owner { node: NodeId::parse("a").unwrap(), boot: Boot(7) };
        // A card of another device under this key.
        let foreign = text_of(&Record::Held(Entry { owner, term: Revision(9), body: card("y") })).unwrap();
        for text in [&*foreign, "", "{}", r#"{"v":2,"held":null}"#, r#"{"v":1,"held":{"node":"A B"}}"#, "[[["] {
            assert_eq!(parse_record(&device, text.as_bytes()), None, "{text}");
        }
        for wrong in ["", "zz", &"é".repeat(16), &"0".repeat(33), &"+a".repeat(16), &"A".repeat(32)] {
            assert_eq!(parse_key(wrong, true), None, "{wrong}");
        }
    }

    #[test]
    fn devices_are_spread_over_all_buckets() {
        let shards: std::collections::BTreeSet<usize> =
            (0..1_000).map(|number| shard_of(hash_of(&DeviceKey(format!("board:{number}"))))).collect();
        assert_eq!(shards.into_iter().collect::<Vec<_>>(), (0..SHARDS).collect::<Vec<_>>());
    }
}
