//! Invocation names: present, valid, stable, unique, and short enough for real clients.

use sinew_tool::text::clip;

use std::collections::HashMap;

use super::{Reporter, placeholders, rules};
use crate::model::{Section, ToolSpecification};

/// The protocol's limit.
const LONGEST: usize = 128;

pub(super) fn unique(reporter: &mut Reporter<'_>) {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let document = reporter.document;
    for tool in &document.tools {
        if tool.name.is_empty() || placeholders::is_placeholder(&tool.name) {
            continue;
        }
        let span = tool.places.name.unwrap_or(tool.places.heading);
        let line = document.lines.position(&document.text, span.start).line;
        match first.get(tool.name.as_str()) {
            Some(other) => {
                let message = format!("`{}` is already the name of the tool in line {other}", clip(&tool.name));
                reporter.tool = Some(tool);
                reporter.report(&rules::NAME_DUPLICATE, span, message);
                reporter.tool = None;
            }
            None => {
                first.insert(&tool.name, line);
            }
        }
    }
}

fn illegal(name: &str) -> Option<char> {
    name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))
}

/// Whether the protocol allows a name.
pub(super) fn is_legal(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len()) && illegal(name).is_none()
}

pub(super) fn check(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let name = tool.name.as_str();
    let span = tool.places.name.unwrap_or_else(|| tool.places.section_heading(Section::Name));
    if name.is_empty() {
        reporter.report(&rules::NAME_MISSING, span, "the tool has no invocation name; give it in backticks");
        return;
    }
    let shown = clip(name);
    if let Some(character) = illegal(name) {
        let character = character.escape_debug();
        let message = format!("`{shown}` contains `{character}`; a name may have letters, digits, `_`, `-` and `.`");
        reporter.report(&rules::NAME_ILLEGAL, span, message);
    } else if name.len() > LONGEST {
        reporter.report(
            &rules::NAME_ILLEGAL,
            span,
            format!("the name has {} characters; the protocol allows {LONGEST}", name.len()),
        );
    } else if name.len() > reporter.config.name_length {
        let message = format!(
            "the name has {} characters; clients allow 64 and put the server's name in front, so keep it within {}",
            name.len(),
            reporter.config.name_length
        );
        reporter.report(&rules::NAME_TOO_LONG, span, message);
    }
    if let Some(why) = unstable(name) {
        reporter.report(&rules::NAME_UNSTABLE, span, format!("`{shown}` {why}; a name should never have to change"));
    }
    let stated = tool.places.name.is_some();
    if let (true, Some(heading)) = (stated, &tool.places.heading_name)
        && !heading.is_empty()
        && heading != name
        && !name.ends_with(&format!(".{heading}"))
    {
        let message = format!("the heading calls the tool `{}`, this section calls it `{shown}`", clip(heading));
        reporter.report(&rules::NAME_UNSTABLE, span, message);
    }
}

/// Verbs whose object may be a draft, a temperature or something old.
const VERBS: &[&str] = &[
    "add",
    "archive",
    "calculate",
    "compute",
    "copy",
    "create",
    "delete",
    "discard",
    "edit",
    "fetch",
    "find",
    "get",
    "list",
    "load",
    "make",
    "mark",
    "measure",
    "move",
    "open",
    "publish",
    "read",
    "remove",
    "save",
    "search",
    "send",
    "set",
    "show",
    "submit",
    "update",
    "write",
];

/// The words of a name, in small letters: `read_file`, `read-file` and `readFile` have the same.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for character in name.chars() {
        let is_border = matches!(character, '_' | '-' | '.' | '/');
        if is_border || character.is_uppercase() && before.is_lowercase() {
            words.push(String::new());
        }
        if !is_border && let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
        before = character;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The part of a name that will have to change, such as `_v2`.
fn unstable(name: &str) -> Option<&'static str> {
    let words = words(name);
    let is_number = |word: &str, least: u32, most: u32| {
        word.parse::<u32>().is_ok_and(|number| (least..=most).contains(&number)) && !word.starts_with('+')
    };
    for (index, word) in words.iter().enumerate() {
        let digits = word.strip_prefix('v').filter(|digits| !digits.is_empty()).unwrap_or("x");
        if digits.bytes().all(|byte| byte.is_ascii_digit()) && words.len() > 1 {
            return Some("contains a version, which belongs in the version line");
        }
        let is_whole_date = word.len() >= 6 && word.starts_with("20") && word.bytes().all(|byte| byte.is_ascii_digit());
        let is_month = words.get(index + 1).is_some_and(|month| month.len() == 2 && is_number(month, 1, 12));
        if is_whole_date || word.len() == 4 && is_number(word, 1990, 2099) && is_month {
            return Some("contains a date");
        }
        let is_last = index + 1 == words.len() && index > 0;
        // `create_draft` and `read_temp` name what they act on.
        let is_object = index > 0 && VERBS.contains(&words[index - 1].as_str());
        let is_passing = match word.as_str() {
            "tmp" | "wip" | "deprecated" | "legacy" | "experimental" => true,
            "new" | "old" | "temp" | "draft" | "beta" | "alpha" | "latest" | "final" => !is_object,
            _ => false,
        };
        if is_last && is_passing {
            return Some("says that it is temporary");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_dates_do_not_belong_in_a_name() {
        for name in [
            "search_v2",
            "searchV2",
            "search-V3",
            "v2.search",
            "report_20250131",
            "report_2025_01_31",
            "sync_tmp",
            "sync_legacy",
            "files.v1.read",
        ] {
            assert!(unstable(name).is_some(), "{name}");
        }
        for name in [
            "read_file",
            "ipv4_lookup",
            "sha256",
            "v2x",
            "new_session",
            "create_draft",
            "read_temp",
            "mp3_2_wav",
            "o1_execute",
            "get_latest",
            "convert_2000_12v",
            "iso_8601_parse",
            "office_2019_open",
        ] {
            assert_eq!(unstable(name), None, "{name}");
        }
    }
}
