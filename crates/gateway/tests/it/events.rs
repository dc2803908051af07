//! What devices say without being asked.

use sinew_gateway::{Gateway, MAX_DEVICE_EVENTS, Settings};
use sinew_tool::{DeviceEvent, ErrorKind, LeaveReason, json};

use crate::fake::*;

fn small() -> Gateway {
    Gateway::open(Settings { max_events: 20, max_device_events: 10, ..Settings::default() }).unwrap()
}

#[tokio::test]
async fn events_are_read_page_by_page() {
    let gateway = gateway();
    let (one, two) = (join(&gateway, Fake::board(1)), join(&gateway, Fake::board(2)));
    for number in 0..5 {
        say(&gateway, &one, "notifications/state_changed", json!({"number": number}));
        say(&gateway, &two, "other", json!(number));
    }
    let connected = gateway.events(None, None, 2).await.unwrap();
    assert!(connected.events.iter().all(|event| event.topic == "sinew/connected"));
    let page = gateway.events(None, Some(&connected.next), 3).await.unwrap();
    assert_eq!(page.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!(page.events[0].device, "board-0001");
    assert_eq!(page.events[0].body, json!({"number": 0}));
    let rest = gateway.events(None, Some(&page.next), 100).await.unwrap();
    assert_eq!((rest.events.len(), rest.dropped), (7, 0));
    let end = gateway.events(None, Some(&rest.next), 100).await.unwrap();
    assert_eq!((end.events.len(), &end.next), (0, &rest.next));

    let of_two = gateway.events(Some("board-0002"), None, 2).await.unwrap();
    assert!(of_two.events.iter().all(|event| event.device == "board-0002"));
    let more = gateway.events(Some("board-0002"), Some(&of_two.next), 100).await.unwrap();
    assert_eq!((more.events.len(), more.dropped), (4, 0));
    let across = gateway.events(Some("board-0002"), Some(&page.next), 100).await.unwrap();
    assert_eq!((across.events.len(), across.dropped), (4, 0));
}

#[tokio::test]
async fn a_cursor_that_was_never_given_out_is_refused() {
    let gateway = gateway();
    join(&gateway, Fake::board(1));
    for cursor in ["", "x", "99", "-1", "0.x"] {
        let error = gateway.events(None, Some(cursor), 10).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadCursor, "{cursor}");
    }
    let start = gateway.events(None, None, 10).await.unwrap();
    assert!(gateway.events(None, Some(&start.next), 10).await.is_ok());
    assert_eq!(gateway.events(Some("attic"), None, 10).await.unwrap_err().kind, ErrorKind::UnknownDevice);
}

#[tokio::test]
async fn one_answer_can_hold_all_events_of_a_device() {
    let gateway = Gateway::open(Settings { max_device_events: usize::MAX, ..Settings::default() }).unwrap();
    let board = join(&gateway, Fake::board(1));
    for number in 0..MAX_DEVICE_EVENTS + 50 {
        say(&gateway, &board, "t", json!(number));
        if number % 50 == 0 {
            settled(&gateway).await;
        }
    }
    settled(&gateway).await;
    let page = gateway.events(Some("board-0001"), None, usize::MAX).await.unwrap();
    assert_eq!(page.events.last().unwrap().body, json!(MAX_DEVICE_EVENTS + 49));
    assert!(gateway.events(Some("board-0001"), Some(&page.next), 10).await.unwrap().events.is_empty());
}

#[tokio::test]
async fn old_events_make_room_and_are_counted() {
    let gateway = small();
    let (one, two) = (join(&gateway, Fake::board(1)), join(&gateway, Fake::board(2)));
    say(&gateway, &one, "t", json!(0));
    let first = gateway.events(Some("board-0001"), None, 10).await.unwrap();
    let all = gateway.events(None, None, 10).await.unwrap();
    for number in 1..=15 {
        say(&gateway, &one, "t", json!(number));
    }
    say(&gateway, &two, "t", json!(0));
    // Sixteen of the first device came, ten are kept; the reader had seen one of the six that went.
    let page = gateway.events(Some("board-0001"), Some(&first.next), 100).await.unwrap();
    assert_eq!((page.events.len(), page.dropped), (10, 5));
    assert_eq!(page.events[0].body, json!(6));
    let page = gateway.events(None, Some(&all.next), 100).await.unwrap();
    assert_eq!((page.events.len(), page.dropped), (11, 5));
    let fresh = gateway.events(None, None, 100).await.unwrap();
    assert_eq!((fresh.events.len(), fresh.dropped), (12, 6), "the board that says little keeps that it connected");
    for number in 0..40 {
        let board = join(&gateway, Fake::board(10 + number));
        say(&gateway, &board, "t", json!(number));
    }
    assert_eq!(gateway.events(None, None, 100).await.unwrap().events.len(), 20);
}

#[tokio::test]
async fn a_flood_is_counted_and_does_not_stop_others() {
    let gateway = gateway();
    let (flooding, calm) = (join(&gateway, Fake::board(1)), join(&gateway, Fake::board(2)));
    let start = gateway.events(Some("board-0001"), None, 10).await.unwrap().next;
    for number in 0..20_000 {
        say(&gateway, &flooding, "flood", json!(number));
    }
    say(&gateway, &calm, "hello", json!("still here"));
    let (mut cursor, mut kept, mut dropped) = (start, 0, 0);
    loop {
        settled(&gateway).await;
        let page = gateway.events(Some("board-0001"), Some(&cursor), 200).await.unwrap();
        (kept, dropped, cursor) = (kept + page.events.len() as u64, dropped + page.dropped, page.next);
        if page.events.is_empty() {
            break;
        }
    }
    assert!(kept <= 1_000, "{kept}");
    // What was lost at the very end shows with the next event.
    say(&gateway, &flooding, "flood", json!("last"));
    let page = gateway.events(Some("board-0001"), Some(&cursor), 200).await.unwrap();
    assert_eq!(kept + dropped + page.dropped, 20_000);
    let calm = gateway.events(Some("board-0002"), None, 10).await.unwrap().events;
    assert_eq!(calm.last().unwrap().topic, "hello");
}

#[tokio::test]
async fn a_huge_event_is_noted_by_its_size_alone() {
    let gateway = gateway();
    let board = join(&gateway, Fake::board(1));
    say(&gateway, &board, &"topic ".repeat(100), json!("x".repeat(100_000)));
    let page = gateway.events(None, None, 2).await.unwrap();
    assert_eq!(page.events[1].body, json!({"too_large": 100_002}));
    assert!(page.events[1].topic.chars().count() <= 128);
}

#[tokio::test]
async fn the_built_in_tool_reads_events_since_a_cursor() {
    let gateway = gateway();
    let board = join(&gateway, Fake::board(1));
    say(&gateway, &board, "a", json!(1));
    let page = call(&gateway, "get_device_events", json!({"device": "board-0001"})).await.unwrap();
    assert_eq!(page["events"][1]["topic"], "a");
    say(&gateway, &board, "b", json!(2));
    let page = call(&gateway, "get_device_events", json!({"since": page["next"], "limit": 10})).await.unwrap();
    assert_eq!(page["events"].as_array().map(Vec::len), Some(1));
    assert_eq!(page["events"][0]["topic"], "b");
    assert_eq!(call_kind(&gateway, "get_device_events", json!({"since": "zzz"})).await, ErrorKind::BadCursor);
    assert_eq!(call_kind(&gateway, "get_device_events", json!({"device": "attic"})).await, ErrorKind::UnknownDevice);
}

#[tokio::test]
async fn what_a_family_dropped_is_counted_as_dropped() {
    let gateway = gateway();
    let (one, two) = (join(&gateway, Fake::board(1)), join(&gateway, Fake::board(2)));
    say(&gateway, &one, "t", json!(1));
    let start = gateway.events(None, None, 10).await.unwrap();
    gateway.apply(DeviceEvent::Dropped(stay(&one), 40));
    say(&gateway, &two, "t", json!(1));
    say(&gateway, &one, "t", json!(2));
    let page = gateway.events(None, Some(&start.next), 10).await.unwrap();
    assert_eq!((page.events.len(), page.dropped), (2, 40));
    let of_one = gateway.events(Some("board-0001"), None, 10).await.unwrap();
    assert_eq!((of_one.events.len(), of_one.dropped), (3, 40));
    let of_two = gateway.events(Some("board-0002"), None, 10).await.unwrap();
    assert_eq!((of_two.events.len(), of_two.dropped), (2, 0));
}

#[tokio::test]
async fn who_connects_and_who_disconnects_and_why_are_events() {
    let gateway = gateway();
    let board = join(&gateway, Fake::board(1));
    gateway.apply(DeviceEvent::Left(stay(&board), LeaveReason::Broken("reset".to_owned())));
    let events = gateway.events(Some("board-0001"), None, 10).await.unwrap().events;
    let said: Vec<_> = events.iter().map(|event| (event.topic.as_str(), event.body.clone())).collect();
    let reason = json!({"reason": "connection broken: reset"});
    assert_eq!(said, [("sinew/connected", json!({"tools": 4})), ("sinew/disconnected", reason)]);
}

#[tokio::test]
async fn no_device_reports_in_the_name_of_the_gateway() {
    let gateway = gateway();
    let board = join(&gateway, Fake::board(1));
    for topic in ["sinew/store_failed", "\u{200b}sinew/tools_changed", "si\u{ad}new/connected"] {
        say(&gateway, &board, topic, json!({}));
    }
    settled(&gateway).await;
    let page = gateway.events(Some("board-0001"), None, 10).await.unwrap();
    let topics: Vec<&str> = page.events.iter().map(|event| event.topic.as_str()).collect();
    let spoken = ["device:sinew/store_failed", "device:sinew/tools_changed", "device:sinew/connected"];
    assert_eq!(topics, [&["sinew/connected"][..], &spoken[..]].concat());
}
