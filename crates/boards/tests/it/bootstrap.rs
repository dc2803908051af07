//! Boards that know nothing but one address.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sinew_boards::{Bootstrap, HubConfig, OfferedTransport};
use sinew_sim::board::{BoardConfig, BoardKind};
use sinew_tool::{Admission, Applicant, Enrolment};

use crate::support::{TestGateway, answered, call};

const IDS: [(&str, &str); 2] = [("Device-Id", "AA:BB:CC:DD:EE:01"), ("Client-Id", "uuid-1")];

/// Approves whose hardware id is in the set; everybody else waits with the code 123456.
type Approved = Arc<Mutex<BTreeSet<String>>>;

fn bootstrap(approved: &Approved, offer: OfferedTransport) -> impl FnOnce(&mut HubConfig) {
    let approved = approved.clone();
    let enrol = move |applicant: &Applicant| {
        if approved.lock().expect("whole").contains(&applicant.hardware_id) {
            return Enrolment::Approved { token: format!("token of {}", applicant.hardware_id) };
        }
        match applicant.kind.as_str() {
            "crowd" => Enrolment::Full,
            _ => Enrolment::Pending { code: "123456".to_owned() },
        }
    };
    move |config| config.bootstrap = Some(Bootstrap { enrol: Arc::new(enrol), offer })
}

async fn ask(gateway: &TestGateway, body: &str) -> Value {
    let (status, answer) = gateway.request("POST", "/xiaozhi/ota/", &IDS, body.as_bytes()).await;
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(&answer).expect("JSON")
}

#[tokio::test]
async fn an_approved_board_is_told_where_its_server_is_with_credentials_of_its_own() {
    let approved: Approved = Arc::default();
    approved.lock().expect("whole").insert("aa:bb:cc:dd:ee:01".to_owned());
    for (offer, sections) in [
        (OfferedTransport::Mqtt, (true, false)),
        (OfferedTransport::WebSocket, (false, true)),
        (OfferedTransport::Both, (true, true)),
    ] {
        let gateway = TestGateway::open_with(bootstrap(&approved, offer)).await;
        let settings = ask(&gateway, r#"{"application": {"version": "1.7.5"}, "board": {"type": "bread"}}"#).await;
        assert_eq!(settings["firmware"], json!({"version": "1.7.5", "url": ""}), "nothing is ever newer");
        assert!(settings["server_time"]["timestamp"].as_u64().is_some_and(|now| now > 1_600_000_000_000));
        assert!(settings["server_time"]["timezone_offset"].is_i64());
        assert!(settings.get("activation").is_none());
        assert_eq!((settings.get("mqtt").is_some(), settings.get("websocket").is_some()), sections);
        if sections.0 {
            let expected = json!({
                "endpoint": gateway.mqtt.to_string(),
                "client_id": "GID_sinew@@@aa_bb_cc_dd_ee_01@@@uuid-1",
                "username": "aa_bb_cc_dd_ee_01",
                "password": "token of aa:bb:cc:dd:ee:01",
                "publish_topic": "device-server",
                "subscribe_topic": "devices/p2p/aa_bb_cc_dd_ee_01",
                "keepalive": 240,
            });
            assert_eq!(settings["mqtt"], expected);
        }
        if sections.1 {
            let expected = json!({"url": gateway.url(), "token": "token of aa:bb:cc:dd:ee:01", "version": 1});
            assert_eq!(settings["websocket"], expected);
        }
        // Older firmware asks with GET, and with another slash at the end.
        let (status, answer) = gateway.request("GET", "/xiaozhi/ota", &IDS, b"").await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(gateway.request("POST", "/xiaozhi/ota/activate", &IDS, b"{}").await.0, 200);
        gateway.close().await;
    }
}

#[tokio::test]
async fn an_unknown_board_gets_a_code_and_no_credentials() {
    let gateway = TestGateway::open_with(bootstrap(&Arc::default(), OfferedTransport::Both)).await;
    let settings = ask(&gateway, "{}").await;
    assert_eq!(settings["activation"]["code"], "123456");
    assert_eq!(settings["activation"]["message"], "sinew boards approve 123456");
    assert!(settings["activation"]["timeout_ms"].is_u64() && settings["activation"]["challenge"].is_string());
    assert!(settings.get("mqtt").is_none() && settings.get("websocket").is_none());
    let (status, _) = gateway.request("POST", "/xiaozhi/ota/activate", &IDS, b"{}").await;
    assert_eq!(status, 202, "not yet");
    let (status, _) = gateway.request("POST", "/xiaozhi/ota/", &IDS, br#"{"board": {"type": "crowd"}}"#).await;
    assert_eq!(status, 503);
    gateway.close().await;
}

#[tokio::test]
async fn a_body_that_cannot_be_read_counts_as_empty() {
    let gateway = TestGateway::open_with(bootstrap(&Arc::default(), OfferedTransport::Mqtt)).await;
    for body in [&b"{"[..], b"{\"ssid\":\"a \"quoted\" name\"}", b"{\"ssid\":\"caf\xe9\"}", b"[]", b"5", b"\xff\xfe"] {
        let (status, answer) = gateway.request("POST", "/xiaozhi/ota/", &IDS, body).await;
        assert_eq!(status, 200, "{answer}");
        assert!(answer.contains("123456"), "{answer}");
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_board_is_told_of_no_mqtt_where_the_address_has_colons() {
    let approved: Approved = Arc::default();
    approved.lock().expect("whole").insert("aa:bb:cc:dd:ee:01".to_owned());
    for offer in [OfferedTransport::Mqtt, OfferedTransport::Both] {
        let open = bootstrap(&approved, offer);
        let gateway = TestGateway::open_with(|config| {
            open(config);
            config.reach.as_mut().expect("known").host = "fd00::1".to_owned();
        })
        .await;
        let settings = ask(&gateway, "{}").await;
        assert!(settings.get("mqtt").is_none(), "{settings}");
        let url = settings["websocket"]["url"].as_str().expect("a way in");
        assert!(url.starts_with("ws://[fd00::1]:"), "{url}");
        gateway.close().await;
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_with_a_reason() {
    let gateway = TestGateway::open_with(bootstrap(&Arc::default(), OfferedTransport::Mqtt)).await;
    let long = "x".repeat(65);
    let big = format!("{{\"x\": \"{}\"}}", "y".repeat(20_000));
    let path = "/xiaozhi/ota/";
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&str, Headers, &str, u16, &str); 5] = [
        ("POST", &IDS[1..], "{}", 400, "Device-Id"),
        ("POST", &IDS[..1], "{}", 400, "Client-Id"),
        ("POST", &[IDS[0], ("Client-Id", &long)], "{}", 400, "Client-Id"),
        ("POST", &IDS, &big, 413, "16384"),
        ("DELETE", &IDS, "", 405, "POST"),
    ];
    for (method, headers, body, expected, word) in cases {
        let (status, answer) = gateway.request(method, path, headers, body.as_bytes()).await;
        assert_eq!(status, expected, "{answer}");
        assert!(answer.contains(word), "{answer}");
    }
    gateway.close().await;
    let closed = TestGateway::open().await;
    assert_eq!(closed.request("POST", path, &IDS, b"{}").await.0, 404, "where nobody is enrolled");
    closed.close().await;
}

#[tokio::test]
async fn a_virtual_board_that_knows_one_address_waits_for_approval_and_joins_over_mqtt() {
    let approved: Approved = Arc::default();
    let mut gateway = TestGateway::open_with(bootstrap(&approved, OfferedTransport::Mqtt)).await;
    let url = format!("http://{}/xiaozhi/ota/", gateway.address);
    let board = BoardConfig { token: None, ..BoardConfig::new(url, "02:51:00:00:00:07", BoardKind::Talking) };
    let hardware_id = board.hardware_id.clone();
    gateway.switch_on(board);
    approved.lock().expect("whole").insert(hardware_id);
    let device = gateway.joined().await;
    let info = device.info();
    assert_eq!(info.attributes["transport"], "mqtt");
    assert!(matches!(info.admission, Admission::DeviceToken(_)), "{:?}", info.admission);
    answered(call(&device, "self.get_device_status", json!({}))).await.expect("a status");
    gateway.close().await;
}

#[tokio::test]
async fn a_virtual_board_takes_the_websocket_where_nothing_else_is_offered() {
    let approved: Approved = Arc::default();
    approved.lock().expect("whole").insert("02:51:00:00:00:08".to_owned());
    let mut gateway = TestGateway::open_with(bootstrap(&approved, OfferedTransport::WebSocket)).await;
    let url = format!("http://{}/xiaozhi/ota/", gateway.address);
    gateway.switch_on(BoardConfig::new(url, "02:51:00:00:00:08", BoardKind::Relay));
    assert_eq!(gateway.joined().await.info().attributes["transport"], "websocket");
    gateway.close().await;
}
