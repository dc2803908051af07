//! Judging: rules as data, findings with places and, where it is safe, a mend.
//!
//! [`RULES`] is the list of what is required, one row a requirement; the neighbours hold the checks:
//! `structure` the sections and placeholders, `names`, `tables` and `schemas`, `examples`,
//! `behaviour` status, errors, idempotency and security, `words` descriptions and versions, `advice`
//! what could be better. A tool is judged by what it says; nothing is ever called.

mod advice;
mod behaviour;
mod examples;
mod fix;
mod hidden;
mod ignores;
mod names;
mod placeholders;
pub(crate) mod rules;
mod schemas;
mod shapes;
pub mod standard;
mod structure;
mod tables;
mod words;

use std::collections::BTreeMap;

pub use fix::{Fixed, apply_fixes, fix};
pub use rules::{LINTER, RULES, rule, rules_page};

use crate::model::ToolSpec;
use crate::read::{Document, Format};
use sinew_tool::finding::{Edit, Finding, Findings, Rule, Severity, Span};

/// Which rules speak and how loudly.
#[derive(Clone, Debug)]
pub struct Config {
    levels: BTreeMap<&'static str, Option<Severity>>,
    /// Names longer than this are told.
    pub name_length: usize,
    /// Descriptions that cost more tokens than this are told.
    pub description_tokens: usize,
}

impl Default for Config {
    fn default() -> Config {
        // Clients allow 64 characters and put the server's name in front.
        Config { levels: BTreeMap::new(), name_length: 48, description_tokens: 300 }
    }
}

impl Config {
    /// Sets a rule to `off`, `advice`, `warning` or `error`.
    pub fn set(&mut self, id: &str, level: &str) -> Result<(), String> {
        let rule = rule(id).ok_or_else(|| format!("there is no rule `{id}`; `sinew spec rules` lists them"))?;
        let severity =
            match level {
                "off" => None,
                word => Some(Severity::from_word(word).ok_or_else(|| {
                    format!("rule `{id}` cannot be set to `{word}`; use off, advice, warning or error")
                })?),
            };
        self.levels.insert(rule.id, severity);
        Ok(())
    }

    /// How loudly a rule speaks; `None` where it is off.
    pub fn severity(&self, rule: &Rule) -> Option<Severity> {
        self.levels.get(rule.id).copied().unwrap_or(Some(rule.severity))
    }
}

/// Judges a document: its findings in the order of their places.
pub fn lint(document: &Document, config: &Config) -> Findings {
    let mut bench = Bench { document, config, tool: None, findings: Findings::default(), mute: Vec::new() };
    for problem in &document.problems {
        bench.tell(problem.rule, problem.span, problem.message.clone());
    }
    if document.is_text() {
        structure::document(&mut bench);
        names::unique(&mut bench);
        for tool in &document.tools {
            bench.judge_tool(tool);
        }
    }
    ignores::apply(&mut bench);
    let mut findings = bench.findings;
    findings.sort();
    findings
}

/// Judges tools that come from no document, such as those of a live device.
pub fn lint_tools(tools: &[sinew_tool::Tool], config: &Config) -> Findings {
    let list: Vec<serde_json::Value> = tools.iter().map(sinew_tool::Tool::to_json).collect();
    let text = serde_json::to_string_pretty(&serde_json::json!({ "tools": list })).unwrap_or_default();
    lint(&crate::read::tools_list_json(&text), config)
}

/// Invocation names that several documents claim: `(name, the documents' indexes)`.
pub fn repeated_names(documents: &[&Document]) -> Vec<(String, Vec<usize>)> {
    let mut owners: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, document) in documents.iter().enumerate() {
        for tool in document.tools.iter().filter(|tool| !placeholders::is_placeholder(&tool.name)) {
            let owners = owners.entry(&tool.name).or_default();
            if owners.last() != Some(&index) {
                owners.push(index);
            }
        }
    }
    owners.into_iter().filter(|(_, owners)| owners.len() > 1).map(|(name, owners)| (name.to_owned(), owners)).collect()
}

/// Adds to the findings of each document the names that an earlier one has taken. Documents come with
/// what they are called in reports.
pub fn tell_repeated(documents: &[(&str, &Document)], findings: &mut [Findings], config: &Config) {
    let Some(severity) = config.severity(&rules::NAME_DUPLICATE) else { return };
    let all: Vec<&Document> = documents.iter().map(|(_, document)| *document).collect();
    for (name, owners) in repeated_names(&all) {
        let (first, _) = documents[owners[0]];
        for &index in &owners[1..] {
            let document = documents[index].1;
            let Some(tool) = document.tools.iter().find(|tool| tool.name == name) else { continue };
            let span = tool.places.name.unwrap_or(tool.places.heading);
            let message = format!("`{}` is already the name of a tool in {first}", sinew_tool::text::clip(&name));
            let finding = Finding::new(&rules::NAME_DUPLICATE, message)
                .with_severity(severity)
                .at(document.lines.place(&document.text, span))
                .of_tool(name.as_str());
            if let Some(findings) = findings.get_mut(index) {
                findings.push(finding);
                findings.sort();
            }
        }
    }
}

/// Where findings are laid down while a document is judged.
struct Bench<'a> {
    document: &'a Document,
    config: &'a Config,
    tool: Option<&'a ToolSpec>,
    findings: Findings,
    /// Stretches of blank form, where only `unfilled` speaks.
    mute: Vec<Span>,
}

impl<'a> Bench<'a> {
    fn tell(&mut self, rule: &'static Rule, span: Span, message: impl Into<String>) {
        self.tell_fixable(rule, span, message, None);
    }

    fn tell_fixable(&mut self, rule: &'static Rule, span: Span, message: impl Into<String>, fix: Option<Edit>) {
        let Some(severity) = self.config.severity(rule) else { return };
        let muted = rule != &rules::UNFILLED && self.mute.iter().any(|mute| mute.contains(span.start));
        if muted {
            return;
        }
        let place = self.document.lines.place(&self.document.text, span);
        let mut finding = Finding::new(rule, message).with_severity(severity).at(place).with_fix(fix);
        finding.tool = self.tool.map(|tool| tool.name.clone());
        self.findings.push(finding);
    }

    fn is_markdown(&self) -> bool {
        self.document.format == Format::Markdown
    }

    fn text(&self) -> &'a str {
        &self.document.text
    }

    fn judge_tool(&mut self, tool: &'a ToolSpec) {
        self.tool = Some(tool);
        self.mute = placeholders::check(self, tool);
        let (input, output) = schemas::check(self, tool);
        if self.is_markdown() {
            structure::sections(self, tool);
            tables::check(self, tool);
            examples::check(self, tool, input.as_ref(), output.as_ref());
            behaviour::check(self, tool);
        }
        names::check(self, tool);
        schemas::parameters(self, tool);
        shapes::check(self, tool);
        words::check(self, tool);
        behaviour::hints(self, tool);
        advice::check(self, tool);
        self.mute.clear();
        self.tool = None;
    }
}
