//! The result of a tool.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use serde_json::Value;

use super::board::BoardDialect;
use super::write::{Body, Escaped, Quoted, exact, length};

/// The answer of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Text(String),
    Boolean(bool),
    Integer(i64),
    /// Sent as text; the gateway recognises an object in it.
    Json(Value),
    Image {
        bytes: Vec<u8>,
        mime_type: String,
    },
}

impl Reply {
    pub fn jpeg(bytes: impl Into<Vec<u8>>) -> Reply {
        Reply::Image { bytes: bytes.into(), mime_type: "image/jpeg".to_string() }
    }

    pub fn png(bytes: impl Into<Vec<u8>>) -> Reply {
        Reply::Image { bytes: bytes.into(), mime_type: "image/png".to_string() }
    }

    /// The message with this reply as the one `content` item of a result, between what comes before and after the
    /// result. An error is the number of bytes for which there is no memory.
    pub(super) fn into_message(
        self,
        dialect: BoardDialect,
        before: &impl Display,
        failed: bool,
        after: &impl Display,
    ) -> Result<String, usize> {
        let text = |text: String| (Body::Escaped(text.into_bytes()), "{\"type\":\"text\",\"text\":\"".to_string());
        let (body, opening) = match self {
            Reply::Text(value) => text(value),
            Reply::Boolean(value) => text(value.to_string()),
            Reply::Integer(value) => text(value.to_string()),
            Reply::Json(value) => text(exact(&value).ok_or_else(|| length(&value))?),
            Reply::Image { bytes, mime_type } => {
                let image = format!("{{\"type\":\"image\",\"mimeType\":{},\"data\":\"", Quoted(&mime_type));
                let opening = match dialect {
                    BoardDialect::Standard => image,
                    // The firmware sends the item as a text inside another one.
                    BoardDialect::Firmware => format!("{{\"type\":\"image\",\"image\":\"{}", Escaped(&image)),
                };
                (Body::Base64(bytes), opening)
            }
        };
        let closing = match (&body, dialect) {
            (Body::Base64(_), BoardDialect::Firmware) => "\\\"}\"}",
            _ => "\"}",
        };
        let size = body.length();
        let before = format_args!("{before}{{\"content\":[{opening}");
        body.between(&before, &format_args!("{closing}],\"isError\":{failed}}}{after}")).ok_or(size)
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Reply {
        Reply::Text(text.to_string())
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Reply {
        Reply::Text(text)
    }
}

impl From<bool> for Reply {
    fn from(value: bool) -> Reply {
        Reply::Boolean(value)
    }
}

impl From<i32> for Reply {
    fn from(value: i32) -> Reply {
        Reply::Integer(i64::from(value))
    }
}

impl From<i64> for Reply {
    fn from(value: i64) -> Reply {
        Reply::Integer(value)
    }
}

impl From<Value> for Reply {
    fn from(value: Value) -> Reply {
        Reply::Json(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn item(reply: Reply, dialect: BoardDialect) -> Value {
        let message = reply.into_message(dialect, &"", false, &"").unwrap();
        let mut result: Value = serde_json::from_str(&message).unwrap();
        assert_eq!(result["isError"], json!(false));
        result["content"][0].take()
    }

    #[test]
    fn every_reply_but_a_picture_is_text() {
        let text = |reply: Reply| item(reply, BoardDialect::Standard);
        assert_eq!(text(Reply::from("a\"b")), json!({"type": "text", "text": "a\"b"}));
        assert_eq!(text(Reply::from(true)), json!({"type": "text", "text": "true"}));
        assert_eq!(text(Reply::from(-7)), json!({"type": "text", "text": "-7"}));
        assert_eq!(text(Reply::from(json!({"a": 1}))), json!({"type": "text", "text": "{\"a\":1}"}));
    }

    #[test]
    fn a_picture_is_an_image_item_and_on_the_firmware_a_text_in_one() {
        let picture = Reply::jpeg([0xff, 0xd8, 0xff]);
        let standard = item(picture.clone(), BoardDialect::Standard);
        assert_eq!(standard, json!({"type": "image", "mimeType": "image/jpeg", "data": "/9j/"}));
        let nested = item(picture, BoardDialect::Firmware);
        let inner: Value = serde_json::from_str(nested["image"].as_str().unwrap()).unwrap();
        assert_eq!(inner, standard);
    }
}
