//! `/api/v1`: the interface for the command line and the console.
//!
//! The table in `sinew_api` says who may use which route; the guard has checked it before a handler runs.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Request, State};
use http::{Response, StatusCode, header, request::Parts};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sinew_api::{
    Accept, Approve, Audit, BrokerPresences, CallRequest, CallResult, CheckPolicy, CreatedToken, Devices, Effects,
    Explain, GatewayStatus, Journal, Labels, NewToken, Pin, PolicyWarning, PolicyWarnings, RecordJournal, Rename,
    RequestFailure, TokenList, TokenRole, Tools, WaitingBoards,
};
use sinew_gateway::shared::RecordKind;
use sinew_gateway::{
    AuditFilter, DeviceFilter, EffectFilter, Follow, IfTaken, Label, PageOf, Principal, Request as Call, Role, Shape,
    Update,
};
use sinew_policy::{PolicyProblem, PolicySettings};
use sinew_tool::error::{Actor, Retry};
use sinew_tool::settings::Setting;
use sinew_tool::text::{clean_line, cut};
use sinew_tool::{Caller, ErrorKind, Presences, Silent, ToolError, TraceParent};

use crate::body::{BodyError, RequestBody, TOO_SLOW};
use crate::console::{Door, check_person, may_confirm};
use crate::state::FrontState;
use crate::{inspect, live_call, query, reply, to_api, trace};

/// Longer waits are cut to this; proxies give up on a silent connection after about a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(55);

/// Items of a page, and as many as a client may ask for: about 1 MB of devices.
const USUAL_PAGE: u64 = 100;
const LARGEST_PAGE: u64 = 1_000;

/// Whoever records asks again before it is over.
const LONGEST_RECORDING_S: u64 = 60;

/// The caller that the guard has authenticated.
pub(crate) struct Authenticated(pub(crate) Arc<Principal>);

impl<S: Sync> FromRequestParts<S> for Authenticated {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Authenticated, Response<Body>> {
        let who = parts.extensions.get::<Arc<Principal>>().cloned();
        who.map(Authenticated).ok_or_else(|| reply::empty(StatusCode::UNAUTHORIZED))
    }
}

/// The parameters in the query of the URL.
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query, Self::Rejection> {
        Ok(Query(query::pairs(parts.uri.query().unwrap_or_default()).collect()))
    }
}

impl Query {
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, value)| name == key && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter that may be repeated.
    fn texts(&self, key: &str) -> Vec<String> {
        self.0.iter().filter(|(name, _)| name == key).map(|(_, value)| value.clone()).collect()
    }

    /// How many items a page has.
    fn page_size(&self) -> Result<usize, ToolError> {
        Ok(self.number("limit")?.unwrap_or(USUAL_PAGE).clamp(1, LARGEST_PAGE) as usize)
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<u64>, ToolError> {
        let parse = |text: &str| {
            let wrong = || format!("`{key}` must be a whole number of 0 or more, not `{text}`");
            text.parse().map_err(|_| ToolError::new(ErrorKind::InvalidArguments, wrong()))
        };
        self.text(key).map(parse).transpose()
    }
}

pub(crate) async fn document() -> Response<Body> {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(sinew_api::document);
    reply::value(StatusCode::OK, &DOCUMENT)
}

pub(crate) async fn devices(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    query: Query,
) -> Response<Body> {
    let find = async {
        let wanted = DeviceFilter::read(|key| query.text(key))?.among(query.texts("id"));
        let page = front.gateway.seen_by(&who).devices(wanted, query.text("after"), query.page_size()?).await?;
        let PageOf { items, total, next } = page.map(to_api::device);
        Ok(Devices { devices: items, total, next })
    };
    answer(find.await)
}

pub(crate) async fn rename(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(id): Path<String>,
    request: Request,
) -> Response<Body> {
    let renamed = async {
        let Rename { name } = body(&front, request).await?;
        let change = Change { what: "rename_device", device: Some(&id), details: json!({"name": name}) };
        change.record(&front, &who, || {
            check_person(&front, &who, "devices are renamed")?;
            front.gateway.rename(&id, &name).map(to_api::device)
        })
    };
    answer(renamed.await)
}

pub(crate) async fn label(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(id): Path<String>,
    request: Request,
) -> Response<Body> {
    let labelled = async {
        let Labels { add, remove } = body(&front, request).await?;
        let change = Change { what: "label_device", device: Some(&id), details: json!({"add": add, "remove": remove}) };
        let parse = |labels: Vec<String>| labels.iter().map(|label| Label::parse(label)).collect::<Result<Vec<_>, _>>();
        change.record(&front, &who, || {
            check_person(&front, &who, "devices are labelled")?;
            front.gateway.label(&id, &parse(add)?, &parse(remove)?).map(to_api::device)
        })
    };
    answer(labelled.await)
}

/// Which tools of a device are held back, and why.
pub(crate) async fn changes(State(front): State<Arc<FrontState>>, Path(id): Path<String>) -> Response<Body> {
    answer(front.gateway.changes(&id).map(to_api::changes))
}

pub(crate) async fn forget(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(id): Path<String>,
) -> Response<Body> {
    let change = Change { what: "forget_device", device: Some(&id), details: json!({}) };
    answer(change.record(&front, &who, || {
        check_person(&front, &who, "devices are forgotten")?;
        front.gateway.forget(&id).map(to_api::device)
    }))
}

pub(crate) async fn pin(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(id): Path<String>,
    request: Request,
) -> Response<Body> {
    let pinned = async {
        let Pin { follow } = body_or_default(&front, request).await?;
        let follow = match follow.as_deref() {
            None => Follow::default(),
            Some(word) => Follow::parse(word).ok_or_else(|| {
                let issue = "must be `patch`, `minor` or `major`";
                ToolError::new(ErrorKind::InvalidArguments, format!("`follow` {issue}"))
                    .with_details(json!({"parameter_name": "follow", "issue": issue}))
            })?,
        };
        let change = Change { what: "pin_device", device: Some(&id), details: json!({"follow": follow.word()}) };
        change.record(&front, &who, || {
            check_person(&front, &who, "devices are pinned")?;
            front.gateway.pin(&id, follow).map(to_api::device)
        })
    };
    answer(pinned.await)
}

pub(crate) async fn unpin(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(id): Path<String>,
) -> Response<Body> {
    let change = Change { what: "unpin_device", device: Some(&id), details: json!({}) };
    answer(change.record(&front, &who, || {
        check_person(&front, &who, "devices are unpinned")?;
        front.gateway.unpin(&id).map(to_api::device)
    }))
}

/// Accepts what is held back and was shown under a digest: one tool, or everything.
pub(crate) async fn accept(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(id): Path<String>,
    request: Request,
) -> Response<Body> {
    let accepted = async {
        let Accept { digest, tool } = body(&front, request).await?;
        let details = json!({"digest": digest, "tool": tool});
        let change = Change { what: "accept_changes", device: Some(&id), details };
        change.record(&front, &who, || {
            check_person(&front, &who, "changes of tools are accepted")?;
            front.gateway.accept(&id, &digest, tool.as_deref()).map(to_api::device)
        })
    };
    answer(accepted.await)
}

/// The boards that wait for approval.
pub(crate) async fn status(State(front): State<Arc<FrontState>>) -> Response<Body> {
    let brokers = front.gateway.presences().into_iter();
    let brokers = brokers.map(|(broker, Presences { waiting, silent })| BrokerPresences { broker, waiting, silent });
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    answer(Ok(GatewayStatus {
        waiting_boards: front.gateway.waiting().len(),
        brokers: brokers.collect(),
        store_problem: front.gateway.store_problem(),
        config_problem: front.gateway.config_problem(),
        routines: front.gateway.routines_folder().map(|folder| folder.display().to_string()),
        tasks,
    }))
}

pub(crate) async fn boards(State(front): State<Arc<FrontState>>) -> Response<Body> {
    answer(Ok(WaitingBoards { boards: front.gateway.waiting().into_iter().map(to_api::board).collect() }))
}

pub(crate) async fn approve(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    request: Request,
) -> Response<Body> {
    let approved = async {
        let Approve { code } = body(&front, request).await?;
        let approved = front.gateway.approve(&code);
        let hardware_id = approved.as_ref().ok().map(|board| board.hardware_id.clone());
        let change = Change { what: "approve_board", device: None, details: json!({"hardware_id": hardware_id}) };
        change.record(&front, &who, || approved.map(to_api::board))
    };
    answer(approved.await)
}

pub(crate) async fn tools(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    query: Query,
) -> Response<Body> {
    let listed = async {
        let device = query.text("device").map(|text| front.gateway.seen_by(&who).device(text)).transpose()?;
        let device = device.map(|device| device.id);
        let shape = match (query.text("shape"), &device) {
            (Some("unfolded"), _) | (None, Some(_)) => Shape::Unfolded,
            (Some("folded") | None, None) => Shape::Folded,
            (Some(_), _) => {
                let message = "`shape` must be `folded` or `unfolded`; with `device` it is `unfolded`";
                return Err(ToolError::new(ErrorKind::InvalidArguments, message));
            }
        };
        let listing = front.listing(&who, shape.into()).await;
        let tools = listing.list.tools.iter().zip(&listing.simplified);
        let fitting = tools.filter(|(tool, _)| device.is_none() || tool.device == device);
        Ok::<Tools, ToolError>(Tools {
            tools: fitting.map(|(tool, simplified)| to_api::tool(tool, simplified, device.is_some())).collect(),
        })
    };
    answer(listed.await)
}

pub(crate) async fn call(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    request: Request,
) -> Response<Body> {
    let door = Door::of(request.extensions());
    let trace = trace::of_headers(request.headers());
    let has_stream = request.headers().get(header::ACCEPT).is_some_and(|wanted| wanted == live_call::LINES);
    let wanted: CallRequest = match body(&front, request).await {
        Ok(wanted) => wanted,
        Err(error) => return answer::<CallResult>(Err(error)),
    };
    match has_stream {
        true => live_call::stream(|caller| make_call(front, (*who).clone(), door, wanted, trace, caller)),
        false => answer(make_call(front, (*who).clone(), door, wanted, trace, Arc::new(Silent)).await),
    }
}

async fn make_call(
    front: Arc<FrontState>,
    who: Principal,
    door: &'static str,
    wanted: CallRequest,
    trace: Option<TraceParent>,
    caller: Arc<dyn Caller>,
) -> Result<CallResult, ToolError> {
    let _running = front.calls.token();
    let budget = wanted.timeout_ms.map(Duration::from_millis);
    let is_confirmed = wanted.confirmed && may_confirm(&front, &who);
    let request = Call { budget, is_confirmed, caller, trace, ..Call::new(who, wanted.tool, wanted.arguments, door) };
    let outcome = match wanted.device {
        Some(device) => Box::pin(front.gateway.call_on(&device, request)).await,
        None => Box::pin(front.gateway.call(request)).await,
    };
    outcome.map(to_api::result)
}

/// With `wait_ms`, an empty answer waits until an event arrives or the time is up.
pub(crate) async fn events(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    query: Query,
) -> Response<Body> {
    let read = async {
        let limit = query.number("limit")?.unwrap_or(100).clamp(1, 1000) as usize;
        let wait = Duration::from_millis(query.number("wait_ms")?.unwrap_or(0)).min(LONGEST_WAIT);
        let deadline = tokio::time::Instant::now() + wait;
        let (device, since) = (query.text("device"), query.text("since"));
        let mut watch = front.gateway.watch_as(&who, Shape::Folded);
        let mut since = since.map(str::to_owned);
        loop {
            let page = front.gateway.seen_by(&who).events(device, since.as_deref(), limit).await?;
            if !page.events.is_empty() || tokio::time::Instant::now() >= deadline {
                return Ok(to_api::events(page));
            }
            since = Some(page.next.clone());
            let event = async { while !matches!(watch.next().await, Update::Event { .. } | Update::Devices { .. }) {} };
            tokio::select! {
                () = event => {}
                () = tokio::time::sleep_until(deadline) => {}
                () = front.drain.cancelled() => return Ok(to_api::events(page)),
            }
        }
    };
    answer(read.await)
}

pub(crate) async fn tokens(State(front): State<Arc<FrontState>>, query: Query) -> Response<Body> {
    let list = || {
        let page = front.gateway.tokens().page(query.text("after"), query.page_size()?)?;
        let PageOf { items, total, next } = page.map(to_api::token);
        Ok(TokenList { tokens: items, total, next })
    };
    answer(list())
}

pub(crate) async fn new_token(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    request: Request,
) -> Response<Body> {
    let made = async {
        let NewToken { role, label, device, expires_in_s, if_taken } = body(&front, request).await?;
        let role = match (role, device) {
            (TokenRole::Client, None) => Role::Client,
            (TokenRole::Admin, None) => Role::Admin,
            (TokenRole::Device, Some(device)) if !device.is_empty() => Role::Device(device),
            _ => {
                let message = "`device` must be the id of the device for the role `device`, and left out for others";
                return Err(ToolError::new(ErrorKind::InvalidArguments, message));
            }
        };
        let expires = expires_in_s.map(|seconds| unix_ms().saturating_add(seconds.saturating_mul(1000)));
        let mut details =
            json!({"role": role.word(), "device": role.device(), "label": label, "expires_in_s": expires_in_s});
        let if_taken = match if_taken {
            sinew_api::IfTaken::Refuse => IfTaken::Refuse,
            sinew_api::IfTaken::Number => IfTaken::Number,
            sinew_api::IfTaken::Replace => {
                details["replace"] = json!(true);
                IfTaken::Replace
            }
        };
        let change = Change { what: "new_token", device: None, details };
        let expires = expires.map(|at| i64::try_from(at).unwrap_or(i64::MAX));
        let create = || front.gateway.tokens().create_until(role, &label, expires, if_taken);
        let (view, token) = change.record(&front, &who, create)?;
        Ok(CreatedToken { about: to_api::token(view), token })
    };
    answer(made.await)
}

fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) async fn revoke_token(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(id): Path<String>,
) -> Response<Body> {
    let change = Change { what: "revoke_token", device: None, details: json!({"token": id}) };
    let revoke = || {
        let revoked = front.gateway.tokens().revoke(&id).map(to_api::token)?;
        front.gateway.end_leases(&id);
        Ok(revoked)
    };
    answer(change.record(&front, &who, revoke))
}

/// What an administrator changes; the audit has it whether or not it works.
pub(crate) struct Change<'a> {
    pub(crate) what: &'static str,
    pub(crate) device: Option<&'a str>,
    pub(crate) details: Value,
}

impl Change<'_> {
    pub(crate) fn record<T>(
        self,
        front: &FrontState,
        who: &Principal,
        make: impl FnOnce() -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        // Found before the change, which may forget the device.
        let device = self.device.and_then(|text| front.gateway.find_device(text)).map(|device| device.id);
        let made = make();
        let failure = made.as_ref().err().map(|error| error.kind);
        front.gateway.record_change(who, self.what, device, self.details, failure);
        made
    }
}

pub(crate) async fn audit(State(front): State<Arc<FrontState>>, query: Query) -> Response<Body> {
    let read = async {
        let limit = query.number("limit")?.unwrap_or(100).clamp(1, 10_000) as usize;
        // A device that was forgotten can still be found by its id.
        let device = query.text("device").map(|text| {
            front.gateway.find_device(text).map_or_else(|| text.to_owned(), |device| device.id.to_string())
        });
        let number = |key| Ok(query.number(key)?.map(|number| i64::try_from(number).unwrap_or(i64::MAX)));
        let text = |key| query.text(key).map(str::to_owned);
        if let Some(kind) = query.text("kind").filter(|kind| RecordKind::ALL.iter().all(|known| known.word() != *kind))
        {
            let words = RecordKind::ALL.map(RecordKind::word).join(", ");
            let message = format!("no record has the kind `{}`; expected one of {words}", cut(kind, 64));
            return Err(ToolError::new(ErrorKind::InvalidArguments, message));
        }
        let filter = AuditFilter {
            device,
            principal: text("principal"),
            outcome: text("outcome"),
            kind: text("kind"),
            run: text("run"),
            since: number("since")?,
            before: number("before")?,
            after: number("after")?,
        };
        let records = front.gateway.find_records(filter, limit).await?;
        Ok(Audit { records: records.into_iter().map(to_api::record).collect() })
    };
    answer(read.await)
}

/// Recent calls with their answers.
pub(crate) async fn journal(State(front): State<Arc<FrontState>>, query: Query) -> Response<Body> {
    let find = || {
        let limit = query.number("limit")?.unwrap_or(20).clamp(1, 1_000) as usize;
        let after = query.number("after")?.unwrap_or(0);
        let calls = front.gateway.find_journal(after, query.text("device"), limit)?;
        let calls = calls.iter().map(|entry| to_api::journal_call(entry)).collect();
        Ok(Journal { on: front.gateway.has_journal(), last: front.gateway.last_journal_id(), calls })
    };
    answer(find())
}

/// Keeps the journal on for a while. Whoever records asks again and again, so that it goes off by itself afterwards.
pub(crate) async fn record_journal(State(front): State<Arc<FrontState>>, request: Request) -> Response<Body> {
    let recorded = async {
        let RecordJournal { seconds, name } = body(&front, request).await?;
        let least = if name.is_some() { 0 } else { 1 };
        if !(least..=LONGEST_RECORDING_S).contains(&seconds) {
            let message = format!("`seconds` is {seconds}; expected {least} to {LONGEST_RECORDING_S}");
            return Err(ToolError::new(ErrorKind::InvalidArguments, message));
        }
        if seconds > 0 {
            let (recording, ended) = (front.gateway.record_journal(), front.recordings.begin(name));
            front.tasks.spawn(front.drain.clone().run_until_cancelled_owned(async move {
                let _ = tokio::time::timeout(Duration::from_secs(seconds), ended.cancelled()).await;
                drop(recording);
            }));
        } else {
            front.recordings.end(&name.unwrap_or_default());
        }
        let on = front.gateway.has_journal();
        Ok(Journal { on, last: front.gateway.last_journal_id(), calls: Vec::new() })
    };
    answer(recorded.await)
}

/// Whether the audit is as it was written.
pub(crate) async fn verify_audit(State(front): State<Arc<FrontState>>) -> Response<Body> {
    answer(front.gateway.verify_audit().await.map(to_api::audit_check))
}

/// What each tool does.
pub(crate) async fn effects(State(front): State<Arc<FrontState>>, query: Query) -> Response<Body> {
    let find = async {
        let wanted = EffectFilter::read(|key| query.text(key))?;
        let page = front.gateway.effects(wanted, query.text("after"), query.page_size()?).await?;
        let PageOf { items, total, next } = page.map(to_api::marked_tool);
        Ok(Effects { tools: items, total, next })
    };
    answer(find.await)
}

/// Which selectors of a policy match nothing that is known now.
pub(crate) async fn check_policy(State(front): State<Arc<FrontState>>, request: Request) -> Response<Body> {
    let checked = async {
        let CheckPolicy { policy } = body(&front, request).await?;
        let mut settings = PolicySettings::default();
        let read = settings.read(policy);
        read.map_err(|error: serde_json::Error| ToolError::new(ErrorKind::InvalidArguments, error.to_string()))?;
        let warnings = front.gateway.check_policy(&settings).into_iter();
        let warning = |problem: PolicyProblem| PolicyWarning { key: problem.key, message: problem.message };
        Ok(PolicyWarnings { warnings: warnings.map(warning).collect() })
    };
    answer(checked.await)
}

pub(crate) async fn explain(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    request: Request,
) -> Response<Body> {
    let explained = async {
        let Explain { token, device, tool, arguments } = body(&front, request).await?;
        let may_confirm = may_confirm(&front, &who);
        let who = match token {
            Some(label) => token_holder(&front, &label)?,
            None => (*who).clone(),
        };
        let explanation = front.gateway.explain(&who, &device, &tool, &arguments)?;
        Ok(to_api::explained(explanation, may_confirm))
    };
    answer(explained.await)
}

/// Whoever has the token with this label, as a caller of tools.
fn token_holder(front: &FrontState, label: &str) -> Result<Principal, ToolError> {
    let tokens = front.gateway.tokens().list();
    let token = tokens.into_iter().find(|token| token.label == label).ok_or_else(|| {
        let message = format!("no token has the label `{}`; `sinew token list` shows them", clean_line(label, 64));
        ToolError::new(ErrorKind::UnknownResource, message)
    })?;
    let role = if token.role == sinew_gateway::shared::TokenKind::Admin.word() { Role::Admin } else { Role::Client };
    Ok(Principal::new(token.label, role))
}

pub(crate) async fn body<T: DeserializeOwned>(front: &FrontState, request: Request) -> Result<T, ToolError> {
    parse(&read(front, request).await?.bytes)
}

/// The body of a request that needs none.
async fn body_or_default<T: DeserializeOwned + Default>(front: &FrontState, request: Request) -> Result<T, ToolError> {
    let message = read(front, request).await?;
    if message.bytes.is_empty() { Ok(T::default()) } else { parse(&message.bytes) }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ToolError> {
    serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => ToolError::new(ErrorKind::InvalidArguments, error.to_string()),
        _ => ToolError::new(ErrorKind::Parse, inspect::explain(bytes).message),
    })
}

async fn read(front: &FrontState, request: Request) -> Result<RequestBody, ToolError> {
    let (parts, body) = request.into_parts();
    crate::body::read(front, &parts, body).await.map_err(|unread| match unread {
        BodyError::Refused(refusal) => refusal.to_error(),
        BodyError::Slow => ToolError::new(ErrorKind::InvalidRequest, TOO_SLOW),
        BodyError::Broken => ToolError::new(ErrorKind::InvalidRequest, "the request ended early; send it again"),
    })
}

pub(crate) fn answer<T: Serialize>(answer: Result<T, ToolError>) -> Response<Body> {
    match answer {
        Ok(answer) => match serde_json::to_vec(&answer) {
            Ok(body) => reply::json_body(StatusCode::OK, body),
            Err(_) => reply::empty(StatusCode::INTERNAL_SERVER_ERROR),
        },
        Err(error) => {
            let failure = RequestFailure { error: error.to_object(), code: error.kind.row().code };
            let body = serde_json::to_vec(&failure).unwrap_or_default();
            reply::json_body(status_code(error.kind), body)
        }
    }
}

/// The HTTP status that fits a kind of error best.
fn status_code(kind: ErrorKind) -> StatusCode {
    let row = kind.row();
    match (kind, row.retry, row.actor) {
        (ErrorKind::UnknownTool | ErrorKind::UnknownDevice | ErrorKind::UnknownResource, ..) => StatusCode::NOT_FOUND,
        (ErrorKind::PermissionDenied, ..) => StatusCode::FORBIDDEN,
        (ErrorKind::TooLarge, ..) => StatusCode::PAYLOAD_TOO_LARGE,
        (ErrorKind::Timeout, ..) => StatusCode::GATEWAY_TIMEOUT,
        (ErrorKind::Internal, ..) => StatusCode::INTERNAL_SERVER_ERROR,
        (_, Retry::Later, _) => StatusCode::SERVICE_UNAVAILABLE,
        (_, _, Actor::Device) => StatusCode::BAD_GATEWAY,
        _ => StatusCode::BAD_REQUEST,
    }
}
