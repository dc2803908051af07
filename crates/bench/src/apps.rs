//! What it costs to look through the apps of a phone: 200 packages on a virtual one, behind the real adb server.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sinew_apps::{AppWatcher, WatchSettings};
use sinew_phones::adb::{AdbPhone, AdbServer};
use sinew_phones::{AdbAccess, AgentSource, Phone, Standby};
use sinew_sim::phone::{Handset, PhoneClock, PhoneSetup, adbd, shopping, virtual_app};
use sinew_tool::{Announce, DeviceEvent};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::BenchPlan;
use crate::Error;
use crate::load::{bench_error, percentile};
use crate::process::Scratch;
use crate::report::{Figure, Report};

/// As many as a phone in use has, those that came with it included.
const PACKAGES: usize = 200;

/// Larger than what is read of its end, so that every manifest takes a read of its own.
const BALLAST: usize = 200 << 10;

pub(crate) async fn measure(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let home = scratch.folder("adb");
    let io = |error: std::io::Error| bench_error(format!("the apps of a phone: {error}"));
    std::fs::create_dir_all(&home).map_err(io)?;
    let port = TcpListener::bind("127.0.0.1:0").await.and_then(|listener| listener.local_addr()).map_err(io)?.port();
    let mut adb = tokio::process::Command::new("adb");
    adb.args(["-P", &port.to_string(), "nodaemon", "server"]).env("HOME", &home).kill_on_drop(true);
    adb.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(_adb) = adb.spawn() else {
        report.skip("the apps of a phone, because adb is not there".to_owned());
        return Ok(());
    };
    let server = AdbServer::tcp("127.0.0.1", port);
    let started = Instant::now();
    while server.version().await.is_err() {
        if started.elapsed() > Duration::from_secs(20) {
            return Err(bench_error("the adb server does not answer"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let handset = Handset::new(PhoneSetup::default(), PhoneClock::Virtual);
    handset.install(shopping());
    for number in 1..PACKAGES {
        handset.install(virtual_app::plain(&format!("com.example.app{number}"), BALLAST));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(io)?;
    let address = listener.local_addr().map_err(io)?.to_string();
    let shutdown = CancellationToken::new();
    let _ended = shutdown.clone().drop_guard();
    let serving = tokio::spawn(adbd::run(listener, handset, shutdown.clone()));
    let failed = |error: String| bench_error(format!("the apps of a phone: {error}"));
    server.connect_phone(&address).await.map_err(|error| failed(error.to_string()))?;

    let (mut cold, mut again, mut warm) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        let phone = open(&server, &address).await?;
        let agent = Standby::new(phone.transport().clone(), AgentSource::Off);
        let access = Arc::new(AdbAccess::new(phone.about(), phone.transport().clone(), agent));
        let settings =
            WatchSettings { cache: Some(scratch.folder(&format!("apps-{round}"))), ..WatchSettings::default() };
        let (send, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let announce: Announce = Arc::new(move |event| drop(send.send(event)));
        let mut first = AppWatcher::new(access.clone(), settings.clone(), announce.clone());
        cold.push(timed(&mut first).await?);
        again.push(timed(&mut first).await?);
        warm.push(timed(&mut AppWatcher::new(access, settings, announce)).await?);
        for _ in 0..2 {
            if !matches!(heard.try_recv(), Ok(DeviceEvent::Joined(_))) {
                return Err(failed("its one app with tools was not found".to_owned()));
            }
        }
    }
    shutdown.cancel();
    let _ = serving.await;
    for (key, label, times, most) in [
        ("apps_cold_ms", "phone: 200 packages looked through for tools", cold, 2000.0),
        ("apps_warm_ms", "phone: the same after a restart of the gateway", warm, 100.0),
        ("apps_again_ms", "phone: the same while nothing changed", again, 100.0),
    ] {
        let middle = percentile(&mut times.clone(), 0.5);
        report.push(Figure::at_most(key, label, middle, "ms", most).with(times));
    }
    Ok(())
}

/// The phone, once the server has made its acquaintance: it calls one that has just come offline for a moment.
async fn open(server: &AdbServer, address: &str) -> Result<AdbPhone, Error> {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        match AdbPhone::open(server, address).await {
            Ok(phone) => return Ok(phone),
            Err(error) if Instant::now() > patience => {
                return Err(bench_error(format!("the apps of a phone: {error}")));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Milliseconds of one look.
async fn timed(follower: &mut AppWatcher) -> Result<f64, Error> {
    let started = Instant::now();
    follower.refresh().await.map_err(|error| bench_error(format!("the apps of a phone: {error}")))?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}
