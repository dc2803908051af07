//! Another issuer: its keys, fetched when they are needed, and its tokens, checked with them.
//!
//! Whoever sends tokens can make the gateway fetch the keys, so that is bounded in time, size and frequency; keys that
//! were fetched stay good while their issuer cannot be reached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ring::digest::{SHA256, digest};
use sinew_fetch::{AllowedHosts, HttpUrl};
use sinew_gateway::{Principal, Role};
use sinew_policy::Glob;
use tokio::time::Instant;

use crate::jwt::{Expected, Token, TokenError};
use crate::keys::KeySet;
use crate::settings::{CallerRole, OAuthSettings};
use crate::web::DocumentSource;
use crate::{Refused, SignedIn};

/// How long keys are used without asking again.
const FRESH_TIME: Duration = Duration::from_secs(600);
/// How long they are used while the issuer cannot be reached.
const STALE_TIME: Duration = Duration::from_secs(86_400);
/// How often they are asked for because of a token with an unknown key.
const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(60);
/// How often they are asked for after a failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(10);
/// Bytes of the keys and of the metadata; those of large issuers have some ten thousand.
const MAX_DOCUMENT: usize = 256 << 10;
/// Tokens that were verified and need not be again for a while.
const MAX_VERIFIED: usize = 1_000;
/// How long a token counts as verified: a key that its issuer withdrew is not used for longer.
const VERIFIED_TIME: Duration = Duration::from_secs(300);

/// Who issues the tokens, and whom of its users the gateway takes.
pub(crate) struct ExternalIssuer {
    name: String,
    keys_address: Option<HttpUrl>,
    audiences: Vec<String>,
    name_claim: String,
    scope: String,
    allow: Vec<(Option<String>, Glob, CallerRole)>,
    source: Arc<dyn DocumentSource>,
    keys: Mutex<KnownKeys>,
    /// Held by whoever asks for keys, so that nobody else does.
    fetching: tokio::sync::Mutex<()>,
    verified: Mutex<HashMap<[u8; 32], VerifiedToken>>,
}

#[derive(Default)]
struct KnownKeys {
    set: Option<Arc<KeySet>>,
    fetched: Option<Instant>,
    /// When they were last asked for, and whether that worked.
    asked: Option<(Instant, bool)>,
}

struct VerifiedToken {
    signed_in: Arc<SignedIn>,
    until: Instant,
}

impl ExternalIssuer {
    pub(crate) fn new(
        settings: &OAuthSettings,
        name: &str,
        resource: &str,
        source: Arc<dyn DocumentSource>,
    ) -> Result<ExternalIssuer, String> {
        let allow = settings.allow.iter().map(|one| Ok((one.claim.clone(), one.is.parse()?, one.role)));
        Ok(ExternalIssuer {
            name: name.to_owned(),
            keys_address: settings.keys.as_deref().map(HttpUrl::parse).transpose()?,
            audiences: std::iter::once(resource.to_owned()).chain(settings.audiences.iter().cloned()).collect(),
            name_claim: settings.name_claim.clone(),
            scope: settings.scope.clone(),
            allow: allow.collect::<Result<_, String>>()?,
            source,
            keys: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
            verified: Mutex::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whose a token is, at a time in seconds of Unix time.
    pub(crate) async fn check(&self, text: &str, now: i64) -> Result<Arc<SignedIn>, Refused> {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        if let Some(known) = self.find_verified(&hash, now) {
            return Ok(known);
        }
        let invalid = |error: TokenError| Refused::Invalid(error.to_string());
        let token = Token::parse(text).map_err(invalid)?;
        // First what costs nothing, so that tokens of others fetch no keys.
        token.check(&Expected { issuer: &self.name, audiences: &self.audiences }, now).map_err(invalid)?;
        self.verify(&token).await?;
        let signed_in = Arc::new(self.caller(&token)?);
        self.keep_verified(hash, &signed_in, now);
        Ok(signed_in)
    }

    async fn verify(&self, token: &Token<'_>) -> Result<(), Refused> {
        let invalid = |error: TokenError| Refused::Invalid(error.to_string());
        let keys = match self.keys(FRESH_TIME) {
            Some(keys) => keys,
            None => self.fetch_keys(FRESH_TIME).await?,
        };
        match token.verify(&keys) {
            Err(TokenError::UnknownKey) => {
                let newer = self.fetch_keys(UNKNOWN_KEY_PAUSE).await?;
                token.verify(&newer).map_err(invalid)
            }
            verified => verified.map_err(invalid),
        }
    }

    /// The caller of a token that was verified.
    fn caller(&self, token: &Token<'_>) -> Result<SignedIn, Refused> {
        let nobody = |error: TokenError| Refused::Invalid(error.to_string());
        let subject = token.text("sub").ok_or(TokenError::Nobody).map_err(nobody)?;
        let name = token.name(&self.name_claim).map_err(nobody)?;
        if self.name_claim == "email" && token.denies("email_verified") {
            return Err(Refused::Unwelcome("the issuer has not verified the caller's address".to_owned()));
        }
        let scopes = token.scopes();
        if !self.scope.is_empty() && !scopes.contains(&self.scope.as_str()) {
            return Err(Refused::Scope);
        }
        let fits = |claim: &Option<String>, pattern: &Glob| match claim {
            None => pattern.matches(&name),
            Some(claim) if claim == "email" && token.denies("email_verified") => false,
            Some(claim) => token.texts(claim).into_iter().any(|text| pattern.matches(text)),
        };
        let roles = self.allow.iter().filter(|(claim, pattern, _)| fits(claim, pattern)).map(|(.., role)| *role);
        let role = match roles.max() {
            Some(CallerRole::Admin) => Role::Admin,
            Some(CallerRole::Client) => Role::Client,
            None => return Err(Refused::Unwelcome(format!("nothing in `[[oauth.allow]]` fits `{name}`"))),
        };
        // Each user of each client is a caller of their own.
        let client = token.text("client_id").or_else(|| token.text("azp")).unwrap_or_default();
        let id = sinew_tool::Digest::of(&sinew_tool::json!([self.name, subject, client])).short(16);
        Ok(SignedIn { who: Principal::oauth(&name, &id, role), expires: token.expires().unwrap_or_default() })
    }

    /// The keys, where they are younger than this.
    fn keys(&self, age: Duration) -> Option<Arc<KeySet>> {
        let known = self.known();
        known.set.clone().filter(|_| known.fetched.is_some_and(|fetched| fetched.elapsed() < age))
    }

    /// Keys that are younger than `pause` where the issuer can be asked for them, else older ones.
    async fn fetch_keys(&self, pause: Duration) -> Result<Arc<KeySet>, Refused> {
        let unavailable = || Refused::Unavailable(format!("the keys of {} cannot be fetched now", self.name));
        let _turn = self.fetching.lock().await;
        if let Some(keys) = self.keys(pause) {
            return Ok(keys);
        }
        let is_too_soon = match self.known().asked {
            Some((at, worked)) => at.elapsed() < if worked { UNKNOWN_KEY_PAUSE } else { FAILURE_PAUSE },
            None => false,
        };
        if is_too_soon {
            return self.keys(STALE_TIME).ok_or_else(unavailable);
        }
        let fetched = self.ask().await;
        let mut known = self.known();
        known.asked = Some((Instant::now(), fetched.is_ok()));
        match fetched {
            Ok(set) => {
                tracing::info!(issuer = self.name, keys = set.len(), "keys of the issuer fetched");
                let set = Arc::new(set);
                known.fetched = Some(Instant::now());
                known.set = Some(set.clone());
                Ok(set)
            }
            Err(why) => {
                drop(known);
                tracing::warn!(issuer = self.name, "the keys of the issuer cannot be fetched: {why}");
                self.keys(STALE_TIME).ok_or_else(unavailable)
            }
        }
    }

    async fn ask(&self) -> Result<KeySet, String> {
        let (url, allowed) = match &self.keys_address {
            Some(url) => (url.clone(), AllowedHosts::Any),
            None => self.discover().await?,
        };
        let text = self.source.fetch(url.clone(), allowed, MAX_DOCUMENT).await?;
        let keys = KeySet::parse(&text).map_err(|why| format!("{url}: {why}"))?;
        if keys.is_empty() { Err(format!("{url} has no key that can be used")) } else { Ok(keys) }
    }

    /// Where the issuer says its keys are. It may name another host, but none inside this network.
    async fn discover(&self) -> Result<(HttpUrl, AllowedHosts), String> {
        let issuer = HttpUrl::parse(&self.name)?;
        let path = issuer.path().trim_end_matches('/');
        let places = [
            format!("{path}/.well-known/openid-configuration"),
            format!("/.well-known/oauth-authorization-server{path}"),
        ];
        let mut problem = String::new();
        for place in places {
            let fetched = self.source.fetch(issuer.with_path(&place), AllowedHosts::Any, MAX_DOCUMENT).await;
            match fetched.and_then(|text| self.keys_in(&text, &issuer)) {
                Ok(found) => return Ok(found),
                Err(why) => problem = why,
            }
        }
        Err(problem)
    }

    fn keys_in(&self, metadata: &[u8], issuer: &HttpUrl) -> Result<(HttpUrl, AllowedHosts), String> {
        let metadata: serde_json::Value =
            serde_json::from_slice(metadata).map_err(|error| format!("the metadata is not JSON: {error}"))?;
        if metadata["issuer"].as_str() != Some(&self.name) {
            return Err(format!("the metadata is of another issuer than {}", self.name));
        }
        let address = metadata["jwks_uri"].as_str().ok_or("the metadata has no `jwks_uri`")?;
        let url = HttpUrl::parse(address)?;
        let place = |url: &HttpUrl| (url.is_encrypted(), url.host().to_owned(), url.port());
        match place(&url) == place(issuer) {
            true => Ok((url, AllowedHosts::Any)),
            false if url.is_encrypted() => Ok((url, AllowedHosts::Internet)),
            false => Err(format!("{url} is not encrypted")),
        }
    }

    fn find_verified(&self, hash: &[u8; 32], now: i64) -> Option<Arc<SignedIn>> {
        let verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        let known = verified.get(hash).filter(|known| known.until > Instant::now() && known.signed_in.expires > now);
        known.map(|known| known.signed_in.clone())
    }

    fn keep_verified(&self, hash: [u8; 32], signed_in: &Arc<SignedIn>, now: i64) {
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if verified.len() >= MAX_VERIFIED {
            let current = Instant::now();
            verified.retain(|_, known| known.until > current && known.signed_in.expires > now);
        }
        if verified.len() < MAX_VERIFIED {
            verified
                .insert(hash, VerifiedToken { signed_in: signed_in.clone(), until: Instant::now() + VERIFIED_TIME });
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, KnownKeys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};
    use sinew_tool::BoxFuture;
    use sinew_tool::settings::Setting;

    use super::*;
    use crate::jwt::tests::{ISSUER, NOW, TestIssuer, US, claims};

    /// Documents by address, and what was asked for.
    #[derive(Default)]
    struct Documents {
        texts: Mutex<HashMap<String, Value>>,
        asked: Mutex<Vec<(String, AllowedHosts)>>,
    }

    impl DocumentSource for Documents {
        fn fetch(&self, url: HttpUrl, allowed: AllowedHosts, _: usize) -> BoxFuture<'_, Result<Bytes, String>> {
            self.asked.lock().unwrap().push((url.whole(), allowed));
            let text = self.texts.lock().unwrap().get(&url.whole()).map(|value| value.to_string().into());
            Box::pin(async move {
                // An address without a document is silent until the time is over.
                match text {
                    Some(text) => Ok(text),
                    None => {
                        tokio::time::sleep(Duration::from_secs(5)).await;
                        Err("too slow".to_owned())
                    }
                }
            })
        }
    }

    impl Documents {
        fn put(&self, address: &str, value: Value) {
            self.texts.lock().unwrap().insert(address.to_owned(), value);
        }

        fn asked(&self) -> usize {
            self.asked.lock().unwrap().len()
        }
    }

    const KEYS: &str = "https://login.example/keys";

    fn issuer(documents: &Arc<Documents>, table: Value) -> ExternalIssuer {
        let mut settings = OAuthSettings::default();
        let mut all = json!({"issuer": ISSUER, "keys": KEYS, "allow": [{"is": "ada"}]});
        all.as_object_mut().unwrap().extend(table.as_object().unwrap().clone());
        all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        settings.read(all).unwrap();
        ExternalIssuer::new(&settings, ISSUER, US, documents.clone()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_fetched_once_and_again_when_they_are_old() {
        let (signer, documents) = (TestIssuer::new(), Arc::new(Documents::default()));
        documents.put(KEYS, signer.jwks());
        let issuer = issuer(&documents, json!({}));
        for number in 0..20 {
            let mut claims = claims();
            claims["jti"] = json!(number);
            let signed_in = issuer.check(&signer.token(&claims), NOW).await.unwrap();
            assert_eq!((signed_in.who.name.as_str(), signed_in.expires), ("ada", NOW + 300));
        }
        assert_eq!(documents.asked(), 1);
        tokio::time::advance(FRESH_TIME).await;
        issuer.check(&signer.token(&claims()), NOW).await.unwrap();
        assert_eq!(documents.asked(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_with_unknown_keys_fetch_keys_at_a_bounded_rate() {
        let (signer, documents) = (TestIssuer::new(), Arc::new(Documents::default()));
        documents.put(KEYS, json!({"keys": [signer.jwks()["keys"][1]]}));
        let issuer = issuer(&documents, json!({}));
        let text = signer.token(&claims());
        for _ in 0..50 {
            assert!(matches!(issuer.check(&text, NOW).await, Err(Refused::Invalid(_))));
        }
        assert_eq!(documents.asked(), 1);
        // The issuer has a new key; a minute later the gateway knows it.
        documents.put(KEYS, signer.jwks());
        assert!(issuer.check(&text, NOW).await.is_err());
        tokio::time::advance(UNKNOWN_KEY_PAUSE).await;
        assert!(issuer.check(&text, NOW).await.is_ok());
        assert_eq!(documents.asked(), 2);
        // Tokens that are wrong in themselves fetch nothing.
        tokio::time::advance(FRESH_TIME).await;
        let mut other = claims();
        other["aud"] = json!("https://other.example");
        assert!(issuer.check(&signer.token(&other), NOW).await.is_err());
        assert_eq!(documents.asked(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_issuer_costs_one_wait_and_known_keys_stay_good_for_a_day() {
        let (signer, documents) = (TestIssuer::new(), Arc::new(Documents::default()));
        let issuer = issuer(&documents, json!({}));
        let text = signer.token(&claims());
        let began = Instant::now();
        for _ in 0..50 {
            assert!(matches!(issuer.check(&text, NOW).await, Err(Refused::Unavailable(_))));
        }
        assert_eq!((documents.asked(), began.elapsed().as_secs()), (1, 5));
        tokio::time::advance(FAILURE_PAUSE).await;
        documents.put(KEYS, signer.jwks());
        issuer.check(&text, NOW).await.unwrap();
        documents.texts.lock().unwrap().clear();
        tokio::time::advance(STALE_TIME / 2).await;
        issuer.check(&text, NOW).await.unwrap();
        tokio::time::advance(STALE_TIME / 2).await;
        assert!(matches!(issuer.check(&text, NOW).await, Err(Refused::Unavailable(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn documents_that_lie_are_no_keys() {
        let (signer, documents) = (TestIssuer::new(), Arc::new(Documents::default()));
        let text = signer.token(&claims());
        for lie in [json!({}), json!({"keys": []}), json!("x"), json!({"keys": [{"kty": "oct", "k": "AAAA"}]})] {
            documents.put(KEYS, lie.clone());
            let issuer = issuer(&documents, json!({}));
            assert!(matches!(issuer.check(&text, NOW).await, Err(Refused::Unavailable(_))), "{lie}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_issuer_says_where_its_keys_are_but_not_inside_this_network() {
        let metadata = "https://login.example/.well-known/openid-configuration";
        let signer = TestIssuer::new();
        let check = async |document: Value| {
            let documents = Arc::new(Documents::default());
            documents.put(metadata, document);
            documents.put(KEYS, signer.jwks());
            documents.put("https://keys.example/", signer.jwks());
            let issuer = issuer(&documents, json!({"keys": null}));
            let checked = issuer.check(&signer.token(&claims()), NOW).await;
            let asked = documents.asked.lock().unwrap().last().cloned();
            (checked.is_ok(), asked)
        };
        let own = check(json!({"issuer": ISSUER, "jwks_uri": KEYS})).await;
        assert_eq!(own, (true, Some((KEYS.to_owned(), AllowedHosts::Any))));
        let other = check(json!({"issuer": ISSUER, "jwks_uri": "https://keys.example/"})).await;
        assert_eq!(other, (true, Some(("https://keys.example/".to_owned(), AllowedHosts::Internet))));
        for lie in [
            json!({"issuer": "https://login.example/", "jwks_uri": KEYS}),
            json!({"issuer": "https://evil.example", "jwks_uri": KEYS}),
            json!({"issuer": ISSUER, "jwks_uri": "http://127.0.0.1:7300/keys"}),
            json!({"issuer": ISSUER, "jwks_uri": "file:///etc/passwd"}),
            json!({"issuer": ISSUER}),
        ] {
            let (worked, asked) = check(lie.clone()).await;
            assert!(!worked && asked.is_some_and(|(address, _)| address.contains("/.well-known/")), "{lie}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_callers_that_the_configuration_names_come_in() {
        let (signer, documents) = (TestIssuer::new(), Arc::new(Documents::default()));
        documents.put(KEYS, signer.jwks());
        let check = async |table: Value, extra: Value| {
            let issuer = issuer(&documents, table);
            let mut claims = claims();
            claims.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            issuer.check(&signer.token(&claims), NOW).await.map(|signed_in| {
                let who = &signed_in.who;
                assert!(who.revocable && who.id.starts_with("oauth:"), "{who:?}");
                (who.name.clone(), who.role.clone())
            })
        };
        let ada = |role| Ok(("ada".to_owned(), role));
        assert_eq!(check(json!({}), json!({})).await, ada(Role::Client));
        assert!(matches!(check(json!({}), json!({"sub": "eve"})).await, Err(Refused::Unwelcome(_))));
        assert!(matches!(check(json!({}), json!({"sub": null})).await, Err(Refused::Invalid(_))));
        assert_eq!(check(json!({}), json!({"scope": "openid"})).await, Err(Refused::Scope));
        assert_eq!(check(json!({}), json!({"scope": null, "scp": ["tools"]})).await, ada(Role::Client));
        assert_eq!(check(json!({"scope": ""}), json!({"scope": null})).await, ada(Role::Client));
        let groups = json!({"allow": [{"claim": "groups", "is": "family"}, {"claim": "groups", "is": "keepers", "role": "admin"}]});
        assert_eq!(check(groups.clone(), json!({"groups": ["family", "keepers"]})).await, ada(Role::Admin));
        assert_eq!(check(groups.clone(), json!({"groups": "family"})).await, ada(Role::Client));
        assert!(check(groups, json!({"groups": ["others"]})).await.is_err());
        let mail = json!({"name-claim": "email", "allow": [{"is": "*@home.example"}]});
        let of = |address: &str, verified: bool| json!({"email": address, "email_verified": verified});
        assert!(check(mail.clone(), of("ada@home.example", true)).await.is_ok());
        assert!(check(mail.clone(), of("ada@home.example", false)).await.is_err());
        assert!(check(mail.clone(), of("ada@home.example.evil.example", true)).await.is_err());
        assert!(check(mail, json!({})).await.is_err());
        let audience = json!({"audiences": ["client-7"]});
        assert!(check(audience, json!({"aud": "client-7"})).await.is_ok());
        assert!(check(json!({}), json!({"aud": "client-7"})).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_verified_token_ends_with_its_time() {
        let (signer, documents) = (TestIssuer::new(), Arc::new(Documents::default()));
        documents.put(KEYS, signer.jwks());
        let issuer = issuer(&documents, json!({}));
        let text = signer.token(&claims());
        issuer.check(&text, NOW).await.unwrap();
        assert!(issuer.check(&text, NOW + 300 + 60).await.is_err());
        // A key that its issuer withdrew is good for some minutes at most.
        documents.put(KEYS, json!({"keys": [signer.jwks()["keys"][1]]}));
        tokio::time::advance(FRESH_TIME).await;
        assert!(issuer.check(&text, NOW).await.is_err());
    }
}
