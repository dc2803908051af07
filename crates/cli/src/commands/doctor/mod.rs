//! `sinew doctor`: what is wrong, and how to fix it.

mod cluster;
mod phones;
mod start;

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};
use sinew_api::{DeviceSummary, Devices, GatewayStatus, NotReadyReason};
use sinew_boards::Pictures;
use sinew_boards::relay::VoiceServer;
use sinew_compose::board_listeners::{guess_host, ota_url};
use sinew_compose::brokers::BrokerConfig;
use sinew_compose::config::{EndpointConfig, GatewayConfig};
use sinew_compose::relay::{RelayConfig, is_meant};
use sinew_compose::state::{self, LastStart, LocalGateway, StartedBy};
use sinew_front::dialout::{self, EndpointAddress};

use crate::args::{DoctorArgs, ReachArgs};
use crate::client::GatewayTarget;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, TextStyle, clean, print, print_json};

/// One finding.
struct DoctorCheck {
    name: &'static str,
    result: CheckState,
    message: String,
    remedy: Option<String>,
    /// The end of the message, on a line of its own so that it can be copied in one piece.
    shown: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckState {
    Ok,
    /// Worth knowing; nothing is broken.
    Note,
    Problem,
}

pub async fn run(args: DoctorArgs, printer: Printer) -> Result<(), CliError> {
    let named = args.reach.state.load_config();
    if let (None, Err(error)) = (&args.reach.state.state, &named) {
        // Only the file can say which gateway is meant.
        let mut check = start::bad_config(error.message.clone());
        check.message.push_str("; nothing else is checked, because it may name another state directory");
        return finish(vec![check], printer);
    }
    let named = named.unwrap_or_default().state;
    let directory = state::directory(args.reach.state.state.as_deref().or(named.as_deref()))?;
    let running = state::find_running(&directory);
    let place = running.as_ref().map_or(directory.clone(), |running| running.directory.clone());
    let last = LastStart::read(&place).ok().flatten();
    let mut setup = start::Setup::find(&args.reach.state, last.as_ref(), running.is_some());

    let mut checks: Vec<DoctorCheck> = setup.check.take().into_iter().collect();
    checks.push(state_directory(&place, running.as_ref()));
    checks.push(gateway(running.as_ref(), last.as_ref(), &args.reach).await);
    let known = match &running {
        Some(running) => known_devices(running, &args.reach).await,
        None => None,
    };
    checks.extend(known.iter().flat_map(|known| devices(&known.devices)));
    checks.push(start::token(&place));
    // A file that cannot be read says nothing about addresses, certificate and services.
    if let Some(config) = &setup.config {
        checks.extend(configured(config, &setup, &place, running.as_ref()).await);
        if let Some(config) = &config.cluster {
            checks.extend(cluster::check(config, running.as_ref(), &args.reach).await);
        }
        checks.extend(known.iter().flat_map(|known| relayed_names(&config.relay, &known.devices)));
    }
    checks.push(phones::adb().await);
    checks.extend(phones::companions().await);
    finish(checks, printer)
}

/// What the configuration names.
async fn configured(
    config: &GatewayConfig,
    setup: &start::Setup,
    place: &Path,
    running: Option<&LocalGateway>,
) -> Vec<DoctorCheck> {
    let mut checks = Vec::new();
    if running.is_none() {
        checks.push(start::store(place, config));
        checks.extend(setup.ports(config));
        // A broker of endpoints has one connection for a token, which belongs to the gateway while it runs.
        for endpoint in &config.endpoints {
            checks.push(self::endpoint(endpoint).await);
        }
    }
    checks.push(board_setup(running, config));
    checks.push(start::certificate(place, config));
    checks.extend(start::secrets(config));
    for broker in &config.brokers {
        checks.push(self::broker(broker).await);
    }
    checks.extend(voice_server(config).await);
    checks.extend(vision(config).await);
    checks.push(phones::agent(&config.phones.agent));
    checks
}

/// Shows what was found; a problem makes the command fail.
fn finish(checks: Vec<DoctorCheck>, printer: Printer) -> Result<(), CliError> {
    let problems = checks.iter().filter(|check| check.result == CheckState::Problem).count();
    let all = json!({"checks": checks.iter().map(DoctorCheck::to_json).collect::<Vec<_>>()});
    if problems > 0 {
        if !printer.is_json() {
            checks.iter().for_each(|check| print(&check.to_text(printer)));
        }
        let message = if problems == 1 {
            "one check found a problem".to_owned()
        } else {
            format!("{problems} checks found problems")
        };
        return Err(CliError { details: all, ..CliError::new(CliErrorKind::ChecksFailed, message) });
    }
    if printer.is_json() {
        print_json(&all);
    } else {
        checks.iter().for_each(|check| print(&check.to_text(printer)));
    }
    Ok(())
}

impl DoctorCheck {
    fn ok(name: &'static str, message: impl Into<String>) -> DoctorCheck {
        DoctorCheck { name, result: CheckState::Ok, message: message.into(), remedy: None, shown: None }
    }

    fn note(name: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> DoctorCheck {
        DoctorCheck {
            name,
            result: CheckState::Note,
            message: message.into(),
            remedy: Some(remedy.into()),
            shown: None,
        }
    }

    fn problem(name: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> DoctorCheck {
        DoctorCheck {
            name,
            result: CheckState::Problem,
            message: message.into(),
            remedy: Some(remedy.into()),
            shown: None,
        }
    }

    fn showing(self, shown: String) -> DoctorCheck {
        DoctorCheck { shown: Some(shown), ..self }
    }

    fn to_json(&self) -> Value {
        let result = match self.result {
            CheckState::Ok => "ok",
            CheckState::Note => "note",
            CheckState::Problem => "fault",
        };
        let message = [Some(self.message.as_str()), self.shown.as_deref()].into_iter().flatten();
        let message = message.collect::<Vec<_>>().join(" ");
        json!({"name": self.name, "verdict": result, "message": message, "remedy": self.remedy})
    }

    fn to_text(&self, printer: Printer) -> String {
        let (style, sign) = match self.result {
            CheckState::Ok => (TextStyle::Good, "ok   "),
            CheckState::Note => (TextStyle::Warn, "note "),
            CheckState::Problem => (TextStyle::Bad, "fault"),
        };
        const INDENT: usize = 23;
        /// 64 digits fit a terminal of 80 columns.
        const SHOWN: usize = 6;
        let message = printer.wrap(&clean(&self.message), INDENT);
        let mut text = format!("{} {:<16} {message}\n", printer.paint(style, sign), self.name);
        text.extend(self.shown.iter().map(|shown| format!("{:SHOWN$}{}\n", "", clean(shown))));
        if let Some(remedy) = self.remedy.as_deref().filter(|remedy| !remedy.is_empty()) {
            let remedy = printer.wrap(&format!("→ {}", clean(remedy)), INDENT + 2);
            text.push_str(&format!("{:INDENT$}{}\n", "", printer.paint(TextStyle::Dim, &remedy)));
        }
        text
    }
}

/// The voice server of relayed boards takes connections.
async fn voice_server(config: &GatewayConfig) -> Option<DoctorCheck> {
    const NAME: &str = "voice server";
    let probed = match config.relay.server(config.insecure_lan) {
        Ok(None) => return None,
        Ok(Some(VoiceServer::At(address))) => address.probe().await,
        Ok(Some(VoiceServer::Ota(address))) => address.probe().await,
        Err(problem) => Err(problem.message),
    };
    Some(match probed {
        Ok(()) => DoctorCheck::ok(NAME, "the voice server of relayed boards answers"),
        Err(why) => {
            let remedy = "boards keep their tools and have no voice meanwhile; start the server, or correct [relay]";
            DoctorCheck::problem(NAME, why, remedy)
        }
    })
}

/// Names in `[relay]` that no known device has. One may connect later, or a name may be misspelt.
fn relayed_names(relay: &RelayConfig, devices: &[DeviceSummary]) -> Vec<DoctorCheck> {
    let is_known = |name: &str| {
        devices
            .iter()
            .any(|device| is_meant(name, &device.id, device.name.as_deref(), device.labels.iter().map(String::as_str)))
    };
    let unknown = relay.listed_names().into_iter().filter(|(_, name)| !is_known(name));
    unknown
        .map(|(key, name)| {
            let message = format!("`{key}` of [relay] names `{name}`, which no known device has");
            DoctorCheck::note("relay", message, "correct it, or give a device this name or label: `sinew devices`")
        })
        .collect()
}

/// What to do about a state directory of another user. Root may use every directory, and one with the gateway's own
/// user as its owner is as it should be.
#[cfg(unix)]
fn foreign_owner(directory: &Path, owner: u32, ours: u32, gateway: Option<u32>) -> Option<String> {
    let is_root = |user: u32| user == 0;
    if is_root(ours) || owner == ours || gateway == Some(owner) {
        return None;
    }
    let shown = directory.display();
    Some(match is_root(owner) && gateway.is_none() {
        true => format!("sudo chown -R \"$(id -un)\" {shown}, or choose another with --state DIR"),
        false => format!(
            "if a service of that user keeps it, `sudo sinew doctor --state {shown}`; else choose another with --state DIR"
        ),
    })
}

/// The user that a process runs as, where the system shows it.
#[cfg(unix)]
fn user_of(process: &str) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(Path::new("/proc").join(process)).map(|process| process.uid()).ok()
}

fn state_directory(directory: &Path, running: Option<&LocalGateway>) -> DoctorCheck {
    const NAME: &str = "state directory";
    let shown = directory.display();
    let Ok(found) = fs::metadata(directory) else {
        return DoctorCheck::note(
            NAME,
            format!("{shown} does not exist yet"),
            "the first `sinew serve` or `sinew demo` makes it",
        );
    };
    if !found.is_dir() {
        return DoctorCheck::problem(NAME, format!("{shown} is not a directory"), "choose another with --state DIR");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let gateway = running.and_then(|running| user_of(&running.pid.to_string()));
        let remedy = user_of("self").and_then(|ours| foreign_owner(directory, found.uid(), ours, gateway));
        if let Some(remedy) = remedy {
            return DoctorCheck::problem(NAME, format!("{shown} belongs to user {}", found.uid()), remedy);
        }
        if found.mode() & 0o077 != 0 {
            let message = format!("{shown} is open to other users (mode {:o})", found.mode() & 0o777);
            return DoctorCheck::problem(NAME, message, format!("chmod 700 {shown}"));
        }
    }
    match probe(directory) {
        Ok(()) => DoctorCheck::ok(NAME, shown.to_string()),
        Err(error) => unwritable(directory, &error),
    }
}

/// What must fit: a gateway without room for its next records makes no calls.
const ROOM: usize = 256 << 10;

/// Writes as much as a gateway soon will, and removes it.
fn probe(directory: &Path) -> std::io::Result<()> {
    let path = directory.join(format!("doctor-{}", std::process::id()));
    let written = fs::File::create_new(&path).and_then(|mut file| {
        file.write_all(&vec![0; ROOM])?;
        file.sync_all()
    });
    let _ = fs::remove_file(path);
    written
}

fn unwritable(directory: &Path, error: &std::io::Error) -> DoctorCheck {
    use std::io::ErrorKind;
    let shown = directory.display();
    let remedy = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            format!("free some space (`df -h {shown}`); a call that cannot be recorded is not made")
        }
        ErrorKind::ReadOnlyFilesystem => "mount it writable, or choose another with --state DIR".to_owned(),
        _ => format!("let this user write to {shown}, or choose another with --state DIR"),
    };
    DoctorCheck::problem("state directory", format!("{shown} cannot be written: {error}"), remedy)
}

async fn gateway(running: Option<&LocalGateway>, last: Option<&LastStart>, reach: &ReachArgs) -> DoctorCheck {
    const NAME: &str = "gateway";
    let target = match (GatewayTarget::named(reach), running) {
        (Err(failure), _) => return DoctorCheck::problem(NAME, failure.message, "correct --url"),
        (Ok(Some(target)), _) => Ok(target),
        (Ok(None), Some(running)) => GatewayTarget::of_running(running, reach),
        (Ok(None), None) => return stopped(last),
    };
    let asked = async {
        let target = target?;
        target.check().await?;
        let mut client = target.connect().await?;
        let reasons = client.readiness().await?.reasons;
        // Only administrators may see it.
        let status = client.get::<GatewayStatus>("/api/v1/status").await.ok();
        Ok::<_, CliError>((target.description, reasons, status.and_then(|status| status.store_problem)))
    };
    match asked.await {
        Ok((description, reasons, store_problem)) => ready(&description, &reasons, store_problem),
        Err(failure) if failure.error_type == "TokenRefused" => {
            DoctorCheck::problem(NAME, "refuses the token", "unset SINEW_TOKEN, or give a valid one with --token")
        }
        Err(failure) => DoctorCheck::problem(NAME, failure.message, "look at its log; restart it if it hangs"),
    }
}

/// Whether a gateway that answers makes calls, too.
fn ready(description: &str, reasons: &[NotReadyReason], store_problem: Option<String>) -> DoctorCheck {
    const NAME: &str = "gateway";
    let (why, remedy) = match reasons {
        [] => return DoctorCheck::ok(NAME, format!("{description} answers, and accepts the token")),
        [NotReadyReason::Stopping, ..] => ("it is stopping".to_owned(), "start it again"),
        [NotReadyReason::NotRecording, ..] => {
            let why = store_problem.map(|problem| format!(": {problem}")).unwrap_or_default();
            let remedy = "free some space, or make the state directory writable; it then goes on by itself";
            (format!("calls cannot be recorded{why}"), remedy)
        }
        [NotReadyReason::Busy, ..] => {
            let remedy = "a client does not read its answers: `sinew token list` shows who is there";
            ("too many answers wait to be read".to_owned(), remedy)
        }
    };
    DoctorCheck::problem(NAME, format!("{description} makes no calls: {why}"), remedy)
}

/// One that was started to stay should run; who monitors a service needs the exit code.
fn stopped(last: Option<&LastStart>) -> DoctorCheck {
    const NAME: &str = "gateway";
    match last.filter(|last| last.started_by == StartedBy::Serve) {
        Some(last) => {
            let message = format!("none runs; `{}` was stopped or ended", last.command());
            DoctorCheck::problem(NAME, message, "start it again; its log says why it ended")
        }
        None => DoctorCheck::note(NAME, "none runs", "start one with `sinew demo` or `sinew serve`"),
    }
}

async fn known_devices(running: &LocalGateway, reach: &ReachArgs) -> Option<Devices> {
    let mut client = GatewayTarget::of_running(running, reach).ok()?.connect().await.ok()?;
    client.get_all("/api/v1/devices").await.ok()
}

/// Devices that are connected but not usable, with what they need.
fn devices(devices: &[DeviceSummary]) -> Vec<DoctorCheck> {
    const NAME: &str = "devices";
    let ready = devices.iter().filter(|device| device.is_ready()).count();
    let mut checks = vec![DoctorCheck::ok(NAME, format!("{ready} ready of {} known", devices.len()))];
    for device in devices {
        let state = device.state.as_str();
        if !matches!(state, "ready" | "away") {
            let remedy = device.remedy.as_deref().unwrap_or_default();
            checks.push(DoctorCheck::note(NAME, format!("{} is {state}", device.id), remedy));
        }
        if let Some(why) = device.attribute("agent").strip_prefix("absent: ") {
            let message = format!("{} is used without the agent", device.id);
            checks.push(DoctorCheck::note(NAME, message, why));
        }
    }
    let trials = devices.iter().filter(|device| device.admitted_by.as_deref() == Some("gateway token")).count();
    if trials > 0 {
        let message = format!("{trials} connected with the gateway's own token");
        checks.push(DoctorCheck::note(NAME, message, "give each a token of its own: sinew token new --device ID"));
    }
    checks
}

/// The address that boards use, and what is wrong with it.
fn board_setup(running: Option<&LocalGateway>, config: &GatewayConfig) -> DoctorCheck {
    const NAME: &str = "boards' setup";
    let url = running.and_then(|running| running.addresses.ota_url.clone()).unwrap_or_else(|| {
        let listeners: Vec<SocketAddr> = [Some(config.devices), config.mqtt.address()].into_iter().flatten().collect();
        let host = config.boards.advertise.clone().unwrap_or_else(|| guess_host(&listeners).to_string());
        let reach = sinew_boards::AdvertisedAddress { host, http: config.devices.port(), mqtt: None, sound: None };
        ota_url(&reach, config.devices_tls)
    });
    if url.contains("//127.") || url.contains("//[::1]") {
        return DoctorCheck::note(
            NAME,
            format!("{url}, which only virtual boards can reach"),
            "for boards on your network: sinew serve --devices 0.0.0.0:7301 --mqtt 0.0.0.0:7302 --insecure-lan",
        );
    }
    DoctorCheck::ok(NAME, format!("{url} is the OTA address of a board; --advertise names another host"))
}

/// Whether a broker of the configuration welcomes us.
async fn broker(section: &BrokerConfig) -> DoctorCheck {
    const NAME: &str = "broker";
    let broker = match section.boards() {
        Ok(broker) => broker,
        Err(failure) => return DoctorCheck::problem(NAME, failure.message, "correct `brokers` in the configuration"),
    };
    match sinew_boards::broker::check(&broker).await {
        Ok(()) => DoctorCheck::ok(
            NAME,
            format!(
                "{} welcomes us and takes our subscriptions; whether its access rules let boards through, only a board shows",
                broker.address
            ),
        ),
        Err(why) => DoctorCheck::problem(
            NAME,
            format!("{}: {why}", broker.address),
            "check that the broker runs and speaks MQTT 5, and that `brokers` in the configuration has its address and credentials",
        ),
    }
}

/// Whether a broker of endpoints accepts us.
async fn endpoint(section: &EndpointConfig) -> DoctorCheck {
    const NAME: &str = "endpoint";
    let address = match section.url.parse::<EndpointAddress>() {
        Ok(address) => address,
        Err(why) => return DoctorCheck::problem(NAME, why, "correct `endpoints` in the configuration"),
    };
    match dialout::probe(&address).await {
        Ok(()) => DoctorCheck::ok(NAME, format!("{address} accepts the connection")),
        Err(why) => DoctorCheck::problem(
            NAME,
            format!("{address}: {why}"),
            "check that the broker runs, and that the `url` of the endpoint has its address and a valid token",
        ),
    }
}

/// Whether the model that looks at photos can be reached.
async fn vision(config: &GatewayConfig) -> Option<DoctorCheck> {
    const NAME: &str = "vision";
    let Ok(Pictures::Ask(backend)) = config.boards.pictures() else { return None };
    Some(match backend.probe().await {
        Ok(()) => DoctorCheck::ok(NAME, "the backend for photos answers; whether it has the model, only a photo shows"),
        Err(why) => {
            let remedy = "start it, or correct `vision` under [boards]; without `vision` photos go to the client";
            DoctorCheck::problem(NAME, why, remedy)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_state_directory_of_another_user_is_no_fault_for_root_and_beside_the_gateway_of_its_owner() {
        let remedy = |owner, ours, gateway| foreign_owner(Path::new("/var/lib/sinew"), owner, ours, gateway);
        for (owner, ours, gateway) in
            [(61234, 0, None), (61234, 0, Some(61234)), (61234, 1000, Some(61234)), (1000, 1000, None)]
        {
            assert_eq!(remedy(owner, ours, gateway), None, "{owner} {ours} {gateway:?}");
        }
        let of_service = remedy(61234, 1000, None).expect("a remedy");
        assert!(!of_service.contains("chown") && of_service.contains("sudo sinew doctor"), "{of_service}");
        assert!(remedy(0, 1000, None).expect("a remedy").contains("chown"), "after one `sudo sinew serve`");
    }

    #[cfg(unix)]
    #[test]
    fn a_state_directory_open_to_others_is_a_fault() {
        use std::os::unix::fs::PermissionsExt;
        let directory = std::env::temp_dir().join(format!("sinew-doctor-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("made");
        let checked = |mode| {
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).expect("set");
            state_directory(&directory, None).result
        };
        assert_eq!(checked(0o755), CheckState::Problem);
        assert_eq!(checked(0o700), CheckState::Ok);
        fs::write(directory.join("token"), "snw_x").expect("written");
        fs::set_permissions(directory.join("token"), fs::Permissions::from_mode(0o644)).expect("set");
        assert_eq!(start::token(&directory).result, CheckState::Problem);
        fs::remove_dir_all(directory).expect("removed");
    }
}
