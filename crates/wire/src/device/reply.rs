//! What a tool gives back.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::board::Dialect;

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

    /// The `content` item of the result.
    pub(super) fn to_item(&self, dialect: Dialect) -> Value {
        let text = match self {
            Reply::Text(text) => text.clone(),
            Reply::Boolean(value) => value.to_string(),
            Reply::Integer(value) => value.to_string(),
            Reply::Json(value) => value.to_string(),
            Reply::Image { bytes, mime_type } => {
                let image = json!({"type": "image", "mimeType": mime_type, "data": STANDARD.encode(bytes)});
                return match dialect {
                    Dialect::Standard => image,
                    Dialect::Firmware => json!({"type": "image", "image": image.to_string()}),
                };
            }
        };
        json!({"type": "text", "text": text})
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

    #[test]
    fn every_reply_but_a_picture_is_text() {
        let text = |reply: Reply| reply.to_item(Dialect::Standard);
        assert_eq!(text(Reply::from("a\"b")), json!({"type": "text", "text": "a\"b"}));
        assert_eq!(text(Reply::from(true)), json!({"type": "text", "text": "true"}));
        assert_eq!(text(Reply::from(-7)), json!({"type": "text", "text": "-7"}));
        assert_eq!(text(Reply::from(json!({"a": 1}))), json!({"type": "text", "text": "{\"a\":1}"}));
    }

    #[test]
    fn a_picture_is_an_image_item_and_on_the_firmware_a_text_in_one() {
        let picture = Reply::jpeg([0xff, 0xd8, 0xff]);
        let standard = picture.to_item(Dialect::Standard);
        assert_eq!(standard, json!({"type": "image", "mimeType": "image/jpeg", "data": "/9j/"}));
        let nested = picture.to_item(Dialect::Firmware);
        let inner: Value = serde_json::from_str(nested["image"].as_str().unwrap()).unwrap();
        assert_eq!(inner, standard);
    }
}
