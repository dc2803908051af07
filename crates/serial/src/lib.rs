//! Boards on a serial line: JSON lines between boot noise and log lines.
//!
//! [`run`] keeps one board: it waits for its port (`ports`), opens it (`port`), and hands a line of messages (`line`) to
//! `sinew_boards`, which owns the protocol. What the board prints is taken apart in [`lines`].

#![warn(unreachable_pub)]

#[cfg(unix)]
mod line;
pub mod lines;
#[cfg(unix)]
mod port;
mod ports;
#[cfg(unix)]
mod pseudo_port;
mod settings;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sinew_boards::Boards;
use sinew_tool::{Admission, Admit, Announce, DeviceInfo, Family, FamilyName, Reach, StandIn, Status, TextTrust, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use ports::{PortTree, SerialPort, UsbIdentity};
#[cfg(unix)]
pub use pseudo_port::PseudoPort;
pub use settings::{SerialConfig, SerialPlace, SerialPlan, plan};

/// How often is looked for a port that is not there: somebody has just plugged it in and waits.
const LOOK_TIME: Duration = Duration::from_secs(1);

const FAMILY: Family = Family::new(FamilyName::of("serial"), TextTrust::Attributed, Reach::OneLink);

/// Serves the board on one line until `shutdown`, also after it was unplugged and plugged in again. `known` says which
/// devices were connected before; one that never was is shown with what is wrong.
pub async fn run(
    plan: SerialPlan,
    ports: PortTree,
    boards: Boards,
    known: Arc<dyn Admit>,
    announce: Announce,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let mut stand_in = StandIn::new(info(&plan, None, None), known, announce);
    let mut last_trouble = String::new();
    while !shutdown.is_cancelled() {
        let trouble = match find(&plan, &ports) {
            None => format!("{} is not there; plug the board in, `sinew serial` lists the ports", plan.place),
            Some((path, usb)) => match serve(&plan, path, usb, &boards, &mut stand_in, &shutdown).await {
                Ok(()) => String::new(),
                Err(why) => why,
            },
        };
        if !trouble.is_empty() {
            stand_in.show(&trouble);
        }
        if trouble != last_trouble && !trouble.is_empty() {
            tracing::warn!(board = %plan.suggested_id(), "serial board not connected: {trouble}; trying again");
        }
        last_trouble = trouble;
        shutdown.run_until_cancelled(tokio::time::sleep(LOOK_TIME)).await;
    }
    Ok(())
}

/// Where the board is now, and what its plug says.
fn find(plan: &SerialPlan, ports: &PortTree) -> Option<(PathBuf, Option<UsbIdentity>)> {
    match &plan.place {
        SerialPlace::Path(path) => path.exists().then(|| (path.clone(), ports.find(path).and_then(|port| port.usb))),
        SerialPlace::Usb(wanted) => {
            let is_it = |port: &SerialPort| port.usb.as_ref().is_some_and(|usb| usb.is(wanted));
            ports.list().into_iter().find(is_it).map(|port| (port.path, port.usb))
        }
    }
}

#[cfg(unix)]
async fn serve(
    plan: &SerialPlan,
    path: PathBuf,
    usb: Option<UsbIdentity>,
    boards: &Boards,
    stand_in: &mut StandIn,
    shutdown: &CancellationToken,
) -> Result<(), String> {
    let port = port::Port::open(&path, plan.speed).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!(
                "{}: {error}; add the user of the gateway to the group of the port, usually `dialout`",
                path.display()
            )
        }
        _ => format!("{}: {error}", path.display()),
    })?;
    let port = Arc::new(port);
    stand_in.end();
    // A board that restarts is greeted again on the same port.
    while !port.is_gone() && !shutdown.is_cancelled() {
        let line = line::SerialLine::new(port.clone(), plan.suggested_id(), shutdown.clone());
        let begun = Instant::now();
        boards.serve_line(info(plan, Some(&path), usb.as_ref()), line).await?;
        // A board whose answers end the session at once is not greeted without a pause.
        if begun.elapsed() < LOOK_TIME {
            shutdown.run_until_cancelled(tokio::time::sleep(LOOK_TIME)).await;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
async fn serve(
    _: &SerialPlan,
    _: PathBuf,
    _: Option<UsbIdentity>,
    _: &Boards,
    _: &mut StandIn,
    _: &CancellationToken,
) -> Result<(), String> {
    Err("serial lines are supported on Linux and macOS only".to_owned())
}

/// What is known of a board: by the plan, and once its port is there by the port.
fn info(plan: &SerialPlan, path: Option<&Path>, usb: Option<&UsbIdentity>) -> DeviceInfo {
    let serial_number = usb.map(|usb| usb.serial_number.as_str()).filter(|number| !number.is_empty());
    let attributes = [
        ("transport", Some(json!("serial"))),
        ("address", Some(json!(path.map_or_else(|| plan.place.to_string(), |path| path.display().to_string())))),
        ("speed", Some(json!(plan.speed))),
        ("usb", usb.map(|usb| json!(usb.product_id))),
        ("hardware_id", serial_number.map(|number| json!(number))),
        ("when_away", Some(json!("plug it in, and look whether another program uses its port"))),
    ];
    DeviceInfo {
        key: plan.key(serial_number),
        suggested_id: plan.suggested_id(),
        family: FAMILY,
        admission: Admission::Configured,
        name: String::new(),
        version: String::new(),
        status: Status::Ready,
        instructions: None,
        labels: plan.labels.clone(),
        attributes: attributes.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect(),
    }
}
