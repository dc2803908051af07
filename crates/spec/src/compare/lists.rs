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
    let (one, two) = if old.refers() || new.refers() { wholes(old, new)? } else { differing(old, new, entry_part)? };
    Some(Some((subject(Some(one))?, subject(Some(two))?)))
}

/// Both versions of a value.
type Versions = (Value, Value);

fn wholes(old: OutlineNode<'_>, new: OutlineNode<'_>) -> Option<Versions> {
    Some((old.to_value()?, new.to_value()?))
}

/// Two objects, of which `part` reads the members that both have: neither where nothing is to be compared.
fn differing(
    old: OutlineNode<'_>,
    new: OutlineNode<'_>,
    part: fn(&str, OutlineNode<'_>, OutlineNode<'_>) -> Option<Option<Versions>>,
) -> Option<Versions> {
    let (ones, twos): (Vec<_>, Vec<_>) = (old.members().collect(), new.members().collect());
    if !old.is_object() || !new.is_object() || ones.len().max(twos.len()) > MAX_MEMBERS {
        return wholes(old, new);
    }
    let (mut before, mut after) = (Map::with_capacity(ones.len()), Map::with_capacity(twos.len()));
    for (index, (key, one)) in ones.iter().enumerate() {
        match twin(&twos, index, key) {
            Some(two) => {
                if let Some((one, two)) = part(key, *one, two)? {
                    before.insert((*key).to_owned(), one);
                    after.insert((*key).to_owned(), two);
                }
            }
            None => {
                before.insert((*key).to_owned(), one.to_value()?);
            }
        }
    }
    for (index, (key, two)) in twos.iter().enumerate() {
        if twin(&ones, index, key).is_none() {
            after.insert((*key).to_owned(), two.to_value()?);
        }
    }
    Some((Value::Object(before), Value::Object(after)))
}

/// The member of the other version; most have the same place in both.
fn twin<'a>(others: &[(&str, OutlineNode<'a>)], index: usize, key: &str) -> Option<OutlineNode<'a>> {
    let there = others.get(index).filter(|(name, _)| *name == key);
    there.or_else(|| others.iter().find(|(name, _)| *name == key)).map(|(_, node)| *node)
}

fn entry_part(key: &str, old: OutlineNode<'_>, new: OutlineNode<'_>) -> Option<Option<Versions>> {
    let empty = || Value::Object(Map::new());
    match key {
        "inputSchema" | "outputSchema" | "parameters" if is_same(old, new) => Some((empty(), empty())),
        "inputSchema" | "outputSchema" | "parameters" => schema(old, new),
        _ => wholes(old, new),
    }
    .map(Some)
}

/// Two versions of a schema without titles, descriptions and examples that are the same text, and in which members
/// that are the same accept everything. Where no other member came or went, those are left out.
fn schema(old: OutlineNode<'_>, new: OutlineNode<'_>) -> Option<Versions> {
    let is_separate = |schema: OutlineNode<'_>| {
        let is_alone = |key| matches!(key, "type" | "properties" | "required" | "additionalProperties" | "items");
        schema.members().all(|(key, _)| is_alone(key) || is_annotation(key))
    };
    if !(is_separate(old) && is_separate(new)) {
        return wholes(old, new);
    }
    differing(old, new, if have_same_members(old, new) { part_of_same_members } else { part_of_others })
}

/// Whether two objects have members of the same names, and nothing is said of members of other names: then each is
/// independent of the others.
fn have_same_members(old: OutlineNode<'_>, new: OutlineNode<'_>) -> bool {
    let is_open = |schema: OutlineNode<'_>| schema.member("additionalProperties").is_none();
    is_open(old) && is_open(new) && member_names(old).eq(member_names(new))
}

fn member_names<'a>(schema: OutlineNode<'a>) -> impl Iterator<Item = &'a str> {
    schema.member("properties").into_iter().flat_map(OutlineNode::members).map(|(name, _)| name)
}

fn part_of_same_members(key: &str, old: OutlineNode<'_>, new: OutlineNode<'_>) -> Option<Option<Versions>> {
    match key {
        "properties" => differing(old, new, |_, old, new| match is_same(old, new) {
            true => Some(None),
            false => schema(old, new).map(Some),
        })
        .map(Some),
        "required" if old.text() == new.text() => Some(None),
        _ => part_of_others(key, old, new),
    }
}

fn part_of_others(key: &str, old: OutlineNode<'_>, new: OutlineNode<'_>) -> Option<Option<Versions>> {
    match key {
        "properties" => differing(old, new, |_, old, new| match is_same(old, new) {
            true => Some(Some((Value::Bool(true), Value::Bool(true)))),
            false => schema(old, new).map(Some),
        })
        .map(Some),
        "title" | "description" | "examples" if old.text() == new.text() => Some(None),
        _ => wholes(old, new).map(Some),
    }
}

fn is_same(old: OutlineNode<'_>, new: OutlineNode<'_>) -> bool {
    old.is_object() && old.text() == new.text()
}
