//! `docs/tools/README.md` is printed from the code; `UPDATE_DOCS=1 cargo test -p sinew-phones` rewrites it.

use std::fmt::Write;

use sinew_phones::{Profile, reference_tools, tools};
use sinew_tool::{Effect, Tool, Value, portable};

fn page() -> String {
    let (full, compact, all) = (tools(Profile::Full), tools(Profile::Compact), tools(Profile::Tester));
    let reference = reference_tools();
    let mut page = String::from(
        "# The tools\n\n\
         Printed from the code. Each tool is specified in full on a page of its own kind: \
         [screen introspection](screen-introspection.md), [system actions](system-actions.md), \
         [touch actions](touch-actions.md), [gestures](gestures.md), [element actions](element-actions.md), \
         [text input](text-input.md), [utilities](utilities.md), those [made for models](made-for-models.md), [notifications](notifications.md), [app management](app-management.md), [files](files.md), [device state](device-state.md), and the \
         gateway's [built-in tools](built-in.md). What each way to a phone can do is in [phones.md](../phones.md).\n\n\
         ## Phone tools\n\n",
    );
    let of_reference =
        bytes_at_mcp(&mut full.iter().filter(|tool| reference.iter().any(|known| known.name == tool.name)));
    let _ = writeln!(
        page,
        "{} tools, {} bytes as a tool list at `/mcp`, where each also has the argument `device`; the {} of the remote-control reference take {}, the compact profile's {} take {}, the tester's {} take {}.\n",
        full.len(),
        bytes_at_mcp(&mut full.iter()),
        reference.len(),
        of_reference,
        compact.len(),
        bytes_at_mcp(&mut compact.iter()),
        all.len(),
        bytes_at_mcp(&mut all.iter()),
    );
    page.push_str("An argument in **bold** is required, one in *italics* is Sinew's own: accepted at every endpoint, listed at `/mcp` only.\n\n");
    page.push_str("| tool | says | arguments | in | effect |\n|---|---|---|---|---|\n");
    for tool in &*all {
        let known = reference.iter().find(|known| known.name == tool.name);
        let lists = match (known.is_some(), compact.find(&tool.name).is_some()) {
            (true, true) => "reference, compact",
            (true, false) => "reference",
            (false, true) => "Sinew's own, compact",
            (false, false) if full.find(&tool.name).is_none() => "tester",
            (false, false) => "Sinew's own",
        };
        let effect = match tool.effect {
            Some(Effect::Read) => "read",
            Some(Effect::Danger) => "danger",
            _ => "change",
        };
        let arguments =
            tool.properties().map(|properties| arguments(tool, known, properties.iter())).unwrap_or_default();
        let _ = writeln!(
            page,
            "| `{}` | {} | {arguments} | {lists} | {effect} |",
            tool.name,
            tool.description.replace('|', "\\|")
        );
    }
    page
}

/// The bytes of a list as MCP clients get it: in portable schemas, and with the argument that names the phone.
fn bytes_at_mcp(tools: &mut dyn Iterator<Item = &Tool>) -> usize {
    const DEVICE: &str = r#""device":{"type":"string"},"#;
    let portable = |tool: &Tool| {
        let mut listed = tool.to_json();
        listed["inputSchema"] = portable::input(&tool.input_schema).schema;
        if let Some(output) = &tool.output_schema {
            listed["outputSchema"] = portable::output(output).schema;
        }
        listed.to_string().len() + DEVICE.len() + 1
    };
    tools.map(portable).sum()
}

fn arguments<'a>(
    tool: &Tool,
    known: Option<&Tool>,
    properties: impl Iterator<Item = (&'a String, &'a Value)>,
) -> String {
    let shown = properties.map(|(name, schema)| {
        let listed = known.is_none_or(|known| known.properties().is_some_and(|own| own.contains_key(name)));
        let name = match (tool.required().contains(&name.as_str()), listed) {
            (true, _) => format!("**{name}**"),
            (_, false) => format!("*{name}*"),
            _ => name.clone(),
        };
        match schema.get("default") {
            Some(default) => format!("{name} = {default}"),
            None => name,
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn the_readme_says_how_large_the_lists_are() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let (full, compact) = (tools(Profile::Full), tools(Profile::Compact));
    let kilobytes = |tools: &sinew_tool::Toolset| bytes_at_mcp(&mut tools.iter()) as f64 / 1000.0;
    for sentence in [
        format!("{:.1} KB for {} tools, {:.1} KB compact", kilobytes(&full), full.len(), kilobytes(&compact)),
        format!("A phone has {} tools, including the {} of the", full.len(), reference_tools().len()),
        format!("offers {} of them", compact.len()),
    ] {
        assert!(readme.contains(&sentence), "README.md should say: {sentence}");
    }
}

#[test]
fn the_page_of_phone_tools_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools/README.md");
    let expected = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &expected).expect("docs/tools/README.md can be written");
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == expected, "docs/tools/README.md is stale; run: UPDATE_DOCS=1 cargo test -p sinew-phones docs");
}
