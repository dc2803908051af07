//! What `sinew serve` would refuse: the configuration, the state, the certificate, the addresses.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};

use sinew_compose::config::{GatewayConfig, Overrides};
use sinew_compose::state::LastStart;
use sinew_front::tls::{self, TlsIdentity};

use super::{CheckState, DoctorCheck};
use crate::args::StateArgs;

const CONFIGURATION: &str = "configuration";

/// What a gateway is or would be started with.
pub(super) struct Setup {
    /// `None` where its file cannot be read.
    pub config: Option<GatewayConfig>,
    pub check: Option<DoctorCheck>,
    flags: Overrides,
}

pub(super) fn bad_config(message: String) -> DoctorCheck {
    let remedy = "`sinew serve` refuses it; correct the file, then `sinew config check FILE`";
    DoctorCheck::problem(CONFIGURATION, message, remedy)
}

impl Setup {
    /// That of the file that is named, else that of the gateway that runs here or ran last. A file with a mistake is a
    /// problem of its own.
    pub(super) fn find(args: &StateArgs, last: Option<&LastStart>, is_running: bool) -> Setup {
        const NAME: &str = CONFIGURATION;
        let used = last.and_then(|last| last.config.as_deref());
        let whose = if is_running { "the gateway that runs" } else { "the gateway that ran last" };
        let (path, mut check) = match (args.config.as_deref(), used) {
            (Some(path), used) => {
                let is_other = last.is_some() && used != std::path::absolute(path).ok().as_deref();
                let message = match used {
                    Some(used) => format!("{}, but {whose} uses {}", path.display(), used.display()),
                    None => format!("{}, but {whose} uses none", path.display()),
                };
                (
                    path,
                    match is_other {
                        true => DoctorCheck::note(NAME, message, "the checks are about the file that you named"),
                        false => DoctorCheck::ok(NAME, path.display().to_string()),
                    },
                )
            }
            (None, Some(used)) => (used, DoctorCheck::ok(NAME, format!("{}, of {whose}", used.display()))),
            (None, None) => {
                let flags = last.map(|last| last.flags.clone()).unwrap_or_default();
                let check = last.map(|_| DoctorCheck::ok(NAME, format!("no file; {whose} has the default settings")));
                return Setup { config: Some(GatewayConfig::default().overridden(&flags)), check, flags };
            }
        };
        let flags = match last.filter(|_| check.result == CheckState::Ok) {
            Some(last) => Overrides { state: args.state.clone(), ..last.flags.clone() },
            None => Overrides { state: args.state.clone(), ..Overrides::default() },
        };
        let loaded = GatewayConfig::load(path);
        let usable = loaded.clone().and_then(|_| GatewayConfig::settings(path, &flags));
        if let Err(error) = usable {
            check = bad_config(error.message);
        }
        Setup { config: loaded.ok().map(|config| config.overridden(&flags)), check: Some(check), flags }
    }

    /// Whether each address can be listened on.
    pub(super) fn ports(&self, config: &GatewayConfig) -> Vec<DoctorCheck> {
        let place = |key: &str, is_flag: bool| match &config.file {
            Some(file) if !is_flag => format!("`{key}` in {}", file.display()),
            _ => format!("--{key}"),
        };
        let flags = &self.flags;
        let mut checks = vec![
            port("clients' port", &place("listen", flags.listen.is_some()), config.listen, Sockets::Tcp),
            port("boards' port", &place("devices", flags.devices.is_some()), config.devices, Sockets::Tcp),
        ];
        let mqtt = place("mqtt", flags.mqtt.is_some());
        checks.extend(config.mqtt.address().map(|address| port("MQTT port", &mqtt, address, Sockets::TcpAndUdp)));
        checks
    }
}

/// Store, keys and pins, where no gateway uses them.
pub(super) fn store(directory: &Path, config: &GatewayConfig) -> DoctorCheck {
    const NAME: &str = "store";
    let store = directory.join("gateway.db");
    if let Err(error) = sinew_gateway::check_state(directory, config.gateway.lock.as_deref()) {
        return DoctorCheck::problem(NAME, error.to_string(), "");
    }
    if !store.exists() {
        return DoctorCheck::ok(NAME, "none yet");
    }
    if let Some(loss) = sinew_gateway::lost_board_key(directory) {
        let remedy = "restore the file from a backup before the next start, which makes another key";
        return DoctorCheck::problem(NAME, loss, remedy);
    }
    DoctorCheck::ok(NAME, store.display().to_string())
}

/// What is opened at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sockets {
    Tcp,
    TcpAndUdp,
}

/// Whether an address can be listened on; `place` is where another can be chosen.
fn port(name: &'static str, place: &str, address: SocketAddr, sockets: Sockets) -> DoctorCheck {
    let bound = TcpListener::bind(address).map(drop);
    let bound = match sockets {
        Sockets::Tcp => bound,
        Sockets::TcpAndUdp => bound.and_then(|()| UdpSocket::bind(address).map(drop)),
    };
    let Err(error) = bound else { return DoctorCheck::ok(name, format!("{address} is free")) };
    let port = address.port();
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => {
            format!(
                "`ss -lntup 'sport = :{port}'` shows which program uses it; stop it, or choose another with {place}"
            )
        }
        ErrorKind::AddrNotAvailable => {
            format!("this machine does not have that address; `ip addr` lists its addresses; choose one with {place}")
        }
        ErrorKind::PermissionDenied => format!("ports below 1024 need privileges; choose another with {place}"),
        _ => format!("choose another with {place}"),
    };
    DoctorCheck::problem(name, format!("{address} cannot be listened on: {error}"), remedy)
}

pub(super) fn certificate(directory: &Path, config: &GatewayConfig) -> DoctorCheck {
    const NAME: &str = "certificate";
    let own = [directory.join("tls-cert.pem"), directory.join("tls-key.pem")];
    let (cert, key, remedy) = match (&config.tls_cert, &config.tls_key) {
        (Some(cert), Some(key)) => (cert, key, "renew it; the gateway serves new files without a restart"),
        _ if !own[0].exists() => return DoctorCheck::ok(NAME, "none; --tls makes one"),
        _ => (&own[0], &own[1], "restart the gateway with --tls for a new one"),
    };
    let identity = match TlsIdentity::from_files(cert, key) {
        Ok(identity) => identity,
        Err(error) => {
            let remedy = match config.tls_cert.is_some() {
                true => "correct `tls-cert` and `tls-key`".to_owned(),
                false => format!("remove {}, and --tls makes a new one", cert.display()),
            };
            return DoctorCheck::problem(NAME, error.to_string(), remedy);
        }
    };
    let mut hosts = config.clients.allowed_hosts.clone();
    hosts.extend(config.boards.advertise.clone());
    let is_open = |address: &SocketAddr| !address.ip().is_loopback() && !address.ip().is_unspecified();
    hosts.extend([config.listen, config.devices].iter().filter(|address| is_open(address)).map(|a| a.ip().to_string()));
    let problems = identity.problems(&hosts, tls::now());
    match problems.is_empty() {
        true => {
            let fingerprint = identity.fingerprint().replace(':', "").to_lowercase();
            DoctorCheck::ok(NAME, format!("{}, with the fingerprint", cert.display())).showing(fingerprint)
        }
        false => DoctorCheck::problem(NAME, format!("{} {}", cert.display(), problems.join("; it ")), remedy),
    }
}

/// Files with secrets that every user of the machine can read; nothing where there are no such files.
#[cfg(unix)]
pub(super) fn secrets(config: &GatewayConfig) -> Vec<DoctorCheck> {
    use std::os::unix::fs::MetadataExt;
    const NAME: &str = "secrets";
    let is_open = |path: &&Path| fs::metadata(path).is_ok_and(|found| found.mode() & 0o007 != 0);
    let files: BTreeSet<&Path> = config.secret_files.iter().map(PathBuf::as_path).collect();
    let open: Vec<DoctorCheck> = files
        .iter()
        .copied()
        .filter(is_open)
        .map(|path| {
            let message = format!("{} can be read by every user of this machine", path.display());
            let remedy = format!("chmod o= {}; if others may have read it, use a new secret", path.display());
            DoctorCheck::problem(NAME, message, remedy)
        })
        .collect();
    match (files.len(), open.len()) {
        (0, _) => Vec::new(),
        (count, 0) => vec![DoctorCheck::ok(NAME, format!("{count} in files that other users cannot read"))],
        _ => open,
    }
}

#[cfg(not(unix))]
pub(super) fn secrets(_: &GatewayConfig) -> Vec<DoctorCheck> {
    Vec::new()
}

pub(super) fn token(directory: &Path) -> DoctorCheck {
    const NAME: &str = "token";
    let path = directory.join("token");
    let Ok(found) = fs::metadata(&path) else {
        return DoctorCheck::note(NAME, "none yet", "the first start of a gateway makes it");
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if found.mode() & 0o077 != 0 {
            let message = format!("{} can be read by other users (mode {:o})", path.display(), found.mode() & 0o777);
            let remedy = format!(
                "chmod 600 {0}; if others may have read it, remove it and restart the gateway for a new one",
                path.display()
            );
            return DoctorCheck::problem(NAME, message, remedy);
        }
    }
    match sinew_gateway::check_own_token(directory) {
        Ok(()) => DoctorCheck::ok(NAME, path.display().to_string()),
        Err(error) => DoctorCheck::problem(NAME, error.to_string(), "`sinew serve` refuses it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_file(text: &str) -> (tempfile::TempDir, StateArgs) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sinew.toml");
        fs::write(&path, text).expect("written");
        let state = Some(folder.path().join("state"));
        (folder, StateArgs { state, config: Some(path) })
    }

    #[test]
    fn a_taken_port_is_a_problem_with_a_remedy() {
        let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
        let check = port("port", "--listen", holder.local_addr().expect("an address"), Sockets::Tcp);
        assert_eq!(check.result, CheckState::Problem);
        assert!(check.remedy.expect("a remedy").contains("--listen"));
        let elsewhere = port("port", "--listen", "192.0.2.1:7300".parse().expect("an address"), Sockets::Tcp);
        assert!(elsewhere.remedy.expect("a remedy").contains("ip addr"));
    }

    #[test]
    fn what_serve_refuses_in_the_configuration_is_a_problem() {
        for (text, part) in [
            ("lisen = 1", "listen"),
            ("listen = '0.0.0.0:7300'", "insecure-lan = true"),
            ("tls-cert = 'cert.pem'\ntls-key = 'key.pem'", "cert.pem"),
        ] {
            let (_folder, args) = config_file(text);
            let Setup { config, check, .. } = Setup::find(&args, None, false);
            let check = check.expect("a check");
            assert_eq!(config.is_none(), text.starts_with("lisen"), "only a file that can be read is checked further");
            assert_eq!(check.result, CheckState::Problem, "{text}");
            assert!(check.message.contains(part), "{}", check.message);
        }
        let (_folder, args) = config_file("listen = '127.0.0.1:9'");
        let Setup { config, check, .. } = Setup::find(&args, None, false);
        assert_eq!((config.expect("readable").listen.port(), check.expect("a check").result), (9, CheckState::Ok));
    }

    #[test]
    fn the_gateway_that_ran_last_says_what_is_checked() {
        let (folder, args) = config_file("devices = '127.0.0.1:9'");
        let flags = Overrides { listen: "127.0.0.1:8".parse().ok(), ..Overrides::default() };
        let last = LastStart { config: args.config.clone(), flags, ..LastStart::default() };
        let setup = Setup::find(&StateArgs { config: None, ..args.clone() }, Some(&last), false);
        let config = setup.config.expect("readable");
        assert_eq!((config.listen.port(), config.devices.port()), (8, 9));
        let check = setup.check.expect("a check");
        assert!(check.result == CheckState::Ok && check.message.contains("sinew.toml"), "{}", check.message);
        fs::write(folder.path().join("other.toml"), "").expect("written");
        let other = StateArgs { config: Some(folder.path().join("other.toml")), ..args };
        let check = Setup::find(&other, Some(&last), true).check.expect("a check");
        assert!(check.result == CheckState::Note && check.message.contains("sinew.toml"), "{}", check.message);
    }

    #[cfg(unix)]
    #[test]
    fn secrets_that_everybody_can_read_are_named_with_the_remedy() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, args) = config_file("[[servers]]\nurl = 'http://a'\ntoken-file = 'secret'\n");
        let secret = folder.path().join("secret");
        fs::write(&secret, "t\n").expect("written");
        let checked = |mode| {
            fs::set_permissions(&secret, fs::Permissions::from_mode(mode)).expect("set");
            let setup = Setup::find(&args, None, false);
            secrets(&setup.config.expect("a configuration")).remove(0)
        };
        for mode in [0o600, 0o640] {
            assert_eq!(checked(mode).result, CheckState::Ok, "{mode:o}");
        }
        let check = checked(0o644);
        assert_eq!(check.result, CheckState::Problem);
        assert!(check.remedy.is_some_and(|remedy| remedy.contains(&format!("chmod o= {}", secret.display()))));
        assert!(secrets(&GatewayConfig::default()).is_empty());
    }

    #[test]
    fn a_damaged_store_a_bad_token_and_a_lost_key_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = GatewayConfig::default();
        let checked = || store(folder.path(), &config);
        assert_eq!(checked().result, CheckState::Ok, "nothing is there yet");
        let write_token = |text: &str| {
            let path = folder.path().join("token");
            fs::write(&path, text).expect("written");
            #[cfg(unix)]
            fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("private");
        };
        write_token("two words");
        assert_eq!(checked().result, CheckState::Ok, "the token has a check of its own");
        let check = token(folder.path());
        assert!(check.result == CheckState::Problem && check.message.contains("cannot be used"), "{}", check.message);
        write_token("snw_0123456789");
        assert_eq!(token(folder.path()).result, CheckState::Ok);
        fs::write(folder.path().join("gateway.db"), "not a database").expect("written");
        let check = checked();
        assert!(check.result == CheckState::Problem && check.message.contains("restore it"), "{}", check.message);
        fs::remove_file(folder.path().join("gateway.db")).expect("removed");
        fs::write(folder.path().join("sinew.lock"), "{").expect("written");
        assert!(checked().message.contains("sinew.lock"));
    }

    #[test]
    fn a_certificate_without_its_key_and_one_for_another_name_are_problems() {
        let folder = tempfile::tempdir().expect("a folder");
        TlsIdentity::self_signed(folder.path(), &["lab.local".to_owned()]).expect("created");
        let config = GatewayConfig::default();
        assert_eq!(certificate(folder.path(), &config).result, CheckState::Ok);
        let mut elsewhere = config.clone();
        elsewhere.boards.advertise = Some("sinew.example".to_owned());
        let check = certificate(folder.path(), &elsewhere);
        assert!(check.result == CheckState::Problem && check.message.contains("lab.local"), "{}", check.message);
        fs::remove_file(folder.path().join("tls-key.pem")).expect("removed");
        assert!(certificate(folder.path(), &config).message.contains("tls-key.pem"));
    }
}
