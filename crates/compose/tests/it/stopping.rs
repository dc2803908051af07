//! Stopping with calls under way: they are answered, new ones are refused, and only then do boards lose the gateway.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use serde_json::json;
use sinew_compose::config::{GatewayConfig, MqttAddress};
use sinew_compose::{GatewayServer, Overrides};
use sinew_gateway::{Gateway, Principal, Request, Role};
use sinew_runner::device::{Board, ToolSpec};
use sinew_runner::{CancellationToken, Dialer, Identity, Trust};
use sinew_tool::Args;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::DropGuard;

const HARDWARE_ID: &str = "02:00:00:00:00:07";

/// A hanging test is a failed one.
async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.unwrap_or_else(|_| panic!("{what} takes too long"))
}

async fn open(state: &std::path::Path) -> GatewayServer {
    open_with(state, |config| config.clients.drain = Duration::from_secs(30)).await
}

async fn open_with(state: &std::path::Path, change: impl FnOnce(&mut GatewayConfig)) -> GatewayServer {
    let free = "127.0.0.1:0".parse().expect("an address");
    let mut config = GatewayConfig { listen: free, devices: free, mqtt: MqttAddress::Off, ..GatewayConfig::default() };
    config.phones.enabled = false;
    change(&mut config);
    let flags = Overrides { state: Some(state.to_owned()), ..Overrides::default() };
    GatewayServer::open(config.with(&flags).expect("settings")).await.expect("a gateway")
}

/// A board with one tool that says when it was called and answers when it is released.
fn slow_board(server: &GatewayServer, called: mpsc::Sender<()>, released: mpsc::Receiver<()>) -> DropGuard {
    let released = std::sync::Mutex::new(released);
    let board = Board::new("slow", "1.0.0").tool(ToolSpec::new("self.wait", "Waits."), move |_| {
        let _ = called.send(());
        let _ = released.lock().expect("one call at a time").recv_timeout(Duration::from_secs(30));
        Ok("done".into())
    });
    connect(server, HARDWARE_ID, board)
}

/// Runs a board, whose tools block, on a thread of its own.
fn connect(server: &GatewayServer, hardware_id: &str, board: Board) -> DropGuard {
    let mut identity = Identity::new(hardware_id);
    identity.token = Some(server.addresses.token.clone());
    let dialer = Dialer::new(&server.addresses.devices_url, &Trust::System).expect("an address");
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        drop(runtime.block_on(dialer.run(board, identity, stop)));
    });
    shutdown.drop_guard()
}

/// The ids of so many boards, once all of them are ready.
async fn ready_boards(gateway: &Gateway, count: usize) -> Vec<String> {
    let mut watch = gateway.watch();
    soon("joining", async {
        loop {
            let ready = gateway.devices().into_iter().filter(|device| device.is_ready());
            let ids: Vec<String> = ready.map(|device| device.id.to_string()).collect();
            if ids.len() == count {
                return ids;
            }
            watch.next().await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_call_under_way_is_answered_after_the_stop_and_new_ones_are_not_taken() {
    let state = tempfile::tempdir().expect("a folder");
    let server = open(state.path()).await;
    let (called, was_called) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let _board = slow_board(&server, called, released);
    let gateway = server.gateway.clone();
    let id = ready_boards(&gateway, 1).await.remove(0);

    let address = server.addresses.url.trim_start_matches("http://").to_owned();
    let body = format!("{{\"device\":\"{id}\",\"tool\":\"self.wait\",\"arguments\":{{}}}}");
    let request = format!(
        "POST /api/v1/call HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        server.addresses.token,
        body.len()
    );
    let mut client = TcpStream::connect(&address).await.expect("the listener is open");
    client.write_all(request.as_bytes()).await.expect("sent");
    let was_called = soon(
        "the call",
        tokio::task::spawn_blocking(move || {
            let _ = was_called.recv();
            was_called
        }),
    )
    .await
    .expect("the board was called");

    let closed = Arc::new(AtomicBool::new(false));
    let has_closed = closed.clone();
    let shutdown = server.shutdown().clone();
    let closing = tokio::spawn(async move {
        server.close(std::future::pending()).await;
        has_closed.store(true, Ordering::SeqCst);
    });
    soon("the stop", shutdown.cancelled()).await;
    // The listener for clients closes while the call still runs, and the board is still there.
    soon("the clients' listener", async {
        while TcpStream::connect(&address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(!closed.load(Ordering::SeqCst), "the gateway waits for the call");
    assert!(gateway.devices().iter().any(|device| device.is_ready()), "the board keeps its connection");

    release.send(()).expect("the board waits");
    let mut answer = String::new();
    soon("the answer", client.read_to_string(&mut answer)).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("done"), "{answer}");
    soon("closing", closing).await.expect("closed");

    let request = Request::new(Principal::new("late", Role::Client), "self.wait", Args::new(), "test");
    let late = gateway.call_on(&id, request);
    assert!(soon("a late call", late).await.is_err(), "nothing is called any more");
    assert!(was_called.try_recv().is_err(), "the board was called once");
}

/// Calls that one board may have open, so that four boards have 200.
const OPEN: usize = 50;
/// Calls that are sent to each board: what is too much is refused at once, and so shows that the others are open.
const SENT: usize = 60;
const BOARDS: usize = 4;

/// Four boards whose calls hang until the gate opens, and 200 open calls.
struct Hanging {
    server: GatewayServer,
    gate: Arc<(Mutex<bool>, Condvar)>,
    /// The answers to the calls that were not refused.
    answers: JoinSet<String>,
    boards: Vec<DropGuard>,
    state: tempfile::TempDir,
}

impl Hanging {
    async fn open(drain: Duration) -> Hanging {
        let state = tempfile::tempdir().expect("a folder");
        let server = open_with(state.path(), |config| {
            config.clients.drain = drain;
            config.gateway.open_calls = OPEN;
        })
        .await;
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let mut boards = Vec::new();
        for number in 0..BOARDS {
            let gate = gate.clone();
            let board = Board::new("slow", "1.0.0").tool(ToolSpec::new("self.wait", "Waits."), move |_| {
                let (open, changed) = &*gate;
                let open = open.lock().expect("the gate");
                drop(changed.wait_timeout_while(open, Duration::from_secs(30), |open| !*open));
                Ok("done".into())
            });
            boards.push(connect(&server, &format!("02:00:00:00:01:0{number}"), board));
        }
        let ids = ready_boards(&server.gateway, BOARDS).await;
        let mut answers = JoinSet::new();
        for (number, id) in ids.iter().cycle().take(SENT * BOARDS).enumerate() {
            answers.spawn(post(request_of(&server, id, number)));
        }
        for _ in 0..(SENT - OPEN) * BOARDS {
            let refused = soon("a refusal", answers.join_next()).await.expect("an answer").expect("a refusal");
            assert!(refused.contains("Busy"), "{refused}");
        }
        Hanging { server, gate, answers, boards, state }
    }
}

fn open_gate((open, changed): &(Mutex<bool>, Condvar)) {
    *open.lock().expect("the gate") = true;
    changed.notify_all();
}

/// Every other call is one over MCP.
fn request_of(server: &GatewayServer, device: &str, number: usize) -> (String, String) {
    let address = server.addresses.url.trim_start_matches("http://").to_owned();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "self_wait", "arguments": {"device": device}, "_meta": meta});
    let (path, body, more) = match number % (2 * BOARDS) < BOARDS {
        true => ("/api/v1/call", json!({"device": device, "tool": "self.wait", "arguments": {}}), ""),
        false => (
            "/mcp",
            json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}),
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: self_wait\r\n",
        ),
    };
    let (token, body) = (&server.addresses.token, body.to_string());
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{more}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    (address, request)
}

async fn post((address, request): (String, String)) -> String {
    let mut client = TcpStream::connect(&address).await.expect("the listener is open");
    client.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// How many calls are recorded with this outcome.
async fn recorded(state: &std::path::Path, outcome: &str) -> usize {
    let server = open(state).await;
    let records = server.gateway.audit(10_000).await.expect("records");
    server.close(std::future::pending()).await;
    records.iter().filter(|record| record.tool.as_deref() == Some("self.wait") && record.outcome == outcome).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_calls_under_way_are_answered_and_recorded_after_the_stop() {
    let Hanging { server, gate, mut answers, boards: _boards, state } = Hanging::open(Duration::from_secs(30)).await;
    let shutdown = server.shutdown().clone();
    let closing = tokio::spawn(server.close(std::future::pending()));
    soon("the stop", shutdown.cancelled()).await;
    open_gate(&gate);
    while let Some(answer) = soon("an answer", answers.join_next()).await {
        let answer = answer.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("done"), "{answer}");
    }
    soon("closing", closing).await.expect("closed");
    assert_eq!(recorded(state.path(), "ok").await, OPEN * BOARDS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_calls_that_never_end_are_told_of_the_stop_and_recorded() {
    let Hanging { server, gate, mut answers, boards: _boards, state } = Hanging::open(Duration::from_millis(100)).await;
    let closing = tokio::spawn(server.close(std::future::pending()));
    while let Some(answer) = soon("an answer", answers.join_next()).await {
        let answer = answer.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 50") && answer.contains("the gateway stopped before"), "{answer}");
    }
    soon("closing", closing).await.expect("closed");
    open_gate(&gate);
    assert_eq!(recorded(state.path(), "Cancelled").await, OPEN * BOARDS);
}
