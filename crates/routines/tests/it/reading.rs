//! Files that are routines, and files that are not.

use sinew_routines::{Routine, new_from_template};
use sinew_steps::Limits;
use sinew_tool::json;

use crate::files::{GOOD_NIGHT, routine_file};

/// More than these steps need.
const LIMITS: Limits = Limits { written: 100, executed: 100, items: 100, time: std::time::Duration::from_secs(60) };

#[test]
fn a_specification_with_steps_is_a_tool() {
    let routine = Routine::read("good_night", GOOD_NIGHT).unwrap();
    assert_eq!((&*routine.tool.name, routine.tool.required()), ("good_night", vec!["room"]));
    assert_eq!(routine.tool.version.to_string(), "1.2.0");
    let uses: Vec<_> = routine.tool.uses.iter().map(|used| (used.device.as_deref(), used.tool.as_str())).collect();
    assert_eq!(
        uses,
        [(None, "find_elements"), (None, "self.relay.set"), (Some("kitchen"), "self.audio_speaker.set_volume")]
    );
}

#[test]
fn a_new_file_is_a_routine_once_its_blanks_are_filled() {
    let text = new_from_template("open_door");
    let blank = Routine::read("open_door", &text).unwrap_err();
    assert!(blank.line == 9 && blank.message.contains("filled in"), "{blank}");
    let filled = text.replace("{{", "").replace("}}", "");
    let routine = Routine::read("open_door", &filled);
    assert!(routine.is_ok(), "{routine:?}");
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let steps = |steps: &str| routine_file("x", steps);
    let cases = [
        ("no tool here".to_owned(), 1, "describes no tool"),
        (GOOD_NIGHT.to_owned(), 3, "called `good_night`, and the file `x.md`"),
        (routine_file("x", "- wait: 1").replace("### Steps", "### Further"), 1, "no section `Steps`"),
        (routine_file("x", "- wait: 1").replace("```yaml", "yaml"), 1, "fenced block"),
        (steps("- call: a\n- call: b\n  argument: {}"), 2, "step 2: a step with `call` has no `argument`"),
        (steps("- call: a\n  arguments: {b: '${nobody}'}"), 1, "nothing is known yet"),
        (steps("- if: {value: 1, is: 1}\n  then:\n    - wait: 1\n    - wat: 1"), 4, "step 1.then.2"),
        (steps("- call: &a x\n- call: *a"), 1, "anchors"),
        (steps("- each: [1]\n  do: []\n  as: item\n- {"), 1, ""),
        (steps("call: x"), 1, "must be a list"),
    ];
    for (text, line, part) in cases {
        let first = text.lines().position(|line| line.contains("```yaml")).map_or(0, |index| index + 1);
        let problem = Routine::read("x", &text).unwrap_err();
        assert!(problem.message.contains(part), "{text}\n{problem}");
        if first > 0 && text.contains("### Steps") && part.contains("step") {
            assert_eq!(problem.line, first + line, "{text}\n{problem}");
        }
    }
}

#[test]
fn values_never_become_structure() {
    let text = routine_file("x", "- call: say\n  arguments: {text: 'Hello ${who}', all: '${who}'}").replace(
        "This tool takes no parameters.",
        "| Name | Type | Required | Description |\n|---|---|---|---|\n| `who` | string | Yes | Who. |",
    );
    let routine = Routine::read("x", &text).unwrap();
    let hostile = "${other}\", \"admin\": \"yes";
    let scope = json!({"who": hostile}).as_object().cloned().unwrap();
    let planned = routine.steps.known_calls(&scope, &LIMITS);
    assert_eq!(planned[0].args["text"], format!("Hello {hostile}"));
    assert_eq!(planned[0].args["all"], hostile);
    assert_eq!(planned[0].args.len(), 2);
}

#[test]
fn a_return_that_can_never_fit_the_output_schema_is_refused_with_its_line() {
    let with = |returned: &str| GOOD_NIGHT.replace("- return: {room: '${room}'}", returned);
    for (returned, part) in [
        ("- return: {room: 5}", "`room` must be"),
        ("- return: {}", "`room`"),
        ("- wait: 1", "there is no step `return`"),
        (
            "- if: {value: 1, is: 1}\n  then:\n    - return: {room: '${room}'}\n  else:\n    - return: nothing",
            ".else.1: ",
        ),
    ] {
        let text = with(returned);
        let problem = Routine::read("good_night", &text).unwrap().check_returns().expect_err(returned);
        assert!(problem.message.contains("output schema") && problem.message.contains(part), "{returned}: {problem}");
        let first = text.lines().position(|line| line.contains("```yaml")).expect("steps") + 1;
        assert!(problem.line > first && problem.line <= text.lines().count(), "{problem}");
    }
    // What has references is known only when it is returned.
    assert_eq!(Routine::read("good_night", &with("- return: '${room}'")).unwrap().check_returns(), Ok(()));
}
