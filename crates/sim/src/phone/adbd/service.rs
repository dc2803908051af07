//! What a stream can be opened to: a shell, a raw command, file transfer.

use std::sync::PoisonError;

use super::AdbdPhone;
use super::connection::{AdbdStream, Closed};
use super::shell::{LiveStream, Shell};
use super::sync;

/// A service, read from the name in the host's OPEN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AdbdService {
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
    /// The screen as it is: a header and its pixels.
    Framebuffer,
    /// `adb reverse`: connections from the phone to the host. They are listed; nothing on this phone opens one.
    Reverse(String),
    /// Services that answer one line and end.
    Say(String),
    /// The phone starts again.
    Reboot,
}

/// The service of a name; `None` where this phone has none, as for ports nobody listens on.
pub(super) fn find(name: &str) -> Option<AdbdService> {
    let (kind, rest) = name.split_once(':')?;
    let mut words = kind.split(',');
    match words.next()? {
        "shell" => {
            let options: Vec<&str> = words.collect();
            let command = rest.to_owned();
            // Without a word about it, adbd gives a terminal only to a shell without a command.
            let pty = options.contains(&"pty") || (!options.contains(&"raw") && command.is_empty());
            match options.contains(&"v2") {
                true => Some(AdbdService::Framed { command, pty }),
                false => Some(AdbdService::Plain { command, pty }),
            }
        }
        "exec" => Some(AdbdService::Plain { command: rest.to_owned(), pty: false }),
        "sync" => Some(AdbdService::Sync),
        "framebuffer" => Some(AdbdService::Framebuffer),
        "reverse" => Some(AdbdService::Reverse(rest.to_owned())),
        "root" => say("adbd cannot run as root in production builds\n"),
        "unroot" => say("adbd not running as root\n"),
        "remount" => say("Not running as root. Try \"adb root\" first.\n"),
        "tcpip" => match rest.parse::<u16>() {
            Ok(port) if port > 0 => say(&format!("restarting in TCP mode port: {port}\n")),
            _ => say("invalid port\n"),
        },
        "usb" => say("restarting in USB mode\n"),
        "reboot" => Some(AdbdService::Reboot),
        _ => None,
    }
}

fn say(text: &str) -> Option<AdbdService> {
    Some(AdbdService::Say(text.to_owned()))
}

pub(super) async fn run(service: AdbdService, stream: &mut AdbdStream, device: &AdbdPhone) {
    if device.handset.take_time().await.is_err() {
        return;
    }
    // A stream that closes while it is served is not an error.
    let _: Result<(), Closed> = match service {
        AdbdService::Plain { command, pty } => {
            let mut shell = Shell::new(device.handset.clone()).that_says(stream.ignores_hangup.clone());
            shell.serve(&command, &mut LiveStream::plain(stream, pty)).await
        }
        AdbdService::Framed { command, pty } => {
            let mut shell = Shell::new(device.handset.clone()).that_says(stream.ignores_hangup.clone());
            shell.serve(&command, &mut LiveStream::framed(stream, pty)).await
        }
        AdbdService::Sync => sync::serve(stream, device).await,
        AdbdService::Framebuffer => stream.write(&framebuffer(device)).await,
        AdbdService::Reverse(request) => stream.write(&reverse(&request, device)).await,
        AdbdService::Say(text) => stream.write(text.as_bytes()).await,
        AdbdService::Reboot => {
            device.handset.restart();
            Ok(())
        }
    };
}

/// Version 1 of the header: depth, size, width, height, and where each colour stands; then the pixels.
fn framebuffer(device: &AdbdPhone) -> Vec<u8> {
    let (width, height, pixels) = device.handset.with(|machine| {
        let canvas = machine.paint();
        (canvas.width as u32, canvas.height as u32, canvas.bytes().to_vec())
    });
    // Red, blue, green, alpha: offset and length in bits.
    let colours = [0, 8, 16, 8, 8, 8, 24, 8];
    let header = [1, 32, pixels.len() as u32, width, height].into_iter().chain(colours);
    header.flat_map(u32::to_le_bytes).chain(pixels).collect()
}

/// What `adb reverse` is answered: OKAY or FAIL, and a text with its length where one belongs.
fn reverse(request: &str, device: &AdbdPhone) -> Vec<u8> {
    let block = |text: &str| format!("{:04x}{text}", text.len());
    let fail = |why: &str| format!("FAIL{}", block(why)).into_bytes();
    let mut list = device.reversed.lock().unwrap_or_else(PoisonError::into_inner);
    match request.split_once(':').unwrap_or((request, "")) {
        ("list-forward", _) => {
            let lines: String = list.iter().map(|(from, to)| format!("(reverse) {from} {to}\n")).collect();
            block(&lines).into_bytes()
        }
        ("forward", pair) => {
            let (keeps, pair) = pair.strip_prefix("norebind:").map_or((false, pair), |pair| (true, pair));
            let Some((from, to)) = pair.split_once(';') else { return fail("bad forward") };
            let known = list.iter().position(|(known, _)| known == from);
            match known {
                Some(_) if keeps => return fail("cannot rebind existing socket"),
                Some(at) => drop(list.remove(at)),
                None if list.len() >= MOST_REVERSED => return fail("too many"),
                None => {}
            }
            list.push((from.to_owned(), to.to_owned()));
            b"OKAY".to_vec()
        }
        ("killforward-all", _) => {
            list.clear();
            b"OKAY".to_vec()
        }
        ("killforward", from) => {
            let before = list.len();
            list.retain(|(known, _)| known != from);
            if list.len() < before { b"OKAY".to_vec() } else { fail(&format!("listener '{from}' not found")) }
        }
        _ => fail("unknown request"),
    }
}

/// More ports than any program asks for.
const MOST_REVERSED: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_known_by_their_names() {
        let framed = |command: &str, pty| Some(AdbdService::Framed { command: command.to_owned(), pty });
        assert_eq!(find("shell,v2,TERM=xterm,raw:ls -l"), framed("ls -l", false));
        assert_eq!(find("shell,v2,pty:"), framed("", true));
        assert_eq!(
            find("exec:screencap -p"),
            Some(AdbdService::Plain { command: "screencap -p".to_owned(), pty: false })
        );
        assert_eq!(find("sync:"), Some(AdbdService::Sync));
        assert_eq!(find("tcp:9008"), None);
        assert_eq!(find("nonsense"), None);
    }
}
