//! Invocation names: stated, legal, stable, unique, and short enough for real clients.

use sinew_tool::text::clip;

use std::collections::HashMap;

use super::{Bench, placeholders, rules};
use crate::model::{Section, ToolSpec};

/// As the protocol allows.
const LONGEST: usize = 128;

pub fn unique(bench: &mut Bench<'_>) {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let document = bench.document;
    for tool in &document.tools {
        if tool.name.is_empty() || placeholders::is_placeholder(&tool.name) {
            continue;
        }
        let span = tool.places.name.unwrap_or(tool.places.heading);
        let line = document.lines.position(&document.text, span.start).line;
        match first.get(tool.name.as_str()) {
            Some(other) => {
                let message = format!("`{}` is already the name of the tool in line {other}", clip(&tool.name));
                bench.tool = Some(tool);
                bench.tell(&rules::NAME_DUPLICATE, span, message);
                bench.tool = None;
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

/// Whether a name is one that the protocol allows.
pub fn is_legal(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len()) && illegal(name).is_none()
}

pub fn check(bench: &mut Bench<'_>, tool: &ToolSpec) {
    let name = tool.name.as_str();
    let span = tool.places.name.unwrap_or_else(|| tool.places.near(Section::Name));
    if name.is_empty() {
        bench.tell(&rules::NAME_MISSING, span, "the tool has no invocation name; give it in backticks");
        return;
    }
    let shown = clip(name);
    if let Some(character) = illegal(name) {
        let character = character.escape_debug();
        let message = format!("`{shown}` holds `{character}`; a name is made of letters, digits, `_`, `-` and `.`");
        bench.tell(&rules::NAME_ILLEGAL, span, message);
    } else if name.len() > LONGEST {
        bench.tell(
            &rules::NAME_ILLEGAL,
            span,
            format!("the name has {} characters; the protocol allows {LONGEST}", name.len()),
        );
    } else if name.len() > bench.config.name_length {
        let message = format!(
            "the name has {} characters; clients allow 64 and put the server's name in front, so keep it within {}",
            name.len(),
            bench.config.name_length
        );
        bench.tell(&rules::NAME_TOO_LONG, span, message);
    }
    if let Some(why) = unstable(name) {
        bench.tell(
            &rules::NAME_UNSTABLE,
            span,
            format!("`{shown}` {why}; a name stays the same for as long as the tool lives"),
        );
    }
    let stated = tool.places.name.is_some();
    if let (true, Some(heading)) = (stated, &tool.places.heading_name)
        && !heading.is_empty()
        && heading != name
        && !name.ends_with(&format!(".{heading}"))
    {
        let message = format!("the heading calls the tool `{}`, this section calls it `{shown}`", clip(heading));
        bench.tell(&rules::NAME_UNSTABLE, span, message);
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

/// What in a name will not last.
fn unstable(name: &str) -> Option<&'static str> {
    let words: Vec<String> = name.split(['_', '-', '.']).map(str::to_lowercase).collect();
    for (index, word) in words.iter().enumerate() {
        let digits = word.strip_prefix('v').filter(|digits| !digits.is_empty()).unwrap_or("x");
        if digits.bytes().all(|byte| byte.is_ascii_digit()) && index > 0 {
            return Some("carries a version, which belongs in the version line");
        }
        if word.len() >= 6 && word.starts_with("20") && word.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some("carries a date");
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
            return Some("says that it is not meant to last");
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
