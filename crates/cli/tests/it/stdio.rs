//! MCP on standard input and output.

use std::io::Write;
use std::process::{ChildStdin, Stdio};

use serde_json::{Value, json};

use crate::gateway::{Process, TestGateway, run, sinew};

/// A client that speaks lines of JSON.
pub struct Client {
    /// What the gateway said of itself.
    pub hello: Value,
    process: Process,
    input: Option<ChildStdin>,
    next: u64,
}

impl Client {
    pub fn start(command: &mut std::process::Command) -> Client {
        Client::speaking("2025-11-25", command)
    }

    fn speaking(revision: &str, command: &mut std::process::Command) -> Client {
        let mut process = Process::start(command.stdin(Stdio::piped()));
        let input = process.child.stdin.take();
        let mut client = Client { hello: Value::Null, process, input, next: 0 };
        client.hello = client.ask(
            "initialize",
            json!({
                "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        assert_eq!(client.hello["protocolVersion"], revision, "{}", client.hello);
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: Value) {
        self.send_line(&message.to_string());
    }

    fn send_line(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("open"), "{line}").expect("sent");
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = self.process.line();
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{message}");
                return message["result"].clone();
            }
        }
    }

    /// Waits for the end of what the gateway says.
    fn ended(&mut self) -> bool {
        while !self.process.line().is_empty() {}
        true
    }

    /// Sends a call and gives its whole answer, an error too.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Waits for a notification.
    fn until(&mut self, method: &str) {
        loop {
            let line = self.process.line();
            assert!(!line.is_empty(), "the connection ended before {method}");
            if line.contains(method) {
                return;
            }
        }
    }

    fn names(&mut self) -> Vec<String> {
        let tools = self.ask("tools/list", json!({}));
        tools["tools"]
            .as_array()
            .expect("tools")
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect()
    }

    /// Ends the input, as a client that quits does; the program must end by itself.
    fn quit(mut self) {
        self.input.take();
        let ended = self.process.child.wait().expect("it ends");
        assert_eq!(ended.code(), Some(0));
    }
}

/// A gateway inside a client listens at the usual ports, so only one such test runs at a time.
fn usual_ports() -> std::sync::MutexGuard<'static, ()> {
    static PORTS: std::sync::Mutex<()> = std::sync::Mutex::new(());
    PORTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[test]
fn stdio_talks_to_the_gateway_that_runs() {
    let gateway = TestGateway::demo();
    let mut client = Client::start(sinew(gateway.state.path()).arg("stdio"));
    let volume = client.names().into_iter().find(|name| name.ends_with("set_volume")).expect("a tool");
    let result =
        client.ask("tools/call", json!({"name": volume, "arguments": {"device": "board-ddee02", "volume": 33}}));
    assert_ne!(result["isError"], true, "{result}");
    client.quit();
    // It was the same gateway: the command line sees the change.
    let status = gateway.run(&["call", "board-ddee02", "self.get_device_status"]).ok().out;
    assert!(status.contains("\"volume\":33"), "{status}");
}

#[test]
fn batches_and_lines_that_are_no_messages_are_answered() {
    let gateway = TestGateway::demo();
    let mut client = Client::speaking("2025-03-26", sinew(gateway.state.path()).arg("stdio"));
    for (line, expected) in [
        ("[]".to_owned(), "-32600"),
        ("[1]".to_owned(), "-32600"),
        ("{}".to_owned(), "-32600"),
        (r#"{"jsonrpc":"2.0","id":5}"#.to_owned(), r#""id":5,"#),
        (r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#.to_owned(), r#""id":1e400,"#),
        (r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#.to_owned(), r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#),
    ] {
        client.send_line(&line);
        let answer = client.process.line();
        assert!(answer.contains(expected), "{line}: {answer}");
    }
}

#[test]
fn a_client_that_leaves_takes_nobody_with_it() {
    let gateway = TestGateway::demo();
    let mut stays = Client::start(sinew(gateway.state.path()).arg("stdio"));
    Client::start(sinew(gateway.state.path()).arg("stdio")).quit();
    assert!(!stays.names().is_empty());
    let mut comes = Client::start(sinew(gateway.state.path()).arg("stdio"));
    assert!(!comes.names().is_empty());
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let (status, _) = gateway.http("POST", "/mcp", Some(&gateway.own_token()), &initialize.to_string());
    assert_eq!(status, 200);
    comes.quit();
    stays.quit();
}

#[test]
fn stdio_offers_the_unfolded_form() {
    let gateway = TestGateway::demo();
    let mut client = Client::start(sinew(gateway.state.path()).args(["stdio", "--unfolded"]));
    let names = client.names();
    assert!(names.iter().any(|name| name.starts_with("board-ddee01__")), "{names:?}");
    client.quit();
}

#[test]
fn stdio_opens_a_gateway_where_none_runs_and_the_next_client_shares_it() {
    let _ports = usual_ports();
    let state = tempfile::tempdir().expect("a folder");
    let mut first = Client::start(sinew(state.path()).args(["stdio", "--demo"]));
    let devices = first.ask("tools/call", json!({"name": "list_devices", "arguments": {}}));
    assert_eq!(devices["structuredContent"]["devices"].as_array().map(Vec::len), Some(10), "{devices}");
    let mut second = Client::start(sinew(state.path()).arg("stdio"));
    assert!(second.names().iter().any(|name| name.ends_with("take_photo")));
    let listed = run(sinew(state.path()).arg("devices")).ok().out;
    assert!(listed.contains("board-ddee04"), "{listed}");
    second.quit();
    first.quit();
    assert_eq!(run(sinew(state.path()).arg("devices")).code, 69);
}

#[test]
fn stdio_reports_a_refused_token_and_writes_nothing_but_protocol() {
    let gateway = TestGateway::demo();
    let refused = run(sinew(gateway.state.path()).args(["stdio", "--token", "wrong-token-0123456789"]));
    assert_eq!(refused.code, 77, "{refused:?}");
    assert_eq!(refused.out, "");
    assert!(refused.err.contains("--token"), "{}", refused.err);
}

#[test]
fn every_client_has_a_token_of_its_own_and_loses_only_that() {
    let gateway = TestGateway::serve();
    let mut named = Client::start(sinew(gateway.state.path()).args(["stdio", "--client", "desk"]));
    let mut unnamed = Client::start(sinew(gateway.state.path()).arg("stdio"));
    for client in [&mut named, &mut unnamed] {
        client.ask("tools/call", json!({"name": "list_devices", "arguments": {}}));
    }
    let tokens = gateway.json(&["token", "list"]);
    let labels = |tokens: &Value| -> Vec<String> {
        let clients = tokens["tokens"].as_array().expect("tokens").iter().filter(|token| token["role"] == "client");
        clients.map(|token| token["label"].as_str().expect("a label").to_owned()).collect()
    };
    assert_eq!(labels(&tokens), ["desk", "test"], "one for each, by flag and by the client's own name");
    let (_, audit) = gateway.http("GET", "/api/v1/audit?kind=call", Some(&gateway.own_token()), "");
    let audit: Value = serde_json::from_str(&audit).expect("JSON");
    let callers: Vec<&Value> =
        audit["records"].as_array().expect("records").iter().map(|it| &it["principal"]).collect();
    assert_eq!(callers, [&json!("test"), &json!("desk")]);

    drop(unnamed);
    let mut again = Client::start(sinew(gateway.state.path()).arg("stdio"));
    assert_eq!(labels(&gateway.json(&["token", "list"])).len(), 2, "the token is kept");
    let desk = tokens["tokens"].as_array().expect("tokens").iter().find(|token| token["label"] == "desk");
    gateway.run(&["token", "revoke", desk.expect("it is there")["id"].as_str().expect("an id")]).ok();
    assert!(named.ended(), "a revoked token ends its client");
    again.ask("ping", json!({}));
    Client::start(sinew(gateway.state.path()).args(["stdio", "--client", "desk"]));
    assert_eq!(labels(&gateway.json(&["token", "list"])), ["test", "desk"], "a new one is made where it was revoked");
}

#[test]
fn a_given_name_is_never_numbered_because_rules_are_about_it() {
    let gateway = TestGateway::serve();
    let stdio = |name: &str| sinew(gateway.state.path()).args(["stdio", "--client", name]).output().expect("it ran");
    gateway.run(&["token", "new", "--client", "Reader"]).ok();
    let refused = stdio("reader");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(77), "{said}");
    assert!(said.contains("--client reader") && said.contains("another name") && refused.stdout.is_empty(), "{said}");
    let reserved = String::from_utf8_lossy(&stdio("gateway").stderr).into_owned();
    assert!(reserved.contains("--client gateway") && reserved.contains("must not contain"), "{reserved}");

    // A client that names itself cannot choose: it gets a number and is told. Its token does not serve the given name.
    gateway.run(&["token", "new", "--client", "test"]).ok();
    Client::start(sinew(gateway.state.path()).arg("stdio"));
    assert_eq!(stdio("test").status.code(), Some(77));
    let tokens = gateway.run(&["token", "list"]).ok().out;
    assert!(tokens.contains("test 2") && !tokens.contains("reader 2") && !tokens.contains("test 3"), "{tokens}");
}

#[test]
fn a_client_whose_token_expires_in_the_session_is_told_the_remedy_by_every_answer() {
    let gateway = TestGateway::serve();
    let made = gateway.json(&["token", "new", "--client", "guest", "--expires", "3s"]);
    let token = made["token"].as_str().expect("a token").to_owned();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let url = gateway.page["url"].as_str().expect("an address").to_owned();
    let mut client = Client::start(sinew(elsewhere.path()).args(["stdio", "--url", &url, "--token", &token]));
    let refused = loop {
        let answer = client.call("list_devices", json!({}));
        match answer["content"][0]["text"].as_str() {
            Some(text) if text.contains("expired on 20") => break text.to_owned(),
            _ => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    };
    assert!(refused.contains("`sinew token new`") && refused.contains("restart it"), "{refused}");
    let again = client.call("list_devices", json!({}));
    assert!(again["isError"] == true && again["content"][0]["text"] == refused.as_str(), "{again}");
}

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// The numbers that `self.audio_speaker.set_volume` was called with, as the audit has them.
fn calls(gateway: &TestGateway) -> usize {
    let (_, audit) = gateway.http("GET", "/api/v1/audit?limit=1000", Some(&gateway.own_token()), "");
    let audit: Value = serde_json::from_str(&audit).expect("JSON");
    let records = audit["records"].as_array().expect("records").clone();
    records
        .iter()
        .filter(|record| record["tool"] == "self.audio_speaker.set_volume" && record["outcome"] == "ok")
        .count()
}

#[test]
fn a_client_survives_restarts_of_its_gateway_and_no_call_is_made_twice() {
    let mut gateway = TestGateway::demo();
    let mut client = Client::start(sinew(gateway.state.path()).arg("stdio"));
    let volume = |number: u32| json!({"device": "board-ddee02", "volume": number});
    for round in 1..=4 {
        let result = client.call("self_audio_speaker_set_volume", volume(round));
        assert_ne!(result["isError"], true, "{result}");
        gateway.process.kill();
        // Nothing runs now: the answer comes at once and says that a retry helps.
        let refused = client.call("self_audio_speaker_set_volume", volume(99));
        let word = &refused["_meta"]["sinew/error"]["error_type"];
        assert!(refused["isError"] == true && (word == "DeviceAway" || word == "DeviceLost"), "{refused}");
        gateway = TestGateway::open("demo", gateway.state, &[]);
        client.until(LIST_CHANGED);
        assert!(!client.names().is_empty());
    }
    assert_eq!(calls(&gateway), 4);
    client.quit();
}

#[test]
fn when_the_client_with_the_gateway_leaves_exactly_one_other_takes_it_over() {
    let _ports = usual_ports();
    let state = tempfile::tempdir().expect("a folder");
    let host = Client::start(sinew(state.path()).args(["stdio", "--demo"]));
    let mut others: Vec<Client> = (0..3).map(|_| Client::start(sinew(state.path()).arg("stdio"))).collect();
    host.quit();
    for client in &mut others {
        client.until(LIST_CHANGED);
        assert!(client.names().iter().any(|name| name.ends_with("take_photo")));
    }
    let listed = run(sinew(state.path()).args(["devices", "--json"])).ok().json();
    assert_eq!(listed["devices"].as_array().map(Vec::len), Some(10), "{listed}");
    others.into_iter().for_each(Client::quit);
    assert_eq!(run(sinew(state.path()).arg("devices")).code, 69, "the last one has closed it");
}

#[test]
fn a_killed_client_with_the_gateway_leaves_a_lock_that_stops_nobody() {
    let _ports = usual_ports();
    let state = tempfile::tempdir().expect("a folder");
    let mut host = Client::start(sinew(state.path()).args(["stdio", "--demo"]));
    let mut other = Client::start(sinew(state.path()).arg("stdio"));
    std::fs::write(state.path().join("demo/takeover.lock"), "stale").expect("written");
    host.process.kill();
    other.until(LIST_CHANGED);
    assert!(!other.names().is_empty());
    other.quit();
}

#[test]
fn serve_takes_over_from_a_client() {
    let _ports = usual_ports();
    let state = tempfile::tempdir().expect("a folder");
    let mut host = Client::start(sinew(state.path()).arg("stdio"));
    let mut other = Client::start(sinew(state.path()).arg("stdio"));
    let mut gateway = TestGateway::open("serve", state, &[]);
    for client in [&mut host, &mut other] {
        client.until(LIST_CHANGED);
        client.ask("ping", json!({}));
    }
    let listed = gateway.run(&["devices"]).ok().out;
    assert!(listed.contains("`sinew serve`"), "{listed}");
    // A second one is refused, with the first one's address.
    let second = run(sinew(gateway.state.path()).arg("serve").args(crate::gateway::PORTS));
    assert!(second.code == 75 && second.err.contains(gateway.url()), "{second:?}");
    gateway.process.kill();
    let again = TestGateway::open("serve", gateway.state, &[]);
    for mut client in [host, other] {
        client.until(LIST_CHANGED);
        client.ask("ping", json!({}));
        client.quit();
    }
    drop(again);
}

const LAMP: &str = "[phones]
enabled = false

[[things]]
name = 'lamp'

[[things.tools]]
name = 'lamp_switch'
description = 'Switch the lamp.'
effect = 'change'
http = { method = 'POST', url = 'http://127.0.0.1:9/lamp' }

[[things.tools]]
name = 'lamp_get'
description = 'Say whether the lamp is lit.'
effect = 'read'
http = { url = 'http://127.0.0.1:9/lamp' }
";

/// Whether a gateway inside a client offers the tool that the rules deny, and what it says to people.
fn offers_switch(state: &std::path::Path, flags: &[&str]) -> (bool, String) {
    let said = state.join("said");
    let file = std::fs::File::create(&said).expect("a file");
    let mut client = Client::start(sinew(state).arg("stdio").args(flags).stderr(file));
    let names = loop {
        let names = client.names();
        if names.iter().any(|name| name.contains("lamp_get")) {
            break names;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    client.quit();
    let offers = names.iter().any(|name| name.contains("lamp_switch"));
    (offers, std::fs::read_to_string(said).expect("it can be read"))
}

#[test]
fn a_gateway_inside_a_client_keeps_the_rules_of_the_last_serve() {
    let _ports = usual_ports();
    let folder = tempfile::tempdir().expect("a folder");
    let [ruled, other] = ["ruled.toml", "other.toml"].map(|name| folder.path().join(name));
    let rule = "[[policy.rules]]\nid = 'dark'\ntools = ['lamp_switch']\ndo = 'deny'\n";
    std::fs::write(&ruled, format!("{LAMP}\n{rule}")).expect("written");
    std::fs::write(&other, LAMP).expect("written");
    let flags = ["--config", ruled.to_str().expect("text")];
    let mut gateway = TestGateway::open("serve", tempfile::tempdir().expect("a folder"), &flags);
    gateway.process.kill();
    let state = gateway.state.path();

    let (offers, said) = offers_switch(state, &[]);
    assert!(!offers && said.contains("uses the configuration") && said.contains("ruled.toml"), "{said}");
    let (offers, said) = offers_switch(state, &["--config", other.to_str().expect("text")]);
    assert!(offers && said.contains("other.toml"), "a file that is named counts: {said}");
    assert!(!offers_switch(state, &[]).0, "the last `serve` counts again, and no client's own file");

    // What changes in the file while the gateway runs inside a client counts there too.
    let mut client = Client::start(sinew(state).arg("stdio"));
    std::fs::write(&ruled, LAMP).expect("written");
    while !client.names().iter().any(|name| name.contains("lamp_switch")) {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    client.quit();

    std::fs::write(&ruled, "[polcy]\n").expect("written");
    let refused = run(sinew(state).arg("stdio"));
    assert!(refused.code == 78 && refused.err.contains("ruled.toml:1"), "{refused:?}");
    std::fs::remove_file(&ruled).expect("removed");
    let refused = run(sinew(state).arg("stdio"));
    assert!(refused.code == 78 && refused.err.contains("--config FILE"), "{refused:?}");
    std::fs::write(state.join("last-start.json"), "{").expect("written");
    let refused = run(sinew(state).arg("stdio"));
    assert!(refused.code == 78 && refused.err.contains("last-start.json"), "{refused:?}");
}
