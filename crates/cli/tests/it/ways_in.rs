//! The ways in of `docs/sdk.md` that need no SDK: each snippet of the page, against a stand-in for its hardware.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::gateway::{Process, TestGateway, sinew};

/// The code block of a language in a section of the page.
fn snippet(section: &str, language: &str) -> String {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sdk.md")).expect("a page");
    let (_, rest) = page.split_once(&format!("### {section}\n")).expect("a section");
    let section = rest.split("\n## ").next().and_then(|rest| rest.split("\n### ").next()).expect("its text");
    let (_, code) = section.split_once(&format!("```{language}\n")).expect("a snippet");
    code.split("```").next().expect("its end").to_owned()
}

/// A gateway with a snippet as its configuration, in which the address of the hardware is that of its stand-in.
fn gateway(config: &str) -> (TestGateway, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sinew.toml");
    std::fs::write(&path, config).expect("written");
    let flags = ["--config", path.to_str().expect("a text")];
    (TestGateway::open("serve", tempfile::tempdir().expect("a folder"), &flags), folder)
}

fn text(gateway: &TestGateway, call: &[&str]) -> String {
    let answer = gateway.json(&[&["call"], call].concat());
    answer["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// A board that answers HTTP requests; `answer` gets method and path, and says what the body is.
fn web_board(answer: impl Fn(&str, &str) -> Option<String> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
    let address = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let (mut first, mut line) = (String::new(), String::new());
            let _ = reader.read_line(&mut first);
            let mut has_length = false;
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                has_length |= line.to_ascii_lowercase().starts_with("content-length:");
                line.clear();
            }
            let mut words = first.split(' ');
            let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let (status, body) = match method {
                // As ESP-IDF's server does.
                "POST" if !has_length => ("411 Length Required", String::new()),
                _ => answer(method, path).map_or(("404 Not Found", String::new()), |body| ("200 OK", body)),
            };
            let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = reader.get_mut().write_all(format!("{head}{body}").as_bytes());
        }
    });
    address
}

#[test]
fn arduino() {
    let sketch = snippet("Arduino", "cpp");
    assert!(sketch.contains("server.on(\"/lamp\", lamp)") && sketch.contains("hasArg(\"on\")"), "{sketch}");
    let lit = AtomicBool::new(false);
    let address = web_board(move |_, path| {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if let Some(on) = query.strip_prefix("on=") {
            lit.store(on == "true", Ordering::Relaxed);
        }
        (path == "/lamp").then(|| format!("{{\"on\":{}}}", lit.load(Ordering::Relaxed)))
    });
    let (gateway, _folder) = gateway(&snippet("Arduino", "toml").replace("192.168.1.50", &address));
    gateway.wait_for("arduino-lamp", "ready");
    assert_eq!(text(&gateway, &["arduino-lamp", "lamp_get"]), "false");
    assert_eq!(text(&gateway, &["arduino-lamp", "lamp_switch", "on=true"]), "true");
    assert_eq!(text(&gateway, &["arduino-lamp", "lamp_get"]), "true");
}

#[test]
fn esp_idf() {
    let words = ["sim", "http-board", "--style", "espressif", "--listen", "127.0.0.1:0", "--output", "json"];
    let mut board = Process::start(sinew(&std::env::temp_dir()).args(words));
    let page: serde_json::Value = serde_json::from_str(&board.line()).expect("a page");
    let url = page["url"].as_str().expect("an address");
    let (gateway, _folder) = gateway(&snippet("ESP-IDF", "toml").replace("http://192.168.1.51/mcp", url));
    gateway.wait_for("idf-board", "ready");
    assert_eq!(text(&gateway, &["idf-board", "set_target", "celsius=900"]), "900");
}

#[test]
fn esphome() {
    let lit = Arc::new(AtomicBool::new(false));
    let lamp = lit.clone();
    let address = web_board(move |method, path| match (method, path) {
        ("POST", "/switch/lamp/turn_on" | "/switch/lamp/turn_off") => {
            lamp.store(path.ends_with("on"), Ordering::Relaxed);
            Some(String::new())
        }
        ("GET", "/switch/lamp") => {
            let state = if lamp.load(Ordering::Relaxed) { "ON" } else { "OFF" };
            Some(format!("{{\"id\":\"switch-lamp\",\"state\":\"{state}\"}}"))
        }
        _ => None,
    });
    let (gateway, _folder) = gateway(&snippet("ESPHome", "toml").replace("lamp.local", &address));
    gateway.wait_for("esphome-lamp", "ready");
    gateway.json(&["call", "esphome-lamp", "lamp_switch", "to=on"]);
    assert!(lit.load(Ordering::Relaxed));
    assert_eq!(text(&gateway, &["esphome-lamp", "lamp_get"]), "ON");
}

/// Runs the script of the page itself, with a pseudo terminal for the USB cable.
#[cfg(unix)]
#[test]
fn micropython() {
    const CABLE: &str = "import os, pty, subprocess, sys\n\
                         board, computer = pty.openpty()\n\
                         print(os.ttyname(computer), flush=True)\n\
                         subprocess.run([sys.executable, '-u', sys.argv[1]], stdin=board, stdout=board)\n";
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("main.py");
    std::fs::write(&script, snippet("MicroPython", "python")).expect("written");
    let mut board = Process::start(Command::new("python3").args(["-c", CABLE]).arg(&script));
    let port = board.line();
    let (gateway, _folder) = gateway(&snippet("MicroPython", "toml").replace("/dev/ttyACM0", port.trim()));
    gateway.wait_for("pico", "ready");
    assert_eq!(text(&gateway, &["pico", "lamp.switch", "on=true"]), "true");
    assert_eq!(text(&gateway, &["pico", "lamp.get"]), "true");
}
