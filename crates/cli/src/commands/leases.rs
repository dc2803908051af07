//! `sinew devices reserve` and `release`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sinew_api as api;

use super::EmptyRequest;
use crate::args::DeviceArgs;
use crate::client::{GatewayTarget, encode};
use crate::error::CliError;
use crate::terminal::{Printer, clean, print, print_json};

pub async fn reserve(one: &DeviceArgs, request: &api::Reserve, printer: Printer) -> Result<(), CliError> {
    let answer: api::Reserved =
        GatewayTarget::find(&one.reach)?.connect().await?.post(&path(one, "reserve"), request).await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    let (device, time) = (clean(&answer.device), time_left(answer.until));
    let text = format!(
        "{device} is yours for {time}: others can read it, not change it. Give it back with `sinew devices release {device}`."
    );
    print(&format!("{}\n", printer.wrap(&text, 0)));
    Ok(())
}

pub async fn release(one: &DeviceArgs, printer: Printer) -> Result<(), CliError> {
    let answer: api::Released =
        GatewayTarget::find(&one.reach)?.connect().await?.post(&path(one, "release"), &EmptyRequest {}).await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    let device = clean(&one.device);
    print(&match answer.released {
        true => format!("{device} is free\n"),
        false => format!("you do not have {device}; `sinew devices release {device} --break` takes it from who does\n"),
    });
    Ok(())
}

pub async fn break_lease(one: &DeviceArgs, printer: Printer) -> Result<(), CliError> {
    let answer: api::DeviceLease =
        GatewayTarget::find(&one.reach)?.connect().await?.post(&path(one, "break-lease"), &EmptyRequest {}).await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    let (device, holder) = (clean(&one.device), clean(&answer.holder));
    let text = format!("{device} is yours for the next seconds; {holder} had it and is told with its next call.");
    print(&format!("{}\n", printer.wrap(&text, 0)));
    Ok(())
}

/// Who has a device, as a line.
pub fn describe(lease: &api::DeviceLease) -> String {
    let (holder, time) = (clean(&lease.holder), time_left(lease.until));
    let waiting = match lease.waiting {
        0 => String::new(),
        1 => ", 1 waits".to_owned(),
        waiting => format!(", {waiting} wait"),
    };
    match lease.purpose.as_deref() {
        Some("") => format!("reserved by {holder} for {time}{waiting}"),
        Some(purpose) => format!("reserved by {holder} for {time} ({}){waiting}", clean(purpose)),
        None => format!("used by {holder}{waiting}"),
    }
}

fn path(one: &DeviceArgs, what: &str) -> String {
    format!("/api/v1/devices/{}/{what}", encode(&one.device))
}

/// `12 min` or `40 s`.
fn time_left(until: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = Duration::from_millis(u64::try_from(until).unwrap_or_default()).saturating_sub(now).as_secs() + 1;
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}
