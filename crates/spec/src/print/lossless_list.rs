//! What printing a list of tools would lose: every key, text and number of its JSON is looked for in the printed text.

use serde_json::Value;
use sinew_tool::finding::Span;

use super::lossless::Printed;
use crate::json::{self, JsonKind, JsonNode, MistakeKind};
use crate::read::Document;

/// Keys that the headings and labels of the standard stand for.
const STRUCTURE: [&str; 12] = [
    "result",
    "tools",
    "instructions",
    "name",
    "title",
    "description",
    "inputSchema",
    "parameters",
    "outputSchema",
    "annotations",
    "_meta",
    sinew_tool::tool::VERSION_KEY,
];

/// The words of a list that were not printed, each with its line.
pub(super) fn lost(document: &Document, printed: &Printed) -> Vec<(usize, String)> {
    let text = document.text.as_str();
    let whole = Span::new(0, text.len());
    let mut search = Search { document, printed, found: Vec::new() };
    let Ok(reading) = json::read(text, whole) else {
        search.report(whole, printed.lost_words(text));
        return search.found;
    };
    reading.values.iter().for_each(|value| search.value(value));
    for slip in reading.mistakes.iter().filter(|slip| slip.kind == MistakeKind::Comment) {
        search.report(slip.span, printed.lost_phrases(slip.span.of(text)));
    }
    search.found
}

struct Search<'a> {
    document: &'a Document,
    printed: &'a Printed,
    found: Vec<(usize, String)>,
}

impl Search<'_> {
    fn report(&mut self, span: Span, lost: Vec<String>) {
        let line = self.document.lines.position(&self.document.text, span.start).line;
        self.found.extend(lost.into_iter().map(|word| (line, word)));
    }

    fn value(&mut self, node: &JsonNode) {
        match &node.kind {
            JsonKind::Null | JsonKind::Bool(_) => {}
            JsonKind::Number(number) => self.report(node.span, self.printed.lost_words(&number.to_string())),
            JsonKind::String(text) => self.text(node.span, text),
            JsonKind::Array(items) => items.iter().for_each(|item| self.value(item)),
            JsonKind::Object(members) => {
                // The envelope of JSON-RPC is about one answer, not about the tools.
                let is_envelope = |key: &str| matches!(key, "jsonrpc" | "id") && node.get("result").is_some();
                for member in members.iter().filter(|member| !is_envelope(&member.key)) {
                    if !STRUCTURE.contains(&member.key.as_str()) {
                        self.text(member.key_span, &member.key);
                    }
                    self.value(&member.value);
                }
            }
        }
    }

    /// A text is printed as it is, or in JSON.
    fn text(&mut self, span: Span, text: &str) {
        let mut lost = self.printed.lost_phrases(text);
        if !lost.is_empty() {
            lost = self.printed.lost_phrases(&Value::from(text).to_string());
        }
        self.report(span, lost);
    }
}
