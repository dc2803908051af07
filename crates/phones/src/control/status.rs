//! The state of a phone: battery, network, volume, and the crashes of its apps.

use jiff::civil::DateTime;

use super::PhoneShell;
use crate::adb::command::ShellCommand;
use crate::adb::parse;
use crate::adb::shell::CommandLimits;
use crate::logs::LogTime;
use crate::phone::PhoneError;

/// `None` where the phone does not say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhoneStatus {
    pub battery_percent: Option<u8>,
    pub charging: Option<bool>,
    /// Tenths of a degree Celsius.
    pub battery_temperature: Option<i32>,
    pub airplane_mode: Option<bool>,
    pub wifi: Option<bool>,
    pub bluetooth: Option<bool>,
    pub mobile_data: Option<bool>,
    /// The phone's addresses, without the loopback.
    pub addresses: Vec<String>,
    pub volumes: Vec<StreamVolume>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamVolume {
    pub stream: &'static str,
    pub level: u32,
    pub highest: u32,
}

/// Android's numbers of the streams that people know.
const STREAMS: [(&str, u8); 4] = [("media", 3), ("ring", 2), ("alarm", 4), ("notification", 5)];

/// The settings that are read, in this order.
const SWITCHES: [&str; 4] = ["airplane_mode_on", "wifi_on", "bluetooth_on", "mobile_data"];

const SEPARATOR: &str = "sinew-next";

pub async fn read(on: &dyn PhoneShell) -> Result<PhoneStatus, PhoneError> {
    let next = || ShellCommand::new("echo sinew-next");
    let mut command = ShellCommand::new("dumpsys battery").then(next());
    for switch in SWITCHES {
        command = command.then(ShellCommand::new("settings get global").arg(switch));
    }
    command = command.then(next()).then(ShellCommand::new("ip -o addr show")).then(next());
    for (_, number) in STREAMS {
        command = command.then(ShellCommand::new("cmd media_session volume --get --stream").arg(number));
        command = command.then(ShellCommand::new("echo sinew-stream"));
    }
    let output = on.run_command(&command, CommandLimits::seconds(20)).await?;
    Ok(parse_status(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads what the commands of [`read`] printed.
pub fn parse_status(text: &str) -> PhoneStatus {
    let mut parts = text.split(SEPARATOR);
    let mut part = || parts.next().unwrap_or_default();
    let (battery, switches, addresses, volumes) = (part(), part(), part(), part());
    let value = |name: &str| battery.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
    let mut switches = switches.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| match line {
        "0" => Some(false),
        // 2: on, and kept on in airplane mode.
        "1" | "2" => Some(true),
        _ => None,
    });
    let mut switch = || switches.next().flatten();
    let [airplane_mode, wifi, bluetooth, mobile_data] = [switch(), switch(), switch(), switch()];
    PhoneStatus {
        battery_percent: value("level").and_then(|level| level.parse().ok()).filter(|level| *level <= 100),
        // 2: charging, 5: full.
        charging: value("status").map(|status| matches!(status, "2" | "5")),
        battery_temperature: value("temperature").and_then(|degrees| degrees.parse().ok()),
        airplane_mode,
        wifi,
        bluetooth,
        mobile_data,
        addresses: addresses.lines().filter_map(address).take(20).collect(),
        volumes: STREAMS
            .iter()
            .zip(volumes.split("sinew-stream"))
            .filter_map(|((name, _), text)| volume(name, text))
            .collect(),
    }
}

/// `21: wlan0    inet 192.168.1.20/24 brd …`
fn address(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip_while(|word| !matches!(*word, "inet" | "inet6")).skip(1);
    let address: std::net::IpAddr = words.next()?.split('/').next()?.parse().ok()?;
    let is_own = |address: &std::net::IpAddr| match address {
        std::net::IpAddr::V4(address) => !address.is_loopback(),
        std::net::IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
    };
    Some(address).filter(is_own).map(|address| address.to_string())
}

/// `[V] volume is 5 in range [0..15]`
fn volume(stream: &'static str, text: &str) -> Option<StreamVolume> {
    let (_, rest) = text.split_once("volume is ")?;
    let (level, rest) = rest.split_once(" in range [")?;
    let (_, highest) = rest.split_once(']')?.0.split_once("..")?;
    Some(StreamVolume { stream, level: level.parse().ok()?, highest: highest.parse().ok()? })
}

/// An app that crashed or stopped answering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// By the phone's own clock.
    pub time: DateTime,
    pub kind: CrashKind,
    pub process: String,
    /// The exception and its message, or what was waited for.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashKind {
    Crash,
    NotResponding,
}

impl CrashKind {
    pub fn word(self) -> &'static str {
        match self {
            CrashKind::Crash => "crash",
            CrashKind::NotResponding => "not responding",
        }
    }
}

/// The latest, oldest first.
pub async fn crashes(
    on: &dyn PhoneShell,
    since: Option<LogTime>,
    package: Option<&str>,
    most: usize,
) -> Result<Vec<Crash>, PhoneError> {
    let command = ShellCommand::new("date +%z")
        .then(ShellCommand::new("logcat -b events -d -v threadtime -v year -s am_crash am_anr"));
    let output = on.run_command(&command, CommandLimits::seconds(20).megabytes(16)).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let offset = text.lines().find_map(parse::offset).unwrap_or(jiff::tz::Offset::UTC);
    let since = since.map(|since| since.at(offset));
    let mut found: Vec<Crash> = text.lines().filter_map(parse_crash).collect();
    found.retain(|crash| since.is_none_or(|since| crash.time >= since));
    // A process may be named `package:part`.
    found.retain(|crash| package.is_none_or(|package| crash.process.split(':').next() == Some(package)));
    Ok(found.split_off(found.len().saturating_sub(most)))
}

/// Reads a line of the event log: `am_crash: [pid,user,process,flags,exception,message,file,line,…]` and `am_anr: [user,pid,process,flags,reason]`.
pub fn parse_crash(line: &str) -> Option<Crash> {
    let entry = parse::log_line(line)?;
    let members = entry.message.trim().strip_prefix('[')?;
    let members = members.strip_suffix(']').unwrap_or(members);
    let (kind, process, reason) = match entry.tag.trim() {
        "am_crash" => {
            let mut parts = members.splitn(5, ',');
            let process = parts.nth(2)?;
            (CrashKind::Crash, process, crash_reason(parts.nth(1)?))
        }
        "am_anr" => {
            let mut parts = members.splitn(5, ',');
            let process = parts.nth(2)?;
            (CrashKind::NotResponding, process, parts.nth(1)?.to_owned())
        }
        _ => return None,
    };
    let reason = reason.chars().take(500).collect();
    Some(Crash { time: entry.time, kind, process: process.chars().take(200).collect(), reason })
}

/// `exception,message,file,line,recoverable`, where the message may have commas.
fn crash_reason(rest: &str) -> String {
    let parts: Vec<&str> = rest.split(',').collect();
    let numbers = parts.iter().rev().take_while(|part| part.parse::<i64>().is_ok()).count();
    match parts.len() - numbers {
        whole @ 3.. if numbers > 0 => {
            let (exception, message, file) = (parts[0], parts[1..whole - 1].join(","), parts[whole - 1]);
            format!("{exception}: {message} ({file}:{})", parts[whole])
        }
        _ => rest.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_phone_says_is_read_and_what_it_does_not_say_is_left_out() {
        let text = "Current Battery Service state:\n  USB powered: true\n  status: 2\n  level: 87\n  temperature: 265\nsinew-next\n0\n1\nnull\n1\nsinew-next\n1: lo    inet 127.0.0.1/8 scope host lo\n21: wlan0    inet 192.168.1.20/24 brd 192.168.1.255\n21: wlan0    inet6 fe80::1/64 scope link\nsinew-next\n[V] will get volume\n[V] volume is 5 in range [0..15]\nsinew-stream\nError: unknown\nsinew-stream\n";
        let status = parse_status(text);
        assert_eq!(
            (status.battery_percent, status.charging, status.battery_temperature),
            (Some(87), Some(true), Some(265))
        );
        assert_eq!((status.airplane_mode, status.wifi, status.bluetooth), (Some(false), Some(true), None));
        assert_eq!(status.addresses, ["192.168.1.20"]);
        assert_eq!(status.volumes, [StreamVolume { stream: "media", level: 5, highest: 15 }]);
        assert_eq!(parse_status(""), PhoneStatus::default());
    }

    #[test]
    fn crashes_keep_their_reason_and_messages_their_commas() {
        let line = "2026-02-11 16:30:00.123  1203  1250 I am_crash: [4711,0,com.shop,551075398,java.lang.IllegalStateException,no cart, no order,Cart.kt,42,0]";
        let found = parse_crash(line).unwrap();
        assert_eq!((found.kind, found.process.as_str()), (CrashKind::Crash, "com.shop"));
        assert_eq!(found.reason, "java.lang.IllegalStateException: no cart, no order (Cart.kt:42)");
        let line = "2026-02-11 16:30:00.123  1203  1250 I am_anr  : [0,4712,com.shop,551075398,Input dispatching timed out (x, y)]";
        assert_eq!(parse_crash(line).unwrap().reason, "Input dispatching timed out (x, y)");
        for wrong in
            ["", "2026-02-11 16:30:00.123  1  1 I am_crash: [1,2]", "2026-02-11 16:30:00.123  1  1 I am_crash: x"]
        {
            assert_eq!(parse_crash(wrong), None, "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_a_phone_prints_is_read_within_bounds(
            text in "(sinew-next|sinew-stream|level: |status: 2|inet |volume is |in range \\[0\\.\\.|[^a-z]{0,9}|\n){0,60}",
            reason in ".{0,2000}",
        ) {
            let status = parse_status(&text);
            proptest::prop_assert!(status.battery_percent.is_none_or(|percent| percent <= 100));
            proptest::prop_assert!(status.addresses.len() <= 20 && status.volumes.len() <= STREAMS.len());
            for tag in ["am_crash", "am_anr"] {
                let line = format!("2026-02-11 16:30:00.123  1  1 I {tag}: [1,2,{reason},3,{reason}]");
                if let Some(crash) = parse_crash(&line) {
                    proptest::prop_assert!(crash.process.chars().count() <= 200 && crash.reason.chars().count() <= 500);
                }
            }
        }
    }
}
