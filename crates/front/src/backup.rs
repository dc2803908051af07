//! `POST /api/v1/backup`: a backup is sent while it is written, so that none of it waits in memory.

use std::io::{self, Write};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response};
use serde_json::json;
use sinew_gateway::Backup;
use sinew_tool::{ErrorKind, ToolError};
use tokio::sync::mpsc;

use crate::api::{Authenticated, answer};
use crate::state::FrontState;

/// Bytes that are sent at once.
const CHUNK: usize = 64 << 10;
/// Chunks that wait for a slow reader.
const WAITING: usize = 4;

pub(crate) async fn backup(State(front): State<Arc<FrontState>>, Authenticated(who): Authenticated) -> Response<Body> {
    let made = front.gateway.backup().await.and_then(|backup| {
        let length = backup.length().map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))?;
        Ok((backup, length))
    });
    let failure = made.as_ref().err().map(|error| error.kind);
    front.gateway.record_change(&who, "backup", None, json!({}), failure);
    match made {
        Ok((backup, length)) => {
            let mut response = Response::new(body(backup));
            let headers: &mut HeaderMap = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-tar"));
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
            response
        }
        Err(error) => answer::<()>(Err(error)),
    }
}

fn body(backup: Backup) -> Body {
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::task::spawn_blocking(move || {
        let mut out = ChunkWriter { sender, chunk: Vec::with_capacity(CHUNK) };
        if let Err(error) = backup.write(&mut out) {
            // Cuts the answer, so that nobody takes it for whole.
            let _ = out.sender.blocking_send(Err(error));
        }
    });
    let chunks = stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    Body::from_stream(chunks)
}

/// Gives what is written to whoever sends it.
struct ChunkWriter {
    sender: mpsc::Sender<io::Result<Bytes>>,
    chunk: Vec<u8>,
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the reader went away");
        self.sender.blocking_send(Ok(chunk.into())).map_err(gone)
    }
}
