//! Arbitrary files of routines, and recordings of calls with arbitrary values: what is recorded can be read again, and a
//! value stays a value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use sinew_routines::{RecordedCall, Routine, new_from_template, record};

fuzz_target!(|input: (&str, &str, &str)| {
    let (text, value, name) = input;
    let _ = Routine::read("x", text);
    let filled = new_from_template("x").replace("{{", "").replace("}}", "");
    let start = filled.find("```yaml\n").expect("steps") + "```yaml\n".len();
    let _ = Routine::read("x", &format!("{}{text}\n```\n", &filled[..start]));
    let call = |tool: &str, args: serde_json::Value| RecordedCall {
        device: "board".to_owned(),
        tool: tool.to_owned(),
        args: args.as_object().cloned().unwrap_or_default(),
        answer: json!({"found": value}),
        ..RecordedCall::default()
    };
    let calls = [call("list", json!({})), call("write", json!({"text": value, "label": name, name: [value]}))];
    // A double brace is a blank to fill in, wherever it stands.
    if let Ok(file) = record("x", &calls)
        && !file.contains("{{")
    {
        let routine = Routine::read("x", &file).unwrap_or_else(|problem| panic!("{problem}\n{file}"));
        assert_eq!(routine.steps.calls().len(), 2, "{file}");
    }
});
