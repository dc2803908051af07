//! One gateway with its addresses, joined: opened together, closed together.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sinew_boards::broker;
use sinew_boards::relay::VoiceServer;
use sinew_boards::{AdvertisedAddress, BoardLimits, OfferedTransport, Pictures};
use sinew_console::Console;
use sinew_front::dialout::{self, EndpointAddress};
use sinew_front::tls::TlsIdentity;
use sinew_front::{ConsolePages, Front, RoutineFiles, ServerList};
use sinew_gateway::{Gateway, OpenError, Shape};
use sinew_phones::adb;
use sinew_servers::FindSettings;
use sinew_signin::{OAuthSettings, PublicAddress, SignIn};
use sinew_tool::{DeviceKey, ToolUse};
use tokio::net::{TcpListener, TcpSocket, UdpSocket};
use tokio_util::sync::CancellationToken;

use crate::board_listeners::{self, BoardsPlan, MqttSockets};
use crate::brokers;
use crate::cluster::{self, ClusterPlan};
use crate::config::Overrides;
use crate::error::{ComposeErrorKind, Error};
use crate::families::{FamilyPlans, RunningFamilies};
use crate::hangup::Hangup;
use crate::relay::RelayConfig;
use crate::relay_names::{self, ListedName};
use crate::routine_files::GatewayRoutines;
use crate::seals;
use crate::server_list::SharedServers;
use crate::state::{self, GatewayAddresses, LastStart, LocalGateway, StartedBy, Takeover};
use crate::tasks::TaskGroup;
use crate::webhook::Webhook;

/// All settings of a gateway and its listeners.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    pub listen: SocketAddr,
    pub devices: SocketAddr,
    pub mqtt: Option<SocketAddr>,
    /// The host under which boards reach us, where it is not to be guessed.
    pub advertise: Option<String>,
    pub offer: OfferedTransport,
    pub state: PathBuf,
    pub started_by: StartedBy,
    /// Where the settings come from.
    pub config_file: Option<PathBuf>,
    pub flags: Overrides,
    pub token: Option<String>,
    pub tls: bool,
    pub devices_tls: bool,
    pub certificate: CertificateSource,
    pub gateway: sinew_gateway::Settings,
    pub clients: sinew_front::FrontSettings,
    pub console: sinew_console::ConsoleSettings,
    /// How clients without a token sign in; `None` where they cannot.
    pub oauth: Option<OAuthSettings>,
    pub limits: BoardLimits,
    pub pictures: Pictures,
    /// Which boards are relayed, and what their assistants may use.
    pub relay: RelayConfig,
    /// The voice server of relayed boards; `None` where none is relayed.
    pub voice_server: Option<VoiceServer>,
    /// Brokers to offer the tools at.
    pub endpoints: Vec<(EndpointAddress, Shape)>,
    /// MQTT brokers, and what is found and offered there.
    pub brokers: Vec<brokers::BrokerPlan>,
    /// A command for the seals of the audit; none where it is empty.
    pub send_seals: Vec<String>,
    /// How the phones that adb sees are offered; `None` where they are left alone.
    pub phones: Option<adb::PhoneOptions>,
    /// Devices that the configuration names one by one.
    pub families: FamilyPlans,
    /// How servers are found and added while the gateway runs.
    pub find: FindSettings,
    /// Where routines are; by default in the state directory.
    pub routines: Option<PathBuf>,
    /// The cluster that the gateway is a part of.
    pub cluster: Option<ClusterPlan>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateSource {
    /// Made by the gateway and kept in the state directory.
    Own,
    Files {
        cert: PathBuf,
        key: PathBuf,
    },
}

/// A gateway that listens.
pub struct GatewayServer {
    pub gateway: Gateway,
    pub front: Front,
    pub addresses: state::GatewayAddresses,
    pub directory: PathBuf,
    /// The boards' listener as other machines reach it, if it is open to them.
    pub remote_boards_url: Option<String>,
    /// The listeners that are open to the network without TLS.
    pub unencrypted: Vec<&'static str>,
    /// Takes the devices of a changed configuration.
    pub families: RunningFamilies,
    /// What takes calls.
    clients: TaskGroup,
    /// What carries them to devices; it outlasts the clients, so that calls under way are answered.
    devices: TaskGroup,
}

/// How long a client may take to stop the gateway inside it: its calls may still take the usual time to finish.
const TAKEOVER_TIME: Duration = Duration::from_secs(30);
const TAKEOVER_POLL: Duration = Duration::from_millis(50);

impl GatewayServer {
    /// Opens a gateway in place of one that runs inside a client, if there is one: on the same state directory, or
    /// on an address that is needed here.
    pub async fn open_taking_over(settings: ServerSettings) -> Result<GatewayServer, Error> {
        let mut takeovers = Vec::new();
        let started = Instant::now();
        loop {
            let failure = match GatewayServer::open(settings.clone()).await {
                Ok(server) => return Ok(server),
                Err(failure) => failure,
            };
            let holder = match failure.kind {
                ComposeErrorKind::StateTaken => state::running(&settings.state),
                ComposeErrorKind::AddressTaken => holder(&settings),
                _ => None,
            };
            let Some(holder) = holder.filter(|holder| holder.addresses.started_by == StartedBy::Client) else {
                // The gateway inside the client closes its listeners before it releases the state directory.
                let is_closing = !takeovers.is_empty() && started.elapsed() < TAKEOVER_TIME;
                if is_closing && failure.kind != ComposeErrorKind::Config {
                    tokio::time::sleep(TAKEOVER_POLL).await;
                    continue;
                }
                return Err(failure);
            };
            if started.elapsed() > TAKEOVER_TIME {
                return Err(failure);
            }
            if takeovers.is_empty() {
                tracing::info!("replacing {}", holder.describe());
            }
            let failed = |error| Error::new(ComposeErrorKind::Io, format!("cannot take over the gateway: {error}"));
            takeovers.extend(Takeover::request(&holder.directory).map_err(failed)?);
            tokio::time::sleep(TAKEOVER_POLL).await;
        }
    }

    pub async fn open(settings: ServerSettings) -> Result<GatewayServer, Error> {
        allow_many_sockets();
        let sharing = match &settings.cluster {
            Some(plan) => Some(cluster::sharing(plan, &settings.state)?),
            None => None,
        };
        let gateway_settings = sinew_gateway::Settings {
            state_dir: Some(settings.state.clone()),
            token: settings.token.clone(),
            ..settings.gateway.clone()
        };
        let share = |local| match &sharing {
            Some(sharing) => sharing.share(local),
            None => local,
        };
        let gateway = Gateway::open_shared(gateway_settings, share).map_err(open_failure)?;
        let policy = &settings.gateway.access.policy;
        tracing::info!(rules = policy.rules.len(), danger = policy.danger.word(), "policy loaded");
        match GatewayServer::open_listeners(gateway.clone(), sharing, settings).await {
            Ok(server) => Ok(server),
            Err(failure) => {
                gateway.close().await;
                Err(failure)
            }
        }
    }

    async fn open_listeners(
        gateway: Gateway,
        sharing: Option<cluster::Sharing>,
        settings: ServerSettings,
    ) -> Result<GatewayServer, Error> {
        let clients = listen("listen", settings.listen, &settings)?;
        let boards = listen("devices", settings.devices, &settings)?;
        let mqtt = match settings.mqtt {
            Some(address) => Some(listen_mqtt(address, &settings).await?),
            None => None,
        };
        let hosts = hosts(&settings);
        let identity = identity(&settings, &hosts)?;
        identity.iter().for_each(|identity| warn_of_certificate(identity, &hosts));
        let (mut client_tasks, mut device_tasks) = (TaskGroup::default(), TaskGroup::default());
        let last_start = LastStart {
            started_by: settings.started_by,
            config: settings.config_file.clone(),
            flags: settings.flags.clone(),
            serve: match settings.started_by {
                StartedBy::Serve => None,
                // A damaged file is replaced: whoever must not lose what it says has read it before.
                _ => LastStart::read(&settings.state).ok().flatten().map(LastStart::of_serve),
            }
            .filter(|last| last.started_by == StartedBy::Serve)
            .map(Box::new),
        };

        let clients_tls = identity.clone().filter(|_| settings.tls);
        let boards_tls = identity.clone().filter(|_| settings.devices_tls).map(|identity| identity.server_config());
        let reach = reach(&settings, &boards, mqtt.as_ref())?;
        let routines = settings.routines.clone().unwrap_or_else(|| settings.state.join("routines"));
        let routines = std::path::absolute(&routines).unwrap_or(routines);
        let addresses = state::GatewayAddresses {
            remote_hosts: if settings.listen.ip().is_loopback() { Vec::new() } else { hosts.clone() },
            url: url(if settings.tls { "https" } else { "http" }, local_address(&clients)?, ""),
            devices_url: url(if settings.devices_tls { "wss" } else { "ws" }, local_address(&boards)?, "/xiaozhi/v1/"),
            mqtt_url: match &mqtt {
                Some(mqtt) => {
                    let scheme = if settings.devices_tls { "mqtts" } else { "mqtt" };
                    Some(url(scheme, local_address(&mqtt.listener)?, ""))
                }
                None => None,
            },
            ota_url: Some(board_listeners::ota_url(&reach, settings.devices_tls)),
            fingerprint: identity.as_ref().map(|identity| identity.fingerprint().to_owned()),
            token: gateway.tokens().own(),
            started_by: settings.started_by,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            routines: Some(routines.clone()),
        };

        if let Some(page) = approval_page(&settings, &addresses.url) {
            gateway.set_approval_page(page);
        }

        let mut limits = settings.limits;
        limits.boards = settings.gateway.max_devices;
        limits.session.queue = settings.gateway.open_calls;
        let listed_names = ListedName::of(&settings.relay);
        let plan = BoardsPlan {
            offer: settings.offer,
            pictures: settings.pictures,
            relay: settings.relay.relay(settings.voice_server, &gateway),
            user_tools: settings.gateway.user_tools,
            limits,
            tls: boards_tls,
            reach,
        };
        let io = |error: std::io::Error| Error::new(ComposeErrorKind::Io, error.to_string());
        let all_boards = board_listeners::boards(&gateway, plan).map_err(io)?;
        let cluster = match settings.cluster.zip(sharing) {
            Some((plan, sharing)) => {
                let joined = cluster::join(plan, sharing, &gateway, &all_boards, &mut client_tasks, &mut device_tasks);
                Some(joined.await?)
            }
            None => None,
        };
        device_tasks.spawn(|shutdown| board_listeners::end_revoked(gateway.clone(), all_boards.clone(), shutdown));
        if !listed_names.is_empty() {
            let (gateway, boards) = (gateway.clone(), all_boards.clone());
            device_tasks.spawn(|shutdown| relay_names::follow(listed_names, gateway, boards, shutdown));
        }
        device_tasks.spawn(|shutdown| sinew_boards::http::run(boards, all_boards.clone(), shutdown));
        if let Some(MqttSockets { listener, sound }) = mqtt {
            device_tasks.spawn(|shutdown| sinew_boards::mqtt::run(listener, sound, all_boards.clone(), shutdown));
        }

        let mut clients_settings = settings.clients;
        clients_settings.allowed_hosts.extend(hosts.iter().cloned());
        let (servers, followed) =
            SharedServers::open(&settings.state, settings.find, settings.families.servers.clone())?;
        if let Some(address) = settings.console.webhook.as_deref().filter(|_| settings.console.enabled) {
            let webhook = Webhook::new(address, gateway.webhook_key().map_err(open_failure)?)?;
            let gateway = gateway.clone();
            client_tasks.spawn(|shutdown| async move {
                webhook.run(gateway, shutdown).await;
                Ok(())
            });
        }
        let console = match settings.console.enabled {
            true => {
                Some(Arc::new(Console::open(settings.console, &settings.state).map_err(io)?) as Arc<dyn ConsolePages>)
            }
            false => None,
        };
        let sign_in = match (&settings.oauth, clients_settings.public_url.as_deref()) {
            (Some(oauth), Some(url)) => {
                let config = |why: String| Error::new(ComposeErrorKind::Config, format!("sign-in: {why}"));
                // Whatever proxy is in front, clients come with the host of this address.
                let address = PublicAddress::parse(url).map_err(config)?;
                clients_settings.allowed_hosts.push(address.authority().to_owned());
                let sign_in = SignIn::open(oauth, url, Some(&settings.state), gateway.clone()).map_err(config)?;
                tracing::info!(url, issuer = oauth.issuer.as_deref().unwrap_or(url), "clients can sign in");
                Some(Arc::new(sign_in))
            }
            _ => None,
        };
        let servers_list = Some(Arc::new(servers.clone()) as Arc<dyn ServerList>);
        let routine_files = GatewayRoutines { gateway: gateway.clone(), folder: routines.clone() };
        let routine_files = Some(Arc::new(routine_files) as Arc<dyn RoutineFiles>);
        let front = Front {
            servers: servers_list,
            routines: routine_files,
            console,
            sign_in,
            cluster,
            ..Front::new(gateway.clone(), clients_settings)
        };
        client_tasks.spawn(|shutdown| sinew_front::http::run(clients, front.clone(), clients_tls, shutdown));

        for brokers::BrokerPlan { boards, servers, offer } in settings.brokers {
            let address = boards.address.clone();
            device_tasks.spawn(|shutdown| broker::run(boards, all_boards.clone(), shutdown));
            if let Some(filter) = servers {
                let (gateways, boards) = (offer.is_none(), all_boards.clone());
                let address = address.clone();
                device_tasks.spawn(|shutdown| broker::follow_servers(address, filter, gateways, boards, shutdown));
            }
            if let Some((offering, shape)) = offer {
                let open = brokers::pipes(front.clone(), shape, client_tasks.shutdown().clone());
                client_tasks.spawn(|shutdown| broker::offer(address, offering, open, shutdown));
            }
        }

        if !settings.send_seals.is_empty() {
            let gateway = gateway.clone();
            device_tasks.spawn(|shutdown| async move {
                seals::send(settings.send_seals, gateway, shutdown).await;
                Ok(())
            });
        }

        for (address, shape) in settings.endpoints {
            client_tasks.spawn(|shutdown| dialout::serve(front.clone(), address, shape, shutdown));
        }

        if let Some(mut offer) = settings.phones {
            offer.records = Some(Arc::new(GatewayRecords(gateway.clone())));
            match adb::AdbServer::from_env() {
                Ok(server) => device_tasks.spawn(|shutdown| {
                    let following = adb::run(server, offer, gateway.announce(), shutdown);
                    async move {
                        following.await;
                        Ok(())
                    }
                }),
                Err(error) => tracing::warn!("phones are not followed: {error}"),
            }
        }

        let servers = (servers, followed);
        let families = RunningFamilies::spawn(settings.families, servers, &gateway, &all_boards, &mut device_tasks);

        gateway.set_routines_folder(routines.clone());
        let (announce, effects) = (gateway.announce(), gateway.clone());
        let effect_of = Arc::new(move |uses: &[ToolUse]| effects.worst_effect(uses));
        device_tasks.spawn(|shutdown| sinew_routines::run(routines, effect_of, announce, shutdown));

        last_start.write(&settings.state)?;
        state::write_addresses(&settings.state, &addresses)?;
        gateway.set_url(&addresses.url);
        if let Some(identity) = identity {
            let (addresses, directory) = (addresses.clone(), settings.state.clone());
            device_tasks.spawn(|shutdown| follow_certificate(identity, hosts, addresses, directory, shutdown));
        }
        let remote_boards_url = remote_boards_url(&addresses, settings.devices);
        let unencrypted =
            unencrypted(settings.listen, settings.tls, settings.devices, settings.mqtt, settings.devices_tls);
        let directory = settings.state;
        let (clients, devices) = (client_tasks, device_tasks);
        Ok(GatewayServer {
            gateway,
            front,
            addresses,
            directory,
            remote_boards_url,
            unencrypted,
            families,
            clients,
            devices,
        })
    }

    /// Cancelled when no more calls are taken.
    pub fn shutdown(&self) -> &CancellationToken {
        self.clients.shutdown()
    }

    /// Runs another way for calls to come in.
    pub fn spawn_client<F>(&mut self, start: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = std::io::Result<()>> + Send + 'static,
    {
        self.clients.spawn(start);
    }

    /// Runs a device of our own.
    pub fn spawn_device<F>(&mut self, start: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = std::io::Result<()>> + Send + 'static,
    {
        self.devices.spawn(start);
    }

    /// Serves until `stop` returns, or a listener fails. `stop` is called again while the listeners close; when it
    /// returns then, nothing is waited for any more.
    pub async fn run(mut self, mut stop: impl AsyncFnMut()) -> Result<(), Error> {
        let failed = self.serve(stop()).await;
        self.close(stop()).await;
        failed.map_or(Ok(()), |what| Err(Error::new(ComposeErrorKind::Io, what)))
    }

    /// Serves until `stop` is ready, then waits for the calls under way.
    pub async fn run_until(mut self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let failed = self.serve(stop).await;
        self.close(std::future::pending()).await;
        failed.map_or(Ok(()), |what| Err(Error::new(ComposeErrorKind::Io, what)))
    }

    /// Serves until `stop` is ready, or a listener fails and says why.
    async fn serve(&mut self, stop: impl Future<Output = ()>) -> Option<String> {
        tokio::select! {
            () = stop => None,
            () = self.clients.shutdown().clone().cancelled_owned() => None,
            what = self.clients.failed() => Some(what),
            what = self.devices.failed() => Some(what),
        }
    }

    /// Takes no more calls, waits until those under way are answered, their time to drain is over or `hurry` is ready,
    /// then lets the devices go and puts everything on disk.
    pub async fn close(mut self, hurry: impl Future<Output = ()>) {
        state::remove_addresses(&self.directory);
        let stopped = async {
            self.clients.stop().await;
            self.devices.stop().await;
        };
        tokio::select! {
            () = stopped => {}
            () = hurry => {}
        }
        self.gateway.close().await;
    }
}

/// Where people decide about a call, without its id. Of a listener that is open to every network nobody knows how people
/// reach it, unless the configuration says so.
fn approval_page(settings: &ServerSettings, own: &str) -> Option<String> {
    let own = (!settings.listen.ip().is_unspecified()).then_some(own);
    let base = settings.clients.public_url.as_deref().or(own).filter(|_| settings.console.enabled)?;
    Some(format!("{}/console/approval?id=", base.trim_end_matches('/')))
}

/// Every board and every client is an open file, and the usual soft limit of 1,024 is soon reached.
pub fn allow_many_sockets() {
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::debug!("the limit of open files stays as it is: {error}");
    }
}

/// The MQTT listener, and the UDP port of the same number.
async fn listen_mqtt(address: SocketAddr, settings: &ServerSettings) -> Result<MqttSockets, Error> {
    let listener = listen("mqtt", address, settings)?;
    let address = local_address(&listener)?;
    let sound = UdpSocket::bind(address).await.map_err(|error| {
        let remedy = settings.another_address("mqtt", &address.ip().to_string());
        let message = format!("cannot receive UDP on {address}: {error}; {remedy}, or switch MQTT off with `off`");
        Error::new(ComposeErrorKind::AddressTaken, message)
    })?;
    Ok(MqttSockets { listener, sound })
}

/// Where boards reach this gateway.
fn reach(
    settings: &ServerSettings,
    boards: &TcpListener,
    mqtt: Option<&MqttSockets>,
) -> Result<AdvertisedAddress, Error> {
    let http = local_address(boards)?;
    let mqtt = mqtt.map(|mqtt| local_address(&mqtt.listener)).transpose()?;
    let addresses: Vec<SocketAddr> = [Some(http), mqtt].into_iter().flatten().collect();
    let host = settings.advertise.clone().unwrap_or_else(|| board_listeners::guess_host(&addresses).to_string());
    let port = mqtt.map(|address| address.port());
    if settings.devices_tls && settings.offer != OfferedTransport::WebSocket && port.is_some_and(|port| port != 8883) {
        tracing::warn!(
            "firmware speaks TLS to no MQTT port but 8883; boards with it need --mqtt {}:8883",
            settings.devices.ip()
        );
    }
    if host.contains(':') && port.is_some() && settings.offer != OfferedTransport::WebSocket {
        tracing::warn!(
            host,
            "firmware cannot use MQTT at an IPv6 address, so boards are sent to the WebSocket; give them a name or an \
             IPv4 address with --advertise"
        );
    }
    Ok(AdvertisedAddress { host, http: http.port(), mqtt: port, sound: port })
}

impl ServerSettings {
    /// How to choose another address for a listener: where this one was chosen.
    fn another_address(&self, key: &str, host: &str) -> String {
        let Overrides { listen, devices, mqtt, .. } = &self.flags;
        let is_flag = match key {
            "listen" => listen.is_some(),
            "devices" => devices.is_some(),
            _ => mqtt.is_some(),
        };
        match self.config_file.as_ref().filter(|_| !is_flag) {
            Some(file) => format!("choose another with `{key}` in {}", file.display()),
            None => format!("choose another with --{key} {host}:PORT"),
        }
    }
}

fn listen(key: &str, address: SocketAddr, settings: &ServerSettings) -> Result<TcpListener, Error> {
    bind(address).map_err(|error| {
        let port = address.port();
        let why = match error.kind() {
            std::io::ErrorKind::AddrInUse => match gateway_on(port, &settings.state) {
                Some(running) => format!("it is used by {}", running.describe()),
                None => format!("another program uses it; `ss -ltnp 'sport = :{port}'` shows which"),
            },
            std::io::ErrorKind::AddrNotAvailable => {
                "this machine does not have that address; `ip addr` lists those it has".to_owned()
            }
            std::io::ErrorKind::PermissionDenied => "ports below 1024 need privileges".to_owned(),
            _ => error.to_string(),
        };
        let host = match error.kind() {
            // Another port of the same address would not help.
            std::io::ErrorKind::AddrNotAvailable => "ADDRESS".to_owned(),
            _ => address.ip().to_string(),
        };
        let remedy = settings.another_address(key, &host);
        Error::new(ComposeErrorKind::AddressTaken, format!("cannot listen on {address}: {why}; {remedy}"))
    })
}

/// Connections that the system keeps for us until we take them, where it allows so many. Thousands of boards may
/// dial in one moment, after a power cut; whoever finds no room tries again after seconds, and then more seconds.
const BACKLOG: u32 = 4096;

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A port that was ours a moment ago is ours again; elsewhere this flag would let two programs have it.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The gateway of ours that listens on one of the addresses that are to be opened.
fn holder(settings: &ServerSettings) -> Option<LocalGateway> {
    let ports = [Some(settings.listen), Some(settings.devices), settings.mqtt];
    let ports = ports.into_iter().flatten().map(|address| address.port()).filter(|port| *port != 0);
    ports.into_iter().find_map(|port| gateway_on(port, &settings.state))
}

/// The gateway of ours that listens on a port: on this state directory's parent or sibling, or the default one.
fn gateway_on(port: u16, directory: &Path) -> Option<state::LocalGateway> {
    let end = format!(":{port}");
    let places = [state::directory(None).ok(), directory.parent().map(Path::to_owned), Some(directory.to_owned())];
    places
        .into_iter()
        .flatten()
        .flat_map(|place| [state::running(&place), state::running(&state::demo(&place))])
        .flatten()
        .find(|running| {
            let GatewayAddresses { url, devices_url, mqtt_url, .. } = &running.addresses;
            let mqtt = mqtt_url.as_ref().is_some_and(|url| url.ends_with(&end));
            url.ends_with(&end) || devices_url.contains(&format!("{end}/")) || mqtt
        })
}

fn open_failure(error: OpenError) -> Error {
    let kind = match error {
        OpenError::InUse { .. } => ComposeErrorKind::StateTaken,
        OpenError::Token { .. } => ComposeErrorKind::Config,
        _ => ComposeErrorKind::Io,
    };
    Error::new(kind, error.to_string())
}

fn identity(settings: &ServerSettings, hosts: &[String]) -> Result<Option<TlsIdentity>, Error> {
    if !settings.tls && !settings.devices_tls {
        return Ok(None);
    }
    let identity = match &settings.certificate {
        CertificateSource::Own => TlsIdentity::self_signed(&settings.state, hosts),
        CertificateSource::Files { cert, key } => TlsIdentity::from_files(cert, key),
    };
    identity.map(Some).map_err(|error| Error::new(ComposeErrorKind::Config, error.to_string()))
}

/// Says what is wrong with a certificate that is served.
fn warn_of_certificate(identity: &TlsIdentity, hosts: &[String]) {
    for problem in identity.problems(hosts, sinew_front::tls::now()) {
        tracing::warn!("the certificate {problem}");
    }
}

/// How often the files of the certificate are looked at. Renewals happen days before the old one expires.
const CERTIFICATE_POLL: Duration = Duration::from_secs(30);

/// Serves renewed files without a restart. On Unix, SIGHUP reloads at once. Commands on this machine learn of a new key.
async fn follow_certificate(
    identity: TlsIdentity,
    hosts: Vec<String>,
    mut addresses: GatewayAddresses,
    directory: PathBuf,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let mut hangup = Hangup::new()?;
    let mut last_error = String::new();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = hangup.wait() => {}
            () = tokio::time::sleep(CERTIFICATE_POLL) => {}
        }
        match identity.reload() {
            Ok(None) => last_error.clear(),
            Ok(Some(fingerprint)) => {
                let before = addresses.fingerprint.replace(fingerprint.clone());
                if let Err(error) = state::write_addresses(&directory, &addresses) {
                    tracing::warn!("commands on this machine do not know the new certificate: {error}");
                }
                match before.as_ref() == Some(&fingerprint) {
                    true => tracing::info!("certificate renewed, with the same key"),
                    false => tracing::warn!(
                        fingerprint,
                        "certificate renewed, with another key; clients that use --fingerprint need the new one"
                    ),
                }
                warn_of_certificate(&identity, &hosts);
            }
            // Said once: a renewal writes two files, and the next look finds both.
            Err(error) if error.to_string() != last_error => {
                last_error = error.to_string();
                tracing::warn!("the certificate is not reloaded, the last one is still served: {error}");
            }
            Err(_) => {}
        }
    }
}

/// The names and addresses under which this machine is reached: those configured, and for a listener that
/// is open to the network also the machine's own.
fn hosts(settings: &ServerSettings) -> Vec<String> {
    let mut hosts = settings.clients.allowed_hosts.clone();
    hosts.extend(settings.advertise.clone());
    let addresses = [Some(settings.listen), Some(settings.devices), settings.mqtt];
    for ip in addresses.into_iter().flatten().map(|address| address.ip()) {
        if ip.is_unspecified() {
            let name = gethostname::gethostname().to_string_lossy().to_lowercase();
            // A certificate can only name what is plain ASCII; a machine may be called anything.
            if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)) {
                hosts.push(format!("{name}.local"));
                hosts.push(name);
            }
            let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
            let usable = |ip: &IpAddr| !ip.is_loopback() && !matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
            hosts.extend(interfaces.iter().map(|interface| interface.ip()).filter(usable).map(|ip| ip.to_string()));
        } else if !ip.is_loopback() {
            hosts.push(ip.to_string());
        }
    }
    hosts.sort();
    hosts.dedup();
    hosts
}

/// The bootstrap's address is the same listener under the machine's own name.
fn remote_boards_url(addresses: &state::GatewayAddresses, address: SocketAddr) -> Option<String> {
    let setup = addresses.ota_url.as_deref().filter(|_| !address.ip().is_loopback())?;
    let rest = setup.strip_prefix("http")?.strip_suffix("/ota/")?;
    Some(format!("ws{rest}/v1/")).filter(|url| *url != addresses.devices_url)
}

fn unencrypted(
    clients: SocketAddr,
    clients_tls: bool,
    boards: SocketAddr,
    mqtt: Option<SocketAddr>,
    boards_tls: bool,
) -> Vec<&'static str> {
    let is_open = |address: SocketAddr, tls: bool| !address.ip().is_loopback() && !tls;
    let boards = is_open(boards, boards_tls) || mqtt.is_some_and(|mqtt| is_open(mqtt, boards_tls));
    [(is_open(clients, clients_tls), "clients"), (boards, "boards")]
        .into_iter()
        .filter_map(|(is_open, who)| is_open.then_some(who))
        .collect()
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, Error> {
    listener.local_addr().map_err(|error| Error::new(ComposeErrorKind::Io, format!("no local address: {error}")))
}

/// How this machine itself reaches an address that it listens on.
fn url(scheme: &str, mut address: SocketAddr, path: &str) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("{scheme}://{address}{path}")
}
/// What the tracker of phones asks of the gateway.
struct GatewayRecords(Gateway);

impl fmt::Debug for GatewayRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GatewayRecords")
    }
}

impl adb::DeviceRecords for GatewayRecords {
    fn is_known(&self, key: &DeviceKey) -> bool {
        self.0.snapshot().devices().iter().any(|device| device.key == *key)
    }

    fn is_pinned(&self, key: &DeviceKey) -> bool {
        self.0.snapshot().devices().iter().any(|device| device.key == *key && device.pinned)
    }
}
