//! A real NATS server on a port of its own, with a store of its own, ended with the test.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::support::soon;

pub struct NatsServer {
    pub address: SocketAddr,
    folder: tempfile::TempDir,
    process: Option<Child>,
}

impl NatsServer {
    pub async fn open() -> NatsServer {
        let mut server = NatsServer::planned().await;
        server.start().await;
        server
    }

    /// One that does not run yet.
    pub async fn planned() -> NatsServer {
        let free = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = free.local_addr().expect("bound");
        NatsServer { address, folder: tempfile::tempdir().expect("a folder"), process: None }
    }

    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    pub async fn start(&mut self) {
        self.process = Some(start(self.address, self.folder.path()));
        let address = self.address;
        soon("the NATS server listens", || async move { TcpStream::connect(address).await.is_ok() }).await;
    }

    /// Ends it without a word.
    pub async fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().await.expect("killed");
        }
    }

    /// Loses everything that it kept.
    pub fn lose_store(&mut self) {
        assert!(self.process.is_none(), "it runs");
        self.folder = tempfile::tempdir().expect("a folder");
    }

    /// A client of its own.
    pub async fn client(&self) -> async_nats::Client {
        let connecting = async_nats::ConnectOptions::new().connection_timeout(Duration::from_secs(20));
        connecting.connect(self.url()).await.expect("the server runs")
    }
}

fn start(address: SocketAddr, folder: &Path) -> Child {
    let program =
        ["/usr/sbin/nats-server", "/usr/local/bin/nats-server"].into_iter().find(|path| Path::new(path).exists());
    Command::new(program.unwrap_or("nats-server"))
        .args(["-js", "-a", "127.0.0.1", "-p", &address.port().to_string(), "-sd"])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("nats-server is needed for this test; scripts/install installs it")
}
