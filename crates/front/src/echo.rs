//! Baseline servers for the benchmark: what the same call costs without a gateway.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{any_service, post};
use http::{Response, StatusCode};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::connection_places::ConnectionPlaces;
use crate::http::HttpConnections;
use crate::{FrontLimits, endpoint, reply};

/// An rmcp server configured like ours, with one tool `echo` that answers its arguments.
pub async fn run_rmcp_echo(listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
    let stop = CancellationToken::new();
    let config = endpoint::config(stop.clone(), FrontLimits::default().body);
    let service = StreamableHttpService::new(|| Ok(Echo), Arc::new(LocalSessionManager::default()), config);
    serve(listener, Router::new().route("/mcp", any_service(service)), &shutdown).await;
    stop.cancel();
    Ok(())
}

/// A plain handler that reads a `tools/call` and answers its arguments, without an MCP library and without checks.
pub async fn run_axum_echo(listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
    serve(listener, Router::new().route("/mcp", post(bare)), &shutdown).await;
    Ok(())
}

async fn serve(listener: TcpListener, app: Router, shutdown: &CancellationToken) {
    let connections = HttpConnections { app, ..HttpConnections::default() };
    connections.accept(listener, &ConnectionPlaces::new(&FrontLimits::default()), shutdown).await;
    connections.cut.cancel();
    connections.tasks.close();
    connections.tasks.wait().await;
}

async fn bare(body: Bytes) -> Response<Body> {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return reply::empty(StatusCode::BAD_REQUEST);
    };
    let text = request["params"]["arguments"].to_string();
    let result = json!({"content": [{"type": "text", "text": text}], "isError": false});
    reply::value(StatusCode::OK, &json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = JsonObject::from_iter([("type".to_owned(), json!("object"))]);
        Ok(ListToolsResult::with_all_items(vec![Tool::new("echo", "Answers its arguments", Arc::new(schema))]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = Value::Object(request.arguments.unwrap_or_default()).to_string();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}
