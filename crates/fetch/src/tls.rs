//! Whom we trust over TLS: the authorities of the system, read once.

use std::sync::{Arc, OnceLock};

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

static SYSTEM: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();

pub(crate) fn system_trust() -> Result<Arc<ClientConfig>, String> {
    SYSTEM.get_or_init(read).clone()
}

fn read() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err("the system has no certificates to trust; install its package ca-certificates".to_owned());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
