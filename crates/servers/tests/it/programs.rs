//! Real programs: a server on stdio, and servers of the official SDK where `scripts/install` has installed it.

use std::path::{Path, PathBuf};

use serde_json::json;
use sinew_servers::ServerConfig;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::support::{Family, at, call, soon, tool_names};

/// A server in a dozen lines of shell. It writes noise first, counts its calls, and ends when it is told to.
const SHELL: &str = r#"
echo "starting up, this is no JSON"
while IFS= read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"shell","version":"1"}}';;
    *'"tools/list"'*) result='{"tools":[{"name":"pid"},{"name":"die"}]}';;
    *'"die"'*) exit 3;;
    *'"pid"'*) result="{\"content\":[{\"type\":\"text\",\"text\":\"$$\"}]}";;
    *) continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

fn command(parts: &[&str]) -> ServerConfig {
    let command = parts.iter().map(|part| (*part).to_owned()).collect();
    ServerConfig { name: Some("program".to_owned()), command, ..ServerConfig::default() }
}

#[tokio::test]
async fn a_program_is_started_called_and_started_again_when_it_dies() {
    let mut family = Family::start(command(&["sh", "-c", SHELL]));
    let device = family.joined().await;
    assert_eq!(tool_names(&device), ["pid", "die"]);
    let first = call(&device, "pid", json!({})).await.expect("an answer").joined_text();
    let error = call(&device, "die", json!({})).await.expect_err("it died");
    assert!(error.message.contains("ended before it answered"), "{error}");
    assert!(family.left().await.contains("has ended"));
    let device = family.joined().await;
    let second = call(&device, "pid", json!({})).await.expect("an answer").joined_text();
    assert_ne!(first, second);
    assert_eq!(family.stop().await, "closed");
    // Its process is gone with it.
    assert!(!Path::new(&format!("/proc/{second}")).exists());
}

/// Beside what [`SHELL`] does: it reports in a burst, starts a program of its own, and reads nothing until a file is there.
fn odd_shell(file: &Path) -> String {
    let burst = r#"*'"burst"'*) for n in $(seq 1000); do echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'; done
        result='{"content":[{"type":"text","text":"after all"}]}';;"#;
    let child = r#"*'"child"'*) sleep 600 & result="{\"content\":[{\"type\":\"text\",\"text\":\"$!\"}]}";;"#;
    let deaf = format!(r#"*'"deaf"'*) while [ ! -e {} ]; do sleep 0.05; done; continue;;"#, file.display());
    SHELL.replace(r#"*'"die"'*)"#, &format!("{burst}\n{child}\n{deaf}\n*'\"die\"'*)"))
}

#[tokio::test]
async fn an_answer_after_a_burst_of_notifications_arrives() {
    let mut family = Family::start(command(&["sh", "-c", &odd_shell(Path::new("/"))]));
    let device = family.joined().await;
    for _ in 0..3 {
        assert_eq!(call(&device, "burst", json!({})).await.expect("an answer").joined_text(), "after all");
    }
    family.stop().await;
}

/// Whether a process runs; one that has ended and is not yet collected does not.
fn runs(id: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

#[tokio::test]
async fn what_a_program_started_ends_with_it() {
    for ends_itself in [false, true] {
        let mut family = Family::start(command(&["sh", "-c", &odd_shell(Path::new("/"))]));
        let device = family.joined().await;
        let child = call(&device, "child", json!({})).await.expect("an answer").joined_text();
        assert!(runs(&child));
        if ends_itself {
            call(&device, "die", json!({})).await.expect_err("it died");
            family.left().await;
            family.joined().await;
        }
        family.stop().await;
        soon(async {
            while runs(&child) {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_while_it_is_written_leaves_no_half_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("go");
    let mut family = Family::start(command(&["sh", "-c", &odd_shell(&file)]));
    let device = family.joined().await;
    let gives_up = std::time::Duration::from_millis(300);
    for (tool, text) in [("deaf", String::new()), ("pid", "x".repeat(200_000)), ("pid", String::new())] {
        let calling = call(&device, tool, json!({"text": text}));
        assert!(tokio::time::timeout(gives_up, calling).await.is_err(), "nobody reads");
    }
    std::fs::write(file, "").expect("written");
    call(&device, "pid", json!({})).await.expect("an answer");
    family.stop().await;
}

#[tokio::test]
async fn a_program_that_is_missing_is_named() {
    let mut family = Family::start(command(&["/nonexistent/server"]));
    let shown = format!("{:?}", family.joined().await.info().status);
    assert!(shown.contains("`/nonexistent/server` cannot be started"), "{shown}");
}

/// A server of the official Python SDK, over the transport that its argument names.
const PYTHON: &str = r#"
import socket, sys
try:
    from mcp.server import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server
server = Server("Python")
@server.tool()
def add(a: int, b: int) -> dict:
    """Add two numbers."""
    return {"sum": a + b}
if sys.argv[1] == "stdio":
    server.run("stdio")
free = socket.socket(); free.bind(("127.0.0.1", 0)); port = free.getsockname()[1]; free.close()
print(port, flush=True)
if hasattr(server, "settings") and hasattr(server.settings, "port"):
    server.settings.port = port
    server.run("streamable-http")
else:
    server.run("streamable-http", port=port)
"#;

fn pythons() -> Vec<PathBuf> {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients");
    let found: Vec<PathBuf> = ["venv", "python-1.13", "python-1.9"]
        .into_iter()
        .map(|name| clients.join(name).join("bin/python"))
        .filter(|python| python.exists())
        .collect();
    if found.is_empty() {
        eprintln!("skipped: the official Python SDK is not installed; scripts/install installs it");
    }
    found
}

async fn adds(family: &mut Family) {
    let device = family.joined().await;
    assert_eq!(tool_names(&device), ["add"]);
    let sum = call(&device, "add", json!({"a": 40, "b": 2})).await.expect("a sum");
    assert_eq!(sum.structured, Some(json!({"sum": 42})));
    call(&device, "add", json!({"a": "x"})).await.expect_err("not a number");
}

#[tokio::test]
async fn servers_of_the_official_python_sdk_are_called_over_stdio_and_http() {
    for python in pythons() {
        let python = python.to_string_lossy().into_owned();
        adds(&mut Family::start(command(&[&python, "-c", PYTHON, "stdio"]))).await;
        let mut process = Command::new(&python)
            .args(["-c", PYTHON, "http"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let mut port = String::new();
        let output = process.stdout.take().expect("piped");
        soon(BufReader::new(output).read_line(&mut port)).await.expect("a port");
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        // Until its port is open, the server is not there.
        soon(async {
            while tokio::net::TcpStream::connect(("127.0.0.1", port.trim().parse().expect("a port"))).await.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await;
        adds(&mut Family::start(at(&url))).await;
        process.kill().await.expect("ended");
    }
}
