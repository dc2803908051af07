//! A board on an emulated RISC-V microcontroller (`examples/qemu-board`) and the real gateway.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::gateway::{Process, TestGateway, sinew};

const ID: &str = "52:54:00:12:34:56";

/// The firmware, where it was built and an emulator is there to run it.
fn firmware() -> Option<PathBuf> {
    let firmware = Path::new(env!("CARGO_BIN_EXE_sinew"))
        .ancestors()
        .nth(2)
        .map(|target| target.join("riscv32imc-unknown-none-elf/release/qemu-board"))
        .filter(|path| path.is_file());
    let emulator = Command::new("qemu-system-riscv32").arg("--version").output().is_ok();
    let found = firmware.filter(|_| emulator);
    let is_expected = std::env::var_os("SINEW_TEST_ALL").is_some();
    assert!(found.is_some() || !is_expected, "build examples/qemu-board and install qemu-system-misc");
    found
}

/// An emulated board. It says on its serial port what it does.
struct Emulated {
    process: Child,
    serial: BufReader<ChildStdout>,
    _settings: tempfile::TempDir,
}

impl Emulated {
    fn start(firmware: &Path, port: &str, token: &str) -> Emulated {
        let settings = tempfile::tempdir().expect("a folder");
        let file = settings.path().join("settings");
        std::fs::write(&file, format!("{port}\n{token}\n")).expect("written");
        let mut process = Command::new("qemu-system-riscv32")
            .args(["-M", "virt", "-m", "16M", "-bios", "none", "-display", "none", "-monitor", "none"])
            .args(["-serial", "stdio", "-global", "virtio-mmio.force-legacy=false", "-netdev", "user,id=n0"])
            .args(["-device", &format!("virtio-net-device,netdev=n0,mac={ID}")])
            .args(["-device", &format!("loader,file={},addr=0x80600000,force-raw=on", file.display())])
            .arg("-kernel")
            .arg(firmware)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the emulator starts");
        let serial = BufReader::new(process.stdout.take().expect("its serial port is piped"));
        Emulated { process, serial, _settings: settings }
    }

    /// Reads on until the board says this.
    fn until(&mut self, wanted: &str) {
        let mut line = String::new();
        while line.trim() != wanted {
            line.clear();
            let length = self.serial.read_line(&mut line).expect("a line");
            assert_ne!(length, 0, "the board ended before it said {wanted:?}");
        }
    }
}

/// A board on a pseudo terminal, and the path of its port.
fn start_on_a_line(firmware: &Path) -> (Process, String, tempfile::TempDir) {
    let settings = tempfile::tempdir().expect("a folder");
    let file = settings.path().join("settings");
    std::fs::write(&file, "serial\n").expect("written");
    let mut process = Process::start(
        Command::new("qemu-system-riscv32")
            .args(["-M", "virt", "-m", "16M", "-bios", "none", "-display", "none", "-monitor", "none"])
            .args(["-serial", "pty"])
            .args(["-device", &format!("loader,file={},addr=0x80600000,force-raw=on", file.display())])
            .arg("-kernel")
            .arg(firmware),
    );
    let line = process.until("/dev/pts/");
    let path = line.split_whitespace().find(|word| word.starts_with("/dev/pts/")).expect("a port").to_owned();
    (process, path, settings)
}

impl Drop for Emulated {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn port(page: &Value) -> String {
    let url = page["devices_url"].as_str().expect("an address");
    let port = url.rsplit(':').next().and_then(|rest| rest.split('/').next());
    port.expect("a port").to_owned()
}

#[test]
fn an_emulated_microcontroller_is_a_board_like_any_other() {
    let Some(firmware) = firmware() else { return };
    let gateway = TestGateway::serve();
    let port = port(&gateway.page);
    let token = gateway.json(&["token", "new", "--device", ID])["token"].as_str().expect("a token").to_owned();

    Emulated::start(&firmware, &port, "snw_wrong").until("refused with status 401");

    let mut board = Emulated::start(&firmware, &port, &token);
    board.until("connected");
    let device = gateway.wait_for(ID, "ready");
    let id = device["id"].as_str().expect("an id").to_owned();
    let listed = gateway.run(&["tools", &id]).ok().out;
    assert!(listed.contains("self.light.switch") && listed.contains("self.read_text"), "{listed}");

    gateway.run(&["call", &id, "self.light.switch", "on=true"]).ok();
    board.until("light on");
    for bytes in [1, 1_000, 12_000, 60_000] {
        let text = gateway.run(&["call", &id, "self.read_text", &format!("bytes={bytes}")]).ok().out;
        assert_eq!(text.trim_end().len(), bytes);
    }

    // The text of the tool fits the memory, the message made of it does not; then neither does.
    for (bytes, reason) in
        [("bytes=160000", "no memory for an answer of 160000 bytes"), ("bytes=900000", "ask for less")]
    {
        let refused = gateway.run(&["call", &id, "self.read_text", bytes]);
        assert!(refused.code != 0 && refused.err.contains(reason), "{refused:?}");
    }
    gateway.run(&["call", &id, "self.get_uptime"]).ok();

    drop(board);
    gateway.wait_for(&id, "away");
    let mut board = Emulated::start(&firmware, &port, &token);
    board.until("connected");
    gateway.wait_for(&id, "ready");

    let TestGateway { state, mut process, .. } = gateway;
    process.kill();
    board.until("disconnected");
    let devices = format!("127.0.0.1:{port}");
    let doors = ["--listen", "127.0.0.1:0", "--devices", &devices, "--mqtt", "off", "--output", "json"];
    let mut process = Process::start(sinew(state.path()).arg("serve").args(doors));
    let page = serde_json::from_str(&process.line()).expect("a page");
    let gateway = TestGateway { state, page, process };
    board.until("connected");
    gateway.wait_for(&id, "ready");
    gateway.run(&["call", &id, "self.light.switch", "on=false"]).ok();
    board.until("light off");
}

#[test]
fn an_emulated_microcontroller_on_a_serial_line_is_a_device() {
    let Some(firmware) = firmware() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let port = folder.path().join("ttyACM0");
    let config = folder.path().join("sinew.toml");
    let text = format!("[[serial]]\npath = '{}'\nid = 'bench'\nlabels = ['desk']\n", port.display());
    std::fs::write(&config, text).expect("written");
    let flags = ["--config", config.to_str().expect("a text")];
    let gateway = TestGateway::open("serve", tempfile::tempdir().expect("a folder"), &flags);
    // Not plugged in: shown, with what to do.
    let absent = gateway.wait_for("bench", "not reached");
    assert!(absent["remedy"].as_str().is_some_and(|remedy| remedy.contains("plug the board in")), "{absent}");

    let (board, path, _settings) = start_on_a_line(&firmware);
    std::os::unix::fs::symlink(&path, &port).expect("plugged in");
    let device = gateway.wait_for("bench", "ready");
    assert_eq!((&device["family"], &device["labels"]), (&"serial".into(), &serde_json::json!(["desk"])));
    gateway.run(&["call", "bench", "self.light.switch", "on=true"]).ok();
    for bytes in [1, 1_000, 12_000, 60_000] {
        let text = gateway.run(&["call", "bench", "self.read_text", &format!("bytes={bytes}")]).ok().out;
        assert_eq!(text.trim_end().len(), bytes);
    }

    // Unplugged and plugged in again, as another pseudo terminal.
    drop(board);
    std::fs::remove_file(&port).expect("unplugged");
    gateway.wait_for("bench", "away");
    let (_board, path, _settings) = start_on_a_line(&firmware);
    std::os::unix::fs::symlink(&path, &port).expect("plugged in");
    gateway.wait_for("bench", "ready");
    gateway.run(&["call", "bench", "self.get_uptime"]).ok();
}
