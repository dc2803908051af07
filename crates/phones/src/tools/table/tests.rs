//! What holds for every row.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sinew_tool::{Effect, Tool, Toolset, portable};

use super::*;
use crate::tools::list::INSTRUCTIONS;
use crate::tools::{Profile, reference_tools, tools};

/// The bytes of a list, in the longer of its two forms: as the phone has it, and as AI clients get it.
fn size<'a>(tools: impl Iterator<Item = &'a Tool>) -> usize {
    let (mut own, mut portable) = (Vec::new(), Vec::new());
    for tool in tools {
        let mut listed = tool.to_json();
        own.push(listed.clone());
        let input = portable::input(&tool.input_schema);
        assert!(input.notes.is_empty(), "{}: {:?}", tool.name, input.notes);
        listed["inputSchema"] = input.schema;
        if let Some(output) = &tool.output_schema {
            listed["outputSchema"] = portable::output(output).schema;
        }
        portable.push(listed);
    }
    let size = |tools: Vec<Value>| json!({ "tools": tools }).to_string().len();
    size(own).max(size(portable))
}

/// The bytes that an AI client gets at `/mcp`, where every tool also has the argument that names the phone.
fn size_at_mcp(tools: &[&Tool]) -> usize {
    let device = r#""device":{"type":"string"},"#.len();
    size(tools.iter().copied()) + tools.len() * device
}

#[test]
fn the_lists_keep_their_budgets() {
    let (full, compact, tester) = (tools(Profile::Full), tools(Profile::Compact), tools(Profile::Tester));
    let of = |tools: &Toolset| size_at_mcp(&tools.iter().collect::<Vec<_>>());
    let first: Vec<&Tool> = full.iter().filter(|tool| !LATER.contains(&tool.name.as_str())).collect();
    let sizes = (of(&compact), of(&full), of(&tester), size_at_mcp(&first));
    assert!(sizes.0 <= 5 * 1024 && sizes.1 <= 18_000 && sizes.2 <= 32_000 && sizes.3 <= 15_000, "{sizes:?}");
    assert_eq!((reference_tools().len(), first.len()), (29, 35));
    assert_eq!((compact.len(), full.len(), tester.len()), (13, 38, 58));
}

/// The tools of the full list that 0.1.0 did not have.
const LATER: [&str; 3] = ["get_element", "wait_until", "list_notifications"];

#[test]
fn every_list_has_what_the_instructions_name() {
    let is_of_name = |character: char| character.is_ascii_lowercase() || character == '_';
    let words: BTreeSet<&str> = INSTRUCTIONS.split(|character| !is_of_name(character)).collect();
    let named: Vec<&str> = rows().map(|row| row.name).filter(|name| words.contains(name)).collect();
    assert!(named.contains(&"get_screen") && named.contains(&"get_element"), "{named:?}");
    for profile in [Profile::Compact, Profile::Full, Profile::Tester] {
        let missing: Vec<&&str> = named.iter().filter(|name| tools(profile).find(name).is_none()).collect();
        assert!(missing.is_empty(), "{profile:?}: {missing:?}");
    }
    // What looks like a name of a tool is one, or an argument that every list takes.
    let is_known =
        |word: &&&str| find(word).is_some() || rows().any(|row| row.arguments().any(|own| own.name == **word));
    let unknown: Vec<&&str> = words.iter().filter(|word| word.contains('_')).filter(|word| !is_known(word)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn the_compact_list_names_the_element_alone_and_no_answers() {
    let compact = tools(Profile::Compact);
    let get_element = compact.find("get_element").unwrap();
    assert_eq!(get_element.properties().unwrap().keys().collect::<Vec<_>>(), ["element_id"]);
    assert!(compact.iter().all(|tool| tool.output_schema.is_none()));
}

#[test]
fn names_are_unique_and_the_references_tools_come_first() {
    let names: BTreeSet<&str> = rows().map(|row| row.name).collect();
    assert_eq!(names.len(), rows().count());
    let from_reference: Vec<bool> = rows().map(|row| row.reference.is_some()).collect();
    assert!(from_reference.is_sorted_by(|one, two| one >= two), "{from_reference:?}");
}

#[test]
fn every_description_says_more_than_the_name() {
    for row in rows() {
        assert!(row.description.split_whitespace().count() >= 5, "{}: {}", row.name, row.description);
    }
}

#[test]
fn what_the_reference_accepts_is_accepted_here_with_the_same_defaults() {
    for row in rows() {
        let Some(plain) = &row.reference else { continue };
        let (ours, plain) = (row.to_tool(Profile::Full), plain.to_tool(row.name));
        let properties = ours.properties().unwrap();
        for (name, theirs) in plain.properties().unwrap() {
            let own = properties.get(name).unwrap_or_else(|| panic!("{}.{name} is missing", row.name));
            assert!(own.get("type").is_none() || own["type"] == theirs["type"], "{}.{name}", row.name);
            let default = theirs.get("default").filter(|default| **default != json!(false));
            assert_eq!(own.get("default"), default, "{}.{name}", row.name);
        }
        let needed = plain.required();
        assert!(ours.required().iter().all(|name| needed.contains(name)), "{}", row.name);
    }
}

#[test]
fn reading_tools_say_so_and_acting_tools_take_settle_and_return() {
    for row in rows() {
        let tool = row.to_tool(Profile::Full);
        let takes = tool.properties().unwrap().contains_key("return");
        assert_eq!(row.acts(), takes, "{}", row.name);
        assert_eq!(tool.hints.read_only, (row.impact.effect() == Effect::Read).then_some(true), "{}", row.name);
        assert_eq!(row.page.repeat.is_some(), row.acts(), "{}", row.name);
    }
}

#[test]
fn every_example_is_json() {
    for row in rows() {
        let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
        assert!(is_json(row.page.example), "{}", row.name);
        assert!(row.page.scene.steps().iter().all(|(tool, args)| find(tool).is_some() && is_json(args)));
        for argument in row.arguments() {
            assert!(is_json(argument.example), "{}.{}", row.name, argument.name);
        }
    }
}

#[test]
fn only_what_destroys_something_by_itself_is_dangerous() {
    let effect = |name: &str| find(name).map(|row| row.impact.effect());
    let dangerous: Vec<&str> = rows().filter(|row| row.impact.effect() == Effect::Danger).map(|row| row.name).collect();
    // `run_steps` does nothing by itself, and each of its steps is decided as what it is.
    assert_eq!(
        dangerous,
        [
            "close_app",
            "install_app",
            "uninstall_app",
            "clear_app_data",
            "grant_permission",
            "send_intent",
            "write_file"
        ]
    );
    let is_tester = |row: &&ToolRow| row.impact.effect() == Effect::Danger && row.profile < Profile::Tester;
    assert_eq!(rows().filter(is_tester).count(), 1, "others are for testers alone");
    assert_eq!((effect("tap"), effect("input_text")), (Some(Effect::Change), Some(Effect::Change)));
    assert_eq!(effect("get_screen"), Some(Effect::Read));
}
