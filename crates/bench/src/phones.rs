//! What Sinew itself costs on phones: over one that answers at once, over slow ones side by side, and in the
//! bytes of its tool lists. Calls go through a gateway in memory, with validation and audit as always.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sinew_gateway::{Gateway, Principal, Request, Role, Shape};
use sinew_phones::image::{JpegOptions, Raster, finish};
use sinew_phones::tree::xml;
use sinew_phones::{
    Image, Phone, PhoneDevice, PhoneError, PhoneIdentity, Profile, Screen, Stroke, Tree, Work, reference_tools,
};
use sinew_sim::phone::{LockScreen, PhoneClock, PhoneSetup, VirtualPhone};
use sinew_tool::{DeviceEvent, Outcome, Tool};

use crate::BenchPlan;
use crate::Error;
use crate::load::{bench_error, percentile};
use crate::phone_streams;
use crate::process::Scratch;
use crate::report::{Figure, Report};

/// The longest of the slow phones' commands, as the shell of a real phone takes it.
const SLOW: Duration = Duration::from_millis(50);

pub(crate) async fn measure(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    calls(plan, report).await?;
    pictures(plan, scratch, report).await?;
    side_by_side(plan, report).await?;
    phone_streams::measure(plan, scratch, report).await?;
    lists(report)
}

async fn calls(plan: &BenchPlan, report: &mut Report) -> Result<(), Error> {
    let (small, large) = (dump(122), dump(10_000));
    let parsed = xml::parse(&large).map_err(|error| bench_error(format!("the made-up dump: {error}")))?;
    let gateway = MemoryGateway::open()?;
    gateway.join(InstantPhone { name: "small", screen: ScreenSource::Dump(small.clone()) });
    gateway.join(InstantPhone { name: "large", screen: ScreenSource::Tree(parsed) });

    let tap = gateway.time(plan, "small", "tap", json!({"x": 5, "y": 5})).await?;
    report.push(Figure::at_most("phone_tap_us", "phone: a tap, own cost", tap * 1e3, "µs", 1000.0));
    let screen = gateway.time(plan, "small", "get_screen", json!({})).await?;
    let label = format!("phone: get_screen of 122 nodes, {:.0} KB of XML", small.len() as f64 / 1e3);
    report.push(Figure::at_most("phone_screen_ms", &label, screen, "ms", 2.0));
    let shown = gateway.call("small", "get_screen", json!({})).await?.joined_text();
    report.push(Figure::at_most("phone_screen_bytes", "phone: the same, as text", shown.len() as f64, "bytes", 1500.0));
    let wanted = json!({"by": "text", "value": "Entry 1"});
    let find = gateway.time(plan, "large", "find_elements", wanted).await?;
    report.push(Figure::at_most("phone_find_ms", "phone: find_elements in 10,000 nodes", find, "ms", 10.0));
    gateway.inner.close().await;
    Ok(())
}

async fn pictures(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let phone = VirtualPhone::new(PhoneSetup { lock: LockScreen::None, ..PhoneSetup::default() }, PhoneClock::Virtual);
    let failed = |error: PhoneError| bench_error(format!("the virtual phone's picture: {error}"));
    phone.open_app("com.android.gallery3d").await.map_err(failed)?;
    let Image::Rgba { width, height, pixels } = phone.screenshot().await.map_err(failed)? else {
        return Err(bench_error("the virtual phone's picture is a file already"));
    };
    let file = png_of(width, height, &pixels).map_err(|error| bench_error(format!("the picture as PNG: {error}")))?;
    let whole = repeat(plan, || finish(Image::Png(file.clone()), &JpegOptions::default()).map(drop)).map_err(failed)?;
    let raster = Raster::decode(Image::Rgba { width, height, pixels: pixels.clone() }).map_err(failed)?;
    let ours = repeat(plan, || raster.to_jpeg(JpegOptions::default().quality).map(drop)).map_err(failed)?;
    let label = format!("phone: {width}x{height} PNG to JPEG, quality 80");
    report.push(Figure::at_most("phone_jpeg_ms", &label, whole, "ms", 80.0));
    report.push(Figure::plain("phone_encode_ms", "phone: the encoding alone", ours, "ms"));
    match turbo(plan, &scratch.folder("picture.ppm"), width, height, &pixels).await {
        Ok(theirs) => {
            report.push(Figure::plain("turbo_encode_ms", "libjpeg-turbo, the same picture", theirs, "ms"));
            report.push(Figure::at_most("of_turbo", "phone: times libjpeg-turbo", ours / theirs, "", 1.5));
        }
        Err(why) => report.skip(format!("libjpeg-turbo, because {why}")),
    }
    Ok(())
}

/// Milliseconds of libjpeg-turbo's own benchmark, from Debian's libjpeg-turbo-progs.
async fn turbo(plan: &BenchPlan, path: &Path, width: u32, height: u32, pixels: &[u8]) -> Result<f64, String> {
    let mut picture = format!("P6\n{width} {height}\n255\n").into_bytes();
    picture.extend(pixels.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]));
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, picture));
    written.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    let seconds = plan.time.as_secs_f64().min(1.0).to_string();
    let mut command = tokio::process::Command::new("tjbench");
    command.arg(path).args(["80", "-subsamp", "420", "-rgb", "-componly", "-benchtime", &seconds]);
    let output = command.kill_on_drop(true).output().await;
    let output = output.map_err(|_| "tjbench is not there (Debian: libjpeg-turbo-progs)".to_owned())?;
    let said = String::from_utf8_lossy(&output.stdout);
    let rate = said.lines().find_map(|line| line.split_once("Frame rate:")?.1.split_whitespace().next()?.parse().ok());
    rate.map(|rate: f64| 1e3 / rate).ok_or_else(|| "tjbench printed no frame rate".to_owned())
}

async fn side_by_side(plan: &BenchPlan, report: &mut Report) -> Result<(), Error> {
    let gateway = MemoryGateway::open()?;
    let names = ["slow-1", "slow-2", "slow-3", "slow-4"];
    for name in names {
        let setup = PhoneSetup {
            serial: name.to_owned(),
            model: name.to_owned(),
            lock: LockScreen::None,
            ..PhoneSetup::default()
        };
        let phone = VirtualPhone::new(setup, PhoneClock::Virtual);
        phone.handset.set_latency(SLOW);
        gateway.join(phone);
    }
    // A tap asks for the screen's size and touches; six of them take about half a second.
    let taps = if plan.rounds > 1 { 12 } else { 3 };
    let work = async |name: &str| {
        for _ in 0..taps {
            gateway.call(name, "press_home", json!({})).await?;
        }
        Ok::<_, Error>(())
    };
    let started = Instant::now();
    work(names[0]).await?;
    let one = started.elapsed();
    let started = Instant::now();
    let all = tokio::join!(work(names[0]), work(names[1]), work(names[2]), work(names[3]));
    let four = started.elapsed();
    all.0.and(all.1).and(all.2).and(all.3)?;
    gateway.inner.close().await;
    let ratio = 4.0 * one.as_secs_f64() / four.as_secs_f64();
    report.push(Figure::at_least("phones_parallel", "phone: throughput of four slow ones to one", ratio, "", 3.0));
    Ok(())
}

fn lists(report: &mut Report) -> Result<(), Error> {
    let listed = |profile: Profile| {
        let gateway = MemoryGateway::open()?;
        gateway.join_with(InstantPhone { name: "listed", screen: ScreenSource::Tree(Tree::default()) }, profile);
        let list = gateway.inner.list(&Principal::new("bench", Role::Client), Shape::Folded);
        Ok::<_, Error>(
            list.tools
                .iter()
                .filter(|public| public.selector.is_some())
                .map(|public| public.tool.clone())
                .collect::<Vec<_>>(),
        )
    };
    let size = |tools: &[&Tool]| tools.iter().map(|tool| tool.to_json().to_string().len() + 1).sum::<usize>() as f64;
    let (full, compact) = (listed(Profile::Full)?, listed(Profile::Compact)?);
    let reference: Vec<String> = reference_tools().into_iter().map(|tool| tool.name).collect();
    let of_reference: Vec<&Tool> = full.iter().filter(|tool| reference.contains(&tool.name)).collect();
    let [full, compact] = [&full, &compact].map(|tools| tools.iter().collect::<Vec<_>>());
    for (key, label, tools, most) in [
        ("phone_reference_bytes", "phone: the reference's 29 tools at /mcp", of_reference, 15_000.0),
        ("phone_list_bytes", "phone: all tools at /mcp", full, 18_000.0),
        ("phone_compact_bytes", "phone: the compact profile at /mcp", compact, 5.0 * 1024.0),
    ] {
        report.push(Figure::at_most(key, label, size(&tools), "bytes", most));
    }
    Ok(())
}

/// A gateway in memory.
pub(crate) struct MemoryGateway {
    pub(crate) inner: Gateway,
}

impl MemoryGateway {
    pub(crate) fn open() -> Result<MemoryGateway, Error> {
        let gateway = Gateway::open(sinew_gateway::Settings::default());
        Ok(MemoryGateway { inner: gateway.map_err(|error| bench_error(format!("no gateway: {error}")))? })
    }

    pub(crate) fn join(&self, phone: impl Phone + 'static) {
        self.join_with(phone, Profile::Full);
    }

    fn join_with(&self, phone: impl Phone + 'static, profile: Profile) {
        self.inner.apply(DeviceEvent::Joined(Arc::new(PhoneDevice::new(phone, profile))));
    }

    pub(crate) async fn call(&self, phone: &str, tool: &str, args: Value) -> Result<Outcome, Error> {
        let args = args.as_object().cloned().unwrap_or_default();
        let who = Principal::new("bench", Role::Client);
        let called = self.inner.call_on(phone, Request::new(who, tool, args, "bench")).await;
        called.map_err(|error| bench_error(format!("`{tool}` failed: {error}")))
    }

    /// The median of many calls, in milliseconds.
    async fn time(&self, plan: &BenchPlan, phone: &str, tool: &str, args: Value) -> Result<f64, Error> {
        self.call(phone, tool, args.clone()).await?;
        let mut times = Vec::new();
        let end = Instant::now() + plan.time;
        while times.len() < 5 || Instant::now() < end {
            let started = Instant::now();
            self.call(phone, tool, args.clone()).await?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
        Ok(percentile(&mut times, 0.5))
    }
}

/// The median of many runs, in milliseconds.
fn repeat<E>(plan: &BenchPlan, mut run: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let mut times = Vec::new();
    let end = Instant::now() + plan.time;
    while times.len() < 3 || Instant::now() < end {
        let started = Instant::now();
        run()?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(percentile(&mut times, 0.5))
}

/// A phone that answers at once.
pub(crate) struct InstantPhone {
    pub(crate) name: &'static str,
    pub(crate) screen: ScreenSource,
}

pub(crate) enum ScreenSource {
    /// What `uiautomator` printed, to be parsed each time.
    Dump(String),
    Tree(Tree),
}

impl Phone for InstantPhone {
    fn about(&self) -> PhoneIdentity {
        PhoneIdentity { serial: self.name.to_owned(), model: self.name.to_owned(), ..PhoneIdentity::default() }
    }

    fn capabilities(&self) -> sinew_phones::Capabilities {
        sinew_phones::Capabilities::default()
    }

    fn tree(&self) -> Work<'_, Tree> {
        Box::pin(async {
            match &self.screen {
                ScreenSource::Dump(text) => xml::parse(text).map_err(|error| PhoneError::Failed(error.to_string())),
                ScreenSource::Tree(tree) => Ok(tree.clone()),
            }
        })
    }

    fn touch<'a>(&'a self, _: &'a [Stroke]) -> Work<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn screen(&self) -> Work<'_, Screen> {
        let screen = Screen { width: 1080, height: 2400, density_dpi: 420, rotation: 0, awake: true, locked: false };
        Box::pin(std::future::ready(Ok(screen)))
    }
}

/// A dump of a settings list with so many nodes, as `uiautomator` writes it: of every four nodes one is a row
/// that can be clicked, with a layout, a title and a summary in it.
pub(crate) fn dump(nodes: usize) -> String {
    let node = |index: usize, text: &str, class: &str, clickable: bool, top: usize, close: bool| {
        let end = if close { " />" } else { ">" };
        format!(
            "<node index=\"{index}\" text=\"{text}\" resource-id=\"com.android.settings:id/item\" class=\"android.widget.{class}\" \
             package=\"com.android.settings\" content-desc=\"\" checkable=\"false\" checked=\"false\" clickable=\"{clickable}\" \
             enabled=\"true\" focusable=\"{clickable}\" focused=\"false\" scrollable=\"false\" long-clickable=\"false\" \
             password=\"false\" selected=\"false\" bounds=\"[0,{top}][1080,{}]\"{end}",
            top + 70
        )
    };
    let rows = nodes.saturating_sub(2) / 4;
    let mut text = String::from("<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">");
    text.push_str(&node(0, "", "FrameLayout", false, 0, false).replace(",70]", ",2400]"));
    text.push_str(&node(0, "", "ScrollView", false, 0, false).replace(",70]", ",2400]"));
    for row in 0..rows {
        let top = row * 76;
        text.push_str(&node(row, "", "LinearLayout", true, top, false));
        text.push_str(&node(0, "", "RelativeLayout", false, top, false));
        text.push_str(&node(0, &format!("Entry {row}"), "TextView", false, top, true));
        text.push_str(&node(1, "On, tap to change", "TextView", false, top, true));
        text.push_str("</node></node>");
    }
    text.push_str("</node></node></hierarchy>");
    text
}

fn png_of(width: u32, height: u32, pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    // As fast as a phone has it.
    encoder.set_compression(png::Compression::Fast);
    encoder.write_header()?.write_image_data(pixels)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use sinew_phones::screen::ScreenView;
    use sinew_phones::screen::refs::Refs;

    use super::*;

    #[test]
    fn a_made_up_dump_has_the_nodes_it_should() {
        for nodes in [122, 10_002] {
            assert_eq!(xml::parse(&dump(nodes)).map(|tree| tree.len()).ok(), Some(nodes));
        }
    }

    #[test]
    fn the_screen_of_the_benchmark_stays_as_small_as_it_was() {
        let tree = xml::parse(&dump(122)).expect("a dump");
        let text = ScreenView::of(&tree).to_text(&mut Refs::default(), None);
        assert!(text.len() <= 1_431, "{} bytes:\n{text}", text.len());
    }
}
