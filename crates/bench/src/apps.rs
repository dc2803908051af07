//! What it costs to look through the apps of a phone: 200 packages on a virtual one, behind the real adb server.

use std::sync::Arc;
use std::time::Instant;

use sinew_apps::{AppWatcher, WatchSettings};
use sinew_phones::{AdbAccess, AgentSource, Phone, Standby};
use sinew_sim::phone::{Handset, PhoneClock, PhoneSetup, shopping, virtual_app};
use sinew_tool::{Announce, DeviceEvent};

use crate::BenchPlan;
use crate::Error;
use crate::load::{bench_error, percentile};
use crate::process::Scratch;
use crate::report::{Figure, Report};
use crate::virtual_adb::VirtualAdb;

/// As many as a phone in use has, those that came with it included.
const PACKAGES: usize = 200;

/// Larger than what is read of its end, so that every manifest takes a read of its own.
const BALLAST: usize = 200 << 10;

pub(crate) async fn measure(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let handset = Handset::new(PhoneSetup::default(), PhoneClock::Virtual);
    handset.install(shopping());
    for number in 1..PACKAGES {
        handset.install(virtual_app::plain(&format!("com.example.app{number}"), BALLAST));
    }
    let Some(adb) = VirtualAdb::open(scratch.folder("adb"), handset).await? else {
        report.skip("the apps of a phone, because adb is not there".to_owned());
        return Ok(());
    };
    let (mut cold, mut again, mut warm) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        let phone = adb.phone().await?;
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
                return Err(bench_error("the apps of a phone: its one app with tools was not found"));
            }
        }
    }
    adb.close().await;
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

/// Milliseconds of one look.
async fn timed(follower: &mut AppWatcher) -> Result<f64, Error> {
    let started = Instant::now();
    follower.refresh().await.map_err(|error| bench_error(format!("the apps of a phone: {error}")))?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}
