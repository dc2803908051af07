//! A serial port without a cable: a pseudo terminal with a virtual board at its other end. For demonstrations, tests and
//! measurements.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;

use crate::lines::MAX_LINE_BYTES;

pub struct PseudoPort {
    path: PathBuf,
    board_side: AsyncFd<File>,
    /// Kept open: without anybody at this end, the other one reports that it was unplugged.
    _port: File,
}

impl PseudoPort {
    pub fn open() -> io::Result<PseudoPort> {
        let board_side = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&board_side)?;
        unlockpt(&board_side)?;
        let name = ptsname(&board_side, Vec::new())?.into_string().map_err(io::Error::other)?;
        let path = PathBuf::from(name);
        let port =
            OpenOptions::new().read(true).write(true).custom_flags(OFlags::NOCTTY.bits().cast_signed()).open(&path)?;
        // Nothing is echoed, and no line end is changed.
        let mut modes = tcgetattr(&port)?;
        modes.make_raw();
        tcsetattr(&port, OptionalActions::Now, &modes)?;
        rustix::fs::fcntl_setfl(&board_side, OFlags::NONBLOCK)?;
        // Deprecated for types whose descriptor may change; that of a file never does.
        #[allow(deprecated)]
        let board_side = AsyncFd::new(File::from(board_side))?;
        Ok(PseudoPort { path, board_side, _port: port })
    }

    /// The name of the port, for `path` of a serial line.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Answers lines as a board does, until `shutdown`.
    pub async fn run(
        self,
        mut answer: impl FnMut(&str) -> Option<String>,
        shutdown: CancellationToken,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        let mut buffer = [0; 4096];
        let reading = |mut file: &File, buffer: &mut [u8]| file.read(buffer);
        loop {
            let read = self.board_side.async_io(Interest::READABLE, |file| reading(file, &mut buffer));
            let Some(read) = shutdown.run_until_cancelled(read).await else { return Ok(()) };
            for byte in &buffer[..read?] {
                if *byte != b'\n' {
                    line.push(*byte);
                    line.truncate(MAX_LINE_BYTES);
                    continue;
                }
                let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
                if let Some(answer) = answer(&text) {
                    self.write(format!("{answer}\n").as_bytes(), &shutdown).await?;
                }
            }
        }
    }

    async fn write(&self, mut bytes: &[u8], shutdown: &CancellationToken) -> io::Result<()> {
        let writing = |mut file: &File, bytes: &[u8]| file.write(bytes);
        while !bytes.is_empty() {
            let written = self.board_side.async_io(Interest::WRITABLE, |file| writing(file, bytes));
            let Some(written) = shutdown.run_until_cancelled(written).await else { return Ok(()) };
            bytes = &bytes[written?..];
        }
        Ok(())
    }
}
