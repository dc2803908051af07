//! The console: how long its pages take over many devices and calls, how large the first load is, and what consoles cost
//! that are open while calls run.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use serde_json::json;
use sinew_gateway::{Gateway, Principal, Role, Settings};
use sinew_tool::{
    Admission, BoxFuture, Call, Device, DeviceEvent, DeviceInfo, DeviceKey, ErrorKind, Family, FamilyName, Outcome,
    Reach, Status, TextTrust, Tool, ToolError, Toolset,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::load::{self, HttpConnection, bench_error, find, percentile};
use crate::process::{self, Scratch, TOKEN};
use crate::report::{Figure, Report};
use crate::{BenchPlan, CONNECTIONS, Error, PUBLIC_TOOL, ready_boards, request};

/// Calls that record at the same time while the audit is filled.
const WRITERS: usize = 500;
/// Consoles that are open while calls run.
const CONSOLES: usize = 20;
/// Calls a second meanwhile.
const CALLS: u32 = 1_000;
/// A page asks again when something changed, and not more often.
const REFRESH: Duration = Duration::from_secs(1);

/// The pages with what their scripts ask for.
const PAGES: [&[&str]; 4] = [
    &["", "api/v1/overview", "api/v1/approvals"],
    &["devices", "api/v1/devices?limit=100", "api/v1/approvals"],
    &["devices?search=4", "api/v1/devices?search=4&limit=100", "api/v1/approvals"],
    &["calls", "api/v1/audit?kind=call&limit=100", "api/v1/approvals"],
];
/// What a browser loads with the first page.
const FILES: [&str; 7] = ["overview.js", "dom.js", "gateway.js", "live.js", "picture.js", "console.css", "mark.svg"];

/// How long the pages take over many devices and calls.
pub(crate) async fn pages(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let (state, amount) = filled(plan, scratch).await?;
    let gateway = process::gateway(&state).await?;
    let mut browser = Browser::sign_in(gateway.address()?).await?;
    let mut slowest = 0.0_f64;
    for page in PAGES {
        let mut times = Vec::new();
        for _ in 0..3 + plan.rounds {
            let began = Instant::now();
            for path in page {
                browser.get(path).await?;
            }
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        slowest = slowest.max(percentile(&mut times, 0.5));
    }
    gateway.stop().await;
    let label = format!("the slowest page of the console, with {amount}");
    report.push(Figure::at_most("console_page_ms", &label, slowest, "ms", 300.0));
    Ok(())
}

/// How much a browser loads that opens the console for the first time.
pub(crate) async fn first_load(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let (state, _) = filled(plan, scratch).await?;
    let gateway = process::gateway(&state).await?;
    let mut browser = Browser::sign_in(gateway.address()?).await?;
    let first = browser.get("").await?;
    let folder = first.split("assets/").nth(1).and_then(|rest| rest.split('/').next());
    let folder = folder.ok_or_else(|| bench_error("the first page names no files"))?.to_owned();
    let mut bytes = first.len();
    for file in FILES {
        bytes += browser.get(&format!("assets/{folder}/{file}")).await?.len();
    }
    for path in &PAGES[0][1..] {
        bytes += browser.get(path).await?.len();
    }
    gateway.stop().await;
    let kilobytes = bytes as f64 / 1e3;
    report.push(Figure::at_most("console_first_load_kb", "first load of the console", kilobytes, "KB", 100.0));
    Ok(())
}

/// What open consoles add to the processor time of the gateway while calls run, in percent of a core.
pub(crate) async fn open_consoles(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let (state, _) = filled(plan, scratch).await?;
    let gateway = process::gateway(&state).await?;
    let address = gateway.address()?;
    let boards = process::boards(gateway.devices_url(), 90_001, CONNECTIONS).await?;
    let devices = ready_boards(address, CONNECTIONS).await?;
    let call = |device| request::call(address, TOKEN, PUBLIC_TOOL, json!({"device": device}));
    let requests: Vec<Vec<u8>> = devices.iter().map(call).collect();
    let time = plan.time.max(REFRESH * 2);
    let mut shares = [Vec::new(), Vec::new()];
    for round in 0..=plan.rounds {
        for (count, shares) in [0, CONSOLES].into_iter().zip(&mut shares) {
            let mut consoles = JoinSet::new();
            for _ in 0..count {
                let browser = Browser::sign_in(address).await?;
                consoles.spawn(browser.keep_overview_open());
            }
            let before = gateway.processor_time()?;
            let requests = requests.clone();
            let run = tokio::task::spawn_blocking(move || load::run_paced(address, requests, CALLS, time));
            let tally = run.await.map_err(|error| bench_error(format!("the load generator died: {error}")))??;
            let used = gateway.processor_time()?.saturating_sub(before);
            // A console that ended costs nothing and measures nothing.
            if let Some(ended) = consoles.try_join_next() {
                let why = ended.map_err(|error| bench_error(format!("a console died: {error}")))?;
                return Err(why.err().unwrap_or_else(|| bench_error("the stream of a console ended")));
            }
            consoles.abort_all();
            if round > 0 {
                shares.push(used.as_secs_f64() / tally.seconds * 100.0);
            }
        }
    }
    boards.stop().await;
    gateway.stop().await;
    let [without, with] = shares.map(|mut shares| percentile(&mut shares, 0.5));
    let label = format!("{CONSOLES} open consoles while {CALLS} calls a second run, part of a core");
    report.push(Figure::at_most("consoles_percent", &label, (with - without).max(0.0), "%", 5.0));
    Ok(())
}

/// A state directory with many devices and calls, which the stages of the console share, and how many these are.
async fn filled(plan: &BenchPlan, scratch: &Scratch) -> Result<(PathBuf, String), Error> {
    let (devices, calls) = if plan.is_quick() { (200, 2_000) } else { (5_000, 100_000) };
    let state = scratch.folder("console");
    if !state.exists() {
        fill(&state, devices, calls).await?;
    }
    Ok((state, format!("{devices} devices and {calls} calls")))
}

/// Devices that are away and calls that were made, in a state directory.
async fn fill(state: &Path, devices: usize, calls: usize) -> Result<(), Error> {
    let settings = Settings { state_dir: Some(state.to_owned()), ..Settings::default() };
    let gateway = Gateway::open(settings).map_err(|error| bench_error(format!("no gateway to fill: {error}")))?;
    for number in 0..devices {
        gateway.apply(DeviceEvent::Joined(Arc::new(ListedDevice::new(number))));
    }
    let who = Principal::new("bench", Role::Admin);
    for turn in 0..calls / WRITERS {
        let device = format!("listed-{}", turn % devices);
        let records = (0..WRITERS).map(|_| gateway.record(&who, "api", &device, "look_at"));
        try_join_all(records).await.map_err(|error| bench_error(format!("filling the audit: {error}")))?;
    }
    gateway.close().await;
    Ok(())
}

/// A device that is known and does nothing.
struct ListedDevice {
    info: Arc<DeviceInfo>,
    tools: Arc<Toolset>,
}

impl ListedDevice {
    fn new(number: usize) -> ListedDevice {
        let info = DeviceInfo {
            key: DeviceKey(format!("board:listed-{number}")),
            suggested_id: format!("listed-{number}"),
            family: Family::new(FamilyName::of("board"), TextTrust::Attributed, Reach::OneLink),
            admission: Admission::OwnToken,
            name: "listed".to_owned(),
            version: "1.0".to_owned(),
            status: Status::Ready,
            instructions: None,
            labels: Vec::new(),
            attributes: Default::default(),
        };
        let look = Tool::new("look", "Looks", json!({"type": "object", "properties": {}}));
        ListedDevice { info: Arc::new(info), tools: Arc::new(Toolset::new(vec![look])) }
    }
}

impl Device for ListedDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        self.info.clone()
    }

    fn tools(&self) -> Arc<Toolset> {
        self.tools.clone()
    }

    fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(std::future::ready(Err(ToolError::new(ErrorKind::Unsupported, "it does nothing"))))
    }
}

/// Somebody who is signed in.
struct Browser {
    connection: HttpConnection,
    address: SocketAddr,
    cookie: String,
}

impl Browser {
    async fn sign_in(address: SocketAddr) -> Result<Browser, Error> {
        let mut connection = HttpConnection::open(address).await?;
        let form = format!("token={TOKEN}");
        let request = format!(
            "POST /console/login HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        );
        let (head, _) = connection.text(request.as_bytes()).await?;
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")?.split(';').next());
        let cookie = cookie.ok_or_else(|| bench_error(format!("nobody could sign in to the console: {head}")))?;
        let cookie = cookie.to_owned();
        Ok(Browser { connection, address, cookie })
    }

    /// Reads the stream of changes, and the overview again after changes, as the page does.
    async fn keep_overview_open(mut self) -> Result<(), Error> {
        let lost = |error: std::io::Error| bench_error(format!("the stream of a console: {error}"));
        let mut stream = TcpStream::connect(self.address).await.map_err(lost)?;
        let (address, cookie) = (self.address, &self.cookie);
        let request = format!("GET /console/stream HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.map_err(lost)?;
        let mut text = [0; 4 << 10];
        loop {
            let read = stream.read(&mut text).await.map_err(lost)?;
            match &text[..read] {
                b"" => return Ok(()),
                more if find(more, b"event: ").is_none() => continue,
                _ => self.get(PAGES[0][1]).await?,
            };
            tokio::time::sleep(REFRESH).await;
        }
    }

    async fn get(&mut self, path: &str) -> Result<String, Error> {
        let (address, cookie) = (self.address, &self.cookie);
        let request = format!("GET /console/{path} HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\n\r\n");
        let (head, body) = self.connection.text(request.as_bytes()).await?;
        match head.starts_with("HTTP/1.1 200") {
            true => Ok(body),
            false => Err(bench_error(format!("/console/{path}: {head}"))),
        }
    }
}
