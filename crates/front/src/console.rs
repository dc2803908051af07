//! Where the console for people joins the endpoints for programs: on the same listener, with the same handlers of
//! `/api/v1`, and with sessions of its own in place of tokens.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Path, Request, State};
use axum::middleware::Next;
use http::{Extensions, Response, StatusCode};
use sinew_api::{CreatedPerson, LoginLink, NewPerson, People, Person, PersonLogin, PersonRole};
use sinew_gateway::{Gateway, Principal};
use sinew_policy::CallerKind;
use sinew_signin::SignIn;
use sinew_tool::{BoxFuture, ErrorKind, ToolError, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::api::{Authenticated, Change, answer, body};
use crate::servers::ServerList;
use crate::state::FrontState;
use crate::{guard, reply, sign_in};

/// The folder of the console's pages.
const FOLDER: &str = "/console";

/// The pages for people. They check who sends a request themselves.
pub trait ConsolePages: Send + Sync {
    /// The routes of `/`, `/console` and everything below it.
    fn pages(&self, host: ConsoleHost) -> Router;
    /// A link that signs this administrator in, once.
    fn login_link(&self, who: &Principal) -> Result<LoginLink, ToolError>;
    fn people(&self) -> Vec<Person>;
    /// Who this is, where name and passphrase are right. The guesses of the caller `who` are limited.
    fn check_person<'a>(
        &'a self,
        who: &'a Principal,
        login: PersonLogin,
    ) -> BoxFuture<'a, Result<(Principal, PersonRole), ToolError>>;
    fn add_person(&self, person: NewPerson) -> BoxFuture<'_, Result<CreatedPerson, ToolError>>;
    /// Ends their sessions too.
    fn remove_person(&self, name: &str) -> Result<Person, ToolError>;
}

/// What the pages get from the server they are on.
#[derive(Clone)]
pub struct ConsoleHost {
    pub gateway: Gateway,
    /// Whether the listener speaks TLS.
    pub is_tls: bool,
    /// Cancelled first when the gateway stops.
    pub stopping: CancellationToken,
    /// How clients sign in, where they may.
    pub sign_in: Option<Arc<SignIn>>,
    api: Router,
    front: Arc<FrontState>,
}

/// Where a request of a browser comes from.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub IpAddr);

/// The endpoint that a call is recorded with, where it is not the API.
#[derive(Clone, Copy)]
pub(crate) struct Door(pub(crate) &'static str);

impl Door {
    /// The name of the endpoint in the audit.
    pub(crate) fn of(extensions: &Extensions) -> &'static str {
        extensions.get::<Door>().map_or("api", |door| door.0)
    }
}

pub(crate) fn is_console_path(path: &str) -> bool {
    path == "/" || path.strip_prefix(FOLDER).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl ConsoleHost {
    /// `api` is the routes of `/api/v1` without the check of tokens.
    pub(crate) fn new(front: &Arc<FrontState>, api: Router, is_tls: bool) -> ConsoleHost {
        let api = api.layer(axum::middleware::from_fn(check_role));
        let (gateway, stopping) = (front.gateway.clone(), front.drain.clone());
        ConsoleHost { gateway, is_tls, stopping, sign_in: front.sign_in.clone(), api, front: front.clone() }
    }

    /// Changes whenever a server is added or removed; `None` where the gateway calls none.
    pub fn server_changes(&self) -> Option<watch::Receiver<()>> {
        self.front.servers.as_deref().map(ServerList::changes)
    }

    /// Answers a request of a caller that is authenticated: it counts as the caller's, and ends with the session, or when
    /// the caller's token is revoked.
    pub async fn serve<F: Future<Output = Response<Body>>>(
        &self,
        who: Arc<Principal>,
        session: CancellationToken,
        request: Request,
        answer: impl FnOnce(Request) -> F,
    ) -> Response<Body> {
        guard::serve_as(&self.front, who, Some(session), request, answer).await
    }

    /// Answers a request of `/api/v1` for somebody with this role.
    pub async fn api(&self, who: Arc<Principal>, role: PersonRole, mut request: Request) -> Response<Body> {
        let extensions = request.extensions_mut();
        // What the routes of the console matched, and the values in their paths, are not those of these routes.
        extensions.clear();
        extensions.insert(who);
        extensions.insert(role);
        extensions.insert(Door("console"));
        match self.api.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Refuses what the role of a session does not permit.
async fn check_role(request: Request, next: Next) -> Response<Body> {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.and_then(|path| sinew_api::find(request.method().as_str(), path.as_str()));
    let Some(needed) = route.and_then(sinew_api::Route::person_role) else {
        return reply::problem(StatusCode::NOT_FOUND, "not_found", "this path does not exist in the console");
    };
    match request.extensions().get::<PersonRole>() {
        Some(role) if *role >= needed => next.run(request).await,
        _ => {
            let message = format!("this needs the role {}; ask an administrator", needed.word());
            reply::problem(StatusCode::FORBIDDEN, "forbidden", &message)
        }
    }
}

pub(crate) fn pages(front: &FrontState) -> Result<&dyn ConsolePages, ToolError> {
    let off = || ToolError::new(ErrorKind::Unsupported, "this gateway has no console; set `enabled` in `[console]`");
    front.console.as_deref().ok_or_else(off)
}

pub(crate) async fn people(State(front): State<Arc<FrontState>>) -> Response<Body> {
    answer(pages(&front).map(|pages| People { people: pages.people() }))
}

pub(crate) async fn add_person(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    request: Request,
) -> Response<Body> {
    let added = async {
        let person: NewPerson = body(&front, request).await?;
        let details = json!({"name": person.name, "role": person.role.word()});
        let caller = Principal::person(&person.name);
        let added = match may_manage_people(&front, &who) {
            Ok(()) => pages(&front)?.add_person(person).await,
            Err(error) => Err(error),
        };
        let added = Change { what: "add_person", device: None, details }.record(&front, &who, || added)?;
        // Somebody of the same name may be another person.
        front.gateway.forget_caller(&caller);
        sign_in::end_of_person(&front, &caller.name).await;
        Ok(added)
    };
    answer(added.await)
}

pub(crate) async fn remove_person(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(name): Path<String>,
) -> Response<Body> {
    let change = Change { what: "remove_person", device: None, details: json!({"name": name}) };
    let removed = change.record(&front, &who, || {
        may_manage_people(&front, &who)?;
        let removed = pages(&front)?.remove_person(&name)?;
        let person = Principal::person(&removed.name);
        front.gateway.forget_person(&person);
        front.gateway.end_leases(&person.id);
        Ok(removed)
    });
    if let Ok(person) = &removed {
        sign_in::end_of_person(&front, &person.name).await;
    }
    answer(removed)
}

/// Where only people decide about calls, only people say who they are; else a token would make itself one.
fn may_manage_people(front: &FrontState, who: &Principal) -> Result<(), ToolError> {
    check_person(front, who, "people are managed")
}

/// Where only people decide about calls, a token does not decide by the way either: by what a device is called, how it is
/// labelled, and which of its tools are agreed on. The first who may decide are added with a token.
pub(crate) fn check_person(front: &FrontState, who: &Principal, what: &str) -> Result<(), ToolError> {
    if !front.gateway.needs_passphrase() || who.kind == CallerKind::Person || !has_deciders(front) {
        return Ok(());
    }
    let message = format!(
        "with `approvals = \"passphrase\"` {what} by an administrator who signed in to the console with a passphrase; \
         where there is none, set `approvals = \"any\"`, add one with `sinew people add NAME --role admin`, and set it back"
    );
    Err(ToolError::new(ErrorKind::PermissionDenied, message))
}

/// Whether a caller may agree to calls of its own. Somebody who showed a passphrase is the person whom the policy wants
/// asked. Any program may hold a token, so somebody else is asked about its calls, as soon as there is somebody.
pub(crate) fn may_confirm(front: &FrontState, who: &Principal) -> bool {
    front.gateway.takes_decisions_of(who) && (who.kind == CallerKind::Person || !has_deciders(front))
}

fn has_deciders(front: &FrontState) -> bool {
    front.console.as_deref().is_some_and(|pages| pages.people().iter().any(is_decider))
}

fn is_decider(person: &Person) -> bool {
    person.role >= PersonRole::Approver
}

pub(crate) async fn login_link(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
) -> Response<Body> {
    let change = Change { what: "login_link", device: None, details: json!({}) };
    answer(change.record(&front, &who, || pages(&front)?.login_link(&who)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pages_of_the_console_are_its_paths() {
        for path in ["/", "/console", "/console/", "/console/api/v1/devices"] {
            assert!(is_console_path(path), "{path}");
        }
        for path in ["/consoles", "/mcp", "/api/v1/console", "//console"] {
            assert!(!is_console_path(path), "{path}");
        }
    }
}
