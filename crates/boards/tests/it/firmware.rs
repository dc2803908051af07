//! The virtual firmware at both doors: quirks on the wire, whole at the gateway's side.

use std::sync::Arc;

use serde_json::json;
use sinew_boards::broker::{self, Address, Broker, Topics};
use sinew_boards::{Bootstrap, OfferedTransport};
use sinew_sim::board::{BoardConfig, BoardKind};
use sinew_sim::firmware::Blueprint;
use sinew_tool::{Applicant, DeviceEvent, Enrol, Enrolment, ErrorKind};

use crate::mosquitto::Mosquitto;
use crate::support::{Played, TOKEN, TestGateway, answered, call};

fn blueprint() -> Blueprint {
    let mut tools: Vec<_> = (0..60)
        .map(|index| {
            json!({"name": format!("self.tool_{index}"), "description": "d".repeat(300),
                "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}}})
        })
        .collect();
    tools.push(json!({"name": "self.reboot", "description": "", "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"audience": ["user"]}}));
    Blueprint::read("bread-compact-wifi", &tools).expect("fine")
}

#[tokio::test]
async fn firmware_is_served_over_websocket_and_mqtt_with_and_without_a_subscription() {
    for (over_mqtt, subscribes) in [(false, false), (true, false), (true, true)] {
        let mut gateway = TestGateway::open_with(|config| config.user_tools = true).await;
        let url = if over_mqtt { gateway.mqtt_url() } else { gateway.url() };
        let board = gateway.board("02:51:00:00:00:01", BoardKind::Talking);
        gateway.switch_on(BoardConfig { url, blueprint: Some(blueprint()), subscribes, ..board });
        let device = gateway.joined().await;
        assert_eq!(device.info().name, "bread-compact-wifi");
        assert_eq!(device.tools().len(), 61, "all pages, and the tools for users");

        let outcome = answered(call(&device, "self.tool_59", json!({"n": 7}))).await.expect("fine");
        assert_eq!(outcome.structured, Some(json!({"tool": "self.tool_59", "arguments": {"n": 7}})));
        let refused = answered(call(&device, "self.tool_0", json!({"n": 10}))).await.expect_err("out of range");
        assert!(refused.message.contains("Value exceeds maximum allowed: 9"), "{refused}");
        // The name comes back unescaped, inside an error that is no JSON any more.
        let unknown = answered(call(&device, "no \"such\" tool", json!({}))).await.expect_err("unknown");
        assert_eq!(unknown.kind, ErrorKind::ActionFailed, "{unknown}");
        assert!(unknown.message.contains("no \"such\" tool"), "{unknown}");
        let said = gateway.close().await;
        assert!(!said.iter().any(|event| matches!(event, DeviceEvent::Said(..))), "no warning");
    }
}

#[tokio::test]
async fn a_board_whose_network_has_a_name_in_another_encoding_is_set_up_and_answers_over_every_transport() {
    let mosquitto = Mosquitto::open().await;
    let mut gateway = TestGateway::open_with(|config| {
        config.bootstrap = Some(Bootstrap { enrol: Arc::new(Everybody), offer: OfferedTransport::WebSocket });
    })
    .await;
    let topic = |last: &str| format!("sinew/boards/{{device}}/{last}");
    let topics = Topics::new(&topic("presence"), &topic("up"), &topic("down")).expect("topics");
    let broker = Broker { address: Address::new(&mosquitto.url(), None, None).expect("an address"), topics };
    tokio::spawn(broker::run(broker, gateway.boards.clone(), gateway.shutdown.clone()));
    let ota = format!("http://{}/xiaozhi/ota/", gateway.address);
    for (index, url) in [gateway.url(), gateway.mqtt_url(), mosquitto.url(), ota].into_iter().enumerate() {
        let faults = "odd-bytes".parse().expect("faults");
        let behind_broker = url == mosquitto.url();
        let board = gateway.board(&format!("aa:bb:cc:dd:ee:0{index}"), BoardKind::Talking);
        gateway.switch_on(BoardConfig { faults, behind_broker, url, ..board });
        let device = gateway.joined().await;
        let status = answered(call(&device, "self.get_device_status", json!({}))).await.expect("a status");
        assert_eq!(status.structured.expect("JSON")["network"]["ssid"], "Caf\u{fffd}", "{index}");
        assert!(gateway.said("warning").await.body["message"].to_string().contains("UTF-8"));
    }
    gateway.close().await;
}

struct Everybody;

impl Enrol for Everybody {
    fn enrol(&self, _: &Applicant) -> Enrolment {
        Enrolment::Approved { token: TOKEN.to_owned() }
    }
}

#[tokio::test]
async fn a_board_that_refuses_ids_it_has_seen_has_its_tools_on_every_connection() {
    let mut gateway = TestGateway::open().await;
    let faults = "strict-ids".parse().expect("faults");
    gateway.switch_on(BoardConfig { faults, ..gateway.board("aa:bb:cc:dd:ee:01", BoardKind::Talking) });
    for _ in 0..3 {
        let device = gateway.joined().await;
        assert!(!device.tools().is_empty());
        answered(call(&device, "self.get_device_status", json!({}))).await.expect("a status");
        // The same board again takes its place, and is pushed out in turn.
        drop(Played::knock(&gateway.url(), "aa:bb:cc:dd:ee:01").await);
        gateway.left().await;
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_false_wake_word_over_mqtt_does_not_stream_for_ever() {
    let mut gateway = TestGateway::open().await;
    let faults = "wake".parse().expect("faults");
    gateway.switch_on(BoardConfig {
        faults,
        url: gateway.mqtt_url(),
        ..gateway.board("aa:bb:cc:dd:ee:01", BoardKind::Relay)
    });
    let device = gateway.joined().await;
    gateway.said("listen").await;
    gateway.said("goodbye").await;
    answered(call(&device, "self.get_relays", json!({}))).await.expect("its tools stay");
    gateway.close().await;
}
