//! The TLS certificate of the gateway: a self-signed one, or one from files.
//!
//! A self-signed certificate is created when needed, kept in the state directory and reused while it is valid and names
//! every wanted host. The device listener uses the same certificate.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Two years: Apple's systems refuse certificates that are valid for more than 825 days.
const LIFETIME: Duration = Duration::from_secs(730 * 24 * 3600);
/// A certificate is renewed this long before it expires, because a gateway may run for weeks.
const MARGIN: Duration = Duration::from_secs(60 * 24 * 3600);

const CERTIFICATE: &str = "tls-cert.pem";
const KEY: &str = "tls-key.pem";
const RECORD: &str = "tls.json";

/// A certificate chain and its key, ready to serve.
#[derive(Clone)]
pub struct TlsIdentity {
    config: Arc<ServerConfig>,
    served: Arc<ServedCertificate>,
    fingerprint: String,
    certificate: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: the file has no {what} in PEM form ({detail}); use a PEM file that begins with -----BEGIN", path.display())]
    NotPem { path: PathBuf, what: &'static str, detail: String },
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
    fingerprint: String,
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
        let Some(first) = chain.first().map(|first| first.to_vec()) else {
            let detail = "the file has other PEM sections".to_owned();
            return Err(TlsError::NotPem { path: certificate.to_owned(), what: "certificate", detail });
        };
        let mismatch = |error: rustls::Error| TlsError::Mismatch(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let current = CertifiedKey::from_der(chain, private, &provider).map_err(mismatch)?;
        let served = Arc::new(ServedCertificate {
            files: (certificate.to_owned(), key.to_owned()),
            current: RwLock::new(Arc::new(current)),
        });
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder.map_err(mismatch)?.with_no_client_auth().with_cert_resolver(served.clone());
        Ok(TlsIdentity { config: Arc::new(config), served, fingerprint: fingerprint(&first), certificate: first })
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

    /// SHA-256 of the certificate, as browsers show it: `AB:CD:…`.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The certificate in DER form, for clients that compare fingerprints.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
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
        let identity = TlsIdentity::from_files(&state_dir.join(CERTIFICATE), &state_dir.join(KEY)).ok()?;
        (identity.fingerprint == record.fingerprint).then_some(identity)
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
        let key = rcgen::KeyPair::generate().map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;

        let record = CertificateRecord {
            hosts,
            expires_unix_seconds: (now() + LIFETIME).as_secs(),
            fingerprint: fingerprint(certificate.der()),
        };
        let record = serde_json::to_vec_pretty(&record).map_err(|error| TlsError::Create(error.to_string()))?;
        fs::create_dir_all(state_dir).map_err(|source| TlsError::File { path: state_dir.to_owned(), source })?;
        write_private(&state_dir.join(KEY), key.serialize_pem().as_bytes())?;
        write_private(&state_dir.join(CERTIFICATE), certificate.pem().as_bytes())?;
        write_private(&state_dir.join(RECORD), &record)?;
        TlsIdentity::from_files(&state_dir.join(CERTIFICATE), &state_dir.join(KEY))
    }
}

fn fingerprint(der: &[u8]) -> String {
    let digest = Sha256::digest(der);
    digest.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::File { path: path.to_owned(), source })
}

/// Writes a temporary file and renames it, so that the file is never incomplete or readable by others.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), TlsError> {
    let write = || -> io::Result<()> {
        let temporary = path.with_extension("new");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&temporary)?;
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|source| TlsError::File { path: path.to_owned(), source })
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
        assert_eq!(first.fingerprint(), again.fingerprint());
        let more = TlsIdentity::self_signed(dir.path(), &hosts(&["10.0.0.1"])).expect("created again");
        assert_ne!(first.fingerprint(), more.fingerprint());
        let all = TlsIdentity::self_signed(dir.path(), &hosts(&["lab.local", "10.0.0.1"])).expect("reused");
        assert_eq!(all.fingerprint(), more.fingerprint(), "the earlier hosts are still named");
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
