//! Checks of names, descriptions and schemas, by which a model chooses and calls tools.

use serde_json::Value;
use sinew_tool::Tool;

use sinew_tool::finding::{Finding, Findings, Place};

use crate::apk::AndroidManifest;
use crate::offer::finding::{advice, error, warning};
use crate::offer::{AppOffer, AppTool, OfferKind};
use crate::rules;

/// Names that say nothing, alone or with `my` or a number.
const VAGUE: &[&str] = &[
    "action", "api", "app", "call", "command", "demo", "do", "example", "execute", "foo", "func", "function", "get",
    "handle", "helper", "main", "method", "name", "process", "run", "sample", "test", "thing", "tool", "toolname",
    "util",
];
/// A model distinguishes tools by their descriptions.
const MIN_WORDS: usize = 4;
/// Clients allow 64 characters.
const MAX_NAME: usize = 64;

pub(super) fn check(manifest: &AndroidManifest, offer: &AppOffer, findings: &mut Findings) {
    for app_tool in &offer.tools {
        let line = manifest.components.iter().find(|one| one.name == app_tool.component).map(|one| one.line);
        let mut tell = |finding: Finding| {
            let place = line.map_or(Place::Whole, |line| Place::Line(line as usize));
            findings.push(finding.of_tool(&app_tool.tool.name).of_component(&app_tool.component).at(place));
        };
        let placeholders = placeholders(&app_tool.tool);
        for placeholder in &placeholders {
            let message = format!("`{}` still has the placeholder `{placeholder}`; fill it in", app_tool.tool.name);
            tell(error(&rules::UNFILLED, message));
        }
        if !placeholders.is_empty() {
            continue;
        }
        name(&app_tool.tool, &mut tell);
        description(&app_tool.tool, &mut tell);
        schema(app_tool, &mut tell);
    }
    let activity = offer.tools.iter().any(|tool| tool.kind == OfferKind::Activity);
    if activity && offer.instructions.is_none() {
        findings.push(advice(
            &rules::INSTRUCTIONS,
            "the app has no `instructions`; a sentence about what it is for helps a model choose",
        ));
    }
}

/// Every `{{…}}` in the text that models read of a tool, once.
fn placeholders(tool: &Tool) -> Vec<&str> {
    let of_parameters = tool.properties().into_iter().flatten();
    let texts = of_parameters
        .flat_map(|(name, schema)| [Some(name.as_str()), schema.get("description").and_then(Value::as_str)]);
    let texts = [Some(tool.name.as_str()), Some(tool.description.as_str())].into_iter().chain(texts).flatten();
    let mut found = Vec::new();
    for mut text in texts {
        while let Some(start) = text.find("{{")
            && let Some(length) = text[start..].find("}}")
        {
            let end = start + length + 2;
            found.push(&text[start..end]);
            text = &text[end..];
        }
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|placeholder| seen.insert(*placeholder));
    found
}

fn name(tool: &Tool, tell: &mut dyn FnMut(Finding)) {
    let name = &tool.name;
    let fits = |one: char| one.is_ascii_alphanumeric() || "_-.".contains(one);
    if !name.chars().all(fits) || name.chars().count() > MAX_NAME {
        let message = format!(
            "the name `{name}` does not consist of up to {MAX_NAME} letters, digits, `_`, `-` and `.`; models will see a changed name"
        );
        tell(warning(&rules::NAME_FORM, message));
    }
    let bare: String = name.to_lowercase().chars().filter(char::is_ascii_lowercase).collect();
    let core = bare.strip_prefix("my").unwrap_or(&bare);
    if core.len() < 3 || VAGUE.contains(&core) {
        tell(warning(&rules::NAME_VAGUE, format!("the name `{name}` does not say what the tool does")));
    }
}

fn description(tool: &Tool, tell: &mut dyn FnMut(Finding)) {
    let (name, words) = (&tool.name, tool.description.split_whitespace().count());
    if words == 0 {
        tell(error(&rules::DESCRIPTION, format!("`{name}` has no description, so a model cannot know when to use it")));
    } else if words < MIN_WORDS || tool.description.to_lowercase().starts_with("description of") {
        let message = format!(
            "the description of `{name}` is too short to explain when to use it: {:?}",
            tool.description.trim()
        );
        tell(warning(&rules::DESCRIPTION, message));
    }
}

fn schema(app_tool: &AppTool, tell: &mut dyn FnMut(Finding)) {
    let tool = &app_tool.tool;
    let name = &tool.name;
    let properties = tool.properties();
    for required in tool.required() {
        if properties.is_none_or(|properties| !properties.contains_key(required)) {
            tell(error(
                &rules::REQUIRED,
                format!("`{name}` requires `{required}`, which its parameters do not describe"),
            ));
        }
    }
    for (parameter, schema) in properties.into_iter().flatten() {
        for wrong in unknown_types(schema) {
            let message = format!(
                "parameter `{parameter}` of `{name}` has the type `{wrong}`; the types of JSON are {}",
                TYPES.join(", ")
            );
            tell(error(&rules::PARAMETER_TYPE, message));
        }
        let says = |key: &str| schema.get(key).is_some();
        if !["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"].into_iter().any(says) {
            let message = format!("parameter `{parameter}` of `{name}` has no type, so its values cannot be checked");
            tell(warning(&rules::PARAMETER_TYPE, message));
        }
        if schema.get("description").and_then(Value::as_str).is_none_or(|text| text.trim().is_empty()) {
            tell(advice(
                &rules::PARAMETER_DESCRIPTION,
                format!("parameter `{parameter}` of `{name}` has no description"),
            ));
        }
    }
}

const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];

/// The types in a schema and its parts that JSON does not have.
fn unknown_types(schema: &Value) -> Vec<&str> {
    let types = match schema.get("type") {
        Some(Value::Array(several)) => several.iter().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    };
    let own = types.into_iter().map(|one| one.as_str().unwrap_or("(not a text)")).filter(|word| !TYPES.contains(word));
    let lists = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    let members = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|members| members.values());
    let parts = schema.get("items").into_iter().chain(lists).chain(members);
    own.chain(parts.flat_map(unknown_types)).collect()
}
