//! The tools at a broker, through the real program.

use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, accept};

use crate::gateway::{Process, TestGateway, run, sinew};

struct Broker {
    listener: TcpListener,
    url: String,
}

impl Broker {
    fn new() -> Broker {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("ws://{}/mcp/?token=secret-token", listener.local_addr().expect("an address"));
        Broker { listener, url }
    }

    /// Takes a provider, and gives its socket and the names of its tools.
    fn provider(&self) -> (WebSocket<TcpStream>, Vec<String>) {
        let (stream, _) = self.listener.accept().expect("a provider");
        let mut socket = accept(stream).expect("a WebSocket");
        let client = json!({"name": "xz-mcp-broker", "version": "0.0.1"});
        let params = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client});
        ask(&mut socket, json!(0), "initialize", params);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        socket.send(Message::text(initialized.to_string())).expect("sent");
        let list = ask(&mut socket, json!(1), "tools/list", json!({}));
        let names = list["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].to_string()).collect();
        (socket, names)
    }
}

fn ask(socket: &mut WebSocket<TcpStream>, id: Value, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    socket.send(Message::text(request.to_string())).expect("sent");
    loop {
        let Message::Text(text) = socket.read().expect("a message") else { continue };
        let message: Value = serde_json::from_str(&text).expect("JSON");
        if message.get("id") == Some(&id) {
            return message["result"].clone();
        }
    }
}

#[test]
fn endpoint_offers_the_tools_of_the_gateway_that_runs() {
    let (gateway, broker) = (TestGateway::demo(), Broker::new());
    let mut command = sinew(gateway.state.path());
    command.env("SINEW_LOG", "trace").stderr(Stdio::piped());
    let mut process = Process::start(command.args(["endpoint", &broker.url]));
    let said = process.line();
    let (mut socket, names) = broker.provider();
    assert!(names.iter().any(|name| name.contains("set_volume")), "{names:?}");
    let arguments = json!({"device": "board-ddee01", "volume": 44});
    let params = json!({"name": "self_audio_speaker_set_volume", "arguments": arguments, "serialNumber": null});
    let result = ask(&mut socket, json!("6f1c_n_2"), "tools/call", params);
    assert_eq!(result["isError"], false, "{result} of {names:?}");
    process.kill();
    let mut log = String::new();
    std::io::Read::read_to_string(&mut process.child.stderr.take().expect("piped"), &mut log).expect("a text");
    assert!(said.contains("ws://127.0.0.1") && log.contains("connected to the broker"), "{said}{log}");
    assert!(!said.contains("secret-token") && !log.contains("secret-token"), "{said}{log}");
}

#[test]
fn endpoint_opens_a_gateway_where_none_runs() {
    let (state, broker) = (tempfile::tempdir().expect("a folder"), Broker::new());
    let mut process = Process::start(sinew(state.path()).args(["endpoint", "--output", "json", &broker.url]));
    let said: Value = serde_json::from_str(&process.line()).expect("JSON");
    assert!(said["gateway"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")), "{said}");
    let (_, names) = broker.provider();
    assert!(names.contains(&"\"list_devices\"".to_owned()), "{names:?}");
}

#[test]
fn a_gateway_dials_the_endpoints_of_its_configuration() {
    let (state, broker) = (tempfile::tempdir().expect("a folder"), Broker::new());
    let file = state.path().join("sinew.toml");
    std::fs::write(&file, format!("[[endpoints]]\nurl = \"{}\"\nunfolded = true\n", broker.url)).expect("written");
    let gateway = TestGateway::open("serve", state, &["--config", file.to_str().expect("UTF-8")]);
    let (_, names) = broker.provider();
    assert!(names.contains(&"\"list_devices\"".to_owned()), "{names:?}");
    drop(gateway);
}

#[test]
fn a_wrong_address_is_refused_without_showing_it() {
    let state = tempfile::tempdir().expect("a folder");
    let refused = run(sinew(state.path()).args(["endpoint", "https://x/?token=secret-token"]));
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("wss://") && !refused.err.contains("secret-token"), "{}", refused.err);
}
