//! Devices that one caller has to itself for a while.

use std::sync::Arc;

use sinew_gateway::{Gateway, Label, OwnLease, Principal, Request, Reservation, Role};
use sinew_tool::{Effect, ErrorKind, Outcome, Tool, ToolError, json};
use tokio::sync::Notify;

use crate::fake::*;

fn other() -> Principal {
    Principal::new("other", Role::Client)
}

fn tools() -> [Tool; 2] {
    [plain("look").with_effect(Effect::Read), plain("press").with_effect(Effect::Change)]
}

fn board(gateway: &Gateway, number: usize) -> Arc<Fake> {
    join(gateway, Fake::new(number, tools()))
}

/// A device of a family that stays with its user for a moment.
fn phone(gateway: &Gateway, manner: Manner) -> Arc<Fake> {
    let stays =
        Fake::new(1, tools()).with_manner(manner).with_info(|info| info.family = info.family.clone().stay_with_user());
    join(gateway, stays)
}

fn wish(device: &str, seconds: u64) -> Reservation {
    Reservation { device: device.to_owned(), time: SECOND * seconds as u32, ..Reservation::default() }
}

async fn reserve(gateway: &Gateway, who: &Principal, seconds: u64) -> Result<OwnLease, ToolError> {
    gateway.reserve(who, wish("board-0001", seconds)).await
}

async fn call_as(gateway: &Gateway, who: &Principal, tool: &str, device: &str) -> Result<Outcome, ToolError> {
    gateway.call(Request::new(who.clone(), tool, args(json!({"device": device})), "test")).await
}

async fn press(gateway: &Gateway, who: &Principal) -> Result<Outcome, ToolError> {
    call_as(gateway, who, "press", "board-0001").await
}

#[tokio::test(start_paused = true)]
async fn others_read_and_are_told_who_has_the_device_how_long_and_their_place() {
    let gateway = gateway();
    let fake = board(&gateway, 1);
    let lease = reserve(&gateway, &client(), 30).await.unwrap();
    assert_eq!((lease.seconds, lease.view.holder.as_str()), (30, "tester"));
    press(&gateway, &client()).await.unwrap();
    call_as(&gateway, &other(), "look", "board-0001").await.unwrap();
    let told = press(&gateway, &other()).await.unwrap_err();
    assert_eq!(told.kind, ErrorKind::Reserved);
    assert!(
        told.message.contains("`tester` has reserved") && told.message.contains("place in the queue is 1"),
        "{told}"
    );
    assert_eq!((&told.details["holder"], &told.details["place"]), (&json!("tester"), &json!(1)));
    let third = press(&gateway, &Principal::new("third", Role::Client)).await.unwrap_err();
    assert_eq!(third.details["place"], json!(2));
    assert_eq!(press(&gateway, &other()).await.unwrap_err().details["place"], json!(1), "a place is kept");
    assert_eq!(fake.count(), 2, "what was refused was not sent");

    let listed = call(&gateway, "list_devices", json!({})).await.unwrap();
    assert_eq!(listed["devices"][0]["reserved"]["holder"], json!("tester"));
    tokio::time::advance(SECOND * 31).await;
    press(&gateway, &other()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_without_use_and_use_prolongs_it_up_to_its_bound() {
    let gateway = gateway();
    board(&gateway, 1);
    reserve(&gateway, &client(), 600).await.unwrap();
    for _ in 0..11 {
        tokio::time::advance(SECOND * 50).await;
        press(&gateway, &client()).await.unwrap();
        assert!(press(&gateway, &other()).await.is_err());
    }
    // 550 s are over; it ends 50 s later however it is used.
    tokio::time::advance(SECOND * 51).await;
    press(&gateway, &other()).await.unwrap();

    reserve(&gateway, &client(), 600).await.unwrap();
    tokio::time::advance(SECOND * 61).await;
    press(&gateway, &other()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_person_has_a_device_for_the_whole_time() {
    let gateway = gateway();
    board(&gateway, 1);
    gateway.reserve(&admin(), Reservation { by_person: true, ..wish("board-0001", 3_600) }).await.unwrap();
    tokio::time::advance(SECOND * 3_000).await;
    assert_eq!(press(&gateway, &client()).await.unwrap_err().kind, ErrorKind::Reserved);
}

#[tokio::test(start_paused = true)]
async fn reserving_again_is_the_same_lease_and_releasing_twice_is_no_fault() {
    let gateway = gateway();
    board(&gateway, 1);
    let first = reserve(&gateway, &client(), 100).await.unwrap();
    let again = reserve(&gateway, &client(), 100).await.unwrap();
    assert_eq!(first.id, again.id);
    assert!(!gateway.release(&other(), "board-0001").await.unwrap());
    assert!(
        !gateway.release(&other(), &format!("lease:{}", first.id)).await.unwrap(),
        "the id is of use to its token alone"
    );
    assert!(gateway.release(&client(), "board-0001").await.unwrap());
    assert!(!gateway.release(&client(), "board-0001").await.unwrap());
    press(&gateway, &other()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_gets_the_device_in_turn() {
    let gateway = gateway();
    board(&gateway, 1);
    reserve(&gateway, &client(), 20).await.unwrap();
    let patient = {
        let gateway = gateway.clone();
        tokio::spawn(async move {
            gateway.reserve(&other(), Reservation { wait: SECOND * 30, ..wish("board-0001", 60) }).await
        })
    };
    tokio::time::sleep(SECOND).await;
    gateway.release(&client(), "board-0001").await.unwrap();
    // Somebody else is next, also for the one who had it.
    let late = reserve(&gateway, &client(), 20).await.unwrap_err();
    assert_eq!(late.kind, ErrorKind::Reserved);
    assert_eq!(patient.await.unwrap().unwrap().view.holder, "other");
    assert_eq!(press(&gateway, &client()).await.unwrap_err().kind, ErrorKind::Reserved);
}

#[tokio::test(start_paused = true)]
async fn a_free_device_is_kept_for_the_next_only_for_a_moment() {
    let gateway = gateway();
    board(&gateway, 1);
    reserve(&gateway, &client(), 20).await.unwrap();
    assert!(press(&gateway, &other()).await.is_err());
    gateway.release(&client(), "board-0001").await.unwrap();
    // `other` is next and does not come: the call waits, and is made.
    press(&gateway, &client()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_holder_of_a_broken_lease_is_told_once() {
    let gateway = gateway();
    let fake = board(&gateway, 1);
    reserve(&gateway, &client(), 100).await.unwrap();
    let broken = gateway.break_lease(&admin(), "board-0001").await.unwrap();
    assert_eq!(broken.holder, "tester");
    assert!(press(&gateway, &other()).await.is_err(), "whoever broke it has it first");
    press(&gateway, &admin()).await.unwrap();
    let told = press(&gateway, &client()).await.unwrap_err();
    assert!(told.message.contains("`person` took board-0001 from you"), "{told}");
    tokio::time::advance(SECOND * 20).await;
    press(&gateway, &client()).await.unwrap();
    assert_eq!(fake.count(), 2);
    assert!(gateway.break_lease(&admin(), "board-0001").await.unwrap_err().message.contains("nobody"));
}

#[tokio::test(start_paused = true)]
async fn runs_that_share_a_token_name_their_lease() {
    let gateway = gateway();
    board(&gateway, 1);
    board(&gateway, 2);
    let run = |name: &str, device: &str| Reservation { run: Some(name.to_owned()), ..wish(device, 100) };
    let one = gateway.reserve(&client(), run("one", "board-0001")).await.unwrap();
    assert!(gateway.reserve(&client(), run("two", "board-0001")).await.is_err());
    let two = gateway.reserve(&client(), run("two", "board-0002")).await.unwrap();
    assert_eq!(press(&gateway, &client()).await.unwrap_err().kind, ErrorKind::Reserved);
    let named = format!("lease:{}", one.id);
    let answer = call_as(&gateway, &client(), "press", &named).await.unwrap();
    assert_eq!(answer.structured.unwrap()["device"], json!("board-0001"));
    gateway.call_on(&named, Request::new(client(), "press", args(json!({})), "test")).await.unwrap();
    for (lease, works) in [(&one.id, true), (&two.id, false)] {
        let press = Request::new(client(), "press", args(json!({"device": "board-0001"})), "test");
        let pressed = gateway.call(Request { lease: Some(lease.as_str().into()), ..press }).await;
        assert_eq!(pressed.is_ok(), works, "{pressed:?}");
    }
    let stolen = call_as(&gateway, &other(), "press", &named).await.unwrap_err();
    assert!(stolen.message.contains("not yours"), "{stolen}");
    assert!(gateway.release(&client(), &named).await.unwrap());
    press(&gateway, &other()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_label_gives_the_first_device_that_is_free() {
    let gateway = gateway();
    for number in 1..=2 {
        board(&gateway, number);
        gateway.label(&format!("board-{number:04}"), &[Label::parse("farm").unwrap()], &[]).unwrap();
    }
    let mut got = Vec::new();
    for who in [client(), other()] {
        got.push(gateway.reserve(&who, wish("label:farm", 60)).await.unwrap().view.device.to_string());
    }
    assert_eq!(got, ["board-0001", "board-0002"]);
    let third = Principal::new("third", Role::Client);
    assert_eq!(gateway.reserve(&third, wish("label:farm", 60)).await.unwrap_err().kind, ErrorKind::Reserved);
    assert_eq!(gateway.reserve(&third, wish("label:attic", 60)).await.unwrap_err().kind, ErrorKind::UnknownDevice);
}

#[tokio::test(start_paused = true)]
async fn a_phone_stays_with_its_user_for_ten_seconds_and_others_wait_five() {
    let gateway = gateway();
    let fake = phone(&gateway, Manner::Echo);
    press(&gateway, &client()).await.unwrap();
    let started = tokio::time::Instant::now();
    let told = press(&gateway, &other()).await.unwrap_err();
    assert!(told.kind == ErrorKind::Reserved && told.message.contains("`tester` uses"), "{told}");
    assert!(started.elapsed() >= SECOND * 5, "{:?}", started.elapsed());
    // Five of the ten seconds are left.
    press(&gateway, &other()).await.unwrap();
    assert!(started.elapsed() >= SECOND * 10 && fake.count() == 2, "{:?}", started.elapsed());
    call_as(&gateway, &client(), "look", "board-0001").await.unwrap();
    assert_eq!(press(&gateway, &client()).await.unwrap_err().kind, ErrorKind::Reserved, "reading took it from nobody");
}

#[tokio::test]
async fn what_a_call_uses_can_become_a_reservation() {
    let gateway = gateway();
    let go = Arc::new(Notify::new());
    let fake = phone(&gateway, Manner::Wait(go.clone()));
    let long = tokio::spawn({
        let gateway = gateway.clone();
        async move { press(&gateway, &client()).await }
    });
    while fake.count() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(gateway.lease(&gateway.device("board-0001").unwrap().id).unwrap().purpose.is_none());
    reserve(&gateway, &client(), 60).await.unwrap();
    assert!(press(&gateway, &other()).await.unwrap_err().message.contains("has reserved"));
    go.notify_one();
    long.await.unwrap().unwrap();
    let told = press(&gateway, &other()).await.unwrap_err();
    assert!(told.message.contains("has reserved"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_and_one_that_only_reads_hold_nothing() {
    let gateway = gateway();
    board(&gateway, 1);
    join(&gateway, Fake::new(2, [plain("look").with_effect(Effect::Read)]));
    reserve(&gateway, &client(), 100).await.unwrap();
    gateway.end_leases(&client().id);
    press(&gateway, &other()).await.unwrap();
    let refused = gateway.reserve(&client(), wish("board-0002", 100)).await.unwrap_err();
    assert!(
        refused.kind == ErrorKind::PermissionDenied && refused.message.contains("reading needs no lease"),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn queues_and_leases_of_one_caller_are_bounded() {
    let gateway = gateway();
    for number in 1..=65 {
        board(&gateway, number);
    }
    for number in 1..=64 {
        gateway.reserve(&client(), wish(&format!("board-{number:04}"), 60)).await.unwrap();
    }
    let more = gateway.reserve(&client(), wish("board-0065", 60)).await.unwrap_err();
    assert!(more.message.contains("64 devices already"), "{more}");
    for number in 1..=17 {
        let told = press(&gateway, &Principal::new(format!("client-{number}"), Role::Client)).await.unwrap_err();
        assert_eq!(told.details["place"].as_u64(), (number <= 16).then_some(number), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_tools_for_leases_are_recorded_with_their_device() {
    let gateway = gateway();
    board(&gateway, 1);
    let lease = call(&gateway, "reserve_device", json!({"device": "board-0001", "seconds": 60.0})).await.unwrap();
    assert_eq!((&lease["device"], &lease["seconds"]), (&json!("board-0001"), &json!(60)));
    let released =
        call(&gateway, "release_device", json!({"device": format!("lease:{}", lease["lease"].as_str().unwrap())}));
    assert_eq!(released.await.unwrap(), json!({"released": true}));
    assert_eq!(
        call_kind(&gateway, "reserve_device", json!({"device": "board-0001", "seconds": 601})).await,
        ErrorKind::InvalidArguments
    );
    let records = gateway.audit(10).await.unwrap();
    assert!(
        records.iter().any(|record| record.name == "reserve_device" && record.device.as_deref() == Some("board-0001"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_is_told_at_once_when_the_device_is_reserved() {
    let gateway = gateway();
    let fake = phone(&gateway, Manner::Echo);
    press(&gateway, &client()).await.unwrap();
    let waits = tokio::spawn({
        let gateway = gateway.clone();
        async move { press(&gateway, &other()).await }
    });
    tokio::time::sleep(SECOND).await;
    reserve(&gateway, &client(), 600).await.unwrap();
    let told = waits.await.unwrap().unwrap_err();
    assert!(told.kind == ErrorKind::Reserved && told.message.contains("has reserved"), "{told}");
    assert_eq!(fake.count(), 1);
    assert_eq!(gateway.lease(&gateway.device("board-0001").unwrap().id).unwrap().holder, "tester");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_broken_is_told_to_the_run_that_had_it_and_to_the_user_of_a_phone() {
    let gateway = gateway();
    board(&gateway, 1);
    let run = Reservation { run: Some("one".to_owned()), ..wish("board-0001", 100) };
    let lease = gateway.reserve(&client(), run).await.unwrap();
    gateway.break_lease(&admin(), "board-0001").await.unwrap();
    let named = format!("lease:{}", lease.id);
    let told = call_as(&gateway, &client(), "press", &named).await.unwrap_err();
    assert!(told.message.contains("`person` took"), "{told}");
    let over = call_as(&gateway, &client(), "press", &named).await.unwrap_err();
    assert!(over.message.contains("is over"), "{over}");

    tokio::time::advance(SECOND * 20).await;
    press(&gateway, &admin()).await.unwrap();
    let gateway = self::gateway();
    phone(&gateway, Manner::Echo);
    press(&gateway, &client()).await.unwrap();
    gateway.break_lease(&admin(), "board-0001").await.unwrap();
    assert!(press(&gateway, &client()).await.unwrap_err().message.contains("`person` took"));
}

#[tokio::test(start_paused = true)]
async fn asking_again_neither_keeps_a_device_from_others_for_ever_nor_takes_a_second_one() {
    let gateway = gateway();
    for number in 1..=2 {
        board(&gateway, number);
        gateway.label(&format!("board-{number:04}"), &[Label::parse("farm").unwrap()], &[]).unwrap();
    }
    let first = gateway.reserve(&client(), wish("label:farm", 60)).await.unwrap();
    let again = gateway.reserve(&client(), wish("label:farm", 1)).await.unwrap();
    assert_eq!((&first.id, &first.view.device, again.seconds), (&again.id, &again.view.device, 60), "never shorter");
    assert!(press(&gateway, &other()).await.is_err());
    let more = gateway.reserve(&client(), wish("label:farm", 600)).await.unwrap();
    assert_eq!(more.seconds, 60, "others wait");
    for run in ["a", "b", "c", "d", "e"] {
        let waits = Reservation { run: Some(run.to_owned()), ..wish("board-0001", 60) };
        let place =
            gateway.reserve(&Principal::new("third", Role::Client), waits).await.unwrap_err().details["place"].clone();
        assert_eq!(place.is_null(), run == "e", "{run}: {place}");
    }
}
