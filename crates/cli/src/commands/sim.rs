//! `sinew sim`: virtual boards for a gateway elsewhere, virtual phones for adb, a virtual voice server, and the conformance
//! fixture.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_compose::allow_many_sockets;
use sinew_compose::state;
use sinew_sim::board::{self, BoardConfig, BoardNews, BoardReport, ConnectionNews, Trust, hardware_id};
use sinew_sim::crowd;
use sinew_sim::http_board::HttpBoard;
use sinew_sim::phone::{AgentStandIn, PhoneClock, PhoneConfig, RunningPhones};
use sinew_sim::voice::{self, VirtualVoiceServer};
use tokio_util::sync::CancellationToken;

use super::sim_numbers::BoardNumbers;
use crate::args::{
    BoardKindArg, SimArgs, SimBoardArgs, SimCommand, SimHttpBoardArgs, SimPhoneArgs, SimSayArgs, SimVoiceArgs,
};
use crate::error::{CliError, CliErrorKind};
use crate::fingerprint::Fingerprint;
use crate::stop::StopSignal;
use crate::terminal::{Printer, clean, print, print_exact};

pub async fn run(args: SimArgs, printer: Printer) -> Result<(), CliError> {
    match args.command {
        SimCommand::Board(args) => boards(*args, printer).await,
        SimCommand::HttpBoard(args) => http_board(args, printer).await,
        SimCommand::Phone(args) => phones(args, printer).await,
        SimCommand::Voice(args) => voice_server(args, printer).await,
        SimCommand::Say(args) => say(args, printer).await,
        SimCommand::Fleet(args) => crate::commands::fleet::run(args, printer).await,
        #[cfg(debug_assertions)]
        SimCommand::Conformance { listen } => conformance::run(listen, printer).await,
    }
}

async fn http_board(args: SimHttpBoardArgs, printer: Printer) -> Result<(), CliError> {
    let mut stop = StopSignal::new()?;
    let shutdown = CancellationToken::new();
    let opened = HttpBoard::open(args.style, args.listen, shutdown.clone()).await;
    let board = opened.map_err(|error| {
        let message = format!("cannot listen on {}: {error}; choose another with --listen", args.listen);
        CliError::new(CliErrorKind::Usage, message)
    })?;
    let url = board.url();
    printer.announce(&json!({"url": url}), || {
        format!("A virtual kiln listens. Put it into sinew.toml:\n\n[[servers]]\nname = \"kiln\"\nurl = \"{url}\"\n")
    });
    stop.wait().await;
    shutdown.cancel();
    Ok(())
}

async fn boards(args: SimBoardArgs, printer: Printer) -> Result<(), CliError> {
    allow_many_sockets();
    let mut stop = StopSignal::new()?;
    let target = target(&args)?;
    let shutdown = CancellationToken::new();
    let mut tasks = tokio::task::JoinSet::new();
    let kind = match args.kind {
        BoardKindArg::Companion => board::BoardKind::Talking,
        BoardKindArg::Relay => board::BoardKind::Relay,
    };
    let numbers = BoardNumbers::claim(&args.reach.state.directory()?, args.count, args.first);
    let first = numbers.first;
    let last = first.checked_add(args.count);
    let last = last.ok_or_else(|| CliError::new(CliErrorKind::Usage, "--first and --count reach beyond 4294967295"))?;
    let report = if printer.is_json() { BoardReport::default() } else { report(args.count) };
    let config = |number| BoardConfig {
        behind_broker: args.broker.is_some(),
        username: args.username.clone(),
        token: target.token.clone(),
        faults: args.luck.unwrap_or_default(),
        source: args.source,
        trust: target.trust.clone(),
        report: report.clone(),
        ..BoardConfig::new(&target.url, hardware_id(number), kind)
    };
    let ids = [hardware_id(first), hardware_id(last - 1)];
    let started = json!({"url": target.url, "boards": args.count, "first": ids[0], "last": ids[1]});
    printer.announce(&started, || match args.count {
        1 => format!("Connecting the virtual board {} to {}. Ctrl-C ends it.\n", ids[0], target.url),
        count => format!(
            "Connecting {count} virtual boards ({} to {}) to {}. Ctrl-C ends them.\n",
            ids[0], ids[1], target.url
        ),
    });
    if args.crowd {
        tasks.spawn(crowd::run(first, args.count, config(first), shutdown.clone()));
    } else {
        for number in first..last {
            tasks.spawn(board::run(config(number), shutdown.clone()));
        }
    }
    let outcome = tokio::select! {
        () = stop.wait() => Ok(()),
        Some(ended) = tasks.join_next() => match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(CliError::new(CliErrorKind::NoGateway, error.to_string())),
            Err(error) => Err(CliError::new(CliErrorKind::Io, format!("a board died: {error}"))),
        },
    };
    shutdown.cancel();
    while tasks.join_next().await.is_some() {}
    outcome
}

/// Prints what happens to each board of a few; of many, when all or none are connected.
fn report(count: u32) -> BoardReport {
    /// More boards than this would fill the screen.
    const FEW: u32 = 10;
    let connected: Mutex<HashSet<String>> = Mutex::default();
    BoardReport::to(move |board, news| {
        let mut connected = connected.lock().unwrap_or_else(PoisonError::into_inner);
        let (is_change, is_up) = match news {
            BoardNews::Connection(ConnectionNews::Connected { .. }) => (connected.insert(board.to_owned()), true),
            BoardNews::Connection(ConnectionNews::Disconnected { .. }) => (connected.remove(board), false),
            BoardNews::Waiting { .. } | BoardNews::Approved => return print(&format!("{board}: {news}\n")),
        };
        match connected.len() {
            _ if count <= FEW => print(&format!("{board}: {news}\n")),
            0 if is_change => print(&format!("No board is connected any more; {board}: {news}\n")),
            all if is_up && is_change && all == count as usize => {
                print(&format!("All {count} boards are connected.\n"))
            }
            _ => {}
        }
    })
}

async fn voice_server(args: SimVoiceArgs, printer: Printer) -> Result<(), CliError> {
    let mut stop = StopSignal::new()?;
    let server = VirtualVoiceServer::open(args.listen, args.token.as_deref()).await.map_err(|error| {
        let message = format!("cannot listen on {}: {error}; choose another with --listen", args.listen);
        CliError::new(CliErrorKind::AddressTaken, message)
    })?;
    let url = server.handle().url();
    let address = server.handle().address();
    printer.announce(&json!({"url": url, "say": address.to_string()}), || {
        format!(
            "A virtual voice server is at {url}; Ctrl-C ends it.\n\
             Relay boards to it with `[relay]` and `url` in sinew.toml. It hears what you give it for a board, by the \
             board's hardware address, when somebody speaks to that board:\n\
             sinew sim say --voice {address} aa:bb:cc:dd:ee:01 \"turn on the relay\"\n"
        )
    });
    let shutdown = CancellationToken::new();
    let mut running = std::pin::pin!(server.run(shutdown.clone()));
    let ran = tokio::select! {
        ran = &mut running => ran,
        () = stop.wait() => {
            shutdown.cancel();
            running.await
        }
    };
    ran.map_err(|error| CliError::new(CliErrorKind::Io, format!("the voice server failed: {error}")))
}

async fn say(args: SimSayArgs, printer: Printer) -> Result<(), CliError> {
    let show = |step: &Value| {
        if printer.is_json() {
            print_exact(&format!("{step}\n"));
        } else if let Some(line) = describe_step(step) {
            print(&format!("{}\n", clean(&line)));
        }
    };
    let said = voice::say::say(&args.voice.to_string(), &args.board, &args.text.join(" "), show).await;
    said.map_err(|why| CliError::new(CliErrorKind::NoGateway, why))
}

/// One step of a conversation, in a line; `None` for what is not worth one.
fn describe_step(step: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let payload = &step["payload"];
    match (step["type"].as_str()?, step["state"].as_str().unwrap_or_default()) {
        ("hello", _) if !step["features"].is_null() => Some("board  → voice server: hello, through Sinew".to_owned()),
        ("listen", "start") => Some("board  → voice server: sound".to_owned()),
        ("stt", _) => Some(format!("voice server heard: {}", text(&step["text"]))),
        ("mcp", _) if payload["method"] == "tools/call" => {
            let (name, args) = (text(&payload["params"]["name"]), &payload["params"]["arguments"]);
            Some(format!("voice server → Sinew: call {name} {args}"))
        }
        ("mcp", _) if payload["result"]["content"].is_array() => {
            Some(format!("Sinew  → voice server: {}", text(&payload["result"]["content"][0]["text"])))
        }
        ("tts", "sentence_start") => Some(format!("voice server → board: \"{}\" and sound", text(&step["text"]))),
        _ => None,
    }
}

/// The agent for a computer, which the virtual phone may run.
fn host(folder: &Path) -> Result<AgentStandIn, CliError> {
    let jar = folder.join("agent-host.jar");
    match jar.is_file() {
        true => Ok(AgentStandIn::Java(jar)),
        false => Err(CliError::new(
            CliErrorKind::Config,
            format!("there is no {}; build it with android/build", jar.display()),
        )),
    }
}

async fn phones(args: SimPhoneArgs, printer: Printer) -> Result<(), CliError> {
    let mut stop = StopSignal::new()?;
    let config = PhoneConfig {
        adb: Some(args.adb),
        android: args.android,
        count: args.count.into(),
        latency: Duration::from_millis(args.latency),
        lock: args.lock,
        clock: PhoneClock::Real,
        agent: args.agent.as_deref().map(host).transpose()?,
    };
    let stand = RunningPhones::open(&config).await;
    let stand = stand.map_err(|error| {
        CliError::new(CliErrorKind::AddressTaken, format!("{error}; choose another address with --adb IP:PORT"))
    })?;
    let addresses: Vec<String> = stand.addresses().iter().map(ToString::to_string).collect();
    printer.announce(&json!({"android": args.android.release(), "phones": addresses}), || {
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
    ran.map_err(|error| CliError::new(CliErrorKind::Io, format!("a virtual phone failed: {error}")))
}

struct BoardTarget {
    url: String,
    token: Option<String>,
    trust: Trust,
}

/// The target that is named, else the running gateway's, with what opens it.
fn target(args: &SimBoardArgs) -> Result<BoardTarget, CliError> {
    check("--connect", args.connect.as_deref(), &["ws", "wss", "mqtt", "mqtts"])?;
    check("--broker", args.broker.as_deref(), &["mqtt", "mqtts"])?;
    check("--ota", args.ota.as_deref(), &["http", "https"])?;
    let directory = args.reach.state.directory()?;
    let running = state::find_running(&directory);
    let named = args.connect.clone().or_else(|| args.broker.clone()).or_else(|| args.ota.clone());
    let Some(url) = named.or_else(|| running.as_ref().map(|running| running.addresses.devices_url.clone())) else {
        return Err(CliError::new(
            CliErrorKind::NoGateway,
            format!("no gateway runs on {}; start one, or name its board listener with --connect", directory.display()),
        ));
    };
    // Token and certificate of the running gateway go to no other target.
    let known = running.map(|running| running.addresses).filter(|addresses| {
        let own = [Some(&addresses.devices_url), addresses.mqtt_url.as_ref(), addresses.ota_url.as_ref()];
        own.into_iter().flatten().any(|own| *own == url)
    });
    let token = args.reach.token.clone().or_else(|| known.as_ref().map(|addresses| addresses.token.clone()));
    let fingerprint = args.reach.fingerprint.clone().or_else(|| known.and_then(|addresses| addresses.fingerprint));
    Ok(BoardTarget { url, token, trust: trust(fingerprint.as_deref())? })
}

/// Whether an address can be dialled at all, before anything is said of it.
fn check(flag: &str, url: Option<&str>, schemes: &[&str]) -> Result<(), CliError> {
    let Some(url) = url else { return Ok(()) };
    let fits = url.split_once("://").is_some_and(|(scheme, rest)| {
        schemes.contains(&scheme) && !rest.is_empty() && !rest.starts_with(['/', ':', '?'])
    });
    if fits {
        return Ok(());
    }
    let forms: Vec<String> = schemes.iter().map(|scheme| format!("{scheme}://HOST")).collect();
    Err(CliError::new(
        CliErrorKind::Usage,
        format!("{flag} `{url}` is not a valid address; expected {}", forms.join(" or ")),
    ))
}

pub fn trust(fingerprint: Option<&str>) -> Result<Trust, CliError> {
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
    pub async fn run(listen: SocketAddr, printer: Printer) -> Result<(), CliError> {
        if !listen.ip().is_loopback() {
            return Err(CliError::new(
                CliErrorKind::Config,
                format!("{listen} is not a loopback address; this server asks for no token and listens nowhere else"),
            ));
        }
        let mut stop = StopSignal::new()?;
        let gateway =
            Gateway::open(Settings::default()).map_err(|error| CliError::new(CliErrorKind::Io, error.to_string()))?;
        gateway.apply(DeviceEvent::Joined(sinew_sim::conformance::device()));
        let listener = TcpListener::bind(listen).await;
        let listener = listener.map_err(|error| {
            CliError::new(
                CliErrorKind::AddressTaken,
                format!("cannot listen on {listen}: {error}; choose another with --listen"),
            )
        })?;
        let address = listener.local_addr().map_err(|error| CliError::new(CliErrorKind::Io, error.to_string()))?;
        let url = format!("http://{address}");
        printer.announce(&json!({"url": url, "mcp": format!("{url}/mcp")}), || {
            format!("The conformance fixture is at {url}/mcp; Ctrl-C ends it.\n")
        });
        let settings = sinew_front::FrontSettings { open: true, conformance: true, ..Default::default() };
        let front = Front::new(gateway.clone(), settings);
        let shutdown = CancellationToken::new();
        let stopper = shutdown.clone();
        tokio::spawn(async move {
            stop.wait().await;
            stopper.cancel();
        });
        let served = sinew_front::http::run(listener, front, None, shutdown).await;
        gateway.close().await;
        served.map_err(|error| CliError::new(CliErrorKind::Io, error.to_string()))
    }
}
