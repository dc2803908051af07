//! What streams from and to phones: a screen that is watched by several people, and an app that is installed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sinew_gateway::{Gateway, Settings};
use sinew_phones::control::install::{self, ApkSet};
use sinew_phones::image::{JpegOptions, finish};
use sinew_phones::{Capabilities, Image, Phone, PhoneDevice, PhoneError, PhoneIdentity, Profile, Work};
use sinew_sim::phone::{Handset, PhoneClock, PhoneSetup, virtual_app};
use sinew_tool::{DeviceEvent, Silent};

use crate::BenchPlan;
use crate::Error;
use crate::endpoint::Endpoint;
use crate::load::{HttpConnection, bench_error, percentile};
use crate::process::{Scratch, TOKEN, own_processor_time};
use crate::report::{Figure, Report};
use crate::virtual_adb::VirtualAdb;

const VIEWERS: usize = 10;
const SIDE: u32 = 540;

pub(crate) async fn measure(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    live_view(plan, report).await?;
    installing(plan, scratch, report).await
}

/// A phone whose agent sends a different picture each time, made before the measurement.
struct MovingPhone {
    pictures: Vec<Vec<u8>>,
    next: AtomicUsize,
}

impl Phone for MovingPhone {
    fn about(&self) -> PhoneIdentity {
        PhoneIdentity { serial: "moving".to_owned(), model: "moving".to_owned(), ..PhoneIdentity::default() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn screenshot(&self) -> Work<'_, Image> {
        Box::pin(async { Ok(coloured(0)) })
    }

    fn small_screenshot(&self, _: u32, _: u8) -> Work<'_, Vec<u8>> {
        let nth = self.next.fetch_add(1, Ordering::Relaxed) % self.pictures.len();
        Box::pin(std::future::ready(Ok(self.pictures[nth].clone())))
    }
}

/// A screen with some structure in it.
fn coloured(shade: u32) -> Image {
    let (width, height) = (243, SIDE);
    let pixel = |x: u32, y: u32| [(x + shade * 20) as u8, (y ^ x) as u8, (y / 3 + shade) as u8, 255];
    let pixels = (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect();
    Image::Rgba { width, height, pixels }
}

async fn live_view(plan: &BenchPlan, report: &mut Report) -> Result<(), Error> {
    let failed = |error: PhoneError| bench_error(format!("the pictures of a screen: {error}"));
    let options = JpegOptions { quality: 60, ..JpegOptions::default() };
    let pictures = (0..20).map(|shade| finish(coloured(shade), &options).map(|jpeg| jpeg.bytes));
    let pictures = pictures.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let settings = Settings { token: Some(TOKEN.to_owned()), ..Settings::default() };
    let gateway = Gateway::open(settings).map_err(|error| bench_error(format!("no gateway: {error}")))?;
    let phone = PhoneDevice::new(MovingPhone { pictures, next: AtomicUsize::new(0) }, Profile::Full);
    gateway.apply(DeviceEvent::Joined(Arc::new(phone)));
    let endpoint = Endpoint::open(&gateway).await?;
    let time = plan.time.max(Duration::from_secs(2));
    // Opening a view is a call of its own with a whole picture; what is measured is watching.
    let mut viewers = Vec::new();
    for _ in 0..VIEWERS {
        let mut viewer = Viewer::open(endpoint.address).await?;
        viewer.next().await?;
        viewers.push(viewer);
    }
    let (used, began) = (own_processor_time()?, Instant::now());
    let watching = viewers.into_iter().map(|mut viewer| async move {
        let mut seen = 0u32;
        while began.elapsed() < time {
            seen += u32::from(viewer.next().await?);
        }
        Ok::<u32, Error>(seen)
    });
    let seen = futures_util::future::try_join_all(watching).await?;
    let seconds = began.elapsed().as_secs_f64();
    let share = own_processor_time()?.saturating_sub(used).as_secs_f64() / seconds * 100.0;
    endpoint.close().await?;
    gateway.close().await;
    let slowest = f64::from(seen.into_iter().min().unwrap_or_default()) / seconds;
    let label = format!("phone: pictures a second for each of {VIEWERS} viewers at {SIDE} pixels");
    report.push(Figure::at_least("live_pictures", &label, slowest, "/s", 8.0));
    let label = "phone: share of a core for them, gateway and viewers";
    report.push(Figure::at_most("live_cpu_percent", label, share, "%", 30.0));
    Ok(())
}

/// Somebody who watches the moving phone over HTTP.
struct Viewer {
    connection: HttpConnection,
    address: SocketAddr,
    /// The tag of the last picture.
    known: Option<String>,
}

impl Viewer {
    async fn open(address: SocketAddr) -> Result<Viewer, Error> {
        Ok(Viewer { connection: HttpConnection::open(address).await?, address, known: None })
    }

    /// Waits for the next picture that differs from the last one; `false` where there was none for a while.
    async fn next(&mut self) -> Result<bool, Error> {
        let address = self.address;
        let known = self.known.iter().map(|tag| format!("If-None-Match: {tag}\r\n")).collect::<String>();
        let request = format!(
            "GET /api/v1/phones/moving/screen?max_side={SIDE}&quality=60 HTTP/1.1\r\nHost: {address}\r\n\
             Authorization: Bearer {TOKEN}\r\n{known}\r\n"
        );
        let head = self.connection.head(request.as_bytes()).await?;
        if head.starts_with("HTTP/1.1 304") {
            return Ok(false);
        }
        let tag =
            head.lines().find_map(|line| line.strip_prefix("etag: ")).filter(|_| head.starts_with("HTTP/1.1 200"));
        let tag = tag.ok_or_else(|| bench_error(format!("watching failed: {head}")))?;
        self.known = Some(tag.to_owned());
        Ok(true)
    }
}

async fn installing(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let handset = Handset::new(PhoneSetup::default(), PhoneClock::Virtual);
    let Some(adb) = VirtualAdb::open(scratch.folder("adb-install"), handset).await? else {
        report.skip("installing an app, because adb is not there".to_owned());
        return Ok(());
    };
    let phone = adb.phone().await?;
    let failed = |error: String| bench_error(format!("installing an app: {error}"));
    let io = |error: std::io::Error| failed(error.to_string());

    let megabytes = if plan.is_quick() { 4 } else { 100 };
    let file = adb.home.join("app.apk");
    std::fs::write(&file, virtual_app::plain("com.example.large", megabytes << 20).apk).map_err(io)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds.max(1) {
        let started = Instant::now();
        let status = adb.command().args(["install", "-r"]).arg(&file).status().await.map_err(io)?;
        if !status.success() {
            return Err(failed(format!("`adb install` ended with {status}")));
        }
        theirs.push(started.elapsed().as_secs_f64());
        let started = Instant::now();
        let apks = ApkSet::open(&file).await.map_err(|error| failed(error.to_string()))?;
        install::install(&phone, apks, &Silent).await.map_err(|error| failed(error.to_string()))?;
        ours.push(started.elapsed().as_secs_f64());
    }
    adb.close().await;
    let (ours, theirs) = (percentile(&mut ours, 0.5), percentile(&mut theirs, 0.5));
    report.push(Figure::plain("install_s", &format!("phone: installing {megabytes} MB"), ours, "s"));
    report.push(Figure::at_least("install_of_adb", "phone: the speed of `adb install`, share", theirs / ours, "", 0.8));
    Ok(())
}
