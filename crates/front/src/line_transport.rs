//! MCP as lines of text, one JSON message per line, over any pair of byte streams.
//!
//! rmcp's own line transport ignores lines that it cannot read. Here each of them gets a JSON-RPC error that says what
//! is wrong, and small faults of clients are repaired (`lenient`).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use sinew_tool::ErrorKind;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};

use crate::batch::{self, BatchAnswers};
use crate::id_scanner::IdScanner;
use crate::inspect::{self, MessageError};
use crate::memory::{MemoryBudget, MemoryShare};
use crate::message_memory;
use crate::outbox::{Outbox, Written};
use crate::revision::Revision;
use sinew_tool::lenient;

/// Open requests of one client before the next is read. As many as one device takes.
const MAX_OPEN: usize = 64;
/// Subscriptions of one client. They stay open, so they are counted separately.
const MAX_SUBSCRIPTIONS: usize = 64;

/// Refuses a request whose answer could not wait for the client.
const FULL: &str = "too many answers wait to be read; read them, then try again";

pub struct LineTransport<R> {
    reader: BufReader<R>,
    outbox: Outbox,
    /// The part of the next line that was read. Kept here because `receive` may be dropped and called again.
    line: Vec<u8>,
    limit: usize,
    /// The rest of the current line is too long: it is discarded, but its id is looked for.
    skipped: Option<IdScanner>,
    /// Messages of a batch that are not handed to rmcp yet.
    unread: VecDeque<(ClientJsonRpcMessage, Arc<MemoryShare>)>,
    batches: Vec<BatchAnswers>,
    /// The revision that `initialize` agreed on.
    revision: Option<Revision>,
    /// Requests that are not answered yet.
    open: HashMap<RequestId, OpenRequest>,
    bodies: MemoryBudget,
}

struct OpenRequest {
    is_subscription: bool,
    /// Its part of the memory for requests.
    _share: Arc<MemoryShare>,
}

enum LineRead {
    Whole,
    /// With the id of its message.
    TooLong(String),
    End,
}

impl<R: AsyncRead + Unpin + Send> LineTransport<R> {
    pub fn new(
        reader: R,
        writer: impl AsyncWrite + Unpin + Send + 'static,
        limit: usize,
        bodies: MemoryBudget,
        answers: MemoryBudget,
    ) -> LineTransport<R> {
        let (reader, outbox) = (BufReader::new(reader), Outbox::new(writer, answers));
        LineTransport {
            reader,
            outbox,
            line: Vec::new(),
            limit,
            skipped: None,
            unread: VecDeque::new(),
            batches: Vec::new(),
            revision: None,
            open: HashMap::new(),
            bodies,
        }
    }

    fn subscriptions(&self) -> usize {
        self.open.values().filter(|open| open.is_subscription).count()
    }

    /// Parses a line and queues its messages. What it gets as an answer at once is returned.
    fn take(&mut self, line: &[u8]) -> Result<(), MessageError> {
        let mut share = self.bodies.share();
        message_memory::take(&mut share, line).map_err(|error| error.for_request(line))?;
        let share = Arc::new(share);
        let batch = batch::split(line).filter(|_| self.revision.is_some_and(Revision::has_batches));
        let Some(messages) = batch else {
            let message = self.parse(line, &share)?;
            self.unread.push_back((message, share));
            return Ok(());
        };
        let messages = messages.map_err(|message| MessageError::new(ErrorKind::InvalidRequest, message))?;
        let mut answers = BatchAnswers::new(self.outbox.take(0));
        for message in messages {
            match self.parse(message, &share) {
                Ok(message) => {
                    if let JsonRpcMessage::Request(request) = &message {
                        answers.expect(request.id.clone());
                    }
                    self.unread.push_back((message, share.clone()));
                }
                Err(error) => answers.push(error.to_text()),
            }
        }
        self.batches.push(answers);
        self.send_batches();
        Ok(())
    }

    /// Parses a message. A request is recorded as open.
    fn parse(&mut self, text: &[u8], share: &Arc<MemoryShare>) -> Result<ClientJsonRpcMessage, MessageError> {
        if let Some(error) = inspect::check_parameters(text) {
            return Err(error);
        }
        let message = serde_json::from_slice::<ClientJsonRpcMessage>(text).map_err(|_| inspect::explain(text))?;
        match &message {
            JsonRpcMessage::Request(request) => {
                let is_subscription = matches!(request.request, ClientRequest::SubscriptionsListenRequest(_));
                let refused = |kind, message: &str| Err(MessageError::new(kind, message).for_request(text));
                if self.open.contains_key(&request.id) {
                    return refused(ErrorKind::InvalidRequest, inspect::SAME_ID);
                }
                if self.outbox.is_full() {
                    return refused(ErrorKind::Busy, FULL);
                }
                if is_subscription && self.subscriptions() >= MAX_SUBSCRIPTIONS {
                    return refused(ErrorKind::Busy, "this connection has 64 subscriptions; cancel one first");
                }
                self.open.insert(request.id.clone(), OpenRequest { is_subscription, _share: share.clone() });
            }
            JsonRpcMessage::Notification(notification) => {
                // Cancelled requests get no answer.
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.remove(id);
                    self.batches.iter_mut().for_each(|batch| batch.cancel(id));
                    self.send_batches();
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Ok(message)
    }

    /// Sends the answers of the batches that are complete.
    fn send_batches(&mut self) {
        for batch in self.batches.extract_if(.., |batch| batch.is_complete()) {
            if let Some((message, share)) = batch.into_message() {
                drop(self.outbox.push(message, share));
            }
        }
    }

    /// Queues a message, or keeps it back if it answers a request of a batch.
    fn deliver(&mut self, answered: Option<&RequestId>, bytes: Vec<u8>, share: MemoryShare) -> Option<Written> {
        let batch = answered.and_then(|id| Some((id, self.batches.iter_mut().find(|batch| batch.waits_for(id))?)));
        let Some((id, batch)) = batch else { return Some(self.outbox.push(bytes, share)) };
        batch.answer(id, String::from_utf8_lossy(&bytes).into_owned(), share);
        self.send_batches();
        None
    }

    fn push_error(&self, error: &MessageError) {
        let text = error.to_text().into_bytes();
        let share = self.outbox.take(text.len());
        drop(self.outbox.push(text, share));
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
            match &mut self.skipped {
                None if fits => self.line.extend_from_slice(&bytes[..length]),
                None => {
                    let scanner = self.skipped.insert(IdScanner::default());
                    scanner.scan(&std::mem::take(&mut self.line));
                    scanner.scan(&bytes[..length]);
                }
                Some(scanner) => scanner.scan(&bytes[..length]),
            }
            self.reader.consume(length);
            if end.is_some() {
                return Ok(self.skipped.take().map_or(LineRead::Whole, |scanner| LineRead::TooLong(scanner.finish())));
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
        if let ServerJsonRpcMessage::Response(response) = &message
            && let ServerResult::InitializeResult(result) = &response.result
        {
            self.revision = Some(Revision::parse(result.protocol_version.as_str()));
        }
        let answered = match &message {
            ServerJsonRpcMessage::Response(response) => Some(response.id.clone()),
            ServerJsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        if let Some(id) = &answered {
            self.open.remove(id);
        }
        let queued = to_bytes(&message).map(|bytes| match (self.outbox.reserve(bytes.len()), &answered) {
            (Some(share), answered) => self.deliver(answered.as_ref(), bytes, share),
            (None, Some(id)) => {
                let error = dropped(id).to_text().into_bytes();
                let share = self.outbox.take(error.len());
                self.deliver(Some(id), error, share)
            }
            // Lost notifications are not replaced.
            (None, None) => None,
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
            if let Some((message, _share)) = self.unread.pop_front() {
                return Some(message);
            }
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
                    let line = lenient::repair(&line);
                    if line.trim_ascii().is_empty() {
                        continue;
                    }
                    match message_memory::aside_where_long(line.len(), || self.take(&line)) {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Ok(LineRead::TooLong(id)) => MessageError { id, ..MessageError::too_large(self.limit) },
                Ok(LineRead::End) => return None,
                Err(error) => {
                    tracing::debug!(%error, "an MCP client on a line transport disconnected");
                    return None;
                }
            };
            self.push_error(&error);
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
    let id = serde_json::to_string(id).unwrap_or_else(|_| "null".to_owned());
    MessageError { id, ..MessageError::new(ErrorKind::Cancelled, message) }
}

fn to_bytes(message: &ServerJsonRpcMessage) -> std::io::Result<Vec<u8>> {
    serde_json::to_vec(message).or_else(|error| {
        tracing::error!(%error, "an answer could not be written as JSON");
        let fault = ErrorData::internal_error("the answer could not be written as JSON", None);
        Ok(serde_json::to_vec(&ServerJsonRpcMessage::error(fault, None))?)
    })
}
