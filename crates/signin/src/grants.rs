//! What people allowed: codes, and the sign-ins that come of them, with their tokens. Time is an argument, in
//! milliseconds of Unix time.
//!
//! Of every secret only a hash is kept. A refresh token is good once: its successor comes with the same answer, and one
//! that is shown again ends the sign-in, because two then have it. An earlier token is known by its seal, so that
//! nothing must be kept of it.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::hmac;
use serde::{Deserialize, Serialize};
use sinew_tool::{ErrorKind, ToolError};

use crate::OAuthError;
use crate::clients::Client;

const SECOND: i64 = 1_000;
const DAY: i64 = 86_400 * SECOND;
/// A code goes from the browser to the client at once.
const CODE_TIME: i64 = 60 * SECOND;
/// How long a code is remembered that was used, so that its second use is noticed.
const USED_CODE_TIME: i64 = 600 * SECOND;
/// Codes that were given and not used; the oldest are forgotten.
const MAX_CODES: usize = 100;
/// How long an access token is good.
pub(crate) const ACCESS_TIME: i64 = 3_600 * SECOND;
/// A sign-in that was not renewed for so long ends.
const REFRESH_TIME: i64 = 30 * DAY;
/// Sign-ins of all people, and of one. Beyond it, the one that was unused longest ends.
const MAX_GRANTS: usize = 500;
const MAX_GRANTS_EACH: usize = 50;
/// Clients that registered themselves.
const MAX_REGISTRATIONS: usize = 100;
/// A client that registered itself and is not connected is forgotten after a day.
const UNUSED_REGISTRATION_TIME: i64 = DAY;
/// Where there are too many, those that are older than this make room: a person signs in within minutes.
const YOUNG_REGISTRATION_TIME: i64 = 600 * SECOND;
/// Registrations of all clients in a minute.
const REGISTRATIONS_EACH_MINUTE: usize = 20;

const ACCESS: &str = "sna_";
const REFRESH: &str = "snr_";

type Hash = String;

/// What is kept in the file.
#[derive(Serialize, Deserialize)]
pub(crate) struct Book {
    format: u32,
    /// Seals refresh tokens.
    key: String,
    registrations: Vec<Registration>,
    grants: Vec<Grant>,
    #[serde(skip)]
    codes: HashMap<Hash, Code>,
    /// When clients registered in the last minute.
    #[serde(skip)]
    registered: Vec<i64>,
}

/// The form of the file that this version reads and writes.
const FORMAT: u32 = 1;

/// The parts of a book that are in its file.
pub(crate) struct KeptParts {
    registrations: Vec<Registration>,
    grants: Vec<Grant>,
}

/// A client that registered itself.
#[derive(Clone, Serialize, Deserialize)]
struct Registration {
    id: String,
    name: String,
    redirects: Vec<String>,
    created: i64,
}

/// A sign-in: a client that a person let in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Grant {
    pub(crate) id: String,
    pub(crate) person: String,
    pub(crate) client_id: String,
    pub(crate) client_name: String,
    /// The host by which the client is known.
    pub(crate) place: String,
    pub(crate) resource: String,
    pub(crate) scope: String,
    pub(crate) created: i64,
    /// When its tokens were last renewed or, while the gateway runs, used.
    pub(crate) last_use: i64,
    /// How often its refresh token was replaced.
    turn: u64,
    refresh: Hash,
    refresh_ends: i64,
    /// The newest access token first; the one before it is still good, for requests that are on their way.
    access: Vec<AccessToken>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct AccessToken {
    hash: Hash,
    ends: i64,
}

/// What a person agreed to.
#[derive(Clone, Debug)]
pub(crate) struct Consent {
    pub(crate) person: String,
    pub(crate) client_id: String,
    pub(crate) client_name: String,
    pub(crate) place: String,
    pub(crate) redirect: String,
    /// SHA-256 of the verifier, in base64.
    pub(crate) challenge: String,
    pub(crate) resource: String,
    pub(crate) scope: String,
}

struct Code {
    consent: Consent,
    ends: i64,
    /// Used already, for this sign-in where it worked.
    used: Option<Option<String>>,
}

/// New tokens of a client.
#[derive(Debug)]
pub(crate) struct NewTokens {
    pub(crate) access: String,
    pub(crate) refresh: String,
    pub(crate) scope: String,
}

/// What a request of a client came to, and the sign-ins that it ended.
pub(crate) type Settled<T> = (Result<T, OAuthError>, Vec<Grant>);

impl Book {
    pub(crate) fn new() -> Result<Book, ToolError> {
        Ok(Book {
            format: FORMAT,
            key: random()?,
            registrations: Vec::new(),
            grants: Vec::new(),
            codes: HashMap::new(),
            registered: Vec::new(),
        })
    }

    pub(crate) fn parse(text: &[u8]) -> Result<Book, String> {
        let book: Book = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        match book.format {
            FORMAT => Ok(book),
            other => Err(format!("it has the format {other}, and this version reads {FORMAT}")),
        }
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Ends what is over.
    pub(crate) fn tidy(&mut self, now: i64) -> Vec<Grant> {
        self.codes.retain(|_, code| now < code.ends + USED_CODE_TIME);
        let connected = |id: &str| self.grants.iter().any(|grant| grant.client_id == id);
        self.registrations.retain(|one| connected(&one.id) || now - one.created < UNUSED_REGISTRATION_TIME);
        self.end_where(|grant| grant.refresh_ends <= now)
    }

    pub(crate) fn registered(&self, id: &str) -> Option<Client> {
        let one = self.registrations.iter().find(|one| one.id == id)?;
        Some(Client { id: one.id.clone(), name: one.name.clone(), redirects: one.redirects.clone(), host: None })
    }

    /// Keeps a client that registers itself, where there is room.
    pub(crate) fn register(&mut self, client: &Client, now: i64) -> Result<(), OAuthError> {
        self.registered.retain(|at| (0..60 * SECOND).contains(&(now - at)));
        let busy = |message: &str| Err(OAuthError::busy(message));
        if self.registered.len() >= REGISTRATIONS_EACH_MINUTE {
            return busy("too many clients register at the moment; try again in a minute");
        }
        if self.registrations.len() >= MAX_REGISTRATIONS {
            let connected = |id: &str| self.grants.iter().any(|grant| grant.client_id == id);
            let is_over = |one: &Registration| !connected(&one.id) && now - one.created >= YOUNG_REGISTRATION_TIME;
            let oldest = self.registrations.iter().enumerate().filter(|(_, one)| is_over(one));
            match oldest.min_by_key(|(_, one)| one.created).map(|(place, _)| place) {
                Some(place) => drop(self.registrations.remove(place)),
                None => return busy("too many clients are registered; try again later"),
            }
        }
        self.registered.push(now);
        let Client { id, name, redirects, .. } = client.clone();
        self.registrations.push(Registration { id, name, redirects, created: now });
        Ok(())
    }

    /// A code for what a person agreed to. It is not kept in the file: a restart is longer than its time.
    pub(crate) fn issue_code(&mut self, consent: Consent, now: i64) -> Result<String, ToolError> {
        let code = format!("snc_{}", random()?);
        let unused = self.codes.iter().filter(|(_, code)| code.used.is_none());
        if unused.clone().count() >= MAX_CODES
            && let Some(oldest) = unused.min_by_key(|(_, code)| code.ends).map(|(hash, _)| hash.clone())
        {
            self.codes.remove(&oldest);
        }
        self.codes.insert(hash(&code), Code { consent, ends: now + CODE_TIME, used: None });
        Ok(code)
    }

    /// Exchanges a code for tokens. Whatever is wrong, the code is used up; a second use ends what came of the first.
    pub(crate) fn redeem(&mut self, wanted: &Redeem<'_>, now: i64) -> Settled<NewTokens> {
        let refused = |why: &str| Err(OAuthError::grant(why));
        let Some(code) = self.codes.get_mut(&hash(wanted.code)) else {
            return (refused("the code is not known; sign in again"), Vec::new());
        };
        if let Some(before) = code.used.clone() {
            let ended = before.map(|id| self.end_where(|grant| grant.id == id)).unwrap_or_default();
            return (refused("the code was used before; what came of it is revoked"), ended);
        }
        code.used = Some(None);
        let consent = code.consent.clone();
        if code.ends <= now {
            return (refused("the code has expired; sign in again"), Vec::new());
        }
        if let Err(why) = wanted.check(&consent) {
            return (Err(why), Vec::new());
        }
        let made = self.open_grant(&consent, now);
        match made {
            Ok((tokens, id, ended)) => {
                if let Some(code) = self.codes.get_mut(&hash(wanted.code)) {
                    code.used = Some(Some(id));
                }
                (Ok(tokens), ended)
            }
            Err(error) => (Err(OAuthError::server(&error.message)), Vec::new()),
        }
    }

    fn open_grant(&mut self, consent: &Consent, now: i64) -> Result<(NewTokens, String, Vec<Grant>), ToolError> {
        let id = random()?[..16].to_owned();
        let mut grant = Grant {
            id: id.clone(),
            person: consent.person.clone(),
            client_id: consent.client_id.clone(),
            client_name: consent.client_name.clone(),
            place: consent.place.clone(),
            resource: consent.resource.clone(),
            scope: consent.scope.clone(),
            created: now,
            last_use: now,
            turn: 0,
            refresh: String::new(),
            refresh_ends: 0,
            access: Vec::new(),
        };
        let tokens = grant.renew(&self.key, now)?;
        let mut ended = Vec::new();
        for (of_person, most) in [(true, MAX_GRANTS_EACH), (false, MAX_GRANTS)] {
            let counted: Vec<&Grant> =
                self.grants.iter().filter(|one| !of_person || one.person == consent.person).collect();
            if counted.len() >= most
                && let Some(oldest) = counted.iter().min_by_key(|one| one.last_use).map(|one| one.id.clone())
            {
                ended.extend(self.end_where(|one| one.id == oldest));
            }
        }
        self.grants.push(grant);
        Ok((tokens, id, ended))
    }

    /// Exchanges a refresh token for new tokens. One that was exchanged before ends the sign-in.
    pub(crate) fn refresh(&mut self, wanted: &Refresh<'_>, now: i64) -> Settled<NewTokens> {
        let refused = |why: &str| Err(OAuthError::grant(why));
        let unknown = (refused("the refresh token is not known; sign in again"), Vec::new());
        let Some((id, turn)) = read_seal(&self.key, wanted.token) else { return unknown };
        let Some(grant) = self.grants.iter_mut().find(|grant| grant.id == id) else { return unknown };
        if turn < grant.turn {
            let ended = self.end_where(|grant| grant.id == id);
            return (refused("the refresh token was used before; the sign-in is revoked, sign in again"), ended);
        }
        if turn != grant.turn || grant.refresh != hash(wanted.token) {
            return unknown;
        }
        if grant.client_id != wanted.client_id {
            return (refused("the refresh token belongs to another client"), Vec::new());
        }
        if grant.refresh_ends <= now {
            let ended = self.end_where(|grant| grant.id == id);
            return (refused("the sign-in has expired; sign in again"), ended);
        }
        if let Err(why) = wanted.check(grant) {
            return (Err(why), Vec::new());
        }
        let before = grant.clone();
        match grant.renew(&self.key, now) {
            Ok(tokens) => (Ok(tokens), Vec::new()),
            Err(error) => {
                *grant = before;
                (Err(OAuthError::server(&error.message)), Vec::new())
            }
        }
    }

    /// Whose an access token is, and until when.
    pub(crate) fn find(&mut self, token: &str, now: i64) -> Option<(Grant, i64)> {
        if !token.starts_with(ACCESS) {
            return None;
        }
        let hash = hash(token);
        let of = |grant: &Grant| grant.access.iter().find(|one| one.hash == hash && one.ends > now).map(|one| one.ends);
        let (grant, ends) = self.grants.iter_mut().find_map(|grant| of(grant).map(|ends| (grant, ends)))?;
        grant.last_use = now;
        Some((grant.clone(), ends))
    }

    /// Ends the sign-in of a token of any kind, if there is one (RFC 7009).
    pub(crate) fn end_of(&mut self, token: &str) -> Vec<Grant> {
        let (seal, hash) = (read_seal(&self.key, token), hash(token));
        self.end_where(|grant| {
            seal.as_ref().is_some_and(|(id, _)| *id == grant.id) || grant.access.iter().any(|one| one.hash == hash)
        })
    }

    pub(crate) fn end_where(&mut self, is_over: impl Fn(&Grant) -> bool) -> Vec<Grant> {
        let (ended, kept) = std::mem::take(&mut self.grants).into_iter().partition(is_over);
        self.grants = kept;
        ended
    }

    pub(crate) fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Forgets codes of a person who may not sign in any more.
    pub(crate) fn forget_codes(&mut self, is_over: impl Fn(&Consent) -> bool) {
        self.codes.retain(|_, code| code.used.is_some() || !is_over(&code.consent));
    }

    /// What a change can be undone with.
    pub(crate) fn kept(&self) -> KeptParts {
        KeptParts { registrations: self.registrations.clone(), grants: self.grants.clone() }
    }

    pub(crate) fn restore(&mut self, before: KeptParts) {
        self.registrations = before.registrations;
        self.grants = before.grants;
    }
}

impl Grant {
    /// Until when the client can renew its tokens.
    pub(crate) fn ends(&self) -> i64 {
        self.refresh_ends
    }

    fn renew(&mut self, key: &str, now: i64) -> Result<NewTokens, ToolError> {
        let access = format!("{ACCESS}{}", random()?);
        let turn = self.turn + 1;
        let refresh = seal(key, &self.id, turn, &random()?);
        self.turn = turn;
        self.refresh = hash(&refresh);
        self.refresh_ends = now + REFRESH_TIME;
        self.last_use = now;
        self.access.insert(0, AccessToken { hash: hash(&access), ends: now + ACCESS_TIME });
        self.access.truncate(2);
        Ok(NewTokens { access, refresh, scope: self.scope.clone() })
    }
}

/// The request for the tokens of a code.
pub(crate) struct Redeem<'a> {
    pub(crate) code: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) redirect: Option<&'a str>,
    pub(crate) verifier: &'a str,
    pub(crate) resource: Option<&'a str>,
}

impl Redeem<'_> {
    fn check(&self, consent: &Consent) -> Result<(), OAuthError> {
        if self.client_id != consent.client_id {
            return Err(OAuthError::grant("the code belongs to another client"));
        }
        if self.redirect.is_some_and(|redirect| redirect != consent.redirect) {
            return Err(OAuthError::grant("the code was sent to another `redirect_uri`"));
        }
        if !is_verifier(self.verifier) || challenge_of(self.verifier) != consent.challenge {
            return Err(OAuthError::grant("`code_verifier` does not fit the `code_challenge`"));
        }
        check_resource(self.resource, &consent.resource)
    }
}

/// The request for new tokens.
pub(crate) struct Refresh<'a> {
    pub(crate) token: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) scope: Option<&'a str>,
    pub(crate) resource: Option<&'a str>,
}

impl Refresh<'_> {
    fn check(&self, grant: &Grant) -> Result<(), OAuthError> {
        let is_granted = |scope: &str| grant.scope.split_ascii_whitespace().any(|granted| granted == scope);
        if !self.scope.unwrap_or_default().split_ascii_whitespace().all(is_granted) {
            return Err(OAuthError::new("invalid_scope", "a refresh cannot widen the scope; sign in again"));
        }
        check_resource(self.resource, &grant.resource)
    }
}

/// Tokens are for this gateway's endpoint and for nothing else. A slash at the end makes no other resource.
pub(crate) fn check_resource(wanted: Option<&str>, own: &str) -> Result<(), OAuthError> {
    match wanted {
        Some(wanted) if wanted.trim_end_matches('/') != own => {
            Err(OAuthError::new("invalid_target", &format!("this gateway issues tokens for {own} only")))
        }
        _ => Ok(()),
    }
}

/// What RFC 7636 allows as a verifier.
fn is_verifier(text: &str) -> bool {
    (43..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

pub(crate) fn challenge_of(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

/// `snr_ID_TURN_RANDOM_SEAL`.
fn seal(key: &str, id: &str, turn: u64, random: &str) -> String {
    let text = format!("{REFRESH}{id}_{turn}_{random}");
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()), text.as_bytes());
    format!("{text}_{}", hex(tag.as_ref()))
}

/// The sign-in and the turn of a refresh token that this gateway gave out, at any time.
fn read_seal(key: &str, token: &str) -> Option<(String, u64)> {
    let (text, tag) = token.strip_prefix(REFRESH).filter(|_| token.len() <= 256)?.rsplit_once('_')?;
    let tag: Vec<u8> = (0..32)
        .map(|at| tag.get(2 * at..2 * at + 2))
        .map(|pair| u8::from_str_radix(pair?, 16).ok())
        .collect::<Option<_>>()?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    hmac::verify(&key, format!("{REFRESH}{text}").as_bytes(), &tag).ok()?;
    let mut parts = text.split('_');
    let (id, turn) = (parts.next()?, parts.next()?.parse().ok()?);
    Some((id.to_owned(), turn))
}

fn hash(secret: &str) -> Hash {
    hex(digest(&SHA256, secret.as_bytes()).as_ref())
}

/// 256 random bits in hex.
pub(crate) fn random() -> Result<String, ToolError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
