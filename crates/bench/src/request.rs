//! The requests the load generator sends, as bytes: MCP's stateless era over Streamable HTTP.

use std::net::SocketAddr;

use serde_json::{Value, json};

/// Where tools are listed with portable schemas.
pub(crate) const ENDPOINT: &str = "/mcp";
/// Where they are listed with the schemas of the devices.
pub(crate) const EXACT_ENDPOINT: &str = "/mcp?schemas=exact";

const VERSION: &str = "2026-07-28";

/// A `tools/call` as a client of today's MCP sends it.
pub(crate) fn call(address: SocketAddr, token: &str, tool: &str, arguments: Value) -> Vec<u8> {
    call_at(ENDPOINT, address, token, tool, arguments)
}

/// The same at an endpoint of the caller's choosing.
pub(crate) fn call_at(path: &str, address: SocketAddr, token: &str, tool: &str, arguments: Value) -> Vec<u8> {
    mcp(path, address, token, "tools/call", Some(tool), json!({"name": tool, "arguments": arguments}))
}

pub(crate) fn list_at(path: &str, address: SocketAddr, token: &str) -> Vec<u8> {
    mcp(path, address, token, "tools/list", None, json!({}))
}

/// A request with a JSON body to the HTTP interface.
pub(crate) fn post(address: SocketAddr, token: &str, path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn mcp(path: &str, address: SocketAddr, token: &str, method: &str, name: Option<&str>, mut params: Value) -> Vec<u8> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "sinew-bench", "version": env!("CARGO_PKG_VERSION")},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: {VERSION}\r\nMcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
