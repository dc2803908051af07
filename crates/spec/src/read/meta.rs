//! The lines under a tool's heading that say something about the whole tool: version, title, hints
//! and audience.

use sinew_tool::{Audience, Hints};

/// `(value, offset of the value in the line)` of a version line: `- **Version**: 1.0.2`,
/// `Version: v1.1.9`, `**Version**: v0.2.0 | **Status**: Active`.
pub(crate) fn version_in(line: &str) -> Option<(&str, usize)> {
    let (value, at, marked) = entry(line, "version")?;
    let length = value.find(|c: char| c.is_whitespace() || matches!(c, '|' | ',' | ';' | ')')).unwrap_or(value.len());
    let word = value[..length].trim_end_matches(['.', '*', '`', '_']);
    let opening = word.len() - word.trim_start_matches(['`', '*', '_', '"']).len();
    let word = word[opening..].trim_end_matches('"');
    let numeric = word.trim_start_matches(['v', 'V']).starts_with(|c: char| c.is_ascii_digit());
    (numeric || marked && !word.is_empty()).then_some((word, at + opening))
}

/// A version within a sentence or a table row: `Reads a file. Version: 1.0.2.`, `| Version | 1.0.2 |`,
/// `(v1.1.9)`. The word must begin a sentence, a cell or a remark: "needs Python version: 3.8" speaks of
/// something else.
pub(crate) fn version_within(line: &str) -> Option<(&str, usize)> {
    let mut from = 0;
    while let Some(found) = line.get(from..)?.find(['V', 'v']) {
        let at = from + found;
        from = at + 1;
        let before = line[..at].trim_end_matches(['*', '_', '`', ' ']);
        let begins = before.is_empty() || before.ends_with(['.', '(', '|', '-', '!', '?', ';', '[', ':']);
        if !begins {
            continue;
        }
        let word = line.get(at..at + 7).filter(|word| word.eq_ignore_ascii_case("version"));
        if word.is_some() {
            let rest = &line[at + 7..];
            let value = rest.trim_start_matches(['*', '_', '`', ' ', ':', '|', '"', '=']);
            let separated = rest.len() - value.len() > 0;
            if let Some(value) = numbers(value).filter(|_| separated) {
                return Some((
                    value,
                    line.len() - rest.len()
                        + (rest.len() - rest.trim_start_matches(['*', '_', '`', ' ', ':', '|', '"', '=']).len()),
                ));
            }
        } else if let Some(value) = numbers(&line[at..]).filter(|value| value.matches('.').count() >= 2) {
            return Some((value, at));
        }
    }
    None
}

/// The version that a cell of a table states.
pub(crate) fn version(cell: &str) -> Option<&str> {
    numbers(cell.trim_matches(['*', '_', '`', '"', ' ']))
}

/// `v1.2.3` in a heading.
pub(crate) fn bare_version(words: &str) -> Option<(&str, usize)> {
    let mut at = 0;
    for word in words.split([' ', '(', ')', '[', ']', ',', '—', '–']) {
        if word.starts_with(['v', 'V'])
            && let Some(value) = numbers(word).filter(|value| value.contains('.') && value.len() == word.len())
        {
            return Some((value, at));
        }
        at += word.len() + words[at + word.len()..].chars().next().map_or(0, char::len_utf8);
    }
    version_within(words)
}

/// The version at the beginning of a text: an optional `v`, numbers and dots, and what semver allows after them.
fn numbers(text: &str) -> Option<&str> {
    let digits = text.trim_start_matches(['v', 'V']);
    let lead = text.len() - digits.len();
    if lead > 1 || !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let end =
        digits.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'))).unwrap_or(digits.len());
    let value = digits[..end].trim_end_matches(['.', '-', '+']);
    (value.split(['.', '-', '+']).next()?.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| &text[..lead + value.len()])
}

pub(crate) fn title_in(line: &str) -> Option<&str> {
    entry(line, "title").filter(|(value, _, marked)| *marked && !value.is_empty()).map(|(value, _, _)| value)
}

pub(crate) fn audience_in(line: &str) -> Option<Audience> {
    let (value, _, marked) = entry(line, "audience")?;
    (marked && value.trim_matches('`') == "user").then_some(Audience::User)
}

pub(crate) fn hints_in(line: &str) -> Option<Hints> {
    let (value, _, marked) = entry(line, "hints")?;
    let mut hints = Hints::default();
    for pair in value.split(',') {
        let (key, on) = pair.trim().trim_matches('`').split_once('=')?;
        let on = Some(match on {
            "true" => true,
            "false" => false,
            _ => return None,
        });
        match key {
            "readOnlyHint" => hints.read_only = on,
            "destructiveHint" => hints.destructive = on,
            "idempotentHint" => hints.idempotent = on,
            "openWorldHint" => hints.open_world = on,
            _ => return None,
        }
    }
    marked.then_some(hints)
}

/// The hints as [`hints_in`] reads them.
pub(crate) fn hints_text(hints: Hints) -> String {
    let pairs = [
        ("readOnlyHint", hints.read_only),
        ("destructiveHint", hints.destructive),
        ("idempotentHint", hints.idempotent),
        ("openWorldHint", hints.open_world),
    ];
    let stated = pairs.iter().filter_map(|(key, on)| on.map(|on| format!("`{key}={on}`")));
    stated.collect::<Vec<_>>().join(", ")
}

/// The value of a `Key: value` line, where it begins, and whether the line is marked as an entry by
/// a list bullet or bold type, which running text is not.
fn entry<'a>(line: &'a str, key: &str) -> Option<(&'a str, usize, bool)> {
    let bullet = line.trim_start();
    let body = bullet.strip_prefix("- ").or_else(|| bullet.strip_prefix("* ")).unwrap_or(bullet).trim_start();
    let plain = body.trim_start_matches(['*', '_']);
    let marked = plain.len() != body.len() || body.len() != bullet.len();
    if !plain.get(..key.len())?.eq_ignore_ascii_case(key) {
        return None;
    }
    let rest = plain[key.len()..].trim_start_matches(['*', '_']).strip_prefix(':')?;
    let value = rest.trim_start_matches('*').trim_start();
    let at = line.len() - value.len();
    Some((value.trim_end(), at, marked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_every_form() {
        for (line, expected) in [
            ("- **Version**: 1.0.2", Some("1.0.2")),
            ("**Version:** 1.0.2", Some("1.0.2")),
            ("Version: 1.0.2.", Some("1.0.2")),
            ("**Version**: v1.1.9 | **Status**: Active", Some("v1.1.9")),
            ("- **Version**: `2.0.0`", Some("2.0.0")),
            ("- **Version**: latest", Some("latest")),
            ("Version: control systems are supported", None),
            ("Versions: 1.0", None),
            ("The version: 1.0", None),
        ] {
            let found = version_in(line);
            assert_eq!(found.map(|(value, _)| value), expected, "{line}");
            if let Some((value, at)) = found {
                assert_eq!(&line[at..at + value.len()], value);
            }
        }
    }

    #[test]
    fn hints_are_read_back() {
        let hints = Hints { read_only: Some(false), idempotent: Some(true), ..Hints::default() };
        assert_eq!(hints_in(&format!("- **Hints**: {}", hints_text(hints))), Some(hints));
        assert_eq!(hints_in("- **Hints**: be nice"), None);
    }
}
