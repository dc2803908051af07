//! `sinew sim`: virtual boards for a gateway elsewhere, virtual phones for adb, and the conformance fixture.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use sinew_compose::allow_many_sockets;
use sinew_compose::state;
use sinew_sim::board::{self, BoardConfig, Trust, hardware_id};
use sinew_sim::crowd;
use sinew_sim::phone::{AgentEnd, Clock, PhoneConfig, Stand};
use tokio_util::sync::CancellationToken;

use crate::args::{BoardKind, Sim, SimBoard, SimPhone, SimVerb};
use crate::failure::{Failure, Kind};
use crate::pin::Fingerprint;
use crate::show::{Show, print};
use crate::stop::StopSignal;

pub async fn run(args: Sim, show: Show) -> Result<(), Failure> {
    match args.verb {
        SimVerb::Board(args) => boards(args, show).await,
        SimVerb::Phone(args) => phones(args, show).await,
        #[cfg(debug_assertions)]
        SimVerb::Conformance { listen } => conformance::run(listen, show).await,
    }
}

async fn boards(args: SimBoard, show: Show) -> Result<(), Failure> {
    allow_many_sockets();
    let mut stop = StopSignal::new()?;
    let door = door(&args)?;
    let shutdown = CancellationToken::new();
    let mut tasks = tokio::task::JoinSet::new();
    let kind = match args.kind {
        BoardKind::Companion => board::Kind::Companion,
        BoardKind::Relay => board::Kind::Relay,
    };
    let last = args.first.checked_add(args.count);
    let last = last.ok_or_else(|| Failure::new(Kind::Usage, "--first and --count reach beyond 4294967295"))?;
    let config = |number| BoardConfig {
        behind_broker: args.broker.is_some(),
        username: args.username.clone(),
        token: door.token.clone(),
        luck: args.luck.unwrap_or_default(),
        source: args.source,
        trust: door.trust.clone(),
        ..BoardConfig::new(&door.url, hardware_id(number), kind)
    };
    if args.crowd {
        tasks.spawn(crowd::run(args.first, args.count, config(args.first), shutdown.clone()));
    } else {
        for number in args.first..last {
            tasks.spawn(board::run(config(number), shutdown.clone()));
        }
    }
    let ids = [hardware_id(args.first), hardware_id(last - 1)];
    print(&if show.json() {
        format!("{}\n", json!({"url": door.url, "boards": args.count, "first": ids[0], "last": ids[1]}))
    } else {
        let who = match args.count {
            1 => format!("1 virtual board ({}) dials", ids[0]),
            count => format!("{count} virtual boards ({} to {}) dial", ids[0], ids[1]),
        };
        format!("{who} {}; Ctrl-C ends {}.\n", door.url, if args.count == 1 { "it" } else { "them" })
    });
    let outcome = tokio::select! {
        () = stop.wait() => Ok(()),
        Some(ended) = tasks.join_next() => match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Failure::new(Kind::NoGateway, error.to_string())),
            Err(error) => Err(Failure::new(Kind::Io, format!("a board died: {error}"))),
        },
    };
    shutdown.cancel();
    while tasks.join_next().await.is_some() {}
    outcome
}

/// The agent for a computer, which the virtual phone may run.
fn host(folder: &Path) -> Result<AgentEnd, Failure> {
    let jar = folder.join("agent-host.jar");
    match jar.is_file() {
        true => Ok(AgentEnd::Java(jar)),
        false => Err(Failure::new(Kind::Config, format!("there is no {}; build it with android/build", jar.display()))),
    }
}

async fn phones(args: SimPhone, show: Show) -> Result<(), Failure> {
    let mut stop = StopSignal::new()?;
    let config = PhoneConfig {
        adb: Some(args.adb),
        android: args.android,
        count: args.count.into(),
        latency: Duration::from_millis(args.latency),
        lock: args.lock,
        clock: Clock::Real,
        agent: args.agent.as_deref().map(host).transpose()?,
    };
    let stand = Stand::open(&config).await;
    let stand = stand.map_err(|error| {
        Failure::new(Kind::DoorTaken, format!("{error}; choose another address with --adb IP:PORT"))
    })?;
    let addresses: Vec<String> = stand.addresses().iter().map(ToString::to_string).collect();
    print(&if show.json() {
        format!("{}\n", json!({"android": args.android.release(), "phones": addresses}))
    } else {
        let lines: String = addresses.iter().map(|address| format!("  adb connect {address}\n")).collect();
        let who = if addresses.len() == 1 {
            "A virtual phone waits".to_owned()
        } else {
            format!("{} virtual phones wait", addresses.len())
        };
        format!("{who} for adb, with Android {}; Ctrl-C ends it.\n\n{lines}", args.android)
    });
    let shutdown = CancellationToken::new();
    let mut running = std::pin::pin!(stand.run(shutdown.clone()));
    let ran = tokio::select! {
        ran = &mut running => ran,
        () = stop.wait() => {
            shutdown.cancel();
            running.await
        }
    };
    ran.map_err(|error| Failure::new(Kind::Io, format!("a virtual phone failed: {error}")))
}

struct BoardsDoor {
    url: String,
    token: Option<String>,
    trust: Trust,
}

/// The door that is named, else the running gateway's, with what opens it.
fn door(args: &SimBoard) -> Result<BoardsDoor, Failure> {
    check("--connect", args.connect.as_deref(), &["ws", "wss", "mqtt", "mqtts"])?;
    check("--broker", args.broker.as_deref(), &["mqtt", "mqtts"])?;
    check("--ota", args.ota.as_deref(), &["http", "https"])?;
    let directory = state::directory(args.reach.state.state.as_deref())?;
    let running = state::find_running(&directory);
    let named = args.connect.clone().or_else(|| args.broker.clone()).or_else(|| args.ota.clone());
    let Some(url) = named.or_else(|| running.as_ref().map(|running| running.doors.devices_url.clone())) else {
        return Err(Failure::new(
            Kind::NoGateway,
            format!("no gateway runs on {}; start one, or name its boards' door with --connect", directory.display()),
        ));
    };
    // Token and certificate of the running gateway go to no other door.
    let known = running.map(|running| running.doors).filter(|doors| {
        let own = [Some(&doors.devices_url), doors.mqtt_url.as_ref(), doors.ota_url.as_ref()];
        own.into_iter().flatten().any(|own| *own == url)
    });
    let token = args.reach.token.clone().or_else(|| known.as_ref().map(|doors| doors.token.clone()));
    let fingerprint = args.reach.fingerprint.clone().or_else(|| known.and_then(|doors| doors.fingerprint));
    Ok(BoardsDoor { url, token, trust: trust(fingerprint.as_deref())? })
}

/// Whether an address can be dialled at all, before anything is said of it.
fn check(flag: &str, url: Option<&str>, schemes: &[&str]) -> Result<(), Failure> {
    let Some(url) = url else { return Ok(()) };
    let fits = url.split_once("://").is_some_and(|(scheme, rest)| {
        schemes.contains(&scheme) && !rest.is_empty() && !rest.starts_with(['/', ':', '?'])
    });
    if fits {
        return Ok(());
    }
    let forms: Vec<String> = schemes.iter().map(|scheme| format!("{scheme}://HOST")).collect();
    Err(Failure::new(Kind::Usage, format!("{flag} `{url}` is no address; expected {}", forms.join(" or "))))
}

pub fn trust(fingerprint: Option<&str>) -> Result<Trust, Failure> {
    let fingerprint = fingerprint.map(Fingerprint::parse).transpose()?;
    Ok(fingerprint.map_or(Trust::System, |fingerprint| Trust::Fingerprint(fingerprint.bytes())))
}

#[cfg(debug_assertions)]
mod conformance {
    use std::net::SocketAddr;

    use sinew_front::Front;
    use sinew_gateway::{Gateway, Settings};
    use sinew_tool::DeviceEvent;
    use tokio::net::TcpListener;

    use super::*;

    /// A gateway in memory, without tokens, with the fixture device of the official suite behind it.
    pub async fn run(listen: SocketAddr, show: Show) -> Result<(), Failure> {
        if !listen.ip().is_loopback() {
            return Err(Failure::new(
                Kind::Config,
                format!("{listen} is not a loopback address; this server asks for no token and listens nowhere else"),
            ));
        }
        let mut stop = StopSignal::new()?;
        let gateway = Gateway::open(Settings::default()).map_err(|error| Failure::new(Kind::Io, error.to_string()))?;
        gateway.apply(DeviceEvent::Joined(sinew_sim::conformance::device()));
        let listener = TcpListener::bind(listen).await;
        let listener = listener.map_err(|error| {
            Failure::new(Kind::DoorTaken, format!("cannot listen on {listen}: {error}; choose another with --listen"))
        })?;
        let address = listener.local_addr().map_err(|error| Failure::new(Kind::Io, error.to_string()))?;
        let url = format!("http://{address}");
        print(&if show.json() {
            format!("{}\n", json!({"url": url, "mcp": format!("{url}/mcp")}))
        } else {
            format!("The conformance fixture is at {url}/mcp; Ctrl-C ends it.\n")
        });
        let settings = sinew_front::Settings { open: true, conformance: true, ..Default::default() };
        let front = Front { gateway: gateway.clone(), settings };
        let shutdown = CancellationToken::new();
        let stopper = shutdown.clone();
        tokio::spawn(async move {
            stop.wait().await;
            stopper.cancel();
        });
        let served = sinew_front::http::run(listener, front, None, shutdown).await;
        gateway.close().await;
        served.map_err(|error| Failure::new(Kind::Io, error.to_string()))
    }
}
