//! MCP as lines of text: one JSON message a line, over any pair of pipes.
//!
//! rmcp's own line transport drops what it cannot read without a word. Here a line that is not JSON,
//! a batch, and a line beyond the limit each get the JSON-RPC error that says so.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use crate::inspect;

pub struct Lines<R, W> {
    reader: BufReader<R>,
    writer: Arc<Mutex<W>>,
    /// What was read of the next line. Kept here because `receive` is given up and called again.
    line: Vec<u8>,
    limit: usize,
    /// The rest of the current line is beyond the limit and is thrown away.
    skipping: bool,
}

enum Line {
    Whole,
    TooLong,
    End,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    pub fn new(reader: R, writer: W, limit: usize) -> Lines<R, W> {
        let writer = Arc::new(Mutex::new(writer));
        Lines { reader: BufReader::new(reader), writer, line: Vec::new(), limit, skipping: false }
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

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Transport<RoleServer> for Lines<R, W> {
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
            let refusal = inspect::Refusal::unknown_method(&answer.error.message);
            answer.error.data = Some(refusal.to_error().to_object());
            answer.error.message = refusal.message.into();
        }
        let writer = self.writer.clone();
        async move { write_line(&writer, to_bytes(&message)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let refusal = match self.read_line().await {
                Ok(Line::Whole) => {
                    let line = std::mem::take(&mut self.line);
                    if line.trim_ascii().is_empty() {
                        continue;
                    }
                    match serde_json::from_slice::<ClientJsonRpcMessage>(&line) {
                        Ok(message) => match inspect::refusal_of_readable(&line) {
                            None => return Some(message),
                            Some(refusal) => refusal,
                        },
                        Err(_) => inspect::refusal(&line),
                    }
                }
                Ok(Line::TooLong) => inspect::Refusal::too_large(self.limit),
                Ok(Line::End) => return None,
                Err(error) => {
                    tracing::debug!(%error, "a line-based MCP client went away");
                    return None;
                }
            };
            write_line(&self.writer, refusal.to_json().to_string().into_bytes()).await.ok()?;
        }
    }

    async fn close(&mut self) -> Result<(), std::io::Error> {
        self.writer.lock().await.shutdown().await
    }
}

fn to_bytes(message: &ServerJsonRpcMessage) -> std::io::Result<Vec<u8>> {
    serde_json::to_vec(message).or_else(|error| {
        tracing::error!(%error, "an answer could not be written as JSON");
        let fault = ErrorData::internal_error("the answer could not be written as JSON", None);
        Ok(serde_json::to_vec(&ServerJsonRpcMessage::error(fault, None))?)
    })
}

async fn write_line<W: AsyncWrite + Unpin>(writer: &Mutex<W>, mut bytes: Vec<u8>) -> std::io::Result<()> {
    bytes.push(b'\n');
    let mut writer = writer.lock().await;
    writer.write_all(&bytes).await?;
    writer.flush().await
}
