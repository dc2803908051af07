//! Who may come in: the `Host` and `Origin` of a request, and its token.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use http::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use http::uri::Authority;
use http::{HeaderMap, Response, StatusCode, Uri};
use sinew_gateway::{Principal, Role};

use crate::hall::Hall;
use crate::reply;

pub(crate) struct Guard {
    hall: Arc<Hall>,
    hosts: Vec<Name>,
    origins: Vec<String>,
    nobody: Arc<Principal>,
}

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
        Arc::new(Guard { origins: origins.collect(), hosts, nobody, hall })
    }

    /// Keeps web pages out that made a browser believe we are their own server.
    fn check_place(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Box<Response<Body>>> {
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
        let Some(principal) = self.hall.gateway.tokens().check(token) else {
            return Err(unauthorized("Invalid bearer token", "Bearer realm=\"sinew\", error=\"invalid_token\""));
        };
        if matches!(principal.role, Role::Device(_)) {
            let message = "a device token opens the device door only; use a client token here";
            return Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "forbidden", message)));
        }
        Ok(Arc::new(principal))
    }
}

/// Lets a request through with its caller attached, or says why not.
pub(crate) async fn guard(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response<Body> {
    if let Err(refused) = guard.check_place(request.uri(), request.headers()) {
        return *refused;
    }
    // Whether the gateway is alive is no secret.
    if request.uri().path() != "/health" {
        match guard.check_token(request.headers()) {
            Ok(principal) => drop(request.extensions_mut().insert(principal)),
            Err(refused) => return *refused,
        }
    }
    next.run(request).await
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
