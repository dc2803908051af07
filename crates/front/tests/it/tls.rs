//! The endpoints over TLS.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use sinew_front::{FrontSettings, TlsIdentity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::server::TestServer;

#[tokio::test]
async fn the_server_uses_tls_with_a_self_signed_certificate() {
    let place = tempfile::tempdir().unwrap();
    let identity = TlsIdentity::self_signed(place.path(), &["lab.local".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(place.path().join("tls-cert.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let settings = FrontSettings { allowed_hosts: vec!["lab.local".to_owned()], ..FrontSettings::default() };
    let server = TestServer::with(settings, Some(identity)).await;
    for name in ["localhost", "127.0.0.1", "lab.local"] {
        let socket = TcpStream::connect(server.address).await.unwrap();
        let mut socket = connector.connect(ServerName::try_from(name).unwrap(), socket).await.unwrap();
        let request = format!("GET /health HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{name}: {answer}");
    }
    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}").await.unwrap();
    let mut answer = String::new();
    plain.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("use https://"), "{answer}");
    let socket = TcpStream::connect(server.address).await.unwrap();
    assert!(connector.connect(ServerName::try_from("evil.example").unwrap(), socket).await.is_err());
}
