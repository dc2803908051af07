//! Checks who may send a request: its `Host` and `Origin` headers, its token, and the access that its route needs.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use http::header::{AUTHORIZATION, EXPECT, HOST, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use http::uri::Authority;
use http::{HeaderMap, Response, StatusCode, Uri};
use sinew_api::{Access, Operation, Route, TOKEN_EXPIRED};
use sinew_gateway::{Principal, Role};
use sinew_signin::{ChallengeError, Refused};
use sinew_tool::BoxFuture;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection_places::ConnectionPlace;
use crate::console::{PeerAddress, is_console_path};
use crate::refusals::Refusals;
use crate::state::FrontState;
use crate::{counted_body, reply, sign_in};

pub(crate) struct Guard {
    front: Arc<FrontState>,
    hosts: Vec<AllowedHost>,
    origins: Vec<String>,
    anonymous: Arc<Principal>,
    refusals: Arc<Refusals>,
}

/// How long an answer may go on after the access token of its caller expired: a call that runs then still ends, and a
/// stream that listens does not outlast its token for long.
const ANSWER_AFTER_EXPIRY: Duration = Duration::from_secs(300);

/// Bytes of a refused request that are read, and how long they may take: the first message of a client is small.
const REFUSED_BODY: usize = 64 << 10;
const REFUSED_BODY_TIME: Duration = Duration::from_secs(1);

/// When the access token of a request expires.
#[derive(Clone, Copy)]
struct TokenExpiry(Instant);

/// What the headers of a request say about its caller.
enum Checked {
    /// The route needs no token.
    Open,
    Known(Arc<Principal>),
    /// Nobody's token here; perhaps somebody signed in with it.
    Unknown(String),
}

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
        let bad_host = |message| Err(Box::new(reply::problem(StatusCode::BAD_REQUEST, "bad_host", message)));
        if is_repeated(headers, &HOST) {
            return bad_host("the request has more than one Host header");
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let Some(authority) = host.filter(|host| !host.as_str().contains('@')) else {
            return bad_host("the request needs a Host header with a valid name");
        };
        // Proxies are asked for a whole address; others would go by that one.
        if uri.authority().is_some_and(|asked| !asked.as_str().eq_ignore_ascii_case(authority.as_str())) {
            return bad_host("the request names one host in its address and another in its Host header");
        }
        if !self.is_allowed_host(&authority) {
            let message = format!("the host `{authority}` is not allowed; add it to `allowed-hosts`");
            return Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "host_not_allowed", &message)));
        }
        Ok(authority)
    }

    /// Refuses requests from foreign web pages.
    fn check_origin(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Box<Response<Body>>> {
        let authority = self.check_host(uri, headers)?;
        for name in [&ORIGIN, &AUTHORIZATION] {
            if is_repeated(headers, name) {
                let message = format!("the request has more than one `{name}` header");
                return Err(Box::new(reply::problem(StatusCode::BAD_REQUEST, "bad_request", &message)));
            }
        }
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        if self.is_allowed_origin(origin, &authority) {
            return Ok(());
        }
        let message = format!("the web origin `{origin}` is not allowed; add it to `allowed-origins`");
        Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "origin_not_allowed", &message)))
    }

    fn check(&self, request: &Request, route: Option<&Route>) -> Result<Checked, Box<Response<Body>>> {
        self.check_origin(request.uri(), request.headers())?;
        match route {
            Some(route) if route.access == Access::Open => Ok(Checked::Open),
            _ => self.check_token(request.headers()),
        }
    }

    /// Whether the route is for callers like this one.
    fn check_access(&self, who: &Principal, route: Option<&Route>) -> Result<(), Box<Response<Body>>> {
        // Without a token, paths that exist and paths that do not look the same.
        let access = route.map_or(Access::Client, |route| route.access);
        if access == Access::Admin && who.role != Role::Admin {
            let message = "this needs an admin token; create one with `sinew token new --admin NAME`";
            return Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "forbidden", message)));
        }
        Ok(())
    }

    /// The caller who signed in with this token, and when it expires.
    async fn check_sign_in(
        &self,
        token: &str,
        route: Option<&Route>,
    ) -> Result<(Arc<Principal>, TokenExpiry), Box<Response<Body>>> {
        let invalid = || unauthorized(&self.front, "Invalid bearer token", ChallengeError::Invalid);
        let Some(sign_in) = self.front.sign_in.as_deref() else { return Err(invalid()) };
        let signed_in = sign_in.check(token).await.map_err(|refused| match refused {
            Refused::Invalid(why) => {
                tracing::debug!("an access token was refused: {why}");
                invalid()
            }
            Refused::Unavailable(why) => {
                Box::new(reply::problem(StatusCode::SERVICE_UNAVAILABLE, "sign_in_unavailable", &why))
            }
            Refused::Unwelcome(why) => {
                tracing::info!("a caller who signed in elsewhere is not let in: {why}");
                let message = "you signed in, but this gateway does not let you in; ask its administrator";
                Box::new(reply::problem(StatusCode::FORBIDDEN, "forbidden", message))
            }
            Refused::Scope => {
                let message = "the access token has not the scope that this gateway needs; sign in again";
                let mut response = reply::problem(StatusCode::FORBIDDEN, "insufficient_scope", message);
                add_challenge(&self.front, &mut response, ChallengeError::Scope);
                Box::new(response)
            }
        })?;
        if route.is_some_and(|route| route.operation == Operation::McpStream) {
            // It would outlast the token.
            let message = "this endpoint takes client tokens and no sign-in; use /mcp";
            return Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "forbidden", message)));
        }
        let expires = u64::try_from(signed_in.expires).map_or(UNIX_EPOCH, |at| UNIX_EPOCH + Duration::from_secs(at));
        let left = expires.duration_since(SystemTime::now()).unwrap_or_default();
        // Nothing runs for a year.
        let left = left.min(Duration::from_secs(365 * 86_400));
        Ok((Arc::new(signed_in.who.clone()), TokenExpiry(Instant::now() + left)))
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

    fn check_token(&self, headers: &HeaderMap) -> Result<Checked, Box<Response<Body>>> {
        if self.front.settings.open {
            return Ok(Checked::Known(self.anonymous.clone()));
        }
        let Some(header) = headers.get(AUTHORIZATION) else {
            let message = "Missing Authorization header. Expected: Bearer <token>";
            return Err(unauthorized(&self.front, message, ChallengeError::Missing));
        };
        let token = header.to_str().ok().and_then(|text| {
            let (scheme, token) = text.trim().split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            let message = "Malformed Authorization header. Expected: Bearer <token>";
            return Err(unauthorized(&self.front, message, ChallengeError::Malformed));
        };
        let tokens = self.front.gateway.tokens();
        match tokens.check(token) {
            Some(principal) => Ok(Checked::Known(Arc::new(principal))),
            None if tokens.is_for_device(token) => {
                let message = "this is a device token, which only connects a device; use a client token here";
                Err(Box::new(reply::problem(StatusCode::FORBIDDEN, "forbidden", message)))
            }
            None => match tokens.expired_at(token) {
                Some(at) => Err(expired(&self.front, at)),
                None => Ok(Checked::Unknown(token.to_owned())),
            },
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
    if guard.front.sign_in.is_some() && sign_in::is_open_path(request.uri().path()) {
        return match guard.check_host(request.uri(), request.headers()) {
            Ok(_) => next.run(request).await,
            Err(refused) => {
                count_refusal(refused.status());
                *refused
            }
        };
    }
    let route = request.extensions().get::<MatchedPath>();
    let route = route.and_then(|path| sinew_api::find(request.method().as_str(), path.as_str()));
    let checked = guard.check(&request, route);
    let found = match checked {
        Ok(Checked::Open) => return next.run(request).await,
        Ok(Checked::Known(who)) => Ok((who, None)),
        Ok(Checked::Unknown(token)) => {
            guard.check_sign_in(&token, route).await.map(|(who, expiry)| (who, Some(expiry)))
        }
        Err(refused) => Err(refused),
    };
    let found = found.and_then(|(who, expiry)| guard.check_access(&who, route).map(|()| (who, expiry)));
    let (who, expiry) = match found {
        Ok(found) => found,
        Err(refused) => {
            count_refusal(refused.status());
            if guard.front.sign_in.is_some() {
                discard_body(request).await;
            }
            return *refused;
        }
    };
    if let Some(expiry) = expiry {
        request.extensions_mut().insert(expiry);
    }
    let mut is_served = false;
    let served = serve_as(&guard.front, who, None, request, |request| {
        is_served = true;
        next.run(request)
    });
    let response = served.await;
    if !is_served {
        count_refusal(response.status());
    }
    response
}

/// Answers a request of an authenticated caller, within what the caller may use at once. The answer ends with the token of
/// the caller, and with its session.
pub(crate) async fn serve_as<F: Future<Output = Response<Body>>>(
    front: &FrontState,
    who: Arc<Principal>,
    session: Option<CancellationToken>,
    mut request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response<Body> {
    if let Some(spent) = front.answers.spent(&who.id) {
        return too_many_answers(spent.limit());
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
    let expiry = request.extensions().get::<TokenExpiry>().map(|expiry| expiry.0 + ANSWER_AFTER_EXPIRY);
    let response = tokio::select! {
        biased;
        response = answer(request) => response,
        () = front.gateway.tokens().revoked(&who) => {
            return *match front.gateway.tokens().expiry_of(&who) {
                Some(at) => expired(front, at),
                None => unauthorized(front, "The bearer token was revoked", ChallengeError::Invalid),
            };
        }
        () = front.stop.cancelled() => {
            let message = "the gateway stopped before the request ended; check whether a call took effect";
            return reply::problem(StatusCode::SERVICE_UNAVAILABLE, "stopping", message);
        }
    };
    let (gateway, client) = (front.gateway.clone(), who.clone());
    let can_end = session.is_some() || who.revocable;
    let end: Option<BoxFuture<'static, ()>> = can_end.then(|| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let expired = async {
                match expiry {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let signed_out = async {
                match &session {
                    Some(session) => session.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = gateway.tokens().revoked(&who) => {}
                () = expired => {}
                () = signed_out => {}
            }
        })
    });
    let budget = || front.answers.of(&client.id);
    counted_body::counted(response, budget, end, connection_use)
        .unwrap_or_else(|budget| too_many_answers(budget.limit()))
}

/// Reads a small body that nobody wants. A connection closes behind an answer that leaves some of its request unread,
/// and clients that sign in send their next request on it at once.
async fn discard_body(request: Request) {
    let is_asked = request.headers().contains_key(EXPECT);
    if !is_asked {
        let _ = timeout(REFUSED_BODY_TIME, axum::body::to_bytes(request.into_body(), REFUSED_BODY)).await;
    }
}

/// Refuses a request because too many answers wait to be read.
fn too_many_answers(limit: usize) -> Response<Body> {
    let message = format!(
        "answers of {} MiB wait for clients to read them; try again in a second, but check first whether a call took effect",
        limit >> 20
    );
    reply::problem(StatusCode::SERVICE_UNAVAILABLE, "busy", &message)
}

/// Whether a header that decides about the request is there twice: this program and one in front of it could go by
/// different ones.
fn is_repeated(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get_all(name).iter().nth(1).is_some()
}

fn unauthorized(front: &FrontState, message: &str, error: ChallengeError) -> Box<Response<Body>> {
    let mut response = reply::problem(StatusCode::UNAUTHORIZED, "unauthorized", message);
    add_challenge(front, &mut response, error);
    Box::new(response)
}

/// Says what is wrong with the token. Where to sign in is said only where clients can: else a typo in a token would
/// make them open a browser.
fn add_challenge(front: &FrontState, response: &mut Response<Body>, error: ChallengeError) {
    let plain = HeaderValue::from_static(match error {
        ChallengeError::Missing => "Bearer realm=\"sinew\"",
        ChallengeError::Malformed => "Bearer realm=\"sinew\", error=\"invalid_request\"",
        ChallengeError::Invalid => "Bearer realm=\"sinew\", error=\"invalid_token\"",
        ChallengeError::Scope => "Bearer realm=\"sinew\", error=\"insufficient_scope\"",
    });
    let own = front.sign_in.as_deref().and_then(|sign_in| HeaderValue::from_str(&sign_in.challenge(error)).ok());
    response.headers_mut().insert(WWW_AUTHENTICATE, own.unwrap_or(plain));
}

fn expired(front: &FrontState, at: i64) -> Box<Response<Body>> {
    let at = jiff::Timestamp::from_millisecond(at).map(|at| at.strftime("%Y-%m-%d %H:%M UTC").to_string());
    let message = format!(
        "the token expired on {}; create a new one with `sinew token new` on the gateway's machine",
        at.unwrap_or_default()
    );
    let mut response = reply::problem(StatusCode::UNAUTHORIZED, TOKEN_EXPIRED, &message);
    add_challenge(front, &mut response, ChallengeError::Invalid);
    if front.sign_in.is_none() {
        let challenge =
            "Bearer realm=\"sinew\", error=\"invalid_token\", error_description=\"The access token expired\"";
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
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
