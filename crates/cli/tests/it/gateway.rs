//! Starting the real binary and asking it things.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub const PORTS: [&str; 6] = ["--listen", "127.0.0.1:0", "--devices", "127.0.0.1:0", "--mqtt", "127.0.0.1:0"];

/// The program, deaf to the environment of whoever runs the tests.
pub fn sinew(state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sinew"));
    for name in ["SINEW_URL", "SINEW_TOKEN", "SINEW_FINGERPRINT", "NO_COLOR"] {
        command.env_remove(name);
    }
    // The usual log would drown what a failed test says.
    command.env("SINEW_LOG", "warn");
    // No server is there and none is started: nobody's adb is disturbed.
    command.env("ADB_SERVER_SOCKET", "localfilesystem:/nonexistent");
    command.env("SINEW_STATE", state).stdin(Stdio::null());
    command
}

/// The folders of programs, with the one of this program first.
pub fn path_with_sinew() -> OsString {
    let program = Path::new(env!("CARGO_BIN_EXE_sinew")).parent().expect("a folder");
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = [program.to_owned()].into_iter().chain(std::env::split_paths(&folders));
    std::env::join_paths(folders).expect("a path")
}

/// A process that is ended with the value.
pub struct Process {
    pub child: Child,
    pub out: BufReader<ChildStdout>,
}

impl Process {
    pub fn start(command: &mut Command) -> Process {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let out = BufReader::new(child.stdout.take().expect("its output is piped"));
        Process { child, out }
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line can be read");
        line
    }

    /// Reads on until a line holds this.
    pub fn until(&mut self, part: &str) -> String {
        let mut all = String::new();
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "the program ended before it said {part:?}; it said {all}");
            all.push_str(&line);
            if line.contains(part) {
                return all;
            }
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A gateway, and the folder it keeps its things in.
pub struct TestGateway {
    pub state: TempDir,
    pub page: Value,
    pub process: Process,
}

/// What a command brought.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn ok(self) -> CommandOutput {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

impl TestGateway {
    pub fn demo() -> TestGateway {
        TestGateway::open("demo", tempfile::tempdir().expect("a folder"), &[])
    }

    pub fn serve() -> TestGateway {
        TestGateway::open("serve", tempfile::tempdir().expect("a folder"), &[])
    }

    pub fn open(verb: &str, state: TempDir, flags: &[&str]) -> TestGateway {
        let mut process =
            Process::start(sinew(state.path()).arg(verb).args(PORTS).args(["--output", "json"]).args(flags));
        let line = process.line();
        let page = serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut rest = String::new();
            let _ = process.out.read_to_string(&mut rest);
            panic!("no page but {line}{rest}")
        });
        TestGateway { state, page, process }
    }

    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        run(sinew(self.state.path()).args(arguments))
    }

    /// The standard output of a command that must succeed, as JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--output", "json"]].concat()).ok().json()
    }

    pub fn url(&self) -> &str {
        self.page["url"].as_str().expect("a page has an address")
    }

    pub fn devices_url(&self) -> &str {
        self.page["devices_url"].as_str().expect("a page has a boards' door")
    }

    pub fn own_token(&self) -> String {
        let folder = self.page["state"].as_str().expect("a page has a folder");
        std::fs::read_to_string(Path::new(folder).join("token")).expect("there is a token").trim().to_owned()
    }

    /// A plain HTTP request; gives status and body.
    pub fn http(&self, method: &str, path: &str, token: Option<&str>, body: &str) -> (u16, String) {
        let address = self.url().trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).expect("the door is open");
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{token}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        (status, body)
    }

    /// Waits until a device is in this state.
    pub fn wait_for(&self, key: &str, state: &str) -> Value {
        let mut seen = Value::Null;
        for _ in 0..200 {
            seen = self.json(&["devices"]);
            let found = seen["devices"]
                .as_array()
                .expect("devices")
                .iter()
                .find(|device| device["attributes"]["hardware_id"] == key || device["id"] == key);
            if let Some(device) = found.filter(|device| device["state"] == state) {
                return device.clone();
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("{key} is not {state}: {seen:#}");
    }
}

pub fn run(command: &mut Command) -> CommandOutput {
    let output = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    CommandOutput { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}
