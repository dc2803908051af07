//! Recognising the sections of a tool: their headings, and the labels that act as headings.

use std::ops::Range;

use crate::model::Section;

/// The section that a heading or a bold label begins, whatever its number and remarks.
pub(crate) fn section(words: &str) -> Option<Section> {
    let words = words.to_lowercase();
    // Pictures are ornaments.
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ')' | ' ' | '#');
    let words = words.trim_start_matches(|c: char| is_number(c) || !c.is_ascii() && !c.is_alphanumeric());
    let roman = words.trim_start_matches(['i', 'v', 'x']);
    let words = roman.strip_prefix(['.', ')']).filter(|_| roman.len() < words.len()).map_or(words, str::trim_start);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_recognised_under_other_numbers_and_names() {
        for (words, expected) in [
            ("3. Input Schema (Parameters)", Some(Section::Input)),
            ("5. Idempotency", Some(Section::Idempotency)),
            ("7. Usage Examples (JSON)", Some(Section::Examples)),
            ("5. Example Usage", Some(Section::Examples)),
            ("Return Schema", Some(Section::Output)),
            ("📥 Parameters", Some(Section::Input)),
            ("⚠\u{fe0f} Errors", Some(Section::Errors)),
            ("III. Input Schema", Some(Section::Input)),
            ("viii) Security", Some(Section::Security)),
            ("Vi Notes", None),
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
