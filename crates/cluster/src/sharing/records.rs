//! The records of the bucket `shared` as text, and their keys. Whatever another version or a stranger wrote is left alone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sinew_gateway::Label;
use sinew_gateway::shared::{GivenMarks, NameClaim, TokenKind, TokenRow};
use sinew_presence::{DeviceHash, NodeId};
use sinew_tool::{DeviceId, DeviceKey, Digest, TokenId};

use crate::records::{VERSION, hash_of, parse_hash};

/// The longest record that is read.
const MAX_RECORD: usize = 16 << 10;
/// The bytes of a key of boards: as of any secret in a state directory.
const MIN_BOARD_KEY: usize = 8;
const MAX_BOARD_KEY: usize = 512;
/// The longest pin: it has the tools of a device, and must fit a message of NATS.
const MAX_PIN: usize = 768 << 10;
/// More labels than a device may have.
const MAX_LABELS: usize = 256;

/// What a record is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SharedKey {
    RequestKey(NodeId),
    BoardKey(NodeId),
    /// An id, which means one device.
    Id(DeviceId),
    Token(String),
    /// A tool, by its name and input schema, which has one public name.
    Tool(DeviceHash),
    /// A public name, which means one tool.
    Name(DeviceHash),
    Device(DeviceHash),
    /// What is agreed on about a device.
    Pin(DeviceHash),
    Node(NodeId),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SharedRecord {
    RequestKey([u8; 32]),
    /// From which a node makes the tokens of boards.
    BoardKey(String),
    /// Whose id it is.
    Id(DeviceHash),
    Token(Box<SharedToken>),
    Name(Box<SharedName>),
    Marks(GivenMarks),
    Pin(Box<SharedPin>),
    Node(NodeFacts),
}

/// A token, or that it was revoked.
#[derive(Clone, Debug)]
pub(crate) struct SharedToken {
    pub(crate) row: Option<TokenRow>,
}

impl PartialEq for SharedToken {
    fn eq(&self, other: &SharedToken) -> bool {
        let id = |token: &SharedToken| token.row.as_ref().map(|row| (row.id.clone(), row.hash));
        id(self) == id(other)
    }
}

/// Which tool a public name means. Without a digest it is the tool's part of an unfolded name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedName {
    v: u32,
    pub(crate) tool: String,
    pub(crate) digest: String,
    pub(crate) name: String,
    pub(crate) owner: Option<String>,
    pub(crate) face: Option<String>,
}

/// What is agreed on about a device: the text of a lock that has it alone; none where it is not pinned any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedPin {
    v: u32,
    pub(crate) device: String,
    pub(crate) agreed: Option<String>,
}

/// What nodes tell of themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeFacts {
    v: u32,
    /// The version of its policy.
    pub(crate) policy: String,
    /// The version of the program.
    pub(crate) program: String,
}

#[derive(Serialize, Deserialize)]
struct KeyText {
    v: u32,
    key: String,
}

#[derive(Serialize, Deserialize)]
struct IdText {
    v: u32,
    device: String,
}

#[derive(Serialize, Deserialize)]
struct TokenText {
    v: u32,
    /// None once it was revoked.
    token: Option<TokenForm>,
}

#[derive(Serialize, Deserialize)]
struct TokenForm {
    id: String,
    kind: String,
    device: Option<String>,
    label: String,
    hash: String,
    created: i64,
    expires: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct MarksText {
    v: u32,
    name: Option<String>,
    labels: Vec<String>,
}

fn hash_of_text(parts: &[&str]) -> DeviceHash {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let mut hash = [0; 16];
    hash.copy_from_slice(&hasher.finalize()[..16]);
    DeviceHash(hash)
}

impl SharedKey {
    pub(crate) fn tool(tool: &str, digest: &str) -> SharedKey {
        SharedKey::Tool(hash_of_text(&[tool, digest]))
    }

    /// Names of the two forms are apart.
    pub(crate) fn name(name: &str, digest: &str) -> SharedKey {
        SharedKey::Name(hash_of_text(&[if digest.is_empty() { "word" } else { "name" }, name]))
    }

    pub(crate) fn text(&self) -> String {
        match self {
            SharedKey::RequestKey(node) => format!("request-key.{node}"),
            SharedKey::BoardKey(node) => format!("board-key.{node}"),
            SharedKey::Id(id) => format!("id.{id}"),
            SharedKey::Token(id) => format!("token.{id}"),
            SharedKey::Tool(hash) => format!("tool.{hash}"),
            SharedKey::Name(hash) => format!("name.{hash}"),
            SharedKey::Device(hash) => format!("device.{hash}"),
            SharedKey::Pin(hash) => format!("pin.{hash}"),
            SharedKey::Node(node) => format!("node.{node}"),
        }
    }

    pub(crate) fn parse(text: &str) -> Option<SharedKey> {
        let (kind, rest) = text.split_once('.')?;
        match kind {
            "request-key" => NodeId::parse(rest).map(SharedKey::RequestKey),
            "board-key" => NodeId::parse(rest).map(SharedKey::BoardKey),
            "id" => DeviceId::parse(rest).map(SharedKey::Id),
            "token" => TokenId::parse(rest).map(|_| SharedKey::Token(rest.to_owned())),
            "tool" => parse_hash(rest).map(SharedKey::Tool),
            "name" => parse_hash(rest).map(SharedKey::Name),
            "device" => parse_hash(rest).map(SharedKey::Device),
            "pin" => parse_hash(rest).map(SharedKey::Pin),
            "node" => NodeId::parse(rest).map(SharedKey::Node),
            _ => None,
        }
    }
}

impl SharedRecord {
    /// `None` where it is too long to be read again.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            SharedRecord::RequestKey(key) => serde_json::to_string(&KeyText { v: VERSION, key: hex(key) }),
            SharedRecord::BoardKey(key) => serde_json::to_string(&KeyText { v: VERSION, key: key.clone() }),
            SharedRecord::Id(device) => serde_json::to_string(&IdText { v: VERSION, device: device.to_string() }),
            SharedRecord::Token(token) => {
                let form = |row: &TokenRow| TokenForm {
                    id: row.id.clone(),
                    kind: row.kind.word().to_owned(),
                    device: row.device.clone(),
                    label: row.label.clone(),
                    hash: hex(&row.hash),
                    created: row.created_at,
                    expires: row.expires_at,
                };
                serde_json::to_string(&TokenText { v: VERSION, token: token.row.as_ref().map(form) })
            }
            SharedRecord::Name(name) => serde_json::to_string(name),
            SharedRecord::Marks(GivenMarks { name, labels }) => {
                let labels = labels.iter().map(Label::to_string).collect();
                serde_json::to_string(&MarksText { v: VERSION, name: name.clone(), labels })
            }
            SharedRecord::Pin(pin) => serde_json::to_string(pin),
            SharedRecord::Node(facts) => serde_json::to_string(facts),
        }
        .ok()
        .filter(|text| text.len() <= longest(matches!(self, SharedRecord::Pin(_))))
    }

    /// Reads the record of a key; `None` for one of another version, or that does not belong there.
    pub(crate) fn parse(key: &str, text: &[u8]) -> Option<SharedRecord> {
        let key = SharedKey::parse(key)?;
        if text.len() > longest(matches!(key, SharedKey::Pin(_))) {
            return None;
        }
        let (v, record) = match &key {
            SharedKey::RequestKey(_) => {
                let KeyText { v, key } = serde_json::from_slice(text).ok()?;
                (v, SharedRecord::RequestKey(parse_hex(&key)?))
            }
            SharedKey::BoardKey(_) => {
                let KeyText { v, key } = serde_json::from_slice(text).ok()?;
                let is_fine = (MIN_BOARD_KEY..=MAX_BOARD_KEY).contains(&key.len());
                (v, SharedRecord::BoardKey(Some(key).filter(|_| is_fine)?))
            }
            SharedKey::Id(_) => {
                let IdText { v, device } = serde_json::from_slice(text).ok()?;
                (v, SharedRecord::Id(parse_hash(&device)?))
            }
            SharedKey::Token(id) => {
                let TokenText { v, token } = serde_json::from_slice(text).ok()?;
                let row = token.map(|form| row_of(form).filter(|row| row.id == *id).ok_or(()));
                (v, SharedRecord::Token(Box::new(SharedToken { row: row.transpose().ok()? })))
            }
            SharedKey::Tool(_) | SharedKey::Name(_) => {
                let name: SharedName = serde_json::from_slice(text).ok()?;
                let is_here = [SharedKey::tool(&name.tool, &name.digest), SharedKey::name(&name.name, &name.digest)];
                let is_digest = name.digest.is_empty() || Digest::parse(&name.digest).is_some();
                if !(is_digest && is_here.contains(&key)) {
                    return None;
                }
                (name.v, SharedRecord::Name(Box::new(name)))
            }
            SharedKey::Device(_) => {
                let MarksText { v, name, labels } = serde_json::from_slice(text).ok()?;
                let labels: Result<Vec<Label>, _> = labels.iter().map(|label| Label::parse(label)).collect();
                let labels = labels.ok().filter(|labels| labels.len() <= MAX_LABELS)?;
                (v, SharedRecord::Marks(GivenMarks { name, labels }))
            }
            SharedKey::Pin(device) => {
                let pin: SharedPin = serde_json::from_slice(text).ok()?;
                // Nobody may speak for another device.
                (pin.v, SharedRecord::Pin(Box::new(Some(pin).filter(|pin| hash_of(&pin.key()) == *device)?)))
            }
            SharedKey::Node(_) => {
                let facts: NodeFacts = serde_json::from_slice(text).ok()?;
                (facts.v, SharedRecord::Node(facts))
            }
        };
        (v == VERSION).then_some(record)
    }
}

impl SharedName {
    pub(crate) fn of(claim: &NameClaim) -> SharedName {
        SharedName {
            v: VERSION,
            tool: claim.tool.clone(),
            digest: claim.digest.clone(),
            name: claim.name.to_string(),
            owner: claim.owner.as_ref().map(|owner| owner.0.clone()),
            face: claim.face.map(|face| face.hex()),
        }
    }

    pub(crate) fn claim(&self) -> NameClaim {
        NameClaim {
            tool: self.tool.clone(),
            digest: self.digest.clone(),
            name: Arc::from(self.name.as_str()),
            owner: self.owner.clone().map(DeviceKey),
            resting: None,
            face: self.face.as_deref().and_then(Digest::parse),
        }
    }
}

impl SharedPin {
    pub(crate) fn new(device: &DeviceKey, agreed: Option<String>) -> SharedPin {
        SharedPin { v: VERSION, device: device.0.clone(), agreed }
    }

    pub(crate) fn key(&self) -> DeviceKey {
        DeviceKey(self.device.clone())
    }
}

fn longest(is_pin: bool) -> usize {
    if is_pin { MAX_PIN } else { MAX_RECORD }
}

impl NodeFacts {
    pub(crate) fn new(policy: String) -> NodeFacts {
        NodeFacts { v: VERSION, policy, program: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

fn row_of(form: TokenForm) -> Option<TokenRow> {
    Some(TokenRow {
        id: form.id,
        kind: TokenKind::parse(&form.kind),
        device: form.device,
        label: form.label,
        hash: parse_hex(&form.hash)?,
        created_at: form.created,
        expires_at: form.expires,
        last_use: Arc::default(),
    })
}

pub(super) fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn parse_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> TokenRow {
        TokenRow {
            id: id.to_owned(),
            kind: TokenKind::Client,
            device: None,
            label: "laptop".to_owned(),
            hash: [7; 32],
            created_at: 1,
            expires_at: Some(2),
            last_use: Arc::default(),
        }
    }

    fn claim() -> NameClaim {
        let digest = Digest::of(&sinew_tool::json!({})).hex();
        NameClaim { tool: "set".into(), digest, name: "set".into(), owner: None, resting: None, face: None }
    }

    #[test]
    fn records_come_back_as_they_were() {
        let node = || NodeId::parse("attic").unwrap();
        let lamp = DeviceKey("lamp:1".to_owned());
        let name = SharedName::of(&claim());
        let marks = GivenMarks { name: Some("Küche".to_owned()), labels: vec![Label::parse("kitchen").unwrap()] };
        for (key, record) in [
            (SharedKey::RequestKey(node()), SharedRecord::RequestKey([9; 32])),
            (SharedKey::BoardKey(node()), SharedRecord::BoardKey("snw_0123".to_owned())),
            (SharedKey::Id(DeviceId::parse("board-1").unwrap()), SharedRecord::Id(DeviceHash([4; 16]))),
            (SharedKey::Token("0a1b2c3d".into()), SharedRecord::Token(Box::new(SharedToken { row: None }))),
            (
                SharedKey::Token("0a1b2c3d".into()),
                SharedRecord::Token(Box::new(SharedToken { row: Some(row("0a1b2c3d")) })),
            ),
            (SharedKey::tool(&name.tool, &name.digest), SharedRecord::Name(Box::new(name.clone()))),
            (SharedKey::name(&name.name, &name.digest), SharedRecord::Name(Box::new(name.clone()))),
            (SharedKey::Device(DeviceHash([3; 16])), SharedRecord::Marks(marks)),
            (SharedKey::Pin(hash_of(&lamp)), SharedRecord::Pin(Box::new(SharedPin::new(&lamp, Some("{}".to_owned()))))),
            (SharedKey::Pin(hash_of(&lamp)), SharedRecord::Pin(Box::new(SharedPin::new(&lamp, None)))),
            (SharedKey::Node(node()), SharedRecord::Node(NodeFacts::new("p1".to_owned()))),
        ] {
            let text = key.text();
            assert_eq!(SharedKey::parse(&text), Some(key));
            assert_eq!(SharedRecord::parse(&text, record.text().unwrap().as_bytes()), Some(record), "{text}");
        }
    }

    #[test]
    fn records_of_others_and_in_wrong_places_are_left_alone() {
        let token = SharedRecord::Token(Box::new(SharedToken { row: Some(row("0a1b2c3d")) })).text().unwrap();
        let name = SharedRecord::Name(Box::new(SharedName::of(&claim()))).text().unwrap();
        let elsewhere = SharedKey::Tool(DeviceHash([1; 16])).text();
        for (key, text) in [
            ("token.ffffffff", token.as_str()),
            ("token.0a1b2c3d", r#"{"v":2,"token":null}"#),
            ("token.0a1b2c3d", r#"{"v":1,"token":{"id":"0a1b2c3d"}}"#),
            ("token. ", token.as_str()),
            (elsewhere.as_str(), name.as_str()),
            ("request-key.attic", r#"{"v":1,"key":"00"}"#),
            ("request-key.A B", r#"{"v":1,"key":"00"}"#),
            ("board-key.attic", r#"{"v":1,"key":"short"}"#),
            ("id.A B", r#"{"v":1,"device":"00000000000000000000000000000000"}"#),
            ("id.a", r#"{"v":1,"device":"00"}"#),
            ("device.zz", r#"{"v":1,"name":null,"labels":[]}"#),
            ("device.00000000000000000000000000000000", r#"{"v":1,"name":null,"labels":["A B"]}"#),
            ("pin.00000000000000000000000000000000", r#"{"v":1,"device":"lamp:1","agreed":null}"#),
            ("node.attic", "[[["),
            ("", ""),
            ("other.x", "{}"),
        ] {
            assert_eq!(SharedRecord::parse(key, text.as_bytes()), None, "{key} {text}");
        }
    }
}
