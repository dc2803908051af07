//! Who comes in, who does not, and what is announced.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use sinew_boards::{Boards, HubConfig, http};
use sinew_sim::board::{BoardConfig, BoardKind, RunError, Trust, hardware_id, run_many};
use sinew_tool::{Admission, DeviceEvent, DeviceKey, LeaveReason, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Error;

use crate::support::{Played, TOKEN, TestGateway, call, certificate, device_token, soon};

#[tokio::test]
async fn a_virtual_board_joins_with_its_particulars_and_its_tools() {
    let mut gateway = TestGateway::open().await;
    gateway.switch_on(gateway.board("aa:bb:cc:dd:ee:01", BoardKind::Talking));
    let device = gateway.joined().await;
    let info = device.info();
    assert_eq!(info.key.0, "board:aa:bb:cc:dd:ee:01");
    assert_eq!((info.suggested_id.as_str(), info.family.name.as_str()), ("board-ddee01", "board"));
    assert_eq!((info.name.as_str(), info.version.as_str()), ("virtual-companion", "2.0.0"));
    assert_eq!(info.status, Status::Ready);
    assert_eq!(info.admission, Admission::OwnToken);
    assert_eq!(info.attributes["transport"], "websocket");
    let tools = device.tools();
    assert!(tools.find("self.audio_speaker.set_volume").is_some());
    assert!(tools.find("self.reboot").is_none(), "user tools are listed only where the config says so");
    gateway.close().await;
}

#[tokio::test]
async fn a_device_token_admits_its_own_board_only() {
    let mut gateway = TestGateway::open().await;
    let own = |id: &str| BoardConfig { token: Some("token of aa".to_owned()), ..gateway.board(id, BoardKind::Relay) };
    let (mine, other) = (own("aa"), own("bb"));
    gateway.switch_on(mine);
    assert_eq!(gateway.joined().await.info().admission, device_token("aa"));
    let refused = sinew_sim::board::run(other, gateway.shutdown.clone()).await.expect_err("refused");
    assert!(matches!(refused, RunError::Refused { status: Some(401), .. }), "{refused}");
    gateway.close().await;
}

#[tokio::test]
async fn who_cannot_say_who_it_is_gets_a_plain_answer_before_any_mcp() {
    let mut gateway = TestGateway::open().await;
    let url = gateway.url();
    let token = ("authorization", TOKEN.to_owned());
    let id = ("device-id", "aa".to_owned());
    let wrong = ("authorization", "Bearer wrong".to_owned());
    let elsewhere = url.replace("xiaozhi", "elsewhere");
    for (url, headers, status, word) in [
        (&url, vec![token.clone()], 400, "Device-Id"),
        (&url, vec![id.clone()], 401, "token"),
        (&url, vec![id.clone(), wrong], 401, "token"),
        (&elsewhere, vec![id.clone(), token.clone()], 404, "/xiaozhi/v1/"),
    ] {
        let Err(Error::Http(answer)) = Played::knock_with(url, &headers).await.map(|_| ()) else {
            panic!("{status} was expected")
        };
        assert_eq!(answer.status(), status);
        assert_eq!(answer.headers().contains_key("www-authenticate"), status == 401);
        let body = String::from_utf8_lossy(answer.body().as_deref().expect("a body")).into_owned();
        assert!(body.contains(word), "{body}");
    }
    assert!(gateway.events.try_recv().is_err(), "nobody was announced");

    for good in [vec![id.clone(), token.clone()], vec![id, ("authorization", format!("bearer {TOKEN}"))]] {
        Played::knock_with(&url, &good).await.expect("a token with and without its scheme is good");
    }
    let query = format!("{}?device-id=aa%3A01&client-id=c&authorization=Bearer%20{TOKEN}", url.trim_end_matches('/'));
    let mut played = Played::knock_with(&query, &[]).await.expect("query parameters will do");
    played.introduce().await;
    assert_eq!(gateway.joined().await.info().attributes["client_id"], "c");
    gateway.close().await;
}

#[tokio::test]
async fn a_plain_http_request_is_told_to_upgrade() {
    let gateway = TestGateway::open().await;
    let mut tcp = TcpStream::connect(gateway.address).await.expect("open");
    let request = format!("GET /xiaozhi/v1/ HTTP/1.1\r\nHost: x\r\nDevice-Id: aa\r\nAuthorization: {TOKEN}\r\n\r\n");
    tcp.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    soon(tcp.read_to_string(&mut answer)).await.expect("an answer, then the end");
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
    assert!(answer.to_lowercase().contains("upgrade: websocket"), "{answer}");
    gateway.close().await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_not_kept() {
    let gateway = TestGateway::open_with(|config| config.limits.handshake_time = Duration::from_millis(20)).await;
    let mut tcp = TcpStream::connect(gateway.address).await.expect("open");
    assert_eq!(soon(tcp.read(&mut [0; 16])).await.expect("an orderly end"), 0);
    gateway.close().await;
}

#[tokio::test]
async fn a_board_that_never_says_hello_is_dismissed() {
    let gateway = TestGateway::open_with(|config| config.limits.hello_time = Duration::from_millis(20)).await;
    let mut played = Played::knock(&gateway.url(), "aa").await;
    let (_, reason) = played.closed().await.expect("a reason");
    assert!(reason.contains("no hello"), "{reason}");
    assert!(gateway.close().await.is_empty(), "it never joined, so it never left");
}

#[tokio::test]
async fn beyond_the_limit_boards_are_put_off_but_a_known_one_may_return() {
    let mut gateway = TestGateway::open_with(|config| config.limits.boards = 1).await;
    let (_first, _) = gateway.played("aa").await;
    let headers = |id: &str| [("authorization", TOKEN.to_owned()), ("device-id", id.to_owned())];
    let Err(Error::Http(answer)) = Played::knock_with(&gateway.url(), &headers("bb")).await.map(|_| ()) else {
        panic!("there is no room")
    };
    assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].as_bytes()), (503, &b"60"[..]));
    gateway.played("aa").await;
    gateway.close().await;
}

#[tokio::test]
async fn a_hello_without_mcp_is_answered_and_listed_as_such() {
    let mut gateway = TestGateway::open().await;
    let mut played = Played::knock(&gateway.url(), "aa").await;
    assert_eq!(played.hello(json!({})).await["transport"], "websocket");
    let device = gateway.joined().await;
    let Status::Limited { state, remedy } = device.info().status.clone() else { panic!("it has no MCP") };
    assert_eq!(state, "no MCP");
    assert!(remedy.contains("features.mcp"));
    assert!(device.tools().is_empty());

    played.notify("notifications/anything", json!({})).await;
    played.set_up().await;
    loop {
        if let DeviceEvent::Changed(device) = gateway.next().await {
            assert_eq!((device.info().status.clone(), device.tools().len()), (Status::Ready, 1));
            break;
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn mcp_before_hello_is_taken_as_capable() {
    let mut gateway = TestGateway::open().await;
    let mut played = Played::knock(&gateway.url(), "aa").await;
    played.notify("notifications/early", json!({"n": 1})).await;
    played.set_up().await;
    let device = gateway.joined().await;
    assert_eq!(device.tools().len(), 1);
    assert_eq!(gateway.said("notifications/early").await.body, json!({"n": 1}), "what was said early is not lost");
    gateway.close().await;
}

#[tokio::test]
async fn a_board_that_returns_replaces_itself_and_answers_its_callers() {
    let mut gateway = TestGateway::open().await;
    let (mut first, old) = gateway.played("aa").await;
    let pending = call(&old, "echo", json!({}));
    first.asked("tools/call").await;

    let mut second = Played::knock(&gateway.url(), "aa").await;
    let error = soon(pending).await.expect("no panic").expect_err("the first connection is gone");
    assert_eq!(error.kind, sinew_tool::ErrorKind::DeviceLost);
    let (left, reason) = gateway.left().await;
    assert!(Arc::ptr_eq(&left, &old));
    assert_eq!(reason, LeaveReason::Replaced);
    assert!(first.closed().await.expect("a reason").1.contains("replaced"));

    second.introduce().await;
    let new = gateway.joined().await;
    let pending = call(&new, "echo", json!({}));
    let request = second.asked("tools/call").await;
    second.answer_text(&request, "new").await;
    assert_eq!(soon(pending).await.expect("no panic").expect("fine").joined_text(), "new");
    assert_eq!(
        soon(call(&old, "echo", json!({}))).await.expect("no panic").expect_err("gone").kind,
        sinew_tool::ErrorKind::DeviceAway
    );
    gateway.close().await;
}

#[tokio::test]
async fn equal_boards_share_one_toolset() {
    let mut gateway = TestGateway::open().await;
    let config = gateway.board("", BoardKind::Talking);
    let boards = tokio::spawn(run_many(5, config, gateway.shutdown.clone()));
    let mut devices = Vec::new();
    for _ in 0..5 {
        devices.push(gateway.joined().await);
    }
    let first = devices[0].tools();
    assert!(devices.iter().all(|device| Arc::ptr_eq(&device.tools(), &first)));
    let mut ids: Vec<_> = devices.iter().map(|device| device.info().attributes["hardware_id"].clone()).collect();
    ids.sort_by_key(ToString::to_string);
    assert_eq!(ids, (1..=5).map(|index| json!(hardware_id(index))).collect::<Vec<_>>());
    gateway.close().await;
    soon(boards).await.expect("no panic").expect("an orderly end");
}

#[tokio::test]
async fn a_reboot_really_reconnects() {
    let mut gateway = TestGateway::open_with(|config| config.user_tools = true).await;
    gateway.switch_on(gateway.board("aa:bb:cc:dd:ee:01", BoardKind::Talking));
    let first = gateway.joined().await;
    let outcome = soon(call(&first, "self.reboot", json!({}))).await.expect("no panic").expect("told");
    assert_eq!(outcome.joined_text(), "true");
    let (left, reason) = gateway.left().await;
    assert!(Arc::ptr_eq(&left, &first));
    assert!(matches!(reason, LeaveReason::Broken(_)), "a board that restarts says no farewell: {reason}");
    let second = gateway.joined().await;
    assert_eq!(second.info().key, first.info().key);
    gateway.close().await;
}

#[tokio::test]
async fn closing_the_door_tells_every_board_and_joins_every_task() {
    let mut gateway = TestGateway::open().await;
    let (mut first, device) = gateway.played("aa").await;
    let (mut second, _) = gateway.played("bb").await;
    let _undecided = TcpStream::connect(gateway.address).await.expect("open");
    let pending = call(&device, "echo", json!({}));
    first.asked("tools/call").await;
    let address = gateway.address;
    let rest = {
        let closing = tokio::spawn(gateway.close());
        for played in [&mut first, &mut second] {
            let (code, reason) = played.closed().await.expect("a reason");
            assert_eq!(code, 1001);
            assert!(reason.contains("shutting down"), "{reason}");
        }
        soon(closing).await.expect("no panic")
    };
    let leaving = |event: &DeviceEvent| matches!(event, DeviceEvent::Left(_, LeaveReason::Dismissed(_)));
    assert_eq!(rest.iter().filter(|event| leaving(event)).count(), 2);
    assert_eq!(soon(pending).await.expect("no panic").expect_err("cut off").kind, sinew_tool::ErrorKind::DeviceLost);
    assert!(TcpStream::connect(address).await.is_err(), "the port is free again");
}

#[tokio::test]
async fn boards_come_over_tls_where_they_trust_the_certificate() {
    let (config, pem) = certificate();
    let mut gateway = TestGateway::open_with(|hub| hub.tls = Some(config)).await;
    let url = gateway.url().replace("ws://", "wss://");
    let board =
        |id: &str, trust: Trust| BoardConfig { url: url.clone(), trust, ..gateway.board(id, BoardKind::Talking) };

    let pinned = board("aa", Trust::Pem(pem));
    let wrong = board("bb", Trust::Fingerprint([7; 32]));
    gateway.switch_on(pinned);
    let device = gateway.joined().await;
    let photo = soon(call(&device, "self.camera.take_photo", json!({"question": "?"}))).await.expect("no panic");
    assert!(photo.expect("a photo").content[0].bytes().expect("an image").len() > 1000);

    let refused = soon(sinew_sim::board::run(wrong, gateway.shutdown.clone())).await.expect_err("not trusted");
    assert!(matches!(refused, RunError::Tls(..)), "{refused}");
    let mut plain = TcpStream::connect(gateway.address).await.expect("open");
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("sent");
    let mut answer = Vec::new();
    let _ = soon(plain.read_to_end(&mut answer)).await;
    let answer = String::from_utf8(answer).expect("text");
    assert!(
        answer.starts_with("HTTP/1.1 400") && answer.contains("https_required"),
        "only that it must be TLS: {answer}"
    );
    gateway.close().await;
}

#[tokio::test]
async fn a_closed_token_ends_the_door_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let gateway = TestGateway::open_with(|_| {}).await;
    gateway.shutdown.cancel();
    let config = HubConfig::new(Arc::new(|_: Option<&str>, _: &DeviceKey| None), Arc::new(|_| {}));
    soon(http::run(listener, Boards::new(config).expect("random numbers"), gateway.shutdown.clone()))
        .await
        .expect("nothing to do");
    gateway.close().await;
}

#[tokio::test]
async fn a_ping_of_the_board_is_answered() {
    use futures_util::SinkExt;
    use tokio_tungstenite::tungstenite::Message;
    let mut gateway = TestGateway::open().await;
    let (mut played, _) = gateway.played("aa").await;
    played.socket.send(Message::Ping("here?".into())).await.expect("sent");
    loop {
        match soon(played.socket.next()).await.expect("open").expect("whole") {
            Message::Pong(echo) => break assert_eq!(&echo[..], b"here?"),
            Message::Text(_) => {}
            other => panic!("{other:?}"),
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn connections_that_say_nothing_make_room_for_boards() {
    let mut gateway = TestGateway::open_with(|config| {
        config.limits.handshakes = 8;
        config.limits.handshakes_of_one = 4;
        config.limits.handshake_time = Duration::from_secs(3600);
        config.limits.hello_time = Duration::from_secs(3600);
    })
    .await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(gateway.address).await.expect("open"));
        silent.push(TcpStream::connect(gateway.mqtt).await.expect("open"));
    }
    gateway.played("aa").await;
    let config = BoardConfig { url: gateway.mqtt_url(), ..gateway.board("aa:bb:cc:dd:ee:01", BoardKind::Relay) };
    gateway.switch_on(config);
    gateway.joined().await;
    let mut first = silent.swap_remove(0);
    assert_eq!(soon(first.read(&mut [0; 8])).await.unwrap_or(0), 0, "the oldest was closed");
    gateway.close().await;
}

#[tokio::test]
async fn web_pages_are_refused_and_programs_that_name_their_address_are_not() {
    let gateway = TestGateway::open().await;
    let host = gateway.address.to_string();
    let own = format!("http://{host}");
    let status = async |headers: &[(&str, &str)]| {
        let mut all = vec![("Device-Id", "aa"), ("Authorization", "Bearer gateway-secret")];
        all.extend(headers);
        gateway.request_as(&host, "GET", "/xiaozhi/v1/", &all, b"").await.0
    };
    for page in [
        [("Origin", "https://evil.example")],
        [("Origin", "null")],
        [("Origin", "http://127.0.0.1:1")],
        [("Sec-Fetch-Site", "same-origin")],
    ] {
        assert_eq!(status(&page).await, 403, "{page:?}");
    }
    assert_eq!(status(&[]).await, 426, "a board, but no WebSocket");
    // Programs: one that names our address, and what libraries for microcontrollers send.
    for origin in [own.as_str(), "", "file://"] {
        assert_eq!(status(&[("Origin", origin)]).await, 426, "{origin:?}");
    }
    let own_and_another = [("Origin", own.as_str()), ("Origin", "http://evil.example")];
    assert_eq!(status(&own_and_another).await, 403);
    assert_eq!(status(&[("Host", "evil.example")]).await, 403, "a second host");
    let rebound = [("Origin", "http://evil.example:80"), ("Device-Id", "aa")];
    assert_eq!(gateway.request_as("evil.example:80", "GET", "/xiaozhi/v1/", &rebound, b"").await.0, 403);
    gateway.close().await;
}
