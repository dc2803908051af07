//! What the log shows of a message between the gateway and a board: calls and answers, but nothing that was spoken and no
//! secret.

use sinew_tool::text::log_line;
use sinew_tool::{REDACTED, Value};

/// MCP as it is, without the token for photos; of other messages the type and the size.
pub(crate) fn line(text: &str) -> String {
    let Ok(mut message) = serde_json::from_str::<Value>(text) else {
        return format!("{} bytes that are not JSON", text.len());
    };
    let kind = message["type"].as_str().unwrap_or_default().to_owned();
    let (is_mcp, is_bare) = (kind == "mcp", message.get("jsonrpc").is_some());
    if !is_mcp && !is_bare {
        return format!("`{}`, {} bytes", log_line(&kind), text.len());
    }
    let rpc = if is_mcp { message.get_mut("payload") } else { Some(&mut message) };
    let token = rpc.and_then(|rpc| rpc.pointer_mut("/params/capabilities/vision/token"));
    match token {
        None => log_line(text),
        Some(token) => {
            *token = Value::from(REDACTED);
            log_line(&message.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spoken_and_what_is_secret_stays_out_of_the_log() {
        let call = r#"{"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"tools/call"}}"#;
        assert_eq!(line(call), call);
        for secret in [
            r#"{"type":"listen","state":"detect","text":"WORDS"}"#,
            r#"{"type":"hello","udp":{"key":"WORDS"}}"#,
            r#"{"text":"WORDS"}"#,
            r#"{"type":"listen","text":"WORDS"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"vision":{"token":"WORDS"}}}}"#,
            r#"{"type":"mcp","payload":{"method":"initialize","params":{"capabilities":{"vision":{"token":"WORDS"}}}}}"#,
        ] {
            assert!(!line(secret).contains("WORDS"), "{}", line(secret));
        }
    }
}
