//! Words of people that several checks look at: quoted ones, and texts that only promise to be written.

/// The words between quotation marks or in code, in whatever marks the author's language has. An apostrophe is none.
pub(super) fn quoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some((at, open)) = text[from..].char_indices().find(|(_, c)| !closing_marks(*c).is_empty()) {
        let (open_at, start) = (from + at, from + at + open.len_utf8());
        from = start;
        // Only these may stand inside a word, or after a number.
        let is_apart = !matches!(open, '\'' | '"') || !text[..open_at].ends_with(char::is_alphanumeric);
        let ends = |(offset, c): &(usize, char)| {
            closing_marks(open).contains(*c) && !text[start + offset + c.len_utf8()..].starts_with(is_letter)
        };
        let Some((length, close)) = text[start..].char_indices().find(ends).filter(|_| is_apart) else { continue };
        let inside = text[start..start + length].trim();
        if !inside.is_empty() {
            found.push(inside.trim_matches(['"', '\'']).to_owned());
        }
        from = start + length + close.len_utf8();
    }
    found
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

/// The marks that may close what this one opens; none for other characters.
fn closing_marks(open: char) -> &'static str {
    match open {
        '"' => "\"",
        '`' => "`",
        '\'' => "'",
        '“' => "”",
        '„' | '”' => "“”",
        '‚' | '‘' => "’‘",
        '«' => "»",
        '»' => "«»",
        '‹' => "›",
        '「' => "」",
        '『' => "』",
        '《' => "》",
        _ => "",
    }
}

/// Whether a text only says that one will be written, or points elsewhere.
pub(super) fn is_unwritten(text: &str) -> bool {
    let plain = text.replace(['*', '_', '`'], "").to_lowercase();
    let plain = plain.trim_matches(|c: char| c.is_whitespace() || ".:!?-–—…()[]<>".contains(c));
    matches!(
        plain,
        "" | "tbd"
            | "tba"
            | "tbc"
            | "todo"
            | "to do"
            | "fixme"
            | "xxx"
            | "wip"
            | "to be done"
            | "to be defined"
            | "to be determined"
            | "to be added"
            | "to be written"
            | "to be documented"
            | "coming soon"
            | "description"
            | "description here"
            | "your description here"
            | "lorem ipsum"
            | "see above"
            | "see below"
            | "see code"
            | "see the code"
            | "same as above"
            | "as above"
            | "self-explanatory"
            | "self explanatory"
            | "undocumented"
            | "no description"
            | "placeholder"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_in_the_marks_of_many_languages() {
        for text in [
            "\"ok\" or \"failed\"",
            "`ok` or `failed`",
            "'ok', 'failed'",
            "“ok” or “failed”",
            "‘ok’ or ‘failed’",
            "„ok“ oder „failed“",
            "«ok» ou «failed»",
            "« ok » ou « failed »",
            "»ok« oder »failed«",
            "”ok” eller ”failed”",
            "「ok」か「failed」",
            "《ok》或《failed》",
            "`\"ok\"` or `\"failed\"`",
            "The tool's answer: 'ok' or 'failed'",
        ] {
            assert_eq!(quoted(text), ["ok", "failed"], "{text}");
        }
        for text in ["Whether the tool's call worked, as the caller's log says.", "5\" and 6' long", "dogs' ears", ""] {
            assert_eq!(quoted(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_promise_is_no_text() {
        for text in ["TBD", "*TODO*", "To be defined.", "…", "<description>", "See above", "—", "Coming soon!"] {
            assert!(is_unwritten(text), "{text}");
        }
        for text in ["The file to read.", "N/A: it computes only.", "Number of TODO items", "0"] {
            assert!(!is_unwritten(text), "{text}");
        }
    }
}
