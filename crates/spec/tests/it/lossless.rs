//! Nothing is lost in printing: documents in every accepted form, with hostile pieces between them, keep each phrase.

use proptest::prelude::*;
use sinew_spec::{Document, print};

/// Writes a document from a tape of choices, and remembers the phrases that must survive.
struct Writer<'a> {
    tape: std::slice::Iter<'a, u8>,
    text: String,
    phrases: Vec<String>,
    count: usize,
}

impl Writer<'_> {
    fn choose(&mut self, most: usize) -> usize {
        self.tape.next().map_or(0, |byte| *byte as usize % most)
    }

    /// Three words that occur nowhere else, in the usual order.
    fn phrase(&mut self) -> String {
        self.count += 1;
        let phrase = format!("moss{0} fern{0} pine{0}", self.count);
        self.phrases.push(phrase.clone());
        phrase
    }

    fn name(&mut self, stem: &str) -> String {
        self.count += 1;
        format!("{stem}_{}", self.count)
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Something that authors write and that no form has a place for.
    fn oddity(&mut self) {
        let words = self.phrase();
        let more = self.phrase();
        let piece = match self.choose(34) {
            0 => format!("{words}."),
            1 => format!("> {words}\n> and {more}"),
            2 => format!("- {words}\n  - {more}"),
            3 => format!("1. {words}\n2. {more}"),
            4 => format!("| {words} | {more} |\n|---|---|\n| a | b |"),
            5 => format!("| x |\n|---|\n| {words} | {more} |"),
            6 => format!("```text\n{words}\n```\n\n{more}"),
            7 => format!("~~~\n{words}\n```\n{more}\n~~~"),
            8 => format!("<details>\n<summary>{words}</summary>\n\n{more}\n\n</details>"),
            9 => format!("<div>{words}</div>\n\n<p>{more}"),
            10 => format!("<!-- {words} -->\n{more}"),
            11 => format!("#### {words}\n\n{more}"),
            12 => format!("{words}\n\n---\n\n{more}"),
            13 => format!("**{words}**: {more}"),
            14 => format!("**Note**: {words}\n**Warning**: {more}"),
            15 => format!("    {words}\n    {more}"),
            16 => format!("_Not stated._\n{words}. None.\n{more}"),
            17 => format!("{words} | {more}"),
            18 => format!("\\# {words}\n\\| {more}"),
            19 => format!("[{words}](https://example.com/{}) {more}", words.replace(' ', "-")),
            20 => format!("{words}\n\n```json\n{{\"{more}\": 1}}\n```"),
            21 => format!("```json\n{{\"note\": \"{words}\", // {more}\n}}\n```"),
            22 => format!("{words}<br>{more}"),
            23 => format!("* {words}\n\n  {more}\n\n  ```\n  x\n  ```"),
            24 => format!("- ### {words}\n\n  {more}"),
            25 => format!("| Setting | Remark |\n|:--|--:|\n| {words} | {more} \\| x |"),
            26 => format!("<table><tr><th>{words}</th></tr><tr><td>{more}</td></tr></table>"),
            27 => format!("{words}\u{200b} \u{feff}{more}"),
            28 => format!("Term {words}\n: {more}"),
            29 => format!("[^1]: {words}\n\n![{more}](x.png)"),
            30 => format!("- [ ] {words}\n- [x] {more}"),
            31 => format!("Status: {words} · **Author**: {more}"),
            32 => format!("Parameters {words} are as described; see {more}."),
            _ => format!("$$ {words} $$\n{more}  \nnext"),
        };
        self.line(&format!("\n{piece}\n"));
    }

    fn maybe_odd(&mut self) {
        for _ in 0..self.choose(3) {
            self.oddity();
        }
    }

    /// Parameters in one of the accepted forms.
    fn parameters(&mut self) {
        let (one, two) = (self.name("room"), self.name("level"));
        let (first, second) = (self.phrase(), self.phrase());
        let label =
            ["**Parameters**:", "**Input**:", "### 3. Input Schema (Parameters)", "#### Arguments", "Parameters:"];
        let label = label[self.choose(label.len())];
        let body = match self.choose(12) {
            0 => format!(
                "| Parameter Name | Type | Required | Description | Example Value |\n|---|---|---|---|---|\n| `{one}` | `string` | Yes | {first}. | `\"x\"` |\n| `{two}` | `integer` | No | {second}. | `5` |"
            ),
            1 => {
                let (unit, third) = (self.phrase(), self.phrase());
                format!(
                    "| Argument | Kind | Mandatory | Notes | Unit {unit} |\n|---|---|---|---|---|\n| {one} | str | yes | {first} | {third} |\n| {two} | int | no | {second} | percent |"
                )
            }
            2 => format!("- `{one}` (string, required): {first}.\n- `{two}` (integer): {second}."),
            3 => format!("- **{one}** — string: {first}\n- **{two}** (number, optional, default 5): {second}"),
            4 => format!("{one}\n: string, required. {first}\n\n{two}\n: integer. {second}"),
            5 => format!(
                "```json\n{{\"{one}\": \"string, required. {first}\", \"{two}\": {{\"type\": \"integer\", \"description\": \"{second}\"}}}}\n```"
            ),
            6 => format!(
                "<dl>\n<dt>{one}</dt><dd>string, required. {first}</dd>\n<dt>{two}</dt><dd>{second} (integer)</dd>\n</dl>"
            ),
            7 => format!(
                "<table><tr><th>Name</th><th>Type</th><th>Description</th></tr>\n<tr><td>{one}</td><td>string</td><td>{first}</td></tr>\n<tr><td>{two}</td><td>integer</td><td>{second}</td></tr></table>"
            ),
            8 => format!(
                "```json\n{{\"type\": \"object\", \"properties\": {{\"{one}\": {{\"type\": \"string\", \"description\": \"{first}\"}}, \"{two}\": {{\"type\": \"integer\", \"description\": \"{second}\", \"x-odd\": [1, null]}}}}, \"required\": [\"{one}\"]}}\n```"
            ),
            9 => {
                let other = self.phrase();
                format!(
                    "| Name | Type | Description |\n|---|---|---|\n| `{one}` | string | {first} |\n| `{two}` | integer | {second} |\n\n```json\n{{\"type\": \"object\", \"properties\": {{\"{one}\": {{\"type\": \"string\", \"description\": \"{other}\"}}}}, \"additionalProperties\": false}}\n```"
                )
            }
            10 => format!("```yaml\nparameters:\n  {one}: string # {first}\n  {two}: integer # {second}\n```"),
            _ => format!("{first}\n\n- {one}: {second} (string)"),
        };
        self.line(&format!("\n{label}\n\n{body}\n"));
    }

    fn tool(&mut self) {
        let name = self.name("set_lamp");
        let title = self.phrase();
        let heading = match self.choose(9) {
            0 => format!("## Tool: `{name}`"),
            1 => format!("### {name}"),
            2 => format!("### `{name}`"),
            3 => format!("## {name} - {title}"),
            4 => format!("### {name}(room: string) -> object"),
            5 => format!("## Tool: `{name}` (v1.2.{})", self.count),
            6 => format!("<h3>{name}</h3>"),
            7 => format!("{name}\n------"),
            _ => format!("### 2.1 **{name}**"),
        };
        self.line(&format!("\n{heading}\n"));
        let lead = self.phrase();
        self.line(&format!("{lead}.\n"));
        let meta = match self.choose(7) {
            0 => "**Version**: 1.0.2 | **Idempotent**: Yes | **Status**: Active\n".to_owned(),
            1 => format!("- **Idempotent**: No, {}\n", self.phrase()),
            2 => format!("**Version**: v1.1.9, {}\n", self.phrase()),
            3 => format!("| Version | Owner |\n|---|---|\n| 1.4.0 | {} |\n", self.phrase()),
            4 => format!("Version: 2.0.0\nReads a file. **Idempotent**: Yes, {}\n", self.phrase()),
            _ => String::new(),
        };
        self.line(&meta);
        self.maybe_odd();
        self.parameters();
        self.maybe_odd();
        for section in ["Returns", "Error Handling", "Example Usage", "Security Considerations", "Quirks", "Notes"] {
            let style = self.choose(4);
            let says = self.phrase();
            match style {
                0 => {}
                1 => self.line(&format!("**{section}**: {says}\n")),
                2 => self.line(&format!("#### {section}\n\n{says}\n")),
                _ => self.line(&format!("### {section}\n\n{says}\n")),
            }
            if style > 0 {
                self.maybe_odd();
            }
        }
    }
}

/// A document with its phrases.
fn document(tape: &[u8]) -> (String, Vec<String>) {
    let mut writer = Writer { tape: tape.iter(), text: String::new(), phrases: Vec::new(), count: 0 };
    writer.line("# Lamps - MCP Tool Specification\n");
    let intro = writer.phrase();
    writer.line(&format!("{intro}\n"));
    writer.maybe_odd();
    if writer.choose(2) == 1 {
        writer.line("## Available Tools\n");
    }
    for _ in 0..1 + writer.choose(3) {
        writer.tool();
    }
    let end = writer.phrase();
    writer.line(&format!("\n## Changelog\n\n- {end}\n"));
    writer.maybe_odd();
    let text = match writer.choose(4) {
        0 => writer.text.replace('\n', "\r\n"),
        1 => writer.text.replace('\n', "\r"),
        _ => writer.text,
    };
    // Not every piece uses all the phrases that were made for it.
    let used = writer.phrases.into_iter().filter(|phrase| text.contains(phrase.as_str()));
    let used = used.collect();
    (text, used)
}

/// The words of a text in order, with a space around each.
fn flat(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase);
    format!(" {} ", words.collect::<Vec<_>>().join(" "))
}

fn check(tape: &[u8]) -> Result<(), TestCaseError> {
    let (text, phrases) = document(tape);
    let read = Document::parse(&text);
    let rendered = print::render_document("Lamps - MCP Tool Specification", &read);
    let printed = flat(&rendered.text);
    let lost: Vec<&String> = phrases.iter().filter(|phrase| !printed.contains(&format!(" {phrase} "))).collect();
    prop_assert!(lost.is_empty(), "lost {lost:?}, says {:?}\n{text}\n=====\n{}", rendered.lost, rendered.text);
    prop_assert!(rendered.lost.is_empty(), "says that it loses {:?}\n{text}\n=====\n{}", rendered.lost, rendered.text);
    let again = print::render_document("Lamps - MCP Tool Specification", &Document::parse(&rendered.text));
    prop_assert!(again.text == rendered.text, "not stable\n{text}\n=====\n{}\n=====\n{}", rendered.text, again.text);
    let page = print::render_html_document("Lamps - MCP Tool Specification", &read).text;
    let page = flat(&page);
    let lost: Vec<&String> = phrases.iter().filter(|phrase| !page.contains(&format!(" {phrase} "))).collect();
    prop_assert!(lost.is_empty(), "the page lost {lost:?}\n{text}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn no_phrase_of_a_hostile_document_is_lost(tape in prop::collection::vec(any::<u8>(), 0..120)) {
        check(&tape)?;
    }
}

#[test]
fn a_bullet_like_a_parameter_outside_tools_is_printed_once() {
    let read = Document::parse("# M\n\n- `dir` (string, required, absolute): Folder\n");
    let rendered = print::render_document("M", &read);
    assert_eq!((rendered.lost, rendered.text.matches("absolute").count()), (vec![], 1), "{}", rendered.text);
}
