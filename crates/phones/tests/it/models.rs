//! What is made for models: the screen in few words, act and look in one call, steps, apps, turns.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::{Paper, call, failure, form, json_of, list, run_steps, text, text_for};
use sinew_phones::{LimitedPhone, PhoneDevice, PhoneError, Profile, tools};
use sinew_tool::{Content, Device, ErrorKind, Status, json};

#[tokio::test]
async fn the_screen_is_a_line_for_each_thing() {
    let phone = Paper::showing(vec![form()]);
    assert_eq!(
        text(&phone, "get_screen", json!({})).await,
        "app org.sinew.paper\n\
         e1 text \"Calculator\" @300,85\n\
         e2 field \"Name\"=\"Ada\" focus @540,250\n\
         e3 btn \"Submit\" long @540,450\n\
         e4 btn \"Wi-Fi\" @540,650\n\
         e5 btn \"Later\" disabled @540,850"
    );
}

#[tokio::test]
async fn a_picture_comes_beside_it_when_wanted() {
    let phone = Paper::showing(vec![form()]);
    let size = async |arguments| {
        let outcome = call(&phone, "get_screen", arguments).await.unwrap();
        match outcome.content.as_slice() {
            [Content::Text(_), Content::Image { size, .. }] => *size,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(size(json!({"screenshot": "plain"})).await, Some((345, 768)));
    assert_eq!(size(json!({"screenshot": "annotated", "max_side": 480, "grayscale": true})).await, Some((216, 480)));
    let wrong = failure(&phone, "get_screen", json!({"screenshot": "plain", "quality": 0})).await;
    assert_eq!(wrong.0, -32602);
}

#[tokio::test]
async fn what_cannot_be_pictured_is_read_and_what_cannot_be_read_is_pictured() {
    let phone = Paper::showing(vec![form()]);
    let annotated = json!({"screenshot": "annotated"});
    phone.phone().state.lock().unwrap().capture_error = Some(PhoneError::Denied("a secure window".to_owned()));
    let read = text(&phone, "get_screen", annotated.clone()).await;
    assert!(read.contains("btn \"Submit\"") && read.ends_with("\n(no picture: a secure window)"), "{read}");
    phone.phone().state.lock().unwrap().tree_error = Some(PhoneError::Denied("it moves".to_owned()));
    assert_eq!(failure(&phone, "get_screen", annotated.clone()).await, (-32001, "it moves".to_owned()));
    phone.phone().state.lock().unwrap().capture_error = None;
    let outcome = call(&phone, "get_screen", annotated).await.unwrap();
    let [Content::Text(text), Content::Image { .. }] = outcome.content.as_slice() else { panic!("{outcome:?}") };
    assert_eq!(text, "only the picture, because the tree cannot be read: it moves");
}

#[tokio::test]
async fn an_id_that_is_gone_fails_with_the_ids_that_are_most_like_it() {
    let phone = Paper::showing(vec![form()]);
    let told = async |id: &str| failure(&phone, "click_element", json!({"selector": {"id": id}})).await.1;
    let renamed = told("org.sinew.paper:id/submit_button").await;
    assert!(renamed.contains("Most like it:\ne1 btn \"Submit\" long @540,450 id submit"), "{renamed}");
    let by_its_words = told("later").await;
    assert!(by_its_words.contains("Most like it:\ne2 btn \"Later\""), "{by_its_words}");
    let unlike = told("zzz").await;
    assert!(unlike.contains("Its ids are name, submit."), "{unlike}");
}

#[tokio::test(start_paused = true)]
async fn a_difference_is_from_what_the_same_caller_saw() {
    let phone = Paper::showing(vec![list(0), list(1)]);
    text_for("ada", &phone, "get_screen", json!({})).await;
    text_for("bob", &phone, "get_screen", json!({})).await;
    let bob = text_for("bob", &phone, "press_back", json!({"return": "diff"})).await;
    assert!(bob.contains("+ e7 btn \"Row 5\""), "{bob}");
    let bob = text_for("bob", &phone, "press_back", json!({"return": "diff"})).await;
    assert!(bob.ends_with("no change on the screen"), "{bob}");
    let ada = text_for("ada", &phone, "press_back", json!({"return": "diff"})).await;
    assert!(ada.contains("+ e7 btn \"Row 5\"") && ada.ends_with("gone: e2"), "the same refs, and all of it: {ada}");
    for stranger in 0..40 {
        text_for(&stranger.to_string(), &phone, "get_screen", json!({})).await;
    }
    let ada = text_for("ada", &phone, "press_back", json!({"return": "diff"})).await;
    assert!(ada.ends_with("no change on the screen"), "forgotten, so from the screen before the action: {ada}");
}

#[tokio::test(start_paused = true)]
async fn one_call_acts_settles_and_tells_the_difference() {
    let phone = Paper::showing(vec![list(0), list(1)]);
    text(&phone, "get_screen", json!({})).await;
    let outcome = call(&phone, "scroll", json!({"direction": "down", "return": "diff"})).await.unwrap();
    let [Content::Text(done), Content::Text(diff)] = outcome.content.as_slice() else { panic!("{outcome:?}") };
    assert_eq!(done, "Scroll down (medium) executed");
    let expected =
        "~ e3 @540,400\n~ e4 @540,800\n~ e5 @540,1200\n~ e6 @540,1600\n+ e7 btn \"Row 5\" @540,2000\ngone: e2";
    assert_eq!(diff, expected);
    let unchanged = text(&phone, "press_home", json!({"return": "diff"})).await;
    assert_eq!(unchanged, "Home button press executed successfully\nno change on the screen");
    let screen = text(&phone, "press_home", json!({"return": "screen", "max_bytes": 200})).await;
    assert!(screen.ends_with("e7 btn \"Row 5\" @540,2000"), "{screen}");
    let wrong = failure(&phone, "tap", json!({"x": 1, "y": 1, "return": "movie"})).await;
    assert_eq!(wrong, (-32602, "Parameter 'return' must be one of: none, diff, screen. Got: 'movie'".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_screen_that_cannot_be_read_afterwards_does_not_undo_what_was_done() {
    let phone = Paper::showing(vec![form()]);
    text(&phone, "get_screen", json!({})).await;
    phone.phone().state.lock().unwrap().tree_error = Some(PhoneError::Failed("no dump".to_owned()));
    let answer = text(&phone, "press_back", json!({"return": "screen"})).await;
    assert_eq!(answer, "Back button press executed successfully\ndone, but the screen cannot be read: no dump");
}

#[tokio::test]
async fn a_ref_works_while_the_thing_is_there_and_tells_what_changed_when_not() {
    let phone = Paper::showing(vec![list(0), list(4)]);
    text(&phone, "get_screen", json!({})).await;
    let answer = text(&phone, "click_element", json!({"element_id": "e2"})).await;
    assert_eq!(answer, "Click performed on element 'e2'");
    let (code, message) = failure(&phone, "click_element", json!({"element_id": "e2"})).await;
    assert_eq!(code, -32002);
    assert!(message.contains("It was: btn \"Row 0\"") && message.contains("Row 8"), "{message}");
    let (code, message) = failure(&phone, "click_element", json!({"element_id": "e99"})).await;
    assert_eq!(code, -32002);
    assert!(message.starts_with("Element 'e99' not found") && message.contains("had this ref"), "{message}");
    let (code, message) = failure(&phone, "click_element", json!({"element_id": "the button"})).await;
    assert_eq!((code, message.contains("neither a ref (e7) nor an id")), (-32002, true), "{message}");
    let described = text(&phone, "click_element", json!({"by": "text", "value": "row 5"})).await;
    assert!(described.starts_with("Click performed on element 'node_"), "{described}");
}

#[tokio::test(start_paused = true)]
async fn steps_run_in_order_and_stop_at_the_first_failure() {
    let phone = Arc::new(Paper::showing(vec![form()]));
    let steps = json!({"steps": [
        {"tool": "click_element", "arguments": {"by": "text", "value": "Submit"}},
        {"tool": "press_back"},
    ]});
    let answer = run_steps(phone.clone(), steps).await.unwrap().joined_text();
    assert!(
        answer.starts_with("1. click_element: Click performed") && answer.contains("\n2. press_back: Back"),
        "{answer}"
    );

    let steps = json!({"steps": [
        {"tool": "press_home"},
        {"tool": "click_element", "arguments": {"by": "text", "value": "Nowhere"}},
        {"tool": "press_back"},
    ]});
    let error = run_steps(phone.clone(), steps).await.unwrap_err();
    let message = error.message.clone();
    assert_eq!(error.kind, ErrorKind::ElementNotFound);
    assert!(error.details["run"].as_str().is_some_and(|run| run.starts_with("run-")), "{}", error.details);
    assert!(
        message.starts_with("step 2 (click_element) failed: No element on the screen has text 'Nowhere'"),
        "{message}"
    );
    assert!(message.contains("1. press_home: Home button press") && message.contains("field \"Name\""), "{message}");
    assert_eq!(phone.phone().state.lock().unwrap().keys.len(), 2, "the third step was not taken");

    let misspelt = json!({"steps": [{"tool": "press_home"}, {"tool": "open_app", "arguments": {"ap": "Notes"}}]});
    let error = run_steps(phone.clone(), misspelt).await.unwrap_err();
    assert!(error.message.contains("`open_app` has no argument `ap`; did you mean `app`?"), "{error}");
    assert_eq!(phone.phone().state.lock().unwrap().keys.len(), 2, "nothing was done");

    for steps in [json!([]), json!([{"tool": "run_steps"}]), json!([{"tool": "fly"}]), json!([{}]), json!("x")] {
        let error = run_steps(phone.clone(), json!({"steps": steps})).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{error}");
    }
}

#[tokio::test]
async fn a_budget_holds_for_every_long_answer() {
    let phone = Arc::new(Paper::showing(vec![form()]));
    for (tool, arguments) in [
        ("get_accessibility_tree", json!({"max_bytes": 700})),
        ("find_elements", json!({"by": "class_name", "value": "android", "max_bytes": 700})),
        ("get_screen", json!({"max_bytes": 200})),
        ("list_apps", json!({"max_bytes": 200})),
        ("get_device_logs", json!({"max_bytes": 200})),
    ] {
        let most = arguments["max_bytes"].as_u64().unwrap() as usize;
        let answer = text(&*phone, tool, arguments).await;
        assert!(answer.len() <= most, "{tool}: {} bytes", answer.len());
    }
    let small = failure(&*phone, "get_screen", json!({"max_bytes": 10})).await;
    assert_eq!(small, (-32602, "Parameter 'max_bytes' must be >= 200, got: 10".to_owned()));

    phone.phone().state.lock().unwrap().clipboard = Some("\n✂".repeat(1000));
    let clipboard = json_of(&*phone, "get_clipboard", json!({"max_bytes": 200})).await;
    let kept = clipboard["text"].as_str().unwrap().len();
    assert_eq!(clipboard["omitted"], 4000 - kept);
    assert!(kept > 50 && clipboard.to_string().len() <= 200, "{clipboard}");
    let steps = json!({"max_bytes": 300, "settle": false, "steps": [{"tool": "get_accessibility_tree"}, {"tool": "press_home"}]});
    let answer = run_steps(phone.clone(), steps).await.unwrap().joined_text();
    assert!(answer.len() <= 300, "{} bytes", answer.len());
    let steps =
        json!({"max_bytes": 300, "settle": false, "steps": [{"tool": "get_accessibility_tree"}, {"tool": "tap"}]});
    let message = run_steps(phone.clone(), steps).await.unwrap_err().message;
    assert!(message.starts_with("step 2 (tap) failed: ") && message.len() <= 300, "{message}");
}

#[tokio::test]
async fn apps_are_listed_opened_and_closed_by_package_or_name() {
    let phone = Paper::showing(vec![form()]);
    let apps = json_of(&phone, "list_apps", json!({"query": "NOTES"})).await;
    assert_eq!(apps, json!({"apps": [{"package": "org.sinew.notes", "label": "Notes"}]}));
    assert_eq!(text(&phone, "open_app", json!({"app": "notes"})).await, "Opened 'org.sinew.notes'");
    assert_eq!(text(&phone, "close_app", json!({"app": "org.sinew.notes"})).await, "Closed 'org.sinew.notes'");
    assert_eq!(text(&phone, "open_url", json!({"url": "https://example.com"})).await, "Opened 'https://example.com'");
    assert_eq!(failure(&phone, "open_app", json!({"app": "no such app"})).await.0, -32602);
    assert_eq!(text(&phone, "close_app", json!({"app": "Calculator"})).await, "Closed 'com.android.calculator2'");
    let (code, message) = failure(&phone, "close_app", json!({"app": "android"})).await;
    assert_eq!((code, message.contains("com.android.settings, com.android.calculator2")), (-32602, true), "{message}");
    for url in ["intent://x#Intent;end", "file:///data", "javascript:alert(1)", "example.com", "https://a b", ""] {
        assert_eq!(failure(&phone, "open_url", json!({"url": url})).await.0, -32602, "{url}");
    }
    assert_eq!(phone.phone().state.lock().unwrap().opened, ["https://example.com"]);
}

#[tokio::test]
async fn nothing_is_opened_where_nobody_would_see_it() {
    let phone = Paper::showing(vec![form()]);
    let attempts = [("open_app", json!({"app": "notes"})), ("open_url", json!({"url": "https://example.com"}))];
    for (tool, arguments) in attempts {
        phone.phone().state.lock().unwrap().locked = true;
        phone.phone().state.lock().unwrap().asleep = false;
        let (code, message) = failure(&phone, tool, arguments.clone()).await;
        assert_eq!((code, message.contains("is locked")), (-32001, true), "{message}");
        phone.phone().state.lock().unwrap().asleep = true;
        let (code, message) = failure(&phone, tool, arguments).await;
        assert_eq!((code, message.contains("WAKEUP")), (-32001, true), "{message}");
    }
    assert!(phone.phone().state.lock().unwrap().opened.is_empty());
}

#[tokio::test]
async fn acting_calls_take_turns() {
    let phone = Paper::showing(vec![form()]);
    let calls = (0..8).map(|_| call(&phone, "tap", json!({"x": 1, "y": 1})));
    let mut pending: Vec<_> = calls.map(Box::pin).collect();
    let mut done = 0;
    std::future::poll_fn(|context| {
        pending.retain_mut(|call| call.as_mut().poll(context).is_pending());
        done = 8 - pending.len();
        if pending.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    assert_eq!((done, phone.phone().most.load(Ordering::SeqCst)), (8, 1));
}

#[tokio::test]
async fn a_phone_tells_who_it_is() {
    let phone = Paper::showing(vec![form()]);
    let info = phone.info();
    assert_eq!((info.key.to_string().as_str(), info.suggested_id.as_str()), ("phone:paper", "paper-1"));
    assert_eq!((info.family.name.as_str(), info.name.as_str(), info.version.as_str()), ("phone", "Paper 1", "15"));
    assert_eq!(info.status, Status::Ready);
    assert_eq!(phone.tools(), tools(Profile::Full));

    let about = sinew_phones::PhoneIdentity { serial: "R58M".to_owned(), ..Default::default() };
    let limited = LimitedPhone::new(&about, Profile::Compact, "unauthorized", "allow USB debugging");
    assert_eq!(limited.tools(), tools(Profile::Compact), "lists stay as they are");
    assert!(matches!(&limited.info().status, Status::Limited { state, .. } if state == "unauthorized"));
    let (code, message) = failure(&limited, "tap", json!({})).await;
    assert_eq!((code, message.as_str()), (-32001, "phone R58M is unauthorized: allow USB debugging"));
}

#[tokio::test(start_paused = true)]
async fn nobody_acts_between_two_steps() {
    let phone = Arc::new(Paper::showing(vec![form()]));
    let steps = json!({"settle": false, "steps": [
        {"tool": "press_key", "arguments": {"key": "ENTER"}}, {"wait": 1000}, {"tool": "press_key", "arguments": {"key": "ENTER"}},
    ]});
    let (done, _) = tokio::join!(run_steps(phone.clone(), steps), async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        text(&*phone, "press_back", json!({})).await
    });
    done.unwrap();
    let keys = phone.phone().state.lock().unwrap().keys.clone();
    assert_eq!((keys.len(), keys[0] == keys[1], keys[1] == keys[2]), (3, true, false), "{keys:?}");
}

#[tokio::test(start_paused = true)]
async fn the_compact_list_looks_at_the_screen_with_what_it_has() {
    let paper = Paper::default();
    paper.state.lock().unwrap().screens = vec![form()];
    let phone = Arc::new(PhoneDevice::new(paper, Profile::Compact));
    let steps = json!({"steps": [
        {"expect": {"screen": {"text": "Submit"}}},
        {"if": {"screen": {"text": "Nowhere"}}, "then": [{"tool": "press_key", "arguments": {"key": "BACK"}}]},
        {"expect": {"screen": {"text": "Nowhere"}, "is": "gone"}},
    ]});
    let steps = run_steps(phone.clone(), steps).await;
    assert!(steps.is_ok() && phone.phone().state.lock().unwrap().keys.is_empty(), "{steps:?}");
    // A tool that the list lacks is not a step.
    let error = run_steps(phone, json!({"steps": [{"tool": "open_url"}]})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments, "{error}");
}
