//! Clients that do not read, that ask for too much, or whose token was revoked.

use std::time::Duration;

use serde_json::{Value, json};
use sinew_front::{FrontLimits, FrontSettings};
use sinew_gateway::Role;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::lines::{call, hear, initialize, pipe, say, upgraded};
use crate::server::TestServer;

/// A client with a token of its own, and the id of that token.
fn guest(server: &TestServer) -> (Client, String, String) {
    let (view, token) = server.gateway.tokens().create(Role::Client, "guest").unwrap();
    (server.client().with_token(Some(&token)), token, view.id)
}

fn limited(limits: FrontLimits) -> FrontSettings {
    FrontSettings { limits, ..FrontSettings::default() }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_read_is_not_served_and_ends() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize()).await;
    hear(&mut pipe.reader).await;
    let mut sent = 0;
    for id in 1.. {
        let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
        // The paused clock advances only when nothing runs, so this returns once the gateway has stopped reading.
        if timeout(Duration::from_secs(1), pipe.writer.write_all(line.as_bytes())).await.is_err() {
            break;
        }
        sent += line.len();
        assert!(sent < 4 << 20, "it reads on and on");
    }
    pipe.server.await.unwrap().unwrap();
    let mut kept = Vec::new();
    pipe.reader.read_to_end(&mut kept).await.unwrap();
    assert!(kept.len() < 256 << 10, "only what the pipe itself holds was written: {}", kept.len());
}

#[tokio::test]
async fn a_connection_that_is_read_late_gets_every_answer() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize()).await;
    hear(&mut pipe.reader).await;
    let mut writer = pipe.writer;
    let sending = async {
        for id in 1..=2000 {
            say(&mut writer, &json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}).to_string()).await;
        }
    };
    let reading = async {
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 2000 {
            let answer = hear(&mut pipe.reader).await;
            assert!(answer["result"]["tools"].is_array(), "{answer}");
            assert!(seen.insert(answer["id"].as_i64()));
        }
    };
    tokio::join!(sending, reading);
}

#[tokio::test]
async fn an_answer_beyond_the_limit_of_waiting_answers_is_refused() {
    let server = TestServer::with(limited(FrontLimits { answers: 100 << 10, ..FrontLimits::default() }), None).await;
    let client = server.client();
    let echo = async |length: usize| {
        let call = json!({"device": "lamp", "tool": "echo", "arguments": {"text": "x".repeat(length)}});
        client.post("/api/v1/call", call).await
    };
    let refused = echo(200 << 10).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]), (503, &json!("busy")));
    assert_eq!(echo(80 << 10).await.status, 200);
    assert_eq!(echo(10).await.status, 200);
}

#[tokio::test]
async fn what_waits_on_a_stream_of_lines_counts_for_its_client_and_others_are_served() {
    // As much as waits when the gateway stops reading a stream.
    let limits = FrontLimits { answers: 4 << 20, answers_each: 1 << 20, ..FrontLimits::default() };
    let server = TestServer::with(limited(limits), None).await;
    let (other, token, _) = guest(&server);
    let (reader, mut writer) = tokio::io::split(upgraded(&server, &server.token).await);
    let enough = CancellationToken::new();
    let sending = tokio::spawn({
        let enough = enough.clone();
        async move {
            let mut sent = 0;
            while !enough.is_cancelled() {
                sent += 1;
                say(&mut writer, &call(sent, "lamp__echo", json!({"text": "x".repeat(10_000)}))).await;
            }
            (sent, writer)
        }
    });
    // Nobody reads, so the client soon gets nothing more, over HTTP either.
    let refused = loop {
        let reply = server.client().get("/api/v1/devices").await;
        if reply.status != 200 {
            break reply;
        }
    };
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]), (503, &json!("busy")));
    assert_eq!(other.get("/api/v1/devices").await.status, 200);
    assert_eq!(other.get("/ready").await.status, 200);
    let mut socket = upgraded(&server, &token).await;
    say(&mut socket, &call(1, "lamp__echo", json!({"text": "hi"}))).await;
    assert_eq!(hear(&mut socket).await["result"]["content"][0]["text"], "hi");
    // When it reads again, each of its requests has an answer, and it is served.
    enough.cancel();
    let mut reader = BufReader::new(reader);
    let (mut answered, mut sending, mut sent) = (0, sending, None);
    while sent.as_ref().is_none_or(|(sent, _)| answered < *sent) {
        tokio::select! {
            answer = hear(&mut reader) => answered += i64::from(answer["id"].is_i64()),
            done = &mut sending, if sent.is_none() => sent = Some(done.unwrap()),
        }
    }
    assert_eq!(server.client().get("/api/v1/devices").await.status, 200);
}

#[tokio::test]
async fn a_message_of_many_values_is_refused_before_it_is_parsed() {
    let server = TestServer::new().await;
    let client = server.client();
    let zeros = format!("[{}0]", "0,".repeat(1_900_000));
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":{zeros}}}}}}}"#
    );
    let kind = [("content-type", "application/json")];
    let refused = client.send("POST", "/mcp", &kind, message.clone()).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]["code"]), (413, &json!(-32602)));
    let refused = client.send("POST", "/mcp/v1/tools/call", &kind, message.clone()).await;
    assert_eq!(refused.json()["error"]["data"]["error_type"], "TooLarge", "{}", refused.json());
    let refused = client.send("POST", "/api/v1/call", &kind, format!(r#"{{"tool":"echo","x":{zeros}}}"#)).await;
    assert_eq!(refused.status, 413);
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize()).await;
    hear(&mut pipe.reader).await;
    say(&mut pipe.writer, &message).await;
    assert_eq!(hear(&mut pipe.reader).await["error"]["code"], -32602);
}

#[tokio::test]
async fn all_requests_together_stay_within_their_memory() {
    let server = TestServer::with(limited(FrontLimits { bodies: 1 << 20, ..FrontLimits::default() }), None).await;
    let client = server.client();
    let call = |text: String| json!({"device": "lamp", "tool": "echo", "arguments": {"text": text}});
    assert_eq!(client.post("/api/v1/call", call("x".repeat(2 << 20))).await.status, 503);
    assert_eq!(client.post("/api/v1/call", call("x".repeat(200 << 10))).await.status, 200);
    assert_eq!(client.post("/api/v1/call", call("x".repeat(200 << 10))).await.status, 200, "it was given back");
}

#[tokio::test]
async fn requests_that_are_sent_slowly_take_no_memory_from_other_clients() {
    let limits = FrontLimits { bodies: 4 << 20, bodies_each: 2 << 20, ..FrontLimits::default() };
    let server = TestServer::with(limited(limits), None).await;
    let (other, _, _) = guest(&server);
    let large = || json!({"device": "lamp", "tool": "echo", "arguments": {"text": "x".repeat(1 << 20)}});
    assert_eq!(server.client().post("/api/v1/call", large()).await.status, 200);
    let mut slow = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /api/v1/call HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: 3000000\r\n\r\n",
        server.address, server.token
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(&[b' '; 3 << 19]).await.unwrap();
    // The rest never comes, and the client has used up its part.
    while server.client().post("/api/v1/call", large()).await.status != 503 {}
    assert_eq!(other.post("/api/v1/call", large()).await.status, 200);
    drop(slow);
    while server.client().post("/api/v1/call", large()).await.status != 200 {}
}

#[tokio::test]
async fn a_revoked_token_ends_a_stream_of_lines_and_its_call() {
    let server = TestServer::new().await;
    let (_, token, id) = guest(&server);
    let mut socket = upgraded(&server, &token).await;
    say(&mut socket, &call(1, "lamp__wait", json!({}))).await;
    assert_eq!(server.signal().await, "started");
    server.gateway.tokens().revoke(&id).unwrap();
    assert_eq!(server.signal().await, "dropped");
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest).await;
    assert!(!String::from_utf8_lossy(&rest).contains("waited"));
}

#[tokio::test]
async fn a_revoked_token_ends_everything_that_is_open_over_http() {
    let server = TestServer::new().await;
    let (mut client, _, id) = guest(&server);
    let mut modern = client.modern_stream("subscriptions/listen", json!({"notifications": {}})).await;
    assert_eq!(modern.status, 200);
    client.initialize(json!({})).await;
    let mut stream = client.listen().await;
    let waiting = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "wait"}});
    let mut session_call = client.legacy_stream(waiting).await;
    assert_eq!(server.signal().await, "started");
    let calls = async { client.modern("tools/call", json!({"name": "wait", "arguments": {}})).await.status.as_u16() };
    let next = client.get("/api/v1/events").await.json()["next"].as_str().unwrap().to_owned();
    let events = format!("/api/v1/events?wait_ms=55000&since={next}");
    let polls = async { client.get(&events).await.status.as_u16() };
    let revoke = async {
        assert_eq!(server.signal().await, "started");
        server.gateway.tokens().revoke(&id).unwrap();
        assert_eq!((server.signal().await, server.signal().await), ("dropped", "dropped"));
    };
    let (called, polled, ()) = tokio::join!(calls, polls, revoke);
    assert_eq!(called, 401);
    assert!(matches!(polled, 401 | 400), "{polled}");
    let ended: Vec<Option<Value>> =
        vec![last(&mut modern).await, last(&mut stream).await, last(&mut session_call).await];
    assert!(ended.iter().flatten().all(|message| !message.to_string().contains("waited")), "{ended:?}");
    assert_eq!(client.get("/api/v1/devices").await.status, 401);
}

/// The last message of a stream that ends.
async fn last(stream: &mut crate::client::Stream) -> Option<Value> {
    let mut last = None;
    while let Some(message) = stream.next().await {
        last = Some(message);
    }
    last
}

#[tokio::test]
async fn sessions_opened_at_once_stay_within_the_limit_and_no_client_is_locked_out() {
    let server = TestServer::with(limited(FrontLimits { sessions_each: 4, ..FrontLimits::default() }), None).await;
    let opened = futures_util::future::join_all((0..40).map(|_| async {
        let mut client = server.client();
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let reply = client.legacy("initialize", params).await;
        client.session = Some(reply.header("mcp-session-id").to_owned()).filter(|session| !session.is_empty());
        client
    }));
    let clients = opened.await;
    let mut alive = 0;
    for client in clients.iter().filter(|client| client.session.is_some()) {
        alive += usize::from(client.legacy("ping", json!({})).await.status == 200);
    }
    assert!((1..=4).contains(&alive), "{alive}");
    let mut late = server.client();
    late.initialize(json!({})).await;
    assert_eq!(late.legacy("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn two_open_requests_with_one_id_both_get_an_answer() {
    let server = TestServer::new().await;
    let mut client = server.client();
    client.initialize(json!({})).await;
    let waiting = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait"}});
    let mut first = client.legacy_stream(waiting.clone()).await;
    assert_eq!(server.signal().await, "started");
    let second = client.legacy_send(waiting).await;
    assert_eq!((second.status.as_u16(), &second.json()["id"]), (400, &json!(7)));
    server.go_on();
    assert_eq!(last(&mut first).await.unwrap()["result"]["content"][0]["text"], "waited");
}

/// A call that goes on until [`TestServer::go_on`], on a connection of its own.
async fn long_call(server: &TestServer, token: &str) -> tokio::task::JoinHandle<u16> {
    let client = server.client().with_token(Some(token));
    let call = json!({"device": "lamp", "tool": "wait"});
    let running = tokio::spawn(async move { client.post("/api/v1/call", call).await.status.as_u16() });
    assert_eq!(server.signal().await, "started");
    running
}

#[tokio::test]
async fn idle_connections_shut_nobody_out_and_leave_those_with_a_token_alone() {
    let limits = FrontLimits { strangers: 16, strangers_each: 8, connections_each: 4, ..FrontLimits::default() };
    let server = TestServer::with(limited(limits), None).await;
    let (client, token, _) = guest(&server);
    let running = long_call(&server, &token).await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(tokio::net::TcpStream::connect(server.address).await.unwrap());
    }
    assert_eq!(client.get("/api/v1/devices").await.status, 200);
    // The oldest silent ones were closed, without an answer.
    assert_eq!(idle[0].read(&mut [0; 16]).await.unwrap(), 0);
    // A connection with a call outlives all of them, and the others of its token make room for each other.
    for _ in 0..20 {
        assert_eq!(client.get("/health").await.status, 200);
        assert_eq!(client.get("/api/v1/devices").await.status, 200);
    }
    server.go_on();
    assert_eq!(running.await.unwrap(), 200);
}

#[tokio::test]
async fn a_token_whose_connections_are_all_in_use_is_refused_one_more_and_others_are_not() {
    let limits = FrontLimits { connections_each: 2, ..FrontLimits::default() };
    let server = TestServer::with(limited(limits), None).await;
    let (client, token, _) = guest(&server);
    let running = [long_call(&server, &token).await, long_call(&server, &token).await];
    let refused = client.get("/api/v1/devices").await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]), (503, &json!("busy")));
    assert_eq!(server.client().get("/api/v1/devices").await.status, 200);
    for call in running {
        server.go_on();
        assert_eq!(call.await.unwrap(), 200);
    }
    assert_eq!(client.get("/api/v1/devices").await.status, 200);
}
