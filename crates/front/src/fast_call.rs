//! A fast path for a `tools/call` of 2026-07-28 that asks for nothing but its answer.
//!
//! rmcp gives every request a server of its own, with tasks and channels. That is too much for a call that reports no
//! progress. Here such a call is parsed, made and answered directly, with rmcp's types. Every other request, also an
//! invalid one, is left to rmcp.

use std::sync::Arc;

use axum::body::Body;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, Response, StatusCode};
use rmcp::model::{
    CallToolRequestParams, ErrorCode, JsonRpcError, JsonRpcResponse, JsonRpcVersion2_0, ProtocolVersion, RequestId,
    ServerResult,
};
use serde::Deserialize;
use sinew_gateway::{Principal, Shape};
use sinew_tool::TraceParent;

use crate::call::ToolCall;
use crate::mcp::as_model;
use crate::state::FrontState;
use crate::{reply, trace};

const METHOD: &str = "tools/call";

/// A call that can take the fast path.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FastCall<'a> {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    method: &'a str,
    params: CallToolRequestParams,
    #[serde(skip)]
    trace: Option<TraceParent>,
}

impl FastCall<'_> {
    pub(crate) fn read<'a>(headers: &HeaderMap, body: &'a [u8]) -> Option<FastCall<'a>> {
        // First, because headers are cheap to check.
        let version = ProtocolVersion::V_2026_07_28;
        let fits = has(headers, "mcp-protocol-version", version.as_str())
            && has(headers, "mcp-method", METHOD)
            && accepts(headers, "application/json")
            && accepts(headers, "text/event-stream");
        if !fits {
            return None;
        }
        let mut call: FastCall = serde_json::from_slice(body).ok()?;
        let meta = call.params.meta.as_ref()?;
        let is_plain = call.method == METHOD
            && has(headers, "mcp-name", &call.params.name)
            && meta.protocol_version() == Some(version.clone())
            && meta.missing_required_keys(&version).is_empty()
            && meta.get_progress_token().is_none()
            && meta.log_level().is_none();
        call.trace = trace::parent(meta.get(TraceParent::KEY), Some(headers));
        is_plain.then_some(call)
    }

    /// Makes the call and answers it. The call is dropped when the gateway stops first.
    pub(crate) async fn run(self, front: &FrontState, who: &Arc<Principal>, shape: Shape) -> Response<Body> {
        let answer = match ToolCall::modern(front, as_model(who), self.params) {
            Ok(tool_call) => {
                let tool_call = tool_call.traced(self.trace);
                // Boxed, because every layer around the request would move its size along.
                let call = Box::pin(front.gateway.call(tool_call.request(shape, "mcp")));
                let answer = front.stop.run_until_cancelled(call).await;
                let Some(answer) = answer else {
                    let id = serde_json::to_value(&self.id).unwrap_or_default();
                    let message = "the gateway stopped before the call ended; check whether it took effect";
                    return reply::rpc_error(StatusCode::INTERNAL_SERVER_ERROR, &id, -32603, message);
                };
                tool_call.finish(front, shape, answer)
            }
            Err(error) => Err(error),
        };
        let (status, body) = match answer {
            Ok(response) => {
                let response =
                    JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id: self.id, result: ServerResult::from(response) };
                (StatusCode::OK, serde_json::to_vec(&response))
            }
            Err(error) => {
                // The only error of a call that MCP also wants in the HTTP status.
                let status = match error.code {
                    ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY => StatusCode::BAD_REQUEST,
                    _ => StatusCode::OK,
                };
                (status, serde_json::to_vec(&JsonRpcError::new(Some(self.id), error)))
            }
        };
        match body {
            Ok(body) => reply::json_body(status, body),
            Err(_) => reply::empty(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

/// Whether a header occurs once, with this value.
fn has(headers: &HeaderMap, name: &'static str, value: &str) -> bool {
    let mut values = headers.get_all(HeaderName::from_static(name)).iter();
    values.next().is_some_and(|found| found.as_bytes() == value.as_bytes()) && values.next().is_none()
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).is_some_and(|accept| accept.contains(kind))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NAMES: [(&str, &str); 4] = [
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "lamp_on"),
    ];

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), http::HeaderValue::from_static(value)))
            .collect()
    }

    fn message(change: impl Fn(&mut Value)) -> String {
        let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "lamp_on", "arguments": {}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }});
        change(&mut message);
        message.to_string()
    }

    #[test]
    fn only_a_plain_call_takes_the_fast_path() {
        let takes = |headers: &HeaderMap, change: &dyn Fn(&mut Value)| {
            FastCall::read(headers, message(change).as_bytes()).is_some()
        };
        let usual = headers(&NAMES);
        assert!(takes(&usual, &|_| {}));
        assert!(takes(&usual, &|call| call["id"] = json!("a")));
        let others: [&dyn Fn(&mut Value); 9] = [
            &|call| call["jsonrpc"] = json!("1.0"),
            &|call| call["id"] = Value::Null,
            &|call| call["id"] = json!(1.5),
            &|call| call["method"] = json!("tools/list"),
            &|call| call["more"] = json!(1),
            &|call| call["params"]["name"] = json!("lamp_off"),
            &|call| call["params"]["_meta"] = json!({}),
            &|call| call["params"]["_meta"]["progressToken"] = json!(1),
            &|call| call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug"),
        ];
        for (number, change) in others.iter().enumerate() {
            assert!(!takes(&usual, change), "{number}");
        }
        for missing in NAMES {
            let rest: Vec<_> = NAMES.into_iter().filter(|pair| *pair != missing).collect();
            assert!(!takes(&headers(&rest), &|_| {}), "{missing:?}");
        }
        let mut twice = usual.clone();
        twice.append("mcp-name", http::HeaderValue::from_static("lamp_on"));
        assert!(!takes(&twice, &|_| {}));
    }
}
