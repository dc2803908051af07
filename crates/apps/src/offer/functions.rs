//! Android's app functions, as `cmd app_function list-app-functions` prints them.
//!
//! The list is JSON in which every member is an array, even scalars; types are numbers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sinew_tool::Tool;
use sinew_tool::lenient;
use sinew_tool::text::clip;

use super::finding::{advice, error, warning};
use super::{AppTool, MAX_TOOLS, OfferKind};
use crate::rules;
use sinew_tool::finding::Finding;

/// Ends references between shared types that refer to each other.
const MAX_DEPTH: usize = 12;
/// A function that needs more types is built to exhaust its reader.
const MAX_TYPES: usize = 2000;

/// The type of an object.
const OBJECT: i64 = 3;

/// The functions of one package.
#[derive(Clone, Debug, PartialEq)]
pub struct PackageFunctions {
    pub package: String,
    pub tools: Vec<AppTool>,
    /// Functions that are not offered, and why.
    pub findings: Vec<Finding>,
}

/// Reads the list. The command may print messages before the first brace.
pub fn app_functions(text: &str) -> Result<Vec<PackageFunctions>, Finding> {
    let refused = |message: String| error(&rules::FUNCTIONS_ANSWER, message);
    let json = text.find('{').map(|at| &text[at..]);
    let json =
        json.ok_or_else(|| refused(format!("the phone did not list its app functions: {}", clip(text.trim()))))?;
    let json = lenient::repair_text(json);
    let mut stream = serde_json::Deserializer::from_str(&json).into_iter::<Value>();
    let list = match stream.next() {
        Some(Ok(Value::Object(list))) => list,
        Some(Err(error)) => return Err(refused(format!("the list of app functions is not JSON: {error}"))),
        _ => return Err(refused("the list of app functions is not a JSON object".to_owned())),
    };
    Ok(list.iter().map(|(package, entries)| read_package(package, entries)).collect())
}

fn read_package(package: &str, entries: &Value) -> PackageFunctions {
    let mut found = PackageFunctions { package: package.to_owned(), tools: Vec::new(), findings: Vec::new() };
    let entries: Vec<&Map<String, Value>> =
        entries.as_array().into_iter().flatten().filter_map(Value::as_object).collect();
    let documents = |kind: &'static str| {
        let of_kind = move |(key, _): &(&String, &Value)| key.starts_with(kind);
        entries.iter().flat_map(move |entry| entry.iter().filter(of_kind)).map(|(_, document)| document)
    };
    let shared: BTreeMap<&str, &Value> = documents("AppFunctionComponentMetadata")
        .flat_map(|document| items(document, "dataTypes"))
        .filter_map(|one| Some((text(one, "name")?, first(one, "dataTypeMetadata")?)))
        .collect();
    for entry in &entries {
        let find = |kind: &str| entry.iter().find(|(key, _)| key.starts_with(kind)).map(|(_, document)| document);
        let Some(about) = find("AppFunctionStaticMetadata") else { continue };
        let Some(id) = text(about, "functionId") else {
            found.findings.push(error(&rules::FUNCTIONS_ANSWER, format!("a function of {package} has no functionId")));
            continue;
        };
        if text(about, "packageName").is_some_and(|name| name != package) {
            let message = format!(
                "function `{}` is listed under {package} but names another package; it is not offered",
                clip(id)
            );
            found.findings.push(error(&rules::FUNCTIONS_ANSWER, message));
            continue;
        }
        if !is_enabled(about, find("AppFunctionRuntimeMetadata")) {
            let message = format!("function `{}` is disabled on this phone", clip(id));
            found.findings.push(advice(&rules::DISABLED, message));
            continue;
        }
        if found.tools.len() >= MAX_TOOLS {
            let message = format!("{package} has more than {MAX_TOOLS} functions; the rest are not offered");
            found.findings.push(warning(&rules::TOO_MANY, message));
            break;
        }
        match read_function(id, about, &shared) {
            Ok(mut tool) => {
                if found.tools.iter().any(|other| other.tool.name == tool.name) {
                    tool.name = long_name(id);
                }
                let function = Some(id.to_owned());
                let component = String::new();
                let kind = OfferKind::AppFunction;
                found.tools.push(AppTool { tool, kind, component, authority: None, action: None, function });
            }
            Err(what) => {
                let message = format!("function `{}` is not offered: {what}", clip(id));
                found.findings.push(warning(&rules::FUNCTION_TYPE, message));
            }
        }
    }
    found
}

/// The runtime state wins over the default; its nesting differs between versions of Android.
fn is_enabled(about: &Value, runtime: Option<&Value>) -> bool {
    let by_default = first(about, "enabledByDefault").and_then(Value::as_bool).unwrap_or(true);
    let inner = runtime.and_then(|runtime| match runtime.get("enabled") {
        Some(_) => Some(runtime),
        None => runtime.as_object()?.values().next(),
    });
    match inner.and_then(|runtime| first(runtime, "enabled")) {
        Some(Value::Bool(enabled)) => *enabled,
        Some(Value::Number(state)) if state.as_u64() == Some(1) => true,
        Some(Value::Number(state)) if state.as_u64() == Some(2) => false,
        _ => by_default,
    }
}

fn read_function(id: &str, about: &Value, shared: &BTreeMap<&str, &Value>) -> Result<Tool, String> {
    let mut types = TypeReader { shared, left: MAX_TYPES };
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for parameter in items(about, "parameters") {
        let Some(name) = text(parameter, "name") else { continue };
        let schema = first(parameter, "dataTypeMetadata").map(|data| types.schema(data, MAX_DEPTH)).transpose();
        let needed = first(parameter, "isRequired").and_then(Value::as_bool).unwrap_or(false);
        let mut schema = match schema {
            Ok(schema) => schema.unwrap_or_else(|| json!({})),
            Err(what) if needed => return Err(format!("parameter `{}` {what}", clip(name))),
            // An optional parameter that cannot be sent is not offered.
            Err(_) => continue,
        };
        if let Some(description) = text(parameter, "description") {
            schema["description"] = json!(description);
        }
        properties.insert(name.to_owned(), schema);
        if needed {
            required.push(name.to_owned());
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let description = text(about, "description").unwrap_or_default();
    let mut tool = Tool::new(short_name(id), description, schema);
    let returned = first(about, "response").and_then(|response| first(response, "valueType"));
    // MCP has output schemas for objects only.
    let is_object = |data: &&Value| first(data, "type").and_then(Value::as_i64) == Some(OBJECT);
    if let Some(Ok(mut output)) = returned.filter(is_object).map(|data| types.schema(data, MAX_DEPTH)) {
        output["type"] = json!("object");
        tool = tool.with_output_schema(output);
    }
    Ok(tool)
}

/// `com.example.Notes#create` becomes `create`.
fn short_name(id: &str) -> String {
    let end = id.rsplit(['#', '/', '$']).next().unwrap_or_default();
    let end = if id.contains('#') { end } else { end.rsplit('.').next().unwrap_or_default() };
    clean(if end.is_empty() { id } else { end })
}

fn long_name(id: &str) -> String {
    clean(id)
}

fn clean(name: &str) -> String {
    name.chars()
        .map(|one| if one.is_ascii_alphanumeric() || "_-.".contains(one) { one } else { '_' })
        .take(128)
        .collect()
}

struct TypeReader<'a> {
    shared: &'a BTreeMap<&'a str, &'a Value>,
    left: usize,
}

impl TypeReader<'_> {
    fn schema(&mut self, data: &Value, depth: usize) -> Result<Value, String> {
        self.left = self.left.checked_sub(1).ok_or("has too many types")?;
        let depth = depth.checked_sub(1).ok_or("has types that nest without end")?;
        let kind = first(data, "type").and_then(Value::as_i64);
        let mut schema = match kind {
            Some(0) => json!({"type": "null"}),
            Some(1) => json!({"type": "boolean"}),
            Some(OBJECT) => self.object(data, depth)?,
            Some(4 | 5) => json!({"type": "number"}),
            Some(6 | 7) => json!({"type": "integer"}),
            Some(8) => json!({"type": "string"}),
            Some(10) => {
                let item = first(data, "itemType").map(|item| self.schema(item, depth)).transpose()?;
                json!({"type": "array", "items": item.unwrap_or_else(|| json!({}))})
            }
            Some(11) => {
                let name = text(data, "dataTypeReference").unwrap_or_default();
                let target =
                    *self.shared.get(name).ok_or_else(|| format!("refers to the unknown type `{}`", clip(name)))?;
                self.schema(target, depth)?
            }
            Some(12 | 14) => {
                let parts = ["matchAll", "allOf", "matchOneOf", "oneOf"].into_iter().flat_map(|key| items(data, key));
                let parts = parts.map(|part| self.schema(part, depth)).collect::<Result<Vec<_>, _>>()?;
                let word = if kind == Some(12) { "allOf" } else { "oneOf" };
                if parts.is_empty() { json!({}) } else { json!({ word: parts }) }
            }
            Some(2) => return Err("has bytes, which cannot be sent".to_owned()),
            Some(13) => return Err("has an Android object, which cannot be sent".to_owned()),
            Some(other) => return Err(format!("has the unknown type {other}")),
            None => json!({}),
        };
        if let Some(description) = text(data, "description") {
            schema["description"] = json!(description);
        }
        let nullable = first(data, "isNullable").and_then(Value::as_bool).unwrap_or(false);
        if nullable && let Some(plain) = schema.get("type").and_then(Value::as_str).map(str::to_owned) {
            schema["type"] = json!([plain, "null"]);
        }
        Ok(schema)
    }

    fn object(&mut self, data: &Value, depth: usize) -> Result<Value, String> {
        let mut properties = Map::new();
        for property in items(data, "properties") {
            let (Some(name), Some(of)) = (text(property, "name"), first(property, "dataTypeMetadata")) else {
                continue;
            };
            properties.insert(name.to_owned(), self.schema(of, depth)?);
        }
        let required: Vec<&Value> = items(data, "required").filter(|name| name.is_string()).collect();
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        Ok(schema)
    }
}

/// The items of a member, which is an array or, in some samples, the item itself.
fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    let member = value.get(key);
    let (many, one) = match member {
        Some(Value::Array(items)) => (Some(items), None),
        other => (None, other),
    };
    many.into_iter().flatten().chain(one)
}

fn first<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    items(value, key).next()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    first(value, key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sinew_tool::portable;

    use super::*;

    const LIST: &str = r##"Invalid user ID: x. Using current user.
{
  "com.example.notes": [
    {
      "AppFunctionStaticMetadata-com.example.notes": {
        "functionId": ["com.example.notes.Notes#create"],
        "packageName": ["com.example.notes"],
        "description": ["Creates a note"],
        "enabledByDefault": [true],
        "parameters": [
          {"name": ["title"], "description": ["Its title"], "isRequired": [true], "dataTypeMetadata": [{"type": [8], "isNullable": [false]}]},
          {"name": ["tags"], "isRequired": [false], "dataTypeMetadata": [{"type": [10], "itemType": [{"type": [8]}], "isNullable": [true]}]},
          {"name": ["place"], "isRequired": [false], "dataTypeMetadata": [{"type": [11], "dataTypeReference": ["Place"]}]},
          {"name": ["picture"], "isRequired": [false], "dataTypeMetadata": [{"type": [2]}]}
        ],
        "response": [{"valueType": [{"type": [3], "properties": [{"name": ["id"], "dataTypeMetadata": [{"type": [6]}]}], "required": ["id"]}]}]
      },
      "AppFunctionRuntimeMetadata-com.example.notes": {"AppFunctionRuntimeMetadata-com.example.notes": {"enabled": [0]}}
    },
    {
      "AppFunctionStaticMetadata-com.example.notes": {"functionId": ["com.example.notes.Old#create"]},
      "AppFunctionRuntimeMetadata-com.example.notes": {"enabled": [1]}
    },
    {
      "AppFunctionStaticMetadata-com.example.notes": {"functionId": ["com.example.notes.Notes#wipe"]},
      "AppFunctionRuntimeMetadata-com.example.notes": {"enabled": [2]}
    },
    {
      "AppFunctionStaticMetadata-com.example.notes": {
        "functionId": ["com.example.notes.Notes#send"],
        "parameters": [{"name": ["intent"], "isRequired": [true], "dataTypeMetadata": [{"type": [13]}]}]
      }
    },
    {"AppFunctionComponentMetadataDocument-com.example.notes": {"dataTypes": [
      {"name": ["Place"], "dataTypeMetadata": [{"type": [3], "properties": [{"name": ["city"], "dataTypeMetadata": [{"type": [8]}]}]}]}
    ]}}
  ]
}"##;

    #[test]
    fn half_a_surrogate_pair_hides_no_function() {
        let list = app_functions(&LIST.replace("Creates a note", r"Creates a note \ud83d")).unwrap();
        assert_eq!(list[0].tools[0].tool.description, "Creates a note \u{fffd}");
    }

    #[test]
    fn functions_become_tools_with_schemas() {
        let list = app_functions(LIST).unwrap();
        let [notes] = list.as_slice() else { panic!("{list:?}") };
        assert_eq!(notes.package, "com.example.notes");
        let [create, old] = notes.tools.as_slice() else { panic!("{notes:?}") };
        assert_eq!(
            (create.tool.name.as_str(), create.function.as_deref()),
            ("create", Some("com.example.notes.Notes#create"))
        );
        assert_eq!(
            *create.tool.input_schema,
            json!({
                "type": "object",
                "properties": {
                    "title": {"type": "string", "description": "Its title"},
                    "tags": {"type": ["array", "null"], "items": {"type": "string"}},
                    "place": {"type": "object", "properties": {"city": {"type": "string"}}},
                },
                "required": ["title"],
            })
        );
        let output = create.tool.output_schema.as_deref().unwrap();
        assert_eq!(output["properties"]["id"], json!({"type": "integer"}));
        assert_eq!(old.tool.name, "com.example.notes.Old_create");
        let rules: Vec<&str> = notes.findings.iter().map(|finding| finding.rule.id).collect();
        assert_eq!(rules, ["disabled", "function-type"]);
    }

    /// Types as apps declare them, and as no app should.
    fn types() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            (0..15i64).prop_map(|kind| json!({"type": [kind]})),
            Just(json!({})),
            Just(json!({"type": [8], "isNullable": [true], "description": ["A text"]})),
            Just(json!({"type": [11], "dataTypeReference": ["Place"]})),
            Just(json!({"type": [11], "dataTypeReference": ["Circle"]})),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let name = prop_oneof![Just("a"), Just("größe"), Just("")];
            let property =
                (name, inner.clone()).prop_map(|(name, of)| json!({"name": [name], "dataTypeMetadata": [of]}));
            let properties = prop::collection::vec(property, 0..3);
            prop_oneof![
                (properties, any::<bool>()).prop_map(|(properties, is_nullable)| {
                    json!({"type": [3], "properties": properties, "required": ["a", "b"], "isNullable": [is_nullable]})
                }),
                inner.clone().prop_map(|item| json!({"type": [10], "itemType": [item]})),
                prop::collection::vec(inner.clone(), 0..3).prop_map(|all| json!({"type": [12], "matchAll": all})),
                prop::collection::vec(inner, 0..3).prop_map(|one| json!({"type": [14], "matchOneOf": one})),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_an_app_declares_every_ai_client_accepts_it(
            one in types(), two in types(), returned in types(), shared in types(), is_needed in any::<bool>(),
        ) {
            let parameter = |name: &str, of: &Value| {
                json!({"name": [name], "isRequired": [is_needed], "dataTypeMetadata": [of]})
            };
            let place = json!({"name": ["Place"], "dataTypeMetadata": [shared]});
            let circle = json!({"name": ["Circle"], "dataTypeMetadata": [
                {"type": [3], "properties": [{"name": ["next"], "dataTypeMetadata": [
                    {"type": [11], "dataTypeReference": ["Circle"]}]}]}]});
            let list = json!({"a.b": [
                {"AppFunctionStaticMetadata-a.b": {
                    "functionId": ["x"],
                    "parameters": [parameter("one", &one), parameter("two", &two)],
                    "response": [{"valueType": [returned]}],
                }},
                {"AppFunctionComponentMetadataDocument-a.b": {"dataTypes": [place, circle]}},
            ]});
            let functions = app_functions(&list.to_string()).unwrap();
            for tool in functions.iter().flat_map(|package| &package.tools) {
                prop_assert_eq!(&tool.tool.input_schema["type"], "object");
                let input = portable::input(&tool.tool.input_schema);
                prop_assert_eq!(portable::violations(&input.schema), Vec::<String>::new(), "{}", input.schema);
                if let Some(output) = &tool.tool.output_schema {
                    prop_assert_eq!(&output["type"], "object");
                    let output = portable::output(output);
                    prop_assert_eq!(portable::violations(&output.schema), Vec::<String>::new(), "{}", output.schema);
                }
            }
        }
    }

    #[test]
    fn circular_types_and_answers_without_a_list_are_reported() {
        let circle = json!({"a.b": [
            {"AppFunctionStaticMetadata-a.b": {"functionId": ["x"], "parameters": [
                {"name": ["p"], "isRequired": [true], "dataTypeMetadata": [{"type": [11], "dataTypeReference": ["T"]}]}]}},
            {"AppFunctionComponentMetadataDocument-a.b": {"dataTypes": [
                {"name": ["T"], "dataTypeMetadata": [{"type": [11], "dataTypeReference": ["T"]}]}]}},
        ]});
        assert_eq!(app_functions(&circle.to_string()).unwrap()[0].findings[0].rule.id, "function-type");
        for text in ["cmd: Can't find service: app_function", "", "{", "[]", "{]"] {
            assert!(app_functions(text).is_err(), "{text}");
        }
    }
}
