//! `sinew demo`: a gateway with virtual boards and a virtual phone, and the page that says how to use it.

use std::sync::Arc;
use std::time::Duration;

use sinew_apps::AppWatcher;
use sinew_compose::House;
use sinew_compose::config::{Config, Phones};
use sinew_compose::state;
use sinew_gateway::Role;
use sinew_phones::{PhoneDevice, Profile};
use sinew_sim::board::{self, BoardConfig, Kind as BoardKind};
use sinew_sim::phone::{Lock, PhoneConfig, Stand, VirtualPhone};
use sinew_tool::DeviceEvent;

use super::{story, tools};
use crate::args::{Demo, Reach};
use crate::client::Target;
use crate::clients;
use crate::failure::{Failure, Kind};
use crate::show::{Show, print};
use crate::startpage::{self, Device, Page};
use crate::stop::StopSignal;

/// The label of the demo boards' tokens, by which a later start finds and replaces them.
const LABEL: &str = "demo board";

/// 10 s: the boards connect within milliseconds; whatever takes this long has failed.
const JOINING: Duration = Duration::from_secs(10);

const BOARDS: [(BoardKind, &str); 4] = [
    (BoardKind::Companion, "aa:bb:cc:dd:ee:01"),
    (BoardKind::Companion, "aa:bb:cc:dd:ee:02"),
    (BoardKind::Relay, "aa:bb:cc:dd:ee:03"),
    (BoardKind::Relay, "aa:bb:cc:dd:ee:04"),
];

pub async fn run(args: Demo, show: Show) -> Result<(), Failure> {
    if args.story {
        return story::run(show).await;
    }
    let mut settings = config().with(&(&args.doors).into())?;
    let base = settings.state.clone();
    settings.state = state::demo(&base);
    let mut stop = StopSignal::new()?;
    let mut house = House::open(settings).await?;
    let joined = show.waiting("waiting for the virtual devices", connect(&mut house)).await;
    if let Err(failure) = joined {
        house.close(stop.wait()).await;
        return Err(failure);
    }
    let (token, _) = clients::token(&house.gateway, &house.directory, "start page")?;
    let page = Page {
        title: format!(
            "Sinew {} is running, with {} virtual boards and a virtual phone.",
            env!("CARGO_PKG_VERSION"),
            BOARDS.len()
        ),
        doors: house.doors.clone(),
        token: Some(token),
        directory: house.directory.display().to_string(),
        elsewhere: house.elsewhere.clone(),
        boards_elsewhere: house.boards_elsewhere.clone(),
        in_the_clear: house.in_the_clear.clone(),
        devices: devices(&house).await?,
        program: startpage::program(),
        state_flag: (Some(&base) != state::directory(None).ok().as_ref()).then(|| base.display().to_string()),
    };
    print(&if show.json() { format!("{}\n", page.to_json()) } else { page.to_text(show) });
    Ok(house.run(async || stop.wait().await).await?)
}

/// The usual settings, but the phones on somebody's desk are no part of a demo.
pub fn config() -> Config {
    Config { phones: Phones { enabled: false, ..Phones::default() }, ..Config::default() }
}

/// Connects the virtual devices and waits until all of them are ready.
pub async fn connect(house: &mut House) -> Result<(), Failure> {
    let phone = phone().await?;
    house.gateway.apply(DeviceEvent::Joined(Arc::new(PhoneDevice::new(phone.clone(), Profile::Full))));
    let mut apps = AppWatcher::new(Arc::new(phone), sinew_apps::WatchSettings::default(), house.gateway.announce());
    apps.refresh().await.map_err(|error| Failure::new(Kind::Io, error.to_string()))?;
    connect_boards(house)?;
    wait_for_boards(house).await
}

/// A virtual phone, driven directly and so able to do everything.
pub async fn phone() -> Result<VirtualPhone, Failure> {
    let config = PhoneConfig { adb: None, lock: Lock::None, ..PhoneConfig::default() };
    let stand = Stand::open(&config).await.map_err(|error| Failure::new(Kind::Io, error.to_string()))?;
    let phone = stand.phones.into_iter().next();
    phone.ok_or_else(|| Failure::new(Kind::Io, "there is no virtual phone on the stand"))
}

/// Virtual boards that dial the boards' door like real ones, each with a token of its own.
fn connect_boards(house: &mut House) -> Result<(), Failure> {
    let tokens = house.gateway.tokens();
    for old in tokens.list().into_iter().filter(|token| token.label == LABEL) {
        tokens.revoke(&old.id)?;
    }
    let trust = super::sim::trust(house.doors.fingerprint.as_deref())?;
    for (kind, hardware_id) in BOARDS {
        let (_, token) = house.gateway.tokens().create(Role::Device(hardware_id.to_owned()), LABEL)?;
        let config = BoardConfig {
            token: Some(token),
            trust: trust.clone(),
            ..BoardConfig::new(&house.doors.devices_url, hardware_id, kind)
        };
        house.spawn_device(|shutdown| async { board::run(config, shutdown).await.map_err(std::io::Error::other) });
    }
    Ok(())
}

/// Waits until every board of the demo is ready.
async fn wait_for_boards(house: &House) -> Result<(), Failure> {
    let mut watch = house.gateway.watch();
    let all_ready = async {
        loop {
            let devices = house.gateway.devices();
            let ready = |hardware_id: &str| {
                let key = format!("board:{hardware_id}");
                devices.iter().any(|device| device.key.0 == key && device.is_ready())
            };
            if BOARDS.iter().all(|(_, hardware_id)| ready(hardware_id)) {
                return;
            }
            watch.next().await;
        }
    };
    tokio::time::timeout(JOINING, all_ready).await.map_err(|_| {
        Failure::new(Kind::Io, "the virtual boards did not join within 10 s; SINEW_LOG=debug shows what they met")
    })
}

/// The devices and their own tool names, asked at the clients' door like any client would.
async fn devices(house: &House) -> Result<Vec<Device>, Failure> {
    let running =
        state::Running { directory: house.directory.clone(), pid: std::process::id(), doors: house.doors.clone() };
    let mut client = Target::of_running(&running, &Reach::default())?.connect().await?;
    let answer: sinew_api::Devices = client.get("/api/v1/devices").await?;
    let mut devices = Vec::new();
    for device in answer.devices.into_iter().filter(|device| device.is_ready()) {
        let tools = tools::of_device(&mut client, &device.id).await?;
        devices.push(Device {
            id: device.id,
            kind: device.kind,
            tools: tools.into_iter().map(|tool| tool.name).collect(),
        });
    }
    Ok(devices)
}
