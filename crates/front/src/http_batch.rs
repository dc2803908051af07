//! The answers to a batch over HTTP: one event stream with the answers to all its messages.

use axum::body::{Body, Bytes};
use futures_util::stream::{self, Stream, StreamExt};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::BodyExt;

use crate::reply;

/// One answer made of the answers to each message. Messages that need no answer have none in it.
pub(crate) fn merge(responses: Vec<Response<Body>>) -> Response<Body> {
    let answers: Vec<_> = responses
        .into_iter()
        .filter(|response| response.status() != StatusCode::ACCEPTED)
        .map(|response| events(response).boxed())
        .collect();
    if answers.is_empty() {
        return reply::empty(StatusCode::ACCEPTED);
    }
    let mut response = Response::new(Body::from_stream(stream::select_all(answers)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The events of an answer, each whole: pieces of two answers must not mix.
fn events(response: Response<Body>) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send {
    let kind = response.headers().get(CONTENT_TYPE);
    let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    stream::unfold(Some((response.into_body(), Vec::new())), move |state| async move {
        let (mut body, mut buffer) = state?;
        loop {
            let end = buffer.windows(2).position(|window| window == b"\n\n").filter(|_| is_stream);
            if let Some(end) = end {
                let rest = buffer.split_off(end + 2);
                return Some((Ok(Bytes::from(buffer)), Some((body, rest))));
            }
            match body.frame().await {
                Some(Ok(frame)) => buffer.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                Some(Err(error)) => return Some((Err(error), None)),
                None if is_stream || buffer.is_empty() => return None,
                None => {
                    let event = [b"data: ", buffer.as_slice(), b"\n\n"].concat();
                    return Some((Ok(event.into()), None));
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn answers_become_events_of_one_stream() {
        let mut stream = Response::new(Body::from("data: 1\n\ndata: 2\n\n"));
        stream.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        let answers =
            vec![reply::empty(StatusCode::ACCEPTED), reply::value(StatusCode::BAD_REQUEST, &json!({"id": 3})), stream];
        let merged = merge(answers);
        assert_eq!(merged.status(), StatusCode::OK);
        assert_eq!(merged.headers()[CONTENT_TYPE], "text/event-stream");
        let text = merged.into_body().collect().await.expect("a body").to_bytes();
        let mut events: Vec<&str> = std::str::from_utf8(&text).expect("text").split_terminator("\n\n").collect();
        events.sort_unstable();
        assert_eq!(events, ["data: 1", "data: 2", "data: {\"id\":3}"]);
    }

    #[test]
    fn a_batch_of_notifications_has_no_answer() {
        assert_eq!(merge(vec![reply::empty(StatusCode::ACCEPTED)]).status(), StatusCode::ACCEPTED);
    }
}
