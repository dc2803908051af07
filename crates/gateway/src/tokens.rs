//! Tokens: who may use which endpoint.
//!
//! The gateway's own token is in a file that only its owner can read. Of all others only hashes are
//! kept; a token is shown once, when it is made.

use std::collections::{HashSet, VecDeque};
use std::io::{ErrorKind as IoErrorKind, Write as _};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use sinew_tool::text::clean_line;
use sinew_tool::{Admission, Admit, Bearer, DeviceId, DeviceKey, ErrorKind, Presences, TokenId, ToolError};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use crate::gateway::BOOTSTRAP_KEY;
use crate::gateway::{Gateway, OWN_TOKEN};
use crate::page_of::{PageOf, unknown_cursor};
use crate::principal::{Principal, Role, SIGN_IN};
use crate::private_files::{private_options, protect};
use crate::registry::{Registry, now};
use crate::settings::OpenError;
use crate::shared::{BoardKeys, RequestKeys, TokenKind, TokenRow, TokenStore};
use crate::token_labels::{self, IfTaken};

/// The id of the gateway's own token in lists.
pub(crate) const OWN: &str = "gateway";
/// The label of tokens that approved boards have. Their rows name the hardware id; all others name a key.
pub(crate) const ENROLLED: &str = "bootstrap";
/// The families whose members identify themselves by token, as they begin their keys.
const BOARD: &str = "board:";
const PROVIDER: &str = "provider:";

pub struct Tokens {
    own: String,
    own_hash: [u8; 32],
    naming: Mutex<()>,
    mirror: Arc<Mirror>,
    store: Arc<dyn TokenStore>,
    registry: Arc<Registry>,
    /// The callers whose sign-ins were ended, oldest first. Each sign-in has an id of its own, so that none comes again.
    ended_sign_ins: Mutex<VecDeque<String>>,
}

/// Sign-ins that ended and are remembered, for requests that began before.
const MAX_ENDED: usize = 10_000;

/// What the gateway reads of the tokens, wherever they are kept.
struct Mirror {
    rows: ArcSwap<Vec<TokenRow>>,
    /// Counts the tokens that were revoked or expired, so that connections that use one check again.
    revocations: watch::Sender<u64>,
    /// Changes with the rows.
    changes: watch::Sender<()>,
}

impl Mirror {
    fn replace(&self, rows: Vec<TokenRow>) {
        let before = self.rows.swap(Arc::new(rows));
        let rows = self.rows.load();
        let ids: HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        if before.iter().any(|old| !ids.contains(old.id.as_str())) {
            self.revocations.send_modify(|count| *count += 1);
        }
        self.changes.send_replace(());
    }
}

/// The last use of a token is kept to the minute: more would be a write for each call.
const USE_KEPT: i64 = 60_000;
/// How long the wait for an expiry is at most, because the clock may be set in the meantime.
const CLOCK_CHECK: Duration = Duration::from_secs(60);

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
    /// Until when it is valid, in milliseconds of Unix time; `None` for never.
    pub expires: Option<i64>,
    /// When it was last used, to the minute, in milliseconds of Unix time.
    pub last_use: Option<i64>,
}

impl Tokens {
    pub(crate) fn new(own: String, store: Arc<dyn TokenStore>, registry: Arc<Registry>) -> Tokens {
        let (revocations, changes) = (watch::Sender::new(0), watch::Sender::new(()));
        let mirror = Arc::new(Mirror { rows: ArcSwap::default(), revocations, changes });
        let listener = Arc::downgrade(&mirror);
        store.listen(Box::new(move |rows| {
            if let Some(mirror) = listener.upgrade() {
                mirror.replace(rows);
            }
        }));
        let (naming, ended_sign_ins) = (Mutex::default(), Mutex::default());
        Tokens { own_hash: hash(&own), own, mirror, naming, store, registry, ended_sign_ins }
    }

    /// Whose a token is, at the endpoints for clients and people. Device tokens are valid at none of them.
    pub fn check(&self, token: &str) -> Option<Principal> {
        let hash = hash(token);
        let mut found = is_same(&self.own_hash, &hash).then(|| Principal::new(OWN, Role::Admin));
        let now = now();
        for row in self.mirror.rows.load().iter() {
            let role = match row.kind {
                TokenKind::Client => Role::Client,
                TokenKind::Admin => Role::Admin,
                TokenKind::Device | TokenKind::Unknown => continue,
            };
            if is_same(&row.hash, &hash) && !row.is_expired(now) {
                self.note_use(row, now);
                let name = row.caller();
                found = Some(Principal { id: row.id.clone(), revocable: true, ..Principal::new(name, role) });
            }
        }
        found
    }

    /// Since when the token of a caller has expired; `None` where it was revoked or is valid.
    pub fn expiry_of(&self, who: &Principal) -> Option<i64> {
        let (rows, now) = (self.mirror.rows.load(), now());
        rows.iter().find(|row| row.id == who.id && row.is_expired(now))?.expires_at
    }

    /// Since when a token has expired, in milliseconds of Unix time; `None` for one that is unknown or valid.
    pub fn expired_at(&self, token: &str) -> Option<i64> {
        let (hash, now) = (hash(token), now());
        let rows = self.mirror.rows.load();
        rows.iter().find(|row| is_same(&row.hash, &hash) && row.is_expired(now))?.expires_at
    }

    /// Whether it is the token of a device, which is not valid for clients.
    pub fn is_for_device(&self, token: &str) -> bool {
        matches!(self.find_bearer(token), Some(Bearer::Device { .. }))
    }

    /// Makes a token; its text is shown this once. A device token names a known device by id, given name or key, and
    /// one to come by its key, by the MAC address of a board or by the name of a tool provider.
    pub fn create(&self, role: Role, label: &str) -> Result<(TokenView, String), ToolError> {
        self.create_until(role, label, None, IfTaken::Number)
    }

    /// Like [`Tokens::create`], for a token that is valid until `expires`, in milliseconds of Unix time. A token that
    /// expired does not keep its label.
    pub fn create_until(
        &self,
        role: Role,
        label: &str,
        expires: Option<i64>,
        if_taken: IfTaken,
    ) -> Result<(TokenView, String), ToolError> {
        if expires.is_some_and(|at| at <= now()) {
            let issue = "must expire in the future";
            return Err(ToolError::new(ErrorKind::InvalidArguments, format!("a token {issue}"))
                .with_details(json!({"parameter_name": "expires", "issue": issue})));
        }
        let device = match &role {
            Role::Device(text) => Some(self.bind(text)?),
            Role::Client | Role::Admin => None,
        };
        // Held until the token is added, so that two that are made at once get different labels.
        let _naming = self.naming.lock().unwrap_or_else(PoisonError::into_inner);
        let (label, replaced) = match &role {
            Role::Device(_) => (clean_line(label.trim(), 64), Vec::new()),
            Role::Client | Role::Admin => self.choose_label(label, if_taken)?,
        };
        let random = |error: OpenError| ToolError::new(ErrorKind::Internal, error.to_string());
        let token = mint().map_err(random)?;
        let row = TokenRow {
            id: random_hex::<4>().map_err(random)?,
            kind: role.kind(),
            device,
            label,
            hash: hash(&token),
            created_at: now(),
            expires_at: expires,
            last_use: Arc::default(),
        };
        let view = self.view(&row);
        self.store.add(row)?;
        replaced.iter().try_for_each(|id| self.store.revoke(id))?;
        Ok((view, token))
    }

    /// The label of a new token of a client or administrator, and the ids of the tokens that it replaces.
    fn choose_label(&self, wanted: &str, if_taken: IfTaken) -> Result<(String, Vec<String>), ToolError> {
        let label = token_labels::check(wanted)?;
        let (rows, now) = (self.mirror.rows.load(), now());
        let valid = rows.iter().filter(|row| row.device.is_none() && !row.is_expired(now));
        let mut named = valid.clone().filter(|row| !label.is_empty() && token_labels::is_same(&row.label, &label));
        match (if_taken, named.clone().next()) {
            (IfTaken::Refuse, Some(row)) => {
                let (label, id) = (&row.label, &row.id);
                let message = format!(
                    "a token called `{label}` exists ({id}), and rules for `token:{label}` are about that one; to renew it, add --replace, or end it with `sinew token revoke {id}`; else choose another name"
                );
                Err(ToolError::new(ErrorKind::InvalidArguments, message)
                    .with_details(json!({"parameter_name": "label", "issue": "is the label of a valid token"})))
            }
            (IfTaken::Replace, Some(_)) => Ok((label.clone(), named.by_ref().map(|row| row.id.clone()).collect())),
            _ => {
                let taken = valid.flat_map(|row| [row.label.as_str(), row.id.as_str()]);
                Ok((token_labels::number(label.clone(), taken), Vec::new()))
            }
        }
    }

    /// The token of a device that `make` makes for the id of one of its rows.
    pub(crate) fn find_of(&self, hardware_id: &str, make: impl Fn(&str) -> Option<String>) -> Option<String> {
        let rows = self.mirror.rows.load();
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
        let before = self.mirror.rows.load_full();
        let mut before =
            before.iter().filter(|row| row.label == ENROLLED && row.device.as_deref() == Some(hardware_id));
        before.try_for_each(|row| self.revoke(&row.id).map(drop))?;
        let id = random_hex::<4>().map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))?;
        let hash = hash(&make(&id)?);
        let device = Some(hardware_id.to_owned());
        let kind = TokenKind::Device;
        let (label, created_at) = (ENROLLED.to_owned(), now());
        self.store.add(TokenRow {
            id,
            kind,
            device,
            label,
            hash,
            created_at,
            expires_at: None,
            last_use: Arc::default(),
        })
    }

    /// A page of the tokens, oldest first. `after` is the `next` of the page before.
    pub fn page(&self, after: Option<&str>, limit: usize) -> Result<PageOf<TokenView>, ToolError> {
        let place = |after: &str| {
            let (created, id) = after.split_once('-')?;
            Some((created.parse::<i64>().ok()?, id.to_owned()))
        };
        let after = after.map(|after| place(after).ok_or_else(unknown_cursor)).transpose()?;
        let mut tokens = self.list();
        tokens.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        let is_after = |token: &TokenView| after.as_ref().is_none_or(|(at, id)| (token.created, &token.id) > (*at, id));
        Ok(PageOf::collect(tokens.into_iter(), is_after, limit, |last| format!("{}-{}", last.created, last.id)))
    }

    /// All tokens, the gateway's own first.
    pub fn list(&self) -> Vec<TokenView> {
        let own = TokenView {
            id: OWN.to_owned(),
            role: TokenKind::Admin.word(),
            label: "the gateway's own".to_owned(),
            device: None,
            created: 0,
            expires: None,
            last_use: None,
        };
        std::iter::once(own).chain(self.mirror.rows.load().iter().map(|row| self.view(row))).collect()
    }

    /// The names of the callers with a token of their own.
    pub(crate) fn names(&self) -> Vec<String> {
        let rows = self.mirror.rows.load();
        rows.iter().filter(|row| row.kind != TokenKind::Device).map(TokenRow::caller).collect()
    }

    /// Revokes a token; it stops working at once.
    pub fn revoke(&self, id: &str) -> Result<TokenView, ToolError> {
        if id == OWN {
            let message = "the gateway's own token cannot be revoked; stop the gateway, delete the file `token` in its state directory, and start it again";
            return Err(ToolError::new(ErrorKind::InvalidArguments, message));
        }
        let rows = self.mirror.rows.load_full();
        let Some(row) = rows.iter().find(|row| row.id == id) else {
            let id = clean_line(id, 64);
            let message = format!("no token has the id `{id}`; `sinew token list` shows those there are");
            return Err(ToolError::new(ErrorKind::InvalidArguments, message)
                .with_details(json!({"parameter_name": "id", "issue": "unknown token"})));
        };
        self.store.revoke(id)?;
        Ok(self.view(row))
    }

    /// Whether the token of `who` is still valid.
    pub fn is_valid(&self, who: &Principal) -> bool {
        !who.revocable
            || match who.id.starts_with(SIGN_IN) {
                true => !self.ended_sign_ins().contains(&who.id),
                false => self.is_valid_id(&who.id),
            }
    }

    /// Ends everything that a caller who signed in has open. Whoever checks sign-ins has forgotten this one.
    pub(crate) fn end_sign_in(&self, who: &Principal) {
        let mut ended = self.ended_sign_ins();
        if ended.len() >= MAX_ENDED {
            ended.pop_front();
        }
        ended.push_back(who.id.clone());
        drop(ended);
        self.mirror.revocations.send_modify(|count| *count += 1);
    }

    fn ended_sign_ins(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.ended_sign_ins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_valid_id(&self, id: &str) -> bool {
        let now = now();
        self.mirror.rows.load().iter().any(|row| row.id == id && !row.is_expired(now))
    }

    /// Changes whenever a token stops being valid.
    pub fn revocations(&self) -> watch::Receiver<u64> {
        self.mirror.revocations.subscribe()
    }

    /// Waits until the token of `who` is no longer valid.
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

    /// The ids of all valid tokens.
    pub fn valid(&self) -> HashSet<TokenId> {
        let now = now();
        let rows = self.mirror.rows.load();
        let valid = rows.iter().filter(|row| !row.is_expired(now));
        valid.filter_map(|row| TokenId::parse(&row.id)).collect()
    }

    /// Counts a token as revoked when it expires. Never returns; to be run beside the gateway.
    pub async fn watch_expiry(&self) {
        let mut changes = self.mirror.changes.subscribe();
        let mut seen = now();
        loop {
            changes.mark_unchanged();
            let next = self.mirror.rows.load().iter().filter_map(|row| row.expires_at).filter(|at| *at > seen).min();
            let wait = next.map(|at| u64::try_from(at - now()).map_or(Duration::ZERO, Duration::from_millis));
            tokio::select! {
                _ = changes.changed() => continue,
                () = tokio::time::sleep(wait.unwrap_or(CLOCK_CHECK).min(CLOCK_CHECK)) => {}
            }
            let now = now();
            if next.is_some_and(|at| at <= now) {
                self.mirror.revocations.send_modify(|count| *count += 1);
            }
            seen = now;
        }
    }

    fn note_use(&self, row: &TokenRow, now: i64) {
        let before = row.last_use.load(Ordering::Relaxed);
        // A clock that was set back must not keep the old time for ever.
        let is_due = now.saturating_sub(before).saturating_abs() >= USE_KEPT;
        if is_due && row.last_use.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.store.note_use(&row.id, now);
        }
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
        self.find_bearer(token).filter(|bearer| bearer.is_for(key)).map(|bearer| self.admission(&bearer))
    }

    fn admission(&self, bearer: &Bearer) -> Admission {
        if let Bearer::Device { token, .. } = bearer
            && let Some(row) = self.mirror.rows.load().iter().find(|row| row.id == token.as_str())
        {
            self.note_use(row, now());
        }
        bearer.admission()
    }

    fn find_bearer(&self, token: &str) -> Option<Bearer> {
        let (hash, now) = (hash(token), now());
        let mut found = is_same(&self.own_hash, &hash).then_some(Bearer::Any);
        for row in self.mirror.rows.load().iter().filter(|row| is_same(&row.hash, &hash) && !row.is_expired(now)) {
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
            role: row.kind.word(),
            label: row.label.clone(),
            device: self.key(row).map(|key| key.0),
            created: row.created_at,
            expires: row.expires_at,
            last_use: Some(row.last_use.load(Ordering::Relaxed)).filter(|at| *at > 0),
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

    fn is_valid(&self, admission: &Admission) -> bool {
        match admission {
            Admission::DeviceToken(token) => self.tokens().is_valid_id(token.as_str()),
            _ => true,
        }
    }

    fn find_bearer(&self, token: &str) -> Option<Bearer> {
        let bearer = self.tokens().find_bearer(token)?;
        self.tokens().admission(&bearer);
        Some(bearer)
    }

    fn is_known(&self, key: &DeviceKey) -> bool {
        self.is_known_device(key)
    }

    fn report_presences(&self, broker: &str, presences: Presences) {
        self.set_presences(broker, presences);
    }
}

/// The gateway's own token: the one that was given, else the one in its state directory, made on the
/// first start.
pub(crate) fn own(given: Option<&str>, state_dir: Option<&Path>) -> Result<String, OpenError> {
    if let Some(token) = given {
        return usable(token).ok_or_else(|| OpenError::Token { what: "that was given cannot be used".to_owned() });
    }
    secret(state_dir, OWN_TOKEN)
}

/// A secret in the state directory, made when it is first wanted; without a directory one for this run.
pub(crate) fn secret(state_dir: Option<&Path>, name: &str) -> Result<String, OpenError> {
    let Some(dir) = state_dir else { return mint() };
    let path = dir.join(name);
    let failed = |what| {
        let path = path.clone();
        move |source| OpenError::Io { what, path, source }
    };
    match private_options().write(true).create_new(true).open(&path) {
        Ok(mut file) => {
            let token = mint()?;
            file.write_all(format!("{token}\n").as_bytes()).map_err(failed("write the token to"))?;
            Ok(token)
        }
        Err(error) if error.kind() == IoErrorKind::AlreadyExists => {
            let text = std::fs::read_to_string(&path).map_err(failed("read the token in"))?;
            protect(&path).map_err(failed("protect the token in"))?;
            read_secret(&path, &text)
        }
        Err(error) => Err(failed("create the token in")(error)),
    }
}

/// The key of request state, made from a secret in the state directory, so that a call goes on after a restart.
pub(crate) struct LocalRequestKey([u8; 32]);

impl LocalRequestKey {
    pub(crate) fn open(state_dir: Option<&Path>) -> Result<LocalRequestKey, OpenError> {
        Ok(LocalRequestKey(hash(&secret(state_dir, "request-key")?)))
    }
}

impl RequestKeys for LocalRequestKey {
    fn keys(&self) -> Vec<[u8; 32]> {
        vec![self.0]
    }
}

/// The key of the boards' tokens, a secret in the state directory.
pub(crate) struct LocalBoardKey(String);

impl LocalBoardKey {
    pub(crate) fn open(state_dir: Option<&Path>) -> Result<LocalBoardKey, OpenError> {
        Ok(LocalBoardKey(secret(state_dir, BOOTSTRAP_KEY)?))
    }
}

impl BoardKeys for LocalBoardKey {
    fn keys(&self) -> Vec<String> {
        vec![self.0.clone()]
    }
}

fn read_secret(path: &Path, text: &str) -> Result<String, OpenError> {
    let what = || format!("in {} cannot be used; delete the file, and a new one is made", path.display());
    usable(text.trim()).ok_or_else(|| OpenError::Token { what: what() })
}

/// Whether a secret can be used, if it is there already.
pub(crate) fn check_secret(path: &Path) -> Result<(), OpenError> {
    match std::fs::read_to_string(path) {
        Ok(text) => read_secret(path, &text).map(drop),
        Err(error) if error.kind() == IoErrorKind::NotFound => Ok(()),
        Err(source) => Err(OpenError::Io { what: "read the token in", path: path.to_owned(), source }),
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
