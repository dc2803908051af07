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

/// The part of a name that will have to change, such as `_v2`.
fn unstable(name: &str) -> Option<&'static str> {
    let words: Vec<String> = name.split(['_', '-', '.']).map(str::to_lowercase).collect();
    for (index, word) in words.iter().enumerate() {
        let digits = word.strip_prefix('v').filter(|digits| !digits.is_empty()).unwrap_or("x");
        if digits.bytes().all(|byte| byte.is_ascii_digit()) && index > 0 {
            return Some("contains a version, which belongs in the version line");
        }
        if word.len() >= 6 && word.starts_with("20") && word.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some("contains a date");
        }
        let is_last = index + 1 == words.len() && index > 0;
        // `create_draft` and `read_temp` name what they act on.
        let is_object = index > 0 && VERBS.contains(&words[index - 1].as_str());
        let is_passing = match word.as_str() {
            "tmp" | "wip" => true,
            "new" | "old" | "temp" | "draft" | "beta" | "alpha" => !is_object,
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
        for name in ["search_v2", "report_20250131", "sync_tmp", "files.v1.read"] {
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
        ] {
            assert_eq!(unstable(name), None, "{name}");
        }
    }
}
