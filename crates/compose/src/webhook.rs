//! Rings when a call begins to wait for a person: one signed request with a link for each. Nobody decides by answering
//! it; the link leads to a page on which somebody signs in.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use sinew_fetch::{AllowedHosts, HeaderMap, HeaderValue, HttpClient, HttpUrl, Method, header};
use sinew_gateway::{ApprovalRequest, Gateway};
use tokio_util::sync::CancellationToken;

use crate::error::{ComposeErrorKind, Error};

/// Somebody waits: a service that needs longer is not waited for.
const TIME: Duration = Duration::from_secs(5);
/// Further attempts, and the pause before each.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// An answer is read only for its status.
const MAX_ANSWER: usize = 4 << 10;
/// `t=TIME,v1=SIGNATURE`: HMAC-SHA-256 of the time, a dot and the body, in hex.
const SIGNATURE: &str = "x-sinew-signature";

/// Where to ring.
pub(crate) struct Webhook {
    client: HttpClient,
    key: String,
}

impl Webhook {
    pub(crate) fn new(address: &str, key: String) -> Result<Webhook, Error> {
        let wrong = |why: String| Error::new(ComposeErrorKind::Config, format!("`webhook` of `[console]`: {why}"));
        let url = HttpUrl::parse(address).map_err(wrong)?;
        let client = HttpClient::new(url, HeaderMap::new(), AllowedHosts::Any).map_err(wrong)?;
        Ok(Webhook { client, key })
    }

    /// Rings for every call that begins to wait, one after the other, until `stop`.
    pub(crate) async fn run(self, gateway: Gateway, stop: CancellationToken) {
        let mut changes = gateway.approval_changes();
        let mut known = HashSet::new();
        loop {
            changes.borrow_and_update();
            let waiting = gateway.approval_requests();
            known.retain(|id| waiting.iter().any(|request| request.id == *id));
            for request in &waiting {
                let is_new = known.insert(request.id.clone());
                if is_new && stop.run_until_cancelled(self.ring(&gateway, request)).await.is_none() {
                    return;
                }
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = stop.cancelled() => return,
            }
        }
    }

    async fn ring(&self, gateway: &Gateway, request: &ApprovalRequest) {
        let page = gateway.approval_page().map(|page| format!("{page}{}", request.id));
        let body =
            json!({"event": "approval_waits", "approval": request.id, "url": page, "at": request.at}).to_string();
        let mut why = String::new();
        for pause in [Duration::ZERO].iter().chain(&PAUSES) {
            tokio::time::sleep(*pause).await;
            // Whoever decided meanwhile needs no ringing.
            if gateway.approval_request(&request.id).is_err() {
                return;
            }
            let sent = tokio::time::timeout(TIME, self.send(&body)).await;
            match sent.unwrap_or_else(|_| Err(format!("no answer within {} s", TIME.as_secs()))) {
                Ok(()) => return,
                Err(error) => why = error,
            }
        }
        tracing::warn!(approval = request.id, host = self.client.url().host(), why, "the webhook could not be called");
    }

    async fn send(&self, body: &str) -> Result<(), String> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let signature = HeaderValue::from_str(&sign(&self.key, time, body)?).map_err(|error| error.to_string())?;
        headers.insert(SIGNATURE, signature);
        let answer = self.client.send(Method::POST, None, headers, body.to_owned().into(), false).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let status = answer.status;
        let _ = answer.whole(MAX_ANSWER).await;
        if status.is_success() { Ok(()) } else { Err(format!("it answered {status}")) }
    }
}

fn sign(key: &str, time: u64, body: &str) -> Result<String, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).map_err(|error| error.to_string())?;
    mac.update(format!("{time}.{body}").as_bytes());
    let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("t={time},v1={digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_covers_the_time_and_the_body() {
        // echo -n '5.{}' | openssl dgst -sha256 -hmac key
        let known = "t=5,v1=9be615aec64f0d044b5ad6854ab1d893ec88617fb728d2149dcd3a3428e8c45d";
        let signed = sign("key", 5, "{}").expect("a signature");
        assert_eq!(signed, known);
        assert_ne!(sign("key", 6, "{}").expect("a signature").split(',').nth(1), signed.split(',').nth(1));
        assert_ne!(sign("other", 5, "{}").expect("a signature"), signed);
    }
}
