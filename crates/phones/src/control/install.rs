//! Installing apps: one APK, or a set of splits that belong together.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sinew_tool::Caller;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt, ReadBuf, Take};

use super::{PhoneShell, reason, with_cleanup};
use crate::adb::command::ShellCommand;
use crate::adb::shell::CommandLimits;
use crate::phone::PhoneError;

/// More splits than the largest app bundle has.
const MAX_SPLITS: usize = 100;

/// 2 GB: Google Play's largest app is smaller.
const MAX_BYTES: u64 = 2 << 30;

/// Verifying and optimising a large app takes minutes on an old phone.
pub const LIMIT: Duration = Duration::from_secs(600);

/// Between two reports of an installation that goes on; several within the time that a caller waits for one.
const REPORT: Duration = Duration::from_secs(5);

/// How a zip file begins, and so an APK. The phone checks the rest.
const ZIP: [u8; 4] = *b"PK\x03\x04";

/// The APKs of one app.
pub struct ApkSet {
    parts: Vec<ApkPart>,
    bytes: ApkBytes,
    /// The bytes that were read so far.
    sent: Arc<AtomicU64>,
}

struct ApkPart {
    name: String,
    size: u64,
}

enum ApkBytes {
    /// One for each part.
    Files(Vec<File>),
    /// All parts, one after another.
    Stream(Box<dyn AsyncRead + Send + Unpin>),
}

impl ApkSet {
    /// The APKs at a path: a file, or the `.apk` files of a folder, which are the splits of one app.
    pub async fn open(path: &Path) -> Result<ApkSet, PhoneError> {
        let (mut parts, mut files) = (Vec::new(), Vec::new());
        for path in paths(path)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let failed = |error: io::Error| PhoneError::Invalid(format!("cannot read '{name}': {error}"));
            // Opening a pipe would wait for somebody to write to it.
            let size = match tokio::fs::metadata(&path).await.map_err(failed)? {
                about if about.is_file() => about.len(),
                _ => return Err(PhoneError::Invalid(format!("'{name}' is not a file"))),
            };
            let mut file = File::open(&path).await.map_err(failed)?;
            // Before anything is sent: a folder may hold something else.
            read_head(&mut file, &name).await?;
            file.rewind().await.map_err(failed)?;
            files.push(file);
            parts.push(ApkPart { name, size });
        }
        ApkSet { parts, bytes: ApkBytes::Files(files), sent: Arc::default() }.checked()
    }

    /// APKs of these sizes that come one after another.
    pub fn stream(sizes: &[u64], bytes: Box<dyn AsyncRead + Send + Unpin>) -> Result<ApkSet, PhoneError> {
        let part = |(nth, size): (usize, &u64)| ApkPart { name: format!("upload {}", nth + 1), size: *size };
        let parts = sizes.iter().enumerate().map(part).collect();
        ApkSet { parts, bytes: ApkBytes::Stream(bytes), sent: Arc::default() }.checked()
    }

    fn checked(self) -> Result<ApkSet, PhoneError> {
        match self.parts.len() {
            0 => return Err(PhoneError::Invalid("there is no APK to install".to_owned())),
            1..=MAX_SPLITS => {}
            count => {
                return Err(PhoneError::Invalid(format!("{count} APKs; at most {MAX_SPLITS} make one app")));
            }
        }
        let total = self.parts.iter().fold(0u64, |total, part| total.saturating_add(part.size));
        let large = self.parts.iter().find(|part| part.size > MAX_BYTES);
        match large {
            Some(part) => {
                let (name, size) = (&part.name, part.size);
                Err(PhoneError::Invalid(format!("'{name}' has {size} bytes; at most {MAX_BYTES} are installed")))
            }
            None if total > MAX_BYTES => {
                Err(PhoneError::Invalid(format!("the APKs have {total} bytes; at most {MAX_BYTES} are installed")))
            }
            None => Ok(self),
        }
    }

    fn total(&self) -> u64 {
        self.parts.iter().map(|part| part.size).sum()
    }

    /// The bytes of a part. Those of a stream are read in their order.
    async fn part(&mut self, nth: usize) -> Result<Box<dyn AsyncRead + Send + Unpin + '_>, PhoneError> {
        let (ApkPart { name, size }, sent) = (&self.parts[nth], &*self.sent);
        match &mut self.bytes {
            ApkBytes::Files(files) => Ok(Box::new(WholePart { bytes: (&mut files[nth]).take(*size), sent })),
            ApkBytes::Stream(stream) => {
                let mut part = WholePart { bytes: stream.take(*size), sent };
                read_head(&mut part, name).await?;
                Ok(Box::new(io::Cursor::new(ZIP).chain(part)))
            }
        }
    }
}

/// As many bytes as were announced: the phone waits for all of them, so an earlier end is an error.
struct WholePart<'a, R> {
    bytes: Take<R>,
    sent: &'a AtomicU64,
}

impl<R: AsyncRead + Unpin> AsyncRead for WholePart<'_, R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.bytes).poll_read(cx, into))?;
        let length = into.filled().len() - before;
        self.sent.fetch_add(length as u64, Ordering::Relaxed);
        let is_end = length == 0 && into.remaining() > 0;
        Poll::Ready(match is_end && self.bytes.limit() > 0 {
            true => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has fewer bytes than announced")),
            false => Ok(()),
        })
    }
}

async fn read_head(from: &mut (dyn AsyncRead + Send + Unpin), name: &str) -> Result<(), PhoneError> {
    let mut head = [0; ZIP.len()];
    match from.read_exact(&mut head).await {
        Ok(_) if head == ZIP => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            Err(PhoneError::Failed(format!("'{name}' ended early: {error}")))
        }
        _ => Err(PhoneError::Invalid(format!("'{name}' is not an APK: it does not start like one"))),
    }
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

/// Installs an app over an older version where there is one, and gives its size. Streams every file; nothing stays on
/// the phone. The caller gets reports while it goes on.
pub async fn install(on: &dyn PhoneShell, mut apks: ApkSet, caller: &dyn Caller) -> Result<u64, PhoneError> {
    let (total, sent) = (apks.total(), apks.sent.clone());
    let installing = async {
        match apks.parts.len() {
            1 => {
                // Android gives up by itself what ends early.
                let command = ShellCommand::new("cmd package install -r -S").arg(total);
                write_part(on, &command, &mut apks, 0).await
            }
            _ => install_splits(on, &mut apks, total).await,
        }
    };
    tokio::select! {
        biased;
        done = installing => done.map(|()| total),
        never = report(caller, &sent, total) => match never {},
    }
}

/// Says again and again how much was sent, and that the phone is working on it once it has everything. An upload that
/// stands still is not reported, so that it does not get more time.
async fn report(caller: &dyn Caller, sent: &AtomicU64, total: u64) -> Infallible {
    let (mut reported, mut waited) = (0, 0);
    loop {
        tokio::time::sleep(REPORT).await;
        let now = sent.load(Ordering::Relaxed);
        if now >= total {
            waited += REPORT.as_secs();
            let message = format!("the phone has been installing it for {waited} s");
            caller.progress((total + waited) as f64, None, Some(&message));
        } else if now > reported {
            caller.progress(now as f64, Some(total as f64), Some(&format!("{now} of {total} bytes were sent")));
        }
        reported = now;
    }
}

/// Gives up the session that was opened; it fails where the session was committed, which is as it should be.
const ABANDON: &str = r#"n=$(echo "$opened" | sed -n 's/.*install session \[\([0-9][0-9]*\)\].*/\1/p'); test -n "$n" && cmd package install-abandon "$n""#;

/// A session that all splits are written to. The phone opens it and gives it up, so that none is left behind, also where
/// the caller leaves while it is being opened.
async fn install_splits(on: &dyn PhoneShell, apks: &mut ApkSet, total: u64) -> Result<(), PhoneError> {
    let create = ShellCommand::new("cmd package install-create -r -S").arg(total);
    let work = move |created: String| async move {
        let session = session_number(&created)
            .ok_or_else(|| PhoneError::Failed(format!("no session was opened: {}", reason(&created))))?;
        for nth in 0..apks.parts.len() {
            let write = ShellCommand::new("cmd package install-write -S").arg(apks.parts[nth].size);
            let write = write.arg(session).arg(format!("{nth}.apk")).literal("-");
            write_part(on, &write, apks, nth).await?;
        }
        let commit = ShellCommand::new("cmd package install-commit").arg(session);
        checked(&on.run_command(&commit, limits()).await?.text())
    };
    with_cleanup(on, &create, &ShellCommand::new(ABANDON), work).await
}

/// `Success: created install session [1234]`
fn session_number(created: &str) -> Option<u32> {
    let (_, rest) = created.split_once("install session [")?;
    rest.split_once(']')?.0.parse().ok()
}

async fn write_part(
    on: &dyn PhoneShell,
    command: &ShellCommand,
    apks: &mut ApkSet,
    nth: usize,
) -> Result<(), PhoneError> {
    let name = apks.parts[nth].name.clone();
    let mut part = apks.part(nth).await?;
    let text = on.feed(command, &mut part, limits()).await?.text();
    checked(&text).map_err(|error| match error {
        PhoneError::Failed(why) => PhoneError::Failed(format!("'{name}': {why}")),
        error => error,
    })
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
