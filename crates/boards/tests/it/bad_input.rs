//! What boards bring that is refused or put right: whoever looks at the board can read why, and no other board
//! notices. What breaks the rules of MQTT or of WebSockets is in `mqtt_trouble` and `trouble`.

use std::sync::Arc;

use serde_json::{Value, json};
use sinew_tool::{Device, LeaveReason};
use tokio_tungstenite::tungstenite;

use crate::mqtt::Client;
use crate::support::{Played, TestGateway, answered, call, token_id};

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": {}}})
}

/// A board that joins with these tools, all on one page, while another one is there.
async fn with_tools(gateway: &mut TestGateway, tools: Vec<Value>) -> (Played, Arc<dyn Device>) {
    let mut played = Played::knock(&gateway.url(), "aa").await;
    played.hello(json!({"mcp": true})).await;
    let request = played.asked("initialize").await;
    played.answer(&request, json!({"serverInfo": {"name": "many", "version": "1"}})).await;
    let request = played.asked("tools/list").await;
    played.answer(&request, json!({"tools": tools})).await;
    (played, gateway.joined().await)
}

async fn is_well(board: &mut Played, device: &Arc<dyn Device>) {
    let pending = call(device, "echo", json!({}));
    let request = board.asked("tools/call").await;
    board.answer_text(&request, "well").await;
    assert_eq!(answered(pending).await.expect("fine").joined_text(), "well");
}

fn trouble(device: &Arc<dyn Device>) -> String {
    device.info().attributes.get("trouble").map(ToString::to_string).unwrap_or_default()
}

#[tokio::test]
async fn of_5000_tools_as_many_are_taken_as_a_board_may_have() {
    let mut gateway = TestGateway::open_with(|config| config.limits.session.list_bytes = 1 << 20).await;
    let (mut witness, other) = gateway.played("bb").await;
    let tools = (0..5000).map(|index| tool(&format!("self.tool_{index}"), "")).collect();
    let (mut played, device) = with_tools(&mut gateway, tools).await;
    assert_eq!(device.tools().len(), 512);
    assert!(trouble(&device).contains("more than 512 tools"), "{}", trouble(&device));
    assert!(gateway.said("warning").await.body["message"].to_string().contains("512"));
    let pending = call(&device, "self.tool_511", json!({}));
    let request = played.asked("tools/call").await;
    played.answer_text(&request, "fine").await;
    answered(pending).await.expect("those that are taken work");
    is_well(&mut witness, &other).await;
    gateway.close().await;
}

#[tokio::test]
async fn of_two_tools_of_one_name_the_first_counts_and_people_can_read_it_until_it_is_put_right() {
    let mut gateway = TestGateway::open().await;
    let (mut witness, other) = gateway.played("bb").await;
    let tools = vec![tool("echo", "first"), tool("echo", "second"), json!({"name": 5})];
    let (mut played, device) = with_tools(&mut gateway, tools).await;
    assert_eq!(device.tools().len(), 1);
    assert_eq!(device.tools().find("echo").map(|tool| tool.description.to_string()).as_deref(), Some("first"));
    assert!(trouble(&device).contains("`echo` is listed twice") && trouble(&device).contains("1 more"));

    played.notify("notifications/tools/list_changed", json!({})).await;
    let request = played.asked("tools/list").await;
    played.answer(&request, json!({"tools": [tool("echo", "first"), tool("shout", "second")]})).await;
    loop {
        if let sinew_tool::DeviceEvent::Changed(device) = gateway.next().await {
            assert_eq!((device.tools().len(), trouble(&device)), (2, String::new()));
            break;
        }
    }
    is_well(&mut witness, &other).await;
    gateway.close().await;
}

#[tokio::test]
async fn whoever_comes_under_another_boards_id_is_refused_and_that_board_is_told_of_it() {
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    let stranger = [("authorization", "Bearer token of bb".to_owned()), ("device-id", "aa".to_owned())];
    assert!(Played::knock_with(&gateway.url(), &stranger).await.is_err());
    assert!(trouble(&device).contains("was refused"), "{}", trouble(&device));
    for version in [4, 5] {
        let mut client = Client::dial(&gateway, version).await;
        assert_ne!(client.connect("g@@@aa@@@uuid", "token of bb", 60).await, 0);
    }
    is_well(&mut played, &device).await;
    let changes = gateway.close().await;
    let changes = changes.iter().filter(|event| matches!(event, sinew_tool::DeviceEvent::Changed(_)));
    assert_eq!(changes.count(), 1, "told once, however often they try");
}

#[tokio::test]
async fn a_token_that_is_revoked_while_its_board_connects_admits_nobody() {
    let mut gateway = TestGateway::open().await;
    let token = [("authorization", "token of revoked".to_owned()), ("device-id", "revoked".to_owned())];
    let status = match Played::knock_with(&gateway.url(), &token).await {
        Err(tungstenite::Error::Http(answer)) => answer.status().as_u16(),
        other => panic!("{:?}", other.err()),
    };
    assert_eq!(status, 401);
    let mut board = Client::dial(&gateway, 5).await;
    assert_eq!(board.connect("revoked", "token of revoked", 60).await, 0x86, "bad user name or password");
    let (mut other, device) = gateway.played("bb").await;
    is_well(&mut other, &device).await;
    gateway.close().await;
}

#[tokio::test]
async fn a_revoked_token_ends_its_connection_and_no_other() {
    let mut gateway = TestGateway::open().await;
    let (mut trial, with_gateway_token) = gateway.played("bb").await;
    for over_mqtt in [false, true] {
        let (mut played, mut client) = (None, None);
        if over_mqtt {
            let mut board = Client::dial(&gateway, 5).await;
            assert_eq!(board.connect("aa", "token of aa", 60).await, 0);
            board.introduce().await;
            client = Some(board);
        } else {
            let token = [("authorization", "token of aa".to_owned()), ("device-id", "aa".to_owned())];
            let mut board = Played::knock_with(&gateway.url(), &token).await.expect("admitted");
            board.introduce().await;
            played = Some(board);
        }
        let device = gateway.joined().await;
        gateway.boards.keep_admitted(&[token_id("aa"), token_id("other")].into());
        gateway.boards.keep_admitted(&[token_id("other")].into());
        let (left, reason) = gateway.left().await;
        assert!(Arc::ptr_eq(&left, &device));
        assert_eq!(reason, LeaveReason::Dismissed("its token was revoked".to_owned()));
        assert!(trouble(&device).contains("revoked"));
        if let Some(mut board) = played {
            assert_eq!(board.closed().await, Some((1008, "dismissed: its token was revoked".to_owned())));
        }
        if let Some(mut board) = client {
            while let Some((kind, body)) = board.packet().await {
                assert!(kind != 0xe0 || body[0] == 0x98, "an administrative action: {body:?}");
            }
        }
    }
    is_well(&mut trial, &with_gateway_token).await;

    let url = format!("ws://{}/mcp/?token=token%20of%20provider:weather", gateway.address);
    let mut provider = Played::knock_with(&url, &[]).await.expect("admitted");
    gateway.boards.keep_admitted(&Default::default());
    assert!(provider.closed().await.is_some_and(|(_, reason)| reason.contains("revoked")));
    gateway.close().await;
}
