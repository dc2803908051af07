//! Installing apps: one APK, or a set of splits that belong together.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt};

use super::{PhoneShell, reason};
use crate::adb::command::ShellCommand;
use crate::adb::shell::CommandLimits;
use crate::phone::PhoneError;

/// More splits than the largest app bundle has.
const MAX_SPLITS: usize = 100;

/// 2 GB: Google Play's largest app is smaller.
const MAX_BYTES: u64 = 2 << 30;

/// Verifying and optimising a large app takes minutes on an old phone.
const LIMIT: Duration = Duration::from_secs(600);

/// An APK that is open, with its size.
pub struct ApkFile {
    name: String,
    file: File,
    size: u64,
}

impl ApkFile {
    /// Opens a file and checks that it is an APK by its first bytes; the phone checks the rest.
    pub async fn open(path: &Path) -> Result<ApkFile, PhoneError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let failed = |error: std::io::Error| PhoneError::Invalid(format!("cannot read '{name}': {error}"));
        let mut file = File::open(path).await.map_err(failed)?;
        let size = file.metadata().await.map_err(failed)?.len();
        let mut head = [0; 4];
        let is_zip = file.read_exact(&mut head).await.is_ok() && &head == b"PK\x03\x04";
        if !is_zip {
            return Err(PhoneError::Invalid(format!("'{name}' is not an APK: it does not start like one")));
        }
        if size > MAX_BYTES {
            return Err(PhoneError::Invalid(format!("'{name}' has {size} bytes; at most {MAX_BYTES} are installed")));
        }
        file.rewind().await.map_err(failed)?;
        Ok(ApkFile { name, file, size })
    }
}

/// The APKs at a path: a file, or the `.apk` files of a folder, which are the splits of one app.
pub async fn open_all(path: &Path) -> Result<Vec<ApkFile>, PhoneError> {
    let mut files = Vec::new();
    for path in paths(path)? {
        files.push(ApkFile::open(&path).await?);
    }
    Ok(files)
}

fn paths(path: &Path) -> Result<Vec<PathBuf>, PhoneError> {
    let shown = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let read =
        std::fs::read_dir(path).map_err(|error| PhoneError::Invalid(format!("cannot read '{shown}': {error}")))?;
    let mut apks: Vec<PathBuf> = read.filter_map(Result::ok).map(|entry| entry.path()).collect();
    apks.retain(|path| path.extension().is_some_and(|end| end.eq_ignore_ascii_case("apk")));
    apks.sort();
    match apks.len() {
        0 => Err(PhoneError::Invalid(format!("the folder '{shown}' has no .apk file"))),
        1..=MAX_SPLITS => Ok(apks),
        count => Err(PhoneError::Invalid(format!("'{shown}' has {count} APKs; at most {MAX_SPLITS} make one app"))),
    }
}

/// Installs an app over an older version where there is one. Streams every file; nothing stays on the phone.
pub async fn install(on: &dyn PhoneShell, files: Vec<ApkFile>) -> Result<u64, PhoneError> {
    let total = files.iter().map(|file| file.size).sum();
    let mut files = files;
    match files.as_mut_slice() {
        [] => return Err(PhoneError::Invalid("there is no APK to install".to_owned())),
        [single] => {
            install_stream(on, &mut single.file, single.size).await.map_err(|error| named(error, &single.name))?;
        }
        splits => install_splits(on, splits, total).await?,
    }
    Ok(total)
}

/// Installs one APK from a stream of `size` bytes.
pub async fn install_stream(
    on: &dyn PhoneShell,
    apk: &mut (dyn AsyncRead + Send + Unpin),
    size: u64,
) -> Result<(), PhoneError> {
    let command = ShellCommand::new("cmd package install -r -S").arg(size);
    checked(&on.feed(&command, apk, limits()).await?.text())
}

/// A session that all splits are written to; it is given up where one fails, so that nothing is left behind.
async fn install_splits(on: &dyn PhoneShell, splits: &mut [ApkFile], total: u64) -> Result<(), PhoneError> {
    let create = ShellCommand::new("cmd package install-create -r -S").arg(total);
    let created = on.run_command(&create, CommandLimits::seconds(30)).await?.text();
    let session = created.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(number, _)| number);
    let session = session.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()) && number.len() < 12);
    let session = session.ok_or_else(|| PhoneError::Failed(format!("no session was opened: {}", reason(&created))))?;
    let written = write_splits(on, session, splits).await;
    let end = match written {
        Ok(()) => ShellCommand::new("cmd package install-commit").arg(session),
        Err(_) => ShellCommand::new("cmd package install-abandon").arg(session),
    };
    let ended = on.run_command(&end, limits()).await;
    written?;
    checked(&ended?.text())
}

async fn write_splits(on: &dyn PhoneShell, session: &str, splits: &mut [ApkFile]) -> Result<(), PhoneError> {
    for (nth, split) in splits.iter_mut().enumerate() {
        let write = ShellCommand::new("cmd package install-write -S").arg(split.size);
        let write = write.arg(session).arg(format!("{nth}.apk")).literal("-");
        let text = on.feed(&write, &mut split.file, limits()).await?.text();
        checked(&text).map_err(|error| named(error, &split.name))?;
    }
    Ok(())
}

fn limits() -> CommandLimits {
    CommandLimits { time: LIMIT, bytes: 1 << 20 }
}

fn checked(text: &str) -> Result<(), PhoneError> {
    match text.contains("Success") {
        true => Ok(()),
        false => Err(PhoneError::Failed(format!("the phone did not install it: {}", reason(text)))),
    }
}

fn named(error: PhoneError, name: &str) -> PhoneError {
    match error {
        PhoneError::Failed(why) => PhoneError::Failed(format!("'{name}': {why}")),
        error => error,
    }
}
