//! Comparing the texts of two tool lists. Most of two versions is the same text, so that only what differs is read.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use super::keywords::is_annotation;
use super::{Comparison, Subject, SubjectPair, diff_all};
use crate::cores::on_two_cores;
use crate::outline::{Outline, OutlineNode};
use crate::read::listing;

/// Objects with more members than this are read as a whole.
const MAX_MEMBERS: usize = 200;

/// Like [`super::diff_documents`] for the texts of two tool lists. `None` if a text is not such a list or there is
/// anything wrong with it: then read it as a document.
pub fn diff_lists(old: &str, new: &str) -> Option<Comparison> {
    let (old, new) = on_two_cores(|| Outline::read(old), || Outline::read(new));
    let (old, new) = (old?, new?);
    let (old, new) = (tools(old.root())?, tools(new.root())?);
    diff_all(
        old.into_iter(),
        new.into_iter(),
        |one, two| pair(one, two).ok_or(()),
        |tool| subject(tool.to_value()).ok_or(()),
    )
    .ok()
}

/// The entries of a `tools/list` result or of an array of tools, by name; `None` for any other form, and for whatever
/// needs a closer look.
fn tools(root: OutlineNode<'_>) -> Option<Vec<(&str, OutlineNode<'_>)>> {
    let is_other = ["result", "instructions", "name"].iter().any(|key| root.member(key).is_some());
    let list = if root.is_array() { root } else { root.member("tools").filter(|list| list.is_array() && !is_other)? };
    let named = |tool| Some((name(tool)?, tool));
    let tools = list.items().map(named).collect::<Option<Vec<_>>>()?;
    let mut names = HashSet::new();
    tools.iter().all(|(name, _)| names.insert(*name)).then_some(tools)
}

fn name(tool: OutlineNode<'_>) -> Option<&str> {
    tool.member("name")?.as_plain_str().filter(|name| !name.is_empty())
}

fn subject<'a>(entry: Option<Value>) -> Option<Subject<'a>> {
    listing::spec(entry?).ok().map(|spec| Subject::of_spec(Cow::Owned(spec)))
}

/// Both versions of a tool, without schemas and parameters that are the same text in both.
fn pair<'a>(old: OutlineNode<'_>, new: OutlineNode<'_>) -> Option<SubjectPair<'a>> {
    if old.text() == new.text() {
        return Some(None);
    }
    let entries = if old.refers() || new.refers() {
        (old.to_value(), new.to_value())
    } else {
        (differing(old, new, entry_part), differing(new, old, entry_part))
    };
    Some(Some((subject(entries.0)?, subject(entries.1)?)))
}

/// What is read of a member: nothing where it is left out. `None` if it cannot be read.
type MemberReading = Option<Option<Value>>;

/// An object whose members are read by `part`, which also gets the member of the same name in the other version.
fn differing(
    object: OutlineNode<'_>,
    other: OutlineNode<'_>,
    part: fn(&str, OutlineNode<'_>, OutlineNode<'_>) -> MemberReading,
) -> Option<Value> {
    // Asked of both, so that both versions are read in the same way.
    let has_many = |object: OutlineNode<'_>| object.members().nth(MAX_MEMBERS).is_some();
    if has_many(object) || has_many(other) || !object.is_object() || !other.is_object() {
        return object.to_value();
    }
    let others: Vec<_> = other.members().collect();
    let mut read = Map::new();
    for (index, (key, member)) in object.members().enumerate() {
        // Most members have the same place in both.
        let twin = others.get(index).filter(|(name, _)| *name == key);
        let twin = twin.or_else(|| others.iter().find(|(name, _)| *name == key));
        let value = match twin {
            Some((_, twin)) => part(key, member, *twin)?,
            None => Some(member.to_value()?),
        };
        if let Some(value) = value {
            read.insert(key.to_owned(), value);
        }
    }
    Some(Value::Object(read))
}

fn entry_part(key: &str, part: OutlineNode<'_>, twin: OutlineNode<'_>) -> MemberReading {
    let value = match key {
        "inputSchema" | "outputSchema" | "parameters" if part.is_object() && part.text() == twin.text() => {
            Some(Value::Object(Map::new()))
        }
        "inputSchema" | "outputSchema" | "parameters" => schema(part, twin),
        _ => part.to_value(),
    };
    value.map(Some)
}

/// A schema in which members that are the same text in the other version accept everything, without titles,
/// descriptions and examples that are the same.
fn schema(part: OutlineNode<'_>, twin: OutlineNode<'_>) -> Option<Value> {
    let is_separate = |schema: OutlineNode<'_>| {
        let is_alone = |key| matches!(key, "type" | "properties" | "required" | "additionalProperties" | "items");
        schema.members().all(|(key, _)| is_alone(key) || is_annotation(key))
    };
    if !(is_separate(part) && is_separate(twin)) {
        return part.to_value();
    }
    differing(part, twin, |key, part, twin| match key {
        "properties" => differing(part, twin, |_, part, twin| match part.is_object() && part.text() == twin.text() {
            true => Some(Some(Value::Bool(true))),
            false => schema(part, twin).map(Some),
        })
        .map(Some),
        "title" | "description" | "examples" if part.text() == twin.text() => Some(None),
        _ => part.to_value().map(Some),
    })
}
