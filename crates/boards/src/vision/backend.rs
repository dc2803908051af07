//! A model that describes pictures: any HTTP service with OpenAI's chat completions API.

use std::fmt;
use std::io;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request};
use http_body_util::Full;
use sinew_tool::lenient;
use sinew_tool::text::clip;
use sinew_tool::{Picture, Value, json};

use crate::dial::{WebAddress, WebAnswer};

/// The board waits meanwhile, and so does the caller.
const TIME: Duration = Duration::from_secs(60);
/// How long `sinew doctor` waits for an answer.
const PROBE_TIME: Duration = Duration::from_secs(5);
const ANSWER_BYTES: usize = 1 << 20;
/// The question if the board sends none.
const QUESTION: &str = "Describe what you see.";

/// Where and how to ask.
#[derive(Clone)]
pub struct Backend {
    address: WebAddress,
    model: String,
    authorization: Option<HeaderValue>,
}

impl fmt::Debug for Backend {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend").field("uri", &self.address.uri).field("model", &self.model).finish_non_exhaustive()
    }
}

impl Backend {
    /// `url` is the whole address of the completions, for example
    /// `http://127.0.0.1:11434/v1/chat/completions`.
    pub fn new(url: &str, model: &str, key: Option<&str>) -> Result<Backend, String> {
        let wrong = |why: &str| format!("the vision backend `{url}` cannot be used: {why}");
        let address = WebAddress::parse(url, ["http", "https"]).map_err(|why| wrong(&why))?;
        if model.trim().is_empty() {
            return Err(wrong("`model` is empty; name the model as the backend does"));
        }
        let authorization = match key {
            None => None,
            Some(key) => {
                let mut value =
                    HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| wrong("its key is not plain text"))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        Ok(Backend { address, model: model.to_owned(), authorization })
    }

    /// Whether something answers at its address; no model is asked.
    pub async fn probe(&self) -> Result<(), String> {
        let failed = |why: String| format!("the vision backend {} cannot be reached: {why}", self.address.host);
        let request = Request::get("/").body(Full::default()).map_err(|error| failed(error.to_string()))?;
        let answer = tokio::time::timeout(PROBE_TIME, self.address.send(request, ANSWER_BYTES)).await;
        let answer = answer.map_err(|_| failed(format!("no answer within {} s", PROBE_TIME.as_secs())))?;
        answer.map(drop).map_err(|error| failed(error.to_string()))
    }

    /// What the model says about a picture, or why it says nothing.
    pub(crate) async fn ask(&self, question: &str, picture: &Picture) -> Result<String, String> {
        let question = if question.trim().is_empty() { QUESTION } else { question };
        let url = format!("data:{};base64,{}", picture.mime_type, STANDARD.encode(&picture.bytes));
        let body = json!({"model": self.model, "messages": [{"role": "user", "content": [
            {"type": "text", "text": question},
            {"type": "image_url", "image_url": {"url": url}},
        ]}]});
        let asked = tokio::time::timeout(TIME, self.post(body.to_string())).await;
        let failed = |why: String| format!("the vision backend {} failed: {why}", self.address.host);
        let WebAnswer { status, body } = asked
            .map_err(|_| failed(format!("no answer within {} s", TIME.as_secs())))?
            .map_err(|error| failed(error.to_string()))?;
        let value: Value = lenient::read(&body).unwrap_or_default();
        if !status.is_success() {
            let why = value["error"]["message"].as_str().unwrap_or_default();
            return Err(failed(format!("{status} {}", clip(why))));
        }
        spoken(&value["choices"][0]["message"]["content"])
            .ok_or_else(|| failed("its answer has no choices[0].message.content".to_owned()))
    }

    async fn post(&self, body: String) -> io::Result<WebAnswer> {
        let mut request = Request::post("/").header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Full::<Bytes>::from(body)).map_err(io::Error::other)?;
        self.address.send(request, ANSWER_BYTES).await
    }
}

/// The text of a message, which may come whole or in parts.
fn spoken(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_be_asked_is_refused_at_once() {
        for wrong in ["", "ftp://x/", "http://", "/v1/chat/completions"] {
            assert!(Backend::new(wrong, "m", None).is_err(), "{wrong}");
        }
        assert!(Backend::new("http://x/", "m", Some("a\nb")).is_err());
        assert!(Backend::new("http://[::1]:11434/v1/chat/completions", "m", None).is_ok());
    }

    #[test]
    fn answers_come_whole_or_in_parts() {
        assert_eq!(spoken(&json!("a cat")).as_deref(), Some("a cat"));
        assert_eq!(
            spoken(&json!([{"type": "text", "text": "a"}, {"type": "text", "text": "cat"}])).as_deref(),
            Some("a\ncat")
        );
        assert_eq!(spoken(&json!(null)), None);
    }
}
