//! Recognising headings: which ones begin a tool, and which begin one of its sections.

use std::ops::Range;

use super::prose;
use crate::model::Section;

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
    let words = without_number(&plain);
    if let Some((kind, name)) = announced(words) {
        return Some((prose::one_line(name), kind));
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
    let mut words = plain.trim_start_matches(|c: char| !(c.is_ascii() || c.is_alphanumeric()) || c == ' ').trim_end();
    if let Some(link) =
        words.strip_prefix('[').and_then(|link| link.strip_suffix(')')).filter(|link| !link.contains(' '))
    {
        words = link.split_once("](").map_or(words, |(text, _)| text);
    }
    for mark in ["**", "__"] {
        words = words.strip_prefix(mark).and_then(|inner| inner.strip_suffix(mark)).unwrap_or(words);
    }
    words.trim().to_owned()
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
            let other = ["function", "method", "command", "action", "operation", "werkzeug", "outil", "herramienta"];
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
    let is_sure = is_colon && kind == Confidence::Explicit;
    let is_separated = is_colon || rest.len() < numbered.len();
    let name = code.or_else(|| (is_sure || is_separated && is_name(rest) && is_made_of_words(rest)).then_some(rest))?;
    Some((kind, if is_sure { name } else { unsigned(name).0 }))
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

/// The section that a heading or a bold label begins, whatever its number and remarks.
pub(crate) fn section(words: &str) -> Option<Section> {
    let words = words.to_lowercase();
    let words = words.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ')' | ' ' | '#' | '§'));
    let words = words.split(['(', ':', '—']).next().unwrap_or(words);
    let words = words.trim().trim_matches(['*', '_']).trim();
    Some(match words {
        "tool purpose and description"
        | "purpose and description"
        | "purpose"
        | "description"
        | "tool purpose"
        | "summary" => Section::Purpose,
        "invocation name" | "tool name" | "invocation" | "name" => Section::Name,
        "input schema"
        | "parameters"
        | "input parameters"
        | "arguments"
        | "input"
        | "inputs"
        | "params"
        | "schema"
        | "args"
        | "options"
        | "takes"
        | "accepts"
        | "input arguments"
        | "request"
        | "request parameters"
        | "input schema and parameters" => Section::Input,
        "output schema" | "return value" | "returns" | "return schema" | "output" | "outputs" | "response"
        | "return" | "return values" | "result" | "results" | "output format" | "return format" | "return type"
        | "success response" | "returns on success" => Section::Output,
        "error handling" | "errors" | "error cases" | "error response" | "error codes" | "error conditions"
        | "failure" | "failures" | "failure modes" | "possible errors" | "exceptions" | "raises" => Section::Errors,
        "idempotency" | "idempotence" | "idempotent" | "idempotent?" => Section::Idempotency,
        "usage examples" | "usage example" | "example usage" | "example" | "examples" | "usage"
        | "example invocation" | "example call" => Section::Examples,
        "security considerations"
        | "security"
        | "security notes"
        | "security consideration"
        | "security and safety"
        | "safety" => Section::Security,
        _ => return None,
    })
}

/// Whether a title says parameters and nothing else; "Options" or "Schema" may be about anything.
pub(crate) fn announces_parameters(title: &str) -> bool {
    let title = title.to_lowercase();
    ["parameter", "argument", "input"].iter().any(|word| title.contains(word))
}

/// The label at the start of a line that acts as a heading, with the rest of the line: `**Parameters**:`,
/// `**Returns:** text`, `__Errors__`, and the name of a section alone before a colon: `Parameters:`.
pub(crate) fn label(line: &str) -> Option<(&str, &str)> {
    let line = unbulleted(line);
    let Some((mark, rest)) = ["**", "__"].iter().find_map(|mark| Some((*mark, line.strip_prefix(mark)?))) else {
        let words = line.trim_end().strip_suffix(':')?;
        return section(words).map(|_| (words, ""));
    };
    let (words, rest) = rest.split_once(mark)?;
    match words.strip_suffix(':') {
        Some(words) => Some((words, rest.trim_start())),
        None if rest.trim().is_empty() => Some((words, "")),
        None => Some((words, rest.trim_start().strip_prefix(':')?.trim_start())),
    }
}

fn unbulleted(line: &str) -> &str {
    let line = line.trim_start();
    ["- ", "* ", "+ "].iter().find_map(|bullet| line.strip_prefix(bullet)).unwrap_or(line).trim_start()
}

/// Where a line says whether the tool is idempotent: `**Idempotent**: Yes`, at its beginning or after something
/// else. Entries on one line are separated by `|` or dots, or by the next bold label.
pub(crate) fn idempotency_in(line: &str) -> Option<Range<usize>> {
    let body = unbulleted(line);
    let first = line.len() - body.len();
    let is_plain = body.split_once(':').is_some_and(|(label, _)| answers_idempotency(label));
    let marked = || line.match_indices("**").chain(line.match_indices("__")).map(|(at, _)| at);
    let at = if is_plain { Some(first) } else { marked().find(|at| label(&line[*at..]).is_some_and(is_answer)) }?;
    let said = at + line[at..].find(':')? + 1;
    let ends = [" | ", " · ", " • ", " ∙ ", ", **", "; **", ". **", ", __", "; __", ". __"];
    let end = ends.iter().filter_map(|end| line[said..].find(end)).min().map_or(line.len(), |found| said + found);
    let is_stated = line[said..end].contains(|c: char| c.is_alphanumeric());
    is_stated.then_some(if at == first { 0..end } else { at..end })
}

fn is_answer((label, rest): (&str, &str)) -> bool {
    answers_idempotency(label) && !rest.is_empty()
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

/// Whether a label begins the answer of the idempotency section: `**Idempotent**: Yes`.
pub(crate) fn answers_idempotency(label: &str) -> bool {
    matches!(
        label.trim_matches(['*', '_', ' ']).to_lowercase().as_str(),
        "idempotent" | "idempotent?" | "is idempotent" | "idempotency"
    )
}

/// Whether a heading begins the part that belongs to no tool and no section.
pub(crate) fn is_further(words: &str) -> bool {
    words.trim().eq_ignore_ascii_case(FURTHER)
}

/// The heading of text that has no section of its own.
pub(crate) const FURTHER: &str = "Further sections";

/// Whether a line says that the module has no tools. Asked only of documents in which no tool was found.
pub(crate) fn says_no_tools(line: &str) -> bool {
    const VERBS: &[&str] = &[
        "expose",
        "exposes",
        "define",
        "defines",
        "provide",
        "provides",
        "offer",
        "offers",
        "have",
        "has",
        "contain",
        "contains",
        "implement",
        "implements",
        "register",
        "registers",
        "publish",
        "publishes",
        "include",
        "includes",
        "declare",
        "declares",
        "ship",
        "ships",
        "support",
        "supports",
        "export",
        "exports",
        "add",
        "adds",
    ];
    let line = line.replace(['*', '_', '`'], "").replace("n't ", " not ").replace("n’t ", " not ").to_lowercase();
    if ["specification is n/a", "status: not applicable", "not applicable for mcp"]
        .iter()
        .any(|says| line.contains(says))
    {
        return true;
    }
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_tool = |word: &&str| matches!(*word, "tool" | "tools");
    let within = |start: usize, count: usize| &words[start.min(words.len())..(start + count).min(words.len())];
    words.iter().enumerate().any(|(index, word)| {
        let is_condition = index > 0 && matches!(words[index - 1], "if" | "when" | "where" | "unless" | "while");
        match *word {
            _ if is_condition => false,
            "no" | "zero" | "0" | "without" => within(index + 1, 4).iter().any(is_tool),
            "not" | "neither" | "never" => {
                let after = within(index + 1, 12);
                after.iter().take(7).any(|word| VERBS.contains(word)) && after.iter().any(is_tool)
            }
            "none" | "nothing" => {
                let nearby = &words[index.saturating_sub(5)..(index + 9).min(words.len())];
                nearby.iter().any(is_tool) && words.len() <= 12
            }
            _ => false,
        }
    })
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
            ("[read_file](#read_file)", Some(("read_file", Confidence::Likely))),
            ("read_file {#read-file}", Some(("read_file", Confidence::Likely))),
            ("<a id=\"x\"></a>read_file", Some(("read_file", Confidence::Likely))),
            ("Read File (`read_file`)", Some(("read_file", Confidence::Listed))),
            ("Tool 2 - `read_file`", Some(("read_file", Confidence::Explicit))),
            ("MCP Tool: read_file", Some(("read_file", Confidence::Explicit))),
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

    #[test]
    fn a_document_may_say_in_many_ways_that_it_has_no_tools() {
        for line in [
            "## Current Status: No MCP Tools Defined",
            "This module does not currently expose any functions as MCP tools.",
            "The package doesn't define tools; see `auth` instead.",
            "**No public tools** are registered here.",
            "MCP tools: none",
            "Tools: None.",
            "There are no tools in this release.",
            "It ships without any MCP tools.",
            "Nothing here is exposed as an MCP tool.",
            "This module has zero tools.",
            "Status: Not applicable",
            "Neither the library nor its plugins provide tools.",
            "It never registers a tool of its own.",
        ] {
            assert!(says_no_tools(line), "{line}");
        }
        for line in [
            "The tools below read and write files.",
            "If no tools are found, the loader stops.",
            "When no MCP tool matches, an error is returned.",
            "This tool does not raise errors.",
            "No parameters.",
            "Does not require a network.",
        ] {
            assert!(!says_no_tools(line), "{line}");
        }
    }

    #[test]
    fn sections_are_recognised_under_other_numbers_and_names() {
        for (words, expected) in [
            ("3. Input Schema (Parameters)", Some(Section::Input)),
            ("5. Idempotency", Some(Section::Idempotency)),
            ("7. Usage Examples (JSON)", Some(Section::Examples)),
            ("5. Example Usage", Some(Section::Examples)),
            ("Return Schema", Some(Section::Output)),
            ("Notes", None),
        ] {
            assert_eq!(section(words), expected, "{words}");
        }
        for section_ in Section::ALL {
            assert_eq!(section(section_.title()), Some(section_));
        }
    }

    #[test]
    fn a_label_may_act_as_a_heading() {
        for (line, expected) in [
            ("**Returns:** `status`", Some(("Returns", "`status`"))),
            ("**Parameters**:", Some(("Parameters", ""))),
            ("**Parameters**", Some(("Parameters", ""))),
            ("__Parameters__: none", Some(("Parameters", "none"))),
            ("**Note** this", None),
            ("- **Note**: this", Some(("Note", "this"))),
            ("- Parameters:", Some(("Parameters", ""))),
            ("Returns:", Some(("Returns", ""))),
            ("Returns: a list", None),
            ("As follows:", None),
        ] {
            assert_eq!(label(line), expected, "{line}");
        }
    }

    #[test]
    fn an_answer_about_idempotency_is_found_wherever_it_is_on_the_line() {
        for (line, expected) in [
            ("- **Idempotent**: Yes", Some("- **Idempotent**: Yes")),
            ("**Idempotent:** No, each call adds one.", Some("**Idempotent:** No, each call adds one.")),
            ("- Idempotent: Yes", Some("- Idempotent: Yes")),
            ("Reads a file. **Idempotent**: Yes", Some("**Idempotent**: Yes")),
            ("**Version**: 1.0 | **Idempotent**: Yes | **Status**: Active", Some("**Idempotent**: Yes")),
            ("**Status**: Active, **Idempotent**: **Yes**, **Author**: Ann", Some("**Idempotent**: **Yes**")),
            ("Calls are __Idempotent__: yes", Some("__Idempotent__: yes")),
            ("**Idempotent**:", None),
            ("An **idempotent** call: done twice", None),
            ("The flag says whether it is idempotent: yes or no", None),
        ] {
            assert_eq!(idempotency_in(line).map(|range| &line[range]), expected, "{line}");
        }
    }
}
