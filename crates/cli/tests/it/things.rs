//! Gadgets in the configuration of the real program: from the file to a call by an MCP client, and over a restart.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::json;

use crate::gateway::{TestGateway, run, sinew};

/// A relay with a web interface, until the test ends.
fn relay() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut request = String::new();
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                request.push_str(&std::mem::take(&mut line));
            }
            let is_on = request.starts_with("GET /relay/0?turn=on ");
            let body = format!("{{\"ison\":{is_on}}}");
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = reader.get_mut().write_all(format!("{head}{body}").as_bytes());
        }
    });
    url
}

#[test]
fn a_thing_of_the_configuration_is_called_and_keeps_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sinew.toml");
    let text = format!(
        "[[things]]\nname = 'heater'\n[[things.tools]]\nname = 'turn'\neffect = 'change'\n\
         input = {{ properties = {{ to = {{ enum = ['on', 'off'] }} }}, required = ['to'] }}\n\
         http = {{ url = '{}/relay/0?turn=${{to}}', pick = '/ison' }}\n",
        relay()
    );
    std::fs::write(&path, text).expect("written");
    let config = path.display().to_string();
    let gateway = TestGateway::open("serve", tempfile::tempdir().expect("a folder"), &["--config", &config]);
    let device = gateway.wait_for("heater", "ready");
    assert_eq!((&device["family"], &device["admitted_by"]), (&json!("thing"), &json!("configuration")));
    assert_eq!(gateway.json(&["call", "heater", "turn", "to=on"])["content"][0]["text"], "true");
    assert_eq!(gateway.json(&["call", "heater", "turn", "to=off"])["content"][0]["text"], "false");
    let refused = gateway.run(&["call", "heater", "turn", "to=on&timer=5"]);
    assert!(refused.code != 0 && refused.err.contains("to"), "{refused:?}");
    // Its tools are checked like those of every other device.
    let linted = gateway.run(&["spec", "lint", "--device", "heater", "--format", "json"]);
    assert!(linted.out.contains("device:heater") && linted.out.contains("turn"), "{linted:?}");
    gateway.run(&["devices", "rename", "heater", "Bathroom"]).ok();
    let TestGateway { state, process, .. } = gateway;
    drop(process);
    let gateway = TestGateway::open("serve", state, &["--config", &config]);
    assert_eq!(gateway.wait_for("heater", "ready")["name"], "Bathroom");
}

#[test]
fn a_mistake_in_a_thing_is_named_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sinew.toml");
    let text = "[[things]]\nname = 'lamp'\n[[things.tools]]\nname = 'on'\nmqtt = { topic = 'a/#' }\n";
    std::fs::write(&path, text).expect("written");
    let refused = run(sinew(folder.path()).args(["config", "check", &path.display().to_string()]));
    assert!(refused.code != 0 && refused.err.contains("sinew.toml:1"), "{refused:?}");
    assert!(refused.err.contains("`on` of `lamp`") && refused.err.contains("`topic`"), "{refused:?}");
}
