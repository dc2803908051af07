//! Recognising names of tools: in headings, in bullets, and in the titles above lists of tools.

use super::labels::section;
use super::prose;

/// How likely a heading is to begin a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confidence {
    /// `Tool: x`.
    Explicit,
    /// A name in backticks, or a name with an underscore: a tool, if what follows looks like one.
    Likely,
    /// One lower-case word: a tool only below a heading such as "Available Tools".
    Listed,
}

/// The tool that a heading begins.
pub(crate) fn tool(words: &str) -> Option<(String, Confidence)> {
    let plain = plain(words);
    let words = unmarked(without_number(&plain));
    // `**Tool:** x`, and the same all in code
    let bold = words.strip_prefix("**").and_then(|bold| bold.split_once("**"));
    let bold = bold.map(|(label, name)| format!("{label}{name}"));
    let code = prose::uncode(words).filter(|code| code.contains([':', '：']));
    if let Some((kind, name)) = announced(bold.as_deref().or(code).unwrap_or(words)) {
        return Some((prose::one_line(unmarked(name)), kind));
    }
    if words.starts_with('`') {
        let code = prose::first_code(words)?;
        let name = code.split('(').next().unwrap_or(code).trim();
        return (is_name(name) && !is_file(name)).then(|| (name.to_owned(), Confidence::Likely));
    }
    let (name, is_signature) = unsigned(words);
    let is_plain = is_name(name) && name.starts_with(|c: char| c.is_ascii_lowercase());
    if is_plain && !is_file(name) && section(name).is_none() {
        let is_sure = is_signature || is_made_of_words(name);
        return Some((name.to_owned(), if is_sure { Confidence::Likely } else { Confidence::Listed }));
    }
    // `Read a file (`read_file`)`
    let last = words.trim_end_matches([')', ']', ' ']);
    let code = last.strip_suffix('`')?.rsplit('`').next()?;
    let name = code.split('(').next().unwrap_or(code).trim();
    let is_meant = last.matches('`').count() == 2 && is_name(name) && is_made_of_words(name) && !is_file(name);
    (is_meant && section(words).is_none()).then(|| (name.to_owned(), Confidence::Listed))
}

/// The words of a heading without what decorates them: tags, an anchor, a link, bold type, pictures in front.
fn plain(words: &str) -> String {
    let mut plain = if words.contains('<') { super::html_table::untagged(words) } else { words.to_owned() };
    if let Some((before, _)) = plain.split_once("{#") {
        plain = before.to_owned();
    }
    // Marks that only show: an escaped underscore, and a digit in a box.
    plain = plain.replace("\\_", "_").replace("\u{fe0f}\u{20e3}", ".");
    let mut words = plain.trim_start_matches(|c: char| !(c.is_ascii() || c.is_alphanumeric()) || c == ' ').trim_end();
    if let Some(link) =
        words.strip_prefix('[').and_then(|link| link.strip_suffix(')')).filter(|link| !link.contains(' '))
    {
        words = link.split_once("](").map_or(words, |(text, _)| text);
    }
    let words = unmarked(words).trim();
    // `read_file:`
    let bare = words.strip_suffix([':', '：']).filter(|name| is_name(name) && !name.eq_ignore_ascii_case("tool"));
    bare.unwrap_or(words).to_owned()
}

/// Words without the marks of emphasis and the quotes around them.
fn unmarked(words: &str) -> &str {
    let within = |open: &str, close: &str| {
        let inner = words.strip_prefix(open)?.strip_suffix(close)?;
        let is_one = open == "_" || !inner.contains(open);
        (!inner.is_empty() && is_one).then_some(inner)
    };
    const MARKS: [(&str, &str); 9] = [
        ("**", "**"),
        ("__", "__"),
        ("~~", "~~"),
        ("*", "*"),
        ("_", "_"),
        ("\"", "\""),
        ("'", "'"),
        ("“", "”"),
        ("„", "“"),
    ];
    MARKS.iter().find_map(|(open, close)| within(open, close)).map_or(words, unmarked)
}

/// `Tool: x`, `MCP Tool 2 - `x``, and with less confidence `Function: x`.
fn announced(words: &str) -> Option<(Confidence, &str)> {
    let cut = |words: &'_ str, prefix: &str| {
        let is_prefix = words.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        is_prefix.then_some(prefix.len())
    };
    let words = cut(words, "mcp ").map_or(words, |length| words[length..].trim_start());
    let (kind, rest) = match cut(words, "tool") {
        Some(length) => (Confidence::Explicit, &words[length..]),
        None => {
            let other = [
                "function",
                "method",
                "command",
                "action",
                "operation",
                "werkzeug",
                "outil",
                "herramienta",
                "工具",
                "ツール",
                "도구",
            ];
            let length = other.iter().find_map(|prefix| cut(words, prefix))?;
            (Confidence::Likely, &words[length..])
        }
    };
    let numbered =
        rest.trim_start().trim_start_matches('#').trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let (is_colon, rest) = match numbered.strip_prefix([':', '：']) {
        Some(rest) => (true, rest.trim()),
        None => (false, numbered.strip_prefix(['-', '–', '—', '.']).unwrap_or(numbered).trim()),
    };
    let code = prose::first_code(rest).filter(|_| is_colon || rest.starts_with('`'));
    // `Tool: **x** (v1.2.0)`
    let bold = rest.strip_prefix("**").and_then(|bold| bold.split_once("**")).map(|(bold, _)| bold.trim());
    let code = code.or_else(|| bold.filter(|bold| is_name(bold)));
    let is_sure = is_colon && kind == Confidence::Explicit;
    let is_separated = is_colon || rest.len() < numbered.len();
    let marked = Some(unmarked(rest)).filter(|name| name.len() < rest.len() && is_name(name));
    let code = code.or(marked);
    // `Werkzeug: lampe`
    if code.is_none() && is_colon && !is_sure && is_name(rest) && !is_made_of_words(rest) {
        return Some((Confidence::Listed, rest));
    }
    let name = code.or_else(|| (is_sure || is_separated && is_name(rest) && is_made_of_words(rest)).then_some(rest))?;
    Some((kind, if is_sure { name } else { unsigned(name).0 }))
}

/// The name after `Tool:` on a line that is not a heading.
pub(crate) fn announced_on(line: &str) -> Option<String> {
    tool(line).filter(|(name, confidence)| *confidence == Confidence::Explicit && is_name(name)).map(|(name, _)| name)
}

/// Whether a heading may be a tool's although no name was found in it: it begins with "Tool", or has a name in code.
pub(crate) fn may_be_tool(words: &str) -> bool {
    let plain = plain(words);
    let words = without_number(&plain).trim_start_matches(|c: char| !c.is_alphanumeric());
    let first = words.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let code = prose::first_code(&plain);
    first.eq_ignore_ascii_case("tool") || code.is_some_and(|name| is_name(name) && !is_file(name))
}

/// The name of a signature (`f(a: string) -> object`) or of a title with a remark (`read_file - Reads a file`), and
/// whether it is a signature.
fn unsigned(words: &str) -> (&str, bool) {
    if let Some((name, rest)) = words.split_once('(').filter(|(name, rest)| is_name(name) && rest.contains(')')) {
        let after = rest.rsplit_once(')').map_or("", |(_, after)| after).trim();
        let is_signature = after.is_empty() || after.starts_with(['-', '→', ':', '=', '–', '—']);
        return if is_signature { (name, true) } else { (words, false) };
    }
    let remark = [" - ", " – ", " — ", ": "].iter().filter_map(|mark| words.find(mark)).min();
    match remark.map(|at| &words[..at]).filter(|name| is_made_of_words(name)) {
        Some(name) => (name, false),
        None => (words, false),
    }
}

/// `read_file` or `files.read`: prose has no such words.
fn is_made_of_words(name: &str) -> bool {
    let is_word = |part: &str| part.starts_with(|c: char| c.is_ascii_alphabetic());
    is_name(name) && (name.contains('_') || name.contains('.') && name.split('.').all(is_word))
}

/// A heading without its number: `2. read_file`, `3.1) Tool: x`.
fn without_number(words: &str) -> &str {
    let rest = words.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_numbered = rest.len() < words.len() && rest.starts_with([' ', ')']);
    if is_numbered { rest.trim_start_matches([')', ' ']) } else { words }
}

/// Whether the tools of the document are listed below this heading: "Available Tools", "Tools for files".
pub(crate) fn lists_tools(words: &str) -> bool {
    /// What is said of tools that others offer or that are not there.
    const ABSENT: &[&str] = &[
        "related",
        "similar",
        "planned",
        "future",
        "removed",
        "external",
        "required",
        "development",
        "build",
        "third",
        "no",
        "without",
        "using",
        "adding",
        "writing",
        "how",
    ];
    /// What follows "tool" in a heading for all of them.
    const WHOLE: &[&str] =
        &["definitions", "reference", "specifications", "list", "overview", "catalog", "catalogue", "index", "summary"];
    const OTHERS: &[&str] = &["werkzeuge", "outils", "herramientas", "ferramentas", "strumenti", "инструменты"];
    let words = words.to_lowercase();
    if ["工具", "ツール", "도구"].iter().any(|name| words.contains(name)) {
        return words.chars().count() <= 12;
    }
    let words: Vec<&str> = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let words = if words.first().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
        &words[1..]
    } else {
        &words
    };
    if words.len() > 5 || words.iter().any(|word| ABSENT.contains(word)) {
        return false;
    }
    words.contains(&"tools")
        || words.iter().any(|word| OTHERS.contains(word))
        || words.windows(2).any(|pair| pair[0] == "tool" && WHOLE.contains(&pair[1]))
}

fn is_name(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/'))
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn is_file(text: &str) -> bool {
    let endings = [".md", ".py", ".json", ".yaml", ".yml", ".toml", ".txt", ".rs", ".js", ".ts", ".sh"];
    endings.iter().any(|ending| text.ends_with(ending)) || text.ends_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_of_tools_are_recognised() {
        for (words, expected) in [
            ("Tool: `a.b`", Some(("a.b", Confidence::Explicit))),
            ("Tool: [YourToolName]", Some(("[YourToolName]", Confidence::Explicit))),
            ("Tool `x`", Some(("x", Confidence::Explicit))),
            ("`git_diff`", Some(("git_diff", Confidence::Likely))),
            ("`git_diff(a, b)`", Some(("git_diff", Confidence::Likely))),
            ("`a` / `b`", Some(("a", Confidence::Likely))),
            ("analyze_code", Some(("analyze_code", Confidence::Likely))),
            ("hash", Some(("hash", Confidence::Listed))),
            ("move_home()", Some(("move_home", Confidence::Likely))),
            ("move_home (old)", None),
            ("f(a: string)", Some(("f", Confidence::Likely))),
            ("set_color(room: string, hue: int = 0) -> object", Some(("set_color", Confidence::Likely))),
            ("lamp.set", Some(("lamp.set", Confidence::Likely))),
            ("read_file - Reads a file", Some(("read_file", Confidence::Likely))),
            ("🔧 `a_tool`", Some(("a_tool", Confidence::Likely))),
            ("**read_file**", Some(("read_file", Confidence::Likely))),
            ("2.1 **read_file**", Some(("read_file", Confidence::Likely))),
            ("[read_file](#read_file)", Some(("read_file", Confidence::Likely))),
            ("read_file {#read-file}", Some(("read_file", Confidence::Likely))),
            ("<a id=\"x\"></a>read_file", Some(("read_file", Confidence::Likely))),
            ("read\\_file", Some(("read_file", Confidence::Likely))),
            ("1\u{fe0f}\u{20e3} read_file", Some(("read_file", Confidence::Likely))),
            ("Tool: **read_file** (v1.2.0)", Some(("read_file", Confidence::Explicit))),
            ("Read File (`read_file`)", Some(("read_file", Confidence::Listed))),
            ("Tool 2 - `read_file`", Some(("read_file", Confidence::Explicit))),
            ("MCP Tool: read_file", Some(("read_file", Confidence::Explicit))),
            ("**Tool:** *theta*", Some(("theta", Confidence::Explicit))),
            ("`Tool: theta`", Some(("theta", Confidence::Explicit))),
            ("Tool \"theta\"", Some(("theta", Confidence::Explicit))),
            ("_read_theta_", Some(("read_theta", Confidence::Likely))),
            ("~~read_theta~~", Some(("read_theta", Confidence::Likely))),
            ("***read_theta***", Some(("read_theta", Confidence::Likely))),
            ("Werkzeug: theta", Some(("theta", Confidence::Listed))),
            ("工具：theta", Some(("theta", Confidence::Listed))),
            ("theta:", Some(("theta", Confidence::Listed))),
            ("Function: `read_file`", Some(("read_file", Confidence::Likely))),
            ("Using `config.toml`", None),
            ("Toolbox", None),
            ("Tool - overview", None),
            ("Tool Reference", None),
            ("Tools", None),
            ("Parameters", None),
            ("returns", None),
            ("`mcp_tools.py`", None),
            ("", None),
        ] {
            let found = tool(words);
            assert_eq!(found.as_ref().map(|(name, confidence)| (name.as_str(), *confidence)), expected, "{words}");
        }
    }

    #[test]
    fn headings_above_tools_are_recognised() {
        for words in [
            "Tools",
            "2. Available Tools",
            "More tools",
            "Tools for files",
            "MCP Tool Definitions",
            "🛠 Werkzeuge",
            "工具列表",
        ] {
            assert!(lists_tools(words), "{words}");
        }
        for words in
            ["Related tools", "Adding new tools", "Toolbox", "Tool", "How the tools of this module are built and run"]
        {
            assert!(!lists_tools(words), "{words}");
        }
    }
}
