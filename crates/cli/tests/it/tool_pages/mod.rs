//! `docs/tools/`: the specification of every built-in and phone tool, printed from the code and from the
//! words beside it. `UPDATE_DOCS=1 cargo test -p sinew tool_pages` rewrites the pages.
//!
//! Each example is played on the virtual phone, and its answer stands in the page: one that changes
//! makes the page stale. The pages are judged and compared as a repository's own would be.

mod stage;
mod words;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};
use sinew_phones::{Profile, tools};
use sinew_spec::{Document, Example, ToolSpec, compare, judge, print};
use sinew_tool::finding::Severity;
use sinew_tool::{ErrorKind, Tool};

use words::{ARGUMENTS, PAGES, Scene, TOOLS, Words};

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools").join(file)
}

/// The tools as the code has them.
fn from_code() -> Vec<Tool> {
    tools(Profile::Full).iter().cloned().chain(stage::built_in()).collect()
}

fn page(title: &str, intro: &str, names: &[&str], all: &[Tool]) -> String {
    let spec = |name: &&str| {
        let tool = all.iter().find(|tool| tool.name == **name).unwrap_or_else(|| panic!("{name} is no tool"));
        let words = TOOLS.iter().find(|words| words.name == *name).unwrap_or_else(|| panic!("{name} has no words"));
        specification(tool, words)
    };
    let specs: Vec<ToolSpec> = names.iter().map(spec).collect();
    let note = "<!-- Printed from the code; a test checks that it is fresh and plays every example. -->";
    print::render_markdown(&format!("{title} - MCP Tool Specification"), &format!("{note}\n\n{intro}"), &specs)
}

fn specification(tool: &Tool, words: &Words) -> ToolSpec {
    let mut spec = ToolSpec::from_tool(tool);
    words.purpose.clone_into(&mut spec.purpose);
    describe(&mut spec.input, words.name);
    let result = match (&tool.output_schema, words.name) {
        (Some(schema), _) => (**schema).clone(),
        (None, "capture_screenshot") => {
            json!({"type": "string", "contentMediaType": "image/jpeg", "contentEncoding": "base64"})
        }
        (None, _) => json!({"type": "string"}),
    };
    let mut success = json!({"description": words.answers});
    for (key, value) in result.as_object().into_iter().flatten() {
        success[key] = value.clone();
    }
    spec.output = Some(json!({"anyOf": [success, failure()]}));
    spec.errors = errors(tool);
    if tool.hints.read_only != Some(true) {
        spec.idempotency = format!("- **Idempotent**: {}\n- **Explanation**: {}", words.again.0, words.again.1);
    }
    let arguments: Value = serde_json::from_str(words.call).unwrap_or_else(|error| panic!("{}: {error}", words.name));
    let call = json!({"tool_name": words.name, "arguments": arguments});
    let answer = stage::play(words.scene, words.name, &arguments);
    spec.examples = vec![
        Example { intro: words.scene.says().to_owned(), language: "json".to_owned(), body: format!("{call:#}") },
        Example { intro: ANSWER.to_owned(), language: answer.language.to_owned(), body: answer.body },
    ];
    words.security.clone_into(&mut spec.security);
    spec
}

const ANSWER: &str = "The answer:";

/// Gives every argument its words and an example.
fn describe(input: &mut Value, tool: &str) {
    for (name, schema) in input.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let own = format!("{tool}.{name}");
        let words = |wanted: &str| ARGUMENTS.iter().find(|(key, ..)| *key == wanted);
        let (_, description, example) =
            words(&own).or_else(|| words(name)).unwrap_or_else(|| panic!("{own} has no words"));
        schema["description"] = json!(description);
        let example: Value = serde_json::from_str(example).unwrap_or_else(|error| panic!("{own}: {error}"));
        schema["examples"] = json!([example]);
    }
}

fn failure() -> Value {
    json!({
        "description": "The standard failure object; docs/errors.md says where each door carries it.",
        "type": "object",
        "properties": {
            "status": {"const": "failure"},
            "error_type": {"type": "string", "description": "A stable word for the kind of error."},
            "error_message": {"type": "string", "description": "What went wrong, and what to do about it."},
            "error_details": {"type": "object", "description": "Particulars, where there are any."},
        },
        "required": ["status", "error_type", "error_message"],
    })
}

fn errors(tool: &Tool) -> String {
    let takes = |name: &str| tool.properties().is_some_and(|properties| properties.contains_key(name));
    let is_phones = tools(Profile::Full).find(&tool.name).is_some();
    let acts = tool.hints.read_only != Some(true);
    let kinds = [
        (ErrorKind::InvalidArguments, true),
        (ErrorKind::UnknownDevice, !is_phones && takes("device")),
        (ErrorKind::BadCursor, !is_phones && takes("since")),
        (ErrorKind::DeviceNeeded, is_phones),
        (ErrorKind::PermissionDenied, is_phones),
        (ErrorKind::ElementNotFound, takes("element_id") || tool.name == "run_steps"),
        (ErrorKind::ActionFailed, is_phones && acts),
        (ErrorKind::Timeout, is_phones),
        (ErrorKind::DeviceAway, is_phones),
        (ErrorKind::DeviceLost, is_phones),
    ];
    let lines = kinds.iter().filter(|(_, applies)| *applies).map(|(kind, _)| {
        let row = kind.row();
        format!("- `{}`: {}", row.error_type, row.meaning)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_pages_are_fresh_and_their_examples_answer_what_they_show() {
    let all = from_code();
    for (file, title, intro, names) in PAGES {
        let expected = page(title, intro, names, &all);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(path("")).expect("the folder can be made");
            std::fs::write(path(file), &expected).expect("the page can be written");
        }
        let found = std::fs::read_to_string(path(file)).unwrap_or_default();
        assert!(found == expected, "docs/tools/{file} is stale; run: UPDATE_DOCS=1 cargo test -p sinew tool_pages");
    }
}

#[test]
fn every_tool_is_on_exactly_one_page() {
    let told: Vec<&str> = PAGES.iter().flat_map(|(.., names)| *names).copied().collect();
    let names: BTreeSet<String> = from_code().into_iter().map(|tool| tool.name).collect();
    assert_eq!(told.len(), names.len());
    assert_eq!(told.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), names);
}

#[test]
fn the_pages_pass_the_judgement_they_ask_of_others() {
    let config = judge::Config::default();
    for (file, ..) in PAGES {
        let document = Document::parse(&std::fs::read_to_string(path(file)).expect("a page"));
        assert!(document.is_canonical(), "{file}");
        let findings = judge::lint(&document, &config);
        let bad: Vec<_> = findings.iter().filter(|finding| finding.severity > Severity::Advice).collect();
        assert!(bad.is_empty(), "docs/tools/{file}: {bad:#?}");
    }
}

#[test]
fn what_the_pages_promise_is_what_the_code_keeps() {
    let code = from_code();
    for (file, ..) in PAGES {
        let document = Document::parse(&std::fs::read_to_string(path(file)).expect("a page"));
        for mut told in document.to_tools() {
            let tool = code.iter().find(|tool| tool.name == told.name).expect("a tool");
            // The page adds the failure object; the success is the tool's own schema.
            let success = told.output_schema.take().map(|schema| schema["anyOf"][0].clone()).expect("a result");
            if tool.output_schema.is_some() {
                told.output_schema = Some(std::sync::Arc::new(success));
            }
            told.hints = tool.hints;
            let changes = compare::diff(std::slice::from_ref(tool), &[told]).changes;
            let grave: Vec<_> = changes.iter().filter(|change| change.impact > compare::Impact::Cosmetic).collect();
            assert!(grave.is_empty(), "{file}: {grave:#?}");
        }
    }
}

/// Read from the page alone, as somebody would who follows it.
#[test]
fn whoever_follows_an_example_gets_the_answer_beside_it() {
    for (file, ..) in PAGES {
        let document = Document::parse(&std::fs::read_to_string(path(file)).expect("a page"));
        for tool in &document.tools {
            let [call, answer] = tool.examples.as_slice() else { panic!("{}: a call and its answer", tool.name) };
            let scene = Scene::ALL.into_iter().find(|scene| scene.says() == call.intro.trim()).expect("a scene");
            let call: Value = serde_json::from_str(&call.body).expect("a call is JSON");
            let played = stage::play(scene, call["tool_name"].as_str().expect("a name"), &call["arguments"]);
            assert_eq!(played.body, answer.body, "{file}: {}", tool.name);
        }
    }
}
