//! Checks who may send a request: its `Host` and `Origin` headers, its token, and the access that its route needs.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use http::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use http::uri::Authority;
use http::{HeaderMap, Response, StatusCode, Uri};
use sinew_api::{Access, TOKEN_EXPIRED};
use sinew_gateway::{Principal, Role};
use sinew_tool::BoxFuture;

use crate::connection_places::ConnectionPlace;
use crate::console::{PeerAddress, is_console_path};
use crate::refusals::Refusals;
use crate::state::FrontState;
use crate::{counted_body, reply};

pub(crate) struct Guard {
    front: Arc<FrontState>,
    hosts: Vec<AllowedHost>,
    origins: Vec<String>,
    anonymous: Arc<Principal>,
    refusals: Arc<Refusals>,
}

const INVALID_TOKEN: &str = "Bearer realm=\"sinew\", error=\"invalid_token\"";

/// A host that clients may ask for, on one port or on any.
struct AllowedHost {
    host: String,
    port: Option<u16>,
}

impl Guard {
    pub(crate) fn new(front: Arc<FrontState>) -> Arc<Guard> {
        let loopback = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let hosts = loopback.iter().chain(&front.settings.allowed_hosts).map(|text| allowed_host(text)).collect();
        let origins =
            front.settings.allowed_origins.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase());
        let anonymous = Arc::new(Principal::new("anyone", Role::Client));
        let origins = origins.collect();
        let refusals = Refusals::new(&front);
        Arc::new(Guard { origins, hosts, anonymous, refusals, front })
    }

    /// Refuses requests for hosts that are not ours, which pages send that use DNS rebinding.
    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<Authority, Box<Response<Body>>> {
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
        if !self.is_allowed_host(&authority) {
            let message = format!("the host `{authority}` is not allowed; add it to `allowed-hosts`");
            return Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "host_not_allowed", &message)));
        }
        Ok(authority)
    }

    /// Refuses requests from foreign web pages.
    fn check_origin(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Box<Response<Body>>> {
        let authority = self.check_host(uri, headers)?;
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        if self.is_allowed_origin(origin, &authority) {
            return Ok(());
        }
        let message = format!("the web origin `{origin}` is not allowed; add it to `allowed-origins`");
        Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "origin_not_allowed", &message)))
    }

    /// The caller; `None` when the route needs no token.
    fn check(&self, request: &Request) -> Result<Option<Arc<Principal>>, Box<Response<Body>>> {
        self.check_origin(request.uri(), request.headers())?;
        let route = request.extensions().get::<MatchedPath>();
        let route = route.and_then(|path| sinew_api::find(request.method().as_str(), path.as_str()));
        // Without a token, paths that exist and paths that do not look the same.
        let access = route.map_or(Access::Client, |route| route.access);
        if access == Access::Open {
            return Ok(None);
        }
        let who = self.check_token(request.headers())?;
        if access == Access::Admin && who.role != Role::Admin {
            let message = "this needs an admin token; create one with `sinew token new --admin NAME`";
            return Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "forbidden", message)));
        }
        Ok(Some(who))
    }

    fn is_allowed_host(&self, authority: &Authority) -> bool {
        let host = without_brackets(authority.host());
        self.hosts.iter().any(|name| {
            name.host.eq_ignore_ascii_case(host) && name.port.is_none_or(|port| authority.port_u16() == Some(port))
        })
    }

    /// Pages on loopback, pages of this gateway, and origins from the settings.
    fn is_allowed_origin(&self, origin: &str, own: &Authority) -> bool {
        let origin = origin.to_ascii_lowercase();
        if self.origins.contains(&origin) {
            return true;
        }
        let Some(authority) = ["http://", "https://"].iter().find_map(|scheme| origin.strip_prefix(scheme)) else {
            return false;
        };
        let Ok(authority) = authority.parse::<Authority>() else { return false };
        authority == *own || matches!(without_brackets(authority.host()), "localhost" | "127.0.0.1" | "::1")
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Box<Response<Body>>> {
        if self.front.settings.open {
            return Ok(self.anonymous.clone());
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
        let tokens = self.front.gateway.tokens();
        match tokens.check(token) {
            Some(principal) => Ok(Arc::new(principal)),
            None if tokens.is_for_device(token) => {
                let message = "this is a device token, which only connects a device; use a client token here";
                Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "forbidden", message)))
            }
            None => Err(match tokens.expired_at(token) {
                Some(at) => expired(at),
                None => unauthorized("Invalid bearer token", INVALID_TOKEN),
            }),
        }
    }
}

/// Passes a request on with its caller attached, or refuses it. The request ends when the token of its caller is
/// revoked.
pub(crate) async fn guard(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response<Body> {
    // Requests of the gateway itself come over no connection.
    let place = request.extensions().get::<Arc<ConnectionPlace>>().cloned();
    let count_refusal = |status| {
        if let Some(place) = &place {
            guard.refusals.count(place.address, status);
        }
    };
    if guard.front.console.is_some() && is_console_path(request.uri().path()) {
        // Its pages check sessions and origins themselves, more strictly.
        return match guard.check_host(request.uri(), request.headers()) {
            Ok(_) => {
                if let Some(place) = &place {
                    request.extensions_mut().insert(PeerAddress(place.address));
                }
                next.run(request).await
            }
            Err(refused) => {
                count_refusal(refused.status());
                *refused
            }
        };
    }
    let who = match guard.check(&request) {
        Ok(None) => return next.run(request).await,
        Ok(Some(who)) => who,
        Err(refused) => {
            count_refusal(refused.status());
            return *refused;
        }
    };
    let mut is_served = false;
    let served = serve_as(&guard.front, who, request, |request| {
        is_served = true;
        next.run(request)
    });
    let response = served.await;
    if !is_served {
        count_refusal(response.status());
    }
    response
}

/// Answers a request of an authenticated caller, within what the caller may use at once.
pub(crate) async fn serve_as<F: Future<Output = Response<Body>>>(
    front: &FrontState,
    who: Arc<Principal>,
    mut request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response<Body> {
    if front.answers.is_spent() {
        return too_many_answers(front);
    }
    let place = request.extensions().get::<Arc<ConnectionPlace>>();
    let connection_use = match place.map(|place| place.start_use(&who)) {
        Some(None) => {
            let message = "too many connections with this token are in use; close some, or raise `clients.limits.connections-each`";
            return reply::problem(StatusCode::SERVICE_UNAVAILABLE, "busy", message);
        }
        started => started.flatten(),
    };
    request.extensions_mut().insert(who.clone());
    let response = tokio::select! {
        biased;
        response = answer(request) => response,
        () = front.gateway.tokens().revoked(&who) => {
            return *unauthorized("The bearer token was revoked", INVALID_TOKEN);
        }
    };
    let gateway = front.gateway.clone();
    let end: Option<BoxFuture<'static, ()>> = match who.revocable {
        true => Some(Box::pin(async move { gateway.tokens().revoked(&who).await })),
        false => None,
    };
    counted_body::counted(response, &front.answers, end, connection_use).unwrap_or_else(|| too_many_answers(front))
}

/// Refuses a request because too many answers wait to be read.
fn too_many_answers(front: &FrontState) -> Response<Body> {
    let message = format!(
        "answers of {} MiB wait for clients to read them; try again in a second, but check first whether a call took effect",
        front.answers.limit() >> 20
    );
    reply::problem(StatusCode::SERVICE_UNAVAILABLE, "busy", &message)
}

fn unauthorized(message: &str, challenge: &'static str) -> Box<Response<Body>> {
    let mut response = reply::problem(StatusCode::UNAUTHORIZED, "unauthorized", message);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    Box::new(response)
}

fn expired(at: i64) -> Box<Response<Body>> {
    let at = jiff::Timestamp::from_millisecond(at).map(|at| at.strftime("%Y-%m-%d %H:%M UTC").to_string());
    let message = format!(
        "the token expired on {}; create a new one with `sinew token new` on the gateway's machine",
        at.unwrap_or_default()
    );
    let mut response = reply::problem(StatusCode::UNAUTHORIZED, TOKEN_EXPIRED, &message);
    let challenge = "Bearer realm=\"sinew\", error=\"invalid_token\", error_description=\"The access token expired\"";
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    Box::new(response)
}

fn allowed_host(text: &str) -> AllowedHost {
    match text.parse::<Authority>() {
        Ok(authority) => {
            AllowedHost { host: without_brackets(authority.host()).to_owned(), port: authority.port_u16() }
        }
        // An IPv6 address without its brackets.
        Err(_) => AllowedHost { host: without_brackets(text).to_owned(), port: None },
    }
}

fn without_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}
