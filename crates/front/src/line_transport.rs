//! MCP as lines of text, one JSON message per line, over any pair of byte streams.
//!
//! rmcp's own line transport ignores lines that it cannot read. Here each of them gets a JSON-RPC error that says what
//! is wrong.

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

use crate::inspect::{self, MessageError};
use crate::memory::{MemoryBudget, MemoryShare};
use crate::message_memory;
use crate::outbox::Outbox;

/// Open requests of one client before the next is read. As many as one device takes.
const MAX_OPEN: usize = 64;
/// Subscriptions of one client. They stay open, so they are counted separately.
const MAX_SUBSCRIPTIONS: usize = 64;

pub struct LineTransport<R> {
    reader: BufReader<R>,
    outbox: Outbox,
    /// The part of the next line that was read. Kept here because `receive` may be dropped and called again.
    line: Vec<u8>,
    limit: usize,
    /// The rest of the current line is too long and is discarded.
    skipping: bool,
    /// Requests that are not answered yet.
    open: HashMap<RequestId, OpenRequest>,
    bodies: MemoryBudget,
}

struct OpenRequest {
    is_subscription: bool,
    /// Its part of the memory for requests.
    _share: MemoryShare,
}

enum LineRead {
    Whole,
    TooLong,
    End,
}

impl<R: AsyncRead + Unpin + Send> LineTransport<R> {
    pub fn new(
        reader: R,
        writer: impl AsyncWrite + Unpin + Send + 'static,
        limit: usize,
        bodies: MemoryBudget,
    ) -> LineTransport<R> {
        let (reader, outbox) = (BufReader::new(reader), Outbox::new(writer));
        LineTransport { reader, outbox, line: Vec::new(), limit, skipping: false, open: HashMap::new(), bodies }
    }

    fn subscriptions(&self) -> usize {
        self.open.values().filter(|open| open.is_subscription).count()
    }

    /// Parses a line as a message. A request is recorded as open.
    fn parse(&mut self, line: &[u8]) -> Result<ClientJsonRpcMessage, MessageError> {
        let mut share = self.bodies.share();
        message_memory::take(&mut share, line)?;
        let message = serde_json::from_slice::<ClientJsonRpcMessage>(line).map_err(|_| inspect::explain(line))?;
        if let Some(error) = inspect::check_cursor(line) {
            return Err(error);
        }
        match &message {
            JsonRpcMessage::Request(request) => {
                let is_subscription = matches!(request.request, ClientRequest::SubscriptionsListenRequest(_));
                let refused = |kind, message: &str| {
                    let id = serde_json::to_value(&request.id).unwrap_or_default();
                    Err(MessageError { id, ..MessageError::new(kind, message) })
                };
                if self.open.contains_key(&request.id) {
                    return refused(ErrorKind::InvalidRequest, inspect::SAME_ID);
                }
                if is_subscription && self.subscriptions() >= MAX_SUBSCRIPTIONS {
                    return refused(ErrorKind::Busy, "this connection has 64 subscriptions; cancel one first");
                }
                self.open.insert(request.id.clone(), OpenRequest { is_subscription, _share: share });
            }
            JsonRpcMessage::Notification(notification) => {
                // Cancelled requests get no answer.
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

    async fn read_line(&mut self) -> std::io::Result<LineRead> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(LineRead::End);
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
                return Ok(if std::mem::take(&mut self.skipping) { LineRead::TooLong } else { LineRead::Whole });
            }
        }
    }
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for LineTransport<R> {
    type Error = std::io::Error;

    fn send(
        &mut self,
        mut message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), std::io::Error>> + Send + 'static {
        // When rmcp does not know a method, its message is only the name.
        if let ServerJsonRpcMessage::Error(answer) = &mut message
            && answer.error.code == ErrorCode::METHOD_NOT_FOUND
            && answer.error.data.is_none()
        {
            let error = MessageError::unknown_method(&answer.error.message);
            answer.error.data = Some(error.to_error().to_object());
            answer.error.message = error.message.into();
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
            // Only requests need an error instead; lost notifications are not replaced.
            false => answered.map(|id| self.outbox.push(dropped(id).to_json().to_string().into_bytes())),
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
            if self.open.len() - self.subscriptions() >= MAX_OPEN {
                // rmcp calls `receive` again after each answer it sends.
                std::future::pending::<()>().await;
            }
            let error = match self.read_line().await {
                Ok(LineRead::Whole) => {
                    let line = std::mem::take(&mut self.line);
                    if line.trim_ascii().is_empty() {
                        continue;
                    }
                    match self.parse(&line) {
                        Ok(message) => return Some(message),
                        Err(error) => error,
                    }
                }
                Ok(LineRead::TooLong) => MessageError::too_large(self.limit),
                Ok(LineRead::End) => return None,
                Err(error) => {
                    tracing::debug!(%error, "an MCP client on a line transport disconnected");
                    return None;
                }
            };
            drop(self.outbox.push(error.to_json().to_string().into_bytes()));
        }
    }

    async fn close(&mut self) -> Result<(), std::io::Error> {
        self.outbox.close().await
    }
}

/// The error in place of an answer that there was no room for.
fn dropped(id: &RequestId) -> MessageError {
    let message = "the answer was dropped because too many answers wait to be read on this connection; read them, \
                   then check whether the call took effect";
    MessageError {
        id: serde_json::to_value(id).unwrap_or_default(),
        ..MessageError::new(ErrorKind::Cancelled, message)
    }
}

fn to_bytes(message: &ServerJsonRpcMessage) -> std::io::Result<Vec<u8>> {
    serde_json::to_vec(message).or_else(|error| {
        tracing::error!(%error, "an answer could not be written as JSON");
        let fault = ErrorData::internal_error("the answer could not be written as JSON", None);
        Ok(serde_json::to_vec(&ServerJsonRpcMessage::error(fault, None))?)
    })
}
