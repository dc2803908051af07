//! Boards behind a real broker: coming and going, calls, restarts, credentials, TLS, and what is no board.

use std::time::Duration;

use serde_json::json;
use sinew_boards::broker::{self, Address, Broker, Credentials, Topics};
use sinew_sim::board::{BoardConfig, BoardKind, Trust};
use sinew_tool::{Admission, DeviceEvent, ErrorKind, LeaveReason};
use tokio::task::JoinHandle;

use crate::mosquitto::Mosquitto;
use crate::mqtt::Client;
use crate::support::{TestGateway, answered, call, call_within, soon};

fn topics() -> Topics {
    let topic = |last: &str| format!("sinew/boards/{{device}}/{last}");
    Topics::new(&topic("presence"), &topic("up"), &topic("down")).expect("topics")
}

fn plain(mosquitto: &Mosquitto) -> Broker {
    Broker { address: Address::new(&mosquitto.url(), None, None).expect("an address"), topics: topics() }
}

/// Lets the gateway find its boards there.
fn follow(gateway: &TestGateway, broker: Broker) -> JoinHandle<std::io::Result<()>> {
    tokio::spawn(broker::run(broker, gateway.boards.clone(), gateway.shutdown.clone()))
}

fn board(mosquitto: &Mosquitto, hardware_id: &str) -> BoardConfig {
    BoardConfig { behind_broker: true, ..BoardConfig::new(mosquitto.url(), hardware_id, BoardKind::Relay) }
}

#[tokio::test]
async fn a_board_behind_a_broker_joins_answers_and_leaves() {
    let (mosquitto, mut gateway) = (Mosquitto::open().await, TestGateway::open().await);
    let following = follow(&gateway, plain(&mosquitto));
    let shutdown = tokio_util::sync::CancellationToken::new();
    let life = tokio::spawn(sinew_sim::board::run(board(&mosquitto, "02:51:00:00:00:01"), shutdown.clone()));
    let device = gateway.joined().await;
    let info = device.info();
    assert_eq!((info.key.0.as_str(), info.name.as_str()), ("board:02:51:00:00:00:01", "virtual-relay"));
    assert_eq!(info.suggested_id, "board-000001");
    assert_eq!(info.attributes["transport"], "broker");
    assert!(matches!(info.admission, Admission::Broker(_)), "{:?}", info.admission);
    let outcome = answered(call(&device, "self.read_sensors", json!({}))).await.expect("an answer");
    assert!(format!("{outcome:?}").contains("temperature"), "{outcome:?}");
    let events = call(&device, "self.set_relay", json!({"channel": 3, "on": true}));
    assert_eq!(gateway.said("notifications/relay_changed").await.body["channel"], 3);
    answered(events).await.expect("an answer");

    shutdown.cancel();
    soon(life).await.expect("no panic").expect("no error");
    assert_eq!(gateway.left().await.1, LeaveReason::Closed);
    gateway.shutdown.cancel();
    soon(following).await.expect("no panic").expect("no error");
}

#[tokio::test]
async fn a_board_that_was_there_before_the_gateway_is_found_and_its_will_is_heard() {
    let (mosquitto, mut gateway) = (Mosquitto::open().await, TestGateway::open().await);
    let life = gateway.switch_on(board(&mosquitto, "lamp"));
    // The presence of the board is with the broker once somebody else can hear it.
    let mut listener = Client::at(mosquitto.address, 4).await;
    assert_eq!(listener.connect("listener", "x", 60).await, 0);
    listener.subscribe("sinew/boards/+/presence").await;
    let heard = listener.packet().await.expect("a message").1;
    assert!(String::from_utf8_lossy(&heard).contains(r#""online":true"#));

    let _following = follow(&gateway, plain(&mosquitto));
    assert_eq!(gateway.joined().await.info().suggested_id, "board-lamp");
    // Switched off without a farewell: the broker speaks its will.
    life.abort();
    assert_eq!(gateway.left().await.0.info().key.0, "board:lamp");
}

#[tokio::test]
async fn a_restart_of_the_broker_loses_no_board_and_calls_say_what_became_of_them() {
    let persistent = "allow_anonymous true\npersistence false\n";
    let (mut mosquitto, mut gateway) = (Mosquitto::open_with(persistent, |_| {}).await, TestGateway::open().await);
    let _following = follow(&gateway, plain(&mosquitto));
    let _lives: Vec<_> = (1..=5).map(|n| gateway.switch_on(board(&mosquitto, &format!("b{n}")))).collect();
    let mut devices = Vec::new();
    for _ in 0..5 {
        devices.push(gateway.joined().await);
    }
    mosquitto.stop().await;
    // It takes a moment until the gateway notices; then nothing is sent any more.
    let error = loop {
        let within = call_within(&devices[0], "self.read_sensors", json!({}), Duration::from_secs(2));
        match answered(within).await {
            Err(error) if error.kind == ErrorKind::DeviceAway => break error,
            Err(error) => assert!(matches!(error.kind, ErrorKind::DeviceLost | ErrorKind::Timeout), "{error:?}"),
            Ok(_) => {}
        }
    };
    assert!(error.message.contains("broker cannot be reached"), "{error:?}");
    mosquitto.start().await;
    for device in &devices {
        // Board and gateway return each in their own time; a call in between finds nobody.
        let patience = Duration::from_millis(500);
        let answering = async {
            while answered(call_within(device, "self.read_sensors", json!({}), patience)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        soon(answering).await;
    }
    while let Ok(event) = gateway.events.try_recv() {
        assert!(
            !matches!(event, DeviceEvent::Left(..) | DeviceEvent::Joined(_)),
            "no board was lost, and none doubled"
        );
    }
}

#[tokio::test]
async fn more_boards_than_are_asked_at_once_all_join() {
    let (mosquitto, mut gateway) = (Mosquitto::open().await, TestGateway::open().await);
    let crowd = BoardConfig { behind_broker: true, ..BoardConfig::new(mosquitto.url(), "crowd", BoardKind::Relay) };
    let living = tokio::spawn(sinew_sim::crowd::run(1, 1500, crowd, gateway.shutdown.clone()));
    let _following = follow(&gateway, plain(&mosquitto));
    let mut devices = Vec::new();
    for _ in 0..1500 {
        devices.push(gateway.joined().await);
    }
    assert_eq!(devices[7].tools().digest(), devices[1499].tools().digest());
    assert!(std::sync::Arc::ptr_eq(&devices[7].tools(), &devices[1499].tools()), "equal tools are kept once");
    answered(call(&devices[1499], "self.read_sensors", json!({}))).await.expect("an answer");
    gateway.shutdown.cancel();
    soon(living).await.expect("no panic").expect("no error");
}

#[tokio::test]
async fn an_honest_board_does_not_wait_for_hundreds_that_are_not_there() {
    const PHANTOMS: usize = 320;
    let mosquitto = Mosquitto::open().await;
    let mut gateway = TestGateway::open_with(|config| config.limits.broker_setups = 1).await;
    let mut stranger = Client::at(mosquitto.address, 4).await;
    // It only listens, and a broker would end it after a time of silence.
    assert_eq!(stranger.connect("stranger", "x", 0).await, 0);
    stranger.subscribe("sinew/boards/+/down").await;
    for number in 0..PHANTOMS {
        stranger.publish_to(&format!("sinew/boards/phantom-{number}/presence"), 1, b"online").await;
    }
    let _following = follow(&gateway, plain(&mosquitto));
    // The first of them is asked, so all of them are known.
    let first = stranger.packet().await.expect("a question").1;
    assert!(String::from_utf8_lossy(&first).contains("phantom"));
    gateway.switch_on(board(&mosquitto, "honest"));
    // A few silent boards are announced too.
    while gateway.joined().await.info().suggested_id != "board-honest" {}
    let mut asked = 1;
    loop {
        let question = stranger.packet().await.expect("a question").1;
        let question = String::from_utf8_lossy(&question).into_owned();
        if question.contains("boards/honest/") {
            break;
        }
        asked += usize::from(question.contains("initialize"));
    }
    assert!(asked < PHANTOMS / 2, "{asked} of them were asked before it");
}

/// Users with the password `right`, and the access rules of `docs/boards.md`.
async fn guarded(users: &[&str]) -> Mosquitto {
    let page = include_str!("../../../../docs/boards.md");
    let rules = page.split("# acl_file\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the rules");
    let lines = "allow_anonymous false\npassword_file {folder}/passwords\nacl_file {folder}/acl\n";
    Mosquitto::open_with(lines, |folder| {
        std::fs::write(folder.join("acl"), rules).expect("written");
        std::fs::write(folder.join("passwords"), "").expect("written");
        for user in users {
            let mut command = std::process::Command::new("mosquitto_passwd");
            let made = command.arg("-b").arg(folder.join("passwords")).args([user, "right"]).status();
            assert!(made.expect("mosquitto_passwd comes with mosquitto").success());
        }
    })
    .await
}

#[tokio::test]
async fn credentials_are_shown_and_a_board_speaks_for_itself_only() {
    let mosquitto = guarded(&["sinew", "lamp"]).await;
    let with = |password: &str| {
        let credentials = Credentials { username: "sinew".to_owned(), password: Some(password.to_owned()) };
        let address = Address::new(&mosquitto.url(), Some(credentials), None).expect("an address");
        Broker { address, topics: topics() }
    };
    let refused = broker::check(&with("wrong")).await.expect_err("refused");
    assert!(refused.contains("not authorized") || refused.contains("user name or password"), "{refused}");
    assert!(!refused.contains("wrong ") && !refused.contains("`wrong`"), "{refused}");
    broker::check(&with("right")).await.expect("welcome");

    let mut gateway = TestGateway::open().await;
    let _following = follow(&gateway, with("right"));
    let lamp = |hardware_id: &str| BoardConfig {
        username: Some("lamp".to_owned()),
        token: Some("right".to_owned()),
        ..board(&mosquitto, hardware_id)
    };
    let _impostor = gateway.switch_on(lamp("config"));
    let _life = gateway.switch_on(lamp("lamp"));
    let device = gateway.joined().await;
    assert_eq!(device.info().key.0, "board:lamp", "the user lamp cannot be the board config");
    answered(call(&device, "self.read_sensors", json!({}))).await.expect("an answer");
}

#[tokio::test]
async fn a_broker_over_tls_is_believed_by_its_authority_only() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let lines = "allow_anonymous true\ncertfile {folder}/cert.pem\nkeyfile {folder}/key.pem\n";
    let mosquitto = Mosquitto::open_with(lines, |folder| {
        std::fs::write(folder.join("cert.pem"), &certificate).expect("written");
        std::fs::write(folder.join("key.pem"), &key).expect("written");
    })
    .await;
    let url = format!("mqtts://{}", mosquitto.address);
    let stranger = Broker { address: Address::new(&url, None, None).expect("an address"), topics: topics() };
    assert!(broker::check(&stranger).await.expect_err("not believed").contains("certificate"));

    let trusting = Broker {
        address: Address::new(&url, None, Some(certificate.as_bytes())).expect("an address"),
        topics: topics(),
    };
    let mut gateway = TestGateway::open().await;
    let _following = follow(&gateway, trusting);
    let trust = Trust::Pem(certificate.clone().into_bytes());
    let config = BoardConfig { url, trust, ..board(&mosquitto, "sealed") };
    let _life = gateway.switch_on(config);
    assert_eq!(gateway.joined().await.info().key.0, "board:sealed");
}

#[tokio::test]
async fn what_is_no_board_is_left_out_and_no_board_notices() {
    let (mosquitto, mut gateway) = (Mosquitto::open().await, TestGateway::open().await);
    let _following = follow(&gateway, plain(&mosquitto));
    let mut stranger = Client::at(mosquitto.address, 4).await;
    assert_eq!(stranger.connect("stranger", "x", 60).await, 0);
    let long = format!("sinew/boards/{}/presence", "x".repeat(65));
    for (topic, payload) in [
        ("sinew/boards/a b/presence", &br#"{"online":true}"#[..]),
        (&long, br#"{"online":true}"#),
        ("sinew/boards/x/presence", b"yes"),
        ("sinew/boards/x/presence", b"\xff\xfe"),
        ("sinew/boards/absent/up", br#"{"type":"hello","features":{"mcp":true}}"#),
        ("sinew/boards/ghost/presence", b"online"),
        ("sinew/boards/ghost/up", b"\xff\xfe"),
        ("sinew/boards/ghost/up", b"{{{{"),
        ("sinew/boards/ghost/up", &vec![b'x'; 3 << 20]),
        ("sinew/boards/ghost/presence", b""),
    ] {
        stranger.publish_to(topic, 0, payload).await;
    }
    let _life = gateway.switch_on(board(&mosquitto, "honest"));
    let device = gateway.joined().await;
    assert_eq!(device.info().key.0, "board:honest");
    answered(call(&device, "self.read_sensors", json!({}))).await.expect("an answer");
}

#[tokio::test]
async fn a_board_with_a_token_of_its_own_is_not_replaced_through_a_broker() {
    let (mosquitto, mut gateway) = (Mosquitto::open().await, TestGateway::open().await);
    let (mut played, device) = gateway.played("aa:bb:cc:dd:ee:01").await;
    let _following = follow(&gateway, plain(&mosquitto));
    let _impostor = gateway.switch_on(board(&mosquitto, "aa:bb:cc:dd:ee:01"));
    let _other = gateway.switch_on(board(&mosquitto, "aa:bb:cc:dd:ee:02"));
    assert_eq!(gateway.joined().await.info().key.0, "board:aa:bb:cc:dd:ee:02");
    let asked = call(&device, "echo", json!({}));
    let request = played.asked("tools/call").await;
    played.answer_text(&request, "still me").await;
    answered(asked).await.expect("an answer");
}
