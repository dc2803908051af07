//! `sinew demo`: a gateway with virtual boards and a virtual phone, and the page that says how to use it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sinew_apps::{AppWatcher, WatchSettings};
use sinew_compose::config::{GatewayConfig, PhonesConfig};
use sinew_compose::relay::{RelayConfig, SharedDevices};
use sinew_compose::state::{self, StartedBy};
use sinew_compose::{GatewayServer, ServerSettings};
use sinew_gateway::Role;
use sinew_phones::PhoneDevice;
use sinew_sim::board::{self, BoardConfig, BoardKind};
use sinew_sim::phone::{LockScreen, PhoneConfig, RunningPhones, VirtualPhone};
use sinew_sim::speech::Microphone;
use sinew_sim::voice::{VirtualVoiceServer, VoiceHandle};
use sinew_tool::DeviceEvent;

use super::{demo_desk, story, tools};
use crate::args::{DemoArgs, ReachArgs, VOICE_ADDRESS};
use crate::client::GatewayTarget;
use crate::client_tokens::{self, ClientName, NewTokens};
use crate::error::{CliError, CliErrorKind};
use crate::start_page::{ListedDevice, StartPage};
use crate::stop::StopSignal;
use crate::terminal::Printer;

/// The label of the demo boards' tokens, by which a later start finds and replaces them.
const LABEL: &str = "demo board";

/// 10 s: the boards connect within milliseconds; whatever takes this long has failed.
const JOINING: Duration = Duration::from_secs(10);

/// The board that keeps its voice assistant.
const TALKING_BOARD: &str = "aa:bb:cc:dd:ee:01";
const TALKING_BOARD_ID: &str = "board-ddee01";

const BOARDS: [(BoardKind, &str); 4] = [
    (BoardKind::Talking, TALKING_BOARD),
    (BoardKind::Talking, "aa:bb:cc:dd:ee:02"),
    (BoardKind::Relay, "aa:bb:cc:dd:ee:03"),
    (BoardKind::Relay, "aa:bb:cc:dd:ee:04"),
];

pub async fn run(args: DemoArgs, printer: Printer) -> Result<(), CliError> {
    if args.story {
        return story::run(printer).await;
    }
    let config = without_phones(args.listen.state.load_config()?);
    let phones = config.phones.clone();
    let mut settings = config.with(&(&args.listen).into())?;
    let base = settings.state.clone();
    settings.state = state::demo(&base);
    settings.started_by = StartedBy::Demo;
    settings.gateway.access.approve_all = true;
    settings.routines = None;
    let mut stop = StopSignal::new()?;
    let voice = relay_to_virtual_voice(&mut settings).await;
    let mut server = GatewayServer::open_taking_over(settings).await?;
    let voice = voice.map(|voice| {
        let handle = voice.handle();
        server.spawn_device(|shutdown| voice.run(shutdown));
        handle
    });
    let joined =
        printer.waiting("waiting for the virtual devices", connect(&mut server, &phones, voice.as_ref())).await;
    if let Err(failure) = joined {
        server.close(stop.wait()).await;
        return Err(failure);
    }
    let page_client = ClientName::Own("start page".to_owned());
    let (token, _) = client_tokens::token(&server.gateway, &server.directory, &page_client, NewTokens::IfNeeded)?;
    let title = format!(
        "Sinew {} is running, with {} virtual boards, a virtual phone and gadgets.",
        env!("CARGO_PKG_VERSION"),
        BOARDS.len()
    );
    let devices = devices(&server).await?;
    let voice = voice.map(|voice| voice.address().to_string()).filter(|address| address != VOICE_ADDRESS);
    let page = StartPage { token: Some(token), devices, voice, ..StartPage::new(title, &server, &base) };
    page.print(printer, args.verbose);
    Ok(server.run(async || stop.wait().await).await?)
}

/// The routines of the demo, where they can be tried and changed.
const ROUTINES: [(&str, &str); 3] = [
    ("good_night", include_str!("../demo_routines/good_night.md")),
    ("write_note", include_str!("../demo_routines/write_note.md")),
    ("find_contact", include_str!("../demo_routines/find_contact.md")),
];

/// Writes the routines that are not there yet.
fn write_routines(state: &Path) -> Result<(), CliError> {
    let folder = state.join("routines");
    let failed = |error: std::io::Error| CliError::new(CliErrorKind::Io, format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(&folder).map_err(failed)?;
    for (name, text) in ROUTINES {
        let file = folder.join(format!("{name}.md"));
        if !file.exists() {
            std::fs::write(file, text).map_err(failed)?;
        }
    }
    Ok(())
}

/// One board of the demo talks to a virtual voice server. Without MQTT, or with a voice server in the configuration, none
/// does.
async fn relay_to_virtual_voice(settings: &mut ServerSettings) -> Option<VirtualVoiceServer> {
    if settings.voice_server.is_some() || settings.mqtt.is_none() {
        return None;
    }
    let usual: SocketAddr = VOICE_ADDRESS.parse().ok()?;
    let voice = match VirtualVoiceServer::open(usual, None).await {
        Ok(voice) => voice,
        // Another demo may be running.
        Err(_) => VirtualVoiceServer::open(SocketAddr::new(usual.ip(), 0), None).await.ok()?,
    };
    settings.relay = RelayConfig {
        url: Some(voice.handle().url()),
        boards: vec![TALKING_BOARD_ID.to_owned()],
        share: SharedDevices::All,
        ..RelayConfig::default()
    };
    settings.voice_server = settings.relay.server(false).ok()?;
    Some(voice)
}

/// Real phones are not part of a demo.
pub fn without_phones(config: GatewayConfig) -> GatewayConfig {
    GatewayConfig { phones: PhonesConfig { enabled: false, ..config.phones }, ..config }
}

/// Connects the virtual devices and waits until all of them are ready. What `phones` says of tools, files and apps is so
/// for the virtual phone too.
pub async fn connect(
    server: &mut GatewayServer,
    phones: &PhonesConfig,
    voice: Option<&VoiceHandle>,
) -> Result<(), CliError> {
    let phone = phone().await?;
    let device = PhoneDevice::new(phone.clone(), phones.profile).with_apks(phones.apks.clone());
    server.gateway.apply(DeviceEvent::Joined(Arc::new(device)));
    if let Some(settings) = phones.apps.settings(&server.directory) {
        // The apps of the virtual phone are known at once; nothing about them is kept.
        let settings = WatchSettings { cache: None, ..settings };
        let mut apps = AppWatcher::new(Arc::new(phone), settings, server.gateway.announce());
        apps.refresh().await.map_err(|error| CliError::new(CliErrorKind::Io, error.to_string()))?;
    }
    write_routines(&server.directory)?;
    connect_boards(server, voice)?;
    let others = demo_desk::connect(server).await?;
    wait_for_devices(server, &others).await
}

/// A virtual phone, driven directly and so able to do everything.
pub async fn phone() -> Result<VirtualPhone, CliError> {
    let config = PhoneConfig { adb: None, lock: LockScreen::None, ..PhoneConfig::default() };
    let stand =
        RunningPhones::open(&config).await.map_err(|error| CliError::new(CliErrorKind::Io, error.to_string()))?;
    let phone = stand.phones.into_iter().next();
    phone.ok_or_else(|| CliError::new(CliErrorKind::Io, "the virtual phone is not connected"))
}

/// Virtual boards that connect like real ones, each with a token of its own.
fn connect_boards(server: &mut GatewayServer, voice: Option<&VoiceHandle>) -> Result<(), CliError> {
    let tokens = server.gateway.tokens();
    for old in tokens.list().into_iter().filter(|token| token.label == LABEL) {
        tokens.revoke(&old.id)?;
    }
    let trust = super::sim::trust(server.addresses.fingerprint.as_deref())?;
    for (kind, hardware_id) in BOARDS {
        let (_, token) = server.gateway.tokens().create(Role::Device(hardware_id.to_owned()), LABEL)?;
        let mut config = BoardConfig {
            token: Some(token),
            trust: trust.clone(),
            ..BoardConfig::new(&server.addresses.devices_url, hardware_id, kind)
        };
        if let (TALKING_BOARD, Some(voice), Some(mqtt)) = (hardware_id, voice, &server.addresses.mqtt_url) {
            let (microphone, _) = Microphone::new();
            voice.add_microphone(hardware_id, microphone.clone());
            (config.url, config.microphone) = (mqtt.clone(), Some(microphone));
        }
        server.spawn_device(|shutdown| async { board::run(config, shutdown).await.map_err(std::io::Error::other) });
    }
    Ok(())
}

/// Waits until the boards, the routines and the other devices of the demo are ready.
async fn wait_for_devices(server: &GatewayServer, others: &[&str]) -> Result<(), CliError> {
    let mut watch = server.gateway.watch();
    let all_ready = async {
        loop {
            let devices = server.gateway.devices();
            let ready = |key: &str| devices.iter().any(|device| device.key.0 == key && device.is_ready());
            if BOARDS.iter().all(|(_, hardware_id)| ready(&format!("board:{hardware_id}")))
                && ready(sinew_routines::DEVICE)
                && others.iter().all(|key| ready(key))
            {
                return;
            }
            watch.next().await;
        }
    };
    tokio::time::timeout(JOINING, all_ready).await.map_err(|_| {
        CliError::new(
            CliErrorKind::Io,
            "the virtual devices did not join within 10 s; SINEW_LOG=debug shows what they met",
        )
    })
}

/// The devices and their own tool names, asked through the API like any client would.
async fn devices(server: &GatewayServer) -> Result<Vec<ListedDevice>, CliError> {
    let running = state::LocalGateway {
        directory: server.directory.clone(),
        pid: std::process::id(),
        addresses: server.addresses.clone(),
    };
    let mut client = GatewayTarget::of_running(&running, &ReachArgs::default())?.connect().await?;
    let answer: sinew_api::Devices = client.get_all("/api/v1/devices").await?;
    let mut devices = Vec::new();
    for device in answer.devices.into_iter().filter(|device| device.is_ready()) {
        let tools = tools::of_device(&mut client, &device.id).await?;
        devices.push(ListedDevice {
            id: device.id,
            kind: device.kind,
            tools: tools.into_iter().map(|tool| tool.name).collect(),
        });
    }
    Ok(devices)
}
