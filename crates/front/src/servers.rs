//! Administration of the MCP servers that the gateway calls. Whoever composes the gateway keeps their list.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use http::Response;
use sinew_api::{FoundServers, NewServer, Server, Servers};
use sinew_tool::{BoxFuture, ErrorKind, ToolError, json};
use tokio::sync::watch;

use crate::api::{Authenticated, Change, answer, body};
use crate::state::FrontState;

/// The servers that the gateway calls: those of the configuration, and those that administrators add.
pub trait ServerList: Send + Sync {
    fn list(&self) -> Vec<Server>;
    /// Changes whenever the list does.
    fn changes(&self) -> watch::Receiver<()>;
    fn add(&self, server: NewServer) -> BoxFuture<'_, Result<Server, ToolError>>;
    fn remove(&self, name: &str) -> Result<Server, ToolError>;
    /// Looks for servers on the network.
    fn find(&self) -> BoxFuture<'_, FoundServers>;
    /// Adds a server that was found.
    fn approve(&self, name: &str) -> Result<Server, ToolError>;
}

fn list(front: &FrontState) -> Result<&dyn ServerList, ToolError> {
    front.servers.as_deref().ok_or_else(|| ToolError::new(ErrorKind::Unsupported, "this gateway calls no servers"))
}

pub(crate) async fn servers(State(front): State<Arc<FrontState>>) -> Response<Body> {
    answer(list(&front).map(|list| Servers { servers: list.list() }))
}

pub(crate) async fn add(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    request: Request,
) -> Response<Body> {
    let added = async {
        let server: NewServer = body(&front, request).await?;
        let details = json!({"url": server.url, "name": server.name});
        let added = list(&front)?.add(server).await;
        Change { what: "add_server", device: None, details }.record(&front, &who, || added)
    };
    answer(added.await)
}

pub(crate) async fn remove(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(name): Path<String>,
) -> Response<Body> {
    let change = Change { what: "remove_server", device: None, details: json!({"name": name}) };
    answer(change.record(&front, &who, || list(&front)?.remove(&name)))
}

pub(crate) async fn find(State(front): State<Arc<FrontState>>) -> Response<Body> {
    answer(match list(&front) {
        Ok(list) => Ok(list.find().await),
        Err(error) => Err(error),
    })
}

pub(crate) async fn approve(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(name): Path<String>,
) -> Response<Body> {
    let approved = list(&front).and_then(|list| list.approve(&name));
    let address = approved.as_ref().ok().map(|server| server.address.clone());
    let details = json!({"name": name, "url": address});
    answer(Change { what: "approve_server", device: None, details }.record(&front, &who, || approved))
}
