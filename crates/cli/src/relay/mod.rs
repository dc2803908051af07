//! A client on standard input and output, and the gateway that serves it: when one gateway goes, the session goes on
//! at the next.

mod connector;
mod lines;
mod session;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, stdin, stdout};
use tokio::sync::mpsc;

use crate::client::GatewayStream;
use crate::client_tokens::{self, ClientName};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::say;
pub use connector::{Connector, GatewayLocation, find_or_open, stream_path};
use lines::LineReader;
use session::{FromClient, RelaySession};

/// How long requests wait for the next gateway.
const WAIT: Duration = Duration::from_secs(60);

/// How long a gateway may take to answer `initialize`.
const INITIALIZE: Duration = Duration::from_secs(10);

/// Lines of the client that are read ahead.
const READ_AHEAD: usize = 16;

type Stream = Box<dyn GatewayStream>;

/// A connection to a gateway.
struct GatewayLink {
    lines: LineReader<ReadHalf<Stream>>,
    writer: WriteHalf<Stream>,
}

impl GatewayLink {
    fn new(stream: Stream) -> GatewayLink {
        let (reader, writer) = tokio::io::split(stream);
        GatewayLink { lines: LineReader::new(reader), writer }
    }
}

/// Which side ended a connection.
enum Ended {
    Client,
    Gateway,
}

/// What a client sends.
struct ClientLines {
    read: mpsc::Receiver<Vec<u8>>,
    /// Lines that were read before there was a gateway.
    early: VecDeque<Vec<u8>>,
}

impl ClientLines {
    fn start() -> ClientLines {
        let (send, read) = mpsc::channel(READ_AHEAD);
        tokio::spawn(async move {
            let mut lines = LineReader::new(stdin());
            while let Ok(Some(line)) = lines.next().await {
                if send.send(line).await.is_err() {
                    return;
                }
            }
        });
        ClientLines { read, early: VecDeque::new() }
    }

    /// The name that the client gives itself in its first message.
    async fn client_name(&mut self) -> String {
        let first = self.read.recv().await;
        let name = client_tokens::name(first.as_deref().unwrap_or_default());
        self.early.extend(first);
        name
    }

    async fn next(&mut self) -> Option<Vec<u8>> {
        match self.early.pop_front() {
            Some(line) => Some(line),
            None => self.read.recv().await,
        }
    }
}

/// Serves the client until it closes its input.
pub async fn run(connector: &mut Connector<'_>, client: Option<&str>) -> Result<(), CliError> {
    let mut input = ClientLines::start();
    let client = match client {
        Some(client) => ClientName::Given(client.to_owned()),
        None => ClientName::Own(input.client_name().await),
    };
    let session = RefCell::new(RelaySession::default());
    let mut out = stdout();
    let mut link = GatewayLink::new(connector.connect(&client).await?);
    loop {
        match serve(&session, &mut link, &mut input, &mut out).await? {
            Ended::Client => return Ok(()),
            Ended::Gateway => {
                let lines = session.borrow_mut().lost();
                write_lines(&mut out, &lines).await.map_err(client_gone)?;
            }
        }
        loop {
            let stream = match reconnect(&session, connector, &client, &mut input, &mut out).await {
                Ok(Some(stream)) => stream,
                Ok(None) => return Ok(()),
                Err(error) if error.is_expired() => return refuse(&session, error, &mut input, &mut out).await,
                Err(error) => return Err(error),
            };
            link = GatewayLink::new(stream);
            if resume(&session, &mut link, &mut out).await? {
                break;
            }
        }
    }
}

/// Carries lines both ways until one side ends. A client that has closed its input still gets its answers.
async fn serve(
    session: &RefCell<RelaySession>,
    link: &mut GatewayLink,
    input: &mut ClientLines,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<Ended, CliError> {
    let has_finished = RefCell::new(false);
    let GatewayLink { lines, writer } = link;
    let inward = async {
        while let Some(line) = input.next().await {
            let decision = session.borrow_mut().client_line(&line, true);
            if decision == FromClient::Forward && write_lines(writer, &[line]).await.is_err() {
                return;
            }
        }
        *has_finished.borrow_mut() = true;
        let _ = writer.shutdown().await;
        std::future::pending().await
    };
    let outward = async {
        while let Ok(Some(line)) = lines.next().await {
            let is_for_client = session.borrow_mut().gateway_line(&line);
            if is_for_client {
                write_lines(out, &[line]).await.map_err(client_gone)?;
            }
        }
        Ok::<_, CliError>(())
    };
    tokio::select! {
        () = inward => {}
        ended = outward => ended?,
    }
    Ok(if has_finished.into_inner() { Ended::Client } else { Ended::Gateway })
}

/// Waits for the next gateway and answers the client meanwhile. None when the client closes its input.
async fn reconnect(
    session: &RefCell<RelaySession>,
    connector: &mut Connector<'_>,
    client: &ClientName,
    input: &mut ClientLines,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<Option<Stream>, CliError> {
    let mut connecting = std::pin::pin!(connector.reconnect(client));
    let mut wait = std::pin::pin!(tokio::time::sleep(WAIT));
    let mut is_waiting = true;
    loop {
        let lines = tokio::select! {
            stream = &mut connecting => return stream.map(Some),
            line = input.next() => match line {
                None => return Ok(None),
                Some(line) => match session.borrow_mut().client_line(&line, false) {
                    FromClient::Answer(answer) => vec![answer],
                    FromClient::Forward | FromClient::Done => Vec::new(),
                },
            },
            () = &mut wait, if is_waiting => {
                is_waiting = false;
                session.borrow_mut().give_up()
            }
        };
        write_lines(out, &lines).await.map_err(client_gone)?;
    }
}

/// Answers a client whose token has expired until it leaves. Only a person can help; whoever ends the program instead
/// shows no client more than that its server is gone.
async fn refuse(
    session: &RefCell<RelaySession>,
    mut error: CliError,
    input: &mut ClientLines,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<(), CliError> {
    error.message.push_str("; give it to this client in its configuration (--token or SINEW_TOKEN), and restart it");
    say(&format!("sinew: {}", error.message));
    let waiting = session.borrow_mut().refuse(error.message.clone());
    write_lines(out, &waiting).await.map_err(client_gone)?;
    while let Some(line) = input.next().await {
        let decision = session.borrow_mut().client_line(&line, false);
        if let FromClient::Answer(answer) = decision {
            write_lines(out, &[answer]).await.map_err(client_gone)?;
        }
    }
    Err(error)
}

/// Repeats the session at another gateway. False if that one goes away meanwhile.
async fn resume(
    session: &RefCell<RelaySession>,
    link: &mut GatewayLink,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<bool, CliError> {
    let initialize = session.borrow().replay_initialize();
    if let Some((id, line)) = initialize {
        if write_lines(&mut link.writer, &[line]).await.is_err() {
            return Ok(false);
        }
        let answer = tokio::time::timeout(INITIALIZE, answer(link, &id)).await;
        let Some(answer) = answer.ok().flatten() else { return Ok(false) };
        if !session.borrow().agrees(&answer) {
            let message = "the gateway was replaced by one that speaks another revision of MCP; restart this client";
            return Err(CliError::new(CliErrorKind::NoGateway, message));
        }
    }
    let (lines, news) = (session.borrow().replay(), session.borrow().resumed());
    if write_lines(&mut link.writer, &lines).await.is_err() {
        return Ok(false);
    }
    write_lines(out, &news).await.map_err(client_gone)?;
    tracing::info!("the session goes on at another gateway");
    Ok(true)
}

/// The answer to our own request. A gateway sends nothing else before it.
async fn answer(link: &mut GatewayLink, id: &str) -> Option<Value> {
    while let Ok(Some(line)) = link.lines.next().await {
        let message: Value = serde_json::from_slice(&line).unwrap_or_default();
        if message["id"] == id {
            return Some(message);
        }
    }
    None
}

async fn write_lines(out: &mut (impl AsyncWrite + Unpin), lines: &[impl AsRef<[u8]>]) -> io::Result<()> {
    for line in lines {
        out.write_all(line.as_ref()).await?;
        out.write_all(b"\n").await?;
    }
    out.flush().await
}

fn client_gone(error: io::Error) -> CliError {
    CliError::new(CliErrorKind::Io, format!("cannot write to the client: {error}"))
}
