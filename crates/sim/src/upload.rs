//! Uploads a picture because a tool asked for it; the tool answers when that is done.

use serde_json::{Value, json};
use sinew_runner::Trust;
use tokio::sync::oneshot;

use crate::web::{HttpAddress, WebRequestBody};

/// A picture to be sent, byte for byte as firmware sends it.
#[derive(Debug)]
pub(crate) struct PictureUpload {
    pub(crate) url: String,
    pub(crate) purpose: UploadPurpose,
    pub(crate) jpeg: Vec<u8>,
}

#[derive(Debug)]
pub(crate) enum UploadPurpose {
    /// The body of the answer is what the tool says.
    Explain {
        question: String,
        token: String,
    },
    Snapshot,
}

/// Who sends.
#[derive(Clone, Debug)]
pub(crate) struct UploadSender {
    pub(crate) hardware_id: String,
    pub(crate) client_id: String,
    pub(crate) trust: Trust,
}

/// An upload under way, and the answer that is held back meanwhile.
pub(crate) struct UploadInProgress {
    answer: String,
    done: oneshot::Receiver<Result<String, String>>,
}

impl UploadInProgress {
    pub(crate) fn start(upload: PictureUpload, sender: UploadSender, answer: String) -> UploadInProgress {
        let (tell, done) = oneshot::channel();
        tokio::spawn(async move { tell.send(run(upload, sender).await) });
        UploadInProgress { answer, done }
    }

    /// The answer, once the upload is done.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let done = match self.done.try_recv() {
            Ok(done) => done,
            Err(oneshot::error::TryRecvError::Empty) => return None,
            Err(oneshot::error::TryRecvError::Closed) => Err("Failed to upload photo".to_owned()),
        };
        let mut message: Value = serde_json::from_str(&self.answer).unwrap_or_default();
        match done {
            Ok(text) => message["payload"]["result"]["content"] = json!([{"type": "text", "text": text}]),
            Err(why) => {
                let id = message["payload"]["id"].take();
                message["payload"] = json!({"jsonrpc": "2.0", "id": id, "error": {"message": why}});
            }
        }
        Some(message.to_string())
    }
}

async fn run(upload: PictureUpload, sender: UploadSender) -> Result<String, String> {
    let PictureUpload { url, purpose, jpeg } = upload;
    let address = HttpAddress::parse(&url, &sender.trust).map_err(|error| error.to_string())?;
    let (boundary, file, said) = match &purpose {
        UploadPurpose::Explain { question, .. } => ("----ESP32_CAMERA_BOUNDARY", "camera.jpg", Some(question)),
        UploadPurpose::Snapshot => ("----ESP32_SCREEN_SNAPSHOT_BOUNDARY", "screenshot.jpg", None),
    };
    let mut chunks = Vec::new();
    if let Some(question) = said {
        let part = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"question\"\r\n\r\n{question}\r\n");
        chunks.push(part.into_bytes());
    }
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{file}\"\r\nContent-Type: image/jpeg\r\n\r\n"
    );
    chunks.push(head.into_bytes());
    chunks.extend(jpeg.chunks(4096).map(<[u8]>::to_vec));
    chunks.push(format!("\r\n--{boundary}--\r\n").into_bytes());

    let content_type = format!("multipart/form-data; boundary={boundary}");
    let bearer;
    let mut headers = vec![("Content-Type", content_type.as_str())];
    if let UploadPurpose::Explain { token, .. } = &purpose {
        headers.extend([("Device-Id", sender.hardware_id.as_str()), ("Client-Id", sender.client_id.as_str())]);
        if !token.is_empty() {
            bearer = format!("Bearer {token}");
            headers.push(("Authorization", &bearer));
        }
    }
    let (status, body) =
        address.post(&headers, WebRequestBody::Chunks(&chunks)).await.map_err(|error| error.to_string())?;
    match (status, purpose) {
        (200, UploadPurpose::Explain { .. }) => Ok(String::from_utf8_lossy(&body).into_owned()),
        (200, UploadPurpose::Snapshot) => Ok("true".to_owned()),
        (status, UploadPurpose::Explain { .. }) => Err(format!("Failed to upload photo, status code: {status}")),
        (status, UploadPurpose::Snapshot) => Err(format!("Unexpected status code: {status}")),
    }
}
