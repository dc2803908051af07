//! MCP over the standard input and output of a process, one message per line.
//!
//! The process is a program that the configuration names. It ends when its link is dropped: first its input is closed,
//! then it is killed.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sinew_tool::text::clip;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use crate::link::{LinkError, LinkErrorKind, MAX_MESSAGE_BYTES, Outgoing};
use crate::message::ServerMessage;

/// Messages that may wait for whoever reads them; further notifications are dropped.
const MAX_WAITING: usize = 256;
/// How long a process may take to end by itself.
const CLOSE_TIME: Duration = Duration::from_secs(2);
/// Lines of a process's error output that are shown; beyond it they are read and dropped.
const MAX_LOG_LINES: usize = 1000;

pub(crate) struct ProcessLink {
    input: tokio::sync::Mutex<Option<ChildStdin>>,
    routes: Arc<Routes>,
    child: tokio::sync::Mutex<Child>,
}

/// Who waits for which message. A server on stdio gets one call at a time, so that what belongs to no request belongs
/// to the open one, or to whoever listens.
#[derive(Default)]
struct Routes {
    table: Mutex<RouteTable>,
}

#[derive(Default)]
struct RouteTable {
    open: HashMap<i64, mpsc::Sender<ServerMessage>>,
    listener: Option<mpsc::Sender<ServerMessage>>,
    is_closed: bool,
}

impl Routes {
    fn with<T>(&self, act: impl FnOnce(&mut RouteTable) -> T) -> T {
        act(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn deliver(&self, message: ServerMessage) {
        self.with(|table| {
            let receiver = match &message {
                ServerMessage::Answer { id, .. } => table.open.get(id),
                ServerMessage::Request { .. } => table.open.values().next().or(table.listener.as_ref()),
                ServerMessage::Notification { method, .. } if method == "notifications/tools/list_changed" => {
                    table.listener.as_ref()
                }
                ServerMessage::Notification { .. } => table.open.values().next().or(table.listener.as_ref()),
            };
            if let Some(receiver) = receiver {
                // Nobody reads fast enough: what is dropped is progress or a log line.
                let _ = receiver.try_send(message);
            }
        });
    }

    fn close(&self) {
        self.with(|table| *table = RouteTable { is_closed: true, ..RouteTable::default() });
    }
}

impl ProcessLink {
    /// Starts the program. Its error output goes to our log.
    pub(crate) fn start(command: &[String]) -> Result<ProcessLink, LinkError> {
        let away = |message: String| LinkError::new(LinkErrorKind::Away, message);
        let (program, arguments) = command.split_first().ok_or_else(|| away("`command` is empty".to_owned()))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| away(format!("`{program}` cannot be started: {error}")))?;
        let routes = Arc::new(Routes::default());
        let (input, output, log) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        if let Some(output) = output {
            tokio::spawn(read_messages(BufReader::new(output), routes.clone()));
        }
        if let Some(log) = log {
            tokio::spawn(read_log(BufReader::new(log), program.clone()));
        }
        Ok(ProcessLink { input: tokio::sync::Mutex::new(input), routes, child: tokio::sync::Mutex::new(child) })
    }

    pub(crate) async fn send(&self, outgoing: Outgoing) -> Result<ProcessExchange, LinkError> {
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        let exchange = ProcessExchange { id: outgoing.id, messages, routes: self.routes.clone() };
        let gone = || LinkError::new(LinkErrorKind::Away, "the program of this server has ended");
        if let Some(id) = outgoing.id {
            let is_open = self.routes.with(|table| {
                table.open.insert(id, sender);
                !table.is_closed
            });
            if !is_open {
                return Err(gone());
            }
        }
        let mut input = self.input.lock().await;
        let Some(input) = input.as_mut() else { return Err(gone()) };
        let line = format!("{}\n", outgoing.text);
        let written = async {
            input.write_all(line.as_bytes()).await?;
            input.flush().await
        };
        written.await.map_err(|error| LinkError::new(LinkErrorKind::Lost, format!("its input is closed: {error}")))?;
        Ok(exchange)
    }

    pub(crate) fn listen(&self) -> ProcessExchange {
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        self.routes.with(|table| {
            if !table.is_closed {
                table.listener = Some(sender);
            }
        });
        ProcessExchange { id: None, messages, routes: self.routes.clone() }
    }

    pub(crate) async fn close(&self) {
        self.input.lock().await.take();
        let mut child = self.child.lock().await;
        if tokio::time::timeout(CLOSE_TIME, child.wait()).await.is_err() {
            // An error means that it has just ended.
            let _ = child.kill().await;
        }
    }
}

pub(crate) struct ProcessExchange {
    id: Option<i64>,
    messages: mpsc::Receiver<ServerMessage>,
    routes: Arc<Routes>,
}

impl ProcessExchange {
    pub(crate) async fn next(&mut self) -> Result<Option<ServerMessage>, LinkError> {
        match (self.messages.recv().await, self.id) {
            (Some(message), _) => Ok(Some(message)),
            (None, None) => Ok(None),
            (None, Some(_)) => {
                Err(LinkError::new(LinkErrorKind::Lost, "the program of this server ended before it answered"))
            }
        }
    }
}

impl Drop for ProcessExchange {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.routes.with(|table| table.open.remove(&id));
        }
    }
}

async fn read_messages(mut output: impl AsyncBufRead + Unpin, routes: Arc<Routes>) {
    loop {
        match read_line(&mut output, MAX_MESSAGE_BYTES).await {
            Ok(Some(line)) if line.trim().is_empty() => {}
            Ok(Some(line)) => match ServerMessage::parse(&line) {
                Ok(messages) => messages.into_iter().for_each(|message| routes.deliver(message)),
                Err(why) => tracing::debug!("a line of a server is left out: {why}"),
            },
            Ok(None) | Err(_) => break,
        }
    }
    routes.close();
}

async fn read_log(mut log: impl AsyncBufRead + Unpin, program: String) {
    let mut shown = 0;
    while let Ok(Some(line)) = read_line(&mut log, MAX_MESSAGE_BYTES).await {
        if shown < MAX_LOG_LINES {
            shown += 1;
            tracing::debug!(program, "{}", clip(line.trim_end()));
        }
    }
}

/// The next line, without invalid bytes. The rest of a line that is too long is dropped.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin), limit: usize) -> std::io::Result<Option<String>> {
    let mut line = Vec::new();
    loop {
        let piece = input.fill_buf().await?;
        if piece.is_empty() {
            return Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned()));
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(piece.len(), |end| end + 1);
        let room = limit.saturating_sub(line.len());
        line.extend_from_slice(&piece[..taken.min(room)]);
        input.consume(taken);
        if end.is_some() {
            return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
        }
    }
}
