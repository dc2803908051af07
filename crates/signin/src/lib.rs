//! Sign-in for clients that have no field for a token, by OAuth 2.1 as MCP uses it.
//!
//! The gateway is the resource server of its MCP endpoint: it says who issues tokens for it ([`SignIn::document`]), and
//! checks them ([`SignIn::check`]). Either another issuer makes them ([`issuer`]), or the gateway does, for the people of
//! its console ([`AuthorizationServer`]). `front` has the addresses and `console` the page on which a person agrees;
//! without `[oauth]` in the configuration there is none of this.

#![warn(unreachable_pub)]

mod address;
// Public for the fuzz targets.
#[doc(hidden)]
pub mod clients;
mod documents;
mod grants;
mod issuer;
#[doc(hidden)]
pub mod jwt;
#[doc(hidden)]
pub mod keys;
#[doc(hidden)]
pub mod redirect;
mod server;
mod settings;
#[cfg(test)]
mod tests;
mod web;

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sinew_gateway::{Gateway, Principal};

pub use address::PublicAddress;
use address::WellKnown;
use issuer::ExternalIssuer;
pub use server::{AuthorizationServer, ConsentRequest, Pairs, RequestProblem, SignInView};
pub use settings::{AllowedCaller, CallerRole, ConnectRole, OAuthSettings};
pub use web::{DocumentSource, Web};

/// Sign-in at one gateway.
pub struct SignIn {
    address: PublicAddress,
    scope: String,
    issuer: Issuer,
}

enum Issuer {
    Other(Box<ExternalIssuer>),
    Own(Box<AuthorizationServer>),
}

/// The caller behind an access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    pub who: Principal,
    /// When the token expires, in seconds of Unix time.
    pub expires: i64,
}

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    Invalid(String),
    /// The token may be good, but nobody can tell now.
    Unavailable(String),
    /// The token is good, and its caller is nobody whom this gateway takes.
    Unwelcome(String),
    /// The token is good for other things.
    Scope,
}

/// What a client must know to try again, beside where to sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeError {
    /// No token was sent.
    Missing,
    Malformed,
    Invalid,
    Scope,
}

/// An error of OAuth: a word for programs, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthError {
    pub code: &'static str,
    pub message: String,
}

impl OAuthError {
    pub fn new(code: &'static str, message: &str) -> OAuthError {
        OAuthError { code, message: message.to_owned() }
    }

    fn grant(message: &str) -> OAuthError {
        OAuthError::new("invalid_grant", message)
    }

    fn busy(message: &str) -> OAuthError {
        OAuthError::new("temporarily_unavailable", message)
    }

    fn server(message: &str) -> OAuthError {
        OAuthError::new("server_error", message)
    }
}

impl SignIn {
    /// Sign-in as the configuration has it, at the address under which clients reach the gateway. Sign-ins are kept in
    /// the state directory.
    pub fn open(
        settings: &OAuthSettings,
        public_url: &str,
        state: Option<&Path>,
        gateway: Gateway,
    ) -> Result<SignIn, String> {
        SignIn::with_source(settings, public_url, state, gateway, Arc::new(Web))
    }

    /// The same with documents from elsewhere than the network.
    pub fn with_source(
        settings: &OAuthSettings,
        public_url: &str,
        state: Option<&Path>,
        gateway: Gateway,
        source: Arc<dyn DocumentSource>,
    ) -> Result<SignIn, String> {
        let address = PublicAddress::parse(public_url)?;
        let issuer = match &settings.issuer {
            Some(name) => Issuer::Other(Box::new(ExternalIssuer::new(settings, name, &address.resource(), source)?)),
            None => {
                Issuer::Own(Box::new(AuthorizationServer::open(settings, address.clone(), state, source, gateway)?))
            }
        };
        Ok(SignIn { address, scope: settings.scope.clone(), issuer })
    }

    /// The gateway as an issuer, where it is one.
    pub fn own(&self) -> Option<&AuthorizationServer> {
        match &self.issuer {
            Issuer::Own(own) => Some(own),
            Issuer::Other(_) => None,
        }
    }

    /// The document at a well-known path.
    pub fn document(&self, path: &str) -> Option<Value> {
        match self.address.document(path)? {
            WellKnown::Resource => {
                let issuer = match &self.issuer {
                    Issuer::Own(own) => own.issuer(),
                    Issuer::Other(other) => other.name().to_owned(),
                };
                Some(address::resource_document(&self.address, &issuer, &self.scope))
            }
            WellKnown::Server => self.own().map(AuthorizationServer::metadata),
        }
    }

    /// The value of `WWW-Authenticate`: where and for what to sign in.
    pub fn challenge(&self, error: ChallengeError) -> String {
        let word = match error {
            ChallengeError::Missing => "",
            ChallengeError::Malformed => ", error=\"invalid_request\"",
            ChallengeError::Invalid => ", error=\"invalid_token\"",
            ChallengeError::Scope => ", error=\"insufficient_scope\"",
        };
        let scope = if self.scope.is_empty() { String::new() } else { format!(", scope=\"{}\"", self.scope) };
        format!("Bearer realm=\"sinew\"{word}, resource_metadata=\"{}\"{scope}", self.address.resource_metadata())
    }

    /// Whose an access token is.
    pub async fn check(&self, token: &str) -> Result<Arc<SignedIn>, Refused> {
        match &self.issuer {
            Issuer::Own(own) => {
                let unknown = || Refused::Invalid("it is not known, or has expired".to_owned());
                own.check(token, now()).map(Arc::new).ok_or_else(unknown)
            }
            Issuer::Other(other) if jwt::Token::is_like(token) => other.check(token, now() / 1_000).await,
            Issuer::Other(_) => Err(Refused::Invalid("it is not a token of the issuer".to_owned())),
        }
    }
}

/// An error as clients get it.
impl From<&OAuthError> for Value {
    fn from(error: &OAuthError) -> Value {
        json!({"error": error.code, "error_description": error.message})
    }
}

/// Milliseconds of Unix time.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
