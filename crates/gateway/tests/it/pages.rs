//! Long lists come in pages.

use sinew_gateway::{DeviceFilter, EffectFilter, Gateway, Label, Role};
use sinew_tool::{Effect, ErrorKind, FamilyName, Status, Value, json};

use crate::fake::*;

fn fleet(count: usize) -> Gateway {
    let gateway = gateway();
    for number in 0..count {
        join(&gateway, Fake::new(number, [plain("look").with_effect(Effect::Read), plain("press")]));
    }
    gateway
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["devices"].as_array().unwrap().iter().map(|device| device["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_model_gets_a_page_of_many_devices_and_the_way_to_the_next() {
    let gateway = fleet(120);
    let first = call(&gateway, "list_devices", json!({})).await.unwrap();
    assert_eq!((ids(&first).len(), &first["total"], &first["next"]), (50, &json!(120), &json!("board-0049")));
    assert!(first.to_string().len() < 8_192, "{} bytes", first.to_string().len());
    let (mut seen, mut after) = (Vec::new(), Value::Null);
    loop {
        let page = call(&gateway, "list_devices", json!({"after": after, "limit": 37})).await.unwrap();
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        after = page["next"].clone();
        if after.is_null() {
            break;
        }
    }
    assert_eq!(seen, (0..120).map(|number| format!("board-{number:04}")).collect::<Vec<_>>());
    assert_eq!(call_kind(&gateway, "list_devices", json!({"limit": 1_000})).await, ErrorKind::InvalidArguments);
    let end = call(&gateway, "list_devices", json!({"after": "zebra"})).await.unwrap();
    assert_eq!((ids(&end), &end["total"], end.get("next")), (vec![], &json!(120), None));
}

#[tokio::test]
async fn a_device_that_leaves_between_two_pages_hides_no_other() {
    let gateway = fleet(6);
    let first = call(&gateway, "list_devices", json!({"limit": 3})).await.unwrap();
    let lost = gateway.find_device("board-0002").unwrap();
    leave(&gateway, &join(&gateway, Fake::new(2, [])));
    gateway.forget("board-0002").unwrap();
    assert_eq!(first["next"], json!(lost.id.as_str()));
    let next = call(&gateway, "list_devices", json!({"after": first["next"]})).await.unwrap();
    assert_eq!((ids(&next), &next["total"]), (vec!["board-0003", "board-0004", "board-0005"], &json!(5)));
}

#[tokio::test]
async fn devices_are_chosen_by_words_label_family_and_state() {
    let gateway = fleet(4);
    gateway.rename("board-0001", "Kitchen Lamp").unwrap();
    gateway.label("board-0002", &[Label::parse("attic").unwrap()], &[]).unwrap();
    let phone = FamilyName::of("phone");
    join(&gateway, Fake::new(8, []).with_info(|info| info.family.name = phone));
    let limited = Status::Limited { state: "ready".to_owned(), remedy: "wait".to_owned() };
    join(&gateway, Fake::new(9, []).with_info(|info| info.status = limited));
    leave(&gateway, &join(&gateway, Fake::new(3, [])));
    let cases: [(Value, &[&str]); 10] = [
        (json!({"search": "LAMP kitchen"}), &["board-0001"]),
        (json!({"search": "lamp attic"}), &[]),
        (json!({"search": "attic"}), &["board-0002"]),
        (json!({"search": "aa:bb:cc:dd:00:02"}), &["board-0002"]),
        (json!({"label": "Attic"}), &["board-0002"]),
        (json!({"label": "cellar"}), &[]),
        (json!({"family": "phone"}), &["board-0008"]),
        (json!({"state": "away"}), &["board-0003"]),
        (json!({"state": "other"}), &["board-0009"]),
        (
            json!({"state": "ready", "family": "board", "search": "board-000", "limit": 9}),
            &["board-0000", "board-0001", "board-0002"],
        ),
    ];
    for (wanted, expected) in cases {
        assert_eq!(ids(&call(&gateway, "list_devices", wanted.clone()).await.unwrap()), expected, "{wanted}");
    }
    for wrong in [json!({"state": "asleep"}), json!({"label": "no label"}), json!({"search": "a ".repeat(200)})] {
        assert_eq!(call_kind(&gateway, "list_devices", wrong.clone()).await, ErrorKind::InvalidArguments, "{wrong}");
    }
}

#[tokio::test]
async fn devices_are_found_by_several_ids_and_names() {
    let gateway = fleet(5);
    gateway.rename("board-0004", "lamp").unwrap();
    let find = async |wanted: &[&str]| {
        let filter = DeviceFilter::default().among(wanted.iter().map(|id| (*id).to_owned()).collect());
        let page = gateway.seen_by(&client()).devices(filter, None, 100).await.unwrap();
        page.items.iter().map(|device| device.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(find(&["LAMP", "board-0001", "nobody", "board-0004"]).await, ["board-0001", "board-0004"]);
    assert!(find(&[""]).await.is_empty(), "an empty name means no device, and not all");
}

#[tokio::test]
async fn effects_come_in_pages_by_device_and_tool() {
    let gateway = fleet(5);
    let (mut seen, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = gateway.effects(EffectFilter::default(), after.as_deref(), 3).await.unwrap();
        assert!(page.items.len() <= 3 && page.total == 10);
        seen.extend(page.items.into_iter().map(|one| format!("{} {}", one.device, one.tool)));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let all = (0..5).flat_map(|number| ["look", "press"].map(|tool| format!("board-{number:04} {tool}")));
    assert_eq!(seen, all.collect::<Vec<_>>());
    let count = async |text: [(&str, &'static str); 2]| {
        let read = |key: &str| text.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        gateway.effects(EffectFilter::read(read).unwrap(), None, 100).await.unwrap().total
    };
    assert_eq!(count([("effect", "unmarked"), ("search", "0003")]).await, 1);
    assert_eq!(count([("effect", "read"), ("search", "LOOK")]).await, 5);
    assert_eq!(count([("effect", "danger"), ("search", "")]).await, 0);
    assert!(EffectFilter::read(|key| (key == "effect").then_some("bad")).is_err());
    let wrong = gateway.effects(EffectFilter::default(), Some("nonsense"), 3).await.unwrap_err();
    assert_eq!(wrong.kind, ErrorKind::BadCursor);
}

#[tokio::test]
async fn tokens_come_in_pages_though_some_are_revoked_meanwhile() {
    let gateway = gateway();
    let tokens = gateway.tokens();
    let made: Vec<String> =
        (0..7).map(|number| tokens.create(Role::Client, &format!("t{number}")).unwrap().0.id).collect();
    let first = tokens.page(None, 4).unwrap();
    assert_eq!((first.items.len(), first.total, first.items[0].id.as_str()), (4, 8, "gateway"));
    tokens.revoke(&first.items[3].id).unwrap();
    let rest = tokens.page(first.next.as_deref(), 100).unwrap();
    assert_eq!((rest.items.len(), rest.total, rest.next), (4, 7, None));
    let mut seen: Vec<String> = first.items.into_iter().skip(1).chain(rest.items).map(|token| token.id).collect();
    seen.sort();
    let mut made = made;
    made.sort();
    assert_eq!(seen, made);
    for wrong in ["x", "1", "one-two"] {
        assert!(tokens.page(Some(wrong), 4).is_err(), "{wrong}");
    }
}
