//! Pictures that boards send: photos to be explained, and copies of their screens.
//!
//! A board learns at `initialize` where to send a photo and with which token; both are valid for one connection. The
//! picture is kept as a resource of the device. It is explained by a model ([`Backend`]), or attached to the answer of
//! the tool that took it.
//!
//! - `multipart`: the form a picture comes in
//! - `gallery`: the pictures that are kept
//! - `backend`: the model that is asked

mod backend;
pub(crate) mod gallery;
pub mod multipart;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use sinew_tool::{Picture, json};

pub use self::backend::Backend;
use crate::device::{BoardCommand, BoardDevice};
use crate::http::RequestDeadline;
use crate::hub::BoardHub;
use crate::identity::{self, HttpResponse};

pub(crate) const EXPLAIN: &str = "/vision/explain";
pub(crate) const UPLOAD: &str = "/vision/upload";

/// Larger than any camera of a board makes them.
const PICTURE_BYTES: usize = 5 << 20;
/// The rest of the form.
const AROUND_BYTES: usize = 16 << 10;
const QUESTION_BYTES: usize = 4 << 10;
/// A board sends slowly, and then waits for the model.
const PICTURE_TIME: Duration = Duration::from_secs(120);

/// What is done with a photo besides keeping it.
#[derive(Clone, Debug)]
pub enum Pictures {
    /// It is attached to the answer of the tool that took it.
    Attach,
    /// A model answers the question that came with it.
    Ask(Backend),
}

/// A photo with a question, from a board with a valid token.
pub(crate) async fn explain(request: Request<Incoming>, hub: &BoardHub, deadline: &RequestDeadline) -> HttpResponse {
    let device = identity::find_header(request.headers(), "device-id")
        .and_then(|id| identity::hardware_id(&id))
        .zip(identity::find_header(request.headers(), AUTHORIZATION.as_str()))
        .and_then(|(id, value)| hub.check_seal(EXPLAIN, &identity::key(&id).0, &identity::bare_token(&value)?));
    let (Some(device), Some(pictures)) = (device, &hub.config.pictures) else {
        tracing::warn!("a photo was refused: its token or Device-Id does not fit a connected board");
        return refuse(StatusCode::UNAUTHORIZED, "the token and Device-Id do not belong to a connected board");
    };
    let (question, picture) = match receive(request, "photo", &device, hub, deadline).await {
        Ok(received) => received,
        Err(refusal) => return refusal,
    };
    // Whoever asked for the photo looks at it, if they can.
    if let Some(asker) = device.asker()
        && let Some(explaining) = asker.explain_photo(&question, &picture)
    {
        return match explaining.await {
            Ok(answer) => identity::raw_json(StatusCode::OK, answer),
            Err(error) => {
                tracing::warn!(board = %device.key(), "{}", error.message);
                reply(StatusCode::OK, json!({"success": false, "message": error.message}))
            }
        };
    }
    let attach = || hand_over(&device, &picture);
    let answer = match pictures {
        Pictures::Attach => {
            attach();
            Ok("The picture is attached to this answer; look at it.".to_owned())
        }
        Pictures::Ask(backend) => backend.ask(&question, &picture).await.inspect_err(|why| {
            // The caller can still look at the picture.
            tracing::warn!("{why}");
            attach();
        }),
    };
    hub.gallery.keep(&device.key(), picture);
    match answer {
        Ok(text) => reply(StatusCode::OK, json!({"success": true, "action": "RESPONSE", "response": text})),
        // Firmware drops answers without status 200, and the caller should learn the reason.
        Err(why) => reply(StatusCode::OK, json!({"success": false, "message": why})),
    }
}

/// A copy of a screen, sent to an address that only its board was told.
pub(crate) async fn upload(request: Request<Incoming>, hub: &BoardHub, deadline: &RequestDeadline) -> HttpResponse {
    let device = identity::find_parameter(&request, "device")
        .zip(identity::find_parameter(&request, "key"))
        .and_then(|(id, key)| hub.check_seal(UPLOAD, &id, &key));
    let Some(device) = device else {
        tracing::warn!("a picture was refused: its address belongs to no connected board");
        return refuse(StatusCode::UNAUTHORIZED, "this address belongs to no connected board");
    };
    match receive(request, "screen", &device, hub, deadline).await {
        Ok((_, picture)) => {
            hand_over(&device, &picture);
            hub.gallery.keep(&device.key(), picture);
            reply(StatusCode::OK, json!({"success": true}))
        }
        Err(refusal) => refusal,
    }
}

/// Attaches the picture to the call in flight: it is in the queue before the board gets our answer, and so before the
/// board answers the call.
fn hand_over(device: &Arc<BoardDevice>, picture: &Picture) {
    device.commands.push(Box::new(BoardCommand::Picture(picture.clone())));
}

async fn receive(
    request: Request<Incoming>,
    name: &'static str,
    device: &BoardDevice,
    hub: &BoardHub,
    deadline: &RequestDeadline,
) -> Result<(String, Picture), HttpResponse> {
    let bad = |message: &str| refuse(StatusCode::BAD_REQUEST, message);
    let content_type = identity::find_header(request.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
    let boundary = multipart::boundary(&content_type)
        .ok_or_else(|| bad("a multipart/form-data with `question` and `file` was expected"))?
        .to_owned();
    deadline.extend(PICTURE_TIME);
    let slot = hub.uploads.take(device.key());
    let limit = PICTURE_BYTES + AROUND_BYTES;
    let receiving = Limited::new(request.into_body(), limit).collect();
    let received = slot.evicted.run_until_cancelled(receiving).await;
    let body = received.ok_or_else(evicted)?.map_err(|error| {
        if error.is::<http_body_util::LengthLimitError>() {
            let message = format!("the picture is larger than {PICTURE_BYTES} bytes");
            tracing::warn!("a picture was refused: {message}");
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, &message);
        }
        bad("the picture did not arrive whole")
    })?;
    let body: Bytes = body.to_bytes();
    let parts = multipart::parse(&body, &boundary).map_err(bad)?;
    let find = |name: &str| parts.iter().find(|part| part.name == name).map(|part| part.body);
    let file = find("file").ok_or_else(|| bad("the form has no `file`"))?;
    if file.len() > PICTURE_BYTES {
        return Err(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("the picture is larger than {PICTURE_BYTES} bytes"),
        ));
    }
    let Some(mime_type) = sniff(file) else {
        tracing::warn!("a picture was refused: it is neither JPEG nor PNG");
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the file is neither a JPEG nor a PNG"));
    };
    let question = find("question").unwrap_or_default();
    if question.len() > QUESTION_BYTES {
        return Err(bad("the question is too long"));
    }
    let question = String::from_utf8_lossy(question).into_owned();
    Ok((question, Picture { name: name.into(), mime_type: mime_type.into(), bytes: file.into() }))
}

/// 503 for a picture that took so long that others needed its place.
fn evicted() -> HttpResponse {
    let message = "too many pictures arrive at once, and this one took longest; send it again";
    tracing::warn!("a picture was refused: {message}");
    refuse(StatusCode::SERVICE_UNAVAILABLE, message)
}

/// What a file is, whatever it is called.
fn sniff(file: &[u8]) -> Option<&'static str> {
    match file {
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        _ => None,
    }
}

fn refuse(status: StatusCode, message: &str) -> HttpResponse {
    reply(status, json!({"success": false, "message": message}))
}

fn reply(status: StatusCode, body: sinew_tool::Value) -> HttpResponse {
    identity::json(status, &body)
}
