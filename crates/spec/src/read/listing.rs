//! The JSON formats: a `tools/list` result, a manifest, an array of tools, a single tool.

use serde_json::{Map, Value, json};
use sinew_tool::tool::VERSION_KEY;
use sinew_tool::{Manifest, Tool};

use super::labels::FURTHER;
use super::places::Places;
use super::{Document, Format, Problem};
use crate::json::{self, JsonKind, JsonNode};
use crate::lint::rules;
use crate::model::ToolSpecification;
use sinew_tool::finding::Span;

pub(super) fn read(text: &str) -> Document {
    read_as(text, None)
}

pub(super) fn read_as(text: &str, format: Option<Format>) -> Document {
    let mut document = Document::empty(format.unwrap_or(Format::ToolsList), text.to_owned());
    let reading = match json::read(text, Span::new(0, text.len())) {
        Ok(reading) => reading,
        Err(fault) => {
            let problem = Problem { rule: &rules::LIST_NOT_JSON, span: fault.span, message: fault.message };
            document.problems.push(problem);
            return document;
        }
    };
    for slip in &reading.mistakes {
        let message = slip.kind.says().to_owned();
        document.problems.push(Problem { rule: &rules::LIST_NOT_JSON, span: slip.span, message });
    }
    let root = &reading.values[0];
    let root = root.get("result").unwrap_or(root);
    if format.is_none() && root.get("instructions").is_some() {
        document.format = Format::Manifest;
    }
    if document.format == Format::Manifest {
        document.intro = root.get("instructions").and_then(JsonNode::as_str).unwrap_or_default().to_owned();
        if let Err(message) = Manifest::from_json(&root.to_value()) {
            document.problems.push(Problem { rule: &rules::LIST_SHAPE, span: root.span, message });
        }
    }
    let entries: &[JsonNode] = match (&root.kind, root.get("tools")) {
        (JsonKind::Array(entries), _) => entries,
        (_, Some(JsonNode { kind: JsonKind::Array(entries), .. })) => entries,
        _ if root.get("name").is_some() => std::slice::from_ref(root),
        (_, tools) => {
            let span = tools.map_or(root.span, |tools| tools.span);
            let message = "expected an array of tools under `tools`".to_owned();
            document.problems.push(Problem { rule: &rules::LIST_SHAPE, span, message });
            &[]
        }
    };
    if let Some(refused) = super::refuse_tools(entries.len()) {
        return refused;
    }
    for (index, entry) in entries.iter().enumerate() {
        match spec(entry.to_value()) {
            Ok(spec) => document.tools.push(with_places(spec, entry)),
            Err(problem) if document.format != Format::Manifest => {
                let message = format!("tools[{index}]: {problem}");
                document.problems.push(Problem { rule: &rules::LIST_SHAPE, span: entry.span, message });
            }
            // Already reported by the manifest's own parser.
            Err(_) => {}
        }
    }
    let beside = beside_tools(root);
    if !beside.is_empty() {
        document.further = fenced_json(&beside);
    }
    if let Some(list) = root.get("tools").filter(|list| list.items().is_empty()) {
        document.says_no_tools = Some(list.span);
    }
    document
}

/// What an entry of a list says, without places.
pub(crate) fn spec(mut entry: Value) -> Result<ToolSpecification, String> {
    let unknown = unknown(&entry);
    let tool = Tool::take_json(&mut entry)?;
    let mut spec = ToolSpecification::from_tool_alone(&tool);
    spec.version = version(&entry).and_then(Value::as_str).map(str::to_owned);
    spec.unknown = unknown;
    if !spec.unknown.is_empty() {
        spec.extra.push((FURTHER.to_owned(), fenced_json(&spec.unknown)));
    }
    Ok(spec)
}

/// The version of an entry, which clients ignore if it is not a text.
fn version(entry: &Value) -> Option<&Value> {
    let meta = entry.get("_meta").and_then(|meta| meta.get(VERSION_KEY)).filter(|version| version.is_string());
    meta.or_else(|| entry.get("version"))
}

fn fenced_json(members: &Map<String, Value>) -> String {
    format!("```json\n{}\n```", serde_json::to_string_pretty(members).unwrap_or_default())
}

fn with_places(spec: ToolSpecification, entry: &JsonNode) -> ToolSpecification {
    let mut spec = spec.with_sample();
    let schema = entry.get("inputSchema").or_else(|| entry.get("parameters"));
    let name = entry.get("name").map_or(entry.span, |name| name.span);
    let stated = |node: &&JsonNode| node.as_str().is_some();
    let version = entry.get("_meta").and_then(|meta| meta.get(VERSION_KEY)).filter(stated);
    let version = version.or_else(|| entry.get("version"));
    let mut places = Places { whole: entry.span, heading: name, name: Some(name), ..Places::default() };
    places.heading_name = Some(spec.name.clone());
    places.version = version.map(|version| version.span);
    places.description = entry.get("description").map(|description| description.span);
    places.input.schema = schema.cloned();
    places.output.schema = entry.get("outputSchema").cloned();
    spec.places = places;
    spec
}

/// Members of an entry that have no section, or a value that no section can have.
fn unknown(entry: &Value) -> Map<String, Value> {
    let members = |key: &str| entry.get(key).and_then(Value::as_object).into_iter().flatten();
    let version = version(entry).filter(|version| version.is_string());
    let is_version = |value: &Value| version.is_some_and(|version| std::ptr::eq(version, value));
    let own = entry.as_object().into_iter().flatten().filter(|(key, value)| !match key.as_str() {
        "name" | "title" | "description" | "inputSchema" | "outputSchema" | "parameters" | "annotations" | "_meta"
        | "version"
            if value.is_null() =>
        {
            true
        }
        "name" | "title" | "description" => value.is_string(),
        "parameters" => value.is_object() && entry.get("inputSchema").is_none(),
        "inputSchema" | "outputSchema" | "annotations" | "_meta" => value.is_object(),
        "version" => is_version(value),
        _ => false,
    });
    let own = own.map(|(key, value)| (key.clone(), value.clone()));
    let hints = members("annotations").filter(|(key, value)| !match key.as_str() {
        "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint" => value.is_boolean(),
        "audience" => **value == json!(["user"]),
        _ => false,
    });
    let meta = members("_meta").filter(|(key, value)| *key != VERSION_KEY || !is_version(value));
    own.chain(hints.map(|(key, value)| (format!("annotations.{key}"), value.clone())))
        .chain(meta.map(|(key, value)| (format!("_meta.{key}"), value.clone())))
        .collect()
}

/// Members of a list beside its tools, such as the cursor of the next page.
fn beside_tools(root: &JsonNode) -> Map<String, Value> {
    let JsonKind::Object(members) = &root.kind else { return Map::new() };
    if root.get("tools").is_none() {
        return Map::new();
    }
    let others = members.iter().filter(|member| !matches!(member.key.as_str(), "tools" | "instructions"));
    others.map(|member| (member.key.clone(), member.value.to_value())).filter(|(_, value)| !value.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        Document::parse(text).tools.iter().map(|tool| tool.name.clone()).collect()
    }

    #[test]
    fn every_form_of_a_list_is_read() {
        let tool = r#"{"name": "x", "description": "d", "inputSchema": {"type": "object"}}"#;
        for text in [
            format!("{{\"tools\": [{tool}]}}"),
            format!("{{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {{\"tools\": [{tool}]}}}}"),
            format!("[{tool}]"),
            tool.to_owned(),
        ] {
            assert_eq!(names(&text), ["x"], "{text}");
        }
    }

    #[test]
    fn a_manifest_is_distinguished_from_a_list() {
        let document =
            Document::parse(r#"{"instructions": "Do.", "tools": [{"name": "a", "parameters": {"type": "object"}}]}"#);
        assert_eq!(document.format, Format::Manifest);
        assert_eq!(document.intro, "Do.");
        assert_eq!(document.tools[0].name, "a");
        let text = document.text.as_str();
        assert_eq!(
            document.tools[0].places.input.schema.as_ref().map(|node| node.span.of(text)),
            Some("{\"type\": \"object\"}")
        );
    }

    #[test]
    fn broken_lists_are_reported_with_places() {
        for (text, rule) in [
            ("{", "list-not-json"),
            ("{\"tools\": {}}", "list-shape"),
            ("{\"tools\": [{}]}", "list-shape"),
            ("[{\"name\": \"x\"}, // no\n]", "list-not-json"),
            ("{\"instructions\": \"x\"}", "list-shape"),
            ("{}", "list-shape"),
        ] {
            let document = Document::parse(text);
            assert_eq!(document.problems.first().map(|problem| problem.rule.id), Some(rule), "{text}");
        }
    }
}
