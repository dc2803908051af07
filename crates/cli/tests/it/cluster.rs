//! Three gateways as one: the real binary, and a real NATS server.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::gateway::{Process, TestGateway, run, sinew};

struct NatsServer {
    address: SocketAddr,
    child: Child,
    _folder: TempDir,
}

impl NatsServer {
    fn open() -> NatsServer {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("bound");
        drop(free);
        let folder = tempfile::tempdir().expect("a folder");
        let programs = ["/usr/sbin/nats-server", "/usr/local/bin/nats-server"];
        let program = programs.into_iter().find(|path| Path::new(path).exists()).unwrap_or("nats-server");
        let child = Command::new(program)
            .args(["-js", "-a", "127.0.0.1", "-p", &address.port().to_string(), "-sd"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server is needed for this test; scripts/install installs it");
        until("the NATS server listens", || TcpStream::connect(address).is_ok());
        NatsServer { address, child, _folder: folder }
    }

    fn node(&self, name: &str) -> TestGateway {
        self.node_with(name, &[])
    }

    fn node_with(&self, name: &str, flags: &[&str]) -> TestGateway {
        let state = tempfile::tempdir().expect("a folder");
        let file = state.path().join("sinew.toml");
        let text = format!("[cluster]\nnats = \"nats://{}\"\nnode = \"{name}\"\n", self.address);
        std::fs::write(&file, text).expect("written");
        TestGateway::open("serve", state, &[&["--config", &file.display().to_string()], flags].concat())
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Longer than anything takes on a busy machine.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(120), "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn state_of(gateway: &TestGateway, device: &str) -> Option<String> {
    let devices = gateway.json(&["devices"]);
    let found = devices["devices"].as_array()?.iter().find(|found| found["id"] == device)?;
    found["state"].as_str().map(str::to_owned)
}

fn sees(gateway: &TestGateway, device: &str, state: &str) {
    until(&format!("{device} is {state}"), || state_of(gateway, device).as_deref() == Some(state));
}

fn board(gateway: &TestGateway) -> (Process, String) {
    let command = ["sim", "board", "--connect", gateway.devices_url(), "--token", &gateway.own_token()];
    let board = Process::start(sinew(gateway.state.path()).args(command).args(["--kind", "relay"]));
    let mut id = None;
    until("a board is here", || {
        id = gateway.json(&["devices"])["devices"][0]["id"].as_str().map(str::to_owned);
        id.is_some()
    });
    (board, id.unwrap_or_default())
}

fn nodes(gateway: &TestGateway) -> Vec<(String, u64)> {
    let state: Value = gateway.json(&["cluster"]);
    let nodes = state["nodes"].as_array().expect("nodes").iter();
    nodes
        .map(|node| {
            (node["name"].as_str().unwrap_or_default().to_owned(), node["devices"].as_u64().unwrap_or_default())
        })
        .collect()
}

#[test]
fn three_gateways_list_and_call_each_others_boards_and_notice_one_that_hangs() {
    let nats = NatsServer::open();
    let [attic, cellar, garage] = ["attic", "cellar", "garage"].map(|name| nats.node(name));
    let (_board, id) = board(&attic);
    for node in [&attic, &cellar, &garage] {
        sees(node, &id, "ready");
        let answer = node.run(&["call", &id, "self.get_relays"]).ok();
        assert!(!answer.out.is_empty());
        let expected = [("attic", 1), ("cellar", 0), ("garage", 0)].map(|(name, devices)| (name.to_owned(), devices));
        until("all nodes are known", || nodes(node) == expected);
    }
    until("the node is in the cluster", || cellar.json(&["cluster"])["lease"] == true);
    let shown = cellar.run(&["cluster"]).ok().out;
    assert!(shown.contains("Cluster main, node cellar: connected to NATS 2.") && shown.contains("attic"), "{shown}");

    let told = cellar.run(&["doctor"]).out;
    assert!(told.contains("node cellar of 3 in main, NATS"), "{told}");

    // A process that stands still is gone for the others after its lease, and back when it goes on.
    let signal = |signal: &str| run(Command::new("kill").args([signal, &attic.process.child.id().to_string()])).ok();
    signal("-STOP");
    sees(&cellar, &id, "away");
    signal("-CONT");
    sees(&cellar, &id, "ready");
    cellar.run(&["call", &id, "self.get_relays"]).ok();
}

/// A request of the older era of MCP; gives the whole answer.
fn mcp(gateway: &TestGateway, token: &str, session: Option<&str>, message: &str) -> String {
    let address = gateway.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{session}MCP-Protocol-Version: \
         2025-11-25\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: \
         close\r\nContent-Length: {}\r\n\r\n{message}",
        message.len()
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// What a client notices that a plain load balancer sends from node to node.
#[test]
fn clients_of_both_eras_go_on_at_another_node() {
    let nats = NatsServer::open();
    let [attic, cellar] = ["attic", "cellar"].map(|name| nats.node(name));
    let made = attic.json(&["token", "new", "--client", "laptop"]);
    let (id, token) = (made["id"].as_str().expect("an id"), made["token"].as_str().expect("a token"));
    let devices = |node: &TestGateway| node.http("GET", "/api/v1/devices", Some(token), "").0;
    until("the token is valid at the other node", || devices(&cellar) == 200);

    // A session of the older era is known where it began. Elsewhere the client is told to begin another.
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let answer = mcp(&attic, token, None, initialize);
    let header =
        answer.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
    let session = header.expect("a session");
    let status = |answer: String| answer.split(' ').nth(1).map(str::to_owned).unwrap_or_default();
    assert_eq!(status(mcp(&attic, token, Some(&session), list)), "200");
    assert_eq!(status(mcp(&cellar, token, Some(&session), list)), "404");
    assert_eq!(status(mcp(&cellar, token, None, initialize)), "200");

    // Revoked at the other node, the session ends too.
    cellar.run(&["token", "revoke", id]).ok();
    until("the token is valid nowhere", || devices(&attic) == 401 && devices(&cellar) == 401);
    assert_eq!(status(mcp(&attic, token, Some(&session), list)), "401");
}

/// The balancers of the examples know the three gateways of the example, and can be read where they are installed.
#[test]
fn the_examples_for_load_balancers_fit_the_example_of_a_cluster() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster");
    let start = std::fs::read_to_string(folder.join("start")).expect("an example");
    assert!(start.contains("FIRST_PORT:-7310") && start.contains("7310, 7320 and 7330"));
    let scratch = tempfile::tempdir().expect("a folder");
    let commands: [(&str, &[&str]); 2] = [("haproxy", &["-c", "-f"]), ("nginx", &["-t", "-p", ".", "-c"])];
    for ((program, arguments), file) in commands.into_iter().zip(["haproxy.cfg", "nginx.conf"]) {
        let path = folder.join(file).canonicalize().expect("an example");
        let text = std::fs::read_to_string(&path).expect("an example");
        for port in [7310, 7320, 7330] {
            assert!(text.contains(&format!("127.0.0.1:{port}")), "{file} does not know {port}");
        }
        let found = ["/usr/sbin", "/usr/bin", "/usr/local/sbin"].map(|folder| Path::new(folder).join(program));
        match found.iter().find(|path| path.exists()) {
            Some(found) => drop(run(Command::new(found).current_dir(scratch.path()).args(arguments).arg(&path)).ok()),
            None => eprintln!("{program} is not installed: {file} was not tried"),
        }
    }
}

#[test]
fn a_gateway_outside_of_clusters_says_so() {
    let gateway = TestGateway::serve();
    let told = gateway.run(&["cluster"]);
    assert!(told.code != 0 && told.err.contains("not part of a cluster"), "{told:?}");
}

#[test]
fn mistakes_in_the_table_of_the_cluster_name_their_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sinew.toml");
    for (text, expected) in [
        ("[cluster]\nnode = \"attic\"\n", "`nats` of `[cluster]` is missing"),
        ("[cluster]\nnats = \"http://127.0.0.1\"\n", "expected for example `nats://127.0.0.1:4222`"),
        ("[cluster]\nnats = \"nats://127.0.0.1\"\nnode = \"Attic 1\"\n", "must have 1 to 32 of a-z, 0-9 and -"),
        (
            "[cluster]\nnats = \"nats://127.0.0.1\"\nnode = \"a\"\ncredentials = \"none.creds\"\n",
            "cannot read `credentials`",
        ),
    ] {
        std::fs::write(&file, text).expect("written");
        let told = run(sinew(folder.path()).args(["config", "check"]).arg(&file));
        assert!(told.code != 0 && told.err.contains(expected), "{text}: {told:?}");
    }
}

/// Each gateway of the compose file has a configuration that can be read.
#[test]
fn the_example_for_containers_has_configurations_that_can_be_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster/compose.yaml");
    let text = std::fs::read_to_string(path).expect("an example");
    let mut configurations = Vec::new();
    for part in text.split("    content: |\n").skip(1) {
        let lines = part.lines().take_while(|line| line.starts_with("      ")).map(str::trim);
        configurations.push(lines.collect::<Vec<_>>().join("\n"));
    }
    assert_eq!(configurations.len(), 3);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sinew.toml");
    for configuration in configurations {
        std::fs::write(&file, configuration).expect("written");
        run(sinew(folder.path()).args(["config", "check"]).arg(&file)).ok();
    }
}

/// The smallest load balancer: each connection goes to the first address that takes it.
fn balancer(addresses: Arc<Mutex<Vec<String>>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let own = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for taken in listener.incoming().flatten() {
            let addresses = addresses.lock().expect("a lock").clone();
            let Some(chosen) = addresses.iter().find_map(|address| TcpStream::connect(address).ok()) else { continue };
            for (mut from, mut to) in [(&taken, &chosen), (&chosen, &taken)]
                .map(|(from, to)| (from.try_clone().expect("a socket"), to.try_clone().expect("a socket")))
            {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    own
}

/// Ends the calls, also of a test that fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn nodes_restart_one_after_the_other_and_every_call_is_answered() {
    let nats = NatsServer::open();
    // Any of them takes the board.
    let token = "a-token-of-all-nodes";
    let node = |name: &str| nats.node_with(name, &["--token", token]);
    let [entry, attic, cellar] = ["entry", "attic", "cellar"].map(node);
    let address = |node: &TestGateway| {
        let url = node.devices_url().trim_start_matches("ws://");
        url.split('/').next().unwrap_or_default().to_owned()
    };
    let addresses = Arc::new(Mutex::new(vec![address(&attic), address(&cellar)]));
    let joined = |node: &TestGateway| node.json(&["cluster"])["lease"] == true && nodes(node).len() == 3;
    for node in [&entry, &attic, &cellar] {
        until("the node is in the cluster", || joined(node));
    }
    let url = format!("ws://{}/xiaozhi/v1/", balancer(addresses.clone()));
    let command = ["sim", "board", "--connect", &url, "--token", token, "--kind", "relay"];
    let _board = Process::start(sinew(entry.state.path()).args(command));
    let mut id = None;
    until("a board is here", || {
        id = entry.json(&["devices"])["devices"][0]["id"].as_str().map(str::to_owned);
        id.is_some()
    });
    let id = id.unwrap_or_default();
    sees(&entry, &id, "ready");

    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = Over(&is_over);
        let calls = scope.spawn(|| {
            let mut answered = 0;
            while !is_over.load(Ordering::Relaxed) {
                let told = entry.run(&["call", &id, "self.get_relays"]);
                // The board may take longer to come back than a call waits. Then nothing was sent.
                assert!(told.code == 0 || told.err.contains("nothing was sent"), "{told:?}");
                answered += usize::from(told.code == 0);
            }
            answered
        });
        let mut running = vec![attic, cellar];
        for name in ["attic", "cellar", "attic"] {
            // The one with the board stops as a service does, and comes back behind the other.
            let mut stopping = running.remove(0);
            run(Command::new("kill").args(["-TERM", &stopping.process.child.id().to_string()])).ok();
            assert!(stopping.process.child.wait().expect("it ends").success());
            let started = node(name);
            until("the node is in the cluster", || joined(&started));
            running.push(started);
            *addresses.lock().expect("a lock") = running.iter().map(address).collect();
            sees(&entry, &id, "ready");
        }
        drop(over);
        assert!(calls.join().expect("every call is answered") > 0);
    });
}
