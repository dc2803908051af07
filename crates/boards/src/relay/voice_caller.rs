//! The voice server as the caller of a tool: its calls are urgent, and photos taken for them are explained by it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http_body_util::Full;
use sinew_tool::{Answer, BoxFuture, Caller, ErrorKind, LogLevel, Picture, Question, ToolError, Value};

use super::server::VoiceAddress;
use crate::dial::WebAddress;

/// The board waits for the answer meanwhile, and so does whoever spoke to it.
const EXPLAIN_TIME: Duration = Duration::from_secs(60);
const EXPLAIN_BYTES: usize = 64 << 10;
const BOUNDARY: &str = "----sinew-photo-5f1c2b7e9d";

/// Where a voice server looks at photos, as its `initialize` said.
#[derive(Clone)]
pub(crate) struct PhotoAddress {
    address: WebAddress,
    token: Option<String>,
}

impl PhotoAddress {
    /// Reads `capabilities.vision` of the `initialize` of a voice server.
    pub(crate) fn parse(vision: &Value, server: &VoiceAddress) -> Result<PhotoAddress, String> {
        let url = vision["url"].as_str().ok_or("it has no `url`")?;
        let address = server.allow(WebAddress::parse(url, ["http", "https"])?)?;
        Ok(PhotoAddress { address, token: vision["token"].as_str().map(str::to_owned) })
    }
}

/// The photo address of a conversation, once it is known.
pub(crate) type SharedPhotoAddress = Arc<Mutex<Option<PhotoAddress>>>;

pub(crate) struct VoiceCaller {
    pub(crate) device_id: String,
    pub(crate) client_id: String,
    pub(crate) photos: SharedPhotoAddress,
}

impl VoiceCaller {
    async fn post(&self, target: PhotoAddress, question: &str, photo: &Picture) -> Result<String, ToolError> {
        let host = target.address.host.clone();
        let failed = |why: String| {
            let message = format!("the voice server {host} did not explain the photo: {why}");
            ToolError::new(ErrorKind::ActionFailed, message)
        };
        let mut request = Request::post("/")
            .header("device-id", &self.device_id)
            .header("client-id", &self.client_id)
            .header(CONTENT_TYPE, format!("multipart/form-data; boundary={BOUNDARY}"));
        if let Some(token) = &target.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let body = Full::<Bytes>::from(form(question, photo));
        let request = request.body(body).map_err(|error| failed(error.to_string()))?;
        let answer = tokio::time::timeout(EXPLAIN_TIME, target.address.send(request, EXPLAIN_BYTES)).await;
        let answer = answer
            .map_err(|_| failed(format!("no answer within {} s", EXPLAIN_TIME.as_secs())))?
            .map_err(|error| failed(error.to_string()))?;
        if !answer.status.is_success() {
            return Err(failed(answer.status.to_string()));
        }
        String::from_utf8(answer.body.into()).map_err(|_| failed("its answer is not text".to_owned()))
    }
}

/// The form that firmware sends.
fn form(question: &str, photo: &Picture) -> Vec<u8> {
    let mut form = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"question\"\r\n\r\n{question}\r\n--{BOUNDARY}\r\n\
         Content-Disposition: form-data; name=\"file\"; filename=\"camera\"\r\nContent-Type: {}\r\n\r\n",
        photo.mime_type
    )
    .into_bytes();
    form.extend_from_slice(&photo.bytes);
    form.extend(format!("\r\n--{BOUNDARY}--\r\n").bytes());
    form
}

impl Caller for VoiceCaller {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn log(&self, _: LogLevel, _: Value) {}

    fn ask(&self, _: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
        let message = "a voice assistant cannot be asked back; call the tool with all it needs";
        Box::pin(async move { Err(ToolError::new(ErrorKind::Unsupported, message)) })
    }

    fn is_urgent(&self) -> bool {
        true
    }

    fn explain_photo(&self, question: &str, photo: &Picture) -> Option<BoxFuture<'_, Result<String, ToolError>>> {
        let target = self.photos.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let (question, photo) = (question.to_owned(), photo.clone());
        Some(Box::pin(async move { self.post(target, &question, &photo).await }))
    }
}
