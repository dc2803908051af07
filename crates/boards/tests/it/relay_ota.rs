//! Settings and activation of relayed boards: what the voice server says is passed on, its addresses are not.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sinew_boards::relay::{OtaAddress, VoiceServer};
use sinew_boards::{Bootstrap, OfferedTransport, VoiceRelay};
use sinew_tool::{Applicant, Enrol, Enrolment};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::relay::{BOARD, FakeAccess};
use crate::support::TestGateway;

/// Approves every board.
struct Approving;

impl Enrol for Approving {
    fn enrol(&self, _: &Applicant) -> Enrolment {
        Enrolment::Approved { token: "sinew-token".to_owned() }
    }
}

/// The web server of a voice service: answers by path, and remembers what it was asked.
#[derive(Clone, Default)]
struct Service {
    answer: Arc<Mutex<Value>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Service {
    async fn open(answer: Value) -> (Service, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/xiaozhi/ota/", listener.local_addr().expect("bound"));
        let service = Service { answer: Arc::new(Mutex::new(answer)), ..Service::default() };
        let serving = service.clone();
        tokio::spawn(async move {
            loop {
                let (mut tcp, _) = listener.accept().await.expect("a connection");
                let mut request = vec![0; 16 << 10];
                let mut count = 0;
                loop {
                    count += tcp.read(&mut request[count..]).await.expect("read");
                    let text = String::from_utf8_lossy(&request[..count]).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let length = head.to_lowercase().split("content-length: ").nth(1).map_or(0, |rest| {
                        rest.split("\r\n").next().and_then(|number| number.parse().ok()).unwrap_or(0)
                    });
                    if body.len() >= length {
                        serving.asked.lock().expect("no panic").push(text);
                        break;
                    }
                }
                let is_activation = request.starts_with(b"POST /xiaozhi/ota/activate ");
                let (status, body) = match is_activation {
                    true => ("202 Accepted", "wait".to_owned()),
                    false => ("200 OK", serving.answer.lock().expect("no panic").to_string()),
                };
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                tcp.write_all(answer.as_bytes()).await.expect("sent");
            }
        });
        (service, url)
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().expect("no panic"))
    }
}

async fn gateway(ota: &str, passes_firmware: bool) -> TestGateway {
    let server = VoiceServer::Ota(OtaAddress::new(ota, false).expect("valid"));
    let relay = VoiceRelay { server, access: Arc::new(FakeAccess::default()), passes_firmware };
    TestGateway::open_with(|config| {
        config.relay = Some(relay);
        config.bootstrap = Some(Bootstrap { enrol: Arc::new(Approving), offer: OfferedTransport::Both });
    })
    .await
}

const HEADERS: [(&str, &str); 4] = [
    ("Device-Id", BOARD),
    ("Client-Id", "uuid-7"),
    ("Authorization", "Bearer sinew-token"),
    ("Activation-Version", "2"),
];

async fn ask(gateway: &TestGateway) -> Value {
    let body = br#"{"application":{"version":"1.9.4"},"board":{"type":"bread-compact"}}"#;
    let (status, answer) = gateway.request("POST", "/xiaozhi/ota/", &HEADERS, body).await;
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(&answer).expect("JSON")
}

#[tokio::test]
async fn a_relayed_board_gets_the_settings_of_its_voice_server_with_sinews_own_addresses() {
    let (service, url) = Service::open(json!({
        "server_time": {"timestamp": 1, "timezone_offset": 480},
        "activation": {"code": "424242", "message": "say it", "challenge": "c"},
        "firmware": {"version": "9.9.9", "url": "http://voice.example/new.bin"},
        "websocket": {"url": "ws://127.0.0.1:9/voice/", "token": "voice-secret"},
        "mqtt": {"endpoint": "mqtt.voice.example", "password": "voice-secret"},
    }))
    .await;
    let gateway = gateway(&url, false).await;
    let answer = ask(&gateway).await;
    assert_eq!(
        (&answer["server_time"]["timezone_offset"], &answer["activation"]["code"]),
        (&json!(480), &json!("424242"))
    );
    assert_eq!(answer["firmware"]["version"], "1.9.4", "no new firmware");
    assert_eq!(answer["mqtt"]["password"], "sinew-token");
    assert_eq!(answer["websocket"]["url"], gateway.url());
    assert!(!answer.to_string().contains("voice-secret") && !answer.to_string().contains("voice.example"), "{answer}");
    let asked = service.asked().concat();
    assert!(asked.to_lowercase().contains("activation-version: 2") && asked.contains("bread-compact"), "{asked}");
    assert!(!asked.contains("sinew-token"), "Sinew's token stays here: {asked}");

    // The activation goes to the service that wants it, byte for byte.
    let body = br#"{"algorithm":"hmac-sha256","challenge":"c","hmac":"77"}"#;
    let (status, answer) = gateway.request("POST", "/xiaozhi/ota/activate", &HEADERS, body).await;
    assert_eq!((status, answer.as_str()), (202, "wait"));
    assert!(service.asked().concat().ends_with(std::str::from_utf8(body).expect("text")));

    // Once the service wants none, it is ours again.
    *service.answer.lock().expect("no panic") = json!({"websocket": {"url": "ws://127.0.0.1:9/voice/"}});
    ask(&gateway).await;
    service.asked();
    assert_eq!(gateway.request("POST", "/xiaozhi/ota/activate", &HEADERS, body).await.0, 200);
    assert_eq!(service.asked().len(), 0);
    gateway.close().await;
}

#[tokio::test]
async fn new_firmware_is_passed_on_only_where_it_is_allowed() {
    let firmware = json!({"version": "9.9.9", "url": "http://voice.example/new.bin"});
    let (_service, url) = Service::open(json!({"firmware": firmware, "websocket": {"url": "ws://127.0.0.1:9/"}})).await;
    let gateway = gateway(&url, true).await;
    assert_eq!(ask(&gateway).await["firmware"], firmware);
    gateway.close().await;
}

#[tokio::test]
async fn an_ota_address_is_in_order_only_if_a_board_could_talk() {
    let probe = async |answer: Value| {
        let (service, url) = Service::open(answer).await;
        let probed = OtaAddress::new(&url, false).expect("valid").probe().await;
        assert!(service.asked.lock().expect("no panic")[0].starts_with("POST "), "as a board asks");
        probed
    };
    let voice = sinew_sim::voice::VirtualVoiceServer::open(([127, 0, 0, 1], 0).into(), None).await.expect("open");
    let url = voice.handle().url();
    let running = tokio_util::sync::CancellationToken::new();
    tokio::spawn(voice.run(running.clone()));
    assert_eq!(probe(json!({"websocket": {"url": url}})).await, Ok(()));
    assert_eq!(probe(json!({"activation": {"code": "123456"}, "mqtt": {}})).await, Ok(()), "once it is activated");
    for (answer, why) in [
        (json!({"mqtt": {}}), "MQTT only"),
        (json!({}), "names no WebSocket"),
        (json!("a page"), "names no WebSocket"),
        (json!({"websocket": {"url": "ws://127.0.0.1:1/"}}), "cannot be reached"),
    ] {
        let probed = probe(answer.clone()).await;
        assert!(probed.as_ref().is_err_and(|error| error.contains(why)), "{answer}: {probed:?}");
    }
    running.cancel();
}

#[tokio::test]
async fn a_voice_server_that_gives_no_usable_answer_leaves_the_board_with_sinews_settings() {
    for odd in [json!("no object"), json!({"mqtt": {}}), json!({"websocket": {"url": "ws://voice.example/"}})] {
        let (_service, url) = Service::open(odd.clone()).await;
        let gateway = gateway(&url, false).await;
        let answer = ask(&gateway).await;
        assert_eq!(answer["mqtt"]["password"], "sinew-token", "{odd}");
        gateway.close().await;
    }
    let gateway = gateway("http://127.0.0.1:1/xiaozhi/ota/", false).await;
    assert_eq!(ask(&gateway).await["mqtt"]["password"], "sinew-token");
    gateway.close().await;
}
