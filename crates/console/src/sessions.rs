//! Who is signed in. Sessions are in memory: a restart of the gateway signs everybody out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use sinew_api::PersonRole;
use sinew_gateway::{Gateway, Principal};
use sinew_tool::{ErrorKind, ToolError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A session that nobody used for half a day ends.
const IDLE_TIME: Duration = Duration::from_secs(12 * 3_600);
/// A week after signing in, a person signs in again.
const SESSION_TIME: Duration = Duration::from_secs(7 * 86_400);
/// A link is opened by the browser that the command starts; a person who pastes it has a minute.
const CODE_TIME: Duration = Duration::from_secs(60);
/// Sessions of all people; when there are too many, the one that was unused longest ends.
const MAX_SESSIONS: usize = 1_000;
/// Links that were made and not opened yet; the oldest are forgotten.
const MAX_CODES: usize = 100;

type Hash = [u8; 32];

/// The sessions of a console, and the codes that begin one. Only hashes are kept of what browsers show.
#[derive(Default)]
pub(crate) struct Sessions {
    table: Mutex<SessionTable>,
}

#[derive(Default)]
struct SessionTable {
    sessions: HashMap<Hash, KeptSession>,
    /// Oldest first.
    codes: Vec<(Hash, Principal, Instant)>,
}

struct KeptSession {
    session: Arc<Session>,
    created: Instant,
    used: Instant,
}

/// Somebody who is signed in.
pub(crate) struct Session {
    pub(crate) who: Arc<Principal>,
    pub(crate) role: PersonRole,
    /// What the forms of its pages contain, which no other page knows.
    pub(crate) form_token: String,
    /// Cancelled when the session ends.
    pub(crate) ended: CancellationToken,
}

impl Sessions {
    /// Begins a session; the answer is what the cookie holds.
    pub(crate) fn begin(&self, who: Principal, role: PersonRole) -> Result<String, ToolError> {
        let (secret, form_token) = (random()?, random()?);
        let session = Session { who: Arc::new(who), role, form_token, ended: CancellationToken::new() };
        let mut table = self.table();
        if table.sessions.len() >= MAX_SESSIONS
            && let Some(oldest) = table.sessions.iter().min_by_key(|(_, kept)| kept.used).map(|(hash, _)| *hash)
        {
            table.end(&oldest);
        }
        let now = Instant::now();
        let kept = KeptSession { session: Arc::new(session), created: now, used: now };
        table.sessions.insert(hash(&secret), kept);
        Ok(secret)
    }

    /// The session of a cookie, where it goes on.
    pub(crate) fn find(&self, secret: &str, gateway: &Gateway) -> Option<Arc<Session>> {
        let hash = hash(secret);
        let mut table = self.table();
        let kept = table.sessions.get_mut(&hash)?;
        if !gateway.tokens().is_valid(&kept.session.who) {
            table.end(&hash);
            return None;
        }
        kept.used = Instant::now();
        Some(kept.session.clone())
    }

    pub(crate) fn end(&self, secret: &str) {
        self.table().end(&hash(secret));
    }

    /// Ends all sessions of a caller.
    pub(crate) fn end_of(&self, id: &str) {
        let mut table = self.table();
        let of_caller = table.sessions.iter().filter(|(_, kept)| kept.session.who.id == id);
        let ended: Vec<Hash> = of_caller.map(|(hash, _)| *hash).collect();
        ended.iter().for_each(|hash| table.end(hash));
    }

    /// A code that begins a session of this caller, once, and for how many seconds.
    pub(crate) fn new_code(&self, who: &Principal) -> Result<(String, u64), ToolError> {
        let code = random()?;
        let mut table = self.table();
        if table.codes.len() >= MAX_CODES {
            table.codes.remove(0);
        }
        table.codes.push((hash(&code), who.clone(), Instant::now() + CODE_TIME));
        Ok((code, CODE_TIME.as_secs()))
    }

    /// Uses up a code.
    pub(crate) fn spend_code(&self, code: &str, gateway: &Gateway) -> Option<Principal> {
        let hash = hash(code);
        let mut table = self.table();
        let place = table.codes.iter().position(|(known, ..)| *known == hash)?;
        let (_, who, _) = table.codes.remove(place);
        gateway.tokens().is_valid(&who).then_some(who)
    }

    fn table(&self) -> MutexGuard<'_, SessionTable> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        table.codes.retain(|(.., ends)| *ends > now);
        let is_over = |kept: &KeptSession| now - kept.used >= IDLE_TIME || now - kept.created >= SESSION_TIME;
        let over: Vec<Hash> = table.sessions.iter().filter(|(_, kept)| is_over(kept)).map(|(hash, _)| *hash).collect();
        over.iter().for_each(|hash| table.end(hash));
        table
    }
}

impl SessionTable {
    fn end(&mut self, hash: &Hash) {
        if let Some(kept) = self.sessions.remove(hash) {
            kept.session.ended.cancel();
        }
    }
}

fn hash(text: &str) -> Hash {
    Sha256::digest(text.as_bytes()).into()
}

/// 256 random bits in hex.
fn random() -> Result<String, ToolError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use sinew_gateway::{Role, Settings};

    use super::*;

    fn gateway() -> Gateway {
        Gateway::open(Settings::default()).expect("a gateway")
    }

    fn admin() -> Principal {
        Principal::new("ada", Role::Admin)
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_after_half_a_day_without_use_and_after_a_week() {
        let (sessions, gateway) = (Sessions::default(), gateway());
        let idle = sessions.begin(admin(), PersonRole::Admin).expect("a session");
        let used = sessions.begin(admin(), PersonRole::Admin).expect("a session");
        let ended = sessions.find(&used, &gateway).expect("it goes on").ended.clone();
        for _ in 0..13 {
            assert!(sessions.find(&used, &gateway).is_some());
            tokio::time::advance(Duration::from_secs(11 * 3_600)).await;
        }
        assert!(sessions.find(&idle, &gateway).is_none());
        tokio::time::advance(Duration::from_secs(2 * 86_400)).await;
        assert!(sessions.find(&used, &gateway).is_none() && ended.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_code_is_good_once_and_for_a_minute() {
        let (sessions, gateway) = (Sessions::default(), gateway());
        let (code, _) = sessions.new_code(&admin()).expect("a code");
        assert_eq!(sessions.spend_code(&code, &gateway), Some(admin()));
        assert!(sessions.spend_code(&code, &gateway).is_none());
        let (code, seconds) = sessions.new_code(&admin()).expect("a code");
        tokio::time::advance(Duration::from_secs(seconds)).await;
        assert!(sessions.spend_code(&code, &gateway).is_none());
    }

    #[tokio::test]
    async fn what_a_token_began_ends_with_the_token() {
        let (sessions, gateway) = (Sessions::default(), gateway());
        let (view, token) = gateway.tokens().create(Role::Admin, "desk").expect("a token");
        let who = gateway.tokens().check(&token).expect("a caller");
        let session = sessions.begin(who.clone(), PersonRole::Admin).expect("a session");
        let (code, _) = sessions.new_code(&who).expect("a code");
        gateway.tokens().revoke(&view.id).expect("revoked");
        assert!(sessions.find(&session, &gateway).is_none());
        assert!(sessions.spend_code(&code, &gateway).is_none());
    }

    #[tokio::test]
    async fn too_many_sessions_end_the_one_that_was_unused_longest() {
        let (sessions, gateway) = (Sessions::default(), gateway());
        let first = sessions.begin(admin(), PersonRole::Admin).expect("a session");
        for _ in 0..MAX_SESSIONS {
            sessions.begin(admin(), PersonRole::Admin).expect("a session");
        }
        assert!(sessions.find(&first, &gateway).is_none());
        sessions.end_of("ada");
        assert!(sessions.table().sessions.is_empty());
    }
}
