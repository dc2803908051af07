//! `sinew backup` and `sinew restore`: everything that a gateway remembers, in one file, and back.

use std::fs::File;
use std::io;
use std::path::Path;

use serde_json::json;
use sinew_compose::state;
use sinew_gateway::{ArchiveError, Backup, BackupManifest, RestoreError, write_backup_file};

use crate::args::{BackupArgs, RestoreArgs};
use crate::client::GatewayTarget;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, print, print_json};

pub async fn run(args: &BackupArgs, printer: Printer) -> Result<(), CliError> {
    let path = &args.file;
    if path.symlink_metadata().is_ok() {
        let message = format!("{} exists already; choose another name, or remove it", path.display());
        return Err(CliError::new(CliErrorKind::Usage, message));
    }
    let dir = args.reach.state.directory()?;
    if std::path::absolute(path).is_ok_and(|path| path.starts_with(&dir)) {
        let message = format!(
            "{} is in the state directory, so the next backup would have this one in it; choose another folder",
            path.display()
        );
        return Err(CliError::new(CliErrorKind::Usage, message));
    }
    let target = match GatewayTarget::named(&args.reach)? {
        Some(target) => Some(target),
        None => {
            state::find_running(&dir).map(|running| GatewayTarget::of_running(&running, &args.reach)).transpose()?
        }
    };
    let manifest = match &target {
        Some(target) => printer.waiting("making a backup", download(target, path)).await?,
        None => of_directory(&dir, path)?,
    };
    let bytes: u64 = manifest.files.iter().map(|file| file.size).sum();
    if printer.is_json() {
        print_json(&json!({"file": path, "files": manifest.files.len(), "bytes": bytes, "version": manifest.version}));
        return Ok(());
    }
    let whose = target.map_or_else(|| format!("{}, which no gateway uses", dir.display()), |target| target.description);
    print(&format!(
        "{} has the backup of {whose}: {} files, {:.1} MB.\nIt has tokens and keys, so only you can read it. The \
         configuration file is not in it.\n",
        path.display(),
        manifest.files.len(),
        bytes as f64 / 1e6
    ));
    Ok(())
}

async fn download(target: &GatewayTarget, path: &Path) -> Result<BackupManifest, CliError> {
    let mut gateway = target.connect().await?;
    let mut failure = None;
    // The file is written in this thread; the command has nothing else to do.
    let written = tokio::task::block_in_place(|| {
        write_backup_file(path, |file: &mut File| {
            let done = tokio::runtime::Handle::current().block_on(gateway.download("/api/v1/backup", file));
            done.map_err(|error| {
                failure = Some(error);
                io::Error::other("the gateway did not send it")
            })
        })
    });
    match failure {
        Some(failure) => Err(failure),
        None => written.map_err(|error| unwritten(path, &error)),
    }
}

fn of_directory(dir: &Path, path: &Path) -> Result<BackupManifest, CliError> {
    if !dir.join("gateway.db").exists() {
        let message = format!(
            "no gateway runs on {}, and none did before; name its directory with --state, or a gateway with --url",
            dir.display()
        );
        return Err(CliError::new(CliErrorKind::NoGateway, message));
    }
    let backup = Backup::of_directory(dir).map_err(|error| CliError::new(CliErrorKind::Io, error.to_string()))?;
    write_backup_file(path, |file| backup.write(file)).map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &ArchiveError) -> CliError {
    // Its own words are about reading a backup.
    let why = if let ArchiveError::Io(error) = error { error.to_string() } else { error.to_string() };
    CliError::new(CliErrorKind::Io, format!("the backup {} was not written: {why}", path.display()))
}

pub async fn restore(args: &RestoreArgs, printer: Printer) -> Result<(), CliError> {
    let dir = args.state.directory()?;
    let (file, any_audit, place) = (args.file.clone(), args.any_audit, dir.clone());
    let work = tokio::task::spawn_blocking(move || sinew_gateway::restore(&file, &place, any_audit));
    let restored = printer.waiting("restoring", work).await;
    let restored = restored.map_err(|error| CliError::new(CliErrorKind::Io, error.to_string()))?.map_err(|error| {
        let kind = match &error {
            RestoreError::State(sinew_gateway::OpenError::InUse { .. }) => CliErrorKind::StateTaken,
            RestoreError::Audit { .. } => CliErrorKind::ChecksFailed,
            _ => CliErrorKind::Io,
        };
        let hint =
            if matches!(error, RestoreError::Audit { .. }) { "; --any-audit restores it all the same" } else { "" };
        CliError::new(kind, format!("{error}{hint}"))
    })?;
    let manifest = &restored.manifest;
    if printer.is_json() {
        print_json(&json!({
            "state": dir, "files": manifest.files.len(), "version": manifest.version, "made": manifest.made,
            "records": restored.audit.records, "aside": restored.aside,
        }));
        return Ok(());
    }
    let made = jiff::Timestamp::from_millisecond(manifest.made)
        .map(|at| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string())
        .unwrap_or_default();
    let aside = restored.aside.map(|aside| format!("\nWhat was there before is in {}.", aside.display()));
    print(&format!(
        "{} has the backup of {made} (Sinew {}): {} files, {} audit records checked.{}\n`sinew serve` starts a gateway on it.\n",
        dir.display(),
        manifest.version,
        manifest.files.len(),
        restored.audit.records,
        aside.unwrap_or_default()
    ));
    Ok(())
}
