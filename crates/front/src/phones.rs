//! Phones over the API: the screen as it changes, and apps that are uploaded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Path, State};
use axum::response::IntoResponse;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, EXPECT, HeaderValue, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use sinew_gateway::{Principal, Request as GatewayCall};
use sinew_tool::{
    Answer, Args, Attachment, BoxFuture, Caller, ErrorKind, LivePicture, LiveRequest, LogLevel, Question, Silent,
    ToolError, Value, json,
};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::api::{Authenticated, Query, answer};
use crate::console::Door;
use crate::state::FrontState;
use crate::{body, reply, to_api};

/// A viewer whose screen does not change for this long is answered without a picture.
const PATIENCE: Duration = Duration::from_secs(5);
const MAX_SIDE: u64 = 540;
const QUALITY: u64 = 60;

/// Who asks, for which phone, and how.
pub(crate) struct PhoneRequest {
    who: Arc<Principal>,
    id: String,
    query: Query,
    headers: HeaderMap,
    door: &'static str,
}

impl<S: Send + Sync> FromRequestParts<S> for PhoneRequest {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<PhoneRequest, Response<Body>> {
        let Authenticated(who) = Authenticated::from_request_parts(parts, state).await?;
        let id = Path::<String>::from_request_parts(parts, state).await.map_err(IntoResponse::into_response)?.0;
        let Ok(query) = Query::from_request_parts(parts, state).await;
        Ok(PhoneRequest { who, id, query, headers: parts.headers.clone(), door: Door::of(&parts.extensions) })
    }
}

/// The next picture of a phone's screen that differs from the one the viewer has.
pub(crate) async fn screen(State(front): State<Arc<FrontState>>, phone: PhoneRequest) -> Response<Body> {
    let look = async {
        let wanted = wanted(&phone.query, &phone.headers)?;
        let look = front.gateway.view_screen(&phone.who, &phone.id, phone.door, &wanted);
        // A viewer must not hold up a gateway that stops.
        let seen = front.drain.run_until_cancelled(Box::pin(look)).await.unwrap_or(Ok(None))?;
        Ok(match seen {
            Some(picture) => shown(picture),
            None => tagged(reply::empty(StatusCode::NOT_MODIFIED), &wanted.known.unwrap_or_default()),
        })
    };
    look.await.unwrap_or_else(|error| answer::<()>(Err(error)))
}

fn wanted(query: &Query, headers: &HeaderMap) -> Result<LiveRequest, ToolError> {
    let number = |key: &str, default: u64, least: u64, most: u64| {
        let number = query.number(key)?.unwrap_or(default);
        let message = format!("`{key}` is {number}; expected {least} to {most}");
        let wrong = || ToolError::new(ErrorKind::InvalidArguments, message);
        (least..=most).contains(&number).then_some(number).ok_or_else(wrong)
    };
    let (max_side, quality) = (number("max_side", MAX_SIDE, 16, 4096)?, number("quality", QUALITY, 1, 100)?);
    let header = headers.get(IF_NONE_MATCH).and_then(|tag| tag.to_str().ok());
    let known = header.or_else(|| query.text("known")).map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'));
    Ok(LiveRequest {
        max_side: max_side as u32,
        quality: quality as u8,
        known: known.map(str::to_owned),
        patience: PATIENCE,
    })
}

fn shown(picture: LivePicture) -> Response<Body> {
    let mut response = Response::new(Body::from(Bytes::from_owner(picture.bytes)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("image/jpeg"));
    tagged(response, &picture.digest)
}

/// An answer about the picture of this digest.
fn tagged(mut response: Response<Body>, digest: &str) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{digest}\"")) {
        headers.insert(ETAG, tag);
    }
    response
}

/// How long an upload and its installation may take together.
const INSTALL_TIME: Duration = Duration::from_secs(600);
/// How long the next bytes of an upload may take.
const PIECE_TIME: Duration = Duration::from_secs(30);
/// More files than an app has splits.
const MAX_FILES: usize = 100;

/// Installs an app that is sent as the body. It is the call of a tool like any other; its bytes go to the phone as they
/// arrive.
pub(crate) async fn install(
    State(front): State<Arc<FrontState>>,
    phone: PhoneRequest,
    content: Body,
) -> Response<Body> {
    let sizes = sizes(&phone.query, &phone.headers);
    let upload = Arc::new(Upload { sizes: sizes.as_deref().unwrap_or_default().to_vec(), body: Mutex::new(content) });
    let installed = async {
        let sizes = sizes?;
        let _running = front.calls.token();
        let args: Args = [("file".to_owned(), json!(format!("upload of {} bytes", sizes.iter().sum::<u64>())))]
            .into_iter()
            .collect();
        let caller = Arc::new(Uploader(upload.clone()));
        let call = GatewayCall {
            budget: Some(INSTALL_TIME),
            caller,
            ..GatewayCall::new((*phone.who).clone(), "install_app", args, phone.door)
        };
        Box::pin(front.gateway.call_on(&phone.id, call)).await.map(to_api::result)
    };
    let installed = installed.await;
    // Most clients read the answer only after they have sent everything.
    if installed.is_err() && !phone.headers.contains_key(EXPECT) {
        body::discard_rest(&mut *upload.body.lock().await).await;
    }
    answer(installed)
}

/// The size of each file, which together are the whole body.
fn sizes(query: &Query, headers: &HeaderMap) -> Result<Vec<u64>, ToolError> {
    let wrong = |message: String| ToolError::new(ErrorKind::InvalidArguments, message);
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let length =
        length.ok_or_else(|| wrong("send the APK as the body, with its size as `Content-Length`".to_owned()))?;
    let Some(text) = query.text("sizes") else { return Ok(vec![length]) };
    let sizes: Option<Vec<u64>> = text.split(',').take(MAX_FILES + 1).map(|size| size.trim().parse().ok()).collect();
    let sizes = sizes.filter(|sizes| sizes.len() <= MAX_FILES);
    let sizes =
        sizes.ok_or_else(|| wrong(format!("`sizes` must be up to {MAX_FILES} numbers with commas between them")))?;
    match sizes.iter().try_fold(0u64, |sum, size| sum.checked_add(*size)) {
        Some(sum) if sum == length => Ok(sizes),
        _ => Err(wrong(format!("`sizes` must add up to the {length} bytes of the body"))),
    }
}

/// A body that goes to a device.
struct Upload {
    sizes: Vec<u64>,
    body: Mutex<Body>,
}

impl Attachment for Upload {
    fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    fn next(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, ToolError>> {
        Box::pin(async {
            let mut body = self.body.lock().await;
            loop {
                let frame = timeout(PIECE_TIME, body.frame()).await.map_err(|_| {
                    let message =
                        format!("no bytes of the upload arrived for {} s; send it again", PIECE_TIME.as_secs());
                    ToolError::new(ErrorKind::Timeout, message)
                })?;
                match frame {
                    None => return Ok(None),
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(data) => return Ok(Some(data.into())),
                        Err(_) => continue,
                    },
                    Some(Err(_)) => {
                        let message = "the connection closed before the whole upload arrived; send it again";
                        return Err(ToolError::new(ErrorKind::Cancelled, message));
                    }
                }
            }
        })
    }
}

/// Whoever uploads, who only takes the answer.
struct Uploader(Arc<Upload>);

impl Caller for Uploader {
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        Silent.progress(progress, total, message);
    }

    fn log(&self, level: LogLevel, data: Value) {
        Silent.log(level, data);
    }

    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
        let asked = async move { Silent.ask(questions).await };
        Box::pin(asked)
    }

    fn attachment(&self) -> Option<Arc<dyn Attachment>> {
        Some(self.0.clone())
    }
}
