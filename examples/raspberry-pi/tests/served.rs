//! The example, started as it is, answers with readings of this computer.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::net::TcpListener;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, accept};

/// A board that says nothing by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// The example, ended with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_readings_are_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}/xiaozhi/v1/", listener.local_addr().unwrap());
    let _board = Running(
        Command::new(env!("CARGO_BIN_EXE_raspberry-pi")).arg(url).env("BOARD_ID", "02:00:00:00:00:02").spawn().unwrap(),
    );
    let (send, dialled) = mpsc::channel();
    std::thread::spawn(move || send.send(listener.accept().unwrap().0));
    let stream = dialled.recv_timeout(PATIENCE).expect("the board dials");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut socket = accept(stream).unwrap();
    assert!(socket.read().unwrap().to_text().unwrap().contains("\"hello\""));
    socket.send(Message::text(r#"{"type":"hello","transport":"websocket","session_id":"s"}"#)).unwrap();
    let mut call = |tool: &str| {
        let payload = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}});
        socket.send(Message::text(json!({"type": "mcp", "payload": payload}).to_string())).unwrap();
        loop {
            let message: Value = serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap();
            if message["payload"]["id"] == 1 {
                return message["payload"]["result"]["content"][0]["text"].as_str().unwrap().to_owned();
            }
        }
    };
    assert_eq!(call("self.get_load").split(' ').count(), 3);
    assert!(call("self.get_uptime").parse::<f64>().unwrap() > 0.0);
    assert!(call("self.get_memory").starts_with("MemTotal:"));
    // Few computers but a Raspberry Pi have this sensor at this place, and a missing one is told.
    assert!(call("self.get_temperature").contains(|letter: char| letter.is_ascii_digit()));
}
