//! Checking documents: rules as data, findings with places and, where it is safe, a fix.
//!
//! [`RULES`] is the list of requirements, one row each; the modules hold the checks:
//! `structure` the sections and placeholders, `names`, `tables` and `schemas`, `examples`, `status` the result,
//! `behaviour` errors, idempotency and hints, `security`, `descriptions` also versions, `advice` what could be better. Only the text is checked; no tool is ever called.

mod advice;
mod behaviour;
mod descriptions;
mod examples;
mod fix;
mod hidden;
mod ignores;
mod names;
mod placeholders;
pub(crate) mod rules;
mod schemas;
mod security;
mod shapes;
mod simplified;
pub mod standard;
mod status;
mod structure;
mod styles;
mod tables;
mod unseen;
mod words;

use std::collections::{BTreeMap, HashMap, HashSet};

pub use fix::{Fixed, apply_fixes, fix};
pub use rules::{LINTER, RULES, rule, rules_page};

use crate::model::ToolSpecification;
use crate::read::{Document, Format};
use crate::schema::CheckBudget;
use sinew_tool::finding::report::{FileReport, Source};
use sinew_tool::finding::{Edit, Finding, Findings, Lines, Rule, Severity, Span};

/// Which rules are on, and with which severity.
#[derive(Clone, Debug)]
pub struct LintConfig {
    levels: BTreeMap<&'static str, Option<Severity>>,
    /// Names longer than this are reported.
    pub name_length: usize,
    /// Descriptions that cost more tokens than this are reported.
    pub description_tokens: usize,
}

impl Default for LintConfig {
    fn default() -> LintConfig {
        // Clients allow 64 characters and put the server's name in front.
        LintConfig { levels: BTreeMap::new(), name_length: 48, description_tokens: 300 }
    }
}

impl LintConfig {
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

    /// The severity of a rule; `None` if it is off.
    pub fn severity(&self, rule: &Rule) -> Option<Severity> {
        self.levels.get(rule.id).copied().unwrap_or(Some(rule.severity))
    }
}

/// Checks a document. Findings come in the order of their places.
pub fn check(document: &Document, config: &LintConfig) -> Findings {
    let mut reporter = Reporter {
        document,
        config,
        tool: None,
        findings: Findings::default(),
        blank: Vec::new(),
        ignores: Vec::new(),
        budget: CheckBudget::default(),
        intro_names: status::error_names_in(&document.intro),
    };
    ignores::read(&mut reporter);
    for problem in &document.problems {
        reporter.report(problem.rule, problem.span, problem.message.clone());
    }
    if document.is_text() {
        structure::document(&mut reporter);
        names::unique(&mut reporter);
        for tool in &document.tools {
            reporter.check_tool(tool);
        }
    }
    ignores::report_unused(&mut reporter);
    let mut findings = reporter.findings;
    findings.sort();
    findings
}

/// Checks tools that come from no document, such as those of a live device.
pub fn check_tools(tools: &[sinew_tool::Tool], config: &LintConfig) -> Findings {
    let list: Vec<serde_json::Value> = tools.iter().map(sinew_tool::Tool::to_json).collect();
    let text = serde_json::to_string_pretty(&serde_json::json!({ "tools": list })).unwrap_or_default();
    check(&crate::read::tools_list_json(&text), config)
}

/// What is left of a document after its check: enough to report its findings.
pub struct CheckedDocument {
    /// Its name in reports.
    pub path: String,
    pub findings: Findings,
    text: String,
    lines: Lines,
    /// The names of its tools, with their places and the severity of a name that another document uses already.
    names: Vec<(String, Span, Option<Severity>)>,
}

impl CheckedDocument {
    /// Checks a document; its tools are not kept.
    pub fn new(path: String, document: Document, config: &LintConfig) -> CheckedDocument {
        let findings = check(&document, config);
        let repeated = config.severity(&rules::NAME_DUPLICATE);
        let ignored = ignores::scopes(&document, &rules::NAME_DUPLICATE);
        let named = |tool: &ToolSpecification| {
            let span = tool.places.name.unwrap_or(tool.places.heading);
            let is_ignored = ignored.iter().any(|scope| scope.is_none_or(|scope| scope.contains(span.start)));
            (tool.name.clone(), span, repeated.filter(|_| !is_ignored))
        };
        CheckedDocument {
            path,
            findings,
            names: document.tools.iter().map(named).collect(),
            text: document.text,
            lines: document.lines,
        }
    }

    pub fn report(&self) -> FileReport<'_> {
        FileReport {
            path: &self.path,
            source: Source::Text { text: &self.text, lines: &self.lines },
            tools: self.names.iter().map(|(name, ..)| name.as_str()).collect(),
            findings: &self.findings,
        }
    }
}

/// Adds a finding for each name that an earlier document uses already.
pub fn report_repeated(documents: &mut [CheckedDocument]) {
    let mut owners: HashMap<String, String> = HashMap::new();
    for document in documents {
        let mut own: HashSet<&str> = HashSet::new();
        for (name, span, severity) in &document.names {
            if name.is_empty() || placeholders::is_placeholder(name) || !own.insert(name) {
                continue;
            }
            let Some(first) = owners.get(name) else {
                owners.insert(name.clone(), document.path.clone());
                continue;
            };
            let Some(severity) = *severity else { continue };
            let message = format!("`{}` is already the name of a tool in {first}", sinew_tool::text::clip(name));
            let finding = Finding::new(&rules::NAME_DUPLICATE, message)
                .with_severity(severity)
                .at(document.lines.place(&document.text, *span))
                .of_tool(name.as_str());
            document.findings.push(finding);
        }
        document.findings.sort();
    }
}

/// Collects findings while a document is checked.
struct Reporter<'a> {
    document: &'a Document,
    config: &'a LintConfig,
    tool: Option<&'a ToolSpecification>,
    findings: Findings,
    /// Parts that still hold placeholders, where only `unfilled` is reported.
    blank: Vec<Span>,
    ignores: Vec<ignores::Ignore>,
    budget: CheckBudget,
    /// The fields of an error that the text before the tools describes for all of them.
    intro_names: Vec<&'static str>,
}

impl<'a> Reporter<'a> {
    fn report(&mut self, rule: &'static Rule, span: Span, message: impl Into<String>) {
        self.report_fixable(rule, span, message, None);
    }

    fn report_fixable(&mut self, rule: &'static Rule, span: Span, message: impl Into<String>, fix: Option<Edit>) {
        let Some(severity) = self.config.severity(rule) else { return };
        let is_blank = rule != &rules::UNFILLED && self.blank.iter().any(|blank| blank.contains(span.start));
        if is_blank || ignores::covers(&mut self.ignores, rule, span.start) {
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

    fn check_tool(&mut self, tool: &'a ToolSpecification) {
        self.tool = Some(tool);
        self.blank = placeholders::check(self, tool);
        let (input, output) = schemas::check(self, tool);
        if input.is_some() {
            simplified::input(self, tool, &tool.input);
        }
        if let Some(schema) = tool.output.as_deref().filter(|_| output.is_some()) {
            simplified::output(self, tool, schema);
        }
        if self.is_markdown() {
            structure::sections(self, tool);
            tables::check(self, tool);
            examples::check(self, tool, input.as_ref(), output.as_ref());
            status::check(self, tool);
            behaviour::check(self, tool);
            security::check(self, tool);
        }
        names::check(self, tool);
        schemas::parameters(self, tool);
        shapes::check(self, tool);
        descriptions::check(self, tool);
        behaviour::hints(self, tool);
        advice::check(self, tool);
        self.blank.clear();
        self.tool = None;
    }
}
