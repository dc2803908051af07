//! Boards that ask to be let in.

use std::time::Duration;

use sinew_tool::{Admission, Admit, Applicant, Enrol, Enrolment};

use crate::fake::*;

const MAC: &str = "aa:bb:cc:dd:ee:01";

fn applicant(hardware_id: &str, secret: &str, host: u8) -> Applicant {
    Applicant {
        hardware_id: hardware_id.to_owned(),
        secret: secret.to_owned(),
        kind: "bread-board".to_owned(),
        version: "2.0.0".to_owned(),
        address: [192, 168, 1, host].into(),
    }
}

fn code(told: Enrolment) -> String {
    let Enrolment::Pending { code } = told else { panic!("{told:?}") };
    code
}

fn token(told: Enrolment) -> String {
    let Enrolment::Approved { token } = told else { panic!("{told:?}") };
    token
}

#[tokio::test]
async fn a_board_waits_until_it_is_approved_and_then_has_the_same_token_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway_in(dir.path());
    let board = applicant(MAC, "uuid", 7);
    let first = code(gateway.enrol(&board));
    assert!(first.len() == 6 && first.bytes().all(|byte| byte.is_ascii_digit()), "{first}");
    assert_eq!(code(gateway.enrol(&board)), first, "it is told the same while it waits");
    let waiting = gateway.waiting();
    assert_eq!((waiting.len(), waiting[0].hardware_id.as_str(), waiting[0].kind.as_str()), (1, MAC, "bread-board"));

    assert!(gateway.approve("000000x").is_err());
    gateway.approve(&format!(" {first} ")).unwrap();
    assert!(gateway.waiting().is_empty() && gateway.approve(&first).is_err());
    let own = token(gateway.enrol(&board));
    assert!(matches!(gateway.admit(Some(&own), &key(MAC)), Some(Admission::DeviceToken(_))));
    assert_eq!(gateway.admit(Some(&own), &key("aa:bb:cc:dd:ee:02")), None);
    drop(gateway);
    assert_eq!(token(gateway_in(dir.path()).enrol(&board)), own);
}

#[tokio::test]
async fn whoever_knows_only_the_hardware_id_gets_nothing() {
    let gateway = gateway();
    let board = applicant(MAC, "uuid", 7);
    gateway.approve(&code(gateway.enrol(&board))).unwrap();
    let own = token(gateway.enrol(&board));
    let other = applicant(MAC, "another", 8);
    let second = code(gateway.enrol(&other));
    // Approved all the same, because its flash was erased, it takes the place of what was.
    gateway.approve(&second).unwrap();
    assert_eq!(gateway.admit(Some(&own), &key(MAC)), None);
    code(gateway.enrol(&board));
    assert_ne!(token(gateway.enrol(&other)), own);
}

#[tokio::test]
async fn a_revoked_token_is_not_made_again() {
    let gateway = gateway();
    let board = applicant(MAC, "uuid", 7);
    gateway.approve(&code(gateway.enrol(&board))).unwrap();
    let own = token(gateway.enrol(&board));
    let view = gateway.tokens().list().into_iter().find(|view| view.role == "device").unwrap();
    assert_eq!((view.label.as_str(), view.device.as_deref()), ("bootstrap", Some("board:aa:bb:cc:dd:ee:01")));
    gateway.tokens().revoke(&view.id).unwrap();
    gateway.approve(&code(gateway.enrol(&board))).unwrap();
    assert_ne!(token(gateway.enrol(&board)), own);
    assert_eq!(gateway.admit(Some(&own), &key(MAC)), None);
}

#[tokio::test]
async fn a_board_that_calls_itself_by_the_id_name_or_key_of_another_is_refused() {
    let gateway = gateway();
    join(&gateway, Fake::board(1));
    gateway.rename("board-0001", "Lamp").unwrap();
    for taken in ["board-0001", "board:aa:bb:cc:dd:00:01", "lamp"] {
        assert_eq!(gateway.enrol(&applicant(taken, "s", 7)), Enrolment::Taken, "{taken}");
    }
    // The board itself may apply again, and needs a new approval.
    code(gateway.enrol(&applicant("aa:bb:cc:dd:00:01", "s", 7)));
}

#[tokio::test]
async fn a_token_got_under_an_id_before_its_device_came_is_not_the_devices() {
    for early in ["board-0001", "board:aa:bb:cc:dd:00:01"] {
        let gateway = gateway();
        let thief = applicant(early, "s", 7);
        gateway.approve(&code(gateway.enrol(&thief))).unwrap();
        let got = token(gateway.enrol(&thief));
        join(&gateway, Fake::board(1));
        assert_eq!(gateway.admit(Some(&got), &key("aa:bb:cc:dd:00:01")), None);
        assert!(matches!(gateway.admit(Some(&got), &key(early)), Some(Admission::DeviceToken(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_boards_are_limited_per_address_and_a_board_from_elsewhere_always_gets_a_place() {
    let gateway = gateway();
    for index in 0..8 {
        code(gateway.enrol(&applicant(&format!("board-{index}"), "s", 7)));
    }
    assert_eq!(gateway.enrol(&applicant("one-more", "s", 7)), Enrolment::Full, "the limit of one address");
    for index in 0..56 {
        code(gateway.enrol(&applicant(&format!("other-{index}"), "s", 10 + index / 8)));
    }
    let honest = code(gateway.enrol(&applicant("honest", "s", 99)));
    for index in 0..100 {
        gateway.enrol(&applicant(&format!("more-{index}"), "s", 120 + index / 8));
        assert_eq!(code(gateway.enrol(&applicant("honest", "s", 99))), honest, "it keeps its code");
    }
    assert_eq!(gateway.waiting().len(), 64);
}

#[tokio::test(start_paused = true)]
async fn a_silent_board_makes_room_for_another_of_its_address_and_its_network_counts_as_one() {
    let gateway = gateway();
    let from = |index: u8, address: &str| Applicant {
        address: address.parse().unwrap(),
        ..applicant(&format!("board-{index}"), "s", 1)
    };
    for index in 0..8 {
        code(gateway.enrol(&from(index, &format!("2001:db8::{index}"))));
    }
    assert_eq!(gateway.enrol(&from(8, "2001:db8::ffff:9")), Enrolment::Full, "one /64 is one sender");
    code(gateway.enrol(&from(8, "2001:db8:0:1::9")));
    tokio::time::advance(Duration::from_secs(61)).await;
    code(gateway.enrol(&from(0, "2001:db8::0")));
    code(gateway.enrol(&from(9, "2001:db8::9")));
    let left: Vec<String> = gateway.waiting().into_iter().map(|board| board.hardware_id).collect();
    assert!(left.contains(&"board-0".to_owned()) && left.contains(&"board-9".to_owned()), "{left:?}");
    assert_eq!(left.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_board_that_asks_no_more_is_forgotten() {
    let gateway = gateway();
    for index in 1..8 {
        code(gateway.enrol(&applicant(&format!("board-{index}"), "s", 7)));
    }
    let kept = code(gateway.enrol(&applicant("board-0", "s", 7)));
    tokio::time::advance(Duration::from_secs(299)).await;
    assert_eq!(code(gateway.enrol(&applicant("board-0", "s", 7))), kept);
    let changes = gateway.board_changes();
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(gateway.waiting().len(), 1, "those that ask no more are forgotten");
    assert!(changes.has_changed().unwrap(), "and whoever watches is told");
}
