//! What must hold: comparisons of values, and what is on a screen.

use serde_json::{Map, Value};

use crate::grammar::unknown_member;
use crate::template;

/// What a selector of an element on a screen may have.
pub const SELECTOR_MEMBERS: [&str; 8] = ["text", "description", "id", "class", "exact", "near", "below", "inside"];

/// A condition. Screens are looked at through a tool, so a condition may need calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    Compare {
        value: Value,
        comparison: Comparison,
        with: Value,
    },
    /// An element that fits the selector is there, or is not.
    Screen {
        device: Option<Value>,
        selector: Value,
        is_there: bool,
    },
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Is,
    IsNot,
    Contains,
    Above,
    Below,
}

const COMPARISONS: [(&str, Comparison); 5] = [
    ("is", Comparison::Is),
    ("is_not", Comparison::IsNot),
    ("contains", Comparison::Contains),
    ("above", Comparison::Above),
    ("below", Comparison::Below),
];

/// `all`, `any` and `not` in each other.
const MAX_DEPTH: usize = 4;
const MAX_PARTS: usize = 20;

impl Condition {
    pub(crate) fn parse(value: &Value) -> Result<Condition, String> {
        Condition::read(value, MAX_DEPTH)
    }

    fn read(value: &Value, depth: usize) -> Result<Condition, String> {
        let Value::Object(members) = value else {
            return Err("a condition must be an object with `value`, `screen`, `all`, `any` or `not`".to_owned());
        };
        let several = |parts: &Value| -> Result<Vec<Condition>, String> {
            let parts = parts.as_array().filter(|parts| (1..=MAX_PARTS).contains(&parts.len()));
            let parts = parts.ok_or_else(|| format!("`all` and `any` must be lists of 1 to {MAX_PARTS} conditions"))?;
            parts.iter().map(|part| Condition::read(part, depth - 1)).collect()
        };
        if depth == 0 {
            return Err(format!("conditions may be nested {MAX_DEPTH} deep"));
        }
        let only = |names: &[&str]| match members.keys().find(|name| !names.contains(&name.as_str())) {
            Some(name) => Err(unknown_member(&format!("a condition with `{}`", names[0]), name, &names[1..])),
            None => Ok(()),
        };
        if let Some(parts) = members.get("all") {
            only(&["all"])?;
            return several(parts).map(Condition::All);
        }
        if let Some(parts) = members.get("any") {
            only(&["any"])?;
            return several(parts).map(Condition::Any);
        }
        if let Some(inner) = members.get("not") {
            only(&["not"])?;
            return Condition::read(inner, depth - 1).map(|inner| Condition::Not(Box::new(inner)));
        }
        if let Some(selector) = members.get("screen") {
            only(&["screen", "is", "device"])?;
            return screen(members, selector);
        }
        let value = members.get("value").ok_or("a condition needs `value`, `screen`, `all`, `any` or `not`")?;
        only(&["value", "is", "is_not", "contains", "above", "below"])?;
        let mut comparisons =
            COMPARISONS.iter().filter_map(|(name, comparison)| Some((*comparison, members.get(*name)?)));
        let found = (comparisons.next(), comparisons.next());
        let (Some((comparison, with)), None) = found else {
            return Err("a condition on a `value` has one of `is`, `is_not`, `contains`, `above`, `below`".to_owned());
        };
        Ok(Condition::Compare { value: value.clone(), comparison, with: with.clone() })
    }

    /// The device of each screen that it looks at; `None` for the one that is meant anyway.
    pub(crate) fn screens(&self) -> Vec<Option<&Value>> {
        match self {
            Condition::Compare { .. } => Vec::new(),
            Condition::Screen { device, .. } => vec![device.as_ref()],
            Condition::All(parts) | Condition::Any(parts) => parts.iter().flat_map(Condition::screens).collect(),
            Condition::Not(inner) => inner.screens(),
        }
    }

    /// Everything in it that may refer to earlier answers.
    pub(crate) fn values(&self) -> Vec<&Value> {
        match self {
            Condition::Compare { value, with, .. } => vec![value, with],
            Condition::Screen { selector, device, .. } => device.iter().chain([selector]).collect(),
            Condition::All(parts) | Condition::Any(parts) => parts.iter().flat_map(Condition::values).collect(),
            Condition::Not(inner) => inner.values(),
        }
    }
}

fn screen(members: &Map<String, Value>, selector: &Value) -> Result<Condition, String> {
    let is_there = match members.get("is").map(Value::as_str) {
        None | Some(Some("visible")) => true,
        Some(Some("gone")) => false,
        Some(_) => return Err("`is` of a condition on the `screen` must be \"visible\" or \"gone\"".to_owned()),
    };
    let device = match members.get("device") {
        None => None,
        Some(device @ Value::String(_)) => Some(device.clone()),
        Some(_) => return Err("`device` must be a text".to_owned()),
    };
    check_selector(selector).map_err(|problem| format!("`screen`: {problem}"))?;
    Ok(Condition::Screen { device, selector: selector.clone(), is_there })
}

/// Whether a selector has only what selectors have. What the values must be, the tool that looks says.
pub fn check_selector(selector: &Value) -> Result<(), String> {
    check_members(selector, MAX_DEPTH)
}

fn check_members(selector: &Value, depth: usize) -> Result<(), String> {
    let Value::Object(members) = selector else {
        return Err("must be a selector such as {\"text\": \"Saved\"}".to_owned());
    };
    members.iter().try_for_each(|(name, value)| match name.as_str() {
        "near" | "below" | "inside" if depth > 0 && value.is_object() => check_members(value, depth - 1),
        _ if SELECTOR_MEMBERS.contains(&name.as_str()) => Ok(()),
        _ => Err(unknown_member("a selector", name, &SELECTOR_MEMBERS)),
    })
}

/// Whether a comparison holds; the text says what is so instead.
pub(crate) fn compare(
    value: &Value,
    comparison: Comparison,
    with: &Value,
    scope: &Map<String, Value>,
) -> Result<Result<(), String>, String> {
    let (value, with) = (template::fill(value, scope)?, template::fill(with, scope)?);
    let holds = match comparison {
        Comparison::Is => is_same(&value, &with),
        Comparison::IsNot => !is_same(&value, &with),
        Comparison::Contains => contains(&value, &with),
        Comparison::Above | Comparison::Below => {
            let (Some(a), Some(b)) = (value.as_f64(), with.as_f64()) else {
                return Err("`above` and `below` compare numbers".to_owned());
            };
            if comparison == Comparison::Above { a > b } else { a < b }
        }
    };
    let word = COMPARISONS.iter().find(|(_, own)| *own == comparison).map_or("is", |(word, _)| *word);
    Ok(if holds { Ok(()) } else { Err(format!("{} {word} {} does not hold", shown(&value), shown(&with))) })
}

/// 1 and 1.0 are the same number.
fn is_same(a: &Value, b: &Value) -> bool {
    a == b || matches!((a.as_f64(), b.as_f64()), (Some(a), Some(b)) if a == b)
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::String(whole), Value::String(part)) => whole.to_lowercase().contains(&part.to_lowercase()),
        (Value::Array(items), part) => items.iter().any(|item| is_same(item, part)),
        (Value::Object(members), Value::String(name)) => members.contains_key(name),
        _ => false,
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
