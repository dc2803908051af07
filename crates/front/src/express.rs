//! The short way for a `tools/call` of the modern era that asks for nothing but its answer.
//!
//! rmcp gives every request a server of its own, with tasks and channels, which is right for a call that reports
//! progress and too much for one that does not. Here such a call is read, made and answered in place, in rmcp's own
//! words. Whatever is not plainly such a call, mistakes among them, is left to rmcp.

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
use tokio_util::sync::CancellationToken;

use crate::call::Errand;
use crate::hall::Hall;
use crate::mcp::as_model;
use crate::reply;

const METHOD: &str = "tools/call";

/// A call that can take the short way.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Express<'a> {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    method: &'a str,
    params: CallToolRequestParams,
}

impl Express<'_> {
    pub(crate) fn read<'a>(headers: &HeaderMap, body: &'a [u8]) -> Option<Express<'a>> {
        // Looked at first, because they are cheap to look at.
        let version = ProtocolVersion::V_2026_07_28;
        let fits = says(headers, "mcp-protocol-version", version.as_str())
            && says(headers, "mcp-method", METHOD)
            && accepts(headers, "application/json")
            && accepts(headers, "text/event-stream");
        if !fits {
            return None;
        }
        let express: Express = serde_json::from_slice(body).ok()?;
        let meta = express.params.meta.as_ref()?;
        let plain = express.method == METHOD
            && says(headers, "mcp-name", &express.params.name)
            && meta.protocol_version() == Some(version.clone())
            && meta.missing_required_keys(&version).is_empty()
            && meta.get_progress_token().is_none()
            && meta.log_level().is_none();
        plain.then_some(express)
    }

    /// Makes the call and answers it; when `stop` comes first, the call is given up.
    pub(crate) async fn run(
        self,
        hall: &Hall,
        who: &Arc<Principal>,
        shape: Shape,
        stop: &CancellationToken,
    ) -> Response<Body> {
        let answer = match Errand::modern(hall, as_model(who), self.params) {
            Ok(errand) => {
                let answer = stop.run_until_cancelled(hall.gateway.call(errand.request(shape, "mcp"))).await;
                let Some(answer) = answer else {
                    let id = serde_json::to_value(&self.id).unwrap_or_default();
                    let message = "the gateway stopped before the call ended; look whether it had its effect";
                    return reply::rpc_error(StatusCode::INTERNAL_SERVER_ERROR, &id, -32603, message);
                };
                errand.finish(hall, shape, answer)
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
                // The one error of a call that MCP wants to be seen in the status too.
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

/// Whether a header is there once, with this value.
fn says(headers: &HeaderMap, name: &'static str, value: &str) -> bool {
    let mut values = headers.get_all(HeaderName::from_static(name)).iter();
    values.next().is_some_and(|said| said.as_bytes() == value.as_bytes()) && values.next().is_none()
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
    fn only_a_plain_call_takes_the_short_way() {
        let takes = |headers: &HeaderMap, change: &dyn Fn(&mut Value)| {
            Express::read(headers, message(change).as_bytes()).is_some()
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
