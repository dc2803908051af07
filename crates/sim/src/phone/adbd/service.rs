//! What a stream can be opened to: a shell, a raw command, file transfer.

use super::Device;
use super::connection::{Closed, Stream};
use super::shell::{Live, Shell};
use super::sync;

/// A service, read from the name in the host's OPEN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// `shell:` and `exec:`: bytes both ways; the exit code is lost.
    Plain {
        command: String,
        pty: bool,
    },
    /// `shell,v2:`: streams kept apart, and an exit code.
    Framed {
        command: String,
        pty: bool,
    },
    Sync,
    /// Services that answer one line and end.
    Say(&'static str),
    /// The phone starts again.
    Reboot,
}

/// The service of a name; `None` where this phone has none, as for ports nobody listens on.
pub fn find(name: &str) -> Option<Service> {
    let (kind, rest) = name.split_once(':')?;
    let mut words = kind.split(',');
    match words.next()? {
        "shell" => {
            let options: Vec<&str> = words.collect();
            let command = rest.to_owned();
            // Without a word about it, adbd gives a terminal only to a shell without a command.
            let pty = options.contains(&"pty") || (!options.contains(&"raw") && command.is_empty());
            match options.contains(&"v2") {
                true => Some(Service::Framed { command, pty }),
                false => Some(Service::Plain { command, pty }),
            }
        }
        "exec" => Some(Service::Plain { command: rest.to_owned(), pty: false }),
        "sync" => Some(Service::Sync),
        "root" => Some(Service::Say("adbd cannot run as root in production builds\n")),
        "unroot" => Some(Service::Say("adbd not running as root\n")),
        "remount" => Some(Service::Say("Not running as root. Try \"adb root\" first.\n")),
        "reboot" => Some(Service::Reboot),
        _ => None,
    }
}

pub async fn run(service: Service, stream: &mut Stream, device: &Device) {
    if device.handset.take_time().await.is_err() {
        return;
    }
    // A stream that is closed while it is served needs no further word.
    let _: Result<(), Closed> = match service {
        Service::Plain { command, pty } => {
            let mut live = Live::plain(stream, pty);
            Shell::new(device.handset.clone()).serve(&command, &mut live).await
        }
        Service::Framed { command, pty } => {
            let mut live = Live::framed(stream, pty);
            Shell::new(device.handset.clone()).serve(&command, &mut live).await
        }
        Service::Sync => sync::serve(stream, device).await,
        Service::Say(text) => stream.write(text.as_bytes()).await,
        Service::Reboot => {
            device.handset.restart();
            Ok(())
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_known_by_their_names() {
        let framed = |command: &str, pty| Some(Service::Framed { command: command.to_owned(), pty });
        assert_eq!(find("shell,v2,TERM=xterm,raw:ls -l"), framed("ls -l", false));
        assert_eq!(find("shell,v2,pty:"), framed("", true));
        assert_eq!(find("exec:screencap -p"), Some(Service::Plain { command: "screencap -p".to_owned(), pty: false }));
        assert_eq!(find("sync:"), Some(Service::Sync));
        assert_eq!(find("tcp:9008"), None);
        assert_eq!(find("nonsense"), None);
    }
}
