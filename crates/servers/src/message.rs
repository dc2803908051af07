//! JSON-RPC messages of a server.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use sinew_tool::lenient::repair_text;
use sinew_tool::text::{clip, log_line};
use sinew_tool::{Value, json};

/// A message from a server.
#[derive(Debug)]
pub enum ServerMessage {
    /// The answer to a request of ours: its result, or its error.
    Answer {
        id: i64,
        result: Result<Box<RawValue>, Box<RawValue>>,
    },
    /// A question, to be answered under its id.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
}

#[derive(Deserialize)]
struct Members<'t> {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default, borrow)]
    params: Option<&'t RawValue>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<Box<RawValue>>,
}

/// Messages in one batch, which the revision 2025-03-26 allows.
const MAX_BATCH: usize = 64;
/// The parameters of a notification. Read, JSON takes many times its size.
const MAX_NOTIFICATION_BYTES: usize = 256 << 10;
/// The parameters of a question of the server: a conversation with a picture.
const MAX_QUESTION_BYTES: usize = 4 << 20;

/// The messages of a batch. It is not read beyond its limit: a small message of nothing but `{}` holds millions.
struct Batch<'t>(Vec<Members<'t>>);

impl<'t> Deserialize<'t> for Batch<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Batch<'t>, D::Error> {
        struct BatchVisitor;

        impl<'t> Visitor<'t> for BatchVisitor {
            type Value = Batch<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("messages")
            }

            fn visit_seq<A: SeqAccess<'t>>(self, mut messages: A) -> Result<Batch<'t>, A::Error> {
                let mut read = Vec::new();
                while let Some(message) = messages.next_element()? {
                    if read.len() == MAX_BATCH {
                        return Err(A::Error::custom(format!("a batch has more than {MAX_BATCH} messages")));
                    }
                    read.push(message);
                }
                Ok(Batch(read))
            }
        }

        deserializer.deserialize_seq(BatchVisitor)
    }
}
/// The id of a request is echoed.
const MAX_ID_BYTES: usize = 256;

impl ServerMessage {
    /// Reads one message or a batch.
    pub fn parse(text: &str) -> Result<Vec<ServerMessage>, String> {
        let text = &*repair_text(text.trim_matches(['\0', '\u{feff}']).trim());
        tracing::debug!("received from a server: {}", log_line(text));
        let unreadable = |problem: String| format!("a message cannot be read ({problem}): {}", clip(text));
        let members: Vec<Members> = if text.starts_with('[') {
            let Batch(members) = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
            members
        } else {
            vec![serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?]
        };
        members.into_iter().map(|members| ServerMessage::from_members(members).map_err(unreadable)).collect()
    }

    fn from_members(members: Members<'_>) -> Result<ServerMessage, String> {
        let Members { id, method, params, result, error } = members;
        let size = params.map_or(0, |params| params.get().len());
        let most = if id.is_some() { MAX_QUESTION_BYTES } else { MAX_NOTIFICATION_BYTES };
        if method.is_some() && size > most {
            return Err(format!("a message of the server has parameters of {size} bytes, more than {most}"));
        }
        let params = || params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        match (method, id) {
            (Some(method), None) => Ok(ServerMessage::Notification { method, params: params() }),
            (Some(method), Some(id)) if is_plain(&id) => Ok(ServerMessage::Request { id, method, params: params() }),
            (Some(_), Some(_)) => Err("a request has an id that is neither a short string nor a number".to_owned()),
            (None, id) => {
                let id = id.as_ref().and_then(read_id).ok_or("an answer has no usable id")?;
                let result = match (result, error) {
                    (_, Some(error)) => Err(error),
                    (Some(result), None) => Ok(result),
                    (None, None) => Ok(RawValue::NULL.to_owned()),
                };
                Ok(ServerMessage::Answer { id, result })
            }
        }
    }
}

/// Whether a text is a JSON-RPC error that belongs to no request: the server refused what it got before it read a request
/// in it. The official Python SDK names `server-error` in place of null.
pub(crate) fn is_error_without_request(text: &str) -> bool {
    let Ok(Members { id, method: None, result: None, error: Some(_), .. }) = serde_json::from_str(text) else {
        return false;
    };
    match id {
        None | Some(Value::Null) => true,
        Some(Value::String(id)) => id == "server-error",
        Some(_) => false,
    }
}

fn is_plain(id: &Value) -> bool {
    match id {
        Value::String(text) => text.len() <= MAX_ID_BYTES,
        Value::Number(_) => true,
        _ => false,
    }
}

/// Our ids are numbers; some servers echo them as text, or with a fraction.
fn read_id(id: &Value) -> Option<i64> {
    match id {
        Value::Number(number) => {
            let whole = |float: f64| (float.fract() == 0.0 && float.abs() < 1e15).then_some(float as i64);
            number.as_i64().or_else(|| number.as_f64().and_then(whole))
        }
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

pub(crate) fn request(id: i64, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

pub(crate) fn notification(method: &str, params: Option<Value>) -> String {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if let Some(params) = params {
        message["params"] = params;
    }
    message.to_string()
}

/// The answer to a request of the server.
pub(crate) fn answer(id: &Value, result: Result<Value, (i64, String)>) -> String {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err((code, message)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}),
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match ServerMessage::parse(text) {
            Ok(messages) => format!("{messages:?}"),
            Err(problem) => problem,
        }
    }

    #[test]
    fn ids_come_back_in_several_forms() {
        for id in ["7", "7.0", "\"7\""] {
            let messages =
                ServerMessage::parse(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)).expect("read");
            assert!(matches!(messages[..], [ServerMessage::Answer { id: 7, result: Ok(_) }]), "{id}");
        }
    }

    #[test]
    fn an_error_that_names_a_request_is_an_answer_to_it() {
        for (text, expected) in [
            (
                r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#,
                true,
            ),
            (r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"x"}}"#, true),
            (r#"{"error":{"code":-32000}}"#, true),
            (r#"{"id":7,"error":{"code":-32000,"message":"session expired, invalid"}}"#, false),
            (r#"{"id":"7","error":{"code":-32000}}"#, false),
            (r#"{"id":null,"result":{}}"#, false),
            (r#"{"id":null,"method":"x","error":{}}"#, false),
            ("Bad Request: no valid session ID", false),
        ] {
            assert_eq!(is_error_without_request(text), expected, "{text}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        let text = r#"{"method":"notifications/message","params":{"data":"cut \ud83d"}}"#;
        let messages = ServerMessage::parse(text).expect("read");
        let [ServerMessage::Notification { params, .. }] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!(params["data"], "cut \u{fffd}");
    }

    #[test]
    fn a_batch_is_read_in_its_order() {
        let batch = r#"[{"method":"notifications/progress","params":{}},{"id":"q","method":"ping"},{"id":1,"error":{"code":-1}}]"#;
        let messages = ServerMessage::parse(batch).expect("read");
        assert!(matches!(
            messages[..],
            [
                ServerMessage::Notification { .. },
                ServerMessage::Request { .. },
                ServerMessage::Answer { id: 1, result: Err(_) }
            ]
        ));
    }

    #[test]
    fn what_is_no_message_is_named() {
        for (text, part) in [
            ("", "cannot be read"),
            ("5", "cannot be read"),
            (r#"{"result":{}}"#, "no usable id"),
            (r#"{"id":null,"error":{}}"#, "no usable id"),
            (r#"{"id":[],"method":"x"}"#, "neither a short string nor a number"),
            (r#"{"id":1e300,"result":{}}"#, "no usable id"),
        ] {
            assert!(shown(text).contains(part), "{text}: {}", shown(text));
        }
        assert!(shown(&format!("[{}]", vec![r#"{"method":"x"}"#; 65].join(","))).contains("more than 64"));
        // It is given up at the 65th message, and not after the millions behind it.
        assert!(shown(&format!("[{}no JSON", "{},".repeat(100))).contains("more than 64"));
    }

    #[test]
    fn parameters_are_read_up_to_their_limit() {
        let message = |size: usize, id: &str| format!(r#"{{{id}"method":"x","params":["{}"]}}"#, "a".repeat(size));
        assert!(ServerMessage::parse(&message(1000, "")).is_ok());
        assert!(shown(&message(MAX_NOTIFICATION_BYTES, "")).contains("more than 262144"));
        assert!(ServerMessage::parse(&message(MAX_NOTIFICATION_BYTES, r#""id":1,"#)).is_ok());
        assert!(shown(&message(MAX_QUESTION_BYTES, r#""id":1,"#)).contains("more than 4194304"));
    }
}
