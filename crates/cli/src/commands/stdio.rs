//! `sinew stdio`: MCP on standard input and output.
//!
//! Where a gateway runs this is a pump of bytes to it; only where none does is one opened in this
//! process, with its doors, so that the next client and the command line find it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sinew_compose::config::{MqttAddress, shape};
use sinew_compose::state;
use sinew_compose::{ComposeErrorKind, GatewayConfig, GatewayServer, Overrides};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, copy, stdin, stdout};

use super::demo;
use crate::args::{ReachArgs, StdioArgs};
use crate::client::GatewayTarget;
use crate::client_tokens;
use crate::error::{CliError, CliErrorKind};
use crate::stop::StopSignal;

/// Two clients may start at once; the one that comes second waits for the first one's doors.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is read of the first message to find the client's name; a longer one is passed on all the same.
const FIRST_MESSAGE: u64 = 64 << 10;

/// The gateway that a client needs.
pub enum GatewayLocation {
    Running(GatewayTarget),
    /// None ran, so this process has opened one.
    Here(Box<GatewayServer>, StopSignal),
}

pub async fn run(args: StdioArgs) -> Result<(), CliError> {
    match find_or_open(&args.reach, args.demo).await? {
        GatewayLocation::Running(target) => pump(&target, &args).await,
        GatewayLocation::Here(server, stop) => serve(*server, stop, &args).await,
    }
}

pub async fn find_or_open(reach: &ReachArgs, demo: bool) -> Result<GatewayLocation, CliError> {
    if let Some(target) = GatewayTarget::named(reach)? {
        return Ok(GatewayLocation::Running(target));
    }
    let directory = state::directory(reach.state.state.as_deref())?;
    let own = if demo { state::demo(&directory) } else { directory.clone() };
    let patience = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(running) = state::find_running(&directory) {
            return GatewayTarget::of_running(&running, reach).map(GatewayLocation::Running);
        }
        let stop = StopSignal::new()?;
        match open(&own, reach.token.clone(), demo).await {
            Ok(server) => return Ok(GatewayLocation::Here(Box::new(server), stop)),
            Err(error) if error.kind == ComposeErrorKind::StateTaken && tokio::time::Instant::now() < patience => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

pub fn stream_path(unfolded: bool) -> &'static str {
    if unfolded { "/mcp/stream?tools=unfolded" } else { "/mcp/stream" }
}

/// Bytes to the gateway and back. The end of input is passed on, and what is still to come is waited for; a
/// gateway that ends first has gone away under its client.
async fn pump(target: &GatewayTarget, args: &StdioArgs) -> Result<(), CliError> {
    let (client, mut input) = introduced(args.client.as_deref()).await?;
    let stream = client_tokens::open(target, &client, stream_path(args.unfolded)).await?;
    let (mut from, mut to) = tokio::io::split(stream);
    let finished = AtomicBool::new(false);
    let inward = async {
        let ended = copy(&mut input, &mut to).await;
        finished.store(ended.is_ok(), Ordering::Relaxed);
        let _ = to.shutdown().await;
        match ended {
            Ok(_) => std::future::pending().await,
            Err(error) => error,
        }
    };
    let outward = async {
        let mut out = stdout();
        let ended = copy(&mut from, &mut out).await;
        out.flush().await.and(ended)
    };
    tokio::select! {
        error = inward => Err(CliError::new(CliErrorKind::Io, format!("standard input or the gateway broke off: {error}"))),
        ended = outward => match ended {
            Ok(_) if finished.load(Ordering::Relaxed) => Ok(()),
            Ok(_) => Err(CliError::new(
                CliErrorKind::NoGateway,
                format!(
                    "the gateway at {} closed the connection; start it again with `sinew serve`, then this client",
                    target.url
                ),
            )),
            Err(error) => Err(CliError::new(CliErrorKind::Io, format!("the connection to the gateway broke: {error}"))),
        },
    }
}

async fn serve(mut server: GatewayServer, mut stop: StopSignal, args: &StdioArgs) -> Result<(), CliError> {
    if args.demo {
        demo::connect(&mut server).await?;
    }
    let shape = shape(args.unfolded);
    let session = async {
        let (client, input) = introduced(args.client.as_deref()).await?;
        let (_, who) = client_tokens::token(&server.gateway, &server.directory, &client)?;
        let shutdown = server.shutdown().clone();
        let served = sinew_front::stdio::run(server.front.clone(), who, shape, input, stdout(), shutdown).await;
        served.map_err(|error| CliError::new(CliErrorKind::Io, error.to_string()))
    };
    let served = tokio::select! {
        served = session => served,
        () = stop.wait() => Ok(()),
    };
    server.close(stop.wait()).await;
    served
}

/// The name of the client and what it says. Where no name was given, its first message is read for one.
async fn introduced(named: Option<&str>) -> Result<(String, impl AsyncRead + Unpin + Send + use<>), CliError> {
    let mut input = BufReader::new(stdin());
    let mut first = Vec::new();
    let client = match named {
        Some(client) => client.to_owned(),
        None => {
            let read = (&mut input).take(FIRST_MESSAGE).read_until(b'\n', &mut first).await;
            read.map_err(|error| CliError::new(CliErrorKind::Io, format!("standard input cannot be read: {error}")))?;
            client_tokens::name(&first)
        }
    };
    Ok((client, std::io::Cursor::new(first).chain(input)))
}

/// A gateway at the usual addresses, or at free ones where something else holds those.
async fn open(directory: &Path, token: Option<String>, demo: bool) -> Result<GatewayServer, sinew_compose::Error> {
    let config = if demo { demo::config() } else { GatewayConfig::default() };
    let flags = Overrides { token, state: Some(directory.to_owned()), ..Overrides::default() };
    match GatewayServer::open(config.clone().with(&flags)?).await {
        Err(error) if error.kind == ComposeErrorKind::AddressTaken => {
            tracing::warn!("{error}; going on at free ports");
            let free = "127.0.0.1:0".parse().ok();
            GatewayServer::open(config.with(&Overrides {
                listen: free,
                devices: free,
                mqtt: free.map(MqttAddress::At),
                ..flags
            })?)
            .await
        }
        opened => opened,
    }
}
