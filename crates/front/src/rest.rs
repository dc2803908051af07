//! `/mcp/v1`: the REST interface of the remote-control reference.
//!
//! JSON-RPC 2.0 over plain requests, dispatched by `method` and not by path. Errors are answered with HTTP 200 and the
//! reference's codes, with the standard failure object in `error.data`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use sinew_gateway::{Principal, PublicTool, Request as Call, Shape, ToolList};
use sinew_tool::text::clip;
use sinew_tool::{Content, ErrorKind, Outcome, Schema, Silent, ToolError, TraceParent};

use crate::state::FrontState;
use crate::{body, image_size, inspect, query, reply, trace};

/// The protocol revision of the reference.
const PROTOCOL: &str = "2024-11-05";

pub(crate) async fn list(State(front): State<Arc<FrontState>>, request: Request) -> Response<Body> {
    let Some(who) = request.extensions().get::<Arc<Principal>>().cloned() else {
        return reply::empty(StatusCode::UNAUTHORIZED);
    };
    let query = request.uri().query().unwrap_or_default();
    let id = query::pairs(query).find(|(key, _)| key == "id").map(|(_, id)| id);
    let id = match id {
        None => Value::Null,
        Some(id) => id.parse::<i64>().map_or_else(|_| json!(id), |number| json!(number)),
    };
    answered(&id, Ok(tools(&front, &who)))
}

pub(crate) async fn receive(State(front): State<Arc<FrontState>>, request: Request) -> Response<Body> {
    let Some(who) = request.extensions().get::<Arc<Principal>>().cloned() else {
        return reply::empty(StatusCode::UNAUTHORIZED);
    };
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("application/json");
    let is_json = kind.to_ascii_lowercase().starts_with("application/json");
    let (parts, body) = request.into_parts();
    let read = body::read(&front, &parts, body).await;
    let body::RequestBody { bytes: body, share: _share } = match read {
        Ok(message) => message,
        Err(body::BodyError::Refused(error)) => {
            return answered(&serde_json::from_str(&error.id).unwrap_or_default(), Err(error.to_error()));
        }
        Err(body::BodyError::Slow) => return body::too_slow(),
        Err(body::BodyError::Broken) => return reply::empty(StatusCode::BAD_REQUEST),
    };
    if !is_json {
        let error = inspect::MessageError::content_type().for_request(&body);
        return answered(&serde_json::from_str(&error.id).unwrap_or_default(), Err(error.to_error()));
    }
    let message = match parse(&body) {
        Ok(message) => message,
        Err(refused) => return answered(&refused.0, Err(refused.1)),
    };
    let running = front.calls.token();
    let trace = trace::of_headers(&parts.headers);
    let answer = dispatch(&front, &who, &message, trace).await;
    drop(running);
    match message.get("id") {
        Some(id) => answered(id, answer),
        // Notifications get no answer, not even an error.
        None => reply::empty(StatusCode::ACCEPTED),
    }
}

/// A JSON-RPC request or notification, or the id to answer and what is wrong.
fn parse(body: &[u8]) -> Result<Map<String, Value>, Box<(Value, ToolError)>> {
    let invalid = |id: Value, message: String| Box::new((id, ToolError::new(ErrorKind::InvalidRequest, message)));
    let message = match serde_json::from_slice(body) {
        Ok(Value::Object(message)) => message,
        Ok(Value::Array(_)) => {
            return Err(invalid(
                Value::Null,
                "Batches are not supported here; send each message in a request of its own".to_owned(),
            ));
        }
        Ok(_) => return Err(invalid(Value::Null, "A request is a JSON object".to_owned())),
        Err(_) => {
            let detail = inspect::explain(body).message;
            let error = ToolError::new(ErrorKind::Parse, "Parse error: invalid JSON");
            return Err(Box::new((Value::Null, error.with_details(json!({"reason": detail})))));
        }
    };
    let id = match message.get("id") {
        None => Value::Null,
        Some(id @ (Value::Null | Value::String(_) | Value::Number(_))) => id.clone(),
        Some(_) => return Err(invalid(Value::Null, "'id' must be a string, a number or null".to_owned())),
    };
    match message.get("jsonrpc") {
        Some(Value::String(version)) if version == "2.0" => {}
        Some(version) => {
            let version = version.as_str().map_or_else(|| version.to_string(), str::to_owned);
            return Err(invalid(id, format!("Unsupported JSON-RPC version: {}", clip(&version))));
        }
        None => return Err(invalid(id, "Missing 'jsonrpc'. Expected: \"2.0\"".to_owned())),
    }
    if message.get("method").is_none_or(|method| !method.is_string()) {
        return Err(invalid(id, "Missing 'method'. Expected: a string".to_owned()));
    }
    Ok(message)
}

async fn dispatch(
    front: &FrontState,
    who: &Principal,
    message: &Map<String, Value>,
    trace: Option<TraceParent>,
) -> Result<Value, ToolError> {
    let params = match message.get("params") {
        None | Some(Value::Null) => None,
        Some(Value::Object(params)) => Some(params),
        Some(_) => return Err(ToolError::new(ErrorKind::InvalidArguments, "'params' must be an object")),
    };
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => Ok(json!({
            "protocolVersion": PROTOCOL,
            "serverInfo": {"name": "sinew", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {"tools": {"listChanged": false}},
        })),
        "tools/list" => Ok(tools(front, who)),
        "tools/call" => call(front, who, params, trace).await,
        method => Err(ToolError::new(ErrorKind::UnknownMethod, format!("Method not found: {}", clip(method)))),
    }
}

async fn call(
    front: &FrontState,
    who: &Principal,
    params: Option<&Map<String, Value>>,
    trace: Option<TraceParent>,
) -> Result<Value, ToolError> {
    let wrong = |message: &str| ToolError::new(ErrorKind::InvalidArguments, message);
    let params = params.ok_or_else(|| wrong("Missing params for tools/call"))?;
    let name = params.get("name").and_then(Value::as_str).ok_or_else(|| wrong("Missing 'name' in params"))?;
    let args = match params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(args)) => args.clone(),
        Some(_) => return Err(wrong("'arguments' in params must be an object")),
    };
    let request = Call {
        who: who.clone(),
        name: name.to_owned(),
        args,
        shape: Shape::Folded,
        caller: Arc::new(Silent),
        budget: None,
        door: "rest",
        is_confirmed: false,
        lease: None,
        trace,
        is_plain: true,
    };
    match Box::pin(front.gateway.call(request)).await {
        Ok(outcome) => Ok(to_result(outcome)),
        // The reference calls an unknown tool an unknown method.
        Err(error) if error.kind == ErrorKind::UnknownTool => {
            Err(ToolError { message: format!("Method not found: {}", clip(name)), ..error })
        }
        Err(error) => Err(error),
    }
}

/// The result as the reference has it: content, and images with their size.
fn to_result(outcome: Outcome) -> Value {
    let items = outcome.content.into_iter().map(|item| match item {
        Content::Image { data, mime_type, size } => {
            let size = size.or_else(|| image_size::of(&data));
            Content::Image { data, mime_type, size }.to_json()
        }
        other => other.to_json(),
    });
    json!({"content": items.collect::<Vec<_>>()})
}

fn tools(front: &FrontState, who: &Principal) -> Value {
    let own = OwnSchemas::new(&front.gateway.list(who, Shape::Unfolded));
    let list = front.gateway.list(who, Shape::Folded);
    let entries = list.tools.iter().map(|public| {
        let plain = public.tool.plain.as_deref().unwrap_or(&public.tool);
        json!({"name": public.name, "description": plain.description, "inputSchema": own.listed(public)})
    });
    json!({"tools": entries.collect::<Vec<_>>()})
}

/// The schemas of the devices: for each tool name the different schemas, and how many devices have each. Equal devices
/// share a schema, so this stays small.
struct OwnSchemas(HashMap<String, Vec<(Schema, usize)>>);

impl OwnSchemas {
    fn new(unfolded: &ToolList) -> OwnSchemas {
        let mut schemas: HashMap<String, Vec<(Schema, usize)>> = HashMap::new();
        for public in unfolded.tools.iter().filter(|public| public.device.is_some()) {
            let known = schemas.entry(public.own_name.clone()).or_default();
            let schema = &public.tool.input_schema;
            match known.iter_mut().find(|(one, _)| Arc::ptr_eq(one, schema) || one == schema) {
                Some((_, devices)) => *devices += 1,
                None => known.push((schema.clone(), 1)),
            }
        }
        OwnSchemas(schemas)
    }

    /// The schema to list: that of the standard if the tool follows one, else that of the device. The argument that
    /// selects a device is part of it only when there is a choice.
    fn listed(&self, public: &PublicTool) -> Value {
        let folded = &public.tool.input_schema;
        let plain = public.tool.plain.as_ref().map(|plain| &plain.input_schema);
        let argument = public.selector.as_ref().and_then(|selector| {
            let argument = folded.get("properties")?.get(selector)?;
            Some((selector, argument))
        });
        let Some((selector, argument)) = argument else { return (**plain.unwrap_or(folded)).clone() };
        let selecting = |schema: &Value| {
            let mut schema = schema.clone();
            if schema.get("properties").is_none() {
                schema["properties"] = json!({});
            }
            schema["properties"][selector] = argument.clone();
            schema
        };
        let known = self.0.get(&public.own_name).map(Vec::as_slice).unwrap_or_default();
        match known.iter().find(|(own, devices)| *devices == 1 && selecting(own) == **folded) {
            Some((own, _)) => (**plain.unwrap_or(own)).clone(),
            None => plain.map_or_else(|| (**folded).clone(), |plain| selecting(plain)),
        }
    }
}

fn answered(id: &Value, answer: Result<Value, ToolError>) -> Response<Body> {
    let body = match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => {
            let code = error.kind.row().code;
            let error = json!({"code": code, "message": error.message, "data": error.to_object()});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    };
    reply::value(StatusCode::OK, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_requests_are_read() {
        let code =
            |text: &str| parse(text.as_bytes()).map(drop).map_err(|refused| (refused.0, refused.1.kind.row().code));
        assert_eq!(code(r#"{"jsonrpc":"2.0","method":"x"}"#), Ok(()));
        assert_eq!(code("{"), Err((Value::Null, -32700)));
        assert_eq!(code("[]"), Err((Value::Null, -32600)));
        assert_eq!(code(r#"{"jsonrpc":"1.0","id":3,"method":"x"}"#), Err((json!(3), -32600)));
        assert_eq!(code(r#"{"id":3,"method":"x"}"#), Err((json!(3), -32600)));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":"a"}"#), Err((json!("a"), -32600)));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#), Err((Value::Null, -32600)));
    }
}
