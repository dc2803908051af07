//! Descriptions that say enough and not too much, and versions.

use super::{Reporter, rules};
use crate::model::{Section, ToolSpecification, read_version};
use crate::read::prose;
use sinew_tool::finding::Edit;
use sinew_tool::text::clip;

pub(super) fn check(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    description(reporter, tool);
    if reporter.is_markdown() {
        version(reporter, tool);
    }
}

/// About how many tokens a text costs a model: four characters of English make one, other scripts
/// cost one token per character.
pub(super) fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let other = text.chars().filter(|c| !c.is_ascii()).count();
    ascii.div_ceil(4) + other
}

fn description(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let span = tool.places.description.unwrap_or_else(|| tool.places.section_heading(Section::Purpose));
    let text = prose::to_text(&tool.purpose);
    let has_text = text.split_whitespace().count() > 0;
    if !has_text && reporter.is_markdown() && tool.places.section(Section::Purpose).is_some() {
        return;
    }
    if let Some(why) = vague(&tool.name, &text) {
        let message = format!("{why}; say what the tool does, with what, and what it returns");
        reporter.report(&rules::DESCRIPTION_VAGUE, span, message);
    }
    let price = tokens(&text);
    if price > reporter.config.description_tokens {
        let whole = tokens(&tool.to_tool().to_json().to_string());
        let message = format!(
            "the description costs about {price} tokens in every conversation that lists this tool ({whole} with its schemas); aim for at most {}",
            reporter.config.description_tokens
        );
        reporter.report(&rules::DESCRIPTION_LONG, span, message);
    }
}

/// Why a description does not help to choose the tool.
fn vague(name: &str, text: &str) -> Option<String> {
    const EMPTY: &[&str] = &[
        "a",
        "an",
        "the",
        "this",
        "that",
        "tool",
        "tools",
        "for",
        "of",
        "to",
        "and",
        "or",
        "with",
        "in",
        "is",
        "it",
        "does",
        "do",
        "stuff",
        "things",
        "thing",
        "something",
        "various",
        "some",
        "function",
        "functionality",
        "operation",
        "operations",
        "utility",
        "helper",
        "handles",
        "handle",
        "performs",
        "perform",
        "process",
        "processes",
        "manage",
        "manages",
        "tbd",
        "todo",
        "description",
        "etc",
        "data",
    ];
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    // In scripts without spaces a whole sentence is one word.
    let dense = text.chars().filter(|c| !c.is_ascii()).count() >= 8;
    if words.is_empty() && !dense {
        return Some("the tool has no description".to_owned());
    }
    let named = super::names::words(name);
    let stems: Vec<&str> = named.iter().map(|word| stem(word)).collect();
    let new = words.iter().filter(|word| !EMPTY.contains(word) && !stems.contains(&stem(word))).count();
    if dense {
        return None;
    }
    match new {
        0 => Some(format!("\"{}\" says no more than the name", clip(text.trim()))),
        _ if words.len() < 4 => Some(format!("\"{}\" is too short to help choose the tool", clip(text.trim()))),
        _ => None,
    }
}

/// A word without the ending that its place in a sentence gives it: `reads` and `reading` say what `read` says.
fn stem(word: &str) -> &str {
    let bare = ["ing", "ed", "es", "s"].iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
    let bare = if bare.len() < 3 { word } else { bare };
    bare.strip_suffix('e').filter(|bare| bare.len() >= 3).unwrap_or(bare)
}

fn version(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let Some(version) = &tool.version else {
        let message = "the tool has no version; write `- **Version**: 1.0.0` under its heading";
        reporter.report(&rules::VERSION_MISSING, tool.places.heading, message);
        return;
    };
    if sinew_tool::Version::parse(version).is_ok() {
        return;
    }
    let span = tool.places.version.unwrap_or(tool.places.heading);
    // The version of the document is that of each of its tools; report it once.
    if reporter
        .findings
        .iter()
        .any(|earlier| earlier.rule == &rules::VERSION_NOT_SEMVER && earlier.place.span() == Some(span))
    {
        return;
    }
    let meant = read_version(version).map(|version| version.to_string());
    let message = match &meant {
        Some(meant) => format!("`{}` is not a semantic version; write {meant}", clip(version)),
        None => format!("`{}` is not a semantic version (MAJOR.MINOR.PATCH)", clip(version)),
    };
    let fix = meant.map(|replacement| Edit { span, replacement });
    reporter.report_fixable(&rules::VERSION_NOT_SEMVER, span, message, fix);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_must_say_more_than_the_name() {
        for (name, text) in [
            ("read_file", ""),
            ("read_file", "Read file."),
            ("read_file", "This tool reads files."),
            ("read_file", "A tool for reading a file. A tool for reading files."),
            ("delete_note", "Deletes the notes; deleting of a note."),
            ("x", "A tool for things"),
            ("x", "Sends mail"),
        ] {
            assert!(vague(name, text).is_some(), "{text}");
        }
        for (name, text) in [
            ("read_file", "Returns the text of a file below the workspace."),
            ("set_volume", "设置扬声器音量，返回新的音量值"),
        ] {
            assert_eq!(vague(name, text), None, "{text}");
        }
    }

    #[test]
    fn tokens_are_priced_by_script() {
        assert_eq!(tokens("abcdefgh"), 2);
        assert_eq!(tokens("音量"), 2);
        assert_eq!(tokens(""), 0);
    }
}
