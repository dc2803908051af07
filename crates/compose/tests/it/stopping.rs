//! Stopping with a call under way: it is answered, new ones are refused, and only then do boards lose the gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use sinew_compose::config::{GatewayConfig, MqttAddress};
use sinew_compose::{GatewayServer, Overrides};
use sinew_gateway::{Principal, Request, Role};
use sinew_runner::device::{Board, ToolSpec};
use sinew_runner::{CancellationToken, Dialer, Identity, Trust};
use sinew_tool::Args;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const HARDWARE_ID: &str = "02:00:00:00:00:07";

/// A hanging test is a failed one.
async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.unwrap_or_else(|_| panic!("{what} takes too long"))
}

async fn open(state: &std::path::Path) -> GatewayServer {
    let free = "127.0.0.1:0".parse().expect("an address");
    let mut config = GatewayConfig { listen: free, devices: free, mqtt: MqttAddress::Off, ..GatewayConfig::default() };
    config.phones.enabled = false;
    config.clients.drain = Duration::from_secs(30);
    let flags = Overrides { state: Some(state.to_owned()), ..Overrides::default() };
    GatewayServer::open(config.with(&flags).expect("settings")).await.expect("a gateway")
}

/// A board with one tool that says when it was called and answers when it is released.
fn slow_board(
    server: &GatewayServer,
    called: mpsc::Sender<()>,
    released: mpsc::Receiver<()>,
) -> tokio::task::JoinHandle<()> {
    let released = std::sync::Mutex::new(released);
    let board = Board::new("slow", "1.0.0").tool(ToolSpec::new("self.wait", "Waits."), move |_| {
        let _ = called.send(());
        let _ = released.lock().expect("one call at a time").recv_timeout(Duration::from_secs(30));
        Ok("done".into())
    });
    let mut identity = Identity::new(HARDWARE_ID);
    identity.token = Some(server.addresses.token.clone());
    let dialer = Dialer::new(&server.addresses.devices_url, &Trust::System).expect("an address");
    tokio::spawn(async move {
        let _ = dialer.run(board, identity, CancellationToken::new()).await;
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_call_under_way_is_answered_after_the_stop_and_new_ones_are_not_taken() {
    let state = tempfile::tempdir().expect("a folder");
    let server = open(state.path()).await;
    let (called, was_called) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let board = slow_board(&server, called, released);
    let gateway = server.gateway.clone();
    let mut watch = gateway.watch();
    let id = soon("joining", async {
        loop {
            if let Some(device) = gateway.devices().into_iter().find(|device| device.is_ready()) {
                return device.id.to_string();
            }
            watch.next().await;
        }
    })
    .await;

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
    board.abort();

    let request = Request::new(Principal::new("late", Role::Client), "self.wait", Args::new(), "test");
    let late = gateway.call_on(&id, request);
    assert!(soon("a late call", late).await.is_err(), "nothing is called any more");
    assert!(was_called.try_recv().is_err(), "the board was called once");
}
