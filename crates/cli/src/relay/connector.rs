//! Which gateway serves a client: the one that runs, or one in this process if none does.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sinew_compose::config::{GatewayConfig, MqttAddress};
use sinew_compose::state::{self, LastStart, LocalGateway, StartedBy, Takeover};
use sinew_compose::{ComposeErrorKind, GatewayServer, Overrides, reload};
use sinew_front::ListForm;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Stream, WAIT};
use crate::args::{ReachArgs, StdioArgs};
use crate::client::GatewayTarget;
use crate::client_tokens::{self, ClientName, NewTokens};
use crate::commands::demo;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::say;

/// Two clients may start at once; the second one waits for the listeners of the first.
const STARTING: Duration = Duration::from_secs(10);

/// How often it is looked for a gateway, while one is expected soon, and later.
const POLL: Duration = Duration::from_millis(100);
/// A gateway that stays away is looked for less often.
const SLOW_POLL: Duration = Duration::from_secs(2);

/// What the pipe to a gateway in this process holds before its writer waits.
const PIPE: usize = 64 << 10;

/// The gateway that a client needs.
pub enum GatewayLocation {
    /// It runs; on this machine its state directory is known.
    Running(Box<GatewayTarget>, Option<Box<LocalGateway>>),
    /// None ran, so this process has opened one.
    Here(Box<GatewayServer>),
}

/// Finds the gateway, or opens one in this process.
pub async fn find_or_open(reach: &ReachArgs, demo: bool, started_by: StartedBy) -> Result<GatewayLocation, CliError> {
    if let Some(target) = GatewayTarget::named(reach)? {
        return Ok(GatewayLocation::Running(Box::new(target), None));
    }
    let base = reach.state.directory()?;
    let own = if demo { state::demo(&base) } else { base.clone() };
    let deadline = Instant::now() + STARTING;
    loop {
        if let Some(running) = state::find_running(&base) {
            let target = GatewayTarget::of_running(&running, reach)?;
            report_other_config(&running, reach);
            return Ok(GatewayLocation::Running(Box::new(target), Some(Box::new(running))));
        }
        if !Takeover::is_requested(&own) {
            match open(&own, reach, demo, started_by).await {
                Ok(server) => return Ok(GatewayLocation::Here(Box::new(server))),
                Err(error) if error.error_type == "StateTaken" && Instant::now() < deadline => {}
                Err(error) => return Err(error),
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

/// A gateway that runs keeps its configuration, so a file that this command names has no effect.
fn report_other_config(running: &LocalGateway, reach: &ReachArgs) {
    let Some(named) = reach.state.config.as_deref() else { return };
    let used = LastStart::read(&running.directory).ok().flatten().and_then(|last| last.config);
    if used.as_deref() != std::path::absolute(named).ok().as_deref() {
        let used = used.map_or("no configuration file".to_owned(), |used| used.display().to_string());
        say(&format!(
            "sinew: --config {} has no effect: {} runs with {used}; restart it with this file to use it",
            named.display(),
            running.describe()
        ));
    }
}

pub fn stream_path(form: ListForm) -> String {
    form.path("/mcp/stream")
}

/// A gateway in this process. It runs until the client leaves or another gateway takes over.
struct HostedGateway {
    leave: CancellationToken,
    running: JoinHandle<()>,
}

pub struct Connector<'a> {
    args: &'a StdioArgs,
    hosted: Option<HostedGateway>,
    /// Where the gateway of the last connection kept its state, and who started it.
    last: Option<(PathBuf, StartedBy)>,
}

impl<'a> Connector<'a> {
    pub fn new(args: &'a StdioArgs) -> Connector<'a> {
        Connector { args, hosted: None, last: None }
    }

    /// The first connection: whatever is wrong is reported at once.
    pub async fn connect(&mut self, client: &ClientName) -> Result<Stream, CliError> {
        match find_or_open(&self.args.reach, self.args.demo, StartedBy::Client).await? {
            GatewayLocation::Running(target, local) => {
                self.last = local.map(|local| (local.directory, local.addresses.started_by));
                self.open_stream(&target, client, NewTokens::IfNeeded).await
            }
            GatewayLocation::Here(server) => self.host(*server, client, NewTokens::IfNeeded),
        }
    }

    /// A further connection, after the gateway went away. Ends with an error only if no gateway can ever serve this
    /// client, for example because its token was revoked.
    pub async fn reconnect(&mut self, client: &ClientName) -> Result<Stream, CliError> {
        if let Some(hosted) = self.hosted.take() {
            // Somebody takes over: wait for that gateway as for one that is restarted.
            let _ = hosted.running.await;
            self.last = self.last.take().map(|(directory, _)| (directory, StartedBy::Serve));
        }
        let deadline = Instant::now() + WAIT;
        let mut reported = String::new();
        loop {
            match self.try_reconnect(client, deadline).await {
                Ok(Some(stream)) => return Ok(stream),
                Err(error) if error.error_type == "TokenRefused" => return Err(error),
                // Somebody must correct it; until then nothing else can help.
                Err(error) if error.error_type == "ConfigError" && error.message != reported => {
                    tracing::error!("no gateway can be started: {error}");
                    reported = error.message;
                }
                Err(error) => tracing::debug!("no gateway yet: {error}"),
                Ok(None) => {}
            }
            tokio::time::sleep(if Instant::now() < deadline { POLL } else { SLOW_POLL }).await;
        }
    }

    async fn try_reconnect(&mut self, client: &ClientName, deadline: Instant) -> Result<Option<Stream>, CliError> {
        let reach = &self.args.reach;
        if let Some(target) = GatewayTarget::named(reach)? {
            return self.open_stream(&target, client, NewTokens::IfNone).await.map(Some);
        }
        let base = reach.state.directory()?;
        if let Some(running) = state::find_running(&base) {
            let target = GatewayTarget::of_running(&running, reach)?;
            let stream = self.open_stream(&target, client, NewTokens::IfNone).await?;
            self.last = Some((running.directory, running.addresses.started_by));
            return Ok(Some(stream));
        }
        let usual = if self.args.demo { state::demo(&base) } else { base.clone() };
        let directory = match &self.last {
            Some((directory, StartedBy::Client)) => directory.clone(),
            _ if Instant::now() >= deadline => usual,
            _ => return Ok(None),
        };
        if Takeover::is_requested(&directory) {
            return Ok(None);
        }
        // The lock of the state directory decides which of the clients opens it.
        let demo = directory == state::demo(&base);
        match open(&directory, reach, demo, StartedBy::Client).await {
            Ok(server) => self.host(server, client, NewTokens::IfNone).map(Some),
            Err(error) if error.error_type == "StateTaken" => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn open_stream(
        &self,
        target: &GatewayTarget,
        client: &ClientName,
        new: NewTokens,
    ) -> Result<Stream, CliError> {
        let stream = client_tokens::open(target, client, &stream_path(self.args.list_form()), new).await?;
        Ok(Box::new(stream))
    }

    /// Serves the client by a gateway in this process, through a pipe.
    fn host(&mut self, server: GatewayServer, client: &ClientName, new: NewTokens) -> Result<Stream, CliError> {
        let (_, who) = client_tokens::token(&server.gateway, &server.directory, client, new)?;
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (reader, writer) = tokio::io::split(theirs);
        let form = self.args.list_form();
        let shutdown = server.shutdown().clone();
        tokio::spawn(sinew_front::stdio::run(server.front.clone(), who, form, reader, writer, shutdown));
        self.last = Some((server.directory.clone(), StartedBy::Client));
        let leave = CancellationToken::new();
        self.hosted = Some(HostedGateway { leave: leave.clone(), running: tokio::spawn(run_hosted(server, leave)) });
        Ok(Box::new(ours))
    }

    /// Closes the gateway in this process, if there is one, after its calls are answered.
    pub async fn close(self) {
        if let Some(hosted) = self.hosted {
            hosted.leave.cancel();
            let _ = hosted.running.await;
        }
    }
}

async fn run_hosted(server: GatewayServer, leave: CancellationToken) {
    let directory = server.directory.clone();
    let stop = async {
        tokio::select! {
            () = leave.cancelled() => {}
            () = takeover(&directory) => tracing::info!("another gateway takes over"),
        }
    };
    if let Err(error) = server.run_until(stop).await {
        tracing::error!("the gateway in this process failed: {error}");
    }
}

/// Waits until a process wants to take over from the gateway on this directory.
async fn takeover(directory: &Path) {
    while !Takeover::is_requested(directory) {
        tokio::time::sleep(POLL).await;
    }
}

/// What a gateway in this process is started with: the file that this command names, else as `serve` was started last
/// on this state directory. Without that, a stopped `serve` would take its policy with it.
fn configuration(directory: &Path, reach: &ReachArgs) -> Result<(GatewayConfig, Overrides), CliError> {
    if reach.state.config.is_some() {
        return Ok((reach.state.load_config()?, Overrides::default()));
    }
    let last = LastStart::read(directory).map_err(|error| {
        let message = format!(
            "{error}; it says with which rules a gateway ran here; start `sinew serve`, or name the configuration with --config FILE"
        );
        CliError::new(CliErrorKind::Config, message)
    })?;
    let Some(last) = last.map(LastStart::of_serve) else {
        return Ok((GatewayConfig::default(), Overrides::default()));
    };
    let Some(path) = &last.config else { return Ok((GatewayConfig::default(), last.flags)) };
    let command = last.command();
    let config = GatewayConfig::load(path).map_err(|error| {
        let message = format!(
            "{error}; `{command}` was started with it here, and without it its rules would be lost; correct or restore the file, or name another with --config FILE"
        );
        CliError::new(CliErrorKind::Config, message)
    })?;
    Ok((config, last.flags))
}

/// A gateway at the configured addresses, or at free ones if something else uses those.
async fn open(
    directory: &Path,
    reach: &ReachArgs,
    demo: bool,
    started_by: StartedBy,
) -> Result<GatewayServer, CliError> {
    let (mut config, flags) = configuration(directory, reach)?;
    if demo {
        config = demo::without_phones(config);
    }
    let flags = Overrides { token: reach.token.clone(), state: Some(directory.to_owned()), ..flags };
    let (file, phones) = (config.file.clone(), config.phones.clone());
    let mut settings = config.clone().with(&flags)?;
    settings.started_by = started_by;
    let mut server = match GatewayServer::open(settings).await {
        Err(error) if error.kind == ComposeErrorKind::AddressTaken => {
            tracing::warn!("{error}; using free ports instead");
            let free = "127.0.0.1:0".parse().ok();
            let elsewhere = Overrides { listen: free, devices: free, mqtt: free.map(MqttAddress::At), ..flags.clone() };
            let mut settings = config.with(&elsewhere)?;
            settings.started_by = started_by;
            // The next gateway tries the configured addresses again.
            settings.flags = flags;
            GatewayServer::open(settings).await?
        }
        opened => opened?,
    };
    if let Some(file) = file {
        say(&format!("sinew: the gateway in this process uses the configuration {}", file.display()));
        let (gateway, families) = (server.gateway.clone(), server.families.clone());
        server.spawn_client(|stop| reload::follow(Some(file), gateway, families, stop));
    }
    if demo {
        demo::connect(&mut server, &phones, None).await?;
    }
    Ok(server)
}
