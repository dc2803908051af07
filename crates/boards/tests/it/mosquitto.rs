//! A real broker: Mosquitto on a port of its own, with a configuration of its own, ended with the test.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::support::soon;

pub struct Mosquitto {
    pub address: SocketAddr,
    folder: tempfile::TempDir,
    process: Child,
}

impl Mosquitto {
    /// Lets everybody in.
    pub async fn open() -> Mosquitto {
        Mosquitto::open_with("allow_anonymous true\n", |_| {}).await
    }

    /// `lines` follow the listener's in the configuration, where `{folder}` is a folder that `prepare` may fill.
    pub async fn open_with(lines: &str, prepare: impl FnOnce(&Path)) -> Mosquitto {
        let folder = tempfile::tempdir().expect("a folder");
        prepare(folder.path());
        let free = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = free.local_addr().expect("bound");
        drop(free);
        let lines = lines.replace("{folder}", &folder.path().display().to_string());
        // Root drops its rights otherwise, and with them the folder.
        let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        let text = format!("user {user}\nlistener {} 127.0.0.1\n{lines}", address.port());
        std::fs::write(folder.path().join("mosquitto.conf"), text).expect("written");
        let process = start(folder.path());
        let broker = Mosquitto { address, folder, process };
        broker.is_there().await;
        broker
    }

    pub fn url(&self) -> String {
        format!("mqtt://{}", self.address)
    }

    /// Ends it without a word.
    pub async fn stop(&mut self) {
        self.process.kill().await.expect("killed");
    }

    pub async fn start(&mut self) {
        self.process = start(self.folder.path());
        self.is_there().await;
    }

    async fn is_there(&self) {
        let there = async {
            while TcpStream::connect(self.address).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        soon(there).await;
    }
}

fn start(folder: &Path) -> Child {
    let program =
        ["/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto"].into_iter().find(|path| Path::new(path).exists());
    Command::new(program.unwrap_or("mosquitto"))
        .arg("-c")
        .arg(folder.join("mosquitto.conf"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("mosquitto is needed for this test; scripts/install installs it")
}
