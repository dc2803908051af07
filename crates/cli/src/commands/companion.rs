//! `sinew phones install-companion`: puts the companion app on a phone, with the consent of somebody.

use std::io::IsTerminal;
use std::path::PathBuf;

use serde_json::json;
use sinew_api::{DeviceSummary, Devices};
use sinew_compose::android;
use sinew_phones::adb::{self, AdbPhone, AdbServer};
use sinew_phones::agent::CompanionError;
use sinew_phones::{Companion, Phone, PhoneError};
use sinew_tool::ToolError;

use crate::args::{InstallCompanionArgs, ReachArgs};
use crate::client::GatewayTarget;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{self, Printer, clean, print, print_json};

/// The built app has 13 KB; more than this is another file.
const MOST_BYTES: u64 = 8 << 20;

pub async fn install(args: &InstallCompanionArgs, server: &AdbServer, printer: Printer) -> Result<(), CliError> {
    let (path, apk) = read(args)?;
    let serial = find(&args.device, server, &args.reach).await?;
    let phone = AdbPhone::open(server, &serial).await.map_err(|error| failure(error.into()))?;
    let companion = Companion::new(phone.transport().clone());
    let before = companion.about().await.ok();
    if !args.yes {
        let about = phone.about();
        let now = before.as_ref().map_or(String::new(), |version| format!(" It has version {version} now."));
        ask(&format!(
            "The companion lets tools of apps be called that answer as activities do.\n\
             It is an app (sinew.companion, {} bytes, from {}) without permissions, which only adb can use; \
             it stays until it is removed.{now}\nInstall it on {} ({serial})? [y/N] ",
            apk.len(),
            path.display(),
            clean(&about.model),
        ))?;
    }
    let version = companion.install(&apk).await.map_err(|error| failure(error.into()))?;
    if printer.is_json() {
        print_json(&json!({"serial": serial, "companion": version, "before": before}));
    } else {
        print(&format!(
            "Companion {} is on {}. `adb -s {serial} uninstall sinew.companion` removes it.\n",
            clean(&version),
            clean(&serial)
        ));
    }
    Ok(())
}

fn read(args: &InstallCompanionArgs) -> Result<(PathBuf, Vec<u8>), CliError> {
    let state = args.reach.state.directory()?;
    let path =
        android::companion(args.files.as_deref(), &state).map_err(|why| CliError::new(CliErrorKind::Config, why))?;
    let unusable = |why: String| {
        CliError::new(
            CliErrorKind::Config,
            format!("{} cannot be used ({why}); build it with android/build", path.display()),
        )
    };
    let size = std::fs::metadata(&path).map_err(|error| unusable(error.to_string()))?.len();
    if size > MOST_BYTES {
        return Err(unusable(format!("it has {size} bytes")));
    }
    let apk = std::fs::read(&path).map_err(|error| unusable(error.to_string()))?;
    Ok((path, apk))
}

/// The serial of a phone that adb sees: the text itself, or what a gateway calls so.
pub(super) async fn find(device: &str, server: &AdbServer, reach: &ReachArgs) -> Result<String, CliError> {
    let entries = adb::list(server).await.map_err(|error| failure(error.into()))?;
    if entries.iter().any(|entry| entry.serial == device) {
        return Ok(device.to_owned());
    }
    let known = known(reach).await;
    let is_meant = |phone: &&DeviceSummary| phone.id == device || phone.name.as_deref() == Some(device);
    if let Some(phone) = known.iter().find(is_meant) {
        if phone.attribute_list("backend").contains(&"virtual") {
            let message = format!(
                "`{}` is a virtual phone without adb, which this command needs; `sinew sim phone` starts one with adb",
                clean(device)
            );
            return Err(CliError::new(CliErrorKind::Usage, message));
        }
        return Ok(phone.attribute("serial").to_owned());
    }
    let there: Vec<&str> = entries.iter().map(|entry| entry.serial.as_str()).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    Err(CliError::new(
        CliErrorKind::Usage,
        format!("there is no phone `{}`; adb sees: {}", clean(device), clean(&there)),
    ))
}

/// The phones of a gateway, where one runs.
async fn known(reach: &ReachArgs) -> Vec<DeviceSummary> {
    let phones = "/api/v1/devices?family=phone";
    let asked = async { GatewayTarget::find(reach)?.connect().await?.get_all::<Devices>(phones).await };
    asked.await.map_or_else(|_| Vec::new(), |answer| answer.devices)
}

/// Goes on only with a yes from somebody at a terminal.
fn ask(question: &str) -> Result<(), CliError> {
    if !std::io::stdin().is_terminal() {
        let message = "installing an app needs somebody's consent; run it in a terminal, or add --yes";
        return Err(CliError::new(CliErrorKind::Usage, message));
    }
    terminal::ask(question);
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    match read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        true => Ok(()),
        false => Err(CliError::new(CliErrorKind::Usage, "nothing was installed")),
    }
}

/// Where the companion stands on the phones that a running adb server has ready.
pub async fn survey() -> Vec<(String, Result<String, CompanionError>)> {
    let Ok(server) = AdbServer::from_env() else { return Vec::new() };
    let Ok(entries) = adb::list(&server).await else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.into_iter().filter(|entry| entry.state == "device") {
        let Ok(phone) = AdbPhone::open(&server, &entry.serial).await else { continue };
        let about = Companion::new(phone.transport().clone()).about().await;
        found.push((entry.serial, about));
    }
    found
}

pub(super) fn failure(error: PhoneError) -> CliError {
    ToolError::from(error).into()
}
