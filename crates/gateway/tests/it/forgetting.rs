//! Devices that are gone, and what becomes of their ids and names.

use std::time::Duration;

use sinew_gateway::{Follow, Gateway, Settings};
use sinew_tool::{DeviceEvent, ErrorKind, Tool, json};

use crate::fake::*;
use crate::upgrade::old_state;

const DAY: Duration = Duration::from_secs(86_400);

fn schema(number: usize) -> Tool {
    Tool::new("unlock", "", json!({"type": "object", "properties": {(format!("p{number}")): {"type": "string"}}}))
}

/// Anything that happens lets the gateway look whom it can forget.
fn something_happens(gateway: &Gateway) {
    let passer_by = join(gateway, Fake::new(999, [plain("passing")]));
    leave(gateway, &passer_by);
}

/// What happened, besides connecting and disconnecting.
async fn topics(gateway: &Gateway) -> Vec<String> {
    let page = gateway.events(None, None, 1_000).await.unwrap();
    let is_presence = |topic: &str| matches!(topic, "sinew/connected" | "sinew/disconnected");
    let others = page.events.into_iter().filter(|event| !is_presence(&event.topic));
    others.map(|event| format!("{} {}", event.device, event.topic)).collect()
}

#[tokio::test]
async fn a_device_that_keeps_changing_its_tools_leaves_the_names_to_others() {
    let dir = tempfile::tempdir().unwrap();
    let settings = || Settings { state_dir: Some(dir.path().to_owned()), names_per_device: 100, ..Settings::default() };
    let gateway = Gateway::open(settings()).unwrap();
    let restless = join(&gateway, Fake::new(1, [plain("first")]));
    for round in 0..20 {
        restless.set_tools((0..20).map(|number| plain(&format!("t{}", round * 20 + number))));
        gateway.apply(DeviceEvent::Changed(stay(&restless)));
    }
    let view = gateway.find_device("board-0001").unwrap();
    // All its tools are there, under names that take no room, and people see why.
    assert_eq!(view.tools, 20);
    assert!(view.warnings[0].contains("quota") && view.warnings[0].contains("forget"), "{:?}", view.warnings);
    let listed = device_tools(&gateway);
    let computed = listed.iter().find(|name| name.starts_with("t399_")).unwrap().clone();
    let answer = call(&gateway, &computed, json!({})).await.unwrap();
    assert_eq!(answer["tool"], "t399");
    // Others mint as before.
    join(&gateway, Fake::new(2, [plain("lamp")]));
    assert!(device_tools(&gateway).contains(&"lamp".to_owned()));
    assert!(gateway.find_device("board-0002").unwrap().warnings.is_empty());
    gateway.close().await;

    let kept: i64 = rusqlite::Connection::open(dir.path().join("gateway.db"))
        .unwrap()
        .query_row("SELECT count(*) FROM names", [], |row| row.get(0))
        .unwrap();
    assert!(kept <= 102, "{kept} names were kept");
    let gateway = Gateway::open(settings()).unwrap();
    assert!(device_tools(&gateway).contains(&computed), "a computed name stays over a restart");
}

#[tokio::test]
async fn a_forgotten_device_is_gone_and_its_place_is_kept_from_others() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway_in(dir.path());
    let lock = join(&gateway, Fake::new(1, [schema(1)]));
    gateway.rename("board-0001", "front door").unwrap();
    gateway.pin("front door", Follow::Nothing).unwrap();
    let refusal = gateway.forget("front door").unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::InvalidArguments);
    assert!(refusal.message.contains("connected"), "{}", refusal.message);
    leave(&gateway, &lock);
    assert_eq!(gateway.forget("front door").unwrap().id.as_str(), "board-0001");
    assert_eq!(gateway.find_device("front door"), None);
    assert_eq!(gateway.find_device("board-0001"), None);
    assert!(device_tools(&gateway).is_empty());
    assert_eq!(topics(&gateway).await, ["board-0001 sinew/forgotten"]);

    for restart in [false, true] {
        let gateway = if restart { gateway_in(dir.path()) } else { gateway.clone() };
        // Another device asks for the same id and the same tool name with another schema: it gets neither.
        let other = Fake::new(2, [schema(2)]).with_info(|info| info.suggested_id = "board-0001".to_owned());
        let other = join(&gateway, other);
        assert_eq!(gateway.find_device("board-0001"), None);
        let names = device_tools(&gateway);
        assert!(names.len() == 1 && names[0].starts_with("unlock_"), "{names:?}");
        leave(&gateway, &other);
        gateway.close().await;
    }

    // The same device comes back as a new one: same id, no name, no pin.
    let gateway = gateway_in(dir.path());
    join(&gateway, Fake::new(1, [schema(1)]));
    let view = gateway.find_device("board-0001").unwrap();
    assert_eq!((view.name, view.pinned), (None, false));
    assert!(device_tools(&gateway).contains(&"unlock".to_owned()));
}

#[tokio::test]
async fn a_name_that_an_equal_device_uses_outlives_the_one_it_was_minted_for() {
    let gateway = gateway();
    let one = join(&gateway, Fake::new(1, [schema(1)]));
    join(&gateway, Fake::new(2, [schema(1)]));
    leave(&gateway, &one);
    gateway.forget("board-0001").unwrap();
    assert_eq!(device_tools(&gateway), ["unlock"]);
    assert_eq!(call(&gateway, "unlock", json!({})).await.unwrap()["device"], "board-0002");
}

#[tokio::test(start_paused = true)]
async fn a_device_that_was_away_too_long_is_forgotten_unless_somebody_named_or_pinned_it() {
    let gateway = gateway();
    for number in 1..=4 {
        let board = join(&gateway, Fake::new(number, [schema(number)]));
        match number {
            1 => drop(gateway.rename("board-0001", "shed").unwrap()),
            2 => drop(gateway.pin("board-0002", Follow::Nothing).unwrap()),
            3 => leave(&gateway, &board),
            _ => {}
        }
        if number < 3 {
            leave(&gateway, &board);
        }
    }
    tokio::time::advance(89 * DAY).await;
    something_happens(&gateway);
    assert!(gateway.find_device("board-0003").is_some());
    tokio::time::advance(2 * DAY).await;
    something_happens(&gateway);
    assert_eq!(gateway.find_device("board-0003"), None);
    for stays in ["shed", "board-0002", "board-0004"] {
        assert!(gateway.find_device(stays).is_some(), "{stays} is gone");
    }
    assert!(topics(&gateway).await.contains(&"board-0003 sinew/forgotten".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn ids_and_names_are_free_after_their_rest() {
    let gateway = gateway();
    let first = join(&gateway, Fake::new(1, [schema(1)]));
    leave(&gateway, &first);
    gateway.forget("board-0001").unwrap();
    let heir = |number| Fake::new(number, [schema(number)]).with_info(|info| info.suggested_id = "board-0001".into());
    tokio::time::advance(29 * DAY).await;
    something_happens(&gateway);
    let early = join(&gateway, heir(2));
    assert_eq!(gateway.find_device("board-0001"), None);
    leave(&gateway, &early);
    tokio::time::advance(2 * DAY).await;
    something_happens(&gateway);
    join(&gateway, heir(3));
    assert_eq!(gateway.find_device("board-0001").unwrap().key.0, "board:aa:bb:cc:dd:00:03");
    assert!(device_tools(&gateway).contains(&"unlock".to_owned()));
    // What the old device said is not what the new one said.
    let page = gateway.events(Some("board-0001"), None, 100).await.unwrap();
    assert!(page.events.iter().all(|event| event.topic == "sinew/connected") && page.events.len() == 1);
}

#[tokio::test(start_paused = true)]
async fn time_in_which_no_gateway_ran_makes_nobody_forgotten() {
    let dir = old_state();
    let settings = || Settings { state_dir: Some(dir.path().to_owned()), forget_after: 2 * DAY, ..Settings::default() };
    for _ in 0..2 {
        let gateway = Gateway::open(settings()).unwrap();
        tokio::time::advance(DAY / 2).await;
        something_happens(&gateway);
        assert!(gateway.find_device("board-ddee02").is_some(), "forgotten although the gateway ran for a day only");
        gateway.close().await;
    }
    // The time of both runs counts.
    let gateway = Gateway::open(settings()).unwrap();
    tokio::time::advance(DAY + DAY / 4).await;
    something_happens(&gateway);
    assert_eq!(gateway.find_device("board-ddee02"), None);
    assert!(gateway.find_device("gate").is_some());
}

#[tokio::test(start_paused = true)]
async fn with_forget_after_0_nobody_is_forgotten_by_time() {
    let gateway = Gateway::open(Settings { forget_after: Duration::ZERO, ..Settings::default() }).unwrap();
    let board = join(&gateway, Fake::new(1, [plain("x")]));
    leave(&gateway, &board);
    tokio::time::advance(10_000 * DAY).await;
    something_happens(&gateway);
    assert!(gateway.find_device("board-0001").is_some());
}

#[tokio::test]
async fn where_all_places_are_taken_named_and_pinned_devices_stay() {
    let gateway = Gateway::open(Settings { max_devices: 3, ..Settings::default() }).unwrap();
    for number in 1..=3 {
        let board = join(&gateway, Fake::new(number, [plain("x")]));
        match number {
            1 => drop(gateway.rename("board-0001", "shed").unwrap()),
            2 => drop(gateway.pin("board-0002", Follow::Nothing).unwrap()),
            _ => {}
        }
        leave(&gateway, &board);
    }
    let guest = join(&gateway, Fake::new(4, [plain("x")]));
    let known = |gateway: &Gateway| gateway.devices().iter().map(|device| device.id.to_string()).collect::<Vec<_>>();
    assert_eq!(known(&gateway), ["board-0001", "board-0002", "board-0004"]);
    assert_eq!(topics(&gateway).await, ["board-0003 sinew/forgotten"]);
    // The last one is here: the next is turned away, and nobody is lost for it.
    join(&gateway, Fake::new(5, [plain("x")]));
    assert_eq!(known(&gateway), ["board-0001", "board-0002", "board-0004"]);
    leave(&gateway, &guest);
    join(&gateway, Fake::new(5, [plain("x")]));
    assert_eq!(known(&gateway), ["board-0001", "board-0002", "board-0005"]);
}
