//! The table of all HTTP routes. The guard, the documentation and the OpenAPI document are made from it.

use crate::document::{BodySchema, body};
use crate::{
    Accept, Approvals, Approve, Audit, AuditCheck, CallRequest, CallResult, Changes, CheckPolicy, ClusterState,
    CreatedPerson, CreatedToken, Decide, DeviceLease, DeviceSummary, Devices, DraftRoutine, Effects, Events, Explain,
    Explained, FoundServers, GatewayStatus, Grant, Grants, HealthStatus, Journal, Labels, LoginLink, NewPerson,
    NewRoutine, NewServer, NewToken, Overview, People, Person, PersonRole, Pin, PolicyWarnings, Readiness,
    RecordJournal, Released, Rename, Reserve, Reserved, RoutineDraft, SavedRoutine, Server, Servers, SignInEntry,
    SignIns, Token, TokenList, Tools, WaitingBoard, WaitingBoards, WaitingCall,
};

/// Who may use a route with a token. What a session of the console may use is [`Route::person_role`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody: the answer is not secret.
    Open,
    /// Clients and administrators.
    Client,
    /// Administrators.
    Admin,
}

impl Access {
    pub fn as_str(self) -> &'static str {
        match self {
            Access::Open => "none",
            Access::Client => "client",
            Access::Admin => "admin",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Delete,
    /// The path uses several methods, as its own protocol says.
    Any,
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Delete => "DELETE",
            Method::Any => "any",
        }
    }
}

/// A value in the query of an address.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub about: &'static str,
    pub kind: ParameterKind,
}

#[derive(Clone, Copy, Debug)]
pub enum ParameterKind {
    Text,
    /// May be given several times.
    Texts,
    Number,
    OneOf(&'static [&'static str]),
}

/// What a route does. Each has one handler in `sinew-front`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Mcp,
    McpStream,
    RestInitialize,
    RestCall,
    RestList,
    RestListPosted,
    Health,
    Ready,
    Metrics,
    Status,
    Overview,
    Document,
    Devices,
    Rename,
    Label,
    Forget,
    Changes,
    Pin,
    Unpin,
    Accept,
    Boards,
    Approve,
    Servers,
    AddServer,
    RemoveServer,
    FindServers,
    ApproveServer,
    Cluster,
    Tools,
    Call,
    Events,
    Tokens,
    NewToken,
    RevokeToken,
    Reserve,
    Release,
    BreakLease,
    PhoneScreen,
    InstallApp,
    People,
    AddPerson,
    RemovePerson,
    LoginLink,
    CheckPolicy,
    Audit,
    Journal,
    RecordJournal,
    DraftRoutine,
    SaveRoutine,
    VerifyAudit,
    Backup,
    Approvals,
    Approval,
    Decide,
    Grants,
    RevokeGrant,
    SignIns,
    EndSignIn,
    Effects,
    Explain,
}

pub struct Route {
    pub operation: Operation,
    pub method: Method,
    /// With placeholders such as `{id}`.
    pub path: &'static str,
    pub access: Access,
    /// What it does, in a line.
    pub about: &'static str,
    pub parameters: &'static [Parameter],
    pub(crate) request: Option<BodySchema>,
    /// `None` when the answer belongs to another protocol.
    pub(crate) answer: Option<BodySchema>,
}

const fn parameter(name: &'static str, kind: ParameterKind, about: &'static str) -> Parameter {
    Parameter { name, about, kind }
}

const fn route(operation: Operation, method: Method, path: &'static str, access: Access, about: &'static str) -> Route {
    Route { operation, method, path, access, about, parameters: &[], request: None, answer: None }
}

impl Route {
    const fn with(self, parameters: &'static [Parameter]) -> Route {
        Route { parameters, ..self }
    }

    const fn takes(self, request: BodySchema) -> Route {
        Route { request: Some(request), ..self }
    }

    const fn gives(self, answer: BodySchema) -> Route {
        Route { answer: Some(answer), ..self }
    }

    /// Who may use it in a session of the console; `None` for routes that belong to other protocols.
    pub fn person_role(&self) -> Option<PersonRole> {
        // A backup has every key; a page is never sent one.
        if !self.path.starts_with("/api/v1/") || self.operation == Operation::Backup {
            return None;
        }
        Some(match (self.operation, self.method) {
            // Looking for servers sends requests into the network.
            (Operation::FindServers, _) => PersonRole::Admin,
            // Looking at a screen is a call of a tool.
            (Operation::PhoneScreen, _) => PersonRole::Admin,
            (Operation::Explain | Operation::CheckPolicy, _) | (_, Method::Get) => PersonRole::Viewer,
            (Operation::Decide | Operation::RevokeGrant, _) => PersonRole::Approver,
            _ => PersonRole::Admin,
        })
    }
}

const DEVICE: Parameter = parameter("device", ParameterKind::Text, "id or name of a device");
const LIMIT: Parameter = parameter("limit", ParameterKind::Number, "how many at most");
const PAGE: Parameter = parameter("limit", ParameterKind::Number, "how many on a page, up to 1000 (100)");
const AFTER: Parameter = parameter("after", ParameterKind::Text, "`next` of the page before");

use Access::{Admin, Client, Open};
use Method::{Any, Delete, Get, Post};

/// Every route. Other paths answer 404 to requests with a valid token.
pub const ROUTES: &[Route] = &[
    route(Operation::Mcp, Any, "/mcp", Client, "MCP over Streamable HTTP"),
    route(Operation::McpStream, Get, "/mcp/stream", Client, "MCP as lines, after an upgrade of the connection"),
    route(Operation::RestInitialize, Post, "/mcp/v1/initialize", Client, "JSON-RPC without a session"),
    route(Operation::RestCall, Post, "/mcp/v1/tools/call", Client, "JSON-RPC without a session"),
    route(Operation::RestList, Get, "/mcp/v1/tools/list", Client, "the tools, as JSON-RPC lists them"),
    route(Operation::RestListPosted, Post, "/mcp/v1/tools/list", Client, "JSON-RPC without a session"),
    route(Operation::Health, Get, "/health", Open, "whether the gateway is alive").gives(body::<HealthStatus>()),
    route(Operation::Ready, Get, "/ready", Open, "whether it can make calls; 503 if not").gives(body::<Readiness>()),
    route(Operation::Metrics, Get, "/metrics", Client, "counts and times for Prometheus, as OpenMetrics text"),
    route(Operation::Document, Get, "/api/v1/openapi.json", Open, "this interface as an OpenAPI document"),
    route(Operation::Status, Get, "/api/v1/status", Admin, "what waits, and what the gateway runs")
        .gives(body::<GatewayStatus>()),
    route(Operation::Overview, Get, "/api/v1/overview", Admin, "what goes on, in a few numbers")
        .gives(body::<Overview>()),
    route(Operation::Devices, Get, "/api/v1/devices", Client, "the devices")
        .with(&[
            parameter("search", ParameterKind::Text, "words that its id, name, kind, key or labels contain"),
            parameter("state", ParameterKind::OneOf(&["ready", "away", "other"]), "whether it can be used"),
            parameter("family", ParameterKind::Text, "`board`, `phone`, `app` or another family"),
            parameter("label", ParameterKind::Text, "a label that it has"),
            parameter("id", ParameterKind::Texts, "only this device, by id or name; may be repeated"),
            AFTER,
            PAGE,
        ])
        .gives(body::<Devices>()),
    route(Operation::Rename, Post, "/api/v1/devices/{id}/rename", Admin, "name a device; an empty name removes it")
        .takes(body::<Rename>())
        .gives(body::<DeviceSummary>()),
    route(Operation::Label, Post, "/api/v1/devices/{id}/labels", Admin, "add labels to a device, or remove some")
        .takes(body::<Labels>())
        .gives(body::<DeviceSummary>()),
    route(Operation::Forget, Post, "/api/v1/devices/{id}/forget", Admin, "forget a device that is away")
        .gives(body::<DeviceSummary>()),
    route(Operation::Reserve, Post, "/api/v1/devices/{id}/reserve", Client, "have a device to oneself for a while")
        .takes(body::<Reserve>())
        .gives(body::<Reserved>()),
    route(Operation::Release, Post, "/api/v1/devices/{id}/release", Client, "give a reserved device back")
        .gives(body::<Released>()),
    route(
        Operation::BreakLease,
        Post,
        "/api/v1/devices/{id}/break-lease",
        Admin,
        "take a device away from whoever has it",
    )
    .gives(body::<DeviceLease>()),
    route(
        Operation::PhoneScreen,
        Get,
        "/api/v1/phones/{id}/screen",
        Client,
        "the next picture of a phone's screen (JPEG); 304 after 5 s without change",
    )
    .with(&[
        parameter("max_side", ParameterKind::Number, "the longest side in pixels, 16 to 4096 (540)"),
        parameter("quality", ParameterKind::Number, "JPEG quality, 1 to 100 (60)"),
        parameter("known", ParameterKind::Text, "the `ETag` of the last picture, where `If-None-Match` cannot be sent"),
    ]),
    route(
        Operation::InstallApp,
        Post,
        "/api/v1/phones/{id}/apps",
        Client,
        "install an app: the body is an APK, or several one after another",
    )
    .with(&[parameter("sizes", ParameterKind::Text, "the size of each APK in bytes, separated by commas")])
    .gives(body::<CallResult>()),
    route(Operation::Changes, Get, "/api/v1/devices/{id}/changes", Admin, "which of its tools are held back, and why")
        .gives(body::<Changes>()),
    route(Operation::Pin, Post, "/api/v1/devices/{id}/pin", Admin, "pin its tools")
        .takes(body::<Pin>())
        .gives(body::<DeviceSummary>()),
    route(Operation::Unpin, Post, "/api/v1/devices/{id}/unpin", Admin, "unpin its tools")
        .gives(body::<DeviceSummary>()),
    route(
        Operation::Accept,
        Post,
        "/api/v1/devices/{id}/accept",
        Admin,
        "accept what is held back, named by its digest",
    )
    .takes(body::<Accept>())
    .gives(body::<DeviceSummary>()),
    route(Operation::Boards, Get, "/api/v1/boards", Admin, "boards that wait for approval")
        .gives(body::<WaitingBoards>()),
    route(Operation::Approve, Post, "/api/v1/boards/approve", Admin, "approve a board")
        .takes(body::<Approve>())
        .gives(body::<WaitingBoard>()),
    route(Operation::Servers, Get, "/api/v1/servers", Admin, "MCP servers that the gateway calls")
        .gives(body::<Servers>()),
    route(Operation::AddServer, Post, "/api/v1/servers", Admin, "add an MCP server by its URL")
        .takes(body::<NewServer>())
        .gives(body::<Server>()),
    route(Operation::RemoveServer, Delete, "/api/v1/servers/{name}", Admin, "remove a server that was added")
        .gives(body::<Server>()),
    route(Operation::FindServers, Get, "/api/v1/found-servers", Admin, "look for MCP servers on the network")
        .gives(body::<FoundServers>()),
    route(Operation::ApproveServer, Post, "/api/v1/found-servers/{name}", Admin, "add a server that was found")
        .gives(body::<Server>()),
    route(Operation::Cluster, Get, "/api/v1/cluster", Admin, "the gateways of the cluster, as this one sees them")
        .gives(body::<ClusterState>()),
    route(Operation::Tools, Get, "/api/v1/tools", Client, "the tools, or those of one device")
        .with(&[
            DEVICE,
            parameter(
                "shape",
                ParameterKind::OneOf(&["folded", "unfolded"]),
                "one tool for equal devices, or one each",
            ),
        ])
        .gives(body::<Tools>()),
    route(Operation::Call, Post, "/api/v1/call", Client, "call a tool")
        .takes(body::<CallRequest>())
        .gives(body::<CallResult>()),
    route(Operation::Events, Get, "/api/v1/events", Client, "events sent by devices, oldest first")
        .with(&[
            DEVICE,
            parameter("since", ParameterKind::Text, "`next` of the last answer"),
            LIMIT,
            parameter("wait_ms", ParameterKind::Number, "how long to wait for an event, up to 55000"),
        ])
        .gives(body::<Events>()),
    route(Operation::Tokens, Get, "/api/v1/tokens", Admin, "the tokens, oldest first")
        .with(&[AFTER, PAGE])
        .gives(body::<TokenList>()),
    route(Operation::NewToken, Post, "/api/v1/tokens", Admin, "make a token")
        .takes(body::<NewToken>())
        .gives(body::<CreatedToken>()),
    route(Operation::RevokeToken, Delete, "/api/v1/tokens/{id}", Admin, "revoke a token").gives(body::<Token>()),
    route(Operation::People, Get, "/api/v1/people", Admin, "people who sign in to the console").gives(body::<People>()),
    route(Operation::AddPerson, Post, "/api/v1/people", Admin, "add a person who signs in to the console")
        .takes(body::<NewPerson>())
        .gives(body::<CreatedPerson>()),
    route(Operation::RemovePerson, Delete, "/api/v1/people/{name}", Admin, "remove a person, and end their sessions")
        .gives(body::<Person>()),
    route(Operation::LoginLink, Post, "/api/v1/login-links", Admin, "make a link that signs in to the console, once")
        .gives(body::<LoginLink>()),
    route(Operation::Approvals, Get, "/api/v1/approvals", Admin, "calls that wait for a person")
        .gives(body::<Approvals>()),
    route(
        Operation::Approval,
        Get,
        "/api/v1/approvals/{id}",
        Admin,
        "a call that waits for a person, with all arguments",
    )
    .gives(body::<WaitingCall>()),
    route(Operation::Decide, Post, "/api/v1/approvals/{id}", Admin, "approve or deny a call that waits")
        .takes(body::<Decide>())
        .gives(body::<WaitingCall>()),
    route(Operation::Grants, Get, "/api/v1/grants", Admin, "approvals that can still be used").gives(body::<Grants>()),
    route(Operation::RevokeGrant, Delete, "/api/v1/grants/{id}", Admin, "revoke an approval").gives(body::<Grant>()),
    route(Operation::SignIns, Get, "/api/v1/sign-ins", Admin, "the clients that people let in")
        .gives(body::<SignIns>()),
    route(Operation::EndSignIn, Delete, "/api/v1/sign-ins/{id}", Admin, "sign a client out")
        .gives(body::<SignInEntry>()),
    route(Operation::Effects, Get, "/api/v1/policy/effects", Admin, "what each tool does, and who says so")
        .with(&[
            parameter("search", ParameterKind::Text, "words that the device's id or the tool's name contains"),
            parameter("effect", ParameterKind::OneOf(&["read", "change", "danger", "unmarked"]), "what the tool does"),
            AFTER,
            PAGE,
        ])
        .gives(body::<Effects>()),
    route(Operation::Explain, Post, "/api/v1/policy/explain", Admin, "what the policy says about a call")
        .takes(body::<Explain>())
        .gives(body::<Explained>()),
    route(Operation::CheckPolicy, Post, "/api/v1/policy/check", Admin, "rules that match nothing that is known now")
        .takes(body::<CheckPolicy>())
        .gives(body::<PolicyWarnings>()),
    route(Operation::Audit, Get, "/api/v1/audit", Admin, "the newest records of the audit")
        .with(&[
            DEVICE,
            parameter("principal", ParameterKind::Text, "the name of the caller"),
            parameter("outcome", ParameterKind::Text, "`ok`, `failed`, or the `error_type` of a failure"),
            parameter("kind", ParameterKind::Text, "`call`, `decision`, `change` or `device`"),
            parameter("run", ParameterKind::Text, "the id of a run: a routine and its steps"),
            parameter("since", ParameterKind::Number, "only records of this time or later, in ms of Unix time"),
            parameter("before", ParameterKind::Number, "only records before the one with this id"),
            parameter("after", ParameterKind::Number, "only records after the one with this id"),
            LIMIT,
        ])
        .gives(body::<Audit>()),
    route(Operation::Journal, Get, "/api/v1/journal", Admin, "recent calls with their answers")
        .with(&[DEVICE, parameter("after", ParameterKind::Number, "only calls after the one with this id"), LIMIT])
        .gives(body::<Journal>()),
    route(Operation::RecordJournal, Post, "/api/v1/journal", Admin, "keep the journal on for a while")
        .takes(body::<RecordJournal>())
        .gives(body::<Journal>()),
    route(Operation::DraftRoutine, Post, "/api/v1/routines/draft", Admin, "make the text of a routine of recent calls")
        .takes(body::<DraftRoutine>())
        .gives(body::<RoutineDraft>()),
    route(Operation::SaveRoutine, Post, "/api/v1/routines", Admin, "check and write a new routine; replaces none")
        .takes(body::<NewRoutine>())
        .gives(body::<SavedRoutine>()),
    route(Operation::VerifyAudit, Get, "/api/v1/audit/verify", Admin, "whether the audit is as it was written")
        .gives(body::<AuditCheck>()),
    route(
        Operation::Backup,
        Post,
        "/api/v1/backup",
        Admin,
        "everything that the gateway remembers, secrets included, as a tar file",
    ),
];

/// The route for a method and a path of this table.
pub fn find(method: &str, path: &str) -> Option<&'static Route> {
    let method = if method == "HEAD" { "GET" } else { method };
    let fits = |route: &&Route| route.path == path && (route.method == Any || route.method.as_str() == method);
    ROUTES.iter().find(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_listed_once() {
        for (place, route) in ROUTES.iter().enumerate() {
            let same = |other: &Route| {
                other.operation == route.operation || (other.path == route.path && other.method == route.method)
            };
            assert_eq!(ROUTES.iter().position(same), Some(place), "{}", route.path);
        }
    }

    #[test]
    fn only_routes_without_secrets_are_open() {
        let open: Vec<&str> = ROUTES.iter().filter(|route| route.access == Open).map(|route| route.path).collect();
        assert_eq!(open, ["/health", "/ready", "/api/v1/openapi.json"]);
    }

    #[test]
    fn routes_that_change_the_gateway_need_an_administrator() {
        for route in ROUTES.iter().filter(|route| route.path.starts_with("/api/") && route.method != Get) {
            let is_use = matches!(
                route.operation,
                Operation::Call | Operation::Reserve | Operation::Release | Operation::InstallApp
            );
            assert_eq!(route.access == Admin, !is_use, "{}", route.path);
        }
    }

    #[test]
    fn viewers_change_nothing_and_approvers_only_decide() {
        let needs = |operation| ROUTES.iter().find(|route| route.operation == operation).and_then(Route::person_role);
        assert_eq!(needs(Operation::Decide), Some(PersonRole::Approver));
        assert_eq!(needs(Operation::Mcp), None);
        assert_eq!(needs(Operation::RevokeGrant), Some(PersonRole::Approver));
        let reads = [Operation::Explain, Operation::CheckPolicy];
        let decides = [Operation::Decide, Operation::RevokeGrant];
        for route in ROUTES.iter().filter(|route| route.method != Get && !decides.contains(&route.operation)) {
            let role = route.person_role();
            assert!(reads.contains(&route.operation) || role.is_none_or(|role| role == PersonRole::Admin));
        }
    }

    #[test]
    fn a_request_finds_its_route() {
        assert_eq!(find("DELETE", "/mcp").map(|route| route.operation), Some(Operation::Mcp));
        assert_eq!(find("HEAD", "/health").map(|route| route.access), Some(Open));
        assert!(find("PUT", "/api/v1/tokens").is_none());
    }
}
