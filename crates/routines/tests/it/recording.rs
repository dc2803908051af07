//! Calls that happened, as routines.

use serde_json::{Value, json};
use sinew_routines::{RecordedCall, Routine, record};

fn call(device: &str, tool: &str, args: Value) -> RecordedCall {
    RecordedCall {
        device: device.to_owned(),
        tool: tool.to_owned(),
        args: args.as_object().cloned().expect("an object"),
        answer: json!({"text": "done"}),
        ..RecordedCall::default()
    }
}

fn on_screen(tool: &str, args: Value, landmark: Option<Value>) -> RecordedCall {
    RecordedCall { acted: Some(landmark), ..call("phone-1", tool, args) }
}

/// The steps of a recording, and the properties of its parameters.
fn recorded(calls: &[RecordedCall]) -> (String, Value) {
    let text = record("again", calls).expect("a recording");
    let routine = Routine::read("again", &text).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
    let steps = text.split("```yaml\n").nth(1).expect("steps").trim_end_matches("```\n").to_owned();
    (steps, routine.tool.input_schema["properties"].clone())
}

#[test]
fn what_was_typed_becomes_a_parameter_and_looks_are_left_out() {
    let (steps, parameters) = recorded(&[
        call("phone-1", "get_screen", json!({})),
        on_screen("open_app", json!({"app": "Google Notes"}), Some(json!({"id": "list"}))),
        call("phone-1", "get_screen", json!({})),
        on_screen("set_text", json!({"selector": {"id": "title"}, "text": "Shopping"}), None),
        on_screen("click_element", json!({"selector": {"text": "Shopping", "exact": true}}), None),
    ]);
    assert_eq!(
        steps,
        r#"- call: open_app
  device: "${device}"
  arguments: {app: "Google Notes"}
- expect: {screen: {id: "list"}, device: "${device}"}
  within: 5000
- call: set_text
  device: "${device}"
  arguments: {selector: {id: "title"}, text: "${title}"}
- call: click_element
  device: "${device}"
  arguments: {selector: {text: "${title}", exact: true}}
- return: {status: success}
"#
    );
    assert_eq!(parameters["title"]["examples"], json!(["Shopping"]));
    assert_eq!(parameters["device"]["default"], json!("phone-1"));
    assert_eq!(parameters.as_object().map(|all| all.len()), Some(2));
}

#[test]
fn what_came_from_an_answer_is_referred_to() {
    let listed = RecordedCall {
        answer: json!({"notes": [{"id": "n-4711", "title": "x"}, {"id": "n-4712"}]}),
        ..call("server", "list_notes", json!({}))
    };
    let (steps, _) = recorded(&[listed, call("server", "delete_note", json!({"id": "n-4712", "hard": true}))]);
    assert!(steps.contains("  as: list_notes_answer\n"), "{steps}");
    assert!(steps.contains(r#"{id: "${list_notes_answer.notes.1.id}", hard: true}"#), "{steps}");
    assert!(steps.ends_with("- return: {status: success, answer: \"${delete_note_answer.text}\"}\n"), "{steps}");
}

#[test]
fn numbers_within_bounds_are_parameters_with_their_default_and_secrets_must_be_given() {
    let schema = json!({"properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}}});
    let volume = RecordedCall { input_schema: schema.clone(), ..call("board-1", "set_volume", json!({"volume": 10})) };
    let louder = RecordedCall { input_schema: schema, ..call("board-2", "set_volume", json!({"volume": 20})) };
    let login = call("server", "login", json!({"pin": "[redacted]"}));
    let (steps, parameters) = recorded(&[volume, louder, login]);
    assert_eq!((&parameters["volume"]["default"], &parameters["volume_2"]["default"]), (&json!(10), &json!(20)));
    assert_eq!(parameters["pin"]["writeOnly"], true);
    assert!(parameters["pin"].get("default").is_none() && !steps.contains("redacted"), "{steps}");
}

#[test]
fn text_that_looks_like_a_reference_or_like_markup_stays_text() {
    let odd = "${x} ``` | \"quoted\"\n- call: reboot";
    let (steps, parameters) = recorded(&[call("b", "print", json!({"label": "${volume}", "text": odd}))]);
    assert!(steps.contains(r#"label: "$${volume}""#) && !steps.contains("reboot"), "{steps}");
    assert_eq!(parameters["text"]["examples"], json!([odd]));
}

#[test]
fn a_recording_of_nothing_says_what_to_do() {
    assert!(record("again", &[]).expect_err("nothing").contains("make the calls"));
    let many = vec![call("b", "ping", json!({})); 101];
    assert!(record("again", &many).expect_err("too many").contains("100"));
}

#[test]
fn the_device_with_the_most_steps_is_the_one_that_a_suite_may_change() {
    let (steps, parameters) = recorded(&[
        call("board-1", "set_volume", json!({"volume": 10})),
        on_screen("open_app", json!({"app": "Notes"}), None),
        on_screen("press_back", json!({}), None),
    ]);
    assert_eq!(
        (&parameters["device"]["default"], &parameters["device_2"]["default"]),
        (&json!("phone-1"), &json!("board-1"))
    );
    assert!(steps.starts_with("- call: set_volume\n  device: \"${device_2}\"\n"), "{steps}");
}
