//! The manners of real stacks, each end to end: list, call, restart, changed tools.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::json;
use sinew_servers::ServerConfig;
use sinew_sim::http_board::{HttpBoard, HttpBoardStyle};
use sinew_tool::ErrorKind;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::{Family, at, call, soon, tool_names, witnessed};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const STYLES: [HttpBoardStyle; 4] =
    [HttpBoardStyle::Espressif, HttpBoardStyle::Zephyr, HttpBoardStyle::Arduino, HttpBoardStyle::MicroPython];

async fn board(style: HttpBoardStyle) -> (HttpBoard, DropGuard) {
    let shutdown = CancellationToken::new();
    (HttpBoard::open(style, ANY, shutdown.clone()).await.expect("it listens"), shutdown.drop_guard())
}

#[tokio::test]
async fn a_board_of_each_stack_is_listed_called_and_called_after_it_restarted() {
    for style in STYLES {
        let (board, _running) = board(style).await;
        let mut family = Family::start(at(&board.url()));
        let kiln = family.joined().await;
        assert_eq!((kiln.info().name.as_str(), kiln.info().version.as_str()), ("kiln", "1.2.0"), "{style:?}");
        assert_eq!((kiln.info().key.0.as_str(), kiln.info().suggested_id.as_str()), ("server:kiln", "kiln"));
        assert_eq!(tool_names(&kiln), ["temperature", "set_target", "warm_up"], "{style:?}");
        assert_eq!(call(&kiln, "temperature", json!({})).await.expect("an answer").joined_text(), "21", "{style:?}");
        board.restart();
        let answer = call(&kiln, "set_target", json!({"celsius": 900})).await;
        assert_eq!(answer.expect("a new session").joined_text(), "900", "{style:?}");
        assert_eq!(call(&kiln, "warm_up", json!({})).await.expect("in the end").joined_text(), "true", "{style:?}");
        assert_eq!(family.stop().await, "closed");
    }
}

#[tokio::test]
async fn what_a_board_refuses_is_an_error_that_names_the_tool() {
    for style in [HttpBoardStyle::Espressif, HttpBoardStyle::Arduino] {
        let (board, _running) = board(style).await;
        let mut family = Family::start(at(&board.url()));
        let kiln = family.joined().await;
        let error = call(&kiln, "set_target", json!({"celsius": 5000})).await.expect_err("too hot");
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{style:?}: {error}");
        assert!(error.message.contains("set_target"), "{error}");
        let error = call(&kiln, "explode", json!({})).await.expect_err("unknown");
        assert!(error.message.contains("explode"), "{error}");
    }
}

#[tokio::test]
async fn progress_reaches_the_caller() {
    let (board, _running) = board(HttpBoardStyle::Espressif).await;
    let mut family = Family::start(at(&board.url()));
    let kiln = family.joined().await;
    let (call, witness) = witnessed("warm_up", json!({}));
    soon(kiln.call(call)).await.expect("an answer");
    assert_eq!(*witness.0.lock().expect("no panic"), ["1 of Some(2.0) heating", "2 of Some(2.0) heating"]);
}

#[tokio::test]
async fn boards_of_a_kind_share_their_tools() {
    let (board, _running) = board(HttpBoardStyle::Arduino).await;
    let (mut first, mut second) = (Family::start(at(&board.url())), Family::start(at(&board.url())));
    assert!(std::sync::Arc::ptr_eq(&first.joined().await.tools(), &second.joined().await.tools()));
}

#[tokio::test]
async fn a_board_that_learns_a_tool_is_noticed_by_looking() {
    let (board, _running) = board(HttpBoardStyle::Arduino).await;
    let mut family = Family::start(ServerConfig { poll: Duration::from_secs(1), ..at(&board.url()) });
    family.joined().await;
    board.grow();
    let kiln = family.changed().await;
    assert!(tool_names(&kiln).contains(&"cool_down".to_owned()));
}

#[tokio::test]
async fn a_call_to_a_missing_tool_makes_us_look_again_at_once() {
    let (board, _running) = board(HttpBoardStyle::Zephyr).await;
    let mut family = Family::start(ServerConfig { poll: Duration::from_secs(3600), ..at(&board.url()) });
    let kiln = family.joined().await;
    board.grow();
    call(&kiln, "explode", json!({})).await.expect_err("unknown");
    assert!(tool_names(&family.changed().await).contains(&"cool_down".to_owned()));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_shown_with_its_trouble_until_it_comes() {
    let (first, running) = board(HttpBoardStyle::Espressif).await;
    let url = first.url();
    drop(running);
    let address: SocketAddr = url.trim_start_matches("http://").trim_end_matches("/mcp").parse().expect("an address");
    // The port is free once the listener is gone.
    soon(async {
        while tokio::net::TcpListener::bind(address).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut family = Family::start(at(&url));
    let stand_in = family.joined().await;
    assert!(format!("{:?}", stand_in.info().status).contains("cannot be reached"), "{:?}", stand_in.info().status);
    assert_eq!(call(&stand_in, "temperature", json!({})).await.expect_err("away").kind, ErrorKind::DeviceAway);
    let shutdown = CancellationToken::new();
    let _board = HttpBoard::open(HttpBoardStyle::Espressif, address, shutdown.clone()).await.expect("it listens");
    assert_eq!(family.left().await, "never connected");
    let kiln = family.joined().await;
    assert_eq!(call(&kiln, "temperature", json!({})).await.expect("an answer").joined_text(), "21");
    // And when it goes, it is reported as gone.
    shutdown.cancel();
    call(&kiln, "temperature", json!({})).await.expect_err("gone");
    assert!(family.left().await.starts_with("connection broken"));
}
