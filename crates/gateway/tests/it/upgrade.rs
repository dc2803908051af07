//! A state directory of 0.1.0 loads, and nothing in it is lost. `tests/data/0.1.0/README.md` says how it was made.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use sinew_gateway::{Gateway, Role, Settings, Shape};
use sinew_tool::{Admission, Admit, Applicant, Enrol, Enrolment, ErrorKind, Reach, TextTrust, TokenId};
use tempfile::TempDir;

use crate::fake::*;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/0.1.0");

/// A copy of the state directory of 0.1.0.
pub fn old_state() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(Path::new(DATA).join("state")).unwrap() {
        let file = file.unwrap().path();
        std::fs::copy(&file, dir.path().join(file.file_name().unwrap())).unwrap();
    }
    dir
}

/// The tools of devices that left years ago are listed too, so that their names can be compared.
fn open(dir: &Path) -> Gateway {
    let grace = Duration::from_secs(50 * 365 * 86_400);
    Gateway::open(Settings { state_dir: Some(dir.to_owned()), grace, ..Settings::default() }).unwrap()
}

fn tokens() -> BTreeMap<String, String> {
    serde_json::from_str(&std::fs::read_to_string(Path::new(DATA).join("tokens.json")).unwrap()).unwrap()
}

/// Opened twice: what an upgrade writes must be readable too.
async fn each_time(check: impl AsyncFn(&Gateway)) {
    let dir = old_state();
    for _ in 0..2 {
        let gateway = open(dir.path());
        check(&gateway).await;
        gateway.close().await;
    }
}

#[tokio::test]
async fn devices_of_0_1_0_keep_ids_names_families_and_tools() {
    each_time(async |gateway| {
        let devices = gateway.devices();
        let shown: Vec<_> = devices
            .iter()
            .map(|device| {
                let tools = device.tools + device.quarantined;
                (device.id.as_str(), device.name.as_deref(), device.key.0.as_str(), device.kind.as_str(), tools)
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("board-000009", None, "board:02:51:00:00:00:09", "virtual-companion", 5),
                ("board-ddee01", Some("Küche (links)"), "board:aa:bb:cc:dd:ee:01", "virtual-companion", 5),
                ("board-ddee02", None, "board:aa:bb:cc:dd:ee:02", "virtual-companion", 5),
                ("board-ddee03", Some("gate"), "board:aa:bb:cc:dd:ee:03", "virtual-relay", 5),
                ("board-ddee04", None, "board:aa:bb:cc:dd:ee:04", "virtual-relay", 5),
                ("sinew-shopping", None, "app:VIRTUAL0001:dev.sinew.shopping", "dev.sinew.shopping", 2),
                ("virtual-phone", Some("Ada's phone"), "phone:VIRTUAL0001", "Virtual Phone", 35),
                ("weather", None, "provider:weather", "Weather", 1),
            ]
        );
        let families: Vec<String> = devices.iter().map(|device| device.to_json()["family"].to_string()).collect();
        assert_eq!(families.join(" ").replace('"', ""), "board board board board board app phone provider");
        assert_eq!(devices[1].attributes["hardware_id"], "aa:bb:cc:dd:ee:01");
        assert_eq!(devices[1].version, "2.0.0");
        let token = |id: &str| Admission::DeviceToken(TokenId::parse(id).unwrap());
        let admissions: Vec<Admission> = devices.iter().map(|device| device.admission.clone()).collect();
        assert_eq!(admissions[..3], ["951e2e45", "787e3259", "cddb1df8"].map(token));
        assert_eq!(admissions[5..], [Admission::Local, Admission::Local, token("5ae96168")]);
        assert!(devices.iter().all(|device| !device.attributes.contains_key("admitted_by")));
        let trust: Vec<_> = devices.iter().map(|device| (device.family.text_trust, device.family.reach)).collect();
        assert_eq!(trust[..5], [(TextTrust::Attributed, Reach::OneLink); 5]);
        assert_eq!(trust[5], (TextTrust::Quoted, Reach::SeveralGateways));
        assert_eq!(trust[6..], [(TextTrust::Attributed, Reach::SeveralGateways); 2]);
        assert_eq!(devices[5].attributes["package"], "dev.sinew.shopping");
        assert!(devices[6].instructions.as_ref().unwrap().starts_with("Phone tools:"));
        assert_eq!(gateway.find_device("GATE").unwrap().id.as_str(), "board-ddee03");
    })
    .await;
}

#[tokio::test]
async fn public_names_of_0_1_0_stay() {
    each_time(async |gateway| {
        let folded = names(gateway, &admin(), Shape::Folded);
        for name in ["self_get_relays", "self_audio_speaker_set_volume", "add_to_shopping_list", "open_app"] {
            assert!(folded.iter().any(|known| known == name), "{name} is not in {folded:?}");
        }
        let unfolded = names(gateway, &admin(), Shape::Unfolded);
        assert!(unfolded.iter().any(|name| name == "board-ddee03__self_get_relays"), "{unfolded:?}");
    })
    .await;
}

#[tokio::test]
async fn pins_of_0_1_0_still_hold_back_what_changed() {
    each_time(async |gateway| {
        let pinned: Vec<String> = gateway
            .devices()
            .iter()
            .filter(|device| device.pinned)
            .map(|device| format!("{} {}", device.id, device.quarantined))
            .collect();
        assert_eq!(pinned, ["board-ddee03 0", "virtual-phone 0", "weather 1"]);
        let changes = gateway.changes("weather").unwrap();
        assert_eq!(changes.held[0].tool, "forecast", "{changes:?}");
        assert_eq!(call_kind(gateway, "forecast", sinew_tool::json!({"town": "Ulm"})).await, ErrorKind::UnknownTool);
    })
    .await;
}

#[tokio::test]
async fn tokens_of_0_1_0_open_what_they_opened() {
    each_time(async |gateway| {
        let (texts, tokens) = (tokens(), gateway.tokens());
        let who = |name: &str| tokens.check(&texts[name]).map(|who| (who.name, who.role));
        assert_eq!(who("client"), Some(("Claude Desktop".to_owned(), Role::Client)));
        assert_eq!(who("admin"), Some(("Ada".to_owned(), Role::Admin)));
        assert_eq!(who("revoked"), None);
        assert_eq!(who("weather"), None);
        assert_eq!(tokens.own(), "the-gateways-own-token-in-test-data");
        let admits = |name: &str, hardware_id: &str| {
            matches!(gateway.admit(Some(&texts[name]), &key(hardware_id)), Some(Admission::DeviceToken(_)))
        };
        assert!(admits("board-ddee02", "aa:bb:cc:dd:ee:02") && !admits("board-ddee02", "aa:bb:cc:dd:ee:01"));
        assert!(gateway.find_bearer(&texts["weather"]).is_some());
        let mut kinds: Vec<_> = tokens.list().iter().map(|token| format!("{} {}", token.role, token.label)).collect();
        kinds.sort();
        let demo_boards = ["device demo board"; 4];
        let rest = ["device weather", "device bootstrap", "device board-ddee02", "client Claude Desktop", "admin Ada"];
        let mut expected = [&demo_boards[..], &rest[..], &["admin the gateway's own"]].concat();
        expected.sort();
        assert_eq!(kinds, expected);
    })
    .await;
}

#[tokio::test]
async fn a_board_approved_by_0_1_0_need_not_ask_again() {
    each_time(async |gateway| {
        let board = Applicant {
            hardware_id: "02:51:00:00:00:09".to_owned(),
            secret: "f6ca19ba-6b31-45e2-8118-f93f7d43144d".to_owned(),
            kind: "virtual-companion".to_owned(),
            version: "2.0.0".to_owned(),
            address: [127, 0, 0, 1].into(),
        };
        let told = gateway.enrol(&board);
        let Enrolment::Approved { token } = told else { panic!("{told:?}") };
        assert!(matches!(gateway.admit(Some(&token), &key(&board.hardware_id)), Some(Admission::DeviceToken(_))));
    })
    .await;
}

#[tokio::test]
async fn audit_and_events_of_0_1_0_are_still_there() {
    let dir = old_state();
    let gateway = open(dir.path());
    let records = gateway.audit(100).await.unwrap();
    assert_eq!(records.len(), 13);
    let refused: Vec<_> = records.iter().filter(|record| record.outcome != "ok").map(|record| record.id).collect();
    assert_eq!(refused, [13, 12, 11, 6, 5]);
    let second = &records[11];
    assert_eq!((second.id, second.at, second.principal.as_str()), (2, 1_794_779_137_266, "gateway"));
    assert_eq!((second.door.as_str(), second.device.as_deref()), ("api", Some("board-ddee01")));
    assert_eq!((second.args.as_str(), second.duration_us, second.bytes), (r#"{"volume":40}"#, 839, 4));
    let page = gateway.events(None, None, 10).await.unwrap();
    let topics: Vec<_> = page.events.iter().map(|event| format!("{} {}", event.device, event.topic)).collect();
    assert_eq!(topics[..2], ["weather sinew/tools_changed", "board-ddee01 notifications/state_changed"]);
    assert_eq!(page.events[1].body["newState"], 40);
    // Counting goes on where it stopped.
    call_kind(&gateway, "nothing", sinew_tool::json!({})).await;
    assert_eq!(gateway.audit(1).await.unwrap()[0].id, 14);
}
