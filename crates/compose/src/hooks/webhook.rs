//! Events posted to another service.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use sinew_fetch::header::CONTENT_TYPE;
use sinew_fetch::{AllowedHosts, HeaderMap, HeaderName, HeaderValue, HttpClient, HttpUrl, Method};
use sinew_gateway::{Gateway, Principal, StoredEvent};
use sinew_tool::Value;

/// A service that takes longer is not waited for.
const LONGEST: Duration = Duration::from_secs(10);
/// Nobody reads the answer.
const MAX_ANSWER: usize = 64 << 10;
/// `t=<seconds>,v1=<HMAC-SHA256 of "<seconds>.<body>" in hex>`.
const SIGNATURE: HeaderName = HeaderName::from_static("sinew-signature");

#[derive(Clone)]
pub(super) struct Webhook {
    client: Arc<HttpClient>,
    secret: Option<String>,
}

impl std::fmt::Debug for Webhook {
    /// Without the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("url", &self.client.url().to_string()).finish_non_exhaustive()
    }
}

impl Webhook {
    pub(super) fn new(url: &str, secret: Option<&str>) -> Result<Webhook, String> {
        let url = HttpUrl::parse(url)?;
        let client = HttpClient::new(url, HeaderMap::new(), AllowedHosts::Any)?;
        Ok(Webhook { client: Arc::new(client), secret: secret.map(str::to_owned) })
    }

    /// Sends an event, and records that it was sent.
    pub(super) async fn post(
        &self,
        gateway: &Gateway,
        who: &Principal,
        event: &StoredEvent,
        body: &Value,
    ) -> Result<(), String> {
        let recorded = gateway.record(who, super::run::DOOR, &event.device, &format!("webhook {}", event.topic)).await;
        recorded.map_err(|error| error.message)?;
        let body = body.to_string();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(secret) = &self.secret {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let signature = sign(secret, now, &body);
            let value = HeaderValue::from_str(&signature).map_err(|error| error.to_string())?;
            headers.insert(SIGNATURE, value);
        }
        let posting = async {
            let answer = self.client.send(Method::POST, None, headers, body.into(), false).await;
            let answer = answer.map_err(|error| error.to_string())?;
            let status = answer.status;
            answer.whole(MAX_ANSWER).await.map_err(|error| error.to_string())?;
            match status.is_success() {
                true => Ok(()),
                false => Err(format!("{} answers {status}", self.client.url())),
            }
        };
        let late = || Err(format!("{} did not answer within {} s", self.client.url(), LONGEST.as_secs()));
        let posted = tokio::time::timeout(LONGEST, posting).await.unwrap_or_else(|_| late());
        if posted.is_err() {
            let failed = format!("webhook {} failed", event.topic);
            gateway.record(who, super::run::DOOR, &event.device, &failed).await.map_err(|error| error.message)?;
        }
        posted
    }
}

fn sign(secret: &str, at: u64, body: &str) -> String {
    let mut signature = format!("t={at},v1=");
    // A key of any length is taken.
    if let Ok(mut hmac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) {
        hmac.update(format!("{at}.{body}").as_bytes());
        for byte in hmac.finalize().into_bytes() {
            let _ = write!(signature, "{byte:02x}");
        }
    }
    signature
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_signature_is_that_of_the_time_and_the_body() {
        // From `printf '%s' '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret`.
        let expected = "49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686";
        assert_eq!(super::sign("secret", 1_700_000_000, r#"{"a":1}"#), format!("t=1700000000,v1={expected}"));
    }
}
