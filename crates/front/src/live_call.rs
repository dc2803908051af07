//! A call of the HTTP interface whose answer comes in lines: what is reported before it ends, and then its answer.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures_util::stream::{self, PollNext, StreamExt};
use http::{HeaderValue, Response, header};
use serde_json::{Value, json};
use sinew_api::{CallLine, CallResult};
use sinew_tool::{Answer, BoxFuture, Caller, LogLevel, PendingApproval, Question, Silent, ToolError};
use tokio::sync::mpsc;

/// What a client accepts that wants lines.
pub(crate) const LINES: &str = "application/x-ndjson";

/// Reports beyond this many are dropped until the client has read some.
const QUEUE: usize = 256;

/// Makes a call whose reports go to the client at once. The call ends when the client goes away.
pub(crate) fn stream<F>(call: impl FnOnce(Arc<dyn Caller>) -> F) -> Response<Body>
where
    F: Future<Output = Result<CallResult, ToolError>> + Send + 'static,
{
    let (reports, received) = mpsc::channel(QUEUE);
    let called = call(Arc::new(LineCaller(reports)));
    let reports = stream::unfold(received, |mut received| async move { Some((received.recv().await?, received)) });
    let answer = stream::once(called).map(|called| match called {
        Ok(result) => CallLine::Result(result),
        Err(error) => CallLine::Error(error.to_object()),
    });
    // What was reported comes before the answer.
    let lines = stream::select_with_strategy(reports, answer, |_: &mut ()| PollNext::Left);
    let mut response = Response::new(Body::from_stream(lines.map(|line| Ok::<Bytes, Infallible>(to_bytes(&line)))));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(LINES));
    response
}

fn to_bytes(line: &CallLine) -> Bytes {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text.into()
}

struct LineCaller(mpsc::Sender<CallLine>);

impl Caller for LineCaller {
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let line = json!({"progress": progress, "total": total, "message": message});
        let _ = self.0.try_send(CallLine::Progress(line));
    }

    fn log(&self, _: LogLevel, data: Value) {
        let _ = self.0.try_send(CallLine::Log(data));
    }

    fn waits_for_approval(&self, pending: &PendingApproval) {
        let _ = self.0.try_send(CallLine::Waiting(json!(pending)));
    }

    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
        Silent.ask(questions)
    }
}
