//! The TLS certificate of the gateway: a self-signed one, or one from files.
//!
//! A self-signed certificate is created when needed, kept in the state directory and reused while it is valid and names
//! every wanted host. Its key stays the same when it is made anew, and with it the fingerprint that clients compare. The
//! device listener uses the same certificate.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sinew_gateway::private_files::write_private_synced;

/// Two years: Apple's systems refuse certificates that are valid for more than 825 days.
const LIFETIME: Duration = Duration::from_secs(730 * 24 * 3600);
/// A certificate is renewed this long before it expires, because a gateway may run for weeks.
const MARGIN: Duration = Duration::from_secs(60 * 24 * 3600);

/// A certificate that ends within this time is worth a warning: renewals are usually done 30 days before.
const EXPIRES_SOON: Duration = Duration::from_secs(14 * 24 * 3600);

const CERTIFICATE: &str = "tls-cert.pem";
const KEY: &str = "tls-key.pem";
const RECORD: &str = "tls.json";

/// A certificate chain and its key, ready to serve.
#[derive(Clone)]
pub struct TlsIdentity {
    config: Arc<ServerConfig>,
    served: Arc<ServedCertificate>,
    fingerprint: String,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: the file has no {what} in PEM form ({detail}); use a PEM file that begins with -----BEGIN", path.display())]
    NotPem { path: PathBuf, what: &'static str, detail: String },
    #[error("{}: the certificate cannot be read ({detail}); use an X.509 certificate of version 3", path.display())]
    Unreadable { path: PathBuf, detail: String },
    #[error("the certificate and the key do not match: {0}; use the key of this certificate")]
    Mismatch(String),
    #[error("`{0}` is not a host name or address that a certificate can name")]
    Host(String),
    #[error("the certificate could not be created: {0}")]
    Create(String),
}

/// The certificate that new connections get; it changes when its files are renewed.
#[derive(Debug)]
struct ServedCertificate {
    files: (PathBuf, PathBuf),
    current: RwLock<Arc<CertifiedKey>>,
}

impl ServedCertificate {
    fn current(&self) -> Arc<CertifiedKey> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// What is known of a self-signed certificate, so that it can be checked without parsing X.509.
#[derive(Serialize, Deserialize)]
struct CertificateRecord {
    hosts: BTreeSet<String>,
    expires_unix_seconds: u64,
}

impl TlsIdentity {
    /// The certificate kept in `state_dir`, or a new one that names `localhost`, the loopback
    /// addresses and `hosts`.
    pub fn self_signed(state_dir: &Path, hosts: &[String]) -> Result<TlsIdentity, TlsError> {
        let mut wanted: BTreeSet<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
        wanted.extend(hosts.iter().map(|host| host.trim_matches(['[', ']']).to_ascii_lowercase()));
        if let Some(kept) = TlsIdentity::kept(state_dir, &mut wanted) {
            return Ok(kept);
        }
        TlsIdentity::create(state_dir, wanted)
    }

    pub fn from_files(certificate: &Path, key: &Path) -> Result<TlsIdentity, TlsError> {
        let not_pem = |path: &Path, what| {
            let path = path.to_owned();
            move |detail: rustls::pki_types::pem::Error| TlsError::NotPem { path, what, detail: detail.to_string() }
        };
        let text = read(certificate)?;
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&text)
            .collect::<Result<_, _>>()
            .map_err(not_pem(certificate, "certificate"))?;
        let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(not_pem(key, "private key"))?;
        let Some(first) = chain.first() else {
            let detail = "the file has other PEM sections".to_owned();
            return Err(TlsError::NotPem { path: certificate.to_owned(), what: "certificate", detail });
        };
        let fingerprint = fingerprint(first)
            .map_err(|error| TlsError::Unreadable { path: certificate.to_owned(), detail: error.to_string() })?;
        let mismatch = |error: rustls::Error| TlsError::Mismatch(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let current = CertifiedKey::from_der(chain, private, &provider).map_err(mismatch)?;
        let served = Arc::new(ServedCertificate {
            files: (certificate.to_owned(), key.to_owned()),
            current: RwLock::new(Arc::new(current)),
        });
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder.map_err(mismatch)?.with_no_client_auth().with_cert_resolver(served.clone());
        Ok(TlsIdentity { config: Arc::new(config), served, fingerprint })
    }

    /// Serves the files as they are now, if they have changed; gives the new fingerprint then. Connections that are
    /// open stay as they are.
    pub fn reload(&self) -> Result<Option<String>, TlsError> {
        let (certificate, key) = &self.served.files;
        let read = TlsIdentity::from_files(certificate, key)?;
        let renewed = read.served.current();
        if renewed.cert == self.served.current().cert {
            return Ok(None);
        }
        *self.served.current.write().unwrap_or_else(PoisonError::into_inner) = renewed;
        Ok(Some(read.fingerprint))
    }

    /// SHA-256 of the public key (its SubjectPublicKeyInfo), `AB:CD:…`. It stays when a certificate is renewed with the
    /// same key.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// What is wrong with the certificate for clients that check it, at `now` in Unix time: it is not valid, or names none
    /// of `hosts`, under which the gateway is reached. Empty where nothing is.
    pub fn problems(&self, hosts: &[String], now: Duration) -> Vec<String> {
        let current = self.served.current();
        let Some(Ok(certificate)) = current.cert.first().map(ParsedCertificate::try_from) else { return Vec::new() };
        let (starts, ends) = validity(&certificate);
        let day = |time: Duration| jiff::Timestamp::from_second(time.as_secs().try_into().unwrap_or(i64::MAX));
        let day = |time| day(time).map_or("?".to_owned(), |time| time.strftime("%Y-%m-%d").to_string());
        let mut problems = Vec::new();
        match (starts, ends) {
            (_, Some(ends)) if ends < now => problems.push(format!("expired on {}", day(ends))),
            (Some(starts), _) if now < starts => {
                problems.push(format!("is not valid before {}; check the clock of this machine", day(starts)))
            }
            (_, Some(ends)) if ends < now + EXPIRES_SOON => problems.push(format!("expires on {}", day(ends))),
            _ => {}
        }
        let reached_as: Vec<ServerName<'static>> = hosts.iter().filter_map(|host| server_name(host)).collect();
        let refusals: Vec<rustls::Error> =
            reached_as.iter().filter_map(|name| verify_server_name(&certificate, name).err()).collect();
        if let Some(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. })) =
            refusals.first().filter(|_| refusals.len() == reached_as.len())
        {
            let names: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
            problems.push(format!(
                "is for {}, but clients reach this gateway as {}; get one that names these, or list its names in `allowed-hosts`",
                if names.is_empty() { "no name".to_owned() } else { names.join(", ") },
                hosts.join(", ")
            ));
        }
        problems
    }

    pub fn server_config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    /// The stored certificate if it can still be used. Otherwise its hosts are added to `wanted`, so that starting once
    /// with fewer hosts does not lose the others.
    fn kept(state_dir: &Path, wanted: &mut BTreeSet<String>) -> Option<TlsIdentity> {
        let record: CertificateRecord = serde_json::from_slice(&fs::read(state_dir.join(RECORD)).ok()?).ok()?;
        let is_valid = record.expires_unix_seconds > (now() + MARGIN).as_secs();
        let names_all = wanted.is_subset(&record.hosts);
        wanted.extend(record.hosts);
        if !is_valid || !names_all {
            return None;
        }
        TlsIdentity::from_files(&state_dir.join(CERTIFICATE), &state_dir.join(KEY)).ok()
    }

    fn create(state_dir: &Path, hosts: BTreeSet<String>) -> Result<TlsIdentity, TlsError> {
        let failed = |error: rcgen::Error| TlsError::Create(error.to_string());
        let mut params = rcgen::CertificateParams::default();
        for host in &hosts {
            let name = match host.parse() {
                Ok(address) => rcgen::SanType::IpAddress(address),
                Err(_) => rcgen::SanType::DnsName(
                    host.as_str().try_into().map_err(|_: rcgen::Error| TlsError::Host(host.clone()))?,
                ),
            };
            params.subject_alt_names.push(name);
        }
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        // A day back, because the clock of a phone or board may be a little behind.
        params.not_before = epoch + now().saturating_sub(Duration::from_secs(24 * 3600));
        params.not_after = epoch + now() + LIFETIME;
        params.distinguished_name.push(rcgen::DnType::CommonName, "sinew");
        params.extended_key_usages.push(rcgen::ExtendedKeyUsagePurpose::ServerAuth);
        // The key stays, and with it the fingerprint that clients know.
        let kept = fs::read_to_string(state_dir.join(KEY)).ok().and_then(|pem| rcgen::KeyPair::from_pem(&pem).ok());
        let key = kept.map_or_else(rcgen::KeyPair::generate, Ok).map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;

        let record = CertificateRecord { hosts, expires_unix_seconds: (now() + LIFETIME).as_secs() };
        let record = serde_json::to_vec_pretty(&record).map_err(|error| TlsError::Create(error.to_string()))?;
        fs::create_dir_all(state_dir).map_err(|source| TlsError::File { path: state_dir.to_owned(), source })?;
        write(&state_dir.join(KEY), key.serialize_pem().as_bytes())?;
        write(&state_dir.join(CERTIFICATE), certificate.pem().as_bytes())?;
        write(&state_dir.join(RECORD), &record)?;
        TlsIdentity::from_files(&state_dir.join(CERTIFICATE), &state_dir.join(KEY))
    }
}

fn fingerprint(certificate: &CertificateDer<'_>) -> Result<String, rustls::Error> {
    let digest = Sha256::digest(ParsedCertificate::try_from(certificate)?.subject_public_key_info());
    Ok(digest.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":"))
}

/// From when to when a certificate is valid, in Unix time. Only a check that fails names these times, so it is checked
/// for the beginning and the end of all times; without authorities, the checks go no further.
fn validity(certificate: &ParsedCertificate<'_>) -> (Option<Duration>, Option<Duration>) {
    let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms.all;
    let check = |time: u64| {
        let time = UnixTime::since_unix_epoch(Duration::from_secs(time));
        let checked =
            verify_server_cert_signed_by_trust_anchor(certificate, &RootCertStore::empty(), &[], time, algorithms);
        match checked {
            Err(rustls::Error::InvalidCertificate(problem)) => Some(problem),
            _ => None,
        }
    };
    let time = |time: UnixTime| Duration::from_secs(time.as_secs());
    let starts = match check(0) {
        Some(CertificateError::NotValidYetContext { not_before, .. }) => Some(time(not_before)),
        _ => None,
    };
    let ends = match check(u64::MAX) {
        Some(CertificateError::ExpiredContext { not_after, .. }) => Some(time(not_after)),
        _ => None,
    };
    (starts, ends)
}

/// The host of `HOST`, `HOST:PORT` or `[ADDRESS]:PORT` as certificates name it.
fn server_name(host: &str) -> Option<ServerName<'static>> {
    let without_port = || host.rsplit_once(':').map(|(host, _)| host);
    let name = |host: &str| ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).ok();
    name(host).or_else(|| name(without_port()?))
}

/// The name inside `DnsName("a.example")` or `IpAddress(10.0.0.1)`, as the TLS library writes what a certificate has.
fn plain_name(presented: &str) -> &str {
    let inside = presented.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.unwrap_or(presented).trim_matches('"')
}

pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::File { path: path.to_owned(), source })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), TlsError> {
    write_private_synced(path, bytes).map_err(|source| TlsError::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_certificate_is_reused_while_it_names_every_host() {
        let dir = tempfile::tempdir().expect("a directory");
        let first = TlsIdentity::self_signed(dir.path(), &hosts(&["192.168.1.5", "lab.local"])).expect("created");
        let again = TlsIdentity::self_signed(dir.path(), &hosts(&["lab.local"])).expect("reused");
        let certificate = |identity: &TlsIdentity| identity.served.current().cert.clone();
        assert_eq!(certificate(&first), certificate(&again));
        let more = TlsIdentity::self_signed(dir.path(), &hosts(&["10.0.0.1"])).expect("created again");
        assert_ne!(certificate(&first), certificate(&more));
        assert_eq!(first.fingerprint(), more.fingerprint(), "the key is the same, so that no client has to change");
        let all = TlsIdentity::self_signed(dir.path(), &hosts(&["lab.local", "10.0.0.1"])).expect("reused");
        assert_eq!(certificate(&all), certificate(&more), "the earlier hosts are still named");
    }

    #[test]
    fn an_expired_future_or_wrongly_named_certificate_is_reported() {
        let dir = tempfile::tempdir().expect("a directory");
        let identity = TlsIdentity::self_signed(dir.path(), &hosts(&["lab.local"])).expect("created");
        let problems = |names: &[&str], now: Duration| identity.problems(&hosts(names), now).join("; ");
        let day = Duration::from_secs(24 * 3600);
        assert_eq!(problems(&["lab.local", "10.0.0.1"], now()), "");
        assert_eq!(problems(&[], now()), "", "nobody else reaches it");
        assert_eq!(problems(&["lab.local:7300"], now()), "");
        assert!(problems(&[], now() + LIFETIME + day).starts_with("expired on 20"));
        assert!(problems(&[], now() + LIFETIME - day).starts_with("expires on 20"));
        assert!(problems(&[], now() - 2 * day).starts_with("is not valid before 20"));
        let named = problems(&["sinew.example", "[fd00::1]:7300"], now());
        assert!(
            named.contains("lab.local") && named.contains("127.0.0.1") && named.contains("sinew.example"),
            "{named}"
        );
        assert!(!named.contains('"') && !named.contains('('), "{named}");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_key() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        TlsIdentity::self_signed(dir.path(), &[]).expect("created");
        let mode = fs::metadata(dir.path().join(KEY)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn renewed_files_are_served_and_damaged_ones_are_not() {
        let (dir, other) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let identity = TlsIdentity::self_signed(dir.path(), &[]).expect("created");
        assert_eq!(identity.reload().expect("readable"), None, "nothing has changed");
        let renewed = TlsIdentity::self_signed(other.path(), &[]).expect("created");
        for file in [CERTIFICATE, KEY] {
            fs::copy(other.path().join(file), dir.path().join(file)).expect("copied");
        }
        assert_eq!(identity.reload().expect("readable").as_deref(), Some(renewed.fingerprint()));
        fs::write(dir.path().join(CERTIFICATE), "half a file").expect("written");
        assert!(identity.reload().is_err());
        assert_eq!(identity.served.current().cert, renewed.served.current().cert, "the last good one is served");
    }

    #[test]
    fn a_damaged_or_foreign_file_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let odd = dir.path().join("odd.pem");
        fs::write(&odd, "hello").expect("written");
        let error = TlsIdentity::from_files(&odd, &odd).err().expect("refused").to_string();
        assert!(error.contains("odd.pem"), "{error}");
        let missing = TlsIdentity::from_files(&dir.path().join("none"), &odd).err().expect("refused").to_string();
        assert!(missing.contains("none"), "{missing}");
    }

    #[test]
    fn a_host_that_a_certificate_cannot_name_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let error = TlsIdentity::self_signed(dir.path(), &hosts(&["büro"])).err().expect("refused").to_string();
        assert!(error.contains("büro"), "{error}");
    }
}
