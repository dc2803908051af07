//! MCP as lines of text: one JSON message a line, over any pair of pipes.
//!
//! rmcp's own line transport drops what it cannot read without a word. Here a line that is not JSON,
//! a batch, and a line beyond the limit each get the JSON-RPC error that says so.

use std::collections::HashMap;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use sinew_tool::ErrorKind;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};

use crate::budget::{Budget, Share};
use crate::inspect::{self, Refusal};
use crate::outbox::Outbox;
use crate::weight;

/// Requests of one client that may be open before the next is read: as many as one device takes.
const OPEN: usize = 64;
/// Subscriptions of one client; they stay open, so they are counted apart and refused beyond this.
const SUBSCRIPTIONS: usize = 64;

pub struct Lines<R> {
    reader: BufReader<R>,
    outbox: Outbox,
    /// What was read of the next line. Kept here because `receive` is given up and called again.
    line: Vec<u8>,
    limit: usize,
    /// The rest of the current line is beyond the limit and is thrown away.
    skipping: bool,
    /// Requests that are not answered yet.
    open: HashMap<RequestId, Open>,
    bodies: Budget,
}

struct Open {
    is_subscription: bool,
    /// What the request takes of the memory for requests.
    _share: Share,
}

enum Line {
    Whole,
    TooLong,
    End,
}

impl<R: AsyncRead + Unpin + Send> Lines<R> {
    pub fn new(reader: R, writer: impl AsyncWrite + Unpin + Send + 'static, limit: usize, bodies: Budget) -> Lines<R> {
        let (reader, outbox) = (BufReader::new(reader), Outbox::new(writer));
        Lines { reader, outbox, line: Vec::new(), limit, skipping: false, open: HashMap::new(), bodies }
    }

    fn subscriptions(&self) -> usize {
        self.open.values().filter(|open| open.is_subscription).count()
    }

    /// Reads a line as a message and notes that it waits for an answer.
    fn parse(&mut self, line: &[u8]) -> Result<ClientJsonRpcMessage, Refusal> {
        let mut share = self.bodies.share();
        weight::take(&mut share, line)?;
        let message = serde_json::from_slice::<ClientJsonRpcMessage>(line).map_err(|_| inspect::refusal(line))?;
        if let Some(refusal) = inspect::refusal_of_readable(line) {
            return Err(refusal);
        }
        match &message {
            JsonRpcMessage::Request(request) => {
                let is_subscription = matches!(request.request, ClientRequest::SubscriptionsListenRequest(_));
                let refused = |kind, message: &str| {
                    let id = serde_json::to_value(&request.id).unwrap_or_default();
                    Err(Refusal { id, ..Refusal::new(kind, message) })
                };
                if self.open.contains_key(&request.id) {
                    return refused(ErrorKind::InvalidRequest, inspect::SAME_ID);
                }
                if is_subscription && self.subscriptions() >= SUBSCRIPTIONS {
                    return refused(ErrorKind::Busy, "this connection has 64 subscriptions; cancel one first");
                }
                self.open.insert(request.id.clone(), Open { is_subscription, _share: share });
            }
            JsonRpcMessage::Notification(notification) => {
                // What is cancelled is never answered.
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Ok(message)
    }

    async fn read_line(&mut self) -> std::io::Result<Line> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(Line::End);
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(bytes.len(), |end| end + 1);
            let fits = self.line.len() + length <= self.limit;
            if fits && !self.skipping {
                self.line.extend_from_slice(&bytes[..length]);
            } else {
                self.line.clear();
                self.skipping = true;
            }
            self.reader.consume(length);
            if end.is_some() {
                return Ok(if std::mem::take(&mut self.skipping) { Line::TooLong } else { Line::Whole });
            }
        }
    }
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for Lines<R> {
    type Error = std::io::Error;

    fn send(
        &mut self,
        mut message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), std::io::Error>> + Send + 'static {
        // Where rmcp itself has no such method, its message is the bare name.
        if let ServerJsonRpcMessage::Error(answer) = &mut message
            && answer.error.code == ErrorCode::METHOD_NOT_FOUND
            && answer.error.data.is_none()
        {
            let refusal = Refusal::unknown_method(&answer.error.message);
            answer.error.data = Some(refusal.to_error().to_object());
            answer.error.message = refusal.message.into();
        }
        let answered = match &message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = answered {
            self.open.remove(id);
        }
        let queued = to_bytes(&message).map(|bytes| match self.outbox.has_room(bytes.len()) {
            true => Some(self.outbox.push(bytes)),
            // Only answers are worth an error; who reads nothing misses no notification.
            false => answered.map(|id| self.outbox.push(lost(id).to_json().to_string().into_bytes())),
        });
        async move {
            match queued? {
                Some(written) => written.await.map_err(|_| std::io::ErrorKind::BrokenPipe.into()),
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if !self.outbox.ready().await {
                return None;
            }
            if self.open.len() - self.subscriptions() >= OPEN {
                // rmcp asks again after each answer it sends.
                std::future::pending::<()>().await;
            }
            let refusal = match self.read_line().await {
                Ok(Line::Whole) => {
                    let line = std::mem::take(&mut self.line);
                    if line.trim_ascii().is_empty() {
                        continue;
                    }
                    match self.parse(&line) {
                        Ok(message) => return Some(message),
                        Err(refusal) => refusal,
                    }
                }
                Ok(Line::TooLong) => Refusal::too_large(self.limit),
                Ok(Line::End) => return None,
                Err(error) => {
                    tracing::debug!(%error, "a line-based MCP client went away");
                    return None;
                }
            };
            drop(self.outbox.push(refusal.to_json().to_string().into_bytes()));
        }
    }

    async fn close(&mut self) -> Result<(), std::io::Error> {
        self.outbox.close().await
    }
}

/// What stands in for an answer that there was no room for.
fn lost(id: &RequestId) -> Refusal {
    let message = "the answer was dropped, because too many answers wait to be read on this connection; read them, \
                   then look whether the call had its effect";
    Refusal { id: serde_json::to_value(id).unwrap_or_default(), ..Refusal::new(ErrorKind::Cancelled, message) }
}

fn to_bytes(message: &ServerJsonRpcMessage) -> std::io::Result<Vec<u8>> {
    serde_json::to_vec(message).or_else(|error| {
        tracing::error!(%error, "an answer could not be written as JSON");
        let fault = ErrorData::internal_error("the answer could not be written as JSON", None);
        Ok(serde_json::to_vec(&ServerJsonRpcMessage::error(fault, None))?)
    })
}
