//! The pipeline: find, check, decide, queue, send; and one record each time.

use std::sync::Arc;
use std::time::Duration;

use sinew_gateway::{Gateway, Principal, Role, Settings};
use sinew_tool::{Content, ErrorKind, Outcome, Status, Tool, ToolError, json};
use tokio::sync::{Notify, Semaphore};

use crate::fake::*;

#[tokio::test]
async fn a_call_reaches_its_device_and_is_remembered() {
    let gateway = gateway();
    join(&gateway, Fake::board(1));
    call(&gateway, "self_audio_speaker_set_volume", json!({"volume": 5, "device": "board-0001"})).await.unwrap();
    let records = gateway.audit(10).await.unwrap();
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert_eq!(record.principal, "tester");
    assert_eq!(record.door, "test");
    assert_eq!(record.device.as_deref(), Some("board-0001"));
    assert_eq!(record.tool.as_deref(), Some("self.audio_speaker.set_volume"));
    assert_eq!(record.name, "self_audio_speaker_set_volume");
    assert_eq!(record.args, r#"{"volume":5,"device":"board-0001"}"#);
    assert_eq!(record.args_digest.len(), 64);
    assert_eq!(record.outcome, "ok");
    assert!(record.bytes > 0 && record.at > 0 && record.duration_us >= 0);
}

#[tokio::test]
async fn a_device_and_its_tool_can_be_called_by_any_of_their_names() {
    let gateway = gateway();
    let board = join(&gateway, Fake::board(1));
    gateway.rename("board-0001", "Desk").unwrap();
    for device in ["board-0001", "desk"] {
        for tool in ["self.get_device_status", "self_get_device_status"] {
            gateway.call_on(device, request(tool, json!({}))).await.unwrap();
        }
    }
    assert_eq!(board.count(), 4);
    let on = |device, tool| gateway.call_on(device, request(tool, json!({})));
    assert_eq!(on("attic", "x").await.unwrap_err().kind, ErrorKind::UnknownDevice);
    assert_eq!(on("desk", "x").await.unwrap_err().kind, ErrorKind::UnknownTool);
    assert_eq!(outcomes(&gateway).await, ["ok", "ok", "ok", "ok", "DeviceNotFound", "ToolNotFound"]);
}

#[tokio::test]
async fn wrong_arguments_never_reach_the_device() {
    let gateway = gateway();
    let board = join(&gateway, Fake::board(1));
    let error = call(&gateway, "self_audio_speaker_set_volume", json!({"volume": "loud"})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
    assert_eq!(error.message, "argument `volume` must be an integer from 0 to 100, got the string \"loud\"");
    assert_eq!(board.count(), 0);
    assert_eq!(outcomes(&gateway).await, ["ValidationError"]);
}

#[tokio::test]
async fn an_explicit_null_for_an_optional_argument_counts_as_absent() {
    let gateway = gateway();
    let schema = json!({
        "type": "object",
        "required": ["on"],
        "additionalProperties": false,
        "properties": {
            "on": {"type": "boolean"},
            "level": {"type": "integer"},
            "note": {"type": ["string", "null"]},
        },
    });
    let board = join(&gateway, Fake::new(1, [Tool::new("set", "", schema)]));
    let sent = || board.args.lock().unwrap().clone();
    call(&gateway, "set", json!({"on": true, "level": null})).await.unwrap();
    assert_eq!(sent(), Some(args(json!({"on": true}))));
    call(&gateway, "set", json!({"on": true, "note": null})).await.unwrap();
    assert_eq!(sent(), Some(args(json!({"on": true, "note": null}))), "a null that the schema allows is passed on");
    for wrong in [json!({"on": null}), json!({"on": true, "other": null}), json!({"on": true, "level": "high"})] {
        assert_eq!(call_kind(&gateway, "set", wrong).await, ErrorKind::InvalidArguments);
    }
    call(&gateway, "get_device_events", json!({"device": null, "limit": null})).await.unwrap();
}

#[tokio::test]
async fn a_device_token_calls_nothing_and_sees_nothing() {
    let gateway = gateway();
    let board = join(&gateway, Fake::board(1));
    let mut asked = request("self_get_device_status", json!({}));
    asked.who = Principal::new("a board", Role::Device("board-0001".to_owned()));
    assert!(gateway.list(&asked.who, asked.shape).tools.is_empty());
    assert_eq!(gateway.call(asked).await.unwrap_err().kind, ErrorKind::PermissionDenied);
    assert_eq!(board.count(), 0);
    assert_eq!(outcomes(&gateway).await, ["PermissionDenied"]);
}

#[tokio::test(start_paused = true)]
async fn the_configuration_gives_single_tools_another_budget_which_may_exceed_the_usual_limit() {
    let budgets = [("board-0001/self.get_*", 5), ("board-*/self.audio_speaker.*", 900)];
    let budgets = budgets.map(|(pattern, seconds)| (pattern.to_owned(), Duration::from_secs(seconds))).into();
    let gateway = Gateway::open(Settings { budgets, ..Settings::default() }).unwrap();
    join(&gateway, Fake::board(1).with_manner(Manner::Never));
    for (tool, args, seconds) in
        [("self_get_device_status", json!({}), 5), ("self_audio_speaker_set_volume", json!({"volume": 1}), 900)]
    {
        let started = tokio::time::Instant::now();
        assert_eq!(call(&gateway, tool, args).await.unwrap_err().kind, ErrorKind::Timeout);
        assert_eq!(started.elapsed().as_secs(), seconds, "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_turn_never_came_is_not_said_to_have_had_an_effect() {
    let gateway = gateway();
    join(&gateway, Fake::board(1).with_manner(Manner::Busy));
    let error = call(&gateway, "self_get_device_status", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Busy);
    assert!(error.message.contains("was not sent"), "{}", error.message);
}

#[tokio::test(start_paused = true)]
async fn a_silent_device_costs_its_caller_the_budget_and_no_more() {
    let gateway = gateway();
    join(&gateway, Fake::board(1).with_manner(Manner::Never));
    let started = tokio::time::Instant::now();
    let error = call(&gateway, "self_get_device_status", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout);
    assert!(error.message.contains("within 30 s") && error.message.contains("board-0001"), "{}", error.message);
    assert_eq!(started.elapsed().as_secs(), 30);
    let mut asked = request("self_get_device_status", json!({}));
    asked.budget = Some(Duration::from_secs(7_200));
    let started = tokio::time::Instant::now();
    assert_eq!(gateway.call(asked).await.unwrap_err().kind, ErrorKind::Timeout);
    assert_eq!(started.elapsed().as_secs(), 600);
    assert_eq!(outcomes(&gateway).await, ["Timeout", "Timeout"]);
}

#[tokio::test(start_paused = true)]
async fn a_device_that_keeps_the_budget_itself_has_the_first_word_at_its_end() {
    let gateway = gateway();
    join(&gateway, Fake::board(1).with_manner(Manner::SpendBudget));
    for _ in 0..20 {
        assert_eq!(call_kind(&gateway, "self_get_device_status", json!({})).await, ErrorKind::Busy);
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_is_remembered_as_cancelled() {
    let gateway = gateway();
    let board = join(&gateway, Fake::board(1).with_manner(Manner::Never));
    let asking = gateway.clone();
    let asked = tokio::spawn(async move { call(&asking, "self_get_device_status", json!({})).await });
    while board.count() == 0 {
        tokio::task::yield_now().await;
    }
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    assert_eq!(outcomes(&gateway).await, ["Cancelled"]);
}

#[tokio::test]
async fn a_call_that_is_given_up_while_it_waits_is_never_served() {
    let gateway = gateway();
    let turns = Arc::new(Semaphore::new(0));
    let board = join(&gateway, Fake::board(1).with_manner(Manner::Queue(turns.clone())));
    let ask = || {
        let gateway = gateway.clone();
        tokio::spawn(async move { gateway.call(request("self_get_device_status", json!({}))).await })
    };
    let (given_up, kept) = (ask(), ask());
    while board.count() < 2 {
        tokio::task::yield_now().await;
    }
    given_up.abort();
    assert!(given_up.await.is_err());
    turns.add_permits(5);
    kept.await.unwrap().unwrap();
    assert_eq!(board.served.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert_eq!(turns.available_permits(), 4);
    assert_eq!(outcomes(&gateway).await, ["Cancelled", "ok"]);
}

#[tokio::test]
async fn an_error_of_a_device_is_cleaned_and_bounded() {
    let gateway = gateway();
    let rude = ToolError::new(ErrorKind::ActionFailed, format!("no\u{1b}[2J{}", "!".repeat(100_000)));
    let rude = rude.with_details(json!({"log": "x".repeat(100_000)}));
    join(&gateway, Fake::new(1, [plain("x")]).with_manner(Manner::Answer(Err(rude))));
    let error = call(&gateway, "x", json!({})).await.unwrap_err();
    assert!(error.message.starts_with("no!") && error.message.len() < 5_000);
    assert_eq!(error.details, json!({"omitted": ["log"]}));
}

#[tokio::test]
async fn a_full_queue_answers_busy_and_a_freed_place_is_used() {
    let gateway = Gateway::open(Settings { open_calls: 2, ..Settings::default() }).unwrap();
    let go = Arc::new(Notify::new());
    let board = join(&gateway, Fake::board(1).with_manner(Manner::Wait(go.clone())));
    let ask = || {
        let gateway = gateway.clone();
        tokio::spawn(async move { gateway.call(request("self_get_device_status", json!({}))).await })
    };
    let (one, two) = (ask(), ask());
    while board.count() < 2 {
        tokio::task::yield_now().await;
    }
    let error = ask().await.unwrap().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Busy);
    assert_eq!(board.count(), 2);
    one.abort();
    assert!(one.await.is_err());
    let three = ask();
    while board.count() < 3 {
        tokio::task::yield_now().await;
    }
    go.notify_waiters();
    assert!(two.await.unwrap().is_ok() && three.await.unwrap().is_ok());
    let mut outcomes = outcomes(&gateway).await;
    outcomes.sort();
    assert_eq!(outcomes, ["Busy", "Cancelled", "ok", "ok"]);
}

#[tokio::test]
async fn what_the_device_answers_is_passed_on() {
    let gateway = gateway();
    let lost = ToolError::new(ErrorKind::DeviceLost, "the connection broke").with_details(json!({"after": 3}));
    join(&gateway, Fake::new(1, [plain("x")]).with_manner(Manner::Answer(Err(lost.clone()))));
    let passed_on = call(&gateway, "x", json!({})).await.unwrap_err();
    assert_eq!(ToolError { source: None, ..passed_on }, lost);
    assert_eq!(outcomes(&gateway).await, ["DeviceLost"]);
}

#[tokio::test]
async fn a_driver_that_panics_takes_nobody_with_it() {
    let gateway = gateway();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    join(&gateway, Fake::new(1, [plain("x")]).with_manner(Manner::Panic));
    let error = call_kind(&gateway, "x", json!({})).await;
    std::panic::set_hook(hook);
    assert_eq!(error, ErrorKind::Internal);
    assert_eq!(outcomes(&gateway).await, ["InternalError"]);
}

#[tokio::test]
async fn an_answer_must_be_what_the_output_schema_promises() {
    let gateway = gateway();
    let tool = || {
        let schema = json!({"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]});
        plain("measure").with_output_schema(schema)
    };
    let answers = [
        (Outcome::json(json!({"celsius": 21.5})), None),
        (Outcome::text(r#"{"celsius": 21.5}"#), None),
        (Outcome::json(json!({"celsius": "warm"})), Some(ErrorKind::BadAnswer)),
        (Outcome::text("warm"), Some(ErrorKind::BadAnswer)),
    ];
    for (number, (answer, expected)) in answers.into_iter().enumerate() {
        join(&gateway, Fake::new(number, [tool()]).with_manner(Manner::Answer(Ok(answer))));
        let result = call(&gateway, "measure", json!({"device": format!("board-{number:04}")})).await;
        match expected {
            None => assert_eq!(result, Ok(json!({"celsius": 21.5}))),
            Some(kind) => assert_eq!(result.unwrap_err().kind, kind),
        }
    }
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_refused_with_its_size() {
    let gateway = Gateway::open(Settings { max_result: 1_000, ..Settings::default() }).unwrap();
    let picture = Outcome::default().with(Content::image(&[0; 900], "image/png", None));
    join(&gateway, Fake::new(1, [plain("photo")]).with_manner(Manner::Answer(Ok(picture))));
    let error = call(&gateway, "photo", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
    assert!(error.message.contains("1200 bytes"), "{}", error.message);
}

#[tokio::test]
async fn a_device_that_cannot_be_used_says_why() {
    let gateway = gateway();
    let locked =
        Status::Limited { state: "unauthorized".to_owned(), remedy: "allow debugging on its screen".to_owned() };
    let board = join(&gateway, Fake::board(1).with_info(|info| info.status = locked));
    let error = call(&gateway, "self_get_device_status", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    assert!(error.message.contains("unauthorized") && error.message.contains("allow debugging"), "{}", error.message);
    assert_eq!(board.count(), 0);
}

#[tokio::test]
async fn arguments_in_the_audit_are_bounded() {
    let gateway = gateway();
    join(&gateway, Fake::new(1, [plain("x")]));
    call(&gateway, "x", json!({"text": "ä".repeat(5_000)})).await.unwrap();
    let record = &gateway.audit(1).await.unwrap()[0];
    assert!(record.args.len() <= 1_024 && record.args.starts_with("{\"text\":\"ää"), "{}", record.args.len());
}

#[tokio::test]
async fn built_in_tools_are_called_like_any_other() {
    let gateway = gateway();
    join(&gateway, Fake::board(1));
    let locked = Status::Limited { state: "no MCP".to_owned(), remedy: "flash newer firmware".to_owned() };
    join(&gateway, Fake::new(2, []).with_info(|info| info.status = locked));
    gateway.rename("board-0001", "Desk").unwrap();
    let devices = call(&gateway, "list_devices", json!({})).await.unwrap();
    assert_eq!(
        devices,
        json!({"devices": [
            {"id": "board-0001", "name": "Desk", "kind": "bench", "state": "ready", "tools": 4},
            {"id": "board-0002", "kind": "bench", "state": "no MCP", "tools": 0, "remedy": "flash newer firmware"},
        ], "total": 2})
    );
    let wrong = call(&gateway, "get_device_events", json!({"limit": 0})).await.unwrap_err();
    assert_eq!(wrong.message, "argument `limit` must be an integer from 1 to 200, got 0");
    assert_eq!(outcomes(&gateway).await, ["ok", "ValidationError"]);
}

#[tokio::test]
async fn a_tool_with_a_broken_schema_works_unchecked_and_says_so() {
    let gateway = gateway();
    let broken = Tool::new("x", "", json!({"type": "object", "properties": {"a": {"type": "loud"}}}));
    join(&gateway, Fake::new(1, [broken]));
    call(&gateway, "x", json!({"a": 1})).await.unwrap();
    let page = gateway.events(Some("board-0001"), None, 10).await.unwrap();
    assert_eq!(page.events[1].topic, "sinew/warning");
}

#[tokio::test]
async fn calls_after_the_end_fail_and_say_so() {
    let gateway = gateway();
    join(&gateway, Fake::board(1));
    gateway.close().await;
    let error = call(&gateway, "self_get_device_status", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
}
