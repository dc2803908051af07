//! How the front stops: calls end with their answers, streams do not hold it up.

use serde_json::json;
use sinew_front::Settings;
use std::time::Duration;

use crate::fake::House;

#[tokio::test]
async fn a_running_call_is_answered_before_the_front_stops() {
    let house = House::new().await;
    let client = house.client();
    let call = client.modern("tools/call", json!({"name": "wait"}));
    tokio::pin!(call);
    tokio::select! {
        _ = &mut call => panic!("the call cannot end yet"),
        news = house.hear() => assert_eq!(news, "started"),
    }
    house.shutdown.cancel();
    house.go_on();
    let reply = call.await;
    assert_eq!((reply.status.as_u16(), &reply.json()["result"]["content"][0]["text"]), (200, &json!("waited")));
    house.stop().await;
}

#[tokio::test]
async fn an_open_stream_of_an_older_client_does_not_hold_the_front_up() {
    let house = House::new().await;
    let mut client = house.client();
    client.initialize(json!({})).await;
    let mut stream = client.listen().await;
    house.stop().await;
    while stream.next().await.is_some() {}
}

#[tokio::test]
async fn a_call_that_never_ends_is_cut_off_in_the_end() {
    let house = House::with(Settings { drain: Duration::from_millis(50), ..Settings::default() }, None).await;
    let client = house.client();
    let call = client.modern("tools/call", json!({"name": "wait"}));
    tokio::pin!(call);
    tokio::select! {
        _ = &mut call => panic!("the call cannot end"),
        news = house.hear() => assert_eq!(news, "started"),
    }
    let (reply, ()) = tokio::join!(call, house.stop());
    assert!(reply.status.is_server_error());
    assert_eq!(house.hear().await, "dropped");
}
