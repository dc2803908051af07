//! What `sinew serve` would refuse: the configuration, the state, the certificate, the addresses.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;

use sinew_compose::config::{GatewayConfig, Overrides};
use sinew_front::tls::{self, TlsIdentity};

use super::DoctorCheck;
use crate::args::StateArgs;

/// The configuration, or the default one where the file has a mistake, which is a problem of its own.
pub(super) fn configuration(args: &StateArgs) -> (GatewayConfig, Option<DoctorCheck>) {
    const NAME: &str = "configuration";
    let Some(path) = &args.config else { return (GatewayConfig::default(), None) };
    let loaded = GatewayConfig::load(path);
    let flags = Overrides { state: args.state.clone(), ..Overrides::default() };
    let usable = loaded.and_then(|config| GatewayConfig::settings(path, &flags).map(|_| config));
    match usable {
        Ok(config) => (config, Some(DoctorCheck::ok(NAME, path.display().to_string()))),
        Err(error) => {
            let remedy = "`sinew serve` refuses it; correct the file, then `sinew config check FILE`";
            let check = DoctorCheck::problem(NAME, error.message, remedy);
            (GatewayConfig::load(path).unwrap_or_default(), Some(check))
        }
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
    DoctorCheck::ok(NAME, store.display().to_string())
}

/// Whether an address can be listened on.
pub(super) fn port(name: &'static str, flag: &str, address: SocketAddr) -> DoctorCheck {
    let bound = TcpListener::bind(address).map(drop);
    let bound = if flag == "--mqtt" { bound.and_then(|()| UdpSocket::bind(address).map(drop)) } else { bound };
    let Err(error) = bound else { return DoctorCheck::ok(name, format!("{address} is free")) };
    let port = address.port();
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => {
            format!("`ss -lntup 'sport = :{port}'` shows which program uses it; stop it, or choose another with {flag}")
        }
        ErrorKind::AddrNotAvailable => {
            format!("this machine does not have that address; `ip addr` lists its addresses; choose one with {flag}")
        }
        ErrorKind::PermissionDenied => format!("ports below 1024 need privileges; choose another with {flag}"),
        _ => format!("choose another with {flag}"),
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
        true => DoctorCheck::ok(NAME, format!("{}, fingerprint {}", cert.display(), identity.fingerprint())),
        false => DoctorCheck::problem(NAME, format!("{} {}", cert.display(), problems.join("; it ")), remedy),
    }
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
    match fs::read_to_string(&path) {
        Ok(_) => DoctorCheck::ok(NAME, path.display().to_string()),
        Err(error) => {
            DoctorCheck::problem(NAME, format!("{}: {error}", path.display()), "make it readable for yourself")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckState;
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
        let check = port("port", "--listen", holder.local_addr().expect("an address"));
        assert_eq!(check.result, CheckState::Problem);
        assert!(check.remedy.expect("a remedy").contains("--listen"));
        let elsewhere = port("port", "--listen", "192.0.2.1:7300".parse().expect("an address"));
        assert!(elsewhere.remedy.expect("a remedy").contains("ip addr"));
    }

    #[test]
    fn what_serve_refuses_in_the_configuration_is_a_problem() {
        for (text, part) in [
            ("lisen = 1", "listen"),
            ("listen = '0.0.0.0:7300'", "--insecure-lan"),
            ("tls-cert = 'cert.pem'\ntls-key = 'key.pem'", "cert.pem"),
        ] {
            let (_folder, args) = config_file(text);
            let check = configuration(&args).1.expect("a check");
            assert_eq!(check.result, CheckState::Problem, "{text}");
            assert!(check.message.contains(part), "{}", check.message);
        }
        let (_folder, args) = config_file("listen = '127.0.0.1:9'");
        let (config, check) = configuration(&args);
        assert_eq!((config.listen.port(), check.expect("a check").result), (9, CheckState::Ok));
    }

    #[test]
    fn a_damaged_store_a_bad_token_and_a_lost_key_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = GatewayConfig::default();
        let checked = || store(folder.path(), &config);
        assert_eq!(checked().result, CheckState::Ok, "nothing is there yet");
        fs::write(folder.path().join("token"), "two words").expect("written");
        assert!(checked().message.contains("token"));
        fs::write(folder.path().join("token"), "snw_0123456789").expect("written");
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
