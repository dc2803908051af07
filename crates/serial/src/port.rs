//! An open serial port. It is ours alone while it is open.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::termios::{ControlModes, OptionalActions, ioctl_tiocexcl, isatty, tcgetattr, tcsetattr};
use tokio::io::unix::AsyncFd;

pub(crate) struct Port {
    file: AsyncFd<File>,
    is_gone: AtomicBool,
}

impl Port {
    /// Opens a port with 8 bits, no parity, one stop bit. Other programs are kept out; where one has the port, it is
    /// left alone.
    pub(crate) fn open(path: &Path, speed: u32) -> io::Result<Port> {
        let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags.bits().cast_signed()).open(path)?;
        if !isatty(&file) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a serial port"));
        }
        let taken = |_| io::Error::new(io::ErrorKind::ResourceBusy, "another program uses this port; close it there");
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(taken)?;
        ioctl_tiocexcl(&file)?;
        let mut modes = tcgetattr(&file)?;
        modes.make_raw();
        modes.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
        // Otherwise many boards restart each time the port is closed.
        modes.control_modes &= !ControlModes::HUPCL;
        modes.set_speed(speed)?;
        tcsetattr(&file, OptionalActions::Now, &modes)?;
        // Deprecated for types whose descriptor may change; that of a file never does.
        #[allow(deprecated)]
        let file = AsyncFd::new(file)?;
        Ok(Port { file, is_gone: AtomicBool::new(false) })
    }

    /// Reads what is there; an error when the port is gone.
    pub(crate) fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.file.poll_read_ready(cx))?;
            match ready.try_io(|file| file.get_ref().read(buffer)) {
                Ok(Ok(read)) if read > 0 => return Poll::Ready(Ok(read)),
                Ok(_) => return Poll::Ready(Err(self.gone())),
                Err(_would_block) => {}
            }
        }
    }

    /// A port that can be neither read nor written any more is opened anew.
    fn gone(&self) -> io::Error {
        self.is_gone.store(true, Ordering::Relaxed);
        io::Error::new(io::ErrorKind::NotConnected, "it was unplugged")
    }

    /// Whether the port was unplugged.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.file.poll_write_ready(cx))?;
            match ready.try_io(|file| file.get_ref().write(bytes)) {
                Ok(Ok(written)) => return Poll::Ready(Ok(written)),
                Ok(Err(_)) => return Poll::Ready(Err(self.gone())),
                Err(_would_block) => {}
            }
        }
    }
}
