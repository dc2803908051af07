//! Running text: normalising what was read, and carrying plain text through a document unchanged.

/// Printed for an empty section; read back as empty.
pub(crate) const NOT_STATED: &str = "_Not stated._";

/// Plain text (a description from a device) as markdown that is read back as the same text: lines
/// that would look like structure get a backslash. Line endings and blank lines are normalised.
pub(crate) fn from_text(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.trim_end();
        if line.is_empty() && lines.last().is_none_or(|last| last.is_empty()) {
            continue;
        }
        let body = line.trim_start();
        let indent = &line[..line.len() - body.len()];
        let escape = if looks_structural(body) { "\\" } else { "" };
        lines.push(format!("{indent}{escape}{body}"));
    }
    while lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines.join("\n")
}

/// The plain text of prose made by [`from_text`]; other prose keeps its markdown.
pub(crate) fn to_text(prose: &str) -> String {
    let unescape = |line: &str| {
        let body = line.trim_start();
        match body.strip_prefix('\\') {
            Some(rest) if looks_structural(rest) => format!("{}{rest}", &line[..line.len() - body.len()]),
            _ => line.to_owned(),
        }
    };
    prose.split('\n').map(unescape).collect::<Vec<_>>().join("\n")
}

/// Text on one line with single spaces.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn looks_structural(body: &str) -> bool {
    body.starts_with(['#', '\\', '|', '<'])
        || body.starts_with("```")
        || body.starts_with("~~~")
        || body == NOT_STATED
        || is_break(body)
        || is_underline(body)
        || super::meta::version_in(body).is_some()
}

/// `## words`.
pub(crate) fn is_heading(line: &str) -> bool {
    let body = line.trim_start();
    let rest = body.trim_start_matches('#');
    (1..=6).contains(&(body.len() - rest.len())) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// `====` or `----`: makes a heading of the line before it.
pub(crate) fn is_underline(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && (line.bytes().all(|byte| byte == b'=') || line.bytes().all(|byte| byte == b'-'))
}

/// `---`, `***`, `___`: a thematic break.
pub(crate) fn is_break(line: &str) -> bool {
    let line = line.trim();
    let mark = line.as_bytes().first().copied().unwrap_or(b' ');
    matches!(mark, b'-' | b'*' | b'_')
        && line.bytes().all(|byte| byte == mark || byte == b' ')
        && line.bytes().filter(|byte| *byte == mark).count() >= 3
}

/// The text of a cell or heading without code marks and emphasis.
pub(crate) fn unmark(text: &str) -> String {
    let text = text.trim();
    let inner = uncode(text).unwrap_or(text);
    inner.trim_matches('*').trim().to_owned()
}

/// The inside of a text that is one code span, whatever the number of its backticks.
pub(crate) fn uncode(text: &str) -> Option<&str> {
    let text = text.trim();
    let ticks = text.len() - text.trim_start_matches('`').len();
    if ticks == 0 || text.len() < 2 * ticks {
        return None;
    }
    let fence = &text[..ticks];
    let inner = text.strip_prefix(fence)?.strip_suffix(fence)?;
    // Two code spans side by side are not one.
    if inner.contains(fence) {
        return None;
    }
    let padded = ticks > 1 && inner.starts_with(' ') && inner.ends_with(' ') && inner.len() > 2;
    Some(if padded { &inner[1..inner.len() - 1] } else { inner })
}

/// The inside of the first code span.
pub(crate) fn first_code(text: &str) -> Option<&str> {
    let start = text.find('`')?;
    let rest = &text[start..];
    let ticks = rest.len() - rest.trim_start_matches('`').len();
    let inner = &rest[ticks..];
    let end = inner.find(&rest[..ticks])?;
    Some(inner[..end].trim()).filter(|code| !code.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_survives_being_prose() {
        for text in [
            "One line.",
            "# a heading\n## another",
            "```\ncode\n```",
            "---\n***",
            "| a | b |",
            "\\already escaped",
            "  indented # not\n    # deep",
            "Version: 1.2.3",
            "_Not stated._",
            "日本語\n\nעברית",
            "<!-- hidden -->",
            "<pre>\n# x",
            "text\n===\nmore\n-",
        ] {
            assert_eq!(to_text(&from_text(text)), text, "{text:?}");
        }
    }

    #[test]
    fn white_space_is_normalised() {
        assert_eq!(from_text("\r\n\r\na  \r\n\n\n\nb\rc\n\n"), "a\n\nb\nc");
    }

    #[test]
    fn code_spans_are_opened() {
        assert_eq!(uncode("`a`"), Some("a"));
        assert_eq!(uncode("`` a`b ``"), Some("a`b"));
        assert_eq!(uncode("`a` or `b`"), None);
        assert_eq!(uncode("a"), None);
        assert_eq!(uncode("`"), None);
        assert_eq!(uncode("```"), None);
        assert_eq!(first_code("call `x.y` then `z`"), Some("x.y"));
        assert_eq!(first_code("`open"), None);
        assert_eq!(unmark("**Yes**"), "Yes");
    }
}
