//! Content providers: they answer `get_tool_info` with one tool in several keys, or with many tools in one key.

use serde_json::{Map, Value, json};
use sinew_tool::Tool;
use sinew_tool::lenient;
use sinew_tool::text::clip;

use super::bundle::texts;
use super::finding::{ComponentFinding, error, warning};
use super::mmcp::is_object_schema;
use super::{AppOffer, MAX_TOOLS, OfferKind, ToolQuery};
use crate::apk::Component;
use crate::rules;
use sinew_tool::finding::Finding;

/// What a provider answered.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderTools {
    /// [`OfferKind::Provider`] or [`OfferKind::ProviderMany`], according to the answer.
    pub kind: OfferKind,
    pub tools: Vec<Tool>,
    /// What could not be read completely.
    pub findings: Vec<Finding>,
}

pub(super) fn query(component: &Component, kind: OfferKind, offer: &mut AppOffer) {
    let Some(authority) = component.authorities.first() else {
        let message = format!("the provider {} has no authority, so nobody can call it", component.name);
        return offer.findings.push(error(&rules::AUTHORITY_MISSING, message).in_component(component));
    };
    let authority = Some(authority.clone());
    offer.queries.push(ToolQuery { kind, component: component.name.clone(), authority, action: None });
}

/// The tools in the answer to `get_tool_info`, a bundle in the agent's JSON; null where the provider
/// answered null.
pub fn provider_tools(bundle: &Value) -> Result<ProviderTools, Finding> {
    let refused = |message: String| error(&rules::PROVIDER_ANSWER, message);
    let Some(bundle) = bundle.as_object() else {
        return Err(refused("the provider answered null to get_tool_info".to_owned()));
    };
    if bundle.get("success") != Some(&Value::Bool(true)) {
        let reason = bundle.get("error_message").and_then(Value::as_str);
        return Err(refused(match (bundle.get("success"), reason) {
            (_, Some(reason)) => format!("the provider refused get_tool_info: {}", clip(reason)),
            (Some(_), None) => {
                "the provider answered get_tool_info with `success` false and no `error_message`".to_owned()
            }
            (None, None) => "the provider's answer to get_tool_info lacks `success`".to_owned(),
        }));
    }
    match bundle.get("tool") {
        Some(many) => many_tools(many),
        None => one_tool(bundle),
    }
}

fn one_tool(bundle: &Map<String, Value>) -> Result<ProviderTools, Finding> {
    let refused = |message: String| error(&rules::PROVIDER_ANSWER, message);
    let text = |key: &str| {
        let text = bundle.get(key).and_then(|value| value.as_str().or_else(|| value.get("charsequence")?.as_str()));
        text.ok_or_else(|| refused(format!("the provider's answer to get_tool_info lacks the string `{key}`")))
    };
    let (name, description, schema) = (text("tool_name")?, text("tool_description")?, text("tool_input_schema")?);
    if name.trim().is_empty() {
        return Err(refused("the provider's `tool_name` is empty".to_owned()));
    }
    let mut findings = Vec::new();
    let mut warn = |rule, message: String| findings.push(warning(rule, message).of_tool(name));
    let required = match bundle.get("tool_input_required") {
        None => {
            return Err(refused(
                "the provider's answer to get_tool_info lacks the array `tool_input_required`".to_owned(),
            ));
        }
        Some(value) => texts(value).unwrap_or_else(|| {
            warn(
                &rules::REQUIRED_UNREADABLE,
                format!(
                    "the required arguments of `{}` cannot be read on this phone; all are treated as optional",
                    clip(name)
                ),
            );
            Vec::new()
        }),
    };
    let schema: Value = lenient::read(schema.as_bytes()).map_err(|error| {
        refused(format!("`tool_input_schema` of `{}` is not JSON: {error}", clip(name))).of_tool(name)
    })?;
    let Some(schema) = schema.as_object() else {
        let message = format!("`tool_input_schema` of `{}` is not a JSON object of parameters", clip(name));
        return Err(error(&rules::SCHEMA_NOT_OBJECT, message).of_tool(name));
    };
    let schema = match is_whole_schema(schema) {
        // Against the protocol, but a common mistake.
        true => {
            warn(
                &rules::SCHEMA_WHOLE,
                format!(
                    "`tool_input_schema` of `{}` is a complete schema; the protocol expects its properties alone",
                    clip(name)
                ),
            );
            with_required(schema.clone(), required)
        }
        false => described(schema.clone(), required),
    };
    Ok(ProviderTools { kind: OfferKind::Provider, tools: vec![Tool::new(name, description, schema)], findings })
}

/// Parameters may be named `type` or `properties`, but hardly both with these values.
fn is_whole_schema(schema: &Map<String, Value>) -> bool {
    schema.get("type") == Some(&json!("object")) && schema.get("properties").is_some_and(Value::is_object)
}

fn with_required(mut schema: Map<String, Value>, required: Vec<String>) -> Value {
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    Value::Object(schema)
}

/// Properties and required names as a JSON Schema. A required name without a description stays required.
fn described(mut properties: Map<String, Value>, required: Vec<String>) -> Value {
    for (_, property) in &mut properties {
        // The name of a type instead of a schema, or something that is no schema at all.
        if !property.is_object() && !property.is_boolean() {
            *property = json!({"type": json_type(property.as_str().unwrap_or("string"))});
        }
    }
    for name in &required {
        properties.entry(name.as_str()).or_insert_with(|| json!({}));
    }
    let schema =
        Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), Value::Object(properties))]);
    with_required(schema, required)
}

fn many_tools(many: &Value) -> Result<ProviderTools, Finding> {
    let refused = |message: String| error(&rules::PROVIDER_ANSWER, message);
    let parsed: Value = match many {
        Value::String(text) => lenient::read(text.as_bytes())
            .map_err(|error| refused(format!("`tool` in the provider's answer is not JSON: {error}")))?,
        other => other.clone(),
    };
    let Some(entries) = parsed.get("tools").and_then(Value::as_object) else {
        return Err(refused("`tool` in the provider's answer has no object `tools`".to_owned()));
    };
    let mut findings = Vec::new();
    if entries.len() > MAX_TOOLS {
        let message = format!("the provider has {} tools; the first {MAX_TOOLS} are offered", entries.len());
        findings.push(warning(&rules::TOO_MANY, message));
    }
    let mut tools = Vec::new();
    for (name, entry) in entries.iter().take(MAX_TOOLS) {
        if name.trim().is_empty() {
            findings.push(refused("the provider has a tool without a name; it is left out".to_owned()));
            continue;
        }
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for input in entry.get("inputs").and_then(Value::as_array).into_iter().flatten() {
            let Some(input_name) = input.get("name").and_then(Value::as_str) else { continue };
            let mut property = json!({"type": input_type(input)});
            if let Some(description) = input.get("description").and_then(Value::as_str) {
                property["description"] = json!(description);
            }
            properties.insert(input_name.to_owned(), property);
            if input.get("required") == Some(&Value::Bool(true)) {
                required.push(input_name.to_owned());
            }
        }
        let description = entry.get("description").and_then(Value::as_str).unwrap_or_default();
        tools.push(Tool::new(name, description, described(properties, required)));
    }
    Ok(ProviderTools { kind: OfferKind::ProviderMany, tools, findings })
}

/// The input's class ends in its kind: `…ToolInput.StringInput`.
fn input_type(input: &Value) -> &'static str {
    let class = input.get("type").and_then(Value::as_str).unwrap_or_default();
    let kind = class.rsplit('.').next().unwrap_or_default();
    json_type(kind.strip_suffix("Input").unwrap_or(kind))
}

/// The JSON type for a type name of a programming language.
pub(super) fn json_type(word: &str) -> &'static str {
    match word.to_ascii_lowercase().as_str() {
        "int" | "integer" | "long" | "short" => "integer",
        "number" | "float" | "double" => "number",
        "bool" | "boolean" => "boolean",
        "array" | "list" => "array",
        "object" | "map" => "object",
        _ => "string",
    }
}

/// The schema for a map of names to types, or for a complete schema.
pub(super) fn parameters(value: &Value) -> Option<Value> {
    let map = value.as_object()?;
    if is_whole_schema(map) && is_object_schema(value) {
        return Some(value.clone());
    }
    let required = map.keys().cloned().collect();
    Some(described(map.clone(), required))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weather() -> Value {
        json!({
            "success": true,
            "tool_name": "get_weather_forecast",
            "tool_description": "Gets weather forecast for a location",
            "tool_input_schema": r#"
                {
                    "location": {"type": "string", "description": "City name or coordinates"},
                    "days": {"type": "number", "description": "Number of days (1-7)"}
                }
            "#,
            "tool_input_required": {"strings": ["location"]},
        })
    }

    #[test]
    fn the_weather_tool_of_the_provider_guide_becomes_a_json_schema() {
        let answer = provider_tools(&weather()).unwrap();
        assert_eq!((answer.kind, answer.findings.len()), (OfferKind::Provider, 0));
        let tool = &answer.tools[0];
        assert_eq!(
            (tool.name.as_str(), tool.description.as_str()),
            ("get_weather_forecast", "Gets weather forecast for a location")
        );
        assert_eq!(
            *tool.input_schema,
            json!({
                "type": "object",
                "properties": {
                    "location": {"type": "string", "description": "City name or coordinates"},
                    "days": {"type": "number", "description": "Number of days (1-7)"},
                },
                "required": ["location"],
            })
        );
    }

    #[test]
    fn an_answer_that_lacks_a_key_says_which() {
        for key in ["success", "tool_name", "tool_description", "tool_input_schema", "tool_input_required"] {
            let mut bundle = weather();
            bundle.as_object_mut().unwrap().remove(key);
            let finding = provider_tools(&bundle).unwrap_err();
            assert!(finding.message.contains(key), "{key}: {}", finding.message);
        }
        let refused = provider_tools(&json!({"success": false, "error_message": "not\ntoday"})).unwrap_err();
        assert!(refused.message.contains("not today"));
        assert!(provider_tools(&Value::Null).unwrap_err().message.contains("null"));
    }

    #[test]
    fn an_empty_required_list_is_fine_and_an_unreadable_one_is_reported() {
        let mut bundle = weather();
        bundle["tool_input_required"] = json!({"strings": []});
        assert!(provider_tools(&bundle).unwrap().tools[0].required().is_empty());
        bundle["tool_input_required"] =
            json!({"opaque": {"class": "[Ljava.lang.String;", "text": "[Ljava.lang.String;@1f"}});
        assert_eq!(provider_tools(&bundle).unwrap().findings[0].rule.id, "required-unreadable");
    }

    #[test]
    fn an_invalid_schema_is_refused_and_a_complete_one_is_accepted() {
        let mut bundle = weather();
        for wrong in ["{", "[]", "\"text\""] {
            bundle["tool_input_schema"] = json!(wrong);
            assert!(provider_tools(&bundle).is_err(), "{wrong}");
        }
        bundle["tool_input_schema"] = json!(r#"{"type": "object", "properties": {"location": {"type": "string"}}}"#);
        let answer = provider_tools(&bundle).unwrap();
        assert_eq!(answer.findings[0].rule.id, "schema-whole");
        assert_eq!(answer.tools[0].input_schema["properties"], json!({"location": {"type": "string"}}));
    }

    #[test]
    fn a_required_name_that_is_not_described_is_still_required() {
        let mut bundle = weather();
        bundle["tool_input_required"] = json!({"strings": ["location", "unit"]});
        let tool = provider_tools(&bundle).unwrap().tools.remove(0);
        assert_eq!(tool.required(), ["location", "unit"]);
        assert_eq!(tool.input_schema["properties"]["unit"], json!({}));
    }

    #[test]
    fn many_tools_come_in_one_key() {
        let many = json!({"tools": {
            "add_note": {"description": "Adds a note", "inputs": [
                {"type": "se.premex.mcp.provider.ToolInput.StringInput", "name": "text", "description": "Its text", "required": true},
                {"type": "se.premex.mcp.provider.ToolInput.StringInput", "name": "title", "required": false},
            ]},
            "list_notes": {"description": "Lists notes", "inputs": []},
        }});
        let answer = provider_tools(&json!({"success": true, "tool": many.to_string()})).unwrap();
        assert_eq!(answer.kind, OfferKind::ProviderMany);
        let names: Vec<&str> = answer.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["add_note", "list_notes"]);
        assert_eq!(answer.tools[0].required(), ["text"]);
        assert_eq!(
            answer.tools[0].input_schema["properties"]["text"],
            json!({"type": "string", "description": "Its text"})
        );
        assert!(provider_tools(&json!({"success": true, "tool": "{"})).is_err());
        assert!(provider_tools(&json!({"success": true, "tool": "{}"})).is_err());
    }
}
