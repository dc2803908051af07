//! Shutdown: calls end with their answers, open streams do not delay it.

use serde_json::json;
use sinew_front::FrontSettings;
use std::time::Duration;

use crate::server::TestServer;

#[tokio::test]
async fn a_running_call_is_answered_before_the_server_stops() {
    let server = TestServer::new().await;
    let client = server.client();
    let call = client.modern("tools/call", json!({"name": "wait"}));
    tokio::pin!(call);
    tokio::select! {
        _ = &mut call => panic!("the call cannot end yet"),
        signal = server.signal() => assert_eq!(signal, "started"),
    }
    server.shutdown.cancel();
    server.go_on();
    let reply = call.await;
    assert_eq!((reply.status.as_u16(), &reply.json()["result"]["content"][0]["text"]), (200, &json!("waited")));
    server.stop().await;
}

#[tokio::test]
async fn an_open_stream_of_an_older_client_does_not_delay_the_shutdown() {
    let server = TestServer::new().await;
    let mut client = server.client();
    client.initialize(json!({})).await;
    let mut stream = client.listen().await;
    server.stop().await;
    while stream.next().await.is_some() {}
}

#[tokio::test]
async fn a_call_that_never_ends_is_dropped_after_the_drain_time() {
    let server =
        TestServer::with(FrontSettings { drain: Duration::from_millis(50), ..FrontSettings::default() }, None).await;
    let client = server.client();
    let call = client.modern("tools/call", json!({"name": "wait"}));
    tokio::pin!(call);
    tokio::select! {
        _ = &mut call => panic!("the call cannot end"),
        signal = server.signal() => assert_eq!(signal, "started"),
    }
    let (reply, ()) = tokio::join!(call, server.stop());
    assert!(reply.status.is_server_error());
    assert_eq!(server.signal().await, "dropped");
}
