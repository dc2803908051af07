//! The phone through the real `adb`: its own server, on its own port, with its own home.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::phone::{Android, Denial, PhoneClock, PhoneConfig, RunningPhones, VirtualPhone};

/// An adb server of our own and one connected phone.
struct ConnectedPhone {
    phone: VirtualPhone,
    serial: String,
    port: u16,
    home: PathBuf,
    shutdown: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
}

impl ConnectedPhone {
    /// `None`, with the reason printed, where adb is not installed.
    async fn open(android: Android) -> Option<ConnectedPhone> {
        if std::process::Command::new("adb").arg("version").output().is_err() {
            println!("skipped: `adb` is not installed (Debian: apt-get install adb)");
            return None;
        }
        let adb = Some("127.0.0.1:0".parse().unwrap());
        let config = PhoneConfig { adb, android, clock: PhoneClock::Virtual, ..PhoneConfig::default() };
        let mut stand = RunningPhones::open(&config).await.unwrap();
        let serial = stand.addresses()[0].to_string();
        let phone = stand.phones[0].clone();
        stand.phones.truncate(1);
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(stand.run(shutdown.clone()));
        // A free port, given up again for the server to take.
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let home = std::env::temp_dir().join(format!("sinew-adb-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        let bench = ConnectedPhone { phone, serial, port, home, shutdown, serving };
        let said = bench.adb(&["connect", &bench.serial]).await.0;
        assert!(said.contains("connected to"), "{said}");
        Some(bench)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("adb");
        command.args(args).env("ANDROID_ADB_SERVER_PORT", self.port.to_string()).env("HOME", &self.home);
        command.env_remove("ADB_SERVER_SOCKET").env_remove("ANDROID_SERIAL").stdin(Stdio::null());
        command
    }

    /// What adb printed, complained and ended with.
    async fn adb(&self, args: &[&str]) -> (String, String, i32) {
        let output = self.command(args).output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (text(output.stdout), text(output.stderr), output.status.code().unwrap_or(-1))
    }

    async fn shell(&self, line: &str) -> String {
        let (out, err, _) = self.adb(&["-s", &self.serial, "shell", line]).await;
        out + &err
    }

    async fn close(self) {
        self.adb(&["kill-server"]).await;
        self.shutdown.cancel();
        self.serving.await.unwrap().unwrap();
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_adb_drives_the_phone() {
    let Some(bench) = ConnectedPhone::open(Android::V15).await else { return };
    let (devices, ..) = bench.adb(&["devices", "-l"]).await;
    assert!(devices.contains(&bench.serial) && devices.contains("model:Virtual_Phone"), "{devices}");

    let (out, err, code) = bench.adb(&["-s", &bench.serial, "shell", "echo out; echo err >&2; exit 7"]).await;
    assert_eq!((out.as_str(), err.as_str(), code), ("out\n", "err\n", 7));
    assert_eq!(bench.shell("dumpsys window | grep -E 'mCurrentFocus='").await.trim(), {
        let title = "com.android.launcher3/com.android.launcher3.uioverrides.QuickstepLauncher";
        format!("mCurrentFocus=Window{{{} u0 {title}}}", super::shell::address_of(title))
    });

    bench.shell("am start -n com.android.calculator2/.Calculator").await;
    bench.shell("input text '6*7'; input keyevent 66").await;
    let dump = bench.shell("uiautomator dump /dev/tty").await;
    let tree = sinew_phones::tree::xml::parse(&dump).unwrap();
    let formula =
        tree.nodes().iter().find(|node| node.resource_id.as_deref() == Some("com.android.calculator2:id/formula"));
    assert_eq!(formula.and_then(|node| node.text.as_deref()), Some("42"));

    let tap =
        tree.nodes().iter().find(|node| node.resource_id.as_deref() == Some("com.android.calculator2:id/clr")).unwrap();
    let (x, y) = tap.bounds.center();
    bench.shell(&format!("input tap {x} {y}")).await;
    assert!(!bench.shell("uiautomator dump /dev/tty").await.contains("text=\"42\""));
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_and_files_come_through_unchanged() {
    let Some(bench) = ConnectedPhone::open(Android::V11).await else { return };
    let output = bench.command(&["-s", &bench.serial, "exec-out", "screencap", "-p"]).output().await.unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&output.stdout)).read_info().unwrap();
    assert_eq!((reader.info().width, reader.info().height), (1080, 2400));
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    assert_eq!(pixels, bench.phone.handset.with(|machine| machine.paint()).bytes());

    // Large enough for many packets and several pieces, with every byte in it.
    let data: Vec<u8> = (0..700_000u32).map(|index| (index * 31 % 256) as u8).collect();
    let (here, back) = (bench.home.join("here.bin"), bench.home.join("back.bin"));
    std::fs::write(&here, &data).unwrap();
    let (there, up, down) = ("/sdcard/Download/there.bin", here.to_str().unwrap(), back.to_str().unwrap());
    let (out, err, code) = bench.adb(&["-s", &bench.serial, "push", up, there]).await;
    assert_eq!(code, 0, "{out}{err}");
    let (out, err, code) = bench.adb(&["-s", &bench.serial, "pull", there, down]).await;
    assert_eq!(code, 0, "{out}{err}");
    assert!(std::fs::read(&back).unwrap() == data);
    let (listed, ..) = bench.adb(&["-s", &bench.serial, "ls", "/sdcard/Download"]).await;
    assert!(listed.contains("there.bin") && listed.contains("readme.txt"), "{listed}");
    let (out, err, code) = bench.adb(&["-s", &bench.serial, "push", up, "/system/there.bin"]).await;
    assert!(code != 0 && (out + &err).contains("Permission denied"));
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_reaches_a_command_and_its_answer_comes_back() {
    let Some(bench) = ConnectedPhone::open(Android::V13).await else { return };
    let mut child = bench
        .command(&["-s", &bench.serial, "shell", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all("Grüße\n".as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Grüße\n");

    let children: Vec<_> = (0..8)
        .map(|number| {
            let line = format!("sleep 1; echo {number}");
            bench.command(&["-s", &bench.serial, "shell", &line]).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for (number, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{number}\n"));
    }
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_read_as_on_a_phone() {
    let Some(bench) = ConnectedPhone::open(Android::V9).await else { return };
    bench.shell("am start -n com.android.deskclock/.DeskClock").await;
    let (out, err, code) = bench.adb(&["-s", &bench.serial, "shell", "uiautomator dump"]).await;
    assert_eq!((out.as_str(), err.trim(), code), ("", "ERROR: could not get idle state.", 0));
    bench.phone.handset.deny(Denial::Input, true);
    assert!(bench.shell("input tap 5 5").await.contains("INJECT_EVENTS"));
    bench.phone.handset.deny(Denial::Capture, true);
    let (out, _, code) = bench.adb(&["-s", &bench.serial, "exec-out", "screencap -p"]).await;
    assert!(out.contains("Capturing failed.") && code == 0, "exec has no exit code: {out}");
    bench.shell("input keyevent 223").await;
    bench.phone.handset.deny(Denial::Input, false);
    bench.shell("input keyevent 223").await;
    assert!(bench.shell("uiautomator dump").await.contains("null root node"));
    assert!(bench.shell("dumpsys power | grep mWakefulness=").await.contains("Asleep"));
    assert!(bench.shell("no-such-tool").await.contains("no-such-tool: not found"));
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_framebuffer_is_the_screen_with_its_header() {
    let Some(bench) = ConnectedPhone::open(Android::V15).await else { return };
    let transport = sinew_phones::adb::AdbServer::tcp("127.0.0.1", bench.port).transport(bench.serial.as_str(), true);
    let mut answer = Vec::new();
    transport.open("framebuffer:").await.unwrap().read_to_end(&mut answer).await.unwrap();
    let (header, pixels) = answer.split_at(13 * 4);
    let header: Vec<u32> = header.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    let size = 1080 * 2400 * 4;
    // Version, depth, size, width, height; then offset and length of red, blue, green and alpha.
    assert_eq!(header, [1, 32, size, 1080, 2400, 0, 8, 16, 8, 8, 8, 24, 8]);
    assert!(pixels == bench.phone.handset.with(|machine| machine.paint()).bytes(), "{} bytes", pixels.len());
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn adb_is_told_that_the_phone_listens_at_a_port() {
    let Some(bench) = ConnectedPhone::open(Android::V13).await else { return };
    let (out, err, code) = bench.adb(&["-s", &bench.serial, "tcpip", "5555"]).await;
    assert_eq!((out.as_str(), err.as_str(), code), ("restarting in TCP mode port: 5555\n", "", 0));
    let (out, err, _) = bench.adb(&["-s", &bench.serial, "tcpip", "0"]).await;
    assert!((out.clone() + &err).contains("invalid port"), "{out}{err}");
    // The phone is where it was: it serves all connections at one address.
    assert_eq!(bench.shell("echo here").await, "here\n");
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pulling_the_cable_ends_what_runs_and_the_phone_can_come_back() {
    let Some(bench) = ConnectedPhone::open(Android::V15).await else { return };
    bench.phone.handset.set_latency(std::time::Duration::from_secs(600));
    let begun = bench.phone.handset.next_command();
    let command = bench.command(&["-s", &bench.serial, "shell", "echo late"]).output();
    let unplug = async {
        begun.await;
        bench.phone.handset.unplug();
    };
    let (output, ()) = tokio::join!(command, unplug);
    assert!(!String::from_utf8_lossy(&output.unwrap().stdout).contains("late"));
    bench.phone.handset.set_latency(std::time::Duration::ZERO);
    bench.phone.handset.plug_in();
    bench.adb(&["disconnect", &bench.serial]).await;
    let said = bench.adb(&["connect", &bench.serial]).await.0;
    assert!(said.contains("connected to"), "{said}");
    // The server may still show the connection that ended.
    bench.adb(&["-s", &bench.serial, "wait-for-device"]).await;
    assert_eq!(bench.shell("echo here").await, "here\n");
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pulling_the_cable_hangs_up_on_a_shell_that_goes_on_and_it_ends_with_the_phone() {
    let Some(bench) = ConnectedPhone::open(Android::V15).await else { return };
    let handset = bench.phone.handset.clone();
    // Its one moment to come is before it answers, when it has said that it goes on.
    let halted = handset.halt_after(1);
    let command = bench.command(&["-s", &bench.serial, "shell", "trap '' HUP; echo late"]).output();
    let unplug = async {
        halted.await;
        handset.unplug();
    };
    let both = async { tokio::join!(command, unplug).0 };
    // Long enough for any machine: a command whose connection stays never ends.
    let ended = tokio::time::timeout(std::time::Duration::from_secs(120), both).await;
    assert!(ended.expect("adb hears that the phone is gone").is_ok());
    bench.close().await;
}
