//! The gateway as the issuer of its own tokens, for the people of its console.
//!
//! Pages are the console's, and addresses the front's; here is what they mean.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use sinew_gateway::private_files::write_private_synced;
use sinew_gateway::{Gateway, Principal, Role};
use sinew_tool::text::clean_line;
use sinew_tool::{ErrorKind, ToolError};

use crate::address::PublicAddress;
use crate::clients::{self, Client};
use crate::documents::ClientDocuments;
use crate::grants::{self, ACCESS_TIME, Book, Consent, Grant, NewTokens, Redeem, Refresh, Settled};
use crate::redirect::{Place, RedirectAddress};
use crate::settings::{ConnectRole, OAuthSettings};
use crate::web::DocumentSource;
use crate::{OAuthError, SignedIn, now};

/// Characters of what a client wants back; some put a whole signed token there.
const MAX_STATE: usize = 4_096;
/// The file in the state directory.
const FILE: &str = "sign-ins.json";

/// Names and values of a query or a form.
pub type Pairs = [(String, String)];

pub struct AuthorizationServer {
    address: PublicAddress,
    scope: String,
    role: ConnectRole,
    registration: bool,
    documents: ClientDocuments,
    path: Option<PathBuf>,
    book: Mutex<Book>,
    gateway: Gateway,
}

/// A sign-in in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInView {
    pub id: String,
    pub person: String,
    /// What the client calls itself.
    pub client: String,
    /// The host by which it is known.
    pub place: String,
    pub scope: String,
    /// In milliseconds of Unix time, like those below.
    pub created: i64,
    pub last_use: i64,
    pub ends: i64,
}

/// What a client asks a person for, checked.
#[derive(Clone, Debug)]
pub struct ConsentRequest {
    pub client: Client,
    pub redirect: RedirectAddress,
    /// The host by which the client is known.
    pub place: String,
    challenge: String,
    scope: String,
    state: Option<String>,
}

impl ConsentRequest {
    /// Whether any program on the machine of the browser may get the answer.
    pub fn is_local(&self) -> bool {
        self.redirect.place != Place::Web
    }
}

/// Why nobody is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestProblem {
    pub message: String,
    /// Where the client learns of it, once the person wants to go back there: the host and the address. Only for
    /// addresses that the client named before.
    pub back: Option<(String, String)>,
}

impl AuthorizationServer {
    pub(crate) fn open(
        settings: &OAuthSettings,
        address: PublicAddress,
        state: Option<&Path>,
        source: Arc<dyn DocumentSource>,
        gateway: Gateway,
    ) -> Result<AuthorizationServer, String> {
        let path = state.map(|folder| folder.join(FILE));
        let book = match path.as_deref().map(std::fs::read) {
            None => Book::new().map_err(|error| error.message)?,
            Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                Book::new().map_err(|error| error.message)?
            }
            Some(read) => {
                read.map_err(|error| error.to_string()).and_then(|text| Book::parse(&text)).map_err(|why| {
                    let path = path.as_deref().unwrap_or(Path::new(FILE)).display();
                    format!("cannot read {path}: {why}; move the file away, and all clients sign in again")
                })?
            }
        };
        let server = AuthorizationServer {
            address,
            scope: settings.scope.clone(),
            role: settings.role,
            registration: settings.registration && settings.clients.is_empty(),
            documents: ClientDocuments::new(source, settings.clients.clone()),
            path,
            book: Mutex::new(book),
            gateway,
        };
        server.tidy(&mut server.book(), now());
        Ok(server)
    }

    /// The least role of people who may let a client in.
    pub fn role(&self) -> ConnectRole {
        self.role
    }

    pub(crate) fn issuer(&self) -> String {
        self.address.issuer()
    }

    /// What clients must know of the issuer, by RFC 8414.
    pub(crate) fn metadata(&self) -> Value {
        let mut metadata = json!({
            "issuer": self.issuer(),
            "authorization_endpoint": self.address.at("/oauth/authorize"),
            "token_endpoint": self.address.at("/oauth/token"),
            "revocation_endpoint": self.address.at("/oauth/revoke"),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "client_id_metadata_document_supported": true,
            "authorization_response_iss_parameter_supported": true,
            "scopes_supported": [self.scope],
        });
        if self.registration {
            metadata["registration_endpoint"] = json!(self.address.at("/oauth/register"));
        }
        metadata
    }

    /// Checks what a client wants to ask a person for.
    pub async fn check_request(&self, pairs: &Pairs) -> Result<ConsentRequest, RequestProblem> {
        let page = |message: String| RequestProblem { message, back: None };
        let text = |name: &str| one(pairs, name).map_err(&page);
        let id = text("client_id")?.ok_or_else(|| page("the request has no `client_id`".to_owned()))?;
        let client = self.client(id).await.map_err(&page)?;
        let address = match (text("redirect_uri")?, client.redirects.as_slice()) {
            (Some(address), _) => address,
            (None, [only]) => only,
            (None, _) => return Err(page("the request has no `redirect_uri`".to_owned())),
        };
        let redirect = RedirectAddress::parse(address).map_err(&page)?;
        if !redirect.is_one_of(&client.redirects) {
            return Err(page("the request has a `redirect_uri` that the client has not named before".to_owned()));
        }
        // From here on the client can be told.
        let state = text("state")?.filter(|state| state.len() <= MAX_STATE).map(str::to_owned);
        let back = |code: &str, message: &str| {
            let address = self.answer(&redirect, state.as_deref(), &[("error", code), ("error_description", message)]);
            RequestProblem { message: message.to_owned(), back: Some((redirect.host.clone(), address)) }
        };
        let invalid = |message: &str| back("invalid_request", message);
        let text = |name: &str| one(pairs, name).map_err(|message| back("invalid_request", &message));
        if text("state")?.is_some_and(|state| state.len() > MAX_STATE) {
            return Err(invalid("`state` is too long"));
        }
        if text("response_type")? != Some("code") {
            return Err(back("unsupported_response_type", "`response_type` must be `code`"));
        }
        // Without a method, `plain` is meant, with which whoever reads the request has the verifier.
        if text("code_challenge_method")? != Some("S256") {
            return Err(invalid("`code_challenge_method` must be `S256`"));
        }
        let is_digest = |text: &&str| {
            text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let Some(challenge) = text("code_challenge")?.filter(is_digest) else {
            return Err(invalid("`code_challenge` must be a SHA-256 in base64url"));
        };
        if let Err(error) = grants::check_resource(text("resource")?, &self.address.resource()) {
            return Err(back(error.code, &error.message));
        }
        let wants = |scope: &str| scope.split_ascii_whitespace().any(|scope| scope == self.scope);
        if text("scope")?.is_some_and(|scope| !scope.trim().is_empty() && !wants(scope)) {
            return Err(back("invalid_scope", &format!("the scope of this gateway is `{}`", self.scope)));
        }
        let place = client.place(&redirect);
        let challenge = challenge.to_owned();
        Ok(ConsentRequest { client, redirect, place, challenge, scope: self.scope.clone(), state })
    }

    async fn client(&self, id: &str) -> Result<Client, String> {
        if let Some(url) = clients::document_address(id) {
            return self.documents.client(id, url?).await;
        }
        let known = self.book().registered(id).filter(|_| self.registration);
        known.ok_or_else(|| "the client is not registered here, or not any more; connect it anew".to_owned())
    }

    /// A person lets the client in: the address that leads back to it.
    pub fn allow(&self, request: &ConsentRequest, who: &Principal) -> Result<String, ToolError> {
        let consent = Consent {
            person: who.name.clone(),
            client_id: request.client.id.clone(),
            client_name: request.client.name.clone(),
            place: request.place.clone(),
            redirect: request.redirect.text().to_owned(),
            challenge: request.challenge.clone(),
            resource: self.address.resource(),
            scope: request.scope.clone(),
        };
        let code = self.book().issue_code(consent, now())?;
        let details = json!({"client": request.client.name, "at": request.place, "client_id": request.client.id});
        self.gateway.record_change(who, "connect_client", None, details, None);
        Ok(self.answer(&request.redirect, request.state.as_deref(), &[("code", &code)]))
    }

    /// A person does not: the address that leads back to the client.
    pub fn deny(&self, request: &ConsentRequest, who: &Principal) -> String {
        let details = json!({"client": request.client.name, "at": request.place, "client_id": request.client.id});
        self.gateway.record_change(who, "connect_client", None, details, Some(ErrorKind::PermissionDenied));
        self.answer(&request.redirect, request.state.as_deref(), &[("error", "access_denied")])
    }

    /// Every answer names the issuer, so that a client that knows several mixes none up (RFC 9207).
    fn answer(&self, redirect: &RedirectAddress, state: Option<&str>, pairs: &[(&str, &str)]) -> String {
        let issuer = self.issuer();
        let state = state.map(|state| ("state", state));
        let all: Vec<(&str, &str)> = pairs.iter().copied().chain(state).chain([("iss", issuer.as_str())]).collect();
        redirect.with(&all)
    }

    /// Answers a request for tokens. `may_connect` says whether a person still may let clients in.
    pub fn token(&self, form: &Pairs, may_connect: impl Fn(&str) -> bool) -> Result<Value, OAuthError> {
        let now = now();
        let text = |name: &str| one(form, name).map_err(|message| OAuthError::new("invalid_request", &message));
        let needed = |name: &str| {
            text(name)?.ok_or_else(|| OAuthError::new("invalid_request", &format!("the form has no `{name}`")))
        };
        let (client_id, resource) = (needed("client_id")?, text("resource")?);
        let tokens = match needed("grant_type")? {
            "authorization_code" => {
                let wanted = Redeem {
                    code: needed("code")?,
                    client_id,
                    redirect: text("redirect_uri")?,
                    verifier: needed("code_verifier")?,
                    resource,
                };
                self.exchange(now, "code", |book| {
                    book.forget_codes(|consent| !may_connect(&consent.person));
                    book.redeem(&wanted, now)
                })?
            }
            "refresh_token" => {
                let wanted = Refresh { token: needed("refresh_token")?, client_id, scope: text("scope")?, resource };
                self.end_people(|person| !may_connect(person));
                self.exchange(now, "refresh token", |book| book.refresh(&wanted, now))?
            }
            _ => {
                let message = "`grant_type` must be `authorization_code` or `refresh_token`";
                return Err(OAuthError::new("unsupported_grant_type", message));
            }
        };
        Ok(json!({
            "access_token": tokens.access,
            "token_type": "Bearer",
            "expires_in": ACCESS_TIME / 1_000,
            "refresh_token": tokens.refresh,
            "scope": tokens.scope,
        }))
    }

    /// Changes the book and keeps that, or changes nothing. What was ended stays so in any case.
    fn exchange(
        &self,
        now: i64,
        what: &str,
        change: impl FnOnce(&mut Book) -> Settled<NewTokens>,
    ) -> Result<NewTokens, OAuthError> {
        let mut book = self.book();
        self.tidy(&mut book, now);
        let before = book.kept();
        let (result, ended) = change(&mut book);
        if let Err(error) = &result {
            // Anybody may send wrong ones; what ends a sign-in is reported.
            tracing::debug!("a {what} was refused: {}", error.message);
        }
        if result.is_err() && ended.is_empty() {
            return result;
        }
        match (self.write(&book), result) {
            (Ok(()), result) => {
                drop(book);
                self.report(ended, &format!("a {what} was used twice"));
                result
            }
            (Err(error), Ok(_)) => {
                book.restore(before);
                Err(OAuthError::server(&error.message))
            }
            (Err(error), Err(refused)) => {
                drop(book);
                tracing::error!("a revoked sign-in comes back with a restart: {}", error.message);
                self.report(ended, &format!("a {what} was used twice"));
                Err(refused)
            }
        }
    }

    /// Registers a client (RFC 7591).
    pub fn register(&self, body: &[u8]) -> Result<Value, OAuthError> {
        if !self.registration {
            let message = "this gateway takes clients that publish a document about themselves, and registers none";
            return Err(OAuthError::new("access_denied", message));
        }
        let now = now();
        let id = format!("client_{}", &grants::random().map_err(|error| OAuthError::server(&error.message))?[..32]);
        let metadata = |message: String| OAuthError::new("invalid_client_metadata", &message);
        let client = clients::parse_registration(id, body).map_err(metadata)?;
        let mut book = self.book();
        self.tidy(&mut book, now);
        let before = book.kept();
        book.register(&client, now)?;
        if let Err(error) = self.write(&book) {
            book.restore(before);
            return Err(OAuthError::server(&error.message));
        }
        tracing::info!(client = clean_line(&client.name, 64), "a client registered itself");
        Ok(clients::registration_answer(&client, now / 1_000))
    }

    /// Ends the sign-in of a token, if there is one. The answer says nothing about tokens that are not known.
    pub fn revoke(&self, form: &Pairs) -> Result<(), OAuthError> {
        let token = one(form, "token").map_err(|message| OAuthError::new("invalid_request", &message))?;
        let Some(token) = token else {
            return Err(OAuthError::new("invalid_request", "the form has no `token`"));
        };
        let ended = self.book().end_of(token);
        self.keep_end(ended, "its client signed out").map_err(|error| OAuthError::server(&error.message))
    }

    /// Whose an access token is.
    pub(crate) fn check(&self, token: &str, now: i64) -> Option<SignedIn> {
        let (grant, ends) = self.book().find(token, now)?;
        // The address of the gateway may have changed since.
        (grant.resource == self.address.resource()).then(|| SignedIn { who: caller(&grant), expires: ends / 1_000 })
    }

    pub fn list(&self) -> Vec<SignInView> {
        let mut book = self.book();
        self.tidy(&mut book, now());
        let mut all: Vec<SignInView> = book.grants().iter().map(view).collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.created));
        all
    }

    /// Ends one sign-in.
    pub fn end(&self, id: &str) -> Result<SignInView, ToolError> {
        let mut book = self.book();
        let Some(found) = book.grants().iter().find(|grant| grant.id == id).map(view) else {
            let id = clean_line(id, 64);
            let message = format!("no sign-in has the id `{id}`; `sinew sign-ins` shows those there are");
            return Err(ToolError::new(ErrorKind::UnknownResource, message));
        };
        let ended = book.end_where(|grant| grant.id == id);
        drop(book);
        self.keep_end(ended, "an administrator ended it")?;
        Ok(found)
    }

    /// Ends the sign-ins of people who may not have any.
    pub fn end_people(&self, is_over: impl Fn(&str) -> bool) {
        let mut book = self.book();
        book.forget_codes(|consent| is_over(&consent.person));
        let ended = book.end_where(|grant| is_over(&grant.person));
        drop(book);
        if let Err(error) = self.keep_end(ended, "its person changed") {
            tracing::error!("sign-ins of somebody who is gone come back with a restart: {}", error.message);
        }
    }

    /// Keeps what was ended, and tells whoever uses it. It stops working first, whether or not the disk can be written.
    fn keep_end(&self, ended: Vec<Grant>, why: &str) -> Result<(), ToolError> {
        if ended.is_empty() {
            return Ok(());
        }
        let written = self.write(&self.book());
        self.report(ended, why);
        written
    }

    fn tidy(&self, book: &mut Book, now: i64) {
        let ended = book.tidy(now);
        self.report(ended, "it was not renewed for too long");
    }

    fn report(&self, ended: Vec<Grant>, why: &str) {
        for grant in ended {
            let who = caller(&grant);
            self.gateway.end_sign_in(&who);
            let details = json!({"client": grant.client_name, "at": grant.place, "person": grant.person, "why": why});
            self.gateway.record_change(&who, "disconnect_client", None, details, None);
            tracing::info!(caller = who.name, "a sign-in ended: {why}");
        }
    }

    fn write(&self, book: &Book) -> Result<(), ToolError> {
        let Some(path) = &self.path else { return Ok(()) };
        write_private_synced(path, &book.text())
            .map_err(|error| ToolError::new(ErrorKind::Internal, format!("cannot write {}: {error}", path.display())))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The caller that rules know as `oauth:PERSON@PLACE`. A client lists and calls tools, whoever let it in.
fn caller(grant: &Grant) -> Principal {
    Principal::oauth(&format!("{}@{}", grant.person, grant.place), &grant.id, Role::Client)
}

fn view(grant: &Grant) -> SignInView {
    SignInView {
        id: grant.id.clone(),
        person: grant.person.clone(),
        client: grant.client_name.clone(),
        place: grant.place.clone(),
        scope: grant.scope.clone(),
        created: grant.created,
        last_use: grant.last_use,
        ends: grant.ends(),
    }
}

/// A value that may be there once. What comes twice is read differently by different programs.
fn one<'a>(pairs: &'a Pairs, name: &str) -> Result<Option<&'a str>, String> {
    let mut values = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
    match (values.next(), values.next()) {
        (first, None) => Ok(first),
        _ => Err(format!("the request has `{name}` more than once")),
    }
}
