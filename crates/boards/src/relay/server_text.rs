//! Texts of a voice server for a board: what Sinew reads in them must be what the board reads.
//!
//! Firmware takes the first member whose name fits in any case, and its strings end at a zero byte. A text in which that is
//! not the member we looked at would carry MCP or a command past the gateway.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use sinew_tool::Value;

/// A text that means the same to everybody who reads it.
pub(crate) struct ServerText {
    members: Vec<(String, Value)>,
}

impl ServerText {
    pub(crate) fn read(text: &str) -> Result<ServerText, String> {
        let read: ServerText = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let kind = read.member("type").and_then(Value::as_str).ok_or("it has no `type`")?;
        let is_plain =
            kind.bytes().all(|byte| byte.is_ascii_graphic()) && read.members.iter().any(|(name, _)| name == "type");
        if is_plain { Ok(read) } else { Err("its `type` is not a plain word".to_owned()) }
    }

    /// A member by its name, in any case.
    pub(crate) fn member(&self, name: &str) -> Option<&Value> {
        self.members.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl<'de> Deserialize<'de> for ServerText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ServerText, D::Error> {
        from.deserialize_map(Members).map(|members| ServerText { members })
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, Value)>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut names, mut members) = (HashSet::new(), Vec::new());
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            if name.contains('\0') || !names.insert(name.to_ascii_lowercase()) {
                return Err(A::Error::custom("a name stands in it twice, or has a zero byte"));
            }
            members.push((name, value));
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_a_board_would_read_otherwise_is_refused() {
        for text in [r#"{"type":"tts","text":"TYPE"}"#, r#"{"text":{"type":"mcp"},"type":"llm"}"#] {
            assert!(ServerText::read(text).is_ok(), "{text}");
        }
        for text in [
            r#"{"Type":"mcp","type":"tts"}"#,
            r#"{"type":"mcp","type":"tts"}"#,
            r#"{"type":"tts","\u0074YPE":"mcp"}"#,
            r#"{"type":"mcp\u0000"}"#,
            r#"{"type\u0000x":"mcp","type":"tts"}"#,
            r#"{"TYPE":"system","command":"reboot"}"#,
            r#"{"type":"system","Command":"reboot","command":"x"}"#,
            r#"{"type":"m cp"}"#,
            r#"{"type":7}"#,
            r#"{"type":"tts"} {"type":"mcp"}"#,
            r#"[{"type":"mcp"}]"#,
            "",
        ] {
            assert!(ServerText::read(text).is_err(), "{text}");
        }
        let system = ServerText::read(r#"{"type":"system","COMMAND":"reboot"}"#).expect("one command");
        assert_eq!(system.member("command").and_then(Value::as_str), Some("reboot"));
    }
}
