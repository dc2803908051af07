//! A model that describes pictures: any HTTP service with OpenAI's chat completions API.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use sinew_tool::text::clip;
use sinew_tool::{Picture, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The board waits meanwhile, and so does the caller.
const TIME: Duration = Duration::from_secs(60);
const ANSWER_BYTES: usize = 1 << 20;
/// The question if the board sends none.
const QUESTION: &str = "Describe what you see.";

/// Where and how to ask.
#[derive(Clone)]
pub struct Backend {
    uri: Uri,
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    model: String,
    authorization: Option<HeaderValue>,
}

impl fmt::Debug for Backend {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend").field("uri", &self.uri).field("model", &self.model).finish_non_exhaustive()
    }
}

impl Backend {
    /// `url` is the whole address of the completions, for example
    /// `http://127.0.0.1:11434/v1/chat/completions`.
    pub fn new(url: &str, model: &str, key: Option<&str>) -> Result<Backend, String> {
        let wrong = |why: &str| format!("the vision backend `{url}` cannot be used: {why}");
        let uri: Uri = url.parse().map_err(|_| wrong("it is not an address"))?;
        let host = uri.host().ok_or_else(|| wrong("it names no host"))?.trim_matches(['[', ']']).to_owned();
        let tls = match uri.scheme_str() {
            Some("http") => None,
            Some("https") => Some(Arc::new(client_config().map_err(|why| wrong(&why))?)),
            _ => return Err(wrong("it must begin with http:// or https://")),
        };
        let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        let authorization = match key {
            None => None,
            Some(key) => {
                let mut value =
                    HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| wrong("its key is not plain text"))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        Ok(Backend { uri, host, port, tls, model: model.to_owned(), authorization })
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
        let failed = |why: String| format!("the vision backend {} failed: {why}", self.host);
        let (status, answer) = asked
            .map_err(|_| failed(format!("no answer within {} s", TIME.as_secs())))?
            .map_err(|error| failed(error.to_string()))?;
        let value: Value = serde_json::from_slice(&answer).unwrap_or_default();
        if !status.is_success() {
            let why = value["error"]["message"].as_str().unwrap_or_default();
            return Err(failed(format!("{status} {}", clip(why))));
        }
        spoken(&value["choices"][0]["message"]["content"])
            .ok_or_else(|| failed("its answer has no choices[0].message.content".to_owned()))
    }

    async fn post(&self, body: String) -> io::Result<(http::StatusCode, Bytes)> {
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await?;
        match &self.tls {
            None => self.exchange(tcp, body).await,
            Some(config) => {
                let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
                self.exchange(TlsConnector::from(config.clone()).connect(name, tcp).await?, body).await
            }
        }
    }

    async fn exchange<S>(&self, stream: S, body: String) -> io::Result<(http::StatusCode, Bytes)>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let mut request = Request::post(path).header(HOST, authority).header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Full::<Bytes>::from(body)).map_err(io::Error::other)?;
        let answering = async {
            let answer = sender.send_request(request).await.map_err(io::Error::other)?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await.map_err(io::Error::other)?;
            Ok((status, body.to_bytes()))
        };
        // The connection makes progress only while it is polled, and ends with the answer.
        tokio::pin!(answering);
        tokio::select! {
            answer = &mut answering => answer,
            ended = connection => match ended {
                Ok(()) => answering.await,
                Err(error) => Err(io::Error::other(error)),
            },
        }
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

fn client_config() -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err("the system has no certificates to trust; install its package ca-certificates".to_owned());
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(config.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth())
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
        let backend = Backend::new("http://[::1]:11434/v1/chat/completions", "m", None).expect("fine");
        assert_eq!((backend.host.as_str(), backend.port), ("::1", 11434));
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
