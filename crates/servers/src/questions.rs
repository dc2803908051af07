//! Questions of a server to its caller, as MCP has them.

use sinew_tool::{Question, Value};

/// What a person can be asked to read and fill in.
const MAX_FORM_BYTES: usize = 64 << 10;

/// `None` for what nobody can be asked.
pub(crate) fn read(method: &str, params: Value) -> Option<Question> {
    match method {
        "elicitation/create" if params.to_string().len() > MAX_FORM_BYTES => None,
        "elicitation/create" => {
            let message = params["message"].as_str().unwrap_or_default().to_owned();
            match params["mode"].as_str() {
                Some("url") => Some(Question::Page { message, url: params["url"].as_str()?.to_owned() }),
                _ => Some(Question::Form { message, schema: params["requestedSchema"].clone() }),
            }
        }
        "sampling/createMessage" => Some(Question::Completion { params }),
        "roots/list" => Some(Question::Roots),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use sinew_tool::json;

    use super::*;

    #[test]
    fn each_question_of_mcp_is_known_and_nothing_else() {
        let form = read("elicitation/create", json!({"message": "Sure?", "requestedSchema": {"type": "object"}}));
        assert_eq!(form, Some(Question::Form { message: "Sure?".to_owned(), schema: json!({"type": "object"}) }));
        let page = read("elicitation/create", json!({"mode": "url", "message": "Look", "url": "https://a/"}));
        assert_eq!(page, Some(Question::Page { message: "Look".to_owned(), url: "https://a/".to_owned() }));
        assert_eq!(read("elicitation/create", json!({"mode": "url"})), None);
        assert_eq!(read("elicitation/create", json!({"message": "x".repeat(MAX_FORM_BYTES)})), None);
        assert_eq!(read("roots/list", json!(null)), Some(Question::Roots));
        assert_eq!(read("tools/call", json!({})), None);
    }
}
