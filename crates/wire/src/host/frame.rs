//! Text to parts, without reading more than needed: the members stay raw until somebody wants them.
//! An envelope and a bare JSON-RPC message have no member in common, so one reader serves both.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of one JSON object that matter here. `null` counts as absent, except for `result`.
#[derive(Default)]
pub(super) struct Frame<'a> {
    pub kind: Option<&'a RawValue>,
    pub payload: Option<&'a RawValue>,
    pub id: Option<&'a RawValue>,
    pub method: Option<&'a RawValue>,
    pub params: Option<&'a RawValue>,
    pub result: Option<&'a RawValue>,
    pub error: Option<&'a RawValue>,
}

impl<'a> Frame<'a> {
    pub fn parse(text: &'a str) -> Result<Frame<'a>, serde_json::Error> {
        serde_json::from_str(text)
    }

    pub fn is_rpc(&self) -> bool {
        self.method.is_some() || self.result.is_some() || self.error.is_some()
    }
}

/// A raw value as text, where it is a JSON string.
pub(super) fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// Whether a raw value is the string `word`, which has nothing in it to escape.
pub(super) fn is_word(raw: &RawValue, word: &str) -> bool {
    raw.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) == Some(word)
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Key {
    Type,
    Payload,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Frame<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Frame<'de>, D::Error> {
        deserializer.deserialize_map(FrameVisitor)
    }
}

/// Written by hand because a derived reader refuses a message that says one member twice.
struct FrameVisitor;

impl<'de> Visitor<'de> for FrameVisitor {
    type Value = Frame<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Frame<'de>, M::Error> {
        let mut frame = Frame::default();
        while let Some(key) = map.next_key()? {
            let place = match key {
                Key::Type => &mut frame.kind,
                Key::Payload => &mut frame.payload,
                Key::Id => &mut frame.id,
                Key::Method => &mut frame.method,
                Key::Params => &mut frame.params,
                Key::Error => &mut frame.error,
                Key::Result => {
                    frame.result = Some(map.next_value()?);
                    continue;
                }
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *place = Some(map.next_value::<&RawValue>()?).filter(|raw| raw.get() != "null");
        }
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_and_a_bare_message_are_read_by_one_reader() {
        let text = r#"{"session_id":"s","type":"mcp","payload":{"id":3,"result":null,"error":null}}"#;
        let envelope = Frame::parse(text).unwrap();
        assert!(envelope.kind.is_some_and(|kind| is_word(kind, "mcp")));
        let message = Frame::parse(envelope.payload.unwrap().get()).unwrap();
        assert_eq!(message.id.map(RawValue::get), Some("3"));
        assert_eq!(message.result.map(RawValue::get), Some("null"));
        assert!(message.error.is_none());
        assert!(message.is_rpc() && !envelope.is_rpc());
    }

    #[test]
    fn a_member_said_twice_counts_as_said_last() {
        let frame = Frame::parse(r#"{"id":1,"id":2,"method":"ping"}"#).unwrap();
        assert_eq!(frame.id.map(RawValue::get), Some("2"));
    }

    #[test]
    fn deep_nesting_is_skipped_without_recursion() {
        let deep = format!(r#"{{"type":"mcp","payload":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(Frame::parse(&deep).is_ok());
        assert!(Frame::parse(&"[".repeat(100_000)).is_err());
    }
}
