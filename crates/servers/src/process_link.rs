//! MCP over the standard input and output of a process, one message per line.
//!
//! The process is a program that the configuration names. It has a process group of its own, and ends with its link: first
//! its input is closed, then it is killed with everything that it started.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sinew_tool::text::clip;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::link::{LinkError, LinkErrorKind, MAX_MESSAGE_BYTES, Outgoing};
use crate::message::ServerMessage;

/// Messages that may wait for whoever reads them; further notifications are dropped.
const MAX_WAITING: usize = 256;
/// Of these, kept free for questions and answers, which are never dropped for notifications.
const KEPT_FOR_QUESTIONS: usize = 32;
/// Lines that wait until the program reads its input.
const MAX_UNSENT_LINES: usize = 16;
/// How long a process may take to end by itself.
const CLOSE_TIME: Duration = Duration::from_secs(2);
/// Lines of a process's error output that are logged each time it is started; beyond it they are read and dropped.
const MAX_LOG_LINES: usize = 200;

pub(crate) struct ProcessLink {
    lines: mpsc::Sender<UnsentLine>,
    writer: Option<AbortHandle>,
    routes: Arc<Routes>,
    end: CancellationToken,
    process: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

/// A line on its way to the program, and who wants to know that it is written.
struct UnsentLine {
    text: String,
    written: oneshot::Sender<std::io::Result<()>>,
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
            let open = || table.open.values().next().or(table.listener.as_ref());
            let (receiver, kept_free) = match &message {
                ServerMessage::Answer { id, .. } => (table.open.get(id), 0),
                ServerMessage::Request { .. } => (open(), 1),
                ServerMessage::Notification { method, .. } if method == "notifications/tools/list_changed" => {
                    (table.listener.as_ref(), 1)
                }
                ServerMessage::Notification { .. } => (open(), KEPT_FOR_QUESTIONS),
            };
            if let Some(receiver) = receiver.filter(|receiver| receiver.capacity() > kept_free) {
                // Nobody waits any more where it fails.
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
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| away(format!("`{program}` cannot be started: {error}")))?;
        let routes = Arc::new(Routes::default());
        let (lines, unsent) = mpsc::channel(MAX_UNSENT_LINES);
        let writer = child.stdin.take().map(|input| tokio::spawn(write_lines(input, unsent)).abort_handle());
        if let Some(output) = child.stdout.take() {
            tokio::spawn(read_messages(BufReader::new(output), routes.clone()));
        }
        if let Some(log) = child.stderr.take() {
            tokio::spawn(read_log(BufReader::new(log), program.clone()));
        }
        let end = CancellationToken::new();
        let process = tokio::sync::Mutex::new(Some(tokio::spawn(keep(child, end.clone()))));
        Ok(ProcessLink { lines, writer, routes, end, process })
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
        let (written, is_written) = oneshot::channel();
        self.lines.send(UnsentLine { text: outgoing.text, written }).await.map_err(|_| gone())?;
        let written = is_written.await.map_err(|_| gone())?;
        written.map_err(|error| LinkError::new(LinkErrorKind::Lost, format!("its input is closed: {error}")))?;
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
        self.begin_end();
        if let Some(process) = self.process.lock().await.take() {
            // An error means that the runtime ends too.
            let _ = process.await;
        }
    }

    fn begin_end(&self) {
        if let Some(writer) = &self.writer {
            writer.abort();
        }
        self.end.cancel();
    }
}

impl Drop for ProcessLink {
    fn drop(&mut self) {
        self.begin_end();
    }
}

/// Waits until a program ends, by itself or because it is told to, and then ends what it started: such a process may hold
/// its output open.
async fn keep(mut child: Child, end: CancellationToken) {
    let group = ProcessGroup { leader: child.id() };
    if end.run_until_cancelled(child.wait()).await.is_none() {
        let _ = tokio::time::timeout(CLOSE_TIME, child.wait()).await;
    }
    drop(group);
    // An error means that it has ended.
    let _ = child.kill().await;
}

/// A program and whatever it started. They end with the value.
struct ProcessGroup {
    leader: Option<u32>,
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.leader.and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
            // An error means that nobody is left in it.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// Writes line after line, each as a whole: whoever sends one may give up meanwhile.
async fn write_lines(mut input: ChildStdin, mut lines: mpsc::Receiver<UnsentLine>) {
    while let Some(UnsentLine { mut text, written }) = lines.recv().await {
        if written.is_closed() {
            continue;
        }
        text.push('\n');
        let result = async {
            input.write_all(text.as_bytes()).await?;
            input.flush().await
        };
        let result = result.await;
        let is_closed = result.is_err();
        // The sender may have given up.
        let _ = written.send(result);
        if is_closed {
            return;
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
            tracing::info!(program, "{}", clip(line.trim_end()));
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
