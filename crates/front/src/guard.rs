//! Who may come in: the `Host` and `Origin` of a request, and its token.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use http::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use http::uri::Authority;
use http::{HeaderMap, Response, StatusCode, Uri};
use sinew_api::Access;
use sinew_gateway::{Principal, Role};
use sinew_tool::BoxFuture;

use crate::hall::Hall;
use crate::refusals::Refusals;
use crate::{answer, reply};

pub(crate) struct Guard {
    hall: Arc<Hall>,
    hosts: Vec<Name>,
    origins: Vec<String>,
    nobody: Arc<Principal>,
    refusals: Arc<Refusals>,
}

const INVALID: &str = "Bearer realm=\"sinew\", error=\"invalid_token\"";

/// A host, with the port where only that one is meant.
struct Name {
    host: String,
    port: Option<u16>,
}

impl Guard {
    pub(crate) fn new(hall: Arc<Hall>) -> Arc<Guard> {
        let loopback = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let hosts = loopback.iter().chain(&hall.settings.allowed_hosts).map(|text| name(text)).collect();
        let origins =
            hall.settings.allowed_origins.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase());
        let nobody = Arc::new(Principal::new("anyone", Role::Client));
        let origins = origins.collect();
        let refusals = Refusals::new(&hall);
        Arc::new(Guard { origins, hosts, nobody, refusals, hall })
    }

    /// Keeps web pages out that made a browser believe we are their own server.
    fn check_place(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Box<Response<Body>>> {
        if headers.get_all(HOST).iter().count() > 1 {
            let message = "the request has more than one Host header";
            return Err(Box::new(reply::problem(StatusCode::BAD_REQUEST, "bad_host", message)));
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let authority = host.and_then(|host| host.parse().ok()).or_else(|| uri.authority().cloned());
        let Some(authority) = authority else {
            let message = "the request needs a Host header with a valid name";
            return Err(Box::new(reply::problem(StatusCode::BAD_REQUEST, "bad_host", message)));
        };
        if !self.knows(&authority) {
            let message = format!("this gateway does not answer to `{authority}`; name it in the allowed hosts");
            return Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "host_not_allowed", &message)));
        }
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        if self.trusts(origin, &authority) {
            return Ok(());
        }
        let message =
            format!("pages from `{origin}` may not call this gateway; name the origin in the allowed origins");
        Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "origin_not_allowed", &message)))
    }

    /// Who asks; nobody in particular where no token is needed.
    fn check(&self, request: &Request) -> Result<Option<Arc<Principal>>, Box<Response<Body>>> {
        self.check_place(request.uri(), request.headers())?;
        let route = request.extensions().get::<MatchedPath>();
        let route = route.and_then(|path| sinew_api::find(request.method().as_str(), path.as_str()));
        // What is not served here at all is nobody's business without a token either.
        let access = route.map_or(Access::Client, |route| route.access);
        if access == Access::Open {
            return Ok(None);
        }
        let who = self.check_token(request.headers())?;
        if access == Access::Admin && who.role != Role::Admin {
            let message = "this needs an admin token; the gateway's own token is one";
            return Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "forbidden", message)));
        }
        Ok(Some(who))
    }

    fn knows(&self, authority: &Authority) -> bool {
        let host = bare(authority.host());
        self.hosts.iter().any(|name| {
            name.host.eq_ignore_ascii_case(host) && name.port.is_none_or(|port| authority.port_u16() == Some(port))
        })
    }

    /// Loopback pages, pages of our own, and those that were named.
    fn trusts(&self, origin: &str, ours: &Authority) -> bool {
        let origin = origin.to_ascii_lowercase();
        if self.origins.contains(&origin) {
            return true;
        }
        let Some(authority) = ["http://", "https://"].iter().find_map(|scheme| origin.strip_prefix(scheme)) else {
            return false;
        };
        let Ok(authority) = authority.parse::<Authority>() else { return false };
        authority == *ours || matches!(bare(authority.host()), "localhost" | "127.0.0.1" | "::1")
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Box<Response<Body>>> {
        if self.hall.settings.open {
            return Ok(self.nobody.clone());
        }
        let Some(header) = headers.get(AUTHORIZATION) else {
            return Err(unauthorized(
                "Missing Authorization header. Expected: Bearer <token>",
                "Bearer realm=\"sinew\"",
            ));
        };
        let token = header.to_str().ok().and_then(|text| {
            let (scheme, token) = text.trim().split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            let challenge = "Bearer realm=\"sinew\", error=\"invalid_request\"";
            return Err(unauthorized("Malformed Authorization header. Expected: Bearer <token>", challenge));
        };
        let tokens = self.hall.gateway.tokens();
        match tokens.check(token) {
            Some(principal) => Ok(Arc::new(principal)),
            None if tokens.is_for_device(token) => {
                let message = "a device token is for connecting a device; use a client token here";
                Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "forbidden", message)))
            }
            None => Err(unauthorized("Invalid bearer token", INVALID)),
        }
    }
}

/// Lets a request through with its caller attached, or says why not. The request ends with the token of its caller.
pub(crate) async fn guard(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response<Body> {
    let who = match guard.check(&request) {
        Ok(None) => return next.run(request).await,
        Ok(Some(who)) => who,
        Err(refused) => {
            guard.refusals.count(refused.status());
            return *refused;
        }
    };
    if guard.hall.answers.is_spent() {
        guard.refusals.count(StatusCode::SERVICE_UNAVAILABLE);
        return too_many_answers(&guard.hall);
    }
    request.extensions_mut().insert(who.clone());
    let response = tokio::select! {
        biased;
        response = next.run(request) => response,
        () = guard.hall.gateway.tokens().revoked(&who) => {
            return *unauthorized("The bearer token was revoked", INVALID);
        }
    };
    let gateway = guard.hall.gateway.clone();
    let end: Option<BoxFuture<'static, ()>> = match who.revocable {
        true => Some(Box::pin(async move { gateway.tokens().revoked(&who).await })),
        false => None,
    };
    answer::watched(response, &guard.hall.answers, end).unwrap_or_else(|| too_many_answers(&guard.hall))
}

/// The answer to a request is too much while others wait to be read.
fn too_many_answers(hall: &Hall) -> Response<Body> {
    let message = format!(
        "answers of {} MiB wait for clients to read them; try again in a second, and look first whether a call had its effect",
        hall.answers.limit() >> 20
    );
    reply::problem(StatusCode::SERVICE_UNAVAILABLE, "busy", &message)
}

fn unauthorized(message: &str, challenge: &'static str) -> Box<Response<Body>> {
    let mut response = reply::problem(StatusCode::UNAUTHORIZED, "unauthorized", message);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    Box::new(response)
}

fn name(text: &str) -> Name {
    match text.parse::<Authority>() {
        Ok(authority) => Name { host: bare(authority.host()).to_owned(), port: authority.port_u16() },
        // An IPv6 address without its brackets.
        Err(_) => Name { host: bare(text).to_owned(), port: None },
    }
}

fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}
