//! Starts virtual phones and serves them to adb.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::adbd;
use super::agent::AgentStandIn;
use super::android::Android;
use super::direct::VirtualPhone;
use super::handset::PhoneClock;
use super::setup::{LockScreen, PhoneSetup};
use super::shopping::shopping;
use super::virtual_app::companion;

/// Which virtual phones to start.
#[derive(Clone)]
pub struct PhoneConfig {
    /// Where the first phone waits for `adb connect`; the next ones on every second port after it, as
    /// emulators do. Port 0 chooses free ones. `None`: no adb.
    pub adb: Option<SocketAddr>,
    pub android: Android,
    pub count: usize,
    /// How long every command takes at least.
    pub latency: Duration,
    pub lock: LockScreen,
    pub clock: PhoneClock,
    /// What answers when the agent is started on a phone; `None`: no Java runs there.
    pub agent: Option<AgentStandIn>,
}

impl Default for PhoneConfig {
    fn default() -> PhoneConfig {
        PhoneConfig {
            adb: Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5555)),
            android: Android::default(),
            count: 1,
            latency: Duration::ZERO,
            lock: LockScreen::Swipe,
            clock: PhoneClock::Real,
            agent: None,
        }
    }
}

/// Running virtual phones and their addresses.
pub struct RunningPhones {
    pub phones: Vec<VirtualPhone>,
    listeners: Vec<TcpListener>,
}

impl RunningPhones {
    /// Starts the phones and their listeners.
    pub async fn open(config: &PhoneConfig) -> io::Result<RunningPhones> {
        let mut running = RunningPhones { phones: Vec::new(), listeners: Vec::new() };
        for index in 0..config.count {
            let phone = VirtualPhone::new(setup(config, index, serial(config, index)), config.clock);
            phone.handset.set_latency(config.latency);
            phone.handset.install(shopping());
            phone.handset.install(companion());
            phone.handset.set_agent(config.agent.clone());
            running.phones.push(phone);
            if let Some(first) = config.adb {
                let step = u16::try_from(index * 2).unwrap_or(u16::MAX);
                let port = match first.port() {
                    0 => Some(0),
                    port => port.checked_add(step),
                };
                let port = port.ok_or_else(|| io::Error::other(format!("no port is left for phone {}", index + 1)))?;
                let address = SocketAddr::new(first.ip(), port);
                let bound = TcpListener::bind(address).await;
                running.listeners.push(bound.map_err(|error| {
                    io::Error::new(error.kind(), format!("the virtual phone cannot listen on {address}: {error}"))
                })?);
            }
        }
        Ok(running)
    }

    /// What to give to `adb connect`, phone by phone.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Serves the phones until told to stop.
    pub async fn run(self, shutdown: CancellationToken) -> io::Result<()> {
        let mut tasks = JoinSet::new();
        for (phone, listener) in self.phones.into_iter().zip(self.listeners) {
            tasks.spawn(adbd::run(listener, phone.handset, shutdown.clone()));
        }
        if tasks.is_empty() {
            shutdown.cancelled().await;
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(io::Error::other)??;
        }
        Ok(())
    }
}

/// Starts phones and serves them until shutdown.
pub async fn run(config: PhoneConfig, shutdown: CancellationToken) -> io::Result<()> {
    let running = RunningPhones::open(&config).await?;
    for address in running.addresses() {
        tracing::info!(%address, android = %config.android, "a virtual phone waits for `adb connect`");
    }
    running.run(shutdown).await
}

/// Its own for each phone that adb can reach: phones of other processes and computers have others, and a phone that is
/// started again at the same port is the same.
fn serial(config: &PhoneConfig, index: usize) -> String {
    let number = index + 1;
    let Some(first) = config.adb else { return format!("VIRTUAL{number:04}") };
    let mut hasher = DefaultHasher::new();
    match first.port() {
        0 => (std::process::id(), SystemTime::now(), number).hash(&mut hasher),
        port => {
            (std::fs::read_to_string("/etc/hostname").unwrap_or_default(), first.ip(), port, number).hash(&mut hasher)
        }
    }
    format!("VIRTUAL{:08X}", hasher.finish() as u32)
}

fn setup(config: &PhoneConfig, index: usize, serial: String) -> PhoneSetup {
    let number = index + 1;
    let fresh = PhoneSetup::default();
    let booted_at = match config.clock {
        PhoneClock::Virtual => fresh.booted_at,
        PhoneClock::Real => {
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(fresh.booted_at, |since| since.as_millis() as i64)
        }
    };
    PhoneSetup {
        android: config.android,
        serial,
        model: if config.count > 1 { format!("Virtual Phone {number}") } else { fresh.model.clone() },
        lock: config.lock.clone(),
        booted_at,
        ..fresh
    }
}
