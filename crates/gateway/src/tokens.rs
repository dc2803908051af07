//! Tokens: who may come in through which door.
//!
//! The gateway's own token lies in a file that only its owner can read. Of all others only hashes are
//! kept; a token is shown once, when it is made.

use std::fs::OpenOptions;
use std::io::{ErrorKind as IoErrorKind, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use sinew_tool::{Admission, Admit, Bearer, DeviceId, DeviceKey, ErrorKind, TokenId, ToolError};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use crate::gateway::Gateway;
use crate::principal::{Principal, Role};
use crate::registry::{Registry, now};
use crate::settings::OpenError;
use crate::store::{Store, TokenRow, Write};
use crate::text::clean_line;

/// The id of the gateway's own token in lists.
const OWN: &str = "gateway";
/// The label of tokens that approved boards have. Their rows name the hardware id; all others name a key.
const ENROLLED: &str = "bootstrap";
/// The families whose members identify themselves by token, as they begin their keys.
const BOARD: &str = "board:";
const PROVIDER: &str = "provider:";

pub struct Tokens {
    own: String,
    own_hash: [u8; 32],
    rows: ArcSwap<Vec<TokenRow>>,
    /// Held while the rows are changed.
    changing: Mutex<()>,
    store: Arc<Store>,
    registry: Arc<Registry>,
    revoked: OnceLock<Told>,
    /// Counts the revocations, so that whoever still uses a token looks again.
    revocations: watch::Sender<u64>,
}

/// Who wants to know which device token was revoked.
type Told = Box<dyn Fn(&TokenId) + Send + Sync>;

/// A token as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenView {
    pub id: String,
    /// `client`, `admin` or `device`.
    pub role: &'static str,
    pub label: String,
    /// The key of the device that a device token is for.
    pub device: Option<String>,
    /// Milliseconds of Unix time; 0 for the gateway's own.
    pub created: i64,
}

impl Tokens {
    pub(crate) fn new(own: String, rows: Vec<TokenRow>, store: Arc<Store>, registry: Arc<Registry>) -> Tokens {
        let rows = ArcSwap::from_pointee(rows);
        let (revoked, revocations) = (OnceLock::new(), watch::Sender::new(0));
        Tokens { own_hash: hash(&own), own, rows, changing: Mutex::new(()), store, registry, revoked, revocations }
    }

    /// Whose a token is, at the doors for clients and people. Device tokens open none of them.
    pub fn check(&self, token: &str) -> Option<Principal> {
        let hash = hash(token);
        let mut found = is_same(&self.own_hash, &hash).then(|| Principal::new(OWN, Role::Admin));
        for row in self.rows.load().iter() {
            let role = match row.role {
                "client" => Role::Client,
                "admin" => Role::Admin,
                _ => continue,
            };
            if is_same(&row.hash, &hash) {
                let name = if row.label.is_empty() { row.id.clone() } else { row.label.clone() };
                found = Some(Principal { name, id: row.id.clone(), role, revocable: true });
            }
        }
        found
    }

    /// Whether it is the token of a device, which opens nothing for clients.
    pub fn is_for_device(&self, token: &str) -> bool {
        matches!(self.find_bearer(token), Some(Bearer::Device { .. }))
    }

    /// Makes a token; its text is shown this once. A device token names a known device by id, speaking name or key, and
    /// one to come by its key, by the MAC address of a board or by the name of a tool provider.
    pub fn create(&self, role: Role, label: &str) -> Result<(TokenView, String), ToolError> {
        let device = match &role {
            Role::Device(text) => Some(self.bind(text)?),
            Role::Client | Role::Admin => None,
        };
        let random = |error: OpenError| ToolError::new(ErrorKind::Internal, error.to_string());
        let token = mint().map_err(random)?;
        let row = TokenRow {
            id: random_hex::<4>().map_err(random)?,
            role: role.word(),
            device,
            label: clean_line(label.trim(), 64),
            hash: hash(&token),
            created_at: now(),
        };
        let view = self.view(&row);
        self.add(row)?;
        Ok((view, token))
    }

    fn add(&self, row: TokenRow) -> Result<(), ToolError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.store.write_awaited(Write::Token(row.clone())).wait()?;
        let mut rows = (**self.rows.load()).clone();
        rows.push(row);
        self.rows.store(Arc::new(rows));
        Ok(())
    }

    /// The token of a device that `make` makes for the id of one of its rows.
    pub(crate) fn find_of(&self, hardware_id: &str, make: impl Fn(&str) -> Option<String>) -> Option<String> {
        let rows = self.rows.load();
        let mut own = rows.iter().filter(|row| row.label == ENROLLED && row.device.as_deref() == Some(hardware_id));
        own.find_map(|row| make(&row.id).filter(|token| is_same(&row.hash, &hash(token))))
    }

    /// Whether a board that comes with this hardware id calls itself by the id, name or key of another device.
    pub(crate) fn is_of_another(&self, hardware_id: &str) -> bool {
        let snapshot = self.registry.snapshot();
        let own_key = board_key(hardware_id);
        let by_key = || snapshot.devices.iter().find(|entry| entry.info.key.0.eq_ignore_ascii_case(hardware_id));
        snapshot.entry(hardware_id).or_else(by_key).is_some_and(|entry| entry.info.key.0 != own_key)
    }

    /// Enters a device token that `make` makes for the new row's id, in place of those entered so before.
    pub(crate) fn enrol(
        &self,
        hardware_id: &str,
        make: impl Fn(&str) -> Result<String, ToolError>,
    ) -> Result<(), ToolError> {
        let before = self.rows.load_full();
        let mut before =
            before.iter().filter(|row| row.label == ENROLLED && row.device.as_deref() == Some(hardware_id));
        before.try_for_each(|row| self.revoke(&row.id).map(drop))?;
        let id = random_hex::<4>().map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))?;
        let hash = hash(&make(&id)?);
        let device = Some(hardware_id.to_owned());
        let role = Role::Device(String::new()).word();
        self.add(TokenRow { id, role, device, label: ENROLLED.to_owned(), hash, created_at: now() })
    }

    /// All tokens, the gateway's own first.
    pub fn list(&self) -> Vec<TokenView> {
        let own = TokenView {
            id: OWN.to_owned(),
            role: Role::Admin.word(),
            label: "the gateway's own".to_owned(),
            device: None,
            created: 0,
        };
        std::iter::once(own).chain(self.rows.load().iter().map(|row| self.view(row))).collect()
    }

    /// Takes a token back, at once.
    pub fn revoke(&self, id: &str) -> Result<TokenView, ToolError> {
        if id == OWN {
            let message = "the gateway's own token cannot be revoked; stop the gateway, delete the file `token` in its state directory, and start it again";
            return Err(ToolError::new(ErrorKind::InvalidArguments, message));
        }
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = self.rows.load_full();
        let Some(row) = rows.iter().find(|row| row.id == id) else {
            let id = clean_line(id, 64);
            let message = format!("no token has the id `{id}`; `sinew token list` shows those there are");
            return Err(ToolError::new(ErrorKind::InvalidArguments, message)
                .with_details(json!({"parameter_name": "id", "issue": "unknown token"})));
        };
        // It stops working first: whatever the disk says, it must not open a door again.
        self.rows.store(Arc::new(rows.iter().filter(|other| other.id != id).cloned().collect()));
        self.revocations.send_modify(|count| *count += 1);
        if let (Some(_), Some(id), Some(tell)) = (&row.device, TokenId::parse(id), self.revoked.get()) {
            tell(&id);
        }
        self.store.write_awaited(Write::Revoke(id.to_owned())).wait()?;
        Ok(self.view(row))
    }

    /// Whether the token that `who` came with still opens anything.
    pub fn is_valid(&self, who: &Principal) -> bool {
        !who.revocable || self.rows.load().iter().any(|row| row.id == who.id)
    }

    /// Changes whenever a token stops being valid.
    pub fn revocations(&self) -> watch::Receiver<u64> {
        self.revocations.subscribe()
    }

    /// Waits until the token that `who` came with is no longer valid.
    pub async fn revoked(&self, who: &Principal) {
        if !who.revocable {
            return std::future::pending().await;
        }
        let mut revocations = self.revocations();
        while self.is_valid(who) {
            if revocations.changed().await.is_err() {
                return;
            }
        }
    }

    /// Calls `tell` with every device token that is revoked, so that connections admitted by it can be ended. Only the
    /// first listener is kept.
    pub fn when_revoked(&self, tell: impl Fn(&TokenId) + Send + Sync + 'static) {
        let _ = self.revoked.set(Box::new(tell));
    }

    /// The gateway's own token.
    pub fn own(&self) -> String {
        self.own.clone()
    }

    /// What a device token is bound to: the key of one device, which outlives every renaming.
    fn bind(&self, text: &str) -> Result<String, ToolError> {
        let text = text.trim();
        let snapshot = self.registry.snapshot();
        let by_key = || snapshot.devices.iter().find(|entry| entry.info.key.0 == text);
        if let Some(entry) = snapshot.entry(text).or_else(by_key) {
            return Ok(entry.info.key.0.clone());
        }
        let (is_board, name) = match (text.strip_prefix(BOARD), text.strip_prefix(PROVIDER)) {
            (Some(id), _) => (true, id),
            (_, Some(name)) => (false, name),
            _ => (mac(text).is_some(), text),
        };
        let wrong = |issue: String| {
            Err(ToolError::new(ErrorKind::InvalidArguments, format!("the device of a token {issue}"))
                .with_details(json!({"parameter_name": "device", "issue": issue})))
        };
        match is_board {
            _ if name.is_empty() || name.len() > 64 || !name.bytes().all(|byte| byte.is_ascii_graphic()) => wrong(
                "must be the id or name of a known device, the MAC address of a board, `board:` and a hardware id, or the name of a tool provider"
                    .to_owned(),
            ),
            true => Ok(board_key(name)),
            // Names that come to the same id would be the same provider.
            false if DeviceId::parse(name).is_none() => wrong(format!(
                "may be a tool provider to come, and its name has at most {} lower-case letters, digits and hyphens; for a board write `{BOARD}{name}`",
                DeviceId::MAX_LENGTH
            )),
            false => Ok(format!("{PROVIDER}{name}")),
        }
    }

    fn admit(&self, token: &str, key: &DeviceKey) -> Option<Admission> {
        self.find_bearer(token).filter(|bearer| bearer.is_for(key)).map(|bearer| bearer.admission())
    }

    fn find_bearer(&self, token: &str) -> Option<Bearer> {
        let hash = hash(token);
        let mut found = is_same(&self.own_hash, &hash).then_some(Bearer::Any);
        for row in self.rows.load().iter().filter(|row| is_same(&row.hash, &hash)) {
            if let (Some(token), Some(key)) = (TokenId::parse(&row.id), self.key(row)) {
                found = Some(Bearer::Device { token, key });
            }
        }
        found
    }

    /// The key of the one device that a row admits. Rows of earlier versions may name a hardware id or the name of a
    /// provider, without a family.
    fn key(&self, row: &TokenRow) -> Option<DeviceKey> {
        let bound = row.device.as_deref()?;
        if row.label == ENROLLED || mac(bound).is_some() {
            return Some(DeviceKey(board_key(bound)));
        }
        let snapshot = self.registry.snapshot();
        let is_known = |key: &str| snapshot.devices.iter().any(|entry| entry.info.key.0 == key);
        if bound.starts_with(BOARD) || bound.starts_with(PROVIDER) || is_known(bound) {
            return Some(DeviceKey(bound.to_owned()));
        }
        let board = board_key(bound);
        Some(DeviceKey(if is_known(&board) { board } else { format!("{PROVIDER}{}", DeviceId::slug(bound)) }))
    }

    fn view(&self, row: &TokenRow) -> TokenView {
        TokenView {
            id: row.id.clone(),
            role: row.role,
            label: row.label.clone(),
            device: self.key(row).map(|key| key.0),
            created: row.created_at,
        }
    }
}

/// The key of a board, whose hardware id is kept in lower case, and a MAC address with colons.
pub(crate) fn board_key(hardware_id: &str) -> String {
    format!("{BOARD}{}", mac(hardware_id).unwrap_or_else(|| hardware_id.to_ascii_lowercase()))
}

/// A MAC address with colons, however it is written.
fn mac(text: &str) -> Option<String> {
    let pairs: Vec<&str> = match text.len() {
        12 if text.is_ascii() => (0..6).map(|pair| &text[2 * pair..2 * pair + 2]).collect(),
        17 => text.split([':', '-', '_']).collect(),
        _ => return None,
    };
    let is_pair = |pair: &&str| pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit());
    (pairs.len() == 6 && pairs.iter().all(is_pair)).then(|| pairs.join(":").to_ascii_lowercase())
}

impl Admit for Gateway {
    fn admit(&self, token: Option<&str>, key: &DeviceKey) -> Option<Admission> {
        self.tokens().admit(token?, key)
    }

    fn find_bearer(&self, token: &str) -> Option<Bearer> {
        self.tokens().find_bearer(token)
    }
}

/// The gateway's own token: the one it was told, else the one in its state directory, made on the
/// first start.
pub(crate) fn own(told: Option<&str>, state_dir: Option<&Path>) -> Result<String, OpenError> {
    if let Some(token) = told {
        return usable(token).ok_or_else(|| OpenError::Token { what: "that was given cannot be used".to_owned() });
    }
    secret(state_dir, "token")
}

/// A secret in the state directory, made when it is first wanted; without a directory one for this run.
pub(crate) fn secret(state_dir: Option<&Path>, name: &str) -> Result<String, OpenError> {
    let Some(dir) = state_dir else { return mint() };
    let path = dir.join(name);
    let failed = |what| {
        let path = path.clone();
        move |source| OpenError::Io { what, path, source }
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(&path) {
        Ok(mut file) => {
            let token = mint()?;
            file.write_all(format!("{token}\n").as_bytes()).map_err(failed("write the token to"))?;
            Ok(token)
        }
        Err(error) if error.kind() == IoErrorKind::AlreadyExists => {
            let text = std::fs::read_to_string(&path).map_err(failed("read the token in"))?;
            #[cfg(unix)]
            {
                let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
                std::fs::set_permissions(&path, owner_only).map_err(failed("protect the token in"))?;
            }
            let what = || format!("in {} cannot be used; delete the file, and a new one is made", path.display());
            usable(text.trim()).ok_or_else(|| OpenError::Token { what: what() })
        }
        Err(error) => Err(failed("create the token in")(error)),
    }
}

fn usable(token: &str) -> Option<String> {
    let is_fine = (8..=512).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
    is_fine.then(|| token.to_owned())
}

fn mint() -> Result<String, OpenError> {
    Ok(format!("snw_{}", random_hex::<32>()?))
}

fn random_hex<const N: usize>() -> Result<String, OpenError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| OpenError::Random(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn is_same(one: &[u8; 32], two: &[u8; 32]) -> bool {
    one.ct_eq(two).into()
}
