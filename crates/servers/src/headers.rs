//! Headers that the revision 2026-07-28 sends beside a request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sinew_fetch::{HeaderMap, HeaderName, HeaderValue};
use sinew_tool::Value;

/// Schemas of devices nest no deeper than people read.
const MAX_DEPTH: usize = 8;
/// Arguments that are sent as headers too; a request has some dozen headers.
const MAX_HEADERS: usize = 32;

/// A text as a header: as it is where it is plain, else in base64.
pub(crate) fn value(text: &str) -> HeaderValue {
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && text.trim() == text;
    let plain = if is_plain { HeaderValue::from_str(text).ok() } else { None };
    plain.unwrap_or_else(|| {
        let encoded = format!("=?base64?{}?=", STANDARD.encode(text));
        HeaderValue::from_str(&encoded).unwrap_or_else(|_| HeaderValue::from_static(""))
    })
}

/// The arguments that a tool wants as headers too (`x-mcp-header`).
pub(crate) fn of_arguments(schema: &Value, arguments: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    collect(schema, arguments, MAX_DEPTH, &mut headers);
    headers
}

fn collect(schema: &Value, arguments: &Value, depth: usize, headers: &mut HeaderMap) {
    let Some(properties) = schema["properties"].as_object().filter(|_| depth > 0) else { return };
    for (name, property) in properties {
        let argument = &arguments[name];
        let text = match argument {
            Value::String(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let header = property["x-mcp-header"].as_str().map(|name| format!("mcp-param-{name}"));
        let header = header.and_then(|header| HeaderName::from_bytes(header.as_bytes()).ok());
        if let (Some(header), Some(text), true) = (header, text, headers.len() < MAX_HEADERS) {
            headers.insert(header, value(&text));
        }
        collect(property, argument, depth - 1, headers);
    }
}

#[cfg(test)]
mod tests {
    use sinew_tool::json;

    use super::*;

    #[test]
    fn a_text_that_is_not_plain_is_sent_in_base64() {
        assert_eq!(value("tools/call"), "tools/call");
        for text in ["größe", " a", "a\nb", "\u{7f}"] {
            assert_eq!(value(text), format!("=?base64?{}?=", STANDARD.encode(text)));
        }
    }

    #[test]
    fn marked_arguments_become_headers() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"n": {"x-mcp-header": "Count"}}},
            "odd": {"x-mcp-header": "a b"},
            "none": {"x-mcp-header": "None"},
            "plain": {},
        }});
        let headers = of_arguments(
            &schema,
            &json!({"region": "zürich", "deep": {"n": 5}, "odd": "x", "none": null, "plain": "y"}),
        );
        assert_eq!(headers.len(), 2);
        assert_eq!(headers["mcp-param-count"], "5");
        assert_eq!(headers["mcp-param-region"], format!("=?base64?{}?=", STANDARD.encode("zürich")));
    }
}
