//! The table of all routes of the HTTP interface. The guard, the documentation and the OpenAPI document come from it.

use crate::document::{Body, body};
use crate::{
    Accept, Approve, Audit, Board, Boards, Call, CallResult, Changes, Device, Devices, Events, Health, Labels,
    MadeToken, NewToken, Ready, Rename, Token, Tokens, Tools,
};

/// What a request must prove. How it does so is the guard's business: by a bearer token today; a browser session that
/// stands for a person is another way to prove the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: the answer is no secret.
    Open,
    /// That it comes from a client or an administrator.
    Client,
    /// That it comes from an administrator.
    Admin,
}

impl Access {
    pub fn word(self) -> &'static str {
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
    /// The path has a protocol of its own that uses several methods.
    Any,
}

impl Method {
    pub fn word(self) -> &'static str {
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
    Number,
    OneOf(&'static [&'static str]),
}

/// What a route does; each is handled by one function of the front.
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
    Tools,
    Call,
    Events,
    Tokens,
    NewToken,
    RevokeToken,
    Audit,
}

pub struct Route {
    pub operation: Operation,
    pub method: Method,
    /// With `{id}` where a value stands.
    pub path: &'static str,
    pub access: Access,
    /// What it does, in a line.
    pub about: &'static str,
    pub parameters: &'static [Parameter],
    pub request: Option<Body>,
    /// `None` where the answer belongs to another protocol.
    pub answer: Option<Body>,
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

    const fn takes(self, request: Body) -> Route {
        Route { request: Some(request), ..self }
    }

    const fn gives(self, answer: Body) -> Route {
        Route { answer: Some(answer), ..self }
    }
}

const DEVICE: Parameter = parameter("device", ParameterKind::Text, "id or name of a device");
const LIMIT: Parameter = parameter("limit", ParameterKind::Number, "how many at most");

use Access::{Admin, Client, Open};
use Method::{Any, Delete, Get, Post};

/// Every route. Paths that are not here answer 404 to those who have a token.
pub const ROUTES: &[Route] = &[
    route(Operation::Mcp, Any, "/mcp", Client, "MCP over Streamable HTTP"),
    route(Operation::McpStream, Get, "/mcp/stream", Client, "MCP as lines, after an upgrade of the connection"),
    route(Operation::RestInitialize, Post, "/mcp/v1/initialize", Client, "JSON-RPC without a session"),
    route(Operation::RestCall, Post, "/mcp/v1/tools/call", Client, "JSON-RPC without a session"),
    route(Operation::RestList, Get, "/mcp/v1/tools/list", Client, "the tools, as JSON-RPC lists them"),
    route(Operation::RestListPosted, Post, "/mcp/v1/tools/list", Client, "JSON-RPC without a session"),
    route(Operation::Health, Get, "/health", Open, "whether the gateway is alive").gives(body::<Health>()),
    route(Operation::Ready, Get, "/ready", Open, "whether it can carry out calls; 503 where not")
        .gives(body::<Ready>()),
    route(Operation::Document, Get, "/api/v1/openapi.json", Open, "this interface as an OpenAPI document"),
    route(Operation::Devices, Get, "/api/v1/devices", Client, "the devices").gives(body::<Devices>()),
    route(Operation::Rename, Post, "/api/v1/devices/{id}/rename", Admin, "name a device; an empty name removes it")
        .takes(body::<Rename>())
        .gives(body::<Device>()),
    route(Operation::Label, Post, "/api/v1/devices/{id}/labels", Admin, "add labels to a device, or remove some")
        .takes(body::<Labels>())
        .gives(body::<Device>()),
    route(Operation::Forget, Post, "/api/v1/devices/{id}/forget", Admin, "forget a device that is away")
        .gives(body::<Device>()),
    route(Operation::Changes, Get, "/api/v1/devices/{id}/changes", Client, "which of its tools are held back, and why")
        .gives(body::<Changes>()),
    route(Operation::Pin, Post, "/api/v1/devices/{id}/pin", Admin, "agree on its tools").gives(body::<Device>()),
    route(Operation::Unpin, Post, "/api/v1/devices/{id}/unpin", Admin, "end the agreement").gives(body::<Device>()),
    route(Operation::Accept, Post, "/api/v1/devices/{id}/accept", Admin, "accept a tool that is held back, or all")
        .takes(body::<Accept>())
        .gives(body::<Device>()),
    route(Operation::Boards, Get, "/api/v1/boards", Admin, "boards that wait for approval").gives(body::<Boards>()),
    route(Operation::Approve, Post, "/api/v1/boards/approve", Admin, "approve a board")
        .takes(body::<Approve>())
        .gives(body::<Board>()),
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
        .takes(body::<Call>())
        .gives(body::<CallResult>()),
    route(Operation::Events, Get, "/api/v1/events", Client, "events sent by devices, oldest first")
        .with(&[
            DEVICE,
            parameter("since", ParameterKind::Text, "`next` of the last answer"),
            LIMIT,
            parameter("wait_ms", ParameterKind::Number, "how long to wait for an event, up to 55000"),
        ])
        .gives(body::<Events>()),
    route(Operation::Tokens, Get, "/api/v1/tokens", Admin, "the tokens").gives(body::<Tokens>()),
    route(Operation::NewToken, Post, "/api/v1/tokens", Admin, "make a token")
        .takes(body::<NewToken>())
        .gives(body::<MadeToken>()),
    route(Operation::RevokeToken, Delete, "/api/v1/tokens/{id}", Admin, "revoke a token").gives(body::<Token>()),
    route(Operation::Audit, Get, "/api/v1/audit", Admin, "the newest calls").with(&[LIMIT]).gives(body::<Audit>()),
];

/// The route of a request: its method, and the path of the table that fits.
pub fn find(method: &str, path: &str) -> Option<&'static Route> {
    let method = if method == "HEAD" { "GET" } else { method };
    let fits = |route: &&Route| route.path == path && (route.method == Any || route.method.word() == method);
    ROUTES.iter().find(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_there_once() {
        for (place, route) in ROUTES.iter().enumerate() {
            let same = |other: &Route| {
                other.operation == route.operation || (other.path == route.path && other.method == route.method)
            };
            assert_eq!(ROUTES.iter().position(same), Some(place), "{}", route.path);
        }
    }

    #[test]
    fn only_what_is_no_secret_is_open() {
        let open: Vec<&str> = ROUTES.iter().filter(|route| route.access == Open).map(|route| route.path).collect();
        assert_eq!(open, ["/health", "/ready", "/api/v1/openapi.json"]);
    }

    #[test]
    fn what_changes_the_gateway_needs_an_administrator() {
        for route in ROUTES.iter().filter(|route| route.path.starts_with("/api/") && route.method != Get) {
            assert_eq!(route.access == Admin, route.operation != Operation::Call, "{}", route.path);
        }
    }

    #[test]
    fn a_request_finds_its_route() {
        assert_eq!(find("DELETE", "/mcp").map(|route| route.operation), Some(Operation::Mcp));
        assert_eq!(find("HEAD", "/health").map(|route| route.access), Some(Open));
        assert!(find("PUT", "/api/v1/tokens").is_none());
    }
}
