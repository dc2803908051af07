//! Finds the tools in a list without reading them, so that lists of thousands are compared tool by tool.

use std::collections::HashSet;

use super::MAX_BYTES;
use crate::json;

/// An entry of a tool list that was not read.
pub(crate) struct RawTool<'a> {
    pub name: &'a str,
    /// Not checked: whether it is JSON is known when it is read.
    pub text: &'a str,
}

/// The entries of a `tools/list` result or of an array of tools; `None` for any other form, and for whatever needs a
/// closer look.
pub(crate) fn tools(text: &str) -> Option<Vec<RawTool<'_>>> {
    let mut skimmer = Skimmer { text, at: 0 };
    let mut tools: Option<Vec<RawTool<'_>>> = None;
    if text.len() > MAX_BYTES {
        return None;
    }
    match skimmer.peek()? {
        b'[' => tools = Some(skimmer.tools()?),
        _ => skimmer.members(|skimmer, key| match key {
            "tools" if tools.is_none() => {
                tools = Some(skimmer.tools()?);
                Some(())
            }
            "tools" | "result" | "instructions" | "name" => None,
            _ => json::read_strict(skimmer.value()?).map(drop),
        })?,
    }
    let mut names = HashSet::new();
    let is_list = skimmer.peek().is_none() && tools.iter().flatten().all(|tool| names.insert(tool.name));
    tools.filter(|_| is_list)
}

struct Skimmer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Skimmer<'a> {
    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let b' ' | b'\n' | b'\r' | b'\t' = bytes.get(self.at)? {
            self.at += 1;
        }
        Some(bytes[self.at])
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn tools(&mut self) -> Option<Vec<RawTool<'a>>> {
        let mut tools = Vec::new();
        self.list(b'[', b']', |skimmer| {
            skimmer.peek()?;
            let start = skimmer.at;
            let mut name = None;
            skimmer.members(|skimmer, key| {
                let value = skimmer.value()?;
                match (key, name) {
                    ("name", None) => name = Some(plain(value)?),
                    ("name", Some(_)) => return None,
                    _ => {}
                }
                Some(())
            })?;
            tools.push(RawTool { name: name?, text: &skimmer.text[start..skimmer.at] });
            Some(())
        })?;
        Some(tools)
    }

    fn members(&mut self, mut member: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.list(b'{', b'}', |skimmer| {
            skimmer.peek()?;
            let key = plain(skimmer.string()?)?;
            skimmer.take(b':')?;
            member(skimmer, key)
        })
    }

    fn list(&mut self, open: u8, close: u8, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.take(open)?;
        if self.take(close).is_some() {
            return Some(());
        }
        loop {
            element(self)?;
            if self.take(b',').is_none() {
                return self.take(close);
            }
        }
    }

    /// Steps over a value, of which only brackets and quotes are looked at.
    fn value(&mut self) -> Option<&'a str> {
        self.peek()?;
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut depth = 0usize;
        loop {
            let is_end = match bytes.get(self.at)? {
                b'"' => {
                    self.string()?;
                    depth == 0
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    false
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                    depth == 0
                }
                _ => {
                    self.at += 1;
                    depth == 0 && matches!(bytes.get(self.at)?, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
                }
            };
            if is_end {
                return Some(&self.text[start..self.at]);
            }
        }
    }

    /// Steps over a string; it is returned in its quotes.
    fn string(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start + 1;
        if *bytes.get(start)? != b'"' {
            return None;
        }
        loop {
            match bytes.get(at)? {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.at = at + 1;
        Some(&self.text[start..self.at])
    }
}

/// The content of a string in its quotes, if nothing in it is escaped.
fn plain(string: &str) -> Option<&str> {
    let inner = string.strip_prefix('"')?.strip_suffix('"')?;
    (!inner.contains('\\')).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Option<Vec<&str>> {
        Some(tools(text)?.iter().map(|tool| tool.name).collect())
    }

    #[test]
    fn tools_are_found_with_their_text() {
        let entry = r#"{"description": "a ] } \"", "name" : "x", "inputSchema": {"a": [1, {}]}, "n": 1.5 }"#;
        for text in [format!("[{entry}]"), format!(" {{ \"tools\" : [ {entry}\n], \"nextCursor\": null }} ")] {
            let tools = tools(&text).unwrap();
            assert!(tools.iter().all(|tool| tool.name == "x" && tool.text == entry), "{text}");
        }
        assert_eq!(names(r#"[{"name": "x"} , {"name": "y"}]"#), Some(vec!["x", "y"]));
        assert_eq!(names("[]"), Some(vec![]));
        assert_eq!(names(r#"{"tools": []}"#), Some(vec![]));
    }

    #[test]
    fn whatever_needs_a_closer_look_is_not_skimmed() {
        for text in [
            "",
            "{}",
            "# Title",
            "[{}]",
            "[1]",
            r#"[{"name": "x"},]"#,
            r#"[{"name": "x"}] x"#,
            r#"[{"name": "x"}"#,
            r#"[{"name": 1}]"#,
            r#"[{"name": "x", "name": "y"}]"#,
            r#"[{"name": "\u0041"}]"#,
            r#"{"tools": [], "tools": []}"#,
            r#"{"tools": [], "instructions": ""}"#,
            r#"{"tools": [], "other": [1,]}"#,
            r#"{"result": {"tools": []}}"#,
            r#"[{"name": "x"}, {"name": "x"}]"#,
            r#"{"tools": [{"name": "x"]}"#,
        ] {
            assert_eq!(names(text), None, "{text}");
        }
    }
}
