//! What a portable schema cannot say, in short sentences.

use serde_json::Value;

/// Longer values would fill a description.
const LONGEST_VALUE: usize = 120;
const MOST_VALUES: usize = 24;

pub(super) fn value(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

pub(super) fn values(values: &[Value]) -> String {
    let mut all: Vec<String> = values.iter().take(MOST_VALUES).map(value).collect();
    if values.len() > MOST_VALUES {
        all.push("…".to_owned());
    }
    all.join(", ")
}

pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// What a keyword means that is not kept; `None` where it means nothing to a caller.
pub(super) fn keyword(keyword: &str, member: &Value) -> Option<String> {
    let text = value(member);
    Some(match keyword {
        "format" => format!("Format: {}.", member.as_str()?),
        "pattern" => format!("Pattern: {}.", member.as_str()?),
        "multipleOf" => format!("A multiple of {text}."),
        "exclusiveMinimum" => format!("Greater than {text}."),
        "exclusiveMaximum" => format!("Less than {text}."),
        "uniqueItems" if *member == Value::Bool(true) => "No item twice.".to_owned(),
        "minProperties" => format!("At least {text} members."),
        "maxProperties" => format!("At most {text} members."),
        "additionalProperties" | "unevaluatedProperties" if *member == Value::Bool(false) => {
            "No other members.".to_owned()
        }
        "additionalProperties" | "unevaluatedProperties" if member.is_object() => {
            format!("Further members, each: {text}.")
        }
        "patternProperties" => format!("Members by name pattern: {text}."),
        "propertyNames" => format!("Names of members: {text}."),
        "dependentRequired" | "dependentSchemas" | "dependencies" => format!("Members that need others: {text}."),
        "if" => format!("If {text}, more rules hold."),
        "then" => format!("Then: {text}."),
        "else" => format!("Else: {text}."),
        "not" => format!("Not: {text}."),
        "contains" => format!("Some item is: {text}."),
        "minContains" => format!("At least {text} such items."),
        "maxContains" => format!("At most {text} such items."),
        "prefixItems" => format!("The first items, in order: {text}."),
        "unevaluatedItems" | "additionalItems" if *member == Value::Bool(false) => "No further items.".to_owned(),
        "examples" => format!("For example {}.", values(member.as_array()?)),
        _ => return None,
    })
}
