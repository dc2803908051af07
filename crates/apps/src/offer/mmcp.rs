//! mMCP: the JSON in an activity's meta-data, even if the packager damaged it.
//!
//! aapt removes backslashes from attributes, so JSON that is valid in the source may be invalid on the phone: line
//! breaks and quotes are no longer escaped. From string resources it removes the quotes themselves. What is
//! unambiguous is repaired; the rest is reported to the author.

use serde_json::Value;
use sinew_tool::Tool;
use sinew_tool::lenient;
use sinew_tool::manifest::Manifest as Advertised;
use sinew_tool::text::clip;

use super::finding::{ComponentFinding, advice, error, warning};
use super::{AppOffer, AppTool, OfferKind, ProtocolNames};
use crate::apk::{self, Component, MetaData};
use crate::rules;
use sinew_tool::finding::Finding;

/// More than any model would read.
const MAX_JSON: usize = 1 << 20;

pub(super) fn activity(component: &Component, names: &ProtocolNames, offer: &mut AppOffer) {
    let at = |finding: Finding| finding.in_component(component);
    let Some(meta) = component.meta(&names.manifest) else {
        let message = format!("{} advertises tools but has no meta-data `{}`", component.name, names.manifest);
        return offer.findings.push(at(error(&rules::MANIFEST_MISSING, message)));
    };
    let text = match &meta.value {
        Some(apk::XmlValue::Text(text)) => text,
        other => return offer.findings.push(at(unreadable(other.as_ref(), meta, names))),
    };
    let value = match parse(text, meta.from_resource) {
        Ok((value, None)) => value,
        Ok((value, Some(repaired))) => {
            offer.findings.push(at(repaired.on_line(meta.line)));
            value
        }
        Err(broken) => return offer.findings.push(at(broken.on_line(meta.line))),
    };
    let mut findings = Vec::new();
    match read(&value, &mut findings) {
        Ok(advertised) => {
            if !advertised.instructions.trim().is_empty() && offer.instructions.is_none() {
                offer.instructions = Some(advertised.instructions);
            }
            for tool in advertised.tools {
                offer.add(AppTool {
                    tool,
                    kind: OfferKind::Activity,
                    component: component.name.clone(),
                    authority: None,
                    action: Some(names.call.clone()),
                    function: None,
                });
            }
        }
        Err(finding) => findings.push(finding),
    }
    offer.findings.extend(findings.into_iter().map(|finding| at(finding.on_line(meta.line))));
}

fn unreadable(value: Option<&apk::XmlValue>, meta: &MetaData, names: &ProtocolNames) -> Finding {
    let name = &names.manifest;
    let finding = match value {
        Some(apk::XmlValue::Named(reference)) => {
            let message = format!(
                "meta-data `{name}` refers to @{reference}, which is not part of the manifest; inspect the built APK to see the tools"
            );
            advice(&rules::MANIFEST_ELSEWHERE, message)
        }
        Some(apk::XmlValue::Reference(id)) => {
            let message =
                format!("meta-data `{name}` refers to the resource 0x{id:08x}, which is not a string of the APK");
            error(&rules::MANIFEST_MISSING, message)
        }
        None if meta.resource.is_some() => {
            let message = format!("meta-data `{name}` has android:resource; put the tools into android:value");
            error(&rules::MANIFEST_MISSING, message)
        }
        _ => error(&rules::MANIFEST_MISSING, format!("meta-data `{name}` has no text in android:value")),
    };
    finding.on_line(meta.line)
}

/// Reads the tools one by one, so that one invalid tool does not affect the others.
fn read(value: &Value, findings: &mut Vec<Finding>) -> Result<Advertised, Finding> {
    let mut value = value.clone();
    if let Some(tools) = value.get_mut("tools").and_then(Value::as_array_mut) {
        let mut index = 0;
        tools.retain(|entry| {
            let kept = check_entry(entry, index);
            index += 1;
            kept.map_err(|finding| findings.push(finding)).is_ok()
        });
    }
    let advertised = Advertised::from_json(&value).map_err(|what| error(&rules::MANIFEST_SHAPE, what))?;
    if !advertised.protocol_version.is_compatible() {
        let version = advertised.protocol_version;
        let message = format!("the app uses mMCP {version}; this gateway supports 1.x, so its tools are not offered");
        return Err(error(&rules::PROTOCOL_VERSION, message));
    }
    Ok(advertised)
}

fn check_entry(entry: &Value, index: usize) -> Result<(), Finding> {
    let tool = Tool::from_json(entry)
        .map_err(|what| error(&rules::TOOL_SHAPE, format!("tools[{index}]: {what}; it is not offered")))?;
    let schema = entry.get("parameters").or_else(|| entry.get("inputSchema"));
    match schema.map(is_object_schema) {
        None | Some(true) => Ok(()),
        Some(false) => {
            let message = format!(
                "`parameters` of `{}` is not a JSON Schema of type object; the tool is not offered",
                clip(&tool.name)
            );
            Err(error(&rules::SCHEMA_NOT_OBJECT, message).of_tool(&tool.name))
        }
    }
}

/// Arguments are sent as an object, so their schema must be one of an object.
pub(super) fn is_object_schema(schema: &Value) -> bool {
    schema.as_object().is_some_and(|schema| match schema.get("type") {
        None => true,
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(_) => false,
    })
}

/// Reads the JSON and repairs what the packager is known to break. A repair is reported as a finding.
pub(super) fn parse(text: &str, from_resource: bool) -> Result<(Value, Option<Finding>), Finding> {
    if text.len() > MAX_JSON {
        let message = format!("the tools have {} bytes of JSON; at most {MAX_JSON} are read", text.len());
        return Err(error(&rules::MANIFEST_SIZE, message));
    }
    let text = &*lenient::repair_text(text);
    let problem = match serde_json::from_str(text) {
        Ok(value) => return Ok((value, None)),
        Err(problem) => problem,
    };
    if let Ok(value) = serde_json::from_str(&escape_breaks(text)) {
        let message = "the packager turned \\n into an unescaped line break inside the JSON; it was repaired here, but other hosts refuse it: write \\\\n";
        return Ok((value, Some(warning(&rules::JSON_ESCAPES, message))));
    }
    if let Ok(value) = serde_json::from_str(&escape_quotes(&escape_breaks(text))) {
        let message = "the packager removed the backslashes before quotes inside the JSON; it was repaired here, but other hosts refuse it: write \\\\\\\"";
        return Ok((value, Some(warning(&rules::JSON_ESCAPES, message))));
    }
    if from_resource && !text.contains('"') {
        let message = "the packager removed all quotes from the string resource; write each as \\\", or put the JSON into android:value";
        return Err(error(&rules::JSON_QUOTES, message));
    }
    let near = near(text, &problem);
    Err(error(&rules::JSON_BROKEN, format!("the tools are not JSON: {problem}, near `{near}`")))
}

/// The text around the position of the syntax error.
fn near(text: &str, error: &serde_json::Error) -> String {
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let mut from = error.column().saturating_sub(30).min(line.len());
    while !line.is_char_boundary(from) {
        from -= 1;
    }
    clip(&line[from..]).chars().take(60).collect()
}

/// Escapes line breaks and tabs inside strings.
fn escape_breaks(text: &str) -> String {
    let mut whole = String::with_capacity(text.len() + 16);
    let (mut inside, mut escaped) = (false, false);
    for character in text.chars() {
        match character {
            '"' if !escaped => inside = !inside,
            '\n' if inside => {
                whole.push_str("\\n");
                continue;
            }
            '\t' if inside => {
                whole.push_str("\\t");
                continue;
            }
            _ => {}
        }
        escaped = character == '\\' && !escaped;
        whole.push(character);
    }
    whole
}

/// Escapes quotes inside strings: a quote ends a string only if something follows that may follow a string.
fn escape_quotes(text: &str) -> String {
    let mut whole = String::with_capacity(text.len() + 16);
    let (mut inside, mut escaped) = (false, false);
    for (at, character) in text.char_indices() {
        if character == '"' && !escaped {
            let next = text[at + 1..].trim_start().chars().next();
            if !inside {
                inside = true;
            } else if matches!(next, None | Some(',' | ':' | '}' | ']')) {
                inside = false;
            } else {
                whole.push('\\');
            }
        }
        escaped = character == '\\' && !escaped;
        whole.push(character);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_surrogate_pair_hides_no_tool() {
        let (value, finding) = parse(r#"{"tools": [{"name": "a\ud83d"}]}"#, false).unwrap();
        assert_eq!(value["tools"][0]["name"], "a\u{fffd}");
        assert!(finding.is_none());
    }
}
