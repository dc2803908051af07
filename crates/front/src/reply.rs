//! HTTP answers that all endpoints share.

use axum::body::Body;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use serde_json::{Value, json};

pub(crate) fn json_body(status: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(crate) fn value(status: StatusCode, value: &Value) -> Response<Body> {
    json_body(status, value.to_string().into_bytes())
}

/// An error before any protocol starts: a code for programs and a message for people.
pub(crate) fn problem(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    value(status, &json!({"error": code, "message": message}))
}

pub(crate) fn rpc_error(status: StatusCode, id: &Value, code: i32, message: &str) -> Response<Body> {
    value(status, &json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
