//! `sinew phones install`, `pull`, `push` and `record`: files between this computer and a phone, streamed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_phones::PhoneError;
use sinew_phones::adb::{AdbPhone, AdbServer};
use sinew_phones::control::video::VideoRequest;
use sinew_phones::control::{PhoneShell, files, install as installing, video};
use sinew_tool::Silent;
use tokio::fs::{File, OpenOptions};

use super::companion::{failure, find};
use crate::args::PhoneArgs;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, clean, print, print_json};

/// A gigabyte over a slow network.
const TRANSFER: Duration = Duration::from_secs(3600);
/// What the recorder of a slow phone needs beside the time of the video.
const RECORDER: Duration = Duration::from_secs(60);
/// 64 GB: what adb can carry is larger than any file that fits a phone.
const MOST_BYTES: u64 = 64 << 30;

pub async fn install(args: &PhoneArgs, file: &Path, server: &AdbServer, printer: Printer) -> Result<(), CliError> {
    let apks = installing::ApkSet::open(file).await.map_err(failure)?;
    let phone = open(args, server).await?;
    let size = installing::install(&phone, apks, &Silent).await.map_err(failure)?;
    report(printer, &format!("Installed {} ({size} bytes).", file.display()), json!({"installed": file, "bytes": size}))
}

pub async fn pull(
    args: &PhoneArgs,
    path: &str,
    to: Option<&Path>,
    server: &AdbServer,
    printer: Printer,
) -> Result<(), CliError> {
    let phone = open(args, server).await?;
    let from = files::resolve(&phone, path).await.map_err(failure)?;
    let to = match to {
        Some(folder) if folder.is_dir() => folder.join(copied_name(path)?),
        Some(file) => file.to_owned(),
        None => PathBuf::from(copied_name(path)?),
    };
    let (mut file, part) = create(&to).await?;
    let pulled = phone.pull(from.as_str(), &mut file, MOST_BYTES, TRANSFER).await.map_err(|error| match error {
        PhoneError::Failed(why) => PhoneError::Failed(format!("'{path}' cannot be copied from the phone: {why}")),
        error => error,
    });
    let size = finish(pulled, file, &part, &to).await?;
    report(printer, &format!("Wrote {size} bytes to {}.", to.display()), json!({"file": to, "bytes": size}))
}

pub async fn push(
    args: &PhoneArgs,
    file: &Path,
    path: &str,
    server: &AdbServer,
    printer: Printer,
) -> Result<(), CliError> {
    let mut source = File::open(file).await.map_err(|error| unusable(file, &error))?;
    let phone = open(args, server).await?;
    let to = files::resolve(&phone, path).await.map_err(failure)?;
    let size = files::push(&phone, &mut source, &to, TRANSFER).await.map_err(failure)?;
    let path = to.as_str();
    report(
        printer,
        &format!("Wrote {size} bytes to {} on the phone.", clean(path)),
        json!({"path": path, "bytes": size}),
    )
}

pub async fn record(
    args: &PhoneArgs,
    to: &Path,
    seconds: u32,
    server: &AdbServer,
    printer: Printer,
) -> Result<(), CliError> {
    let phone = open(args, server).await?;
    let (mut file, part) = create(to).await?;
    let limit = Duration::from_secs(u64::from(seconds)) + RECORDER;
    let request = VideoRequest { seconds, size: None, bits_per_second: 8_000_000, most_bytes: MOST_BYTES, limit };
    let recorded = video::record(&phone, &request, &mut file).await;
    let size = finish(recorded, file, &part, to).await?;
    report(printer, &format!("Wrote {size} bytes to {}.", to.display()), json!({"file": to, "bytes": size}))
}

/// The name of a copy is the one that its user wrote: where a path leads the phone says, and that could be any name.
fn copied_name(path: &str) -> Result<&str, CliError> {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    match name {
        "" | "." => Err(CliError::new(CliErrorKind::Usage, format!("`{path}` names no file; name one in it"))),
        name => Ok(name),
    }
}

async fn open(args: &PhoneArgs, server: &AdbServer) -> Result<AdbPhone, CliError> {
    let serial = find(&args.device, server, &args.reach).await?;
    AdbPhone::open(server, &serial).await.map_err(|error| failure(error.into()))
}

/// A new file beside the place, so that a transfer that ends early leaves nothing that looks whole.
async fn create(to: &Path) -> Result<(File, PathBuf), CliError> {
    if to.exists() {
        let message = format!("{} exists already; name another file", to.display());
        return Err(CliError::new(CliErrorKind::Io, message));
    }
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    // It may be somebody else's: browsers name their downloads so.
    let file = OpenOptions::new().write(true).create_new(true).open(&part).await;
    Ok((file.map_err(|error| unusable(&part, &error))?, part))
}

async fn finish(size: Result<u64, PhoneError>, file: File, part: &Path, to: &Path) -> Result<u64, CliError> {
    drop(file);
    match size {
        Ok(size) => {
            tokio::fs::rename(part, to).await.map_err(|error| unusable(to, &error))?;
            Ok(size)
        }
        Err(error) => {
            // What is left of it is of no use; that it cannot be removed changes nothing about the error.
            let _ = tokio::fs::remove_file(part).await;
            Err(failure(error))
        }
    }
}

fn report(printer: Printer, text: &str, value: Value) -> Result<(), CliError> {
    if printer.is_json() {
        print_json(&value);
    } else {
        print(&format!("{text}\n"));
    }
    Ok(())
}

fn unusable(path: &Path, error: &std::io::Error) -> CliError {
    CliError::new(CliErrorKind::Io, format!("cannot use {}: {error}", path.display()))
}
