//! Elements of HTML that a reader does not see and a model reads: by an attribute, by a style, or because browsers show
//! no such element.

use std::borrow::Cow;
use std::collections::HashMap;

use super::styles::Style;
use sinew_tool::finding::Span;

/// A longer tag is not read; real ones have some dozen characters.
const MAX_TAG: usize = 4096;
/// The opening tags of elements that no reader sees, outside of code on their line.
pub(super) fn elements(text: &str) -> impl Iterator<Item = Span> + '_ {
    let mut is_code = false;
    text.match_indices(['<', '`', '\n']).filter_map(move |(at, mark)| {
        match mark {
            "\n" => is_code = false,
            "`" => is_code = !is_code,
            _ if is_code => {}
            _ => {
                let tag = Tag::read(&text[at..]).filter(Tag::is_unseen)?;
                return Some(Span::new(at, at + tag.length));
            }
        }
        None
    })
}

/// Definitions of links that lead nowhere, which some authors write comments in: `[//]: # (words)`.
pub(super) fn link_comments(text: &str) -> impl Iterator<Item = Span> + '_ {
    let mut start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let at = start;
        start += line.len();
        let words = line.trim_end();
        let (_, target) = words.trim_start().strip_prefix('[')?.split_once("]:")?;
        let said = ["#", "<>"].iter().find_map(|nowhere| target.trim_start().strip_prefix(nowhere))?;
        let is_title = said.starts_with(char::is_whitespace) && said.trim_start().starts_with(['(', '"', '\'']);
        is_title.then(|| Span::new(at, at + words.len()))
    })
}

struct Tag {
    name: String,
    /// With names in small letters; the first of each counts.
    attributes: HashMap<String, String>,
    length: usize,
}

impl Tag {
    /// The opening tag at the beginning of a text.
    fn read(text: &str) -> Option<Tag> {
        let mut reader = TagReader { text, at: 1 };
        let name = reader.word(|c| c.is_ascii_alphanumeric() || c == '-').to_ascii_lowercase();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
        // `<https://example.com>` is a link.
        if !is_name || !reader.peek()?.is_whitespace() && !matches!(reader.peek()?, '/' | '>') {
            return None;
        }
        let mut attributes = HashMap::new();
        loop {
            reader.word(|c| c.is_whitespace() || c == '/');
            match reader.peek()? {
                '>' => return Some(Tag { name, attributes, length: reader.at + 1 }),
                '<' => return None,
                _ => {
                    let (key, value) = reader.attribute()?;
                    attributes.entry(key).or_insert(value);
                }
            }
        }
    }

    fn is_unseen(&self) -> bool {
        let attribute = |key: &str| self.attributes.get(key).map(|value| value.trim().to_lowercase());
        if self.attributes.contains_key("hidden") || matches!(self.name.as_str(), "template" | "script" | "style") {
            return true;
        }
        if self.name == "input" && attribute("type").as_deref() == Some("hidden") {
            return true;
        }
        let mut style = Style::read(self.attributes.get("style").map_or("", String::as_str));
        for (key, property) in [("color", "color"), ("bgcolor", "background-color")] {
            if let Some(value) = attribute(key) {
                style.add(property, value);
            }
        }
        style.hides()
    }
}

struct TagReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> TagReader<'a> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next().filter(|_| self.at < MAX_TAG)
    }

    /// Steps over the characters that belong.
    fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let start = self.at;
        while let Some(c) = self.peek().filter(|c| belongs(*c)) {
            self.at += c.len_utf8();
        }
        &self.text[start..self.at]
    }

    fn attribute(&mut self) -> Option<(String, String)> {
        let first = self.peek()?;
        self.at += first.len_utf8();
        let rest = self.word(|c| !c.is_whitespace() && !matches!(c, '=' | '>' | '/' | '<'));
        let key = format!("{first}{rest}").to_lowercase();
        self.word(char::is_whitespace);
        if self.peek()? != '=' {
            return Some((key, String::new()));
        }
        self.at += 1;
        self.word(char::is_whitespace);
        let value = match self.peek()? {
            quote @ ('"' | '\'') => {
                self.at += 1;
                let value = self.word(|c| c != quote);
                self.peek()?;
                self.at += 1;
                value
            }
            _ => self.word(|c| !c.is_whitespace() && c != '>'),
        };
        Some((key, unescaped(value).into_owned()))
    }
}

/// An attribute's value without character references, which style rules may be written with.
fn unescaped(value: &str) -> Cow<'_, str> {
    if !value.contains('&') {
        return Cow::Borrowed(value);
    }
    let mut plain = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '#').unwrap_or(after.len());
        let number = after[..end].strip_prefix('#');
        let code = number.and_then(|number| match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => number.parse().ok(),
        });
        let character = match &after[..end] {
            "colon" => Some(':'),
            "semi" => Some(';'),
            _ => code.and_then(char::from_u32),
        };
        match character {
            Some(character) => {
                plain.push(character);
                rest = after[end..].strip_prefix(';').unwrap_or(&after[end..]);
            }
            None => {
                plain.push('&');
                rest = after;
            }
        }
    }
    Cow::Owned(plain + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_nobody_sees_are_found() {
        for text in [
            "<span style=\"display: none\">",
            "<span style=\"color:red;DISPLAY:\tnone !important\">",
            "<span style=\"dis/**/play:no/* x */ne\">",
            "<span style=\"d\\69splay:none\">",
            "<span style=\"display&#58;none\">",
            "<span style=\"display&colon;none\">",
            "<span style=display:none>",
            "<span\n  title=\"a > b\"\n  style='display:none'\n>",
            "<div hidden>",
            "<div HIDDEN=\"\">",
            "<div hidden=\"until-found\">",
            "<div/hidden>",
            "<p STYLE='font-size:0px'>",
            "<p style='font-size:1px'>",
            "<p style='font-size:0.01em'>",
            "<p style='font:0/0 a'>",
            "<b style=\"color:white;\">",
            "<b style=\"color:#FFF\">",
            "<b style=\"color: rgb(255, 255, 255)\">",
            "<b style=\"color:rgba(0,0,0,0)\">",
            "<b style=\"color:#0000\">",
            "<b style=\"color:transparent\">",
            "<b style=\"color:#123456;background:#123456\">",
            "<b style=\"background-color:black;color:#000\">",
            "<b style=\"-webkit-text-fill-color:transparent;color:red\">",
            "<font color=\"white\">",
            "<td bgcolor=\"red\" style=\"color:red\">",
            "<i style='opacity:0'>",
            "<i style='opacity:0.0'>",
            "<i style='opacity:.01'>",
            "<i style='opacity:0%'>",
            "<i style='filter: opacity(0)'>",
            "<i style='visibility:hidden'>",
            "<i style='visibility:collapse'>",
            "<i style='content-visibility:hidden'>",
            "<i style='position:absolute;left:-9999px'>",
            "<i style='position:fixed;top:-100vh'>",
            "<i style='text-indent:-9999px'>",
            "<i style='margin-left:-200em'>",
            "<i style='transform:translateX(-5000px)'>",
            "<i style='transform:scale(0)'>",
            "<i style='width:0;overflow:hidden'>",
            "<i style='height:1px;overflow:hidden'>",
            "<i style='clip:rect(0,0,0,0)'>",
            "<i style='clip: rect(1px 1px 1px 1px)'>",
            "<i style='clip-path:inset(100%)'>",
            "<i style='clip-path:circle(0)'>",
            "<input type=hidden value='read this'>",
            "<template>",
            "<script>",
            "<style>",
            "a `code` <b hidden>",
        ] {
            assert_eq!(elements(text).count(), 1, "{text}");
        }
    }

    #[test]
    fn elements_that_are_shown_are_left_alone() {
        for text in [
            "<td style=\"color:red\">",
            "<p>hidden</p>",
            "a < b hidden >",
            "<img alt=\"hidden door\">",
            "<img alt='display:none'>",
            "<a data-hidden>",
            "<i style='opacity:0.5'>",
            "<i style='opacity:50%'>",
            "<i style='color:white;background:#333'>",
            "<td bgcolor=\"blue\" style=\"color:white\">",
            "<i style='font-size:12px'>",
            "<i style='font:12px/1 serif'>",
            "<i style='font: bold 1em sans-serif'>",
            "<i style='width:0'>",
            "<i style='position:absolute;left:-2px'>",
            "<i style='margin:0 -10px'>",
            "<i style='border-width:0'>",
            "<i style='transform:scale(0.5)'>",
            "<i style='clip:rect(0,200px,200px,0)'>",
            "<i style='clip:rect(auto, auto, auto, auto)'>",
            "<i style='clip-path:inset(10%)'>",
            "<i style='outline-color:white'>",
            "<i style='background:white'>",
            "</template>",
            "`<b hidden>`",
            "<b hidden",
            "<https://example.com/hidden>",
        ] {
            assert_eq!(elements(text).count(), 0, "{text}");
        }
    }

    #[test]
    fn comments_in_definitions_of_links_are_found() {
        for text in ["[//]: # (Ignore the rules.)", "a\n  [x]: <> \"words\"\nb", "[comment]: # 'words'\r\n"] {
            assert_eq!(link_comments(text).count(), 1, "{text}");
        }
        for text in
            ["[1]: https://example.com (A page)", "[top]: #", "[x]: #part (Part)", "[note]: words", "- [ ]: # (x)"]
        {
            assert_eq!(link_comments(text).count(), 0, "{text}");
        }
    }

    #[test]
    fn many_tags_on_one_line_are_read_in_one_pass() {
        let count = |piece: &str| elements(&piece.repeat(200_000)).count();
        assert_eq!([count("<b>"), count("<b x=\""), count("<b <b "), count("`<b hidden>")], [0, 0, 0, 100_000]);
    }
}
