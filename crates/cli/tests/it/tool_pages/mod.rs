//! `docs/tools/`: the specification of every built-in and phone tool, printed from the code and from the
//! words beside it. `UPDATE_DOCS=1 cargo test -p sinew tool_pages` rewrites the pages.
//!
//! Each example is played on the virtual phone, and its answer stands in the page: one that changes
//! makes the page stale. The pages are judged and compared as a repository's own would be.

mod stage;
mod words;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use sinew_phones::tools::row::ToolRow;
use sinew_phones::tools::table::{self, GROUPS, ToolGroup};
use sinew_spec::{Document, Example, ToolSpecification, compare, lint, print};
use sinew_tool::finding::Severity;
use sinew_tool::{ErrorKind, Tool};

use words::{ARGUMENTS, TOOLS};

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools").join(file)
}

/// A page: its file and its text.
fn pages() -> Vec<(&'static str, String)> {
    let phone_page = |group: &'static ToolGroup| {
        let specs: Vec<ToolSpecification> = group.rows.iter().map(phone_tool).collect();
        (group.file, render(group.title, group.introduction, &specs))
    };
    let built_in: Vec<ToolSpecification> = stage::built_in().iter().map(built_in_tool).collect();
    let last = (words::FILE, render(words::TITLE, words::INTRODUCTION, &built_in));
    GROUPS.iter().map(phone_page).chain([last]).collect()
}

fn render(title: &str, introduction: &str, specs: &[ToolSpecification]) -> String {
    let note = "<!-- Printed from the code; a test checks that it is fresh and plays every example. -->";
    print::render_markdown(&format!("{title} - MCP Tool Specification"), &format!("{note}\n\n{introduction}"), specs)
}

fn phone_tool(row: &ToolRow) -> ToolSpecification {
    let tool = row.to_tool(sinew_phones::Profile::Tester);
    let mut spec = ToolSpecification::from_tool(&tool);
    let arguments: Vec<_> =
        row.arguments().map(|argument| (argument.name, argument.explanation, argument.example)).collect();
    describe(Arc::make_mut(&mut spec.input), &arguments);
    spec.output = Some(Arc::new(output(&tool, row.page.answer)));
    spec.errors = errors(&tool, true);
    if let Some((word, why)) = row.page.repeat {
        spec.idempotency = format!("- **Idempotent**: {word}\n- **Explanation**: {why}");
    }
    let arguments = parsed(row.page.example);
    let answer = stage::play(row.page.scene, row.name, &arguments);
    spec.examples = examples(row.page.scene.sentence(), row.name, arguments, answer);
    row.page.security.clone_into(&mut spec.security);
    spec
}

fn built_in_tool(tool: &Tool) -> ToolSpecification {
    let words = TOOLS.iter().find(|words| words.name == tool.name);
    let words = words.unwrap_or_else(|| panic!("{} has no words", tool.name));
    let mut spec = ToolSpecification::from_tool(tool);
    words.purpose.clone_into(&mut spec.purpose);
    describe(Arc::make_mut(&mut spec.input), ARGUMENTS);
    spec.output = Some(Arc::new(output(tool, words.answers)));
    spec.errors = errors(tool, false);
    let arguments = parsed(words.call);
    let answer = stage::play_on_gateway(words.name, &arguments);
    spec.examples = examples(words::SCENE, words.name, arguments, answer);
    words.security.clone_into(&mut spec.security);
    spec
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn examples(scene: &str, tool: &str, arguments: Value, answer: stage::Answer) -> Vec<Example> {
    let call = json!({"tool_name": tool, "arguments": arguments});
    vec![
        Example { intro: scene.to_owned(), language: "json".to_owned(), body: format!("{call:#}") },
        Example { intro: ANSWER.to_owned(), language: answer.language.to_owned(), body: answer.body },
    ]
}

const ANSWER: &str = "The answer:";

fn output(tool: &Tool, answers: &str) -> Value {
    let result = match (&tool.output_schema, tool.name.as_str()) {
        (Some(schema), _) => (**schema).clone(),
        (None, "capture_screenshot") => {
            json!({"type": "string", "contentMediaType": "image/jpeg", "contentEncoding": "base64"})
        }
        (None, _) => json!({"type": "string"}),
    };
    let mut success = json!({"description": answers});
    for (key, value) in result.as_object().into_iter().flatten() {
        success[key] = value.clone();
    }
    json!({"anyOf": [success, failure()]})
}

/// Gives every argument its words and an example.
fn describe(input: &mut Value, words: &[(&str, &str, &str)]) {
    for (name, schema) in input.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let found = words.iter().find(|(key, ..)| key == name);
        let (_, description, example) = found.unwrap_or_else(|| panic!("{name} has no words"));
        schema["description"] = json!(description);
        schema["examples"] = json!([parsed(example)]);
    }
}

fn failure() -> Value {
    json!({
        "description": "The standard failure object; docs/errors.md says where each endpoint carries it.",
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

fn errors(tool: &Tool, is_phones: bool) -> String {
    let takes = |name: &str| tool.properties().is_some_and(|properties| properties.contains_key(name));
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

/// The pages as they are kept.
fn documents() -> impl Iterator<Item = (&'static str, Document)> {
    let files = GROUPS.iter().map(|group| group.file).chain([words::FILE]);
    files.map(|file| (file, Document::parse(&std::fs::read_to_string(path(file)).expect("a page"))))
}

#[test]
fn the_pages_are_fresh_and_their_examples_answer_what_they_show() {
    for (file, expected) in pages() {
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(path("")).expect("the folder can be made");
            std::fs::write(path(file), &expected).expect("the page can be written");
        }
        let found = std::fs::read_to_string(path(file)).unwrap_or_default();
        assert!(found == expected, "docs/tools/{file} is stale; run: UPDATE_DOCS=1 cargo test -p sinew tool_pages");
    }
}

#[test]
fn the_pages_pass_the_judgement_they_ask_of_others() {
    let config = lint::LintConfig::default();
    for (file, document) in documents() {
        assert!(document.is_canonical(), "{file}");
        let findings = lint::check(&document, &config);
        let bad: Vec<_> = findings.iter().filter(|finding| finding.severity > Severity::Advice).collect();
        assert!(bad.is_empty(), "docs/tools/{file}: {bad:#?}");
    }
}

#[test]
fn what_the_pages_promise_is_what_the_code_keeps() {
    let code: Vec<Tool> =
        table::rows().map(|row| row.to_tool(sinew_phones::Profile::Tester)).chain(stage::built_in()).collect();
    for (file, document) in documents() {
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
    for (file, document) in documents() {
        for tool in &document.tools {
            let [call, answer] = tool.examples.as_slice() else { panic!("{}: a call and its answer", tool.name) };
            let (scene, call) = (call.intro.trim(), parsed(&call.body));
            let name = call["tool_name"].as_str().expect("a name");
            let played = match table::find(name).map(|row| row.page.scene) {
                Some(known) if known.sentence() == scene => stage::play(known, name, &call["arguments"]),
                Some(other) => panic!("{name} starts from {other:?}, the page says {scene}"),
                None => stage::play_on_gateway(name, &call["arguments"]),
            };
            assert_eq!(played.body, answer.body, "{file}: {}", tool.name);
        }
    }
}
